"""Exceptions that callers may want to catch."""

from __future__ import annotations


class DeviceUnavailableError(RuntimeError):
    """A device was asked for by name and cannot be used. Nothing falls back in silence."""


class DeviceMemoryError(MemoryError):
    """The problem does not fit on the device. The message says what is needed, what is free, and what to change."""


class ModelFormatError(ValueError):
    """A file is no model that can be loaded. The message names the file, what is wrong with it and what to do."""

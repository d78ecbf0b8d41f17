"""Exceptions that callers may want to catch."""

from __future__ import annotations


class DeviceUnavailableError(RuntimeError):
    """A device was asked for by name and cannot be used. Nothing falls back in silence."""

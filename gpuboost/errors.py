"""Exceptions that callers may want to catch."""

from __future__ import annotations


class DeviceUnavailableError(RuntimeError):
    """A device was asked for by name and cannot be used. Nothing falls back in silence."""


class DeviceLostError(DeviceUnavailableError):
    """A device has stopped working while it was used. The message says what is left, and what to do."""


class DeviceMemoryError(MemoryError):
    """The problem does not fit on the device. The message says what is needed, what is free, and what to change."""


class ModelFormatError(ValueError):
    """A file is no model that can be loaded. The message names the file, what is wrong with it and what to do."""


class StreamError(RuntimeError):
    """A source of rows has failed, ended too early or changed in the middle. The message names the row and the batch."""


def is_interrupt(error: BaseException | None) -> bool:
    """Whether ``error`` is an interrupt, or came of one.

    numba turns one that arrives between its calls into a SystemError, and Python one in a class body into a RuntimeError.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None

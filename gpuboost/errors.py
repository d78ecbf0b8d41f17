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


class CodeFileError(ValueError):
    """A file is no code file that can be trained on. The message names the file, what is wrong with it and what to do."""


class StreamError(RuntimeError):
    """A source of rows has failed, ended too early or changed in the middle. The message names the row and the batch."""


class WorkersPartedError(RuntimeError):
    """The workers of a training do not make the same call. The message names two of them and what each asks for."""


class WorkerLostError(RuntimeError):
    """A worker of a training has failed, ended or gone silent.

    Attributes
    ----------
    worker : int
        Its rank.
    what : str
        The name of the call in which another worker noticed it.
    how : str
        What is known beside that, for instance its address; may be empty.
    """

    def __init__(self, worker: int, what: str, how: str = "") -> None:
        super().__init__(worker, what, how)  # these arguments, so that it can be pickled
        self.worker = worker
        self.what = what
        self.how = how

    def __str__(self) -> str:
        return f"worker {self.worker} was lost, as was noticed in {self.what!r}{self.how and ': ' + self.how}"


def is_interrupt(error: BaseException | None) -> bool:
    """Whether ``error`` is an interrupt, or came of one.

    numba turns one that arrives between its calls into a SystemError, and Python one in a class body into a RuntimeError.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None

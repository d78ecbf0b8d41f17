"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable
from typing import BinaryIO


def write_whole(path: str | os.PathLike[str], content: bytes | bytearray | Callable[[BinaryIO], object]) -> None:
    """Write a file whole, or not at all.

    The bytes go to a file without a name in the same folder, are flushed to the disk, and take the place of ``path`` in one
    step. An error, an interrupt, a kill or a power cut leaves what was there before. Where a file must have a name, a process
    that is killed in the middle leaves a new and hidden one behind (``.NAME.*.tmp``). The permissions of a file that is
    replaced stay, and a link is followed. What is no regular file, such as ``/dev/stdout`` or a pipe, is written to directly.

    Parameters
    ----------
    path : str or path
    content : bytes, or a callable
        The bytes, or what writes them to the open file that it is called with.

    Raises
    ------
    OSError
        If the file cannot be written: its folder is missing (FileNotFoundError), it or its folder may not be written to
        (PermissionError), it is a folder (IsADirectoryError), the disk is full. The error names ``path``.
    """
    target = os.path.realpath(path)
    try:
        mode = _mode_to_keep(target)
        if mode is not None and not stat.S_ISREG(mode):
            with open(target, "wb") as file:
                _fill(file, content)
            return
        _replace(target, mode, content)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error  # not the name of the hidden file


def _mode_to_keep(target: str) -> int | None:
    """Return the mode of what is there already, None if there is nothing."""
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISREG(mode):
        with open(target, "r+b"):  # whoever may not write to a file may not replace it either
            pass
    return mode


def _replace(target: str, mode: int | None, content: bytes | bytearray | Callable[[BinaryIO], object]) -> None:
    folder, name = os.path.split(target)
    hidden = os.path.join(folder, f".{name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor, has_name = _open_hidden(folder, hidden)
        with open(descriptor, "wb") as file:
            _fill(file, content)
            file.flush()
            os.fsync(file.fileno())
            if not has_name:  # with the descriptor of a folder, which is not used, the link in /proc is followed
                os.link(f"/proc/self/fd/{descriptor}", hidden, src_dir_fd=descriptor)
        if mode is not None:
            os.chmod(hidden, stat.S_IMODE(mode))
        os.replace(hidden, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(hidden)
        raise
    _flush_folder(folder)


def _open_hidden(folder: str, hidden: str) -> tuple[int, bool]:
    """Open a new file for writing; return its descriptor, and whether it has the name ``hidden`` already."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # such as of a file system without such files; else what follows raises it again
            return os.open(folder, os.O_WRONLY | os.O_TMPFILE, 0o666), False
    return os.open(hidden, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666), True


def _fill(file: BinaryIO, content: bytes | bytearray | Callable[[BinaryIO], object]) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content)


def _flush_folder(folder: str) -> None:
    """Make the new name last, where folders can be flushed: not on Windows, and not on every network drive."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

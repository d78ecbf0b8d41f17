"""Files as a whole, also those that make one wait for what is in them."""

from __future__ import annotations

import io
import os
import select
import stat
from typing import BinaryIO

TURN = 0.1
"""Seconds that a pipe is waited for before the interpreter looks for signals."""


def read_file(path: str) -> bytes:
    """Return the content of a file, or of a pipe until its writers close it."""
    with open(path, "rb") as file:
        return read_to_end(file)


def read_to_end(file: BinaryIO) -> bytes:
    """Return what is left in a file that has not been read from.

    A pipe is waited for in turns: a signal that came between Python's last look and a read would not end the read.
    """
    try:
        waits = os.name != "nt" and not stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except io.UnsupportedOperation:  # no file of the system's, as where tests stand in for the standard input
        waits = False
    if not waits:
        return file.read()
    chunks = [b""]
    while len(chunks) == 1 or chunks[-1]:
        if select.select([file], [], [], TURN)[0]:
            chunks.append(os.read(file.fileno(), 1 << 20))
    return b"".join(chunks)

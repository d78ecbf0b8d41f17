"""Codes in a file: what is too large for memory is read some rows at a time, from front to back."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from io import FileIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.binning.codes import Binned
from gpuboost.errors import CodeFileError

CHUNK_BYTES = 8 << 20
"""About so much of the codes is in memory at a time."""

WIDTHS = (64, 32, 16)
"""How many features a block may have: its codes of a row are one vector of the processor."""


@dataclass(frozen=True, eq=False)
class StoredMatrix(Binned):
    """Codes of a matrix in a file, by blocks of features: uint8 (n_blocks, n_rows, width), the last block filled up with 0.

    The file is read, not mapped: so neither the address space nor the memory of the process grows with it, and one that is cut
    short meanwhile is an error. What the system keeps of it in its own cache is read from there.

    Attributes
    ----------
    file : FileIO
        Open for reading. It is closed as the matrix is forgotten.
    offset : int
        Where in the file the codes begin.
    shape : tuple of int
        (n_blocks, n_rows, width).
    n_bins : int32 (n_features,)
    has_missing : bool (n_features,)
    all_counts : int64 (n_features, 256)
    """

    file: FileIO
    offset: int
    shape: tuple[int, int, int]
    n_bins: NDArray[np.int32]
    has_missing: NDArray[np.bool_]
    all_counts: IntArray

    def __post_init__(self) -> None:
        weakref.finalize(self, self.file.close)

    @property
    def n_rows(self) -> int:
        return self.shape[1]

    @property
    def code_counts(self) -> IntArray:
        return self.all_counts

    def chunks(self, first_block: int = 0, stop_block: int | None = None) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
        """Read some blocks, all of them by default, once.

        Yields
        ------
        rows : slice
            Some rows, after those before.
        codes : uint8 (n_blocks, n, width)
            Theirs, until the next ones are asked for.

        Raises
        ------
        CodeFileError
            If the file ends before the codes do.
        """
        numbers = range(first_block, self.shape[0] if stop_block is None else stop_block)
        n_rows, width = self.shape[1:]
        at_once = max(1, CHUNK_BYTES // (len(numbers) * width))
        memory = np.empty(len(numbers) * min(at_once, n_rows) * width, np.uint8)
        for first in range(0, n_rows, at_once):
            n = min(at_once, n_rows - first)
            codes = memory[: len(numbers) * n * width].reshape(len(numbers), n, width)
            for block, number in zip(codes, numbers, strict=True):
                read_into(self.file, self._place(number, first), block)
            for number in numbers:
                self._announce(self._place(number, first + n), min(at_once, n_rows - first - n) * width)
            yield slice(first, first + n), codes

    def _place(self, block: int, row: int) -> int:
        _, n_rows, width = self.shape
        return self.offset + (block * n_rows + row) * width

    def _announce(self, place: int, n_bytes: int) -> None:
        """Let the system read ahead, where it can be told to."""
        if n_bytes and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self.file.fileno(), place, n_bytes, os.POSIX_FADV_WILLNEED)

    def features(self, first: int, stop: int) -> NDArray[np.uint8]:
        width = self.shape[2]
        first_block, stop_block = first // width, -(-stop // width)
        out = np.empty((stop - first, self.n_rows), np.uint8)
        own = slice(first - first_block * width, stop - first_block * width)
        for rows, codes in self.chunks(first_block, stop_block) if stop > first else ():
            out[:, rows] = codes.transpose(0, 2, 1).reshape(-1, codes.shape[1])[own]
        return out


def read_into(file: FileIO, place: int, out: NDArray[Any]) -> None:
    """Fill a contiguous array from a place in a file; a CodeFileError if the file ends before."""
    file.seek(place)
    left = bytes_of(out).data
    while left:
        n = file.readinto(left)
        if not n:
            raise CodeFileError(f"{file.name!r} has become shorter while it was read; write it again")
        left = left[n:]


def bytes_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Return a contiguous array as bytes, which are not copied."""
    return array.reshape(-1).view(np.uint8)


def stored_width(n_features: int) -> int:
    """Return the width of the blocks of a file: the largest that adds no more than a quarter to fill up the last one."""
    return next((width for width in WIDTHS if 4 * (-n_features % width) <= n_features), WIDTHS[-1])


def to_blocks(codes: NDArray[np.uint8], width: int) -> NDArray[np.uint8]:
    """Return codes (n_features, n_rows) by blocks of features, row by row: (n_blocks, n_rows, width), filled up with 0."""
    n_features, n_rows = codes.shape
    blocks = np.zeros((-(-n_features // width), n_rows, width), np.uint8)
    for b, block in enumerate(blocks):
        own = codes[b * width : (b + 1) * width]
        block[:, : len(own)] = own.T
    return blocks

"""Arrays and memory maps as a source."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.containers import frame_names
from gpuboost.inputs.features import to_matrix
from gpuboost.inputs.parameters import check_integer
from gpuboost.streams.checks import BatchChecks
from gpuboost.streams.contract import Batch
from gpuboost.streams.order import permutation

BATCH_BYTES = 4 << 20
"""Rows are given in batches of about this size."""

BLOCK_BYTES = 32 << 20
"""The rows of a memory map are shuffled within blocks of about this size."""


class ArraySource:
    """The rows of arrays or a data frame.

    Parameters
    ----------
    X : array-like or data frame, shape (n_rows, n_features)
        A memory map is read as it is needed, from front to back, and what was read is handed back to the system.
    y : array-like, shape (n_rows,)
    weight : array-like, shape (n_rows,), optional
    shuffle : int, optional
        The seed of a permutation of the rows. Those of a memory map are shuffled in blocks: the blocks, and the rows of each,
        so that what is read lies together.
    """

    repeatable = True

    def __init__(self, X: Any, y: Any, weight: Any = None, shuffle: int | None = None) -> None:
        names = frame_names(X)
        self._mapped = _mapping(X) is not None
        whole = BatchChecks(None, None).arrays(Batch(to_host(to_matrix(X, None)), y, weight), 0)
        assert whole is not None  # to_matrix refuses a matrix without rows
        self._whole = whole
        self._seed = None if shuffle is None else check_integer("shuffle", shuffle, 0)
        self._order: IntArray | None = None
        self.n_rows, self.n_features = whole.X.shape
        self.feature_names = names

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on; it takes no time to get there."""
        if self._seed is not None and self._mapped:
            yield from self._blocks(first_row, self._seed)
            return
        size = self._rows_of(BATCH_BYTES)
        if self._seed is not None and self._order is None:
            self._order = permutation(self.n_rows, self._seed)
        for start in range(first_row, self.n_rows, size):
            rows = slice(start, min(start + size, self.n_rows))
            yield _chosen(self._whole, rows if self._order is None else self._order[rows])
            self._release()

    def _blocks(self, first_row: int, seed: int) -> Iterator[Batch]:
        size = self._rows_of(BLOCK_BYTES)
        row = 0
        for block in permutation(-(-self.n_rows // size), seed):
            start = int(block) * size
            end = min(start + size, self.n_rows)
            skipped, row = max(0, first_row - row), row + end - start
            if first_row < row:
                order = permutation(end - start, seed, int(block))[skipped:]
                yield _chosen(_chosen(self._whole, slice(start, end)), order)
                self._release()

    def _rows_of(self, n_bytes: int) -> int:
        row_bytes: int = self.n_features * self._whole.X.itemsize
        return max(1, n_bytes // row_bytes)

    def _release(self) -> None:
        """Hand back the memory that pages of the file take; they are read again if they are needed."""
        for array in (self._whole.X, self._whole.y, self._whole.weight):
            mapping = _mapping(array)
            if mapping is not None and hasattr(mapping, "madvise"):
                mapping.madvise(mmap.MADV_DONTNEED)


def _chosen(batch: Batch, rows: slice | IntArray) -> Batch:
    weight = None if batch.weight is None else batch.weight[rows]
    return Batch(batch.X[rows], batch.y[rows], weight)


def _mapping(array: Any) -> Any:
    """Return the memory map that an array lies in; None if in memory, or if changes to it would be lost with its pages."""
    while isinstance(array, np.ndarray):
        if getattr(array, "mode", None) == "c":
            return None
        array = array.base
    return array if isinstance(array, mmap.mmap) else None

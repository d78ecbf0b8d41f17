"""A binned matrix of the CPU backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.binning import MISSING_CODE, BinBlock, BinMapper, Binned, BinnedMatrix, ComputedMatrix, StoredMatrix
from gpuboost.binning.computed import PART_BYTES
from gpuboost.binning.stored import to_blocks


@dataclass(frozen=True)
class CpuMatrix:
    """A binned matrix as the compiled loops want it.

    Attributes
    ----------
    blocks : ndarray of uint8, shape (n_blocks, n_rows, width)
        Codes by blocks of 16, 32 or 64 features, so that a row's codes of a block are one vector (for 64, one cache line). The
        features that fill up the last block hold their skipped code everywhere. Without rows if the codes stay in a file.
    skipped : ndarray of uint8, shape (n_blocks * width,)
        Every feature's most frequent code: its bin is left out of the sums and recovered from the node's total.
    bin_offsets : ndarray of int64, shape (n_features + 1,)
    has_missing : ndarray of bool, shape (n_features,)
    usable : ndarray of int64
        The features that can be cut.
    counted : ndarray of float64, shape (n_features,)
        The share of the rows with another code than the skipped one.
    stored : StoredMatrix, optional
        The codes that stay in a file.
    """

    blocks: NDArray[np.uint8]
    skipped: NDArray[np.uint8]
    bin_offsets: NDArray[np.int64]
    has_missing: NDArray[np.bool_]
    usable: NDArray[np.int64]
    counted: NDArray[np.float64]
    stored: StoredMatrix | None = None

    @classmethod
    def load(cls, matrix: Binned) -> CpuMatrix:
        """Lay out a matrix by blocks, if it is not so in a file."""
        stored = matrix if isinstance(matrix, StoredMatrix) else None
        if stored is None:
            blocks = to_blocks(matrix.features(0, matrix.n_features), width_of(matrix.n_features))
        else:
            blocks = np.empty((stored.shape[0], 0, stored.shape[2]), np.uint8)
        return cls._of(blocks, matrix, matrix.code_counts, stored)

    @classmethod
    def of_computed(cls, mapper: BinMapper, X: ComputedMatrix, bin_block: BinBlock) -> CpuMatrix:
        """Lay out a matrix whose columns are computed: beside its codes there are only some columns of values at a time."""
        (n_rows, n_features), width = X.shape, width_of(mapper.n_features)
        blocks = np.empty((-(-n_features // width), n_rows, width), np.uint8)
        counts = []
        blocks_at_once = max(1, PART_BYTES // max(1, n_rows * X.dtype.itemsize * width))
        for block in range(0, len(blocks), blocks_at_once):
            first, stop = block * width, min((block + blocks_at_once) * width, n_features)
            part = mapper.of_features(first, stop).transform(X[:, first:stop], bin_block=bin_block)
            blocks[block : block + blocks_at_once] = to_blocks(part.codes, width)
            counts.append(part.code_counts)
        all_counts = np.concatenate(counts)
        facts = BinnedMatrix(np.empty((n_features, 0), np.uint8), mapper.n_bins, mapper.has_missing, all_counts)
        return cls._of(blocks, facts, all_counts, None)

    @classmethod
    def _of(cls, blocks: NDArray[np.uint8], matrix: Binned, counts: IntArray, stored: StoredMatrix | None) -> CpuMatrix:
        skipped = np.zeros(blocks.shape[0] * blocks.shape[2], np.uint8)
        skipped[: matrix.n_features] = counts.argmax(axis=1)
        counted = 1.0 - counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
        has_missing = counts[:, MISSING_CODE] > 0  # here, whatever the cuts were fitted on
        return cls(blocks, skipped, matrix.bin_offsets, has_missing, np.flatnonzero(matrix.usable), counted, stored)

    @property
    def n_rows(self) -> int:
        return int(self.blocks.shape[1]) if self.stored is None else self.stored.n_rows

    def chunks(self) -> Iterator[tuple[slice, NDArray[np.uint8]]]:
        """Yield rows and their blocks: all at once, or what is read from a file at a time."""
        if self.stored is None:
            yield slice(0, self.n_rows), self.blocks
        else:
            yield from self.stored.chunks()


def width_of(n_features: int) -> int:
    """Return how many features a block has: no more than are needed, up to 64."""
    return next((width for width in (16, 32) if n_features <= width), 64)

"""A binned matrix of the CPU backend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning import MISSING_CODE, BinnedMatrix


@dataclass(frozen=True)
class CpuMatrix:
    """A binned matrix as the compiled loops want it.

    Attributes
    ----------
    blocks : ndarray of uint8, shape (n_blocks, n_rows, width)
        Codes by blocks of 16, 32 or 64 features, so that a row's codes of a block are one vector (for 64, one cache line). The
        features that fill up the last block hold their skipped code everywhere.
    skipped : ndarray of uint8, shape (n_blocks * width,)
        Every feature's most frequent code: its bin is left out of the sums and recovered from the node's total.
    bin_offsets : ndarray of int64, shape (n_features + 1,)
    has_missing : ndarray of bool, shape (n_features,)
    usable : ndarray of int64
        The features that can be cut.
    counted : ndarray of float64, shape (n_features,)
        The share of the rows with another code than the skipped one.
    """

    blocks: NDArray[np.uint8]
    skipped: NDArray[np.uint8]
    bin_offsets: NDArray[np.int64]
    has_missing: NDArray[np.bool_]
    usable: NDArray[np.int64]
    counted: NDArray[np.float64]

    @classmethod
    def load(cls, matrix: BinnedMatrix) -> CpuMatrix:
        """Lay out a matrix by blocks."""
        n_features, n_rows = matrix.codes.shape
        width = next((w for w in (16, 32) if n_features <= w), 64)
        n_blocks = -(-n_features // width)
        blocks = np.zeros((n_blocks, n_rows, width), np.uint8)
        for b, block in enumerate(blocks):
            codes = matrix.codes[b * width : (b + 1) * width]
            block[:, : len(codes)] = codes.T
        skipped, counts = np.zeros(n_blocks * width, np.uint8), matrix.code_counts
        skipped[:n_features] = counts.argmax(axis=1)
        counted = 1.0 - counts.max(axis=1) / np.maximum(counts.sum(axis=1), 1)
        has_missing = counts[:, MISSING_CODE] > 0  # here, whatever the cuts were fitted on
        return cls(blocks, skipped, matrix.bin_offsets, has_missing, np.flatnonzero(matrix.usable), counted)

    @property
    def n_rows(self) -> int:
        return int(self.blocks.shape[1])

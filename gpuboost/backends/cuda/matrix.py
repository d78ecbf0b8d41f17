"""A binned matrix on the device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import Gpu, GpuArray
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK
from gpuboost.backends.cuda.launch import MAX_GRID, launch
from gpuboost.backends.cuda.plan import Columns, GrowthPlan
from gpuboost.binning import MISSING_CODE, Binned

BLOCK_FEATURES = 16
"""Features of a block, as in ``common.cuh``."""
N_CODES = 256
SLAB_BYTES = 64 << 20
"""Columns travel to the device in pieces of about this size."""
ROWS_COUNTED = 4096
"""Rows that a block of ``count_codes`` takes at least, to make up for adding its counts to those of others."""


@dataclass(eq=False)
class CudaMatrix:
    """Codes by blocks of features, so that a row's codes of a block are one 16-byte load.

    Attributes
    ----------
    gpu : Gpu
    codes : device array of uint8, shape (n_blocks, n_rows, 16)
        Block b holds the features 16b .. 16b + 15; the last one is filled up with zeros.
    n_bins : ndarray of int32, shape (n_features,)
    fitted_missing : ndarray of bool, shape (n_features,)
        Whether the rows that the cuts were fitted on had missing values.
    all_counts : ndarray of int64, shape (n_features, 256), optional
        See `gpuboost.binning.BinnedMatrix`.
    """

    gpu: Gpu
    codes: GpuArray
    n_bins: NDArray[np.int32]
    fitted_missing: NDArray[np.bool_]
    all_counts: NDArray[np.int64] | None = None

    @classmethod
    def load(cls, gpu: Gpu, matrix: Binned) -> CudaMatrix:
        """Bring a matrix to the device. Besides its codes it takes the memory of one slab, here and there."""
        n_features, n_rows = matrix.n_features, matrix.n_rows
        codes = gpu.empty((-(-n_features // BLOCK_FEATURES), n_rows, BLOCK_FEATURES), np.uint8)
        blocks_at_once = max(1, SLAB_BYTES // max(1, n_rows * BLOCK_FEATURES))
        for first in range(0, codes.shape[0], blocks_at_once):
            blocks = codes[first : first + blocks_at_once]
            stop = min(BLOCK_FEATURES * (first + blocks_at_once), n_features)
            columns = gpu.put(matrix.features(BLOCK_FEATURES * first, stop))
            grid = (-(-n_rows // DEFAULT_BLOCK), min(blocks.shape[0], MAX_GRID[1]))
            launch(gpu, "pack", grid, (columns, blocks, n_rows, columns.shape[0]))
            del columns  # before there is another
        return cls(gpu, codes, matrix.n_bins, matrix.has_missing, matrix.all_counts)

    @property
    def n_features(self) -> int:
        return len(self.n_bins)

    @property
    def n_rows(self) -> int:
        return int(self.codes.shape[1])

    @cached_property
    def code_counts(self) -> NDArray[np.integer[Any]]:
        """How often each code stands in each feature, shape (n_blocks * 16, 256). Counted when first asked for."""
        n_blocks, n_rows, _ = self.codes.shape
        if self.all_counts is not None:
            return np.pad(self.all_counts, ((0, n_blocks * BLOCK_FEATURES - self.n_features), (0, 0)))
        counts = self.gpu.empty((n_blocks * BLOCK_FEATURES, N_CODES), np.int32)
        self.gpu.zero(counts)
        grid = (-(-n_rows // ROWS_COUNTED), min(n_blocks, MAX_GRID[1]))
        launch(self.gpu, "count_codes", grid, (self.codes, counts, n_rows, n_blocks))
        return self.gpu.get(counts)

    @cached_property
    def skipped(self) -> NDArray[np.uint8]:
        """The most frequent code of every feature, the lowest of equals, and 0 for the padding; shape (n_blocks * 16,)."""
        skipped: NDArray[np.uint8] = self.code_counts.argmax(axis=1).astype(np.uint8)  # the first of equals
        return skipped

    @cached_property
    def has_missing(self) -> NDArray[np.bool_]:
        """Whether a feature has missing values in these rows, shape (n_features,)."""
        return self.code_counts[: self.n_features, MISSING_CODE] > 0

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """Whether a feature tells rows apart, as `gpuboost.binning.BinnedMatrix.usable`, shape (n_features,)."""
        has_values = self.code_counts[: self.n_features, MISSING_CODE + 1 :].any(axis=1)
        usable: NDArray[np.bool_] = (self.n_bins > 2) | (self.fitted_missing & has_values)
        return usable

    @cached_property
    def columns(self) -> DeviceColumns:
        """What the growth kernels read of the features."""
        return DeviceColumns(self)


class DeviceColumns:
    """What the growth kernels read of a matrix, besides its codes.

    Attributes
    ----------
    host : Columns
    words, features : device arrays of int32
    bins : device array of int32, shape (n_features padded to whole words, 2)
        Bins of each feature, 0 of one that cannot be split, and bins of the features before it.
    skipped : device array of uint8
    facts : device array of uint8, shape (n_features padded to whole words, 2)
        The skipped code of each feature, and whether it has missing values.
    plans : dict
        How batches are grown, by (trees, channels, leaves).
    """

    def __init__(self, matrix: CudaMatrix) -> None:
        self.host = host = Columns.of(matrix.n_bins, matrix.usable)
        facts = np.zeros((len(host.n_bins), 2), np.uint8)
        facts[:, 0] = matrix.skipped[: len(facts)]
        facts[: matrix.n_features, 1] = matrix.has_missing
        put = matrix.gpu.put
        self.words, self.features = put(host.words), put(host.features)
        self.bins = put(np.column_stack([host.n_bins, host.offsets[:-1]]))
        self.facts, self.skipped = put(facts), put(matrix.skipped)
        self.plans: dict[tuple[int, ...], GrowthPlan] = {}

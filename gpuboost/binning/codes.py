"""Codes: what a matrix becomes, and the function that turns values into them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.binning.columns import sorting_dtype

MISSING_CODE = 0  # the code of NaN in every feature; value bins are 1 .. n_cuts + 1
N_CODES = 256

BinBlock = Callable[[Floats, Floats, IntArray, NDArray[np.uint8]], None]


class Binned(ABC):
    """What is known of the codes of a matrix, wherever they lie.

    Attributes
    ----------
    n_bins : int32 (n_features,)
        Bins of each feature, the one of missing values (code 0) included: codes are below it.
    has_missing : bool (n_features,)
        Whether the rows that the cuts were fitted on had missing values.
    all_counts : int64 (n_features, 256), optional
        `code_counts`, where they are known already.
    """

    n_bins: NDArray[np.int32]
    has_missing: NDArray[np.bool_]
    all_counts: IntArray | None

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    @abstractmethod
    def code_counts(self) -> IntArray:
        """How often each code stands in each feature, int64 (n_features, 256), in all rows of the training."""

    @abstractmethod
    def features(self, first: int, stop: int) -> NDArray[np.uint8]:
        """Return the codes of the features ``first .. stop - 1``, shape (stop - first, n_rows)."""

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.n_bins)

    @cached_property
    def bin_offsets(self) -> IntArray:
        """Bins of the features before each one, int64 (n_features + 1,): the cumulative `n_bins`."""
        return np.concatenate([[0], np.cumsum(self.n_bins, dtype=np.int64)])

    @cached_property
    def usable(self) -> NDArray[np.bool_]:
        """Whether a feature tells rows apart, by a cut or by missing against present: bool (n_features,)."""
        has_values = self.code_counts[:, MISSING_CODE + 1 :].any(axis=1)
        usable: NDArray[np.bool_] = (self.n_bins > 2) | (self.has_missing & has_values)
        return usable


@dataclass(frozen=True, eq=False)
class BinnedMatrix(Binned):
    """Codes of a matrix in memory, feature by feature.

    Attributes
    ----------
    codes : uint8 (n_features, n_rows), C-contiguous
    n_bins : int32 (n_features,)
        Bins of each feature, the one of missing values (code 0) included: codes are below it.
    has_missing : bool (n_features,)
        Whether the rows that the cuts were fitted on had missing values.
    all_counts : int64 (n_features, 256), optional
        How often each code stands in each feature, where these are a part of the rows of a training: in all of them.
    """

    codes: NDArray[np.uint8]
    n_bins: NDArray[np.int32]
    has_missing: NDArray[np.bool_]
    all_counts: IntArray | None = None

    @property
    def n_rows(self) -> int:
        return int(self.codes.shape[1])

    def features(self, first: int, stop: int) -> NDArray[np.uint8]:
        return self.codes[first:stop]

    @cached_property
    def code_counts(self) -> IntArray:
        if self.all_counts is not None:
            return self.all_counts
        counts = [np.bincount(codes, minlength=N_CODES) for codes in self.codes]
        return np.array(counts, np.int64).reshape(-1, N_CODES)


def bin_block(values: Floats, cut_values: Floats, cut_offsets: IntArray, out: NDArray[np.uint8]) -> None:
    """Encode some features: the reference of the primitive that backends may pass to `BinMapper.transform`.

    Parameters
    ----------
    values : float64 (n_features, n_rows), C-contiguous, perhaps read-only
    cut_values : float64 (cut_offsets[-1],)
    cut_offsets : int64 (n_features + 1,), starting at 0
    out : uint8 (n_features, n_rows), C-contiguous
        Receives 0 for NaN, else 1 + the number of the feature's cuts that are <= the value.
    """
    for f, column in enumerate(values):
        cuts = cut_values[cut_offsets[f] : cut_offsets[f + 1]]
        out[f] = np.searchsorted(cuts, column, side="right") + 1
        out[f, np.isnan(column)] = MISSING_CODE


def _bin_block_by_table(values: NDArray[Any], cut_values: Floats, cut_offsets: IntArray, out: NDArray[np.uint8]) -> None:
    """`bin_block` for integers of at most 16 bits: look up the codes of all 256 or 65536 bit patterns."""
    patterns = values.view(f"u{values.itemsize}")
    numbers = np.arange(256**values.itemsize, dtype=patterns.dtype).view(values.dtype).astype(np.float64)
    for f, column in enumerate(patterns):
        cuts = cut_values[cut_offsets[f] : cut_offsets[f + 1]]
        table = (np.searchsorted(cuts, numbers, side="right") + 1).astype(np.uint8)
        np.take(table, column, out=out[f], mode="clip")  # no index is out of range; this mode needs no buffer


def encoder(dtype: np.dtype[Any], n_rows: int, primitive: BinBlock | None) -> tuple[np.dtype[Any], BinBlock]:
    """The dtype in which to read columns of the given dtype, and the function that encodes them."""
    narrow = sorting_dtype(dtype)
    if narrow.kind in "iu" and narrow.itemsize <= 2 and n_rows >= 256**narrow.itemsize:
        return narrow, _bin_block_by_table
    return np.dtype(np.float64), primitive or bin_block

"""`BinMapper`: the cuts of every feature, and codes by them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.binning.codes import BinBlock, BinnedMatrix, encoder
from gpuboost.binning.columns import Matrix, block_bounds, checked_matrix, column_block, distinct, each_column, existing_rows
from gpuboost.binning.quantiles import MAX_VALUE_BINS, midpoint, quantile_starts
from gpuboost.binning.workers import fit_over_workers
from gpuboost.peers.base import ALONE, Peers


@dataclass(frozen=True, eq=False)
class BinMapper:
    """The cuts of every feature.

    Attributes
    ----------
    cut_values : float64 (total number of cuts,)
        The cuts of all features one after the other, ascending within a feature. Never NaN; each obeys
        ``a < cut <= b`` for the neighbouring training values a and b that it separates.
    cut_offsets : int64 (n_features + 1,)
        Feature f owns ``cut_values[cut_offsets[f]:cut_offsets[f + 1]]``.
    has_missing : bool (n_features,)
        Whether training rows (of non-zero weight) had a NaN.
    """

    cut_values: Floats
    cut_offsets: IntArray
    has_missing: NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.has_missing)

    @property
    def n_cuts(self) -> NDArray[np.int32]:
        """Number of cuts, int32 (n_features,)."""
        return np.diff(self.cut_offsets).astype(np.int32)

    @property
    def n_bins(self) -> NDArray[np.int32]:
        """Number of bins, int32 (n_features,): ``n_cuts + 1`` of values and the one of missing values."""
        return self.n_cuts + np.int32(2)

    def cuts(self, feature: int) -> Floats:
        """The ascending cuts of one feature (a view)."""
        return self.cut_values[self.cut_offsets[feature] : self.cut_offsets[feature + 1]]

    def of_features(self, first: int, stop: int) -> BinMapper:
        """Return the cuts of the features ``first .. stop - 1``."""
        offsets = self.cut_offsets[first : stop + 1]
        return BinMapper(self.cut_values[offsets[0] : offsets[-1]], offsets - offsets[0], self.has_missing[first:stop])

    @classmethod
    def of_columns(cls, columns: Sequence[tuple[Floats, bool]]) -> BinMapper:
        """Return the cuts of columns, given those of each one and whether it has NaN."""
        return cls(
            cut_values=np.concatenate([np.empty(0), *(cuts for cuts, _ in columns)]),
            cut_offsets=np.cumsum([0, *(cuts.size for cuts, _ in columns)], dtype=np.int64),
            has_missing=np.array([missing for _, missing in columns], dtype=np.bool_),
        )

    def select(self, features: IntArray) -> BinMapper:
        """Return the cuts of some features, in the given order."""
        cuts = [self.cuts(f) for f in features]
        offsets = np.cumsum([0, *map(len, cuts)], dtype=np.int64)
        return BinMapper(np.concatenate([np.empty(0), *cuts]), offsets, self.has_missing[features])

    def digest(self) -> str:
        """Return a SHA-256 of the cuts, as hexadecimal digits."""
        sha = hashlib.sha256()
        for array, dtype in ((self.cut_values, "<f8"), (self.cut_offsets, "<i8"), (self.has_missing, "|b1")):
            sha.update(np.ascontiguousarray(array, dtype).tobytes())
        return sha.hexdigest()

    @classmethod
    def fit(
        cls,
        X: Matrix,
        *,
        max_bins: int = MAX_VALUE_BINS,
        integer_weights: IntArray | None = None,
        n_threads: int = 1,
        peers: Peers = ALONE,
    ) -> BinMapper:
        """Choose the cuts.

        Parameters
        ----------
        X : (n_rows, n_features), bool, integer or real, any layout; or RowBlocks
            NaN means missing; infinities are ordinary extreme values. X is never written, and it is read by
            blocks of columns. Values are compared as float64: 64-bit integers and long doubles that round to
            the same float64 are one value.
        max_bins : int in 2 .. 255
            Value bins of a feature, at most.
        integer_weights : int64 (n_rows,), optional
            Weight of each row in some unit (1 each by default), at most 2**63 - 1 in total. A row of weight 0
            does not exist.
        n_threads : int
            Threads over blocks of columns; they do not change the result.
        peers : gpuboost.peers.base.Peers
            The workers whose rows the cuts are chosen on, this one's being X. All of them get the cuts that one would get
            of all rows. A worker may have no rows, and its X and weights may have dtypes of their own.

        Raises
        ------
        TypeError
            If X or integer_weights has an unusable dtype.
        ValueError
            If X is not 2-D, max_bins is out of range, or weights are negative, too large or not one a row; on all workers if
            they differ in max_bins or in the number of columns, or their weights are too large together.
        """
        X = checked_matrix(X)
        if not (isinstance(max_bins, Integral) and 2 <= max_bins <= MAX_VALUE_BINS):
            raise ValueError(f"max_bins must be an integer in 2 .. {MAX_VALUE_BINS}, got {max_bins!r}")
        rows, units = existing_rows(integer_weights, X.shape[0])
        if peers.size > 1:
            columns = fit_over_workers(X, rows, units, int(max_bins), n_threads, peers)
        else:
            if units is not None and (units == units[:1]).all():
                units = None  # the unit of the weights does not matter
            columns = each_column(X, rows, lambda column: _fit_column(column, units, max_bins), n_threads)
        return cls.of_columns(columns)

    def transform(self, X: Matrix, *, rows: NDArray[np.intp] | None = None, bin_block: BinBlock | None = None) -> BinnedMatrix:
        """Codes of X, or of the rows ``X[rows]``.

        Parameters
        ----------
        X : (n_rows, n_features), as for `fit`; its dtype need not be that of the training matrix
        rows : integer (n,), optional
            Indices of the rows wanted, in this order.
        bin_block : callable, optional
            A faster drop-in for the function `bin_block` of this module. Integers of at most 16 bits do not
            need it: their codes are looked up in a table for each feature, unless it would outgrow the rows.

        Raises
        ------
        TypeError
            If X has an unusable dtype.
        ValueError
            If X is not 2-D or has another number of columns than the training matrix.
        """
        X = checked_matrix(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} columns, but the bins were fitted on {self.n_features}")
        n_rows = X.shape[0] if rows is None else len(rows)
        dtype, encode = encoder(X.dtype, n_rows, bin_block)
        codes = np.empty((self.n_features, n_rows), dtype=np.uint8)
        for first, last in block_bounds(n_rows, self.n_features, dtype):
            offsets = self.cut_offsets[first : last + 1]
            cuts = self.cut_values[offsets[0] : offsets[-1]]
            out = codes[first:last]
            encode(column_block(X, rows, first, last, dtype), cuts, offsets - offsets[0], out)
        return BinnedMatrix(codes=codes, n_bins=self.n_bins, has_missing=self.has_missing)


def _fit_column(column: NDArray[Any], units: IntArray | None, max_bins: int) -> tuple[Floats, bool]:
    """Cuts of one feature, and whether it has NaN."""
    values, weights = distinct(column, units)
    values = values.astype(np.float64)
    starts = quantile_starts(weights, max_bins) if values.size > max_bins else np.arange(1, values.size)
    return midpoint(values[starts - 1], values[starts]), bool(np.isnan(column).any())

"""Binning: from feature values to uint8 codes, the only form in which learners and predictions see a feature.

`BinMapper.fit` chooses the cuts of every feature, and `BinMapper.transform` turns values into codes,

    code(x) = 0 if x is NaN, else 1 + number of cuts <= x          (compared in float64),

so a value that equals a cut lies on its right. Training and prediction walk the same codes and cannot differ.

A feature with at most ``max_bins`` distinct values is cut between any two neighbours, so that the search for
the best stump is exhaustive (Kégl, "The return of AdaBoost.MH: multi-class Hamming trees", 2014). A feature
with more is cut at weighted quantiles. They are exact: weights are integers, and so is all that decides. So
the cuts depend neither on the order of the rows nor on the unit of the weights, and a row of weight 2 is the
same as two rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray

MISSING_CODE = 0  # the code of NaN in every feature; value bins are 1 .. n_cuts + 1
MAX_VALUE_BINS = 255  # so that codes fit in uint8

BinBlock = Callable[[Floats, Floats, IntArray, NDArray[np.uint8]], None]

_BLOCK_BYTES = 4 << 20  # columns are read through contiguous copies of about this size
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, eq=False)
class BinnedMatrix:
    """Codes of a matrix, feature by feature.

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
    def n_features(self) -> int:
        """Number of features."""
        return len(self.codes)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.codes.shape[1])

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

    @cached_property
    def code_counts(self) -> IntArray:
        """How often each code stands in each feature, int64 (n_features, 256), in all rows of the training."""
        if self.all_counts is not None:
            return self.all_counts
        counts = [np.bincount(codes, minlength=MAX_VALUE_BINS + 1) for codes in self.codes]
        return np.array(counts, np.int64).reshape(-1, MAX_VALUE_BINS + 1)


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

    @classmethod
    def fit(
        cls, X: NDArray[Any], *, max_bins: int = MAX_VALUE_BINS, integer_weights: IntArray | None = None, n_threads: int = 1
    ) -> BinMapper:
        """Choose the cuts.

        Parameters
        ----------
        X : (n_rows, n_features), bool, integer or real, any layout
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

        Raises
        ------
        TypeError
            If X or integer_weights has an unusable dtype.
        ValueError
            If X is not 2-D, max_bins is out of range, or weights are negative, too large or not one a row.
        """
        X = _checked_matrix(X)
        if not (isinstance(max_bins, Integral) and 2 <= max_bins <= MAX_VALUE_BINS):
            raise ValueError(f"max_bins must be an integer in 2 .. {MAX_VALUE_BINS}, got {max_bins!r}")
        rows, units = _existing_rows(integer_weights, X.shape[0])
        dtype = _sorting_dtype(X.dtype)

        def fit_block(first: int, last: int) -> list[tuple[Floats, bool]]:
            return [_fit_column(c, units, max_bins) for c in _column_block(X, rows, first, last, dtype)]

        bounds = list(_block_bounds(X.shape[0] if rows is None else rows.size, X.shape[1], dtype))
        if n_threads > 1:
            with ThreadPoolExecutor(n_threads) as pool:
                blocks = list(pool.map(lambda bound: fit_block(*bound), bounds))
        else:
            blocks = [fit_block(*bound) for bound in bounds]
        columns = [column for block in blocks for column in block]
        return cls(
            cut_values=np.concatenate([np.empty(0), *(cuts for cuts, _ in columns)]),
            cut_offsets=np.cumsum([0, *(cuts.size for cuts, _ in columns)], dtype=np.int64),
            has_missing=np.array([missing for _, missing in columns], dtype=np.bool_),
        )

    def transform(
        self, X: NDArray[Any], *, rows: NDArray[np.intp] | None = None, bin_block: BinBlock | None = None
    ) -> BinnedMatrix:
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
        X = _checked_matrix(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} columns, but the bins were fitted on {self.n_features}")
        n_rows = X.shape[0] if rows is None else len(rows)
        dtype, encode = _encoder(X.dtype, n_rows, bin_block)
        codes = np.empty((self.n_features, n_rows), dtype=np.uint8)
        for first, last in _block_bounds(n_rows, self.n_features, dtype):
            offsets = self.cut_offsets[first : last + 1]
            cuts = self.cut_values[offsets[0] : offsets[-1]]
            out = codes[first:last]
            encode(_column_block(X, rows, first, last, dtype), cuts, offsets - offsets[0], out)
        return BinnedMatrix(codes=codes, n_bins=self.n_bins, has_missing=self.has_missing)


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


def _encoder(dtype: np.dtype[Any], n_rows: int, primitive: BinBlock | None) -> tuple[np.dtype[Any], BinBlock]:
    """The dtype in which to read columns of the given dtype, and the function that encodes them."""
    narrow = _sorting_dtype(dtype)
    if narrow.kind in "iu" and narrow.itemsize <= 2 and n_rows >= 256**narrow.itemsize:
        return narrow, _bin_block_by_table
    return np.dtype(np.float64), primitive or bin_block


def midpoint(a: Floats, b: Floats) -> Floats:
    """The cuts between float64 values a < b: halfway, never NaN, and always with ``a < cut <= b``.

    Infinities count as the largest finite numbers, and the sum cannot overflow. The cut is b where rounding
    would give a (neighbouring floats, denormals, the largest finite number and infinity), and never -0.0.
    """
    largest = np.finfo(np.float64).max
    middle = np.clip(a, -largest, largest) / 2 + np.clip(b, -largest, largest) / 2
    return np.where(middle > a, middle, b) + 0.0  # middle <= b: rounding is monotone, also of subnormal halves


def _fit_column(column: NDArray[Any], units: IntArray | None, max_bins: int) -> tuple[Floats, bool]:
    """Cuts of one feature, and whether it has NaN."""
    values, weights = _distinct(column, units)
    starts = _quantile_starts(weights, max_bins) if values.size > max_bins else np.arange(1, values.size)
    return midpoint(values[starts - 1], values[starts]), bool(np.isnan(column).any())


def _distinct(column: NDArray[Any], units: IntArray | None) -> tuple[Floats, IntArray]:
    """The ascending distinct numbers of a column (no NaN) and their weights: counts if units is None."""
    kind: Literal["stable"] | None = "stable" if column.itemsize <= 2 else None  # a radix sort
    order = None if units is None else np.argsort(column, kind=kind)
    ordered = np.sort(column, kind=kind) if order is None else column[order]
    if column.dtype.kind == "f":
        ordered = ordered[: np.searchsorted(ordered, np.nan)]  # NaN are last
    is_first = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    firsts = np.flatnonzero(is_first)
    if units is None or order is None:
        weights = np.diff(firsts, append=ordered.size)
    else:
        weights = np.add.reduceat(units[order[: ordered.size]], firsts)
    return ordered[firsts].astype(np.float64), weights


def _quantile_starts(weights: IntArray, max_bins: int) -> NDArray[np.intp]:
    """Where bins start, 0 left out, among more than max_bins distinct values of the given positive weights.

    A heavy value gets a bin of its own. The light ones are divided at equal steps of their cumulative weight,
    whatever heavy values lie between them, into the largest number r of shares that keeps within max_bins. A
    light value weighs less than a share, so no share is empty and no bin of light values weighs two shares.
    """
    is_heavy, n_left = _heavy(weights, max_bins)
    is_start = is_heavy.copy()
    is_start[1:] |= is_heavy[:-1]
    is_start[0] = True
    n_spare = max_bins - int(np.count_nonzero(is_start))
    if n_spare < 0:
        _join_lightest(is_start, is_heavy, weights, -n_spare)
    else:
        light = np.flatnonzero(~is_heavy)
        is_start[light[_share_starts(weights[light], np.diff(light) > 1, n_left, n_spare)]] = True
    return np.flatnonzero(is_start)[1:]


def _heavy(weights: IntArray, max_bins: int) -> tuple[NDArray[np.bool_], int]:
    """Which values are heavy, and how many bins that leaves to the light ones.

    Heavy is what weighs at least an equal part of what heavier values leave, in weight and in bins. Of more
    than max_bins values, at least two stay light, and at least one bin is left.
    """
    is_heavy = np.zeros(weights.size, dtype=np.bool_)
    while True:
        n_left = max_bins - int(np.count_nonzero(is_heavy))
        part = -(-int(weights[~is_heavy].sum()) // n_left)  # weight >= ceil(left / n) <=> weight * n >= left
        more = weights >= part
        if not (more & ~is_heavy).any():
            return is_heavy, n_left
        is_heavy |= more


def _share_starts(weights: IntArray, is_gap: NDArray[np.bool_], max_shares: int, n_spare: int) -> NDArray[np.intp]:
    """Which light value starts each share but the first, for the most shares that add at most n_spare bins.

    ``is_gap[i]`` says that heavy values lie between the light values i and i + 1. A new bin starts there
    anyhow, so r shares add r - 1 bins, less the gaps in which a share starts too.
    """
    before = np.cumsum(weights) - weights
    total = int(weights.sum())
    gaps = np.flatnonzero(is_gap)
    r = np.arange(max(1, max_shares - gaps.size), max_shares + 1)
    ends: NDArray[Any] = before[[gaps, gaps + 1]]
    if total > _INT64_MAX // MAX_VALUE_BINS:
        ends = ends.astype(object)  # Python integers, as int64 could overflow in the next line
    left, right = ends[..., np.newaxis] * r // total  # the shares of both ends of every gap, for every r
    n_added = r - 1 - np.count_nonzero(left != right, axis=0)
    n_shares = int(r[n_added <= n_spare][-1])
    return np.searchsorted(before, [-(-total * j // n_shares) for j in range(1, n_shares)])


def _join_lightest(is_start: NDArray[np.bool_], is_heavy: NDArray[np.bool_], weights: IntArray, n: int) -> None:
    """Join the n lightest runs of light values to the heavy value before them (the first run: after it)."""
    starts = np.flatnonzero(is_start)
    runs = np.flatnonzero(~is_heavy[starts])
    lightest = runs[np.argsort(np.add.reduceat(weights, starts)[runs], kind="stable")[:n]]
    is_start[starts[np.maximum(lightest, 1)]] = False


def _checked_matrix(X: NDArray[Any]) -> NDArray[Any]:
    X = np.asarray(X)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must have a boolean, integer or real floating dtype, got {X.dtype}")
    if X.ndim != 2:
        raise ValueError(f"X must be 2-D (rows, features), got shape {X.shape}")
    return X


def _existing_rows(integer_weights: IntArray | None, n_rows: int) -> tuple[NDArray[np.intp] | None, IntArray | None]:
    """Indices of the rows of non-zero weight (None if all) and their weights (None if all equal)."""
    if integer_weights is None:
        return None, None
    units = np.asarray(integer_weights)
    if not np.can_cast(units.dtype, np.int64):
        raise TypeError(f"weight_units must have an integer dtype that fits in int64, got {units.dtype}")
    if units.shape != (n_rows,):
        raise ValueError(f"weight_units must have shape ({n_rows},), the rows of X, got {units.shape}")
    if (units < 0).any():
        raise ValueError(f"weight_units must not be negative, got {units.min()}")
    units = units.astype(np.int64)
    total = (int((units >> 32).sum()) << 32) + int((units & 0xFFFFFFFF).sum())
    if total > _INT64_MAX:
        raise ValueError(f"weight_units must sum to at most 2**63 - 1, got {total}")
    rows = np.flatnonzero(units)
    kept = units[rows]
    return None if rows.size == n_rows else rows, None if (kept == kept[:1]).all() else kept


def _sorting_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest native dtype that sorts fast and keeps apart just the values that float64 keeps apart."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind in "iu" and dtype.itemsize <= 4:
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def _block_bounds(n_rows: int, n_features: int, dtype: np.dtype[Any]) -> Iterator[tuple[int, int]]:
    """Ranges of features whose copies in dtype take about _BLOCK_BYTES."""
    width = max(1, _BLOCK_BYTES // max(1, n_rows * dtype.itemsize))
    for first in range(0, n_features, width):
        yield first, min(first + width, n_features)


def _column_block(X: NDArray[Any], rows: NDArray[np.intp] | None, first: int, last: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The columns first .. last - 1 as the rows of a C-contiguous array, which may be a view of X."""
    block = X[:, first:last] if rows is None else X[rows, first:last]
    with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow to infinity, NaN stay NaN
        return np.ascontiguousarray(block.T, dtype=dtype)

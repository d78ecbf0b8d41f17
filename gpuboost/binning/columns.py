"""Reading the columns of a matrix: in blocks, in a dtype that sorts fast, and as distinct values with weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.binning.row_blocks import RowBlocks

Result = TypeVar("Result")
Matrix = NDArray[Any] | RowBlocks
"""What can be binned."""

_BLOCK_BYTES = 4 << 20  # columns are read through contiguous copies of about this size
_INT64_MAX = 2**63 - 1


def checked_matrix(X: Matrix) -> Matrix:
    """X as an array or blocks of rows, or an error that says why it cannot be binned."""
    X = X if isinstance(X, RowBlocks) else np.asarray(X)
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X must have a boolean, integer or real floating dtype, got {X.dtype}")
    if X.ndim != 2:
        raise ValueError(f"X must be 2-D (rows, features), got shape {X.shape}")
    return X


def existing_rows(integer_weights: IntArray | None, n_rows: int) -> tuple[NDArray[np.intp] | None, IntArray | None]:
    """Indices of the rows of non-zero weight (None if all) and their weights (None if 1 each)."""
    if integer_weights is None:
        return None, None
    units = np.asarray(integer_weights)
    if not np.can_cast(units.dtype, np.int64):
        raise TypeError(f"integer_weights must have an integer dtype that fits in int64, got {units.dtype}")
    if units.shape != (n_rows,):
        raise ValueError(f"integer_weights must have shape ({n_rows},), the rows of X, got {units.shape}")
    if (units < 0).any():
        raise ValueError(f"integer_weights must not be negative, got {units.min()}")
    units = units.astype(np.int64)
    check_total((int((units >> 32).sum()) << 32) + int((units & 0xFFFFFFFF).sum()))
    rows = np.flatnonzero(units)
    return (None, units) if rows.size == n_rows else (rows, units[rows])


def check_total(weight: int) -> None:
    """Refuse weights that cannot be added up in int64."""
    if weight > _INT64_MAX:
        raise ValueError(f"integer_weights must sum to at most 2**63 - 1, got {weight}")


def sorting_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The narrowest native dtype that sorts fast and keeps apart just the values that float64 keeps apart."""
    if dtype.kind == "b":
        return np.dtype(np.uint8)
    if dtype.kind in "iu" and dtype.itemsize <= 4:
        return dtype.newbyteorder("=")
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def block_bounds(n_rows: int, n_features: int, dtype: np.dtype[Any]) -> Iterator[tuple[int, int]]:
    """Ranges of features whose copies in dtype take about _BLOCK_BYTES."""
    width = max(1, _BLOCK_BYTES // max(1, n_rows * dtype.itemsize))
    for first in range(0, n_features, width):
        yield first, min(first + width, n_features)


def column_block(X: Matrix, rows: NDArray[np.intp] | None, first: int, last: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The columns first .. last - 1 as the rows of a C-contiguous array, which may be a view of X."""
    if isinstance(X, RowBlocks):
        return X.columns(rows, first, last, dtype)
    block = X[:, first:last] if rows is None else X[rows, first:last]
    with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow to infinity, NaN stay NaN
        return np.ascontiguousarray(block.T, dtype=dtype)


def each_column(
    X: Matrix, rows: NDArray[np.intp] | None, function: Callable[[NDArray[Any]], Result], n_threads: int
) -> list[Result]:
    """What ``function`` makes of each column of X, or of ``X[rows]``, read by blocks; threads share the blocks."""
    dtype = sorting_dtype(X.dtype)

    def of_block(bounds: tuple[int, int]) -> list[Result]:
        return [function(column) for column in column_block(X, rows, *bounds, dtype)]

    bounds = list(block_bounds(X.shape[0] if rows is None else rows.size, X.shape[1], dtype))
    if n_threads > 1:
        with ThreadPoolExecutor(n_threads) as pool:
            blocks = list(pool.map(of_block, bounds))
    else:
        blocks = [of_block(one) for one in bounds]
    return [result for block in blocks for result in block]


def distinct(column: NDArray[Any], units: IntArray | None) -> tuple[NDArray[Any], IntArray]:
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
    return ordered[firsts], weights

"""Rows of a pool that is an array, a data frame or a sparse matrix: how to take some, and which are copies of each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuboost.active.utility import Rows
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.containers import frame_columns, frame_names, package, to_numpy


def checked_pool(X: Any, name: str = "X") -> Any:
    """Return the pool as something that has a shape and whose rows can be taken."""
    pool = to_host(X, name)
    if frame_names(pool) is None and not hasattr(pool, "toarray"):
        pool = np.asanyarray(pool)  # masks remain
    shape = tuple(getattr(pool, "shape", ()))
    if len(shape) != 2 or not all(shape):
        raise ValueError(f"{name} must have at least one row and one column, shape (n_rows, n_features), got shape {shape}")
    return pool.tocsr() if hasattr(pool, "tocsr") else pool


def take(X: Any, rows: Rows) -> Any:
    """Return rows of a pool in a container of the same kind."""
    source = package(X)
    if source == "pandas":
        return X.iloc[rows]
    return X.take(rows) if source == "pyarrow" else X[rows]


def distinct_first(X: Any, rows: Rows, n: int) -> Rows:
    """Return the first n of ``rows``, but copies of a row only if there are too few others."""
    seen: set[Any] = set()
    chosen: list[int] = []
    copies: list[int] = []
    for first in range(0, len(rows), 2 * n):
        block = rows[first : first + 2 * n]
        for row, key in zip(block.tolist(), row_keys(take(X, block)), strict=True):
            (copies if key in seen else chosen).append(row)
            seen.add(key)
        if len(chosen) >= n:
            break
    return np.array((chosen + copies)[:n], np.intp)


def row_keys(X: Any) -> Sequence[Any]:
    """Return something hashable for each row: the same for rows of the same values; missing equals missing, 0 equals -0."""
    X = X.toarray() if hasattr(X, "toarray") else X
    columns = [to_numpy(column) for column in frame_columns(X)] if frame_names(X) is not None else list(np.asarray(X).T)
    if any(column.dtype.kind not in "biuf" for column in columns):
        return [repr(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    with np.errstate(over="ignore", invalid="ignore"):  # of long doubles
        matrix = np.stack(columns, axis=1).astype(np.float64) + 0.0  # turns -0.0 into 0.0
    matrix[np.isnan(matrix)] = np.nan  # NaN has many bit patterns
    return [row.tobytes() for row in matrix]

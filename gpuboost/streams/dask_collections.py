"""Dask's frames and arrays as a source: one partition at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuboost.extras import load
from gpuboost.inputs.arrays import origin
from gpuboost.streams.batches import from_row
from gpuboost.streams.contract import Batch

PACKAGES = ("dask", "dask_expr")


def is_dask(x: Any) -> bool:
    """Whether ``x`` is a collection of Dask."""
    return origin(x, PACKAGES) is not None


class DaskSource:
    """The rows of a Dask frame or array, partition by partition, computed by the scheduler that Dask is set to use.

    Parameters
    ----------
    X : dask.dataframe.DataFrame or dask.array.Array
        An array whose columns lie in several chunks is rechunked.
    y : dask series or array, str
        Labels in the same partitions as X, or the name of the column of X that holds them.
    weight : dask series or array, str, optional
        As y.
    """

    repeatable = True

    def __init__(self, X: Any, y: Any, weight: Any = None) -> None:
        if not is_dask(X):
            raise TypeError(f"X must be a frame or an array of Dask, got a {type(X).__name__}")
        self._compute = load("dask", "DaskSource").compute
        if not _is_array(X):
            parts = [X, *(X[part] if isinstance(part, str) else part for part in (y, weight))]
            taken = {part for part in (y, weight) if isinstance(part, str)}
            self.feature_names: list[str] | None = [name for name in X.columns if name not in taken]
            parts[0] = X[self.feature_names]
            self.n_features = len(self.feature_names)
            lengths: list[Any] = [None] * X.npartitions
        else:
            parts = [X.rechunk({1: -1}), *(part if part is None else part.rechunk({0: X.chunks[0]}) for part in (y, weight))]
            self.feature_names = None
            self.n_features = int(X.shape[1])
            lengths = [int(n) if n == n else None for n in X.chunks[0]]  # NaN where Dask does not know
        self._parts = parts
        self._lengths: list[int | None] = lengths
        self.n_rows = None if None in lengths else sum(lengths)
        self._check_partitions()

    def _check_partitions(self) -> None:
        numbers = [_n_partitions(part) for part in self._parts if part is not None]
        if len(set(numbers)) > 1:
            raise ValueError(f"X, y and weight must have the same partitions, got {numbers} of them")

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on; partitions before it are computed only if their lengths are not known."""
        row = skipped = 0
        for length in self._lengths:
            if length is None or row + length > first_row:
                break
            row, skipped = row + length, skipped + 1
        computed = (Batch(*self._compute(*self._partition(i))) for i in range(skipped, len(self._lengths)))
        return from_row(computed, first_row - row)

    def _partition(self, i: int) -> list[Any]:
        return [part if part is None else part.blocks[i] if _is_array(part) else part.partitions[i] for part in self._parts]


def _is_array(part: Any) -> bool:
    return hasattr(part, "chunks")


def _n_partitions(part: Any) -> int:
    return int(part.numblocks[0] if _is_array(part) else part.npartitions)

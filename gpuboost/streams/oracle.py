"""A function that draws examples, as a source without end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gpuboost.errors import StreamError
from gpuboost.inputs.parameters import check_integer
from gpuboost.streams.batches import as_batch, from_row
from gpuboost.streams.checks import count
from gpuboost.streams.contract import Batch


class OracleSource:
    """The examples that a function draws, as long as somebody asks.

    Parameters
    ----------
    function : callable
        ``function(n)`` returns (X, y) or (X, y, weight) of about n rows. It is called on another thread.
    n_features : int, optional
    batch_rows : int, default 8192
        The n that it is called with, always.
    """

    feature_names = None
    n_rows = None
    repeatable = False

    def __init__(self, function: Callable[[int], Any], n_features: int | None = None, batch_rows: int = 8192) -> None:
        if not callable(function):
            raise TypeError(f"function must be a callable, got a {type(function).__name__}")
        self._function = function
        self._batch_rows = check_integer("batch_rows", batch_rows, 1)
        self.n_features = n_features

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on; those before are drawn and dropped, so that one with a seed can go on."""
        return from_row(self._drawn(), first_row)

    def _drawn(self) -> Iterator[Batch]:
        while True:
            batch = as_batch(self._function(self._batch_rows))
            if count(batch.X) == 0:
                raise StreamError("the oracle has drawn no rows; it must never end")
            yield batch

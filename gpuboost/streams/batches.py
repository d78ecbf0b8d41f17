"""Iterables, generators and functions that give batches, as a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gpuboost.errors import StreamError
from gpuboost.inputs.containers import row_range
from gpuboost.streams.checks import count
from gpuboost.streams.contract import Batch


class BatchSource:
    """Batches that somebody else makes.

    Parameters
    ----------
    batches : iterable, generator, or callable
        Of tuples (X, y) or (X, y, weight), or of `Batch`. A callable without parameters returns such an iterable, the same
        rows whenever it is called. An iterable gives them again, a generator or another iterator does not.
    n_rows : int, optional
        How many there are.

    Examples
    --------
    >>> from gpuboost.streams import BatchSource
    >>> BatchSource([([[1.0], [2.0]], [0, 1])]).repeatable
    True
    """

    n_features = None
    feature_names = None

    def __init__(self, batches: Iterable[Any] | Callable[[], Iterable[Any]], n_rows: int | None = None) -> None:
        if not callable(batches) and not hasattr(batches, "__iter__"):
            raise TypeError(f"batches must be an iterable or a callable, got a {type(batches).__name__}")
        self._batches = batches
        self.n_rows = n_rows
        self.repeatable = callable(batches) or not hasattr(batches, "__next__")

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on; those before are read, and dropped."""
        given = self._batches() if callable(self._batches) else self._batches
        return from_row((as_batch(one) for one in given), first_row)


def as_batch(given: Any) -> Batch:
    """Return a tuple as a `Batch`."""
    if isinstance(given, Batch):
        return given
    if not isinstance(given, (tuple, list)) or len(given) not in (2, 3):
        received = f"a {type(given).__name__}" + (f" of length {len(given)}" if hasattr(given, "__len__") else "")
        raise TypeError(f"a batch must be (X, y) or (X, y, weight), got {received}")
    return Batch(*given)


def from_row(batches: Iterable[Batch], first_row: int) -> Iterator[Batch]:
    """Give batches from a row on.

    Raises
    ------
    StreamError
        If they end before it.
    """
    row = 0
    for batch in batches:
        n_rows = count(batch.X) or 0
        if row >= first_row:
            yield batch
        elif row + n_rows > first_row:
            skipped = first_row - row
            weight = None if batch.weight is None else row_range(batch.weight, skipped)
            yield Batch(row_range(batch.X, skipped), row_range(batch.y, skipped), weight)
        row += n_rows
    if row < first_row:
        raise StreamError(f"it has ended after {row} rows, before row {first_row}")

"""Passes over a source, cut anew: what a step holds depends on the rows only, not on how the source cuts them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.errors import StreamError
from gpuboost.inputs.label_values import joined_labels
from gpuboost.streams.checks import BatchChecks
from gpuboost.streams.contract import Batch, Source, Step


@dataclass(eq=False)
class Passes:
    """The steps of one pass, or of many.

    Attributes
    ----------
    source : Source
    step_rows : int
    recycle : bool
    left : int or None
        How many rows may still be given; None for any number.
    checks : BatchChecks
    ended : str or None
        Why there are no more steps.
    """

    source: Source
    step_rows: int
    recycle: bool
    left: int | None
    checks: BatchChecks
    ended: str | None = None

    def steps(self, pass_number: int, first_row: int) -> Generator[Step, None, None]:
        """Give the steps from a place on.

        Raises
        ------
        StreamError
            If the source fails, gives what it may not, or another number of rows than it said or the first pass had.
        """
        expected = self.source.n_rows
        while True:
            n_rows = yield from self._one_pass(pass_number, first_row)
            if self.left == 0:
                self.ended = "max_examples rows have been read"
                return
            if n_rows == 0:
                raise StreamError("the source has no rows")
            if expected is not None and n_rows != expected:
                raise StreamError(f"pass {pass_number} has ended after {n_rows} rows, expected {expected}")
            if not self.recycle:
                self.ended = f"the source has ended after {n_rows} rows"
                return
            expected, pass_number, first_row = n_rows, pass_number + 1, 0

    def _one_pass(self, pass_number: int, row: int) -> Generator[Step, None, int]:
        """Give the steps of a pass from a row on; return the number of the row at which it has ended."""
        pieces: list[Batch] = []  # of the step that begins at ``row``
        held, size = 0, self._size(row)
        for batch in self._batches(pass_number, row) if size else ():
            start, n_rows = 0, len(batch.X)
            while start < n_rows:
                end = min(n_rows, start + size - held)
                pieces.append(_part(batch, start, end))
                held, start = held + end - start, end
                if held < size:
                    continue
                yield self._joined(pieces, pass_number, row)
                row, held, pieces = row + size, 0, []
                size = self._size(row)
                if size == 0:
                    return row
            if pieces:  # the source may use its arrays again
                pieces[-1] = _copied(pieces[-1])
        if pieces:
            yield self._joined(pieces, pass_number, row)
        return row + held

    def _size(self, row: int) -> int:
        """Return the rows of the step that begins at ``row``: steps end at multiples of their size."""
        size = self.step_rows - row % self.step_rows
        return size if self.left is None else min(size, self.left)

    def _joined(self, pieces: list[Batch], pass_number: int, row: int) -> Step:
        whole = _copied(*pieces)
        if self.left is not None:
            self.left -= len(whole.X)
        return Step(whole.X, whole.y, whole.weight, pass_number, row)

    def _batches(self, pass_number: int, row: int) -> Iterator[Batch]:
        """Give the batches of a pass as arrays. Whatever goes wrong becomes a `StreamError` that says where."""
        number = 0
        where = f"pass {pass_number}, row {row}"
        try:
            batches = iter(self.source.batches(row))
            while True:
                where = f"pass {pass_number}, row {row}"
                batch = next(batches, None)
                if batch is None:
                    return
                where = f"pass {pass_number}, batch {number} that begins with row {row}"
                checked = self.checks.arrays(batch, row)
                if checked is not None:
                    yield checked
                    row += len(checked.X)
                number += 1
        except Exception as error:
            kind = "" if isinstance(error, StreamError) else f"{type(error).__name__}: "
            raise StreamError(f"the source has failed in {where}: {kind}{error}") from error


def _part(batch: Batch, start: int, end: int) -> Batch:
    weight = None if batch.weight is None else batch.weight[start:end]
    return Batch(batch.X[start:end], batch.y[start:end], weight)


def _copied(*pieces: Batch) -> Batch:
    """Return pieces as one, which shares no memory with them."""

    def joined(arrays: list[Any]) -> Any:
        return np.concatenate(arrays)

    weight = None if pieces[0].weight is None else joined([piece.weight for piece in pieces])
    return Batch(joined([piece.X for piece in pieces]), joined_labels([piece.y for piece in pieces]), weight)

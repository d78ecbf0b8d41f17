"""Labels and weights of rows that come in steps: on disk, with what is known of all of them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cached_property
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.binning.stored import bytes_of
from gpuboost.fixedpoint import WeightSplit, are_multiples, exponent, may_repeat
from gpuboost.inputs.label_encoder import LabelEncoder, distinct_labels
from gpuboost.inputs.label_values import joined_labels
from gpuboost.inputs.samples import row_digests
from gpuboost.inputs.weights import scaled_down
from gpuboost.streams import Step

ENOUGH_DISTINCT = 2000
"""Distinct rows are counted up to this number, see `gpuboost.inputs.samples.Sample.n_distinct`."""

DIGEST_BYTES = 1 << 20
"""So many bytes of float64 are compared with the rows before at a time."""

ROWS_AT_ONCE = 1 << 20


class RowFile:
    """A number of each row, in a file that nobody else sees.

    Parameters
    ----------
    folder : str or path
        Where the file is, see `gpuboost.code_files.spool.Spool`.
    dtype : dtype
    """

    def __init__(self, folder: str | os.PathLike[str], dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self.n_rows = 0
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by __exit__)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Add the numbers of the next rows."""
        self.file.write(bytes_of(np.ascontiguousarray(values, self.dtype)).data)
        self.n_rows += len(values)

    def read(self, rows: slice) -> NDArray[Any]:
        """Return the numbers of the rows ``rows.start .. rows.stop - 1``."""
        values = np.empty(rows.stop - rows.start, self.dtype)
        self.file.seek(rows.start * self.dtype.itemsize)
        if self.file.readinto(bytes_of(values).data) != values.nbytes:
            raise OSError("a file without a name has become shorter while it was in use")
        return values

    def slices(self) -> Iterator[slice]:
        """Give all rows, some at a time."""
        for first in range(0, self.n_rows, ROWS_AT_ONCE):
            yield slice(first, min(first + ROWS_AT_ONCE, self.n_rows))


class RowWeights:
    """The weights of the rows of a set, all of them positive, and what they are as integers.

    Parameters
    ----------
    file : RowFile
        Of float64, empty.
    """

    def __init__(self, file: RowFile) -> None:
        self.file = file
        self.smallest, self.largest = np.inf, 0.0

    def append(self, weights: Floats) -> None:
        """Add the weights of the next rows."""
        self.file.append(weights)
        self.smallest = min(self.smallest, float(weights.min(initial=np.inf)))
        self.largest = max(self.largest, float(weights.max(initial=0.0)))

    def read(self, rows: slice) -> Floats:
        """Return weights of some rows as `gpuboost.inputs.weights.row_weights` does, once all rows are there."""
        return scaled_down(self.file.read(rows), exponent(self.largest))

    def pieces(self) -> Iterator[Floats]:
        """Give the weights of all rows, some at a time."""
        for rows in self.file.slices():
            yield self.read(rows)

    @cached_property
    def _split(self) -> WeightSplit:
        smallest, largest = scaled_down(np.array([self.smallest, self.largest]), exponent(self.largest)).tolist()
        are_repeats = may_repeat(smallest, largest) and all(
            are_multiples(self.read(rows), smallest) for rows in self.file.slices()
        )
        return WeightSplit(smallest, largest, are_repeats)

    def units(self, rows: slice) -> IntArray | None:
        """Return integer weights of some rows, see `gpuboost.fixedpoint.integer_weights`; None if all rows weigh the same."""
        if self.smallest == self.largest:
            return None
        return self._split.units(self.read(rows), self.file.n_rows)


class RowLabels:
    """The labels, and the weights if there are any, of the rows of a source; and its distinct rows, as far as they count.

    Parameters
    ----------
    folder : str or path
        Where its files are.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = folder
        self._labels: list[NDArray[Any]] = []  # of each step, sorted
        self._n_labels = 0
        self._seen: set[bytes] = set()
        self.weights: RowWeights | None = None

    def __enter__(self) -> Self:
        self._files = ExitStack()
        self._numbers = self._files.enter_context(RowFile(self._folder, np.int32))  # of labels, those of all steps in a row
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._files.close()

    def append(self, step: Step) -> NDArray[Any]:
        """Take a step's labels; return its rows that exist, the others have no weight."""
        X, y = step.X, step.y
        if step.weight is not None:
            exists = step.weight > 0
            X, y = X[exists], y[exists]
            if self.weights is None:
                self.weights = RowWeights(self._files.enter_context(RowFile(self._folder, np.float64)))
            self.weights.append(step.weight[exists])
        if len(y):
            labels, number = distinct_labels(y, "y")
            self._numbers.append(number + self._n_labels)
            self._labels.append(labels)
            self._n_labels += len(labels)
        at_once = max(1, DIGEST_BYTES // (8 * X.shape[1]))
        for first in range(0, len(X), at_once):
            if len(self._seen) < ENOUGH_DISTINCT:
                self._seen |= row_digests(X[first : first + at_once])
        return X

    @property
    def n_rows(self) -> int:
        """Rows that exist."""
        return self._numbers.n_rows

    @property
    def n_distinct(self) -> int:
        """Distinct rows, or `ENOUGH_DISTINCT`."""
        return min(len(self._seen), ENOUGH_DISTINCT)

    def encoder(self) -> LabelEncoder:
        """Return the classes.

        Raises
        ------
        ValueError
            If there are no rows, or labels are numbers of a regression.
        """
        if not self.n_rows:
            raise ValueError("weight is zero in every row: there is nothing to learn from")
        return LabelEncoder.of_distinct(distinct_labels(joined_labels(self._labels), "y")[0], self.n_rows)

    def target(self, encoder: LabelEncoder) -> Iterator[NDArray[np.int32]]:
        """Give the classes of the rows, some at a time."""
        class_of_number = encoder.encode(joined_labels(self._labels)).astype(np.int32)
        for rows in self._numbers.slices():
            yield class_of_number[self._numbers.read(rows)]

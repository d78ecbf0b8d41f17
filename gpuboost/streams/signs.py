"""A source whose labels are the signs of a column of a coding matrix."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.label_encoder import LabelEncoder, label_array, shown
from gpuboost.streams.contract import Batch, Source


class SignSource:
    """The rows of a source, labelled by signs; those of classes with a 0 have no weight.

    Parameters
    ----------
    source : Source
    encoder : LabelEncoder
        Of its labels.
    column : ndarray of int8, shape (n_classes,)
        The sign of each class.
    """

    def __init__(self, source: Source, encoder: LabelEncoder, column: NDArray[np.int8]) -> None:
        self._source, self._encoder, self._column = source, encoder, column
        self.n_features, self.feature_names = source.n_features, source.feature_names
        self.n_rows, self.repeatable = source.n_rows, source.repeatable

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows as the source cuts them. A label that is no class is an error, unless it has no weight."""
        for batch in self._source.batches(first_row):
            n_rows = len(batch.y)
            weight = np.ones(n_rows) if batch.weight is None else np.asarray(batch.weight, np.float64)
            (rows,) = weight.nonzero()
            found = self._encoder.encode(label_array(batch.y, n_rows, rows=rows), unknown_ok=True)
            if (found < 0).any():
                raise ValueError(f"a label is none of the classes {shown(self._encoder.classes)}; name all of them by classes")
            signs = np.ones(n_rows, np.int64)
            signs[rows] = self._column[found]
            yield Batch(batch.X, np.where(signs, signs, 1), np.where(signs, weight, 0.0))

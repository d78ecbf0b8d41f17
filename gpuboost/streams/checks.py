"""From the batches of a source to arrays, each like the one before."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.containers import frame_names, only_column, to_numpy
from gpuboost.inputs.features import to_matrix
from gpuboost.inputs.label_encoder import label_array
from gpuboost.streams.contract import Batch

LARGEST_WEIGHT = 2.0**900
"""Sums of a stream's weights are of float64, however many rows there are."""

KINDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "O": "text", "U": "text", "S": "bytes"}
"""Labels of these dtypes may stand in one stream; dates and spans of time are kinds of their own."""


class BatchChecks:
    """What the batches of a stream must have in common, as the first one shows it.

    Numbers may be integers in one batch and floating in the next: so does a column that has its first missing value there.

    Attributes
    ----------
    n_features : int or None
    feature_names : list or None
    """

    def __init__(self, n_features: int | None, feature_names: list[Any] | None) -> None:
        self.n_features = n_features
        self.feature_names = feature_names
        self._kind: str | None = None
        self._weighted: bool | None = None

    def arrays(self, batch: Batch, row: int) -> Batch | None:
        """Return a batch as arrays; None if it has no rows.

        Parameters
        ----------
        batch : Batch
        row : int
            The place of its first row in the pass, for messages.

        Raises
        ------
        ValueError or TypeError
            If it is none, or differs from those before.
        """
        if not isinstance(batch, Batch):
            raise TypeError(f"a source must give objects of the class Batch, got a {type(batch).__name__}")
        if count(batch.X) == 0 and count(batch.y) == 0:
            return None
        self._compare_names(frame_names(batch.X))
        X = to_host(to_matrix(batch.X, None))
        if self.n_features is None:
            self.n_features = X.shape[1]
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} columns, expected {self.n_features}")
        y = self._labels(batch.y, len(X))
        if self._weighted is None:
            self._weighted = batch.weight is not None
        if self._weighted != (batch.weight is not None):
            raise ValueError(f"it has {'no weights' if self._weighted else 'weights'}, unlike the batches before")
        return Batch(X, y, None if batch.weight is None else weight_array(batch.weight, len(X), row))

    def _compare_names(self, names: list[Any] | None) -> None:
        if names is None:
            return
        if self.feature_names is None:
            self.feature_names = names
        if names != self.feature_names:
            pairs = zip(names, self.feature_names, strict=False)
            first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(names), len(self.feature_names)))
            received, expected = (repr(all_[first]) if first < len(all_) else "none" for all_ in (names, self.feature_names))
            raise ValueError(f"column {first} of X has the name {received}, expected {expected}")

    def _labels(self, y: Any, n_rows: int) -> NDArray[Any]:
        labels = label_array(y, n_rows)
        if labels.ndim != 1:
            raise ValueError(f"y must have one label a row, got the shape {labels.shape}")
        kind = KINDS.get(labels.dtype.kind, str(labels.dtype))
        if self._kind is None:
            self._kind = kind
        if kind != self._kind:
            raise ValueError(f"y holds {kind} (dtype {labels.dtype}), but {self._kind} in the batches before")
        return labels


def count(rows: Any) -> int | None:
    """Return how many rows an array, a list or a data frame has, None for what has no length."""
    shape = getattr(rows, "shape", None)
    if shape:
        return int(shape[0])
    return len(rows) if hasattr(rows, "__len__") else None


def weight_array(weight: Any, n_rows: int, row: int = 0) -> Floats:
    """Return weights as float64 (n_rows,); a ValueError that counts from ``row`` if they are not what weights may be."""
    if np.ma.is_masked(weight):
        raise ValueError("weight must be numbers, but some are masked; a row of weight 0 is one that does not exist")
    weights = to_numpy(only_column(to_host(weight, "weight"), "weight"))
    if weights.shape != (n_rows,) or weights.dtype.kind not in "biuf":
        received = f"the shape {weights.shape} and the dtype {weights.dtype}"
        raise ValueError(f"weight must be one number for each of the {n_rows} rows, got {received}")
    weights = weights.astype(np.float64, copy=False)
    wrong = ~((weights >= 0) & (weights <= LARGEST_WEIGHT))
    if wrong.any():
        first = int(wrong.argmax())
        too_large = " and at most 2**900" if np.isfinite(weights[first]) and weights[first] > 0 else ""
        raise ValueError(f"weight must be finite and not negative{too_large}, got {weights[first]} in row {row + first}")
    return weights

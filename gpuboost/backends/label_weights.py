"""What a row weighs for each wrong label, in integers: how boosting by filtering sees the rows that it draws."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.exactmath import exp, minus_log2, sigmoid

WEIGHT_BITS = 32
"""A weight of 1 is ``2**32`` units."""

LOSS_BITS = 20
"""Losses are in units of ``2**-20`` bits."""

MARGIN_WEIGHTS: MappingProxyType[str, Callable[[Floats], Floats]] = MappingProxyType(
    {
        "logistic": lambda margin: sigmoid(-margin),  # q of Bradley 2008; AdaBoost-LOG (Collins, Schapire and Singer 2002)
        "madaboost": lambda margin: exp(-np.maximum(margin, 0.0)),  # min(1, exp(-margin)) (Domingo and Watanabe 2000)
    }
)
"""The weight of a margin, in (0, 1]. The keys are in the order of the compiled loops' numbers."""


class LabelWeights(NamedTuple):
    """Rows as a filter sees them.

    Attributes
    ----------
    q : ndarray of int64, shape (n_rows, n_classes)
        The weights of the wrong labels, 0 for a row's own class.
    total : ndarray of int64, shape (n_rows,)
        Their sums.
    loss : ndarray of int64, shape (n_rows,)
        The sums of the logistic losses against the wrong labels, ``-log2(1 - q)`` with logistic q; 33 bits for a q of 1.
    wrong : ndarray of bool, shape (n_rows,)
        Whether the first largest score is not that of the row's class.
    """

    q: IntArray
    total: IntArray
    loss: IntArray
    wrong: NDArray[np.bool_]

    @classmethod
    def of_columns(cls, columns: IntArray) -> LabelWeights:
        """Return what a backend has written side by side, shape (n_rows, n_classes + 3)."""
        return cls(columns[:, :-3], columns[:, -3], columns[:, -2], columns[:, -1] > 0)


def label_weights(scores: Floats, target: IntArray, weighting: str) -> LabelWeights:
    """Weigh the labels of rows: the reference of `gpuboost.backends.base.Backend.weigh_labels`."""
    margins, others = margins_to_others(scores, target)
    logistic = in_units(MARGIN_WEIGHTS["logistic"](margins))
    weights = logistic if weighting == "logistic" else in_units(MARGIN_WEIGHTS[weighting](margins))
    q = np.zeros(scores.shape, np.int64)
    np.put_along_axis(q, others, weights, axis=1)
    bits = minus_log2(np.ldexp(np.maximum((1 << WEIGHT_BITS) - logistic, 0.5), -WEIGHT_BITS))
    loss = np.rint(np.ldexp(bits, LOSS_BITS)).astype(np.int64)
    return LabelWeights(q, weights.sum(axis=1), loss.sum(axis=1), scores.argmax(axis=1) != target)


def in_units(weights: Floats) -> IntArray:
    """Return weights as integers."""
    return np.rint(np.ldexp(weights, WEIGHT_BITS)).astype(np.int64)


def margins_to_others(scores: Floats, target: IntArray) -> tuple[Floats, IntArray]:
    """Return ``s_y - s_y'`` for the other classes y' of each row, and their numbers, both (n_rows, n_classes - 1)."""
    n_rows, n_classes = scores.shape
    others = np.arange(n_classes - 1)[None, :]
    others = others + (others >= target[:, None])
    return scores[np.arange(n_rows), target][:, None] - np.take_along_axis(scores, others, axis=1), others

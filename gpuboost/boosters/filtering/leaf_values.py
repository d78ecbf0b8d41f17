"""What the leaves of a round's tree add to the scores. Scores are kept such that their differences are the margins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.boosters.filtering.draw import LeafSums
from gpuboost.exactmath import log

LARGEST_NEWTON_STEP = 4.0
"""No leaf moves a margin by more than this times the learning rate (section 5 of Friedman, Hastie and Tibshirani 2000)."""


def pseudo_edge(votes: Floats, sums: LeafSums) -> float:
    """Return the edge of votes in {-1, +1}, shape (n_leaves, n_classes), in -1/2 .. 1/2.

    It is ``E[1/2 (h(x, y) - sum_y' q h(x, y'))]`` of line 1 of algorithm 5, divided by 2, since votes in [-1, 1] give numbers
    in [-1, 1]. With two classes it is ``1/2 - P[h is wrong]``.
    """
    signed = sums.positive.astype(object) - sums.negative  # Python integers: sums over leaves and classes are exact
    return float((signed * votes.astype(np.int64)).sum() / (4.0 * sums.positive.astype(object).sum()))


def confidence_values(sums: LeafSums, smoothing: float) -> Floats:
    """Return ``1/2 ln((W+ + s) / (W- + s))`` (section 2.4), with weights that sum to 1, for margins of two labels."""
    total = float(sums.positive.sum(axis=0).sum())
    positive, negative = sums.positive / total, sums.negative / total
    return 0.25 * (log(positive + smoothing) - log(negative + smoothing))


def newton_values(sums: LeafSums, learning_rate: float) -> Floats:
    """Return Newton steps of the logistic loss, ``learning_rate * sum y q / sum q (1 - q)``; 0 where nothing has a weight."""
    assert sums.curvature is not None
    gradient = (sums.positive - sums.negative).astype(np.float64)
    step = gradient / np.maximum(sums.curvature, 1)
    return 0.5 * learning_rate * np.clip(step, -LARGEST_NEWTON_STEP, LARGEST_NEWTON_STEP)


def of_colours(values: Floats, colouring: NDArray[np.int8] | None) -> Floats:
    """Return the values of the classes from those of two colours; as they are without a colouring."""
    return values if colouring is None else values[:, (colouring > 0).astype(np.int64)]

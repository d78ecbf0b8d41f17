"""How scores become probabilities that agree with the prediction. A link is data, so that exported models can state it, too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.exactmath import exp, log_sigmoid

SMALLEST = float(np.finfo(np.float64).tiny)
"""No probability falls below this: its logarithm stays finite."""


@dataclass(frozen=True)
class Softmax:
    """``p_k`` is proportional to ``exp(F_k / divisor)``."""

    divisor: float = 1

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms up to a constant for each row, shape (n_rows, n_classes)."""
        log_p: Floats = scores / self.divisor
        return log_p

    def tempered(self, temperature: float) -> Softmax:
        """Return the link that divides the scores by a temperature first."""
        return Softmax(self.divisor * temperature)


@dataclass(frozen=True)
class Sigmoid:
    """Every class is a binary problem: ``p_k`` is proportional to ``1 / (1 + exp(offset - scale F_k))``.

    ``scale`` is 2 for the exponential loss, whose minimum is at half the log odds, and 1 for the logistic loss.
    """

    scale: float
    offset: float = 0.0

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms up to a constant for each row, shape (n_rows, n_classes)."""
        return log_sigmoid(self.scale * scores - self.offset)

    def tempered(self, temperature: float) -> Sigmoid:
        """Return the link that divides the scores by a temperature first."""
        return Sigmoid(self.scale / temperature, self.offset)


@dataclass(frozen=True)
class ClassSigmoids:
    """Every class has a sigmoid of its own: ``p_k`` is proportional to ``1 / (1 + exp(offset_k - scale_k F_k))``.

    Scales are not negative. What they say of the order of the classes does not count: see `normalised`.
    """

    scales: tuple[float, ...]
    offsets: tuple[float, ...]

    def log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms up to a constant for each row, shape (n_rows, n_classes)."""
        z: Floats = np.array(self.scales) * scores - np.array(self.offsets)
        return log_sigmoid(z)


Tempered: TypeAlias = Softmax | Sigmoid
Link: TypeAlias = Tempered | ClassSigmoids


def normalised(log_p: Floats, predicted: NDArray[np.intp]) -> Floats:
    """Return the rows of ``exp(log_p)`` divided by their sums.

    Parameters
    ----------
    log_p : ndarray of float64, shape (n_rows, n_classes)
        As negative as they like: that of the predicted class is subtracted first. No class is above that one: what is above it
        by rounding, or by a sigmoid of its own, is lowered to it.
    predicted : ndarray of int, shape (n_rows,)
        The predicted classes, those of the first largest score.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
        In [0, 1]; every row sums to 1 up to rounding, and its first largest entry is that of the predicted class.
    """
    own = np.take_along_axis(log_p, predicted[:, None], axis=1)
    p: Floats = exp(np.minimum(log_p - own, 0.0))
    p /= np.add.accumulate(p, axis=1)[:, -1:]  # in class order, as everywhere
    np.maximum(p, SMALLEST, out=p)
    # Scores that differ can round to the same probability: put the predicted class one step ahead of the one in its place.
    first = p.argmax(axis=1)
    wrong = np.flatnonzero(first != predicted)
    p[wrong, predicted[wrong]] = np.nextafter(p[wrong, first[wrong]], 1.0)
    return p


def independent(log_p: Floats, predicted: NDArray[np.bool_]) -> Floats:
    """Return ``exp(log_p)`` for classes that do not exclude each other, above 1/2 exactly where the class is predicted."""
    p = np.clip(exp(log_p), SMALLEST, 1.0)
    above = np.nextafter(0.5, 1.0)
    repaired: Floats = np.where(predicted, np.maximum(p, above), np.minimum(p, 0.5))
    return repaired

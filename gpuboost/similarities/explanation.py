"""Which training points decide a prediction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.similarities.ensemble import Similarities


@dataclass(frozen=True)
class PointExplanation:
    """What each training point adds to the lead of the predicted class, row by row.

    The lead is the score of the predicted class minus that of the next one. A round counts for the point that its answer names:
    the nearer of two, or the one whose distance it compares with a radius. So the ``base`` of a row and its ``contributions``
    add up to its ``lead``, but for rounding.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_points,)
        The points' rows in the X of the training.
    labels : ndarray, shape (n_points,)
        Their labels.
    contributions : ndarray of float64, shape (n_rows, n_points)
    base : ndarray of float64, shape (n_rows,)
        Of rounds that look at no point.
    lead : ndarray of float64, shape (n_rows,)
    predicted, next_label : ndarray, shape (n_rows,)
        The labels with the largest and the second largest score.
    """

    rows: IntArray
    labels: NDArray[Any]
    contributions: Floats
    base: Floats
    lead: Floats
    predicted: NDArray[Any]
    next_label: NDArray[Any]

    def strongest(self, row: int, n: int = 5) -> list[tuple[int, Any, float]]:
        """Return the points that say most of a row, for or against, as (row of the training, label, contribution)."""
        own = self.contributions[row]
        first = (-abs(own)).argsort(kind="stable")[:n]
        return [(int(self.rows[j]), self.labels[j], float(own[j])) for j in first]


def explained(ensemble: Similarities, says: NDArray[np.bool_], scores: Floats, classes: NDArray[Any]) -> PointExplanation:
    """Explain rows.

    Parameters
    ----------
    ensemble : Similarities
    says : ndarray of bool, shape (n_rounds, n_rows)
        Whether the similarity of each round says +1.
    scores : ndarray of float64, shape (n_rows, n_classes)
    classes : ndarray, shape (n_classes,)
        The labels.
    """
    number = np.arange(len(scores))
    order = (-scores).argsort(axis=1, kind="stable")
    best, second = order[:, 0], order[:, min(1, scores.shape[1] - 1)]
    contributions, base = np.zeros((len(scores), ensemble.n_points)), np.zeros(len(scores))
    for t, near in enumerate(says):
        a = ensemble.coefficients[t]
        of_class = a[best] - a[second] if scores.shape[1] > 1 else a[best]
        added = np.where(near, of_class, -of_class)
        if ensemble.first[t] < 0:
            base += added
            continue
        other = ensemble.second[t] if ensemble.second[t] >= 0 else ensemble.first[t]
        contributions[number, np.where(near, ensemble.first[t], other)] += added
    lead = scores[number, best] - (scores[number, second] if scores.shape[1] > 1 else 0.0)
    labels = classes[ensemble.classes]
    return PointExplanation(ensemble.rows, labels, contributions, base, lead, classes[best], classes[second])

"""SAMME, discrete and real (Zhu, Zou, Rosset and Hastie, "Multi-class AdaBoost", Statistics and Its Interface 2, 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpuboost.boosters.class_trees import ClassSums, ClassTreeBooster, Values, centred, correct_weight
from gpuboost.exactmath import log

SMOOTHING = 1024
"""The real variant adds 1 / 1024 of a class's whole weight to its weight in every leaf, so that nothing is infinite."""


@dataclass(frozen=True)
class SAMME(ClassTreeBooster):
    """Boosting of classification trees.

    Attributes
    ----------
    max_leaf_nodes, learning_rate, min_weight_fraction_leaf, sampling
        See `ClassTreeBooster`; a learning rate of 1 is the paper's algorithm.
    variant : {"discrete", "real"}
        "discrete" is algorithm 2 of the paper: a tree votes with one coefficient. "real" is its algorithm 4, SAMME.R: the
        leaves' class distributions enter as logarithms.
    """

    variant: Literal["discrete", "real"] = "discrete"

    @property
    def ends_when_perfect(self) -> bool:
        return self.variant == "discrete"

    def leaf_values(self, sums: ClassSums) -> Values | None:
        return discrete_values(sums) if self.variant == "discrete" else real_values(sums)


def discrete_values(sums: ClassSums) -> Values | None:
    """Return ``beta g(x)``, g being 1 for the predicted class and -1 / (K - 1) for the others; None if no better than chance.

    ``beta = (K - 1)^2 / K alpha`` with ``alpha = ln((1 - err) / err) + ln(K - 1)`` gives a row that the tree misses
    ``exp(alpha)`` times the factor of one that it hits (algorithm 2, lines 2c and 2d), and makes ``softmax(F / (K - 1))`` that
    of the votes.
    """
    n_classes, total, right = sums.shape[1], int(sums.sum()), correct_weight(sums)
    if right * n_classes <= total:
        return None
    right = min(right, total - 1)  # keeps the coefficient of a perfect tree finite
    return votes(sums, float(log(right / (total - right)) + log(max(n_classes - 1, 1))))


def votes(sums: ClassSums, alpha: float) -> Values:
    """Return ``(K - 1)^2 / K alpha g(x)``, g being 1 for the heaviest class of a leaf and -1 / (K - 1) for the others."""
    n_classes = sums.shape[1]
    others = max(n_classes - 1, 1)
    chosen = sums.argmax(axis=1)[:, None] == np.arange(n_classes)
    values: Values = others**2 / n_classes * alpha * np.where(chosen, 1.0, -1.0 / others)
    return values


def real_values(sums: ClassSums) -> Values:
    """Return ``(K - 1) (ln p_k - mean of ln p)`` (algorithm 4, line 2c), p the class distribution of the leaf.

    Every leaf is given a share of the whole's weight, so that one with next to no weight agrees with the whole.
    """
    sums = sums + np.maximum(sums.sum(axis=0) // SMOOTHING, 1)
    values: Values = max(sums.shape[1] - 1, 1) * centred(log(sums))
    return values

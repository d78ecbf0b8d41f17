"""GAMBLE: gentle adaptive multi-class boosting learning (Huang, Ertekin, Song, Zha and Giles 2007)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.boosters.class_trees import ClassSums, ClassTreeBooster, Values, centred
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.exactmath import exp


@dataclass(frozen=True)
class Gamble(ClassTreeBooster):
    """Algorithm 2 of the paper: quasi-Newton steps of class trees on the multi-class exponential loss.

    Attributes
    ----------
    max_leaf_nodes, learning_rate, min_weight_fraction_leaf, sampling
        See `ClassTreeBooster`; a learning rate of 1 is the paper's algorithm, which overshoots with many classes.
    line_search : bool
        Whether the step is shortened first, see `best_step`.
    """

    line_search: bool = False

    @property
    def ends_when_perfect(self) -> bool:
        return False

    def leaf_values(self, sums: ClassSums) -> Values:
        return shortened_newton_values(sums) if self.line_search else newton_values(sums)


def newton_values(sums: ClassSums) -> Values:
    """Return the leaf values of algorithm 2 of the paper.

    With the weight S_k of class k in a leaf and their sum S, the weighted mean of the coding is
    ``g_k = (K S_k - S) / ((K - 1) S)``; the step is ``r_k = K (K - 1) g_k / ((K - 2) g_k + 1)``, made to sum to 0.
    """
    k = sums.shape[1]
    if k == 1:
        return np.zeros(sums.shape)
    whole = sums.sum(axis=1, keepdims=True)
    g = (k * sums - whole) / ((k - 1) * np.maximum(whole, 1))  # 0 in a leaf without weight
    return centred(k * (k - 1) * g / ((k - 2) * g + 1))


def shortened_newton_values(sums: ClassSums) -> Values:
    """Return the values of `newton_values` times the s of `best_step`: one s for the tree."""
    values = newton_values(sums)
    return best_step(sums, values / max(values.shape[1] - 1, 1)) * values


def best_step(weights: NDArray[Any], exponents: NDArray[np.float64]) -> float:
    """Return which s of 1, 1/2, 1/4, ... has the lowest loss ``sum_i weights_i exp(-s exponents_i)``.

    The loss is convex in s, so the search ends where halving s no longer lowers it; if it falls at 0, as with the steps of a
    tree, it is then lower than for s = 0. Half the step takes the square roots of the exponentials, and the sums are exact
    but for one rounding: s is the same everywhere if the weights are.
    """
    multipliers, step = exp(np.clip(-exponents, -MAX_STEP, MAX_STEP)), 1.0
    loss = math.fsum((weights * multipliers).flat)
    while True:
        multipliers = np.sqrt(multipliers)
        before, loss = loss, math.fsum((weights * multipliers).flat)
        if loss >= before:
            return step
        step /= 2

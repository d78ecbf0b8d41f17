"""AdaBoost.MH with vector-valued weak learners (figure 1 of Kegl 2014), discrete and real-valued."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.frontier import GrowthScope
from gpuboost.backends.statistics import Stats
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.ending import is_perfect
from gpuboost.boosters.exponential import MAX_STEP, ExponentialWeights
from gpuboost.boosters.leaf_counts import leaf_counts
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.exactmath import log
from gpuboost.learners.base import Learner, VotingTree
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.learners.single_label_tree import SingleLabelTree

SMOOTHING = 1024
"""A leaf of the real variant needs about this share of a class's weight, 1 / 1024, to say more than the whole does."""

InitialWeights = Literal["single-label", "uniform"]


@dataclass(frozen=True)
class AdaBoostMH(Booster[ExponentialWeights]):
    """The loop of figure 1.

    Attributes
    ----------
    learner : Learner or SingleLabelTree
        Finds a classifier ``h(x)`` in {-1, +1}^K with a large edge.
    initial_weights : {"single-label", "uniform"}
        "single-label" gives a row's label as much weight as all other classes together (eq. 3); "uniform" the same weight to
        every (row, class), the natural choice for multi-label and multi-task problems.
    variant : {"discrete", "real"}
        "discrete" multiplies the votes by one coefficient (eq. 12); "real" gives every leaf and class its own, the minimiser of
        the loss on the leaf (section 2.3 leaves the criterion open; the tree is grown by the discrete edge).
    learning_rate : float
        Multiplies the coefficients; 1 is the paper's algorithm. Above 2 the loss may rise, which ends the training: the round
        is not kept, unless it is the first.
    min_weight_fraction_leaf : float
        The share of the sample weights, as they were before boosting, that both sides of a cut must have.
    sampling : Sampling
        What the learner sees of the rows and features.
    """

    learner: Learner | SingleLabelTree
    initial_weights: InitialWeights
    variant: Literal["discrete", "real"] = "discrete"
    learning_rate: float = 1.0
    min_weight_fraction_leaf: float = 0.0
    sampling: Sampling = NO_SAMPLING

    def row_state(self, problem: Problem) -> ExponentialWeights:
        initial = initial_weights(problem.signs, self.initial_weights) * problem.weight_scale[:, None]
        return ExponentialWeights(problem, initial)

    def rounds(self, problem: Problem, state: ExponentialWeights, n_rounds: int) -> Iterator[Round]:
        counts = leaf_counts(problem, self.min_weight_fraction_leaf, self.sampling)
        stats = state.statistics(counts)
        loss = state.loss(stats)
        overshoots = self.learning_rate > 2.0  # twice the optimal coefficient leaves the loss as it is, more raises it
        for t in itertools.count(n_rounds):
            if overshoots and loss > 1.0:
                return
            scope = self.sampling.draw(t, problem, stats)
            weak = self.weak_classifier(t, problem, state, stats, scope)
            if weak.edge == 0 and not self.may_find_more(problem, stats, scope):
                return
            edge, total = weak.edge, stats.total
            added = weak.with_values(self.coefficients(weak, stats, problem))
            state.update([added])
            stats = state.statistics(counts)
            before, loss = loss, state.loss(stats)
            if overshoots and before < 1.0 and loss > before:
                return
            yield Round([added], loss, {"edge": edge / total})
            # After a perfect learner nothing is left; but smoothed values of the real variant may be wrong where it is right.
            if self.variant == "discrete" and edge == total:
                return

    def is_last_round(self, problem: Problem, state: ExponentialWeights, trees: Sequence[GrownTree], t: int) -> bool:
        return self.variant == "discrete" and is_perfect(trees[0], problem.backend, state.statistics())

    def weak_classifier(
        self, t: int, problem: Problem, state: ExponentialWeights, stats: Stats, scope: GrowthScope
    ) -> VotingTree:
        """Return the classifier of round t, counted from 0; ``stats`` are those of ``state``."""
        if isinstance(self.learner, SingleLabelTree):
            row_stats = state.row_statistics(leaf_counts(problem, self.min_weight_fraction_leaf, self.sampling))
            return self.learner(problem.backend, problem.data, stats, row_stats, scope)
        return self.learner(problem.backend, problem.data, stats, scope)

    def may_find_more(self, problem: Problem, stats: Stats, scope: GrowthScope) -> bool:
        """Whether another round may find an edge after one that has found none: if it was grown from a part of all."""
        return not scope.is_whole

    def coefficients(self, weak: VotingTree, stats: Stats, problem: Problem) -> NDArray[np.float64]:
        """Return the leaf values of the round, shape (n_leaves, n_classes)."""
        if self.variant == "real":
            sums, sum_abs = weak.leaf_sums(problem.backend, stats)
            right, wrong = (sum_abs + sums) // 2, (sum_abs - sums) // 2
            more_right, more_wrong = pseudo_weights(right.sum(axis=0), wrong.sum(axis=0))
            values = 0.5 * log((right + more_right) / (wrong + more_wrong))
        else:
            edge = min(weak.edge, stats.total - 1)  # keeps the coefficient of a perfect learner finite
            values = 0.5 * log((stats.total + edge) / (stats.total - edge)) * weak.tree.values  # eq. 12
        step: NDArray[np.float64] = np.minimum(np.maximum(self.learning_rate * values, -MAX_STEP), MAX_STEP)
        return step


def pseudo_weights(right: NDArray[np.int64], wrong: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what is added to the two sides of every leaf, so that pure leaves stay finite, in units; shape (n_classes,).

    It is the share 2 / `SMOOTHING` of an average class's weight, divided as the class's whole weight is, so that a leaf with
    next to no weight agrees with the whole (an m-estimate). It does not depend on the number of rows: neither the unit of the
    weights nor rows that stand twice make a difference.
    """
    epsilon = int(right.sum() + wrong.sum()) // (SMOOTHING * len(right))
    both = np.maximum(right + wrong, 1)
    more_right, more_wrong = (2 * epsilon * side.astype(object) // both for side in (right, wrong))  # beyond 64 bits
    return np.maximum(more_right, 1).astype(np.int64), np.maximum(more_wrong, 1).astype(np.int64)


def initial_weights(signs: NDArray[np.int8], scheme: InitialWeights) -> NDArray[np.float64]:
    """Return the initial weights, shape (n_rows, n_classes), up to a common factor of 1/n (eq. 3) or 1/(nK)."""
    if scheme == "uniform":
        return np.ones(signs.shape)
    n_others = max(signs.shape[1] - 1, 1)
    return np.where(signs > 0, 0.5, 0.5 / n_others)

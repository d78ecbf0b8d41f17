"""Boosting class trees on the multi-class exponential loss: what SAMME and GAMBLE share."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.frontier import GrowthScope
from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.exponential import MAX_STEP, ExponentialWeights
from gpuboost.boosters.leaf_counts import leaf_counts
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.learners.class_tree import ClassTree
from gpuboost.learners.grown_tree import GrownTree

Values = NDArray[np.float64]
ClassSums = NDArray[np.int64]
"""The weight of every class in every leaf, shape (n_leaves, n_classes), in units of the statistics."""


class LabelWeights(ExponentialWeights):
    """One weight for each row, ``w_i = w0_i exp(-y_i . F(x_i) / K)`` (the loss of both papers).

    With the coding ``y_k = 1`` for the row's class, ``-1 / (K - 1)`` for the others, and scores that sum to 0, the exponent
    is ``-F_y / (K - 1)``. A row has its weight in the column of its class, and 0 in the others.
    """

    def __init__(self, problem: Problem) -> None:
        initial = np.where(problem.signs > 0, problem.weight_scale[:, None], 0.0)
        super().__init__(problem, initial, one_hot=True)
        self.n_others = max(problem.n_classes - 1, 1)

    def multiply(self, leaf_index: Device, values: NDArray[np.float64]) -> None:
        super().multiply(leaf_index, values / self.n_others)


@dataclass(frozen=True)
class ClassTreeBooster(Booster[LabelWeights]):
    """The loop: grow a tree on the weights, give its leaves values, reweight.

    Attributes
    ----------
    max_leaf_nodes : int
    learning_rate : float
        Multiplies the values.
    min_weight_fraction_leaf : float
        The share of the sample weights, as they were before boosting, that both sides of a split must have.
    sampling : Sampling
        What the trees are grown from.
    """

    max_leaf_nodes: int
    learning_rate: float = 1.0
    min_weight_fraction_leaf: float = 0.0
    sampling: Sampling = NO_SAMPLING

    @abstractmethod
    def leaf_values(self, sums: ClassSums) -> Values | None:
        """Return ``f``, shape (n_leaves, n_classes), whose rows sum to 0; None if the tree is no better than chance."""

    @property
    @abstractmethod
    def ends_when_perfect(self) -> bool:
        """Whether a tree that errs nowhere is the last one."""

    def row_state(self, problem: Problem) -> LabelWeights:
        return LabelWeights(problem)

    def rounds(self, problem: Problem, state: LabelWeights, n_rounds: int) -> Iterator[Round]:
        backend, data, n_classes = problem.backend, problem.data, problem.n_classes
        learner, counts = ClassTree(self.max_leaf_nodes), leaf_counts(problem, self.min_weight_fraction_leaf, self.sampling)
        stats = state.statistics(counts)
        for t in itertools.count(n_rounds):
            scope = self.sampling.draw(t, problem, stats)
            grown = learner(backend, data, stats, scope)
            sums, _ = grown.leaf_sums(backend, stats)
            correct, total = correct_weight(sums), stats.total
            values = self.leaf_values(sums)
            if values is None and scope.is_whole:  # where it was a part of all, another part may say more
                return
            limit = MAX_STEP * state.n_others  # keeps a round's factors within exp(+-64)
            values = np.clip(self.learning_rate * (grown.tree.values if values is None else values), -limit, limit)
            added = grown.with_values(values)
            state.update([added])
            stats = state.statistics(counts)
            edge = (n_classes * correct - total) / (max(n_classes - 1, 1) * total)
            yield Round([added], state.loss(stats), {"edge": edge})
            if self._ends(grown, sums, scope):
                return

    def is_last_round(self, problem: Problem, state: LabelWeights, trees: Sequence[GrownTree], t: int) -> bool:
        backend, data, [grown] = problem.backend, problem.data, trees
        stats = state.statistics(leaf_counts(problem, self.min_weight_fraction_leaf, self.sampling))
        scope = self.sampling.draw(t, problem, stats)
        sums, _ = grown.leaf_sums(backend, stats)
        if grown.tree.n_leaves == 1:  # with other parameters or rows there may be a split now
            grown = ClassTree(self.max_leaf_nodes)(backend, data, stats, scope)
        return self._ends(grown, sums, scope)

    def _ends(self, grown: GrownTree, sums: ClassSums, scope: GrowthScope) -> bool:
        """Whether no tree follows this one, with the weights ``sums`` in its leaves, grown from ``scope``."""
        is_constant = grown.tree.n_leaves == 1 and scope.is_whole
        return is_constant or (self.ends_when_perfect and correct_weight(sums) == int(sums.sum()))


def correct_weight(sums: ClassSums) -> int:
    """Return the weight of the rows that the heaviest classes of their leaves predict right."""
    return int(sums.max(axis=1).sum())


def centred(values: Values) -> Values:
    """Return ``values`` minus the mean of each row, summed in the order of the classes."""
    mean = np.add.accumulate(values, axis=1)[:, -1:] / values.shape[1]
    found: Values = values - mean
    return found

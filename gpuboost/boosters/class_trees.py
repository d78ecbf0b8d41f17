"""Boosting class trees on the multi-class exponential loss: what SAMME and GAMBLE share."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.frontier import GrowthScope
from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Part, Problem, Round, apply
from gpuboost.boosters.exponential import MAX_STEP, ExponentialWeights
from gpuboost.boosters.leaf_counts import leaf_counts
from gpuboost.boosters.sampling import Sampling
from gpuboost.learners.class_tree import ClassTree, GrownTree
from gpuboost.tree import Tree

Values = NDArray[np.float64]
LeafValues = Callable[[GrownTree], "Values | None"]
"""From a tree and its sums to ``f``, shape (n_leaves, n_classes), whose rows sum to 0; None if it is no better than chance."""


class LabelWeights(ExponentialWeights):
    """One weight for each row, ``w_i = w0_i exp(-y_i . F(x_i) / K)`` (the loss of both papers).

    With the coding ``y_k = 1`` for the row's class, ``-1 / (K - 1)`` for the others, and scores that sum to 0, the exponent
    is ``-F_y / (K - 1)``. A row has its weight in the column of its class, and 0 in the others.
    """

    def __init__(self, problem: Problem) -> None:
        initial = np.where(problem.signs > 0, problem.weight_scale[:, None], 0.0)
        super().__init__(problem.backend, initial, problem.signs, problem.frequency_weight)
        self.n_others = max(problem.signs.shape[1] - 1, 1)

    def _put(self, initial: NDArray[np.float64]) -> Device:
        return self.backend.put_one_hot(initial)

    def multiply(self, leaf_index: Device, values: NDArray[np.float64]) -> None:
        super().multiply(leaf_index, values / self.n_others)


@dataclass(frozen=True)
class ClassTreeLoop:
    """The loop: grow a tree on the weights, give its leaves values, reweight.

    Attributes
    ----------
    max_leaf_nodes : int
    learning_rate : float
        Multiplies the values.
    min_weight_fraction_leaf : float
        The share of the sample weights, as they were before boosting, that both sides of a cut must have.
    leaf_values : callable
        What tells the algorithms apart.
    until_perfect : bool
        Whether a tree that errs nowhere is the last one.
    sampling : Sampling
        What the trees are grown from.
    """

    max_leaf_nodes: int
    learning_rate: float
    min_weight_fraction_leaf: float
    leaf_values: LeafValues
    until_perfect: bool
    sampling: Sampling

    def rounds(self, problem: Problem, initial_rounds: Sequence[Sequence[Tree]]) -> Iterator[Round]:
        backend, data = problem.backend, problem.data
        weights, learner = LabelWeights(problem), ClassTree(self.max_leaf_nodes)
        counts = leaf_counts(problem, self.min_weight_fraction_leaf, self.sampling)
        for t, [tree] in enumerate(initial_rounds):
            part = apply(tree, problem)
            if t == len(initial_rounds) - 1:  # this may be a model whose training has ended
                stats = weights.statistics(counts)
                scope = self.sampling.draw(t, backend, data, stats)
                sums, _ = backend.leaf_sums(stats, part.leaf_index, tree.n_leaves)
                if tree.n_leaves == 1:  # there may be cuts by now, with other parameters or rows
                    tree = learner(backend, data, replace(stats, criterion="gini"), scope).tree
                if self.is_last(tree, sums, scope):
                    return
            weights.update([part])
        stats = weights.statistics(counts)
        for t in itertools.count(len(initial_rounds)):
            scope = self.sampling.draw(t, backend, data, stats)
            grown = learner(backend, data, replace(stats, criterion="gini"), scope)
            correct, total = right_units(grown.sums), stats.total
            values = self.leaf_values(grown)
            if values is None and scope.is_whole:  # where it was a part of all, another part may say more
                return
            values = grown.tree.values if values is None else values
            limit = MAX_STEP * weights.n_others  # keeps a round's factors within exp(+-64)
            values = np.clip(self.learning_rate * values, -limit, limit)
            by_index = values[grown.leaf]
            weights.multiply(grown.leaf_index, by_index)
            stats = weights.statistics(counts)
            n_classes = values.shape[1]
            edge = (n_classes * correct - total) / (max(n_classes - 1, 1) * total)
            part = Part(replace(grown.tree, values=values), grown.leaf_index, by_index)
            yield Round([part], weights.loss(stats), {"edge": edge})
            if self.is_last(grown.tree, grown.sums, scope):
                return

    def is_last(self, tree: Tree, sums: NDArray[np.int64], scope: GrowthScope) -> bool:
        """Whether no tree follows this one, with the weight ``sums`` of every class in every leaf, grown from ``start``."""
        return (tree.n_leaves == 1 and scope.is_whole) or (self.until_perfect and right_units(sums) == int(sums.sum()))


def right_units(sums: NDArray[np.int64]) -> int:
    """Return the weight of the rows that the heaviest classes of their leaves predict right."""
    return int(sums.max(axis=1).sum())


def centred(values: Values) -> Values:
    """Return ``values`` minus the mean of each row, summed in the order of the classes."""
    mean = np.add.accumulate(values, axis=1)[:, -1:] / values.shape[1]
    found: Values = values - mean
    return found

"""One-vs-all AdaBoost: for each class a binary AdaBoost against the others (Freund and Schapire 1997)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.backends.statistics import Stats
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.ending import is_perfect
from gpuboost.boosters.leaf_counts import leaf_counts
from gpuboost.learners.grown_tree import GrownTree


class BinaryWeights:
    """The weights of the binary problems, one for each class, and the last tree of each."""

    def __init__(self, problem: Problem, booster: AdaBoostMH) -> None:
        self.problems = [
            replace(problem, target=problem.signs[:, k : k + 1] > 0, n_classes=1) for k in range(problem.n_classes)
        ]
        self.of_class = [booster.row_state(one) for one in self.problems]
        self.last_tree: list[GrownTree | None] = [None] * problem.n_classes

    def update(self, trees: Sequence[GrownTree]) -> None:
        for grown in trees:
            for k in np.flatnonzero(grown.tree.values.any(axis=0)).tolist():
                own = replace(grown.with_values(grown.tree.values[:, k : k + 1]), sums=None)
                self.of_class[k].update([own])
                self.last_tree[k] = own

    def loss(self) -> float:
        """Return the mean of the problems' exponential losses."""
        losses = [one.loss() for one in self.of_class]
        return float(np.add.accumulate(losses)[-1]) / len(losses)


@dataclass(frozen=True)
class OneVsAll(Booster[BinaryWeights]):
    """Every round has a tree for each class, which tells its rows from all others.

    A class whose tree errs nowhere gets no further trees (the discrete variant), nor does one whose tree finds no edge.

    Attributes
    ----------
    binary : AdaBoostMH
        What each class is boosted by; with one label, +1 or -1, that is AdaBoost.
    """

    binary: AdaBoostMH

    def row_state(self, problem: Problem) -> BinaryWeights:
        return BinaryWeights(problem, self.binary)

    def rounds(self, problem: Problem, state: BinaryWeights, n_rounds: int) -> Iterator[Round]:
        binary, n_classes = self.binary, problem.n_classes
        counts = leaf_counts(problem, binary.min_weight_fraction_leaf, binary.sampling)
        overshoots = binary.learning_rate > 2.0  # twice the optimal coefficient leaves the loss as it is, more raises it
        loss = state.loss()
        for t in itertools.count(n_rounds):
            if overshoots and loss > 1.0:
                return
            trees, edges = [], np.zeros(n_classes)
            for k, weights in enumerate(state.of_class):
                stats = weights.statistics(counts)
                if self._is_finished(k, state, stats):
                    continue
                scope = binary.sampling.draw(t, problem, stats)
                weak = binary.weak_classifier(t, state.problems[k], weights, stats, scope)
                if weak.edge > 0 or not scope.is_whole:  # where it was a part of all, another part may say more
                    values = binary.coefficients(weak, stats, state.problems[k])
                    trees.append(weak.with_values(of_one_class(values, k, n_classes)))
                    edges[k] = weak.edge / stats.total
            if not trees:
                return
            state.update(trees)
            before, loss = loss, state.loss()
            if overshoots and before < 1.0 and loss > before:
                return
            yield Round(trees, loss, {"edge": float(np.add.accumulate(edges)[-1]) / n_classes})

    def _is_finished(self, k: int, state: BinaryWeights, stats: Stats) -> bool:
        """Whether the last tree of a class is right for all that has a weight."""
        last = state.last_tree[k]
        return self.binary.variant == "discrete" and last is not None and is_perfect(last, state.problems[k].backend, stats)


def of_one_class(values: Floats, k: int, n_classes: int) -> Floats:
    """Return the values (n_leaves, 1) of class k beside zeros, shape (n_leaves, n_classes)."""
    scores = np.zeros((len(values), n_classes))
    scores[:, k : k + 1] = values
    return scores

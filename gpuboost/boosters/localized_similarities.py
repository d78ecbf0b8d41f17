"""REBEL on localized similarities: classifiers that compare rows with training points (chapter 5 of Appel's thesis)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.backends.statistics import Device, Stats
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.ending import is_perfect
from gpuboost.boosters.exponential import MAX_STEP, ExponentialWeights
from gpuboost.boosters.rebel import cost_weights
from gpuboost.learners.binarisation import group_coefficients
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.learners.layered_tree import SignTree
from gpuboost.learners.similarity_search import LoadedPoints, SimilaritySearch, best_isolated_row
from gpuboost.similarities.ensemble import Similarity

ANCHOR = 3
"""What is drawn, beside the rows and features of `gpuboost.boosters.sampling`."""


@dataclass(frozen=True)
class SimilarityProblem(Problem):
    """A problem whose ``data`` are `LoadedPoints`, and whose trees are similarities."""

    def apply(self, tree: Any) -> GrownTree:
        return GrownTree(tree, self.backend.apply_similarity(tree, self.data.device))

    def constant(self, scores: Floats) -> GrownTree:
        return self.apply(Similarity(self.data.points.take([]), 0, np.stack([-scores, scores])))


@dataclass(frozen=True)
class LocalizedSimilarities(Booster[ExponentialWeights]):
    """The loop of REBEL with the learner of section 5.4: ``H(x) = sum_t f_t(x) a_t`` with similarities f and vectors a.

    Every round lowers the loss, as long as a point is left whose weights of different labels do not cancel.

    Attributes
    ----------
    search : SimilaritySearch
    anchor : {"random", "best"}
        The first point of a similarity: one of the distinct points, drawn anew every round; or the one that is best told from
        all others, as in the thesis.
    costs : ndarray of float64, shape (n_classes, n_classes), or None
        See `gpuboost.boosters.rebel.Rebel`.
    seed : int
        What is drawn depends on it and on the number of the round only.
    """

    search: SimilaritySearch
    anchor: Literal["random", "best"] = "random"
    costs: Floats | None = None
    seed: int = 0

    def row_state(self, problem: Problem) -> ExponentialWeights:
        return cost_weights(problem, self.costs)

    def rounds(self, problem: Problem, state: ExponentialWeights, n_rounds: int) -> Iterator[Round]:
        t, stats = n_rounds, state.statistics()
        while stats.total > 0:
            grown = self.find(problem, state, stats, t)
            if grown is None:
                return
            edge, total = int(abs(grown.right - grown.wrong).sum()), stats.total
            values = np.clip(grown.coefficients, -MAX_STEP, MAX_STEP) * grown.tree.values
            added = grown.with_values(values)
            state.update([added])
            stats = state.statistics()
            yield Round([added], state.loss(stats), {"edge": edge / total})
            if edge == total:  # all that has a weight is right
                return
            t += 1

    def find(self, problem: Problem, state: ExponentialWeights, stats: Stats, t: int) -> SignTree | None:
        """Return the similarity of round t; None if none lowers the loss."""
        backend, data = problem.backend, problem.data
        sides = groups(problem, state, stats)
        if self.anchor == "random":
            grown = self.search(backend, data, stats, sides, self.draw(data, t))
            if grown.loss < stats.total:
                return grown
        grown = self.search(backend, data, stats, sides, best_isolated_row(backend, data, stats))
        return grown if grown.loss < stats.total else None

    def draw(self, data: LoadedPoints, t: int) -> int:
        """Return a random row, each distinct point being as likely as the others."""
        rows = data.first_rows
        return int(rows[int(np.random.PCG64([self.seed, t, ANCHOR]).random_raw()) % len(rows)])

    def is_last_round(self, problem: Problem, state: ExponentialWeights, trees: Sequence[GrownTree], t: int) -> bool:
        return is_perfect(trees[0], problem.backend, state.statistics())


def groups(problem: Problem, state: ExponentialWeights, stats: Stats) -> Device:
    """Return the group of each row (section 5.3), -1 or +1, int8 (n_rows, 1)."""
    backend = problem.backend
    products = backend.class_products(stats, state.frequency_weight)
    _, sides, _ = backend.project(state.state, state.signs, group_coefficients(products, stats.sum_abs))
    return sides

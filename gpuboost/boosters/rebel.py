"""REBEL: boosting on a multi-class exponential loss that knows what mistakes cost (chapter 4 of Appel's thesis)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.backends.frontier import WHOLE
from gpuboost.backends.statistics import Stats
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.ending import is_perfect
from gpuboost.boosters.exponential import MAX_STEP, ExponentialWeights
from gpuboost.boosters.leaf_counts import leaf_counts
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.fixedpoint import STATE_FLOOR, exponent
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.learners.layered_tree import LayeredTree, constant


@dataclass(frozen=True)
class Rebel(Booster[ExponentialWeights]):
    """The loop of section 4.3: ``H(x) = a_0 + sum_t f_t(x) a_t`` with binary classifiers f and vectors a.

    Attributes
    ----------
    max_depth : int
        Layers of a tree, at least 1.
    costs : ndarray of float64, shape (n_classes, n_classes), or None
        ``costs[y, k]`` is what it costs to predict k where y is true; not negative, 0 on the diagonal. None: every mistake
        costs 1.
    learning_rate : float
        Multiplies the coefficients, but those of the constant classifier; 1 is the thesis' algorithm. Above 2 the loss may
        rise, which ends the training: the round is not kept.
    min_weight_fraction_leaf : float
        The share of the sample weights, as they were before boosting, that both sides of a cut must have.
    sampling : Sampling
        What the trees are grown from.
    """

    max_depth: int
    costs: Floats | None = None
    learning_rate: float = 1.0
    min_weight_fraction_leaf: float = 0.0
    sampling: Sampling = NO_SAMPLING

    def row_state(self, problem: Problem) -> ExponentialWeights:
        return cost_weights(problem, self.costs)

    def rounds(self, problem: Problem, state: ExponentialWeights, n_rounds: int) -> Iterator[Round]:
        """Yield the constant classifier, unless it lowers the loss by nothing, and then trees, as long as they lower it."""
        backend, data, learner = problem.backend, problem.data, LayeredTree(self.max_depth)
        counts = leaf_counts(problem, self.min_weight_fraction_leaf, self.sampling)

        def project(coefficients: Floats) -> Stats:
            return state.projection(coefficients, counts)

        stats = state.statistics(counts)
        loss, t, is_first = state.loss(stats), n_rounds, n_rounds == 0
        while True:
            scope = WHOLE if is_first else self.sampling.draw(t, problem, stats)
            grown = constant(backend, data, stats) if is_first else learner(backend, data, stats, project, scope)
            lowers = grown.loss < stats.total
            if lowers or not scope.is_whole:  # where it was a part of all, another part may say more
                edge, total = int(abs(grown.right - grown.wrong).sum()), stats.total
                rate = 1.0 if is_first else self.learning_rate
                values = np.clip(rate * lowers * grown.coefficients, -MAX_STEP, MAX_STEP) * grown.tree.values
                added = grown.with_values(values)
                state.update([added])
                stats = state.statistics(counts)
                before, loss = loss, state.loss(stats)
                if rate > 2.0 and loss > before:  # up to twice the coefficients cannot raise the loss
                    return
                yield Round([added], loss, {"edge": edge / total})
                if edge == total:  # all that has a weight is right
                    return
                t += 1
            elif not is_first:
                return
            is_first = False

    def is_last_round(self, problem: Problem, state: ExponentialWeights, trees: Sequence[GrownTree], t: int) -> bool:
        return is_perfect(trees[0], problem.backend, state.statistics())


def cost_weights(problem: Problem, costs: Floats | None) -> ExponentialWeights:
    """Return the weights of the loss of section 4.3 before the first round."""
    initial = subcosts(problem.n_classes, costs)[problem.target] * problem.weight_scale[:, None]
    initial = np.where(initial > 0, np.maximum(initial, STATE_FLOOR), 0.0)
    return ExponentialWeights(problem, initial)


def subcosts(n_classes: int, costs: Floats | None) -> Floats:
    """Return the subcosts (section 4.3) of the rows of every class, up to a common power of two; (n_classes, n_classes).

    For a row of class y with the costs ``c = costs[y]`` they are ``sqrt(K - 1) / (2 |c|) c_k^2`` for each other class k, and
    ``|c| / (2 sqrt(K - 1))`` for y, which is 1/2 everywhere if all mistakes cost 1. A row that costs nothing has no weight.
    """
    if costs is None or n_classes == 1:
        return np.full((n_classes, n_classes), 0.5)
    root = np.sqrt(float(n_classes - 1))
    norm = np.sqrt(np.add.accumulate(costs * costs, axis=1)[:, -1:])
    others = root / (2.0 * np.where(norm > 0, norm, 1.0)) * (costs * costs)
    table = np.where(np.eye(n_classes, dtype=bool), norm / (2.0 * root), others)
    scaled: Floats = np.ldexp(table, -exponent(float(table.max())))
    return scaled

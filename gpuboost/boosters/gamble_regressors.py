"""GAMBLE with regressors of any kind: algorithm 1 of Huang, Ertekin, Song, Zha and Giles (2007).

Regressors are other people's code and add up floats, so such a model is outside of the promise of the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.class_trees import LabelWeights, centred
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.boosters.gamble import best_step
from gpuboost.learners.grown_tree import GrownTree


class Regression(Protocol):
    """Regression functions of several targets that have been fitted."""

    def predict(self, X: Any) -> Floats:
        """Return the values of the functions, shape (n_rows, n_targets)."""


class WeightedRegressor(Protocol):
    """What fits regression functions by weighted least squares, or as it likes."""

    def fit(self, X: Any, targets: Floats, weights: Floats, seed: Sequence[int]) -> Regression:
        """Fit the columns of ``targets`` (n_rows, n_targets) to X. The same seed asks for the same random choices."""


@dataclass(frozen=True)
class RegressionStep:
    """What a round adds to the model: ``g`` estimates the coding y of a row, ``h`` its square z.

    Attributes
    ----------
    g : Regression
        Of the n_classes coordinates of y; of the first of them for two classes, where the second is minus the first.
    h : Regression or None
        Of the coordinates of z. None for two classes, where they are 1 for every row.
    n_classes : int
        At least 2.
    learning_rate : float
    """

    g: Regression
    h: Regression | None
    n_classes: int
    learning_rate: float

    def values(self, X: Any) -> Floats:
        """Return what is added to the scores of the rows of X, shape (n_rows, n_classes) (lines 2b and 2c).

        Regressors other than trees leave the range of what they estimate, and h comes near 0 or below. So g, h and r are
        clipped to what they are for trees, which gives the bounds of result 3 to all regressors.
        """
        k = self.n_classes
        g = np.clip(self.g.predict(X), -1.0 / (k - 1), 1.0)
        h = 1.0 if self.h is None else np.clip(self.h.predict(X), (k - 1.0) ** -2, 1.0)
        r = np.minimum(k * (np.hstack([g, -g]) if self.h is None else g) / h, k)
        limit = MAX_STEP * (k - 1)  # as with trees
        return np.clip(self.learning_rate * centred(r), -limit, limit)


@dataclass(frozen=True)
class RegressionProblem(Problem):
    """A problem whose ``data`` are the features as numbers, and which is in the memory of the host."""

    def apply(self, tree: Any) -> GrownTree:
        """Evaluate a `RegressionStep`: every row has an index of its own."""
        outputs = tree.values(self.data)
        return EvaluatedStep(tree, np.arange(len(outputs), dtype=np.int32), outputs=outputs)


@dataclass(frozen=True)
class EvaluatedStep(GrownTree):
    """A `RegressionStep` in the place of a tree, with what it adds to the scores of every row."""

    outputs: Floats = field(kw_only=True)

    @cached_property
    def values(self) -> Floats:
        return self.outputs


@dataclass(frozen=True)
class GambleRegressors(Booster[LabelWeights]):
    """Algorithm 1 of the paper: two regressions a round, from which the quasi-Newton step is made.

    Attributes
    ----------
    g, h : WeightedRegressor
    learning_rate : float
        Multiplies the step; 1 is the paper's algorithm.
    seed : int
    line_search : bool
        Whether the step is shortened first, see `gpuboost.boosters.gamble.best_step`.
    """

    g: WeightedRegressor
    h: WeightedRegressor
    learning_rate: float
    seed: int
    line_search: bool = False

    def row_state(self, problem: Problem) -> LabelWeights:
        return LabelWeights(problem)

    def rounds(self, problem: Problem, state: LabelWeights, n_rounds: int) -> Iterator[Round]:
        n_classes = problem.n_classes
        if n_classes == 1:
            return
        for t in count(n_rounds):
            w = row_weights(state, problem)
            step = self.step(problem, w, t)
            if self.line_search:
                own = step.values(problem.data)[problem.signs > 0]
                step = replace(step, learning_rate=step.learning_rate * best_step(w, own / (n_classes - 1)))
            added = problem.apply(step)
            state.update([added])
            wrong = added.values.argmax(axis=1) != problem.target
            edge = float(1.0 - n_classes / (n_classes - 1) * w[wrong].sum() / w.sum())
            yield Round([added], state.loss(), {"edge": edge})

    def step(self, problem: Problem, weights: Floats, t: int) -> Any:
        """Fit both regressions of round t (line 2a).

        They get the same seed. z is y but for a factor and a constant, so trees have the same cuts in both, also those that are
        grown at random (theorem 3.2): g and h are two means of one leaf.
        """
        k, seed = problem.n_classes, (self.seed, t)
        y = np.where(problem.signs > 0, 1.0, -1.0 / (k - 1))
        if k == 2:
            return RegressionStep(self.g.fit(problem.data, y[:, :1], weights, seed), None, k, self.learning_rate)
        g, h = (one.fit(problem.data, target, weights, seed) for one, target in ((self.g, y), (self.h, y * y)))
        return RegressionStep(g, h, k, self.learning_rate)


def row_weights(weights: LabelWeights, problem: Problem) -> Floats:
    """Return the weights of the rows, whose sum is the number of rows, with their integer weights (line 2e).

    So regressors that penalise complexity get the total that they have without weights.
    """
    state: Floats = problem.backend.get(weights.state)
    w: Floats = problem.frequency_weight * state.sum(axis=1)
    w *= weights.n_rows / w.sum()
    return w

"""GAMBLE with regressors of any kind: algorithm 1 of Huang, Ertekin, Song, Zha and Giles (2007).

Regressors are other people's code and add up floats, so such a model is outside of the promise of the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Problem, Round, apply
from gpuboost.boosters.class_trees import LabelWeights, centred
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.boosters.gamble import best_step

Floats = NDArray[np.float64]


class Regression(Protocol):
    """Regression functions of several targets that have been fitted."""

    def predict(self, X: Any) -> Floats:
        """Return the values of the functions, shape (n_rows, n_targets)."""
        ...


class WeightedRegressor(Protocol):
    """What fits regression functions by weighted least squares, or as it likes."""

    def fit(self, X: Any, targets: Floats, weights: Floats, seed: Sequence[int]) -> Regression:
        """Fit the columns of ``targets`` (n_rows, n_targets) to X. The same seed asks for the same random choices."""
        ...


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

    def outputs(self, tree: Any) -> tuple[Device, Floats]:
        """Return the outputs of a `RegressionStep`: every row is a group of its own."""
        values = tree.values(self.data)
        return np.arange(len(values), dtype=np.int32), values


@dataclass(frozen=True)
class GambleRegressors:
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

    def rounds(self, problem: Problem, initial_rounds: Sequence[Sequence[Any]]) -> Iterator[Round]:
        weights, label = LabelWeights(problem), problem.signs.argmax(axis=1)
        for steps in initial_rounds:
            weights.update([apply(step, problem) for step in steps])
        if problem.signs.shape[1] == 1:
            return
        for t in count(len(initial_rounds)):
            w = row_weights(weights, problem)
            step, n_classes = self.step(problem, w, t), problem.signs.shape[1]
            if self.line_search:
                own = step.values(problem.data)[problem.signs > 0]
                step = replace(step, learning_rate=step.learning_rate * best_step(w, own / (n_classes - 1)))
            part = apply(step, problem)
            weights.update([part])
            wrong = part.values.argmax(axis=1) != label
            edge = float(1.0 - n_classes / (n_classes - 1) * w[wrong].sum() / w.sum())
            yield Round([part], weights.loss(), {"edge": edge})

    def step(self, problem: Problem, weights: Floats, t: int) -> Any:
        """Fit both regressions of round t (line 2a).

        They get the same seed. z is y but for a factor and a constant, so trees have the same cuts in both, also those that are
        grown at random (theorem 3.2): g and h are two means of one leaf.
        """
        k, seed = problem.signs.shape[1], (self.seed, t)
        y = np.where(problem.signs > 0, 1.0, -1.0 / (k - 1))
        if k == 2:
            return RegressionStep(self.g.fit(problem.data, y[:, :1], weights, seed), None, k, self.learning_rate)
        g, h = (one.fit(problem.data, target, weights, seed) for one, target in ((self.g, y), (self.h, y * y)))
        return RegressionStep(g, h, k, self.learning_rate)


def row_weights(weights: LabelWeights, problem: Problem) -> Floats:
    """Return the weights of the rows, whose sum is the number of rows, repeats included (line 2e).

    So regressors that penalise complexity get the total that they have without weights.
    """
    state: Floats = problem.backend.get(weights.state)
    w: Floats = problem.frequency_weight * state.sum(axis=1)
    w *= weights.n_rows / w.sum()
    return w

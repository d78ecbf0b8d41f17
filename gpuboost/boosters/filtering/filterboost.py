"""FilterBoost, FilterBoost.M2 and FilterBoost.OC (Bradley 2008): boosting on fresh rows that pass a filter."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.boosters.base import Booster, Metric, Problem, Round
from gpuboost.boosters.colouring import Colouring
from gpuboost.boosters.filtering.draw import Draw, LeafSums, Rows
from gpuboost.boosters.filtering.edges import TargetError, coefficient, share_of_round
from gpuboost.boosters.filtering.estimates import ESTIMATORS, Estimate, by_filtering, by_weighting
from gpuboost.boosters.filtering.examples import Oracle, StreamEnd
from gpuboost.boosters.filtering.leaf_values import confidence_values, newton_values, of_colours
from gpuboost.boosters.filtering.score_state import ScoreState
from gpuboost.boosters.filtering.weak_learners import WeakLearner
from gpuboost.errors import StreamError
from gpuboost.exactmath import log
from gpuboost.learners.base import VotingTree
from gpuboost.learners.grown_tree import GrownTree

PAPER_SMOOTHING, FRESH_SMOOTHING = 1e-6, 0.01
MOST_COMPLETE = 1 << 19
"""Newton steps are those of at most so many of the rows among which a round finds its training rows, and of none twice."""


@dataclass(frozen=True)
class Schedule:
    """How many rows a round takes: ``scale * ln(t + 1)``, or always ``scale``, or what a function of t says."""

    scale: int | Callable[[int], int]
    logarithmic: bool = True

    def __call__(self, t: int) -> int:
        if callable(self.scale):
            n = self.scale(t)
            if not isinstance(n, (int, np.integer)) or isinstance(n, bool) or n < 1:
                raise ValueError(f"the number of rows of round {t} must be an integer of at least 1, got {n!r}")
            return int(n)
        return max(1, round(self.scale * float(log(t + 1)))) if self.logarithmic else self.scale


@dataclass
class FilterBoost(Booster[ScoreState]):
    """Algorithms 1 and 4 of the paper, and 7 with a learner of colours. Two classes are algorithm 1.

    Attributes
    ----------
    examples : Oracle
        Where the rows come from.
    learner : WeakLearner
    n_train, n_estimate : Schedule
        The rows that a round trains on and those by which it estimates its edge (section 2.5).
    leaf_values : {"vote", "paper", "fresh", "newton"}
    learning_rate : float
        Of Newton steps.
    filtering : bool
        Whether rows pass a filter to be trained on; else all are trained on, with their weights.
    estimate : {"weighting", "egbstop", "nas"}
        How the edge is estimated.
    tau, delta, epsilon : float
        The relative error of edges, the probability of a wrong proof, and the error to be proven (None: no proof).
    recycle : bool
        Whether a source that fails takes the training with it; else the rounds so far are the model.
    """

    examples: Oracle
    learner: WeakLearner
    n_train: Schedule
    n_estimate: Schedule
    leaf_values: str = "vote"
    learning_rate: float = 1.0
    filtering: bool = True
    estimate: str = "weighting"
    tau: float = 0.2
    delta: float = 0.05
    epsilon: float | None = None
    recycle: bool = True

    def row_state(self, problem: Problem) -> ScoreState:
        return ScoreState(problem)

    def rounds(self, problem: Any, state: Any, n_rounds: int) -> Iterator[Round]:
        for t in itertools.count(n_rounds + 1):
            try:
                yield self.one_round(t)
            except StreamEnd as end:
                self.ended = str(end)
                return
            except StreamError as error:
                if self.recycle or t == n_rounds + 1:
                    raise
                self.ended = f"the source failed: {error}"
                return

    def one_round(self, t: int) -> Round:
        examples, colouring = self.examples, self.learner.colouring(t)
        delta = share_of_round(self.delta, t)  # line 2
        target = None if self.epsilon is None else TargetError(self.epsilon, delta, examples.n_classes)
        trained = self.training_rows(t, colouring, target)
        rows = trained.chosen.normalised(colouring) if self.filtering else trained.chosen
        weak = self.learner.fit(examples.backend, examples.mapper, rows, colouring)  # line 3
        fresh = self.edge_estimate(t, weak, delta, target)  # line 4
        values = self.values(weak, colouring, trained, fresh)  # line 5
        seen = fresh.seen.add(trained.parts)
        now = seen.tally(examples.n_classes)
        grown = GrownTree(weak.with_values(values).tree, None)
        examples.add(grown.tree)
        metrics: dict[str, Metric] = {
            "edge": fresh.edge,
            "edge_deviation": fresh.deviation,
            "acceptance": now.label_weight / (examples.n_classes - 1),
            "bound": 2 * now.label_weight,  # theorems 2 and 8: the error of the rounds before is at most that
            "draws": float(seen.n_rows),
            "train_error": now.error,
            **dict(zip(("pass", "row"), map(float, examples.place), strict=True)),  # where the next round begins
        }
        return Round([grown], now.loss, metrics)

    def training_rows(self, t: int, colouring: Colouring | None, target: TargetError | None) -> Draw:
        if not self.filtering:
            return self.examples.all(self.n_train(t))
        n_complete = MOST_COMPLETE if self.leaf_values == "newton" else 0
        return self.examples.accepted(
            self.n_train(t), lambda q, y: self.learner.numerators(q, y, colouring), target, n_complete
        )

    def edge_estimate(self, t: int, weak: VotingTree, delta: float, target: TargetError | None) -> Estimate:
        if self.estimate == "weighting":
            return by_weighting(self.examples, weak, self.n_estimate(t))
        return by_filtering(self.examples, weak, ESTIMATORS[self.estimate](self.tau, delta), self.tau, target)

    def values(self, weak: VotingTree, colouring: Colouring | None, trained: Draw, fresh: Estimate) -> Floats:
        """Return what the leaves add to the scores: their differences are ``alpha h`` with two classes."""
        if self.leaf_values == "vote":
            return 0.5 * coefficient(fresh.edge) * weak.tree.values
        if self.leaf_values == "newton":
            sums = self.sums(together(trained.all if self.filtering else trained.chosen, fresh.rows), weak, colouring)
            return of_colours(newton_values(sums, self.learning_rate), colouring)
        if self.leaf_values == "fresh":
            assert fresh.rows is not None
            return of_colours(confidence_values(self.sums(fresh.rows, weak, colouring), FRESH_SMOOTHING), colouring)
        rows = trained.chosen.normalised(colouring) if self.filtering else trained.chosen
        return of_colours(confidence_values(self.sums(rows, weak, colouring), PAPER_SMOOTHING), colouring)

    def sums(self, rows: Rows, weak: VotingTree, colouring: Colouring | None) -> LeafSums:
        leaf_index = rows.leaf_index(self.examples.backend, weak.tree)
        return rows.leaf_sums(leaf_index, weak.tree.n_leaves, colouring, curved=self.leaf_values == "newton")


def together(rows: Rows, more: Rows | None) -> Rows:
    """Return the rows of two draws."""
    if more is None:
        return rows
    return Rows([*rows.parts, *more.parts], [*rows.index, *more.index], np.concatenate([rows.q, more.q]))

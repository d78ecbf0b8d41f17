"""The model of a data set whose columns say nothing: a single constant tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpuboost.array_types import Floats
from gpuboost.boosters.base import Booster, Metric, Problem, Round, RowState


@dataclass(frozen=True)
class PriorBooster(Booster[RowState]):
    """A booster of one round that gives every row the same scores.

    Attributes
    ----------
    booster : Booster
        The algorithm that it stands in for; the loss is that one's.
    scores : ndarray of float64, shape (n_classes,)
    metrics : dict
        What is noted of its round.
    """

    booster: Booster[Any]
    scores: Floats
    metrics: Mapping[str, Metric]

    def row_state(self, problem: Problem) -> RowState:
        state: RowState = self.booster.row_state(problem)
        return state

    def rounds(self, problem: Problem, state: RowState, n_rounds: int) -> Iterator[Round]:
        if n_rounds == 0:
            trees = [problem.constant(self.scores)]
            state.update(trees)
            yield Round(trees, state.loss(), dict(self.metrics))

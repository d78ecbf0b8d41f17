"""The model of a data set whose columns say nothing: a single constant tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.boosters.base import Booster, Metric, Problem, Round, RowState, apply
from gpuboost.tree import Tree, constant_tree


@dataclass(frozen=True)
class PriorBooster:
    """A booster of one round that gives every row the same scores.

    Attributes
    ----------
    booster : Booster
        The algorithm that it stands in for; the loss is that one's.
    scores : ndarray of float64, shape (n_classes,)
    metrics : dict
        What is noted of its round.
    """

    booster: Booster
    scores: NDArray[np.float64]
    metrics: Mapping[str, Metric]

    def row_state(self, problem: Problem) -> RowState:
        return self.booster.row_state(problem)

    def rounds(self, problem: Problem, initial_rounds: Sequence[Sequence[Tree]]) -> Iterator[Round]:
        if initial_rounds:
            return
        parts = [apply(constant_tree(self.scores), problem)]
        state = self.row_state(problem)
        state.update(parts)
        yield Round(parts, state.loss(), dict(self.metrics))

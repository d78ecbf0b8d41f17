"""The model of a data set whose columns say nothing: a single constant tree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.boosters.base import Booster, Problem, Round, RowState
from gpuboost.tree import Tree, constant_tree


@dataclass(frozen=True)
class PriorBooster:
    """A booster of one round that gives every row the same scores.

    Attributes
    ----------
    booster : Booster
        The algorithm that it stands in for; the loss is that one's.
    scores : ndarray of float64, shape (n_classes,)
    """

    booster: Booster
    scores: NDArray[np.float64]

    def row_state(self, problem: Problem) -> RowState:
        return self.booster.row_state(problem)

    def rounds(self, problem: Problem, trees: Sequence[Tree]) -> Iterator[Round]:
        if trees:
            return
        tree = constant_tree(self.scores)
        group = problem.backend.apply(tree, problem.data)
        state = self.row_state(problem)
        state.update(group, tree.values)
        yield Round(tree, 0.0, state.loss(), group, tree.values)

"""The loss of an evaluation set: its rows keep their scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuboost.backends.label_weights import LOSS_BITS
from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Problem
from gpuboost.learners.grown_tree import GrownTree


class ScoreState:
    """The scores of a set's rows, and the logistic loss that they make."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.target = problem, problem.target.astype(np.int64)
        self.scores: Device = problem.backend.put(np.zeros((len(problem.target), problem.n_classes)))

    def update(self, trees: Sequence[GrownTree]) -> None:
        for grown in trees:
            self.problem.backend.add_scores(self.scores, grown.leaf_index, grown.values)

    def loss(self) -> float:
        """Return the mean loss of a row and a wrong label in bits, 1 for an empty model. Made of integer sums."""
        problem = self.problem
        losses = problem.backend.weigh_labels(self.scores, self.target, "logistic", 0, len(self.target)).loss
        weights = problem.integer_weights
        total = sum((losses.astype(object) * weights).tolist())
        return float(total / (int(weights.sum()) * max(problem.n_classes - 1, 1) << LOSS_BITS))

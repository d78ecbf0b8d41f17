"""A template to copy for a paper of your own: Gentle AdaBoost.MH (Friedman, Hastie and Tibshirani 2000) on Hamming trees.

README.md beside this file walks through the five steps. A booster uses a device through the primitives of
`gpuboost.backends.base.Backend` alone, and so runs on all of them.

J. Friedman, T. Hastie and R. Tibshirani, "Additive logistic regression: a statistical view of boosting", Annals of Statistics
28, 2000.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.exponential import ExponentialWeights
from gpuboost.learners.hamming_tree import HammingTree


@dataclass(frozen=True)
class GentleAdaBoostMH(Booster[ExponentialWeights]):
    """Gentle AdaBoost (algorithm 4 of the paper) on the pairs of a row and a class, as in AdaBoost.MH (algorithm 5).

    A round's tree serves all classes. Its leaves have the values of algorithm 4, those of weighted least squares. Its cuts are
    those of Kegl's Hamming trees, where the paper grows a regression tree of least squares.

    Attributes
    ----------
    max_leaf_nodes : int
        Leaves of a tree, at least 2. A tree of 2 is a stump.
    """

    max_leaf_nodes: int

    def row_state(self, problem: Problem) -> ExponentialWeights:
        # 1. The row state, what is remembered of the rows: w[i, l] = exp(-y_il F_l(x_i)), times the sample weight. All pairs
        #    weigh the same at first (algorithm 5, step 1). Evaluation sets get a state as well, for their loss.
        initial = np.ones(problem.signs.shape) * problem.weight_scale[:, None]
        return ExponentialWeights(problem, initial)

    def rounds(self, problem: Problem, state: ExponentialWeights, n_rounds: int) -> Iterator[Round]:
        # The state has the first n_rounds rounds already: those of a model that is continued.
        backend, data, learner = problem.backend, problem.data, HammingTree(self.max_leaf_nodes)
        stats = state.statistics()
        while True:
            # 2. The weak learner: from the weights, as integers, to a tree. Where it finds no edge, nothing is left to learn.
            weak = learner(backend, data, stats)
            if weak.edge == 0:
                return
            edge = weak.edge / stats.total

            # 3. The values that the leaves add to the scores, of the exact sums of their rows' weights.
            added = weak.with_values(gentle_values(*weak.leaf_sums(backend, stats)))

            # 4. Reweight: few leaves have few multipliers, which the host computes and the device looks up.
            state.update([added])
            stats = state.statistics()

            # 5. Yield the round: its trees, the loss after it, and metrics for the history.
            yield Round([added], state.loss(stats), {"edge": edge})


def gentle_values(sums: NDArray[np.int64], sum_abs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weighted mean of y in each leaf (algorithm 4, step 2a), ``(W+ - W-) / (W+ + W-)``; 0 without weight.

    Parameters
    ----------
    sums, sum_abs : ndarray of int64, shape (n_leaves, n_classes)
        ``W+ - W-`` and ``W+ + W-``, W+ being the weight of a leaf's rows of the class, W- that of the other ones.

    Returns
    -------
    ndarray of float64, shape (n_leaves, n_classes)
        In [-1, 1]. None of them raises the loss, which in a leaf falls to ``cosh f - f sinh f`` of what it was.
    """
    values: NDArray[np.float64] = sums / np.maximum(sum_abs, 1)
    return values

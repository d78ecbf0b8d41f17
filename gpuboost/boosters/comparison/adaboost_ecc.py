"""AdaBoost.OC (Schapire 1997) and AdaBoost.ECC (Guruswami and Sahai 1999): a round is a binary tree for two groups of classes.

R. Schapire, "Using output codes to boost multiclass learning problems", ICML 1997. V. Guruswami and A. Sahai, "Multiclass
learning, boosting, and error-correcting codes", COLT 1999.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.frontier import GrowthScope
from gpuboost.backends.statistics import Stats
from gpuboost.boosters.adaboost_mh import pseudo_weights
from gpuboost.boosters.base import Problem
from gpuboost.boosters.colouring import Colourings
from gpuboost.boosters.comparison.adaboost_mr import AdaBoostMR
from gpuboost.boosters.exponential import MAX_STEP, ExponentialWeights
from gpuboost.boosters.leaf_counts import leaf_counts
from gpuboost.exactmath import log
from gpuboost.learners.base import VotingTree
from gpuboost.learners.hamming_tree import HammingTree


@dataclass(frozen=True)
class ColourTree(VotingTree):
    """A binary tree ``h(x)`` for the colouring ``mu``, with the votes ``mu_l h(x)`` for the classes.

    Attributes
    ----------
    colours : ndarray of float64, shape (n_classes,)
        ``mu``.
    right, wrong : ndarray of int64, shape (n_leaves, 1)
        The weight of a leaf's rows whose class has the colour +1, and -1. A row weighs as much as its pairs of two colours.
    """

    colours: Floats = field(kw_only=True)
    right: IntArray = field(kw_only=True)
    wrong: IntArray = field(kw_only=True)


@dataclass(frozen=True)
class AdaBoostECC(AdaBoostMR):
    """The loop of AdaBoost.MR with trees for colourings.

    The tree of a round tells the colours of the rows' classes apart; a row weighs ``sum_l D(i, l) [mu_l != mu_y]`` (step 2 of
    figure 2 of Schapire 1997).

    Attributes
    ----------
    colourings : Colourings
    kind : {"oc", "ecc", "leaf"}
        What a tree's votes are multiplied by. "oc": one coefficient, that of AdaBoost.MR, which is that of the pseudo-loss of
        AdaBoost.OC. "ecc": one for each of the two votes, the minimisers of the loss, ``1/2 ln(W+ / W-)`` over all leaves with
        that vote. "leaf": one for each leaf, as in AdaBoost.MH's real variant.
    """

    colourings: Colourings = field(kw_only=True)
    kind: Literal["oc", "ecc", "leaf"] = "ecc"

    def weak_classifier(
        self, t: int, problem: Problem, state: ExponentialWeights, stats: Stats, scope: GrowthScope
    ) -> ColourTree:
        backend, colours = problem.backend, self.colourings.of_round(t + 1).astype(np.float64)
        counts = leaf_counts(problem, self.min_weight_fraction_leaf, self.sampling)
        projected = state.projection(colours, counts)
        binary = super().weak_classifier(t, problem, state, projected, scope)
        sums, sum_abs = binary.leaf_sums(backend, projected)
        votes = binary.tree.values * colours
        grown = replace(binary.with_values(votes), sums=None)
        edge = int((votes.astype(np.int64) * grown.leaf_sums(backend, stats)[0]).sum())  # of all pairs, for "oc"
        return ColourTree(
            grown.tree,
            grown.leaf_index,
            grown.leaf_of_index,
            edge=max(edge, 0),  # below 0 by rounding alone
            colours=colours,
            right=(sum_abs + sums) // 2,
            wrong=(sum_abs - sums) // 2,
        )

    def may_find_more(self, problem: Problem, stats: Stats, scope: GrowthScope) -> bool:
        """Whether there is an edge for any colouring: if there is one for votes that are free for every class."""
        return not scope.is_whole or HammingTree(2)(problem.backend, problem.data, stats).edge > 0

    def coefficients(self, weak: VotingTree, stats: Stats, problem: Problem) -> Floats:
        assert isinstance(weak, ColourTree)
        if self.kind == "oc":
            return super().coefficients(weak, stats, problem)
        right, wrong = weak.right, weak.wrong
        more_right, more_wrong = pseudo_weights(right.sum(axis=0), wrong.sum(axis=0))
        if self.kind == "ecc":
            vote = (weak.tree.values[:, :1] * weak.colours[0] > 0).astype(np.intp)[:, 0]
            right, wrong = (np.stack([side[vote == v].sum(axis=0) for v in (0, 1)])[vote] for side in (right, wrong))
        values = 0.5 * log((right + more_right) / (wrong + more_wrong)) * weak.colours
        step: Floats = np.clip(self.learning_rate * values, -MAX_STEP, MAX_STEP)
        return step

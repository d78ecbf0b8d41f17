"""What a weak learner hands to a booster of votes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.tree import Tree


@dataclass(frozen=True)
class VotingTree(GrownTree):
    """A vector-valued classifier ``h(x)`` in {-1, +1}^K, before it gets a coefficient: the leaf values are the votes.

    Attributes
    ----------
    edge : int
        ``sum_il w_il h_l(x_i) y_il`` (eq. 11), in units of the statistics.
    """

    edge: int = field(kw_only=True)


class Learner(Protocol):
    """A weak learner: statistics in, classifier out."""

    def __call__(self, backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> VotingTree:
        """Find a classifier on the rows and features of ``scope``; its edge and its leaves are those of all rows."""


def on_all_rows(tree: Tree, backend: Backend, data: Device, stats: Stats) -> VotingTree:
    """Return a classifier that was found on some rows with its edge on all; if that is negative, it votes the other way."""
    leaf_index = backend.apply(tree, data)
    sums = backend.leaf_sums(stats, leaf_index, tree.n_leaves)
    edge = int((tree.values.astype(np.int64) * sums[0]).sum())
    if edge < 0:
        tree, edge = replace(tree, values=-tree.values), -edge
    return VotingTree(tree, leaf_index, sums=sums, edge=edge)

"""Trees whose leaves vote for one class (the "single-label trees" of table 1 of Kegl 2014)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.base import VotingTree
from gpuboost.learners.class_tree import ClassTree


@dataclass(frozen=True)
class SingleLabelTree:
    """A classification tree whose leaves vote for one class and against all others, ``h(x)`` with a single +1.

    It is grown as `ClassTree` is. A leaf votes for the class with the largest class-wise edge, the first of equals: among all
    such votes they have the largest edge, ``2 max_l gamma_l - sum_l gamma_l`` in a leaf. Where that is not positive over all
    leaves, the tree is no better than chance, and has the edge 0.
    """

    max_leaf_nodes: int

    def __call__(
        self, backend: Backend, data: Device, stats: Stats, row_stats: Stats, scope: GrowthScope = WHOLE
    ) -> VotingTree:
        """Grow a tree on the rows and features of ``scope``; its edge and its leaves are those of all rows.

        ``stats`` are signed weights of the rows and classes, ``row_stats`` the weight of a row in the channel of its class.
        """
        grown = ClassTree(self.max_leaf_nodes)(backend, data, row_stats, scope)
        sums = replace(grown, sums=None).leaf_sums(backend, stats)
        chosen = sums[0].argmax(axis=1)[:, None] == np.arange(stats.n_classes)
        edge = int(2 * sums[0].max(axis=1).sum() - sums[0].sum())
        tree = grown.with_values(np.where(chosen, 1.0, -1.0)).tree
        return VotingTree(tree, grown.leaf_index, grown.leaf_of_index, sums=sums, edge=max(edge, 0))

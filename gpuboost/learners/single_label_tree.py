"""Trees whose leaves vote for one class (the "single-label trees" of table 1 of Kegl 2014)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.base import VotingTree
from gpuboost.learners.hamming_tree import HammingTree


@dataclass(frozen=True)
class SingleLabelTree:
    """A tree whose leaves vote for one class and against all others, ``h(x)`` with a single +1.

    It is cut as a Hamming tree is. A leaf votes for the class with the largest class-wise edge, the first of equals: among all
    such votes they have the largest edge, ``2 max_l gamma_l - sum_l gamma_l`` in a leaf. Where that is not positive over all
    leaves, the tree is no better than chance, and has the edge 0.
    """

    max_leaf_nodes: int

    def __call__(self, backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> VotingTree:
        grown = HammingTree(self.max_leaf_nodes)(backend, data, stats, scope)
        sums, sum_abs = grown.leaf_sums(backend, stats)
        chosen = sums.argmax(axis=1)[:, None] == np.arange(stats.n_classes)
        edge = int(2 * sums.max(axis=1).sum() - sums.sum())
        voting = grown.with_values(np.where(chosen, 1.0, -1.0))
        return replace(voting, sums=(sums, sum_abs), edge=max(edge, 0))

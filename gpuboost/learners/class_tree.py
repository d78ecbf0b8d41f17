"""Class trees: best-first by the weighted Gini impurity, for boosters that give the leaves their values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import GAIN, WHOLE, GrowthScope, as_float
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.grown_tree import GrownTree, to_tree
from gpuboost.learners.growth import grow


@dataclass(frozen=True)
class ClassTree:
    """Splits the leaf whose split lowers the weighted Gini impurity the most, up to ``max_leaf_nodes`` leaves.

    That is the tree of least squares on a coding of the classes that is the same for all of them (section 3.3 of the GAMBLE
    paper), and the classification tree of SAMME. With the criterion "entropy" the weighted entropy takes the impurity's place.
    """

    max_leaf_nodes: int
    criterion: Literal["gini", "entropy"] = "gini"

    def __call__(self, backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> GrownTree:
        """Grow a tree on the rows and features of ``scope``; the sums of its leaves are of all rows. Its leaf values are 0.

        The statistics have one channel per class and no negative entry.
        """
        stats = replace(stats, criterion=self.criterion)
        max_leaf_nodes = min(self.max_leaf_nodes, data.n_rows + 1)  # more leaves than rows are never made
        frontier = grow(backend, data, stats, max(max_leaf_nodes, 2), scope)
        leaf_index = backend.node_of_rows(frontier)[0] if scope.sample_indices is None else None
        nodes = backend.read_nodes(frontier)[0][0]
        gain = as_float(np.ascontiguousarray(nodes[:, GAIN]))
        tree, leaf_of_node = to_tree(nodes, np.zeros((len(nodes), stats.n_classes)), gain, stats.total)
        grown = GrownTree(tree, backend.apply(tree, data)) if leaf_index is None else GrownTree(tree, leaf_index, leaf_of_node)
        return replace(grown, sums=grown.leaf_sums(backend, stats))

"""Class trees: best-first by the weighted Gini impurity, for boosters that give the leaves their values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import GAIN, WHOLE, GrowthScope, as_float
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.growth import grow
from gpuboost.learners.structure import structure
from gpuboost.tree import Tree


@dataclass(frozen=True)
class GrownTree:
    """A tree without values, and what is in its leaves.

    Attributes
    ----------
    tree : Tree
        Its leaf values are 0.
    leaf_index : device array of int, shape (n_rows,)
        Where each row has arrived.
    leaf : ndarray of int64, shape (n_groups,)
        The tree's leaf of each group (0 for groups that hold no rows).
    sums : ndarray of int64, shape (n_leaves, n_classes)
        The weight of every class in every leaf, in units of the statistics.
    """

    tree: Tree
    leaf_index: Device
    leaf: NDArray[np.int64]
    sums: NDArray[np.int64]


@dataclass(frozen=True)
class ClassTree:
    """Cuts the leaf whose cut lowers the weighted Gini impurity the most, up to ``max_leaf_nodes`` leaves.

    That is the tree of least squares on a coding of the classes that is the same for all of them (section 3.3 of the GAMBLE
    paper), and the classification tree of SAMME.
    """

    max_leaf_nodes: int

    def __call__(self, backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> GrownTree:
        """Grow a tree on the rows and features of ``start``; what is in its leaves is of all rows.

        The statistics have the criterion "gini" and one channel per class.
        """
        max_leaf_nodes = min(self.max_leaf_nodes, stats.quantised.shape[1] + 1)  # more leaves than rows are never made
        frontier = grow(backend, data, stats, max(max_leaf_nodes, 2), scope)
        leaf_index = backend.node_of_rows(frontier)[0] if scope.sample_indices is None else None
        nodes = backend.read_nodes(frontier)[0][0]
        gain = as_float(np.ascontiguousarray(nodes[:, GAIN]))
        found = structure(nodes, np.zeros((len(nodes), stats.n_classes)), gain, stats.total)
        tree, leaf = found.tree, found.leaf
        if leaf_index is None:
            leaf_index, leaf = backend.apply(tree, data), np.arange(tree.n_leaves)
        by_index, _ = backend.leaf_sums(stats, leaf_index, len(leaf))
        sums = np.zeros(tree.values.shape, np.int64)
        np.add.at(sums, leaf, by_index)
        return GrownTree(tree, leaf_index, leaf, sums)

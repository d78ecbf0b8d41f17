"""Regression trees on first and second derivatives, a batch at a time: one for each class, or pair of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import GAIN, WHOLE, GrowthScope, as_float
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.grown_tree import GrownTree, to_tree
from gpuboost.learners.growth import grow


@dataclass(frozen=True)
class NewtonTrees:
    """A batch of grown trees.

    Attributes
    ----------
    leaf_indices : device array of int, shape (n_trees, n_rows)
        Where each row has arrived in each tree.
    gradient, curvature : ndarray of int64, shape (n_trees, n_indices)
        The sums of the first and the last of the statistics' channels (but for the counts) over the rows with each index.
    index_of_node : ndarray of int64, shape (n_trees, n_nodes)
        The index of the rows of each node that is a leaf.
    nodes : ndarray of int64, shape (n_trees, n_nodes, 10)
        See `gpuboost.backends.frontier.Frontier`.
    """

    leaf_indices: Device
    gradient: NDArray[np.int64]
    curvature: NDArray[np.int64]
    index_of_node: NDArray[np.int64]
    nodes: NDArray[np.int64]

    def tree(self, t: int, values: NDArray[np.float64], unit: float) -> GrownTree:
        """Return tree t.

        Parameters
        ----------
        t : int
        values : ndarray of float64, shape (n_indices, n_classes)
            What the rows with each index get.
        unit : float
            What the statistics' gain of 1 is in the tree's.
        """
        gain = as_float(np.ascontiguousarray(self.nodes[t, :, GAIN])) * unit
        tree, leaf_of_node = to_tree(self.nodes[t], values[self.index_of_node[t]], gain, 1)
        leaf_of_index = np.zeros(len(values), np.int64)
        leaf_of_index[self.index_of_node[t]] = leaf_of_node
        return GrownTree(tree, self.leaf_indices[t], leaf_of_index)


def grow_newton_trees(
    backend: Backend, data: Device, stats: Stats, max_leaf_nodes: int, scope: GrowthScope = WHOLE
) -> NewtonTrees:
    """Grow a batch of trees best-first by the criterion "newton", each to at most ``max_leaf_nodes`` leaves.

    They are grown on the rows and features of ``scope``; what is in their leaves is of all rows.
    """
    frontier = grow(backend, data, stats, max(2, min(max_leaf_nodes, data.n_rows + 1)), scope)
    if scope.sample_indices is not None:
        return with_all_rows(backend, data, stats, backend.read_nodes(frontier)[0].copy())
    leaf_indices = backend.node_of_rows(frontier)
    nodes, totals = backend.read_totals(frontier)
    names = np.tile(np.arange(nodes.shape[1]), (len(nodes), 1))
    return NewtonTrees(leaf_indices, totals[:, :, 0].copy(), totals[:, :, stats.n_classes - 1].copy(), names, nodes.copy())


def with_all_rows(backend: Backend, data: Device, stats: Stats, nodes: NDArray[np.int64]) -> NewtonTrees:
    """Let all rows go through trees that were grown from some. An index is a leaf."""
    (n_trees, n_nodes), leaf_indices = nodes.shape[:2], []
    leaves, sums = np.zeros((n_trees, n_nodes), np.int64), np.zeros((2, n_trees, n_nodes // 2 + 1), np.int64)
    for t in range(n_trees):
        tree, leaves[t] = to_tree(nodes[t], np.zeros((n_nodes, 1)), np.zeros(n_nodes), 1)
        leaf_indices.append(backend.apply(tree, data))
        of_leaf, _ = backend.leaf_sums(stats.of_tree(t), leaf_indices[t], tree.n_leaves)
        sums[:, t, : tree.n_leaves] = of_leaf[:, [0, -1]].T
    return NewtonTrees(backend.stack(leaf_indices), sums[0], sums[1], leaves, nodes)

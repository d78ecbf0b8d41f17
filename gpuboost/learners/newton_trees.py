"""Regression trees on first and second derivatives, a batch at a time: one for each class, or pair of classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import GAIN, Backend, Device, Stats, as_float
from gpuboost.learners.growth import grow
from gpuboost.learners.structure import structure
from gpuboost.tree import Tree


@dataclass(frozen=True)
class NewtonTrees:
    """A batch of grown trees.

    Attributes
    ----------
    groups : device array of int, shape (n_trees, n_rows)
        The node of each tree in which each row has arrived.
    gradient, curvature : ndarray of int64, shape (n_trees, n_nodes)
        The sums of the first and the last of the statistics' channels (but for the counts) over the rows of every node.
    nodes : ndarray of int64, shape (n_trees, n_nodes, 10)
        See `gpuboost.backends.base.Frontier`.
    """

    groups: Device
    gradient: NDArray[np.int64]
    curvature: NDArray[np.int64]
    nodes: NDArray[np.int64]

    def tree(self, t: int, values: NDArray[np.float64], unit: float) -> Tree:
        """Return tree t.

        Parameters
        ----------
        t : int
        values : ndarray of float64, shape (n_nodes, n_classes)
            What each node gives the rows that stay in it.
        unit : float
            What the statistics' gain of 1 is in the tree's.
        """
        gain = as_float(np.ascontiguousarray(self.nodes[t, :, GAIN])) * unit
        return structure(self.nodes[t], values, gain, 1).tree


def grow_newton_trees(backend: Backend, data: Device, stats: Stats, max_leaf_nodes: int) -> NewtonTrees:
    """Grow a batch of trees best-first by the criterion "newton", each to at most ``max_leaf_nodes`` leaves."""
    frontier = grow(backend, data, stats, max(2, min(max_leaf_nodes, stats.q.shape[1] + 1)))
    groups = backend.node_of_rows(frontier)
    nodes, totals = backend.read_nodes(frontier)[0], backend.read_totals(frontier)
    return NewtonTrees(groups, totals[:, :, 0].copy(), totals[:, :, stats.n_classes - 1].copy(), nodes.copy())

"""Multi-class Hamming trees and, as trees of two leaves, decision stumps (section 3 and appendix B of Kegl 2014)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import GAIN, LEFT, WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.base import VotingTree, on_all_rows
from gpuboost.learners.grown_tree import to_tree
from gpuboost.learners.growth import grow


@dataclass(frozen=True)
class HammingTree:
    """The Hamming tree learner of figure 2: best-first, at most ``max_leaf_nodes - 1`` inner nodes.

    An inner node keeps only its cut; a leaf votes ``-v`` (left) or ``+v`` (right) of the node above it (equation of section 3),
    where v are the signs of the class-wise edges (eq. 13). A stump is the tree with two leaves.
    """

    max_leaf_nodes: int

    def __call__(self, backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> VotingTree:
        # Every row can have a leaf of its own, and every leaf votes of its own: more inner nodes than that are never made.
        max_leaf_nodes = min(self.max_leaf_nodes, 2 * data.n_rows + 1)
        frontier = grow(backend, data, stats, max_leaf_nodes, scope)
        leaf_index = backend.node_of_rows(frontier)[0] if scope.sample_indices is None else None
        nodes, edges = backend.read_nodes(frontier)
        weak = voting_tree(nodes[0], edges[0, :, : stats.n_classes], leaf_index, stats.total)
        return weak if scope.sample_indices is None else on_all_rows(weak.tree, backend, data, stats)


def voting_tree(nodes: NDArray[np.int64], edges: NDArray[np.int64], leaf_index: Device, total: int) -> VotingTree:
    """Turn a grown node table into a `VotingTree`.

    Parameters
    ----------
    nodes, edges : ndarray of int64, shapes (M, 10) and (M, n_classes)
        One tree of a `Frontier`, on the host, without the channel of the counts.
    leaf_index : device array
        The node of every row.
    total : int
        The total weight, in units.
    """
    left, gain = nodes[:, LEFT], nodes[:, GAIN]
    votes = np.where(edges > 0, 1.0, -1.0)  # eq. 13: 0 votes against
    inner = np.flatnonzero(left)
    below = left[inner]
    values = np.zeros_like(votes)
    values[below], values[below + 1] = -votes[inner], votes[inner]
    alone = (left == 0) & (gain > 0)  # a leaf that was popped for its constant classifier votes by itself
    values[alone] = votes[alone]

    tree, leaf_of_node = to_tree(nodes, values, gain, total)
    return VotingTree(tree, leaf_index, leaf_of_node, edge=int(gain.sum()))

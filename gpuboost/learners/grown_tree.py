"""A tree with the rows that it was grown on or applied to, and how a node table becomes one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import CUT, FEATURE, LEFT, MISSING_LEFT
from gpuboost.backends.statistics import Device, Stats
from gpuboost.tree import Tree

Sums = tuple[IntArray, IntArray]


@dataclass(frozen=True)
class GrownTree:
    """A tree, and where each row of a set arrived in it.

    Attributes
    ----------
    tree : Tree
    leaf_index : device array of int, shape (n_rows,)
        Where each row arrived: a leaf of the tree, or an index of the learner's own, such as a node number.
    leaf_of_index : ndarray of int64, shape (n_indices,), optional
        The tree's leaf of each index (any leaf for an index that no row has). Without it an index is a leaf.
    sums : pair of ndarray of int64, shape (n_leaves, n_classes), optional
        What `leaf_sums` returns, where it is known already.
    """

    tree: Tree
    leaf_index: Device
    leaf_of_index: IntArray | None = None
    sums: Sums | None = None

    @cached_property
    def values(self) -> Floats:
        """What the tree adds to the scores of the rows with each index, shape (n_indices, n_classes)."""
        return self.tree.values if self.leaf_of_index is None else self.tree.values[self.leaf_of_index]

    def with_values(self, values: Floats) -> Self:
        """Return the tree with other leaf values, shape (n_leaves, n_classes)."""
        return replace(self, tree=replace(self.tree, values=values))

    def leaf_sums(self, backend: Backend, stats: Stats) -> Sums:
        """Return the sums of ``quantised`` and of its magnitudes over the rows of each leaf, (n_leaves, n_classes)."""
        if self.sums is not None:
            return self.sums
        if self.leaf_of_index is None:
            return backend.leaf_sums(stats, self.leaf_index, self.tree.n_leaves)
        sums, sum_abs = np.zeros((2, self.tree.n_leaves, stats.n_classes), np.int64)
        by_index = backend.leaf_sums(stats, self.leaf_index, len(self.leaf_of_index))
        np.add.at(sums, self.leaf_of_index, by_index[0])
        if by_index[1] is by_index[0]:  # weights of rows with one class each have no sign
            return sums, sums
        np.add.at(sum_abs, self.leaf_of_index, by_index[1])
        return sums, sum_abs


def to_tree(nodes: IntArray, values: Floats, gain: NDArray[Any], total: int) -> tuple[Tree, IntArray]:
    """Turn a node table into a tree.

    Parameters
    ----------
    nodes : ndarray of int64, shape (n_nodes, 10)
        One tree of a `Frontier`, on the host.
    values : ndarray of float64, shape (n_nodes, n_classes)
        The value of each node that is a leaf.
    gain : ndarray of int64 or float64, shape (n_nodes,)
        What each node's split has won.
    total : int
        What the gains are divided by.

    Returns
    -------
    tree : Tree
    leaf_of_node : ndarray of int64, shape (n_nodes,)
        The tree's leaf of each node that is a leaf, 0 for others.
    """
    (inner,) = nodes[:, LEFT].nonzero()
    splits = nodes[inner]
    below = splits[:, LEFT]
    is_leaf = np.zeros(len(nodes), bool)
    is_leaf[0] = is_leaf[below] = is_leaf[below + 1] = True
    is_leaf[inner] = False
    (leaves,) = is_leaf.nonzero()
    leaf_of_node = np.zeros(len(nodes), np.int64)
    leaf_of_node[leaves] = np.arange(len(leaves))
    name = ~leaf_of_node.astype(np.int32)  # a node's name in the finished tree
    name[inner] = np.arange(len(inner))
    tree = Tree(
        feature=splits[:, FEATURE].astype(np.int32),
        cut=splits[:, CUT].astype(np.uint8),
        missing_left=splits[:, MISSING_LEFT].astype(np.bool_),
        left=name[below],
        right=name[below + 1],
        values=values[leaves],
        gain=gain[inner] / total,
    )
    return tree, leaf_of_node

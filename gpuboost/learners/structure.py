"""From a grown node table to a `Tree`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.frontier import CUT, FEATURE, LEFT, MISSING_LEFT
from gpuboost.tree import Tree


@dataclass(frozen=True)
class Structure:
    """A tree, and which of its leaves the nodes have become.

    Attributes
    ----------
    tree : Tree
    leaf : ndarray of int64, shape (n_nodes,)
        The leaf's number of each node that is a leaf, 0 for others.
    """

    tree: Tree
    leaf: NDArray[np.int64]


def structure(nodes: NDArray[np.int64], values: NDArray[np.float64], gain: NDArray[Any], total: int) -> Structure:
    """Turn a node table into a tree.

    Parameters
    ----------
    nodes : ndarray of int64, shape (M, 10)
        One tree of a `Frontier`, on the host.
    values : ndarray of float64, shape (M, n_classes)
        What each node gives the rows that stay in it.
    gain : ndarray of int64 or float64, shape (M,)
        What each node's cut has won, in units.
    total : int
        The total weight, in units.
    """
    (inner,) = nodes[:, LEFT].nonzero()
    cuts = nodes[inner]
    below = cuts[:, LEFT]
    is_leaf = np.zeros(len(nodes), bool)
    is_leaf[0] = is_leaf[below] = is_leaf[below + 1] = True
    is_leaf[inner] = False
    (leaves,) = is_leaf.nonzero()
    leaf = np.zeros(len(nodes), np.int64)
    leaf[leaves] = np.arange(len(leaves))
    name = ~leaf.astype(np.int32)  # a node's name in the finished tree
    name[inner] = np.arange(len(inner))
    tree = Tree(
        feature=cuts[:, FEATURE].astype(np.int32),
        cut=cuts[:, CUT].astype(np.uint8),
        missing_left=cuts[:, MISSING_LEFT].astype(np.bool_),
        left=name[below],
        right=name[below + 1],
        values=values[leaves],
        gain=gain[inner] / total,
    )
    return Structure(tree, leaf)

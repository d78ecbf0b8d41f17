"""Tree: array nodes over binned features, with a vector of class values in every leaf."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Tree:
    """A binary tree with vector leaves.

    Inner nodes are numbered from 0 (the root) in the order in which they were made, a child after its parent; a child is an
    inner node's number or, if negative, ``~leaf``. A tree without inner nodes is one leaf. A row goes left at a node if its
    code is missing (0) and ``missing_left`` is set, or if ``1 <= code <= cut``.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_inner,)
    cut : ndarray of uint8, shape (n_inner,)
        The last value bin that goes left.
    missing_left : ndarray of bool, shape (n_inner,)
    left, right : ndarray of int32, shape (n_inner,)
    values : ndarray of float64, shape (n_inner + 1, n_classes)
        What a leaf adds to the scores.
    gain : ndarray of float64, shape (n_inner,)
        What the cut added to the tree's edge, as a share of the total weight; feature importances are made of it.
    """

    feature: NDArray[np.int32]
    cut: NDArray[np.uint8]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    values: NDArray[np.float64]
    gain: NDArray[np.float64]

    @property
    def n_leaves(self) -> int:
        return len(self.values)

    @property
    def first(self) -> int:
        """Where a row starts: inner node 0, or ``~0`` if the tree is a single leaf."""
        return 0 if len(self.feature) else ~0


def constant_tree(values: NDArray[np.float64]) -> Tree:
    """Return the tree that adds the same ``values``, shape (n_classes,), to every row."""
    none = np.zeros(0, np.int32)
    return Tree(none, none.astype(np.uint8), none.astype(bool), none, none, values[None, :], none.astype(np.float64))

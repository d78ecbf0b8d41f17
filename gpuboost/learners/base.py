"""What a weak learner hands to a booster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats
from gpuboost.tree import Tree

Sums = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class WeakTree:
    """A vector-valued classifier ``h(x)`` in {-1, +1}^K with its edge, before it gets a coefficient.

    Attributes
    ----------
    tree : Tree
        With the votes (-1 or +1) as leaf values.
    edge : int
        ``sum_il w_il h_l(x_i) y_il`` (eq. 11), in units of the statistics.
    leaf_index : device array of int, shape (n_rows,)
        Where each row has arrived; a row's votes are ``tree.values[leaf[leaf_index]]``.
    leaf : ndarray of int64, shape (n_groups,)
        The tree's leaf of each group (0 for groups that hold no rows).
    sums : pair of ndarray of int64, shape (n_leaves, n_classes), optional
        What `leaf_sums` returns, if it is known already.
    """

    tree: Tree
    edge: int
    leaf_index: Device
    leaf: NDArray[np.int64]
    sums: Sums | None = None

    def leaf_sums(self, backend: Backend, stats: Stats) -> Sums:
        """Return the sums of ``quantised`` and of its magnitudes over the rows of each leaf, (n_leaves, n_classes)."""
        if self.sums is not None:
            return self.sums
        sums, sum_abs = np.zeros((2, *self.tree.values.shape), np.int64)
        by_index = backend.leaf_sums(stats, self.leaf_index, len(self.leaf))
        np.add.at(sums, self.leaf, by_index[0])
        np.add.at(sum_abs, self.leaf, by_index[1])
        return sums, sum_abs


class Learner(Protocol):
    """A weak learner: statistics in, classifier out."""

    def __call__(self, backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> WeakTree:
        """Find a classifier on the rows and features of ``start``; its edge and its groups are those of all rows."""
        ...


def on_all_rows(tree: Tree, backend: Backend, data: Device, stats: Stats) -> WeakTree:
    """Return a classifier that was found on some rows with its edge on all; if that is negative, it votes the other way."""
    leaf_index = backend.apply(tree, data)
    sums = backend.leaf_sums(stats, leaf_index, tree.n_leaves)
    edge = int((tree.values.astype(np.int64) * sums[0]).sum())
    if edge < 0:
        tree, edge = replace(tree, values=-tree.values), -edge
    return WeakTree(tree, edge, leaf_index, np.arange(tree.n_leaves), sums)

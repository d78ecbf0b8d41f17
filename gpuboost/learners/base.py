"""What a weak learner hands to a booster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import EVERYTHING, Backend, Device, Start, Stats
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
    group : device array of int, shape (n_rows,)
        Where each row has arrived; a row's votes are ``tree.values[leaf[group]]``.
    leaf : ndarray of int64, shape (n_groups,)
        The tree's leaf of each group (0 for groups that hold no rows).
    sums : pair of ndarray of int64, shape (n_leaves, n_classes), optional
        What `leaf_sums` returns, if it is known already.
    """

    tree: Tree
    edge: int
    group: Device
    leaf: NDArray[np.int64]
    sums: Sums | None = None

    def leaf_sums(self, backend: Backend, stats: Stats) -> Sums:
        """Return the sums of q and of abs(q) over the rows of each leaf, both of shape (n_leaves, n_classes). Exact."""
        if self.sums is not None:
            return self.sums
        signed, mass = np.zeros((2, *self.tree.values.shape), np.int64)
        by_group = backend.group_sums(stats, self.group, len(self.leaf))
        np.add.at(signed, self.leaf, by_group[0])
        np.add.at(mass, self.leaf, by_group[1])
        return signed, mass


class Learner(Protocol):
    """A weak learner: statistics in, classifier out."""

    def __call__(self, backend: Backend, data: Device, stats: Stats, start: Start = EVERYTHING) -> WeakTree:
        """Find a classifier on the rows and features of ``start``; its edge and its groups are those of all rows."""
        ...


def on_all_rows(tree: Tree, backend: Backend, data: Device, stats: Stats) -> WeakTree:
    """Return a classifier that was found on some rows with its edge on all; if that is negative, it votes the other way."""
    group = backend.apply(tree, data)
    sums = backend.group_sums(stats, group, tree.n_leaves)
    edge = int((tree.values.astype(np.int64) * sums[0]).sum())
    if edge < 0:
        tree, edge = replace(tree, values=-tree.values), -edge
    return WeakTree(tree, edge, group, np.arange(tree.n_leaves), sums)

"""Regression trees of which every node has a pair of classes of its own (AOSO-LogitBoost; Sun, Reid and Zhou 2012)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import CLOSED, CUT, FEATURE, GAIN, KEY, LEFT, MISSING_LEFT, GrowthScope, new_nodes
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.growth import grow
from gpuboost.tree import Tree

ChoosePairs: TypeAlias = Callable[[Sequence[IntArray]], IntArray]
"""From the row numbers of nodes to a pair of classes for each, shape (n_nodes, 2)."""
PairStatistics: TypeAlias = Callable[[IntArray], Stats]
"""From pairs to statistics with the criterion "newton", a tree of the batch for each."""


@dataclass(frozen=True)
class PairTree:
    """Grows a tree best-first; a node is split by the gain of a Newton step of its pair of classes.

    Nodes have their numbers, and ties their order, as in `gpuboost.backends.frontier.Frontier`. The children of a split have
    other pairs and so other statistics: each is a root of two leaves of its own.

    Attributes
    ----------
    max_leaf_nodes : int
    """

    max_leaf_nodes: int

    def __call__(
        self,
        backend: Backend,
        data: Device,
        rows: IntArray,
        scope: GrowthScope,
        choose: ChoosePairs,
        statistics: PairStatistics,
    ) -> IntArray:
        """Return the table of the tree's nodes, shape (n_nodes, 10).

        ``rows`` are the numbers of the rows that the tree is grown from, on the host; what else ``scope`` says holds, too.
        """
        max_leaf_nodes = max(2, min(self.max_leaf_nodes, int(data.n_rows) + 1))
        nodes: IntArray = new_nodes(np.zeros((1, 2), np.int64), max_leaf_nodes)[0]
        members = {0: rows}
        find_splits(backend, data, nodes, members, [0], scope, choose, statistics)
        for step in range(max_leaf_nodes - 1):
            node = int(nodes[:, KEY].argmax())  # the lowest of equals
            if nodes[node, KEY] <= 0:
                break
            left = 2 * step + 1
            own, goes_left = members.pop(node), goes_left_at(backend, data, nodes[node])
            members[left], members[left + 1] = own[goes_left[own]], own[~goes_left[own]]
            nodes[node, [LEFT, GAIN, KEY]] = left, nodes[node, KEY], CLOSED
            if step < max_leaf_nodes - 2:  # the children of the last split are never split themselves
                find_splits(backend, data, nodes, members, [left, left + 1], scope, choose, statistics)
        return nodes


def find_splits(
    backend: Backend,
    data: Device,
    nodes: IntArray,
    members: dict[int, IntArray],
    numbers: list[int],
    scope: GrowthScope,
    choose: ChoosePairs,
    statistics: PairStatistics,
) -> None:
    """Write the best splits of some nodes, which have the rows ``members``, and their gains as keys into the table."""
    own = [members[m] for m in numbers]
    bounds = np.cumsum([0, *map(len, own)])
    own_scope = replace(scope, sample_indices=backend.put(np.concatenate(own).astype(np.int32)), bounds=bounds)
    frontier = grow(backend, data, statistics(choose(own)), 2, own_scope)
    roots = backend.read_nodes(frontier)[0][:, 0]
    for m, root in zip(numbers, roots, strict=True):
        if root[LEFT] > 0:
            nodes[m, [FEATURE, CUT, MISSING_LEFT, KEY]] = root[[FEATURE, CUT, MISSING_LEFT, GAIN]]


def goes_left_at(backend: Backend, data: Device, node: IntArray) -> NDArray[np.bool_]:
    """Return which rows go left at a node's split, on the host."""
    stump = Tree(
        feature=node[[FEATURE]].astype(np.int32),
        cut=node[[CUT]].astype(np.uint8),
        missing_left=node[[MISSING_LEFT]].astype(np.bool_),
        left=np.array([~0], np.int32),
        right=np.array([~1], np.int32),
        values=np.zeros((2, 1)),
        gain=np.zeros(1),
    )
    goes_left: NDArray[np.bool_] = backend.get(backend.apply(stump, data)) == 0
    return goes_left

"""Best-first growth with foresight: many nodes are divided at once, and the tree is the one of dividing them one by one.

Best-first growth divides one node at a time, as which is the next one depends on the children of the last. Where the rows are
read from a file, every division would read them all; where they are divided among workers, these would meet for every division.
So growth goes by passes, in each of which all nodes are divided that may still be popped, or the first few of them; then the
pops are played through on what is known.

The reference
-------------
Best-first growth with J leaves pops a node J - 1 times: of those that wait the one with the largest positive key, ties to the
lowest number. What is popped at step s gets the children 2 s + 1 and 2 s + 2, if its best classifier cuts, and they wait from
then on (`gpuboost.backends.frontier.Frontier`, `gpuboost.learners.growth.grow`).

Why it is the same tree
-----------------------
`SpeculativeTree.popped` plays this on the known nodes, as if a node that is not divided yet had no children. Children that
become known later only come in between: of two known nodes the same one is popped first, and has the lower number, since both
follow from the order of the pops before. So a known node is never popped earlier than is played, and one that is not popped in
the play never will be. When all nodes that are popped in the play have been divided, nothing can come in between, and the
play is the reference.

A node of depth d is known after pass d at the latest, counted from 0, the pass of the root: a tree whose deepest leaf has the
depth d takes d + 1 passes, however many leaves it has. Where passes divide a few nodes only, those that the play pops first, it
takes more of them, and fewer nodes are divided in vain. The first of them is always popped in the end, as nothing can come
before it any more.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.frontier import BASELINE, CLOSED, FEATURE, GAIN, KEY, LEFT, SLOT

N_COLUMNS = SLOT + 1


@dataclass(frozen=True)
class Family:
    """A node that is divided, and its children.

    Attributes
    ----------
    parent, left : int
        The right child is the next one.
    may_go_on : bool
        Whether the children may be divided in their turn; else their best splits are not needed.
    """

    parent: int
    left: int
    may_go_on: bool


class SpeculativeTree:
    """A tree of which more nodes are known than best-first growth asks for.

    Nodes are numbered in the order in which they were made: node 0 is the root, and the children of a node follow one another.

    Parameters
    ----------
    total : ndarray of int64, shape (n_channels,)
        Of the root.
    max_leaves : int
    n_voting : int
        See `gpuboost.backends.statistics.Stats.n_voting`.

    Attributes
    ----------
    nodes : list of ndarray of int64, shape (10,)
        Rows of a node table. START and STOP are not used, GAIN is 0, and KEY stays what it was found to be.
    totals, edges : list of ndarray of int64, shape (n_channels,)
    n_settled : int
        The number of pops before the first of which the children were not known when `divide` was called last.
    """

    def __init__(self, total: IntArray, max_leaves: int, n_voting: int) -> None:
        self.max_leaves, self.n_voting = max_leaves, n_voting
        self.nodes: list[IntArray] = []
        self.totals: list[IntArray] = []
        self.edges: list[IntArray] = []
        self.parents: list[int] = []
        self.n_settled = 0
        self._add(-1, total)

    def _add(self, parent: int, total: IntArray, baseline: int = 0) -> int:
        node = np.zeros(N_COLUMNS, np.int64)
        node[FEATURE], node[KEY], node[BASELINE] = -1, CLOSED, baseline
        self.nodes.append(node)
        self.totals.append(total)
        self.edges.append(np.zeros_like(total))
        self.parents.append(parent)
        return len(self.nodes) - 1

    def popped(self) -> list[int]:
        """Return the nodes that best-first growth pops, in order, if a node that is not divided yet has no children."""
        order: list[int] = []
        waiting = [(-int(self.nodes[0][KEY]), 0, 0)]  # by key, and by the number that the node gets
        while waiting and waiting[0][0] < 0 and len(order) < self.max_leaves - 1:
            node = heapq.heappop(waiting)[2]
            left = int(self.nodes[node][LEFT])
            for side in (0, 1) if left else ():
                key = -int(self.nodes[left + side][KEY])
                heapq.heappush(waiting, (key, 2 * len(order) + 1 + side, left + side))
            order.append(node)
        return order

    def divide(self, at_most: int | None = None) -> list[Family]:
        """Divide the nodes that may be popped and have not been divided yet, all or the first of them.

        None are left when the tree is known.
        """
        order = self.popped()
        steps = [s for s, node in enumerate(order) if self.nodes[node][FEATURE] >= 0 and not self.nodes[node][LEFT]]
        self.n_settled = steps[0] if steps else self.max_leaves - 1
        return [Family(order[s], self._divided(order[s]), s < self.max_leaves - 2) for s in steps[:at_most]]

    def _divided(self, parent: int) -> int:
        """Add the children of a node, with totals and baselines, and return the left one."""
        total, edges = self.totals[parent], self.edges[parent]
        votes = np.where(edges > 0, 1, -1)  # eq. 13
        for side in (-1, 1):
            own = (total + side * edges) // 2
            self._add(parent, own, int((side * votes * own)[: self.n_voting].sum()))
        self.nodes[parent][LEFT] = len(self.nodes) - 2
        return len(self.nodes) - 2

    def finish(self, nodes: IntArray, totals: IntArray, edges: IntArray) -> NDArray[np.int32]:
        """Write the tree as best-first growth leaves it; return the node there that the rows of each node here belong to.

        Parameters
        ----------
        nodes, totals, edges : ndarray of int64, shapes (M, 10), (M, n_channels) and (M, n_channels)
            Of one tree of a `gpuboost.backends.frontier.Frontier`, new but for START and STOP.
        """
        number = {0: 0}
        for step, node in enumerate(order := self.popped()):
            if left := int(self.nodes[node][LEFT]):
                number |= {left: 2 * step + 1, left + 1: 2 * step + 2}
        for node, own in number.items():
            totals[own], nodes[own, BASELINE] = self.totals[node], self.nodes[node][BASELINE]
            if own <= 2 * (self.max_leaves - 2):  # nobody asks for the splits of the children of the last cut
                nodes[own, FEATURE:LEFT], nodes[own, KEY] = self.nodes[node][FEATURE:LEFT], self.nodes[node][KEY]
                edges[own] = self.edges[node]
        for step, node in enumerate(order):
            own = number[node]
            nodes[own, [GAIN, KEY]] = nodes[own, KEY], CLOSED
            nodes[own, LEFT] = 2 * step + 1 if self.nodes[node][LEFT] else 0
        belongs = np.zeros(len(self.nodes), np.int32)
        for node in range(1, len(belongs)):  # children come after their parents
            belongs[node] = number.get(node, belongs[self.parents[node]])
        return belongs

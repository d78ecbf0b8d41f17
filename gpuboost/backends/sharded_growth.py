"""How trees grow from rows that are divided among workers.

For every two siblings the workers exchange the histograms of the one that probably has fewer rows: each worker gets the sums of
its share of the bins, completes them, judges those features, and the best splits of all are gathered. In bytes a worker sends
``(p - 1) / p`` of such a histogram.

An exchange takes time even if little travels. So a few nodes are divided at a time, those that best-first growth would pop next
as far as is known, and their children's histograms travel together; see `gpuboost.backends.speculation`, by which the trees are
those of dividing one node at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.divided import AT_ONCE, SPLIT, DividedGrowth, Division
from gpuboost.backends.frontier import CUT, FEATURE, KEY, MISSING_LEFT, START, STOP, Frontier, new_nodes
from gpuboost.backends.speculation import Family, SpeculativeTree
from gpuboost.binning import MISSING_CODE
from gpuboost.binning.codes import N_CODES
from gpuboost.peers.base import Peers, mark


class Codes(NamedTuple):
    """Codes of a feature: ``above + 1 .. up_to``, and the missing code or not."""

    above: int = MISSING_CODE
    up_to: int = N_CODES - 1
    missing: bool = True


ALL_CODES = Codes()


class Paths:
    """Which codes the rows of each node can have, by the splits above it: from these, about how many rows it has.

    The rows of both children would have to be added up over the workers to know; an estimate from the counts of the codes,
    which all workers have, will do to choose the child whose histograms are counted.

    Parameters
    ----------
    rows_up_to : ndarray of int64, shape (n_features, 256)
        How many rows of all workers have at most this code.

    Attributes
    ----------
    allowed : dict
        By tree and node, for each feature that was split by above it, the codes that are left.
    """

    def __init__(self, rows_up_to: IntArray) -> None:
        self.rows_up_to = rows_up_to
        self.allowed: dict[tuple[int, int], dict[int, Codes]] = {}

    def split(self, t: int, node: int, left: int, feature: int, cut: int, missing_left: int) -> int:
        """Take note of a split; return the child, ``left`` or ``left + 1``, that probably has fewer rows."""
        above = self.allowed.get((t, node), {})
        here, rows = above.get(feature, ALL_CODES), self.rows_up_to[feature]
        sides = (
            Codes(here.above, min(here.up_to, cut), here.missing and bool(missing_left)),
            Codes(max(here.above, cut), here.up_to, here.missing and not missing_left),
        )
        n_rows = [0, 0]
        for child, side in enumerate(sides):
            self.allowed[t, left + child] = {**above, feature: side}
            n_rows[child] = max(int(rows[side.up_to] - rows[side.above]), 0) + side.missing * int(rows[MISSING_CODE])
        return left + (n_rows[1] < n_rows[0])


def room(max_leaves: int) -> int:
    """Return the leaves that trees may have before those are cut back that best-first growth does not reach."""
    return max_leaves + max_leaves // 2 if max_leaves > 2 else max_leaves


def nodes_at_once(max_leaves: int, n_steps: int, n_settled: int) -> int:
    """Return how many nodes of every tree are divided next, so that there is `room` for all that must follow.

    Parameters
    ----------
    max_leaves : int
    n_steps : int
        Divisions so far, in the tree that has most.
    n_settled : int
        The least `SpeculativeTree.n_settled` at the last pass, -1 before the first. That pass has settled one more at least.
    """
    still = max_leaves - 2 - n_settled
    return max(1, min(AT_ONCE, room(max_leaves) - 1 - n_steps - still))


class Counted(NamedTuple):
    """Nodes that have been counted, one of every tree: roots, or children of nodes that were divided in one step.

    Attributes
    ----------
    parents : ndarray of int64, shape (T,)
        -1 for a root.
    nodes : ndarray of int64, shape (T,)
        -1 where there is none.
    sums : object
        Over the rows that are here, see `gpuboost.backends.divided.DividedGrowth.count`.
    """

    parents: IntArray
    nodes: IntArray
    sums: Any


class ShardedGrowth:
    """A batch of growing trees, of which this worker has some of the rows.

    Parameters
    ----------
    local : DividedGrowth
    peers : Peers
    frontier : Frontier
        New, of the local backend, with room for `room` leaves.
    rows_up_to : ndarray of int64, shape (n_features, 256)
        See `Paths`.
    max_leaves : int
    """

    def __init__(self, local: DividedGrowth, peers: Peers, frontier: Frontier, rows_up_to: IntArray, max_leaves: int) -> None:
        self.local, self.peers, self.frontier, self.max_leaves = local, peers, frontier, max_leaves
        self.division = Division.of(local.bin_offsets(frontier), peers.size)
        local.prepare_shares(frontier, self.division, peers)
        self.paths = Paths(rows_up_to)
        totals = local.read_totals(frontier)[1][:, 0]
        self.trees = [SpeculativeTree(total.copy(), max_leaves, frontier.stats.n_voting) for total in totals]
        self.numbers = [[0] for _ in totals]  # those that the nodes of the trees have in the frontier

    @property
    def n_nodes(self) -> int:
        """Nodes of the frontier that matter when the trees have grown."""
        return 2 * self.max_leaves - 1

    def grow(self) -> None:
        roots = np.zeros(len(self.trees), np.int64)
        self._find_splits([Counted(roots - 1, roots, self.local.count(self.frontier, roots))], 0)
        n_settled = -1
        while any(families := self._divide_trees(n_settled)):
            first = 2 * self.frontier.step + 1
            counted = [self._divide(of_trees) for of_trees in zip_longest(*families)]
            self._find_splits([one for one in counted if one is not None], first)
            n_settled = min(tree.n_settled for tree in self.trees)
        self._finish()

    def _divide_trees(self, n_settled: int) -> list[list[Family]]:
        """Choose the nodes that are divided next; see `nodes_at_once`."""
        at_most = nodes_at_once(self.max_leaves, self.frontier.step, n_settled)
        return [tree.divide(at_most) for tree in self.trees]

    def _divide(self, families: Sequence[Family | None]) -> Counted | None:
        """Divide a node in every tree, but where there is none; count one of its children, if they may be divided in turn."""
        parents, nodes = np.full((2, len(self.trees)), -1, np.int64)
        left = 2 * self.frontier.step + 1
        for t, family in enumerate(families):
            if family is not None:
                parents[t] = parent = self.numbers[t][family.parent]
                self.numbers[t] += [left, left + 1]
                if family.may_go_on:
                    split = self.trees[t].nodes[family.parent][[FEATURE, CUT, MISSING_LEFT]].tolist()
                    nodes[t] = self.paths.split(t, parent, left, *split)
        self.local.divide(self.frontier, parents)
        if (nodes < 0).all():
            return None
        return Counted(parents, nodes, self.local.count(self.frontier, nodes))

    def _find_splits(self, counted: Sequence[Counted], first: int) -> None:
        """Find the best splits of nodes that have been counted and of their siblings, whose numbers begin with ``first``."""
        if not counted:
            return
        frontier, stats = self.frontier, self.frontier.stats
        decided = mark(*(array for one in counted for array in one[:2]), stats.min_count, first)
        shares = self.local.share([one.sums for one in counted], self.division, self.peers, f"histograms of {decided}")
        for one, own in zip(counted, shares, strict=True):
            self.local.judge(frontier, one.parents, one.nodes, own, self.division.features_of(self.peers.rank))
        table, edges = self.local.read_nodes(frontier)
        new = slice(first, 2 * frontier.step + 1)
        found = np.concatenate([table[:, new, SPLIT], edges[:, new]], axis=2, dtype=np.int64)
        found = self._best_of_all(found, f"best splits of {decided}")
        self.local.set_splits(frontier, new, found[..., : len(SPLIT)], found[..., len(SPLIT) :])
        for tree, numbers, own in zip(self.trees, self.numbers, found, strict=True):
            for node in range(int(np.searchsorted(numbers, first)), len(numbers)):
                best = own[numbers[node] - first]
                tree.nodes[node][SPLIT], tree.edges[node] = best[: len(SPLIT)], best[len(SPLIT) :]

    def _best_of_all(self, found: IntArray, what: str) -> IntArray:
        """Return the best of the splits that the workers have found, shape (T, n, 4 + C): `SPLIT` and edges."""
        gathered = self.peers.gather(found.tobytes(), what)
        everyones = np.frombuffer(b"".join(gathered), np.int64).reshape(len(gathered), -1, found.shape[2])
        best = everyones[:, :, SPLIT.index(KEY)].argmax(axis=0)  # ties go to the first worker, who has the lowest features
        chosen: IntArray = everyones[best, np.arange(len(best))].reshape(found.shape)
        return chosen

    def _finish(self) -> None:
        """Let the frontier be as best-first growth leaves it; its nodes from `n_nodes` on hold no rows."""
        grown, _ = self.local.read_nodes(self.frontier)
        n_trees, n_channels = len(self.trees), self.frontier.stats.n_channels
        nodes = new_nodes(np.zeros((n_trees, 2), np.int64), room(self.max_leaves))
        totals, edges = np.zeros((2, *nodes.shape[:2], n_channels), np.int64)
        for t, (tree, numbers) in enumerate(zip(self.trees, self.numbers, strict=True)):
            own = slice(0, self.n_nodes)
            belongs = tree.finish(nodes[t, own], totals[t, own], edges[t, own])
            node, first = np.unique(belongs, return_index=True)  # before those that are below it
            nodes[t, node[:, None], [START, STOP]] = grown[t, np.array(numbers)[first, None], [START, STOP]]
        self.local.set_nodes(self.frontier, nodes, totals, edges)

"""Trees that grow by passes over codes in a file, all rows from front to back, instead of reads of each node's rows.

In a pass every row goes on from its node, if that is divided, and is added to the histogram of the node that it arrives in, if
that is one of those counted: of two children the one with fewer rows, as far as the first chunk shows. What is divided when
is in `gpuboost.backends.speculation`. The trees are those of the other searches; a row costs a number instead of its place in
lists of rows, and a tree up to twice as many histograms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cpu.loops import passes as pass_loops
from gpuboost.backends.cpu.loops.arguments import Siblings
from gpuboost.backends.cpu.loops.growth import of_tree
from gpuboost.backends.cpu.loops.passes import Cuts, Routed
from gpuboost.backends.cpu.loops.splits import finish_histograms, store_split
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.cpu.search import Histograms, Search, Work, sum_dtype
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.frontier import CUT, FEATURE, MISSING_LEFT, SLOT, Frontier, GrowthScope
from gpuboost.backends.speculation import Family, SpeculativeTree

HISTOGRAM_BYTES = 1 << 30
"""The trees of a batch pass together as long as their histograms take no more than this."""


@dataclass(frozen=True)
class Pair:
    """Two siblings of tree t, of which ``small`` is counted; or its root, without a sibling (-1) and a parent (-1)."""

    t: int
    small: int
    large: int
    parent: int


@dataclass
class RowSet:
    """Rows in a pass, and the trees that they are in; no row is in two of these.

    The rows of node m of the tree number k have the number ``n_trees m + k``, those of no tree -1.

    Attributes
    ----------
    node_of_row : ndarray of int32, shape (n_rows,)
    quantised : ndarray of int32, shape (n_rows, C)
    n_trees : int
    trees : list of int
        Those that grow in this pass.
    cuts : Cuts
    families : list of (int, Family)
        The trees and nodes one of whose children is to be counted.
    counted : list of Pair
    targets : ndarray of int64, shape (len(counted), n_parts)
        Where the histograms of each counted node are.
    """

    node_of_row: NDArray[np.int32]
    quantised: NDArray[np.int32]
    n_trees: int
    trees: list[int]
    cuts: Cuts
    families: list[tuple[int, Family]] = field(default_factory=list)
    counted: list[Pair] = field(default_factory=list)
    targets: IntArray = field(default_factory=lambda: np.zeros((0, 1), np.int64))

    def number(self, t: int, node: int) -> int:
        return self.n_trees * node + (t if self.n_trees > 1 else 0)

    def divide(self, t: int, families: Sequence[Family], nodes: Sequence[IntArray], width: int) -> None:
        """Let some nodes of tree t be divided."""
        for family in families:
            m, node = self.number(t, family.parent), nodes[family.parent]
            self.cuts.left[m] = self.number(t, family.left)
            self.cuts.block[m], self.cuts.column[m] = divmod(int(node[FEATURE]), width)
            self.cuts.low[m] = 1 - node[MISSING_LEFT]
            self.cuts.span[m] = node[CUT] - (1 - node[MISSING_LEFT])
        self.families += [(t, family) for family in families if family.may_go_on]

    def choose(self, arrived: NDArray[np.int32]) -> None:
        """Choose the child to count of each family, by the numbers of some rows that have arrived."""
        n_rows = np.bincount(arrived[arrived >= 0], minlength=len(self.cuts.left))
        for t, family in self.families:
            left, right = family.left, family.left + 1
            is_left = n_rows[self.number(t, left)] <= n_rows[self.number(t, right)]
            self.counted.append(Pair(t, *((left, right) if is_left else (right, left)), family.parent))
        for place, pair in enumerate(self.counted, 1):
            self.cuts.place[self.number(pair.t, pair.small)] = place


class PassSearch(Search):
    """Grows all trees of a batch at once.

    Parameters
    ----------
    resources : CpuResources
    scope : GrowthScope
    n_sets : int
        How many trees have statistics of their own.
    n_rows : int

    Attributes
    ----------
    node_of_row : ndarray of int32, shape (n_row_sets, n_rows)
        See `RowSet`.
    """

    def __init__(self, resources: CpuResources, scope: GrowthScope, n_sets: int, n_rows: int) -> None:
        super().__init__(resources)
        rows, bounds = scope.sample_indices, scope.bounds
        self.is_whole = rows is None
        self.n_together = 1 if bounds is None or n_sets > 1 else len(bounds) - 1
        self.node_of_row = np.full((n_sets, n_rows), 0 if rows is None else -1, np.int32)
        if rows is not None and bounds is None:
            self.node_of_row[:, rows] = 0
        elif rows is not None and bounds is not None:
            for t, (first, stop) in enumerate(pairwise(bounds)):
                together = self.n_together > 1
                self.node_of_row[0 if together else t, rows[first:stop]] = t if together else 0

    def find_splits(self, frontier: Frontier, t: int, small: int, large: int) -> None:
        raise NotImplementedError("trees grow from a file as a whole")

    def grow(self, frontier: Frontier) -> None:
        n_trees, n_nodes = frontier.nodes.shape[:2]
        max_leaves, n_voting = (n_nodes + 1) // 2, frontier.stats.n_voting
        trees = [SpeculativeTree(total[0].copy(), max_leaves, n_voting) for total in frontier.totals]
        n_slots = max(1, 2 * (max_leaves - 2))
        histogram_bytes = 4 * int(frontier.work.columns.bin_offsets[-1]) * padded(frontier.stats.n_channels)
        at_once = max(1, HISTOGRAM_BYTES // max(1, n_slots * histogram_bytes))
        for first in range(0, n_trees, at_once):
            self._grow_together(frontier, dict(list(enumerate(trees))[first : first + at_once]), n_slots)
        for t, tree in enumerate(trees):
            node = tree.finish(frontier.nodes[t], frontier.totals[t], frontier.edges[t])
            if self.is_whole:
                rename(self.node_of_row[t], node)

    def _grow_together(self, frontier: Frontier, trees: dict[int, SpeculativeTree], n_slots: int) -> None:
        """Grow some of the trees, pass by pass."""
        shape = (n_slots * len(trees), int(frontier.work.columns.bin_offsets[-1]), padded(frontier.stats.n_channels))
        histograms = self.resources.scratch.array("histograms", shape, sum_dtype(frontier.stats))
        families: dict[int, list[Family]] = {t: [] for t in trees}
        sets = self._row_sets(frontier, trees, families)
        for one in sets:
            one.counted = [Pair(t, 0, -1, -1) for t in one.trees]
        while sets:
            parts = self._pass(frontier, trees, sets, histograms)
            for one in sets:
                for pair, targets in zip(one.counted, one.targets, strict=True):
                    own = parts[targets[0] : targets[-1] + 1] if len(targets) > 1 else histograms[:0]
                    self._find_best(frontier.work, trees[pair.t], pair, histograms, own)
            families = {t: tree.divide() for t, tree in trees.items()}
            sets = self._row_sets(frontier, trees, families) if any(families.values()) else []

    def _row_sets(
        self, frontier: Frontier, trees: dict[int, SpeculativeTree], families: dict[int, list[Family]]
    ) -> list[RowSet]:
        """Return the rows of the trees that are divided somewhere, or that begin."""
        begins = not any(families.values())
        growing = [t for t in trees if begins or families[t]]
        sets = []
        for own in [growing] if self.n_together > 1 else [[t] for t in growing]:
            n = self.n_together * max(len(trees[t].nodes) for t in own)
            block, column, place = np.zeros((3, n), np.int32)
            left, low, span = np.arange(n, dtype=np.int32), np.zeros(n, np.uint8), np.full(n, 255, np.uint8)
            s = own[0] if self.n_together == 1 else 0
            one = RowSet(
                of_tree(self.node_of_row, s),
                of_tree(frontier.stats.quantised, s),
                self.n_together,
                own,
                Cuts(left, self.n_together, block, column, low, span, place),
            )
            for t in own:
                one.divide(t, families[t], trees[t].nodes, frontier.data.blocks.shape[2])
            sets.append(one)
        return sets

    def _pass(
        self, frontier: Frontier, trees: dict[int, SpeculativeTree], sets: Sequence[RowSet], histograms: Histograms
    ) -> Histograms:
        """Read all rows once. Return the memory that the targets of the sets point into."""
        team, work, memory = self.resources.team, frontier.work, histograms
        n_pieces = 1 if team.n_threads == 1 else 4 * team.n_threads
        loop: Any = pass_loops.count_classes if work.rule.one_hot else pass_loops.count
        how: Any = work.rule.n_classes if work.rule.one_hot else work.lanes
        is_first = True
        for rows, blocks in frontier.data.chunks():
            n_blocks, n_rows, _ = blocks.shape
            columns, bounds = work.columns._replace(blocks=blocks), n_rows * np.arange(n_pieces + 1) // n_pieces
            if is_first:
                for one in sets:
                    self._route(one, rows, blocks, bounds)
                    one.choose(one.node_of_row[rows])
                memory = self._place(trees, sets, histograms, n_blocks)
                is_first = False
            for one in sets:
                routed, n_pieces_of_work = self._route(one, rows, blocks, bounds), n_blocks * one.targets.size
                n_additions = n_rows * len(columns.usable) * memory.shape[2]
                arguments = (columns, routed, one.quantised[rows], one.targets, memory, how)
                team.map(loop, n_pieces_of_work, n_additions, *arguments)
        return memory

    def _route(self, one: RowSet, rows: slice, blocks: NDArray[np.uint8], bounds: IntArray) -> Routed:
        """Let a chunk of rows go on, and list them by the nodes that are counted; nothing is listed before these are chosen."""
        n_places, n_pieces, n_rows = 1 + len(one.targets), len(bounds) - 1, blocks.shape[1]
        lists = self.resources.scratch.array("routed", (n_places, n_rows), np.int32)
        ends, own = np.empty((n_pieces, n_places), np.int64), one.node_of_row[rows]
        self.resources.team.map(pass_loops.route, n_pieces, 30 * n_rows, bounds, blocks, one.cuts, own, lists, ends)
        return Routed(lists, bounds, ends)

    def _place(
        self, trees: dict[int, SpeculativeTree], sets: Sequence[RowSet], histograms: Histograms, n_blocks: int
    ) -> Histograms:
        """Give every counted node a slot, and a histogram, or one for each of several parts of the rows."""
        n_threads, n_counted = self.resources.team.n_threads, sum(len(one.counted) for one in sets)
        n_parts = 1
        if n_threads > 1 and n_counted:
            n_parts = -(-2 * n_threads * len(sets) // (n_blocks * n_counted))
            n_parts = max(1, min(n_parts, HISTOGRAM_BYTES // (n_counted * histograms[0].nbytes)))
        held = {int(trees[t].nodes[family.parent][SLOT]) for one in sets for t, family in one.families}
        free = (slot for slot in range(len(histograms)) if slot not in held)
        first, memory = 0, histograms
        if n_parts > 1:
            memory = self.resources.scratch.array("parts", (n_parts * n_counted, *histograms.shape[1:]), histograms.dtype.type)
        for one in sets:
            one.targets = np.empty((len(one.counted), n_parts), np.int64)
            for pair, targets in zip(one.counted, one.targets, strict=True):
                nodes = trees[pair.t].nodes
                nodes[pair.small][SLOT] = next(free)
                if pair.large >= 0:
                    nodes[pair.large][SLOT] = nodes[pair.parent][SLOT]
                targets[:] = np.arange(first, first + n_parts) if n_parts > 1 else nodes[pair.small][SLOT]
                first += n_parts
                memory[targets] = 0
        return memory

    def _find_best(self, work: Work, tree: SpeculativeTree, pair: Pair, histograms: Histograms, parts: Histograms) -> None:
        """Find the best splits of two siblings, or of a root, of which one has been counted."""
        columns, small, large = work.columns, pair.small, pair.large
        child = histograms[tree.nodes[small][SLOT]]
        other = histograms[tree.nodes[large][SLOT]] if large >= 0 else child[:0]
        arguments = (
            columns,
            Siblings(tree.totals[small], tree.totals[large], child, other),
            work.sum_abs[pair.t],
            work.rule,
            parts,
            work.lanes,
        )
        cost = child.size * (6 + max(len(parts), 1))
        found = self.resources.team.map(finish_histograms, len(columns.usable), cost, *arguments)
        for m, histogram, bests in zip((small, large), (child, other), zip(*found, strict=True), strict=True):
            if m >= 0:
                best = max(bests, key=lambda best: best[0])  # the first of equals: the lowest feature
                store_split(best, columns.bin_offsets, histogram, tree.nodes[m], tree.totals[m], tree.edges[m])


def rename(node_of_row: NDArray[np.int32], new: NDArray[np.int32], at_once: int = 1 << 20) -> None:
    """Replace numbers by ``new[number]``, in place."""
    for first in range(0, len(node_of_row), at_once):
        part = node_of_row[first : first + at_once]
        part[:] = new[part]

"""The pruned search of the CPU backend: as `gpuboost.backends.cpu.search.FullSearch`, with fewer additions."""

from __future__ import annotations

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.cpu.loops.arguments import Columns, GrowingTree, Siblings
from gpuboost.backends.cpu.loops.growth import of_tree
from gpuboost.backends.cpu.loops.splits import store_split
from gpuboost.backends.cpu.loops.sweeps import Best, constant_score
from gpuboost.backends.cpu.pruning import growth as growth_loops
from gpuboost.backends.cpu.pruning.bounds import best_found, choose, queue, to_bounds
from gpuboost.backends.cpu.pruning.growth import ADDED_HEAVY, ADDED_LIGHT, BATCHES, HEAVY, LIGHT, LIGHT_ROWS, VISITED_LIGHT
from gpuboost.backends.cpu.pruning.heavy import RowSplit, sort_rows
from gpuboost.backends.cpu.pruning.search import BlockSearch, Memory, search_blocks
from gpuboost.backends.cpu.resources import CpuResources, Scratch
from gpuboost.backends.cpu.search import (
    Histograms,
    Search,
    Work,
    histogram_layout,
    histograms_of,
    rows_of_pair,
    tree_of,
    trees_of,
)
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.frontier import SLOT, START, STOP, Frontier

FEW = 4
"""Up to this many additions for each bin, histograms cost more than they save, see `gpuboost.backends.cpu.pruning.bounds`."""

VISIT = 2
"""Additions that it takes to look at one row's codes of a block."""


class PrunedSearch(Search):
    """Bounds from the heavy rows, and the light rows where the bounds ask for them.

    Parameters
    ----------
    resources : CpuResources
    frontier : Frontier
        Its roots' rows are sorted into heavy rows, light rows, and rows without mass.
    estimates : tuple of three floats
        Additions that are expected, see `gpuboost.backends.cpu.pruning.heavy.least_heavy`.

    Attributes
    ----------
    split : RowSplit
    few : int
        Up to so many heavy rows of two siblings are summed block by block, without histograms.
    light_share : float
        The share of the light rows in the mass of all.
    counts : ndarray of int64, shape (4,)
        See `gpuboost.backends.cpu.pruning.growth`.
    """

    def __init__(self, resources: CpuResources, frontier: Frontier, estimates: tuple[float, float, float]) -> None:
        super().__init__(resources)
        stats, data, usable = frontier.stats, frontier.data, frontier.work.columns.usable
        n_sets, (n_trees, n_nodes) = len(stats.quantised), frontier.nodes.shape[:2]
        self.split = RowSplit(
            resources.scratch.array("mass", (n_sets, data.n_rows), np.int64),
            resources.scratch.array("level", (n_sets, data.n_rows), np.uint8),
            np.zeros((n_trees, n_nodes, 2), np.int64),
            np.zeros((n_trees, n_nodes, padded(stats.n_channels)), np.int32),
        )
        n_bins = (data.bin_offsets[usable + 1] - data.bin_offsets[usable]).sum()
        self.few = int(min(FEW * n_bins / max(data.counted[usable].sum(), 1e-9), 2**62))
        self.light_share = self._sort_roots(frontier, estimates)
        self.counts = np.zeros(4, np.int64)

    def _sort_roots(self, frontier: Frontier, estimates: tuple[float, float, float]) -> float:
        """Sort the rows of the roots by level; return the share of the light rows in the mass of all."""
        buffer = self.resources.scratch.array("buffer", (frontier.rows.shape[1],), np.int32)
        light, total = 0, 0
        for t, (start, stop) in enumerate(frontier.nodes[:, 0, [START, STOP]].tolist()):
            rows, quantised = of_tree(frontier.rows, t)[start:stop], of_tree(frontier.stats.quantised, t)
            buffer[start:stop] = rows
            mass, level = of_tree(self.split.mass, t), of_tree(self.split.level, t)
            found = sort_rows(buffer[start:stop], quantised, frontier.work.rule, estimates, mass, level, rows)
            light, total = light + int(found[0]), total + int(found[1])
        return light / max(total, 1)

    def share_needed(self, frontier: Frontier) -> float:
        """Return the share of the light rows' additions that were needed."""
        columns, counts = frontier.work.columns, self.counts
        a_row = frontier.data.counted[columns.usable].sum() + VISIT * len(columns.blocks)
        needed = counts[ADDED_LIGHT] + VISIT * counts[VISITED_LIGHT]
        return float(needed / max(counts[LIGHT_ROWS] * a_row, 1))

    def grow(self, frontier: Frontier) -> None:
        work, trees, (shape, dtype) = frontier.work, trees_of(frontier), histogram_layout(frontier)
        n_rows = frontier.rows.shape[1]

        def share(lo: int, hi: int, scratch: Scratch) -> IntArray:
            histograms, counts = scratch.array("histograms", shape, dtype), np.zeros(4, np.int64)
            memory = memory_of(scratch, work.columns, histograms, counts, 1)
            buffer = scratch.array("buffer", (n_rows,), np.int32)
            growth_loops.grow(lo, hi, work.columns, trees, self.split, memory, buffer, work.rule, self.few, work.lanes)
            return counts

        self.counts += np.sum(self.map_trees(frontier, share, len(frontier.nodes) * n_rows), axis=0)

    def find_splits(self, frontier: Frontier, t: int, small: int, large: int) -> None:
        work, tree, histograms = frontier.work, tree_of(frontier, t), histograms_of(self.resources, frontier, t)
        columns, parent = work.columns, int(frontier.current[t])
        whole = self.split
        split = RowSplit(of_tree(whole.mass, t), of_tree(whole.level, t), whole.stops[t], whole.heavy[t])
        memory = memory_of(self.resources.scratch, columns, histograms, self.counts, len(columns.blocks))
        team, n_rows = self.resources.team, rows_of_pair(tree.nodes, small, large)
        if team.n_threads == 1 or n_rows * len(columns.usable) * histograms.shape[2] < team.WORTH_SHARING:
            growth_loops.find_splits(columns, tree, split, memory, work.rule, self.few, small, large, parent, work.lanes)
        else:
            small, large = growth_loops.prepare(tree, split, work.rule.one_hot, small, large, parent, work.lanes)
            Expansion(self, work, tree, split, memory).find_splits(small, large)


class Expansion:
    """The search for the best classifiers of two siblings of a tree, shared by the team.

    As `gpuboost.backends.cpu.pruning.growth.find_splits`, with the loops over features and blocks on all threads.
    """

    def __init__(self, search: PrunedSearch, work: Work, tree: GrowingTree, split: RowSplit, memory: Memory) -> None:
        self.search, self.work, self.tree, self.split, self.memory = search, work, tree, split, memory
        self.team = search.resources.team
        self.masses = growth_loops.class_masses(tree, split, work.rule)

    def find_splits(self, small: int, large: int) -> None:
        tree, memory, stops = self.tree, self.memory, self.split.stops
        pair = (small, large) if large >= 0 else (small,)
        memory.light[:] = 0
        for s, m in enumerate(pair):
            memory.light[s] = growth_loops.mass_of(tree, self.split, stops[m, HEAVY], stops[m, LIGHT])
        n_heavy = sum(int(stops[m, HEAVY] - tree.nodes[m, START]) for m in pair)
        bests = self.sweep_heavy(small, large) if n_heavy > self.search.few else None
        for s, m in enumerate(pair):
            histogram = memory.histograms[tree.nodes[m, SLOT]] if bests else memory.histograms[0][:0]
            if bests and memory.light[s] == 0:
                store_split(bests[s], self.work.columns.bin_offsets, histogram, tree.nodes[m], tree.totals[m], tree.edges[m])
            else:
                self.finish_node(m, histogram, s)

    def sweep_heavy(self, small: int, large: int) -> list[Best]:
        """Count the heavy rows of the smaller sibling; return the best cuts of both on their heavy rows."""
        work, tree, split, memory = self.work, self.tree, self.split, self.memory
        child = memory.histograms[tree.nodes[small, SLOT]]
        other = memory.histograms[tree.nodes[large, SLOT]] if large >= 0 else child[:0]
        rows = tree.rows[tree.nodes[small, START] : split.stops[small, HEAVY]]
        parts, n_added = self.search.count(work, rows, tree.quantised, child)
        memory.counts[ADDED_HEAVY] += n_added
        siblings = Siblings(split.heavy[small], split.heavy[large], child, other)
        cost = child.size * (6 + max(len(parts), 1))
        arguments = (work.columns, siblings, self.masses[0], work.rule, memory, parts, work.lanes)
        found = self.team.map(growth_loops.sweep_pair, len(work.columns.usable), cost, *arguments)
        return [max(bests, key=lambda best: best[0]) for bests in zip(*found, strict=True)]  # the first of equals

    def finish_node(self, m: int, histogram: Histograms, s: int) -> None:
        """As `gpuboost.backends.cpu.pruning.growth.finish_node`."""
        columns, rule, tree, memory = self.work.columns, self.work.rule, self.tree, self.memory
        node, edges, heavy = tree.nodes[m], tree.edges[m], self.split.heavy[m]
        light, bounds = int(memory.light[s]), memory.bounds[s]
        first, (heavy_stop, light_stop) = node[START], self.split.stops[m]
        total = np.zeros_like(heavy)
        total[: rule.n_classes] = edges[:] = tree.totals[m]
        best = (constant_score(total, rule), -1, 0, 0)
        counted = len(histogram) > 0
        hopeless = not counted and light > growth_loops.mass_of(tree, self.split, first, heavy_stop)
        if not counted and not hopeless:
            rows = tree.rows[first:heavy_stop]
            task = BlockSearch(columns.masks, rows, histogram, heavy, self.masses[0], light, bounds)
            memory.counts[ADDED_HEAVY] += self.search_all_blocks(task)
            if light == 0:
                queue(best_found(memory.found, best, edges), node)
                return
        if hopeless:
            bounds[:] = np.iinfo(np.int64).max
        else:
            to_bounds(bounds, columns, heavy, total, rule, self.masses, light)
        memory.counts[LIGHT_ROWS] += light_stop - heavy_stop
        rows = tree.rows[heavy_stop if counted else first : light_stop]
        task = BlockSearch(memory.chosen, rows, histogram, total, self.masses[1], 0, memory.scores)
        for most in BATCHES:
            if choose(bounds, columns, best, len(columns.usable) if hopeless else most, memory.chosen):
                memory.counts[VISITED_LIGHT] += len(rows) * np.count_nonzero(memory.chosen)
                memory.counts[ADDED_LIGHT] += self.search_all_blocks(task)
                best = best_found(memory.found, best, edges)
        queue(best, node)

    def search_all_blocks(self, task: BlockSearch) -> int:
        """Search the chosen features of all blocks; return the number of additions."""
        columns, rule, quantised = self.work.columns, self.work.rule, self.tree.quantised
        n_features = int(np.unpackbits(task.chosen.view(np.uint8)).sum())
        work = len(task.rows) * n_features * len(task.start)
        found = self.team.map(
            search_blocks, len(columns.blocks), work, columns, quantised, task, self.memory, rule, self.work.lanes
        )
        return int(sum(found))


def memory_of(scratch: Scratch, columns: Columns, histograms: Histograms, counts: IntArray, n_parts: int) -> Memory:
    """Return scratch for one thread, or for ``n_parts`` blocks of features at the same time."""
    n_blocks, _, width = columns.blocks.shape
    n_channels, n_features = histograms.shape[2], n_blocks * width
    bounds = np.minimum(np.arange(n_blocks + 1) * width, len(columns.bin_offsets) - 1)
    n_bins = int(np.diff(columns.bin_offsets[bounds]).max())
    return Memory(
        histograms,
        scratch.array("sums", (n_parts, n_bins, n_channels), np.int32),
        scratch.array("occupied", (n_features, 4), np.uint64),
        scratch.array("bounds", (2, n_features), np.int64),
        scratch.array("scores", (n_features,), np.int64),
        scratch.array("found", (n_blocks, 4 + n_channels), np.int64),
        scratch.array("chosen", (n_blocks,), np.uint64),
        scratch.array("light", (2,), np.int64),
        counts,
    )

"""The primitives of the CPU backend that grow trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.cpu import one_hot
from gpuboost.backends.cpu.loops import growth as growth_loops
from gpuboost.backends.cpu.loops.arguments import Columns, Rule
from gpuboost.backends.cpu.loops.growth import of_tree, slots_needed
from gpuboost.backends.cpu.loops.histograms import unrolled
from gpuboost.backends.cpu.matrix import CpuMatrix
from gpuboost.backends.cpu.one_hot import CLASS, COUNT, WEIGHT
from gpuboost.backends.cpu.passes import PassSearch
from gpuboost.backends.cpu.pruning.policy import Pruning
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.cpu.search import FullSearch, Search, Work, tree_of
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.criteria import CRITERIA
from gpuboost.backends.frontier import LEFT, START, STOP, WHOLE, Frontier, GrowthScope, new_nodes, root_bounds
from gpuboost.backends.statistics import Stats


class CpuTrees(CpuResources, Backend):
    """See `gpuboost.backends.base.Backend`."""

    def __init__(self, n_jobs: int | None = None) -> None:
        super().__init__(n_jobs)
        self.pruning = Pruning(self)

    def start_growth(self, data: CpuMatrix, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        first = self._first_rows(data, stats, scope)
        nodes = new_nodes(root_bounds(stats, scope, len(first)), max_leaves)
        n_trees = len(nodes)
        totals, edges = np.zeros((2, *nodes.shape[:2], stats.n_channels), np.int64)
        if data.stored is not None:
            rows = first[None]
        else:
            rows = self.scratch.array("rows", (1 if scope.bounds is not None else n_trees, len(first)), np.int32)
            rows[:] = first
        frontier = Frontier(data, stats, rows, nodes, totals, edges, current=np.full(n_trees, -1))
        for t in range(n_trees):
            totals[t, 0] = self._root_total(frontier, t, scope)
        sum_abs = np.stack([self._root_sum_abs(frontier, t, scope) for t in range(n_trees)])
        lanes = unrolled(padded(stats.n_channels))
        search: Search = FullSearch(self)
        if data.stored is not None:
            search = PassSearch(self, scope, len(stats.quantised), data.n_rows)
        frontier.work = Work(self._columns(data, scope), rule_of(stats), sum_abs, lanes, search)
        if scope.pruning and data.stored is None:
            self.pruning.begin(frontier, max_leaves)
        return frontier

    def _first_rows(self, data: CpuMatrix, stats: Stats, scope: GrowthScope) -> NDArray[np.int32]:
        """Return the rows of the roots, without those that add to no sum where it is cheap to know them.

        There are none of roots that hold all rows and grow by passes, which keep no lists of them.
        """
        rows: NDArray[np.int32]
        if scope.sample_indices is not None:
            rows = scope.sample_indices
        elif data.stored is not None:
            rows = np.zeros(0, np.int32)
        elif stats.one_hot and not stats.min_count:
            rows = one_hot.rows_with_weight(stats.quantised[0])
        else:
            rows = self.arange(data.n_rows)
        return rows

    def _root_total(self, frontier: Frontier, t: int, scope: GrowthScope) -> IntArray:
        stats = frontier.stats
        if scope.sample_indices is None and len(stats.quantised) == 1:
            return stats.sum
        total: IntArray
        if scope.sample_indices is None and stats.totals is not None:
            total = stats.totals[t]
            return total
        quantised = self._root_quantised(frontier, t, scope)
        if stats.one_hot:
            total = np.zeros(stats.n_channels, np.int64)
            np.add.at(total, quantised[:, CLASS], quantised[:, WEIGHT])
            total[stats.n_classes :] = quantised[:, COUNT:].sum(axis=0, dtype=np.int64)
        else:
            total = quantised[:, : stats.n_channels].sum(axis=0, dtype=np.int64)
        return total

    def _root_sum_abs(self, frontier: Frontier, t: int, scope: GrowthScope) -> IntArray:
        """Return the sums of abs(quantised) over the rows of a root, for a criterion that needs them; none for others."""
        stats = frontier.stats
        if not CRITERIA[stats.criterion].needs_sum_abs:
            return np.zeros(0, np.int64)
        if scope.sample_indices is None and len(stats.quantised) == 1:
            return stats.sum_abs
        sum_abs: IntArray = abs(self._root_quantised(frontier, t, scope)[:, : stats.n_classes]).sum(axis=0, dtype=np.int64)
        return sum_abs

    def _root_quantised(self, frontier: Frontier, t: int, scope: GrowthScope) -> NDArray[np.int32]:
        """Return the statistics of the rows that tree t starts from."""
        quantised: NDArray[np.int32] = of_tree(frontier.stats.quantised, t)
        if scope.sample_indices is None:
            return quantised
        first, stop = frontier.nodes[t, 0, [START, STOP]]
        own: NDArray[np.int32] = quantised[of_tree(frontier.rows, t)[first:stop]]
        return own

    def _columns(self, data: CpuMatrix, scope: GrowthScope) -> Columns:
        """Return the columns of a matrix with the features that may be cut.

        Where they were drawn, histograms have room for these alone: the others have no bins.
        """
        n_blocks, _, width = data.blocks.shape
        allowed = np.zeros(n_blocks * width, bool)
        allowed[data.usable] = True
        bin_offsets = data.bin_offsets
        if scope.feature_mask is not None:
            allowed[: len(scope.feature_mask)] &= scope.feature_mask
            n_bins = np.where(allowed[: len(bin_offsets) - 1], np.diff(bin_offsets), 0)
            bin_offsets = np.concatenate([[0], np.cumsum(n_bins)])
        bits = np.zeros((n_blocks, 64), bool)
        bits[:, :width] = allowed.reshape(n_blocks, width)
        masks = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)[:, 0]
        return Columns(data.blocks, masks, np.flatnonzero(allowed), bin_offsets, data.has_missing, data.skipped)

    def _siblings(self, frontier: Frontier, nodes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (tree, smaller child, larger child) of the trees that were cut, or (tree, root, -1).

        The larger child inherits its parent's histogram slot.
        """
        for t, current in enumerate(frontier.current.tolist()):
            table = frontier.nodes[t]
            if len(nodes) == 1:
                yield t, 0, -1
            elif current >= 0 and table[current, LEFT]:
                yield t, *growth_loops.order_children(table, current)

    def find_splits(self, frontier: Frontier, nodes: Sequence[int]) -> None:
        for t, small, large in self._siblings(frontier, nodes):
            frontier.work.search.find_splits(frontier, t, small, large)

    def run(self, frontier: Frontier, steps: Callable[[], None]) -> None:
        """Give every thread whole trees, where there are enough of them; trees from a file grow as a whole anyhow."""
        if len(frontier.nodes) < self.team.n_threads and frontier.data.stored is None:
            steps()
        else:
            frontier.work.search.grow(frontier)
        self.pruning.end(frontier)

    def pop_best_leaf(self, frontier: Frontier) -> bool:
        n_slots = slots_needed((frontier.nodes.shape[1] + 1) // 2)
        found = growth_loops.pop_best_leaf(frontier.step, frontier.nodes, frontier.current, n_slots)
        frontier.step += 1
        return bool(found)

    def partition(self, frontier: Frontier) -> None:
        work, buffer = frontier.work, self.scratch.array("buffer", (frontier.rows.shape[1],), np.int32)
        for t, node in enumerate(frontier.current.tolist()):
            if node >= 0 and frontier.nodes[t, node, LEFT]:
                growth_loops.partition(work.columns, tree_of(frontier, t), buffer, work.rule, node)

    def node_of_rows(self, frontier: Frontier) -> NDArray[np.int32]:
        f = frontier
        if isinstance(f.work.search, PassSearch):
            return f.work.search.node_of_row
        out = np.empty((len(f.rows), f.data.n_rows), np.int32)
        for t in range(len(out)):
            growth_loops.node_of_rows(f.rows[t], f.nodes[t], out[t])
        if f.rows.shape[1] < f.data.n_rows:  # of one tree, see `_first_rows`
            quantised, n_rows = f.stats.quantised[0], f.data.n_rows
            self.team.map(growth_loops.place_weightless, n_rows, 64 * n_rows, quantised, f.data.blocks, f.nodes[0], out[0])
        return out


def rule_of(stats: Stats) -> Rule:
    return Rule(CRITERIA[stats.criterion].number, stats.n_classes, stats.n_voting, stats.min_count, stats.one_hot)

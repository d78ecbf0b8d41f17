"""The primitives of the CPU backend that grow trees."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu import one_hot
from gpuboost.backends.cpu.loops import growth as growth_loops
from gpuboost.backends.cpu.loops import histograms as histogram_loops
from gpuboost.backends.cpu.loops import sweeps as sweep_loops
from gpuboost.backends.cpu.loops.growth import of_tree, slots_needed
from gpuboost.backends.cpu.loops.histograms import unrolled
from gpuboost.backends.cpu.loops.sweeps import criterion_number
from gpuboost.backends.cpu.matrix import CpuMatrix
from gpuboost.backends.cpu.one_hot import CLASS, COUNT, WEIGHT
from gpuboost.backends.cpu.pruning.policy import Pruning
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.frontier import LEFT, SLOT, START, STOP, WHOLE, Frontier, GrowthScope, new_nodes, root_bounds
from gpuboost.backends.statistics import Stats

IntArray = NDArray[np.int64]


class CpuTrees:
    """See `gpuboost.backends.base.Backend`."""

    team: Team
    pruning: Pruning
    scratch: dict[Any, Any]
    _scratch: Callable[..., NDArray[Any]]

    def start_growth(self, data: CpuMatrix, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        first = self._first_rows(stats, scope, data.n_rows)
        nodes = new_nodes(root_bounds(stats, scope, len(first)), max_leaves)
        n_trees = len(nodes)
        totals, edges = np.zeros((2, *nodes.shape[:2], stats.n_channels), np.int64)
        rows = self._scratch("rows", (1 if scope.bounds is not None else n_trees, len(first)), np.int32)
        rows[:] = first
        frontier = Frontier(data, stats, rows, nodes, totals, edges, current=np.full(n_trees, -1))
        for t in range(n_trees):
            totals[t, 0] = self._root_total(frontier, t, scope)
        frontier.work["sum_abs"] = np.stack([self._root_mass(frontier, t, scope) for t in range(n_trees)])
        frontier.work["usable"], frontier.work["masks"] = self._features(data, scope)
        if scope.pruning:
            self.pruning.begin(frontier, max_leaves)
        return frontier

    def _histograms(self, frontier: Frontier) -> NDArray[np.int32]:
        """Return the memory for the histograms of trees that grow side by side."""
        n_trees, n_nodes = frontier.nodes.shape[:2]
        shape = (
            n_trees,
            slots_needed((n_nodes + 1) // 2),
            int(frontier.data.bin_offsets[-1]),
            padded(frontier.stats.n_channels),
        )
        return self._scratch("histograms", shape, np.int32)

    def _first_rows(self, stats: Stats, scope: GrowthScope, n_rows: int) -> NDArray[np.int32]:
        """Return the rows of the roots, without those that add to no sum where it is cheap to know them."""
        rows: NDArray[np.int32]
        if scope.sample_indices is not None:
            rows = scope.sample_indices
        elif stats.one_hot and not stats.min_count:
            rows = one_hot.rows_with_weight(stats.quantised[0])
        else:
            rows = self._arange(n_rows)
        return rows

    def _root_total(self, frontier: Frontier, t: int, scope: GrowthScope) -> IntArray:
        stats = frontier.stats
        if scope.sample_indices is None and len(stats.quantised) == 1:
            return stats.sum
        total: IntArray
        if scope.sample_indices is None and stats.totals is not None:
            total = stats.totals[t]
            return total
        quantised = self._root_q(frontier, t, scope)
        if stats.one_hot:
            total = np.zeros(stats.n_channels, np.int64)
            np.add.at(total, quantised[:, CLASS], quantised[:, WEIGHT])
            total[stats.n_classes :] = quantised[:, COUNT:].sum(axis=0, dtype=np.int64)
        else:
            total = quantised[:, : stats.n_channels].sum(axis=0, dtype=np.int64)
        return total

    def _root_mass(self, frontier: Frontier, t: int, scope: GrowthScope) -> IntArray:
        """Return the sums of abs(quantised) over the rows of a root, for the criterion "rebel"; none for others."""
        stats = frontier.stats
        if stats.criterion != "rebel":
            return np.zeros(0, np.int64)
        if scope.sample_indices is None and len(stats.quantised) == 1:
            return stats.sum_abs
        sum_abs: IntArray = abs(self._root_q(frontier, t, scope)[:, : stats.n_classes]).sum(axis=0, dtype=np.int64)
        return sum_abs

    def _root_q(self, frontier: Frontier, t: int, scope: GrowthScope) -> NDArray[np.int32]:
        """Return the statistics of the rows that tree t starts from."""
        quantised: NDArray[np.int32] = of_tree(frontier.stats.quantised, t)
        if scope.sample_indices is None:
            return quantised
        first, stop = frontier.nodes[t, 0, [START, STOP]]
        own: NDArray[np.int32] = quantised[of_tree(frontier.rows, t)[first:stop]]
        return own

    def _features(self, data: CpuMatrix, scope: GrowthScope) -> tuple[IntArray, NDArray[np.uint64]]:
        """Return the features that may be cut, and for each block the bits of its features that count."""
        n_blocks, _, width = data.blocks.shape
        allowed = np.zeros(n_blocks * width, bool)
        allowed[data.usable] = True
        if scope.feature_mask is not None:
            allowed[: len(scope.feature_mask)] &= scope.feature_mask
        bits = np.zeros((n_blocks, 64), bool)
        bits[:, :width] = allowed.reshape(n_blocks, width)
        return np.flatnonzero(allowed), np.packbits(bits, axis=1, bitorder="little").view(np.uint64)[:, 0]

    def _arange(self, n: int) -> NDArray[np.int32]:
        array = self.scratch.get("arange")
        if array is None or len(array) != n:
            self.scratch["arange"] = array = np.arange(n, dtype=np.int32)
        return array

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
        data, quantised, table = frontier.data, frontier.stats.quantised, frontier.nodes
        usable, masks = frontier.work["usable"], frontier.work["masks"]
        n_rows = int((table[:, nodes[-1], STOP] - table[:, nodes[0], START]).max()) if self.team.n_threads > 1 else 0
        n_sums = n_rows * len(usable) + len(nodes) * int(data.bin_offsets[-1])
        width = padded(frontier.stats.n_channels)
        share = self.team.n_threads > 1 and n_sums * width >= self.team.WORTH_SHARING
        for t, small, large in self._siblings(frontier, nodes):
            if "division" in frontier.work:
                self.pruning.find_splits(self.team, frontier, t, small, large, self._histograms(frontier)[t])
                continue
            if share:
                self._expand_together(frontier, t, small, large)
                continue
            growth_loops.find_splits(
                data.blocks,
                masks,
                usable,
                data.bin_offsets,
                data.has_missing,
                data.skipped,
                of_tree(frontier.rows, t),
                of_tree(quantised, t),
                table[t],
                frontier.totals[t],
                frontier.edges[t],
                self._histograms(frontier)[t],
                frontier.work["sum_abs"][t],
                frontier.stats.n_classes,
                frontier.stats.min_count,
                criterion_number(frontier.stats),
                frontier.stats.one_hot,
                small,
                large,
                unrolled(width),
            )

    def _expand_together(self, frontier: Frontier, t: int, small: int, large: int) -> None:
        """The same as `gpuboost.backends.cpu.loops.growth.expand`, shared by the team."""
        data, quantised, table = frontier.data, of_tree(frontier.stats.quantised, t), frontier.nodes[t]
        histograms, usable, masks = self._histograms(frontier)[t], frontier.work["usable"], frontier.work["masks"]
        totals, edges = frontier.totals[t], frontier.edges[t]
        rows = of_tree(frontier.rows, t)[table[small, START] : table[small, STOP]]
        slot = table[small, SLOT]
        child = histograms[slot]
        other = histograms[table[large, SLOT]] if large >= 0 else child[:0]
        n_channels, stats = child.shape[1], frontier.stats
        lanes = unrolled(n_channels)

        # Wide data are shared by blocks of features, tall data also by chunks of rows, each with a histogram of its own.
        work, n_blocks = len(rows) * len(usable) * n_channels, len(data.blocks)
        n_chunks = min(-(-4 * self.team.n_threads // n_blocks), 1 + work // (4 * child.size))
        if n_chunks == 1:
            parts, sums = histograms[:0], histograms[slot : slot + 1]
        else:
            parts = sums = self._scratch("parts", (n_chunks, *child.shape), np.int32)
        counting = (data.blocks, masks, data.skipped, data.bin_offsets, rows, quantised, sums)
        if stats.one_hot:
            self.team.map(histogram_loops.histogram_of_classes, n_blocks * n_chunks, work, *counting, stats.n_classes)
        else:
            self.team.map(histogram_loops.histogram, n_blocks * n_chunks, work, *counting, lanes)

        shared = (usable, data.bin_offsets, data.has_missing, data.skipped)
        own = (
            totals[small],
            totals[large],
            frontier.work["sum_abs"][t],
            stats.n_classes,
            stats.min_count,
            criterion_number(stats),
            parts,
            child,
            other,
            lanes,
        )
        found = self.team.map(sweep_loops.finish_histogram, len(usable), child.size * (6 + n_chunks), *shared, *own)
        for m, bests in zip((small, large), zip(*found, strict=True), strict=True):
            if m >= 0:
                best = max(bests, key=lambda best: best[0])  # the first of equals: the lowest feature
                histogram = histograms[table[m, SLOT]]
                sweep_loops.store_split(best, data.bin_offsets, histogram, table[m], totals[m], edges[m])

    def run(self, frontier: Frontier, steps: Callable[[], None]) -> None:
        """Give every thread whole trees, where there are enough of them."""
        if len(frontier.nodes) < self.team.n_threads:
            steps()
        elif "division" in frontier.work:
            self.pruning.grow(self.team, frontier)
        else:
            self._grow(frontier)
        self.pruning.end(frontier)

    def _grow(self, frontier: Frontier) -> None:
        """Grow every tree, each on one thread."""
        data, stats, work = frontier.data, frontier.stats, frontier.work
        width = padded(stats.n_channels)
        shape = (slots_needed((frontier.nodes.shape[1] + 1) // 2), int(data.bin_offsets[-1]), width)
        spare = self.scratch.setdefault("spare", [])  # a thread takes memory from it and puts it back

        def share(lo: int, hi: int) -> None:
            memory = spare.pop() if spare else (np.zeros(0, np.int32), np.zeros(0, np.int32))
            histograms, buffer = (
                one if len(one) >= size else np.zeros(size, np.int32)
                for one, size in zip(memory, (math.prod(shape), frontier.rows.shape[1]), strict=True)
            )
            growth_loops.grow(
                lo,
                hi,
                data.blocks,
                work["masks"],
                work["usable"],
                data.bin_offsets,
                data.has_missing,
                data.skipped,
                frontier.rows,
                stats.quantised,
                frontier.nodes,
                frontier.totals,
                frontier.edges,
                frontier.current,
                histograms[: math.prod(shape)].reshape(shape),
                buffer,
                work["sum_abs"],
                stats.n_classes,
                stats.n_voting,
                stats.min_count,
                criterion_number(stats),
                stats.one_hot,
                unrolled(width),
            )
            spare.append((histograms, buffer))

        n_started = int((frontier.nodes[:, 0, STOP] - frontier.nodes[:, 0, START]).sum())
        self.team.map(share, len(frontier.nodes), 4 * n_started * len(work["usable"]) * width)

    def pop_best_leaf(self, frontier: Frontier) -> bool:
        n_slots = slots_needed((frontier.nodes.shape[1] + 1) // 2)
        found = growth_loops.pop_best_leaf(frontier.step, frontier.nodes, frontier.current, n_slots)
        frontier.step += 1
        return bool(found)

    def partition(self, frontier: Frontier) -> None:
        f = frontier
        buffer = self._scratch("buffer", (f.rows.shape[1],), np.int32)
        for t, node in enumerate(f.current.tolist()):
            if node >= 0 and f.nodes[t, node, LEFT]:
                growth_loops.partition(
                    f.data.blocks, of_tree(f.rows, t), buffer, f.nodes[t], f.totals[t], f.edges[t], f.stats.n_voting, node
                )

    def node_of_rows(self, frontier: Frontier) -> NDArray[np.int32]:
        f = frontier
        out = np.empty((len(f.rows), f.data.n_rows), np.int32)
        for t in range(len(out)):
            growth_loops.node_of_rows(f.rows[t], f.nodes[t], out[t])
        if f.rows.shape[1] < f.data.n_rows:  # of one tree, see `_first_rows`
            own = (f.stats.quantised[0], f.data.blocks, f.nodes[0], out[0])
            self.team.map(growth_loops.place_weightless, f.data.n_rows, 64 * f.data.n_rows, *own)
        return out

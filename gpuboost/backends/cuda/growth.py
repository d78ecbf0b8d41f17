"""Growing trees on the device. The host queues launches and waits for nothing; `read_nodes` asks for the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import Gpu, GpuArray
from gpuboost.backends.cuda.growth_work import GrowthWork, Recording, Start, criterion_arguments, work_of
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK
from gpuboost.backends.cuda.launch import Launch, prepare
from gpuboost.backends.cuda.matrix import CudaMatrix, DeviceColumns
from gpuboost.backends.cuda.plan import SWEEP_WARPS, GrowthPlan, Tile, plan_growth
from gpuboost.backends.frontier import SLOT, WHOLE, Frontier, GrowthScope, root_bounds
from gpuboost.backends.statistics import Stats

N_COLUMNS = SLOT + 1
MOST_RECORDED = 1024
"""Leaves up to which a growth is recorded, and replayed to its end without a wait."""

ASK_EVERY = 32
"""After so many steps of a growth with more leaves the host waits to learn whether any tree still grows."""

MAX_NODE_BLOCKS = 64
"""Blocks that share the nodes of a tree, to say where its rows are."""

ROOT, SMALLER, _, LEFT_CHILD, RIGHT_CHILD = range(5)
"""Which of the nodes of an expansion a kernel works on, as in ``common.cuh``."""


class CudaGrowth:
    """The primitives that grow trees; see `gpuboost.backends.base`."""

    gpu: Gpu
    buffers: dict[str, GpuArray]
    recordings: dict[tuple[int | str, ...], Recording]
    starts: dict[tuple[int | str, ...], Start]
    recorded: DeviceColumns | None = None
    """Of which matrix the recordings are."""
    queued: list[Launch | GpuArray] | None = None
    """What has been queued since a recording began."""

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> GpuArray:
        """Return an array in memory that is kept between rounds. Its contents are left over, or zero if it is new."""
        size = math.prod(shape)
        if name not in self.buffers or self.buffers[name].shape[0] < size:
            self.buffers.pop(name, None)  # given back before the new one is asked for
            self._forget()  # recordings of the old one
            self.buffers[name] = self.gpu.empty((size,), dtype)
            self.gpu.zero(self.buffers[name])
        return self.buffers[name][:size].reshape(shape)

    def _forget(self) -> None:
        self.recordings.clear()
        self.starts.clear()

    def _keep_recordings_of(self, columns: DeviceColumns) -> None:
        """Forget the growths on another matrix: a booster that draws its rows has a new one every round."""
        if self.recorded is not columns:
            self._forget()
            self.recorded = columns

    def _grid(self, n: int) -> int:
        """Return the number of blocks for ``n`` rows: the kernels' loops take more rows than threads."""
        return max(1, min(-(-n // DEFAULT_BLOCK), 8 * self.gpu.limits.n_multiprocessors))

    def _launch(self, name: str, grid: tuple[int, ...], *arguments: Any, block: int = DEFAULT_BLOCK, shared: int = 0) -> None:
        launch = prepare(self.gpu, name, grid, arguments, block=block, shared_bytes=shared)
        launch.queue(self.gpu)
        if self.queued is not None:
            self.queued.append(launch)

    def _zero(self, array: GpuArray) -> None:
        self.gpu.zero(array)
        if self.queued is not None:
            self.queued.append(array)

    # ---- the frontier ------------------------------------------------------------------------------------------------------

    def start_growth(self, data: CudaMatrix, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        self._keep_recordings_of(data.columns)
        if not scope.is_whole:
            return self._begin(data, stats, max_leaves, scope)
        key = (id(data.columns), *stats.quantised.shape, stats.n_classes, stats.criterion, stats.wide, max_leaves)
        if key in self.starts:
            return self.starts[key].again(self.gpu, data, stats)
        queued: list[Launch | GpuArray] = []
        self.queued = queued
        try:
            frontier = self._begin(data, stats, max_leaves, scope)
        finally:
            self.queued = None
        self.starts[key] = Start.of(Recording.of(queued, stats.quantised, data.columns), frontier)
        return frontier

    def _begin(self, data: CudaMatrix, stats: Stats, max_leaves: int, scope: GrowthScope) -> Frontier:
        """Return trees of one node each, in buffers that are looked up and divided anew."""
        n_rows, n_channels = stats.quantised.shape[1:]
        n_started = n_rows if scope.sample_indices is None else scope.sample_indices.shape[0]
        work = self._work(data, stats, max_leaves, scope, len(root_bounds(stats, scope, n_started)))
        table, current = work.table, self._buffer("current", (work.n_trees,), np.int64)
        grid = (self._grid(n_started), work.n_trees)
        bounds = None if scope.bounds is None else self.gpu.put(scope.bounds.astype(np.int64))
        histogram, is_kept = work.histograms[0], work.plan.kept
        n_cells = histogram.nbytes // 4 // work.n_trees if is_kept else 0  # else each is cleared before it is counted
        sizes = {"n_started": n_started, "n_cells": n_cells, "stride": work.stride}
        table_sizes = {"max_nodes": work.max_nodes, "n_channels": n_channels}
        nodes = (work.rows, table, current, scope.sample_indices, bounds)
        self._launch("init_roots", grid, *nodes, histogram, {**sizes, **table_sizes})
        if work.sum_abs is not None:
            self._zero(work.sum_abs)
        arrays = (work.rows, stats.quantised, table, work.sum_abs)
        strides = (work.stride, work.quantised_stride)
        self._launch("root_totals", grid, *arrays, *strides, work.max_nodes, stats.n_classes, n_channels)
        totals, edges = (table[:, :, N_COLUMNS + i * n_channels :][:, :, :n_channels] for i in (0, 1))
        return Frontier(data, stats, work.rows[:, :n_started], table[:, :, :N_COLUMNS], totals, edges, current, work=work)

    def _work(self, data: CudaMatrix, stats: Stats, max_leaves: int, scope: GrowthScope, n_trees: int) -> GrowthWork:
        """Return the buffers of a growth of ``n_trees`` trees."""
        n_sets, n_rows, n_channels = stats.quantised.shape
        # Trees have a list of rows each, or stretches of one list, which is not longer than all of these.
        n_lists, length, stride = (n_sets, n_rows, n_rows) if scope.bounds is None else (1, n_sets * n_rows, 0)
        table = self._buffer("table", (n_trees, 2 * max_leaves - 1, N_COLUMNS + 2 * n_channels), np.int64)
        rows, scratch = (self._buffer(name, (n_lists, length), np.int32) for name in ("rows", "sorted"))
        cursors = self._buffer("cursors", (n_trees, 2), np.int32)  # zero when new, and left so by every partition
        plan = self._plan(data, n_trees, stats, max_leaves)
        n_found = 2 * n_trees * (1 + max(tile.n_features for tile in plan.tiles))
        is_rebel = stats.criterion == "rebel"
        return GrowthWork(
            plan=plan,
            columns=data.columns,
            bins=self._chosen_bins(data.columns, scope.feature_mask),
            table=table,
            rows=rows,
            sorted=scratch,
            cursors=cursors,
            histograms=self._buffer(
                "histograms", (plan.n_slots, n_trees, plan.tile_bins, n_channels * (1 + plan.wide)), np.int32
            ),
            tickets=self._buffer("tickets", (n_trees,), np.int32),  # as the cursors
            found=self._buffer("found", (n_found, 2), np.int64),
            sum_abs=self._buffer("sum_abs", (n_trees, stats.n_classes), np.int64) if is_rebel else None,
            stride=stride,
            quantised_stride=n_rows if n_sets > 1 else 0,
        )

    def _chosen_bins(self, columns: DeviceColumns, features: NDArray[np.bool_] | None) -> GpuArray:
        """Return the bins of every feature, 0 of one that may not be split."""
        if features is None:
            return columns.bins
        n_padded = columns.bins.shape[0]
        chosen = np.zeros(n_padded, np.uint8)
        chosen[: len(features)] = features
        bins = self._buffer("bins", (n_padded, 2), np.int32)
        self._launch("choose_features", (self._grid(n_padded),), columns.bins, self.gpu.put(chosen), bins, n_padded)
        return bins

    def _plan(self, data: CudaMatrix, n_trees: int, stats: Stats, max_leaves: int) -> GrowthPlan:
        """Return the plan for a batch; it is made once, before the first tree."""
        columns, (n_sets, n_rows, n_channels) = data.columns, stats.quantised.shape
        key = (n_trees, n_channels, max_leaves, stats.wide)
        if key not in columns.plans:
            self.buffers.pop("histograms", None)  # another plan's
            self._forget()  # they hold it, too
            stride = int(data.n_bins.max(initial=2))
            # The next round's statistics are made while this round's are still there; and there are the rows' leaves.
            free = max(0, self.gpu.free_bytes() - 4 * n_sets * n_rows * (n_channels + 1))
            batch = (n_trees, n_channels, max_leaves, free, self.gpu.limits, stats.wide)
            columns.plans[key] = plan_growth(columns.host, stride, *batch)
        return columns.plans[key]

    def read_nodes(self, frontier: Frontier) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        table = self.gpu.get(work_of(frontier).table)
        n_channels = frontier.stats.n_channels
        return table[:, :, :N_COLUMNS], table[:, :, N_COLUMNS + n_channels :]

    def read_totals(self, frontier: Frontier) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        table = self.gpu.get(work_of(frontier).table)
        return table[:, :, :N_COLUMNS], table[:, :, N_COLUMNS : N_COLUMNS + frontier.stats.n_channels]

    def run(self, frontier: Frontier, grow_steps: Callable[[], None]) -> None:
        stats, work, max_leaves = frontier.stats, work_of(frontier), (frontier.nodes.shape[1] + 1) // 2
        scope = (work.n_trees, work.stride, work.bins is work.columns.bins)
        problem = (*stats.quantised.shape, stats.n_classes, stats.min_count, stats.criterion, stats.wide, max_leaves)
        key = (id(work.columns), *problem, *scope)
        try:
            if key in self.recordings:
                self.recordings[key].replay(self.gpu, stats.quantised)
                frontier.step = max_leaves - 1
            elif max_leaves > MOST_RECORDED:
                grow_steps()
            else:
                self.queued = []
                grow_steps()
                self.recordings[key] = Recording.of(self.queued, stats.quantised, work.columns)
        except BaseException:  # a growth that stops between two launches may leave them other than zero
            for name in ("cursors", "tickets"):
                self.buffers.pop(name, None)
            self._forget()
            raise
        finally:
            self.queued = None

    # ---- a step ------------------------------------------------------------------------------------------------------------

    def find_splits(self, frontier: Frontier, nodes: Sequence[int]) -> None:
        plan = work_of(frontier).plan
        is_root = len(nodes) == 1
        for tile in plan.tiles:
            if plan.kept:
                self._histogram(frontier, tile, ROOT if is_root else SMALLER, 0 if is_root else frontier.step)
            else:
                for slot, member in enumerate((ROOT,) if is_root else (LEFT_CHILD, RIGHT_CHILD)):
                    self._histogram(frontier, tile, member, slot)
            self._sweep(frontier, tile, ROOT if is_root else LEFT_CHILD)

    def _histogram(self, frontier: Frontier, tile: Tile, member: int, slot: int) -> None:
        """Sum the histograms of a node of every tree into ``slot``."""
        work, stats = work_of(frontier), frontier.stats
        columns, plan, nodes = work.columns, work.plan, (work.table, frontier.current, work.sums)
        n_rows, n_channels = stats.quantised.shape[1:]
        if not plan.kept:  # else `init_roots` and the partition have cleared them
            self._zero(work.histograms[slot])
        batch = {"n_trees": work.n_trees, "max_nodes": work.max_nodes, "n_channels": n_channels}
        node = {"member": member, "first_bin": tile.first_bin, "bins_in_tile": plan.tile_bins}
        rows = {"n_rows": n_rows, "stride": work.stride, "quantised_stride": work.quantised_stride}
        words = {"first_word": tile.first_word, "n_words": tile.n_words, "words_per_tile": plan.lanes.words}
        shared = {"channels_per_tile": plan.lanes.channels, "groups": plan.groups, "bins_stride": plan.bins_stride}
        grid = plan.histogram_grid(tile, n_rows // 2 if member == SMALLER else n_rows, work.n_trees, n_channels)
        codes = (frontier.data.codes.view(np.uint32), columns.skipped.view(np.uint32), columns.words, work.bins)
        arguments = (*codes, work.rows, stats.quantised, *nodes, {**batch, **node, **rows, **words, **shared})
        self._launch(work.kernel("histogram"), grid, *arguments, block=plan.block, shared=plan.shared_bytes)

    def _sweep(self, frontier: Frontier, tile: Tile, first_member: int) -> None:
        """Finish the histograms of one or two nodes of every tree, and find their best splits."""
        stats, work = frontier.stats, work_of(frontier)
        columns, nodes = work.columns, (work.table, frontier.current, work.sums)
        batch = {"n_trees": work.n_trees, "max_nodes": work.max_nodes, "bins_in_tile": work.plan.tile_bins}
        channels = {name: getattr(stats, name) for name in ("n_classes", "n_channels", "n_voting", "min_count")}
        features = {name: getattr(tile, name) for name in ("first_feature", "n_features", "first_bin")}
        sizes = {**batch, **channels, **features, "first_member": first_member, "kept": int(work.plan.kept)}
        swept = (columns.features, work.bins, columns.facts, *nodes, *criterion_arguments(stats.criterion, work))
        grid, shared = (max(1, tile.n_features), work.n_trees), work.sums.dtype.itemsize * SWEEP_WARPS * stats.n_channels
        self._launch(work.kernel(f"sweep_{stats.criterion}"), grid, *swept, work.found, work.tickets, sizes, shared=shared)

    def pop_best_leaf(self, frontier: Frontier) -> bool:
        """Pop on the device. Only the device knows whether a tree still grows, and it is asked now and then."""
        work, n_channels = work_of(frontier), frontier.stats.n_channels
        arguments = (work.table, frontier.current, work.max_nodes, n_channels, frontier.step)
        self._launch("pop_best_leaf", (work.n_trees,), *arguments, block=32)
        frontier.step += 1
        if self.queued is not None or frontier.step % ASK_EVERY:
            return True
        return bool((self.gpu.get(frontier.current) >= 0).any())

    def partition(self, frontier: Frontier) -> None:
        work, stats = work_of(frontier), frontier.stats
        n_rows, n_channels = stats.quantised.shape[1:]
        grid, arrays = (self._grid(n_rows), work.n_trees), (work.rows, work.sorted, work.table, frontier.current, work.cursors)
        self._launch("partition_rows", grid, frontier.data.codes, *arrays, n_rows, work.stride, work.max_nodes, n_channels)
        # The smaller children are counted into this slot next, unless these are the last ones, which need no histogram.
        slot = frontier.step if work.plan.kept and frontier.step < work.plan.n_slots else 0
        histogram = work.histograms[slot]
        sizes = {"stride": work.stride, "max_nodes": work.max_nodes, "n_classes": stats.n_voting, "n_channels": n_channels}
        cells = {"slot": frontier.step, "n_cells": histogram.nbytes // 4 // work.n_trees if slot else 0}
        self._launch("partition_nodes", grid, *arrays, histogram, {**sizes, **cells})

    def node_of_rows(self, frontier: Frontier) -> GpuArray:
        n_trees, n_rows, n_channels = frontier.stats.quantised.shape
        table = work_of(frontier).table
        out = self.gpu.empty((n_trees, n_rows), np.int32)
        of_nodes = min(table.shape[1], MAX_NODE_BLOCKS)
        grid = (min(self._grid(n_rows), -(-2 * self._grid(1 << 30) // (of_nodes * n_trees))), of_nodes, n_trees)
        self._launch("node_of_rows", grid, frontier.rows, table, out, n_rows, table.shape[1], n_channels)
        return out

"""Growing trees on the device. The host queues launches and waits for nothing; `read_nodes` asks for the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import Gpu, GpuArray
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK, Launch, prepare
from gpuboost.backends.cuda.matrix import CudaMatrix
from gpuboost.backends.cuda.plan import Columns, GrowthPlan, Tile, plan_growth
from gpuboost.backends.frontier import SLOT, WHOLE, Frontier, GrowthScope, root_bounds
from gpuboost.backends.statistics import Stats

N_COLUMNS = SLOT + 1
N_WARPS = DEFAULT_BLOCK // 32
ASK_EVERY = 32
"""After so many steps the host waits for the device to learn whether any tree still grows."""

ROOT, SMALLER, _, LEFT_CHILD, RIGHT_CHILD = range(5)
"""Which of the nodes of an expansion a kernel works on, as in ``common.cuh``."""


class GrowthColumns:
    """What the growth kernels read of a matrix, besides its codes.

    Attributes
    ----------
    columns : Columns
    words, features, n_bins, bin_offset : device arrays of int32
    has_missing : device array of uint8
    """

    def __init__(self, gpu: Gpu, data: CudaMatrix) -> None:
        self.columns = columns = Columns.of(data.n_bins, data.usable)
        has_missing = np.zeros(len(columns.n_bins), np.uint8)
        has_missing[: data.n_features] = data.has_missing
        self.words, self.features = gpu.put(columns.words), gpu.put(columns.features)
        self.n_bins, self.bin_offset = gpu.put(columns.n_bins), gpu.put(columns.offsets)
        self.has_missing, self.skipped = gpu.put(has_missing), gpu.put(data.skipped)
        self.plans: dict[tuple[int, ...], GrowthPlan] = {}


STATISTICS = object()
"""Stands in a recording for the statistics of the day."""


@dataclass(frozen=True)
class Recording:
    """What a growth has queued: launches, and arrays that were set to zero.

    It is checked once and queued again every round, as checking takes longer than queueing. Only the statistics change, and
    the contents of the arrays that a start fills: what is queued here does not know how many rows it has.
    """

    queued: list[Launch | GpuArray]
    owner: GrowthColumns  # kept, so that its id stays its own

    @classmethod
    def of(cls, queued: list[Launch | GpuArray], quantised: GpuArray, owner: GrowthColumns) -> Recording:
        """Return the recording of what has been queued for the statistics ``quantised``."""
        return cls([item.replace(quantised, STATISTICS) if isinstance(item, Launch) else item for item in queued], owner)

    def run(self, gpu: Gpu, quantised: GpuArray) -> None:
        """Queue all of it again for other statistics."""
        for item in self.queued:
            if isinstance(item, Launch):
                item.replace(STATISTICS, quantised).queue(gpu)
            else:
                gpu.zero(item)


class CudaGrowth:
    """The primitives that grow trees; see `gpuboost.backends.base`."""

    gpu: Gpu
    buffers: dict[str, GpuArray]
    recordings: dict[tuple[int | str, ...], Recording]
    queued: list[Launch | GpuArray] | None = None
    """What has been queued since `frequency_weight` began to record."""

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> GpuArray:
        """Return an array in memory that is kept between rounds. Its contents are left over, or zero if it is new."""
        size = math.prod(shape)
        if name not in self.buffers or self.buffers[name].shape[0] < size:
            self.buffers.pop(name, None)  # given back before the new one is asked for
            self.recordings.clear()  # they are of the old one
            self.buffers[name] = self.gpu.empty((size,), dtype)
            self.gpu.zero(self.buffers[name])
        return self.buffers[name][:size].reshape(shape)

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
        n_sets, n_rows, n_channels = stats.quantised.shape
        n_started = n_rows if scope.sample_indices is None else scope.sample_indices.shape[0]
        n_trees, max_nodes = len(root_bounds(stats, scope, n_started)), 2 * max_leaves - 1
        # Trees have a list of rows each, or stretches of one list, which is not longer than all of these.
        n_lists, length, stride = (n_sets, n_rows, n_rows) if scope.bounds is None else (1, n_sets * n_rows, 0)
        q_stride = n_rows if n_sets > 1 else 0
        work: dict[str, Any] = {"stride": stride, "q_stride": q_stride}
        work["table"] = table = self._buffer("table", (n_trees, max_nodes, N_COLUMNS + 2 * n_channels), np.int64)
        work["rows"] = rows = self._buffer("rows", (n_lists, length), np.int32)
        work["sorted"] = self._buffer("sorted", (n_lists, length), np.int32)
        work["cursors"] = self._buffer("cursors", (n_trees, 2), np.int32)  # zero when new, and left so by every partition
        current = self._buffer("current", (n_trees,), np.int64)
        work["plan"] = plan = self._plan(data, n_trees, stats, max_leaves)
        work["histograms"] = self._buffer("histograms", (plan.n_slots, n_trees, plan.tile_bins, n_channels), np.int32)
        of_features = (n_trees, 2, max(tile.n_features for tile in plan.tiles))
        work["scores"] = self._buffer("scores", of_features, np.int64)
        work["places"] = self._buffer("places", of_features, np.int32)
        work["best"] = self._buffer("best", (n_trees, 2), np.int64)
        work["n_bins"] = self._chosen_bins(data, scope.feature_mask)

        bounds = None if scope.bounds is None else self.gpu.put(scope.bounds.astype(np.int64))
        grid = (self._grid(n_started), n_trees)
        own = (rows, table, current, scope.sample_indices, bounds)
        self._launch("plant", grid, *own, n_started, stride, max_nodes, n_channels)
        work["sum_abs"] = sum_abs = (
            self._buffer("sum_abs", (n_trees, stats.n_classes), np.int64) if stats.criterion == "rebel" else None
        )
        if sum_abs is not None:
            self.gpu.zero(sum_abs)
        sizes = (stride, q_stride, max_nodes, stats.n_classes, n_channels)
        self._launch("root_totals", grid, rows, stats.quantised, table, sum_abs, *sizes)
        totals, edges = (table[:, :, N_COLUMNS + i * n_channels :][:, :, :n_channels] for i in (0, 1))
        return Frontier(data, stats, rows[:, :n_started], table[:, :, :N_COLUMNS], totals, edges, current, work=work)

    def _chosen_bins(self, data: CudaMatrix, features: NDArray[np.bool_] | None) -> GpuArray:
        """Return the bins of every feature, 0 of one that cannot be cut."""
        growth = self._columns(data)
        if features is None:
            return growth.n_bins
        n_padded = growth.n_bins.shape[0]
        chosen = np.zeros(n_padded, np.uint8)
        chosen[: len(features)] = features
        bins = self._buffer("n_bins", (n_padded,), np.int32)
        self._launch("choose_features", (self._grid(n_padded),), growth.n_bins, self.gpu.put(chosen), bins, n_padded)
        return bins

    def _columns(self, data: CudaMatrix) -> GrowthColumns:
        growth: GrowthColumns = data.growth or GrowthColumns(self.gpu, data)
        data.growth = growth
        return growth

    def _plan(self, data: CudaMatrix, n_trees: int, stats: Stats, max_leaves: int) -> GrowthPlan:
        """Return the plan for a batch; it is made once, before the first tree."""
        growth, (n_sets, n_rows, n_channels) = self._columns(data), stats.quantised.shape
        key = (n_trees, n_channels, max_leaves)
        if key not in growth.plans:
            self.buffers.pop("histograms", None)  # another plan's
            self.recordings.clear()  # they hold it, too
            stride = int(data.n_bins.max(initial=2))
            # The next round's statistics are made while this round's are still there; and there are the rows' leaves.
            free = max(0, self.gpu.free_bytes() - 4 * n_sets * n_rows * (n_channels + 1))
            growth.plans[key] = plan_growth(growth.columns, stride, n_trees, n_channels, max_leaves, free, self.gpu.limits)
        return growth.plans[key]

    def read_nodes(self, frontier: Frontier) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        table = self.gpu.get(frontier.work["table"])
        n_channels = frontier.stats.n_channels
        return table[:, :, :N_COLUMNS], table[:, :, N_COLUMNS + n_channels :]

    def read_totals(self, frontier: Frontier) -> NDArray[np.int64]:
        table = self.gpu.get(frontier.work["table"])
        return table[:, :, N_COLUMNS : N_COLUMNS + frontier.stats.n_channels]

    def run(self, frontier: Frontier, steps: Callable[[], None]) -> None:
        stats, growth, max_leaves = frontier.stats, self._columns(frontier.data), (frontier.nodes.shape[1] + 1) // 2
        starts = (len(frontier.current), frontier.work["stride"], frontier.work["n_bins"] is growth.n_bins)
        key = (id(growth), *stats.quantised.shape, stats.n_classes, stats.min_count, stats.criterion, max_leaves, *starts)
        try:
            if key in self.recordings:
                self.recordings[key].run(self.gpu, stats.quantised)
                frontier.step = max_leaves - 1
            elif max_leaves > ASK_EVERY:
                steps()
            else:
                self.queued = []
                steps()
                self.recordings[key] = Recording.of(self.queued, stats.quantised, growth)
        except BaseException:  # a growth that stops between two launches may leave them other than zero
            self.buffers.pop("cursors", None)
            raise
        finally:
            self.queued = None

    # ---- a step ------------------------------------------------------------------------------------------------------------

    def find_splits(self, frontier: Frontier, nodes: Sequence[int]) -> None:
        plan: GrowthPlan = frontier.work["plan"]
        is_root = len(nodes) == 1
        for tile in plan.tiles:
            if plan.kept:
                self._histogram(frontier, tile, ROOT if is_root else SMALLER, 0 if is_root else frontier.step)
            else:
                for slot, member in enumerate((ROOT,) if is_root else (LEFT_CHILD, RIGHT_CHILD)):
                    self._histogram(frontier, tile, member, slot)
            self._sweep(frontier, tile, ROOT if is_root else LEFT_CHILD, len(nodes))

    def _histogram(self, frontier: Frontier, tile: Tile, member: int, slot: int) -> None:
        """Sum the histograms of a node of every tree into ``slot``, and complete them and their siblings'."""
        data, work, current = frontier.data, frontier.work, frontier.current
        growth, plan, table, histograms = self._columns(data), work["plan"], work["table"], work["histograms"]
        (_, n_rows, n_channels), n_trees = frontier.stats.quantised.shape, len(current)
        self._zero(histograms[slot])
        rows_at_most = n_rows // 2 if member == SMALLER else n_rows
        self._launch(
            "histogram",
            plan.histogram_grid(tile, rows_at_most, n_trees, n_channels),
            data.codes.view(np.uint32),
            growth.skipped.view(np.uint32),
            growth.words,
            work["n_bins"],
            growth.bin_offset,
            work["rows"],
            frontier.stats.quantised,
            table,
            current,
            histograms,
            n_rows,
            work["stride"],
            work["q_stride"],
            table.shape[1],
            n_channels,
            member,
            n_trees,
            tile.first_word,
            tile.n_words,
            plan.lanes.words,
            plan.lanes.channels,
            plan.groups,
            plan.bins_stride,
            tile.first_bin,
            plan.tile_bins,
            block=plan.block,
            shared=plan.shared_bytes,
        )
        self._launch(
            "siblings",
            (tile.n_features, n_trees),
            growth.skipped,
            growth.features,
            work["n_bins"],
            growth.bin_offset,
            table,
            current,
            histograms,
            n_trees,
            table.shape[1],
            n_channels,
            member,
            tile.first_feature,
            tile.first_bin,
            plan.tile_bins,
            shared=4 * n_channels,
        )

    def _sweep(self, frontier: Frontier, tile: Tile, first_member: int, n_members: int) -> None:
        """Find the best cut of one or two nodes of every tree."""
        stats, growth, work, current = frontier.stats, self._columns(frontier.data), frontier.work, frontier.current
        plan, table, histograms, scores, places = (work[n] for n in ("plan", "table", "histograms", "scores", "places"))
        n_trees = len(current)
        self._launch(
            f"sweep_{stats.criterion}",
            (tile.n_features, n_members, n_trees),
            growth.features,
            work["n_bins"],
            growth.bin_offset,
            growth.has_missing,
            table,
            current,
            histograms,
            *([] if work["sum_abs"] is None else [work["sum_abs"]]),
            scores,
            places,
            n_trees,
            table.shape[1],
            stats.n_classes,
            stats.n_channels,
            stats.min_count,
            first_member,
            int(plan.kept),
            tile.first_feature,
            tile.first_bin,
            plan.tile_bins,
            shared=4 * N_WARPS * stats.n_channels,
        )
        self._launch(
            "choose_cut",
            (n_members, n_trees),
            growth.features,
            growth.bin_offset,
            table,
            current,
            histograms,
            scores,
            places,
            work["best"],
            n_trees,
            table.shape[1],
            stats.n_voting,
            stats.n_channels,
            first_member,
            int(plan.kept),
            tile.n_features,
            tile.first_feature,
            tile.first_bin,
            plan.tile_bins,
            shared=4 * stats.n_channels,
        )

    def pop_best_leaf(self, frontier: Frontier) -> bool:
        """Pop on the device. Only the device knows whether a tree still grows, and it is asked now and then."""
        table, n_channels = frontier.work["table"], frontier.stats.n_channels
        grid = (len(table),)
        self._launch("select_node", grid, table, frontier.current, table.shape[1], n_channels, frontier.step, block=32)
        frontier.step += 1
        return frontier.step % ASK_EVERY != 0 or bool((self.gpu.get(frontier.current) >= 0).any())

    def partition(self, frontier: Frontier) -> None:
        (_, n_rows, n_channels), work, table = frontier.stats.quantised.shape, frontier.work, frontier.work["table"]
        own = (work["rows"], work["sorted"], table, frontier.current, work["cursors"])
        grid, sizes = (self._grid(n_rows), len(frontier.current)), (work["stride"], table.shape[1])
        self._launch("partition_rows", grid, frontier.data.codes, *own, n_rows, *sizes, n_channels)
        self._launch("partition_nodes", grid, *own, *sizes, frontier.stats.n_voting, n_channels, frontier.step)

    def node_of_rows(self, frontier: Frontier) -> GpuArray:
        n_trees, n_rows, n_channels = frontier.stats.quantised.shape
        table = frontier.work["table"]
        out = self.gpu.empty((n_trees, n_rows), np.int32)
        grid = (self._grid(n_rows), table.shape[1], n_trees)
        self._launch("node_of_rows", grid, frontier.rows, table, out, n_rows, table.shape[1], n_channels)
        return out

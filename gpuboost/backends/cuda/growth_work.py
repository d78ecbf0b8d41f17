"""What a growth on the device works in, and the recording that replays it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from gpuboost.backends.criteria import Criterion
from gpuboost.backends.cuda.gpu import Gpu, GpuArray
from gpuboost.backends.cuda.kernels import Argument
from gpuboost.backends.cuda.launch import Launch
from gpuboost.backends.cuda.matrix import CudaMatrix, DeviceColumns
from gpuboost.backends.cuda.plan import GrowthPlan
from gpuboost.backends.frontier import Frontier
from gpuboost.backends.statistics import Stats
from gpuboost.exactmath import LOG2_COEFFICIENTS

STATISTICS = object()
"""Stands in a recording for the statistics of the round that is replayed."""


@dataclass(frozen=True, eq=False)
class GrowthWork:
    """What a growth works in: `gpuboost.backends.frontier.Frontier.work` of this backend. Buffers are kept between rounds.

    Attributes
    ----------
    plan : GrowthPlan
    columns : DeviceColumns
    bins : device array of int32, shape (n_features padded, 2)
        Those of ``columns``, or those of the features that this growth may split.
    table : device array of int64, shape (n_trees, max_nodes, N_COLUMNS + 2 * n_channels)
        Node records, see ``common.cuh``.
    rows, sorted : device arrays of int32, shape (n_lists, n)
        Row numbers by node, and scratch of a partition. A list a tree, or one for all trees that start from stretches of it.
    cursors, tickets : device arrays of int32, shapes (n_trees, 2) and (n_trees,)
        Zero between partitions, and between sweeps.
    histograms : device array of int32, shape (n_slots, n_trees, bins, n_channels, or twice that for a wide growth)
    found : device array of int64, shape (n_trees * 2 * (1 + n_features), 2)
        The best scores of the tiles so far, and the best split of each feature; see ``sweep.cu``.
    sum_abs : device array of int64, shape (n_trees, n_classes), optional
        Of the roots, for the criterion "rebel".
    stride, quantised_stride : int
        From a tree's rows, and a tree's statistics, to the next tree's; see ``init_roots.cu``.
    """

    plan: GrowthPlan
    columns: DeviceColumns
    bins: GpuArray
    table: GpuArray
    rows: GpuArray
    sorted: GpuArray
    cursors: GpuArray
    histograms: GpuArray
    tickets: GpuArray
    found: GpuArray
    sum_abs: GpuArray | None
    stride: int
    quantised_stride: int

    @property
    def sums(self) -> GpuArray:
        """The histograms as what they hold, int32 or int64."""
        return self.histograms.view(np.int64) if self.plan.wide else self.histograms

    def with_histograms(self, histograms: GpuArray) -> GrowthWork:
        """Return the same with other histograms, of as many bins."""
        return replace(self, histograms=histograms)

    def kernel(self, name: str) -> str:
        """Return the name of a kernel for these histograms."""
        return f"{name}_wide" if self.plan.wide else name

    @property
    def n_trees(self) -> int:
        return int(self.table.shape[0])

    @property
    def max_nodes(self) -> int:
        return int(self.table.shape[1])


def work_of(frontier: Frontier) -> GrowthWork:
    """Return what a frontier of this backend works in."""
    work: GrowthWork = frontier.work
    return work


MOST_GRAPHS = 4
"""Addresses of statistics for which a growth is captured. A memory pool gives out the same few again and again."""


@dataclass(frozen=True)
class Recording:
    """What a growth has queued: launches, and arrays that were set to zero.

    Launches are checked when they are recorded, and queued without checks in later rounds, as checking takes longer than
    queueing. Only the statistics differ between rounds, and the contents of the arrays that `CudaGrowth.start_growth` fills:
    no recorded launch depends on how many rows a tree starts from. Where statistics lie where others have lain before, all of
    it is one graph, which the device works off without the host.
    """

    queued: list[Launch | GpuArray]
    owner: DeviceColumns  # kept, so that its id stays its own
    graphs: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, queued: list[Launch | GpuArray], quantised: GpuArray, owner: DeviceColumns) -> Recording:
        """Return the recording of what has been queued for the statistics ``quantised``."""
        return cls([item.replace(quantised, STATISTICS) if isinstance(item, Launch) else item for item in queued], owner)

    def replay(self, gpu: Gpu, quantised: GpuArray) -> None:
        """Queue all of it again for other statistics."""
        address = gpu.address(quantised)
        if address not in self.graphs and len(self.graphs) < MOST_GRAPHS:
            self.graphs[address] = gpu.capture(lambda: self.queue(gpu, quantised))
        graph = self.graphs.get(address)
        if graph is None:
            self.queue(gpu, quantised)
        else:
            gpu.replay(graph)

    def queue(self, gpu: Gpu, quantised: GpuArray) -> None:
        """Queue it item by item."""
        for item in self.queued:
            if isinstance(item, Launch):
                item.replace(STATISTICS, quantised).queue(gpu)
            else:
                gpu.zero(item)


@dataclass(frozen=True)
class Start:
    """The start of a growth from all rows: what it has queued, and the parts of its frontier, which are the same every time."""

    recording: Recording
    parts: dict[str, Any]

    @classmethod
    def of(cls, recording: Recording, frontier: Frontier) -> Start:
        """Return the start of a growth, without its statistics."""
        names = ("rows", "nodes", "totals", "edges", "current", "work")
        return cls(recording, {name: getattr(frontier, name) for name in names})

    def again(self, gpu: Gpu, data: CudaMatrix, stats: Stats) -> Frontier:
        """Start with other statistics."""
        self.recording.queue(gpu, stats.quantised)
        return Frontier(data, stats, **self.parts)


def criterion_arguments(criterion: Criterion, work: GrowthWork) -> list[Argument]:
    """Return what the sweep of this criterion takes besides what all take."""
    if criterion == "rebel":
        return [work.sum_abs]
    if criterion == "entropy":
        return [{"coefficients": LOG2_COEFFICIENTS}]
    return []

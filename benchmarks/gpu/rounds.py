"""What a round of boosting queues, counted on the emulated device."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.watched import named
from gpuboost import devices, training
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.gpu import Limits
from gpuboost.backends.cuda.kernels import GROWTH, Argument, Kernel
from gpuboost.backends.cuda.matrix import CudaMatrix
from gpuboost.backends.cuda.plan import WORD_FEATURES, Columns
from gpuboost.backends.frontier import LEFT, START, STOP, WHOLE, Frontier, GrowthScope
from gpuboost.backends.statistics import Stats

ROOT, SMALLER, _, LEFT_CHILD, RIGHT_CHILD = range(5)
REPLAYED = frozenset(name for entries in GROWTH.values() for name in entries) - {"init_roots", "root_totals", "node_of_rows"}
HELD = REPLAYED | {"init_roots", "root_totals"}
"""What is checked once where a tree starts from all rows: as a rule, a growth from its start to its last cut."""
DEVICE = "counted"
SAMPLE = 20_000
"""Rows of which codes are kept."""


@dataclass
class Item:
    """Something that the host has done.

    Attributes
    ----------
    name : str
        A kernel, "zero", "put" or "get".
    arguments : dict
        Scalars, and bytes of arrays, as `watched.named` gives them; ``n_blocks`` for a kernel.
    rows : tuple of int, optional
        For a kernel that works on nodes the rows of each tree's.
    """

    name: str
    arguments: dict[str, int]
    rows: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Recorded:
    """A round of a training.

    Attributes
    ----------
    items : list of Item
        What was done in the third round, when growths are replayed, and what comes late from the second has come.
    columns : Columns
    bins_stride : int
        As `plan.plan_growth` takes it.
    differs : ndarray of bool, shape (n_rows, n_words, 4)
        Which codes are counted: of some rows, and of all words that hold a feature that can be cut.
    n_trees, n_channels, max_leaves : int
        Of the last growth.
    n_made : int
        Trees that the round has added to the model.
    """

    items: list[Item]
    columns: Columns
    bins_stride: int
    differs: NDArray[np.bool_]
    n_trees: int
    n_channels: int
    max_leaves: int
    n_made: int

    def counts(self) -> Counter[str]:
        """Return how often each thing was done."""
        return Counter(item.name for item in self.items)


def counted(data: CudaMatrix) -> NDArray[np.bool_]:
    """Return `Recorded.differs` of a matrix on the emulated device."""
    codes = np.concatenate(list(data.gpu.get(data.codes)[:, :SAMPLE]), axis=1)
    usable = np.zeros(codes.shape[1], bool)
    usable[: data.n_features] = data.usable
    differs = (codes != data.skipped) & usable
    found: NDArray[np.bool_] = differs.reshape(len(codes), -1, WORD_FEATURES)[:, data.columns.host.words]
    return found


class NotedGpu:
    """A `gpuboost.backends.cuda.gpu.Gpu` around another, with a list of what it was asked for."""

    def __init__(self, gpu: Any) -> None:
        self.gpu, self.items = gpu, list[Item]()
        self.label, self.limits = gpu.label, gpu.limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.gpu, name)

    def put(self, array: NDArray[Any]) -> Any:
        self.items.append(Item("put", {"bytes": array.nbytes}))
        return self.gpu.put(array)

    def zero(self, array: Any) -> None:
        self.items.append(Item("zero", {"bytes": array.nbytes}))
        self.gpu.zero(array)

    def get(self, array: Any) -> NDArray[Any]:
        self.items.append(Item("get", {"bytes": array.nbytes}))
        found: NDArray[Any] = self.gpu.get(array)
        return found

    def capture(self, queue: Callable[[], None]) -> None:
        """Nothing is captured: items are noted one by one."""

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], block: int, arguments: tuple[Argument, ...], shared_bytes: int
    ) -> None:
        n_blocks = grid[0] * grid[1] * grid[2]
        self.items.append(Item(kernel.name, {**named(kernel, arguments), "n_blocks": n_blocks}))
        self.gpu.launch(kernel, grid, block, arguments, shared_bytes)


class NotedBackend(CudaBackend):
    """The CUDA backend on a `NotedGpu`; it tells launches of a growth the rows of their nodes."""

    gpu: NotedGpu

    def __init__(self, gpu: NotedGpu) -> None:
        super().__init__(gpu)
        self.growth: dict[str, Any] = {}
        self._first = 0

    def start_growth(self, data: CudaMatrix, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        self._first = len(self.gpu.items)
        frontier = super().start_growth(data, stats, max_leaves, scope)
        self.growth = {"data": data, "n_channels": stats.n_channels, "max_leaves": max_leaves, "n_trees": len(frontier.nodes)}
        return frontier

    def read_nodes(self, frontier: Frontier) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        growth = self.gpu.items[self._first :]
        nodes, edges = super().read_nodes(frontier)
        assign_rows(growth, nodes)
        return nodes, edges


def assign_rows(growth: list[Item], nodes: NDArray[np.int64]) -> None:
    """Tell every launch of a growth how many rows its node has in each tree, 0 where the tree has none."""
    step = -1
    size = nodes[:, :, STOP] - nodes[:, :, START]
    for item in growth:
        step += item.name == "pop_best_leaf"
        if step < 0:
            item.rows = tuple(size[:, 0].tolist())
            continue
        left = 2 * step + 1
        exists = (nodes[:, :, LEFT] == left).any(axis=1)
        children = np.where(exists[:, None], size[:, left : left + 2], 0)
        member = item.arguments.get("member")
        if item.name.startswith("partition"):
            rows = children.sum(axis=1)
        elif member == SMALLER or item.name.startswith("sweep_"):
            rows = children.min(axis=1)
        elif member is not None:
            rows = children[:, member - LEFT_CHILD]
        else:
            continue
        item.rows = tuple(rows.tolist())


def record(train: Callable[[str], Any], limits: Limits, memory: int = 1 << 31) -> Recorded:
    """Return what a round of a training does: from one look at the scores to the next.

    Parameters
    ----------
    train : callable
        Trains four rounds on the device of a name.
    limits : Limits
        Of the card that is planned for.
    memory : int
        Bytes of the emulated device.
    """
    from tests.cuda_on_cpu.gpu import EmulatedGpu

    backend, observe = NotedBackend(NotedGpu(EmulatedGpu(memory=memory, limits=limits))), training.observe
    marks: list[tuple[int, int]] = []

    def marked(step: Any, *rest: Any) -> Any:
        found = observe(step, *rest)
        marks.append((len(backend.gpu.items), len(step.trees)))
        return found

    with mock.patch.dict(devices.OPENERS, {DEVICE: lambda index: backend}), mock.patch.object(training, "observe", marked):
        train(DEVICE)
    data = backend.growth.pop("data")
    (before, _), (after, n_made) = marks[1:3]
    items, stride = backend.gpu.items[before:after], int(data.n_bins.max(initial=2))
    return Recorded(items, data.columns.host, stride, counted(data), n_made=n_made, **backend.growth)

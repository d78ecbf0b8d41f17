"""A device that notes what it is asked to do: every launch with its time on the device, and how long the host waited."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.machine import Card, Emulation, Stopwatch
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.gpu import Gpu
from gpuboost.backends.cuda.kernels import Argument, Kernel
from gpuboost.backends.frontier import WHOLE, Frontier, GrowthScope


@dataclass
class Seen:
    """Something that was queued.

    Attributes
    ----------
    name : str
        The kernel, or "(zero)" or "(put)".
    arguments : dict
        A kernel's scalar arguments and the fields of its structs by name, and the sizes in bytes of its arrays.
    stopwatch : Stopwatch
    """

    name: str
    arguments: dict[str, int]
    stopwatch: Stopwatch


class WatchedGpu:
    """A `gpuboost.backends.cuda.gpu.Gpu` around another.

    Parameters
    ----------
    machine : Card or Emulation
    gpu : Gpu
    timed : bool
        Time everything that is queued. For that the device gets a backlog whenever the host has waited for it, so that short
        kernels are not timed with the gaps before them; a round then takes longer than it does alone. If False, only waits and
        launches are counted, that of a graph as one.
    """

    def __init__(self, machine: Card | Emulation, gpu: Gpu, *, timed: bool) -> None:
        self.machine, self.gpu, self.is_timed, self.has_graphs = machine, gpu, timed, not timed
        self.seen: list[Seen] = []
        self.n_launches = self.n_waits = self.peak_bytes = 0
        self.waited = 0.0
        self.label, self.limits = gpu.label, gpu.limits

    def __getattr__(self, name: str) -> Any:
        return getattr(self.gpu, name)

    @contextmanager
    def _noted(self, name: str, arguments: dict[str, int]) -> Iterator[None]:
        if not self.is_timed:
            yield
            return
        with self.machine.timed() as stopwatch:
            yield
        self.seen.append(Seen(name, arguments, stopwatch))

    def empty(self, shape: tuple[int, ...], dtype: Any) -> Any:
        array = self.gpu.empty(shape, dtype)
        self.peak_bytes = max(self.peak_bytes, self.machine.held_bytes(self.gpu))
        return array

    def put(self, array: NDArray[Any]) -> Any:
        with self._noted("(put)", {"bytes": array.nbytes}):
            return self.gpu.put(array)

    def zero(self, array: Any) -> None:
        with self._noted("(zero)", {"bytes": array.nbytes}):
            self.gpu.zero(array)

    def get(self, array: Any) -> NDArray[Any]:
        begun = time.perf_counter()
        found = self.gpu.get(array)
        self.waited += time.perf_counter() - begun
        self.n_waits += 1
        if self.is_timed:
            self.machine.backlog()
        return found

    def capture(self, queue: Callable[[], None]) -> Any | None:
        """Capture nothing where launches are timed one by one."""
        if not self.has_graphs:
            return None
        before = self.n_launches
        graph = self.gpu.capture(queue)
        self.n_launches = before  # what is captured is not launched
        return graph

    def replay(self, graph: Any) -> None:
        self.n_launches += 1
        self.gpu.replay(graph)

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], block: int, arguments: tuple[Argument, ...], shared_bytes: int
    ) -> None:
        self.n_launches += 1
        if not self.is_timed:
            self.gpu.launch(kernel, grid, block, arguments, shared_bytes)
            return
        with self._noted(kernel.name, named(kernel, arguments)):
            self.gpu.launch(kernel, grid, block, arguments, shared_bytes)


def named(kernel: Kernel, arguments: tuple[Argument, ...]) -> dict[str, int]:
    """Return what `Seen` keeps of a launch's arguments."""
    found: dict[str, int] = {}
    for parameter, argument in zip(kernel.parameters, arguments, strict=True):
        if parameter.dtype.names:
            found |= {field: argument[field].item() for field in parameter.dtype.names if argument[field].ndim == 0}
        elif argument is not None:
            found[parameter.name] = argument.nbytes if parameter.is_array else argument
    return found


@dataclass(frozen=True)
class Growth:
    """A growth that a `WatchedBackend` has seen.

    Attributes
    ----------
    first, stop : int
        What it queued, in `WatchedGpu.seen`.
    nodes : ndarray of int64, shape (n_nodes, 10)
        The grown tree.
    """

    first: int
    stop: int
    nodes: NDArray[np.int64]


class WatchedBackend(CudaBackend):
    """The CUDA backend on a `WatchedGpu`; it keeps the node tables of its trees."""

    gpu: WatchedGpu

    def __init__(self, machine: Card | Emulation, *, timed: bool) -> None:
        super().__init__(WatchedGpu(machine, machine.open_gpu(), timed=timed))
        self.growths: list[Growth] = []
        self._first = 0

    def start_growth(self, data: Any, stats: Any, max_leaves: int, start: GrowthScope = WHOLE) -> Frontier:
        self._first = len(self.gpu.seen)
        return super().start_growth(data, stats, max_leaves, start)

    def read_nodes(self, frontier: Frontier) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        stop = len(self.gpu.seen)
        nodes, edges = super().read_nodes(frontier)
        self.growths.append(Growth(self._first, stop, nodes[0]))
        return nodes, edges

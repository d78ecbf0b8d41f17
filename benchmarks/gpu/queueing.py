"""The same growth queued in three ways: checked launch by launch, from the backend's recording, and as a CUDA graph."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu import data
from benchmarks.gpu.boosting import LEAVES, fit_bins, problem_on
from benchmarks.gpu.machine import Card, Emulation
from benchmarks.gpu.step import Step
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.frontier import Frontier
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.learners.growth import grow
from gpuboost.learners.hamming_tree import HammingTree

Way = Callable[[], Frontier]


class Grower:
    """A problem, and the ways to grow the first tree of a boosting on it."""

    def __init__(self, step: Step, machine: Card | Emulation) -> None:
        one = data.load(step, "mnist")
        self.leaves = step.choose(LEAVES, 4)
        self.machine, self.backend = machine, CudaBackend(machine.open_gpu())
        problem = problem_on(self.backend, fit_bins(one.X), one.X, one.y)
        booster = AdaBoostMH(HammingTree(self.leaves), "single-label")
        self.data, self.stats = problem.data, booster.row_state(problem).statistics()
        self.direct()
        (self.recording,) = self.backend.recordings.values()

    def direct(self) -> Frontier:
        """Queue launch by launch, checked; a new recording is made."""
        self.backend.recordings.clear()
        self.backend.starts.clear()
        return grow(self.backend, self.data, self.stats, self.leaves)

    def recorded(self) -> Frontier:
        """Queue the items of the recording."""
        frontier = self.backend.start_growth(self.data, self.stats, self.leaves)
        self.recording.queue(self.backend.gpu, self.stats.quantised)
        return frontier

    def graph(self) -> Frontier:
        """Replay the recording, which is captured for it the first time."""
        frontier = self.backend.start_growth(self.data, self.stats, self.leaves)
        self.recording.replay(self.backend.gpu, self.stats.quantised)
        return frontier

    @property
    def is_captured(self) -> bool:
        return any(graph is not None for graph in self.recording.graphs.values())

    def result(self, frontier: Frontier) -> tuple[bytes, bytes]:
        """Return the bytes of a grown frontier: its table, and where every row is."""
        leaves: NDArray[Any] = self.backend.get(self.backend.node_of_rows(frontier))
        return self.backend.get(frontier.work.table).tobytes(), leaves.tobytes()

    def poison(self) -> None:
        """Overwrite what a growth must write."""
        for name in ("table", "rows"):
            self.backend.gpu.zero(self.backend.buffers[name])


def three_ways(step: Step, machine: Card | Emulation) -> dict[str, Any]:
    """Return the host time to queue a growth and the time until its nodes are read, for each way."""
    grower = Grower(step, machine)
    ways: dict[str, Way] = {"direct": grower.direct, "recorded": grower.recorded}
    grower.graph()
    if grower.is_captured:
        ways["graph"] = grower.graph
    expected, differ = grower.result(grower.direct()), []
    for name, way in ways.items():
        grower.poison()
        if grower.result(way()) != expected:
            differ.append(name)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(step.choose(40, 2)):
        for name, way in ways.items():
            times[name].append(time_of(grower, way))
    found: dict[str, Any] = {
        name: {"queued_seconds": median(q for q, _ in taken), "read_seconds": median(r for _, r in taken)}
        for name, taken in times.items()
    }
    text = ", ".join(f"{n} {1e3 * t['queued_seconds']:.2f} / {1e3 * t['read_seconds']:.2f}" for n, t in found.items())
    step.say(f"a growth of {grower.leaves} leaves, ms until queued / until read:  {text}")
    if differ:
        step.problem(f"the growth has other bytes when queued as: {', '.join(differ)}")
    return {
        **found,
        "same_bytes": not differ,
        "is_captured": grower.is_captured,
        "rows": int(np.prod(grower.stats.quantised.shape[:2])),
    }


def time_of(grower: Grower, way: Way) -> tuple[float, float]:
    grower.machine.finish()
    begun = time.perf_counter()
    frontier = way()
    queued = time.perf_counter() - begun
    grower.backend.read_nodes(frontier)
    return queued, time.perf_counter() - begun

"""The histogram kernel launched in other ways, on the root and on a node of middle size, so that the best can be picked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from statistics import median
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.gpu.boosting import LEAVES
from benchmarks.gpu.machine import Card, Emulation
from benchmarks.gpu.step import Skip, Step
from gpuboost.backends.cuda import kernels
from gpuboost.backends.cuda import plan as plan_module
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.gpu import Limits
from gpuboost.backends.cuda.growth import SMALLER
from gpuboost.backends.cuda.kernels import Kernel
from gpuboost.backends.cuda.launch import Launch, prepare
from gpuboost.backends.cuda.plan import WARP, GrowthPlan, resident_blocks
from gpuboost.backends.frontier import LEFT, SLOT, START, STOP, Frontier
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Problem
from gpuboost.learners.growth import grow
from gpuboost.learners.hamming_tree import HammingTree

GROUPS, BLOCKS, MIN_ROWS = (4, 2, 1), (256, 512, 1024), (64, 256, 512, 1024)
COMPARED_BYTES = 16 << 20
"""Histograms up to this size are compared with those of the plan's own launch."""


@dataclass(frozen=True)
class Variant:
    """A way to launch."""

    groups: int
    block: int
    min_rows: int

    def __str__(self) -> str:
        return f"groups={self.groups} block={self.block} min_rows={self.min_rows}"

    def plan(self, plan: GrowthPlan, limits: Limits) -> GrowthPlan:
        resident = resident_blocks(self.block, 4 * WARP * self.groups * plan.bins_stride, limits, plan.wide)
        return replace(plan, groups=self.groups, block=self.block, blocks_at_once=resident * limits.n_multiprocessors)


def all_variants(step: Step, plan: GrowthPlan, limits: Limits) -> list[Variant]:
    """Return the plan's own way first, then all others that the device can do."""
    own = Variant(plan.groups, plan.block, plan_module.MIN_ROWS)
    shapes = [Variant(groups, block, own.min_rows) for groups in GROUPS for block in BLOCKS]
    found = [own, *shapes, *(replace(own, min_rows=n) for n in MIN_ROWS)]
    possible = [v for v in dict.fromkeys(found) if v.plan(plan, limits).shared_bytes <= limits.shared_per_block]
    return possible if not step.dry_run else [possible[0], possible[1], possible[-1]]


def kernel_of(machine: Card | Emulation, min_rows: int) -> Kernel:
    """Return the kernel with another number of rows that a block takes at least; the source is changed on the way."""
    registered = kernels.KERNELS["histogram"]
    if min_rows == plan_module.MIN_ROWS:
        return registered
    found, wanted = f"MIN_ROWS = {plan_module.MIN_ROWS}", f"MIN_ROWS = {min_rows}"
    text = kernels.source("histogram")
    if text.count(found) != 1:
        raise Skip(f"histogram.cu does not say {found}")
    kernel = replace(registered, file=f"histogram_{min_rows}")
    if kernel.file not in defined:
        machine.define(kernel, text.replace(found, wanted))
        defined.add(kernel.file)
    return kernel


defined: set[str] = set()
"""What this process has compiled."""


class Bench:
    """A growth whose histograms can be summed again."""

    def __init__(self, step: Step, machine: Card | Emulation, backend: CudaBackend, problem: Problem) -> None:
        self.step, self.machine, self.backend, self.gpu = step, machine, backend, backend.gpu
        leaves = step.choose(LEAVES, 5)
        self.stats = AdaBoostMH(HammingTree(leaves), "single-label").row_state(problem).statistics()
        self.data, self.leaves = problem.data, leaves
        frontier = grow(backend, self.data, self.stats, leaves)
        self.plan: GrowthPlan = frontier.work.plan
        self.histograms = frontier.work.histograms
        if not self.plan.kept:
            raise Skip("the histograms do not fit the device's memory")
        self.variants = all_variants(step, self.plan, self.gpu.limits)
        self.nodes = backend.read_nodes(frontier)[0][0]
        self.template = self._template(frontier)

    def _template(self, frontier: Frontier) -> Launch:
        """Return the launch for the root, with all its arguments."""
        self.backend.queued = []
        self.backend.find_splits(frontier, (0,))
        queued, self.backend.queued = self.backend.queued, None
        return next(item for item in queued if isinstance(item, Launch) and item.kernel.name == "histogram")

    def launch(self, variant: Variant, rows_at_most: int, current: Any = None, **changed: int) -> Launch:
        """Return a launch of a variant, for other popped nodes and with some sizes changed."""
        plan = variant.plan(self.plan, self.gpu.limits)
        with mock.patch.object(plan_module, "MIN_ROWS", variant.min_rows):
            grid = plan.histogram_grid(plan.tiles[0], rows_at_most, 1, self.stats.n_channels)
        names = [parameter.name for parameter in self.template.kernel.parameters]
        arguments = dict(zip(names, self.template.arguments, strict=True))
        sizes = {field: arguments["sizes"][field].item() for field in arguments["sizes"].dtype.names}
        arguments["sizes"] = {**sizes, "groups": plan.groups, **changed}
        if current is not None:
            arguments["current"] = current
        checked = prepare(
            self.gpu, "histogram", grid, tuple(arguments.values()), block=plan.block, shared_bytes=plan.shared_bytes
        )
        return replace(checked, kernel=kernel_of(self.machine, variant.min_rows))

    def middle(self) -> tuple[int, int, int]:
        """Return a node with its smaller child's number of rows and slot; the child is nearest to an eighth of all rows."""
        n_rows = self.stats.quantised.shape[1]
        found = []
        for node in np.flatnonzero(self.nodes[:, LEFT]).tolist():
            left = int(self.nodes[node, LEFT])
            rows = [int(self.nodes[child, STOP] - self.nodes[child, START]) for child in (left, left + 1)]
            slot = int(self.nodes[left if rows[0] <= rows[1] else left + 1, SLOT])
            if slot < self.plan.n_slots:  # the children of the last cut have no histograms
                found.append((abs(min(rows) - n_rows // 8), node, min(rows), slot))
        if not found:
            raise Skip("the tree has too few cuts")
        return min(found)[1:]

    def times(self, launches: list[Launch], slot: int) -> list[float]:
        """Return the median time of each launch, taken in turns; what they sum must be the same."""
        histograms = self.histograms[slot]
        compared = histograms.nbytes <= COMPARED_BYTES
        expected: bytes | None = None
        for variant, launch in zip(self.variants, launches, strict=True):
            self.gpu.zero(histograms)
            launch.queue(self.gpu)
            found = self.gpu.get(histograms).tobytes() if compared else b""
            expected = found if expected is None else expected
            if found != expected:
                self.step.problem(f"the histogram kernel sums otherwise with {variant}")
        stopwatches: list[list[Any]] = [[] for _ in launches]
        for _ in range(self.step.choose(9, 1)):
            self.machine.backlog()
            for launch, taken in zip(launches, stopwatches, strict=True):
                self.gpu.zero(histograms)
                with self.machine.timed() as stopwatch:
                    launch.queue(self.gpu)
                taken.append(stopwatch)
        return [median(stopwatch.seconds for stopwatch in taken) for taken in stopwatches]


def measure(step: Step, machine: Card | Emulation, backend: CudaBackend, problem: Problem, title: str) -> list[dict[str, Any]]:
    """Return the times of all variants at the root and at a node of middle size."""
    bench = Bench(step, machine, backend, problem)
    n_rows = bench.stats.quantised.shape[1]
    node, rows, slot = bench.middle()
    current = bench.gpu.put(np.array([node], np.int64))
    launches = [bench.launch(v, n_rows // 2, current=current, member=SMALLER) for v in bench.variants]
    middle = bench.times(launches, slot)
    backend.start_growth(bench.data, bench.stats, bench.leaves)  # the rows are in order again
    root = bench.times([bench.launch(v, n_rows) for v in bench.variants], 0)
    print(f"\n{title}: histogram, us at the root ({n_rows} rows) and at a node of {rows}; {bench.plan.lanes}")
    found = []
    for variant, at_root, at_middle in zip(bench.variants, root, middle, strict=True):
        found.append({**vars(variant), "root_seconds": at_root, "middle_seconds": at_middle, "middle_rows": rows})
        print(f"  {variant!s:38} {1e6 * at_root:9.1f} {1e6 * at_middle:9.1f}")
    for key in ("root_seconds", "middle_seconds"):
        best = min(found, key=lambda one: one[key])
        gain = found[0][key] / best[key]
        if gain > 1.05:
            way = Variant(best["groups"], best["block"], best["min_rows"])
            step.say(f"  {title} {key.split('_')[0]}: {way} takes 1/{gain:.2f} of the time of {bench.variants[0]}")
    return found

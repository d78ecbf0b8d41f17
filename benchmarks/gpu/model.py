"""A round's time on a card that is not there, from machine code, counted launches and what `cards.ASSUMED` says.

Two clocks run through the list of what the host has done. The host's advances by the cost of each call; the device begins a
launch when the host has queued it and the one before is done; a wait sets the host's clock to the device's.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu import counts, sass
from benchmarks.gpu.cards import ASSUMED, DEPENDENT_LOADS, FREE_BYTES, Card
from benchmarks.gpu.rounds import HELD, REPLAYED, SMALLER, Item, Recorded
from gpuboost.backends.cuda.kernels import KERNELS
from gpuboost.backends.cuda.plan import MIN_ROWS, WARP, WORD_FEATURES, plan_growth, wave_efficiency

BATCH = 4
"""Rows that the histogram's loop takes at once, as in ``histogram.cu``."""


def assumed(name: str) -> float:
    return ASSUMED[name].value


@dataclass(frozen=True)
class Shares:
    """How much of the histogram's loop is executed.

    Attributes
    ----------
    body : float
        The share of (warp, row) pairs of which any lane's word differs from the skipped one.
    atomics : float
        Of these, the mean share of the word's features for which any lane adds.
    """

    body: float
    atomics: float

    def executed(self, loop: sass.Loop) -> float:
        """Return how many instructions of a loop are executed, by how many branches jump over them."""
        share = {0: 1.0, 1: self.body}
        return sum(n * share.get(depth, self.body * self.atomics) for depth, n in loop.depths().items())


def of_channel(loop: sass.Loop) -> float:
    """Return a sweep's instructions for 32 bins of one channel. A scan is five shuffles, and the compiler unrolls the loop."""
    return len(loop) * 5 / loop.count("SHFL.UP")


def shares_of(differs: NDArray[np.bool_], n_words: int, rows_at_once: int) -> Shares:
    """Count for warps that take so many rows and words at once; ``differs`` as in `rounds.Recorded`."""
    n_rows, n_tiles = len(differs) // rows_at_once, -(-differs.shape[1] // n_words)
    padded = np.zeros((n_rows * rows_at_once, n_tiles * n_words, WORD_FEATURES), bool)
    padded[:, : differs.shape[1]] = differs[: len(padded)]
    adds = padded.reshape(n_rows, rows_at_once, n_tiles, n_words, WORD_FEATURES).any(axis=(1, 3))
    body = adds.any(axis=-1)
    return Shares(float(body.mean()), float(adds[body].mean()) if body.any() else 0.0)


@dataclass
class Round:
    """The time of a round in seconds: all of it, and what each kernel takes."""

    seconds: float = 0.0
    device: float = 0.0
    host: float = 0.0
    waits: int = 0
    of_kernel: dict[str, float] = field(default_factory=lambda: defaultdict(float))


class Model:
    """The times of launches on a card."""

    def __init__(self, card: Card, recorded: Recorded) -> None:
        self.card, self.recorded = card, recorded
        n_channels = recorded.n_channels
        sizes = (recorded.n_trees, n_channels, recorded.max_leaves, FREE_BYTES, card.limits)
        self.plan = plan_growth(recorded.columns, recorded.bins_stride, *sizes)
        self.rows_at_once = WARP // (self.plan.lanes.words * self.plan.lanes.channels)
        self.shares = shares_of(recorded.differs, self.plan.lanes.words, self.rows_at_once)
        cycles = card.limits.n_multiprocessors * card.clock
        self.issue, self.atomics, self.cache = (
            cycles * n for n in (4 * assumed("issue"), assumed("shared atomics"), assumed("second-level cache"))
        )
        self.memory = card.memory * assumed("memory")

    def code(self, name: str) -> sass.Kernel:
        return sass.of_file(KERNELS[name].file, self.card.architecture)[name]

    def histogram(self, item: Item) -> float:
        """Return the time of the histograms of a node of every tree: of instructions, atomics or the second-level cache."""
        plan, rows, code = self.plan, item.rows or (), self.code("histogram")
        planned_rows = item.arguments["n_rows"] // (2 if item.arguments["member"] == SMALLER else 1)
        stretches, y, z = plan.histogram_grid(plan.tiles[0], planned_rows, len(rows), self.recorded.n_channels)
        tiles = y * z // max(len(rows), 1)
        n_blocks = tiles * sum(-(-n // max(-(-n // stretches), MIN_ROWS)) for n in rows if n)
        if n_blocks == 0:
            return 0.0
        loop = min(code.loops_with("ATOMS"), key=lambda one: abs(one.count("ATOMS") - BATCH * plan.groups))
        warp_rows = sum(rows) * tiles / self.rows_at_once
        flush = min(code.loops_with("RED"), key=lambda one: abs(one.count("RED") - plan.groups))
        of_cells = len(code.loop_with("STS")) / BATCH + len(flush) / plan.groups  # 32 cells are cleared, and added elsewhere
        instructions = warp_rows * self.shares.executed(loop) / BATCH + n_blocks * plan.groups * plan.bins_stride * of_cells
        adds = warp_rows * self.shares.body * self.shares.atomics * plan.groups
        sectors = -(-plan.lanes.words // 4) - (-plan.lanes.channels // 8) + 1 / 8
        n_bytes = sum(rows) * tiles * sectors * counts.SECTOR
        busy = max(instructions / self.issue, adds / self.atomics, n_bytes / self.cache)
        return busy / wave_efficiency(n_blocks, plan.blocks_at_once)

    def sweep(self, item: Item) -> float:
        """Return the time of a sweep's instructions: of the warps that have bins, a pass over the channels each."""
        n_bins = self.recorded.columns.n_bins[self.recorded.columns.features]
        members = 1 if item.arguments["first_member"] == 0 else 2
        passes = float(np.ceil(n_bins / WARP).sum()) * members * self.recorded.n_channels * sum(n > 0 for n in item.rows or ())
        return passes * of_channel(self.code(item.name).inner_loop) / self.issue

    def work(self, item: Item) -> float:
        """Return the time that the device is busy with anything, from its start on."""
        name = f"({item.name})" if item.name in ("zero", "put") else item.name
        rows = item.rows or (item.arguments.get("n_rows", 0),)
        work = counts.Work(item.arguments, sum(rows), len(self.recorded.columns.features), 1.0)
        busy = counts.bytes_of(name, work) / self.memory
        kind = "sweep" if item.name.startswith("sweep_") else item.name
        if kind == "histogram":
            busy = max(busy, self.histogram(item))
        elif kind == "sweep":
            busy = max(busy * sum(n > 0 for n in rows), self.sweep(item))
        waits = DEPENDENT_LOADS.get(kind, 2) if item.name in KERNELS else 0
        return busy + waits * assumed("latency")

    def round(self, *, graphs: bool = True) -> Round:
        """Run both clocks through a round."""
        found = Round()
        host = device = 0.0
        is_inside = False  # of a graph
        for item in self.recorded.items:
            if item.name == "get":
                host = max(host, device) + assumed("wait")
                found.waits += 1
                continue
            in_graph = graphs and item.name in REPLAYED
            if in_graph and is_inside:
                cost = 0.0
            elif item.name == "put":
                cost = assumed("put")
            else:
                cost = assumed("graph" if in_graph else "replayed" if item.name in HELD else "checked")
            is_inside = in_graph
            own = assumed("start in a graph" if in_graph else "start") + self.work(item)
            host += cost
            device = max(device, host) + own
            found.device += own
            found.host += cost
            found.of_kernel[item.name] += own
        one = self.recorded
        besides = assumed("round") + assumed("grown") * (one.n_trees - 1) + assumed("made") * one.n_made
        found.host += besides
        found.seconds = max(host, device) + besides
        return found

"""When and how the CPU backend prunes exactly; the loops are in `gpuboost.backends.cpu.pruning.bounds`.

The trees are the same with and without, so it is the clock that decides: both ways are timed, the faster one is taken, and the
other is tried again from time to time. Pruning pays where few rows hold nearly all of the mass, which they come to do as
boosting goes on, and where histograms have more bins than most nodes have rows.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.loops import histograms as histogram_loops
from gpuboost.backends.cpu.loops import sweeps as sweep_loops
from gpuboost.backends.cpu.loops.growth import of_tree, slots_needed
from gpuboost.backends.cpu.loops.histograms import unrolled
from gpuboost.backends.cpu.loops.sweeps import Best, criterion_number
from gpuboost.backends.cpu.pruning import bounds as bounds_module
from gpuboost.backends.cpu.pruning import heavy as heavy_module
from gpuboost.backends.cpu.pruning import search as search_module
from gpuboost.backends.cpu.pruning.bounds import ADDED_HEAVY, ADDED_LIGHT, HEAVY, LIGHT_ROWS, VISITED_LIGHT
from gpuboost.backends.cpu.pruning.heavy import Rule
from gpuboost.backends.cpu.pruning.search import Columns
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.frontier import SLOT, START, STOP, Frontier
from gpuboost.backends.statistics import Stats

IntArray = NDArray[np.int64]

CRITERIA = ("edge", "gini", "rebel")

FEW = 4
"""Up to this many additions for each bin, histograms cost more than they save, see `gpuboost.backends.cpu.pruning.bounds`."""

FIRST_WAIT, LAST_WAIT = 8, 64
"""After this many growths the slower way is tried again; while it stays the slower one, after more and more."""

VISIT = 2
"""Additions that it takes to look at one row's codes of a block."""


@dataclass
class PruningTuner:
    """What growths of one kind have taught. It has no influence on the trees.

    Attributes
    ----------
    halves, levels : float
        How often a tree counts a root's rows if the larger siblings follow by subtraction, and if they do not.
    survivors : float
        The share of the light rows' additions that nodes need, over the share of the mass that these rows have.
    seconds : tuple of two deques of float
        The last times of growths without and with pruning.
    prunes : bool
        The faster way.
    wait, patience : int
        Growths until the slower way is tried again, and from then on.
    """

    halves: float
    levels: float
    survivors: float = 16.0
    seconds: tuple[deque[float], deque[float]] = field(default_factory=lambda: (deque(maxlen=2), deque(maxlen=2)))
    prunes: bool = True
    wait: int = FIRST_WAIT
    patience: int = FIRST_WAIT

    def choose(self) -> bool:
        """Return whether to prune now."""
        plain, pruned = self.seconds
        if min(len(plain), len(pruned)) < 2:  # the first of each may have waited for the compiler
            return len(pruned) <= len(plain)
        prunes = min(pruned) <= min(plain)
        if prunes != self.prunes:
            self.prunes, self.wait, self.patience = prunes, FIRST_WAIT, FIRST_WAIT
        self.wait -= 1
        if self.wait > 0:
            return prunes
        self.wait = self.patience = min(2 * self.patience, LAST_WAIT)
        return not prunes

    def learn(self, nodes: IntArray, share_needed: float, share_of_mass: float) -> None:
        """Take in what a pruned growth has done: its node tables, and what it needed of the light rows."""
        n_rows = nodes[:, :, STOP] - nodes[:, :, START]
        n_looked_at = n_rows[:, :1].sum() + n_rows[:, 1:-2].sum()
        n_smaller = np.minimum(n_rows[:, 1:-2:2], n_rows[:, 2:-2:2]).sum()
        whole = max(int(n_rows[:, 0].sum()), 1)
        self.levels, self.halves = float(n_looked_at / whole), float(1 + n_smaller / whole)
        if share_of_mass > 0:
            now = min(max(share_needed / share_of_mass, 1.0), 1000.0)
            self.survivors = math.sqrt(self.survivors * now)


@dataclass
class Division:
    """The rows of a frontier by mass; see `bounds.Growth`. The first axis is that of q, or the trees."""

    sum_abs: IntArray
    level: NDArray[np.uint8]
    stops: IntArray
    heavy: NDArray[np.int32]
    few: int
    light_share: float
    counts: IntArray = field(default_factory=lambda: np.zeros(4, np.int64))


class Pruning:
    """Exact pruning.

    Attributes
    ----------
    always : bool
        Whether to prune whatever it costs.
    """

    def __init__(self) -> None:
        self.always = False
        self.experiences: dict[Any, PruningTuner] = {}
        self.spare: list[Scratch] = []  # a thread takes memory from it and puts it back

    def begin(self, frontier: Frontier, max_leaves: int) -> None:
        """Decide whether to prune, and if so, divide the rows of every root."""
        stats, usable, data = frontier.stats, frontier.work["usable"], frontier.data
        if stats.criterion not in CRITERIA or stats.min_count > 0 or len(usable) == 0:
            return
        since, n_trees = perf_counter(), len(frontier.nodes)
        kind = (data.blocks.shape, stats.criterion, stats.one_hot, stats.n_classes, max_leaves, n_trees)
        if kind not in self.experiences:
            levels = float((max_leaves - 1).bit_length())
            self.experiences[kind] = PruningTuner((1 + levels) / 2, levels)
        experience = self.experiences[kind]
        frontier.work["experience"] = experience, since
        if not (self.always or experience.choose()):
            return
        scratch = self._spare()
        n_q, (_, n_nodes) = len(stats.quantised), frontier.nodes.shape[:2]
        sum_abs = scratch.array("sum_abs", (n_q, data.n_rows), np.int64)
        level = scratch.array("level", (n_q, data.n_rows), np.uint8)
        buffer = scratch.array("buffer", (frontier.rows.shape[1],), np.int32)
        shares, rule = (experience.halves, experience.levels, experience.survivors), rule_of(stats)
        light, total = 0, 0
        for t, (start, stop) in enumerate(frontier.nodes[:, 0, [START, STOP]].tolist()):
            rows = of_tree(frontier.rows, t)[start:stop]
            buffer[start:stop] = rows
            into = (of_tree(sum_abs, t), of_tree(level, t), rows)
            found = heavy_module.sort_rows(buffer[start:stop], of_tree(stats.quantised, t), rule, *shares, *into)
            light, total = light + int(found[0]), total + int(found[1])
        n_bins = (data.bin_offsets[usable + 1] - data.bin_offsets[usable]).sum()
        frontier.work["division"] = Division(
            sum_abs,
            level,
            np.zeros((n_trees, n_nodes, 2), np.int64),
            np.zeros((n_trees, n_nodes, padded(stats.n_channels)), np.int32),
            int(min(FEW * n_bins / max(data.counted[usable].sum(), 1e-9), 2**62)),
            light / max(total, 1),
        )

    def end(self, frontier: Frontier) -> None:
        """Learn from a growth."""
        division = frontier.work.get("division")
        if "experience" not in frontier.work:
            return
        experience, since = frontier.work["experience"]
        experience.seconds[division is not None].append(perf_counter() - since)
        if division is not None:
            data, counts = frontier.data, division.counts
            a_row = data.counted[frontier.work["usable"]].sum() + VISIT * len(data.blocks)
            needed = (counts[ADDED_LIGHT] + VISIT * counts[VISITED_LIGHT]) / max(counts[LIGHT_ROWS] * a_row, 1)
            experience.learn(frontier.nodes, float(needed), division.light_share)

    def _spare(self) -> Scratch:
        """Return memory of the thread that calls the others."""
        if not self.spare:
            self.spare.append(Scratch())
        return self.spare[0]

    def grow(self, team: Team, frontier: Frontier) -> None:
        """Grow every tree, each on one thread."""
        stats, columns, division = frontier.stats, columns_of(frontier), frontier.work["division"]
        n_trees, n_rows, width = len(frontier.nodes), frontier.rows.shape[1], padded(stats.n_channels)
        n_slots = slots_needed((frontier.nodes.shape[1] + 1) // 2)

        def share(lo: int, hi: int) -> Any:
            own = self.spare.pop() if self.spare else Scratch()
            histograms = own.array("histograms", (n_slots, int(columns.bin_offsets[-1]), width), np.int32)
            memory = memory_of(own, columns, histograms, np.zeros(4, np.int64), 1)
            bounds_module.grow(
                lo,
                hi,
                columns,
                memory,
                frontier.rows,
                stats.quantised,
                frontier.nodes,
                frontier.totals,
                frontier.edges,
                frontier.current,
                own.array("rows", (n_rows,), np.int32),
                division.sum_abs,
                division.level,
                division.stops,
                division.heavy,
                frontier.work["sum_abs"],
                rule_of(stats),
                stats.n_voting,
                division.few,
                unrolled(width),
            )
            self.spare.append(own)
            return memory.counts

        work = 4 * n_trees * n_rows * len(columns.usable) * width
        division.counts += np.sum(team.map(share, n_trees, work), axis=0)

    def find_splits(
        self, team: Team, frontier: Frontier, t: int, small: int, large: int, histograms: NDArray[np.int32]
    ) -> None:
        """Find the best classifiers of two siblings, or of the root if ``large`` is -1, in one tree."""
        stats, columns, division = frontier.stats, columns_of(frontier), frontier.work["division"]
        growth = bounds_module.Growth(
            of_tree(frontier.rows, t),
            of_tree(stats.quantised, t),
            frontier.nodes[t],
            frontier.totals[t],
            frontier.edges[t],
            of_tree(division.sum_abs, t),
            of_tree(division.level, t),
            division.stops[t],
            division.heavy[t],
            frontier.work["sum_abs"][t],
        )
        memory = memory_of(self._spare(), columns, histograms, division.counts, len(columns.blocks))
        together = Together(team, columns, growth, memory, rule_of(stats), unrolled(histograms.shape[2]))
        together.find_splits(division.few, small, large, int(frontier.current[t]))


def rule_of(stats: Stats) -> Rule:
    return Rule(criterion_number(stats), stats.n_classes, stats.one_hot)


class Scratch:
    """Memory that is kept between growths, with what has been left in it; 0 at first."""

    def __init__(self) -> None:
        self.memory: dict[str, NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        size = math.prod(shape)
        memory = self.memory.get(name)
        if memory is None or len(memory) < size:
            self.memory[name] = memory = np.zeros(size, dtype)
        return memory[:size].reshape(shape)


def columns_of(frontier: Frontier) -> Columns:
    data, work = frontier.data, frontier.work
    return Columns(data.blocks, work["masks"], work["usable"], data.bin_offsets, data.has_missing, data.skipped)


def memory_of(
    own: Scratch, columns: Columns, histograms: NDArray[np.int32], counts: IntArray, n_parts: int
) -> bounds_module.Memory:
    """Return scratch for one thread, or for ``n_parts`` blocks of features at the same time."""
    n_blocks, _, width = columns.blocks.shape
    n_channels, n_features = histograms.shape[2], n_blocks * width
    bounds = np.minimum(np.arange(n_blocks + 1) * width, len(columns.bin_offsets) - 1)
    n_bins = int(np.diff(columns.bin_offsets[bounds]).max())
    return bounds_module.Memory(
        histograms,
        own.array("sums", (n_parts, n_bins, n_channels), np.int32),
        own.array("occupied", (n_features, 4), np.uint64),
        own.array("bounds", (2, n_features), np.int64),
        own.array("scores", (n_features,), np.int64),
        own.array("found", (n_blocks, 4 + n_channels), np.int64),
        own.array("chosen", (n_blocks,), np.uint64),
        counts,
    )


@dataclass
class Together:
    """The expansion of two siblings, shared by the team where that is worthwhile."""

    team: Team
    columns: Columns
    growth: bounds_module.Growth
    memory: bounds_module.Memory
    rule: Rule
    lanes: tuple[int, ...]

    def find_splits(self, few: int, small: int, large: int, parent: int) -> None:
        """As `gpuboost.backends.cpu.pruning.bounds.expand`."""
        columns, growth, nodes = self.columns, self.growth, self.growth.nodes
        last = small if large < 0 else max(small, large)
        n_rows = int(nodes[last, STOP] - nodes[min(small, last), START])
        work = n_rows * len(columns.usable) * growth.heavy.shape[1]
        if self.team.n_threads == 1 or work < self.team.WORTH_SHARING:
            bounds_module.find_splits(columns, growth, self.memory, self.rule, few, small, large, parent, self.lanes)
            return
        small, large = bounds_module.prepare(growth, self.rule.one_hot, small, large, parent, self.lanes)
        masses = bounds_module.class_masses(growth, self.rule.criterion)
        pair = (small, large) if large >= 0 else (small,)
        light = [int(bounds_module.mass_of(growth, *growth.stops[m])) for m in pair]
        n_heavy = sum(int(growth.stops[m, HEAVY] - nodes[m, START]) for m in pair)
        bests = self.sweep_histograms(small, large, masses, [*light, 0]) if n_heavy > few else None
        for s, m in enumerate(pair):
            histogram = self.memory.histograms[nodes[m, SLOT]] if bests else self.memory.histograms[0][:0]
            if bests and light[s] == 0:
                settled = (nodes[m], growth.totals[m], growth.edges[m])
                sweep_loops.store_split(bests[s], columns.bin_offsets, histogram, *settled)
            else:
                self.finish_histogram(m, histogram, self.memory.bounds[s], masses, light[s])

    def sweep_histograms(self, small: int, large: int, masses: IntArray, light: list[int]) -> list[Best]:
        """Count the heavy rows of the smaller sibling; return the best cuts of both on their heavy rows."""
        columns, growth, memory, n_blocks = self.columns, self.growth, self.memory, len(self.columns.blocks)
        rows = growth.rows[growth.nodes[small, START] : growth.stops[small, HEAVY]]
        slot = growth.nodes[small, SLOT]
        child, none = memory.histograms[slot], memory.histograms[:0]
        other = memory.histograms[growth.nodes[large, SLOT]] if large >= 0 else child[:0]
        work = len(rows) * len(columns.usable) * child.shape[1]
        n_chunks = min(-(-4 * self.team.n_threads // n_blocks), 1 + work // (4 * child.size))
        parts = none if n_chunks == 1 else np.zeros((n_chunks, *child.shape), np.int32)
        sums = parts if n_chunks > 1 else memory.histograms[slot : slot + 1]
        counting = (columns.blocks, columns.masks, columns.skipped, columns.bin_offsets, rows, growth.quantised, sums)
        loop: Any = histogram_loops.histogram_of_classes if self.rule.one_hot else histogram_loops.histogram
        how: Any = self.rule.n_classes if self.rule.one_hot else self.lanes
        memory.counts[ADDED_HEAVY] += sum(self.team.map(loop, n_blocks * n_chunks, work, *counting, how))
        shared = (columns, growth.heavy[small], growth.heavy[large], self.rule, masses[0], *light[:2])
        own = (parts, child, other, memory.bounds, self.lanes)
        found = self.team.map(bounds_module.sweep_pair, len(columns.usable), child.size * (6 + n_chunks), *shared, *own)
        return [max(bests, key=lambda best: best[0]) for bests in zip(*found, strict=True)]  # the first of equals

    def finish_histogram(self, m: int, histogram: NDArray[np.int32], bounds: IntArray, masses: IntArray, light: int) -> None:
        """As `gpuboost.backends.cpu.pruning.bounds.finish`."""
        columns, growth, memory = self.columns, self.growth, self.memory
        node, edges, heavy = growth.nodes[m], growth.edges[m], growth.heavy[m]
        first, (heavy_stop, light_stop) = node[START], growth.stops[m]
        total = np.zeros_like(heavy)
        total[: self.rule.n_classes] = edges[:] = growth.totals[m]
        best = (search_module.constant_score(total, self.rule.criterion), -1, 0, 0)
        counted = len(histogram) > 0
        hopeless = not counted and light > bounds_module.mass_of(growth, first, heavy_stop)
        if not counted and not hopeless:
            rows, own = growth.rows[first:heavy_stop], (histogram, heavy, masses[0], light, bounds)
            memory.counts[ADDED_HEAVY] += self.search(columns.masks, rows, *own)
            if light == 0:
                bounds_module.queue(bounds_module.best_found(memory.found, best, edges), node)
                return
        if hopeless:
            bounds[:] = np.iinfo(np.int64).max
        else:
            bounds_module.to_bounds(bounds, columns, heavy, total, self.rule, masses, light)
        memory.counts[LIGHT_ROWS] += light_stop - heavy_stop
        rows, own = growth.rows[heavy_stop if counted else first : light_stop], (histogram, total, masses[1], 0, memory.scores)
        for most in bounds_module.BATCHES:
            if bounds_module.choose(bounds, columns, best, len(columns.usable) if hopeless else most, memory.chosen):
                memory.counts[VISITED_LIGHT] += len(rows) * np.count_nonzero(memory.chosen)
                memory.counts[ADDED_LIGHT] += self.search(memory.chosen, rows, *own)
                best = bounds_module.best_found(memory.found, best, edges)
        bounds_module.queue(best, node)

    def search(
        self,
        chosen: NDArray[np.uint64],
        rows: NDArray[np.int32],
        histogram: NDArray[np.int32],
        start: NDArray[np.int32],
        masses: IntArray,
        light: int,
        scores: IntArray,
    ) -> int:
        """As `gpuboost.backends.cpu.pruning.search.search_blocks`, for all blocks."""
        columns, memory = self.columns, self.memory
        n_features = int(np.unpackbits(chosen.view(np.uint8)).sum())
        rule = (self.rule, masses, light)
        into = (memory.sums, memory.occupied, scores, memory.found, self.lanes)
        work = len(rows) * n_features * len(start)
        shared = (chosen, columns, rows, self.growth.quantised, histogram, start, *rule, *into)
        return int(sum(self.team.map(search_module.search_blocks, len(columns.blocks), work, *shared)))

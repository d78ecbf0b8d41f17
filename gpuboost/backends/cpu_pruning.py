"""When and how the CPU backend prunes exactly; the loops are in `gpuboost.backends.cpu_quick`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends import cpu_growth, cpu_quick
from gpuboost.backends.base import SLOT, START, STOP, Frontier
from gpuboost.backends.cpu_growth import Best, criterion_number, of_tree, slots_needed, unrolled
from gpuboost.backends.threads import Team

IntArray = NDArray[np.int64]

CRITERIA = ("edge", "gini", "rebel")

WORTHWHILE = 0.75
"""Trees are pruned if that is expected to take at most this share of the additions."""

PAUSE = 8
"""After that was not so, this many growths are not looked at."""

FEW = 4
"""Up to this many additions for each bin, histograms cost more than they save, see `gpuboost.backends.cpu_quick`."""


@dataclass
class Experience:
    """What earlier growths have taught, for a guess of what pruning costs. It has no influence on the trees.

    Attributes
    ----------
    survivors : float
        The share of a node's features that need the light rows, over the share of the mass that these have.
    pause : int
        Growths until the next look.
    """

    survivors: float = 16.0
    pause: int = 0

    def divide(self, numbers: IntArray, sums: IntArray, max_leaves: int) -> tuple[int, float]:
        """Return the least bucket of heavy rows, and the expected additions over those without pruning.

        A tree of J leaves looks at all rows about log2(J) times, and counts about half of them below the root: the larger
        siblings follow by subtraction. For the light rows that does not hold.

        Parameters
        ----------
        numbers, sums : ndarray of int64, shape (N_BUCKETS,)
            The rows of each bucket, and their mass.
        max_leaves : int
        """
        levels = (max_leaves - 1).bit_length()
        n_below, lighter = np.cumsum(numbers) - numbers, np.cumsum(sums) - sums
        n_light = np.maximum(n_below - numbers[0], 0)
        needed = np.minimum(self.survivors * lighter / max(int(sums.sum()), 1), 1.0)
        counted = (1 + levels) / 2
        cost = (counted * (numbers.sum() - n_below) + levels * needed * n_light)[1:]
        least = int(cost.argmin())
        return 1 + least, float(cost[least] / (counted * max(int(numbers.sum()), 1)))

    def learn(self, share_of_features: float, share_of_mass: float) -> None:
        """Take in how many features have needed the light rows."""
        now = min(max(share_of_features / share_of_mass, 1.0), 1000.0)
        self.survivors = math.sqrt(self.survivors * now)


@dataclass
class Division:
    """The rows of a frontier by mass; see `gpuboost.backends.cpu_quick.Growth`. The first axis is that of q, or the trees."""

    mass: IntArray
    level: NDArray[np.uint8]
    stops: IntArray
    heavy: NDArray[np.int32]
    few: int
    light_share: float
    counts: IntArray = field(default_factory=lambda: np.zeros(3, np.int64))


class Pruning:
    """Exact pruning."""

    def __init__(self) -> None:
        self.experience = Experience()
        self.spare: list[Scratch] = []  # a thread takes memory from it and puts it back

    def begin(self, frontier: Frontier, max_leaves: int) -> Division | None:
        """Divide the rows of every root; None if pruning is not worthwhile."""
        stats, usable, experience = frontier.stats, frontier.work["usable"], self.experience
        if stats.criterion not in CRITERIA or stats.one_hot or stats.min_count > 0 or len(usable) == 0:
            return None
        if experience.pause > 0:
            experience.pause -= 1
            return None
        n_trees = len(frontier.nodes)
        mass = np.empty((len(stats.q), frontier.data.n_rows), np.int64)
        numbers, sums = np.zeros((2, n_trees, cpu_quick.N_BUCKETS), np.int64)
        roots = [frontier.rows[t, start:stop] for t, (start, stop) in enumerate(frontier.nodes[:, 0, [START, STOP]])]
        for t, rows in enumerate(roots):
            cpu_quick.weigh(rows, of_tree(stats.q, t), of_tree(mass, t), numbers[t], sums[t])
        found = [experience.divide(numbers[t], sums[t], max_leaves) for t in range(n_trees)]
        n_rows = sum(map(len, roots))
        if sum(cost * len(rows) for (_, cost), rows in zip(found, roots, strict=True)) > WORTHWHILE * n_rows:
            experience.pause = PAUSE
            return None
        level = np.empty(mass.shape, np.uint8)
        for t, (rows, (least, _)) in enumerate(zip(roots, found, strict=True)):
            cpu_quick.divide(rows.copy(), of_tree(mass, t), numbers[t], least, of_tree(level, t), rows)
        light = sum(int(sums[t, :least].sum()) for t, (least, _) in enumerate(found))
        offsets, shape = frontier.data.bin_offsets, frontier.nodes.shape[:2]
        few = FEW * (offsets[usable + 1] - offsets[usable]).sum() / max(frontier.data.counted[usable].sum(), 1e-9)
        return Division(
            mass,
            level,
            np.zeros((*shape, 2), np.int64),
            np.zeros((*shape, stats.q.shape[2]), np.int32),
            int(min(few, 2**62)),
            light / max(int(sums.sum()), 1),
        )

    def end(self, frontier: Frontier, division: Division) -> None:
        """Learn from what has been added."""
        _, n_added, n_rows = division.counts.tolist()
        n_possible = n_rows * float(frontier.data.counted[frontier.work["usable"]].sum())
        if n_possible > 0 and division.light_share > 0:
            self.experience.learn(n_added / n_possible, division.light_share)

    def grow(self, team: Team, frontier: Frontier, division: Division) -> None:
        """Grow every tree, each on one thread."""
        stats, columns, n_rows = frontier.stats, columns_of(frontier), frontier.rows.shape[1]
        n_slots = slots_needed((frontier.nodes.shape[1] + 1) // 2)

        def share(lo: int, hi: int) -> IntArray:
            own, counts = self.spare.pop() if self.spare else Scratch(), np.zeros(3, np.int64)
            histograms = own.array("histograms", (n_slots, int(columns.bin_offsets[-1]), stats.q.shape[2]), np.int32)
            cpu_quick.grow(
                lo,
                hi,
                columns,
                memory_of(own, columns, histograms, counts, 1),
                frontier.rows,
                stats.q,
                frontier.nodes,
                frontier.totals,
                frontier.edges,
                frontier.current,
                own.array("buffer", (n_rows,), np.int32),
                division.mass,
                division.level,
                division.stops,
                division.heavy,
                frontier.work["mass"],
                criterion_number(stats),
                stats.n_classes,
                stats.n_voting,
                division.few,
                unrolled(stats.q.shape[2]),
            )
            self.spare.append(own)
            return counts

        n_trees = len(frontier.nodes)
        work = 4 * n_trees * n_rows * len(columns.usable) * stats.q.shape[2]
        division.counts += np.sum(team.map(share, n_trees, work), axis=0)

    def expand(
        self,
        team: Team,
        frontier: Frontier,
        division: Division,
        t: int,
        small: int,
        large: int,
        histograms: NDArray[np.int32],
    ) -> None:
        """Find the best classifiers of two siblings, or of the root if ``large`` is -1, in one tree."""
        stats, columns = frontier.stats, columns_of(frontier)
        growth = cpu_quick.Growth(
            frontier.rows[t],
            of_tree(stats.q, t),
            frontier.nodes[t],
            frontier.totals[t],
            frontier.edges[t],
            of_tree(division.mass, t),
            of_tree(division.level, t),
            division.stops[t],
            division.heavy[t],
            frontier.work["mass"][t],
        )
        if not self.spare:
            self.spare.append(Scratch())
        n_parts = len(columns.blocks) if team.n_threads > 1 else 1
        memory = memory_of(self.spare[0], columns, histograms, division.counts, n_parts)
        rule = (criterion_number(stats), stats.n_classes, unrolled(stats.q.shape[2]))
        Together(team, columns, growth, memory, *rule).expand(division.few, small, large, int(frontier.current[t]))


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


def columns_of(frontier: Frontier) -> cpu_quick.Columns:
    data, work = frontier.data, frontier.work
    return cpu_quick.Columns(data.blocks, work["masks"], work["usable"], data.bin_offsets, data.has_missing, data.skipped)


def memory_of(
    own: Scratch, columns: cpu_quick.Columns, histograms: NDArray[np.int32], counts: IntArray, n_parts: int
) -> cpu_quick.Memory:
    """Return scratch for one thread, or for ``n_parts`` blocks of features at the same time."""
    n_blocks, _, width = columns.blocks.shape
    n_channels, n_features = histograms.shape[2], n_blocks * width
    bounds = np.minimum(np.arange(n_blocks + 1) * width, len(columns.bin_offsets) - 1)
    n_bins = int(np.diff(columns.bin_offsets[bounds]).max())
    return cpu_quick.Memory(
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
    columns: cpu_quick.Columns
    growth: cpu_quick.Growth
    memory: cpu_quick.Memory
    criterion: int
    n_classes: int
    lanes: tuple[int, ...]

    def expand(self, few: int, small: int, large: int, parent: int) -> None:
        """As `gpuboost.backends.cpu_quick.expand`."""
        columns, growth, nodes = self.columns, self.growth, self.growth.nodes
        last = small if large < 0 else max(small, large)
        n_rows = int(nodes[last, STOP] - nodes[min(small, last), START])
        if self.team.n_threads == 1 or n_rows * len(columns.usable) * growth.q.shape[1] < self.team.WORTH_SHARING:
            rule = (self.criterion, self.n_classes, few)
            cpu_quick.expand(columns, growth, self.memory, *rule, small, large, parent, self.lanes)
            return
        small, large = cpu_quick.prepare(growth, small, large, parent, self.lanes)
        masses = cpu_quick.class_masses(growth, self.criterion)
        pair = (small, large) if large >= 0 else (small,)
        light = [int(cpu_quick.mass_of(growth, *growth.stops[m])) for m in pair]
        n_heavy = sum(int(growth.stops[m, cpu_quick.HEAVY] - nodes[m, START]) for m in pair)
        bests = self.sweep_histograms(small, large, masses, [*light, 0]) if n_heavy > few else None
        for s, m in enumerate(pair):
            histogram = self.memory.histograms[nodes[m, SLOT]] if bests else self.memory.histograms[0][:0]
            if bests and light[s] == 0:
                settled = (nodes[m], growth.totals[m], growth.edges[m])
                cpu_growth.settle(bests[s], columns.bin_offsets, histogram, *settled)
            else:
                self.finish(m, histogram, self.memory.bounds[s], masses, light[s])

    def sweep_histograms(self, small: int, large: int, masses: IntArray, light: list[int]) -> list[Best]:
        """Count the heavy rows of the smaller sibling; return the best cuts of both on their heavy rows."""
        columns, growth, memory, n_blocks = self.columns, self.growth, self.memory, len(self.columns.blocks)
        rows = growth.rows[growth.nodes[small, START] : growth.stops[small, cpu_quick.HEAVY]]
        slot = growth.nodes[small, SLOT]
        child, none = memory.histograms[slot], memory.histograms[:0]
        other = memory.histograms[growth.nodes[large, SLOT]] if large >= 0 else child[:0]
        work = len(rows) * len(columns.usable) * child.shape[1]
        n_chunks = min(-(-4 * self.team.n_threads // n_blocks), 1 + work // (4 * child.size))
        parts = none if n_chunks == 1 else np.zeros((n_chunks, *child.shape), np.int32)
        sums = parts if n_chunks > 1 else memory.histograms[slot : slot + 1]
        counting = (columns.blocks, columns.masks, columns.skipped, columns.bin_offsets, rows, growth.q, sums, self.lanes)
        added = self.team.map(cpu_growth.histogram, n_blocks * n_chunks, work, *counting)
        memory.counts[cpu_quick.ADDED_HEAVY] += sum(added)
        shared = (columns, growth.heavy[small], growth.heavy[large], self.criterion, self.n_classes, masses[0], *light[:2])
        own = (parts, child, other, memory.bounds, self.lanes)
        found = self.team.map(cpu_quick.sweep_pair, len(columns.usable), child.size * (6 + n_chunks), *shared, *own)
        return [max(bests, key=lambda best: best[0]) for bests in zip(*found, strict=True)]  # the first of equals

    def finish(self, m: int, histogram: NDArray[np.int32], bounds: IntArray, masses: IntArray, light: int) -> None:
        """As `gpuboost.backends.cpu_quick.finish`."""
        columns, growth, memory, n_classes = self.columns, self.growth, self.memory, self.n_classes
        node, edges, heavy = growth.nodes[m], growth.edges[m], growth.heavy[m]
        first, (heavy_stop, light_stop) = node[START], growth.stops[m]
        total = np.zeros_like(heavy)
        total[:n_classes] = edges[:] = growth.totals[m]
        best = (cpu_quick.constant_score(total, self.criterion), -1, 0, 0)
        counted = len(histogram) > 0
        hopeless = not counted and light > cpu_quick.mass_of(growth, first, heavy_stop)
        if not counted and not hopeless:
            rows, own = growth.rows[first:heavy_stop], (histogram, heavy, masses[0], light, bounds)
            memory.counts[cpu_quick.ADDED_HEAVY] += self.search(columns.masks, rows, *own)
            if light == 0:
                cpu_quick.queue(cpu_quick.best_found(memory.found, best, edges), node)
                return
        if hopeless:
            bounds[:] = np.iinfo(np.int64).max
        else:
            cpu_quick.to_bounds(bounds, columns, heavy, total, self.criterion, n_classes, masses, light)
        memory.counts[cpu_quick.LIGHT_ROWS] += light_stop - heavy_stop
        rows, own = growth.rows[heavy_stop if counted else first : light_stop], (histogram, total, masses[1], 0, memory.scores)
        for most in cpu_quick.BATCHES:
            if cpu_quick.choose(bounds, columns, best, len(columns.usable) if hopeless else most, memory.chosen):
                memory.counts[cpu_quick.ADDED_LIGHT] += self.search(memory.chosen, rows, *own)
                best = cpu_quick.best_found(memory.found, best, edges)
        cpu_quick.queue(best, node)

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
        """As `gpuboost.backends.cpu_quick.search_blocks`, for all blocks."""
        columns, memory, width = self.columns, self.memory, self.growth.q.shape[1]
        n_features = int(np.unpackbits(chosen.view(np.uint8)).sum())
        rule = (self.criterion, self.n_classes, masses, light)
        into = (memory.sums, memory.occupied, scores, memory.found, self.lanes)
        work = len(rows) * n_features * width
        shared = (chosen, columns, rows, self.growth.q, histogram, start, *rule, *into)
        return int(sum(self.team.map(cpu_quick.search_blocks, len(columns.blocks), work, *shared)))

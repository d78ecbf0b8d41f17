"""The CPU backend: numba loops on a team of threads. What people without a GPU use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends import cpu_growth, cpu_one_hot, cpu_rows
from gpuboost.backends.base import (
    EVERYTHING,
    LEFT,
    SLOT,
    START,
    STOP,
    Backend,
    Counts,
    Frontier,
    Start,
    Stats,
    new_nodes,
    root_bounds,
)
from gpuboost.backends.cpu_growth import criterion_number, of_tree, slots_needed, unrolled
from gpuboost.backends.cpu_one_hot import CLASS, COUNT, WEIGHT, OneHot
from gpuboost.backends.cpu_probabilities import CpuSoftmax
from gpuboost.backends.cpu_pruning import Pruning
from gpuboost.backends.simd import padded
from gpuboost.backends.threads import Team, usable_threads
from gpuboost.binning import BinnedMatrix
from gpuboost.ensemble import Ensemble
from gpuboost.tree import Tree

IntArray = NDArray[np.int64]
State = NDArray[np.float64] | OneHot


@dataclass(frozen=True)
class CpuMatrix:
    """A binned matrix as the compiled loops want it.

    Attributes
    ----------
    blocks : ndarray of uint8, shape (n_blocks, n_rows, width)
        Codes by blocks of 16, 32 or 64 features, so that a row's codes of a block are one vector (for 64, one cache line). The
        features that fill up the last block hold their skipped code everywhere.
    skipped : ndarray of uint8, shape (n_blocks * width,)
        Every feature's most frequent code: its bin is left out of the sums and recovered from the node's total.
    bin_offsets : ndarray of int64, shape (n_features + 1,)
    has_missing : ndarray of bool, shape (n_features,)
    usable : ndarray of int64
        The features that can be cut.
    counted : ndarray of float64, shape (n_features,)
        The share of the rows with another code than the skipped one.
    """

    blocks: NDArray[np.uint8]
    skipped: NDArray[np.uint8]
    bin_offsets: IntArray
    has_missing: NDArray[np.bool_]
    usable: IntArray
    counted: NDArray[np.float64]

    @property
    def n_rows(self) -> int:
        return int(self.blocks.shape[1])


class CpuBackend(CpuSoftmax, Backend):
    """Every primitive as a compiled loop over rows or features.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, see `gpuboost.backends.threads.usable_threads`. The results do not depend on it.
    """

    device = "cpu"

    def __init__(self, n_jobs: int | None = None) -> None:
        self.team = Team(usable_threads(n_jobs))
        self.scratch: dict[Any, Any] = {}
        self.pruning = Pruning()

    def close(self) -> None:
        self.team.close()
        self.scratch.clear()
        self.pruning = Pruning()

    # ---- moving data -------------------------------------------------------------------------------------------------------

    def load(self, matrix: BinnedMatrix) -> CpuMatrix:
        n_features, n_rows = matrix.codes.shape
        width = next((w for w in (16, 32) if n_features <= w), 64)
        n_blocks = -(-n_features // width)
        blocks = np.zeros((n_blocks, n_rows, width), np.uint8)
        for b, block in enumerate(blocks):
            codes = matrix.codes[b * width : (b + 1) * width]
            block[:, : len(codes)] = codes.T
        skipped, counted = np.zeros(n_blocks * width, np.uint8), np.zeros(n_features)
        if n_rows:
            numbers = [np.bincount(codes) for codes in matrix.codes]
            skipped[:n_features] = [number.argmax() for number in numbers]
            counted[:] = [1.0 - number.max() / n_rows for number in numbers]
        has_missing = np.array([not codes.all() for codes in matrix.codes], bool)  # here, whatever the cuts were fitted on
        return CpuMatrix(blocks, skipped, matrix.bin_offsets, has_missing, np.flatnonzero(matrix.usable), counted)

    def usable(self, data: CpuMatrix) -> NDArray[np.bool_]:
        return np.isin(np.arange(len(data.bin_offsets) - 1), data.usable)

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array, order="C")

    def put_one_hot(self, state: NDArray[np.float64]) -> OneHot:
        return OneHot.of(state)

    def get(self, array: NDArray[Any] | OneHot) -> NDArray[Any]:
        return array.dense() if isinstance(array, OneHot) else array

    def bin_block(
        self,
        values: NDArray[np.float64],
        cut_values: NDArray[np.float64],
        cut_offsets: IntArray,
        out: NDArray[np.uint8],
    ) -> None:
        self.team.map(cpu_rows.bin_columns, len(values), 64 * values.size, values, cut_values, cut_offsets, out)

    def _scratch(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array in memory that is kept between rounds. Its contents are left over."""
        size = math.prod(shape)
        memory = self.scratch.get(name)
        if memory is None or len(memory) < size:
            self.scratch[name] = memory = np.zeros(size, dtype)
        return memory[:size].reshape(shape)

    # ---- row state and statistics ------------------------------------------------------------------------------------------

    def maximum(self, state: State) -> float:
        if isinstance(state, OneHot):
            return self.maximum(state.weight)
        return float(max(self.team.map(cpu_rows.maximum, len(state), 2 * state.size, state)))

    def channel_sums(self, state: State, repeat: NDArray[np.int32], shift: int) -> IntArray:
        scale = float(np.ldexp(1.0, shift))
        if isinstance(state, OneHot):
            own = (state.weight, state.label, repeat, scale, state.n_classes)
            parts = self.team.map(cpu_one_hot.class_sums, len(state.label), 4 * len(state.label), *own)
        else:
            parts = self.team.map(cpu_rows.channel_sums, len(state), 4 * state.size, state, repeat, scale)
        sums: IntArray = np.sum(parts, axis=0)
        return sums

    def quantise(
        self,
        state: State,
        signs: NDArray[np.int8],
        repeat: NDArray[np.int32],
        shift: int,
        counts: Counts | None = None,
    ) -> Stats:
        if isinstance(state, OneHot):
            return self._quantise_classes(state, repeat, shift, counts)
        n_rows, n_classes = state.shape
        n_channels = n_classes + (counts is not None)
        q = np.zeros((n_rows, padded(n_channels)), np.int32)  # never reused: other sets of the same size have statistics too
        scale = float(np.ldexp(1.0, shift))
        parts = self.team.map(cpu_rows.quantise, n_rows, 4 * state.size, state, signs, repeat, scale, q)
        signed, mass = np.sum(parts, axis=0)
        if counts is None:
            return Stats(q[None], shift, signed, mass)
        q[:, n_classes] = counts.of_row
        signed = np.append(signed, counts.of_row.sum(dtype=np.int64))
        return Stats(q[None], shift, signed, mass, counts.minimum)

    def _quantise_classes(self, state: OneHot, repeat: NDArray[np.int32], shift: int, counts: Counts | None) -> Stats:
        n_rows = len(state.label)
        q = np.empty((n_rows, 2 if counts is None else 3), np.int32)
        own = (state.weight, state.label, repeat, float(np.ldexp(1.0, shift)), state.n_classes, q)
        mass: IntArray = np.sum(self.team.map(cpu_one_hot.quantise, n_rows, 4 * n_rows, *own), axis=0)
        if counts is None:
            return Stats(q[None], shift, mass, mass, one_hot=True)
        q[:, COUNT] = counts.of_row
        signed = np.append(mass, counts.of_row.sum(dtype=np.int64))
        return Stats(q[None], shift, signed, mass, counts.minimum, one_hot=True)

    def flip(self, stats: Stats, group: NDArray[Any], signs: NDArray[np.int8]) -> Stats:
        q = stats.q[0]
        out = np.zeros_like(q)
        parts = self.team.map(cpu_rows.flip, len(q), 4 * q.size, q, group, signs, stats.n_channels, out)
        return Stats(out[None], stats.shift, np.sum(parts, axis=0), stats.mass, stats.min_count)

    def group_sums(self, stats: Stats, group: NDArray[Any], n_groups: int) -> tuple[IntArray, IntArray]:
        q = stats.q[0]
        if stats.one_hot:
            parts = self.team.map(cpu_one_hot.group_sums, len(q), 8 * len(q), q, group, n_groups, stats.n_classes)
            sums: IntArray = np.sum(parts, axis=0)
            return sums, sums
        parts = self.team.map(cpu_rows.group_sums, len(q), 8 * q.size, q, group, n_groups, stats.n_classes)
        signed, mass = np.sum(parts, axis=0)
        return signed, mass

    def row_mass(self, stats: Stats) -> IntArray:
        q = stats.q
        if stats.one_hot:
            weight: IntArray = q[:, :, WEIGHT].astype(np.int64)
            return weight
        first = stats.n_classes - 1 if stats.criterion == "newton" else 0
        mass = np.empty(q.shape[:2], np.int64)
        own = (q.reshape(-1, q.shape[2]), first, stats.n_classes, mass.reshape(-1))
        self.team.map(cpu_rows.row_mass, mass.size, 2 * q.size, *own)
        return mass

    def reweight(
        self,
        state: State,
        signs: NDArray[np.int8],
        group: NDArray[Any],
        table: NDArray[np.float64],
    ) -> float:
        if isinstance(state, OneHot):
            own, n_rows = (state.weight, state.label, group, table), len(state.label)
            return float(max(self.team.map(cpu_one_hot.reweight, n_rows, 4 * n_rows, *own)))
        return float(max(self.team.map(cpu_rows.reweight, len(state), 4 * state.size, state, signs, group, table)))

    def project(
        self, state: NDArray[np.float64], signs: NDArray[np.int8], coefficients: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int8], float]:
        magnitude, side = np.empty((len(state), 1)), np.empty((len(state), 1), np.int8)
        parts = self.team.map(cpu_rows.project, len(state), 4 * state.size, state, signs, coefficients, magnitude, side)
        return magnitude, side, float(max(parts))

    # ---- growing trees -----------------------------------------------------------------------------------------------------

    def start_growth(self, data: CpuMatrix, stats: Stats, max_leaves: int, start: Start = EVERYTHING) -> Frontier:
        first = self._first_rows(stats, start, data.n_rows)
        nodes = new_nodes(root_bounds(stats, start, len(first)), max_leaves)
        n_trees = len(nodes)
        totals, edges = np.zeros((2, *nodes.shape[:2], stats.n_channels), np.int64)
        rows = self._scratch("rows", (1 if start.bounds is not None else n_trees, len(first)), np.int32)
        rows[:] = first
        frontier = Frontier(data, stats, rows, nodes, totals, edges, current=np.full(n_trees, -1))
        for t in range(n_trees):
            totals[t, 0] = self._root_total(frontier, t, start)
        frontier.work["mass"] = np.stack([self._root_mass(frontier, t, start) for t in range(n_trees)])
        frontier.work["usable"], frontier.work["masks"] = self._features(data, start)
        if start.quick:
            self.pruning.begin(frontier, max_leaves)
        return frontier

    def _histograms(self, frontier: Frontier) -> NDArray[np.int32]:
        """Return the memory for the histograms of trees that grow side by side."""
        n_trees, n_nodes = frontier.nodes.shape[:2]
        shape = (
            n_trees,
            slots_needed((n_nodes + 1) // 2),
            int(frontier.data.bin_offsets[-1]),
            padded(frontier.stats.n_channels),
        )
        return self._scratch("histograms", shape, np.int32)

    def _first_rows(self, stats: Stats, start: Start, n_rows: int) -> NDArray[np.int32]:
        """Return the rows of the roots, without those that add to no sum where it is cheap to know them."""
        rows: NDArray[np.int32]
        if start.rows is not None:
            rows = start.rows
        elif stats.one_hot and not stats.min_count:
            rows = cpu_one_hot.rows_with_weight(stats.q[0])
        else:
            rows = self._arange(n_rows)
        return rows

    def _root_total(self, frontier: Frontier, t: int, start: Start) -> IntArray:
        stats = frontier.stats
        if start.rows is None and len(stats.q) == 1:
            return stats.signed
        total: IntArray
        if start.rows is None and stats.totals is not None:
            total = stats.totals[t]
            return total
        q = self._root_q(frontier, t, start)
        if stats.one_hot:
            total = np.zeros(stats.n_channels, np.int64)
            np.add.at(total, q[:, CLASS], q[:, WEIGHT])
            total[stats.n_classes :] = q[:, COUNT:].sum(axis=0, dtype=np.int64)
        else:
            total = q[:, : stats.n_channels].sum(axis=0, dtype=np.int64)
        return total

    def _root_mass(self, frontier: Frontier, t: int, start: Start) -> IntArray:
        """Return the sums of abs(q) over the rows of a root, for the criterion "rebel"; none for others."""
        stats = frontier.stats
        if stats.criterion != "rebel":
            return np.zeros(0, np.int64)
        if start.rows is None and len(stats.q) == 1:
            return stats.mass
        mass: IntArray = abs(self._root_q(frontier, t, start)[:, : stats.n_classes]).sum(axis=0, dtype=np.int64)
        return mass

    def _root_q(self, frontier: Frontier, t: int, start: Start) -> NDArray[np.int32]:
        """Return the statistics of the rows that tree t starts from."""
        q: NDArray[np.int32] = of_tree(frontier.stats.q, t)
        if start.rows is None:
            return q
        first, stop = frontier.nodes[t, 0, [START, STOP]]
        own: NDArray[np.int32] = q[of_tree(frontier.rows, t)[first:stop]]
        return own

    def _features(self, data: CpuMatrix, start: Start) -> tuple[IntArray, NDArray[np.uint64]]:
        """Return the features that may be cut, and for each block the bits of its features that count."""
        n_blocks, _, width = data.blocks.shape
        allowed = np.zeros(n_blocks * width, bool)
        allowed[data.usable] = True
        if start.features is not None:
            allowed[: len(start.features)] &= start.features
        bits = np.zeros((n_blocks, 64), bool)
        bits[:, :width] = allowed.reshape(n_blocks, width)
        return np.flatnonzero(allowed), np.packbits(bits, axis=1, bitorder="little").view(np.uint64)[:, 0]

    def _arange(self, n: int) -> NDArray[np.int32]:
        array = self.scratch.get("arange")
        if array is None or len(array) != n:
            self.scratch["arange"] = array = np.arange(n, dtype=np.int32)
        return array

    def _siblings(self, frontier: Frontier, nodes: Sequence[int]) -> Iterator[tuple[int, int, int]]:
        """Yield (tree, smaller child, larger child) of the trees that were cut, or (tree, root, -1).

        The larger child inherits its parent's histogram slot.
        """
        for t, current in enumerate(frontier.current.tolist()):
            table = frontier.nodes[t]
            if len(nodes) == 1:
                yield t, 0, -1
            elif current >= 0 and table[current, LEFT]:
                yield t, *cpu_growth.order_children(table, current)

    def expand(self, frontier: Frontier, nodes: Sequence[int]) -> None:
        data, q, table = frontier.data, frontier.stats.q, frontier.nodes
        usable, masks = frontier.work["usable"], frontier.work["masks"]
        n_rows = int((table[:, nodes[-1], STOP] - table[:, nodes[0], START]).max()) if self.team.n_threads > 1 else 0
        n_sums = n_rows * len(usable) + len(nodes) * int(data.bin_offsets[-1])
        width = padded(frontier.stats.n_channels)
        share = self.team.n_threads > 1 and n_sums * width >= self.team.WORTH_SHARING
        for t, small, large in self._siblings(frontier, nodes):
            if "division" in frontier.work:
                self.pruning.expand(self.team, frontier, t, small, large, self._histograms(frontier)[t])
                continue
            if share:
                self._expand_together(frontier, t, small, large)
                continue
            cpu_growth.expand(
                data.blocks,
                masks,
                usable,
                data.bin_offsets,
                data.has_missing,
                data.skipped,
                of_tree(frontier.rows, t),
                of_tree(q, t),
                table[t],
                frontier.totals[t],
                frontier.edges[t],
                self._histograms(frontier)[t],
                frontier.work["mass"][t],
                frontier.stats.n_classes,
                frontier.stats.min_count,
                criterion_number(frontier.stats),
                frontier.stats.one_hot,
                small,
                large,
                unrolled(width),
            )

    def _expand_together(self, frontier: Frontier, t: int, small: int, large: int) -> None:
        """The same as `cpu_growth.expand`, shared by the team."""
        data, q, table = frontier.data, of_tree(frontier.stats.q, t), frontier.nodes[t]
        histograms, usable, masks = self._histograms(frontier)[t], frontier.work["usable"], frontier.work["masks"]
        totals, edges = frontier.totals[t], frontier.edges[t]
        rows = of_tree(frontier.rows, t)[table[small, START] : table[small, STOP]]
        slot = table[small, SLOT]
        child = histograms[slot]
        other = histograms[table[large, SLOT]] if large >= 0 else child[:0]
        n_channels, stats = child.shape[1], frontier.stats
        lanes = unrolled(n_channels)

        # Wide data are shared by blocks of features, tall data also by chunks of rows, each with a histogram of its own.
        work, n_blocks = len(rows) * len(usable) * n_channels, len(data.blocks)
        n_chunks = min(-(-4 * self.team.n_threads // n_blocks), 1 + work // (4 * child.size))
        if n_chunks == 1:
            parts, sums = histograms[:0], histograms[slot : slot + 1]
        else:
            parts = sums = self._scratch("parts", (n_chunks, *child.shape), np.int32)
        counting = (data.blocks, masks, data.skipped, data.bin_offsets, rows, q, sums)
        if stats.one_hot:
            self.team.map(cpu_growth.histogram_of_classes, n_blocks * n_chunks, work, *counting, stats.n_classes)
        else:
            self.team.map(cpu_growth.histogram, n_blocks * n_chunks, work, *counting, lanes)

        shared = (usable, data.bin_offsets, data.has_missing, data.skipped)
        own = (
            totals[small],
            totals[large],
            frontier.work["mass"][t],
            stats.n_classes,
            stats.min_count,
            criterion_number(stats),
            parts,
            child,
            other,
            lanes,
        )
        found = self.team.map(cpu_growth.finish, len(usable), child.size * (6 + n_chunks), *shared, *own)
        for m, bests in zip((small, large), zip(*found, strict=True), strict=True):
            if m >= 0:
                best = max(bests, key=lambda best: best[0])  # the first of equals: the lowest feature
                histogram = histograms[table[m, SLOT]]
                cpu_growth.settle(best, data.bin_offsets, histogram, table[m], totals[m], edges[m])

    def repeat(self, frontier: Frontier, steps: Callable[[], None]) -> None:
        """Give every thread whole trees, where there are enough of them."""
        if len(frontier.nodes) < self.team.n_threads:
            steps()
        elif "division" in frontier.work:
            self.pruning.grow(self.team, frontier)
        else:
            self._grow(frontier)
        self.pruning.end(frontier)

    def _grow(self, frontier: Frontier) -> None:
        """Grow every tree, each on one thread."""
        data, stats, work = frontier.data, frontier.stats, frontier.work
        width = padded(stats.n_channels)
        shape = (slots_needed((frontier.nodes.shape[1] + 1) // 2), int(data.bin_offsets[-1]), width)
        spare = self.scratch.setdefault("spare", [])  # a thread takes memory from it and puts it back

        def share(lo: int, hi: int) -> None:
            memory = spare.pop() if spare else (np.zeros(0, np.int32), np.zeros(0, np.int32))
            histograms, buffer = (
                one if len(one) >= size else np.zeros(size, np.int32)
                for one, size in zip(memory, (math.prod(shape), frontier.rows.shape[1]), strict=True)
            )
            cpu_growth.grow(
                lo,
                hi,
                data.blocks,
                work["masks"],
                work["usable"],
                data.bin_offsets,
                data.has_missing,
                data.skipped,
                frontier.rows,
                stats.q,
                frontier.nodes,
                frontier.totals,
                frontier.edges,
                frontier.current,
                histograms[: math.prod(shape)].reshape(shape),
                buffer,
                work["mass"],
                stats.n_classes,
                stats.n_voting,
                stats.min_count,
                criterion_number(stats),
                stats.one_hot,
                unrolled(width),
            )
            spare.append((histograms, buffer))

        n_started = int((frontier.nodes[:, 0, STOP] - frontier.nodes[:, 0, START]).sum())
        self.team.map(share, len(frontier.nodes), 4 * n_started * len(work["usable"]) * width)

    def select(self, frontier: Frontier) -> bool:
        n_slots = slots_needed((frontier.nodes.shape[1] + 1) // 2)
        found = cpu_growth.select(frontier.step, frontier.nodes, frontier.current, n_slots)
        frontier.step += 1
        return bool(found)

    def partition(self, frontier: Frontier) -> None:
        f = frontier
        buffer = self._scratch("buffer", (f.rows.shape[1],), np.int32)
        for t, node in enumerate(f.current.tolist()):
            if node >= 0 and f.nodes[t, node, LEFT]:
                cpu_growth.partition(
                    f.data.blocks, of_tree(f.rows, t), buffer, f.nodes[t], f.totals[t], f.edges[t], f.stats.n_voting, node
                )

    def node_of_rows(self, frontier: Frontier) -> NDArray[np.int32]:
        f = frontier
        out = np.empty((len(f.rows), f.data.n_rows), np.int32)
        for t in range(len(out)):
            cpu_growth.node_of_rows(f.rows[t], f.nodes[t], out[t])
        if f.rows.shape[1] < f.data.n_rows:  # of one tree, see `_first_rows`
            own = (f.stats.q[0], f.data.blocks, f.nodes[0], out[0])
            self.team.map(cpu_growth.place_weightless, f.data.n_rows, 64 * f.data.n_rows, *own)
        return out

    # ---- using trees -------------------------------------------------------------------------------------------------------

    def apply(self, tree: Tree, data: CpuMatrix) -> NDArray[np.int32]:
        n_rows = data.n_rows
        out = np.empty(n_rows, np.int32)
        self.team.map(
            cpu_rows.apply,
            n_rows,
            64 * n_rows,
            data.blocks,
            tree.first,
            tree.feature,
            tree.cut,
            tree.missing_left,
            tree.left,
            tree.right,
            out,
        )
        return out

    def set_bit(self, cell: NDArray[np.int32], bit: int, data: CpuMatrix, feature: int, cut: int, missing_left: bool) -> None:
        self.team.map(cpu_rows.set_bit, len(cell), 8 * len(cell), data.blocks, feature, cut, missing_left, bit, cell)

    def predict(self, ensemble: Ensemble, data: CpuMatrix, scores: NDArray[np.float64], first: int, stop: int) -> None:
        self.team.map(
            cpu_rows.predict,
            len(scores),
            len(scores) * (stop - first) * (64 + scores.shape[1]),
            data.blocks,
            ensemble.node_offset,
            ensemble.leaf_offset,
            ensemble.feature,
            ensemble.cut,
            ensemble.missing_left,
            ensemble.left,
            ensemble.right,
            ensemble.values,
            first,
            stop,
            scores,
        )

    def add_scores(self, scores: NDArray[np.float64], group: NDArray[Any], values: NDArray[np.float64]) -> None:
        self.team.map(cpu_rows.add_scores, len(scores), 2 * scores.size, scores, group, values)

    def add_trees(
        self, scores: NDArray[np.float64], groups: Sequence[NDArray[Any]], values: Sequence[NDArray[np.float64]]
    ) -> None:
        """All trees for some rows at a time, whose scores stay in the second-level cache."""
        n_rows, at_once = len(scores), max(1, 2**17 // scores.shape[1])

        def share(lo: int, hi: int) -> None:
            for first in range(lo, hi, at_once):
                for group, own in zip(groups, values, strict=True):
                    cpu_rows.add_scores(first, min(first + at_once, hi), scores, group, own)

        self.team.map(share, n_rows, 2 * scores.size * len(groups))

    def error(self, scores: NDArray[np.float64], target: NDArray[Any], units: IntArray) -> int:
        loop = cpu_rows.class_errors if target.ndim == 1 else cpu_rows.sign_errors
        return int(sum(self.team.map(loop, len(scores), 4 * scores.size, scores, target, units)))

    def confusion(self, scores: NDArray[np.float64], target: NDArray[Any], units: IntArray) -> IntArray:
        counts: IntArray = sum(self.team.map(cpu_rows.confusion, len(scores), 4 * scores.size, scores, target, units))
        return counts

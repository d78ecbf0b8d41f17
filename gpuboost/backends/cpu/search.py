"""How the best splits of growing trees are found: what all ways share, and the full search.

A search grows whole trees, each on one thread, or finds the splits of one tree's nodes, shared by the team where that pays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cpu.jit import Lanes
from gpuboost.backends.cpu.loops import growth as growth_loops
from gpuboost.backends.cpu.loops.arguments import Columns, GrowingTree, Rule, Siblings, Trees
from gpuboost.backends.cpu.loops.growth import of_tree, slots_needed
from gpuboost.backends.cpu.loops.histograms import histogram, histogram_of_classes
from gpuboost.backends.cpu.loops.splits import finish_histograms, store_split
from gpuboost.backends.cpu.pruning.tuner import PruningTuner
from gpuboost.backends.cpu.resources import CpuResources, Scratch
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.frontier import SLOT, START, STOP, Frontier
from gpuboost.backends.statistics import Stats

Histograms = NDArray[np.int32] | NDArray[np.int64]
"""Of a channel's sums below ``2**30``, or of wide statistics, whose sums may pass that."""


@dataclass
class Work:
    """What the CPU backend keeps of a growth: the ``work`` of a `gpuboost.backends.frontier.Frontier`.

    Attributes
    ----------
    columns : Columns
    rule : Rule
    sum_abs : ndarray of int64, shape (T, n_classes)
        The roots' sums of abs(quantised), for criteria that need them; else there are no classes.
    lanes : tuple of int
        See `gpuboost.backends.cpu.loops.histograms.unrolled`.
    search : Search
    tuning : (PruningTuner, float), optional
        What learns from the time of the growth, and when that began.
    """

    columns: Columns
    rule: Rule
    sum_abs: IntArray
    lanes: Lanes
    search: Search
    tuning: tuple[PruningTuner, float] | None = None


class Search(ABC):
    """A way to find splits. All ways find the same."""

    def __init__(self, resources: CpuResources) -> None:
        self.resources = resources

    @abstractmethod
    def grow(self, frontier: Frontier) -> None:
        """Grow every tree, each on one thread."""

    @abstractmethod
    def find_splits(self, frontier: Frontier, t: int, small: int, large: int) -> None:
        """Find the best classifiers of two siblings of tree t, or of the root if ``large`` is -1."""

    def map_trees(self, frontier: Frontier, share: Callable[[int, int, Scratch], Any], n_rows: int) -> list[Any]:
        """Run ``share(lo, hi, scratch)`` for ranges of trees, which hold ``n_rows`` rows together; return its results."""
        spare = self.resources.spare

        def borrow(lo: int, hi: int) -> Any:
            scratch = spare.pop() if spare else Scratch()
            found = share(lo, hi, scratch)
            spare.append(scratch)
            return found

        work = 4 * n_rows * len(frontier.work.columns.usable) * padded(frontier.stats.n_channels)
        return self.resources.team.map(borrow, len(frontier.nodes), work)

    def count(
        self, work: Work, rows: NDArray[np.int32], quantised: NDArray[np.int32], child: Histograms
    ) -> tuple[Histograms, int]:
        """Count rows on all threads. Return the parts that add up to ``child``, or none; and the number of additions.

        Wide data are shared by blocks of features, tall data also by chunks of rows, each with a histogram of its own.
        """
        team, n_blocks = self.resources.team, len(work.columns.blocks)
        n_additions = len(rows) * len(work.columns.usable) * child.shape[1]
        n_chunks = min(-(-4 * team.n_threads // n_blocks), 1 + n_additions // (4 * child.size))
        parts = self.resources.scratch.array("parts", (n_chunks if n_chunks > 1 else 0, *child.shape), child.dtype.type)
        sums = parts if n_chunks > 1 else child[None]
        loop: Any = histogram_of_classes if work.rule.one_hot else histogram
        how: Any = work.rule.n_classes if work.rule.one_hot else work.lanes
        n_added = team.map(loop, n_blocks * n_chunks, n_additions, work.columns, rows, quantised, sums, how)
        return parts, sum(n_added)


class FullSearch(Search):
    """All cuts of all features, from histograms of all rows."""

    def grow(self, frontier: Frontier) -> None:
        work, trees, (shape, dtype) = frontier.work, trees_of(frontier), histogram_layout(frontier)

        def share(lo: int, hi: int, scratch: Scratch) -> None:
            histograms = scratch.array("histograms", shape, dtype)
            buffer = scratch.array("buffer", (frontier.rows.shape[1],), np.int32)
            growth_loops.grow(lo, hi, work.columns, trees, histograms, buffer, work.rule, work.lanes)

        self.map_trees(frontier, share, int((frontier.nodes[:, 0, STOP] - frontier.nodes[:, 0, START]).sum()))

    def find_splits(self, frontier: Frontier, t: int, small: int, large: int) -> None:
        work, tree, histograms = frontier.work, tree_of(frontier, t), histograms_of(self.resources, frontier, t)
        if self._is_worth_sharing(work, tree, histograms, small, large):
            self._find_splits_together(work, tree, histograms, small, large)
        else:
            growth_loops.find_splits(work.columns, tree, histograms, work.rule, small, large, work.lanes)

    def _is_worth_sharing(self, work: Work, tree: GrowingTree, histograms: Histograms, small: int, large: int) -> bool:
        team = self.resources.team
        if team.n_threads == 1:
            return False
        n_rows = rows_of_pair(tree.nodes, small, large)
        n_sums = n_rows * len(work.columns.usable) + (1 if large < 0 else 2) * histograms.shape[1]
        return bool(n_sums * histograms.shape[2] >= team.WORTH_SHARING)

    def _find_splits_together(self, work: Work, tree: GrowingTree, histograms: Histograms, small: int, large: int) -> None:
        """As `gpuboost.backends.cpu.loops.growth.find_splits`, shared by the team."""
        nodes, columns = tree.nodes, work.columns
        child = histograms[nodes[small, SLOT]]
        other = histograms[nodes[large, SLOT]] if large >= 0 else child[:0]
        parts, _ = self.count(work, tree.rows[nodes[small, START] : nodes[small, STOP]], tree.quantised, child)
        pair = Siblings(tree.totals[small], tree.totals[large], child, other)
        cost = child.size * (6 + max(len(parts), 1))
        found = self.resources.team.map(
            finish_histograms, len(columns.usable), cost, columns, pair, tree.sum_abs, work.rule, parts, work.lanes
        )
        for m, bests in zip((small, large), zip(*found, strict=True), strict=True):
            if m >= 0:
                best = max(bests, key=lambda best: best[0])  # the first of equals: the lowest feature
                histogram = histograms[nodes[m, SLOT]]
                store_split(best, columns.bin_offsets, histogram, nodes[m], tree.totals[m], tree.edges[m])


def rows_of_pair(nodes: IntArray, small: int, large: int) -> int:
    """Return the number of rows of two siblings, or of the root if ``large`` is -1."""
    first, last = (small, small) if large < 0 else (min(small, large), max(small, large))
    return int(nodes[last, STOP] - nodes[first, START])


def histogram_layout(frontier: Frontier) -> tuple[tuple[int, int, int], type[np.int32 | np.int64]]:
    """Return the shape and the dtype of the histograms that a tree keeps at a time."""
    n_slots = slots_needed((frontier.nodes.shape[1] + 1) // 2)
    shape = (n_slots, int(frontier.work.columns.bin_offsets[-1]), padded(frontier.stats.n_channels))
    return shape, sum_dtype(frontier.stats)


def sum_dtype(stats: Stats) -> type[np.int32 | np.int64]:
    """Return the dtype of histograms."""
    return np.int64 if stats.wide else np.int32


def histograms_of(resources: CpuResources, frontier: Frontier, t: int) -> Histograms:
    """Return the memory for the histograms of tree t of those that grow side by side."""
    shape, dtype = histogram_layout(frontier)
    histograms: Histograms = resources.scratch.array("histograms", (len(frontier.nodes), *shape), dtype)[t]
    return histograms


def trees_of(frontier: Frontier) -> Trees:
    f = frontier
    return Trees(f.rows, f.stats.quantised, f.nodes, f.totals, f.edges, f.current, f.work.sum_abs)


def tree_of(frontier: Frontier, t: int) -> GrowingTree:
    f = frontier
    rows, quantised = of_tree(f.rows, t), of_tree(f.stats.quantised, t)
    return GrowingTree(rows, quantised, f.nodes[t], f.totals[t], f.edges[t], f.work.sum_abs[t])

"""The halves of the search for splits, for rows that are divided among workers; see `gpuboost.backends.divided`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cpu.loops.arguments import Columns, Siblings
from gpuboost.backends.cpu.loops.splits import finish_histograms, store_split
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.cpu.search import histogram_layout, sum_dtype, tree_of
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.divided import DividedGrowth, sibling
from gpuboost.backends.frontier import SLOT, START, STOP, Frontier


class CpuDivided(CpuResources, DividedGrowth):
    """See `gpuboost.backends.divided.DividedGrowth`."""

    def bin_offsets(self, frontier: Frontier) -> IntArray:
        offsets: IntArray = frontier.work.columns.bin_offsets
        return offsets

    def roots(self, frontier: Frontier) -> tuple[IntArray, IntArray | None]:
        sum_abs: IntArray = frontier.work.sum_abs
        return frontier.totals[:, 0], sum_abs if sum_abs.size else None

    def set_roots(self, frontier: Frontier, totals: IntArray, sum_abs: IntArray | None) -> None:
        frontier.totals[:, 0] = totals
        if sum_abs is not None:
            frontier.work.sum_abs[:] = sum_abs

    def count(self, frontier: Frontier, chosen: IntArray) -> NDArray[Any]:
        trees = np.flatnonzero(chosen >= 0).tolist()
        (_, *shape), dtype = histogram_layout(frontier)
        counted = self.scratch.array("counted", tuple(shape), dtype)
        sums = np.empty((shape[0], len(trees), frontier.stats.n_channels), dtype)
        for place, t in enumerate(trees):
            tree = tree_of(frontier, t)
            node = tree.nodes[chosen[t]]
            rows = tree.rows[node[START] : node[STOP]]
            parts, _ = frontier.work.search.count(frontier.work, rows, tree.quantised, counted)
            whole = parts.sum(axis=0, dtype=dtype) if len(parts) else counted
            sums[:, place] = whole[:, : sums.shape[2]]
        return sums

    def judge(
        self, frontier: Frontier, parents: IntArray, chosen: IntArray, sums: NDArray[Any], features: tuple[int, int]
    ) -> None:
        work, shape = frontier.work, (*frontier.nodes.shape[:2], len(sums), padded(sums.shape[2]))
        columns = own_columns(work.columns, *features)
        memory = self.scratch.array("histograms", (shape[0], shape[1] // 2 + 1, *shape[2:]), sum_dtype(frontier.stats))
        for place, t in enumerate(np.flatnonzero(chosen >= 0).tolist()):
            tree, small, parent = tree_of(frontier, t), int(chosen[t]), int(parents[t])
            nodes, totals, histograms = tree.nodes, tree.totals, memory[t]
            nodes[small, SLOT] = (small + 1) // 2  # of the children of step s one gets the slot s + 1, one the parent's
            child = histograms[nodes[small, SLOT]]
            child[:, : sums.shape[2]], child[:, sums.shape[2] :] = sums[:, place], 0
            large, other = -1, child[:0]
            if parent >= 0:
                large = sibling(small)
                nodes[large, SLOT] = nodes[parent, SLOT]
                other = histograms[nodes[large, SLOT]]
            pair = Siblings(totals[small], totals[large], child, other)
            arguments = (columns, pair, tree.sum_abs, work.rule, histograms[:0], work.lanes)
            found = self.team.map(finish_histograms, len(columns.usable), 7 * child.size, *arguments)
            for m, histogram, bests in zip((small, large), (child, other), zip(*found, strict=True), strict=True):
                if m >= 0:
                    best = max(bests, key=lambda best: best[0])  # the first of equals: the lowest feature
                    store_split(best, columns.bin_offsets, histogram, nodes[m], totals[m], tree.edges[m])


def own_columns(columns: Columns, first: int, stop: int) -> Columns:
    """Return the columns of the features first..stop-1, for histograms that have no other bins."""
    usable, offsets = columns.usable, columns.bin_offsets
    return columns._replace(usable=usable[(usable >= first) & (usable < stop)], bin_offsets=offsets - offsets[first])

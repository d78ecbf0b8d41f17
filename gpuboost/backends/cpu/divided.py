"""The halves of the search for splits, for rows that are divided among workers; see `gpuboost.backends.divided`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cpu.loops.arguments import Siblings
from gpuboost.backends.cpu.loops.splits import finish_histograms, store_split
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.cpu.search import histogram_layout, histograms_of, tree_of
from gpuboost.backends.divided import DividedGrowth
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

    def judge(self, frontier: Frontier, chosen: IntArray, sums: NDArray[Any], features: tuple[int, int]) -> None:
        work, (first, stop) = frontier.work, features
        offsets, usable = work.columns.bin_offsets, work.columns.usable
        columns = work.columns._replace(usable=usable[(usable >= first) & (usable < stop)])
        for place, t in enumerate(np.flatnonzero(chosen >= 0).tolist()):
            tree, histograms, small = tree_of(frontier, t), histograms_of(self, frontier, t), int(chosen[t])
            nodes, totals = tree.nodes, tree.totals
            large = 4 * frontier.step - 1 - small if small else -1  # the children of step s are 2s + 1 and 2s + 2
            if small and nodes[large, SLOT] != nodes[frontier.current[t], SLOT]:  # the larger one inherits the parent's
                nodes[[small, large], SLOT] = nodes[[large, small], SLOT]
            child = histograms[nodes[small, SLOT]]
            child[offsets[first] : offsets[stop], : sums.shape[2]] = sums[:, place]
            other = histograms[nodes[large, SLOT]] if small else child[:0]
            pair = Siblings(totals[small], totals[large], child, other)
            arguments = (columns, pair, tree.sum_abs, work.rule, histograms[:0], work.lanes)
            cost = 7 * (offsets[stop] - offsets[first]) * child.shape[1]
            found = self.team.map(finish_histograms, len(columns.usable), cost, *arguments)
            for m, histogram, bests in zip((small, large), (child, other), zip(*found, strict=True), strict=True):
                if m >= 0:
                    best = max(bests, key=lambda best: best[0])  # the first of equals: the lowest feature
                    store_split(best, offsets, histogram, nodes[m], totals[m], tree.edges[m])

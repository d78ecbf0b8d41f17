"""The halves of the search for splits, for rows that are divided among workers; see `gpuboost.backends.divided`.

Histograms come to the host, where they travel, and a worker's share of the sums goes back. Where trees of a batch have their
smaller children on different sides, both sides are counted; only those that were asked for travel. No such growth is recorded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cuda.gpu import GpuArray
from gpuboost.backends.cuda.growth import LEFT_CHILD, N_COLUMNS, ROOT, CudaGrowth
from gpuboost.backends.cuda.growth_work import work_of
from gpuboost.backends.cuda.plan import Tile
from gpuboost.backends.divided import SPLIT, sibling
from gpuboost.backends.frontier import LEFT, Frontier


class CudaDivided(CudaGrowth):
    """See `gpuboost.backends.divided.DividedGrowth`."""

    sums: dict[tuple[int, int], NDArray[Any]]
    """What the bins of this worker's features add up to over all workers, by tree and node; without the skipped ones."""

    def bin_offsets(self, frontier: Frontier) -> IntArray:
        return work_of(frontier).columns.host.offsets.astype(np.int64)

    def roots(self, frontier: Frontier) -> tuple[IntArray, IntArray | None]:
        work, n_channels = work_of(frontier), frontier.stats.n_channels
        roots = self.gpu.get(work.table[:, 0, N_COLUMNS : N_COLUMNS + n_channels])
        return roots, None if work.sum_abs is None else self.gpu.get(work.sum_abs)

    def set_roots(self, frontier: Frontier, totals: IntArray, sum_abs: IntArray | None) -> None:
        table = self.gpu.get(work_of(frontier).table)
        table[:, 0, N_COLUMNS : N_COLUMNS + totals.shape[1]] = totals
        self._set_table(frontier, table)
        if sum_abs is not None:
            frontier.work = replace(work_of(frontier), sum_abs=self.gpu.put(sum_abs))

    def _set_table(self, frontier: Frontier, table: IntArray) -> None:
        """Give a frontier another table: that of the buffers belongs to what has been recorded."""
        n_channels, on_device = frontier.stats.n_channels, self.gpu.put(table)
        frontier.work = replace(work_of(frontier), table=on_device)
        frontier.nodes = on_device[:, :, :N_COLUMNS]
        frontier.totals, frontier.edges = (on_device[:, :, N_COLUMNS + i * n_channels :][:, :, :n_channels] for i in (0, 1))

    def set_splits(self, frontier: Frontier, nodes: slice, splits: IntArray, edges: IntArray) -> None:
        table = self.gpu.get(work_of(frontier).table)
        table[:, nodes, SPLIT] = splits
        table[:, nodes, N_COLUMNS + frontier.stats.n_channels :] = edges
        self._set_table(frontier, table)

    def set_nodes(self, frontier: Frontier, nodes: IntArray, totals: IntArray, edges: IntArray) -> None:
        self._set_table(frontier, np.concatenate([nodes, totals, edges], axis=2))

    def divide(self, frontier: Frontier, parents: IntArray) -> None:
        table, trees = self.gpu.get(work_of(frontier).table), np.flatnonzero(parents >= 0)
        table[trees, parents[trees], LEFT] = 2 * frontier.step + 1
        self._set_table(frontier, table)
        frontier.current = self.gpu.put(parents)
        frontier.step += 1
        self.partition(frontier)

    def count(self, frontier: Frontier, chosen: IntArray) -> NDArray[Any]:
        trees = np.flatnonzero(chosen >= 0)
        sides = np.where(chosen[trees] > 0, (chosen[trees] + 1) % 2, 0)  # left children have odd numbers
        parts = [self._count_tile(frontier, tile, trees, sides) for tile in work_of(frontier).plan.tiles]
        return np.concatenate(parts)

    def _count_tile(self, frontier: Frontier, tile: Tile, trees: IntArray, sides: IntArray) -> NDArray[Any]:
        work, is_root = work_of(frontier), frontier.step == 0
        sums = np.empty((tile.n_bins, len(trees), frontier.stats.n_channels), work.sums.dtype)
        for side in range(1 if is_root else 2):
            own = np.flatnonzero(sides == side)
            if len(own):
                self._zero(work.histograms[side])
                self._histogram(frontier, tile, ROOT if is_root else LEFT_CHILD + side, side)
                counted = self.gpu.get(work.sums[side])[trees[own], : tile.n_bins]
                sums[:, own] = counted.transpose(1, 0, 2)
        return sums

    def judge(
        self, frontier: Frontier, parents: IntArray, chosen: IntArray, sums: NDArray[Any], features: tuple[int, int]
    ) -> None:
        trees = np.flatnonzero(chosen >= 0).tolist()
        is_root = chosen[trees[0]] == 0
        if is_root:
            self.sums = {(t, 0): sums[:, place] for place, t in enumerate(trees)}
        else:
            for place, t in enumerate(trees):
                node, own = int(chosen[t]), sums[:, place]
                self.sums[t, sibling(node)] = self.sums.pop((t, int(parents[t]))) - own
                self.sums[t, node] = own
        n_members = 1 if is_root else 2
        histograms = np.zeros((n_members, work_of(frontier).n_trees, len(sums), sums.shape[2]), sums.dtype)
        for t in trees:
            left = int(chosen[t]) - (not is_root and chosen[t] % 2 == 0)
            for member in range(n_members):
                histograms[member, t] = self.sums[t, left + member]
        current = self.gpu.put(np.where(chosen >= 0, parents, -1))
        self._judge(frontier, current, histograms, features)

    def _judge(self, frontier: Frontier, current: GpuArray, histograms: NDArray[Any], features: tuple[int, int]) -> None:
        """Sweep the roots, or both children in every tree, from histograms (nodes, n_trees, n_bins, C) of few features."""
        work, columns = work_of(frontier), work_of(frontier).columns.host
        first, stop = np.searchsorted(columns.features, features).tolist()
        first_bin, n_bins = int(columns.offsets[features[0]]), histograms.shape[2]
        plan = replace(work.plan, tiles=(Tile(0, 0, first, stop - first, first_bin, max(n_bins, 1)),), kept=False)
        work = replace(work, plan=plan, histograms=self.gpu.put(histograms).view(np.int32))
        own = Frontier(**{**vars(frontier), "current": current, "work": work})
        member = ROOT if len(histograms) == 1 else LEFT_CHILD
        if first > 0:  # a launch that begins with the first feature starts from the constant classifier
            self._sweep(own, Tile(0, 0, 0, 0, 0, 1), member)
        self._sweep(own, plan.tiles[0], member)

"""The halves of the search for splits, for rows that are divided among workers; see `gpuboost.backends.divided`.

Histograms come to the host, where they travel, and a worker's share of the sums goes back. No such growth is recorded.
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
from gpuboost.backends.cuda.plan import Columns, Tile
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
        trees, sides = np.flatnonzero(chosen >= 0), sides_of(chosen)
        return np.concatenate([self._count_tile(frontier, tile, trees, sides) for tile in work_of(frontier).plan.tiles])

    def _count_tile(self, frontier: Frontier, tile: Tile, trees: IntArray, sides: IntArray) -> NDArray[Any]:
        sums = np.empty((tile.n_bins, len(trees), frontier.stats.n_channels), work_of(frontier).sums.dtype)
        for side in self._count_sides(frontier, tile, sides):
            counted = self.gpu.get(work_of(frontier).sums[side])[sides == side, : tile.n_bins]
            sums[:, sides[trees] == side] = counted.transpose(1, 0, 2)
        return sums

    def _count_sides(self, frontier: Frontier, tile: Tile, sides: IntArray) -> list[int]:
        """Count the root of every tree, or the child on its side; return the sides, which are the slots of the histograms."""
        work, present = work_of(frontier), sorted({side for side in sides.tolist() if side >= 0})
        if frontier.step == 0:
            self._clear_and_count(frontier, tile, ROOT, 0)
            return present
        parents = self.gpu.get(frontier.current)
        for side in present:
            current = self.gpu.put(np.where(sides == side, parents, -1))
            own = Frontier(**{**vars(frontier), "current": current, "work": work})
            self._clear_and_count(own, tile, LEFT_CHILD + side, side)
        return present

    def _clear_and_count(self, frontier: Frontier, tile: Tile, member: int, slot: int) -> None:
        if work_of(frontier).plan.kept:  # else `_histogram` clears it
            self._zero(work_of(frontier).histograms[slot])
        self._histogram(frontier, tile, member, slot)

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
        histograms = np.zeros((n_members, work_of(frontier).n_trees, max(len(sums), 1), sums.shape[2]), sums.dtype)
        for t in trees:
            left = int(chosen[t]) - (not is_root and chosen[t] % 2 == 0)
            for member in range(n_members):
                histograms[member, t, : len(sums)] = self.sums[t, left + member]
        current = self.gpu.put(np.where(chosen >= 0, parents, -1))
        self._sweep_own(frontier, current, self.gpu.put(histograms), features)

    def _sweep_own(self, frontier: Frontier, current: GpuArray, histograms: GpuArray, features: tuple[int, int]) -> None:
        """Sweep the roots, or both children in every tree, from histograms (nodes, n_trees, n_bins, C) of few features."""
        work = work_of(frontier)
        tile = own_tile(work.columns.host, features)
        plan = replace(work.plan, tiles=(tile,), kept=False)
        work = replace(work, plan=plan, histograms=histograms.view(np.int32))
        own = Frontier(**{**vars(frontier), "current": current, "work": work})
        member = LEFT_CHILD if histograms.shape[0] == 2 else ROOT
        if tile.first_feature > 0:  # a launch that begins with the first feature starts from the constant classifier
            self._sweep(own, Tile(0, 0, 0, 0, 0, 1), member)
        self._sweep(own, tile, member)


def sides_of(chosen: IntArray) -> IntArray:
    """Return whether nodes are left children or roots (0), right children (1), or none (-1)."""
    sides: IntArray = np.where(chosen > 0, (chosen + 1) % 2, chosen)  # left children have odd numbers
    return sides


def own_tile(columns: Columns, features: tuple[int, int]) -> Tile:
    """Return the tile of a range of features, for a sweep."""
    first, stop = np.searchsorted(columns.features, features).tolist()
    first_bin, end = columns.offsets[list(features)].tolist()
    return Tile(0, 0, first, stop - first, first_bin, max(end - first_bin, 1))

"""The halves of the search for splits, for rows that are divided among workers; see `gpuboost.backends.divided`.

Where the devices of all workers are linked, histograms are added up between them and stay there. Else they come to the host,
where they travel, and a worker's share of the sums goes back. No such growth is recorded.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cuda.gpu import Communicator, GpuArray, Part
from gpuboost.backends.cuda.growth import LEFT_CHILD, N_COLUMNS, ROOT, CudaGrowth
from gpuboost.backends.cuda.growth_work import work_of
from gpuboost.backends.cuda.plan import MEMORY_SHARE, Columns, Tile
from gpuboost.backends.divided import SPLIT, Division
from gpuboost.backends.frontier import Frontier
from gpuboost.errors import DeviceUnavailableError
from gpuboost.peers.base import Peers


class CudaDivided(CudaGrowth):
    """See `gpuboost.backends.divided.DividedGrowth`."""

    communicator: Communicator | None = None
    """What links the device to those of the other workers."""
    fits: dict[tuple[int | bool, ...], bool]
    """Whether growths of some shape have room on all devices to keep the sums there."""
    sums: dict[tuple[int, int], NDArray[Any]]
    """What the bins of this worker's features add up to over all workers, by tree and node; without the skipped ones."""
    slots: IntArray
    """Which slot of the buffer "kept" each node of each tree has, shape (n_trees, max_nodes)."""

    def link(self, peers: Peers) -> None:
        name, kind = self.gpu.name_for_peers()
        told = [json.loads(one) for one in peers.gather(json.dumps([name, kind]).encode(), "devices")]
        for rank, (other, _) in enumerate(told):
            first = next(r for r, (one, _) in enumerate(told) if one == other)
            if first != rank:
                raise DeviceUnavailableError(
                    f"workers {first} and {rank} use the same CUDA device ({self.gpu.label} there). Give every worker one "
                    "of its own: dask-cuda's LocalCUDACluster does, or CUDA_VISIBLE_DEVICES. One process uses all of a device"
                )
        if not kind or any(other != kind for _, other in told):
            return  # through the hosts
        group = peers.gather(self.gpu.new_group() if peers.rank == 0 else b"", "name of the devices' meeting")[0]
        self.fits = {}
        self.communicator = self.gpu.join(group, peers.rank, peers.size, lambda: peers.check("devices' meeting"))

    def unlink(self) -> None:
        communicator, self.communicator = self.communicator, None
        if communicator is not None:
            communicator.close()

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

    def tables(self, frontier: Frontier) -> tuple[IntArray, IntArray, IntArray]:
        return *self.read_nodes(frontier), self.gpu.get(frontier.current)

    def set_splits(self, frontier: Frontier, nodes: Sequence[int], splits: IntArray, edges: IntArray) -> None:
        table, trees = self.gpu.get(work_of(frontier).table), range(len(splits))
        table[np.ix_(trees, nodes, SPLIT)] = splits
        first = N_COLUMNS + frontier.stats.n_channels
        table[np.ix_(trees, nodes, range(first, first + edges.shape[2]))] = edges
        self._set_table(frontier, table)

    # ---- between the devices -------------------------------------------------------------------------------------------------

    def find_own_splits(self, frontier: Frontier, chosen: IntArray, division: Division, peers: Peers, what: str) -> None:
        if self.communicator is None or not self._fits(frontier, division, peers):
            super().find_own_splits(frontier, chosen, division, peers, what)  # type: ignore[misc]
            return
        trees = np.flatnonzero(chosen >= 0)
        sides = np.full(len(chosen), -1, np.int64)
        sides[trees] = np.where(chosen[trees] > 0, (chosen[trees] + 1) % 2, 0)  # left children have odd numbers
        own = self._summed(frontier, sides, division, peers, what)
        self._sweep_own(frontier, self._siblings(frontier, sides, own), division.features_of(peers.rank))

    def _fits(self, frontier: Frontier, division: Division, peers: Peers) -> bool:
        """Whether all workers have room for the sums of every node that may still be cut, and count all features at once."""
        work, n_bins = work_of(frontier), int(np.diff(division.bins).max())
        key = (work.n_trees, work.max_nodes, frontier.stats.n_channels, work.plan.wide, n_bins)
        if key not in self.fits:
            n_bytes = (work.max_nodes // 2 + 4) * work.n_trees * n_bins * frontier.stats.n_channels * work.sums.dtype.itemsize
            has_no_room = len(work.plan.tiles) > 1 or n_bytes > MEMORY_SHARE * self.gpu.free_bytes()
            self.fits[key] = not peers.max(np.array([int(has_no_room)]), "whether sums stay on the devices")[0]
        return self.fits[key]

    def _summed(self, frontier: Frontier, sides: IntArray, division: Division, peers: Peers, what: str) -> GpuArray:
        """Return the sums of this worker's bins over all workers, device array (n_trees, n_own_bins, C).

        They are of the left child (0) or the right one (1) of the current node of each tree, or of the root.
        """
        work, (tile,) = work_of(frontier), work_of(frontier).plan.tiles
        current, sums, first = frontier.current, work.sums, 0 if frontier.step == 0 else LEFT_CHILD
        host = self.gpu.get(current)
        for side in sorted(set(sides[sides >= 0].tolist())):
            if work.plan.kept:  # else `_histogram` clears it
                self._zero(work.histograms[side])
            own = replace_current(frontier, self.gpu.put(np.where(sides == side, host, -1)))
            self._histogram(own if first else frontier, tile, first + side, side)
        n_own = int(division.bins[peers.rank + 1] - division.bins[peers.rank])
        into = self._buffer(f"counted of {sums.dtype}", (work.n_trees, max(n_own, 1), sums.shape[3]), sums.dtype)
        parts = [
            Part(sums[int(sides[t]), t, start:stop], rank, into[t] if rank == peers.rank else None)
            for rank, (start, stop) in enumerate(itertools.pairwise(division.bins.tolist()))
            for t in np.flatnonzero(sides >= 0).tolist()
            if stop > start
        ]
        assert self.communicator is not None
        self.communicator.reduce(parts)
        self.communicator.wait(lambda: peers.check(what))
        return into

    def _siblings(self, frontier: Frontier, sides: IntArray, counted: GpuArray) -> GpuArray:
        """Keep the sums, and return those of both children (or of the roots), device array (2, n_trees, n_own_bins, C)."""
        work, step = work_of(frontier), frontier.step
        places = np.full((work.n_trees, 3), -1, np.int32)
        places[:, 1], places[:, 2] = sides, step
        if step == 0:
            self.slots = np.full((work.n_trees, work.max_nodes), -1, np.int64)
            self.slots[:, 0] = 0
        else:
            trees = np.flatnonzero(sides >= 0)
            parents = self.gpu.get(frontier.current)[trees]
            places[trees, 0] = self.slots[trees, parents]
            children = 2 * step - 1 + sides[trees]
            self.slots[trees, children] = step
            self.slots[trees, 4 * step - 1 - children] = places[trees, 0]
        shape, dtype = counted.shape, counted.dtype
        kept = self._buffer(f"kept of {dtype}", (max(work.max_nodes // 2, 1), *shape), dtype)
        both = self._buffer(f"children of {dtype}", (2, *shape), dtype)
        n_cells = shape[1] * shape[2]
        grid = (self._grid(n_cells), work.n_trees)
        self._launch(work.kernel("siblings"), grid, counted, self.gpu.put(places), kept, both, n_cells)
        return both

    # ---- through the hosts ---------------------------------------------------------------------------------------------------

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

    def judge(self, frontier: Frontier, chosen: IntArray, sums: NDArray[Any], features: tuple[int, int]) -> None:
        trees, is_root = np.flatnonzero(chosen >= 0).tolist(), frontier.step == 0
        if is_root:
            self.sums = {(t, 0): sums[:, place] for place, t in enumerate(trees)}
        else:
            parents, both = self.gpu.get(frontier.current), 4 * frontier.step - 1  # the sum of the children's numbers
            for place, t in enumerate(trees):
                node, own = int(chosen[t]), sums[:, place]
                self.sums[t, both - node] = self.sums.pop((t, int(parents[t]))) - own
                self.sums[t, node] = own
        nodes = (0,) if is_root else (2 * frontier.step - 1, 2 * frontier.step)
        histograms = np.zeros((len(nodes), work_of(frontier).n_trees, max(len(sums), 1), sums.shape[2]), sums.dtype)
        for member, node in enumerate(nodes):
            for t in trees:
                histograms[member, t, : len(sums)] = self.sums[t, node]
        self._sweep_own(frontier, self.gpu.put(histograms), features)

    def _sweep_own(self, frontier: Frontier, histograms: GpuArray, features: tuple[int, int]) -> None:
        """Sweep the roots, or both children in every tree, from histograms (nodes, n_trees, n_bins, C) of few features."""
        work = work_of(frontier)
        plan = replace(work.plan, tiles=(own_tile(work.columns.host, features),), kept=False)
        first = plan.tiles[0].first_feature
        own = Frontier(**{**vars(frontier), "work": replace(work, plan=plan, histograms=histograms.view(np.int32))})
        member = ROOT if frontier.step == 0 else LEFT_CHILD
        if first > 0:  # a launch that begins with the first feature starts from the constant classifier
            self._sweep(own, Tile(0, 0, 0, 0, 0, 1), member)
        self._sweep(own, plan.tiles[0], member)


def own_tile(columns: Columns, features: tuple[int, int]) -> Tile:
    """Return the tile of a range of features, for a sweep."""
    first, stop = np.searchsorted(columns.features, features).tolist()
    first_bin, end = columns.offsets[list(features)].tolist()
    return Tile(0, 0, first, stop - first, first_bin, max(end - first_bin, 1))


def replace_current(frontier: Frontier, current: GpuArray) -> Frontier:
    """Return the frontier with other nodes that were popped last."""
    return Frontier(**{**vars(frontier), "current": current})

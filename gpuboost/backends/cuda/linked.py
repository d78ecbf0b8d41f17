"""Growths of several workers whose devices are linked: histograms are added up between the devices, and stay there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.cuda.divided import CudaDivided, sides_of
from gpuboost.backends.cuda.gpu import Communicator, GpuArray, Part
from gpuboost.backends.cuda.growth_work import work_of
from gpuboost.backends.cuda.plan import MEMORY_SHARE
from gpuboost.backends.divided import AT_ONCE, Division
from gpuboost.backends.frontier import Frontier
from gpuboost.errors import DeviceUnavailableError
from gpuboost.peers.base import Peers


class DeviceCount(NamedTuple):
    """Histograms of a node of every tree over the rows that are here.

    Attributes
    ----------
    sides : ndarray of int64, shape (n_trees,)
        See `sides_of`.
    sums : device array of int32 or int64, shape (n_slots, n_trees, n_bins, C)
        Those of tree t are ``sums[sides[t], t]``.
    """

    sides: IntArray
    sums: GpuArray


class CudaLinked(CudaDivided):
    """See `gpuboost.backends.divided.DividedGrowth`."""

    communicator: Communicator | None = None
    """What links the device to those of the other workers."""
    stays: bool = False
    """Whether the sums of this growth stay on the devices."""
    room: dict[tuple[int | bool, ...], bool]
    """Whether growths of some shape have room on all devices to stay there."""
    slots: IntArray
    """Which slot of the buffer of sums that are kept each node of each tree has, shape (n_trees, max_nodes)."""
    n_counted: int = 0
    """Counts since the last `share`."""

    def link(self, peers: Peers) -> None:
        name, kind = self.gpu.name_for_peers()
        told = [json.loads(one) for one in peers.gather(json.dumps([name, kind]).encode(), "devices")]
        names = [other for other, _ in told]
        for rank, other in enumerate(names):
            if (first := names.index(other)) != rank:
                raise DeviceUnavailableError(
                    f"workers {first} and {rank} use the same CUDA device ({self.gpu.label} there). Give every worker one "
                    "of its own: dask-cuda's LocalCUDACluster does, or CUDA_VISIBLE_DEVICES. One process uses all of a device"
                )
        if not kind or any(other != kind for _, other in told):
            return  # through the hosts
        group = peers.gather(self.gpu.new_group() if peers.rank == 0 else b"", "name of the devices' meeting")[0]
        self.room = {}
        self.communicator = self.gpu.join(group, peers.rank, peers.size, lambda: peers.check("devices' meeting"))

    def unlink(self) -> None:
        communicator, self.communicator = self.communicator, None
        if communicator is not None:
            communicator.close()

    def prepare_shares(self, frontier: Frontier, division: Division, peers: Peers) -> None:
        self.stays = self.communicator is not None and self._has_room(frontier, division, peers)
        work, self.n_counted = work_of(frontier), 0
        self.slots = np.full((work.n_trees, work.max_nodes), -1, np.int64)

    def _has_room(self, frontier: Frontier, division: Division, peers: Peers) -> bool:
        """Whether all workers have room for the sums of all nodes that may still be divided, and count all features at once."""
        work, n_own, n_bins = work_of(frontier), int(np.diff(division.bins).max()), int(division.bins[-1])
        key = (work.n_trees, work.max_nodes, frontier.stats.n_channels, work.plan.wide, n_own)
        if key not in self.room:
            n_cells = (work.max_nodes // 2 + 3 + AT_ONCE) * n_own + 2 * AT_ONCE * n_bins
            n_bytes = n_cells * work.n_trees * frontier.stats.n_channels * work.sums.dtype.itemsize
            has_none = len(work.plan.tiles) > 1 or n_bytes > MEMORY_SHARE * self.gpu.free_bytes()
            self.room[key] = not peers.max(np.array([int(has_none)]), "whether sums stay on the devices")[0]
        return self.room[key]

    def count(self, frontier: Frontier, chosen: IntArray) -> Any:
        if not self.stays:
            return super().count(frontier, chosen)
        work, sides = work_of(frontier), sides_of(chosen)
        shape = (2, *work.histograms.shape[1:])
        into = self._buffer(f"counted {self.n_counted}", shape, np.int32)
        self.n_counted += 1
        own = Frontier(**{**vars(frontier), "work": work.with_histograms(into)})
        self._count_sides(own, work.plan.tiles[0], sides)
        return DeviceCount(sides, work_of(own).sums)

    def share(self, counted: Sequence[Any], division: Division, peers: Peers, what: str) -> list[Any]:
        if not self.stays:
            return super().share(counted, division, peers, what)  # type: ignore[misc, no-any-return]
        first, stop = division.bins_of(peers.rank)
        shares, parts = [], []
        for number, (sides, sums) in enumerate(counted):
            _, n_trees, _, n_channels = sums.shape
            own = self._buffer(f"share {number} of {sums.dtype}", (n_trees, max(stop - first, 1), n_channels), sums.dtype)
            shares.append(own)
            for t in np.flatnonzero(sides >= 0).tolist():
                for rank in range(peers.size):
                    bins = slice(*division.bins_of(rank))
                    if bins.stop > bins.start:
                        parts.append(Part(sums[int(sides[t]), t, bins], rank, own[t] if rank == peers.rank else None))
        assert self.communicator is not None
        self.communicator.reduce(parts)
        self.communicator.wait(lambda: peers.check(what))
        self.n_counted = 0
        return shares

    def judge(self, frontier: Frontier, parents: IntArray, chosen: IntArray, sums: Any, features: tuple[int, int]) -> None:
        if not self.stays:
            super().judge(frontier, parents, chosen, sums, features)
            return
        work, trees = work_of(frontier), np.flatnonzero(chosen >= 0)
        nodes, above = chosen[trees], parents[trees]
        places = np.full((work.n_trees, 3), -1, np.int32)
        places[:, 1] = sides_of(chosen)
        places[trees, 2] = self.slots[trees, nodes] = (nodes + 1) // 2  # of children one gets a new slot, one the parent's
        has_parent = above >= 0
        places[trees[has_parent], 0] = self.slots[trees, above][has_parent]
        other = nodes + 1 - 2 * sides_of(nodes)
        self.slots[trees[has_parent], other[has_parent]] = places[trees[has_parent], 0]
        shape, dtype = sums.shape, sums.dtype
        kept = self._buffer(f"kept of {dtype}", (work.max_nodes // 2 + 1, *shape), dtype)
        both = self._buffer(f"children of {dtype}", (2, *shape), dtype)
        n_cells = shape[1] * shape[2]
        grid = (self._grid(n_cells), work.n_trees)
        self._launch(work.kernel("siblings"), grid, sums, self.gpu.put(places), kept, both, n_cells)
        current = self.gpu.put(np.where(chosen >= 0, parents, -1))
        self._sweep_own(frontier, current, both if has_parent.any() else both[:1], features)

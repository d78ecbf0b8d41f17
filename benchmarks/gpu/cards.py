"""Named cards, the shapes that plans are made for, and everything that the model of a round assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpuboost.backends.cuda.gpu import Limits
from gpuboost.backends.cuda.plan import Columns, plan_growth, wave_efficiency

FREE_BYTES = 8 << 30
"""Of device memory that a plan may count on."""


@dataclass(frozen=True)
class Card:
    """A card, by its vendor's figures.

    Attributes
    ----------
    architecture : int
        As in ``sm_90``.
    limits : Limits
    clock : float
        Hertz that it is taken to hold.
    memory : float
        Bytes per second of its memory.
    """

    architecture: int
    limits: Limits
    clock: float
    memory: float


def consumer(n_multiprocessors: int) -> Limits:
    return Limits(n_multiprocessors, 99 * 1024, 100 * 1024, threads_per_multiprocessor=1536)


CARDS = {
    "T4": Card(75, Limits(40, 64 * 1024, 64 * 1024, threads_per_multiprocessor=1024), 1.3e9, 0.32e12),
    "A100": Card(80, Limits(108, 163 * 1024, 164 * 1024), 1.41e9, 2.04e12),
    "RTX 3090": Card(86, consumer(82), 1.7e9, 0.936e12),
    "RTX 4090": Card(89, consumer(128), 2.5e9, 1.008e12),
    "H100": Card(90, Limits(132, 227 * 1024, 228 * 1024), 1.7e9, 3.35e12),
    "B200": Card(100, Limits(148, 227 * 1024, 228 * 1024), 1.9e9, 8.0e12),
    "RTX 5090": Card(120, consumer(170), 2.4e9, 1.79e12),
}
"""One card of every architecture that the kernels are built for."""

SHAPES = {
    "MNIST": (60_000, [256] * 717, 10, 1),
    "Covertype": (464_809, [256] * 10 + [3] * 44, 7, 1),
    "letter": (16_000, [17] * 16, 26, 1),
    "100 classes": (100_000, [256] * 64, 100, 1),
    "ABC-MART on poker hands": (25_010, [5, 14] * 5, 3, 28),
    "4,000 features": (20_000, [256] * 4_000, 10, 1),
}
"""Rows, bins of the features, channels, and trees that grow side by side."""


def waves(shape: tuple[int, list[int], int, int], limits: Limits, share: float = 1.0) -> list[float]:
    """Return how much of a device each launch of histograms fills, for nodes with that share of the rows."""
    n_rows, n_bins, n_channels, n_trees = shape
    columns = Columns.of(np.array(n_bins), np.ones(len(n_bins), bool))
    plan = plan_growth(columns, max(n_bins), n_trees, n_channels, 9, FREE_BYTES, limits)
    grids = [plan.histogram_grid(tile, int(share * n_rows), n_trees, n_channels) for tile in plan.tiles]
    return [wave_efficiency(math.prod(grid), plan.blocks_at_once) for grid in grids]


@dataclass(frozen=True)
class Assumption:
    """A number that nobody has measured yet, and why it is what it is."""

    value: float
    unit: str
    why: str


ASSUMED = {
    "issue": Assumption(0.6, "of 4 warp instructions a cycle", "dependent loads leave issue slots empty"),
    "shared atomics": Assumption(0.5, "warp instructions a cycle and multiprocessor", "no conflicts: a lane owns a bank"),
    "memory": Assumption(0.8, "of the memory's rate", "what a copy reaches"),
    "second-level cache": Assumption(32, "bytes a cycle and multiprocessor", "half a port's width"),
    "start": Assumption(2.0e-6, "s for every launch, zeroing and copy", "it begins, and its last block ends"),
    "start in a graph": Assumption(1.2e-6, "s for every launch that a graph replays", "the host has no part in it"),
    "latency": Assumption(0.5e-6, "s for each load that waits for another", "a load that misses the caches"),
    "graph": Assumption(15.0e-6, "s of the host for a growth that is replayed as a graph", "one call"),
    "replayed": Assumption(4.5e-6, "s of the host for a launch that is replayed without a graph", "1.1 of ours, and CuPy's"),
    "checked": Assumption(10.0e-6, "s of the host for any other launch or zeroing", "5 to 6.6 of ours *, and CuPy's"),
    "put": Assumption(20.0e-6, "s of the host for a copy to the device", "an allocation, and a copy from pageable memory"),
    "wait": Assumption(15.0e-6, "s from the end of the work to the host's next line", "a copy to the host, and synchronising"),
    "round": Assumption(540.0e-6, "s of the host in a round, besides", "640 * in AdaBoost.MH's, less launches and tree"),
    "grown": Assumption(14.0e-6, "s of the host for each tree that grows beside the first", "1170 * in ABC-MART's round"),
    "made": Assumption(40.0e-6, "s of the host for each tree of the model", "27 to 46 *: a table of nodes becomes a tree"),
}
"""The only numbers of the model that are neither counted nor a vendor's. Where there is a *, microseconds of our Python were
measured on a core of an AMD EPYC, where a thousand turns of an empty loop take 12, with a device that does nothing."""

DEPENDENT_LOADS = {
    "histogram": 6,
    "sweep": 16,
    "partition_rows": 5,
    "partition_nodes": 6,
    "pop_best_leaf": 3,
    "choose_shift": 3,
}
"""Loads of a block that wait for one another, from node to row to code; of kernels that are not named, two."""

"""When and how the CPU backend prunes exactly; the loops are in `gpuboost.backends.cpu.pruning.bounds`.

The trees are the same with and without, so it is the clock that decides: both ways are timed, the faster one is taken, and the
other is tried again from time to time. Pruning pays where few rows hold nearly all of the mass, which they come to do as
boosting goes on, and where histograms have more bins than most nodes have rows.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.pruning.pruned_search import PrunedSearch
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.criteria import CRITERIA
from gpuboost.backends.frontier import START, STOP, Frontier

IntArray = NDArray[np.int64]

FIRST_WAIT, LAST_WAIT = 8, 64
"""After this many growths the slower way is tried again; while it stays the slower one, after more and more."""


@dataclass
class PruningTuner:
    """Decides whether to prune by the times and the counts of earlier growths of the same shape. The trees do not depend on it.

    Attributes
    ----------
    halves, levels : float
        How often a tree counts a root's rows if the larger siblings follow by subtraction, and if they do not.
    survivors : float
        The share of the light rows' additions that nodes need, over the share of the mass that these rows have.
    seconds : tuple of two deques of float
        The last times of growths without and with pruning.
    prunes : bool
        The faster way.
    wait, patience : int
        Growths until the slower way is tried again, and from then on.
    """

    halves: float
    levels: float
    survivors: float = 16.0
    seconds: tuple[deque[float], deque[float]] = field(default_factory=lambda: (deque(maxlen=2), deque(maxlen=2)))
    prunes: bool = True
    wait: int = FIRST_WAIT
    patience: int = FIRST_WAIT

    def choose(self) -> bool:
        """Return whether to prune now."""
        plain, pruned = self.seconds
        if min(len(plain), len(pruned)) < 2:  # the first of each may have waited for the compiler
            return len(pruned) <= len(plain)
        prunes = min(pruned) <= min(plain)
        if prunes != self.prunes:
            self.prunes, self.wait, self.patience = prunes, FIRST_WAIT, FIRST_WAIT
        self.wait -= 1
        if self.wait > 0:
            return prunes
        self.wait = self.patience = min(2 * self.patience, LAST_WAIT)
        return not prunes

    def learn(self, nodes: IntArray, share_needed: float, share_of_mass: float) -> None:
        """Update the estimates from a pruned growth: its node tables, and the share of the light rows' additions it needed."""
        n_rows = nodes[:, :, STOP] - nodes[:, :, START]
        n_looked_at = n_rows[:, :1].sum() + n_rows[:, 1:-2].sum()
        n_smaller = np.minimum(n_rows[:, 1:-2:2], n_rows[:, 2:-2:2]).sum()
        whole = max(int(n_rows[:, 0].sum()), 1)
        self.levels, self.halves = float(n_looked_at / whole), float(1 + n_smaller / whole)
        if share_of_mass > 0:
            now = min(max(share_needed / share_of_mass, 1.0), 1000.0)
            self.survivors = math.sqrt(self.survivors * now)


class Pruning:
    """Chooses between the full and the pruned search, growth by growth.

    Attributes
    ----------
    always : bool
        Whether to prune whatever it costs.
    """

    def __init__(self, resources: CpuResources) -> None:
        self.resources = resources
        self.always = False
        self.tuners: dict[Any, PruningTuner] = {}

    def begin(self, frontier: Frontier, max_leaves: int) -> None:
        """Decide whether to prune a growth, and if so, give it a `PrunedSearch`."""
        stats, work, data = frontier.stats, frontier.work, frontier.data
        if not CRITERIA[stats.criterion].has_bound or stats.min_count > 0 or len(work.columns.usable) == 0:
            return
        since = perf_counter()
        kind = (data.blocks.shape, stats.criterion, stats.one_hot, stats.n_classes, max_leaves, len(frontier.nodes))
        if kind not in self.tuners:
            levels = float((max_leaves - 1).bit_length())
            self.tuners[kind] = PruningTuner((1 + levels) / 2, levels)
        tuner = self.tuners[kind]
        work.tuning = tuner, since
        if self.always or tuner.choose():
            work.search = PrunedSearch(self.resources, frontier, (tuner.halves, tuner.levels, tuner.survivors))

    def end(self, frontier: Frontier) -> None:
        """Learn from a growth."""
        if frontier.work.tuning is None:
            return
        (tuner, since), search = frontier.work.tuning, frontier.work.search
        pruned = isinstance(search, PrunedSearch)
        tuner.seconds[pruned].append(perf_counter() - since)
        if pruned:
            tuner.learn(frontier.nodes, search.share_needed(frontier), search.light_share)

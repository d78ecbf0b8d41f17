"""What is learnt from the times of growths: whether pruning pays, and how."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.frontier import START, STOP

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

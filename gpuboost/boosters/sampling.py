"""Growing a round's trees from a part of the rows or features (sections 3.3 and 3.5 of the QuickBoost thesis).

Only the structure of a tree comes from the part. Coefficients, leaf values, edges and the loss are made of all rows, so that
what the algorithm promises of them still holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats

Numbers = NDArray[np.intp]
ROWS, FEATURES, HOLD_OUT = 0, 1, 2
"""What is drawn: each has random numbers of its own. A hold-out is drawn once, as in round 0."""


@dataclass(frozen=True)
class Sampling:
    """What part of the rows and features a round's trees are grown from. A share of 1 takes all.

    Attributes
    ----------
    weight_trim : float
        The heaviest rows are taken that hold at least this share of the boosting weights, ties by row number (weight trimming,
        Friedman, Hastie and Tibshirani 2000). With ``subsample``, of the weights of the rows drawn. Every tree of a round
        takes those that are the heaviest in its own statistics (`gpuboost.backends.base.Backend.row_weights`).
    max_features : float
        The share of the features that can be cut, at least one, drawn anew every round, for all of its trees (LazyBoost,
        Escudero, Marquez and Rigau 2000).
    subsample : float
        The share of the rows, at least one, drawn anew every round, for all of its trees, without regard to their weights
        (stochastic boosting, Friedman 2002).
    pruning : bool
        Whether a backend may leave out additions that exact bounds show to be unnecessary (QuickBoost). The trees are the same.
    seed : int
        What is drawn depends on it and on the number of the round only.
    """

    weight_trim: float = 1.0
    max_features: float = 1.0
    subsample: float = 1.0
    pruning: bool = False
    seed: int = 0

    @property
    def takes_all(self) -> bool:
        """Whether every tree is grown from everything."""
        return min(self.weight_trim, self.max_features, self.subsample) >= 1.0

    def draw(self, t: int, backend: Backend, data: Device, stats: Stats) -> GrowthScope:
        """Return what the trees of round t, counted from 0, are grown from; `WHOLE` if that is all."""
        lists, features = self.rows(t, backend, stats), self.features(t, backend, data)
        if not lists and features is None and not self.pruning:
            return WHOLE
        rows = backend.put(np.concatenate(lists).astype(np.int32)) if lists else None
        bounds = np.cumsum([0, *map(len, lists)]) if len(lists) > 1 else None
        return GrowthScope(rows, bounds, features, self.pruning)

    def rows(self, t: int, backend: Backend, stats: Stats) -> list[Numbers]:
        """Return the numbers of the rows, ascending, of all trees or of each; none if every tree has all rows."""
        n_rows = stats.quantised.shape[1]
        drawn = np.arange(n_rows)
        if self.subsample < 1.0:
            drawn = largest(self.random(t, ROWS, n_rows), part_of(n_rows, self.subsample))
        lists = [drawn]
        if self.weight_trim < 1.0:
            lists = [drawn[heaviest(sum_abs[drawn], self.weight_trim)] for sum_abs in backend.row_weights(stats)]
        return [] if all(len(rows) == n_rows for rows in lists) else lists

    def features(self, t: int, backend: Backend, data: Device) -> NDArray[np.bool_] | None:
        """Return which features may be cut; None for all."""
        if self.max_features >= 1.0:
            return None
        usable = backend.usable(data)
        numbers = np.flatnonzero(usable)
        kept = part_of(len(numbers), self.max_features)
        if kept == len(numbers):
            return None
        features = np.zeros(len(usable), bool)
        features[numbers[largest(self.random(t, FEATURES, len(numbers)), kept)]] = True
        return features

    def random(self, t: int, what: int, n: int) -> NDArray[np.uint64]:
        """Return n random integers: the raw output of a generator that NumPy does not change from release to release."""
        raw: Any = np.random.PCG64([self.seed, t, what]).random_raw(n)
        numbers: NDArray[np.uint64] = raw
        return numbers


NO_SAMPLING = Sampling()
"""Every tree is grown from everything."""


def part_of(n: int, share: float) -> int:
    """Return ``share`` of n things, rounded, at least 1."""
    return max(1, math.floor(share * n + 0.5))


def heaviest(sum_abs: NDArray[np.int64], share: float) -> Numbers:
    """Return the fewest rows that hold at least ``share`` of the sum of ``sum_abs``, ascending; ties go to the lowest rows."""
    falling = np.sort(sum_abs)[::-1]
    needed = math.ceil(share * int(sum_abs.sum()))
    return largest(sum_abs, int(np.searchsorted(np.cumsum(falling), needed)) + 1)


def largest(values: NDArray[Any], n: int) -> Numbers:
    """Return where the n largest of ``values`` are, ascending; ties go to the lowest places."""
    threshold = np.partition(values, len(values) - n)[len(values) - n]
    chosen = values > threshold
    equal = np.flatnonzero(values == threshold)
    chosen[equal[: n - np.count_nonzero(chosen)]] = True
    return np.flatnonzero(chosen)

"""Growing a round's trees from a part of the rows or features (sections 3.3 and 3.5 of the QuickBoost thesis).

Only the structure of a tree comes from the part. Coefficients, leaf values, edges and the loss are made of all rows, so that
what the algorithm promises of them still holds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats
from gpuboost.boosters.base import Problem
from gpuboost.peers.base import agree
from gpuboost.peers.rows import RowOrder

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

    def draw(self, t: int, problem: Problem, stats: Stats) -> GrowthScope:
        """Return what the trees of round t, counted from 0, are grown from; `WHOLE` if that is all."""
        lists, features = self.rows(t, problem, stats), self.features(t, problem.backend, problem.data)
        if not lists and features is None and not self.pruning:
            return WHOLE
        rows = problem.backend.put(np.concatenate(lists).astype(np.int32)) if lists else None
        bounds = np.cumsum([0, *map(len, lists)]) if len(lists) > 1 else None
        return GrowthScope(rows, bounds, features, self.pruning)

    def rows(self, t: int, problem: Problem, stats: Stats) -> list[Numbers]:
        """Return the numbers of the rows, ascending, of all trees or of each; none if every tree has all rows."""
        if self.subsample >= 1.0 and self.weight_trim >= 1.0:
            return []
        order, backend = problem.row_order, problem.backend
        drawn = np.arange(order.n_here)
        if self.subsample < 1.0:
            n_drawn = np.array([part_of(order.n_rows, self.subsample)])
            drawn = np.flatnonzero(order.largest(order.random([self.seed, t, ROWS]), n_drawn))
        lists = [drawn]
        if self.weight_trim < 1.0:
            among, weights = order.subset(drawn), backend.row_weights(stats)[:, drawn]
            sums = backend.peers.sum(weights.sum(axis=1), "weights of the rows drawn")
            needed = [math.ceil(self.weight_trim * total) for total in sums.tolist()]
            agree(backend.peers, "weight that the rows must have", sums)
            lists = [drawn[among.heaviest(own, least)] for own, least in zip(weights, needed, strict=True)]
        n_left_out = backend.peers.sum(np.array([order.n_here - len(rows) for rows in lists]), "rows left out")
        agree(backend.peers, "rows left out", n_left_out)
        return lists if n_left_out.any() else []

    def features(self, t: int, backend: Backend, data: Device) -> NDArray[np.bool_] | None:
        """Return which features may be cut; None for all."""
        if self.max_features >= 1.0:
            return None
        usable = backend.usable(data)
        numbers = np.flatnonzero(usable)
        kept = part_of(len(numbers), self.max_features)
        if kept == len(numbers):
            return None
        order, features = RowOrder.alone(len(numbers)), np.zeros(len(usable), bool)
        features[numbers[order.largest(order.random([self.seed, t, FEATURES]), np.array([kept]))]] = True
        return features


NO_SAMPLING = Sampling()
"""Every tree is grown from everything."""


def part_of(n: int, share: float) -> int:
    """Return ``share`` of n things, rounded, at least 1."""
    return max(1, math.floor(share * n + 0.5))

"""The search for a localized similarity (section 5.4 of Appel's thesis): which training points to compare the rows with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.points import NONE
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.layered_tree import SignTree, remaining_loss
from gpuboost.similarities.ensemble import Similarity, TrainingPoints

N_RADII = 127
"""Balls are tried whose radii are the distances of so many points, spread evenly over all."""


@dataclass(frozen=True)
class LoadedPoints:
    """The rows of a set, for comparisons with some of them.

    Attributes
    ----------
    device : device rows
        From `Backend.load_points`.
    points : TrainingPoints
        The same on the host. Rows with equal levels follow one another, and all stand in an order that is theirs alone,
        whatever that of the caller: by it ties are decided.
    """

    device: Device
    points: TrainingPoints

    @property
    def n_rows(self) -> int:
        return len(self.points)

    @cached_property
    def first_rows(self) -> IntArray:
        """The first row of each distinct point, shape (n_distinct,)."""
        levels = self.points.levels
        is_new = np.ones(len(levels), bool)
        is_new[1:] = (levels[1:] != levels[:-1]).any(axis=1)
        return np.flatnonzero(is_new)

    @cached_property
    def spread(self) -> IntArray:
        """`N_RADII` of the distinct points, or all, as rows of levels in int64."""
        n = len(self.first_rows)
        chosen = np.arange(N_RADII) * n // N_RADII if n > N_RADII else np.arange(n)
        return self.points.levels[self.first_rows[chosen]].astype(np.int64)


@dataclass(frozen=True)
class SimilaritySearch:
    """The procedure of section 5.4 for a given anchor, the point x_i.

    The candidates are, in this order: +1 everywhere (step 0); the two-point similarities of the anchor and the nearest points
    of the other group (steps 4 to 6), after each of which the points like it are left out; +1 in balls around the anchor, and
    last on the anchor alone (steps 2 and 3). That of the lowest loss is taken, the first of equals: so of two that are as good
    on the rows that of a larger reach.

    Attributes
    ----------
    balls : bool
        Whether to try balls beside the anchor alone.
    max_candidates : int
        Two-point similarities that are tried at most.
    """

    balls: bool
    max_candidates: int

    def __call__(self, backend: Backend, data: LoadedPoints, stats: Stats, sides: Device, anchor: int) -> SignTree:
        """Find a similarity.

        Parameters
        ----------
        backend : Backend
        data : LoadedPoints
        stats : Stats
            Of the weights ``w_ik y_ik``.
        sides : device array of int8, shape (n_rows, 1)
            The group of each row, -1 or +1 (eq. 5.8).
        anchor : int
            A row.
        """
        levels, total = data.points.levels, stats.sum
        side = int(backend.get(sides[anchor : anchor + 1])[0, 0])
        distances = backend.squared_distances(data.device, levels[anchor])
        others, nearest = backend.opposite_rows(distances, sides, side)

        radii = self._radii(data, anchor, nearest)
        inside = np.cumsum(backend.leaf_sums(stats, backend.ring_index(distances, radii), len(radii) + 1)[0], axis=0)
        candidates: list[tuple[list[int], int]] = [([], 0)]
        edges = [total[None]]
        for _ in range(self.max_candidates):
            if nearest == NONE:
                break
            to_candidate = backend.squared_distances(data.device, levels[nearest])
            nearer, _ = backend.leaf_sums(stats, backend.nearer_index(distances, to_candidate), 2)
            candidates.append(([anchor, nearest], 0))
            edges.append(2 * nearer[1:] - total)
            nearest = backend.drop_similar(others, distances, to_candidate, apart(data, anchor, nearest))
        candidates += [([anchor], radius) for radius in reversed(radii.tolist())]
        edges.append(2 * inside[-2::-1] - total)

        edge = np.concatenate(edges)
        right, wrong = (stats.sum_abs + edge) // 2, (stats.sum_abs - edge) // 2
        best = int(remaining_loss(right, wrong).argmin())
        rows, radius = candidates[best]
        found: Any = Similarity(data.points.take(rows), radius, np.array([[-1.0], [1.0]]))
        return SignTree(found, backend.apply_similarity(found, data.device), right=right[best], wrong=wrong[best])

    def _radii(self, data: LoadedPoints, anchor: int, nearest: int) -> IntArray:
        """Return the squared radii to try, ascending: 0, and with balls also just less than the nearest of the other group."""
        radii = [0]
        if self.balls:
            difference = data.spread - data.points.levels[anchor].astype(np.int64)
            radii += (difference * difference).sum(axis=1).tolist()
            radii += [apart(data, anchor, nearest) - 1] if nearest != NONE else []
        return np.unique(np.array(radii, np.int64))


def apart(data: LoadedPoints, one: int, other: int) -> int:
    """Return the squared distance of two rows."""
    first, second = data.points.levels[[one, other]].astype(np.int64)
    return int(((first - second) ** 2).sum())


def best_isolated_row(backend: Backend, data: LoadedPoints, stats: Stats) -> int:
    """Return the first row of the point that is best told from all others: the optimal isolating similarity of step 2.

    The quantised weights come to the host for it. Where any similarity at all lowers the loss, this one or the constant
    classifier does (eq. 5.9): only points that carry the same weights of different labels add up to nothing.
    """
    quantised = backend.get(stats.quantised)[0, :, : stats.n_classes].astype(np.int64)
    edge = 2 * np.add.reduceat(quantised, data.first_rows, axis=0) - stats.sum
    loss = remaining_loss((stats.sum_abs + edge) // 2, (stats.sum_abs - edge) // 2)
    return int(data.first_rows[loss.argmin()])

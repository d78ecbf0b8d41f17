"""The primitives of classifiers that compare rows with training points; a part of the contract in `gpuboost.backends.base`.

All numbers that decide are integers. A row has levels, uint8, whose squared distances stay below ``2**29``
(`gpuboost.similarities.scale.check_size`): int32.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.statistics import Device, Stats
from gpuboost.similarities.ensemble import Similarities, Similarity

NONE = -1
"""In place of the number of a row: there is none."""


class PointPrimitives(ABC):
    """Distances of rows to points, and what is made of them."""

    @abstractmethod
    def load_points(self, levels: NDArray[np.uint8]) -> Device:
        """Return rows of levels, shape (n_rows, n_features), on the device. It says its ``n_rows``."""

    @abstractmethod
    def squared_distances(self, rows: Device, point: NDArray[np.uint8]) -> Device:
        """Return ``sum_f (x_if - point_f)**2`` of all rows, int32 (n_rows,). Exact."""

    @abstractmethod
    def ring_index(self, distances: Device, radii: IntArray) -> Device:
        """Return how many of the ascending ``radii`` lie below the distance of each row, int32 (n_rows,). Exact.

        So ring r has the distances above ``radii[r - 1]``, up to ``radii[r]``; radii are below ``2**31``.
        """

    @abstractmethod
    def nearer_index(self, distances: Device, limits: Device | int) -> Device:
        """Return 1 where ``distances[i]`` is at most ``limits[i]``, or at most the number ``limits``; int32 (n_rows,)."""

    @abstractmethod
    def opposite_rows(self, distances: Device, sides: Device, side: int) -> tuple[Device, int]:
        """Return which rows are of another side than ``side``, and not at a distance of 0; and the nearest of them.

        ``sides`` is int8 (n_rows, 1), -1 or +1. The rows are returned as uint8 (n_rows,), which `drop_similar` changes; of
        equally near ones the lowest is the nearest, `NONE` if there is none. Exact.
        """

    @abstractmethod
    def drop_similar(self, rows: Device, distances: Device, to_candidate: Device, apart: int) -> int:
        """Take out the rows that are similar to a candidate, in place. Return the nearest of those that are left.

        ``rows`` and ``distances`` are those of `opposite_rows`; ``apart`` is the candidate's own distance. With A for
        ``distances[i]``, B for ``to_candidate[i]`` and D for ``apart`` a row is taken out where

            10 D (A - B) >= 4 D**2 + (2 A + 2 B - D)**2

        in int64, which is ``f_ij(x) <= f_ij(x_j) / 2`` (section 5.4, step 6): with d half the way from x_j to x_i and m its
        middle, ``f_ij(x) = <d, x - m> / (4 |d|**4 + |x - m|**4)``, ``|d|**2 = D / 4``, ``<d, x - m> = (B - A) / 4``,
        ``|x - m|**2 = (2 A + 2 B - D) / 4``, and ``f_ij(x_j) = -4 / (5 D)``. So the candidate itself is always taken out.
        """

    @abstractmethod
    def class_products(self, stats: Stats, frequency_weight: Device) -> IntArray:
        """Return ``sum_i frequency_weight_i u_ik u_il``, shape (n_classes, n_classes), u being a row's units of weight 1.

        ``u_ik = quantised[i, k] / frequency_weight_i``, an integer. In int64. Exact: with narrow statistics
        ``sum_i abs(quantised[i, k])`` and ``abs(u_il)`` are below ``2**30``, so no sum passes ``2**60``.
        """

    def apply_similarity(self, similarity: Similarity, rows: Device) -> Device:
        """Return 1 where the classifier says +1, else 0; int32 (n_rows,)."""
        first, *second = [self.squared_distances(rows, point) for point in similarity.points.levels] or [None]
        if first is None:
            return self.put(np.ones(rows.n_rows, np.int32))
        return self.nearer_index(first, second[0] if second else similarity.radius)

    def add_similarities(self, ensemble: Similarities, rows: Device, scores: Device, first: int, stop: int) -> None:
        """Add ``f_t(x_i) a_t`` of the rounds ``first .. stop - 1`` to ``scores[i]`` in place, in order, in float64."""
        for t in range(first, stop):
            similarity = ensemble.similarity(t)
            self.add_scores(scores, self.apply_similarity(similarity, rows), similarity.values)

    # ---- what it needs of the rest of the contract ---------------------------------------------------------------------------

    @abstractmethod
    def put(self, array: NDArray[np.generic]) -> Device: ...

    @abstractmethod
    def add_scores(self, scores: Device, leaf_index: Device, values: Floats) -> None: ...


class UndividedPoints(PointPrimitives):
    """What a backend of one of several workers says: the nearest of all rows is not looked for across workers."""

    def load_points(self, levels: NDArray[np.uint8]) -> Device:
        raise TypeError("rows that are divided among workers are not compared with training points")

    def _without_points(self, *arguments: Any) -> Any:
        raise AssertionError("no points have been loaded")

    squared_distances: Any = _without_points
    ring_index: Any = _without_points
    nearer_index: Any = _without_points
    opposite_rows: Any = _without_points
    drop_similar: Any = _without_points
    class_products: Any = _without_points

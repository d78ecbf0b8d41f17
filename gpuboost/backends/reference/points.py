"""Distances to training points in NumPy, see `gpuboost.backends.points`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.points import NONE, PointPrimitives
from gpuboost.backends.statistics import Stats


@dataclass(frozen=True)
class NumpyPoints:
    """Rows of levels, uint8 (n_rows, n_features)."""

    levels: NDArray[np.uint8]

    @property
    def n_rows(self) -> int:
        return len(self.levels)


class NumpyPointPrimitives(PointPrimitives):
    """The reference: the shortest correct code."""

    def load_points(self, levels: NDArray[np.uint8]) -> NumpyPoints:
        return NumpyPoints(levels)

    def squared_distances(self, rows: NumpyPoints, point: NDArray[np.uint8]) -> NDArray[np.int32]:
        difference = rows.levels.astype(np.int32) - point.astype(np.int32)
        distances: NDArray[np.int32] = (difference * difference).sum(axis=1, dtype=np.int32)
        return distances

    def ring_index(self, distances: NDArray[np.int32], radii: IntArray) -> NDArray[np.int32]:
        return np.searchsorted(radii, distances, side="left").astype(np.int32)

    def nearer_index(self, distances: NDArray[np.int32], limits: NDArray[np.int32] | int) -> NDArray[np.int32]:
        return (distances <= limits).astype(np.int32)

    def opposite_rows(self, distances: NDArray[np.int32], sides: NDArray[np.int8], side: int) -> tuple[NDArray[np.uint8], int]:
        rows = ((sides[:, 0] != side) & (distances > 0)).astype(np.uint8)
        return rows, nearest(rows, distances)

    def drop_similar(
        self, rows: NDArray[np.uint8], distances: NDArray[np.int32], to_candidate: NDArray[np.int32], apart: int
    ) -> int:
        a, b = distances.astype(np.int64), to_candidate.astype(np.int64)
        fourfold = 2 * a + 2 * b - apart
        rows[10 * apart * (a - b) >= 4 * apart * apart + fourfold * fourfold] = 0
        return nearest(rows, distances)

    def class_products(self, stats: Stats, frequency_weight: NDArray[np.int32]) -> IntArray:
        quantised = stats.quantised[0, :, : stats.n_classes].astype(np.int64)
        products: IntArray = quantised.T @ (quantised // frequency_weight[:, None])
        return products


def nearest(rows: NDArray[np.uint8], distances: NDArray[np.int32]) -> int:
    """Return the nearest of some rows, the lowest of equals."""
    (numbers,) = rows.nonzero()
    return int(numbers[distances[numbers].argmin()]) if len(numbers) else NONE

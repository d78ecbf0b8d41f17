"""Distances to training points on a team of threads, see `gpuboost.backends.points`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.cpu.loops import points as loops
from gpuboost.backends.cpu.loops.points import SimilarityArrays
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.points import NONE, PointPrimitives
from gpuboost.backends.statistics import Stats
from gpuboost.similarities.ensemble import Similarities


@dataclass(frozen=True)
class CpuPoints:
    """Rows of levels, uint8 (n_rows, n_features)."""

    levels: NDArray[np.uint8]

    @property
    def n_rows(self) -> int:
        return len(self.levels)


class CpuPointPrimitives(CpuResources, PointPrimitives):
    """The primitives as compiled loops over rows."""

    def load_points(self, levels: NDArray[np.uint8]) -> CpuPoints:
        return CpuPoints(np.ascontiguousarray(levels))

    def squared_distances(self, rows: CpuPoints, point: NDArray[np.uint8]) -> NDArray[np.int32]:
        out = np.empty(rows.n_rows, np.int32)
        self.team.map(loops.squared_distances, len(out), 4 * rows.levels.size, rows.levels, point[None], out)
        return out

    def ring_index(self, distances: NDArray[np.int32], radii: IntArray) -> NDArray[np.int32]:
        out = np.empty(len(distances), np.int32)
        self.team.map(loops.ring_index, len(out), 32 * len(out), distances, radii, out)
        return out

    def nearer_index(self, distances: NDArray[np.int32], limits: NDArray[np.int32] | int) -> NDArray[np.int32]:
        out = np.empty(len(distances), np.int32)
        of_rows = limits if isinstance(limits, np.ndarray) else np.array([limits], np.int32)
        self.team.map(loops.nearer_index, len(out), 4 * len(out), distances, of_rows, out)
        return out

    def opposite_rows(self, distances: NDArray[np.int32], sides: NDArray[np.int8], side: int) -> tuple[NDArray[np.uint8], int]:
        rows = np.empty(len(distances), np.uint8)
        found = self.team.map(loops.opposite_rows, len(rows), 8 * len(rows), distances, sides, side, rows)
        return rows, nearest_of(found, distances)

    def drop_similar(
        self, rows: NDArray[np.uint8], distances: NDArray[np.int32], to_candidate: NDArray[np.int32], apart: int
    ) -> int:
        found = self.team.map(loops.drop_similar, len(rows), 16 * len(rows), rows, distances, to_candidate, apart)
        return nearest_of(found, distances)

    def class_products(self, stats: Stats, frequency_weight: NDArray[np.int32]) -> IntArray:
        quantised, n_classes = stats.quantised[0], stats.n_classes
        work = 8 * len(quantised) * n_classes * n_classes
        parts = self.team.map(loops.class_products, len(quantised), work, quantised, frequency_weight, n_classes)
        products: IntArray = np.sum(parts, axis=0)
        return products

    def add_similarities(self, ensemble: Similarities, rows: CpuPoints, scores: Floats, first: int, stop: int) -> None:
        part = ensemble.part(first, stop)
        arrays = SimilarityArrays(part.levels, part.first, part.second, part.radius, part.coefficients)
        work = rows.n_rows * (4 * part.levels.size + (stop - first) * (8 + scores.shape[1]))
        self.team.map(loops.add_similarities, rows.n_rows, work, rows.levels, arrays, scores)


def nearest_of(rows: list[int], distances: NDArray[np.int32]) -> int:
    """Return the nearest of the rows that parts of all rows have found, the lowest of equals."""
    found = [int(row) for row in rows if row != NONE]
    return min(found, key=lambda row: (int(distances[row]), row), default=NONE)

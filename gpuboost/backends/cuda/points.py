"""Distances to training points on the device, see `gpuboost.backends.points`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cuda.gpu import GpuArray
from gpuboost.backends.cuda.launch import launch
from gpuboost.backends.cuda.matrix import BLOCK_FEATURES
from gpuboost.backends.cuda.results import Pending
from gpuboost.backends.cuda.rows import CudaRows
from gpuboost.backends.points import NONE, PointPrimitives
from gpuboost.backends.statistics import Stats
from gpuboost.similarities.ensemble import Similarities

SLAB_BYTES = 64 << 20
"""Rows travel to the device in pieces of about this size."""


@dataclass(frozen=True, eq=False)
class CudaPoints:
    """Rows by blocks of features, so that a row's levels of a block are one 16-byte load.

    Attributes
    ----------
    levels : device array of uint8, shape (n_blocks, n_rows, 16)
        Filled up with zeros.
    """

    levels: GpuArray

    @property
    def n_rows(self) -> int:
        return int(self.levels.shape[1])


class CudaPointPrimitives(CudaRows, PointPrimitives):
    """The primitives as launches; the host waits for the nearest row, and for the products."""

    def load_points(self, levels: NDArray[np.uint8]) -> CudaPoints:
        n_rows, n_features = levels.shape
        n_blocks = -(-n_features // BLOCK_FEATURES)
        on_device = self.gpu.empty((n_blocks, n_rows, BLOCK_FEATURES), np.uint8)
        blocks_at_once = max(1, SLAB_BYTES // max(1, n_rows * BLOCK_FEATURES))
        for first in range(0, n_blocks, blocks_at_once):
            stop = min(first + blocks_at_once, n_blocks)
            columns = self.put(levels[:, BLOCK_FEATURES * first : BLOCK_FEATURES * stop].T)
            grid = (-(-n_rows // 256), stop - first)
            launch(self.gpu, "pack", grid, (columns, on_device[first:stop], n_rows, columns.shape[0]))
        return CudaPoints(on_device)

    def squared_distances(self, rows: CudaPoints, point: NDArray[np.uint8]) -> GpuArray:
        n_blocks, n_rows, _ = rows.levels.shape
        padded = np.zeros(n_blocks * BLOCK_FEATURES, np.uint8)
        padded[: len(point)] = point
        distances = self.gpu.empty((n_rows,), np.int32)
        arguments = (rows.levels, self.put(padded), distances, n_rows, n_blocks)
        launch(self.gpu, "squared_distances", self._row_grid(n_rows), arguments)
        return distances

    def ring_index(self, distances: GpuArray, radii: IntArray) -> GpuArray:
        (n_rows,) = distances.shape
        out = self.gpu.empty((n_rows,), np.int32)
        arguments = (distances, self.put(radii.astype(np.int32)), out, n_rows, len(radii))
        launch(self.gpu, "ring_index", self._row_grid(n_rows), arguments)
        return out

    def nearer_index(self, distances: GpuArray, limits: GpuArray | int) -> GpuArray:
        (n_rows,) = distances.shape
        out = self.gpu.empty((n_rows,), np.int32)
        of_rows, of_all = (None, limits) if isinstance(limits, int) else (limits, 0)
        launch(self.gpu, "nearer_index", self._row_grid(n_rows), (distances, of_rows, out, n_rows, of_all))
        return out

    def opposite_rows(self, distances: GpuArray, sides: GpuArray, side: int) -> tuple[GpuArray, int]:
        (n_rows,) = distances.shape
        rows, nearest = self.gpu.empty((n_rows,), np.uint8), self.results.reserve(1)
        arguments = (distances, sides, rows, nearest.bits, n_rows, side)
        launch(self.gpu, "opposite_rows", self._row_grid(n_rows), arguments)
        return rows, nearest_row(nearest)

    def drop_similar(self, rows: GpuArray, distances: GpuArray, to_candidate: GpuArray, apart: int) -> int:
        (n_rows,) = distances.shape
        nearest = self.results.reserve(1)
        arguments = (rows, distances, to_candidate, nearest.bits, apart, n_rows)
        launch(self.gpu, "drop_similar", self._row_grid(n_rows), arguments)
        return nearest_row(nearest)

    def class_products(self, stats: Stats, frequency_weight: GpuArray) -> IntArray:
        _, n_rows, n_channels = stats.quantised.shape
        n_pairs = stats.n_classes**2
        products = self.results.reserve(n_pairs)
        grid, block = self._sums(n_rows, n_pairs)
        arguments = (stats.quantised, frequency_weight, products.array, n_rows, stats.n_classes, n_channels)
        launch(self.gpu, "class_products", grid, arguments, block=block)
        return products.get().reshape(stats.n_classes, stats.n_classes)

    def add_similarities(self, ensemble: Similarities, rows: CudaPoints, scores: GpuArray, first: int, stop: int) -> None:
        part, (n_blocks, n_rows, _), n_classes = ensemble.part(first, stop), rows.levels.shape, scores.shape[1]
        points = np.zeros((max(1, part.n_points), n_blocks * BLOCK_FEATURES), np.uint8)
        points[: part.n_points, : part.levels.shape[1]] = part.levels
        rounds = np.stack([part.first, part.second, part.radius], axis=1).astype(np.int32)
        on_device = self.put_together(points, rounds, part.coefficients)
        sizes = (n_rows, n_blocks, part.n_rounds, n_classes)
        launch(self.gpu, "add_similarities", self._row_grid(n_rows), (rows.levels, *on_device, scores, *sizes))

    def _row_grid(self, n_rows: int) -> tuple[int]:
        """Return the grid of a kernel with a thread for each row."""
        return (min(-(-n_rows // 256), 8 * self.gpu.limits.n_multiprocessors),)


def nearest_row(nearest: Pending) -> int:
    """Return the row of the smallest ``distance * 2**32 + row``, whose complement a kernel has raised from 0."""
    complement = int(nearest)
    return NONE if complement == 0 else ~complement & (2**32 - 1)

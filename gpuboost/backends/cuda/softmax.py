"""The primitives on the device that softmax boosters work on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import GpuArray
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK, launch
from gpuboost.backends.cuda.rows import CudaRows, Pending
from gpuboost.backends.statistics import Counts, SoftmaxRows, Stats
from gpuboost.exactmath import LOG2_COEFFICIENTS
from gpuboost.fixedpoint import STATE_FLOOR

IntArray = NDArray[np.int64]
Floats = NDArray[np.float64]


class CudaSoftmax(CudaRows):
    """See `gpuboost.backends.base.Backend`."""

    def _rows(self, n_rows: int) -> int:
        """Return the number of blocks for ``n_rows`` rows, a thread each."""
        return min(-(-n_rows // DEFAULT_BLOCK), 8 * self.gpu.limits.n_multiprocessors)

    def largest_miss(self, rows: SoftmaxRows) -> float:
        largest = Pending(self.gpu)
        own = (rows.p, rows.target, rows.weight_scale, largest.bits)
        launch(self.gpu, "largest_miss", (self._rows(rows.p.shape[0]),), (*own, *rows.p.shape))
        return float(largest)

    def softmax_sums(self, rows: SoftmaxRows, shift: int) -> tuple[IntArray, IntArray]:
        n_rows, n_classes = rows.p.shape
        sums = self._zeros(2 * n_classes)
        grid, block = self._sums(n_rows, n_classes)
        own = (rows.p, rows.target, rows.frequency_weight, rows.weight_scale)
        launch(self.gpu, "softmax_sums", grid, (*own, sums, n_rows, n_classes, shift), block=block)
        gradient, curvature = np.split(self.gpu.get(sums), 2)
        return gradient, curvature

    def softmax_statistics(
        self,
        rows: SoftmaxRows,
        pairs: IntArray,
        gradient_shift: int,
        curvature_shift: int,
        counts: Counts,
        weights: GpuArray | None = None,
    ) -> Stats:
        (n_rows, n_classes), n_trees = rows.p.shape, len(pairs)
        n_channels = 3 + (weights is not None)
        quantised = self.gpu.empty((n_trees, n_rows, n_channels), np.int32)
        sums = self._zeros(2 * n_channels - 1)
        own = (
            rows.p,
            rows.target,
            rows.frequency_weight,
            rows.weight_scale,
            self.put(pairs.astype(np.int32)),
            weights,
            counts.of_row,
        )
        results = (quantised, sums[:n_channels], sums[n_channels:])
        sizes = (n_rows, n_classes, gradient_shift, curvature_shift)
        launch(self.gpu, "softmax_statistics", (self._rows(n_rows), n_trees), (*own, *results, *sizes))
        sums, sum_abs = np.split(self.gpu.get(sums), [n_channels])
        return Stats(quantised, gradient_shift, sums, sum_abs, counts.minimum, "newton")

    def softmax_update(
        self, p: GpuArray, leaf_indices: GpuArray, pairs: IntArray, multipliers: Floats, trees: Sequence[int]
    ) -> None:
        small = (pairs.astype(np.int32), multipliers, np.array(trees, np.int32))
        own = (p, self._int32(leaf_indices), *(self.put(array) for array in small))
        sizes = (*p.shape, len(trees), multipliers.shape[1], STATE_FLOOR)
        launch(self.gpu, "softmax_update", (self._rows(p.shape[0]),), (*own, *sizes))

    def stack(self, leaf_indices: Sequence[GpuArray]) -> GpuArray:
        return self.put(np.stack([self.gpu.get(leaf_index) for leaf_index in leaf_indices]))

    def softmax_losses(
        self,
        rows: SoftmaxRows,
        leaf_indices: GpuArray,
        pairs: IntArray,
        multipliers: Floats,
        candidates: Sequence[Sequence[int]],
        shift: int,
    ) -> IntArray:
        n_rows, n_classes = rows.p.shape
        trees = [t for trees in candidates for t in trees]
        bounds = np.cumsum([0, *(len(trees) for trees in candidates)], dtype=np.int32)
        losses = self._zeros(len(candidates) * n_classes)
        small: list[NDArray[Any]] = [
            pairs.astype(np.int32),
            multipliers,
            np.array(trees or [0], np.int32),
            bounds,
            np.array(LOG2_COEFFICIENTS),
        ]
        own = (
            rows.p,
            rows.target,
            rows.frequency_weight,
            rows.weight_scale,
            self._int32(leaf_indices),
            *map(self.put, small),
            losses,
        )
        sizes = (n_rows, n_classes, multipliers.shape[1], shift, STATE_FLOOR)
        grid = (self._rows(n_rows), len(candidates))
        launch(self.gpu, "softmax_losses", grid, (*own, *sizes), shared_bytes=8 * n_classes)
        return self.gpu.get(losses).reshape(len(candidates), n_classes)

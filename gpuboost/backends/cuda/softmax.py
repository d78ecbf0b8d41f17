"""The primitives on the device that softmax boosters work on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.cuda.gpu import GpuArray
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK
from gpuboost.backends.cuda.launch import launch
from gpuboost.backends.cuda.rows import CudaRows, Pending
from gpuboost.backends.statistics import Counts, Shifts, SoftmaxRows, SoftmaxSteps, Stats
from gpuboost.exactmath import LOG2_COEFFICIENTS
from gpuboost.fixedpoint import STATE_FLOOR


class CudaSoftmax(CudaRows):
    """See `gpuboost.backends.base.Backend`."""

    def _rows(self, n_rows: int) -> int:
        """Return the number of blocks for ``n_rows`` rows, a thread each."""
        return min(-(-n_rows // DEFAULT_BLOCK), 8 * self.gpu.limits.n_multiprocessors)

    def largest_miss(self, rows: SoftmaxRows) -> float:
        largest = Pending(self.gpu)
        n_rows, n_classes = rows.p.shape
        arguments = (rows.p, rows.target, rows.weight_scale, largest.bits, n_rows, n_classes)
        launch(self.gpu, "largest_miss", (self._rows(n_rows),), arguments)
        return float(largest)

    def softmax_sums(self, rows: SoftmaxRows, shift: int) -> tuple[IntArray, IntArray]:
        n_rows, n_classes = rows.p.shape
        sums = self._zeros(2 * n_classes)
        grid, block = self._sums(n_rows, n_classes)
        arguments = (*rows, sums, n_rows, n_classes, shift)
        launch(self.gpu, "softmax_sums", grid, arguments, block=block)
        gradient, curvature = np.split(self.gpu.get(sums), 2)
        return gradient, curvature

    def softmax_statistics(
        self, rows: SoftmaxRows, pairs: IntArray, shifts: Shifts, counts: Counts, weights: GpuArray | None = None
    ) -> Stats:
        (n_rows, n_classes), n_trees = rows.p.shape, len(pairs)
        n_channels = 3 + (weights is not None)
        quantised = self.gpu.empty((n_trees, n_rows, n_channels), np.int32)
        sums = self._zeros(2 * n_channels - 1)
        units = {"gradient_shift": shifts.gradient, "curvature_shift": shifts.curvature}
        of_trees, sizes = self.put(pairs.astype(np.int32)), {"n_rows": n_rows, "n_classes": n_classes, **units}
        arguments = (*rows, of_trees, weights, counts.of_row, quantised, sums, sizes)
        launch(self.gpu, "softmax_statistics", (self._rows(n_rows), n_trees), arguments)
        sums, sum_abs = np.split(self.gpu.get(sums), [n_channels])
        return Stats(quantised, shifts.gradient, sums, sum_abs, counts.minimum, "newton")

    def _batch(self, steps: SoftmaxSteps, trees: IntArray) -> list[GpuArray]:
        """Return the arrays of steps with some trees in the order of the kernels' arguments."""
        of_trees = (steps.pairs.astype(np.int32), steps.multipliers, trees.astype(np.int32))
        return [self._int32(steps.leaf_indices), *(self.put(array) for array in of_trees)]

    def softmax_update(self, p: GpuArray, steps: SoftmaxSteps, trees: Sequence[int]) -> None:
        (n_rows, n_classes), n_leaves = p.shape, steps.multipliers.shape[1]
        batch = self._batch(steps, np.array(trees, np.int64))
        arguments = (p, *batch, n_rows, n_classes, len(trees), n_leaves, STATE_FLOOR)
        launch(self.gpu, "softmax_update", (self._rows(n_rows),), arguments)

    def stack(self, leaf_indices: Sequence[GpuArray]) -> GpuArray:
        return self.put(np.stack([self.gpu.get(leaf_index) for leaf_index in leaf_indices]))

    def softmax_losses(
        self, rows: SoftmaxRows, steps: SoftmaxSteps, candidates: Sequence[Sequence[int]], shift: int
    ) -> IntArray:
        n_rows, n_classes = rows.p.shape
        first = len(candidates) + 1  # the trees of all candidates stand behind the bounds
        bounds = np.cumsum([first, *(len(trees) for trees in candidates)])
        of_candidates = np.array([*bounds, *(t for trees in candidates for t in trees)], np.int64)
        losses = self._zeros(len(candidates) * n_classes)
        shape = {"n_rows": n_rows, "n_classes": n_classes, "n_leaves": steps.multipliers.shape[1]}
        sizes = {**shape, "shift": shift, "lowest": STATE_FLOOR, "coefficients": LOG2_COEFFICIENTS}
        arguments = (*rows, *self._batch(steps, of_candidates), losses, sizes)
        grid = (self._rows(n_rows), len(candidates))
        launch(self.gpu, "softmax_losses", grid, arguments, shared_bytes=8 * n_classes)
        return self.gpu.get(losses).reshape(len(candidates), n_classes)

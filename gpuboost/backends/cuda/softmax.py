"""The primitives on the device that softmax boosters work on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.cuda.gpu import GpuArray
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK
from gpuboost.backends.cuda.launch import launch
from gpuboost.backends.cuda.plan import LOSS_BYTES, check_batch, check_losses
from gpuboost.backends.cuda.results import Pending
from gpuboost.backends.cuda.rows import CudaRows
from gpuboost.backends.statistics import Counts, Shifts, SoftmaxRows, SoftmaxSteps, SoftmaxSummary, Stats
from gpuboost.exactmath import LOG2_COEFFICIENTS
from gpuboost.fixedpoint import STATE_FLOOR


class CudaSoftmax(CudaRows):
    """See `gpuboost.backends.base.Backend`."""

    def _rows(self, n_rows: int) -> int:
        """Return the number of blocks for ``n_rows`` rows, a thread each."""
        return min(-(-n_rows // DEFAULT_BLOCK), 8 * self.gpu.limits.n_multiprocessors)

    def largest_miss(self, rows: SoftmaxRows) -> float:
        return float(self._largest_miss(rows))

    def _largest_miss(self, rows: SoftmaxRows) -> Pending:
        largest, (n_rows, n_classes) = self.results.reserve(1), rows.p.shape
        arguments = (rows.p, rows.target, rows.weight_scale, largest.bits, n_rows, n_classes)
        launch(self.gpu, "largest_miss", (self._rows(n_rows),), arguments)
        return largest

    def softmax_sums(self, rows: SoftmaxRows, shift: int) -> tuple[IntArray, IntArray]:
        gradient, curvature = np.split(self._softmax_sums(rows, None, shift).get(), 2)
        return gradient, curvature

    def _softmax_sums(self, rows: SoftmaxRows, largest: GpuArray | None, shift: int = 0) -> Pending:
        """Sum with the first shift of ``largest``, or with ``shift`` if that is None."""
        n_rows, n_classes = rows.p.shape
        sums, (grid, block) = self.results.reserve(2 * n_classes), self._sums(n_rows, n_classes)
        launch(self.gpu, "softmax_sums", grid, (*rows, largest, sums.array, n_rows, n_classes, shift), block=block)
        return sums

    def present_losses(self, rows: SoftmaxRows, shift: int) -> IntArray:
        return self._losses(rows, None, 1, shift).get()

    def softmax_summary(self, rows: SoftmaxRows, shift: int) -> SoftmaxSummary:
        """Work all of it out on the device: one transfer brings it."""
        self.results.make_room(1 + 3 * rows.p.shape[1])
        largest = self._largest_miss(rows)
        sums, losses = self._softmax_sums(rows, largest.bits), self._losses(rows, None, 1, shift)
        gradient, curvature = np.split(sums.get(), 2)
        return SoftmaxSummary(float(largest), gradient, curvature, losses.get())

    def softmax_statistics(
        self, rows: SoftmaxRows, pairs: IntArray, shifts: Shifts, counts: Counts, weights: GpuArray | None = None
    ) -> Stats:
        (n_rows, n_classes), n_trees = rows.p.shape, len(pairs)
        check_batch(n_trees)
        n_channels = 3 + (weights is not None)
        quantised = self.gpu.empty((n_trees, n_rows, n_channels), np.int32)
        sums = self.results.reserve(2 * n_channels - 1)
        units = {"gradient_shift": shifts.gradient, "curvature_shift": shifts.curvature}
        of_trees, sizes = self.put(pairs.astype(np.int32)), {"n_rows": n_rows, "n_classes": n_classes, **units}
        arguments = (*rows, of_trees, weights, counts.of_row, quantised, sums.array, sizes)
        launch(self.gpu, "softmax_statistics", (self._rows(n_rows), n_trees), arguments)
        signed, absolute = np.split(sums.get(), [n_channels])
        return Stats(quantised, shifts.gradient, signed, absolute, counts.minimum, "newton", wide=shifts.wide)

    def _batch(self, steps: SoftmaxSteps, trees: IntArray) -> list[GpuArray]:
        """Return the arrays of steps with some trees in the order of the kernels' arguments."""
        of_trees = (steps.pairs.astype(np.int32), steps.multipliers, trees.astype(np.int32))
        return [self._int32(steps.leaf_indices), *self.put_together(*of_trees)]

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
        first = len(candidates) + 1  # the trees of all candidates stand behind the bounds
        bounds = np.cumsum([first, *(len(trees) for trees in candidates)])
        of_candidates = np.array([*bounds, *(t for trees in candidates for t in trees)], np.int64)
        losses = self._losses(rows, self._batch(steps, of_candidates), len(candidates), shift, steps.multipliers.shape[1])
        return losses.get().reshape(len(candidates), -1)

    def _losses(
        self, rows: SoftmaxRows, batch: list[GpuArray] | None, n_candidates: int, shift: int, n_leaves: int = 0
    ) -> Pending:
        """Return the losses after each of the candidates, or without a batch the losses as they are."""
        n_rows, n_classes = rows.p.shape
        check_losses(n_classes, self.gpu.limits)
        losses = self.results.reserve(n_candidates * n_classes)
        shape = {"n_rows": n_rows, "n_classes": n_classes, "n_leaves": n_leaves}
        sizes = {**shape, "shift": shift, "lowest": STATE_FLOOR, "coefficients": LOG2_COEFFICIENTS}
        arguments = (*rows, *(batch or [None] * 4), losses.array, sizes)
        launch(self.gpu, "softmax_losses", (self._rows(n_rows), n_candidates), arguments, shared_bytes=LOSS_BYTES * n_classes)
        return losses

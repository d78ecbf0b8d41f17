"""The reference of the primitives that softmax boosters work on: probabilities, their derivatives, and the log-loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.statistics import Counts, Shifts, SoftmaxRows, SoftmaxSteps, Stats
from gpuboost.exactmath import minus_log2
from gpuboost.fixedpoint import STATE_FLOOR


def complements(p: Floats) -> Floats:
    """Return ``1 - p`` without cancellation: where p is above 1/2 it is the sum of the others, in class order."""
    n_classes = p.shape[1]
    others = np.zeros_like(p)
    for k in range(n_classes):
        for j in range(n_classes):
            if j != k:
                others[:, k] += p[:, j]
    return np.where(p > 0.5, others, 1.0 - p)


class NumpySoftmax:
    """See `gpuboost.backends.base.Backend`."""

    def largest_miss(self, rows: SoftmaxRows) -> float:
        own = np.take_along_axis(complements(rows.p), rows.target[:, None], axis=1)[:, 0]
        return float((rows.weight_scale * own).max(initial=0.0))

    def derivatives(self, rows: SoftmaxRows) -> tuple[Floats, Floats]:
        """Return ``f g`` and ``f h`` of every class, shape (n_rows, n_classes)."""
        missing = complements(rows.p)
        is_own = rows.target[:, None] == np.arange(rows.p.shape[1])
        return rows.weight_scale[:, None] * np.where(is_own, missing, -rows.p), rows.weight_scale[:, None] * (rows.p * missing)

    def softmax_sums(self, rows: SoftmaxRows, shift: int) -> tuple[IntArray, IntArray]:
        g, h = (np.rint(np.ldexp(abs(one), shift)).astype(np.int64) for one in self.derivatives(rows))
        return (rows.frequency_weight[:, None] * g).sum(axis=0), (rows.frequency_weight[:, None] * h).sum(axis=0)

    def softmax_statistics(
        self, rows: SoftmaxRows, pairs: IntArray, shifts: Shifts, counts: Counts, weights: NDArray[np.int32] | None = None
    ) -> Stats:
        missing = complements(rows.p)
        gradients = np.rint(np.ldexp(self.derivatives(rows)[0], shifts.gradient)).astype(np.int64)
        trees = []
        for base, k in pairs.tolist():
            g, h = gradients[:, k], rows.p[:, k] * missing[:, k]
            if base >= 0:
                both = rows.p[:, base] * rows.p[:, k]
                g, h = g - gradients[:, base], (rows.p[:, base] * missing[:, base] + h) + 2.0 * both
            h = np.rint(np.ldexp(rows.weight_scale * h, shifts.curvature)).astype(np.int64)
            channels = [rows.frequency_weight * g, rows.frequency_weight * h, counts.of_row]
            if weights is not None:
                channels.insert(1, weights)
            trees.append(np.column_stack(channels))
        quantised = np.array(trees, np.int64)
        sums, sum_abs = quantised.sum(axis=(0, 1)), abs(quantised).sum(axis=(0, 1))[:-1]
        quantised = quantised.astype(np.int32)
        return Stats(quantised, shifts.gradient, sums, sum_abs, counts.minimum, "newton", wide=shifts.wide)

    def after(self, p: Floats, steps: SoftmaxSteps, trees: Sequence[int]) -> Floats:
        """Return ``p`` after a step with some trees."""
        p, (leaf_indices, pairs, multipliers) = p.copy(), steps
        for t in trees:
            base, k = pairs[t].tolist()
            p[:, k] *= multipliers[t, leaf_indices[t], 0]
            if base >= 0:
                p[:, base] *= multipliers[t, leaf_indices[t], 1]
        return np.maximum(p / np.add.accumulate(p, axis=1)[:, -1:], STATE_FLOOR)

    def softmax_update(self, p: Floats, steps: SoftmaxSteps, trees: Sequence[int]) -> None:
        p[:] = self.after(p, steps, trees)

    def stack(self, leaf_indices: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.stack(leaf_indices)

    def softmax_losses(
        self, rows: SoftmaxRows, steps: SoftmaxSteps, candidates: Sequence[Sequence[int]], shift: int
    ) -> IntArray:
        losses = []
        for trees in candidates:
            p = self.after(rows.p, steps, trees)
            own = np.take_along_axis(p, rows.target[:, None], axis=1)[:, 0]
            units = rows.frequency_weight * np.rint(np.ldexp(rows.weight_scale * minus_log2(own), shift)).astype(np.int64)
            of_class = np.zeros(p.shape[1], np.int64)
            np.add.at(of_class, rows.target, units)
            losses.append(of_class)
        return np.array(losses)

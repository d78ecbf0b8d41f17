"""The primitives of the CPU backend that softmax boosters work on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.loops import softmax as softmax_loops
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.statistics import Counts, Shifts, SoftmaxRows, SoftmaxSteps, Stats


class CpuSoftmax(CpuResources, Backend):
    """See `gpuboost.backends.base.Backend`."""

    def largest_miss(self, rows: SoftmaxRows) -> float:
        found = self.team.map(softmax_loops.largest_miss, len(rows.p), 4 * len(rows.p), rows)
        return float(max(found))

    def softmax_sums(self, rows: SoftmaxRows, shift: int) -> tuple[IntArray, IntArray]:
        scale = float(np.ldexp(1.0, shift))
        found = self.team.map(softmax_loops.sums, len(rows.p), 16 * rows.p.size, rows, scale)
        gradient, curvature = np.sum(found, axis=0)
        return gradient, curvature

    def softmax_statistics(
        self, rows: SoftmaxRows, pairs: IntArray, shifts: Shifts, counts: Counts, weights: NDArray[np.int32] | None = None
    ) -> Stats:
        n_rows, n_channels = len(rows.p), 3 + (weights is not None)
        quantised = self.scratch.array("softmax", (len(pairs), n_rows, padded(n_channels)), np.int32)
        quantised[:, :, n_channels:] = 0
        scales = (float(np.ldexp(1.0, shifts.gradient)), float(np.ldexp(1.0, shifts.curvature)))
        given = np.zeros((0, 0), np.int32) if weights is None else weights[None]
        arguments = (rows, pairs, scales, given, counts.of_row, quantised)
        parts = self.team.map(softmax_loops.statistics, n_rows, 16 * quantised.size, *arguments)
        sums, sum_abs = (np.sum([part[i] for part in parts], axis=0) for i in (0, 1))
        whole, minimum = (sums.sum(axis=0), sum_abs.sum(axis=0)), counts.minimum
        return Stats(quantised, shifts.gradient, *whole, minimum, "newton", totals=sums, wide=shifts.wide)

    def softmax_update(self, p: Floats, steps: SoftmaxSteps, trees: Sequence[int]) -> None:
        work = 8 * len(p) * (len(trees) + p.shape[1])
        self.team.map(softmax_loops.step, len(p), work, p, steps, np.array(trees, np.int64))

    def stack(self, leaf_indices: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.stack(leaf_indices)

    def softmax_losses(
        self, rows: SoftmaxRows, steps: SoftmaxSteps, candidates: Sequence[Sequence[int]], shift: int
    ) -> IntArray:
        trees = np.array([t for trees in candidates for t in trees], np.int64)
        bounds = np.cumsum([0, *(len(trees) for trees in candidates)])
        work = 8 * len(rows.p) * (len(trees) + len(candidates) * (16 + rows.p.shape[1]))
        scale = float(np.ldexp(1.0, shift))
        parts = self.team.map(softmax_loops.losses, len(rows.p), work, rows, steps, trees, bounds, scale)
        found: IntArray = np.sum(parts, axis=0)
        return found

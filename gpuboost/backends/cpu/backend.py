"""The CPU backend: numba loops on a team of threads. What people without a GPU use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.cpu import one_hot
from gpuboost.backends.cpu.divided import CpuDivided
from gpuboost.backends.cpu.growth import CpuTrees
from gpuboost.backends.cpu.loops import early_exit
from gpuboost.backends.cpu.loops import rectangles as rectangle_loops
from gpuboost.backends.cpu.loops import rows as row_loops
from gpuboost.backends.cpu.loops.label_weights import weigh_labels
from gpuboost.backends.cpu.loops.rows import EnsembleArrays, TreeArrays
from gpuboost.backends.cpu.matrix import CpuMatrix
from gpuboost.backends.cpu.one_hot import COUNT, WEIGHT, OneHot
from gpuboost.backends.cpu.points import CpuPointPrimitives
from gpuboost.backends.cpu.pruning.policy import Pruning
from gpuboost.backends.cpu.simd import padded
from gpuboost.backends.cpu.softmax import CpuSoftmax
from gpuboost.backends.early_exit import ExitRule
from gpuboost.backends.label_weights import LabelWeights
from gpuboost.backends.statistics import Counts, Stats
from gpuboost.binning import BinMapper, Binned, ComputedMatrix
from gpuboost.binning.codes import N_CODES
from gpuboost.ensemble import Ensemble
from gpuboost.rectangles import Pixels, RectangleFeatures
from gpuboost.tree import Tree

State = Floats | OneHot


class CpuBackend(CpuTrees, CpuDivided, CpuSoftmax, CpuPointPrimitives):
    """Every primitive as a compiled loop over rows or features.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, see `gpuboost.backends.cpu.threads.usable_threads`. The results do not depend on it.
    """

    device = "cpu"

    def close(self) -> None:
        self.team.close()
        self.free()
        self.pruning = Pruning(self)

    # ---- moving data -------------------------------------------------------------------------------------------------------

    def load(self, matrix: Binned) -> CpuMatrix:
        return CpuMatrix.load(matrix)

    def encode_to_score(self, mapper: BinMapper, X: Any) -> CpuMatrix:
        """Without counts of the codes, a third of the time, which say what training can skip."""
        if isinstance(X, ComputedMatrix):
            return self.encode(mapper, X)
        no_counts = np.zeros((mapper.n_features, N_CODES), np.int64)
        return self.load(replace(mapper.transform(X, bin_block=self.bin_block), all_counts=no_counts))

    def usable(self, data: CpuMatrix) -> NDArray[np.bool_]:
        return np.isin(np.arange(len(data.bin_offsets) - 1), data.usable)

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return np.array(array, order="C")

    def put_one_hot(self, state: Floats) -> OneHot:
        return OneHot.of(state)

    def get(self, array: NDArray[Any] | OneHot) -> NDArray[Any]:
        return array.dense() if isinstance(array, OneHot) else array

    def bin_block(self, values: Floats, cut_values: Floats, cut_offsets: IntArray, out: NDArray[np.uint8]) -> None:
        self.team.map(row_loops.bin_columns, len(values), 64 * values.size, values, cut_values, cut_offsets, out)

    def encode(self, mapper: BinMapper, X: Any, rows: NDArray[np.intp] | None = None) -> CpuMatrix:
        if isinstance(X, ComputedMatrix):
            return CpuMatrix.of_computed(mapper, X if rows is None else X.take(rows), self.bin_block)
        matrix: CpuMatrix = super().encode(mapper, X, rows)
        return matrix

    def rectangle_sums(self, images: Pixels, rows: NDArray[np.intp], features: RectangleFeatures) -> NDArray[np.int32]:
        out = np.empty((features.n_features, len(rows)), np.int32)
        work = len(rows) * (len(features.corner) + 4 * features.shape.n_pixels)
        self.team.map(rectangle_loops.rectangle_sums, len(rows), work, images, rows, features, out)
        return out

    # ---- row state and statistics ------------------------------------------------------------------------------------------

    def maximum(self, state: State) -> float:
        if isinstance(state, OneHot):
            return self.maximum(state.weight)
        return float(max(self.team.map(row_loops.maximum, len(state), 2 * state.size, state)))

    def channel_sums(self, state: State, frequency_weight: NDArray[np.int32], shift: int) -> IntArray:
        scale = float(np.ldexp(1.0, shift))
        if isinstance(state, OneHot):
            loop, n_rows = one_hot.class_sums, len(state.label)
            parts = self.team.map(loop, n_rows, 4 * n_rows, state.weight, state.label, frequency_weight, scale, state.n_classes)
        else:
            parts = self.team.map(row_loops.channel_sums, len(state), 4 * state.size, state, frequency_weight, scale)
        sums: IntArray = np.sum(parts, axis=0)
        return sums

    def quantise(
        self,
        state: State,
        signs: NDArray[np.int8],
        frequency_weight: NDArray[np.int32],
        shift: int,
        counts: Counts | None = None,
        wide: bool = False,
    ) -> Stats:
        (n_rows, n_classes), is_one_hot, scale = state.shape, isinstance(state, OneHot), float(np.ldexp(1.0, shift))
        # Statistics are never reused: other sets of the same size have some, too.
        if isinstance(state, OneHot):
            quantised, at_count = np.empty((n_rows, 2 if counts is None else 3), np.int32), COUNT
            arguments = (state.weight, state.label, frequency_weight, scale, n_classes, quantised)
            sums = sum_abs = np.sum(self.team.map(one_hot.quantise, n_rows, 4 * n_rows, *arguments), axis=0)
        else:
            quantised, at_count = np.zeros((n_rows, padded(n_classes + (counts is not None))), np.int32), n_classes
            parts = self.team.map(row_loops.quantise, n_rows, 4 * state.size, state, signs, frequency_weight, scale, quantised)
            sums, sum_abs = np.sum(parts, axis=0)
        if counts is not None:
            quantised[:, at_count] = counts.of_row
            sums = np.append(sums, counts.of_row.sum(dtype=np.int64))
        minimum = counts.minimum if counts else 0
        return Stats(quantised[None], shift, sums, sum_abs, minimum, one_hot=is_one_hot, wide=wide)

    def flip(self, stats: Stats, leaf_index: NDArray[Any], signs: NDArray[np.int8]) -> Stats:
        quantised = stats.quantised[0]
        out = np.zeros_like(quantised)
        arguments = (quantised, leaf_index, signs, stats.n_channels, out)
        parts = self.team.map(row_loops.flip, len(quantised), 4 * quantised.size, *arguments)
        return replace(stats, quantised=out[None], sum=np.sum(parts, axis=0))

    def leaf_sums(self, stats: Stats, leaf_index: NDArray[Any], n_leaves: int) -> tuple[IntArray, IntArray]:
        quantised = stats.quantised[0]
        loop, size = (one_hot.leaf_sums, len(quantised)) if stats.one_hot else (row_loops.leaf_sums, quantised.size)
        sums = np.sum(self.team.map(loop, len(quantised), 8 * size, quantised, leaf_index, n_leaves, stats.n_classes), axis=0)
        return (sums, sums) if stats.one_hot else (sums[0], sums[1])

    def row_weights(self, stats: Stats) -> IntArray:
        quantised = stats.quantised
        if stats.one_hot:
            weight: IntArray = quantised[:, :, WEIGHT].astype(np.int64)
            return weight
        first = stats.n_classes - 1 if stats.criterion == "newton" else 0
        sum_abs = np.empty(quantised.shape[:2], np.int64)
        flat, out = quantised.reshape(-1, quantised.shape[2]), sum_abs.reshape(-1)
        self.team.map(row_loops.row_weights, sum_abs.size, 2 * quantised.size, flat, first, stats.n_classes, out)
        return sum_abs

    def reweight(self, state: State, signs: NDArray[np.int8], leaf_index: NDArray[Any], table: Floats) -> float:
        if isinstance(state, OneHot):
            loop, n_rows = one_hot.reweight, len(state.label)
            return float(max(self.team.map(loop, n_rows, 4 * n_rows, state.weight, state.label, leaf_index, table)))
        return float(max(self.team.map(row_loops.reweight, len(state), 4 * state.size, state, signs, leaf_index, table)))

    def project(self, state: Floats, signs: NDArray[np.int8], coefficients: Floats) -> tuple[Floats, NDArray[np.int8], float]:
        magnitude, side = np.empty((len(state), 1)), np.empty((len(state), 1), np.int8)
        parts = self.team.map(row_loops.project, len(state), 4 * state.size, state, signs, coefficients, magnitude, side)
        return magnitude, side, float(max(parts))

    # ---- using trees -------------------------------------------------------------------------------------------------------

    def apply(self, tree: Tree, data: CpuMatrix) -> NDArray[np.int32]:
        out = np.empty(data.n_rows, np.int32)
        arrays = TreeArrays(tree.first, tree.feature, tree.cut, tree.missing_left, tree.left, tree.right)
        for rows, blocks in data.chunks():
            own = out[rows]
            self.team.map(row_loops.apply, len(own), 64 * len(own), blocks, arrays, own)
        return out

    def set_bit(self, cell: NDArray[np.int32], bit: int, data: CpuMatrix, feature: int, cut: int, missing_left: bool) -> None:
        for rows, blocks in data.chunks():
            own = cell[rows]
            self.team.map(row_loops.set_bit, len(own), 8 * len(own), blocks, feature, cut, missing_left, bit, own)

    def predict(self, ensemble: Ensemble, data: CpuMatrix, scores: Floats, first: int, stop: int) -> None:
        e, work = ensemble, (stop - first) * (64 + scores.shape[1])
        trees = EnsembleArrays(e.node_offset, e.leaf_offset, e.feature, e.cut, e.missing_left, e.left, e.right, e.values)
        for rows, blocks in data.chunks():
            own = scores[rows]
            self.team.map(row_loops.predict, len(own), len(own) * work, blocks, trees, first, stop, own)

    def predict_until(self, ensemble: Ensemble, data: CpuMatrix, scores: Floats, rule: ExitRule) -> NDArray[np.int32]:
        e, left_at = ensemble, np.empty(len(scores), np.int32)
        trees = EnsembleArrays(e.node_offset, e.leaf_offset, e.feature, e.cut, e.missing_left, e.left, e.right, e.values)
        work = int(rule.trees[-1]) * (64 + scores.shape[1]) // 4
        margins = np.ascontiguousarray(rule.margins)
        for rows, blocks in data.chunks():
            own, own_left = scores[rows], left_at[rows]
            self.team.map(
                early_exit.predict_until, len(own), len(own) * work, blocks, trees, rule.trees, margins, own, own_left
            )
        return left_at

    def add_scores(self, scores: Floats, leaf_index: NDArray[Any], values: Floats) -> None:
        self.team.map(row_loops.add_scores, len(scores), 2 * scores.size, scores, leaf_index, values)

    def add_trees(self, scores: Floats, leaf_indices: Sequence[NDArray[Any]], values: Sequence[Floats]) -> None:
        """All trees for some rows at a time, whose scores stay in the second-level cache."""
        n_rows, at_once = len(scores), max(1, 2**17 // scores.shape[1])

        def share(lo: int, hi: int) -> None:
            for first in range(lo, hi, at_once):
                for leaf_index, own in zip(leaf_indices, values, strict=True):
                    row_loops.add_scores(first, min(first + at_once, hi), scores, leaf_index, own)

        self.team.map(share, n_rows, 2 * scores.size * len(leaf_indices))

    def error(self, scores: Floats, target: NDArray[Any], units: IntArray) -> int:
        loop = row_loops.class_errors if target.ndim == 1 else row_loops.sign_errors
        return int(sum(self.team.map(loop, len(scores), 4 * scores.size, scores, target, units)))

    def weigh_labels(self, scores: Floats, target: IntArray, weighting: str, first: int, stop: int) -> LabelWeights:
        out, n_classes = np.empty((stop - first, scores.shape[1] + 3), np.int64), scores.shape[1]
        arguments = (scores, target, first, weighting == "madaboost", out)
        self.team.map(weigh_labels, stop - first, 64 * (stop - first) * n_classes, *arguments)
        return LabelWeights.of_columns(out)

    def confusion(self, scores: Floats, target: NDArray[Any], units: IntArray) -> IntArray:
        counts: IntArray = sum(self.team.map(row_loops.confusion, len(scores), 4 * scores.size, scores, target, units))
        return counts

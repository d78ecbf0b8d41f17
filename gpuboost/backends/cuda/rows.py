"""The primitives over rows on the device: row state and statistics, and the use of trees.

The host waits only for results that it is asked for. In a round of boosting that is once: `reweight` and `error` return what
is `Pending`, and `statistics` fetches it together with all other small results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from gpuboost import fixedpoint
from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.cuda.gpu import Gpu, GpuArray
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK
from gpuboost.backends.cuda.launch import launch
from gpuboost.backends.cuda.matrix import CudaMatrix
from gpuboost.backends.cuda.results import Pending, Results
from gpuboost.backends.early_exit import ExitRule
from gpuboost.backends.label_weights import LabelWeights
from gpuboost.backends.statistics import Counts, Stats
from gpuboost.ensemble import Ensemble
from gpuboost.exactmath import EXP_COEFFICIENTS, LOG2_COEFFICIENTS
from gpuboost.tree import Tree

CELLS = 6144
"""Pairs of int32 in ``leaf_sums``, or int64 in ``confusion``, that a block keeps in shared memory: 48 KB, which every device
has without asking."""
PAIRS = 2048
"""(row, tree) pairs of a tile of ``predict``, TILE in ``predict.cu``."""
TILE_ROWS = 32
"""Rows of a tile where there are enough: one warp's, so that the codes of all tiles at work stay in the first-level cache."""
SLAB_BYTES = 32 << 20
"""Trees travel to the device in pieces of about this size."""


class CudaRows:
    """The primitives over rows; see `gpuboost.backends.base`."""

    gpu: Gpu
    results: Results

    # ---- moving data -------------------------------------------------------------------------------------------------------

    def put(self, array: NDArray[Any]) -> GpuArray:
        return self.gpu.put(np.ascontiguousarray(array))

    def put_together(self, *arrays: NDArray[Any]) -> list[GpuArray]:
        """Return copies of small host arrays on the device, which come in one transfer."""
        starts = np.cumsum([0, *(-(-array.nbytes // 16) * 16 for array in arrays)])  # aligned as the kernels read them
        packed = np.zeros(starts[-1], np.uint8)
        for start, array in zip(starts, arrays, strict=False):
            packed[start : start + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        on_device = self.gpu.put(packed)
        parts = [(on_device[start : start + array.nbytes], array) for start, array in zip(starts, arrays, strict=False)]
        return [part.view(array.dtype).reshape(array.shape) for part, array in parts]

    def get(self, array: GpuArray) -> NDArray[Any]:
        return self.gpu.get(array)

    def _int32(self, array: GpuArray) -> GpuArray:
        """Return ``array`` if it is int32; other integers make a detour over the host."""
        return array if array.dtype == np.int32 else self.gpu.put(self.gpu.get(array).astype(np.int32))

    # ---- the shape of launches ---------------------------------------------------------------------------------------------

    def _pairs(self, n_rows: int, n_channels: int, rows_each: int = 1, threads: int = 2048) -> tuple[tuple[int], int]:
        """Return the grid and block for a kernel whose threads keep to a channel.

        A thread has at least ``rows_each`` rows, a multiprocessor about ``threads`` threads.
        """
        block = best_block(n_channels)
        rows_at_once = max(1, block // n_channels)
        n_blocks = -(-n_rows // (rows_at_once * rows_each))
        return (min(n_blocks, threads // block * self.gpu.limits.n_multiprocessors),), block

    def _sums(self, n_rows: int, n_channels: int) -> tuple[tuple[int], int]:
        """Return the grid and block for a kernel that sums over rows: few blocks, as each adds its sums to the others'."""
        return self._pairs(n_rows, n_channels, rows_each=4, threads=1024)

    # ---- row state and statistics ------------------------------------------------------------------------------------------

    def maximum(self, state: GpuArray) -> float:
        largest = self.results.reserve(1)
        n = state.shape[0] * state.shape[1]
        grid = (min(-(-n // 1024), 4 * self.gpu.limits.n_multiprocessors),)
        launch(self.gpu, "maximum", grid, (state, largest.bits, n))
        return float(largest)

    def channel_sums(self, state: GpuArray, frequency_weight: GpuArray, shift: int) -> IntArray:
        sums = self.results.reserve(state.shape[1])
        self._channel_sums(state, frequency_weight, None, sums.array, shift)
        return sums.get()

    def _channel_sums(
        self, state: GpuArray, frequency_weight: GpuArray, maximum: GpuArray | None, sums: GpuArray, shift: int = 0
    ) -> None:
        """Sum with the first shift of ``maximum``, or with ``shift`` if that is None."""
        grid, block = self._sums(*state.shape)
        launch(self.gpu, "channel_sums", grid, (state, frequency_weight, maximum, sums, *state.shape, shift), block=block)

    def quantise(
        self,
        state: GpuArray,
        signs: GpuArray,
        frequency_weight: GpuArray,
        shift: int,
        counts: Counts | None = None,
        wide: bool = False,
    ) -> Stats:
        n_classes, n_channels = state.shape[1], state.shape[1] + (counts is not None)
        sums = self.results.reserve(n_channels + n_classes)
        quantised = self._quantise(state, signs, frequency_weight, counts, None, sums.array, shift)
        host = sums.get()
        return Stats(quantised, shift, host[:n_channels], host[n_channels:], counts.minimum if counts else 0, wide=wide)

    def _quantise(
        self,
        state: GpuArray,
        signs: GpuArray,
        frequency_weight: GpuArray,
        counts: Counts | None,
        chosen: GpuArray | None,
        sums: GpuArray,
        shift: int = 0,
    ) -> GpuArray:
        """Return quantised rows with the shift that was ``chosen`` on the device, or with ``shift`` if that is None.

        ``sums`` gets the sums of the channels and of the classes' absolute values.
        """
        (n_rows, n_classes), of_row = state.shape, counts.of_row if counts else None
        n_channels = n_classes + (counts is not None)
        quantised = self.gpu.empty((1, n_rows, n_channels), np.int32)  # never reused: other sets have statistics too
        grid, block = self._sums(n_rows, n_channels)
        sizes = {"n_rows": n_rows, "n_classes": n_classes, "n_channels": n_channels, "shift": shift}
        signed, absolute = sums[:n_channels], sums[n_channels:]
        arguments = (state, signs, frequency_weight, of_row, chosen, quantised, signed, absolute, sizes)
        launch(self.gpu, "quantise", grid, arguments, block=block)
        return quantised

    def statistics(
        self,
        state: GpuArray,
        signs: GpuArray,
        frequency_weight: GpuArray,
        n_rows: int,
        maximum: SupportsFloat,
        counts: Counts | None = None,
    ) -> Stats:
        """Quantise with the shift rule worked out on the device: one transfer brings all small results."""
        fixedpoint.check_size(n_rows, 1)
        n_classes, n_channels = state.shape[1], state.shape[1] + (counts is not None)
        results = self.results.reserve(2 + n_classes + n_channels + n_classes)  # it may fetch the maximum
        is_waiting = isinstance(maximum, Pending) and maximum.host is None
        bits = maximum.bits if is_waiting else self.gpu.put(np.array([float(maximum)]).view(np.uint64))  # type: ignore[attr-defined]
        chosen, first_sums, sums = (results.array[i:j] for i, j in ((0, 2), (2, 2 + n_classes), (2 + n_classes, None)))
        self._channel_sums(state, frequency_weight, bits, first_sums)
        most_dropped = fixedpoint.most_dropped(n_rows)
        launch(self.gpu, "choose_shift", (1,), (bits, first_sums, chosen, n_classes, n_rows, most_dropped), block=32)
        quantised = self._quantise(state, signs, frequency_weight, counts, chosen, sums)

        host = results.get()
        shift, largest = int(host[0]), float(host[1:2].view(np.float64)[0])
        expected = fixedpoint.final_shift(fixedpoint.first_shift(largest), int(host[2 : 2 + n_classes].max()), n_rows)
        if shift != expected:
            raise RuntimeError(f"the device chose the shift {shift}, but the shift rule gives {expected}")
        sums, sum_abs = np.split(host[2 + n_classes :], [n_channels])
        return Stats(quantised, shift, sums, sum_abs, counts.minimum if counts else 0, wide=fixedpoint.is_wide(n_rows))

    def flip(self, stats: Stats, leaf_index: GpuArray, signs: NDArray[np.int8]) -> Stats:
        _, n_rows, n_channels = stats.quantised.shape
        flipped, sums = self.gpu.empty(stats.quantised.shape, np.int32), self.results.reserve(n_channels)
        grid, block = self._sums(n_rows, n_channels)
        rows = (stats.quantised, self._int32(leaf_index))
        arguments = (*rows, self.put(signs), flipped, sums.array, n_rows, stats.n_classes, n_channels)
        launch(self.gpu, "flip", grid, arguments, block=block)
        return replace(stats, quantised=flipped, sum=sums.get())

    def leaf_sums(self, stats: Stats, leaf_index: GpuArray, n_leaves: int) -> tuple[IntArray, IntArray]:
        _, n_rows, n_channels = stats.quantised.shape
        n_classes = stats.n_classes
        cells, kernel, cell_bytes = (CELLS // 2, "leaf_sums_wide", 16) if stats.wide else (CELLS, "leaf_sums", 8)
        classes = min(n_classes, max(1, cells // n_leaves))  # of a tile
        leaves = min(n_leaves, cells // classes)
        results = self.results.reserve(2 * n_leaves * n_classes)
        sums = results.array.reshape(2, n_leaves, n_classes)
        (n_blocks,), block = self._pairs(n_rows, classes, rows_each=16, threads=512)
        grid = (n_blocks, -(-n_classes // classes), -(-n_leaves // leaves))
        arrays = (stats.quantised, self._int32(leaf_index), sums[0], sums[1])
        arguments = (*arrays, n_rows, n_leaves, n_classes, n_channels, leaves, classes)
        launch(self.gpu, kernel, grid, arguments, block=block, shared_bytes=cell_bytes * leaves * classes)
        sums, sum_abs = results.get().reshape(2, n_leaves, n_classes)
        return sums, sum_abs

    def row_weights(self, stats: Stats) -> IntArray:
        n_trees, n_rows, n_channels = stats.quantised.shape
        sum_abs = self.gpu.empty((n_trees * n_rows,), np.int64)
        first = stats.n_classes - 1 if stats.criterion == "newton" else 0
        grid, block = self._pairs(len(sum_abs), 1)
        arguments = (stats.quantised, sum_abs, len(sum_abs), first, stats.n_classes, n_channels)
        launch(self.gpu, "row_weights", grid, arguments, block=block)
        return self.gpu.get(sum_abs).reshape(n_trees, n_rows)

    def reweight(self, state: GpuArray, signs: GpuArray, leaf_index: GpuArray, table: Floats) -> Pending:
        maximum = self.results.reserve(1)
        grid, block = self._pairs(*state.shape)
        multipliers, (n_rows, n_classes) = self.put(table), state.shape
        rows = (state, signs, self._int32(leaf_index))
        arguments = (*rows, multipliers, maximum.bits, n_rows, n_classes, fixedpoint.STATE_FLOOR)
        launch(self.gpu, "reweight", grid, arguments, block=block)
        return maximum

    def project(self, state: GpuArray, signs: GpuArray, coefficients: Floats) -> tuple[GpuArray, GpuArray, Pending]:
        n_rows, n_classes = state.shape
        magnitude, side = self.gpu.empty((n_rows, 1), np.float64), self.gpu.empty((n_rows, 1), np.int8)
        maximum = self.results.reserve(1)
        grid, block = self._pairs(n_rows, 1)
        results = (magnitude, side, maximum.bits)
        arguments = (state, signs, self.put(coefficients), *results, n_rows, n_classes, fixedpoint.STATE_FLOOR)
        launch(self.gpu, "project", grid, arguments, block=block)
        return magnitude, side, maximum

    # ---- using trees -------------------------------------------------------------------------------------------------------

    def apply(self, tree: Tree, data: CudaMatrix) -> GpuArray:
        leaf = self.gpu.empty((data.n_rows,), np.int32)
        nodes = self.gpu.put(node_records(tree))
        grid, block = self._pairs(data.n_rows, 1)
        launch(self.gpu, "apply", grid, (nodes, data.codes, leaf, data.n_rows, tree.first), block=block)
        return leaf

    def set_bit(self, cell: GpuArray, bit: int, data: CudaMatrix, feature: int, cut: int, missing_left: bool) -> None:
        grid, block = self._pairs(data.n_rows, 1)
        arguments = (data.codes, cell, data.n_rows, feature, cut, int(missing_left), bit)
        launch(self.gpu, "set_bit", grid, arguments, block=block)

    def predict(self, ensemble: Ensemble, data: CudaMatrix, scores: GpuArray, first: int, stop: int) -> None:
        n_rows, n_classes = scores.shape
        rows = self._rows_of_tile(n_rows)
        block = best_block(rows * n_classes)
        for start, end in slabs(ensemble, first, stop):
            nodes, roots = (self.gpu.put(array) for array in flat_trees(ensemble, start, end))
            values = self.put(ensemble.values[ensemble.leaf_offset[start] : ensemble.leaf_offset[end]])
            arguments = (nodes, roots, values, data.codes, scores, n_rows, end - start, n_classes, rows, PAIRS // rows)
            launch(self.gpu, "predict", (-(-n_rows // rows),), arguments, block=block)

    def predict_until(self, ensemble: Ensemble, data: CudaMatrix, scores: GpuArray, rule: ExitRule) -> GpuArray:
        n_rows, n_classes = scores.shape
        left_at = self.put(np.full(n_rows, -1, np.int32))
        margins, stops = np.ascontiguousarray(rule.margins), [0, *rule.trees.tolist()]
        strides = [0 if length == 1 else stride // 8 for length, stride in zip(margins.shape, margins.strides, strict=True)]
        on_device, rows = self.put(margins), self._rows_of_tile(n_rows)
        for first, end in exit_slabs(ensemble, stops):
            start = stops[first]
            nodes, roots = (self.gpu.put(array) for array in flat_trees(ensemble, start, stops[end]))
            values = self.put(ensemble.values[ensemble.leaf_offset[start] : ensemble.leaf_offset[stops[end]]])
            own_stops = self.put(np.array(stops[first + 1 : end + 1], np.int32) - np.int32(start))
            sizes = {
                "n_rows": n_rows,
                "n_classes": n_classes,
                "rows_per_tile": rows,
                "n_checkpoints": end - first,
                "first_checkpoint": first,
                "ends": int(end == len(stops) - 1),
                **dict(zip(("checkpoint_stride", "leader_stride", "other_stride"), strides, strict=True)),
            }
            arguments = (nodes, roots, values, data.codes, scores, own_stops, on_device, left_at, sizes)
            launch(self.gpu, "predict_until", (-(-n_rows // rows),), arguments, block=best_block(rows * n_classes))
        return left_at

    def _rows_of_tile(self, n_rows: int) -> int:
        """Return how many rows a block predicts together: with few rows less, to use the whole device all the same."""
        rows = TILE_ROWS
        while rows > 8 and n_rows < rows * 4 * self.gpu.limits.n_multiprocessors:
            rows //= 2
        return rows

    def add_scores(self, scores: GpuArray, leaf_index: GpuArray, values: Floats) -> None:
        self.add_trees(scores, [leaf_index], [values])

    def add_trees(self, scores: GpuArray, leaf_indices: Sequence[GpuArray], values: Sequence[Floats]) -> None:
        if not leaf_indices:
            return
        grid, block = self._pairs(*scores.shape)
        indices = [self._int32(leaf_index) for leaf_index in leaf_indices]
        addresses = np.array([self.gpu.address(leaf_index) for leaf_index in indices], np.int64)
        first = np.cumsum([0, *(len(own) for own in values[:-1])], dtype=np.int32)
        trees = self.put_together(addresses, first, np.concatenate(values))
        launch(self.gpu, "add_trees", grid, (scores, *trees, *scores.shape, len(values)), block=block)

    def error(self, scores: GpuArray, target: GpuArray, units: GpuArray) -> Pending:
        n_rows, n_classes = scores.shape
        labels, signs = (self._int32(target), None) if len(target.shape) == 1 else (None, target)
        lanes = lanes_of_row(n_classes)
        wrong = self.results.reserve(1)
        grid = (min(-(-n_rows * lanes // 1024), 8 * self.gpu.limits.n_multiprocessors),)
        launch(self.gpu, "errors", grid, (scores, labels, signs, units, wrong.array, n_rows, n_classes, lanes))
        return wrong

    def confusion(self, scores: GpuArray, target: GpuArray, units: GpuArray) -> IntArray:
        n_rows, n_classes = scores.shape
        lanes, in_shared = lanes_of_row(n_classes), n_classes**2 <= CELLS
        counts = self.results.reserve(n_classes**2)
        grid = (min(-(-n_rows * lanes // 1024), 2 * self.gpu.limits.n_multiprocessors),)
        arguments = (scores, self._int32(target), units, counts.array, n_rows, n_classes, lanes, int(in_shared))
        launch(self.gpu, "confusion", grid, arguments, shared_bytes=8 * n_classes**2 * in_shared)
        return counts.get().reshape(n_classes, n_classes)

    def weigh_labels(self, scores: GpuArray, target: IntArray, weighting: str, first: int, stop: int) -> LabelWeights:
        n_rows, n_classes = stop - first, scores.shape[1]
        sizes = {
            "n_rows": n_rows,
            "n_classes": n_classes,
            "first_row": first,
            "madaboost": int(weighting == "madaboost"),
            "exp_coefficients": EXP_COEFFICIENTS,
            "coefficients": LOG2_COEFFICIENTS,
        }
        out = self.gpu.empty((n_rows, n_classes + 3), np.int64)
        of_rows = self.put(target[first:stop].astype(np.int32))
        launch(self.gpu, "weigh_labels", (-(-n_rows // DEFAULT_BLOCK),), (scores, of_rows, out, sizes))
        return LabelWeights.of_columns(self.gpu.get(out))


# ---- the shape of launches ---------------------------------------------------------------------------------------------------


def lanes_of_row(n_classes: int) -> int:
    """Return how many lanes of a warp share a row's scores: a power of two."""
    return min(32, 1 << (n_classes - 1).bit_length())


def best_block(n: int) -> int:
    """Return how many threads a block needs to be busy with things that come ``n`` at a time: 128 .. 256, whole warps."""

    def busy(block: int) -> float:
        return block // n * n / block if n <= block else n / (-(-n // block) * block)

    return max(range(128, DEFAULT_BLOCK + 1, 32), key=lambda block: (busy(block), block))


# ---- trees for the device ----------------------------------------------------------------------------------------------------


def node_records(trees: Tree | Ensemble, nodes: slice = slice(None)) -> NDArray[np.int32]:
    """Return inner nodes as ``predict.cu`` reads them, shape (n_nodes, 4)."""
    cut = trees.cut[nodes] + 256 * trees.missing_left[nodes].astype(np.int32)
    return np.stack([trees.feature[nodes], cut, trees.left[nodes], trees.right[nodes]], axis=1).astype(np.int32)


def slabs(ensemble: Ensemble, first: int, stop: int) -> list[tuple[int, int]]:
    """Divide the trees ``first .. stop - 1`` into ranges of about `SLAB_BYTES`, of one tree at least."""
    size = 16 * ensemble.node_offset + 8 * ensemble.n_classes * ensemble.leaf_offset
    ranges = []
    while first < stop:
        end = int(np.searchsorted(size, size[first] + SLAB_BYTES, side="right")) - 1
        end = min(stop, max(first + 1, end))
        ranges.append((first, end))
        first = end
    return ranges


def exit_slabs(ensemble: Ensemble, stops: Sequence[int]) -> list[tuple[int, int]]:
    """Divide checkpoints into ranges whose trees take about `SLAB_BYTES`, of one checkpoint at least.

    ``stops`` are numbers of trees, beginning with 0; checkpoint c has the trees ``stops[c] .. stops[c + 1] - 1``.
    """
    size = (16 * ensemble.node_offset + 8 * ensemble.n_classes * ensemble.leaf_offset)[np.asarray(stops)]
    ranges, first = [], 0
    while first < len(stops) - 1:
        end = int(np.searchsorted(size, size[first] + SLAB_BYTES, side="right")) - 1
        ranges.append((first, max(first + 1, end)))
        first = ranges[-1][1]
    return ranges


def flat_trees(ensemble: Ensemble, first: int, stop: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the nodes of the trees ``first .. stop - 1`` in one array, (n_nodes, 4), and where each tree begins, (n_trees,).

    Nodes and leaves are numbered through from tree to tree.
    """
    node_offset, leaf_offset = (o[first : stop + 1] - o[first] for o in (ensemble.node_offset, ensemble.leaf_offset))
    n_nodes = np.diff(node_offset)
    node_base, leaf_base = (np.repeat(o[:-1], n_nodes)[:, None] for o in (node_offset, leaf_offset))
    nodes = node_records(ensemble, slice(ensemble.node_offset[first], ensemble.node_offset[stop]))
    children = nodes[:, 2:]
    children[:] = np.where(children >= 0, children + node_base, children - leaf_base)  # ~leaf - base is ~(leaf + base)
    roots = np.where(n_nodes > 0, node_offset[:-1], ~leaf_offset[:-1])
    return nodes, roots.astype(np.int32)

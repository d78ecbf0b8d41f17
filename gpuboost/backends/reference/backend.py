"""The reference backend: the shortest correct code in NumPy. It is the oracle of the others and is not optimised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.criteria import CRITERIA
from gpuboost.backends.divided import DividedGrowth, sibling
from gpuboost.backends.early_exit import ExitRule
from gpuboost.backends.frontier import (
    BASELINE,
    CLOSED,
    CUT,
    FEATURE,
    GAIN,
    KEY,
    LEFT,
    MISSING_LEFT,
    START,
    STOP,
    WHOLE,
    Frontier,
    GrowthScope,
    new_nodes,
    root_bounds,
)
from gpuboost.backends.reference.points import NumpyPointPrimitives
from gpuboost.backends.reference.softmax import NumpySoftmax
from gpuboost.backends.statistics import Counts, Stats
from gpuboost.binning import MISSING_CODE, Binned, BinnedMatrix
from gpuboost.ensemble import Ensemble
from gpuboost.fixedpoint import STATE_FLOOR
from gpuboost.tree import Tree


@dataclass
class Work:
    """What the reference backend keeps of a growth.

    Attributes
    ----------
    sum_abs : ndarray of int64, shape (n_trees, n_channels)
        The roots' sums of abs(quantised).
    features : list of int
        Those that may be cut.
    histograms : dict
        By tree and node, where the rows are divided among workers.
    """

    sum_abs: IntArray
    features: list[int]
    histograms: dict[tuple[int, int], IntArray] = field(default_factory=dict)


class NumpyBackend(NumpyPointPrimitives, NumpySoftmax, DividedGrowth):
    """Every primitive in NumPy on the host."""

    device = "numpy"

    def load(self, matrix: Binned) -> BinnedMatrix:
        if isinstance(matrix, BinnedMatrix):
            return matrix
        return BinnedMatrix(matrix.features(0, matrix.n_features), matrix.n_bins, matrix.has_missing, matrix.all_counts)

    def put(self, array: NDArray[Any]) -> NDArray[Any]:
        return array.copy()

    def get(self, array: NDArray[Any]) -> NDArray[Any]:
        return array

    def usable(self, data: BinnedMatrix) -> NDArray[np.bool_]:
        return data.usable

    # ---- row state and statistics ------------------------------------------------------------------------------------------

    def maximum(self, state: Floats) -> float:
        return float(state.max(initial=0.0))

    def channel_sums(self, state: Floats, frequency_weight: NDArray[np.int32], shift: int) -> IntArray:
        units: IntArray = np.rint(np.ldexp(state, shift)).astype(np.int64)
        sums: IntArray = (units * frequency_weight[:, None]).sum(axis=0)
        return sums

    def quantise(
        self,
        state: Floats,
        signs: NDArray[np.int8],
        frequency_weight: NDArray[np.int32],
        shift: int,
        counts: Counts | None = None,
        wide: bool = False,
    ) -> Stats:
        units = np.rint(np.ldexp(state, shift)).astype(np.int64) * frequency_weight[:, None]
        quantised = units * signs
        if counts is not None:
            quantised = np.column_stack([quantised, counts.of_row])
        minimum, sums, sum_abs = counts.minimum if counts else 0, quantised.sum(axis=0), units.sum(axis=0)
        return Stats(quantised[None].astype(np.int32), shift, sums, sum_abs, minimum, wide=wide)

    def flip(self, stats: Stats, leaf_index: NDArray[Any], signs: NDArray[np.int8]) -> Stats:
        quantised = stats.quantised.copy()
        quantised[..., : stats.n_classes] *= signs[leaf_index]
        return replace(stats, quantised=quantised, sum=quantised.sum(axis=(0, 1), dtype=np.int64))

    def leaf_sums(self, stats: Stats, leaf_index: NDArray[Any], n_leaves: int) -> tuple[IntArray, IntArray]:
        quantised = stats.quantised[0, :, : stats.n_classes].astype(np.int64)
        sums, sum_abs = np.zeros((2, n_leaves, quantised.shape[1]), np.int64)
        np.add.at(sums, leaf_index, quantised)
        np.add.at(sum_abs, leaf_index, abs(quantised))
        return sums, sum_abs

    def row_weights(self, stats: Stats) -> IntArray:
        first = stats.n_classes - 1 if stats.criterion == "newton" else 0
        sum_abs: IntArray = abs(stats.quantised[:, :, first : stats.n_classes].astype(np.int64)).sum(axis=2)
        return sum_abs

    def reweight(self, state: Floats, signs: NDArray[np.int8], leaf_index: NDArray[Any], table: Floats) -> float:
        multiplier = np.where(signs > 0, table[leaf_index, 1], table[leaf_index, 0])
        state[:] = np.where(state > 0, np.maximum(state * multiplier, STATE_FLOOR), 0.0)
        return self.maximum(state)

    def project(self, state: Floats, signs: NDArray[np.int8], coefficients: Floats) -> tuple[Floats, NDArray[np.int8], float]:
        r = np.zeros((len(state), 1))
        for c, coefficient in enumerate(coefficients):
            r[:, 0] += signs[:, c] * state[:, c] * coefficient
        magnitude = np.where(abs(r) < STATE_FLOOR, 0.0, abs(r))
        return magnitude, np.where(r < 0, -1, 1).astype(np.int8), self.maximum(magnitude)

    # ---- growing trees -----------------------------------------------------------------------------------------------------

    def start_growth(self, data: BinnedMatrix, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        rows = np.arange(data.n_rows, dtype=np.int32) if scope.sample_indices is None else scope.sample_indices
        nodes = new_nodes(root_bounds(stats, scope, len(rows)), max_leaves)
        n_trees = len(nodes)
        quantised = np.broadcast_to(stats.quantised, (n_trees, *stats.quantised.shape[1:]))
        totals, edges = np.zeros((2, *nodes.shape[:2], stats.n_channels), np.int64)
        frontier = Frontier(
            data, replace(stats, quantised=quantised), np.tile(rows, (n_trees, 1)), nodes, totals, edges, np.full(n_trees, -1)
        )
        for t in range(n_trees):
            totals[t, 0] = quantised[t, self._rows(frontier, t, 0)].sum(axis=0, dtype=np.int64)
        sum_abs = np.array([abs(quantised[t, self._rows(frontier, t, 0)]).sum(axis=0, dtype=np.int64) for t in range(n_trees)])
        features = np.flatnonzero(data.usable if scope.feature_mask is None else data.usable & scope.feature_mask)
        frontier.work = Work(sum_abs, features.tolist())
        return frontier

    def _rows(self, frontier: Frontier, t: int, node: int) -> NDArray[np.int32]:
        scope, stop = frontier.nodes[t, node, [START, STOP]]
        rows: NDArray[np.int32] = frontier.rows[t, scope:stop]
        return rows

    def _alive(self, frontier: Frontier, nodes: Sequence[int]) -> list[tuple[int, int]]:
        """Return the (tree, node) pairs of ``nodes`` that exist: roots, or children of the current node."""
        trees = range(len(frontier.current))
        cut = [frontier.current[t] >= 0 and frontier.nodes[t, frontier.current[t], LEFT] > 0 for t in trees]
        return [(t, node) for t in trees for node in nodes if node == 0 or cut[t]]

    def find_splits(self, frontier: Frontier, nodes: Sequence[int]) -> None:
        for t, node in self._alive(frontier, nodes):
            histogram = self.histogram(frontier.data, frontier.stats.quantised[t], self._rows(frontier, t, node))
            self._find_split(frontier, t, node, histogram, frontier.work.features)

    def _find_split(self, frontier: Frontier, t: int, node: int, histogram: IntArray, features: list[int]) -> None:
        score, edges, best = self.sweep(frontier, t, histogram, frontier.totals[t, node], features)
        frontier.edges[t, node] = edges
        row = frontier.nodes[t, node]
        row[[FEATURE, CUT, MISSING_LEFT]] = best
        row[KEY] = score - row[BASELINE] if CRITERIA[frontier.stats.criterion].votes else np.float64(score).view(np.int64)

    def histogram(self, data: BinnedMatrix, quantised: NDArray[np.int32], rows: NDArray[np.int32]) -> IntArray:
        bins = data.codes[:, rows] + data.bin_offsets[:-1, None]
        histogram = np.zeros((data.bin_offsets[-1], quantised.shape[1]), np.int64)
        np.add.at(histogram, bins, quantised[rows])
        return histogram

    def sweep(
        self, frontier: Frontier, t: int, histogram: IntArray, total: IntArray, features: list[int]
    ) -> tuple[float, IntArray, tuple[int, int, int]]:
        """Return the best score, its channels' edges, and its (feature, cut, missing_left)."""
        data, stats, sum_abs = frontier.data, frontier.stats, frontier.work.sum_abs[t]
        k = stats.n_classes
        best_score, best_edges, best = max(self.score(stats, sum_abs, total, 0 * total), 0), total, (-1, 0, 0)
        for f in features:
            h = histogram[data.bin_offsets[f] : data.bin_offsets[f + 1]]
            for cut in range(1, len(h)):
                if cut > 1 and not h[cut].any():
                    continue  # the same left side as before, and the first of equals is taken
                for missing_left in (1, 0):
                    left = h[1 : cut + 1].sum(axis=0) + missing_left * h[MISSING_CODE]
                    edges = total - 2 * left
                    score = self.score(stats, sum_abs, total, left)
                    counts = [left[k], total[k] - left[k]] if stats.min_count else [0]
                    if score > best_score and min(counts) >= stats.min_count:
                        best_score, best_edges, best = score, edges, (f, cut, missing_left)
        return best_score, best_edges, best

    def score(self, stats: Stats, sum_abs: IntArray, total: IntArray, left: IntArray) -> float:
        """Return what it is worth to cut a node with these sums; nothing on the left is the constant classifier."""
        k = stats.n_classes
        return CRITERIA[stats.criterion].score(left[:k].tolist(), total[:k].tolist(), sum_abs[:k].tolist())

    def pop_best_leaf(self, frontier: Frontier) -> bool:
        for t, nodes in enumerate(frontier.nodes):
            best = int(nodes[:, KEY].argmax())
            frontier.current[t] = best if nodes[best, KEY] > 0 else -1
            if nodes[best, KEY] > 0:
                nodes[best, [GAIN, KEY]] = nodes[best, KEY], CLOSED
                if nodes[best, FEATURE] >= 0:
                    nodes[best, LEFT] = 2 * frontier.step + 1
        frontier.step += 1
        return bool((frontier.current >= 0).any())

    def partition(self, frontier: Frontier) -> None:
        for t, left in self._alive(frontier, [2 * frontier.step - 1]):
            node = frontier.current[t]
            scope, stop, f, cut, missing_left = frontier.nodes[t, node, :LEFT]
            rows = self._rows(frontier, t, node)
            code = frontier.data.codes[f, rows]
            goes_left = (code <= cut) & ((code != MISSING_CODE) | (missing_left > 0))
            rows[:] = np.concatenate([rows[goes_left], rows[~goes_left]])
            middle = scope + goes_left.sum()
            total, edges = frontier.totals[t, node], frontier.edges[t, node]
            votes = np.where(edges > 0, 1, -1)  # eq. 13
            for child, side, bounds in ((left, -1, (scope, middle)), (left + 1, 1, (middle, stop))):
                frontier.totals[t, child] = (total + side * edges) // 2
                frontier.nodes[t, child, [START, STOP]] = bounds
                frontier.nodes[t, child, BASELINE] = (side * votes * frontier.totals[t, child])[: frontier.stats.n_voting].sum()

    def node_of_rows(self, frontier: Frontier) -> IntArray:
        node_of_row = np.zeros(frontier.rows.shape, np.int64)
        for t, node in np.argwhere(frontier.nodes[:, :, LEFT] == 0):
            node_of_row[t, self._rows(frontier, t, node)] = node
        return node_of_row

    # ---- growing trees whose rows are divided among workers ----------------------------------------------------------------

    def bin_offsets(self, frontier: Frontier) -> IntArray:
        offsets: IntArray = frontier.data.bin_offsets
        return offsets

    def roots(self, frontier: Frontier) -> tuple[IntArray, IntArray | None]:
        return frontier.totals[:, 0], frontier.work.sum_abs

    def set_roots(self, frontier: Frontier, totals: IntArray, sum_abs: IntArray | None) -> None:
        frontier.totals[:, 0] = totals
        frontier.work.sum_abs = sum_abs

    def count(self, frontier: Frontier, chosen: IntArray) -> IntArray:
        quantised, nodes = frontier.stats.quantised, [(t, node) for t, node in enumerate(chosen.tolist()) if node >= 0]
        return np.stack([self.histogram(frontier.data, quantised[t], self._rows(frontier, t, node)) for t, node in nodes], 1)

    def judge(
        self, frontier: Frontier, parents: IntArray, chosen: IntArray, sums: NDArray[Any], features: tuple[int, int]
    ) -> None:
        first, stop = features
        offsets, kept = frontier.data.bin_offsets, frontier.work.histograms
        own = [f for f in frontier.work.features if first <= f < stop]
        for place, t in enumerate(np.flatnonzero(chosen >= 0).tolist()):
            node, histogram = int(chosen[t]), np.zeros((offsets[-1], sums.shape[2]), np.int64)
            histogram[offsets[first] : offsets[stop]] = sums[:, place]
            kept[t, node] = histogram
            if node > 0:
                other = sibling(node)
                kept[t, other] = kept.pop((t, int(parents[t]))) - histogram
                self._find_split(frontier, t, other, kept[t, other], own)
            self._find_split(frontier, t, node, histogram, own)

    # ---- using trees -------------------------------------------------------------------------------------------------------

    def apply(self, tree: Tree, data: BinnedMatrix) -> IntArray:
        node = np.full(data.n_rows, tree.first, np.int64)
        while (inside := np.flatnonzero(node >= 0)).size:
            n = node[inside]
            code = data.codes[tree.feature[n], inside]
            goes_left = (code <= tree.cut[n]) & ((code != MISSING_CODE) | tree.missing_left[n])
            node[inside] = np.where(goes_left, tree.left[n], tree.right[n])
        return ~node

    def set_bit(
        self, cell: NDArray[np.int32], bit: int, data: BinnedMatrix, feature: int, cut: int, missing_left: bool
    ) -> None:
        cell &= ~(1 << bit)
        if feature >= 0:
            code = data.codes[feature]
            cell[(code <= cut) & ((code != MISSING_CODE) | missing_left)] |= 1 << bit

    def add_scores(self, scores: Floats, leaf_index: NDArray[Any], values: Floats) -> None:
        scores += values[leaf_index]

    def predict_until(self, ensemble: Ensemble, data: BinnedMatrix, scores: Floats, rule: ExitRule) -> NDArray[np.int32]:
        left_at, inside = np.full(len(scores), -1, np.int32), np.arange(len(scores))
        for checkpoint, (first, stop) in enumerate(pairwise([0, *rule.trees.tolist()])):
            for t in range(first, stop):
                tree = ensemble.tree(t)
                scores[inside] += tree.values[self.apply(tree, data)[inside]]
            leaves = rule.leaves(scores[inside], checkpoint)
            left_at[inside[leaves]] = checkpoint
            inside = inside[~leaves]
        return left_at

    def error(self, scores: Floats, target: NDArray[Any], units: IntArray) -> int:
        if target.ndim == 1:
            return int(units[scores.argmax(axis=1) != target].sum())
        return int((((scores > 0) != (target > 0)).sum(axis=1) * units).sum())

    def confusion(self, scores: Floats, target: NDArray[Any], units: IntArray) -> IntArray:
        counts = np.zeros((scores.shape[1], scores.shape[1]), np.int64)
        np.add.at(counts, (target, scores.argmax(axis=1)), units)
        return counts

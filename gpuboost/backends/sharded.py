"""A backend for one of several workers, each of which has a part of the rows.

Whatever a primitive sums over rows is summed again over the workers, as integers, before anything decides; a maximum is that
of all; all else is the work of an unchanged backend on the rows that are here. So the loops of boosters and learners, which run
the same on every worker, see the numbers of one process.

What a growth exchanges is in `gpuboost.backends.sharded_growth`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.divided import DividedGrowth
from gpuboost.backends.early_exit import ExitRule
from gpuboost.backends.frontier import WHOLE, Frontier, GrowthScope
from gpuboost.backends.label_weights import LabelWeights
from gpuboost.backends.points import UndividedPoints
from gpuboost.backends.sharded_growth import ShardedGrowth, room
from gpuboost.backends.statistics import Counts, Device, Shifts, SoftmaxRows, SoftmaxSteps, Stats
from gpuboost.binning import BinMapper, Binned, BinnedMatrix
from gpuboost.ensemble import Ensemble
from gpuboost.peers.base import Peers, agree, mark
from gpuboost.rectangles import Pixels, RectangleFeatures
from gpuboost.tree import Tree

GROWN_AS_A_WHOLE = "trees of several workers grow as a whole, see `ShardedBackend.run`"


@dataclass(frozen=True)
class ShardedMatrix:
    """A loaded matrix of the local backend, and what all workers' rows add up to.

    Attributes
    ----------
    local : device matrix
    n_rows : int
    rows_up_to : ndarray of int64, shape (n_features, 256)
        How many rows have at most this code.
    """

    local: Device
    n_rows: int
    rows_up_to: IntArray


class ShardedBackend(UndividedPoints, Backend):
    """See the module's docstring.

    Parameters
    ----------
    local : DividedGrowth
        Has the rows of this worker, and is closed with this one.
    peers : Peers
    """

    def __init__(self, local: DividedGrowth, peers: Peers) -> None:
        self.local, self.peers = local, peers
        self.device = local.device
        self.growth: ShardedGrowth | None = None

    def close(self) -> None:
        self.local.close()

    def total(self, array: Any, what: str) -> IntArray:
        """Return the sum of the workers' arrays in int64."""
        return self.peers.sum(np.asarray(array, np.int64), what)

    def totals(self, arrays: Sequence[IntArray], what: str) -> list[IntArray]:
        """Return the sums of several arrays by one exchange."""
        flat = self.total(np.concatenate([array.ravel() for array in arrays]), what)
        parts = np.split(flat, np.cumsum([array.size for array in arrays])[:-1])
        return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]

    def most(self, value: SupportsFloat, what: str) -> float:
        """Return the largest of the workers' values, none of which is negative."""
        return float(self.peers.max(np.array([float(value)]), what)[0])

    # ---- moving data -------------------------------------------------------------------------------------------------------

    def load(self, matrix: Binned) -> ShardedMatrix:
        if not isinstance(matrix, BinnedMatrix):
            raise TypeError(f"rows of several workers must be in memory, got a {type(matrix).__name__}")
        counts, n_rows = self.totals([matrix.code_counts, np.array([matrix.n_rows])], "code counts")
        local = self.local.load(replace(matrix, all_counts=counts))
        agree(self.peers, "which columns can be cut, and how many rows there are", self.local.usable(local), n_rows)
        return ShardedMatrix(local, int(n_rows[0]), counts.cumsum(axis=1))

    def encode(self, mapper: BinMapper, X: Any, rows: NDArray[np.intp] | None = None) -> ShardedMatrix:
        return self.load(mapper.transform(X, rows=rows, bin_block=self.local.bin_block))

    def rectangle_sums(self, images: Pixels, rows: NDArray[np.intp], features: RectangleFeatures) -> NDArray[np.int32]:
        return self.local.rectangle_sums(images, rows, features)

    def usable(self, data: ShardedMatrix) -> NDArray[np.bool_]:
        return self.local.usable(data.local)

    def put(self, array: NDArray[Any]) -> Device:
        return self.local.put(array)

    def put_one_hot(self, state: Floats) -> Device:
        return self.local.put_one_hot(state)

    def get(self, array: Device) -> NDArray[Any]:
        return self.local.get(array)

    # ---- row state and statistics ------------------------------------------------------------------------------------------

    def maximum(self, state: Device) -> float:
        return self.most(self.local.maximum(state), "maximum")

    def channel_sums(self, state: Device, frequency_weight: Device, shift: int) -> IntArray:
        return self.total(self.local.channel_sums(state, frequency_weight, shift), f"channel sums at shift {shift}")

    def quantise(
        self,
        state: Device,
        signs: Device,
        frequency_weight: Device,
        shift: int,
        counts: Counts | None = None,
        wide: bool = False,
    ) -> Stats:
        return self._of_all(self.local.quantise(state, signs, frequency_weight, shift, counts, wide), f"shift {shift}")

    def _of_all(self, stats: Stats, decided: str) -> Stats:
        """Return statistics with the sums of all workers."""
        parts = [stats.sum, stats.sum_abs] + ([] if stats.totals is None else [stats.totals])
        sums, sum_abs, *totals = self.totals(parts, f"sums of statistics at {decided}, least count {stats.min_count}")
        return replace(stats, sum=sums, sum_abs=sum_abs, totals=totals[0] if totals else None)

    def flip(self, stats: Stats, leaf_index: Device, signs: NDArray[np.int8]) -> Stats:
        flipped = self.local.flip(stats, leaf_index, signs)
        return replace(
            flipped, sum=self.total(flipped.sum, f"sums of statistics flipped by {mark(signs)}"), sum_abs=stats.sum_abs
        )

    def leaf_sums(self, stats: Stats, leaf_index: Device, n_leaves: int) -> tuple[IntArray, IntArray]:
        sums, sum_abs = self.local.leaf_sums(stats, leaf_index, n_leaves)
        if sum_abs is sums:  # of weights that have no sign
            both = self.total(sums, f"leaf sums at shift {stats.shift}")
            return both, both
        sums, sum_abs = self.totals([sums, sum_abs], f"leaf sums at shift {stats.shift}")
        return sums, sum_abs

    def row_weights(self, stats: Stats) -> IntArray:
        return self.local.row_weights(stats)

    def reweight(self, state: Device, signs: Device, leaf_index: Device, table: Floats) -> SupportsFloat:
        return self.most(self.local.reweight(state, signs, leaf_index, table), f"maximum after reweighting by {mark(table)}")

    def minimum(self, state: Device, limit: Device, scale: float, limit_scale: float) -> tuple[Device, SupportsFloat]:
        smaller, largest = self.local.minimum(state, limit, scale, limit_scale)
        return smaller, self.most(largest, f"maximum of minima at {scale}, {limit_scale}")

    def project(self, state: Device, signs: Device, coefficients: Floats) -> tuple[Device, Device, SupportsFloat]:
        magnitude, side, largest = self.local.project(state, signs, coefficients)
        return magnitude, side, self.most(largest, f"maximum of a projection on {mark(coefficients)}")

    # ---- probabilities of softmax boosters ---------------------------------------------------------------------------------

    def largest_miss(self, rows: SoftmaxRows) -> float:
        return self.most(self.local.largest_miss(rows), "largest miss")

    def softmax_sums(self, rows: SoftmaxRows, shift: int) -> tuple[IntArray, IntArray]:
        gradient, curvature = self.totals(self.local.softmax_sums(rows, shift), f"derivatives at shift {shift}")
        return gradient, curvature

    def softmax_statistics(
        self, rows: SoftmaxRows, pairs: IntArray, shifts: Shifts, counts: Counts, weights: Device | None = None
    ) -> Stats:
        own = self.local.softmax_statistics(rows, pairs, shifts, counts, weights)
        return self._of_all(own, f"shifts {shifts.gradient} and {shifts.curvature} of pairs {mark(pairs)}")

    def softmax_update(self, p: Device, steps: SoftmaxSteps, trees: Sequence[int]) -> None:
        self.local.softmax_update(p, steps, trees)

    def stack(self, leaf_indices: Sequence[Device]) -> Device:
        return self.local.stack(leaf_indices)

    def softmax_losses(
        self, rows: SoftmaxRows, steps: SoftmaxSteps, candidates: Sequence[Sequence[int]], shift: int
    ) -> IntArray:
        decided = mark(steps.pairs, steps.multipliers, *candidates)
        return self.total(self.local.softmax_losses(rows, steps, candidates, shift), f"losses after steps {decided}")

    def present_losses(self, rows: SoftmaxRows, shift: int) -> IntArray:
        return self.total(self.local.present_losses(rows, shift), f"losses at shift {shift}")

    # ---- growing trees -----------------------------------------------------------------------------------------------------

    def start_growth(self, data: ShardedMatrix, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        frontier = self.local.start_growth(data.local, stats, room(max_leaves), replace(scope, pruning=False))
        totals, sum_abs = self.local.roots(frontier)
        is_whole = scope.sample_indices is None
        if is_whole and (stats.totals is not None or len(stats.quantised) == 1):
            totals = stats.sum[None] if stats.totals is None else stats.totals
            sum_abs = None if sum_abs is None else stats.sum_abs[None]
        else:
            totals, *rest = self.totals([totals] + ([] if sum_abs is None else [sum_abs]), "totals of roots")
            sum_abs = rest[0] if rest else None
        self.local.set_roots(frontier, totals, sum_abs)
        self.growth = ShardedGrowth(self.local, self.peers, frontier, data.rows_up_to, max_leaves)
        return frontier

    def rows_by_leaf(self, leaf_index: Device, n_leaves: int, rows: Device | None = None) -> tuple[Device, IntArray]:
        return self.local.rows_by_leaf(leaf_index, n_leaves, rows)

    def run(self, frontier: Frontier, steps: Callable[[], None]) -> None:
        assert self.growth is not None
        self.growth.grow()

    def find_splits(self, frontier: Frontier, nodes: Sequence[int]) -> None:
        raise NotImplementedError(GROWN_AS_A_WHOLE)

    def pop_best_leaf(self, frontier: Frontier) -> bool:
        raise NotImplementedError(GROWN_AS_A_WHOLE)

    def partition(self, frontier: Frontier) -> None:
        raise NotImplementedError(GROWN_AS_A_WHOLE)

    def node_of_rows(self, frontier: Frontier) -> Device:
        return self.local.node_of_rows(frontier)

    def read_nodes(self, frontier: Frontier) -> tuple[IntArray, IntArray]:
        nodes, edges = self.local.read_nodes(frontier)
        return self._of_best_first(nodes), self._of_best_first(edges)

    def read_totals(self, frontier: Frontier) -> tuple[IntArray, IntArray]:
        nodes, totals = self.local.read_totals(frontier)
        return self._of_best_first(nodes), self._of_best_first(totals)

    def _of_best_first(self, nodes: IntArray) -> IntArray:
        """Return what belongs to the nodes that are left when the trees have grown, of those of the local frontier."""
        assert self.growth is not None
        return nodes[:, : self.growth.n_nodes]

    # ---- using trees -------------------------------------------------------------------------------------------------------

    def apply(self, tree: Tree, data: ShardedMatrix) -> Device:
        return self.local.apply(tree, data.local)

    def set_bit(self, cell: Device, bit: int, data: ShardedMatrix, feature: int, cut: int, missing_left: bool) -> None:
        self.local.set_bit(cell, bit, data.local, feature, cut, missing_left)

    def predict(self, ensemble: Ensemble, data: ShardedMatrix, scores: Device, first: int, stop: int) -> None:
        self.local.predict(ensemble, data.local, scores, first, stop)

    def predict_until(self, ensemble: Ensemble, data: ShardedMatrix, scores: Device, rule: ExitRule) -> Device:
        return self.local.predict_until(ensemble, data.local, scores, rule)

    def add_scores(self, scores: Device, leaf_index: Device, values: Floats) -> None:
        self.local.add_scores(scores, leaf_index, values)

    def add_trees(self, scores: Device, leaf_indices: Sequence[Device], values: Sequence[Floats]) -> None:
        self.local.add_trees(scores, leaf_indices, values)

    def error(self, scores: Device, target: Device, units: Device) -> int:
        return int(self.total(int(self.local.error(scores, target, units)), "weight of wrong predictions"))

    def weigh_labels(self, scores: Device, target: IntArray, weighting: str, first: int, stop: int) -> LabelWeights:
        return self.local.weigh_labels(scores, target, weighting, first, stop)

    def confusion(self, scores: Device, target: Device, units: Device) -> IntArray:
        return self.total(self.local.confusion(scores, target, units), "weight of predictions by class")

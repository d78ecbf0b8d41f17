"""The contract between boosting and devices: what a backend must do, and how exactly.

A backend is the only place that knows a device. It offers the primitives below; boosters and learners are written on top of
them once. Two backends given the same input must return the same integers and the same float64 bits, so every primitive states
how its result is determined. The NumPy backend is the reference that the others are tested against.

Arrays with a row axis live on the device and are opaque to the callers (`Device`); everything else is NumPy on the host.
The batch axis T is the number of trees that grow side by side; boosters that grow one tree a round have T = 1.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, SupportsFloat, SupportsInt

import numpy as np
from numpy.typing import NDArray

from gpuboost import fixedpoint
from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.frontier import WHOLE, Frontier, GrowthScope
from gpuboost.backends.label_weights import LabelWeights, label_weights
from gpuboost.backends.points import PointPrimitives
from gpuboost.backends.scoring import ScoresRows
from gpuboost.backends.statistics import Counts, Device, Shifts, SoftmaxRows, SoftmaxSteps, SoftmaxSummary, Stats
from gpuboost.ensemble import Ensemble
from gpuboost.peers.base import ALONE, Peers
from gpuboost.rectangles import Pixels, RectangleFeatures, rectangle_sums
from gpuboost.tree import Tree


class Backend(PointPrimitives, ScoresRows, AbstractContextManager["Backend"]):
    """What boosting needs of a device. See the module's docstring for the rules."""

    device: str
    """What estimators report as ``device_``."""

    reads_device_arrays: bool = False
    """Whether `encode` takes arrays that lie on a CUDA device."""

    peers: Peers = ALONE
    """The workers that train together, each on a part of the rows, see `gpuboost.backends.sharded`."""

    # ---- moving data -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def put(self, array: NDArray[Any]) -> Device:
        """Return a device array with the contents of ``array`` (which may or may not share memory with it)."""

    def put_one_hot(self, state: Floats) -> Device:
        """Return a row state (n_rows, K) whose rows have one positive entry each, at a sign of +1, and zeros beside it.

        A backend may keep it in a form of its own, which its primitives and `get` know. The results are the same.
        """
        return self.put(state)

    @abstractmethod
    def get(self, array: Device) -> NDArray[Any]:
        """Return a host array with the contents of the device array ``array``."""

    def close(self) -> None:
        """Give back threads and device memory."""

    def __exit__(self, *exception: object) -> None:
        self.close()

    def rectangle_sums(self, images: Pixels, rows: NDArray[np.intp], features: RectangleFeatures) -> NDArray[np.int32]:
        """Return features of images on the host, int32 (n_features, n_rows). Exact. See `gpuboost.rectangles`."""
        return rectangle_sums(images, rows, features)

    @abstractmethod
    def usable(self, data: Device) -> NDArray[np.bool_]:
        """Return which features of a loaded matrix can be cut, see `gpuboost.binning.BinnedMatrix.usable`."""

    # ---- row state and statistics ------------------------------------------------------------------------------------------

    @abstractmethod
    def maximum(self, state: Device) -> float:
        """Return the largest entry of ``state`` (n_rows, C), float64. Exact."""

    @abstractmethod
    def channel_sums(self, state: Device, frequency_weight: Device, shift: int) -> IntArray:
        """Return ``sum_i frequency_weight_i * rint(state_ic * 2**shift)``, shape (C,), summed in int64. Exact."""

    @abstractmethod
    def quantise(
        self,
        state: Device,
        signs: Device,
        frequency_weight: Device,
        shift: int,
        counts: Counts | None = None,
        wide: bool = False,
    ) -> Stats:
        """Return the fixed-point statistics of a float64 ``state`` (n_rows, K) with int8 ``signs`` (n_rows, K). Exact.

        ``wide`` says whether sums of a channel may pass ``2**30``.
        """

    def statistics(
        self,
        state: Device,
        signs: Device,
        frequency_weight: Device,
        n_rows: int,
        maximum: SupportsFloat,
        counts: Counts | None = None,
    ) -> Stats:
        """Quantise ``state`` with the shift of the shift rule (see `gpuboost.fixedpoint`).

        ``n_rows`` is the sum of ``frequency_weight``, ``maximum`` that of the state: a float, or what `reweight` has returned.
        """
        first = fixedpoint.first_shift(float(maximum))
        largest = int(self.channel_sums(state, frequency_weight, first).max())
        shift, wide = fixedpoint.final_shift(first, largest, n_rows), fixedpoint.is_wide(n_rows)
        return self.quantise(state, signs, frequency_weight, shift, counts, wide)

    @abstractmethod
    def flip(self, stats: Stats, leaf_index: Device, signs: NDArray[np.int8]) -> Stats:
        """Return statistics with ``quantised[i, k]`` times ``signs[leaf_index[i], k]``, -1 or +1; signs (n_leaves, K)."""

    @abstractmethod
    def leaf_sums(self, stats: Stats, leaf_index: Device, n_leaves: int) -> tuple[IntArray, IntArray]:
        """Return the sums of ``quantised`` and of its magnitudes over the rows of each leaf, both (n_leaves, K). Exact."""

    @abstractmethod
    def row_weights(self, stats: Stats) -> IntArray:
        """Return the boosting weight of each row in every tree of the batch, shape (T, n_rows), on the host. Exact.

        That is the sum of abs(quantised) over the classes; with the criterion "newton" it is the curvature, the last of the
        classes (section 9 of Friedman, Hastie and Tibshirani 2000; the influence of Friedman 2001).
        """

    @abstractmethod
    def reweight(self, state: Device, signs: Device, leaf_index: Device, table: Floats) -> SupportsFloat:
        """Multiply ``state[i, c]`` in place by ``table[leaf_index[i], s, c]``, where s is 1 for a sign of +1, 0 for -1.

        A positive entry does not fall below `gpuboost.fixedpoint.STATE_FLOOR`; a zero stays zero. One rounding an entry.
        Returns the new maximum. Only ``float()`` of it needs to wait for the device.
        """

    def minimum(self, state: Device, limit: Device, scale: float, limit_scale: float) -> tuple[Device, SupportsFloat]:
        """Return ``min(state[i, c] * scale, limit[i, c] * limit_scale)`` as a new row state, and its maximum.

        The factors are powers of two. It is computed on the host, the same everywhere; a backend may override it.
        """
        with np.errstate(over="ignore"):  # an infinite product is never the smaller one
            smaller = np.minimum(self.get(state) * scale, self.get(limit) * limit_scale)
        return self.put(smaller), float(smaller.max())

    @abstractmethod
    def project(self, state: Device, signs: Device, coefficients: Floats) -> tuple[Device, Device, SupportsFloat]:
        """Return ``r_i = sum_c signs[i, c] state[i, c] coefficients[c]`` as a row state, signs and its maximum.

        In float64, channel by channel in order: one rounding for each product and each sum. The state (n_rows, 1) is abs(r_i),
        or 0 if that is below `gpuboost.fixedpoint.STATE_FLOOR`; the signs (n_rows, 1) are -1 where ``r_i < 0``, else +1.
        """

    # ---- probabilities of softmax boosters ---------------------------------------------------------------------------------
    #
    # c_k = 1 - p_k is computed as the sum of the other probabilities in class order where p_k > 1/2, so that it stays accurate
    # when p_k is nearly 1. f is a row's weight scale. A product of several numbers is taken from the left.

    @abstractmethod
    def largest_miss(self, rows: SoftmaxRows) -> float:
        """Return the largest ``f_i c_iy`` of the rows, y being a row's class. Exact."""

    @abstractmethod
    def softmax_sums(self, rows: SoftmaxRows, shift: int) -> tuple[IntArray, IntArray]:
        """Return ``sum_i frequency_weight_i rint(2**shift f_i abs(g_ik))`` and the same of ``h_ik``, both (n_classes,). Exact.

        ``g_ik`` is ``c_ik`` for the row's class and ``-p_ik`` for others, ``h_ik = p_ik c_ik``.
        """

    @abstractmethod
    def softmax_statistics(
        self, rows: SoftmaxRows, pairs: IntArray, shifts: Shifts, counts: Counts, weights: Device | None = None
    ) -> Stats:
        """Return the statistics of a batch of Newton trees, with the criterion "newton". Exact. Valid until the next call.

        The channels are ``g``, the weights (n_rows,) int32 if given, ``h``, and the counts. ``pairs`` (n_trees, 2) are the base
        class and the class of each tree. With the units ``G_k = rint(2**shifts.gradient (f g_k))`` its ``g`` is
        ``frequency_weight (G_k - G_base)`` and its ``h`` is ``frequency_weight rint(2**shifts.curvature (f ((h_base + h_k) + 2
        (p_base p_k))))`` (eqs. 10 and 11 of Li 2010). A base class of -1 is none: the terms with it are left out.
        """

    @abstractmethod
    def softmax_update(self, p: Device, steps: SoftmaxSteps, trees: Sequence[int]) -> None:
        """Take some trees of a batch into the probabilities ``p`` (n_rows, n_classes), in place.

        In the order of ``trees`` ``p[i, k]`` is multiplied by ``multipliers[t, leaf_indices[t, i], 0]``, and that of the base
        class, if there is one, by ``multipliers[t, leaf_indices[t, i], 1]``. Then a row is divided by its sum, taken in class
        order, and no entry falls below `gpuboost.fixedpoint.STATE_FLOOR`.
        """

    @abstractmethod
    def stack(self, leaf_indices: Sequence[Device]) -> Device:
        """Return arrays (n_rows,) of int as one, shape (n_arrays, n_rows)."""

    @abstractmethod
    def softmax_losses(
        self, rows: SoftmaxRows, steps: SoftmaxSteps, candidates: Sequence[Sequence[int]], shift: int
    ) -> IntArray:
        """Return the log-loss that the rows of each class would have after each of several selections of the trees.

        Each has the trees ``candidates[j]`` alone, and probabilities as after `softmax_update`. The rows are left as they are.

        Returns
        -------
        ndarray of int64, shape (n_candidates, n_classes)
            ``sum_i frequency_weight_i rint(2**shift (f_i minus_log2(p_iy)))`` over the rows of each class y, with
            `gpuboost.exactmath.minus_log2`. Exact.
        """

    def present_losses(self, rows: SoftmaxRows, shift: int) -> IntArray:
        """Return the log-loss of the rows of each class as it is, (n_classes,): `softmax_losses` without trees."""
        no_trees = SoftmaxSteps(self.put(np.zeros((1, len(rows.target)), np.int32)), np.array([[-1, 0]]), np.ones((1, 1, 2)))
        (losses,) = self.softmax_losses(rows, no_trees, [()], shift)
        return np.asarray(losses)

    def softmax_summary(self, rows: SoftmaxRows, shift: int) -> SoftmaxSummary:
        """Return what a round asks of the rows, with losses in units of ``2**-shift`` as in `softmax_losses`.

        A device can work it all out at once, so that the host waits for it once.
        """
        largest = self.largest_miss(rows)
        sums = self.softmax_sums(rows, fixedpoint.first_shift(largest))
        return SoftmaxSummary(largest, *sums, self.present_losses(rows, shift))

    # ---- growing trees -----------------------------------------------------------------------------------------------------

    @abstractmethod
    def start_growth(self, data: Device, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        """Return a frontier in which every tree of the batch is a root that holds the rows of ``scope``.

        The arrays may be reused: a frontier is valid until the next call.
        """

    def rows_by_leaf(self, leaf_index: Device, n_leaves: int, rows: Device | None = None) -> tuple[Device, IntArray]:
        """Return all rows, or ``rows``, sorted by leaf, and the bounds of the leaves: see `GrowthScope`.

        ``leaf_index`` has the leaf of every row of the data. Rows of a leaf keep their order.
        """
        of_row = self.get(leaf_index).astype(np.uint16 if n_leaves <= 2**16 else np.int32)  # 16 bits are sorted by radix
        numbers = np.arange(len(of_row), dtype=np.int32) if rows is None else self.get(rows)
        of_row = of_row[numbers]
        found = numbers[np.argsort(of_row, kind="stable")]
        return self.put(found), np.concatenate([[0], np.cumsum(np.bincount(of_row, minlength=n_leaves))])

    def run(self, frontier: Frontier, steps: Callable[[], None]) -> None:
        """Run ``steps``, the growth of a frontier that has just been started.

        Growths with the same data, sizes and ``max_leaves`` differ only in the numbers of their statistics and scopes. So a
        device that works asynchronously can record the first growth and replay its work for the next ones.
        """
        steps()

    @abstractmethod
    def find_splits(self, frontier: Frontier, nodes: Sequence[int]) -> None:
        """Find the best classifier of ``nodes`` (either the root, or the two children of the current node) in every tree.

        The histogram ``H[bin, c]`` is the sum of ``quantised[i, c]`` over a node's rows with that bin, and ``L_c`` the sum of H
        over the bins that a split sends to the left. The score of a split is ``sum_k abs(P_k - 2 L_k)`` over the classes (eq.
        11 with the votes of eq. 13 of Kegl 2014), that of the constant classifier ``sum_k abs(P_k)``. The highest score wins;
        ties go to the constant classifier, then to the lowest feature, then the lowest cut, then missing-left. A split with a
        side whose counts are below ``min_count`` is no candidate. The node is queued with its score minus its baseline as key.
        Exact.

        With the criterion "gini" the score of a split is ``purity(L) + purity(P - L) - purity(P)`` with

            purity(S) = (sum_k S_k S_k) / (sum_k S_k), or 0 if that sum is 0,

        in float64: every S_k becomes a float64, the sums are taken in the order of the classes, and the two additions from the
        left (the decrease of the weighted Gini impurity; section 3.3 of the GAMBLE paper has the same optimum). The constant
        classifier's score is 0.

        With the criterion "newton" the score of a split is ``gain(L) + gain(P - L) - gain(P)`` with ``gain(S) = (S_0 S_0) /
        S_1`` in float64, a gradient and a curvature (or a weight); a split with a side where ``S_1`` is 0 is no candidate. The
        constant classifier's score is 0.

        With the criterion "rebel", which is for roots, the score of a split is ``loss(P) - loss(P - 2 L)``, at least 0, with

            loss(D) = sum_k sqrt((T_k + D_k) (T_k - D_k))

        and T_k the sum of abs(quantised) over the root's rows: what is left of the exponential loss when every class has its
        best coefficient (``2 sqrt(s+ s-)`` in eq. 4.10 of Appel's thesis). In float64: the two terms of the product are exact,
        the product and the root are rounded once each, and the sum is taken in the order of the classes. The constant
        classifier's score is 0.

        With the criterion "entropy" the score of a split is ``(bits(P) - bits(L)) - bits(P - L)`` with

            bits(S) = sum_k S_k minus_log2(S_k / sum_j S_j), over the classes with S_k > 0,

        in float64: every S_k and the sum become a float64, `gpuboost.exactmath.minus_log2` is taken of their quotient, and the
        sum is taken in the order of the classes (the decrease of the weighted entropy). The constant classifier's score is 0.

        `gpuboost.backends.criteria` has these operations as code.
        """

    @abstractmethod
    def pop_best_leaf(self, frontier: Frontier) -> bool:
        """Pop the node with the largest positive key in every tree (ties to the lowest node) into ``current``.

        Returns False if no tree has one. (A backend that cannot know without waiting for its device may return True.)
        """

    @abstractmethod
    def partition(self, frontier: Frontier) -> None:
        """Divide the rows of the current nodes between their children and fill in the children's table rows.

        A child gets its rows, its totals and its baseline.
        The order of rows within a child is free. A current node whose best classifier is constant is left whole.
        """

    @abstractmethod
    def node_of_rows(self, frontier: Frontier) -> Device:
        """Return the leaf that each row has arrived in, as node numbers, shape (T, n_rows).

        For trees that started from all rows; others have `apply`.
        """

    def read_nodes(self, frontier: Frontier) -> tuple[IntArray, IntArray]:
        """Return host copies of a grown frontier's ``nodes`` and ``edges``. A device is waited for once."""
        return self.get(frontier.nodes), self.get(frontier.edges)

    def read_totals(self, frontier: Frontier) -> tuple[IntArray, IntArray]:
        """Return host copies of a grown frontier's ``nodes`` and ``totals``. A device is waited for once."""
        return self.get(frontier.nodes), self.get(frontier.totals)

    # ---- using trees -------------------------------------------------------------------------------------------------------

    @abstractmethod
    def apply(self, tree: Tree, data: Device) -> Device:
        """Return the leaf number of every row of ``data``, shape (n_rows,)."""

    @abstractmethod
    def set_bit(self, cell: Device, bit: int, data: Device, feature: int, cut: int, missing_left: bool) -> None:
        """Set bit ``bit`` of ``cell[i]``, int32 (n_rows,), where row i goes left at a split, and clear it elsewhere.

        The split is that of a `gpuboost.tree.Tree`; with feature -1 there is none, and no row goes left.
        """

    def predict(self, ensemble: Ensemble, data: Device, scores: Device, first: int, stop: int) -> None:
        """Add the values of the trees ``first .. stop - 1`` to ``scores`` in place, tree by tree in float64."""
        for t in range(first, stop):
            tree = ensemble.tree(t)
            self.add_scores(scores, self.apply(tree, data), tree.values)

    @abstractmethod
    def add_scores(self, scores: Device, leaf_index: Device, values: Floats) -> None:
        """Add ``values[leaf_index[i], k]`` to ``scores[i, k]`` in place; float64, one rounding an entry."""

    def add_trees(self, scores: Device, leaf_indices: Sequence[Device], values: Sequence[Floats]) -> None:
        """`add_scores` for one tree after another."""
        for leaf_index, own in zip(leaf_indices, values, strict=True):
            self.add_scores(scores, leaf_index, own)

    @abstractmethod
    def error(self, scores: Device, target: Device, units: Device) -> SupportsInt:
        """Return the weight of wrong predictions, in units. Exact. Only ``int()`` of it needs to wait for the device.

        With a 1-D ``target`` of class indices a row is wrong if the first largest of its scores is not at its class; with a
        2-D ``target`` of signs every (row, class) counts, and a score of 0 predicts -1. ``units`` is int64 (n_rows,).
        """

    def weigh_labels(self, scores: Device, target: IntArray, weighting: str, first: int, stop: int) -> LabelWeights:
        """Return what the rows ``first .. stop - 1`` weigh for each wrong label, on the host. Exact.

        ``target`` are the classes of all rows, on the host, and ``weighting`` is one of `gpuboost.backends.label_weights`.
        """
        return label_weights(self.get(scores)[first:stop], target[first:stop], weighting)

    @abstractmethod
    def confusion(self, scores: Device, target: Device, units: Device) -> IntArray:
        """Return the weight of the rows by true and by predicted class, shape (n_classes, n_classes), in units. Exact.

        ``target`` is 1-D; the predicted class is the first largest score, as in `error`, which returns one number in place of
        ``n_classes**2``.
        """

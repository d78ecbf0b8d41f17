"""What trees are grown from: rows as integers, their sums, and the probabilities of softmax boosters."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.criteria import CRITERIA, Criterion

Device: TypeAlias = Any
"""An array, or a structure of arrays, that lives where its backend wants it."""


@dataclass
class Stats:
    """Row statistics in fixed point, the integers that trees are grown from.

    Attributes
    ----------
    quantised : device array of int32, shape (T, n_rows, >= n_channels)
        ``sign * frequency_weight * rint(state * 2**shift)``, one channel per class; if ``min_count`` is positive, a last
        channel has the rows' counts. A backend may pad the last axis with zeros.
    shift : int
        The unit of ``quantised`` is ``2**-shift``.
    sum : ndarray of int64, shape (n_channels,)
        Sum of ``quantised`` over the trees and rows.
    sum_abs : ndarray of int64, shape (n_classes,)
        Sum of ``abs(quantised)`` over the trees and rows.
    min_count : int
        The least sum of counts that both sides of a split must have. 0: any split is allowed.
    criterion : {"edge", "gini", "newton", "rebel", "entropy"}
        How splits are scored. For "gini" and "entropy" no entry of ``quantised`` is negative; "rebel" is for trees of two
        leaves.
    totals : ndarray of int64, shape (n_trees, n_channels), optional
        The sums of ``quantised`` over the rows, where they are known already.
    one_hot : bool
        A backend's own: whether ``quantised`` has the columns (class, weight) or (class, weight, count) instead, see
        `Backend.put_one_hot`.
    wide : bool
        Whether a channel's sums may pass ``2**30``, so that they are int64 everywhere; see `gpuboost.fixedpoint`.
    """

    quantised: Device
    shift: int
    sum: IntArray
    sum_abs: IntArray
    min_count: int = 0
    criterion: Criterion = "edge"
    totals: IntArray | None = None
    one_hot: bool = False
    wide: bool = False

    @property
    def n_channels(self) -> int:
        return len(self.sum)

    @property
    def n_classes(self) -> int:
        return len(self.sum_abs)

    @property
    def total(self) -> int:
        """The total weight, in units."""
        return int(self.sum_abs.sum())

    def of_tree(self, t: int) -> Stats:
        """Return the statistics of tree t alone, for primitives that take one tree's."""
        return replace(self, quantised=self.quantised[t : t + 1], totals=None)

    @property
    def n_voting(self) -> int:
        """The number of channels whose edges a node's baseline is made of."""
        return self.n_classes if CRITERIA[self.criterion].votes else 0


@dataclass(frozen=True)
class Counts:
    """Integer counts of the rows, from their sample weights, for the smallest leaf that is allowed.

    Attributes
    ----------
    of_row : device array of int32, shape (n_rows,)
        Their sum is that of a channel: below ``2**30``, or below ``2**49`` in wide statistics.
    minimum : int
        The least sum of a leaf, at least 1.
    """

    of_row: Device
    minimum: int


class SoftmaxRows(NamedTuple):
    """Rows with their class probabilities.

    Attributes
    ----------
    p : device array of float64, shape (n_rows, n_classes)
        Changed in place.
    target : device array of int32, shape (n_rows,)
        The row's class.
    frequency_weight : device array of int32, shape (n_rows,)
    weight_scale : device array of float64, shape (n_rows,)
        See `gpuboost.fixedpoint.split_weights`.
    """

    p: Device
    target: Device
    frequency_weight: Device
    weight_scale: Device


class SoftmaxSteps(NamedTuple):
    """What the trees of a batch do to the probabilities of rows, see `gpuboost.backends.base.Backend.softmax_update`.

    Attributes
    ----------
    leaf_indices : device array of int, shape (n_trees, n_rows)
    pairs : ndarray of int64, shape (n_trees, 2)
        Each tree's base class, or -1, and class.
    multipliers : ndarray of float64, shape (n_trees, n_leaves, 2)
        Of the class and of the base class.
    """

    leaf_indices: Device
    pairs: IntArray
    multipliers: Floats


class SoftmaxSummary(NamedTuple):
    """What a round asks of the rows' probabilities.

    Attributes
    ----------
    largest_miss : float
        The largest ``f_i c_iy`` of the rows.
    gradient, curvature : ndarray of int64, shape (n_classes,)
        The sums of `gpuboost.backends.base.Backend.softmax_sums` with the first shift of the largest miss.
    losses : ndarray of int64, shape (n_classes,)
        The loss of the rows of every class, in units.
    """

    largest_miss: float
    gradient: IntArray
    curvature: IntArray
    losses: IntArray


class Shifts(NamedTuple):
    """The units of gradients and of curvatures are ``2**-shift``; ``wide`` is that of the `Stats`."""

    gradient: int
    curvature: int
    wide: bool = False

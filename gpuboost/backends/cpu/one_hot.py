"""What the CPU backend makes of row states with one entry a row, as the boosters of the multi-class exponential loss have them.

A row costs one weight instead of one a class; and one without a unit of weight is left out of the growth, since it adds to no
sum: as boosting goes on, that can be most of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.jit import Array, Float, compiled
from gpuboost.fixedpoint import STATE_FLOOR

CLASS, WEIGHT, COUNT = range(3)
"""Columns of the statistics."""


@dataclass(frozen=True, eq=False)
class OneHot:
    """A row state of zeros but for one positive entry in each row.

    Attributes
    ----------
    weight : ndarray of float64, shape (n_rows, 1)
        The entries.
    label : ndarray of int32, shape (n_rows,)
        Their columns.
    n_classes : int
    """

    weight: NDArray[np.float64]
    label: NDArray[np.int32]
    n_classes: int

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.label), self.n_classes

    @classmethod
    def of(cls, state: NDArray[np.float64]) -> OneHot:
        label = state.argmax(axis=1).astype(np.int32)
        return cls(np.take_along_axis(state, label[:, None], axis=1), label, state.shape[1])

    def dense(self) -> NDArray[np.float64]:
        """Return the state as an array."""
        state = np.zeros((len(self.label), self.n_classes))
        np.put_along_axis(state, self.label[:, None], self.weight, axis=1)
        return state


@compiled
def class_sums(lo: int, hi: int, weight: Array, label: Array, frequency_weight: Array, scale: float, n_classes: int) -> Array:
    sums = np.zeros(n_classes, np.int64)
    for i in range(lo, hi):
        sums[label[i]] += np.int64(frequency_weight[i]) * np.int64(np.rint(weight[i, 0] * scale))
    return sums


@compiled
def quantise(
    lo: int, hi: int, weight: Array, label: Array, frequency_weight: Array, scale: float, n_classes: int, quantised: Array
) -> Array:
    sums = np.zeros(n_classes, np.int64)
    for i in range(lo, hi):
        units = np.int32(np.int32(frequency_weight[i]) * np.int32(np.rint(weight[i, 0] * scale)))
        quantised[i, CLASS], quantised[i, WEIGHT] = label[i], units
        sums[label[i]] += np.int64(units)
    return sums


@compiled
def reweight(lo: int, hi: int, weight: Array, label: Array, leaf_index: Array, table: Array) -> Float:
    largest = 0.0
    for i in range(lo, hi):
        product = weight[i, 0] * table[leaf_index[i], 1, label[i]]
        product = product if product > STATE_FLOOR else STATE_FLOOR
        weight[i, 0] = product
        largest = product if product > largest else largest
    return largest


@compiled
def leaf_sums(lo: int, hi: int, quantised: Array, leaf_index: Array, n_leaves: int, n_classes: int) -> Array:
    sums = np.zeros((n_leaves, n_classes), np.int64)
    for i in range(lo, hi):
        sums[leaf_index[i], quantised[i, CLASS]] += np.int64(quantised[i, WEIGHT])
    return sums


@compiled
def rows_with_weight(quantised: Array) -> Array:
    """Return the numbers of the rows whose weight is not 0."""
    rows = np.empty(len(quantised), np.int32)
    n = 0
    for i in range(len(quantised)):
        rows[n] = i
        n += quantised[i, WEIGHT] != 0
    return rows[:n]

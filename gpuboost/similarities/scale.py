"""How values become small integers: then squared distances are integers, too, and the same on every device.

A feature's level is ``rint((x - low) / unit)``, clipped to ``0 .. top``. Eight bits lose nothing that can be measured (errors
after 400 rounds on handwritten digits are those of float64), four are too few.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray

Scaling = Literal["standard", "common"]

MAX_LEVELS = 256
"""Levels are uint8."""
SPREAD = 4.0
"""With the scaling "standard" the levels reach so many standard deviations to both sides of the mean."""
FINE = 2**16 - 1
"""Means and standard deviations are those of values in steps of the range over this: sums of integers, of any order."""
MAX_SQUARED_DISTANCE = 2**29
"""The drop rule of the search takes ``20 d**2`` of a squared distance d, which must fit in int64: a power of two below that."""
BLOCK_BYTES = 32 << 20
"""Rows are scaled in blocks that take about this much memory as float64."""


@dataclass(frozen=True)
class FeatureScale:
    """The levels of the features.

    Attributes
    ----------
    low : ndarray of float64, shape (n_features,)
        The value at level 0.
    unit : ndarray of float64, shape (n_features,)
        Between neighbouring levels; positive.
    top : ndarray of uint8, shape (n_features,)
        The largest level; 0 for a feature whose values are all the same.
    missing : ndarray of uint8, shape (n_features,)
        The level of a missing value: that of the mean.
    """

    low: Floats
    unit: Floats
    top: NDArray[np.uint8]
    missing: NDArray[np.uint8]

    @property
    def n_features(self) -> int:
        return len(self.low)

    @classmethod
    def fit(cls, X: NDArray[Any], weights: IntArray, n_levels: int, scaling: Scaling) -> FeatureScale:
        """Choose the levels by the rows of X.

        Parameters
        ----------
        X : ndarray, shape (n_rows, n_features)
            Of any real dtype; NaN is missing, and infinities count for nothing here.
        weights : ndarray of int64, shape (n_rows,)
            What each row counts in the means; their sum is below ``2**30``. A row of weight 0 does not exist.
        n_levels : int
            2 to 256.
        scaling : {"standard", "common"}
            "standard": the levels of a feature reach `SPREAD` standard deviations to both sides of its mean, but no further
            than its values. "common": all features have the same unit, and the one with the widest range has all levels.

        Raises
        ------
        ValueError
            If squared distances could pass `MAX_SQUARED_DISTANCE`.
        """
        check_size(X.shape[1], n_levels)
        columns = [Column.of(X[:, f], weights) for f in range(X.shape[1])]
        low, high, mean, deviation = (np.array([getattr(one, name) for one in columns]) for name in Column.NAMES)
        if scaling == "standard":
            with np.errstate(over="ignore"):  # beyond all values is as good as infinity
                low, high = np.maximum(low, mean - SPREAD * deviation), np.minimum(high, mean + SPREAD * deviation)
        width = high / 2 - low / 2  # halves do not overflow
        widest = width.max(initial=0.0) if scaling == "common" else width
        half_unit = np.broadcast_to(widest / (n_levels - 1), width.shape)
        is_constant = (width <= 0) | (half_unit == 0)
        half_unit = np.where(is_constant, 0.5, half_unit)
        unit = 2 * np.minimum(half_unit, np.finfo(float).max / 2)
        whole = cls(low, unit, np.where(is_constant, 0, n_levels - 1).astype(np.uint8), np.zeros(len(low), np.uint8))
        (top,), (missing,) = whole.transform(high[None]), whole.transform(mean[None])
        return cls(low, whole.unit, top, missing)

    def transform(self, X: NDArray[Any], rows: NDArray[np.intp] | None = None) -> NDArray[np.uint8]:
        """Return the levels of X, or of ``X[rows]``, shape (n_rows, n_features). One rounding an operation in float64."""
        n_rows = X.shape[0] if rows is None else len(rows)
        levels = np.empty((n_rows, self.n_features), np.uint8)
        step = max(1, BLOCK_BYTES // (8 * max(1, self.n_features)))
        for first in range(0, n_rows, step):
            own = slice(first, first + step)
            with np.errstate(over="ignore", invalid="ignore"):  # of long doubles, and infinities
                values = (X[own] if rows is None else X[rows[own]]).astype(np.float64)
                found = np.rint((values / 2 - self.low / 2) / (self.unit / 2))
                levels[own] = np.where(np.isnan(values), self.missing, np.clip(found, 0, self.top))
        return levels

    def values(self, levels: NDArray[np.uint8]) -> Floats:
        """Return the values that levels stand for."""
        found: Floats = self.low + levels * self.unit
        return found


@dataclass(frozen=True)
class Column:
    """What is known of the finite values of a feature: 0 everywhere if there are none."""

    low: float
    high: float
    mean: float
    deviation: float

    NAMES = ("low", "high", "mean", "deviation")

    @classmethod
    def of(cls, column: NDArray[Any], weights: IntArray) -> Column:
        with np.errstate(over="ignore", invalid="ignore"):
            values = column.astype(np.float64)
        counts = np.isfinite(values) & (weights > 0)
        values, weights = values[counts], weights[counts]
        if not len(values):
            return cls(0.0, 0.0, 0.0, 0.0)
        low, high = float(values.min()), float(values.max())
        step = (high / 2 - low / 2) / FINE  # half of a fine step
        if step == 0:
            return cls(low, high, low, 0.0)
        fine = np.rint((values / 2 - low / 2) / step).astype(np.int64)
        total, first, second = (int(sums) for sums in (weights.sum(), (weights * fine).sum(), (weights * fine * fine).sum()))
        variance = (total * second - first * first) / (total * total)  # integers of any length, rounded once
        return cls(low, high, low + 2 * step * (first / total), 2 * step * float(np.sqrt(variance)))


def check_size(n_features: int, n_levels: int) -> None:
    """Raise a ValueError if squared distances could pass `MAX_SQUARED_DISTANCE`."""
    most = MAX_SQUARED_DISTANCE // (n_levels - 1) ** 2
    if n_features > most:
        raise ValueError(
            f"distances between rows of {n_features} features with max_bins={n_levels} levels do not fit in 31 bits: at most "
            f"{most} features can have so many levels; choose a smaller max_bins, or fewer features"
        )

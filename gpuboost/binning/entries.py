"""The distinct values of a column that one worker has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.binning.columns import distinct
from gpuboost.binning.keys import HIGHEST, LOWEST, Keys, to_keys
from gpuboost.binning.parts import Part


@dataclass(frozen=True, eq=False)
class Entries:
    """One worker's distinct values of a column.

    Attributes
    ----------
    keys : uint64 (n + 2,)
        Ascending, between the lowest and the highest key, which stand for no number.
    passed : int64 (n + 2,)
        The weight of the keys before each one.
    has_missing : bool
    """

    keys: Keys
    passed: IntArray
    has_missing: bool

    @classmethod
    def of(cls, column: NDArray[np.generic], units: IntArray | None) -> Entries:
        """The entries of a column whose rows have the given weights, or 1 each."""
        values, weights = distinct(column, units)
        return cls(
            keys=np.concatenate([[LOWEST], to_keys(values.astype(np.float64)), [HIGHEST]]),
            passed=np.concatenate([np.zeros(2, np.int64), np.cumsum(weights, dtype=np.int64)]),
            has_missing=bool(np.isnan(column).any()),
        )

    def part(self, known: Keys, groups: NDArray[np.intp], most_entries: int, n_pivots: int) -> Part:
        """All entries in some groups if there are at most so many, else some keys at equal steps of them.

        Group g lies between the known keys g - 1 and g, which are no part of it.
        """
        firsts = np.append(1, np.searchsorted(self.keys, known, side="right"))[groups]
        lasts = np.append(np.searchsorted(self.keys, known), self.keys.size - 1)[groups]
        passed = np.cumsum(lasts - firsts)
        n = int(passed[-1])
        is_whole = n <= most_entries
        ranks = np.arange(n) if is_whole else np.arange(1, n_pivots + 1) * n // (n_pivots + 1)
        group = np.searchsorted(passed, ranks, side="right")
        chosen = lasts[group] - passed[group] + ranks
        weights = self.passed[chosen + 1] - self.passed[chosen] if is_whole else np.empty(0, np.int64)
        return Part(n, self.has_missing, self.keys[chosen], weights)

    def block_weights(self, known: Keys) -> IntArray:
        """What the entries weigh in each block of an `Outline` with these known keys: (2 n_known + 1,)."""
        ends = [self.passed[np.searchsorted(self.keys, known, side=side)] for side in ("left", "right")]
        return np.diff(np.stack(ends, axis=1).ravel(), prepend=0, append=self.passed[-1])

    def before(self, keys: Keys) -> Keys:
        """The greatest key below each of the given ones, or the lowest."""
        return self.keys[np.searchsorted(self.keys, keys) - 1]

    def after(self, keys: Keys) -> Keys:
        """The least key above each of the given ones, or the highest."""
        return self.keys[np.searchsorted(self.keys, keys, side="right")]

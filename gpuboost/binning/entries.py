"""The distinct values of a column that one worker has, as keys: uint64 that sort like the float64 they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.binning.columns import distinct

Keys = NDArray[np.uint64]

NO_KEY = np.zeros(1, np.uint64)  # it and its complement would be keys of NaN, so they are below and above all keys
_SIGN = np.uint64(1 << 63)


def to_keys(values: Floats) -> Keys:
    """The keys of numbers. -0.0 has the key of 0.0; there is no NaN."""
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def to_values(keys: Keys) -> Floats:
    """The numbers that `to_keys` made keys of."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)


class Part(NamedTuple):
    """What a worker tells of its entries in some groups.

    Attributes
    ----------
    n_entries : int
        How many there are.
    has_missing : bool
        Whether the worker has NaN in the column.
    keys : uint64 (n_entries,) or fewer, ascending
    weights : int64 (n_entries,), or empty if only some keys are told
    """

    n_entries: int
    has_missing: bool
    keys: Keys
    weights: IntArray

    @property
    def is_whole(self) -> bool:
        """Whether all entries are told."""
        return self.keys.size == self.n_entries


@dataclass(frozen=True, eq=False)
class Entries:
    """One worker's distinct values of a column.

    Attributes
    ----------
    keys : uint64 (n + 2,)
        Ascending, between two that are no keys of numbers.
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
            keys=np.concatenate([NO_KEY, to_keys(values.astype(np.float64)), ~NO_KEY]),
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
        """The greatest key below each of the given ones, or 0."""
        return self.keys[np.searchsorted(self.keys, keys) - 1]

    def after(self, keys: Keys) -> Keys:
        """The least key above each of the given ones, or 2**64 - 1."""
        return self.keys[np.searchsorted(self.keys, keys, side="right")]

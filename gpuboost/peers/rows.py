"""Where a worker's rows stand among those of all workers, and choices that depend on it or on all rows.

The rows of a training have one order, whatever worker holds them: a worker has stretches of consecutive rows, each of which has
a key, and stretches follow one another by their keys. Nothing here has more than a few numbers a stretch to send.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.peers.base import ALONE, Peers, agree

DIGIT_BITS = 8
"""A selection looks at so many bits of the values at a time: the first pass over the rows is nearly all of its work."""


@dataclass(frozen=True, eq=False)
class RowOrder:
    """The rows of a set on one worker, in stretches.

    Attributes
    ----------
    keys : ndarray of int64, shape (n_stretches,)
        Different from all other keys, here and on other workers.
    sizes : ndarray of int64, shape (n_stretches,)
        Rows of each stretch; this worker's rows are in the order of these.
    starts : ndarray of int64, shape (n_stretches,)
        The number of the first row of each stretch among the rows of all workers.
    n_rows : int
        Rows of all workers.
    peers : Peers
    """

    keys: IntArray
    sizes: IntArray
    starts: IntArray
    n_rows: int
    peers: Peers = ALONE

    @classmethod
    def of(cls, keys: IntArray, sizes: IntArray, peers: Peers) -> RowOrder:
        """Return the order of the rows of several workers, who all must call this."""
        starts, n_rows = _before(keys, sizes, peers)
        agree(peers, "order of the rows", n_rows)
        return cls(keys, sizes, starts, n_rows, peers)

    @classmethod
    def alone(cls, n_rows: int) -> RowOrder:
        """Return the order of the rows of one process."""
        return cls(np.zeros(1, np.int64), np.array([n_rows]), np.zeros(1, np.int64), n_rows)

    @property
    def n_here(self) -> int:
        """Rows of this worker."""
        return int(self.sizes.sum())

    def subset(self, chosen: IntArray) -> RowOrder:
        """Return the order of some of the rows; ``chosen`` are ascending numbers of rows of this worker."""
        ends = np.searchsorted(chosen, np.cumsum(self.sizes))
        return RowOrder.of(self.keys, np.diff(ends, prepend=0), self.peers)

    def random(self, seed: list[int]) -> NDArray[np.uint64]:
        """Return a random number for each row: row i of all gets the raw output i of a generator that NumPy does not change."""
        stretches = zip(self.starts.tolist(), self.sizes.tolist(), strict=True)
        parts = [np.random.PCG64(seed).advance(start).random_raw(size) for start, size in stretches]
        numbers: NDArray[np.uint64] = np.concatenate(parts) if len(parts) else np.zeros(0, np.uint64)
        return numbers

    def first(self, candidates: IntArray, n: IntArray, groups: IntArray) -> IntArray:
        """Return which of ``candidates``, ascending row numbers, are the first ``n[g]`` of all candidates of their group g."""
        ends = np.cumsum(self.sizes)
        chosen = []
        for g in np.flatnonzero(n).tolist():
            own = candidates[groups == g]
            bounds = np.searchsorted(own, ends)
            counts = np.diff(bounds, prepend=0)
            earlier, _ = _before(self.keys, counts, self.peers)
            rank = np.arange(len(own)) + np.repeat(earlier - (bounds - counts), counts)
            chosen.append(own[rank < n[g]])
        return np.concatenate(chosen) if chosen else candidates[:0]

    def largest(self, values: NDArray[Any], n: IntArray, groups: IntArray | None = None) -> NDArray[np.bool_]:
        """Return which rows have the ``n[g]`` largest values of their group g; of equal ones the first.

        Parameters
        ----------
        values : ndarray of integers, none of them negative, shape (n_here,)
        n : ndarray of int64, shape (n_groups,)
            Not more than a group has rows.
        groups : ndarray of int64, shape (n_here,), optional
            All rows are of one group without it.
        """
        return self._above(values, n, groups, None)

    def heaviest(self, values: NDArray[Any], needed: int) -> NDArray[np.bool_]:
        """Return the fewest rows, at least one, whose values add up to ``needed`` or more; of equal ones the first."""
        return self._above(values, np.array([max(needed, 1)]), None, values)

    def _above(
        self, values: NDArray[Any], needed: IntArray, groups: IntArray | None, units: NDArray[Any] | None
    ) -> NDArray[np.bool_]:
        """Return the rows with the largest values that have ``needed`` rows, or units, in their group."""
        values, needed, n_groups = values.astype(np.uint64, copy=False), needed.astype(np.int64), len(needed)
        threshold = np.zeros(n_groups, np.uint64)
        at: Any = slice(None)  # rows whose digits so far are those of their group's threshold
        top = int(self.peers.max(values.max(initial=0, keepdims=True), "largest value")[0]).bit_length()
        for shift in range(-(-top // DIGIT_BITS) * DIGIT_BITS - DIGIT_BITS, -1, -DIGIT_BITS):
            digit = (values[at] >> np.uint64(shift) & np.uint64(2**DIGIT_BITS - 1)).astype(np.int64)
            cell = digit if groups is None else (groups[at] << DIGIT_BITS) + digit
            cells = np.zeros(n_groups << DIGIT_BITS, np.int64)
            if units is None:
                cells += np.bincount(cell, minlength=len(cells))
            else:
                np.add.at(cells, cell, units[at])
            name = f"values by digit at {shift}, of which {needed[:4].tolist()} are needed"
            counts = self.peers.sum(cells, name).reshape(n_groups, -1)
            from_top = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]  # of this digit and all above
            chosen = np.maximum((from_top >= needed[:, None]).sum(axis=1) - 1, 0)
            needed = needed - (from_top - counts)[np.arange(n_groups), chosen]
            threshold = threshold << np.uint64(DIGIT_BITS) | chosen.astype(np.uint64)
            same = np.flatnonzero(digit == (chosen[0] if groups is None else chosen[groups[at]]))
            at = same if isinstance(at, slice) else at[same]
        n_equal = needed if units is None else -(-needed // np.maximum(threshold.astype(np.int64), 1))
        at = np.arange(len(values)) if isinstance(at, slice) else at
        of_row = threshold[0] if groups is None else threshold[groups]
        found: NDArray[np.bool_] = values > of_row
        found[self.first(at, n_equal, np.zeros(len(at), np.int64) if groups is None else groups[at])] = True
        return found


def _before(keys: IntArray, counts: IntArray, peers: Peers) -> tuple[IntArray, int]:
    """Return what stands before each stretch, of things that the stretches have ``counts`` of, and how many there are."""
    own = np.column_stack([keys, counts]).astype(np.int64)
    gathered = peers.gather(own.tobytes(), "stretches of rows")
    everyones = np.concatenate([np.frombuffer(one, np.int64).reshape(-1, 2) for one in gathered])
    everyones = everyones[np.argsort(everyones[:, 0])]
    before = np.cumsum(everyones[:, 1]) - everyones[:, 1]
    return before[np.searchsorted(everyones[:, 0], keys)], int(everyones[:, 1].sum())

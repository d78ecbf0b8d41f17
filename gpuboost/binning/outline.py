"""What all workers know of a column: some of its values, and how much lies between them.

Blocks are groups and known values in turn, in ascending order: block ``2 i + 1`` is the known value i, and block ``2 i`` the
group of the values between the known values i - 1 and i. A group without weight is empty.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.binning.keys import LOWEST, Keys
from gpuboost.binning.quantiles import quantile_starts, undecided


@dataclass(frozen=True, eq=False)
class Outline:
    """A column as all workers know it.

    Attributes
    ----------
    keys : uint64 (n_known,)
        Of the known values, ascending. All of them occur.
    weights : int64 (2 n_known + 1,)
        Of the blocks.
    """

    keys: Keys
    weights: IntArray

    def opened(self, groups: NDArray[np.intp], keys: Keys) -> tuple[Outline, NDArray[np.intp]]:
        """Return the outline with more known values in some groups, and its blocks that take the place of these groups.

        The new blocks have no weights yet.
        """
        known = np.sort(np.concatenate([self.keys, keys]))
        weights = np.zeros(2 * known.size + 1, np.int64)
        place = np.empty(self.weights.size, np.intp)  # of the old blocks among the new ones
        place[1::2] = 2 * np.searchsorted(known, self.keys) + 1
        place[:-1:2] = place[1::2] - 1  # a group that stays lies directly before the same value
        place[-1] = weights.size - 1
        stays = np.ones(self.weights.size, np.bool_)
        stays[2 * groups] = False
        weights[place[stays]] = self.weights[stays]
        is_new = np.ones(weights.size, np.bool_)
        is_new[place[stays]] = False
        return Outline(known, weights), np.flatnonzero(is_new)

    def undecided(self, max_bins: int) -> NDArray[np.intp]:
        """Return the groups that must be opened before the cuts are sure."""
        blocks = np.flatnonzero(self.weights)
        is_group = blocks % 2 == 0
        if blocks.size > max_bins:
            is_group = undecided(self.weights[blocks], is_group, max_bins)
        groups: NDArray[np.intp] = blocks[is_group] // 2
        return groups

    def sides_of_cuts(self, max_bins: int) -> tuple[Keys, Keys]:
        """Return the keys on the left and on the right of every cut, with `LOWEST` for those in a group, which are not known.

        No cut has groups on both sides.
        """
        blocks = np.flatnonzero(self.weights)
        starts = quantile_starts(self.weights[blocks], max_bins) if blocks.size > max_bins else np.arange(1, blocks.size)
        keys = np.full(self.weights.size, LOWEST)
        keys[1::2] = self.keys
        return keys[blocks[starts - 1]], keys[blocks[starts]]


UNKNOWN = Outline(np.empty(0, np.uint64), np.zeros(1, np.int64))
"""A column of which nothing is known: one group, of unknown weight."""

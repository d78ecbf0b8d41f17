"""The cuts of columns whose rows lie on several workers: the same on all of them, and those of one worker with all rows.

All workers know the same `Outline` of a column, and open more and more of its groups, until `quantiles.undecided` finds none
that matters. In a round every worker tells its entries in the groups to be opened if they are few, else some of their keys, its
pivots. If all entries are told, the groups are known. Else the pivots become known values, and the weights of the new blocks
are summed.

A round leaves at most about ``n_groups (1 / PIVOTS + 1 / pivots of a worker)`` of the entries in question, whatever their
distribution over values and workers, so rounds are few. Columns go through the rounds side by side, in one message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.binning.columns import Matrix, check_total, each_column
from gpuboost.binning.entries import Entries
from gpuboost.binning.keys import LOWEST, to_values
from gpuboost.binning.outline import UNKNOWN, Outline
from gpuboost.binning.parts import decoded, divided, encoded, merged, pivots
from gpuboost.binning.quantiles import midpoint
from gpuboost.peers.base import Peers

ENTRIES = 1 << 16
"""Entries of a column that are told in one round, by all workers together."""

PIVOTS = 1 << 13
"""Keys of a column that become known in one round where not all entries are told."""

LEAST = 1 << 10
"""Entries and pivots that a worker may tell in one round, however many workers there are."""

BLOCK_BYTES = 256 << 20
"""Entries of so many bytes, or of one column, are held at once."""


def fit_over_workers(
    X: Matrix, rows: NDArray[np.intp] | None, units: IntArray | None, max_bins: int, n_threads: int, peers: Peers
) -> list[tuple[Floats, bool]]:
    """Return the cuts of every column, and whether it has NaN on any worker: see `gpuboost.binning.BinMapper.fit`.

    Parameters
    ----------
    X : (n_rows, n_features)
        This worker's.
    rows : intp (n,), optional
        The rows that exist, all by default.
    units : int64 (n,), optional
        Their positive weights, 1 by default.
    max_bins, n_threads : int
    peers : gpuboost.peers.base.Peers
    """
    n_rows = X.shape[0] if rows is None else rows.size
    most_rows, has_equal_units = _compared(Size.of(X.shape[1], max_bins, n_rows, units), peers)
    if has_equal_units:
        units = None  # the unit of the weights does not matter
    width = max(1, BLOCK_BYTES // (16 * max(most_rows, ENTRIES)))
    cuts: list[tuple[Floats, bool]] = []
    for first in range(0, X.shape[1], width):
        block = X[:, first : first + width]
        columns = each_column(block, rows, lambda column: Entries.of(column, units), n_threads)
        cuts += _cuts(columns, max_bins, peers, f"cuts of the columns from {first} on")
    return cuts


class Size(NamedTuple):
    """What workers compare before they begin."""

    n_features: int
    max_bins: int
    n_rows: int
    weight: int
    least_unit: int
    greatest_unit: int

    @classmethod
    def of(cls, n_features: int, max_bins: int, n_rows: int, units: IntArray | None) -> Size:
        """The sizes of one worker. Without rows it has the greatest least unit and the least greatest one."""
        if n_rows == 0:
            return cls(n_features, max_bins, 0, 0, np.iinfo(np.int64).max, 0)
        if units is None:
            return cls(n_features, max_bins, n_rows, n_rows, 1, 1)
        return cls(n_features, max_bins, n_rows, int(units.sum()), int(units.min()), int(units.max()))


def _compared(own: Size, peers: Peers) -> tuple[int, bool]:
    """The rows of the worker that has most, and whether all rows of all workers weigh the same."""
    messages = peers.gather(np.array(own, np.int64).tobytes(), "sizes of X")
    sizes = [Size(*np.frombuffer(message, np.int64).tolist()) for message in messages]
    for worker, other in enumerate(sizes):
        for name, here, there in (("columns of X", sizes[0][0], other[0]), ("max_bins", sizes[0][1], other[1])):
            if here != there:
                raise ValueError(
                    f"{name} must be the same on all workers, got {here} on worker 0 and {there} on worker {worker}"
                )
    check_total(sum(size.weight for size in sizes))
    least, greatest = min(size.least_unit for size in sizes), max(size.greatest_unit for size in sizes)
    return max(size.n_rows for size in sizes), least >= greatest


def _cuts(columns: Sequence[Entries], max_bins: int, peers: Peers, what: str) -> list[tuple[Floats, bool]]:
    """Cuts of some columns, and whether they have NaN."""
    outlines, has_missing = _outlines(columns, max_bins, peers, what)
    sides = [outline.sides_of_cuts(max_bins) for outline in outlines]
    unknown = [(left == LOWEST, right == LOWEST) for left, right in sides]
    own = [
        (entries.before(right[no_left]), ~entries.after(left[no_right]))
        for entries, (left, right), (no_left, no_right) in zip(columns, sides, unknown, strict=True)
    ]
    asked = [keys for pair in own for keys in pair]
    if any(keys.size for keys in asked):
        found = iter(divided(peers.max(np.concatenate(asked), what), [keys.size for keys in asked]))
        for (left, right), (no_left, no_right) in zip(sides, unknown, strict=True):
            left[no_left], right[no_right] = next(found), ~next(found)
    cuts = [midpoint(to_values(left), to_values(right)) for left, right in sides]
    return list(zip(cuts, has_missing, strict=True))


def _outlines(columns: Sequence[Entries], max_bins: int, peers: Peers, what: str) -> tuple[list[Outline], list[bool]]:
    """Outlines of some columns that leave no cut undecided, and whether the columns have NaN."""
    outlines, has_missing = [UNKNOWN] * len(columns), [False] * len(columns)
    most_entries, n_pivots = (max(LEAST, total // peers.size) for total in (ENTRIES, PIVOTS))
    to_open = {c: np.zeros(1, np.intp) for c in range(len(columns))}
    while to_open:
        own = [columns[c].part(outlines[c].keys, groups, most_entries, n_pivots) for c, groups in to_open.items()]
        told = [decoded(message, len(own)) for message in peers.gather(encoded(own), what)]
        uncounted: dict[int, NDArray[np.intp]] = {}
        for (c, groups), *parts in zip(to_open.items(), *told, strict=True):
            has_missing[c] = any(part.has_missing for part in parts)
            if all(part.is_whole for part in parts):
                keys, weights = merged(parts)
                outlines[c], blocks = outlines[c].opened(groups, keys)
                outlines[c].weights[blocks[blocks % 2 == 1]] = weights
            else:
                outlines[c], uncounted[c] = outlines[c].opened(groups, pivots(parts, PIVOTS))
        if uncounted:
            own_weights = [columns[c].block_weights(outlines[c].keys)[blocks] for c, blocks in uncounted.items()]
            total = peers.sum(np.concatenate(own_weights), what)
            sums = divided(total, [weights.size for weights in own_weights])
            for (c, blocks), weights in zip(uncounted.items(), sums, strict=True):
                outlines[c].weights[blocks] = weights
        undecided = {c: outlines[c].undecided(max_bins) for c in to_open}
        to_open = {c: groups for c, groups in undecided.items() if groups.size}
    return outlines, has_missing

"""The cuts of columns whose rows lie on several workers: the same on all of them, and those of one worker with all rows.

They are found in rounds, see `gpuboost.binning.rounds`. A worker sorts its columns once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.binning.chunks import ChunkedColumns
from gpuboost.binning.columns import Matrix, check_total, each_column
from gpuboost.binning.entries import Entries
from gpuboost.binning.rounds import Budget, cuts_by_rounds
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
    n_entries, n_pivots = (max(LEAST, total // peers.size) for total in (ENTRIES, PIVOTS))
    budget = Budget(n_entries, n_pivots, PIVOTS)
    cuts: list[tuple[Floats, bool]] = []
    for first in range(0, X.shape[1], width):
        block = X[:, first : first + width]
        columns = ChunkedColumns.held(each_column(block, rows, lambda column: Entries.of(column, units), n_threads))
        cuts += cuts_by_rounds(columns, max_bins, budget, peers, f"cuts of the columns from {first} on")
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

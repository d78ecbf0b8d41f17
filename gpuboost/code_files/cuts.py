"""The cuts of rows on the disk: those of `gpuboost.binning.BinMapper.fit`, in memory that does not grow with the rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpuboost.binning import BinMapper
from gpuboost.binning.chunks import ChunkedColumns
from gpuboost.binning.columns import each_column
from gpuboost.binning.entries import Entries
from gpuboost.binning.rounds import Budget, cuts_by_rounds
from gpuboost.code_files.row_files import RowWeights
from gpuboost.code_files.spool import Spool
from gpuboost.inputs.samples import side_by_side
from gpuboost.peers.base import ALONE

WHOLE_BYTES, WEIGHTED_BYTES = 64, 96
"""About what a row of a column takes while all of the column is sorted, without and with weights."""

SORTING_BYTES = 128
"""What a row of a column takes while a chunk of it is looked at, at most."""

CHUNK_ROWS = 1 << 20
"""Of a column that is too long to be sorted in memory, about so many rows are sorted at a time."""

BUDGET = Budget(entries=1 << 18, pivots=1 << 15, known=1 << 15)
"""Up to some 30 million rows of distinct values three passes are enough; two more for all that there are."""


@dataclass(frozen=True)
class ChosenCuts:
    """Cuts that are chosen on the rows of the file.

    Attributes
    ----------
    max_bins : int
    memory : int
        About so many bytes are taken for it.
    """

    max_bins: int
    memory: int

    def check(self, n_features: int, names: Sequence[Any] | None) -> None:
        """Columns may be any."""

    def mapper(self, spool: Spool, weights: RowWeights | None, n_threads: int) -> BinMapper:
        """Return the cuts."""
        return fit_cuts(spool, weights, self.max_bins, n_threads, self.memory)


@dataclass(frozen=True)
class GivenCuts:
    """Cuts of another file.

    Attributes
    ----------
    bin_mapper : BinMapper
    max_bins : int
    names : sequence or None
        Of its columns.
    path : str
        Of that file, for messages.
    """

    bin_mapper: BinMapper
    max_bins: int
    names: Sequence[Any] | None
    path: str

    def check(self, n_features: int, names: Sequence[Any] | None) -> None:
        """Raise a ValueError if the columns are not those of the other file."""
        if n_features != self.bin_mapper.n_features:
            raise ValueError(
                f"cuts_of: the source has {n_features} columns, but {self.path!r} has {self.bin_mapper.n_features}"
            )
        if names is not None and self.names is not None and list(names) != list(self.names):
            first = next(i for i, (a, b) in enumerate(zip(names, self.names, strict=True)) if a != b)
            here, there = names[first], self.names[first]
            raise ValueError(f"cuts_of: column {first} of the source has the name {here!r}, but {there!r} in {self.path!r}")

    def mapper(self, spool: Spool, weights: RowWeights | None, n_threads: int) -> BinMapper:
        """Return the cuts."""
        return self.bin_mapper


def fit_cuts(spool: Spool, weights: RowWeights | None, max_bins: int, n_threads: int, memory: int) -> BinMapper:
    """Choose the cuts.

    Parameters
    ----------
    spool : Spool
    weights : RowWeights, optional
        Of its rows, all 1 by default.
    max_bins, n_threads : int
    memory : int
        About so many bytes are taken.
    """
    row_bytes, chunk_rows = WHOLE_BYTES if weights is None else WEIGHTED_BYTES, spool.n_rows
    if not (in_memory := row_bytes * chunk_rows <= memory):
        row_bytes, chunk_rows = SORTING_BYTES, min(CHUNK_ROWS, memory // SORTING_BYTES)
    at_once = max(1, memory // (row_bytes * max(1, chunk_rows)))
    units = weights.units(slice(0, spool.n_rows)) if in_memory and weights is not None else None
    mappers = []
    for first in range(0, spool.n_features, at_once):
        stop = min(first + at_once, spool.n_features)
        if in_memory:
            columns = spool.columns(first, stop)
            mappers.append(BinMapper.fit(columns, max_bins=max_bins, integer_weights=units, n_threads=n_threads))
        else:
            chunked = SpooledColumns(spool, weights, first, chunk_rows, n_threads)
            columns_of_chunks = ChunkedColumns(stop - first, chunked.entries)
            mappers.append(BinMapper.of_columns(cuts_by_rounds(columns_of_chunks, max_bins, BUDGET, ALONE, "cuts")))
    return side_by_side(mappers)


class SpooledColumns:
    """Columns of a spool, chunk by chunk.

    Parameters
    ----------
    spool : Spool
    weights : RowWeights, optional
    first : int
        The feature that is column 0.
    chunk_rows : int
        About so many rows have a chunk.
    n_threads : int
    """

    def __init__(self, spool: Spool, weights: RowWeights | None, first: int, chunk_rows: int, n_threads: int) -> None:
        self._spool, self._weights = spool, weights
        self._first, self._chunk_rows, self._n_threads = first, chunk_rows, n_threads

    def entries(self, columns: Collection[int]) -> Iterator[Mapping[int, Entries]]:
        """Give the entries of some columns in each chunk, see `gpuboost.binning.chunks.ChunkedColumns`."""
        if not columns:
            return
        lowest, stop = min(columns), max(columns) + 1
        wanted = sorted(columns)
        for rows, values in self._spool.chunks(self._first + lowest, self._first + stop, self._chunk_rows):
            units = None if self._weights is None else self._weights.units(rows)
            own = values if len(wanted) == len(values) else values[[c - lowest for c in wanted]]
            found = each_column(own.T, None, partial(Entries.of, units=units), self._n_threads)
            yield dict(zip(wanted, found, strict=True))

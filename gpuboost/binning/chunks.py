"""The entries of columns whose rows come in chunks: each chunk has entries of its own, and what is told is of all chunks.

The cuts of columns that are larger than memory are found so, in a few passes over their chunks, see `gpuboost.binning.rounds`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.binning.entries import Entries
from gpuboost.binning.keys import HIGHEST, LOWEST, Keys
from gpuboost.binning.parts import Part, PartSum

Chunks = Callable[[Collection[int]], Iterator[Mapping[int, Entries]]]


class ChunkedColumns:
    """Some columns of one worker.

    Parameters
    ----------
    n_columns : int
    chunks : callable
        Given the numbers of some columns, it gives the entries of these columns in one chunk of rows after another. Every call
        is a pass over the rows.
    """

    def __init__(self, n_columns: int, chunks: Chunks) -> None:
        self.n_columns = n_columns
        self._chunks = chunks

    @classmethod
    def held(cls, columns: Sequence[Entries]) -> ChunkedColumns:
        """Return columns whose entries are in memory, as one chunk."""
        return cls(len(columns), lambda _: iter([dict(enumerate(columns))]))

    def parts(self, asked: Mapping[int, tuple[Keys, NDArray[np.intp]]], most_entries: int, n_pivots: int) -> list[Part]:
        """Tell the entries of some columns in some groups, each between known keys, see `Entries.part`."""
        sums = {c: PartSum(most_entries, n_pivots) for c in asked}
        for entries in self._chunks(asked.keys()):
            for c, (known, groups) in asked.items():
                sums[c].add(entries[c].part(known, groups, most_entries, n_pivots))
        return [one.part() for one in sums.values()]

    def block_weights(self, known: Mapping[int, Keys]) -> list[IntArray]:
        """Return what the entries of some columns weigh in each block, see `Entries.block_weights`."""
        weights = {c: np.zeros(2 * keys.size + 1, np.int64) for c, keys in known.items()}
        for entries in self._chunks(known.keys()):
            for c, keys in known.items():
                weights[c] += entries[c].block_weights(keys)
        return list(weights.values())

    def neighbours(self, asked: Sequence[tuple[Keys, Keys]]) -> list[tuple[Keys, Keys]]:
        """Return for each column the greatest key below each of some keys, and the least key above each of others."""
        found = [(np.full(keys.size, LOWEST), np.full(others.size, HIGHEST)) for keys, others in asked]
        wanted = [c for c, (keys, others) in enumerate(asked) if keys.size or others.size]
        for entries in self._chunks(wanted):
            for c in wanted:
                (before, after), (keys, others) = found[c], asked[c]
                np.maximum(before, entries[c].before(keys), out=before)
                np.minimum(after, entries[c].after(others), out=after)
        return found

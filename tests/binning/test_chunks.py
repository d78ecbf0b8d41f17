"""Cuts of columns that are looked at chunk by chunk are those of all rows, in any order and division of the chunks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.binning import BinMapper
from gpuboost.binning.chunks import ChunkedColumns
from gpuboost.binning.entries import Entries
from gpuboost.binning.keys import to_keys
from gpuboost.binning.parts import Part, PartSum
from gpuboost.binning.rounds import Budget, cuts_by_rounds
from gpuboost.peers.base import ALONE, Peers
from gpuboost.peers.threads import run_workers
from tests.binning.columns import KINDS, WEIGHTS, divisions
from tests.binning.test_workers import same, some_rows

BUDGETS = [Budget(1 << 18, 1 << 15, 1 << 15), Budget(400, 200, 200), Budget(40, 40, 40), Budget(6, 3, 3), Budget(2, 2, 2)]


class Counted:
    """Columns of a matrix in chunks, and how often their rows were passed over."""

    def __init__(self, X: np.ndarray, units: np.ndarray | None, chunk: np.ndarray) -> None:
        self.X, self.units = X, units
        self.chunks = [np.flatnonzero(chunk == number) for number in range(chunk.max(initial=0) + 1)]
        self.n_passes = 0

    def entries(self, columns: Collection[int]) -> Iterator[Mapping[int, Entries]]:
        self.n_passes += bool(columns)
        for rows in self.chunks if columns else ():
            units = None if self.units is None else self.units[rows]
            yield {c: Entries.of(self.X[rows, c], units) for c in columns}

    def cuts(self, max_bins: int, budget: Budget, peers: Peers = ALONE) -> BinMapper:
        columns = ChunkedColumns(self.X.shape[1], self.entries)
        return BinMapper.of_columns(cuts_by_rounds(columns, max_bins, budget, peers, "cuts"))


@pytest.mark.parametrize("kind", KINDS)
def test_cuts_are_those_of_all_rows(kind: str) -> None:
    rng = np.random.default_rng(list(KINDS).index(kind))
    for way in range(5):
        n = int(rng.integers(1, rng.choice([30, 300, 3000])))
        X = np.column_stack([KINDS[kind](rng, n) for _ in range(2)])
        units = WEIGHTS[rng.choice(list(WEIGHTS))](rng, n)
        exists = np.ones(n, bool) if units is None else units > 0
        X, units, chunk = X[exists], None if units is None else units[exists], list(divisions(rng, n, 6).values())[way][exists]
        max_bins, budget = int(rng.choice([2, 3, 10, 255])), BUDGETS[rng.integers(len(BUDGETS) if n < 100 else 3)]
        expected = BinMapper.fit(X, integer_weights=units, max_bins=max_bins)
        assert same(Counted(X, units, chunk).cuts(max_bins, budget), expected)


@settings(deadline=None)
@given(st.lists(some_rows, max_size=60), st.integers(2, 9), st.sampled_from(BUDGETS))
def test_cuts_of_any_rows(rows: list[tuple[float, int, int]], max_bins: int, budget: Budget) -> None:
    values, units, chunk = (np.array([row[i] for row in rows if row[1]]) for i in range(3))
    if len(values):
        expected = BinMapper.fit(values.reshape(-1, 1), integer_weights=units, max_bins=max_bins)
        assert same(Counted(values.reshape(-1, 1), units, chunk).cuts(max_bins, budget), expected)


def test_workers_that_have_chunks() -> None:
    """Two workers, each with chunks of its rows, decide as one that has all."""
    rng = np.random.default_rng(0)
    X, worker, chunk = rng.normal(size=(3000, 2)), rng.integers(0, 2, 3000), rng.integers(0, 4, 3000)

    def fit(peers: Peers) -> BinMapper:
        own = worker == peers.rank
        return Counted(X[own], None, chunk[own]).cuts(30, Budget(400, 200, 200), peers)

    assert all(same(mapper, BinMapper.fit(X, max_bins=30)) for mapper in run_workers(2, fit))


def test_few_passes() -> None:
    """Few values: one. 20,000 values with room for 1,000: pivots, their weights, and the last 20,000 * 7 / 200 entries."""
    rng = np.random.default_rng(0)
    chunk = rng.integers(0, 10, 20_000)
    few, many = rng.integers(0, 50, (20_000, 1)), rng.normal(size=(20_000, 1))
    for X, n_passes in ((few, 1), (many, 3)):
        counted = Counted(X, None, chunk)
        assert same(counted.cuts(8, Budget(1000, 400, 200)), BinMapper.fit(X, max_bins=8))
        assert counted.n_passes == n_passes


# ---- what is told of several chunks


def part_of(values: list[float], weights: list[int] | None = None, *, n_entries: int = 0, has_missing: bool = False) -> Part:
    told = np.array([] if weights is None else weights, np.int64)
    return Part(n_entries or len(values), has_missing, to_keys(np.array(values, float)), told)


def test_parts_by_hand() -> None:
    total = PartSum(most_entries=3, n_pivots=2)
    total.add(part_of([1, 2], [10, 20]))
    total.add(part_of([], [], has_missing=True))
    total.add(part_of([2, 5], [3, 4]))
    part = total.part()
    assert (part.is_whole, part.n_entries, part.has_missing) == (True, 3, True)
    assert (part.keys.tolist(), part.weights.tolist()) == (to_keys(np.array([1.0, 2.0, 5.0])).tolist(), [10, 23, 4])
    total.add(part_of([3], [1]))  # one too many
    part = total.part()
    assert (part.is_whole, part.n_entries, part.has_missing, part.weights.size) == (False, 4, True, 0)
    assert part.keys.tolist() == to_keys(np.array([1.0, 2.0, 5.0])).tolist()  # the 1st, and where steps of 2 are full
    total.add(part_of([7], [1]))
    total.add(part_of([8, 9], n_entries=40))
    assert total.part().n_entries == 45


def test_what_is_kept_of_many_chunks_does_not_grow() -> None:
    """Keys at equal steps of what all chunks have together: the k-th of 50 below about 2 k % of it."""
    rng = np.random.default_rng(0)
    total, values = PartSum(most_entries=100, n_pivots=50), rng.normal(size=(300, 1000))
    for column in values:
        total.add(Entries.of(column, None).part(np.empty(0, np.uint64), np.zeros(1, np.intp), 100, 50))
        assert sum(part.keys.size for part in total._others) <= 17 * 50
    part = total.part()
    assert (part.n_entries, part.is_whole) == (300_000, False)
    share = np.searchsorted(np.sort(to_keys(values.ravel())), part.keys) / values.size
    assert 45 <= part.keys.size <= 51
    assert np.abs(share - np.arange(1, part.keys.size + 1) / (part.keys.size + 1)).max() < 0.06

"""Cuts over several workers are, byte for byte, those of one that has all rows, and few bytes travel."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.binning import BinMapper, workers
from gpuboost.errors import WorkersPartedError
from gpuboost.peers.base import Peers
from gpuboost.peers.threads import run_workers
from tests.binning.columns import KINDS, SIZES, WEIGHTS, divisions


def same(one: BinMapper, other: BinMapper) -> bool:
    return all(
        a.tobytes() == b.tobytes() and a.dtype == b.dtype for a, b in zip(vars(one).values(), vars(other).values(), strict=True)
    )


@dataclass
class Counted:
    """Peers that count their calls, and the bytes through this worker's link if messages run round a ring."""

    peers: Peers
    calls: list[str] = field(default_factory=list)
    n_bytes: int = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.peers, name)

    def sum(self, array: np.ndarray, what: str) -> np.ndarray:
        self.calls.append("sum")
        self.n_bytes += 2 * array.nbytes
        return self.peers.sum(array, what)

    def max(self, array: np.ndarray, what: str) -> np.ndarray:
        self.calls.append("max")
        self.n_bytes += 2 * array.nbytes
        return self.peers.max(array, what)

    def gather(self, data: bytes, what: str) -> list[bytes]:
        self.calls.append("gather")
        messages = self.peers.gather(data, what)
        self.n_bytes += sum(map(len, messages))
        return messages


def fit_divided(
    X: np.ndarray, worker: np.ndarray, size: int, weights: np.ndarray | None = None, **parameters: Any
) -> tuple[list[BinMapper], list[Counted]]:
    """The cuts that every worker gets, and what it has sent for them."""

    def fit(peers: Peers) -> tuple[BinMapper, Counted]:
        rows = np.flatnonzero(worker == peers.rank)
        counted = Counted(peers)
        own = None if weights is None else weights[rows]
        return BinMapper.fit(X[rows], integer_weights=own, peers=counted, **parameters), counted

    mappers, counted = zip(*run_workers(size, fit), strict=True)
    return list(mappers), list(counted)


def assert_cuts_of_one_worker(
    X: np.ndarray, worker: np.ndarray, size: int, weights: np.ndarray | None = None, **parameters: Any
) -> list[Counted]:
    """All workers get the cuts of one that has all rows. Returns what they sent."""
    expected = BinMapper.fit(X, integer_weights=weights, **parameters)
    mappers, counted = fit_divided(X, worker, size, weights, **parameters)
    assert len(mappers) == size
    assert all(same(mapper, expected) for mapper in mappers)
    return counted


BUDGETS = {
    "default": {},
    "small": {"ENTRIES": 400, "PIVOTS": 200, "LEAST": 40},
    "least": {"ENTRIES": 6, "PIVOTS": 3, "LEAST": 2},
}


def spend(patch: pytest.MonkeyPatch, budget: str) -> None:
    for name, value in BUDGETS[budget].items():
        patch.setattr(workers, name, value)


def sweep(kind: str, size: int, seed: int) -> None:
    """A column of each way to divide its rows, with weights, max_bins and a budget by chance."""
    rng = np.random.default_rng([seed, size, list(KINDS).index(kind)])
    for way in range(5):
        n = int(rng.integers(1, rng.choice([30, 300, 3000])))
        X = KINDS[kind](rng, n).reshape(-1, 1)
        weights = WEIGHTS[rng.choice(list(WEIGHTS))](rng, n)
        worker = list(divisions(rng, n, size).values())[way]
        with pytest.MonkeyPatch.context() as patch:
            spend(patch, rng.choice(["default", "small", "least" if n < 100 else "small"]))
            assert_cuts_of_one_worker(X, worker, size, weights, max_bins=int(rng.choice([2, 3, 10, rng.integers(2, 256), 255])))


@pytest.mark.parametrize("kind", KINDS)
def test_cuts_are_those_of_one_worker(kind: str) -> None:
    sweep(kind, size=SIZES[1 + list(KINDS).index(kind) % 4], seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", KINDS)
def test_cuts_are_those_of_one_worker_sweep(kind: str, size: int) -> None:
    for seed in range(1, 4):  # in all 1575 columns and divisions
        sweep(kind, size, seed)


some_numbers = st.sampled_from([-np.inf, -1.5, -5e-324, -0.0, 0.0, 5e-324, 0.1, 1.0, 1.0 + 2**-52, 2.0, 3.0, np.inf, np.nan])
some_rows = st.tuples(
    st.one_of(some_numbers, st.integers(0, 20).map(float), st.floats()),
    st.one_of(st.just(1), st.integers(0, 3), st.integers(0, 2**50)),
    st.integers(0, 7),
)


@settings(deadline=None)
@given(st.lists(some_rows, max_size=60), st.sampled_from(SIZES), st.integers(2, 9), st.sampled_from(list(BUDGETS)))
def test_cuts_of_any_rows_are_those_of_one_worker(
    rows: list[tuple[float, int, int]], size: int, max_bins: int, budget: str
) -> None:
    values, weights, worker = (
        (np.array(list(column)) for column in zip(*rows, strict=True)) if rows else (np.zeros(0, int),) * 3
    )
    with pytest.MonkeyPatch.context() as patch:
        spend(patch, budget)
        assert_cuts_of_one_worker(values.reshape(-1, 1), worker % size, size, weights, max_bins=max_bins)


def all_kinds(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.stack([kind(rng, n).astype(np.float64) for kind in KINDS.values()], axis=1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_columns_go_side_by_side(monkeypatch: pytest.MonkeyPatch, order: Any, n_threads: int) -> None:
    """Columns that need different numbers of rounds, in one block and in several."""
    spend(monkeypatch, "small")
    rng = np.random.default_rng(0)
    X = np.asarray(all_kinds(rng, 700), order=order)
    worker = divisions(rng, 700, 3)["90 % on one"]
    one_by_one = [assert_cuts_of_one_worker(X[:, [c]], worker, 3, max_bins=40)[0].calls for c in range(X.shape[1])]
    (together, *_) = assert_cuts_of_one_worker(X, worker, 3, max_bins=40, n_threads=n_threads)
    longest = max(one_by_one, key=len)
    assert len(set(map(len, one_by_one))) > 2
    assert len(longest) <= len(together.calls) <= len(longest) + 1  # the last call may be another column's
    monkeypatch.setattr(workers, "BLOCK_BYTES", 16 * 700 * 4)
    (in_blocks, *_) = assert_cuts_of_one_worker(X, worker, 3, max_bins=40, n_threads=n_threads)
    assert in_blocks.calls.count("gather") > together.calls.count("gather")


@pytest.mark.parametrize("shape", [(0, 3), (5, 0), (0, 0)])
def test_matrices_without_rows_or_columns(shape: tuple[int, int]) -> None:
    assert_cuts_of_one_worker(np.zeros(shape), np.zeros(shape[0], int), 3)


def test_one_worker_sends_nothing() -> None:
    rng = np.random.default_rng(0)
    assert [c.calls for c in assert_cuts_of_one_worker(all_kinds(rng, 400), np.zeros(400, int), 1, max_bins=20)] == [[]]


# ---- what travels


def test_few_distinct_values_need_one_round() -> None:
    """Besides the message that compares sizes, one with 8 bytes a value and its count, from every worker."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (20_000, 1)) / 256
    for counted in assert_cuts_of_one_worker(X, rng.integers(0, 4, 20_000), 4):
        assert counted.calls == ["gather", "gather"]
        assert counted.n_bytes <= 4 * (48 + 32 + 256 * (8 + 1))


@pytest.mark.parametrize(("n_rows", "n_calls"), [(100_000, 6), pytest.param(1_000_000, 8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", ["shuffled", "rows in order", "90 % on one"])
def test_many_distinct_values_need_few_rounds_and_bytes(n_rows: int, n_calls: int, way: str) -> None:
    """At most 6 calls, or 8, and 1 MB through the link of a worker. A million values are 8 MB."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 1))
    if way == "rows in order":
        X.sort(axis=0)
    worker = divisions(rng, n_rows, 4)["even" if way == "rows in order" else way]
    for counted in assert_cuts_of_one_worker(X, worker, 4):
        assert len(counted.calls) <= n_calls
        assert counted.n_bytes <= 1_000_000


def test_more_columns_need_no_more_rounds() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 6))
    for counted in assert_cuts_of_one_worker(X, rng.integers(0, 4, 100_000), 4):
        assert len(counted.calls) <= 6
        assert counted.n_bytes <= 6 * 1_000_000


@pytest.mark.parametrize("kind", ["normal", "600 decades", "counts", "heavy", "mostly zero", "rows in order", "64 bits"])
def test_rounds_are_few_for_any_distribution(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """With 8 bins at most 7 shares start in groups, so a round leaves 7 (1 / 128 + 1 / 64) = 1/6 of the entries at most."""
    for name, value in {"ENTRIES": 256, "PIVOTS": 128, "LEAST": 64}.items():
        monkeypatch.setattr(workers, name, value)
    rng = np.random.default_rng(0)
    X = KINDS[kind](rng, 20_000).reshape(-1, 1)
    for division in divisions(rng, 20_000, 5).values():
        (counted, *_) = assert_cuts_of_one_worker(X, division, 5, max_bins=8)
        assert counted.calls.count("gather") <= 8


# ---- what differs between workers


def test_dtypes_may_differ_between_workers() -> None:
    """Each worker's values are compared as float64, as those of one array of all would be."""
    rng = np.random.default_rng(0)
    parts = [
        rng.integers(-100, 100, (300, 2)).astype(np.int8),
        rng.normal(size=(200, 2)).astype(np.float16),
        rng.normal(size=(400, 2)).astype(np.float32),
        rng.integers(-(2**60), 2**60, (100, 2)),
        rng.integers(0, 2**64 - 1, (100, 2), np.uint64),
        rng.normal(size=(100, 2)).astype(">f8"),
        np.where(rng.random((200, 2)) < 0.5, np.nan, np.longdouble(0.1)),
        rng.random((30, 2)) < 0.5,
        np.empty((0, 2), np.uint8),
    ]
    expected = BinMapper.fit(np.concatenate([part.astype(np.float64) for part in parts]), max_bins=100)
    for mapper in run_workers(len(parts), lambda peers: BinMapper.fit(parts[peers.rank], max_bins=100, peers=peers)):
        assert same(mapper, expected)


@pytest.mark.parametrize("of_workers", [(1, 5, 2), (2, 5, 3), (5, 2, 5)])
def test_weights_may_be_given_on_some_workers_and_equal_on_each(of_workers: tuple[int, ...]) -> None:
    """Weights that are equal on a worker count as they are if those of another worker differ."""
    X = np.arange(60.0).reshape(-1, 1)
    units = np.repeat(of_workers, 20)
    given = [None if units[0] == 1 else units[:20], units[20:40], units[40:].astype(np.int16)]
    expected = BinMapper.fit(X, max_bins=4, integer_weights=units)
    assert not same(expected, BinMapper.fit(X, max_bins=4))

    def fit(peers: Peers) -> BinMapper:
        return BinMapper.fit(np.split(X, 3)[peers.rank], max_bins=4, integer_weights=given[peers.rank], peers=peers)

    assert all(same(mapper, expected) for mapper in run_workers(3, fit))


@pytest.mark.parametrize(
    ("differ", "message"),
    [
        ({"X": np.zeros((5, 4))}, "columns of X must be the same on all workers, got 3 on worker 0 and 4 on worker 2"),
        ({"max_bins": 9}, "max_bins must be the same on all workers, got 255 on worker 0 and 9 on worker 2"),
        ({"integer_weights": np.full(5, 2**60)}, r"integer_weights must sum to at most 2\*\*63 - 1, got "),
    ],
)
def test_what_must_not_differ_is_an_error_on_all_workers(differ: dict[str, Any], message: str) -> None:
    usual = {"X": np.zeros((5, 3)), "integer_weights": np.full(5, 2**59)}

    def fit(peers: Peers) -> None:
        arguments = {**usual, **(differ if peers.rank == 2 else {})}
        with pytest.raises(ValueError, match=message):
            BinMapper.fit(arguments.pop("X"), peers=peers, **arguments)

    run_workers(4, fit)


def test_a_bad_matrix_on_one_worker_is_the_error_that_is_raised() -> None:
    with pytest.raises(TypeError, match=r"X must have .* dtype, got object") as raised:
        run_workers(3, lambda peers: BinMapper.fit(np.zeros((5, 2), object if peers.rank == 1 else float), peers=peers))
    assert raised.value.__notes__ == ["raised by worker 1 of 3"]


def test_workers_that_are_elsewhere_are_named() -> None:
    def work(peers: Peers) -> object:
        if peers.rank == 1:
            return peers.sum(np.zeros(6, np.int64), "weights")
        return BinMapper.fit(np.zeros((5, 2)), peers=peers)

    with pytest.raises(WorkersPartedError, match=r"worker 0 is at gather 'sizes of X' .* worker 1 at sum 'weights'"):
        run_workers(2, work)

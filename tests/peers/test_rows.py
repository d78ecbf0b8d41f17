"""Which rows are drawn, held out or heaviest does not depend on the workers that hold them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.peers.base import Peers
from gpuboost.peers.rows import RowOrder
from gpuboost.peers.threads import run_workers


def by_workers(owner: list[int], n_workers: int, choose: Callable[[RowOrder, Any], Any]) -> list[Any]:
    """What ``choose(order, rows)`` returns by worker, put together in the order of all rows; stretch s is ``owner[s]``'s.

    A stretch has one row, so that a worker has rows here and there.
    """
    found: list[Any] = [None] * len(owner)

    def work(peers: Peers) -> None:
        keys = np.flatnonzero(np.array(owner) == peers.rank)
        order = RowOrder.of(keys, np.ones(len(keys), np.int64), peers)
        for row, value in zip(keys.tolist(), choose(order, keys), strict=True):
            found[row] = value

    run_workers(n_workers, work)
    return found


def heaviest(values: Any, share: float) -> list[int]:
    needed = math.ceil(share * int(np.sum(values)))
    return np.flatnonzero(RowOrder.alone(len(values)).heaviest(np.array(values), needed)).tolist()  # type: ignore[no-any-return]


def test_the_heaviest_rows_by_hand() -> None:
    sum_abs = np.array([3, 9, 0, 3, 4, 3, 8])  # 30; falling 9, 8, 4, 3, 3, 3, 0, and their sums 9, 17, 21, 24, 27, 30
    assert heaviest(sum_abs, 0.3) == [1]  # 9 of 9
    assert heaviest(sum_abs, 0.31) == [1, 6]
    assert heaviest(sum_abs, 0.7) == [1, 4, 6]  # 21 of 21
    assert heaviest(sum_abs, 0.71) == [0, 1, 4, 6]  # the first of three ties
    assert heaviest(sum_abs, 0.85) == [0, 1, 3, 4, 6]
    assert heaviest(sum_abs, 0.95) == [0, 1, 3, 4, 5, 6]
    assert heaviest(np.zeros(3, np.int64), 0.5) == [0]


ROWS = st.lists(st.tuples(st.integers(0, 20) | st.integers(0, 2**50), st.integers(0, 3)), min_size=1, max_size=30)


@given(ROWS, st.floats(0.001, 0.999))
@settings(max_examples=60, deadline=None)
def test_the_heaviest_rows(rows: list[tuple[int, int]], share: float) -> None:
    sum_abs = [value for value, _ in rows]
    order = sorted(range(len(sum_abs)), key=lambda i: (-sum_abs[i], i))
    needed = math.ceil(share * sum(sum_abs))
    n = next(n for n in range(1, len(sum_abs) + 1) if sum(sum_abs[i] for i in order[:n]) >= needed)
    expected = sorted(order[:n])
    assert heaviest(sum_abs, share) == expected
    found = by_workers([w for _, w in rows], 4, lambda order, own: order.heaviest(np.array(sum_abs)[own], needed))
    assert np.flatnonzero(found).tolist() == expected


@given(ROWS, st.integers(1, 3), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_largest_of_groups(rows: list[tuple[int, int]], n_groups: int, random: Any) -> None:
    values, groups = np.array([value for value, _ in rows]), np.array([random.randrange(n_groups) for _ in rows])
    n = np.array([random.randint(0, int((groups == g).sum())) for g in range(n_groups)])
    expected = [False] * len(rows)
    for g in range(n_groups):
        of_group = sorted(np.flatnonzero(groups == g).tolist(), key=lambda i: (-values[i], i))
        for i in of_group[: n[g]]:
            expected[i] = True
    assert RowOrder.alone(len(rows)).largest(values, n, groups).tolist() == expected
    found = by_workers([w for _, w in rows], 4, lambda order, own: order.largest(values[own], n, groups[own]))
    assert found == expected


def test_values_of_64_bits() -> None:
    values = np.array([2**64 - 1, 0, 2**63, 2**64 - 1, 2**63 - 1], np.uint64)
    for n, expected in ((1, [0]), (2, [0, 3]), (3, [0, 2, 3]), (4, [0, 2, 3, 4]), (5, [0, 1, 2, 3, 4])):
        assert np.flatnonzero(RowOrder.alone(5).largest(values, np.array([n]))).tolist() == expected


@pytest.mark.parametrize("owner", [[0, 0, 0, 1, 1], [1, 0, 1, 0, 2], [2, 2, 2, 2, 2]])
def test_numbers_of_rows(owner: list[int]) -> None:
    """A row has the random number of its place, among all rows and among those of a part."""
    alone = RowOrder.alone(5).random([3, 1, 0]).tolist()
    assert by_workers(owner, 3, lambda order, own: order.random([3, 1, 0]).tolist()) == alone
    assert by_workers(owner, 3, lambda order, own: [order.n_rows] * len(own)) == [5] * 5
    odd = [1, 3, 4]

    def of_part(order: RowOrder, own: Any) -> list[Any]:
        chosen = np.flatnonzero(np.isin(own, odd))
        numbers = dict(zip(own[chosen].tolist(), order.subset(chosen).random([3, 1, 0]).tolist(), strict=True))
        return [numbers.get(row) for row in own.tolist()]

    assert by_workers(owner, 3, of_part) == [None, alone[0], None, alone[1], alone[2]]

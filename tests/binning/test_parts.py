"""What workers tell each other of a column: keys, entries, pivots and their bytes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.binning.entries import Entries
from gpuboost.binning.keys import HIGHEST, LOWEST, to_keys, to_values
from gpuboost.binning.outline import UNKNOWN
from gpuboost.binning.parts import Part, decoded, encoded, merged, pivots

NO_KEYS = np.empty(0, np.uint64)


@settings(deadline=None)
@given(st.lists(st.floats(allow_nan=False), min_size=2))
def test_keys_sort_as_numbers_and_lead_back_to_them(numbers: list[float]) -> None:
    keys = to_keys(np.array(numbers))
    assert to_values(keys).tolist() == numbers  # 0.0 == -0.0
    assert all((a < b) == (x < y) for a, x in zip(keys, numbers, strict=True) for b, y in zip(keys, numbers, strict=True))
    assert keys.min() > LOWEST
    assert keys.max() < HIGHEST


def test_keys_by_hand() -> None:
    numbers = np.array([-np.inf, -5e-324, -0.0, 0.0, 5e-324, np.inf])
    zero = 1 << 63
    assert to_keys(numbers).tolist() == [0x000FFFFFFFFFFFFF, zero - 2, zero, zero, zero + 1, 0xFFF << 52]
    assert np.signbit(to_values(to_keys(numbers))).tolist() == [True, True, False, False, False, False]


def some_entries(seed: int, n: int) -> tuple[Entries, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    column, units = rng.integers(0, 2 * n, n) * 0.5, rng.integers(1, 9, n)
    return Entries.of(column, units), column, units


def test_entries_tell_of_groups_what_is_in_them() -> None:
    """All of it or keys at equal steps; blocks' weights and neighbours, by brute force."""
    entries, column, units = some_entries(0, 200)
    values = np.unique(column)
    known = np.array([-3.0, values[20], values[21], values[60] + 0.25, values[-1]])
    edges = [-np.inf, *known, np.inf]
    groups = np.array([1, 3, 4, 5])
    inside = [v for v in values if any(edges[g] < v < edges[g + 1] for g in groups)]
    part = entries.part(to_keys(known), groups, len(inside), 7)
    assert part.is_whole
    assert to_values(part.keys).tolist() == inside
    assert part.weights.tolist() == [units[column == v].sum() for v in inside]
    part = entries.part(to_keys(known), groups, len(inside) - 1, 7)
    assert (part.is_whole, part.n_entries, part.weights.size) == (False, len(inside), 0)
    assert to_values(part.keys).tolist() == [inside[len(inside) * i // 8] for i in range(1, 8)]
    expected = []
    for low, high in pairwise(edges):
        expected += [units[(low < column) & (column < high)].sum(), units[column == high].sum()]
    assert entries.block_weights(to_keys(known)).tolist() == expected[:-1]
    at = to_keys(np.array([values[5], values[5] + 0.25]))
    assert to_values(entries.before(at)).tolist() == [values[4], values[5]]
    assert to_values(entries.after(at)).tolist() == [values[6], values[6]]
    ends = to_keys(values[[0, -1]])
    assert entries.before(ends[:1]).tolist() == [LOWEST]
    assert entries.after(ends[1:]).tolist() == [HIGHEST]


def test_an_outline_keeps_what_is_known_and_has_new_blocks_for_opened_groups() -> None:
    entries, column, _ = some_entries(1, 60)
    keys = to_keys(np.unique(column))
    outline, blocks = UNKNOWN.opened(np.array([0]), keys[[10, 20, 21]])
    assert blocks.tolist() == list(range(7))
    outline.weights[:] = entries.block_weights(outline.keys)
    outline, blocks = outline.opened(np.array([0, 2, 3]), keys[[3, 4, 30]])
    # group, 3, group, 4, group, 10, group, 20, group, 21, group, 30, group
    assert outline.keys.tolist() == keys[[3, 4, 10, 20, 21, 30]].tolist()
    assert blocks.tolist() == [0, 1, 2, 3, 4, 8, 10, 11, 12]
    expected = entries.block_weights(outline.keys)
    expected[blocks] = 0
    assert outline.weights.tolist() == expected.tolist()


@pytest.mark.parametrize("sizes", [(5000, 5000, 5000), (20_000, 100, 0), (300,) * 40])
def test_pivots_are_few_and_leave_few_entries_between_them(sizes: tuple[int, ...]) -> None:
    """At most a step of all entries, and one of each worker, however the values lie on the workers."""
    n_pivots = 50
    columns = [np.random.default_rng(i).normal(i % 3, 10.0 ** (i % 5), size) for i, size in enumerate(sizes)]
    parts = [Entries.of(column, None).part(NO_KEYS, np.array([0]), 200, n_pivots) for column in columns]
    found = to_values(pivots(parts, n_pivots))
    assert len(found) <= n_pivots + 1
    values = np.concatenate(columns)
    between = np.diff(np.searchsorted(np.sort(values), found), prepend=0, append=values.size)
    step = -(-values.size // n_pivots)
    assert between.max() <= 1.1 * (step + sum(-(-part.n_entries // (part.keys.size or 1)) for part in parts))


def test_entries_of_all_workers_are_merged() -> None:
    columns = [some_entries(seed, n)[1:] for seed, n in enumerate([40, 0, 7, 90])]
    parts = [Entries.of(*column).part(NO_KEYS, np.array([0]), 100, 9) for column in columns]
    values, units = (np.concatenate(both) for both in zip(*columns, strict=True))
    keys, weights = merged(parts)
    assert to_values(keys).tolist() == np.unique(values).tolist()
    assert weights.tolist() == [units[values == v].sum() for v in np.unique(values)]


@pytest.mark.parametrize(("heaviest", "n_bytes"), [(255, 1), (256, 2), (2**16, 4), (2**32, 8), (2**63 - 1, 8)])
def test_parts_travel_as_bytes(heaviest: int, n_bytes: int) -> None:
    rng = np.random.default_rng(0)

    def part(n_entries: int, n_keys: int, n_weights: int) -> Part:
        keys = rng.integers(0, 2**64 - 1, n_keys, np.uint64)
        return Part(n_entries, bool(rng.random() < 0.5), keys, rng.integers(heaviest // 2, heaviest, n_weights, endpoint=True))

    parts = [part(3, 3, 3), part(0, 0, 0), part(2**40, 4, 0), part(5, 5, 5)]
    parts[3].weights[2] = heaviest
    message = encoded(parts)
    assert len(message) == 4 * 32 + 12 * 8 + 8 * n_bytes
    for one, other in zip(parts, decoded(message, 4), strict=True):
        assert (one.n_entries, one.has_missing) == (other.n_entries, other.has_missing)
        assert one.keys.tolist() == other.keys.tolist()
        assert one.weights.tolist() == other.weights.tolist()
    (empty,) = decoded(encoded([part(0, 0, 0)]), 1)
    assert (empty.n_entries, empty.keys.size, empty.weights.size) == (0, 0, 0)

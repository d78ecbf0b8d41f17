from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Stats
from gpuboost.fixedpoint import (
    CHANNEL_BITS,
    MAX_REPEAT,
    MAX_ROWS,
    MOST_DROPPED,
    MOST_ENTRIES,
    NARROW_ROWS,
    check_size,
    exponent,
    final_shift,
    first_shift,
    integer_weights,
    is_wide,
    row_counts,
    split_weights,
)
from tests.problems import cpu_backend

LIMIT = 2**CHANNEL_BITS - 1
BACKENDS: tuple[Backend, ...] = (NumpyBackend(), cpu_backend())
untimed = settings(deadline=None)


@st.composite
def states(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A state with weights spread over twelve powers of ten, signs and repeats."""
    n_rows, n_channels = draw(st.integers(1, 300)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.sampled_from([0.0, 1.0, 12.0]))
    state = (1.0 + rng.random((n_rows, n_channels))) * 10.0 ** -rng.uniform(0, spread, (n_rows, n_channels))
    state[rng.random(state.shape) < draw(st.sampled_from([0.0, 0.5]))] = 0.0
    state[rng.integers(n_rows), rng.integers(n_channels)] = 1.0  # never all zero
    signs = rng.choice(np.array([-1, 1], np.int8), state.shape)
    frequency_weight = rng.integers(1, draw(st.sampled_from([1, 3, MAX_REPEAT])) + 1, n_rows).astype(np.int32)
    return state, signs, frequency_weight


def statistics(backend: Backend, state: np.ndarray, signs: np.ndarray, frequency_weight: np.ndarray) -> Stats:
    on_device = [backend.put(a) for a in (state, signs, frequency_weight)]
    return backend.statistics(*on_device, int(frequency_weight.sum()), float(state.max()))


def q_of(backend: Backend, stats: Stats) -> np.ndarray:
    """The statistics without a backend's padding, which must be zero."""
    quantised = backend.get(stats.quantised)
    assert quantised.dtype == np.int32
    assert not quantised[..., stats.n_channels :].any()
    return quantised[0, :, : stats.n_channels].astype(np.int64)


def provable_bound(state: np.ndarray, frequency_weight: np.ndarray, shift: int) -> Fraction:
    """The shift rule's bound on a channel's sum at ``shift``, from its definition, in exact arithmetic."""
    scale = Fraction(2) ** first_shift(float(state.max()))
    rows = range(len(state))
    largest = max(
        sum(int(frequency_weight[i]) * round(Fraction(float(state[i, c])) * scale) for i in rows) for c in range(state.shape[1])
    )
    half = Fraction(int(frequency_weight.sum()), 2)
    return (largest + half) / 2 ** (first_shift(float(state.max())) - shift) + half


@pytest.mark.parametrize("maximum", [1.0, 0.5, 1.5, 2.0, math.nextafter(2.0, 0.0), 3e-5, 1e9])
def test_first_shift_puts_the_maximum_between_two_powers(maximum: float) -> None:
    assert 2.0 ** (exponent(maximum) - 1) <= maximum < 2.0 ** exponent(maximum)
    assert 2**30 <= Fraction(maximum) * Fraction(2) ** first_shift(maximum) < 2**31


PARTS = st.sampled_from([1, 2, 4])


@untimed
@given(st.integers(0, 2**62), st.integers(1, NARROW_ROWS), PARTS)
def test_final_shift_is_the_largest_with_the_bound(largest_sum: int, n_rows: int, parts: int) -> None:
    half = Fraction(parts * n_rows, 2)
    drop = 40 - final_shift(40, largest_sum, n_rows, parts)
    assert drop >= 0
    assert (largest_sum + half) / 2**drop + half <= LIMIT
    if drop:
        assert (largest_sum + half) / 2 ** (drop - 1) + half > LIMIT


@pytest.mark.parametrize(("largest_sum", "drop"), [(LIMIT - 1, 0), (LIMIT, 1), (2 * LIMIT - 2, 1), (2 * LIMIT - 1, 2)])
def test_final_shift_of_one_row_at_the_limit(largest_sum: int, drop: int) -> None:
    # R = 1: (S + 1/2) / 2**d + 1/2 <= L, i.e. S <= L - 1 for d = 0 and S <= 2 L - 3/2 for d = 1.
    assert final_shift(7, largest_sum, 1) == 7 - drop


def test_too_many_rows_are_refused() -> None:
    assert final_shift(0, 2**62, MAX_ROWS) == -MOST_DROPPED
    with pytest.raises(ValueError, match=f"at most {MAX_ROWS} rows .* got {MAX_ROWS + 1}"):
        final_shift(0, 1, MAX_ROWS + 1)
    check_size(2**30, 2**14)
    with pytest.raises(ValueError, match=f"at most {MOST_ENTRIES} pairs .* got 1073741824 rows and 16385 classes"):
        check_size(2**30, 2**14 + 1)


# ---- more rows than NARROW_ROWS ----------------------------------------------------------------------------------------------


@st.composite
def many_rows(draw: st.DrawFn) -> list[tuple[float, int]]:
    """Weights with the number of rows that have them, more than `NARROW_ROWS` together: a few, heavy ones, and light ones."""
    n_heavy = draw(st.sampled_from([0, 1, 30, 1000, 10**5, 2**22, 2**30]))
    few = draw(st.lists(st.tuples(st.floats(2.0**-40, 1.0), st.integers(1, 10**4)), max_size=9))
    n_light = draw(st.integers(NARROW_ROWS + 1, 2**30 - 10**5))
    return [(1.0, n_heavy), *few, (draw(st.floats(2.0**-40, 1.0)), n_light)]


@untimed
@given(many_rows(), st.integers(-50, 50), PARTS)
def test_sums_of_many_rows_fit(rows: list[tuple[float, int]], power: int, parts: int) -> None:
    # Every entry is made of ``parts`` parts that are as large as the weight.
    rows = [(math.ldexp(weight, power), times) for weight, times in rows if times]
    n_rows, first = sum(times for _, times in rows), first_shift(max(weight for weight, _ in rows))

    def entries(shift: int) -> list[int]:
        return [parts * round(Fraction(weight) * Fraction(2) ** shift) for weight, _ in rows]

    def total(shift: int) -> int:
        return sum(times * entry for (_, times), entry in zip(rows, entries(shift), strict=True))

    assert total(first) // parts < 2**62  # what is summed for the rule is int64
    shift = final_shift(first, total(first), n_rows, parts)
    for (_, times), entry in zip(rows, entries(shift), strict=True):
        assert min(times, MAX_REPEAT) * entry <= 2**30  # of one row that stands for several
    assert total(shift) <= n_rows * 2**18 < 2**49
    dropped, half = first - shift, Fraction(parts * n_rows, 2)
    assert dropped <= MOST_DROPPED + {1: 0, 2: 1, 4: 2}[parts]
    if dropped < MOST_DROPPED + {1: 0, 2: 1, 4: 2}[parts]:  # then it is as up to NARROW_ROWS rows
        assert total(shift) <= (total(first) + half) / 2**dropped + half <= LIMIT
    if dropped:
        assert (total(first) + half) / 2 ** (dropped - 1) + half > LIMIT


@pytest.mark.parametrize("n_rows", [NARROW_ROWS + 1, 5 * 10**7, 10**9, MAX_ROWS])
@pytest.mark.parametrize("weight", [1.0, 0.75, 2.0**-899])
def test_rows_of_equal_weights_have_enough_units(n_rows: int, weight: float) -> None:
    assert is_wide(n_rows)
    assert not is_wide(NARROW_ROWS)
    first = first_shift(weight)
    shift = final_shift(first, n_rows * round(math.ldexp(weight, first)), n_rows)
    assert 2**10 <= 2**17 <= math.ldexp(weight, shift) < 2**18
    assert 2 * round(math.ldexp(0.25, first_shift(0.25) - MOST_DROPPED - 1)) >= 2**10  # a gradient of two classes


def test_counts_of_many_rows() -> None:
    # 4000 rows that stand for 4096 each: at the first shift a row has 2**30 units, and 13 bits are dropped.
    counts = row_counts(np.full(4000, 4096, np.int32), np.ones(4000))
    assert counts.dtype == np.int32
    assert set(counts.tolist()) == {4096 * 2**17}
    # One row weighs nearly all: 2**30 / 2**d + R/2 (1 + 2**-d) <= 2**30 - 1 from d = 1 on, as up to NARROW_ROWS rows.
    n = NARROW_ROWS + 1
    counts = row_counts(np.ones(n, np.int32), np.append(1.0, np.full(n - 1, 2.0**-40)))
    assert counts[:2].tolist() == [2**29, 0]


def test_units_of_errors_leave_room_for_all_labels() -> None:
    factors = np.linspace(0.25, 1.0, 4)
    for n_labels, bits in ((1, 30), (2**29, 30), (2**30, 29), (2**40, 19)):  # 4 * n_labels * 2**bits <= 2**61
        units = integer_weights(np.ones(4, np.int32), factors, n_labels)
        assert units.tolist() == [round(f * 2**bits) for f in factors]
        assert int(units.sum()) * n_labels <= 2**62


@pytest.mark.slow
@untimed
@given(states())
def test_shift_rule(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    state, signs, frequency_weight = case
    n_rows = int(frequency_weight.sum())
    for backend in BACKENDS:
        stats = statistics(backend, state, signs, frequency_weight)
        quantised = q_of(backend, stats)
        # Nothing exceeds the limit, and a larger shift would have no proof of that.
        assert np.abs(quantised).sum(axis=0).max() <= provable_bound(state, frequency_weight, stats.shift) <= LIMIT
        if stats.shift < first_shift(float(state.max())):
            assert provable_bound(state, frequency_weight, stats.shift + 1) > LIMIT
        # The sums are those of q, and q is repeat * rint(w * 2**shift) with the signs.
        assert stats.sum.tolist() == quantised.sum(axis=0).tolist()
        assert stats.sum_abs.tolist() == np.abs(quantised).sum(axis=0).tolist()
        assert stats.total == np.abs(quantised).sum()
        scale = Fraction(2) ** stats.shift
        for i, c in np.ndindex(*state.shape):
            assert quantised[i, c] == int(frequency_weight[i]) * int(signs[i, c]) * round(Fraction(state[i, c]) * scale)
        # A channel's sum is at most R / 2 units from the exact one.
        for c in range(state.shape[1]):
            exact = sum(int(r) * Fraction(w) for r, w in zip(frequency_weight, state[:, c].tolist(), strict=True))
            assert abs(int(stats.sum_abs[c]) - exact * scale) <= Fraction(n_rows, 2)


@untimed
@given(states(), st.integers(-60, 60))
def test_powers_of_two_change_the_shift_only(case: tuple[np.ndarray, np.ndarray, np.ndarray], power: int) -> None:
    state, signs, frequency_weight = case
    for backend in BACKENDS:
        one, other = (statistics(backend, np.ldexp(state, p), signs, frequency_weight) for p in (0, power))
        assert one.shift == other.shift + power
        assert q_of(backend, one).tobytes() == q_of(backend, other).tobytes()


@untimed
@given(states(), st.integers(0, 2**32))
def test_order_of_rows_does_not_matter(case: tuple[np.ndarray, np.ndarray, np.ndarray], seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(case[0]))
    for backend in BACKENDS:
        one, other = statistics(backend, *case), statistics(backend, *(a[order] for a in case))
        assert one.shift == other.shift
        assert one.sum.tolist() == other.sum.tolist()
        assert one.sum_abs.tolist() == other.sum_abs.tolist()
        assert q_of(backend, one)[order].tobytes() == q_of(backend, other).tobytes()


@untimed
@given(states())
def test_a_repeat_is_a_repeated_row(case: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    state, signs, frequency_weight = case
    frequency_weight = np.minimum(frequency_weight, 5)
    rows = np.repeat(np.arange(len(state)), frequency_weight)
    for backend in BACKENDS:
        one = statistics(backend, state, signs, frequency_weight)
        other = statistics(backend, state[rows], signs[rows], np.ones(len(rows), np.int32))
        assert one.shift == other.shift
        assert one.sum.tolist() == other.sum.tolist()
        assert one.sum_abs.tolist() == other.sum_abs.tolist()


# ---- sample weights ----------------------------------------------------------------------------------------------------------


@untimed
@given(st.lists(st.integers(1, MAX_REPEAT), min_size=1, max_size=20), st.floats(1e-30, 1e30))
def test_multiples_of_any_unit_are_repeats(multiples: list[int], unit: float) -> None:
    multiples[0] = 1  # the unit itself is among the weights
    frequency_weight, weight_scale = split_weights(np.array(multiples) * unit)
    assert frequency_weight.tolist() == multiples
    assert frequency_weight.dtype == np.int32
    assert weight_scale.tolist() == [1.0] * len(multiples)


@pytest.mark.parametrize(
    ("weights", "frequency_weight", "weight_scale"),
    [
        ([7.25], [1], [1.0]),  # one row, of any weight
        ([0.1, 0.3, 0.2], [1, 3, 2], [1.0, 1.0, 1.0]),  # 0.3 / 0.1 is not 3 in binary
        ([2.0, 3.0], [1, 1], [2 / 3, 1.0]),  # 3 is no multiple of 2
        ([1.0, 1.0 + 1e-9], [1, 1], [1.0 / (1.0 + 1e-9), 1.0]),
        ([1.0, MAX_REPEAT], [1, MAX_REPEAT], [1.0, 1.0]),
        ([1.0, MAX_REPEAT + 1.0], [1, 1], [1.0 / (MAX_REPEAT + 1.0), 1.0]),
        ([1e-300, 1e300], [1, 1], [2.0**-900, 1.0]),  # positive is positive
        ([4.0, 4.0, 4.0], [1, 1, 1], [1.0, 1.0, 1.0]),
    ],
)
def test_split_weights(weights: list[float], frequency_weight: list[int], weight_scale: list[float]) -> None:
    r, f = split_weights(np.array(weights))
    assert r.tolist() == frequency_weight
    assert f.tolist() == weight_scale
    assert r.dtype == np.int32


@untimed
@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
def test_split_weights_keeps_the_ratios(weights: list[float]) -> None:
    frequency_weight, weight_scale = split_weights(np.array(weights))
    product = frequency_weight * weight_scale
    assert product / product.max() == pytest.approx(np.array(weights) / max(weights), rel=1e-11)
    assert ((weight_scale > 0) & (weight_scale <= 1)).all()


@st.composite
def split(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Repeats, or factors over up to 300 powers of two, or both; the largest factor is 1."""
    n_rows = draw(st.integers(1, 200))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    frequency_weight = rng.integers(1, draw(st.sampled_from([1, 3, MAX_REPEAT])) + 1, n_rows).astype(np.int32)
    weight_scale = 2.0 ** -rng.uniform(0, draw(st.sampled_from([0.0, 1.0, 300.0])), n_rows)
    return frequency_weight, weight_scale / weight_scale.max()


@untimed
@given(split())
def test_row_counts_are_weights_in_a_unit_that_fits(case: tuple[np.ndarray, np.ndarray]) -> None:
    frequency_weight, weight_scale = case
    counts = row_counts(frequency_weight, weight_scale)
    assert counts.dtype == np.int32
    total, n_rows = int(counts.sum(dtype=np.int64)), int(frequency_weight.sum())
    # The shift rule for a single channel whose largest entry is 1.
    scale = Fraction(2) ** next(
        s for s in range(30, -2, -1) if provable_bound(weight_scale[:, None], frequency_weight, s) <= LIMIT
    )
    assert counts.tolist() == [
        int(r) * round(Fraction(f) * scale) for r, f in zip(frequency_weight.tolist(), weight_scale.tolist(), strict=True)
    ]
    assert total <= LIMIT
    # The rule's bound fails for d - 1, and rounding takes R/2 units at most: 2**29 - 1/2 - R/4 - R/2**d - R/2, and d is not 0.
    assert total >= 2**29 - 2 * n_rows
    exact = sum(int(r) * Fraction(f) for r, f in zip(frequency_weight.tolist(), weight_scale.tolist(), strict=True)) * scale
    assert abs(total - exact) <= Fraction(n_rows, 2)


@untimed
@given(split(), st.integers(0, 2**32))
def test_row_counts_of_repeats_are_those_of_repeated_rows(case: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    frequency_weight, weight_scale = np.minimum(case[0], 5), case[1]
    rows = np.repeat(np.arange(len(frequency_weight)), frequency_weight)
    rows = np.random.default_rng(seed).permutation(rows)
    each = row_counts(np.ones(len(rows), np.int32), weight_scale[rows])
    assert np.bincount(rows, each).astype(np.int64).tolist() == row_counts(frequency_weight, weight_scale).tolist()


def test_row_counts_by_hand() -> None:
    # S = 4 * 2**30 and R = 4: (S + 2) / 2**d + 2 <= 2**30 - 1 from d = 3 on, which is 2**27 units a row.
    counts = row_counts(np.array([1, 2, 1], np.int32), np.ones(3))
    assert counts.tolist() == [2**27, 2**28, 2**27]
    # S = 2**30 + 2**29 + 1 (2**-30 is one unit at the first shift 30, 2**-31 half a unit, which is 0) and R = 4, so d = 1.
    counts = row_counts(np.ones(4, np.int32), np.array([1.0, 0.5, 2.0**-30, 2.0**-31]))
    assert counts.tolist() == [2**29, 2**28, 0, 0]


def test_weight_units_are_the_repeats() -> None:
    units = integer_weights(np.array([1, 4096, 3], np.int32), np.ones(3))
    assert units.tolist() == [1, 4096, 3]
    assert units.dtype == np.int64


def test_weight_units_of_real_factors() -> None:
    # 2**30 / 3 = 357913941.33; 2**-31 of the largest weight would be half a unit: at least one is counted.
    units = integer_weights(np.ones(4, np.int32), np.array([1.0, 1 / 3, 2.0**-31, 1e-300]))
    assert units.tolist() == [2**30, 357913941, 1, 1]
    assert units.dtype == np.int64

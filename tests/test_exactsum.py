"""Sums that are rounded once: those of `math.fsum`, in every order."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.exactsum import exact_sums
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.weights import class_weights

untimed = settings(deadline=None)
numbers = st.floats(allow_nan=False, allow_infinity=False, max_value=1e300, min_value=-1e300)


@untimed
@given(st.lists(st.tuples(numbers, st.integers(0, 3)), max_size=60))
def test_sums_are_rounded_once(terms: list[tuple[float, int]]) -> None:
    values = np.array([value for value, _ in terms], np.float64)
    groups = np.array([group for _, group in terms], np.int64)
    expected = [math.fsum(value for value, group in terms if group == g) for g in range(4)]
    assert exact_sums(values, groups, 4).tolist() == expected


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0**-53], 1.0),  # half a unit in the last place: to even
        ([1.0 + 2.0**-52, 2.0**-53], 1.0 + 2.0**-51),
        ([1.0, 2.0**-53, 5e-324], 1.0 + 2.0**-52),  # more than half
        ([1e300, 1.0, -1e300], 1.0),
        ([5e-324] * 3, 1.5e-323),
        ([-(2.0**53) - 2.0, 1.0], -(2.0**53) - 2.0 + 1.0),
        ([math.nextafter(1.0, 0.0)] * 3, 3.0 - 3 * 2.0**-53),  # all bits of all pieces
    ],
)
def test_by_hand(values: list[float], expected: float) -> None:
    assert Fraction(exact_sums(np.array(values), np.zeros(len(values), np.int64), 1)[0]) == Fraction(expected)


def test_a_sum_beyond_all_floats_is_refused() -> None:
    with pytest.raises(OverflowError):
        exact_sums(np.full(2, 1.5e308), np.zeros(2, np.int64), 1)


@untimed
@given(st.integers(0, 2**32))
def test_balanced_class_weights_do_not_depend_on_the_order_of_rows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = np.concatenate([np.arange(5), rng.integers(0, 5, 300)])
    weights = rng.random(305) * 10.0 ** -rng.uniform(0, 20, 305) + 1e-30
    encoder, order = LabelEncoder.fit(target), rng.permutation(305)
    one, other = (class_weights("balanced", encoder, target[rows], weights[rows]) for rows in (np.arange(305), order))
    assert one.tobytes() == other.tobytes()
    assert one.tolist() == [1.0 / math.fsum(weights[target == k]) for k in range(5)]


def test_without_weights_a_balanced_class_weighs_one_over_its_rows() -> None:
    target = np.repeat([0, 1, 2], [10, 20, 90])
    assert class_weights("balanced", LabelEncoder.fit(target), target, np.ones(120)).tolist() == [1 / 10, 1 / 20, 1 / 90]

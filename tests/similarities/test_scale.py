"""Levels of features: worked by hand, their bounds, and what they do not depend on."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.similarities.scale import MAX_SQUARED_DISTANCE, FeatureScale, check_size

NAN, INF = np.nan, np.inf


def ones(X: NDArray[np.generic]) -> NDArray[np.int64]:
    return np.ones(len(X), np.int64)


def test_a_common_unit_by_hand() -> None:
    # Ranges of 10 and 5, 11 levels: the unit is 1. A constant column has one level, a column of missing values, too.
    X = np.array([[0.0, 5.0, 3.0, NAN], [10.0, 7.4, 3.0, NAN], [2.6, 10.0, 3.0, NAN]])
    scale = FeatureScale.fit(X, ones(X), 11, "common")
    assert scale.low.tolist() == [0, 5, 3, 0]
    assert scale.unit.tolist() == [1, 1, 1, 1]
    assert scale.top.tolist() == [10, 5, 0, 0]
    assert scale.missing.tolist() == [4, 2, 0, 0]  # means 4.2 and 7.47
    assert scale.transform(X).tolist() == [[0, 0, 0, 0], [10, 2, 0, 0], [3, 5, 0, 0]]
    other = np.array([[NAN, -3.0, 9.0, 1.0], [INF, INF, INF, -INF], [-INF, 6.5, NAN, NAN], [4.5, 99.0, 0.0, 0.0]])
    assert scale.transform(other).tolist() == [[4, 0, 0, 0], [10, 5, 0, 0], [0, 2, 0, 0], [4, 5, 0, 0]]
    assert scale.transform(other, np.array([3, 0])).tolist() == [[4, 5, 0, 0], [4, 0, 0, 0]]
    assert scale.values(np.array([[10, 2, 0, 0]], np.uint8)).tolist() == [[10, 7, 3, 0]]


def test_standard_deviations_by_hand() -> None:
    # The mean is 0, the deviation 1, and 99 rows are at 0 but two: +-sqrt(50), beyond four deviations.
    X = np.zeros((100, 1))
    X[0], X[1] = np.sqrt(50.0), -np.sqrt(50.0)
    scale = FeatureScale.fit(X, ones(X), 101, "standard")
    assert scale.low == pytest.approx(-4.0, abs=1e-3)
    assert scale.unit == pytest.approx(8 / 100, rel=1e-3)
    assert scale.top.tolist() == [100]
    assert scale.transform(X)[:3, 0].tolist() == [100, 0, 50]
    # Two values are one deviation from their mean: the levels go no further than they.
    scale = FeatureScale.fit(np.array([[1.0], [5.0]]), np.ones(2, np.int64), 5, "standard")
    assert (scale.low.tolist(), scale.unit.tolist(), scale.top.tolist(), scale.missing.tolist()) == ([1], [1], [4], [2])


def test_rows_without_weight_do_not_exist() -> None:
    X = np.array([[0.0], [10.0], [-1e9], [np.nan]])
    scale = FeatureScale.fit(X, np.array([1, 1, 0, 0]), 11, "common")
    assert (scale.low.tolist(), scale.unit.tolist(), scale.missing.tolist()) == ([0], [1], [5])


@pytest.mark.parametrize("scaling", ["standard", "common"])
def test_weights_are_rows(scaling: str) -> None:
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(50, 3)) * [1, 50, 1e-3], rng.integers(1, 5, 50)
    once = FeatureScale.fit(X, weights, 200, scaling)  # type: ignore[arg-type]
    order = rng.permutation(weights.sum())
    again = np.repeat(X, weights, axis=0)[order]
    repeated = FeatureScale.fit(again, ones(again), 200, scaling)  # type: ignore[arg-type]
    for name in ("low", "unit", "top", "missing"):
        assert getattr(once, name).tobytes() == getattr(repeated, name).tobytes()
    times = FeatureScale.fit(X, 2**10 * weights, 200, scaling)  # type: ignore[arg-type]
    assert times.unit.tobytes() == once.unit.tobytes()


@pytest.mark.parametrize("scaling", ["standard", "common"])
@pytest.mark.parametrize("unit", [5e-324, 1e-320, 1e-300, 1.0, 1e300])
def test_values_of_any_size(scaling: str, unit: float) -> None:
    X = np.array([[-170000000.0], [0.0], [170000000.0]]) * unit
    scale = FeatureScale.fit(X, ones(X), 3, scaling)  # type: ignore[arg-type]
    assert scale.transform(X).tolist() == [[0], [1], [2]]
    assert np.isfinite(scale.low).all()
    assert np.isfinite(scale.unit).all()


def test_one_smallest_number_apart() -> None:
    X = np.array([[0.0], [5e-324]])
    assert FeatureScale.fit(X, ones(X), 255, "standard").transform(X).tolist() in ([[0], [0]], [[0], [254]])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-1000, 1000), min_size=2, max_size=30), st.integers(2, 256))
def test_levels_are_within_half_a_unit(values: list[int], n_levels: int) -> None:
    X = np.array(values, float)[:, None]
    scale = FeatureScale.fit(X, ones(X), n_levels, "common")
    levels = scale.transform(X)
    assert levels.max() == scale.top[0]
    errors = [
        abs(Fraction(v) - Fraction(scale.low[0]) - int(q) * Fraction(scale.unit[0]))
        for v, q in zip(values, levels[:, 0], strict=True)
    ]
    assert max(errors) <= Fraction(scale.unit[0]) * Fraction(1, 2) * (1 + Fraction(1, 10**9))


def test_dtypes_make_no_difference() -> None:
    X = np.random.default_rng(0).integers(0, 100, (40, 3))
    levels = [
        FeatureScale.fit(X.astype(dtype), ones(X), 64, "standard").transform(X.astype(dtype)).tolist()
        for dtype in (np.float64, np.float32, np.float16, np.uint8, np.int64, np.longdouble)
    ]
    assert all(one == levels[0] for one in levels)


def test_distances_that_do_not_fit_are_refused() -> None:
    check_size(MAX_SQUARED_DISTANCE // 254**2, 255)
    message = r"8322 features with max_bins=255 levels do not fit in 31 bits: at most 8321 features .* smaller max_bins"
    with pytest.raises(ValueError, match=message):
        check_size(8322, 255)
    check_size(8322, 254)
    assert 20 * MAX_SQUARED_DISTANCE**2 < 2**63

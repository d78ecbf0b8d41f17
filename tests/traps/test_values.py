"""Values of X: thresholds, infinities, columns that say nothing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from tests.traps.problem import NOISY, VARIANTS, X, Y, digest, make


def test_a_value_on_the_threshold_goes_one_way() -> None:
    """Rows at every cut and one float32 step beside it get the same scores as float32 and float64, on every backend."""
    X32 = X.astype(np.float32)
    model = make(20).fit(X32, NOISY)
    cuts = np.concatenate([model.bin_mapper_.cuts(f) for f in range(3)]).astype(np.float32)
    rows = np.concatenate([cuts, np.nextafter(cuts, -np.inf, dtype=np.float32), np.nextafter(cuts, np.inf, dtype=np.float32)])
    rows = np.repeat(rows[:, None], 3, axis=1)
    scores = model.decision_function(rows)
    assert np.array_equal(scores, model.decision_function(rows.astype(np.float64)))
    assert np.array_equal(scores, pickle.loads(pickle.dumps(model)).decision_function(rows))
    assert np.array_equal(scores, model.set_params(device="numpy").decision_function(rows))


def test_a_value_that_equals_a_cut_goes_right() -> None:
    model = make(1, learner="stump").fit([[0.0], [2.0]], [0, 1])
    assert model.bin_mapper_.cut_values.tolist() == [1.0]
    assert model.predict([[np.nextafter(1.0, 0.0)], [1.0]]).tolist() == [0, 1]


@pytest.mark.parametrize(("a", "b"), [(0.671, 0.671 + 1e-9), (1.0, np.nextafter(1.0, 2.0)), (5e-324, 1e-323), (0.0, 5e-324)])
def test_neighbouring_doubles_are_told_apart(a: float, b: float) -> None:
    column, labels = np.array([[a], [b]] * 10), [0, 1] * 10
    assert make().fit(column, labels).score(column, labels) == 1.0


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([-np.inf, 0.0, 1.0, np.inf], [0, 1, 1, 2]),
        ([-1e308, 1e308], [0, 1]),
        ([-np.inf, np.inf], [0, 1]),
        ([np.finfo(float).max, np.inf], [0, 1]),
        ([1e39, 2e39], [0, 1]),
        ([np.inf, np.nan], [0, 1]),
        ([-np.inf, np.nan, np.inf], [0, 1, 2]),
    ],
)
def test_infinite_and_huge_values(values: list[float], labels: list[int]) -> None:
    column, y = np.array(values * 15)[:, None], labels * 15
    model = make().fit(column, y)
    assert model.score(column, y) == 1.0
    assert not np.isnan(model.bin_mapper_.cut_values).any()
    assert model.set_params(device="numpy").score(column, y) == 1.0


def test_a_column_of_infinities_says_nothing() -> None:
    model = make().fit(np.c_[X[:, 0], np.full(120, np.inf)], Y)
    assert model.feature_importances_.tolist() == [1.0, 0.0]


def test_columns_that_say_nothing_do_no_harm() -> None:
    useless = np.c_[X, np.full(120, np.nan), np.zeros(120)]
    model = make().fit(useless, Y)
    assert digest(model) == digest(make().fit(X, Y))
    assert model.feature_importances_[3:].tolist() == [0.0, 0.0]
    other = np.c_[X, np.ones(120), np.full(120, np.nan)]
    other[0, 0] = np.nan
    assert np.array_equal(model.predict(other)[1:], Y[1:])


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("params", VARIANTS, ids=str)
@pytest.mark.parametrize("column", [np.nan, 3.0, np.inf])
def test_without_a_usable_column_the_model_is_the_class_shares(column: float, params: dict[str, Any], device: str) -> None:
    y, weight = [0, 1, 1, 2, 2], [1.0, 1.0, 2.0, 0.5, 0.5]
    with pytest.warns(UserWarning, match="no column of X tells rows apart"):
        model = make(**params, device=device).fit(np.full((5, 2), column), y, sample_weight=weight)
    shares = model.predict_proba([[0.0, np.nan], [9.0, 1.0]])
    np.testing.assert_allclose(shares, [[0.2, 0.6, 0.2]] * 2, rtol=0, atol=1e-15)
    assert model.predict([[0.0, 0.0]]).tolist() == [1]
    assert model.feature_importances_.tolist() == [0.0, 0.0]


def test_multi_label_shares_without_a_usable_column() -> None:
    with pytest.warns(UserWarning, match="no column of X"):
        model = make().fit(np.ones((4, 1)), [[0, 1, 1], [0, 1, 0], [0, 1, 0], [0, 1, 0]])
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[0.0, 1.0, 0.25]], rtol=0, atol=1e-15)
    assert model.predict([[1.0]]).tolist() == [[0, 1, 0]]


def test_missing_against_present_is_information() -> None:
    column = np.array([0.0] * 15 + [np.nan] * 105)
    labels = np.isnan(column).astype(int)
    model = make().fit(column[:, None], labels)
    assert model.score(column[:, None], labels) == 1.0
    assert model.predict([[7.0], [np.nan]]).tolist() == [0, 1]

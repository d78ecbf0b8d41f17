"""Few rows, and weights of rows and classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from tests.traps.problem import FRAME, METHODS, NOISY, SMALLEST_LEAF, VARIANTS, X, Y, by_class, digest, make


def test_no_rows() -> None:
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        make().fit(X[:0], Y[:0])
    model = make().fit(FRAME, Y)
    for method in METHODS:
        with pytest.raises(ValueError, match=r"0 sample\(s\)"):
            getattr(model, method)(FRAME.iloc[:0])
        with pytest.raises(TypeError, match="dense data is required"):
            getattr(model, method)(sparse.csr_array(X)[:0])
    assert np.array_equal(model.predict(FRAME), Y)  # and nothing is left behind


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("params", VARIANTS, ids=str)
@pytest.mark.parametrize("labels", [["a"], ["b", "a"], ["a", "a"], ["c", "a", "b"], ["b", "a", "b"]])
def test_one_two_and_three_rows(labels: list[str], params: dict[str, Any], device: str) -> None:
    rows = np.arange(len(labels))[:, None]
    model = make(**params, device=device).fit(rows, labels)
    assert model.predict(rows).tolist() == labels
    assert np.isfinite(model.predict_proba(rows)).all()
    if len(set(labels)) == 1:
        assert model.predict_proba(rows).tolist() == [[1.0]] * len(rows)
        assert model.predict([[99.0]]).tolist() == ["a"]


@pytest.mark.parametrize("params", [*VARIANTS, SMALLEST_LEAF], ids=str)
def test_a_row_of_weight_zero_does_not_exist(params: dict[str, Any]) -> None:
    far, labels = X.copy(), NOISY.copy()
    far[:20] = 50000.0
    labels[:20] = 7  # a class of its own
    weight = np.r_[np.zeros(20), np.ones(100)]
    model = make(**params, max_bins=8).fit(far, labels, sample_weight=weight, eval_set=(far, labels, weight))
    rest = make(**params, max_bins=8).fit(X[20:], NOISY[20:])
    assert digest(model) == digest(rest)
    assert np.array_equal(model.bin_mapper_.cut_values, rest.bin_mapper_.cut_values)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.history_["valid_error"] == rest.history_["train_error"]


def test_a_row_of_weight_zero_needs_no_label() -> None:
    labels = np.array(by_class(["a", "b", "c"]), object)
    labels[3] = None
    model = make().fit(X, labels, sample_weight=np.arange(120) != 3)
    assert digest(model) == digest(make().fit(np.delete(X, 3, axis=0), np.delete(Y, 3)))


@pytest.mark.parametrize("params", [*VARIANTS, SMALLEST_LEAF, {"class_weight": {0: 2.0, 2: 0.5}}], ids=str)
def test_a_row_of_weight_two_is_two_rows(params: dict[str, Any]) -> None:
    weight = np.random.default_rng(3).integers(1, 4, 120)
    weighted = make(**params, max_bins=8).fit(X, NOISY, sample_weight=weight)
    repeated = make(**params, max_bins=8).fit(np.repeat(X, weight, axis=0), np.repeat(NOISY, weight))
    assert digest(weighted) == digest(repeated)
    np.testing.assert_allclose(weighted.history_["train_error"], repeated.history_["train_error"], rtol=1e-12)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(120), "zero in every row"),
        (np.r_[np.ones(119), -1], "not negative, got -1.0 in row 119"),
        (np.r_[np.nan, np.ones(119)], "finite .*got nan in row 0"),
        (np.r_[np.inf, np.ones(119)], "finite .*got inf in row 0"),
        (np.ones(119), "one entry for each of the 120 rows of X, got 119"),
        (np.ones((120, 1)), "1D"),
        (np.full(120, "x"), "must be numbers"),
        (np.full(120, "1"), "must be numbers: got the dtype <U1"),
        (np.full(120, "1", object), "must be numbers: got '1'"),
        (np.full(120, "2020", "M8[D]"), r"must be numbers: got the dtype datetime64\[D\]"),
        (np.full(120, 1, "m8[s]"), r"must be numbers: got the dtype timedelta64\[s\]"),
        (np.full(120, 10**400, object), "must be numbers"),
        (np.full(120, 1j), "Complex data not supported"),
        (np.ma.array(np.ones(120), mask=Y == 1), "some are masked"),
    ],
)
def test_weights_that_make_no_sense(weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make().fit(X, Y, sample_weight=weight)
    with pytest.raises(ValueError, match=f"sample_weight of eval_set.*{message}|{message}.*sample_weight of eval_set"):
        make().fit(X, Y, eval_set=(X, Y, weight))


@pytest.mark.parametrize("scale", [1e-3, 1e-8, 1e-30, 1e-46, 1e30, 5e-324, 1e308])
def test_the_unit_of_the_weights_does_not_matter(scale: float) -> None:
    assert digest(make().fit(X, NOISY, sample_weight=np.full(120, scale))) == digest(make().fit(X, NOISY))


@pytest.mark.parametrize("scale", [1 / 7, 1e-30, 1e-46, 1e30, 2.0**-1000, 2.0**1000])
def test_the_unit_of_unequal_weights_does_not_matter(scale: float) -> None:
    weight = np.random.default_rng(4).uniform(0.5, 2.0, 120)
    plain = make().fit(X, NOISY, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(make().fit(X, NOISY, sample_weight=weight * scale).predict_proba(X), plain, atol=1e-6)


@pytest.mark.parametrize("power", [-900, -30, 7, 900])
def test_a_power_of_two_on_a_column_does_not_matter(power: int) -> None:
    scaled = np.ldexp(X, [power, 0, -power])
    model = make().fit(scaled, NOISY)
    assert digest(model) == digest(make().fit(X, NOISY))


@pytest.mark.parametrize("params", [{}, SMALLEST_LEAF], ids=str)
def test_class_weight_times_sample_weight(params: dict[str, Any]) -> None:
    weight = np.random.default_rng(5).uniform(0.1, 3.0, 120)
    of_class = np.array([1.0, 3.0, 0.5])
    product = make(**params).fit(X, NOISY, sample_weight=weight * of_class[NOISY])
    by_number = make(class_weight={0: 1, 1: 3, 2: 0.5}, **params).fit(X, NOISY, sample_weight=weight)
    words = np.array(["one", "two", "zero"])  # sorted
    by_word = make(class_weight={"one": 1, "two": 3, "zero": 0.5}, **params).fit(X, words[NOISY], sample_weight=weight)
    only_some = make(class_weight={"two": 3, "zero": 0.5}, **params).fit(X, words[NOISY], sample_weight=weight)
    assert digest(product) == digest(by_number) == digest(by_word) == digest(only_some)


def test_class_weight_does_not_act_on_the_evaluation_set() -> None:
    plain = make(class_weight={0: 5.0}).fit(X, NOISY, eval_set=[(X, NOISY), (X, NOISY, np.where(NOISY == 0, 5.0, 1.0))])
    errors = [float(np.mean(stage != NOISY)) for stage in plain.staged_predict(X)]
    np.testing.assert_allclose(plain.history_["valid_error"], errors, rtol=1e-12)
    np.testing.assert_allclose(plain.history_["valid_1_error"], plain.history_["train_error"], rtol=1e-12)


def test_integer_and_float_weights_are_the_same() -> None:
    weight = np.random.default_rng(6).integers(1, 5, 120)
    models = [make().fit(X, NOISY, sample_weight=w) for w in (weight, weight.astype(float), weight.tolist(), weight / 8)]
    assert len({digest(model) for model in models}) == 1


def test_balanced_class_weight_gives_classes_the_same_weight() -> None:
    y = np.repeat([0, 1, 2], [10, 20, 90])
    with pytest.warns(UserWarning, match="no column"):
        model = make(class_weight="balanced").fit(np.ones((120, 1)), y)
    np.testing.assert_allclose(model.predict_proba([[1.0]]), [[1 / 3] * 3], atol=1e-8)


def test_class_weights_that_make_no_sense() -> None:
    for value, message in [
        ({9: 1.0}, r"class_weight has the key 9, which is no class of y: \[0, 1, 2\]"),
        ({"0": 1.0}, "class_weight has the key '0'"),
        ({0: -1.0}, r"class_weight\[0\] must be a finite number that is not negative, got -1.0"),
        ({0: np.nan}, "finite"),
        ({0: 0, 1: 0, 2: 0}, "nothing to learn from"),
        ("heavy", 'class_weight must be None, "balanced" or a dict'),
    ]:
        with pytest.raises(ValueError, match=message):
            make(class_weight=value).fit(X, Y)
    with pytest.raises(ValueError, match="class_weight must be None for a multi-label y"):
        make(class_weight="balanced").fit(X, np.c_[Y > 0, Y > 1])


def test_a_class_of_weight_zero_does_not_exist() -> None:
    model = make(class_weight={1: 0}).fit(X, NOISY)
    assert model.classes_.tolist() == [0, 2]
    assert digest(model) == digest(make().fit(X[NOISY != 1], NOISY[NOISY != 1]))

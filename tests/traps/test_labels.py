"""Labels: what goes in comes out, in every container, and the same on every path."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import cross_val_predict

from tests.traps.problem import NOISY, X, Y, by_class, digest, make


@pytest.mark.parametrize("labels", [[3, 7, 4000], [-5, 0, 2], [-3, -2, -1], [2**62, 2**62 + 1, 2**62 + 2]])
def test_class_ids_that_are_not_0_to_k(labels: list[int]) -> None:
    model = make().fit(X, by_class(labels))
    plain = make().fit(X, Y)
    assert model.classes_.tolist() == labels
    assert digest(model) == digest(plain)
    assert model.predict(X).tolist() == by_class(labels)
    assert np.array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_class_ids_minus_one_and_one() -> None:
    signs = np.where(Y > 0, 1, -1)
    model = make().fit(X, signs)
    assert model.classes_.tolist() == [-1, 1]
    assert model.predict(X).tolist() == signs.tolist()
    assert np.array_equal(model.decision_function(X) > 0, signs > 0)


def test_a_fold_that_loses_a_class() -> None:
    labels = np.array(by_class([10, 20, 30]))
    labels[[0, 60]] = 99  # in one fold's training rows only once
    predicted = cross_val_predict(make(), X, labels, cv=2)
    assert set(predicted) <= {10, 20, 30, 99}
    first = make().fit(X[Y < 2], labels[Y < 2])
    assert set(first.classes_) == set(labels[Y < 2])


@pytest.mark.parametrize(
    "labels", [by_class([10, 20, 30]), by_class(["ten", "thirty", "twenty"]), pd.Series(by_class([0.5, 1.5, 2.5]))], ids=type
)
def test_validation_labels_go_through_the_same_encoder(labels: Any) -> None:
    """The training set as its own validation set has the training errors and losses, at every round, whatever the labels."""
    model = make(3, learner="stump").fit(X, labels, eval_set=(X, labels))
    assert model.history_["valid_error"] == model.history_["train_error"]
    assert model.history_["valid_loss"] == model.history_["train_loss"]
    assert model.history_["valid_loss"] == make(3, learner="stump").fit(X, Y).history_["train_loss"]
    assert all(np.diff([1.0, *model.history_["valid_loss"]]) < 0)


@pytest.mark.parametrize(
    "same",
    [
        np.array(by_class(["a", "b", "c"]), object),
        pd.Series(pd.Categorical(by_class(["a", "b", "c"]), categories=["z", "c", "b", "a"])),
        pl.Series(by_class(["a", "b", "c"])),
        pa.array(by_class(["a", "b", "c"])),
    ],
    ids=type,
)
def test_validation_labels_in_another_container(same: Any) -> None:
    model = make(3).fit(X, by_class(["a", "b", "c"]), eval_set=(X, same))
    assert model.history_["valid_error"] == model.history_["train_error"]


@pytest.mark.parametrize("labels", [["x", "y", "z"], [7, 8, 9], [2.5, 0.5, 1.5], [b"c", b"a", b"b"]])
def test_the_internal_hold_out_encodes_labels_too(labels: list[Any]) -> None:
    order = sorted(labels)
    numbers = [order.index(label) for label in by_class(labels)]
    settings = {"early_stopping": True, "random_state": 5, "n_estimators": 6}
    model, plain = make(**settings).fit(X, by_class(labels)), make(**settings).fit(X, numbers)
    assert model.history_["valid_error"] == plain.history_["valid_error"]
    assert digest(model) == digest(plain)


def test_a_validation_label_that_no_training_row_has() -> None:
    with pytest.raises(ValueError, match=r"y of eval_set has the label 'd', which is no class .*'a', 'b', 'c'"):
        make().fit(X, by_class(["a", "b", "c"]), eval_set=(X[:1], ["d"]))
    with pytest.raises(ValueError, match=r"y of eval_set\[1\] has the label 3"):
        make().fit(X, Y, eval_set=[(X, Y), (X, Y + 1)])


LABELS = {
    "bool": (np.array(by_class([True, False, True])), bool),
    "bool list": (by_class([True, False, True]), bool),
    "float": (np.array(by_class([1.0, 2.0, 3.0])), np.float64),
    "half": (np.array(by_class([0.5, 1.5, 2.5]), np.float16), np.float16),
    "negative float": (by_class([-1.0, -0.5, 0.0]), np.float64),
    "int8": (np.array(by_class([-7, 0, 100]), np.int8), np.int8),
    "uint64": (np.array(by_class([2**63, 2**64 - 1, 5]), np.uint64), np.uint64),
    "big-endian": (np.array(by_class([1, 2, 300]), ">i4"), np.int32),
    "beyond 64 bits": (by_class([2**70, -1, 2**70 + 1]), object),
    "signed and unsigned": (by_class([2**63, 2**63 + 1, -1]), object),
    "integers and a float": (by_class([2**53, 2**53 + 1, 0.5]), object),
    "texts that end in NUL": (by_class(["a", "a\0", "a\0\0"]), object),
    "bytes that end in NUL": (by_class([b"a", b"a\0", b"b"]), object),
    "words for truth": (by_class(["True", "False", "x"]), "<U5"),
    "words": (np.array(by_class(["aa", "b", "ccc"])), "<U3"),
    "numbers as words": (by_class(["10", "9", "1"]), "<U2"),
    "new strings": (np.array(by_class(["x", "y", "z"]), np.dtypes.StringDType()), np.dtypes.StringDType()),
    "bytes": (np.array(by_class([b"x", b"y", b"z"])), "S1"),
    "objects int": (np.array(by_class([5, 3, 4]), object), object),
    "objects str": (np.array(by_class(["c", "a", "b"]), object), object),
    "objects bool": (np.array(by_class([True, False, True]), object), object),
    "dates": (np.array(by_class(["2020-01-01", "2021-01-01", "2022-01-01"]), "M8[D]"), "M8[D]"),
    "categories": (pd.Series(pd.Categorical(by_class(["a", "b", "c"]), categories=["z", "c", "b", "a"])), object),
    "categories of int": (pd.Series(pd.Categorical(by_class([5, 3, 4]))), np.int64),
    "bare categories": (pd.Categorical(by_class(["a", "b", "c"]), ordered=True, categories=["c", "b", "a"]), object),
    "Int64": (pd.Series(by_class([5, -3, 4]), dtype="Int64"), np.int64),
    "boolean": (pd.Series(by_class([True, False, True]), dtype="boolean"), bool),
    "Float64": (pd.Series(by_class([1, 2, 3]), dtype="Float64"), np.float64),
    "string": (pd.Series(by_class(["x", "y", "z"]), dtype="string[pyarrow]"), object),
    "pandas str": (pd.Series(by_class(["x", "y", "z"])), object),
    "pandas index": (pd.Index(by_class([3, 1, 2])), np.int64),
    "arrow int in pandas": (pd.Series(by_class([1, 2, 3]), dtype="int64[pyarrow]"), np.int64),
    "polars int": (pl.Series(by_class([1, 2, 3])), np.int64),
    "polars str": (pl.Series(by_class(["x", "y", "z"])), object),
    "polars categories": (pl.Series(by_class(["x", "y", "z"]), dtype=pl.Enum(["z", "y", "x"])), object),
    "polars bool": (pl.Series(by_class([True, False, True])), bool),
    "arrow int": (pa.array(by_class([1, 2, 3])), np.int64),
    "arrow str": (pa.chunked_array([by_class(["x", "y", "z"])]), object),
    "arrow dictionary": (pa.chunked_array([pa.array(by_class(["x", "y", "z"])).dictionary_encode()]), object),
}


@pytest.mark.parametrize(("y", "dtype"), LABELS.values(), ids=LABELS)
def test_predict_returns_the_labels_that_were_given(y: Any, dtype: Any) -> None:
    model = make(2).fit(X, y)
    given = y if isinstance(y, list) else (getattr(y, "tolist", None) or getattr(y, "to_pylist", None) or y.to_list)()
    assert model.classes_.tolist() == sorted(set(given))  # an unused category is no class
    assert model.classes_.dtype == dtype
    predicted = model.predict(X)
    assert predicted.dtype == dtype
    assert predicted.tolist() == given
    assert [type(label) for label in predicted.tolist()] == [type(label) for label in given]
    assert model.score(X, y) == 1.0
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).dtype == dtype
    assert again.predict(X).tolist() == given


def without(labels: Any, missing: Any) -> list[Any]:
    """Labels of which one is missing."""
    return [missing if i == 4 else label for i, label in enumerate(by_class(labels))]


MISSING = {
    "None among words": without(["a", "b", "c"], None),
    "NaN among words": without(["a", "b", "c"], np.nan),
    "NaN": np.array(without([1.0, 2.0, 3.0], np.nan)),
    "None among numbers": without([1, 2, 3], None),
    "NA among objects": np.array(without([1, 2, 3], pd.NA), object),
    "NaT": np.array(without(["2020", "2021", "2022"], "NaT"), "M8[D]"),
    "Int64": pd.Series(without([1, 2, 3], None), dtype="Int64"),
    "boolean": pd.Series(without([True, False, True], None), dtype="boolean"),
    "string": pd.Series(without(["a", "b", "c"], None), dtype="string[pyarrow]"),
    "categories": pd.Series(pd.Categorical(without(["a", "b", "c"], None))),
    "polars int": pl.Series(without([1, 2, 3], None)),
    "polars bool": pl.Series(without([True, False, True], None)),
    "arrow int": pa.array(without([1, 2, 3], None)),
    "arrow str": pa.array(without(["a", "b", "c"], None)),
    "masked": np.ma.masked_equal(Y, 2),
    "indicator": np.c_[np.array(without([0.0, 1.0, 1.0], np.nan)), Y > 0],
}


@pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)
def test_missing_labels(y: Any) -> None:
    with pytest.raises(ValueError, match="missing value in y"):
        make().fit(X, y)


def test_labels_that_are_no_classes() -> None:
    with pytest.raises(ValueError, match="Unknown label type: continuous"):
        make().fit(X, X[:, 1])
    with pytest.raises(TypeError, match="labels in y must be of one type that can be ordered, got int, str"):
        make().fit(X, by_class([1, "a", 2]))
    with pytest.raises(ValueError, match=r"must be an indicator matrix of 0 and 1 .*got 2 in column 1"):
        make().fit(X, np.c_[Y > 0, Y])
    with pytest.raises(ValueError, match="infinity"):
        make().fit(X, by_class([1.0, 2.0, np.inf]))


def test_labels_that_are_compared_but_not_ordered() -> None:
    """Sets are less than others if they are part of them; a sorted list of them would depend on where it began."""
    sets = by_class([frozenset("ab"), frozenset("bc"), frozenset("ca")])
    with pytest.raises(TypeError, match="labels in y must be of one type that can be ordered, got frozenset"):
        make().fit(X, sets)


def test_a_row_of_weight_0_needs_no_label() -> None:
    weight = np.where(np.arange(120) == 4, 0, 1)
    model, plain = make().fit(X, NOISY), make().fit(X, NOISY, weight)
    expected = model.score(X, NOISY, weight)
    costs = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    for y in (
        np.where(weight, NOISY, np.nan),
        np.ma.array(NOISY, mask=weight == 0),
        pd.Series(NOISY, dtype="Int64").where(weight > 0),
    ):
        assert model.score(X, y, weight) == expected
        assert model.expected_cost(X, y, costs, weight) == model.expected_cost(X, NOISY, costs, weight)
        assert digest(make().fit(X, y, weight)) == digest(plain)
        with pytest.raises(ValueError, match="missing value in y"):
            model.score(X, y)

"""Columns and containers of X."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from tests.traps.problem import FRAME, METHODS, NOISY, X, Y, digest, make, run_python


@pytest.mark.parametrize("method", METHODS)
def test_wrong_columns_at_predict(method: str) -> None:
    predict: Callable[[Any], Any] = getattr(make(2).fit(FRAME, Y), method)
    for wrong, message in {
        "reordered": (FRAME[list("cba")], "number 0: expected 'a', got 'c'"),
        "missing": (FRAME[["a", "c"]], "number 1: expected 'b', got 'c'"),
        "last missing": (FRAME[["a", "b"]], "number 2: expected 'c', got no more columns"),
        "extra": (FRAME.assign(d=0.0), "number 3: expected no more columns, got 'd'"),
        "upper case": (FRAME.rename(columns=str.upper), "number 0: expected 'a', got 'A'"),
        "twice": (FRAME[["a", "a", "b", "c"]], "number 1: expected 'b', got 'a'"),
        "another package": (pl.DataFrame(X, schema=list("acb")), "number 1: expected 'b', got 'c'"),
        "a third package": (pa.table(dict.fromkeys("bac", X[:, 0])), "number 0: expected 'a', got 'b'"),
        "arrow batch": (pa.record_batch(dict.fromkeys("bac", X[:, 0])), "number 0: expected 'a', got 'b'"),
        "array": (X[:, :2], "X has 2 features, but AdaBoostMHClassifier is expecting 3"),
    }.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of an array after a data frame
            with pytest.raises(ValueError, match=message):
                predict(wrong)


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_compared_before_their_values_are_read(method: str) -> None:
    """A column too many that is text is a column too many: nobody is to encode it."""
    predict: Callable[[Any], Any] = getattr(make(2).fit(FRAME, Y), method)
    text = FRAME.assign(farbe="rot")
    for wrong, message in (
        (text, "unseen at fit time:\n- farbe\n"),
        (pl.DataFrame({**FRAME.to_dict("list"), "farbe": "rot"}), "unseen at fit time:\n- farbe\n"),
        (pa.table({**FRAME.to_dict("list"), "farbe": ["rot"] * len(FRAME)}), "unseen at fit time:\n- farbe\n"),
        (text[["a", "c", "farbe"]], "- farbe\nFeature names seen at fit time, yet now missing:\n- b\n"),
        (FRAME.rename(columns={"b": "farbe"}).assign(farbe=pd.Categorical(Y)), "yet now missing:\n- b\n"),
        (FRAME[["b", "a", "c"]].assign(b="rot"), "must be in the same order"),
    ):
        with pytest.raises(ValueError, match=message):
            predict(wrong)
    with pytest.raises(ValueError, match="column 'b' of X holds the text 'rot'; encode it"):  # it is one that the model knows
        predict(FRAME.assign(b="rot"))


def test_columns_without_names_are_counted_before_their_values_are_read() -> None:
    model = make(2).fit(X, Y)
    wide = np.c_[X.astype(object), np.full(len(X), "rot", object)]
    with pytest.raises(ValueError, match="X has 4 features, but AdaBoostMHClassifier is expecting 3"):
        model.predict(wide)
    with (
        pytest.warns(UserWarning, match="fitted without feature names"),
        pytest.raises(ValueError, match="X has 4 features, but AdaBoostMHClassifier is expecting 3"),
    ):
        model.predict(FRAME.assign(farbe="rot"))


def test_wrong_columns_in_the_evaluation_set() -> None:
    with pytest.raises(ValueError, match="number 0: expected 'a', got 'c'"):
        make().fit(FRAME, Y, eval_set=(FRAME[list("cba")], Y))


def test_columns_with_numbers_for_names() -> None:
    frame = pd.DataFrame(X)
    model = make(2).fit(frame, Y)
    assert np.array_equal(model.predict(X), Y)
    with pytest.raises(ValueError, match="number 0: expected 0, got 2"):
        model.predict(frame[[2, 1, 0]])


def test_names_of_a_type_derived_from_text() -> None:
    model = make(2).fit(FRAME.rename(columns=np.str_), Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match=r"number 0: expected 'a', got .*'c'"):
        model.predict(FRAME[list("cba")])
    with pytest.raises(ValueError, match=r"number 0: expected 'a', got .*'c'"):
        make(2).fit(FRAME, Y).predict(FRAME[list("cba")].rename(columns=np.str_))


def test_an_array_after_a_data_frame_is_predicted_with_a_warning() -> None:
    model = make(2).fit(FRAME, Y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert np.array_equal(model.predict(X), Y)


@pytest.mark.parametrize("frame", [pd.DataFrame(X, columns=list("aba")), pa.table([X[:, 0]] * 3, names=list("aba"))], ids=type)
def test_a_column_name_that_stands_twice(frame: Any) -> None:
    with pytest.raises(ValueError, match="'a' stands 2 times"):
        make().fit(frame, Y)


WHOLE = np.round(20 * X)  # integers, so that every dtype holds them
READ_ONLY = WHOLE.copy()
READ_ONLY.flags.writeable = False
LAYOUTS = {
    "strided": np.repeat(np.repeat(WHOLE, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": WHOLE[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran": np.asfortranarray(WHOLE),
    "read-only": READ_ONLY,
    "big-endian": WHOLE.astype(">f8"),
    "half": WHOLE.astype(np.float16),
    "float32": WHOLE.astype(np.float32),
    "long double": WHOLE.astype(np.longdouble),
    "int8": WHOLE.astype(np.int8),
    "big-endian int": WHOLE.astype(">i2"),
    "list": WHOLE.tolist(),
    "objects": WHOLE.astype(object),
    "masked": np.ma.array(WHOLE),
    "pandas": pd.DataFrame(WHOLE),
    "mixed": pd.DataFrame({"a": WHOLE[:, 0].astype(int), "b": WHOLE[:, 1].astype(np.float32), "c": WHOLE[:, 2]}),
    "nullable": pd.DataFrame(WHOLE).astype("Int16"),
    "arrow in pandas": pd.DataFrame(WHOLE).astype("double[pyarrow]"),
    "polars": pl.DataFrame(WHOLE),
    "arrow": pa.table({str(f): WHOLE[:, f] for f in range(3)}),
}


@pytest.mark.parametrize("data", LAYOUTS.values(), ids=LAYOUTS)
def test_layouts_and_dtypes_of_x(data: Any) -> None:
    plain = make().fit(WHOLE, NOISY)
    model = make().fit(data, NOISY)
    assert digest(model) == digest(plain)
    assert np.array_equal(model.predict_proba(data), plain.predict_proba(WHOLE))
    assert np.array_equal(np.asarray(data, dtype=float), WHOLE)  # nothing was written


@pytest.mark.slow
def test_layouts_of_labels_and_weights(tmp_path: Path) -> None:
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 120)
    plain = make().fit(X, NOISY, sample_weight=weights)
    table = np.c_[X, NOISY, weights]
    reversed_weights = weights[::-1].copy()
    for array in (table, reversed_weights):
        array.flags.writeable = False
    assert digest(make().fit(table[:, :3], table[:, 3], sample_weight=reversed_weights[::-1])) == digest(plain)
    np.save(tmp_path / "table.npy", table)
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    model = make(device="cpu").fit(mapped[:, :3], mapped[:, 3], sample_weight=mapped[:, 4])
    assert digest(model) == digest(plain)
    joblib.dump(model, tmp_path / "model")
    # In a fresh process, as models are loaded: in one that has used NVRTC's bindings, joblib cannot read what it has written.
    code = f"import joblib; from tests.traps.problem import X; m = joblib.load({str(tmp_path / 'model')!r}, mmap_mode='r')"
    assert run_python(f"{code}; print(m.predict_proba(X).tobytes().hex())") == plain.predict_proba(X).tobytes().hex()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "objects", "masked", "list"])
def test_missing_values_of_every_kind(kind: str) -> None:
    column = [None if i % 4 == 0 else i % 5 for i in range(120)]
    nan = np.array([np.nan if v is None else v for v in column])
    plain = make().fit(np.c_[nan, X], NOISY)
    data = {
        "pandas": pd.DataFrame({"m": pd.array(column, dtype="Int64"), "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}),
        "polars": pl.DataFrame({"m": column, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}),
        "arrow": pa.table({"m": column, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}),
        "objects": np.c_[np.array(column, object), X.astype(object)],
        "masked": np.ma.array(np.c_[np.nan_to_num(nan), X], mask=np.isnan(np.c_[nan, X])),
        "list": [[m, *row] for m, row in zip(column, X.tolist(), strict=True)],
    }[kind]
    assert digest(make().fit(data, NOISY)) == digest(plain)


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (FRAME.assign(b="x"), ValueError, "column 'b' of X holds the text 'x'; encode it"),
        (FRAME.assign(b=pd.Categorical([1] * 120)), ValueError, "column 'b' of X is categorical; encode it"),
        (FRAME.assign(b=pd.Timestamp("2020")), ValueError, "column 'b' of X holds datetime64"),
        (pl.DataFrame({"b": ["x"] * 120}), ValueError, "column 'b' of X holds the text 'x'"),
        (pa.table({"b": pa.array([1] * 120).dictionary_encode()}), ValueError, "column 'b' of X is categorical"),
        (np.full((120, 2), "1"), ValueError, "column 0 of X holds <U1 values"),
        (np.c_[X.astype(object), np.full(120, "1", object)], ValueError, "column 3 of X holds the text '1'"),
        (X + 1j, ValueError, "^Complex data not supported: X has dtype complex128$"),
        ((X + 1j).tolist(), ValueError, "^Complex data not supported: X has dtype complex128$"),
        (sparse.csr_array(X), TypeError, r"\.toarray\(\)"),
    ],
)
def test_columns_that_are_no_numbers(data: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make().fit(data, Y)

"""Labels that are dates or spans of time: equal instants are equal labels, whatever unit or type they are written in."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuboost
from gpuboost import ABCBoostClassifier, mean_cost, min_cost_labels
from gpuboost.cli.outputs import csv_blocks
from gpuboost.cli.reading.labels import class_numbers
from gpuboost.inputs.label_values import label_key, label_keys, python_labels
from tests.traps.problem import NOISY, X, Y, digest, make

UNITS = ["D", "h", "s", "us", "ns"]
DAYS = np.array(["2020-01-01", "2020-01-02", "2020-01-04"], "M8[D]")
SPANS = DAYS - DAYS[0]
COSTS = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])


def in_units(values: Any) -> list[Any]:
    return [values.astype(f"{values.dtype.kind}8[{unit}]") for unit in UNITS]


@given(st.datetimes())
def test_a_date_and_time_is_the_same_in_numpy_and_pandas(moment: datetime.datetime) -> None:
    key = label_key(moment)
    assert label_key(np.datetime64(moment)) == key
    assert label_key(pd.Timestamp(moment)) == key
    assert key.ticks == (moment - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1) * 10**12
    midnight = datetime.datetime.combine(moment.date(), datetime.time())
    assert label_key(moment.date()) == label_key(np.datetime64(moment.date())) == label_key(midnight)


@given(st.integers(1, 9999), st.integers(1, 12))
def test_months_and_years_begin_with_a_day(year: int, month: int) -> None:
    assert label_key(np.datetime64(f"{year:04}-{month:02}", "M")) == label_key(datetime.date(year, month, 1))
    assert label_key(np.datetime64(f"{year:04}", "Y")) == label_key(datetime.date(year, 1, 1))


@given(st.timedeltas(datetime.timedelta(-(10**5)), datetime.timedelta(10**5)))
def test_a_span_is_the_same_in_numpy_and_pandas(span: datetime.timedelta) -> None:
    assert label_key(np.timedelta64(span)) == label_key(pd.Timedelta(span)) == label_key(span)
    assert label_key(span) != label_key(datetime.datetime(1970, 1, 1) + span)


def test_what_leaves_64_bits() -> None:
    """In attoseconds, or as NumPy compares them, these would overflow."""
    far = np.datetime64(2**62, "Y"), np.datetime64(-(2**62), "W"), np.datetime64(2**62, "as")
    assert sorted(range(3), key=lambda i: label_key(far[i])) == [1, 2, 0]
    assert label_key(np.timedelta64(3, "W")) == label_key(np.timedelta64(21 * 86400 * 10**9, "ns"))
    assert label_key(np.timedelta64(1, "Y")) == label_key(np.timedelta64(12, "M")) != label_key(np.timedelta64(365, "D"))
    assert label_key(np.array([4], "M8[25s]")[0]) == label_key(np.datetime64(100, "s"))


def test_zones_and_nanoseconds() -> None:
    noon = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
    assert label_key(noon) != label_key(noon.replace(tzinfo=None))
    assert label_key(pd.Timestamp(noon)) == label_key(noon)
    assert label_key(pd.Timestamp("2020-01-01 00:00:00.000000001")) == label_key(np.datetime64("2020-01-01T00:00:00.000000001"))


@pytest.mark.slow
@pytest.mark.parametrize("classes", [DAYS, SPANS], ids=["dates", "spans"])
def test_equal_instants_are_equal_labels(classes: Any) -> None:
    plain = make().fit(X, NOISY, eval_set=(X, Y))
    for known in in_units(classes):
        model = make().fit(X, known[NOISY])
        assert digest(model) == digest(plain)
        for asked in [*in_units(classes), pd.Series(classes), np.array(classes.tolist(), object), list(classes)]:
            y = [asked[k] for k in Y] if isinstance(asked, list) else asked[Y]
            assert model.score(X, y) == plain.score(X, Y)
            assert mean_cost(y, model.predict(X)) == pytest.approx(1 - plain.score(X, Y))
            watched = make().fit(X, known[NOISY], eval_set=(X, y))
            assert watched.history_["valid_error"] == plain.history_["valid_error"]
        longer = make(12, warm_start=True).fit(X, known[NOISY])
        assert len(longer.set_params(n_estimators=14).fit(X, classes[NOISY]).history_["train_error"]) == 14


@pytest.mark.parametrize("unit", UNITS)
def test_parameters_by_label(unit: str) -> None:
    known = DAYS.astype(f"M8[{unit}]")
    plain = make(class_weight={0: 5.0}).fit(X, NOISY)
    for first in (DAYS[0], known[0], pd.Timestamp(DAYS[0]), DAYS[0].item()):
        assert digest(make(class_weight={first: 5.0}).fit(X, known[NOISY])) == digest(plain)
        abc = ABCBoostClassifier(n_estimators=2, base_class=first, device="cpu").fit(X, known[NOISY])
        assert abc.history_["base_class"] == [0, 0]


@pytest.mark.parametrize("unit", UNITS)
def test_costs_by_label(unit: str) -> None:
    known = DAYS.astype(f"M8[{unit}]")
    model, plain = make().fit(X, known[NOISY]), make().fit(X, NOISY)
    cheapest = plain.predict(X, cost_matrix=COSTS)
    tables = [pd.DataFrame(COSTS, index=names, columns=names) for names in (DAYS, known, pd.DatetimeIndex(DAYS))]
    for table in [*tables, tables[0].to_dict("index"), dict(zip(known, map(dict, map(zip, [known] * 3, COSTS)), strict=True))]:
        assert (model.predict(X, cost_matrix=table) == known[cheapest]).all()
        assert (min_cost_labels(model.predict_proba(X), table, known) == known[cheapest]).all()
        assert model.expected_cost(X, known[Y], table) == plain.expected_cost(X, Y, COSTS)


def test_messages_show_dates() -> None:
    model = make(2).fit(X, DAYS.astype("M8[ns]")[Y])
    with pytest.raises(ValueError, match=r"has the label np.datetime64\('1999-01-01'\), which is no class .*'2020-01-04T00"):
        model.fit(X, DAYS.astype("M8[ns]")[Y], eval_set=(X[:1], np.array(["1999-01-01"], "M8[D]")))


@pytest.mark.parametrize("unit", UNITS)
def test_files_and_the_command_line(unit: str, tmp_path: Path) -> None:
    known = DAYS.astype(f"M8[{unit}]")
    table = pd.DataFrame(COSTS, index=known, columns=known)
    model = gpuboost.RebelClassifier(n_estimators=2, cost_matrix=table, class_weight={known[0]: 2.0}, device="cpu")
    model.fit(X, known[Y]).save(tmp_path / "model")
    again = gpuboost.load(tmp_path / "model", device="cpu")
    assert again.classes_.dtype == known.dtype
    assert again.score(X, DAYS[Y]) == model.score(X, known[Y])
    assert digest(again.fit(X, known[Y])) == digest(model)
    for asked in in_units(DAYS):
        assert class_numbers(asked[Y], python_labels(known)).tolist() == Y.tolist()
    assert label_keys(np.array(python_labels(known), object)) == label_keys(DAYS)
    assert "2020-01-04" in "".join(csv_blocks({"prediction": known}, ","))

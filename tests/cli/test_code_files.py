"""``gpuboost encode``, and ``gpuboost fit`` on what it writes: the model of the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import gpuboost
from gpuboost.persistence.model_file import describe
from tests.cli.tables import QUICK, flowers, refused, run, told, write

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files of a table with weights, one file of all its rows, and a validation set."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    names, rows = flowers(n_rows=90)
    weighted = [[*row, i % 3] for i, row in enumerate(rows)]
    for i in range(2):
        write(Path(f"d/{i}.csv"), [*names, "w"], weighted[45 * i : 45 * (i + 1)])
    write(Path("all.csv"), [*names, "w"], weighted)
    write(Path("valid.csv"), *flowers(seed=3))
    return tmp_path


def encoded(*options: object, data: object = "d", out: str = "rows.codes") -> dict[str, Any]:
    return told("encode", data, "--target", "kind", "--out", out, *options)


def digest(path: str) -> str:
    text: str = describe(path)["digest"]
    return text


OF_TABLES: dict[str, tuple[tuple[str, ...], int, int]] = {
    "three features": (("--drop", "w"), 90, 3),
    "two features": (("--drop", "w", "--drop", "noise"), 90, 2),
    "rows without a weight": (("--weight", "w"), 60, 3),
}


@pytest.mark.parametrize("name", OF_TABLES)
def test_the_model_is_that_of_the_table(name: str) -> None:
    options, n_rows, n_features = OF_TABLES[name]
    facts = encoded(*options)
    assert (facts["rows"], facts["features"], facts["classes"]) == (n_rows, n_features, 3)
    assert facts["bytes"] == Path("rows.codes").stat().st_size
    told("fit", "rows.codes", "--out", "a", "--valid", "valid.csv", *QUICK)
    table = told("fit", "all.csv", "--target", "kind", *options, "--out", "b", *QUICK)
    assert digest("a") == digest("b")
    assert table["train_error"] == gpuboost.load("a").history_["train_error"][-1]
    assert told("evaluate", "a", "valid.csv")["error"] == told("evaluate", "b", "valid.csv")["error"]


def test_files_of_parquet_in_another_order_and_with_fewer_bins() -> None:
    frame = pd.read_csv("all.csv").drop(columns="w").astype({"kind": "category"})
    frame.to_parquet("all.parquet", row_group_size=20)
    facts = encoded("--shuffle", 0, "--max-bins", 7, data="all.parquet")
    assert facts["max_bins"] == 7
    told("fit", "rows.codes", "--out", "a", *QUICK)
    alone = gpuboost.fit(frame.drop(columns="kind"), frame["kind"], max_bins=7, device="numpy", n_estimators=4)
    X = frame.drop(columns="kind")
    assert gpuboost.load("a").predict(X).tolist() == alone.predict(X).tolist()


def test_a_label_that_comes_late_and_one_without_a_weight() -> None:
    """All rows are looked at for labels. Those of no weight only count for what labels are: "x" makes all of them text."""
    rows = [[i, 1 + i % 2, 1] for i in range(30)] + [[30, 3, 1], [31, "x", 0]]
    write(Path("late.csv"), ["a", "kind", "w"], rows)
    encoded("--weight", "w", data="late.csv")
    assert gpuboost.CodeFile("rows.codes").classes.tolist() == ["1", "2", "3"]
    told("fit", "late.csv", "--target", "kind", "--weight", "w", "--out", "b", *QUICK)
    assert gpuboost.load("b").classes_.tolist() == ["1", "2", "3"]


def test_a_code_file_to_watch() -> None:
    encoded("--drop", "w")
    encoded("--cuts-of", "rows.codes", data="valid.csv", out="valid.codes")
    stopped = ("--set", "early_stopping=patience", *QUICK)
    watched = [told("fit", "rows.codes", "--valid", valid, "--out", "a", *stopped) for valid in ("valid.codes", "valid.csv")]
    assert watched[0]["valid_error"] == watched[1]["valid_error"]
    assert watched[0]["digest"] == watched[1]["digest"]


SHORT = ("fit", "rows.codes", "--out", "a", "--device", "numpy", "--set", "n_estimators=2")


def test_a_run_that_goes_on() -> None:
    """It is known again by the checksum of the file, and goes on from a checkpoint to the same bytes."""
    encoded("--drop", "w")
    told("fit", "rows.codes", "--out", "whole", *QUICK)
    run("fit", "rows.codes", "--out", "a", "--device", "numpy", "--set", "n_estimators=2", "--checkpoint", 1)
    assert told("fit", "rows.codes", "--out", "a", "--device", "numpy", "--set", "n_estimators=2", "--resume")[
        "finished_before"
    ]
    model = gpuboost.load("a").set_params(n_estimators=4, warm_start=True).fit(gpuboost.CodeFile("rows.codes"))
    assert model.ensemble_.digest() == digest("whole")
    encoded("--drop", "w", "--shuffle", 1)
    assert "finished_before" not in told(*SHORT, "--resume")


FIT = ("fit", "rows.codes", "--out", "a", *QUICK)
REFUSED: dict[str, tuple[tuple[object, ...], int, str]] = {
    "a weight": ((*FIT, "--weight", "w"), 2, "--weight has no meaning for the code file rows.codes: it has the weights"),
    "columns": ((*FIT, "--drop", "w"), 2, "--drop has no meaning"),
    "labels": ((*FIT, "--target-file", "y.npy"), 2, "it has labels of its own"),
    "another target": ((*FIT, "--target", "kid"), 2, "--target kid: the labels of rows.codes are those of its column 'kind'"),
    "a stream": ((*FIT, "--stream"), 2, "read piece by piece anyway"),
    "other bins": ((*FIT, "--set", "max_bins=9"), 1, "max_bins must be 255"),
    "a hold-out": ((*FIT, "--set", "early_stopping=true"), 1, "needs an eval_set"),
    "no threads": ((*FIT, "--jobs", 0), 1, "n_jobs must not be 0"),
    "other cuts": (
        (*FIT, "--valid", "other.codes"),
        1,
        "has other cuts than rows.codes; write it by gpuboost encode --cuts-of",
    ),
    "two files": (("fit", "rows.codes", "other.codes", "--out", "a"), 2, "2 files cannot be read as one table"),
    "prediction": (("predict", "model", "rows.codes", "--out", "p.csv"), 1, "rows.codes"),
    "no column": (("encode", "d", "--target", "kid", "--out", "b"), 1, "has no column 'kid'"),
    "text": (("encode", "d", "--target", "w", "--out", "b"), 1, "holds text"),
    "a folder": (("encode", "d", "--target", "kind", "--out", "."), 1, "is a folder"),
    "within the data": (("encode", "d", "--target", "kind", "--out", "d/b"), 2, "lies in the folder d"),
    "over the data": (("encode", "all.csv", "--target", "kind", "--out", "all.csv"), 2, "would overwrite all.csv"),
    "bins of two kinds": (
        ("encode", "d", "--target", "kind", "--out", "b", "--cuts-of", "rows.codes", "--max-bins", 9),
        2,
        "other",
    ),
    "no code file": (("encode", "d", "--target", "kind", "--out", "b", "--cuts-of", "all.csv"), 1, "no code file of gpuboost"),
    "other columns": (("encode", "d", "--target", "kind", "--out", "b", "--cuts-of", "rows.codes"), 1, "has 4 columns"),
    "another kind": (
        ("encode", "t.npz", "--target", "kind", "--out", "b"),
        2,
        "Error: t.npz is of no kind that is read piece by",
    ),
    "another label": (
        ("encode", "weed.csv", "--target", "kind", "--out", "b", "--cuts-of", "rows.codes"),
        1,
        "is none of the classes 'daisy', 'rose, red', 'tulip'; they are those of --cuts-of rows.codes: remove such rows",
    ),
    "one class": (("fit", "one.codes", "--out", "a"), 1, "one.codes has the one class 'tulip'"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    command, status, message = REFUSED[name]
    encoded("--drop", "w")
    if "other.codes" in command:
        encoded("--drop", "w", data="d/0.csv", out="other.codes")
    if "model" in command:
        told("fit", "rows.codes", "--out", "model", *QUICK)
    if "t.npz" in command:
        np.savez("t.npz", X=np.zeros((3, 2)), y=np.arange(3))
    if "weed.csv" in command:
        names, rows = flowers()
        write(Path("weed.csv"), names, [[*row[:-1], "weed"] for row in rows])
    if "one.codes" in command:
        gpuboost.CodeFile.write((np.arange(4.0)[:, None], ["tulip"] * 4), "one.codes")
    assert message in refused(*command, status=status)
    assert not Path("b").exists()
    assert not Path("a").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_two_columns_of_one_name_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{kind}"
    table = pa.table([pa.array([1.0, 2.0]), pa.array([3.0, 4.0]), pa.array(["u", "v"])], names=["a", "a", "y"])
    pa.csv.write_csv(table, path) if kind == "csv" else pa.parquet.write_table(table, path)
    said = refused("encode", path, "--target", "y", "--out", tmp_path / "out")
    assert "the column 'a' stands there 2 times; give each a name of its own" in said


def test_no_row_with_a_weight(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", ["a", "y", "w"], [[1, "u", 0], [2, "v", 0]])
    said = refused("encode", path, "--target", "y", "--weight", "w", "--out", tmp_path / "out")
    assert "the weight is zero in every row" in said

"""Labels that files and options write in different ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import gpuboost
from gpuboost.cli.reading.labels import by_label
from gpuboost.cli.settings import label_of
from tests.cli.tables import NUMPY, QUICK, flowers, refused, run, told, write

SPELLINGS = {"lower": ("false", "true"), "python": ("False", "True"), "parquet": (False, True)}


def truths(folder: Path, spelling: str) -> Path:
    names, rows = flowers()
    labels = [SPELLINGS[spelling][row[-1] == "tulip"] for row in rows]
    if spelling == "parquet":
        columns = [[row[i] for row in rows] for i in range(3)]
        parquet.write_table(pa.table([*columns, labels], names=names), folder / "t.parquet")
        return folder / "t.parquet"
    return write(folder / f"{spelling}.csv", names, [[*row[:-1], label] for row, label in zip(rows, labels, strict=True)])


@pytest.mark.slow
@pytest.mark.parametrize("trained", SPELLINGS)
def test_true_and_false_of_all_files(tmp_path: Path, trained: str) -> None:
    fit = ("fit", truths(tmp_path, trained), "--target", "kind", "--out", tmp_path / "m", *QUICK)
    watched = [told(*fit, "--valid", truths(tmp_path, other))["valid_error"] for other in SPELLINGS]
    found = [told("evaluate", tmp_path / "m", truths(tmp_path, other), *NUMPY) for other in SPELLINGS]
    assert [one["error"] for one in found] == watched == [found[0]["error"]] * 3
    assert all("unknown_labels" not in one for one in found)
    abc = ("--algorithm", "abc-boost", "--set", "base_class=true")
    run(*fit, *abc)
    model: Any = gpuboost.load(tmp_path / "m", device="numpy")
    assert model.base_class == model.classes_[1]
    assert type(model.base_class) is type(model.classes_.tolist()[1])


@pytest.mark.parametrize(
    ("text", "classes", "label"),
    [
        ("1e3", ["1e3", "x"], "1e3"),
        ("1e3", [7, 1000], 1000),
        ("1", [1, 2], 1),
        ("1", ["1", "2"], "1"),
        ('"1"', ["1", "2"], "1"),
        ("2.0", [1, 2], 2),
        ("true", [False, True], True),
        ("true", ["false", "true"], "true"),
        ("true", ["False", "True"], "True"),
        ("true", ["True", "true"], "true"),
        ("True", ["True", "true"], "True"),
        ("search", ["a", "b"], "search"),
        ("null", ["a", "b"], None),
        ("None", ["a", "b"], None),
        ("c", ["a", "b"], "c"),
        ("[1]", ["[1]", "b"], "[1]"),
        ("[1]", ["a", "b"], [1]),
    ],
)
def test_the_class_of_a_setting(text: str, classes: list[Any], label: Any) -> None:
    assert (type(label_of(text, classes)), label_of(text, classes)) == (type(label), label)


@pytest.mark.parametrize("text", ["[1]", "{}", "oak"])
def test_a_base_class_that_is_none(tmp_path: Path, text: str) -> None:
    data = write(tmp_path / "t.csv", *flowers())
    fit = ("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK, "--algorithm", "abc-boost")
    value = repr(text) if text == "oak" else text
    message = refused(*fit, "--set", f"base_class={text}")
    assert f"""base_class must be "search", None or a class of y, ['daisy', 'rose, red', 'tulip'], got {value}""" in message


def test_keys_that_mean_the_same_class(tmp_path: Path) -> None:
    assert by_label({"true": 1, False: 2}, ["false", "true"]) == {"true": 1, "false": 2}
    with pytest.raises(ValueError, match="the keys '1' and 1 both mean the class 1; give one of them"):
        by_label({"1": 2, 1: 3}, [1, 2])
    data = write(tmp_path / "t.csv", *flowers())
    fit = ("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK, "--set")
    assert "the key 'tulip' stands twice" in refused(*fit, 'class_weight={"tulip": 2, "tulip": 3}', status=2)
    assert "class_weight must be" in refused(*fit, "class_weight={[1]: 2}", status=2)

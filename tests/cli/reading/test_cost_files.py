"""Cost matrices in files: every label stands for one class, and every class for one label."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuboost.cli.reading.cost_files import read_costs


def costs(folder: Path, name: str, content: str, classes: list[Any]) -> Any:
    (folder / name).write_text(content, encoding="utf-8", newline="")
    return read_costs(str(folder / name), classes)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.csv", ",a,b,a\na,0,1,2\nb,3,0,4\n", "c.csv has the label 'a' again in its first row"),
        ("c.csv", ",a,b\na,0,1\na,3,0\n", "c.csv has the label 'a' again in row 3"),
        ("c.json", '{"a": {"b": 1}, "b": {"a": 2}, "a": {"b": 3}}', "c.json: the key 'a' stands twice"),
        ("c.json", '{"a": {"b": 1, "b": 2}, "b": {"a": 2}}', "c.json: the key 'b' stands twice"),
        ("c.json", "[" * 100_000, "c.json is no JSON"),
    ],
)
def test_labels_that_stand_twice(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        costs(tmp_path, name, content, ["a", "b"])


def test_two_spellings_of_a_class(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the keys 'True' and 'TRUE' both mean the class True"):
        costs(tmp_path, "c.json", '{"False": {"True": 1}, "True": {"False": 2}, "TRUE": {"False": 3}}', [False, True])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_labels_of_several_lines(tmp_path: Path, end: str) -> None:
    content = end.join([',"one\ntwo",u\u2028v,"x\x85"', '"one\ntwo",0,1,2', "u\u2028v,3,0,4", "x\x85,5,6,0", ""])
    assert costs(tmp_path, "c.csv", content, ["one\ntwo", "u\u2028v", "x\x85"]) == {
        "one\ntwo": {"one\ntwo": 0, "u\u2028v": 1, "x\x85": 2},
        "u\u2028v": {"one\ntwo": 3, "u\u2028v": 0, "x\x85": 4},
        "x\x85": {"one\ntwo": 5, "u\u2028v": 6, "x\x85": 0},
    }


def test_labels_of_other_types(tmp_path: Path) -> None:
    content = ",true,False\ntrue,0,1\nFalse,2,0\n"
    assert costs(tmp_path, "c.csv", content, [False, True]) == {True: {True: 0, False: 1}, False: {True: 2, False: 0}}
    assert costs(tmp_path, "c.csv", ",1,2\n1,0,1\n2,2,0\n", [1, 2]) == {1: {1: 0, 2: 1}, 2: {1: 2, 2: 0}}


def test_a_field_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"c.csv cannot be read as a table of separated values: field larger than"):
        costs(tmp_path, "c.csv", f",a,b\na,0,1\n{'b' * 200_000},1,0\n", ["a", "b"])

"""Reading tables: what a file says is what the trees and the labels get."""

from __future__ import annotations

import gzip
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from gpuboost.cli.reading import text_files
from gpuboost.cli.reading.layout import Layout, training_columns
from gpuboost.cli.reading.tables import Reading, Table, kind_of


def read(folder: Path, content: str | bytes, name: str = "t.csv", **how: Any) -> Table:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return Reading(**how).read(str(path))


def matrix(table: Table) -> list[list[float]]:
    """All columns as rows of numbers."""
    features = table.features(range(table.n_columns))
    columns = [column.to_pylist() for column in features.columns] if table.names else features.T.tolist()
    return [list(row) for row in zip(*columns, strict=True)]


PLAIN = "a,b\n1,2.5\n3,4\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN[:-1],
        "\n" + PLAIN + "\n\n",
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", "\t"),
        b"\xef\xbb\xbf" + PLAIN.encode(),
        '"a","b"\n"1","2.5"\n3,4\n',
        gzip.compress(PLAIN.encode(), mtime=0),
    ],
)
def test_styles_of_csv(tmp_path: Path, content: str | bytes) -> None:
    table = read(tmp_path, content)
    assert table.names == ["a", "b"]
    assert matrix(table) == [[1, 2.5], [3, 4]]


def test_quoted_newlines_and_separators(tmp_path: Path) -> None:
    table = read(tmp_path, 'a,y\n1,"one, two\nthree"\n2,"say ""x"""\n')
    assert table.labels("y").tolist() == ["one, two\nthree", 'say "x"']


@pytest.mark.slow
def test_types_are_decided_by_all_rows(tmp_path: Path) -> None:
    """A column whose first million bytes are integers may hold a fraction, or a text, in its last row."""
    rows = "\n".join(["1,1"] * 500_000)
    table = read(tmp_path, f"a,b\n{rows}\n2.5,x\n")
    assert table.columns[0].to_numpy()[-1] == 2.5
    with pytest.raises(
        ValueError, match=r"column 'b' holds text such as 'x' in row 500001, not numbers; leave it out \(--drop 'b'\)"
    ):
        table.features([1])


def test_text_of_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "LARGEST_BLOCK", 1000)
    rows = [f"{i},,{i % 7}" for i in range(1000)]
    table = read(tmp_path, "a,b,y\n" + "\n".join([*rows, "0.5,1.5,3"]))
    assert table.columns[0].to_pylist() == [*range(1000), 0.5]
    assert table.columns[1].to_pylist() == [None] * 1000 + [1.5]
    assert table.labels("y").tolist() == [*(i % 7 for i in range(1000)), 3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"t.csv is empty"),
        ("\n\n", r"t.csv is empty"),
        ("a,b\n", r"has 2 columns and no rows of data"),
        ("a,b", r"has 2 columns and no rows of data"),
        ("a,b,a\n1,2,3\n", r"has 2 columns of the name 'a'"),
        ("a,b\n1,2\n3\n4,5,6\n", r"row 3 \(the first row of the file is 1\) has 1 value, 2 are expected: '3'"),
        ("a,b\n1,2\n4,5,6\n", r"row 3 .* has 3 values, 2 are expected: '4,5,6'"),
        ('a,b\n1,"x\n2,y\n', r"odd number of quotes"),
        ("a,ü\n1,2\n".encode("latin-1"), r"is not UTF-8 in line 1: it seems to be in another encoding"),
        ("a,b\n1,2\n1,é\n".encode("latin-1"), r"is not UTF-8 in line 3"),
        ("a,b\n1,2\n".encode("utf-16"), r"seems to be in UTF-16; .* iconv -f UTF-16"),
        (b"a,b\n1,\0\n", r"zero byte in line 2"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-9], r"cannot be unpacked by gzip"),
    ],
)
def test_broken_text(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(tmp_path, content)


def test_missing_numbers(tmp_path: Path) -> None:
    table = read(tmp_path, "a,b,c\n,NA,?\n1,nan,2\n2,inf,3\n", missing=("?",))
    numbers = np.array(matrix(table))
    np.testing.assert_array_equal(numbers, [[np.nan, np.nan, np.nan], [1, np.nan, 2], [2, np.inf, 3]])
    assert np.array_equal(np.array(matrix(read(tmp_path, "a\n1\n\n3\n"))), [[1], [np.nan], [3]], equal_nan=True)


@pytest.mark.parametrize(
    ("texts", "example"),
    [
        ("NA 1 None 2", "'None' in row 3"),
        ("n/a ? 3 ?? ", "'?' in row 2"),
        ("- 1 3 ?", "'?' in row 4"),
        ("1 1_000", "'1_000' in row 2"),
        ("1 \u0663", "'\u0663' in row 2"),
    ],
)
def test_the_example_is_the_culprit(tmp_path: Path, texts: str, example: str) -> None:
    table = read(tmp_path, "a,y\n" + "".join(f"{text},1\n" for text in texts.split()), missing=("-",))
    for ask in (lambda: table.features([0]), lambda: table.weights("a")):
        with pytest.raises(ValueError, match=re.escape(f"column 'a' holds text such as {example}, not numbers")):
            ask()


def test_without_a_header(tmp_path: Path) -> None:
    table = read(tmp_path, "1,2,x\n3,4,y\n", header=False)
    assert table.names is None
    assert table.labels("-1").tolist() == ["x", "y"]
    assert training_columns(table, "2", None, ["0"]) == [1]
    np.testing.assert_array_equal(table.features([0, 1]), [[1, 2], [3, 4]])


def test_remarks(tmp_path: Path) -> None:
    notes: list[str] = []
    read(tmp_path, "5.1,3.5\n4,2\n", note=notes.append)
    read(tmp_path, "5.1,3.5,rose\n4,2,tulip\n", note=notes.append)
    read(tmp_path, "a,b,1\n0,2,1\n", note=notes.append)
    read(tmp_path, ",b\n0,2\n", note=notes.append)
    assert len(notes) == 3
    assert all("--no-header if it is data" in note for note in notes[:2])
    assert "column 0 of" in notes[2]
    assert "--drop 0" in notes[2]


@pytest.mark.parametrize(
    ("texts", "labels"),
    [
        (["1", "20", "-3"], [1, 20, -3]),
        (["007", "8", "9"], ["007", "8", "9"]),
        (["1.0", "2.5", "1.0", "1.0", "2.5"], [1.0, 2.5, 1.0, 1.0, 2.5]),
        (["1.50", "2.5", "2.5", "2.5", "2.5"], ["1.50", "2.5", "2.5", "2.5", "2.5"]),
        (["True", "False", "True"], [True, False, True]),
        (["true", "false", "true"], ["true", "false", "true"]),
        (["NA", "null", "DE"], ["NA", "null", "DE"]),  # Namibia
        (["2024-01-01", "2024-01-02", "2024-01-01"], ["2024-01-01", "2024-01-02", "2024-01-01"]),
        (["99999999999999999999", "1", "1"], ["99999999999999999999", "1", "1"]),
        (["a ", "a", " a"], ["a ", "a", " a"]),
    ],
)
def test_labels_of_text_are_what_is_written(tmp_path: Path, texts: list[str], labels: list[Any]) -> None:
    found = read(tmp_path, "a,y\n" + "".join(f"1,{text}\n" for text in texts)).labels("y")
    assert found.tolist() == labels
    assert list(map(type, found.tolist())) == list(map(type, labels))
    assert list(map(str, found.tolist())) == texts


@pytest.mark.parametrize("texts", [["x", "", "y", ""], ["1", "", "2", "NA"]])
def test_missing_labels(tmp_path: Path, texts: list[str]) -> None:
    message = r"missing labels: .*column 'y' has none in 2 of its 4 rows, first in row 2 of the data"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "a,y\n" + "".join(f"1,{text}\n" for text in texts)).labels("y")


def arrow(folder: Path, name: str = "t.parquet", **columns: pa.Array) -> Table:
    path, table = folder / name, pa.table(columns)
    if name.endswith(".parquet"):
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)
    return Reading().read(str(path))


@pytest.mark.parametrize("name", ["t.parquet", "t.feather"])
def test_numbers_of_all_types(tmp_path: Path, name: str) -> None:
    table = arrow(
        tmp_path,
        name,
        int8=pa.array([1, None, -3], pa.int8()),
        wide=pa.array([2**53 + 1, 0, -(2**63)], pa.int64()),
        half=pa.array(np.array([0.5, 1, np.nan], np.float16)),
        flag=pa.array([True, None, False]),
        whole=pa.array([True, True, False]),
        money=pa.array([Decimal("1.25"), None, Decimal("-0.01")]),
        nothing=pa.nulls(3),
    )
    features = table.features(range(7))
    expected = {
        "int8": [1, np.nan, -3],
        "wide": [2**53 + 1, 0, -(2**63)],
        "half": [0.5, 1, np.nan],
        "flag": [1, np.nan, 0],
        "whole": [True, True, False],
        "money": [1.25, np.nan, -0.01],
        "nothing": [np.nan] * 3,
    }
    for column, values in expected.items():
        np.testing.assert_array_equal(features[column].to_numpy(), values)
    assert features["wide"].type == pa.int64()  # no digit is lost


@pytest.mark.parametrize(
    ("column", "content"),
    [
        (pa.array(["", "12", "high"]), r"text such as 'high' in row 3"),
        (pa.array(["12", None]), r"text such as '12' in row 1"),
        (pa.array(["u", "v"]).dictionary_encode(), r"categories such as 'u' in row 1"),
        (pa.array([19000], pa.date32()), r"dates or times such as '2022-01-08' in row 1"),
        (pa.array([[1]]), r"values of the type list<.*> such as '\[1\]' in row 1"),
    ],
)
def test_features_that_are_no_numbers(tmp_path: Path, column: pa.Array, content: str) -> None:
    with pytest.raises(ValueError, match=rf"column 'x' holds {content}, not numbers; leave it out \(--drop 'x'\) or encode it"):
        arrow(tmp_path, x=column).features([0])


def test_labels_of_all_types(tmp_path: Path) -> None:
    table = arrow(
        tmp_path,
        text=pa.array(["b", "a"]),
        category=pa.array(["b", "a"]).dictionary_encode(),
        number=pa.array([2, 1], pa.int16()),
        flag=pa.array([True, False]),
        day=pa.array([19000, 19001], pa.date32()),
        money=pa.array([Decimal("1.5"), Decimal("2.5")]),
        whole=pa.array([Decimal(3), Decimal(4)]),
    )
    assert table.labels("text").tolist() == table.labels("category").tolist() == ["b", "a"]
    assert (table.labels("number").dtype, table.labels("number").tolist()) == (np.int16, [2, 1])
    assert table.labels("flag").dtype == np.bool_
    assert table.labels("day").tolist() == np.array([19000, 19001], "M8[D]").tolist()
    assert table.labels("money").tolist() == [1.5, 2.5]
    assert table.labels("whole").tolist() == [3, 4]
    for column in (
        pa.array(["a", None]),
        pa.array([1, None]),
        pa.array([1.0, np.nan]),
        pa.array(["a", None]).dictionary_encode(),
    ):
        with pytest.raises(ValueError, match=r"missing labels: .*column 'y' has none in 1 of its 2 rows, first in row 2"):
            arrow(tmp_path, y=column).labels("y")


def test_row_labels_of_pandas_are_no_feature(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"a": [1.5, 2.5]}, index=[7, 9]).to_parquet(tmp_path / "t.parquet")
    assert Reading().read(str(tmp_path / "t.parquet")).names == ["a"]


def test_arrays(tmp_path: Path) -> None:
    X, y = np.arange(6.0).reshape(3, 2), np.array(["a", "b", "a"])
    np.savez(tmp_path / "xy.npz", X=X, y=y, w=[1, 2, 3])
    table = Reading().read(str(tmp_path / "xy.npz"))
    assert table.names is None
    np.testing.assert_array_equal(table.features([0, 1]), X)
    assert table.labels("y").tolist() == y.tolist()
    assert table.weights("w").tolist() == [1, 2, 3]
    np.savez(tmp_path / "columns.npz", a=[1, 2], b=[0.5, 1.5], kind=["u", "v"])
    table = Reading().read(str(tmp_path / "columns.npz"))
    assert table.names == ["a", "b", "kind"]
    assert table.labels("kind").tolist() == ["u", "v"]
    np.savez(tmp_path / "split.npz", X_train=X, y_train=[0, 1, 0], X_test=X[:1], y_test=[1])
    for part, n_rows in (("train", 3), ("test", 1)):
        assert Reading().read(str(tmp_path / "split.npz"), part).n_rows == n_rows
    np.save(tmp_path / "x.npy", np.column_stack([X, [3, 1, 3]]))
    table = Reading().read(str(tmp_path / "x.npy"))
    assert table.labels("-1").tolist() == [3, 1, 3]
    assert table.labels("-1").dtype == np.int64


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.zeros((2, 2)), "y": [0, 1, 2]}, r"must hold a matrix X and an array y"),
        ({"a": [0, 1], "b": np.zeros((2, 2))}, r"or one array a column"),
        ({"X": np.array([["a"]]), "y": [0]}, r"must hold a matrix of numbers"),
        ({"X": np.array([[None]], dtype=object), "y": [0]}, r"Object arrays cannot be loaded"),
    ],
)
def test_arrays_that_are_no_table(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        Reading().read(str(tmp_path / "t.npz"))


def test_libsvm(tmp_path: Path) -> None:
    table = read(tmp_path, "2 1:0.5 3:1\n1 2:-1 # a remark\n", "t.svm")
    np.testing.assert_array_equal(table.features([0, 1, 2, 3]), [[0, 0.5, 0, 1], [0, 0, -1, 0]])
    assert table.labels("y").tolist() == [2, 1]
    with pytest.raises(ValueError, match="cannot be read as a libsvm file"):
        read(tmp_path, "1 x:2\n", "t.svm")


def test_thousands_of_columns(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(5000)]
    table = read(tmp_path, ",".join(names) + "\n" + ",".join(map(str, range(5000))) + "\n")
    assert matrix(table) == [[*range(5000)]]


@pytest.mark.parametrize("name", ["t.xlsx", "t", "t.parquet.gz"])
def test_unknown_kinds(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=r"is no table of a known kind: \.csv, .*\.libsvm"):
        read(tmp_path, "a\n1\n", name)


def test_a_folder_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").mkdir()
    with pytest.raises(ValueError, match=r"t\.parquet is a folder, but one table is read here, as a whole: name a file"):
        kind_of(str(tmp_path / "t.parquet"))


def test_columns_by_name_or_number(tmp_path: Path) -> None:
    table = read(tmp_path, "width,1,kind\n5,6,x\n")
    assert [table.index(key, "") for key in ("kind", "1", "0", "-1")] == [2, 1, 0, 2]
    with pytest.raises(
        ValueError, match=r"has no column 'wdith' \(--drop\); did you mean 'width'\? it has 'width', '1', 'kind'"
    ):
        table.index("wdith", "--drop")
    with pytest.raises(ValueError, match=r"has no column '3' \(--target\)"):
        table.labels("3")


def test_the_layout_finds_columns(tmp_path: Path) -> None:
    notes: list[str] = []
    layout = Layout(["a", "b"], [0, 2], 3, ["y"])
    assert layout.find(read(tmp_path, "b,y,a\n1,2,3\n"), notes.append) == [2, 0]
    assert notes == []
    assert layout.find(read(tmp_path, "x,b,a\n1,2,3\n"), notes.append) == [2, 1]
    assert "they are ignored: 'x'" in notes.pop()
    with pytest.raises(ValueError, match=r"lacks the column 'b', which the model was trained on; is it 'B' there\?"):
        layout.find(read(tmp_path, "a,B\n1,2\n"), notes.append)
    assert layout.find(read(tmp_path, "1,2\n", header=False), notes.append) == [0, 1]
    assert "taken in their order" in notes.pop()
    assert layout.find(read(tmp_path, "1,2,3\n", header=False), notes.append) == [0, 2]
    with pytest.raises(ValueError, match=r"has 4 columns, but the model was trained on 2 features"):
        layout.find(read(tmp_path, "1,2,3,4\n", header=False), notes.append)

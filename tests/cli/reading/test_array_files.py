"""What is said of files of arrays that are none, or whose labels are odd."""

from __future__ import annotations

import gzip
import io
import pickle
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.cli.reading import array_files
from gpuboost.cli.reading.tables import Reading
from tests.cli.tables import QUICK, refused, run

X = np.arange(6.0).reshape(3, 2)


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": np.array(3.0), "y": [0, 1, 2]}, r"must hold a matrix X .*; got the shapes {'X': \(\), 'y': \(3,\)}"),
        ({"X": np.array(3.0)}, r"must hold a matrix X .*; got the shapes {'X': \(\)}"),
        ({"X": X, "y": [0, 1, 0], "meta": 1}, r"t.npz: meta must be a JSON object in a string, got 1"),
        ({"X": X, "y": [0, 1, 0], "meta": "[]"}, r"t.npz: meta must be a JSON object in a string, got \[\]"),
        ({"X": X, "y": [0, 1, 0], "meta": '{"classes": 5}'}, r"t.npz: 'classes' in meta must be a list, got 5"),
        ({"X": X, "y": [0, 1, 0], "meta": '{"scale": "x"}'}, r"t.npz: 'scale' in meta must be a number, got 'x'"),
        ({"X": X, "y": np.array([None] * 3)}, r"t.npz cannot be read .*: Object arrays cannot be loaded$"),
    ],
)
def test_archives_of_other_things(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "t.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        Reading().read(str(tmp_path / "t.npz"))


@pytest.mark.parametrize("content", [pickle.dumps([1]), b"", b"text", npy(X)])
def test_what_is_no_archive(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "t.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"t.npz is no .npz file: it does not begin as one"):
        Reading().read(str(tmp_path / "t.npz"))


def test_an_archive_of_texts(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("letter.txt", "dear")
    with pytest.raises(ValueError, match=r"must hold .*; got the shapes {'letter.txt': \(\)}"):
        Reading().read(str(tmp_path / "t.npz"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps([1]), r"t.npy is no .npy file: it does not begin as one"),
        (b"", r"t.npy is no .npy file"),
        (b"PK\3\4", r"it is an archive of several arrays, to be named .npz"),
        (npy(X)[:-3], r"t.npy cannot be read as a .npy file of numbers or text"),
        (npy(np.array([None])), r"t.npy cannot be read as a .npy file of numbers or text: Object arrays cannot be loaded$"),
    ],
)
def test_what_is_no_array(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "t.npy").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Reading().read(str(tmp_path / "t.npy"))


def libsvm(folder: Path, content: bytes) -> Any:
    (folder / "t.libsvm").write_bytes(content)
    return Reading().read(str(folder / "t.libsvm"))


@pytest.mark.parametrize("bad", ["1 1", "1 1:2 1:3", "1,2 1:1", "x 1:1", "1 -1:2", "1 99999999999999999999:1"])
@pytest.mark.parametrize("row", [0, 1, 6, 9])
def test_the_line_of_libsvm_that_is_none(tmp_path: Path, bad: str, row: int) -> None:
    lines = ["1 1:2", "# nothing", "", "2 2:1"] * 3
    lines[row] = bad
    lines[11] = "also bad"
    with pytest.raises(ValueError, match=f"t.libsvm cannot be read as a libsvm file: line {row + 1} is '{bad}'; a label and"):
        libsvm(tmp_path, "\n".join(lines).encode())


def test_packed_libsvm(tmp_path: Path) -> None:
    packed = gzip.compress(b"1 1:2\n2 1:3\n", mtime=0)
    assert libsvm(tmp_path, packed).labels("y").tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"t.libsvm cannot be unpacked by gzip"):
        libsvm(tmp_path, packed[:-5])


def test_large_labels_of_libsvm(tmp_path: Path) -> None:
    assert libsvm(tmp_path, b"9007199254740991 1:2\n-3 1:3\n").labels("y").tolist() == [2**53 - 1, -3]
    for text in ("9007199254740993", "-9007199254740992", "1e300"):
        with pytest.raises(ValueError, match="cannot be told apart in a libsvm file"):
            libsvm(tmp_path, f"1 1:2\n{text} 1:3\n".encode())


def test_odd_floats_as_labels_warn_of_nothing(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in (np.float16, np.float32, np.float64):
            for odd in (np.inf, -np.inf, 0.5, float(np.finfo(kind).max)):
                labels = np.array([1, odd, 2], kind)
                found = array_files.whole_numbers(labels)
                exact = kind is np.float16 and odd > 1 and np.isfinite(odd)
                assert (found.dtype, found.tolist()) == (np.int64 if exact else kind, labels.tolist())
        assert libsvm(tmp_path, b"inf 1:2\n2 1:3\n").labels("y").tolist() == [np.inf, 2]
        for name, table in (("t.libsvm", libsvm(tmp_path, b"nan 1:2\n2 1:3\n")), ("t.npz", None)):
            np.savez(tmp_path / "t.npz", X=X, y=[np.nan, 1, 2])
            with pytest.raises(ValueError, match=f"missing labels: .*{name}: array 'y' has none in 1 of"):
                (table or Reading().read(str(tmp_path / name))).labels("y")


@pytest.mark.parametrize("odd", ["inf", "nan"])
def test_odd_labels_are_refused_in_one_line(tmp_path: Path, odd: str) -> None:
    (tmp_path / "t.libsvm").write_text(f"{odd} 1:2\n2 1:3\n2 1:4\n")
    refused("fit", tmp_path / "t.libsvm", "--out", tmp_path / "m", *QUICK)


def test_labels_as_bytes_and_arrays_that_are_dropped(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["ja", "nein"], 10)
    X = rng.normal(size=(20, 2)) + (y == "ja")[:, None]
    np.savez(tmp_path / "t.npz", X=X, y=y.astype("S4"), extra=np.arange(20))
    run("fit", tmp_path / "t.npz", "--target", "y", "--drop", "extra", "--out", tmp_path / "m", *QUICK)
    assert gpuboost.load(tmp_path / "m").classes_.tolist() == ["ja", "nein"]
    np.savez(tmp_path / "t.npz", X=X, y=np.repeat([b"\xe4", b"o"], 10))
    assert r"array 'y' holds bytes that are no text in UTF-8: b'\xe4'" in refused(
        "fit", tmp_path / "t.npz", "--out", tmp_path / "m"
    )

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuboost.datasets import Dataset, read_dataset
from gpuboost.datasets.dataset import fingerprint

X = np.arange(15, dtype=np.int16).reshape(5, 3)
Y = np.array([0, 1, 2, 0, 1], np.uint8)
SPLIT = {"X_train": X[:3], "y_train": Y[:3], "X_test": X[3:], "y_test": Y[3:]}


def write(path: Path, meta: dict[str, Any] | None = None, **arrays: Any) -> Path:
    np.savez_compressed(path, **arrays, **({} if meta is None else {"meta": np.array(json.dumps(meta))}))
    return path


def test_split() -> None:
    data = Dataset("five", X, Y, 3)
    assert data.X_train.tolist() == X[:3].tolist()
    assert data.y_train.tolist() == [0, 1, 2]
    assert data.X_test.tolist() == X[3:].tolist()
    assert data.y_test.tolist() == [0, 1]
    assert np.shares_memory(data.X_train, X)
    assert data.n_classes == 3
    assert repr(data) == "Dataset('five', 5 rows, the first 3 to train on, 3 features, 3 classes)"


@pytest.mark.parametrize("part", ["X_train", "y_train", "X_test", "y_test"])
def test_no_split(part: str) -> None:
    data = Dataset("five", X, Y, class_names=("a", "b", "c", "d"))
    assert repr(data) == "Dataset('five', 5 rows, 3 features, 4 classes)"
    with pytest.raises(ValueError, match="five has no original split: divide X and y"):
        getattr(data, part)


def test_read_a_split_set(tmp_path: Path) -> None:
    data = read_dataset(write(tmp_path / "five.npz", **SPLIT))
    assert (data.name, data.n_train, data.X.dtype, data.class_names, data.categorical) == ("five", 3, np.int16, (), ())
    assert data.X.tolist() == X.tolist()
    assert data.y.tolist() == Y.tolist()


def test_read_a_set_without_a_split(tmp_path: Path) -> None:
    meta = {"scale": None, "missing_code": None, "classes": ["u", "v", "w"], "categorical_columns": [1], "source": "here"}
    data = read_dataset(str(write(tmp_path / "five.npz", meta, X=X, y=Y, more=Y)))
    assert (data.n_train, data.X.dtype, data.class_names, data.categorical) == (None, np.int16, ("u", "v", "w"), (1,))
    assert data.X.tolist() == X.tolist()


def test_scale_and_missing_values(tmp_path: Path) -> None:
    codes = np.array([[3, -1], [-1, 0]], np.int16)
    path = write(tmp_path / "two.npz", {"scale": 0.5, "missing_code": -1}, X=codes, y=Y[:2])
    np.testing.assert_array_equal(read_dataset(path).X, [[1.5, np.nan], [np.nan, 0.0]])


@pytest.mark.parametrize(("kind", "wide"), [(np.int8, np.float32), (np.uint8, np.float32), (np.int32, np.float64)])
def test_type_with_missing_values(tmp_path: Path, kind: type, wide: type) -> None:
    """A value of 2**31 - 1 would not survive in float32."""
    most = np.iinfo(kind).max
    found = read_dataset(write(tmp_path / "a.npz", {"missing_code": 1}, X=np.array([[1, most]], kind), y=Y[:1])).X
    assert found.dtype == wide
    assert np.isnan(found[0, 0])
    assert int(found[0, 1]) == most


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        read_dataset(tmp_path / "none.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "must hold X_train, y_train, X_test, y_test, or X, y; it holds X$"),
        ({"X_train": X, "y_train": Y, "X_test": X}, "it holds X_test, X_train, y_train$"),
        ({"X": X, "y": Y[:4]}, r"X must be a matrix and y as long, got the shapes \(5, 3\) and \(4,\)"),
        ({"X": Y, "y": Y}, r"got the shapes \(5,\) and \(5,\)"),
        ({"X": X, "y": Y, "meta": np.array("{")}, "cannot be read as a .npz file"),
        ({"X": X, "y": np.array([None])}, "cannot be read as a .npz file"),  # it would be unpickled
    ],
)
def test_other_contents(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    np.savez(tmp_path / "five.npz", **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        read_dataset(tmp_path / "five.npz")
    assert str(tmp_path / "five.npz") in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 a broken one"])
def test_other_files(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "five.npz").write_bytes(content)
    with pytest.raises(ValueError, match=r"five.npz cannot be read as a .npz file"):
        read_dataset(tmp_path / "five.npz")


def test_a_single_array(tmp_path: Path) -> None:
    np.save(tmp_path / "five.npy", X)
    with pytest.raises(ValueError, match=r"five.npy cannot be read as a .npz file"):
        read_dataset(tmp_path / "five.npy")


def test_fingerprint_by_hand() -> None:
    """Rows are the little-endian bytes of X and a byte of y; they are sorted as bytes."""
    rows = sorted([b"\x01\x00\xff\xff\x07", b"\x00\x02\x00\x00\x00"])
    expected = hashlib.sha256(b"".join(rows)).hexdigest()[:16]
    assert fingerprint(np.array([[1, -1], [512, 0]], np.int16), [7, 0]) == expected
    assert fingerprint(np.array([[1, -1], [512, 0]], ">i2"), [7, 0]) == expected
    assert fingerprint(np.asfortranarray([[512, 0], [1, -1]], np.int16), [0, 7]) == expected


def test_fingerprint_tells_sets_apart() -> None:
    A, b = np.array([[0, 1], [0, 2], [3, 0]], np.uint8), np.array([0, 1, 2], np.uint8)
    others = [(A[::-1], b), (A[:, ::-1], b), (A, b[::-1]), (A[:2], b[:2]), (A.astype(np.uint16), b), (A + 1, b)]
    assert fingerprint(A[[2, 0, 1]], b[[2, 0, 1]]) == fingerprint(A, b)
    # turning the rows round or the labels is the same
    assert len({fingerprint(A, b), *(fingerprint(*other) for other in others)}) == len(others)

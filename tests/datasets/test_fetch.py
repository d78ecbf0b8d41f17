"""Downloads are replaced by small sets here; nothing in this file needs a network."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from email.message import Message
from http.client import IncompleteRead
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError, URLError

import numpy as np
import pytest
import sklearn.datasets

from gpuboost.datasets import fetch, fetch_covtype, fetch_mnist, fetch_uci, uci
from gpuboost.datasets.dataset import fingerprint
from gpuboost.datasets.uci import ADDRESS, SOURCES, Part
from tests.test_architecture import loaded_by

Web = dict[str, bytes | Exception]


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Web:
    """What lies at which address; scikit-learn's `fetch_file` finds nothing else."""
    pages: Web = {}

    def fetch_file(url: str) -> Path:
        page = pages.get(url, URLError("no network"))
        if isinstance(page, Exception):
            raise page
        path = tmp_path / url.rsplit("/", 1)[1]
        path.write_bytes(page)
        return path

    def nothing(*args: Any, **kwargs: Any) -> None:
        raise URLError("no network")

    monkeypatch.setattr(sklearn.datasets, "fetch_file", fetch_file)
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", nothing)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", nothing)
    return pages


def parts(X: Any, y: Any, *sizes: int) -> tuple[Part, ...]:
    ends = np.cumsum(sizes)
    return tuple(Part(n, fingerprint(X[end - n : end], y[end - n : end])) for n, end in zip(sizes, ends, strict=True))


# ---- sets of the UCI repository ----------------------------------------------------------------------------------------------

X_VOWEL = np.array([[1.5, 0.0], [2.5, -1.0], [0.25, 3.0]], np.float32)
Y_VOWEL = np.array([1, 0, 2], np.uint8)


@pytest.fixture
def vowel(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make a small set of the set vowel: two rows to train on and one to test, two features, three classes."""
    source = replace(
        SOURCES["vowel"],
        parts=parts(X_VOWEL, Y_VOWEL, 2, 1),
        n_features=2,
        labels=("0", "1", "2"),
        class_names=("u", "v", "w"),
        categorical=(1,),
    )
    monkeypatch.setitem(uci.SOURCES, "vowel", source)
    return ADDRESS + source.files[0]


def test_a_set_of_one_file(web: Web, vowel: str) -> None:
    web[vowel] = b"0 0 0 1.5 -0.000 1\n0 1 0 2.5 -1.0 0\n1 2 1 0.25 3 2\n"
    data = fetch_uci("vowel")
    assert (data.name, data.n_train, data.class_names, data.categorical) == ("vowel", 2, ("u", "v", "w"), (1,))
    assert (data.X.dtype, data.y.dtype) == (np.float32, np.uint8)
    assert data.X.tobytes() == X_VOWEL.tobytes()  # -0.0 is 0.0 now
    assert data.y_train.tolist() == [1, 0]
    assert data.X_test.tolist() == [[0.25, 3.0]]


def test_a_set_of_two_compressed_files(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are the first lines "1" "." ... as codes of 9 bits each, which need no compression."""

    def packed(text: str) -> bytes:
        groups = [text[i : i + 8].encode() for i in range(0, len(text), 8)]
        return b"\x1f\x9d\x90" + b"".join(sum(c << 9 * i for i, c in enumerate(g)).to_bytes(9, "little") for g in groups)

    X, y = np.array([[1], [2], [3]], np.float32), np.array([0, 25, 1], np.uint8)
    monkeypatch.setitem(uci.SOURCES, "isolet", replace(SOURCES["isolet"], n_features=1, parts=parts(X, y, 1, 2)))
    web[ADDRESS + "isolet/isolet1+2+3+4.data.Z"] = packed(" 1.0000, 1.\n    ")
    web[ADDRESS + "isolet/isolet5.data.Z"] = packed(" 2.0000, 26.\n 3.0, 2.\n  ")
    data = fetch_uci("isolet")
    assert (data.X.tolist(), data.y.tolist(), data.n_train) == ([[1], [2], [3]], [0, 25, 1], 1)
    assert data.class_names[25] == "Z"


def test_a_set_of_many_files_without_a_split(web: Web) -> None:
    lines = [" ".join([str(i)] * 18) + f" {('bus', 'van', 'opel')[i % 3]} \n" for i in range(846)]
    for k, letter in enumerate("abcdefghi"):
        web[f"{ADDRESS}statlog/vehicle/xa{letter}.dat"] = "".join(lines[94 * k : 94 * (k + 1)]).encode()
    data = fetch_uci("vehicle")
    assert (data.n_train, data.class_names) == (None, ("opel", "saab", "bus", "van"))
    assert data.X.tolist() == [[i] * 18 for i in range(846)]
    assert data.y[:4].tolist() == [2, 3, 0, 2]


def test_labels_of_poker_hands_follow_from_the_rules(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(uci.SOURCES, "poker", replace(SOURCES["poker"], parts=(Part(1), Part(1))))
    train, test = (ADDRESS + file for file in SOURCES["poker"].files)
    web[train] = b"1,10,1,11,1,13,1,12,1,1,9\n"
    web[test] = b"1,10,1,11,1,13,1,12,2,1,4\n"
    assert fetch_uci("poker").y.tolist() == [9, 4]
    web[test] = b"1,10,1,11,1,13,1,12,2,1,0\n"
    with pytest.raises(ValueError, match="is not poker as it is known: labels do not follow from the rows"):
        fetch_uci("poker")


@pytest.mark.parametrize(
    "error", [URLError("down"), HTTPError("u", 404, "Not Found", Message(), None), TimeoutError("late"), IncompleteRead(b"")]
)
def test_no_network(web: Web, vowel: str, error: Exception) -> None:
    web[vowel] = error
    with pytest.raises(OSError, match="vowel cannot be downloaded from") as caught:
        fetch_uci("vowel")
    message = str(caught.value)
    assert vowel in message
    assert type(error).__name__ in message
    assert "put X_train, y_train, X_test, y_test into DIR/vowel.npz and pass data_dir=DIR" in message
    assert caught.value.__cause__ is error


def test_no_network_for_a_set_without_a_split(web: Web) -> None:
    with pytest.raises(OSError, match=r"put X, y into DIR/splice.npz and pass data_dir=DIR"):
        fetch_uci("splice")


@pytest.mark.parametrize("page", [b"<html>", b"", b"0 0 0 1.5 0 1\n0 1 0 2.5\n", b"0 0 0 1.5 0 7\n"])
def test_another_page(web: Web, vowel: str, tmp_path: Path, page: bytes) -> None:
    web[vowel] = page
    with pytest.raises(ValueError, match="is not what is expected") as caught:
        fetch_uci("vowel")
    assert vowel in str(caught.value)
    assert str(tmp_path / "vowel-context.data") in str(caught.value)


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (b"0 0 0 1.5 0 1\n0 1 0 2.5 -1.0 0\n", r"shapes \(3, 2\) and \(3,\), got \(2, 2\) and \(2,\)"),
        (b"0 0 0 1.5 1 1\n0 1 0 2.5 -1.0 0\n1 2 1 0.25 3 2\n", "the training rows differ"),
        (b"0 0 0 1.5 0 1\n0 1 0 2.5 -1.0 0\n1 2 1 0.25 3 1\n", "the test rows differ"),
        (b"0 0 0 1.5 0 1\n1 2 1 0.25 3 2\n0 1 0 2.5 -1.0 0\n", "the training rows differ"),
        (b"0 0 0 1.5 0 1\n0 1 0 2.5 -1.0 0\n1 2 1 0.25 ? 2\n", "the test rows differ"),
    ],
)
def test_other_rows(web: Web, vowel: str, tmp_path: Path, page: bytes, reason: str) -> None:
    web[vowel] = page
    with pytest.raises(ValueError, match=f"vowel-context.data is not vowel as it is known: .*{reason}"):
        fetch_uci("vowel")


def test_the_order_of_rows_in_a_part_is_free(web: Web, vowel: str) -> None:
    web[vowel] = b"0 1 0 2.5 -1.0 0\n0 0 0 1.5 0 1\n1 2 1 0.25 3 2\n"
    assert fetch_uci("vowel").y.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["iris", "mnist", "", None, 3])
def test_unknown_name(name: Any) -> None:
    with pytest.raises(ValueError, match=r"name must be one of glass, isolet, .*, vowel; got"):
        fetch_uci(name)


# ---- files -------------------------------------------------------------------------------------------------------------------


def test_a_file_instead(vowel: str, tmp_path: Path) -> None:
    arrays = {"X_train": X_VOWEL[:2].astype(np.float64), "y_train": Y_VOWEL[:2].astype(np.int64)}
    np.savez(tmp_path / "vowel.npz", **arrays, X_test=X_VOWEL[2:], y_test=Y_VOWEL[2:])
    data = fetch_uci("vowel", data_dir=str(tmp_path))
    assert (data.X.tobytes(), data.y.tobytes(), data.n_train) == (X_VOWEL.tobytes(), Y_VOWEL.tobytes(), 2)
    assert (data.X.dtype, data.class_names) == (np.float32, ("u", "v", "w"))


def test_a_file_with_other_rows(vowel: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "vowel.npz", X=X_VOWEL + 1, y=Y_VOWEL)
    with pytest.raises(ValueError, match=r"vowel.npz is not vowel as it is known: the training rows differ"):
        fetch_uci("vowel", data_dir=tmp_path)


def test_a_file_with_unknown_labels(tmp_path: Path) -> None:
    np.savez(tmp_path / "vehicle.npz", X=np.zeros((846, 18)), y=np.full(846, 4))
    with pytest.raises(ValueError, match="labels must be below 4, got 4"):
        fetch_uci("vehicle", data_dir=tmp_path)


@pytest.mark.parametrize(
    ("function", "name"),
    [(fetch_mnist, "mnist"), (fetch_covtype, "covtype"), (lambda data_dir: fetch_uci("letter", data_dir=data_dir), "letter")],
)
def test_no_such_file(function: Callable[..., Any], name: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=f"there is no {name}.npz in ") as caught:
        function(data_dir=tmp_path)
    assert str(tmp_path) in str(caught.value)


# ---- MNIST -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def mnist(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Make MNIST small: four digits to train on and two to test."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 256, (6, 784)).astype(np.uint8), np.array([5, 0, 4, 1, 9, 2], np.uint8)
    monkeypatch.setattr(fetch, "MNIST", parts(X, y, 4, 2))
    return X, y


@pytest.mark.parametrize("has_pandas", [False, True])
def test_mnist(mnist: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, has_pandas: bool) -> None:
    """OpenML sends pixels as float64 or int64 and labels as text."""
    X, y = mnist
    asked: list[Any] = []

    def fetch_openml(*args: Any, **kwargs: Any) -> SimpleNamespace:
        asked.append((args, kwargs))
        pixels = X.astype(np.int64 if has_pandas else np.float64)
        return SimpleNamespace(data=pixels, target=y.astype(str).astype(object))

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    monkeypatch.setattr(fetch, "find_spec", lambda name: name if has_pandas else None)
    data = fetch_mnist()
    assert asked == [(("mnist_784",), {"version": 1, "as_frame": False, "parser": "pandas" if has_pandas else "liac-arff"})]
    assert (data.X.dtype, data.y.dtype, data.n_train) == (np.uint8, np.uint8, 4)
    assert data.X.tobytes() == X.tobytes()
    assert data.y_test.tolist() == [9, 2]
    assert data.class_names == tuple("0123456789")


def test_mnist_from_a_file(mnist: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = mnist
    np.savez(tmp_path / "mnist.npz", X_train=X[:4], y_train=y[:4], X_test=X[4:], y_test=y[4:])
    assert fetch_mnist(data_dir=tmp_path).X_test.tobytes() == X[4:].tobytes()


@pytest.mark.parametrize("error", [URLError("down"), ValueError("Dataset mnist_784 with version 1 not found.")])
def test_mnist_without_network(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fetch_openml(*args: Any, **kwargs: Any) -> None:
        raise error

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    with pytest.raises(OSError, match=r"mnist cannot be downloaded from OpenML, https://www.openml.org/d/554 \(.*data_dir=DIR"):
        fetch_mnist()


def test_another_mnist(web: Web, mnist: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = mnist
    np.savez(tmp_path / "mnist.npz", X=X[::-1], y=y[::-1])
    with pytest.raises(ValueError, match=r"mnist.npz is not mnist as it is known: the training rows differ"):
        fetch_mnist(data_dir=tmp_path)


# ---- Covertype ---------------------------------------------------------------------------------------------------------------

IS_ABC = np.array([1, 0, 1, 1, 0, 0, 1, 0, 0], np.bool_)


@pytest.fixture
def covtype(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """Make Covertype small: nine rows, of which the authors train on two and the experiments with ABC-Boost on four."""
    X = np.arange(9 * 54, dtype=np.int16).reshape(9, 54) - 100
    y = np.array([6, 0, 1, 2, 3, 4, 5, 6, 0], np.uint8)
    order = [0, 2, 3, 6, 1, 4, 5, 7, 8]
    monkeypatch.setattr(fetch, "COVTYPE", {"uci": parts(X, y, 2, 7), "abc": parts(X[order], y[order], 4, 5)})
    return X, y


def check_covtype(data: Any, X: Any, y: Any, is_train: Any) -> None:
    assert data.X_train.tolist() == X[is_train].tolist()
    assert data.y_test.tolist() == y[~is_train].tolist()
    assert (data.X.dtype, data.y.dtype, len(data.class_names)) == (np.int16, np.uint8, 7)
    assert data.X.flags.f_contiguous


def test_covtype(web: Web, covtype: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = covtype
    bunch = SimpleNamespace(data=X.astype(np.float64), target=y.astype(np.int32) + 1)
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda: bunch)
    check_covtype(fetch_covtype(), X, y, np.arange(9) < 2)
    web[fetch.ABC_ROWS] = b"1,3,4,7\n"
    check_covtype(fetch_covtype(split="abc"), X, y, IS_ABC)


def test_covtype_from_a_file(covtype: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = covtype
    np.savez(tmp_path / "covtype.npz", X=X, y=y, abc_train_mask=np.packbits(IS_ABC))
    check_covtype(fetch_covtype(data_dir=tmp_path), X, y, np.arange(9) < 2)
    check_covtype(fetch_covtype(data_dir=tmp_path, split="abc"), X, y, IS_ABC)


def test_a_file_of_covtype_without_the_mask(covtype: tuple[Any, Any], tmp_path: Path) -> None:
    X, y = covtype
    np.savez(tmp_path / "covtype.npz", X=X, y=y)
    with pytest.raises(ValueError, match=r"covtype.npz must hold abc_train_mask for split='abc'; it holds X, y"):
        fetch_covtype(data_dir=tmp_path, split="abc")


def test_covtype_without_network(web: Web) -> None:
    with pytest.raises(OSError, match=r"covtype cannot be downloaded from figshare.*put X, y into DIR/covtype.npz"):
        fetch_covtype()


def test_training_rows_of_abc_without_network(web: Web, covtype: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = covtype
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda: SimpleNamespace(data=X, target=y + 1))
    with pytest.raises(OSError, match=r"covtype cannot be downloaded from https://raw.*put X, y, abc_train_mask into DIR"):
        fetch_covtype(split="abc")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (b"<html>", "is not what is expected"),
        (b"1,3,4,10", "is not what is expected"),  # there are 9 rows
        (b"1,3,4,8", "the training rows differ"),
        (b"1,3,4", "the training rows differ"),
    ],
)
def test_other_training_rows_of_abc(
    web: Web, covtype: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch, rows: bytes, message: str
) -> None:
    X, y = covtype
    monkeypatch.setattr(sklearn.datasets, "fetch_covtype", lambda: SimpleNamespace(data=X, target=y + 1))
    web[fetch.ABC_ROWS] = rows
    with pytest.raises(ValueError, match=message):
        fetch_covtype(split="abc")


@pytest.mark.parametrize("split", ["half", "", None])
def test_bad_split(split: Any) -> None:
    with pytest.raises(ValueError, match="split must be 'uci' or 'abc', got"):
        fetch_covtype(split=split)


def test_import_is_light() -> None:
    loaded = loaded_by("import gpuboost.datasets")
    assert loaded - set(sys.stdlib_module_names) - loaded_by("import numpy") == {"gpuboost"}

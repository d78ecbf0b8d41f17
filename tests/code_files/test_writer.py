"""Code files hold the cuts, codes, labels and weights of the rows in memory, whatever source they come from."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from gpuboost import CodeFile, StreamError
from gpuboost.binning.rounds import Budget
from gpuboost.code_files import cuts, writer
from gpuboost.code_files.spool import Spool
from gpuboost.inputs.samples import training_sample
from gpuboost.streams import OracleSource
from tests.binning.columns import KINDS
from tests.binning.test_workers import same

RNG = np.random.default_rng(3)
N = 203
X = np.column_stack([RNG.normal(size=(N, 3)), RNG.integers(0, 4, (N, 2))])
Y = RNG.integers(0, 3, N)
WEIGHT = RNG.integers(0, 5, N).astype(float)


def batches(X: Any, y: Any, weight: Any = None, seed: int = 0) -> Iterator[tuple[Any, ...]]:
    """The rows in batches of random sizes."""
    rng, start = np.random.default_rng(seed), 0
    while start < len(y):
        rows = slice(start, start + int(rng.integers(1, 60)))
        yield (X[rows], y[rows]) if weight is None else (X[rows], y[rows], weight[rows])
        start = rows.stop


def content(file: CodeFile) -> tuple[Any, ...]:
    """All that a training is made of."""
    sample, encoder = file.sample()
    matrix, mapper = file.matrix(), file.bin_mapper
    cuts = [array.tobytes() for array in vars(mapper).values()]
    rows = [sample.target.tolist(), sample.weights.tolist(), encoder.classes.tolist(), str(encoder.classes.dtype)]
    codes = matrix.features(0, matrix.n_features).tolist()
    return cuts, rows, codes, matrix.code_counts.tolist(), sample.n_distinct(2000)


def content_in_memory(X: Any, y: Any, weight: Any = None, max_bins: int = 255) -> tuple[Any, ...]:
    """The oracle: what `fit` makes of arrays."""
    sample, encoder = training_sample(X, y, weight, None)
    mapper = sample.fit_bins(max_bins, 1)
    matrix = mapper.transform(X, rows=sample.rows)
    cuts = [array.tobytes() for array in vars(mapper).values()]
    rows = [sample.target.tolist(), sample.weights.tolist(), encoder.classes.tolist(), str(encoder.classes.dtype)]
    return cuts, rows, matrix.codes.tolist(), matrix.code_counts.tolist(), sample.n_distinct(2000)


@pytest.mark.parametrize("weights", ["none", "integer", "real"])
@pytest.mark.parametrize("kind", KINDS)
def test_cuts_and_codes_are_those_of_all_rows(kind: str, weights: str, tmp_path: Path) -> None:
    rng = np.random.default_rng([len(kind), len(weights)])
    n = 700
    X = np.column_stack([KINDS[kind](rng, n) for _ in range(3)])
    weight = {"none": None, "integer": rng.integers(0, 4, n) * 0.3, "real": rng.random(n)}[weights]
    max_bins = int(rng.choice([2, 5, 64, 255]))
    small = dict.fromkeys(("WHOLE_BYTES", "WEIGHTED_BYTES", "SORTING_BYTES"), 1 << 13) | {
        "BUDGET": Budget(entries=40, pivots=20, known=20)
    }  # 128 rows at a time in 1 MB
    with mock.patch.multiple(cuts, **small), mock.patch.object(writer, "STEP_BYTES", 8 * 3 * 100):
        file = CodeFile.write(batches(X, Y := rng.integers(0, 3, n), weight), tmp_path / "a", max_bins=max_bins, memory_mb=1)
    assert content(file) == content_in_memory(X, Y, weight, max_bins)
    assert file.max_bins == max_bins
    assert os.listdir(tmp_path) == ["a"]


LABELS = {
    "numbers": Y,
    "text": np.array(["long label", "b", "c"], object)[Y],
    "text of a fixed width": np.array(["a", "bb", "long label"])[Y],
    "bool": Y > 1,
    "days": np.array(["2024-01-01", "2020-05-05", "2022-02-02"], "datetime64[D]")[Y],
    "few fractions": Y / 4,
}


@pytest.mark.parametrize("name", LABELS)
def test_labels(name: str, tmp_path: Path) -> None:
    file = CodeFile.write(batches(X, LABELS[name]), tmp_path / "a")
    assert content(file) == content_in_memory(X, LABELS[name])


def test_large_integer_labels_of_two_dtypes(tmp_path: Path) -> None:
    """They have no common dtype of NumPy's but floating numbers, in which the first two would be one class."""
    large, larger = np.array([2**62, 2**62 + 1]), np.array([2**63, 2**63 + 1], np.uint64)
    pieces = [(X[:20], large[Y[:20] % 2]), (X[20:40], larger[Y[20:40] % 2])]
    assert CodeFile.write(pieces, tmp_path / "a").classes.tolist() == [2**62, 2**62 + 1, 2**63, 2**63 + 1]


def test_integers_before_numbers(tmp_path: Path) -> None:
    """A batch may be of another dtype than those before: all are kept as one that holds them."""
    y = np.where(np.arange(N) < 150, Y, Y / 2)
    with Spool(tmp_path) as spool:
        for dtype, part in zip((np.int8, np.uint8, np.int16, np.int32, float), np.array_split(X.round(), 5), strict=True):
            spool.append(abs(part).astype(dtype))
        assert spool.dtype == np.float64
        assert spool.columns(1, 4).tolist() == abs(X.round())[:, 1:4].tolist()
    pieces = [(X[:100].round().astype(np.int16), Y[:100]), (X[100:150].astype(np.float32), Y[100:150]), (X[150:], y[150:])]
    whole = np.concatenate([piece.astype(float) for piece, _ in pieces])
    assert content(CodeFile.write(pieces, tmp_path / "a")) == content_in_memory(whole, y)


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, tuple[Any, dict[str, Any]]]:
    """The same rows in many places."""
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=Y, w=WEIGHT)
    named = {"target": "label", "weight": "w"}
    (tmp_path / "rows").mkdir()
    for i, rows in enumerate((slice(0, 90), slice(90, N))):
        pyarrow.parquet.write_table(pa.Table.from_pandas(frame[rows]), tmp_path / f"rows/{i}.parquet", row_group_size=40)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    np.save(tmp_path / "X.npy", X)
    return {
        "arrays": ((X, Y, WEIGHT), {}),
        "a frame": ((frame[list("abcde")], frame["label"], frame["w"]), {}),
        "a memory map": ((np.load(tmp_path / "X.npy", mmap_mode="r"), Y, WEIGHT), {}),
        "a generator": (batches(X, Y, WEIGHT), {}),
        "other batches": (batches(X, Y, WEIGHT, seed=5), {}),
        "a function": (lambda: batches(X, Y, WEIGHT, seed=6), {}),
        "a folder": (tmp_path / "rows", named),
        "a list of files": ([tmp_path / "rows/0.parquet", tmp_path / "rows/1.parquet"], named),
        "CSV": (tmp_path / "rows.csv", named),
    }


def test_every_source_gives_the_same_file(sources: dict[str, tuple[Any, dict[str, Any]]], tmp_path: Path) -> None:
    expected, files = content_in_memory(X, Y, WEIGHT), []
    for name, (source, options) in sources.items():
        for step_bytes in (1, 8 << 20):
            if step_bytes == 1 and name in ("a generator", "other batches"):
                continue
            with mock.patch.object(writer, "STEP_BYTES", step_bytes):
                file = CodeFile.write(source, tmp_path / "file", n_jobs=1, **options)
            assert content(file) == expected
            assert file.feature_names == (None if "batches" in name or name in UNNAMED else list("abcde"))
            assert file.target == options.get("target")
            files.append((file.feature_names is None, file.target, (tmp_path / "file").read_bytes()))
    assert len(set(files)) == 3  # without names, with those of the features, and with that of the target, too


UNNAMED = ("arrays", "a memory map", "a generator", "a function")


def test_shuffled_and_fewer_columns(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=Y, w=WEIGHT)
    frame.to_parquet(tmp_path / "a.parquet")
    some = CodeFile.write(tmp_path / "a.parquet", tmp_path / "b", target="label", columns=["d", "a"])
    assert content(some) == content_in_memory(X[:, [3, 0]], Y)
    assert some.feature_names == ["d", "a"]
    one, other = (CodeFile.write((X, Y), tmp_path / "b", shuffle=seed) for seed in (0, 1))
    assert one.bin_mapper.digest() == other.bin_mapper.digest()  # the cuts do not depend on the order
    assert same(one.bin_mapper, other.bin_mapper)
    assert one._container.sha256 != other._container.sha256


def test_a_source_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    def failing() -> Iterator[Any]:
        yield X[:50], Y[:50]
        raise OSError("the network is gone")

    path = tmp_path / "a"
    for before in (None, b"before"):
        if before is not None:
            path.write_bytes(before)
        with pytest.raises(StreamError, match="pass 0, row 50: OSError: the network is gone"):
            CodeFile.write(failing(), path)
        assert os.listdir(tmp_path) == ([] if before is None else ["a"])
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("where", ["spool", "codes"])
def test_an_error_or_an_interrupt_leaves_nothing(tmp_path: Path, where: str) -> None:
    method = (Spool, "append") if where == "spool" else (writer, "to_blocks")
    for error in (KeyboardInterrupt(), OSError(28, "No space left on device")):
        with mock.patch.object(*method, side_effect=error), pytest.raises(type(error)):
            CodeFile.write((X, Y), tmp_path / "a")
        assert os.listdir(tmp_path) == []


REFUSED = {
    "no rows": (lambda: CodeFile.write([], "a"), StreamError, "the source has no rows"),
    "no weight": (lambda: CodeFile.write((X, Y, 0 * WEIGHT), "a"), ValueError, "zero in every row"),
    "regression": (lambda: CodeFile.write((X, RNG.random(N)), "a"), ValueError, "Unknown label type"),
    "many labels": (lambda: CodeFile.write((X, np.eye(3)[Y]), "a"), ValueError, "one label a row"),
    "text": (lambda: CodeFile.write((np.array([["a"]] * N), Y), "a"), ValueError, "text|numbers|convert"),
    "bins": (lambda: CodeFile.write((X, Y), "a", max_bins=256), ValueError, "max_bins"),
    "an oracle": (lambda: CodeFile.write(OracleSource(lambda n: (X[:n], Y[:n])), "a"), ValueError, "never ends"),
    "no folder": (lambda: CodeFile.write((X, Y), "no/a"), FileNotFoundError, "no"),
    "mixed labels": (lambda: CodeFile.write([(X, Y), (X, Y.astype(str))], "a"), StreamError, "y holds text"),
}


def never() -> Iterator[Any]:
    """A source that must not be read."""
    raise AssertionError("it was read")
    yield


EARLY = {
    "no threads": (lambda: CodeFile.write(never(), "a", n_jobs=0), ValueError, "n_jobs must not be 0"),
    "no memory": (
        lambda: CodeFile.write(never(), "a", memory_mb=0),
        ValueError,
        "memory_mb must be an integer of at least 1, got 0",
    ),
    "a folder": (lambda: CodeFile.write(never(), "."), IsADirectoryError, r"directory: '\.'"),
    "no name": (lambda: CodeFile.write(never(), ""), FileNotFoundError, "path is empty"),
    "a device": (lambda: CodeFile.write(never(), os.devnull), OSError, f"cannot be a device or a pipe: '{os.devnull}'"),
    "no folder": (lambda: CodeFile.write(never(), "no/a"), FileNotFoundError, "no"),
    "bins": (lambda: CodeFile.write(never(), "a", max_bins=1), ValueError, "max_bins"),
    "no target": (lambda: CodeFile.write("rows.csv", "a"), TypeError, "target must be the name of the column"),
}
REFUSED |= EARLY


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, kind, message = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=message):
        call()
    assert os.listdir(tmp_path) == []

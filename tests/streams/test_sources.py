"""Every adapter gives the same rows, from any row on; orders depend on the seed only."""

from __future__ import annotations

import gzip
import mmap
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest

from gpuboost import extras
from gpuboost.errors import StreamError
from gpuboost.streams import (
    ArraySource,
    Batch,
    BatchSource,
    DaskSource,
    DatasetSource,
    OracleSource,
    Source,
    arrays,
    as_source,
    files,
    tables,
)
from gpuboost.streams.order import permutation
from tests.streams.rows import cut, given, rows, same, steps

N = 103
X, Y = rows(N)
WEIGHT = np.arange(N) / N
FRAME = pd.DataFrame(X, columns=list("abc")).assign(b=X[:, 1].astype(int), label=Y, w=WEIGHT)


def write_parquet(folder: Path, n_files: int = 3, frame: pd.DataFrame = FRAME) -> Path:
    for i, chosen in enumerate(np.array_split(np.arange(len(frame)), n_files)):
        table = pa.Table.from_pandas(frame.iloc[chosen], preserve_index=i == 1)
        pyarrow.parquet.write_table(table, folder / f"part{i}.parquet", row_group_size=10)
    (folder / "_SUCCESS").touch()
    return folder


def write_feather(folder: Path) -> Path:
    pyarrow.feather.write_feather(FRAME.iloc[:50], folder / "a.feather", chunksize=20)
    pyarrow.feather.write_feather(FRAME.iloc[50:].reset_index(drop=True), folder / "b.arrow", chunksize=1000)
    return folder


def write_csv(folder: Path) -> Path:
    FRAME.iloc[:50].to_csv(folder / "a.csv", index=False)
    (folder / "b").mkdir()
    with gzip.open(folder / "b" / "c.csv.gz", "wt") as file:
        FRAME.iloc[50:].to_csv(file, index=False)
    return folder


WRITERS: dict[str, Callable[[Path], Path]] = {"parquet": write_parquet, "feather": write_feather, "csv": write_csv}
COLUMNS = {"target": "label", "weight": "w"}


@pytest.fixture(params=list(WRITERS))
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tables, "CSV_BLOCK", 500)  # some 20 rows
    return WRITERS[request.param](tmp_path)


@pytest.fixture
def mapped(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Any:
    path = tmp_path_factory.mktemp("maps") / "X.npy"
    monkeypatch.setattr(arrays, "BATCH_BYTES", 240)  # 10 rows
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 480)
    np.save(path, X)
    return np.load(path, mmap_mode="r")


# ---- the same rows -----------------------------------------------------------------------------------------------------------


def test_files_and_arrays_give_the_same_steps(folder: Path) -> None:
    source = DatasetSource(folder, **COLUMNS)
    assert source.feature_names == ["a", "b", "c"]
    assert source.n_features == 3
    assert same(steps(source, 8, True, max_examples=250), steps(ArraySource(X, Y, WEIGHT), 8, True, max_examples=250))


def test_all_sources_start_anywhere(folder: Path, mapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 4)
    monkeypatch.setattr(files, "BATCH_ROWS", 3)
    sources: list[Source] = [DatasetSource(folder, "label", columns=list("abc"), shuffle=seed) for seed in (None, 0, 1)]
    sources += [ArraySource(X, Y, shuffle=seed) for seed in (None, 0)]
    sources += [ArraySource(mapped, Y, shuffle=seed) for seed in (None, 0)]
    sources.append(BatchSource(cut(FRAME[["a", "b", "c"]], Y, [7, 30, 1])))
    for source in sources:
        whole = given(source)
        assert sorted(whole[:, 0]) == list(range(N))
        for first_row in (1, 9, 10, 11, 57, N - 1):
            assert np.array_equal(given(source, first_row), whole[first_row:])


def test_columns_are_projected(folder: Path) -> None:
    source = DatasetSource(folder, "label", columns=["c", "a"])
    whole = steps(source, N)[0]
    assert np.array_equal(whole.X, X[:, [2, 0]])
    assert np.array_equal(whole.y, Y)
    assert whole.weight is None


def test_a_dataset_of_pyarrow_with_folders_that_are_a_column(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    pyarrow.dataset.write_dataset(
        table,
        tmp_path,
        format="parquet",
        partitioning=pyarrow.dataset.partitioning(pa.schema([("label", pa.int64())]), flavor="hive"),
    )
    dataset = pyarrow.dataset.dataset(tmp_path, partitioning="hive")
    whole = steps(as_source(dataset, target="label", weight="w"), N)[0]
    order = np.argsort(Y, kind="stable")
    assert np.array_equal(whole.X, X[order])
    assert np.array_equal(whole.y, Y[order])
    with pytest.raises(TypeError, match="must consist of files of Parquet, Feather or CSV, got a Fragment"):
        DatasetSource(pyarrow.dataset.dataset(table), "label")


def test_row_groups_before_the_first_row_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = DatasetSource(write_parquet(tmp_path), "label", columns=["a"])
    assert source.n_rows == N
    read: list[Any] = []
    original = tables.TableFile.tables

    def counted(self: Any, names: Any, group: int, **options: Any) -> Iterator[Any]:
        read.append((Path(self.path).name, group))
        return original(self, names, group, **options)

    monkeypatch.setattr(tables.TableFile, "tables", counted)
    assert given(source, 80)[:, 0].tolist() == list(range(80, N))  # files of 35, 34 and 34 rows
    assert read == [("part2.parquet", 1), ("part2.parquet", 2), ("part2.parquet", 3)]


def test_numbers_of_a_csv_file_may_become_floating_and_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "CSV_BLOCK", 20)
    (tmp_path / "a.csv").write_text("a,b,y\n" + "1,,no\n" * 10 + "2.5,7,yes\n,8,NA\n")
    (whole,) = steps(DatasetSource(str(tmp_path / "a.csv"), "y"), 100)
    assert np.array_equal(whole.X, np.array([[1, np.nan]] * 10 + [[2.5, 7], [np.nan, 8]]), equal_nan=True)
    assert whole.y.tolist() == ["no"] * 10 + ["yes", "NA"]


# ---- orders ------------------------------------------------------------------------------------------------------------------


def test_a_permutation_is_fixed() -> None:
    assert sorted(permutation(1000, 5)) == list(range(1000))
    assert permutation(8, 0).tolist() == permutation(8, 0).tolist() != permutation(8, 1).tolist()
    words = np.random.Philox(np.random.SeedSequence((3, 1))).random_raw(6).tolist()
    assert permutation(6, 3, 1).tolist() == sorted(range(6), key=lambda i: words[i])


def test_shuffles_are_permutations_that_the_seed_decides(folder: Path, mapped: Any) -> None:
    for make in (
        lambda seed: DatasetSource(folder, "label", columns=list("abc"), shuffle=seed),
        lambda seed: ArraySource(X, Y, shuffle=seed),
        lambda seed: ArraySource(mapped, Y, shuffle=seed),
    ):
        orders = [given(make(seed))[:, 0].tolist() for seed in (0, 0, 1)]
        assert orders[0] == orders[1] != orders[2]
        assert all(sorted(order) == list(range(N)) for order in orders)
        step = steps(make(0), N)[0]
        assert np.array_equal(step.y, Y[step.X[:, 0].astype(int)])  # labels go with their rows


def test_a_memory_map_is_shuffled_in_blocks_and_not_copied(mapped: Any) -> None:
    source = ArraySource(mapped, Y, shuffle=4)
    order = given(source)[:, 0].astype(int)
    blocks = order // 20  # of 480 bytes
    assert sorted(blocks[np.r_[True, np.diff(blocks) != 0]]) == list(range(6))  # each is read once
    assert blocks[:20].tolist() != sorted(blocks)[:20] or blocks.tolist() != sorted(blocks)
    assert (np.diff(order) < 0).any()
    assert isinstance(arrays._mapping(source._whole.X), mmap.mmap)
    assert arrays._mapping(X) is None


def test_a_memory_map_is_read_from_front_to_back_and_handed_back(mapped: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []
    chosen, release = arrays._chosen, ArraySource._release
    monkeypatch.setattr(arrays, "_chosen", lambda batch, rows: events.append(rows) or chosen(batch, rows))
    monkeypatch.setattr(ArraySource, "_release", lambda self: events.append("release") or release(self))
    assert np.array_equal(given(ArraySource(mapped, Y)), X)
    expected = [[slice(start, min(start + 10, N)), "release"] for start in range(0, N, 10)]
    assert events == [event for pair in expected for event in pair]


def test_changes_to_a_private_memory_map_are_kept(mapped: Any) -> None:
    private = np.load(mapped.filename, mmap_mode="c")
    private[0, 1] = -5
    source = ArraySource(private, Y)
    assert given(source)[0, 1] == given(source)[0, 1] == -5


# ---- oracles -----------------------------------------------------------------------------------------------------------------


def oracle(seed: int) -> Callable[[int], Any]:
    rng = np.random.default_rng(seed)
    return lambda n: (rng.random((n, 2)), rng.integers(0, 2, n))


def test_an_oracle_never_ends_and_goes_on_with_its_seed() -> None:
    whole = steps(OracleSource(oracle(0), batch_rows=7), 10, max_examples=95)
    assert len(whole) == 10
    assert same(steps(OracleSource(oracle(0), batch_rows=7), 10, start=(0, 30), max_examples=65), whole[3:])


def test_an_oracle_must_draw() -> None:
    with pytest.raises(StreamError, match="the oracle has drawn no rows"):
        steps(OracleSource(lambda n: (X[:0], Y[:0])), 10)
    with pytest.raises(ValueError, match="cannot be recycled"):
        steps(OracleSource(oracle(0)), 10, recycle=True)


# ---- faults of files ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (FRAME.rename(columns={"b": "bb"}), r"z\.parquet must have the column 'b' once.*did you mean bb"),
        (FRAME.assign(d=1), r"z\.parquet has the column 'd', unlike the first file"),
        (FRAME.assign(b="text"), r"z\.parquet: column 'b' has the type (large_)?string, not numbers"),
    ],
)
def test_another_schema_in_a_later_file(changed: pd.DataFrame, message: str, tmp_path: Path) -> None:
    write_parquet(tmp_path)
    changed.to_parquet(tmp_path / "z.parquet")
    with pytest.raises(StreamError, match=message):
        DatasetSource(tmp_path, **COLUMNS)
    for file in tmp_path.iterdir():
        file.unlink()
    write_csv(tmp_path)
    changed.to_csv(tmp_path / "z.csv", index=False)
    source = DatasetSource(tmp_path, **COLUMNS)
    with pytest.raises(StreamError, match=rf"pass 0, row {N}: .*" + message.replace("parquet", "csv")):
        steps(source, 20)


def test_what_is_no_column_or_no_file(tmp_path: Path) -> None:
    write_parquet(tmp_path)
    with pytest.raises(ValueError, match=r"must have the column 'labels' once, it has it not at all \(did you mean label\?\)"):
        DatasetSource(tmp_path, "labels", "w", ["a"])
    with pytest.raises(ValueError, match="columns must hold neither target nor weight"):
        DatasetSource(tmp_path, "label", columns=["a", "label"])
    with pytest.raises(FileNotFoundError):
        DatasetSource(tmp_path / "none", "label")
    (tmp_path / "x.doc").touch()
    with pytest.raises(ValueError, match=r"x\.doc is no table of a known kind: \.parquet"):
        DatasetSource(tmp_path, "label")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="there are no files of tables in"):
        DatasetSource(tmp_path / "empty", "label")


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    write_parquet(tmp_path)
    source = DatasetSource(tmp_path, **COLUMNS)
    path = tmp_path / "part1.parquet"
    content = bytearray(path.read_bytes())
    content[4:400] = b"\xff" * 396
    path.write_bytes(content)
    with pytest.raises(StreamError, match=r"pass 0, row 35: .*part1\.parquet cannot be read"):
        steps(source, 7)
    path.write_bytes(b"no table")
    with pytest.raises(ValueError, match=r"part1\.parquet cannot be read as a file of the kind parquet"):
        DatasetSource(tmp_path, **COLUMNS)


def test_a_missing_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_parquet(tmp_path)

    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr(extras.importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"reading tables from files needs the package pyarrow: pip install pyarrow$"):
        DatasetSource(tmp_path, "label")


# ---- Dask --------------------------------------------------------------------------------------------------------------------


class Collection:
    """What Dask's frames, series and arrays have in common; a stand-in where Dask is not installed."""

    computed = 0

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts
        self.shape = (None, parts[0].shape[1]) if parts[0].ndim == 2 else (None,)
        if isinstance(parts[0], np.ndarray):
            self.chunks = (tuple(map(len, parts)), ())
            self.numblocks = (len(parts), 1)
            self.blocks = [Collection([part]) for part in parts] if len(parts) > 1 else None
        else:
            self.npartitions = len(parts)
            self.partitions = [Collection([part]) for part in parts] if len(parts) > 1 else None
            self.columns = getattr(parts[0], "columns", None)

    def rechunk(self, chunks: Any) -> Collection:
        return self

    def __getitem__(self, key: Any) -> Collection:
        return Collection([part[key] for part in self.parts])


Collection.__module__ = "dask.stand_in"


@pytest.fixture(params=["stand-in", "dask"])
def dask_of(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """What makes a collection of four parts."""
    if request.param == "dask":
        pytest.importorskip("dask.dataframe")
        import dask.array
        import dask.dataframe

        return lambda whole: (
            dask.array.from_array(whole, chunks=30)
            if isinstance(whole, np.ndarray)
            else dask.dataframe.from_pandas(whole, npartitions=4)
        )

    def compute(*parts: Any) -> Any:
        Collection.computed += 1
        return tuple(part and part.parts[0] for part in parts)

    package = ModuleType("dask")
    package.compute = compute  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "dask", package)
    return lambda whole: Collection([whole[start : start + 30] for start in range(0, N, 30)])


def test_dask_frames_and_arrays(dask_of: Callable[[Any], Any]) -> None:
    expected = steps(ArraySource(X, Y, WEIGHT), 8)
    features = FRAME[["a", "b", "c"]]
    by_name = as_source(dask_of(FRAME), target="label", weight="w")
    assert by_name.feature_names == ["a", "b", "c"]
    for source in (
        by_name,
        as_source((dask_of(features), dask_of(FRAME["label"]), dask_of(FRAME["w"]))),
        DaskSource(dask_of(X), dask_of(Y), dask_of(WEIGHT)),
    ):
        assert source.n_features == 3
        assert same(steps(source, 8), expected)
        assert np.array_equal(given(source, 70), X[70:])
    assert source.n_rows == N
    assert given(DaskSource(dask_of(X), dask_of(Y)), 60).shape == (43, 3)


def test_dask_partitions_before_the_first_row_are_not_computed(dask_of: Callable[[Any], Any]) -> None:
    source = DaskSource(dask_of(X), dask_of(Y))
    before = Collection.computed
    next(iter(source.batches(65)))
    assert Collection.computed - before in (0, 1)
    with pytest.raises(ValueError, match="must have the same partitions"):
        DaskSource(dask_of(FRAME[["a"]]), dask_of(FRAME["label"]).partitions[0])


# ---- dispatch ----------------------------------------------------------------------------------------------------------------


def test_as_source(tmp_path: Path, mapped: Any) -> None:
    write_parquet(tmp_path)
    source = ArraySource(X, Y)
    assert as_source(source) is source
    paths = [tmp_path / "part0.parquet", str(tmp_path / "part1.parquet")]
    for data, options, kind in [
        ((X, Y), {"shuffle": 1}, ArraySource),
        ((mapped, Y, WEIGHT), {}, ArraySource),
        (tmp_path, COLUMNS, DatasetSource),
        (str(tmp_path), COLUMNS | {"columns": ["a"], "shuffle": 3}, DatasetSource),
        (paths, COLUMNS, DatasetSource),
        ([(X, Y)], {}, BatchSource),
        (iter([(X, Y)]), {}, BatchSource),
        (lambda: [(X, Y)], {}, BatchSource),
        (lambda n: (X, Y), {}, OracleSource),
    ]:
        assert type(as_source(data, **options)) is kind  # type: ignore[arg-type]
    assert as_source(paths, **COLUMNS).n_rows == 69
    for data, options, message in [
        ((X, Y), {"target": "y"}, "target has no meaning for a tuple; it is for files and frames of Dask"),
        (tmp_path, {}, "target must be the name of the column that holds the labels, got None"),
        (X, {}, r"data must hold labels, too: pass a tuple \(X, y\), got a ndarray"),
        (FRAME, {}, "got a DataFrame"),
        (3, {}, "batches must be an iterable or a callable, got a int"),
    ]:
        with pytest.raises(TypeError, match=message):
            as_source(data, **options)  # type: ignore[arg-type]


def test_batches_are_sources_of_the_protocol() -> None:
    assert isinstance(BatchSource([Batch(X, Y)]), Source)
    assert not isinstance([Batch(X, Y)], Source)
    assert BatchSource([Batch(X, Y)]).repeatable
    assert not BatchSource(iter([Batch(X, Y)])).repeatable

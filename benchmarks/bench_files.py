"""One file of generated rows, trained on from the disk and in memory, beside XGBoost's external memory and LightGBM.

    python benchmarks/bench_files.py [--rows 2000000] [--columns 40] [--classes 2,7] [--rounds 10] [--repeats 3] [--folder DIR]
    python benchmarks/bench_files.py memory [--sizes 1,4,16]
    python benchmarks/bench_files.py limit [--rows 500000] [--columns 200] [--rooms 64,128,256,512,1024]

The first reads a Parquet file with every library, one thread and trees of 20 leaves; it tells the rows that are prepared a
second, and those that pass through a round, and the peak of resident memory of each of both. The second writes a code file of
1, 4 and 16 million rows from batches that are generated as they are asked for, and trains on it: what grows with the rows? The
third asks in how little memory every library prepares and trains.

Every measurement is a process of its own, and libraries take turns. Seconds are those of the CPU, of all threads of a process:
files of these sizes lie in the system's cache, so nothing waits for the disk, and other work on the machine counts less. The
rows are normal numbers, every fourth column small integers; classes depend on six columns, with noise.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _measure import peak_bytes, reset_peak
from _tables import markdown

GROUP_ROWS = 100_000
"""Rows of a row group of the Parquet file."""

LIBRARIES = (
    "gpuboost, code file",
    "gpuboost, in memory",
    "gpuboost MART, code file",
    "gpuboost MART, in memory",
    "xgboost, external memory, depth-wise",
    "xgboost, external memory, loss-guide",
    "lightgbm, sequence and binary file",
)


def some_rows(seed: int, n_rows: int, n_columns: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Generate a block of rows and their classes."""
    rng = np.random.default_rng([seed, n_columns])
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
    X[:, ::4] = rng.integers(0, 12, X[:, ::4].shape)
    score = X[:, 1] * X[:, 2] + np.abs(X[:, 3]) + 0.2 * X[:, 0] * (X[:, 5] > 0.3) + 0.5 * rng.normal(size=n_rows)
    edges = np.quantile(some_scores(n_columns), np.arange(1, n_classes) / n_classes) if n_classes > 2 else [1.6]
    return X, np.searchsorted(edges, score).astype(np.int32)


def some_scores(n_columns: int) -> np.ndarray:
    """Return scores whose quantiles make the classes about equally large."""
    rng = np.random.default_rng(n_columns)
    a, b, c, d, e = rng.normal(size=(5, 10_000))
    return a * b + np.abs(c) + 0.2 * rng.integers(0, 12, 10_000) * (d > 0.3) + 0.5 * e


def write_parquet(path: Path, n_rows: int, n_columns: int, n_classes: int) -> None:
    """Write the file that all libraries read."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [f"x{i}" for i in range(n_columns)]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("label", pa.int32())])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for group in range(0, n_rows, GROUP_ROWS):
            X, y = some_rows(group, min(GROUP_ROWS, n_rows - group), n_columns, n_classes)
            writer.write_table(pa.table([*map(pa.array, X.T), pa.array(y)], schema=schema))


def row_groups(path: Path, numbers: list[int] | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Read a Parquet file group by group, as matrices and labels."""
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    for number in range(file.num_row_groups) if numbers is None else numbers:
        table = file.read_row_group(number, use_threads=False)
        yield np.stack([column.to_numpy() for column in table.columns[:-1]], axis=1), table.columns[-1].to_numpy()


def whole(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read a Parquet file into memory."""
    Xs, ys = zip(*row_groups(path), strict=True)
    return np.concatenate(Xs), np.concatenate(ys)


# The libraries. Each prepares, and then trains.


class Gpuboost:
    """AdaBoost.MH, one tree a round; or MART, a tree for each class."""

    def __init__(self, job: dict[str, Any]) -> None:
        import gpuboost

        self.job, self.gpuboost, self.in_memory = job, gpuboost, "in memory" in job["library"]
        self.file, self.X, self.y = Path(job["folder"]) / "rows.codes", None, None
        algorithm = "mart" if "MART" in job["library"] else "adaboost-mh"
        self.parameters = {"algorithm": algorithm, "device": "cpu", "n_jobs": 1, "max_leaf_nodes": job["leaves"]}
        gpuboost.fit(*some_rows(0, 1000, 10, job["classes"]), n_estimators=2, **self.parameters)
        gpuboost.CodeFile.write(some_rows(0, 1000, 10, job["classes"]), self.file.with_name("small"), n_jobs=1)
        gpuboost.fit(gpuboost.CodeFile(self.file.with_name("small")), n_estimators=2, **self.parameters)

    def prepare(self) -> None:
        if self.in_memory:
            self.X, self.y = whole(Path(self.job["path"]))
        else:
            memory = min(256, self.job.get("room", 2048) // 8)
            self.gpuboost.CodeFile.write(self.job["path"], self.file, target="label", n_jobs=1, memory_mb=memory)

    def train(self) -> list[float]:
        times: list[float] = []
        data = (self.X, self.y) if self.in_memory else (self.gpuboost.CodeFile(self.file),)
        note = [lambda *_: times.append(time.process_time())]
        self.gpuboost.fit(*data, n_estimators=self.job["rounds"], callbacks=note, **self.parameters)
        return times


class Xgboost:
    """Quantiles in two passes, pages in files."""

    def __init__(self, job: dict[str, Any]) -> None:
        import xgboost

        self.job, self.xgboost = job, xgboost
        policy = "depthwise" if "depth-wise" in job["library"] else "lossguide"
        k = job["classes"]
        self.parameters = {
            "tree_method": "hist", "grow_policy": policy, "max_leaves": job["leaves"], "max_depth": 0, "eta": 0.1, "nthread": 1,
            "objective": "binary:logistic" if k == 2 else "multi:softprob", **({} if k == 2 else {"num_class": k}),
        }  # fmt: skip
        self.matrix: Any = None

    def prepare(self) -> None:
        class Groups(self.xgboost.DataIter):  # type: ignore[misc, name-defined]
            def __init__(self, path: Path, cache: str) -> None:
                self.path = path
                super().__init__(cache_prefix=cache)

            def reset(self) -> None:
                self.groups = row_groups(self.path)

            def next(self, input_data: Any) -> bool:
                group = next(self.groups, None)
                if group is not None:
                    input_data(data=group[0], label=group[1])
                return group is not None

        groups = Groups(Path(self.job["path"]), str(Path(self.job["folder"]) / "cache"))
        self.matrix = self.xgboost.ExtMemQuantileDMatrix(groups, nthread=1)

    def train(self) -> list[float]:
        times = [time.process_time()]

        class Note(self.xgboost.callback.TrainingCallback):  # type: ignore[misc, name-defined]
            def after_iteration(self, *_: Any) -> bool:
                times.append(time.process_time())
                return False

        self.xgboost.train(self.parameters, self.matrix, self.job["rounds"], callbacks=[Note()])
        return times


class Lightgbm:
    """Rows come as a sequence, and their bins are written to a binary file, which is read into memory to train."""

    def __init__(self, job: dict[str, Any]) -> None:
        import lightgbm

        self.job, self.lightgbm = job, lightgbm
        self.file, k = Path(job["folder"]) / "rows.bin", job["classes"]
        self.parameters = {
            "num_leaves": job["leaves"], "learning_rate": 0.1, "num_threads": 1, "verbose": -1, "max_bin": 255,
            **({"objective": "binary"} if k == 2 else {"objective": "multiclass", "num_class": k}),
        }  # fmt: skip

    def prepare(self) -> None:
        path, n_rows = Path(self.job["path"]), self.job["rows"]

        class Groups(self.lightgbm.Sequence):  # type: ignore[misc, name-defined]
            batch_size = GROUP_ROWS
            held: tuple[int, Any] = (-1, None)

            def group(self, number: int) -> np.ndarray:
                if self.held[0] != number:
                    self.held = number, next(row_groups(path, [number]))[0].astype(np.float64)
                return self.held[1]

            def __getitem__(self, rows: Any) -> np.ndarray:
                if isinstance(rows, slice):
                    numbers = np.arange(n_rows)[rows]
                    return (
                        np.stack([self[row] for row in numbers])
                        if len(set(numbers // GROUP_ROWS)) > 1
                        else self.group(int(numbers[0]) // GROUP_ROWS)[numbers % GROUP_ROWS]
                    )
                if isinstance(rows, list):
                    return np.stack([self[row] for row in rows])
                return self.group(int(rows) // GROUP_ROWS)[int(rows) % GROUP_ROWS]

            def __len__(self) -> int:
                return n_rows

        labels = np.concatenate([y for _, y in row_groups(path)])
        with contextlib.suppress(FileNotFoundError):
            self.file.unlink()
        self.lightgbm.Dataset(Groups(), labels, params=self.parameters).construct().save_binary(self.file)

    def train(self) -> list[float]:
        times = [time.process_time()]
        data = self.lightgbm.Dataset(str(self.file), params=self.parameters)
        note = [lambda _: times.append(time.process_time())]
        self.lightgbm.train(self.parameters, data, self.job["rounds"], callbacks=note)
        return times


KINDS = {"gpuboost": Gpuboost, "xgboost": Xgboost, "lightgbm": Lightgbm}


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Prepare and train in this process."""
    if job["kind"] == "sizes":
        return measure_size(job)
    library, found = KINDS[job["library"].partition(",")[0].split()[0]](job), {}
    if "room" in job:
        limit_growth(job["room"] << 20)
    for step in ("prepare", "train"):
        reset_peak()
        before, started, wall = peak_bytes(), time.process_time(), time.perf_counter()
        times = getattr(library, step)() or []
        found[step] = {
            "seconds": time.process_time() - started, "wall_seconds": time.perf_counter() - wall,
            "peak": peak_bytes(), "peak_before": before,
        }  # fmt: skip
    return {**found, "round_seconds": float(np.median(np.diff(times)))}


def limit_growth(n_bytes: int) -> None:
    """Let the private memory of this process, stacks and code apart, grow by no more than that (Linux)."""
    import resource

    next(row_groups(Path(json.loads(sys.argv[-1])["path"]), [0]))  # what reading loads is there already
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData"))
    most = int(line.split()[1]) * 1024 + n_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Measure in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--job", json.dumps(job)], capture_output=True, text=True, check=False)
    if done.returncode:
        return {**job, "error": (done.stderr.strip().splitlines() or ["killed"])[-1][:200]}
    return {**job, **json.loads(done.stdout.splitlines()[-1])}


def compare(options: argparse.Namespace) -> tuple[list[dict[str, Any]], str]:
    """Measure all libraries on one file for each number of classes."""
    records, text = [], ""
    for classes in map(int, options.classes.split(",")):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            path = Path(folder) / "rows.parquet"
            write_parquet(path, options.rows, options.columns, classes)
            chosen = [name for name in LIBRARIES if any(name.startswith(one) for one in options.libraries.split(","))]
            for repeat in range(options.repeats):
                for library in chosen[repeat % len(chosen) :] + chosen[: repeat % len(chosen)]:
                    job = {
                        "library": library, "classes": classes, "rows": options.rows, "rounds": options.rounds,
                        "leaves": options.leaves, "folder": folder, "path": str(path), "repeat": repeat,
                    }  # fmt: skip
                    records.append(run({**job, "kind": "compare"}))
                    print(json.dumps(records[-1]), file=sys.stderr, flush=True)
        text += f"\n{options.rows} rows, {options.columns} columns, {classes} classes, {options.leaves} leaves, one thread:\n\n"
        text += table([record for record in records if record["classes"] == classes])
    return records, text


def table(records: list[dict[str, Any]]) -> str:
    """Return medians over the repeats."""
    rows = []
    for library in dict.fromkeys(record["library"] for record in records):
        own = [record for record in records if record["library"] == library]
        failed = next((record["error"] for record in own if "error" in record), None)
        if failed:
            rows.append([library, failed, "", "", ""])
            continue
        n_rows = own[0]["rows"]
        rows.append([
            library,
            f"{n_rows / 1e6 / median(one['prepare']['seconds'] for one in own):.2f}",
            f"{max(one['prepare']['peak'] for one in own) / 2**20:.0f}",
            f"{n_rows / 1e6 / median(one['round_seconds'] for one in own):.2f}",
            f"{max(one['train']['peak'] for one in own) / 2**20:.0f}",
        ])  # fmt: skip
    head = ["", "million rows/s prepared", "peak MiB", "million rows/s in a round", "peak MiB"]
    return markdown(head, rows)


def limits(options: argparse.Namespace) -> tuple[list[dict[str, Any]], str]:
    """Find the smallest of some amounts of memory in which every library prepares and trains."""
    records: list[dict[str, Any]] = []
    rows = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "rows.parquet"
        write_parquet(path, options.rows, options.columns, 2)
        for library in LIBRARIES:
            for room in map(int, options.rooms.split(",")):
                job = {
                    "kind": "limit", "library": library, "classes": 2, "rows": options.rows, "rounds": 2,
                    "leaves": options.leaves, "folder": folder, "path": str(path), "room": room,
                }  # fmt: skip
                records.append(run(job))
                print(json.dumps(records[-1]), file=sys.stderr, flush=True)
                if "error" not in records[-1]:
                    break
            rows.append([library, f"more than {room}" if "error" in records[-1] else str(room)])
    size = f"{options.rows} rows, {options.columns} columns of float32 ({options.rows * options.columns >> 18} MiB), 2 classes"
    return records, f"\n{size}:\n\n" + markdown(["", "MiB above start that suffice"], rows)


# Memory by the number of rows


def measure_size(job: dict[str, Any]) -> dict[str, Any]:
    """Write a code file of generated rows, or train on it; the peak is of that alone, above what the libraries take."""
    import gpuboost

    file, classes, columns = Path(job["folder"]) / f"{job['rows']}.codes", job["classes"], job["columns"]
    parameters = {"algorithm": job["algorithm"], "device": "cpu", "n_jobs": 1, "max_leaf_nodes": 8}

    def batches(n_rows: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for first in range(0, n_rows, GROUP_ROWS):
            yield some_rows(first, min(GROUP_ROWS, n_rows - first), columns, classes)

    small = gpuboost.CodeFile.write(batches(10_000), file.with_name("small"), n_jobs=1)
    gpuboost.fit(small, n_estimators=2, **parameters)
    reset_peak()
    before, started = peak_bytes(), time.process_time()
    if job["step"] == "write":
        gpuboost.CodeFile.write(batches(job["rows"]), file, n_jobs=1)
    else:
        gpuboost.fit(gpuboost.CodeFile(file), n_estimators=job["rounds"], **parameters)
    return {
        "seconds": time.process_time() - started, "peak_above_start": peak_bytes() - before,
        "file_bytes": file.stat().st_size,
    }  # fmt: skip


def sizes(options: argparse.Namespace) -> tuple[list[dict[str, Any]], str]:
    """Measure the peak of memory at several numbers of rows."""
    records, rows = [], []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for millions in map(float, options.sizes.split(",")):
            job = {
                "kind": "sizes", "rows": int(millions * 1e6), "columns": options.columns, "classes": 2, "rounds": 3,
                "algorithm": "adaboost-mh", "folder": folder,
            }  # fmt: skip
            own = [run({**job, "step": step}) for step in ("write", "train")]
            records += own
            print(*map(json.dumps, own), sep="\n", file=sys.stderr, flush=True)
            if "error" in own[0] or "error" in own[1]:
                continue
            wrote, trained = (one["peak_above_start"] / 2**20 for one in own)
            rows.append([f"{millions:g}", f"{own[0]['file_bytes'] / 2**20:.0f}", f"{wrote:.0f}", f"{trained:.0f}",
                         f"{trained * 2**20 / job['rows']:.0f}"])  # fmt: skip
    head = ["million rows", "code file, MiB", "written: peak above start, MiB", "trained: MiB", "trained: bytes a row"]
    return records, f"\n{options.columns} columns, 2 classes, AdaBoost.MH:\n\n" + markdown(head, rows)


def main() -> None:
    """Measure, print the table, and write it with all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", default="compare", choices=["compare", "memory", "limit"])
    parser.add_argument("--rows", type=int, default=None, help="default 2000000, of limit 500000")
    parser.add_argument("--columns", type=int, default=None, help="default 40; of memory 8, of limit 200")
    parser.add_argument("--rooms", default="64,128,256,512,1024", help="MiB, ascending")
    parser.add_argument("--classes", default="2,7")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--leaves", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sizes", default="1,4,16", help="millions of rows")
    parser.add_argument("--libraries", default="gpuboost,xgboost,lightgbm")
    parser.add_argument("--folder", default=None, help="where files are made, about three times the Parquet file")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(measure(json.loads(options.job))))
        return
    function, n_rows, n_columns = {
        "compare": (compare, 2_000_000, 40), "memory": (sizes, 0, 8), "limit": (limits, 500_000, 200)
    }[options.what]  # fmt: skip
    options.rows, options.columns = options.rows or n_rows, options.columns or n_columns
    records, text = function(options)
    print(text)
    options.out.mkdir(exist_ok=True)
    name = f"files-{options.what}-{datetime.date.today()}"
    for record in records:  # where files were is of no interest
        record.pop("folder", None)
        record.pop("path", None)
    (options.out / f"{name}.json").write_text(json.dumps(records, indent=1) + "\n")
    (options.out / f"{name}.md").write_text(text.lstrip() + "\n")


if __name__ == "__main__":
    main()

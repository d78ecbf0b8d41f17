"""What a user would do instead of boosting on a stream, in the same time, each in a process of its own.

``python instead.py JOB`` prints a line of JSON; JOB is a JSON object that `main` reads.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from filtering.problems import ForestRows, Split, covertype, covertype2, fold
from filtering.runs import Run, classifier, peak_bytes, scores_of
from gpuboost import AdaBoostMHClassifier

WAYS = ("filterboost", "adaboost-mh", "lightgbm", "lightgbm, two rounds", "sgd")
LEAVES = 128
N_TEST = 100_000
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
Table = tuple[Callable[[], Iterator[tuple[np.ndarray, np.ndarray]]], np.ndarray, np.ndarray, int]


def table(job: dict[str, Any]) -> Table:
    """Return a function that gives all training rows in blocks, the test rows, and the number of classes."""
    if job["set"].startswith("generated"):
        n_classes = 7 if job["set"].endswith("7") else 2
        source = ForestRows(job["rows"], n_classes)
        X_test, y_test = ForestRows(N_TEST, n_classes, 1).rows(N_TEST)
        return lambda: ((b.X, b.y) for b in source.batches()), X_test, y_test, n_classes
    split = covertype_split(job)
    starts = range(0, len(split.X), 8192)
    return lambda: ((split.X[i : i + 8192], split.y[i : i + 8192]) for i in starts), *split[2:], int(split.y.max()) + 1


def covertype_split(job: dict[str, Any]) -> Split:
    folder = Path(job["data_dir"]) if job["data_dir"] else None
    split = fold(*(covertype if job["set"] == "covertype7" else covertype2)(folder), 0)
    order = np.random.default_rng(0).permutation(len(split.X))
    return Split(split.X[order], split.y[order], *split[2:])


def sample(job: dict[str, Any], blocks: Iterator[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the first rows, which are in random order, as many as are said to fit."""
    X, y, n_rows = [], [], 0
    for A, b in blocks:
        X.append(A)
        y.append(b)
        n_rows += len(b)
        if n_rows >= job["sample"]:
            break
    return np.concatenate(X)[: job["sample"]], np.concatenate(y)[: job["sample"]]


Trained = tuple[Callable[[np.ndarray], np.ndarray], dict[str, Any]]


def filterboost(job: dict[str, Any], data: Table, ends: float) -> Trained:
    model = classifier(
        n_estimators=100_000,
        max_leaf_nodes=LEAVES,
        examples_per_round=job["examples_per_round"],
        schedule="constant",
        callbacks=[lambda progress: CLOCKS[job["clock"]]() > ends],
        random_state=0,
    )
    source: Any = ForestRows(job["rows"], data[3])
    if not job["set"].startswith("generated"):
        source = covertype_split(job)[:2]
    model.fit_stream(source, classes=np.arange(data[3]))
    return model.predict_proba, {"rounds": model.n_estimators_, "rows": sum(model.history_["draws"])}


def adaboost_mh(job: dict[str, Any], data: Table, ends: float) -> Trained:
    X, y = sample(job, data[0]())
    model = AdaBoostMHClassifier(
        n_estimators=100_000,
        max_leaf_nodes=LEAVES,
        learning_rate=0.3,
        n_jobs=1,
        callbacks=[lambda progress: CLOCKS[job["clock"]]() > ends],
    ).fit(X, y)
    return model.predict_proba, {"rounds": model.n_estimators_, "rows": len(X)}


def _lightgbm(
    job: dict[str, Any], train: Any, n_classes: int, ends: float, **options: Any
) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    import lightgbm

    def stop(env: Any) -> None:
        if CLOCKS[job["clock"]]() > ends:
            raise lightgbm.callback.EarlyStopException(env.iteration, [])

    params = {"num_leaves": LEAVES, "learning_rate": 0.3, "num_threads": 1, "verbose": -1, **options}
    params |= {"objective": "multiclass", "num_class": n_classes} if n_classes > 2 else {"objective": "binary"}
    data = lightgbm.Dataset(*train, params=params)
    booster = lightgbm.train(params, data, 100_000, callbacks=[stop])

    def proba(X: np.ndarray) -> np.ndarray:
        p = np.asarray(booster.predict(X, num_threads=1))
        return p if p.ndim == 2 else np.stack([1 - p, p], axis=1)

    return proba, booster.current_iteration()


def lightgbm_on_sample(job: dict[str, Any], data: Table, ends: float) -> Trained:
    X, y = sample(job, data[0]())
    proba, rounds = _lightgbm(job, (X.astype(np.float32), y), data[3], ends)
    return proba, {"rounds": rounds, "rows": len(X)}


def lightgbm_two_rounds(job: dict[str, Any], data: Table, ends: float) -> Trained:
    proba, rounds = _lightgbm(job, (job["file"],), data[3], ends, two_round=True, label_column=0, header=False)
    return proba, {"rounds": rounds, "rows": job["rows"]}


def sgd(job: dict[str, Any], data: Table, ends: float) -> Trained:
    """Logistic regression by blocks of rows, over and over, on columns scaled by the first blocks."""
    from sklearn.linear_model import SGDClassifier
    from sklearn.preprocessing import StandardScaler

    X, _ = sample(job | {"sample": 100_000}, data[0]())
    scaler = StandardScaler().fit(X.astype(np.float64))
    model, n_rows, classes = SGDClassifier(loss="log_loss", alpha=1e-6, random_state=0), 0, np.arange(data[3])
    for A, b in chain.from_iterable(data[0]() for _ in count()):
        model.partial_fit(scaler.transform(A.astype(np.float64)), b, classes)
        n_rows += len(b)
        if CLOCKS[job["clock"]]() > ends:
            break
    return lambda X: model.predict_proba(scaler.transform(X.astype(np.float64))), {"rounds": 0, "rows": n_rows}


TRAINERS = dict(zip(WAYS, (filterboost, adaboost_mh, lightgbm_on_sample, lightgbm_two_rounds, sgd), strict=True))


def write_csv(job: dict[str, Any]) -> None:
    """Write the training rows, the class first, as LightGBM reads them."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(i) for i in range(ForestRows.n_features + 1)]
    schema = pa.schema([(name, pa.int16()) for name in names])
    options = csv.WriteOptions(include_header=False)
    with csv.CSVWriter(job["file"], schema, write_options=options) as writer:
        for X, y in table(job)[0]():
            columns = [y.astype(np.int16), *np.ascontiguousarray(X.T)]
            writer.write_table(pa.table([pa.array(column) for column in columns], schema=schema))


def main(job: dict[str, Any]) -> Run:
    data = table(job)
    clock = CLOCKS[job["clock"]]
    begun = clock()
    proba, facts = TRAINERS[job["way"]](job, data, begun + job["seconds"])
    seconds = clock() - begun
    peak = peak_bytes()  # before the prediction
    _, X_test, y_test, _ = data
    p = np.concatenate([proba(X_test[i : i + 10_000]) for i in range(0, len(X_test), 10_000)])
    found = scores_of(np.maximum(p, 1e-15), y_test)
    return facts | found | {"took": seconds, "peak_bytes": peak}


def measured(job: dict[str, Any]) -> Run:
    """Do a job in another process."""
    command = [sys.executable, __file__, json.dumps(job)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, check=False)
    if done.returncode:
        return job | {"failed": done.stderr.splitlines()[-1] if done.stderr else str(done.returncode)}
    return job | json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(main(json.loads(sys.argv[1]))))

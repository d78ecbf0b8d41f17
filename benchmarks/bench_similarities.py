"""Localized similarities on real data, beside other classifiers; and how the time of a fit grows with the rows.

    python benchmarks/bench_similarities.py [--data-dir DIR] [--parts errors,time] [--sets vowel,...] [--out benchmarks/results]

``errors``  test errors after 100 to 1,000 rounds, over seeds, on the original splits (glass: 53 training rows, over ten draws),
            beside REBEL on trees of depth 4, a support vector machine (RBF; C and gamma by five-fold cross-validation), the
            nearest neighbour and a random forest
``time``    seconds of 500 rounds on rows of 64 features drawn from ten overlapping clouds, 2,500 to 40,000 of them

``DIR/<name>.npz`` is as in bench_cpu.py; without a directory the sets are downloaded. One thread.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from _tables import markdown
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from gpuboost import LocalizedSimilaritiesClassifier, RebelClassifier
from gpuboost.datasets import fetch_uci, read_dataset

Row = dict[str, Any]
Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]

SCALINGS = {"vowel": "common", "pendigits": "common", "optdigits": "common", "satimage": "common"}
"""Sets whose features have one unit; the others take the standard deviations."""
MARKS = (100, 200, 500, 1000)
SEEDS = 3
GLASS_ROWS, GLASS_DRAWS = 53, 10
"""The thesis trains on 53 of the 214 rows; here they have the shares of the classes."""


def splits(name: str, data_dir: Path | None) -> Iterator[Split]:
    """Yield the original split, or ten draws where there is none."""
    data = fetch_uci(name) if data_dir is None else read_dataset(data_dir / f"{name}.npz")
    if name != "glass":
        yield data.X_train, data.y_train, data.X_test, data.y_test
        return
    X, y = data.X, data.y
    for draw in range(GLASS_DRAWS):
        X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=GLASS_ROWS, stratify=y, random_state=draw)
        yield X_train, y_train, X_test, y_test


class OneUnit(FunctionTransformer):
    """Divides all features by the root of their mean variance."""

    def fit(self, X: np.ndarray, y: Any = None) -> OneUnit:
        self.unit = np.sqrt(X.astype(float).var(axis=0).mean())
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return X / self.unit


def others(scaling: str) -> dict[str, Any]:
    """Return the classifiers to compare with, those of distances with the same kind of scaling."""
    scaler = StandardScaler() if scaling == "standard" else OneUnit()
    grid = {"svc__C": [1, 10, 100, 1000], "svc__gamma": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]}
    return {
        "rebel": RebelClassifier(max_depth=4, n_estimators=500, device="cpu", n_jobs=1),
        "svm": GridSearchCV(make_pipeline(scaler, SVC()), grid, cv=5),
        "neighbour": make_pipeline(scaler, KNeighborsClassifier(1)),
        "forest": RandomForestClassifier(500, random_state=0),
    }


def errors(name: str, data_dir: Path | None) -> Row:
    """Return the mean errors on a set."""
    found: dict[str, list[float]] = {}
    ratios, points, seconds = [0.0], [], []
    scaling = SCALINGS.get(name, "standard")
    for split, (X, y, X_test, y_test) in enumerate(splits(name, data_dir)):
        for seed in range(1 if name == "glass" else SEEDS):
            begun = time.perf_counter()
            model = LocalizedSimilaritiesClassifier(
                n_estimators=MARKS[-1], scaling=scaling, random_state=split + seed, device="cpu", n_jobs=1
            ).fit(X, y)
            seconds.append(time.perf_counter() - begun)
            points.append(model.ensemble_.n_points)
            losses = [1.0, *model.history_["train_loss"]]
            ratios.append(max(after / before for before, after in itertools.pairwise(losses)))
            stages = [float(np.mean(p != y_test)) for p in model.staged_predict(X_test)]
            for mark in MARKS:
                found.setdefault(f"ls_{mark}", []).append(stages[min(mark, len(stages)) - 1])
        for other, classifier in others(scaling).items():
            found.setdefault(other, []).append(float(np.mean(classifier.fit(X, y).predict(X_test) != y_test)))
    means = {key: float(np.mean(values)) for key, values in found.items()}
    spread = {f"{key}_sd": float(np.std(values)) for key, values in found.items() if key.startswith("ls")}
    return {
        "data": name,
        "rows": len(y),
        **means,
        **spread,
        "points": float(np.mean(points)),
        "worst_ratio": max(ratios),
        "seconds": float(np.mean(seconds)),
    }


def error_table(rows: list[Row]) -> str:
    keys = [*(f"ls_{mark}" for mark in MARKS), "rebel", "svm", "neighbour", "forest"]
    heads = [*(f"similarities, {mark}" for mark in MARKS), "REBEL depth 4", "SVM", "nearest", "forest"]
    return markdown(
        ["data", "rows", *heads, "points kept", "largest ratio of losses", "fit, s"],
        [
            [
                r["data"],
                str(r["rows"]),
                *(f"{100 * r[key]:.1f}" for key in keys),
                f"{r['points']:.0f}",
                f"{r['worst_ratio']:.5f}",
                f"{r['seconds']:.1f}",
            ]
            for r in rows
        ],
    )


def times(sizes: list[int]) -> list[Row]:
    """Fit 500 rounds on more and more rows, the sizes in turn so that all meet the same machine."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, max(sizes))
    X = rng.normal(size=(10, 64))[y] + 1.5 * rng.normal(size=(len(y), 64))
    LocalizedSimilaritiesClassifier(n_estimators=3, device="cpu", n_jobs=1).fit(X[:500], y[:500])  # compile
    rows = []
    for n in sizes:
        begun, cpu = time.perf_counter(), time.process_time()
        model = LocalizedSimilaritiesClassifier(n_estimators=500, random_state=0, device="cpu", n_jobs=1).fit(X[:n], y[:n])
        wall, cpu = time.perf_counter() - begun, time.process_time() - cpu
        rows.append({"n_rows": n, "seconds": wall, "cpu_seconds": cpu, "n_rounds": model.n_estimators_})
    return rows


def time_table(rows: list[Row]) -> str:
    def milliseconds(row: Row) -> float:
        return float(1e7 * row["cpu_seconds"] / row["n_rounds"] / row["n_rows"])

    return markdown(
        ["rows", "rounds", "CPU seconds", "ms a round and 10,000 rows"],
        [[str(r["n_rows"]), str(r["n_rounds"]), f"{r['cpu_seconds']:.1f}", f"{milliseconds(r):.1f}"] for r in rows],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--parts", default="errors,time")
    parser.add_argument("--sets", default="vowel,glass,segmentation,satimage,optdigits,pendigits")
    parser.add_argument("--sizes", default="2500,5000,10000,20000,40000")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: dict[str, list[Row]] = {}
    tables = []
    if "errors" in options.parts:
        found["errors"] = []
        for name in options.sets.split(","):
            found["errors"].append(errors(name, options.data_dir))
            print(found["errors"][-1], flush=True)
        tables.append(error_table(found["errors"]))
    if "time" in options.parts:
        found["time"] = times([int(size) for size in options.sizes.split(",")])
        tables.append(time_table(found["time"]))
    print("\n\n".join(tables))
    if options.out:
        name = f"similarities-{'-'.join(found)}-{datetime.datetime.now(datetime.UTC):%Y-%m-%d}"
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (options.out / f"{name}.md").write_text("\n\n".join(tables) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

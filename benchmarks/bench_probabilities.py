"""How far probabilities can be believed: log-loss and calibration error, without and with a temperature, beside LightGBM.

    python benchmarks/bench_probabilities.py [--data-dir DIR] [--sets pendigits,letter] [--out benchmarks/results]

300 rounds of 20 leaves for all. ``raw`` is AdaBoost.MH as it is, ``holdout`` and ``cv`` are its ``calibration``, ``average`` is
the mean of three models trained on random halves of the features a round, calibrated on a tenth of the rows that none of them
has seen; LightGBM has its defaults but for leaves and rounds. The columns:

``log-loss``   mean of minus the log-probability of the true class; a probability counts as 1e-15 at least
``ECE``        expected calibration error: confidence less accuracy, absolute, in 15 bins of equal width, weighted by their rows
``error``      of the labels, which no temperature changes
``seconds``    of the fit, on one thread; of a machine with other work only the order counts

What limits it: one training each; the calibration error of a perfect forecast of n rows is not 0 but about sqrt(15 / n). Rows
of poker25k with a label that no training row has (2 in 100,000) are left out, as no model has a probability for it. Covertype
is 30,000 random rows of the set for training and 50,000 others for the test.

``DIR/<name>.npz`` is as in bench_cpu.py. Without a directory the sets are downloaded, and poker hands are drawn.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries read it

import numpy as np
from _tables import markdown
from sets import SETS, Split, load_split

import gpuboost

ROUNDS, LEAVES, N_BINS, N_AVERAGED = 300, 20, 15, 3
TARGETS = {"pendigits": 0.10, "satimage": 0.27, "letter": 0.11, "covtype": 0.40, "poker25k": 0.75}
"""The log-loss that calibration has to reach."""

Row = dict[str, Any]


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    """Mean of minus the log-probability of the classes ``y``, numbers of columns."""
    return float(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)).mean())


def calibration_error(p: np.ndarray, y: np.ndarray) -> float:
    """Expected calibration error of the predicted class."""
    confidence, right = p.max(axis=1), p.argmax(axis=1) == y
    place = np.minimum((confidence * N_BINS).astype(int), N_BINS - 1)
    gaps = np.bincount(place, confidence - right, N_BINS)
    return float(np.abs(gaps).sum() / len(y))


def ours(split: Split, **parameters: Any) -> Any:
    settings = {"n_estimators": ROUNDS, "max_leaf_nodes": LEAVES, "n_jobs": 1, "device": "cpu", "random_state": 0}
    return gpuboost.fit(split.X_train, split.y_train, **settings | parameters)


def averaged(split: Split) -> Any:
    """The mean of models by seed, calibrated on rows that they were not trained on."""
    n = len(split.y_train)
    held = np.random.default_rng(0).permutation(n) < n // 10
    rest = Split(split.X_train[~held], split.y_train[~held], split.X_test, split.y_test)
    models = [ours(rest, random_state=seed, max_features=0.5) for seed in range(N_AVERAGED)]
    known = np.isin(split.y_train, models[0].classes_) & held
    return gpuboost.average(models).calibrate(split.X_train[known], split.y_train[known])


def lightgbm(split: Split) -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=ROUNDS, num_leaves=LEAVES, n_jobs=1, verbose=-1, random_state=0)
    return model.fit(split.X_train, split.y_train)


METHODS = {
    "raw": ours,
    "holdout": lambda split: ours(split, calibration="holdout"),
    "holdout, 5 %": lambda split: ours(split, calibration="holdout", validation_fraction=0.05),
    "cv": lambda split: ours(split, calibration="cv"),
    "average": averaged,
    "LightGBM": lightgbm,
}


def measure(name: str, split: Split, method: str) -> Row:
    """Train and score one model."""
    started = time.perf_counter()
    model = METHODS[method](split)
    seconds = time.perf_counter() - started
    known = np.isin(split.y_test, model.classes_)
    y = np.searchsorted(model.classes_, split.y_test[known])
    p = model.predict_proba(split.X_test[known])
    return {
        "set": name,
        "method": method,
        "rows": [len(split.y_train), int(known.sum())],
        "log_loss": log_loss(p, y),
        "ece": calibration_error(p, y),
        "error": float(np.mean(p.argmax(axis=1) != y)),
        "temperature": vars(model).get("temperature_"),
        "seconds": seconds,
    }


def table(rows: list[Row]) -> str:
    """Format the measurements."""
    lines = []
    for row in rows:
        target = TARGETS.get(row["set"])
        asked = f"{target}" if row["method"] == "holdout" and target else ""
        cells = [f"{row['log_loss']:.3f}", asked, f"{100 * row['ece']:.1f} %", f"{100 * row['error']:.2f} %"]
        temperature = "" if row["temperature"] is None else f"{row['temperature']:.1f}"
        lines.append([row["set"], row["method"], *cells, temperature, f"{row['seconds']:.0f}"])
    return markdown(["data", "", "log-loss", "to be met", "ECE", "error", "temperature", "seconds"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--sets", default=",".join(TARGETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--methods", default=";".join(METHODS), help="separated by semicolons")
    parser.add_argument("--out", default="benchmarks/results")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.sets.split(","):
        split = load_split(name, options.data_dir)
        for method in options.methods.split(";"):
            rows.append(measure(name, split, method))
            print(json.dumps(rows[-1]), flush=True)
    print(text := table(rows))
    stem = Path(options.out) / f"probabilities-{datetime.date.today()}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    stem.with_suffix(".md").write_text(text + "\n")


if __name__ == "__main__":
    main()

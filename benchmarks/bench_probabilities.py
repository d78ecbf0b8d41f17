"""How far probabilities can be believed: log-loss and calibration error, without and with a temperature, beside LightGBM.

    python benchmarks/bench_probabilities.py [--data-dir DIR] [--sets pendigits,letter] [--out benchmarks/results]

300 rounds of 20 leaves for all. ``raw`` is AdaBoost.MH as it is, ``holdout`` and ``cv`` are its ``calibration``, ``average`` is
the mean of three models trained on random halves of the features a round, calibrated on a tenth of the rows that none of them
has seen; LightGBM has its defaults but for leaves and rounds. The columns:

``log-loss``   mean of minus the log-probability of the true class; a probability counts as 1e-15 at least
``ECE``        expected calibration error: confidence less accuracy, absolute, in 15 bins of equal width, weighted by their rows
``error``      of the labels, which no temperature changes
``seconds``    of the fit, on one thread; of a machine with other work only the order counts

Means of four seeds, with the lowest and the highest, where anything is drawn: the rows that are held out, for an average also
features. What limits it: one split of the data each; the calibration error of a perfect forecast of n rows is not 0 but about
sqrt(15 / n). Rows of poker25k with a label that no training row has (2 in 100,000) are left out, as no model has a probability
for it. Covertype is 30,000 random rows of the set for training and 50,000 others for the test.

``DIR/<name>.npz`` is as in bench_cpu.py. Without a directory the sets are downloaded, and poker hands are drawn.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from collections.abc import Sequence
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
    settings = {"n_estimators": ROUNDS, "max_leaf_nodes": LEAVES, "n_jobs": 1, "device": "cpu"}
    return gpuboost.fit(split.X_train, split.y_train, **settings | parameters)


def averaged(split: Split, seed: int) -> Any:
    """The mean of models by seed, calibrated on rows that they were not trained on."""
    n = len(split.y_train)
    held = np.random.default_rng(seed).permutation(n) < n // 10
    rest = Split(split.X_train[~held], split.y_train[~held], split.X_test, split.y_test)
    models = [ours(rest, random_state=N_AVERAGED * seed + i, max_features=0.5) for i in range(N_AVERAGED)]
    known = np.isin(split.y_train, models[0].classes_) & held
    return gpuboost.average(models).calibrate(split.X_train[known], split.y_train[known])


def lightgbm(split: Split, seed: int) -> Any:
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=ROUNDS, num_leaves=LEAVES, n_jobs=1, verbose=-1, random_state=seed)
    return model.fit(split.X_train, split.y_train)


METHODS = {
    "raw": lambda split, seed: ours(split, random_state=seed),
    "holdout": lambda split, seed: ours(split, random_state=seed, calibration="holdout"),
    "holdout, 5 %": lambda split, seed: ours(split, random_state=seed, calibration="holdout", validation_fraction=0.05),
    "cv": lambda split, seed: ours(split, random_state=seed, calibration="cv"),
    "average": averaged,
    "LightGBM": lightgbm,
}
BY_SEED = ("holdout", "holdout, 5 %", "cv", "average")
"""Methods with something drawn."""


def measure(name: str, split: Split, method: str, n_seeds: int) -> Row:
    """Train and score one model for each seed."""
    found = []
    for seed in range(n_seeds if method in BY_SEED else 1):
        started = time.perf_counter()
        model = METHODS[method](split, seed)
        seconds = time.perf_counter() - started
        known = np.isin(split.y_test, model.classes_)
        y = np.searchsorted(model.classes_, split.y_test[known])
        p = model.predict_proba(split.X_test[known])
        found.append((log_loss(p, y), calibration_error(p, y), float(np.mean(p.argmax(axis=1) != y)), seconds, model))
    loss, ece, error, seconds_each, models = zip(*found, strict=True)
    return {
        "set": name,
        "method": method,
        "rows": [len(split.y_train), int(known.sum())],
        "log_loss": loss,
        "ece": ece,
        "error": error,
        "temperature": [vars(model).get("temperature_") for model in models],
        "seconds": seconds_each,
    }


def table(rows: list[Row]) -> str:
    """Format the measurements."""

    def spread(values: Sequence[float], digits: int, factor: float = 1.0) -> str:
        low, high = factor * min(values), factor * max(values)
        middle = f"{factor * sum(values) / len(values):.{digits}f}"
        return middle if len(values) == 1 else f"{middle} [{low:.{digits}f}, {high:.{digits}f}]"

    lines = []
    for row in rows:
        target = TARGETS.get(row["set"])
        asked = f"{target}" if row["method"] == "holdout" and target else ""
        temperature = "" if row["temperature"][0] is None else spread(row["temperature"], 1)
        cells = [spread(row["log_loss"], 3), asked, spread(row["ece"], 1, 100), spread(row["error"], 2, 100)]
        lines.append([row["set"], row["method"], *cells, temperature, spread(row["seconds"][:1], 0)])
    header = ["data", "", "log-loss", "to be met", "ECE, %", "error, %", "temperature", "seconds"]
    return markdown(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--sets", default=",".join(TARGETS), help=f"of {', '.join(SETS)}")
    parser.add_argument("--methods", default=";".join(METHODS), help="separated by semicolons")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", default="benchmarks/results")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.sets.split(","):
        split = load_split(name, options.data_dir)
        for method in options.methods.split(";"):
            rows.append(measure(name, split, method, options.seeds))
            print(json.dumps(rows[-1]), flush=True)
    print(text := table(rows))
    stem = Path(options.out) / f"probabilities-{datetime.date.today()}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    stem.with_suffix(".md").write_text(text + "\n")


if __name__ == "__main__":
    main()

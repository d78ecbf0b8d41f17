"""Early exit: how many trees rows need, how many labels change, and what it saves.

    python benchmarks/bench_early_exit.py [--data-dir DIR] [--sets pendigits,letter,mnist] [--models FOLDER]

AdaBoost.MH with 20 leaves, 500 rounds on pendigits and 1000 on letter and MNIST (ten minutes; ``--models`` keeps the models in
a folder and takes them from there the next time). One thread. The columns:

``exact``       the share of the rounds that ``early_exit="exact"`` takes on the test rows
``differ``      how many labels differ then of ``--exact-rows`` rows, whose columns are drawn one by one from different test
                rows, or in sets of few columns are next to a cut
``n``           rows that the lead is found on: half of the test rows; the next columns are of the other half
``rounds``      the share that ``early_exit=True`` takes; mean of 50 random halves, as in the next two columns
``changed``     the share of labels that differ from those of all rounds, with three standard errors of the mean
``bound``       what ``exit_bound_`` says; the mean of ``changed`` has to be below, but for the errors
``error``       test error by all rounds, and how much early exit adds
``time``        of ``predict`` by that of ``predict(early_exit=True)`` on the second half of the test rows, encoding included:
                the median of interleaved pairs
``trap``        the share of test labels that change if the lead is found on the training rows, and the bound that this promises

What limits it: the halves overlap, so that the standard error is too small by a factor that is not known; one model each.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
import warnings
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries read it

import numpy as np
from _tables import markdown
from sets import Split, load_split

import gpuboost
from gpuboost.early_exit import EVERY, checkpoints, exit_lead, lead_of, needs

ROUNDS = {"pendigits": 500, "satimage": 500, "letter": 1000, "mnist": 1000}
ALLOWED, N_HALVES, N_PAIRS, BLOCK = 0.0005, 50, 15, 100_000

Row = dict[str, Any]


def trained(name: str, split: Split, folder: str | None) -> Any:
    """Return the model, from its file if there is one."""
    path = Path(folder or ".") / f"{name}-{ROUNDS[name]}.safetensors"
    if folder is not None and path.exists():
        return gpuboost.load(path, device="cpu", n_jobs=1)
    settings = {"n_estimators": ROUNDS[name], "max_leaf_nodes": 20, "n_jobs": 1, "device": "cpu"}
    model = gpuboost.fit(split.X_train, split.y_train, **settings)
    if folder is not None:
        model.save(path)
    return model


def halves(model: Any, split: Split) -> Row:
    """Fit on a half, count on the other, from the scores at all checkpoints."""
    stops = checkpoints(model.n_estimators_, EVERY)
    every_stage = enumerate(model.staged_decision_function(split.X_test), start=1)
    stages = np.array([scores for stop, scores in every_stage if stop in set(stops.tolist())])
    leader, lead, needed = stages.argmax(axis=2), lead_of(stages), needs(stages)
    final = leader[-1]
    wrong = model.classes_[final] != split.y_test
    rounds, changed, more_errors, bound = [], [], [], 0.0
    for seed in range(N_HALVES):
        order = np.random.default_rng(seed).permutation(len(final))
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        constant, bound = exit_lead(needed[first], ALLOWED)
        leaves = lead[:, second] > constant
        leaves[-1] = True
        at = leaves.argmax(axis=0)
        label = leader[at, second]
        rounds.append(stops[at].mean() / model.n_estimators_)
        changed.append(np.mean(label != final[second]))
        more_errors.append(np.mean(model.classes_[label] != split.y_test[second]) - wrong[second].mean())
        if seed == 0:  # what was worked out here is what the library does
            model.fit_early_exit(split.X_test[first], allowed=ALLOWED)
            assert (model.exit_lead_, model.exit_bound_) == (constant, bound)
            assert (model.predict(split.X_test[second], early_exit=True) == model.classes_[label]).all()
            assert (model.predict_rounds(split.X_test[second]) == stops[at]).all()
    error = 3 * float(np.std(changed, ddof=1)) / N_HALVES**0.5
    return {
        "rounds": float(np.mean(rounds)),
        "changed": [float(np.mean(changed)), error],
        "bound": bound,
        "error": [float(wrong.mean()), float(np.mean(more_errors))],
    }


def speed(model: Any, split: Split) -> Row:
    """Time the second half of the test rows by turns; the model has its lead from the first."""
    order = np.random.default_rng(0).permutation(len(split.y_test))
    X = split.X_test[order[len(order) // 2 :]]
    model.fit_early_exit(split.X_test[order[: len(order) // 2]], allowed=ALLOWED)
    pairs = []
    for _ in range(N_PAIRS + 1):  # the first compiles
        times = []
        for early_exit in (False, True):
            started = time.process_time()
            model.predict(X, early_exit=early_exit)
            times.append(time.process_time() - started)
        pairs.append(times)
    return {
        "time": median(full / early for full, early in pairs[1:]),
        "seconds": [median(one) for one in zip(*pairs[1:], strict=True)],
    }


def exact(model: Any, split: Split, n_rows: int) -> Row:
    """Count labels that differ on strange rows."""
    rng, n_features, n_wrong = np.random.default_rng(1), split.X_test.shape[1], 0
    mapper = model.bin_mapper_
    for first in range(0, n_rows, BLOCK):
        size = min(BLOCK, n_rows - first)
        X = np.empty((size, n_features), split.X_test.dtype if n_features > 100 else np.float64)
        for f in range(n_features):
            X[:, f] = split.X_test[rng.integers(0, len(split.X_test), size), f]
            cuts = mapper.cuts(f)
            if len(cuts) and X.dtype == np.float64:
                near = rng.random(size) < 0.2
                X[near, f] = np.nextafter(
                    rng.choice(cuts, int(near.sum())), rng.choice([-np.inf, 0.0, np.inf], int(near.sum()))
                )
        n_wrong += int((model.predict(X, early_exit="exact") != model.predict(X)).sum())
    share = model.predict_rounds(split.X_test, "exact").mean() / model.n_estimators_
    return {"exact": float(share), "exact_rows": n_rows, "exact_differ": n_wrong}


def trap(model: Any, split: Split) -> Row:
    """Find the lead on training rows, as one must not."""
    full = model.predict(split.X_test)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit_early_exit(split.X_train, allowed=0.0)
    return {"trap": [float(np.mean(model.predict(split.X_test, early_exit=True) != full)), model.exit_bound_]}


def measure(name: str, options: argparse.Namespace) -> Row:
    """Measure one set."""
    split = load_split(name, options.data_dir)
    model = trained(name, split, options.models)
    row = {"set": name, "n_rounds": model.n_estimators_, "n_calibrate": len(split.y_test) // 2}
    return {
        **row,
        **exact(model, split, options.exact_rows),
        **halves(model, split),
        **speed(model, split),
        **trap(model, split),
    }


def table(rows: list[Row]) -> str:
    """Format the measurements."""

    def percent(share: float, digits: int = 1) -> str:
        return f"{100 * share:.{digits}f} %"

    header = ["data, rounds", "exact", "differ", "n", "rounds", "changed", "bound", "error", "time", "trap (bound)"]
    lines = [
        [
            f"{row['set']} {row['n_rounds']}",
            percent(row["exact"]),
            f"{row['exact_differ']} of {row['exact_rows']}",
            str(row["n_calibrate"]),
            percent(row["rounds"]),
            f"{percent(row['changed'][0], 3)} ± {100 * row['changed'][1]:.3f}",
            percent(row["bound"], 3),
            f"{percent(row['error'][0], 2)} {100 * row['error'][1]:+.3f}",
            f"1/{row['time']:.1f}",
            f"{percent(row['trap'][0], 2)} ({100 * row['trap'][1]:.3f})",
        ]
        for row in rows
    ]
    return markdown(header, lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir")
    parser.add_argument("--sets", default="pendigits,letter,mnist", help=f"of {', '.join(ROUNDS)}")
    parser.add_argument("--models", help="a folder for model files")
    parser.add_argument("--exact-rows", type=int, default=1_000_000)
    parser.add_argument("--out", default="benchmarks/results")
    options = parser.parse_args()
    rows: list[Row] = []
    for name in options.sets.split(","):
        rows.append(measure(name, options))
        print(json.dumps(rows[-1]), flush=True)
    print(text := table(rows))
    stem = Path(options.out) / f"early-exit-{datetime.date.today()}"
    stem.parent.mkdir(parents=True, exist_ok=True)
    stem.with_suffix(".json").write_text(json.dumps(rows, indent=1) + "\n")
    stem.with_suffix(".md").write_text(text + "\n")


if __name__ == "__main__":
    main()

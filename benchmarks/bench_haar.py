"""Haar features on MNIST: test errors by the round, the peak of memory, and the training of Kégl (2014) in pieces.

    python benchmarks/bench_haar.py --data-dir DIR --runs pixels-10k,haar-10k           # 10,000 training rows, minutes
    python benchmarks/bench_haar.py --data-dir DIR --runs haar-60k                      # 1,000 rounds, a quarter of an hour
    python benchmarks/bench_haar.py --data-dir DIR --runs paper --work DIR --seconds 3600

A run keeps a checkpoint in ``--work`` and goes on from it when it is started again, to the bytes of one long training: after
``--seconds``, Ctrl-C or a crash. What it has come to is written to ``--out`` each time. "paper" is the training of section 4 of
Kégl, "The return of AdaBoost.MH" (4 inner nodes, 10,000 rounds, test error 0.85 %), on a pool of 5,000 features; the paper does
not say how many there are or how they are drawn.

Memory is the peak of the process until the end of the training (``ru_maxrss``), what it had before the fit (libraries,
pixels), and the codes, a byte for each row and feature. The errors of all rounds are computed after the training.
``DIR/mnist.npz`` is as in bench_cpu.py; without a directory it is downloaded.
"""

from __future__ import annotations

import argparse
import datetime
import json
import resource
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _tables import markdown

import gpuboost
from gpuboost.datasets import fetch_mnist, read_dataset
from gpuboost.features import HaarFeatures

SHAPE = (28, 28)
MARKS = (100, 200, 500, 1000, 2000, 5000, 10000)
"""Rounds whose errors are in the table."""


class Run(NamedTuple):
    """A training: with no features the columns are the pixels."""

    n_rows: int
    n_features: int
    max_features: float
    leaves: int
    rounds: int


RUNS = {
    "pixels-10k": Run(10_000, 0, 1.0, 20, 500),
    "haar-10k": Run(10_000, 5_000, 0.04, 20, 500),
    "haar-60k": Run(60_000, 5_000, 0.04, 20, 1_000),
    "paper": Run(60_000, 5_000, 0.04, 5, 10_000),
}


def train(run: Run, X: Any, y: np.ndarray, path: Path, args: argparse.Namespace) -> Any:
    """Begin a training, or go on with it, until it is done or out of time."""
    end = time.perf_counter() + args.seconds
    checkpoint = gpuboost.Checkpoint(path, every=100)
    settings = {
        "n_estimators": min(run.rounds, args.rounds or run.rounds),
        "callbacks": [checkpoint, lambda progress: time.perf_counter() > end],
        "device": args.device,
        "n_jobs": args.threads,
    }
    if path.exists():
        model = gpuboost.load(path).set_params(warm_start=True, **settings)
        if model.n_estimators_ >= settings["n_estimators"]:
            return model
    else:
        model = gpuboost.AdaBoostMHClassifier(
            max_leaf_nodes=run.leaves, max_features=run.max_features, random_state=args.seed, **settings
        )
    model.fit(X, y)
    model.save(path)
    return model


def measure(name: str, data: Any, args: argparse.Namespace) -> dict[str, Any]:
    run = RUNS[name]
    X, X_test, y = data.X_train[: run.n_rows], data.X_test, data.y_train[: run.n_rows]
    if run.n_features:
        haar = HaarFeatures(SHAPE, run.n_features, lazy=True, random_state=args.seed).fit(X)
        X, X_test = haar.transform(X), haar.transform(X_test)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun, cpu = time.perf_counter(), time.process_time()
    model = train(run, X, y, args.work / f"haar-{name}.safetensors", args)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    errors = [float(np.mean(labels != data.y_test)) for labels in model.staged_predict(X_test)]
    return {
        "run": name,
        **run._asdict(),
        "rounds_run": model.n_estimators_,
        "errors_percent": {str(t): round(100 * errors[t - 1], 3) for t in (*MARKS, len(errors)) if t <= len(errors)},
        "lowest_percent": round(100 * min(errors), 3),
        "lowest_at": int(np.argmin(errors)) + 1,
        "features_used": int(np.unique(model.ensemble_.feature).size),
        "digest": model.ensemble_.digest(),
        "seconds_of_this_piece": round(seconds, 1),
        "cpu_seconds_of_this_piece": round(cpu, 1),
        "peak_mb": round(peak / 1024, 1),
        "before_fit_mb": round(before / 1024, 1),
        "codes_mb": round(X.shape[0] * X.shape[1] / 2**20, 1),
    }


def table(rows: list[dict[str, Any]]) -> str:
    marks = [t for t in MARKS if any(str(t) in row["errors_percent"] for row in rows)]
    return markdown(
        ["run", "rows", "columns", "leaves", *map(str, marks), "lowest", "rounds", "columns used", "codes, MB", "peak, MB"],
        [
            [
                row["run"],
                f"{row['n_rows']:,}",
                f"{row['n_features'] or SHAPE[0] * SHAPE[1]:,}",
                str(row["leaves"]),
                *(f"{row['errors_percent'].get(str(t), float('nan')):.2f}".replace("nan", "") for t in marks),
                f"{row['lowest_percent']:.2f} ({row['lowest_at']:,})",
                f"{row['rounds_run']:,}",
                f"{row['features_used']:,}",
                f"{row['codes_mb']:.0f}",
                f"{row['peak_mb']:.0f}",
            ]
            for row in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--runs", default="pixels-10k,haar-10k", help=", ".join(RUNS))
    parser.add_argument("--rounds", type=int, help="fewer than a run has")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of training, for each run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--work", type=Path, default=Path("."), help="where checkpoints are")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()

    data = fetch_mnist() if args.data_dir is None else read_dataset(args.data_dir / "mnist.npz")
    args.work.mkdir(parents=True, exist_ok=True)
    args.out.mkdir(parents=True, exist_ok=True)
    for name in args.runs.split(","):
        row = measure(name, data, args)
        print(table([row]), flush=True)
        path = args.out / f"haar-{name}-{datetime.date.today()}.json"
        path.write_text(json.dumps({"gpuboost": gpuboost.__version__, **row}, indent=1) + "\n")


if __name__ == "__main__":
    main()

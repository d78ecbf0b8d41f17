"""Test errors of the comparison boosters beside those of table 1 of Kegl (2014), where it has them.

    python benchmarks/bench_comparison.py [--data-dir DIR] [--runs mm,aoso] [--sets pendigits,letter] [--out FILE]

A row is one training on all training rows. Sizes of trees that the papers chose on the test set are a grid here, and the table
shows the best of it, as theirs do; AOSO-LogitBoost has the sizes that it names. FILE is written after every row, and what
stands in it is not run again. ``DIR/<name>.npz`` is as in bench_cpu.py; without a directory the sets are downloaded, which usps
cannot be.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any, NamedTuple

import gpuboost
from gpuboost.datasets import Dataset, fetch_uci, read_dataset


class Run(NamedTuple):
    """A booster: its name in the table, its parameters, the sizes of its trees, its rounds, and the paper's errors in %."""

    title: str
    params: dict[str, Any]
    leaves: tuple[int, ...]
    rounds: int
    paper: dict[str, str]


GRID = (20, 50, 100, 200, 400, 800, 1600)
SINGLE_LABEL = {"algorithm": "adaboost-mh", "learner": "single-label", "variant": "discrete"}
AOSO = {"pendigits": "2.4 ± 0.3", "letter": "2.3 ± 0.2", "optdigits": "2.1 ± 0.3", "usps": "4.9 ± 0.5", "isolet": "3.5 ± 0.5"}
RUNS = {
    "mh": Run("AdaBoost.MH, single-label trees", SINGLE_LABEL, GRID, 1000, {"pendigits": "2.8 ± 0.3", "letter": "2.6 ± 0.3"}),
    "mm": Run(
        "AdaBoost.MM",
        {"algorithm": "adaboost-mr", "learner": "single-label"},
        GRID,
        1000,
        {"pendigits": "2.7 ± 0.3", "letter": "2.5 ± 0.2"},
    ),
    "aoso": Run("AOSO-LogitBoost", {"algorithm": "aoso-logitboost", "min_samples_leaf": 1}, (20,), 5000, AOSO),
    "mr": Run("AdaBoost.MR", {"algorithm": "adaboost-mr"}, (20,), 1000, {}),
    "m1": Run("AdaBoost.M1", {"algorithm": "adaboost-m1"}, (100, 400, 1600), 1000, {}),
    "ecc": Run("AdaBoost.ECC", {"algorithm": "adaboost-ecc", "random_state": 0}, (20,), 2000, {}),
    "oc": Run("AdaBoost.OC", {"algorithm": "adaboost-ecc", "variant": "oc", "random_state": 0}, (20,), 2000, {}),
    "ova": Run("one-vs-all AdaBoost", {"algorithm": "one-vs-all"}, (20,), 300, {}),
}


def load(name: str, data_dir: Path | None) -> Dataset:
    return fetch_uci(name) if data_dir is None else read_dataset(data_dir / f"{name}.npz")


def measure(data: Dataset, run: Run, n_leaves: int) -> dict[str, Any]:
    """Train once; return the test error after the last round and the lowest along the way, in %."""
    begun = time.process_time()
    watched = (data.X_test, data.y_test)
    params = {**run.params, "max_leaf_nodes": n_leaves, "n_estimators": run.rounds}
    model = gpuboost.fit(data.X_train, data.y_train, eval_set=watched, device="cpu", n_jobs=1, **params)
    errors = model.history_["valid_error"]
    return {
        "rounds": model.n_estimators_,
        "stopped": model.stop_reason_,
        "test_error": 100 * errors[-1],
        "lowest": 100 * min(errors),
        "train_error": 100 * model.history_["train_error"][-1],
        "cpu_seconds": round(time.process_time() - begun, 1),
    }


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Write the rows whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".tmp")
    beside.write_text(json.dumps({"gpuboost": gpuboost.__version__, "rows": rows}, indent=1) + "\n")
    os.replace(beside, path)


def table(rows: list[dict[str, Any]]) -> str:
    """Return the best row of every set and run as a table in Markdown."""
    lines = [
        "| data | booster | leaves | rounds | test error % | lowest along the run | paper % | difference |",
        "|---" * 8 + "|",
    ]
    for name, run in dict.fromkeys((row["data"], row["run"]) for row in rows):
        best = min((row for row in rows if (row["data"], row["run"]) == (name, run)), key=lambda row: float(row["test_error"]))
        paper = RUNS[run].paper.get(name)
        difference = "" if paper is None else f"{best['test_error'] - float(paper.split()[0]):+.2f}"
        cells = [
            name, RUNS[run].title, str(best["leaves"]), str(best["rounds"]), f"{best['test_error']:.2f}",
            f"{best['lowest']:.2f}", paper or "no figure", difference,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", default="pendigits,letter")
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "comparison.json")
    args = parser.parse_args()

    rows: list[dict[str, Any]] = json.loads(args.out.read_text())["rows"] if args.out.exists() else []
    done = {(row["data"], row["run"], row["leaves"]) for row in rows}
    for key in args.runs.split(","):
        for name in args.sets.split(","):
            for n_leaves in RUNS[key].leaves:
                if (name, key, n_leaves) in done:
                    continue
                found = measure(load(name, args.data_dir), RUNS[key], n_leaves)
                rows.append({"data": name, "run": key, "leaves": n_leaves, **found})
                write(args.out, rows)
                print(rows[-1], flush=True)
    print(table(rows))


if __name__ == "__main__":
    main()

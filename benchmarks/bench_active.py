"""Active GAMBLE beside Random GAMBLE and Batch GAMBLE, as in section 5.2 of Huang, Ertekin, Song, Zha and Giles (2007).

    python benchmarks/bench_active.py [--data-dir DIR] [--sets pendigits,satimage] [--seeds 5] [--rounds 300] [--batch 10]

Test errors by the number of labelled rows, averaged over seeds; how many rows each strategy needs to reach the paper's target,
and the lowest test error that Batch GAMBLE has in its first 1000 rounds here. With several values in ``--rounds``, ``--batch``
or ``--learning-rate`` every combination is run. ``DIR/<name>.npz`` is as in bench_cpu.py; without DIR the sets are downloaded.
One thread.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from _tables import markdown

import gpuboost
from gpuboost.datasets import Dataset, fetch_uci, read_dataset

# Table 2: the target and the lowest error, in %, and the rows of Active and of Random GAMBLE at the target.
PAPER = {"pendigits": (4.71, 3.92, 340, 2510), "satimage": (12.6, 11.3, 220, 1450)}
BATCH_ROUNDS = 1000
SHARES = (0.05, 0.085, 0.1, 0.2)
RANDOM_STEP = 50  # the batch size of random rows: a committee of n random rows does not depend on how they came together


@dataclass(frozen=True)
class Settings:
    """One committee and one way to enlarge the working set."""

    rounds: int
    batch: int
    learning_rate: float | str
    initial: int
    leaves: int

    def committee(self, **params: Any) -> gpuboost.GambleClassifier:
        return gpuboost.GambleClassifier(
            n_estimators=self.rounds, learning_rate=self.learning_rate, max_leaf_nodes=self.leaves, device="cpu", n_jobs=1
        ).set_params(**params)


Curve = list[tuple[int, float]]
"""Pairs of a number of labelled rows and the test error in %."""


def learning_curve(data: Dataset, s: Settings, strategy: str, seed: int, share: float) -> Curve:
    """Train on more and more rows, up to a share of them; stop over at every one of `SHARES`."""
    learner = gpuboost.ActiveLearner(
        data.X_train, s.committee(), strategy=strategy, n_initial=s.initial, random_state=seed,
        batch_size=s.batch if strategy == "margin" else RANDOM_STEP, eval_set=(data.X_test, data.y_test),
    )  # fmt: skip
    for stop in sorted({share, *(one for one in SHARES if one < share)}):
        learner.run(data.y_train, max_rows=rows_of(len(data.y_train), stop))
    history = learner.history_
    return [(n, 100 * error) for n, error in zip(history["n_rows"], history["valid_error"], strict=True)]


def rows_of(n_all: int, share: float) -> int:
    """Return how many rows a share is."""
    return math.floor(share * n_all + 1e-9)


def batch_errors(data: Dataset, s: Settings) -> np.ndarray:
    """Return the test error in % after every round of a training on all rows."""
    model = s.committee(n_estimators=BATCH_ROUNDS).fit(data.X_train, data.y_train, eval_set=(data.X_test, data.y_test))
    return 100 * np.array(model.history_["valid_error"])


def stopped_by_hold_out(data: Dataset, s: Settings, seed: int, patience: int) -> dict[str, float]:
    """Hold out a tenth of the training rows; return the test error of the committee that they choose, and its rows."""
    order = np.random.default_rng(seed).permutation(len(data.y_train))
    n_held = len(order) // 10
    held, pool = order[:n_held], order[n_held:]
    learner = gpuboost.ActiveLearner(
        data.X_train[pool], s.committee(), n_initial=s.initial, batch_size=s.batch, random_state=seed,
        eval_set=(data.X_train[held], data.y_train[held]), n_iter_no_change=patience,
    ).run(data.y_train[pool])  # fmt: skip
    history = learner.history_
    best = int(np.argmin(history["valid_error"]))
    error = 100 * float(np.mean(learner.predict(data.X_test) != data.y_test))
    return {"rows": history["n_rows"][best], "rows_labelled": len(learner.rows_), "held_out": n_held, "test_error": error}


# Summaries


def first_at(curve: Curve, target: float) -> float:
    """Return the least number of rows with at most the target error; infinite if there is none."""
    return min((n for n, error in curve if error <= target + 1e-9), default=math.inf)


def mean_curve(curves: list[Curve]) -> Curve:
    """Average the errors of several runs, which have the same numbers of rows."""
    return [(points[0][0], float(np.mean([error for _, error in points]))) for points in zip(*curves, strict=True)]


def at(curves: list[Curve], n: int) -> list[float]:
    """Return the errors of all runs with n rows; nothing of those that ended before."""
    return [error for curve in curves for n_rows, error in curve if n_rows == n]


def rows_text(curves: list[Curve], target: float, n_all: int) -> str:
    """Format the rows to the target: of the mean curve, and the median and range of the single runs."""
    firsts = sorted(first_at(curve, target) for curve in curves)
    of_mean = first_at(mean_curve(curves), target)
    shares = [
        f"{n:.0f} ({100 * n / n_all:.1f} %)" if n < math.inf else "not reached" for n in (of_mean, firsts[len(firsts) // 2])
    ]
    reached = [n for n in firsts if n < math.inf]
    spread = f" [{reached[0]}, {reached[-1]}]" if reached else ""
    return f"{shares[0]}; {shares[1]}{spread}, {len(reached)} of {len(firsts)} runs"


def error_text(errors: list[float]) -> str:
    spread = np.std(errors, ddof=1) if len(errors) > 1 else 0.0
    return f"{np.mean(errors):.2f} ± {spread:.2f}" if errors else "-"


def report(record: dict[str, Any]) -> Iterator[str]:
    """Describe one set with one combination of settings."""
    n_all, s = record["n_train"], record["settings"]
    active, random = record["active"], record["random"]
    what = f"{s['rounds']} rounds, {s['batch']} rows a trial, learning rate {s['learning_rate']}, {record['seeds']} seeds"
    yield f"## {record['set']}: {what}\n"
    longest = max(record["active_share"], record["random_share"])
    n_rows = {share: rows_of(n_all, share) for share in SHARES if share <= longest}
    yield markdown(
        ["test error, %", *(f"{100 * share:g} % = {n} rows" for share, n in n_rows.items()), "lowest of mean"],
        (
            [name, *(error_text(at(curves, n)) for n in n_rows.values()),
             f"{min(error for _, error in mean_curve(curves)):.2f}"]
            for name, curves in (("Active", active), ("Random", random))
        ),
    ) + "\n"  # fmt: skip
    target, lowest, paper_active, paper_random = PAPER[record["set"]]
    best = record["batch_best"]
    yield markdown(
        ["rows to a test error of", "Active: mean curve; runs", "Random: mean curve; runs"],
        [
            [f"{best:.2f} %, the lowest of Batch GAMBLE here", *(rows_text(c, best, n_all) for c in (active, random))],
            [f"{target} %, the paper's target", *(rows_text(c, target, n_all) for c in (active, random))],
            ["the same in the paper", f"{paper_active}; lowest error {lowest} %", f"{paper_random}"],
        ],
    ) + "\n"  # fmt: skip
    if record["hold_out"]:
        held = {key: [one[key] for one in record["hold_out"]] for key in record["hold_out"][0]}
        yield (
            f"Stopped by a hold-out set of {held['held_out'][0]} rows: test error {error_text(held['test_error'])} % with "
            f"{np.mean(held['rows']):.0f} rows, the best of up to {np.mean(held['rows_labelled']):.0f}.\n"
        )
    if record["active_share"] >= 0.1 and record["random_share"] >= 0.2:
        tenth, fifth = (float(np.mean(at(curves, rows_of(n_all, x)))) for curves, x in ((active, 0.1), (random, 0.2)))
        verdict = "less" if tenth < fifth else "not less"
        yield f"Active at 10 % of the rows: {tenth:.2f} %, {verdict} than Random at 20 %: {fifth:.2f} %.\n"


def run(name: str, data: Dataset, s: Settings, args: argparse.Namespace) -> dict[str, Any]:
    """Run all seeds of one set with one combination of settings."""
    begun = time.process_time()
    curves: dict[str, list[Curve]] = {"active": [], "random": []}
    for seed in range(args.seeds):
        curves["active"].append(learning_curve(data, s, "margin", seed, args.active_share))
        curves["random"].append(learning_curve(data, s, "random", seed, args.random_share))
        print(f"{name} {s} seed {seed}: {time.process_time() - begun:.0f} s", flush=True)
    errors = batch_errors(data, s)
    return {
        "set": name, "n_train": len(data.y_train), "n_test": len(data.y_test), "settings": asdict(s), "seeds": args.seeds,
        "active_share": args.active_share, "random_share": args.random_share,
        "batch_best": float(errors.min()), "batch_best_round": int(errors.argmin()) + 1, "batch_last": float(errors[-1]),
        **curves,
        "hold_out": [stopped_by_hold_out(data, s, seed, args.patience) for seed in range(args.seeds)] if args.patience else [],
        "cpu_seconds": time.process_time() - begun,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", default=",".join(PAPER))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", default="300")
    parser.add_argument("--batch", default="10", help="rows that a trial adds")
    parser.add_argument("--learning-rate", default="1", help="1: the paper's; auto: min(1, 2 / K)")
    parser.add_argument("--initial", type=int, default=20, help="random rows at the start")
    parser.add_argument("--leaves", type=int, default=15)
    parser.add_argument("--active-share", type=float, default=0.2, help="of the training rows, for active learning")
    parser.add_argument("--random-share", type=float, default=0.5)
    parser.add_argument("--patience", type=int, default=20, help="trials without a lower hold-out error; 0: no hold-out runs")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--name", default="active", help="of the files")
    args = parser.parse_args()

    rates = [rate if rate == "auto" else float(rate) for rate in args.learning_rate.split(",")]
    grid = product(map(int, args.rounds.split(",")), map(int, args.batch.split(",")), rates)
    settings = [Settings(*one, args.initial, args.leaves) for one in grid]
    records: list[dict[str, Any]] = []
    parts = [f"# Active GAMBLE\n\ngpuboost {gpuboost.__version__}, mean ± standard deviation over the seeds.\n"]
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{args.name}-{datetime.date.today()}"
    for name, s in product(args.sets.split(","), settings):
        data = fetch_uci(name) if args.data_dir is None else read_dataset(args.data_dir / f"{name}.npz")
        records.append(run(name, data, s, args))
        parts.extend(report(records[-1]))
        path.with_suffix(".md").write_text("\n".join(parts))
        path.with_suffix(".json").write_text(json.dumps({"gpuboost": gpuboost.__version__, "records": records}) + "\n")
    print("\n".join(parts))


if __name__ == "__main__":
    main()

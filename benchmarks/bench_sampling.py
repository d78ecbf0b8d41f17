"""Weight trimming, LazyBoost and stochastic boosting beside the plain boosters: CPU time and test error.

    python benchmarks/bench_sampling.py [--data-dir DIR] [--sets pendigits,letter,satimage] [--out benchmarks/results]
    python benchmarks/bench_sampling.py --data-dir DIR --sets mnist --boosters adaboost-mh,gamble --rounds 100 --seeds 1

Every booster runs on one thread, on the original splits, once for each of ``--seeds`` seeds; a row has the medians. The time is
the CPU time of the rounds. "rows used" is the mean share of the rows that a round's tree is grown from. ``DIR/<name>.npz`` is
as in bench_cpu.py; without a directory the sets are downloaded.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from pathlib import Path
from statistics import mean, median
from typing import Any
from unittest import mock

import numpy as np
from _tables import markdown

import gpuboost
from gpuboost.boosters.sampling import Sampling
from gpuboost.datasets import fetch_uci, read_dataset

Row = dict[str, Any]

BOOSTERS: dict[str, dict[str, Any]] = {
    "adaboost-mh": {"max_leaf_nodes": 20},
    "samme": {},
    "gamble": {},
    "rebel": {"max_depth": 4},
    "logitboost": {},
    "abc-boost": {},
}
OPTIONS: dict[str, dict[str, float]] = {
    "plain": {},
    "weight_trim=0.99": {"weight_trim": 0.99},
    "weight_trim=0.9": {"weight_trim": 0.9},
    "max_features=0.5": {"max_features": 0.5},
    "subsample=0.5": {"subsample": 0.5},
    "all three": {"weight_trim": 0.99, "max_features": 0.5, "subsample": 0.5},
}


def fit(data: Any, algorithm: str, options: dict[str, float], rounds: int, seed: int) -> tuple[float, float, float]:
    """Return the CPU time of the rounds of a fit, its test error, and the mean share of rows used."""
    used: list[float] = []
    marks: list[float] = []
    rows_of = Sampling.rows

    def counted(self: Sampling, t: int, backend: Any, stats: Any) -> Any:
        lists = rows_of(self, t, backend, stats)
        used.append(mean(map(len, lists)) / stats.quantised.shape[1] if lists else 1.0)
        return lists

    settings = {**BOOSTERS[algorithm], **options, "device": "cpu", "n_jobs": 1, "random_state": seed}
    settings["callbacks"] = [lambda progress: marks.append(time.process_time())]
    with mock.patch.object(Sampling, "rows", counted):
        model = gpuboost.fit(data.X_train, data.y_train, algorithm=algorithm, n_estimators=rounds, **settings)
    seconds = (marks[-1] - marks[0]) * len(marks) / (len(marks) - 1)
    return seconds, float(np.mean(model.predict(data.X_test) != data.y_test)), mean(used)


def measure(name: str, data: Any, boosters: list[str], rounds: int, seeds: int) -> list[Row]:
    rows = []
    for algorithm in boosters:
        for options in OPTIONS.values():  # compile
            fit(data, algorithm, options, 2, 0)
        taken: dict[str, list[tuple[float, float, float]]] = {option: [] for option in OPTIONS}
        for seed in range(seeds):  # in turns, so that none has the machine's best moment for itself
            for option, options in OPTIONS.items():
                taken[option].append(fit(data, algorithm, options, rounds, seed))
        for option, found in taken.items():
            seconds, error, used = (median(column) for column in zip(*found, strict=True))
            rows.append(
                {"data": name, "booster": algorithm, "option": option, "seconds": seconds, "error": error, "used": used}
            )
            print(rows[-1], flush=True)
    return rows


def table(rows: list[Row]) -> str:
    plain = {(r["data"], r["booster"]): r["seconds"] for r in rows if r["option"] == "plain"}
    return markdown(
        ["data", "booster", "option", "CPU time, s", "of plain, %", "rows used, %", "test error, %"],
        [
            [
                r["data"],
                r["booster"],
                r["option"],
                f"{r['seconds']:.2f}",
                f"{100 * r['seconds'] / plain[r['data'], r['booster']]:.0f}",
                f"{100 * r['used']:.0f}",
                f"{100 * r['error']:.2f}",
            ]
            for r in rows
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--sets", default="pendigits,letter,satimage")
    parser.add_argument("--boosters", default=",".join(BOOSTERS))
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()

    rows: list[Row] = []
    for name in args.sets.split(","):
        data = fetch_uci(name) if args.data_dir is None else read_dataset(args.data_dir / f"{name}.npz")
        rows += measure(name, data, args.boosters.split(","), args.rounds, args.seeds)
    text = f"# Sampling, {args.rounds} rounds, gpuboost {gpuboost.__version__}, {datetime.date.today()}\n\n{table(rows)}\n"
    print(text)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"sampling-{args.sets.replace(',', '-')}-{datetime.date.today()}"
    path.with_suffix(".md").write_text(text)
    path.with_suffix(".json").write_text(json.dumps({"gpuboost": gpuboost.__version__, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Boosting from streams: FilterBoost, its paper's experiments, and what else one would do with many rows.

    python benchmarks/bench_filter.py paper --data-dir DIR [--sets majority,adult] [--learners stumps,trees] [--runs 10]
    python benchmarks/bench_filter.py targets --data-dir DIR [--seeds 5] [--only Adult]
    python benchmarks/bench_filter.py memory [--rows 1000000,5000000,20000000] [--allowed-mib 256]
    python benchmarks/bench_filter.py rate
    python benchmarks/bench_filter.py instead --data-dir DIR [--sets covertype2,covertype7,generated2] [--seconds 60]

``paper``    section 4: every booster on Majority (10,000 and 500,000 rows), Twonorm, Adult and Covertype in two classes, with
             stumps and trees; error, log loss and RMSE against draws and time; the claims, each seen or not; figures 7 to 14
``targets``  figures that are to be met
``memory``   peak memory over 1, 5 and 20 million rows, and over a memory map of 8 times some memory
``rate``     rows a second through the filter, beside the plain prediction by the same trees
``instead``  AdaBoost.MH and LightGBM on a sample, LightGBM on a file in two rounds of loading, and a linear model by
             ``partial_fit``, at equal wall time

Runs that stand in the file of results are not run again, so that ``paper`` and ``targets`` can be interrupted, and given more
runs later. ``DIR/<name>.npz`` is as in bench_cpu.py; without a directory the sets are downloaded. One thread.
"""

from __future__ import annotations

import argparse
import datetime
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _tables import markdown
from filtering import claims, figures, instead, memory, rate
from filtering.problems import SETS, split_of
from filtering.runs import BOOSTERS, LEARNERS, Run, one_run
from filtering.targets import TARGETS, mean_of

import gpuboost

MIB = 1 << 20
ROUNDS = {"stumps": 500, "trees": 300}


class Store:
    """The runs of a part, in a file that is written after each."""

    def __init__(self, path: Path, keys: tuple[str, ...]) -> None:
        self.path, self.keys = path, keys
        self.runs: list[Run] = json.loads(path.read_text())["runs"] if path.exists() else []

    def has(self, **key: Any) -> bool:
        return any(all(run[name] == key[name] for name in self.keys) for run in self.runs)

    def add(self, run: Run) -> None:
        self.runs.append(run)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"gpuboost": gpuboost.__version__, "runs": self.runs}) + "\n")


def paper(options: argparse.Namespace, store: Store) -> str:
    chosen = options.boosters.split(";") if options.boosters else list(BOOSTERS)
    for run in range(options.runs):
        for name in options.sets.split(",") if options.sets else SETS:
            split = None
            for learner in options.learners.split(","):
                for booster in chosen:
                    rounds = options.rounds or ROUNDS[learner]
                    if store.has(set=name, learner=learner, booster=booster, run=run):
                        continue
                    split = split or split_of(name, run, options.data_dir)
                    found = {"set": name, "rounds_asked": rounds, **one_run(split, booster, learner, run, rounds)}
                    store.add(found)
                    last = found["curve"][-1]
                    print(f"{name}, {learner}, {booster}, run {run}: error {100 * last['error']:.2f} %, log loss "
                          f"{last['log_loss']:.3f}, {found['seconds']:.0f} s", flush=True)  # fmt: skip
    if not options.no_figures:
        figures.draw(store.runs, options.out, store.path.stem)
    return f"{last_figures(store.runs)}\n\n{claim_table(store.runs)}"


def last_figures(runs: list[Run]) -> str:
    results = claims.Results(runs)
    lines = []
    for (name, learner, booster), group in results.groups.items():
        numbers = [claims.shown(results.last(name, learner, booster, what), what) for what in ("error", "log_loss", "rmse")]
        low = results.lowest(name, learner, booster, "log_loss")
        draws, seconds = (results.last(name, learner, booster, what).mean() for what in ("draws", "seconds"))
        rounds = str(max(run["rounds"] for run in group))
        lines.append(
            [claims.SET_NAMES[name], learner, booster, str(len(group)), rounds, *numbers, claims.shown(low, "log_loss"),
             f"{draws / 1e6:.2f}", f"{seconds:.1f}"]
        )  # fmt: skip
    header = [
        "data",
        "learner",
        "booster",
        "runs",
        "rounds",
        "error",
        "log loss",
        "RMSE",
        "lowest log loss",
        "draws, 10^6",
        "s",
    ]
    return markdown(header, lines)


def claim_table(runs: list[Run]) -> str:
    words = {True: "seen", False: "not seen", None: "-"}
    lines = [[claim, words[found.seen], found.numbers] for claim, found in claims.findings(runs).items()]
    return markdown(["section and claim", "", "means ± standard deviations over the runs"], lines)


def targets(options: argparse.Namespace, store: Store) -> str:
    for seed in range(options.seeds):
        for name, target in TARGETS.items():
            if options.only in name and not store.has(target=name, seed=seed):
                found = {"target": name, "seed": seed, **target.measure(seed, options.data_dir)}
                store.add(found)
                print(found, flush=True)
    lines = []
    for name, target in TARGETS.items():
        runs = [run for run in store.runs if run["target"] == name]
        if runs:
            found = mean_of(runs)
            for key, limit in target.limits.items():
                own = [run[key] for run in runs]
                lines.append([name, key, f"{limit:.3f}", f"{np.mean(own):.4f}", f"{min(own):.4f} .. {max(own):.4f}",
                              str(len(runs)), "met" if found[key] <= limit else "missed"])  # fmt: skip
    return markdown(["", "figure", "at most", "mean", "range", "seeds", ""], lines)


def memory_part(options: argparse.Namespace, store: Store) -> str:
    rows = [int(n) for n in options.rows.split(",")]
    store.runs = [run for run in store.runs if run["kind"] not in options.kinds.split(",")]
    if "generated" in options.kinds:
        for run in memory.generated(rows):
            store.add(run)
    if "mapped" in options.kinds:
        for run in memory.mapped(options.allowed_mib * MIB, options.scratch):
            store.add(run)
    lines = []
    for kind in ("generated", "mapped"):
        runs = [run for run in store.runs if run["kind"] == kind]
        for run in runs:
            size = f"{run['file_bytes'] / MIB:.0f} MiB" if "file_bytes" in run else "-"
            lines.append([kind, f"{run['rows'] / 1e6:.2f}", size, f"{run['peak_bytes'] / MIB:.0f}",
                          f"{run['peak_bytes'] / runs[0]['peak_bytes']:.3f}", f"{run['drawn'] / 1e6:.2f}",
                          str(run["rounds"]), f"{run['acceptance']:.3f}", f"{run['seconds']:.0f}"])  # fmt: skip
    header = ["rows", "10^6", "file", "peak, MiB", "of the first", "drawn, 10^6", "rounds", "acceptance", "s"]
    return markdown(header, lines)


def rate_part(options: argparse.Namespace, store: Store) -> str:
    rate.rates(50_000, (10,), 1)  # compiles
    store.runs = []
    for n_rows, trees in ((200_000, 100), (40_000, 1000)):
        for run in rate.rates(n_rows, (trees,), options.repeats, options.classes):
            store.add(run)
    lines = [
        [str(r["classes"]), str(r["trees"]), f"{r['predict']:,.0f}", f"{r['filter']:,.0f}", f"{r['ratio']:.2f}",
         f"{r['predict_cpu']:,.0f}", f"{r['filter_cpu']:,.0f}", f"{r['ratio_cpu']:.2f}"]
        for r in store.runs
    ]  # fmt: skip
    return markdown(["classes", "trees", "predicted rows/s", "filtered rows/s", "ratio", "predicted rows/CPU s",
                     "filtered rows/CPU s", "ratio"], lines)  # fmt: skip


def instead_part(options: argparse.Namespace, store: Store) -> str:
    for name in (options.sets or "covertype2,covertype7,generated2").split(","):
        rows = int(options.rows.split(",")[-1]) if name.startswith("generated") else 522_910
        with tempfile.TemporaryDirectory(dir=options.scratch) as place:
            job = {"set": name, "rows": rows, "sample": options.sample, "seconds": options.seconds, "clock": options.clock,
                   "examples_per_round": options.examples_per_round,
                   "data_dir": str(options.data_dir) if options.data_dir else None}  # fmt: skip
            for way in options.ways.split(";") if options.ways else instead.WAYS:
                if store.has(set=name, way=way, seconds=options.seconds):
                    continue
                own = job | {"way": way}
                if way == "lightgbm, two rounds":
                    own["file"] = str(Path(place, "rows.csv"))
                    instead.write_csv(own)
                found = instead.measured(own) | {"file": ""}
                store.add(found)
                print(found, flush=True)
    lines = []
    for r in store.runs:
        head = [
            r["set"],
            f"{r['rows'] / 1e6:.2f}",
            r["way"],
            f"{r['seconds']:.0f}",
        ]
        if "failed" in r:
            lines.append([*head, f"failed: {r['failed']}", *["-"] * 4])
        else:
            lines.append([*head, f"{r['took']:.0f}", f"{100 * r['error']:.2f}", f"{r['log_loss']:.3f}",
                          f"{r['peak_bytes'] / MIB:.0f}", str(r["rounds"])])  # fmt: skip
    return markdown(["data", "rows seen, 10^6", "way", "seconds given", "taken", "test error, %", "log loss", "peak, MiB",
                     "rounds"], lines)  # fmt: skip


PARTS: dict[str, tuple[str, Callable[[argparse.Namespace, Store], str], tuple[str, ...]]] = {
    "paper": ("The experiments of the paper", paper, ("set", "learner", "booster", "run")),
    "targets": ("To be met", targets, ("target", "seed")),
    "memory": ("Peak memory", memory_part, ()),
    "rate": ("Rows a second", rate_part, ()),
    "instead": ("What one would do instead", instead_part, ("set", "way", "seconds")),
}


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--stem", help="of the files of results; by default filter-PART-DATE")
    parser.add_argument("--sets", help="paper: " + ",".join(SETS) + "; instead: covertype2, covertype7, generated2, generated7")
    parser.add_argument("--learners", default=",".join(LEARNERS))
    parser.add_argument("--boosters", help="separated by ;")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rounds", type=int, help="500 stumps and 300 trees by default")
    parser.add_argument("--no-figures", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default="", help="part of the names of the targets")
    parser.add_argument("--rows", default="1000000,5000000,20000000")
    parser.add_argument("--kinds", default="generated,mapped")
    parser.add_argument("--allowed-mib", type=int, default=256)
    parser.add_argument("--scratch", help="a folder on a disk, for memory maps and files")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clock", default="wall", choices=["wall", "cpu"], help="cpu: where other programs run, too")
    parser.add_argument("--sample", type=int, default=500_000, help="rows that are said to fit into memory")
    parser.add_argument("--examples-per-round", type=int, default=30_000)
    parser.add_argument("--ways", help="separated by ;")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    options = parsed(arguments)
    title, measure, keys = PARTS[options.part]
    stem = options.stem or f"filter-{options.part}-{datetime.date.today()}"
    store = Store(options.out / f"{stem}.json", keys)
    text = measure(options, store)
    section = f"# {title}, gpuboost {gpuboost.__version__}, {datetime.date.today()}\n\n{text}\n"
    print(section, flush=True)
    (options.out / f"{stem}.md").write_text(section)


if __name__ == "__main__":
    main()

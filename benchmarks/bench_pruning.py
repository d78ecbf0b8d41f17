"""Exact pruning (`pruning=True`): additions and time with and without, and whether the models are the same.

    python benchmarks/bench_pruning.py --data-dir DIR             # about eight minutes on one core
    python benchmarks/bench_pruning.py --data-dir DIR --mnist     # MNIST alone: about fifteen more
    python benchmarks/bench_pruning.py --sets pendigits,usps --boosters samme --rounds 100

``trees``  a training without pruning, in which some rounds' trees are grown again and again, in turn without and with
           pruning: at rounds 1, 30, 100, 300 and 1000, since the weights of late rounds are the concentrated ones
``fits``   whole trainings with ``pruning=False`` and ``pruning=True``, in turn

An addition is one (row, feature) pair whose statistics are added to a bin: of all classes for AdaBoost.MH, of the row's own
class for SAMME and GAMBLE. "All nodes" is what a search adds that sums every feature over all rows of every node, as the
thesis counts it. gpuboost's own search without pruning adds less: a larger sibling is had by subtraction, the most frequent
bin from the total, and with one class a row the rows without weight are left out.

What limits it: additions are not all that a tree takes. Every feature has to be searched for its best cut, in every node, on
the heavy rows at least; with many bins and few rows that takes longer than the additions. One thread; times are medians.
Boosters have 16 leaves, and their papers' learning rate of 1. ``DIR/<name>.npz`` is as in bench_cpu.py.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import time
from pathlib import Path
from statistics import median
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before the libraries read it

import numpy as np
from _tables import markdown

import gpuboost
from gpuboost.backends.cpu.backend import CpuBackend
from gpuboost.backends.cpu.matrix import CpuMatrix
from gpuboost.backends.frontier import GAIN, START, STOP, Frontier, GrowthScope
from gpuboost.backends.statistics import Stats
from gpuboost.binning import BinMapper
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Problem
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.rebel import Rebel
from gpuboost.boosters.samme import SAMME
from gpuboost.boosters.sampling import Sampling
from gpuboost.datasets import read_dataset
from gpuboost.ensemble import Ensemble
from gpuboost.learners.hamming_tree import HammingTree

Row = dict[str, Any]

LEAVES = 16
AT = (1, 30, 100, 300, 1000)
SETS = {"pendigits": 1000, "letter": 1000, "satimage": 1000, "optdigits": 1000, "usps": 300, "isolet": 100}
"""Rounds of each set."""


def booster(name: str, quick: bool) -> Any:
    sampling = Sampling(pruning=quick)
    return {
        "adaboost-mh": lambda: AdaBoostMH(HammingTree(LEAVES), "single-label", sampling=sampling),
        "samme": lambda: SAMME(LEAVES, sampling=sampling),
        "gamble": lambda: Gamble(LEAVES, 1.0, sampling=sampling),
        "rebel": lambda: Rebel(4, sampling=sampling),  # in fits only: it grows a tree layer by layer
    }[name]()


def problem_on(backend: CpuBackend, X: np.ndarray, y: np.ndarray) -> Problem:
    data = backend.encode(BinMapper.fit(X), X)
    return Problem(backend, data, y.astype(np.int32), int(y.max()) + 1, np.ones(len(y), np.int32), np.ones(len(y)))


# ---- trees -------------------------------------------------------------------------------------------------------------------


class Watched(CpuBackend):
    """A backend that grows the trees of some rounds again and again, in turn without and with pruning."""

    def __init__(self, at: tuple[int, ...], repeats: int) -> None:
        super().__init__(1)
        self.at, self.repeats, self.n_grown = at, repeats, 0
        self.found: list[Row] = []
        self.pruning.always = True

    def start_growth(self, data: CpuMatrix, stats: Stats, max_leaves: int, start: GrowthScope | None = None) -> Frontier:
        self.n_grown += 1
        if self.n_grown in self.at:
            self.found.append(self.measure(data, stats, max_leaves))
        return super().start_growth(data, stats, max_leaves, start or GrowthScope())

    def measure(self, data: CpuMatrix, stats: Stats, max_leaves: int) -> Row:
        seconds: dict[bool, list[float]] = {False: [], True: []}
        row: Row = {"round": self.n_grown}
        trees = {}
        for i in range(self.repeats + 3):  # the first ones learn what pruning takes
            for quick in (False, True):
                begun = time.perf_counter()
                frontier = super().start_growth(data, stats, max_leaves, GrowthScope(pruning=quick))
                self.run(frontier, lambda: None)
                if i >= 3:
                    seconds[quick].append(time.perf_counter() - begun)
                trees[quick] = frontier.nodes[0][:, 2 : GAIN + 1][frontier.nodes[0][:, GAIN] > 0].tolist()
                if not quick and i == 0:
                    row |= additions(data, frontier)
        division = frontier.work["division"]
        row |= {"pruning": int(division.counts[:2].sum()), "light_mass": division.light_share}
        row |= {"heavy_rows": float(np.count_nonzero(division.level[0][frontier.rows[0]] == 0) / data.n_rows)}
        return row | {
            "same": trees[False] == trees[True],
            "seconds": [median(seconds[pruning]) for pruning in (False, True)],
        }


def additions(data: CpuMatrix, frontier: Frontier) -> Row:
    """Count what the search without pruning has added, and what a search adds that sums all rows of all nodes."""
    counted = np.zeros(data.n_rows, np.int64)
    width = data.blocks.shape[2]
    for f in data.usable:
        counted += data.blocks[f // width, :, f % width] != data.skipped[f]
    nodes, rows = frontier.nodes[0], frontier.rows[0]
    of_node = [counted[rows[start:stop]] for start, stop in nodes[:, [START, STOP]]]
    pairs = list(zip(of_node[1:-2:2], of_node[2:-2:2], strict=True))
    plain = of_node[0].sum() + sum(min(pair, key=len).sum() for pair in pairs)
    all_rows = data.n_rows * sum(len(own) for own in [of_node[0], *of_node[1:-2]]) / max(len(of_node[0]), 1)
    return {"all_nodes": int(all_rows * len(data.usable)), "plain": int(plain)}


def trees_part(name: str, X: np.ndarray, y: np.ndarray, kind: str, n_rounds: int, repeats: int) -> list[Row]:
    with Watched(tuple(t for t in AT if t <= n_rounds), repeats) as backend:
        for t, _ in enumerate(booster(kind, pruning=False).rounds(problem_on(backend, X, y), []), start=1):
            if t == n_rounds:
                break
    return [{"data": name, "booster": kind, **row} for row in backend.found]


def trees_table(rows: list[Row]) -> str:
    """List the additions (in millions) and times of single trees."""
    lines = [
        [
            r["data"], r["booster"], str(r["round"]), f"{100 * r['heavy_rows']:.1f}", f"{100 * r['light_mass']:.2f}",
            *(f"{r[key] / 1e6:.3g}" for key in ("all_nodes", "plain", "pruning")),
            f"{r['plain'] / max(r['quick'], 1):.2f}", *(f"{1000 * s:.2f}" for s in r["seconds"]),
            f"{r['seconds'][0] / r['seconds'][1]:.2f}", "yes" if r["same"] else "NO",
        ]
        for r in rows
    ]  # fmt: skip
    return markdown(
        ["data", "booster", "round", "heavy rows, %", "mass of the light, %", "additions, M: all nodes", "without", "with",
         "without / with", "ms: without", "with", "without / with", "same tree"],
        lines,
    )  # fmt: skip


# ---- fits --------------------------------------------------------------------------------------------------------------------


def fits_part(name: str, X: np.ndarray, y: np.ndarray, kind: str, n_rounds: int, repeats: int) -> Row:
    seconds: dict[bool, list[float]] = {False: [], True: []}
    digests = set()
    for i in range(repeats):
        for quick in ((False, True), (True, False))[i % 2]:
            with CpuBackend(1) as backend:
                problem, trees = problem_on(backend, X, y), []
                begun = time.perf_counter()
                algorithm = booster(kind, quick)
                for round_ in algorithm.rounds(problem, algorithm.row_state(problem), 0):
                    trees += [grown.tree for grown in round_.trees]
                    if len(trees) == n_rounds:
                        break
                seconds[quick].append(time.perf_counter() - begun)
            digests.add(Ensemble.from_trees(trees, int(y.max()) + 1).digest())
    row = {"data": name, "booster": kind, "rounds": len(trees), "same": len(digests) == 1}
    return row | {"seconds": [min(seconds[pruning]) for pruning in (False, True)]}


def fits_table(rows: list[Row]) -> str:
    lines = [
        [r["data"], r["booster"], str(r["rounds"]), *(f"{s:.2f}" for s in r["seconds"]),
         f"{r['seconds'][0] / r['seconds'][1]:.2f}", "yes" if r["same"] else "NO"]
        for r in rows
    ]  # fmt: skip
    head = ["data", "booster", "rounds", "s: pruning=False", "pruning=True", "False / True", "same model"]
    return markdown(head, lines)


# ---- all ---------------------------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--data-dir", type=Path, required=True)
    add("--sets", default=",".join(SETS))
    add("--boosters", default="adaboost-mh,samme,gamble,rebel")
    add("--parts", default="trees,fits")
    add("--rounds", type=int, help="in place of each set's own number")
    add("--repeats", type=int, default=5, help="times that a tree is grown each way")
    add("--fits", type=int, default=1, help="trainings each way")
    add("--mnist", action="store_true", help="MNIST alone: 1000 rounds of AdaBoost.MH and SAMME")
    add("--out", type=Path, default=Path(__file__).parent / "results")
    args = parser.parse_args()
    sets, kinds = ("mnist", "adaboost-mh,samme") if args.mnist else (args.sets, args.boosters)

    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")
    trees: list[Row] = []
    fits: list[Row] = []
    for name in sets.split(","):
        path = args.data_dir / f"{name}.npz"
        if not path.exists():
            print(f"{name}: left out, there is no file", flush=True)
            continue
        data, n_rounds = read_dataset(path), args.rounds or SETS.get(name, 1000)
        y = np.unique(data.y_train, return_inverse=True)[1]
        for kind in kinds.split(","):
            own = (name, data.X_train, y, kind, n_rounds)
            if "trees" in args.parts and kind != "rebel":
                found = trees_part(*own, args.repeats)
                trees += found
                print(trees_table(found), flush=True)
            if "fits" in args.parts:
                fits_part(*own[:4], 6, 1)  # waits for the compiler
                fits.append(fits_part(*own, args.fits))
                print(fits_table(fits[-1:]), flush=True)
    text = f"# Exact pruning, gpuboost {gpuboost.__version__}, {datetime.date.today()}\n"
    text += f"\n## Trees\n\n{trees_table(trees)}\n" * bool(trees) + f"\n## Fits\n\n{fits_table(fits)}\n" * bool(fits)
    text += f"\nLoad of the machine at the start: {load:.2f}.\n"
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"quick{'-mnist' if args.mnist else ''}-{datetime.date.today()}"
    path.with_suffix(".md").write_text(text)
    results = {"gpuboost": gpuboost.__version__, "load": load, "trees": trees, "fits": fits}
    path.with_suffix(".json").write_text(json.dumps(results, indent=1) + "\n")
    print(f"\n{text}\n{path.with_suffix('.md')}")


if __name__ == "__main__":
    main()

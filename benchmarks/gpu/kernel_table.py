"""The step kernels: every kernel's time in real rounds of boosting, beside what its shapes demand and what the card can do."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from benchmarks.gpu import counts, data, variants
from benchmarks.gpu.boosting import LEAVES, boost, fit_bins, problem_on
from benchmarks.gpu.data import Set
from benchmarks.gpu.machine import Card, Emulation, open_machine
from benchmarks.gpu.step import Step, run
from benchmarks.gpu.watched import Growth, Seen, WatchedBackend
from gpuboost.backends.cuda.growth import LEFT_CHILD, ROOT, SMALLER
from gpuboost.backends.cuda.matrix import CudaMatrix
from gpuboost.backends.frontier import LEFT, START, STOP
from gpuboost.binning import BinMapper
from gpuboost.boosters.base import Problem
from gpuboost.boosters.sampling import Sampling
from gpuboost.early_exit import EVERY, calibrated_rule
from gpuboost.ensemble import Ensemble
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct

WARM_UP = 3
"""Rounds that are not counted."""
ONCE = ("bin", "pack", "count_codes", "maximum")
"""Kernels of a beginning, not of every round."""
USED = ("apply", "predict", "predict_until", "flip", "set_bit", "row_weights", "choose_features")
"""Kernels that `use` runs."""
CLASSES: tuple[int | None, ...] = (None, 26, 2, 100)
"""Numbers of classes; None are the set's own."""


@dataclass(frozen=True)
class Timed:
    """A launch with its time and the least that it had to do."""

    name: str
    node: str
    rows: int
    seconds: float
    n_bytes: float
    n_adds: float


@dataclass(frozen=True)
class Facts:
    """What counting needs to know of a problem."""

    n_rows: int
    n_features: int
    kept: float

    @classmethod
    def of(cls, matrix: CudaMatrix) -> Facts:
        """Count what the histogram kernel cannot skip at the root."""
        usable = np.flatnonzero(matrix.usable)
        skipped = matrix.code_counts[usable, matrix.skipped[usable]]
        return cls(matrix.n_rows, len(usable), 1.0 - float(skipped.mean()) / matrix.n_rows)

    def node(self, rows: int | None) -> str:
        """Say which nodes a launch is counted among: the root, or those of middle size; "other" are neither."""
        if rows is None or rows == self.n_rows:
            return "" if rows is None else "root"
        return "mid" if self.n_rows // 16 <= rows <= self.n_rows // 4 else "other"

    def timed(self, seen: Seen, rows: int | None = None) -> Timed:
        """Return a launch with its time, for a node of so many rows or for all rows."""
        work = counts.Work(seen.arguments, self.n_rows if rows is None else rows, self.n_features, self.kept)
        n_bytes, n_adds = counts.bytes_of(seen.name, work), counts.adds_of(seen.name, work)
        return Timed(seen.name, self.node(rows), work.rows, seen.stopwatch.seconds, n_bytes, n_adds)


# ---- which node a launch was for ---------------------------------------------------------------------------------------------


def growth_rows(growth: Growth, seen: list[Seen], n_rows: int) -> Iterator[tuple[Seen, int | None]]:
    """Yield what a growth has queued, with the rows of the node that it is about; None if it is about no node."""
    step = -1
    for one in seen[growth.first : growth.stop]:
        step += one.name == "pop_best_leaf"
        left, right = children(growth, step) if step >= 0 else (n_rows, 0)
        member = one.arguments.get("member", one.arguments.get("first_member"))
        if one.name.startswith("partition"):
            yield one, left + right
        elif member is None:
            yield one, None
        elif member == ROOT:
            yield one, n_rows
        elif member == SMALLER or one.name.startswith("sweep_"):
            yield one, min(left, right)
        else:
            yield one, left if member == LEFT_CHILD else right


def children(growth: Growth, step: int) -> tuple[int, int]:
    """Return the rows of the children that a step has made."""
    nodes, left = growth.nodes, 2 * step + 1
    if not (nodes[:, LEFT] == left).any():
        return 0, 0
    n_rows = nodes[left : left + 2, STOP] - nodes[left : left + 2, START]
    return int(n_rows[0]), int(n_rows[1])


# ---- a problem ---------------------------------------------------------------------------------------------------------------


def measure(step: Step, backend: WatchedBackend, problem: Problem) -> tuple[list[Timed], dict[str, Any], Facts]:
    """Boost, and return all launches after the warm-up, the device's time for a growth, and what was counted.

    The time of a growth is that of its launches ("busy"), and from the first to the end of the last ("span"); were the latter
    far longer, the host would have been too slow to keep the device busy. "shares" are the kernels' parts of the former.
    """
    seen, marks = backend.gpu.seen, []
    facts = Facts.of(problem.data)
    timed: list[Timed] = []
    learner = HammingTree(step.choose(LEAVES, 5))
    callbacks = [lambda progress: marks.append((len(seen), len(backend.growths)))]
    training = boost(problem, step.choose(23, WARM_UP + 1), learner, callbacks)
    (first, first_growth), (stop, _) = marks[WARM_UP - 1], marks[-1]
    busy, span, inside = [], [], set[int]()
    shares: dict[str, float] = {}
    for growth in backend.growths[first_growth:]:
        inside |= set(range(growth.first, growth.stop))
        found = [facts.timed(one, rows) for one, rows in growth_rows(growth, seen, facts.n_rows)]
        busy.append(sum(one.seconds for one in found))
        span.append(seen[growth.first].stopwatch.until(seen[growth.stop - 1].stopwatch))
        timed += found
        for one in found:
            shares[one.name] = shares.get(one.name, 0.0) + one.seconds
    timed += [facts.timed(seen[i]) for i in range(first, stop) if i not in inside]
    use(step, backend, problem, Ensemble.from_trees(training.trees, problem.signs.shape[1]))
    timed += [facts.timed(one) for one in seen if one.name in ONCE]
    timed += [facts.timed(one) for one in seen[stop:] if one.name in USED]
    parts = {name: shares[name] / sum(busy) for name in sorted(shares, key=lambda name: -shares[name])}
    return timed, {"busy": median(busy), "span": median(span), "shares": parts}, facts


def use(step: Step, backend: WatchedBackend, problem: Problem, ensemble: Ensemble) -> None:
    """Run what boosting plain trees does not: prediction, and products from a part of the rows and features."""
    scores = backend.gpu.empty(problem.signs.shape, np.float64)
    backend.gpu.zero(scores)
    for _ in range(step.choose(20, 1)):
        backend.apply(ensemble.tree(0), problem.data)
        backend.predict(ensemble, problem.data, scores, 0, ensemble.n_trees)
        backend.gpu.zero(scores)
        backend.predict_until(
            ensemble, problem.data, scores, calibrated_rule(ensemble, EVERY, float("inf"))
        )  # all of the trees
    del scores
    boost(problem, step.choose(3, 1), StumpProduct(2), sampling=Sampling(weight_trim=0.9, max_features=0.5))


def rows_of(timed: list[Timed], ceilings: dict[str, float]) -> list[dict[str, Any]]:
    """Return a row of the table for each kernel and kind of node."""
    rows = []
    for key in dict.fromkeys((one.name, one.node) for one in timed if one.node != "other"):
        same = [one for one in timed if (one.name, one.node) == key]
        seconds = sum(one.seconds for one in same)
        rates = {"bytes": sum(one.n_bytes for one in same) / seconds, "adds": sum(one.n_adds for one in same) / seconds}
        row: dict[str, Any] = {
            "kernel": key[0],
            "node": key[1],
            "launches": len(same),
            "seconds": median(one.seconds for one in same),
            "rows": median(one.rows for one in same),
        }
        for what, rate in rates.items():
            row[f"{what}_per_second"] = rate
            row[f"{what}_share"] = rate / ceilings[what] if what in ceilings else None
        rows.append(row)
    return sorted(rows, key=lambda row: -row["seconds"])


def ceilings_of(step: Step) -> dict[str, float]:
    """Return what the step micro has measured: bytes and additions per second."""
    micro = step.earlier("micro")
    found = {}
    if "bytes_per_second" in micro.get("copy", {}):
        found["bytes"] = micro["copy"]["bytes_per_second"]
    free = [one for one in micro.get("atomics", []) if isinstance(one, dict) and one.get("ways") == 1]
    if free:
        found["adds"] = free[0]["adds_per_second"]
    return found


def share(value: float | None) -> str:
    return "   -" if value is None else f"{100 * value:3.0f}%"


def show(title: str, rows: list[dict[str, Any]]) -> None:
    print(f"\n{title}\n{'kernel':16} {'node':5} {'n':>4} {'us':>9} {'rows':>8} {'GB/s':>8} {'of':>4} {'Gadds/s':>8} {'of':>4}")
    for row in rows:
        print(
            f"{row['kernel']:16} {row['node']:5} {row['launches']:4d} {1e6 * row['seconds']:9.1f} {row['rows']:8.0f} "
            f"{row['bytes_per_second'] / 1e9:8.1f} {share(row['bytes_share'])} {row['adds_per_second'] / 1e9:8.1f} "
            f"{share(row['adds_share'])}"
        )


def table(step: Step, machine: Card | Emulation, one: Set, mapper: BinMapper, n_classes: int | None) -> dict[str, Any]:
    """Measure one problem."""
    X, y = data.whole(one)
    y = y if n_classes is None else data.with_classes(X, n_classes)
    title = f"{one.name} {X.shape} K={int(y.max()) + 1}"
    backend = WatchedBackend(machine, timed=True)
    problem = problem_on(backend, mapper, X, y)
    backend.load(mapper.transform(X))
    timed, growth, facts = measure(step, backend, problem)
    rows, ceilings = rows_of(timed, ceilings_of(step)), ceilings_of(step)
    show(title, rows)
    histograms = [row for row in rows if row["kernel"] == "histogram"]
    text = ", ".join(
        f"{row['node']} {1e6 * row['seconds']:.0f} us {row['adds_per_second'] / 1e12:.2f} T adds/s"
        f" ({share(row['adds_share']).strip()} of the ceiling)"
        for row in sorted(histograms, key=lambda row: -row["rows"])
    )
    parts = ", ".join(f"{name} {100 * part:.0f}%" for name, part in list(growth["shares"].items())[:4])
    step.say(f"{title}: a growth {1e3 * growth['busy']:.2f} ms (span {1e3 * growth['span']:.2f}: {parts}); histogram {text}")
    backend.gpu.is_timed = False
    tried = step.attempt(f"{title} variants", variants.measure, step, machine, backend, problem, title)
    backend.close()
    del backend, problem
    gc.collect()
    return {"rows": rows, "growth": growth, "facts": vars(facts), "ceilings": ceilings, "variants": bool(tried)}


def main(step: Step) -> None:
    machine = open_machine(step.dry_run)
    sets = {name: data.load(step, name) for name in data.SETS}
    mappers = {name: fit_bins(data.whole(one)[0]) for name, one in sets.items()}
    for n_classes in step.choose(CLASSES, (None, 33)):
        for name, one in sets.items():
            step.attempt(f"{name} {n_classes or 'own'}", table, step, machine, one, mappers[name], n_classes)


if __name__ == "__main__":
    run("kernels", main)

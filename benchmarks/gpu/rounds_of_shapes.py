"""The steps graphs and queued: rounds of several shapes, with growths as CUDA graphs and without, which must train the same.

``GPUBOOST_CUDA_GRAPHS``, which ``gpu_check.sh`` sets to 1 or 0, is read by the library in this process.
"""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu import data
from benchmarks.gpu.boosting import fit_bins, problem_on
from benchmarks.gpu.machine import Card, Emulation, open_machine
from benchmarks.gpu.step import Step, run
from benchmarks.gpu.watched import WatchedBackend
from gpuboost.backends.cuda.cupy_gpu import GRAPHS
from gpuboost.binning import BinMapper
from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster
from gpuboost.ensemble import Ensemble
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.training import train

WARM_UP = 3
"""Rounds that are not timed; the second round of a training may capture its graphs."""
COMPARED = WARM_UP + 2
"""Rounds whose trees must be the same in both steps."""


@dataclass(frozen=True)
class Shape:
    """A training.

    Attributes
    ----------
    title : str
    set : str
    leaves, tiny : int
        Of a tree, and of one in a dry run.
    abc : bool
        ABC-MART, whose trees of a round grow in lockstep, rather than AdaBoost.MH.
    """

    title: str
    set: str
    leaves: int
    tiny: int
    abc: bool = False

    def booster(self, step: Step) -> Booster[Any]:
        leaves = step.choose(self.leaves, self.tiny)
        if self.abc:
            return ABCBoost("mart", "search", 1, None, leaves, 1, 0.1)
        return AdaBoostMH(HammingTree(leaves), "single-label", "real")


SHAPES = (
    Shape("MNIST, 8 inner nodes", "mnist", 9, 4),
    Shape("Covertype, 16 inner nodes", "covtype", 17, 5),
    Shape("Covertype, 31 inner nodes", "covtype", 32, 6),
    Shape("ABC-MART on Covertype, 19 inner nodes", "covtype", 20, 3, abc=True),
    Shape("MNIST, 63 inner nodes", "mnist", 64, 7),
    Shape("Covertype, 254 inner nodes", "covtype", 255, 6),
    Shape("MNIST, 254 inner nodes", "mnist", 255, 8),
)

Binned = tuple[NDArray[Any], NDArray[Any], BinMapper]


def binned(step: Step) -> dict[str, Binned]:
    """Return the rows that the model of `benchmarks.gpu.static` is of: MNIST's, and four fifths of Covertype's."""
    sets = {}
    for name in data.SETS:
        X, y = data.whole(data.load(step, name))
        if name == "covtype":
            X, y = X[: len(X) * 4 // 5], y[: len(X) * 4 // 5]
        sets[name] = (X, np.unique(y, return_inverse=True)[1], fit_bins(X))
    return sets


def measure(step: Step, machine: Card | Emulation, shape: Shape, rows: Binned) -> dict[str, Any]:
    """Return the time of a round, what it queues and waits for, the device's memory, and the digest of the first trees."""
    X, y, mapper = rows
    backend = WatchedBackend(machine, timed=False)
    end, clock, counts = time.perf_counter() + step.left(0.16), list[float](), list[tuple[int, int]]()

    def mark(progress: Any) -> bool:
        clock.append(time.perf_counter())
        counts.append((backend.gpu.n_launches, backend.gpu.n_waits))
        return clock[-1] > end and len(clock) > COMPARED

    problem = problem_on(backend, mapper, X, y)
    training = train(shape.booster(step), problem, n_rounds=step.choose(100, COMPARED), callbacks=[mark])
    first = [tree for trees in training.rounds[:COMPARED] for tree in trees]
    n_rounds = len(clock) - WARM_UP
    launches, waits = ((last - early) / n_rounds for last, early in zip(counts[-1], counts[WARM_UP - 1], strict=True))
    found = {
        "round_seconds": median(np.diff(clock[WARM_UP - 1 :]).tolist()),
        "launches": launches,
        "waits": waits,
        "rounds": len(clock),
        "peak_bytes": backend.gpu.peak_bytes,
        "digest": Ensemble.from_trees(first, problem.n_classes).digest(),
    }
    del problem
    backend.close()
    gc.collect()
    return found


def show(step: Step, shape: Shape, found: dict[str, Any], other: dict[str, Any]) -> None:
    """Say what was found, beside what the other step has."""
    text = f"{found['launches']:.0f} launches, {found['waits']:.1f} waits, peak {found['peak_bytes'] / 2**20:.0f} MiB"
    if "round_seconds" in other:
        text += f"; with graphs {1e3 * other['round_seconds']:.2f} ms"
        if other["digest"] != found["digest"]:
            step.problem(f"{shape.title}: other trees with graphs than without")
    step.say(f"{shape.title}: {1e3 * found['round_seconds']:.2f} ms/round, {text}")


def main(step: Step) -> None:
    machine, rows = open_machine(step.dry_run), binned(step)
    others = step.earlier("graphs") if step.name == "queued" else {}
    for shape in step.choose(SHAPES, SHAPES[3:5]):
        found = step.attempt(shape.title, measure, step, machine, shape, rows[shape.set])
        if found:
            show(step, shape, found, others.get(shape.title, {}))


if __name__ == "__main__":
    run("queued" if os.environ.get(GRAPHS) == "0" else "graphs", main)

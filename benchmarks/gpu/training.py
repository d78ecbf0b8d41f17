"""The step training: the model beside the CPU backend's, the time of a round and where it goes, errors, memory."""

from __future__ import annotations

import gc
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

import gpuboost
from benchmarks.gpu import data
from benchmarks.gpu.boosting import LEAVES, boost, problem_on
from benchmarks.gpu.data import Set
from benchmarks.gpu.machine import Card, Emulation, open_machine
from benchmarks.gpu.step import Step, run
from benchmarks.gpu.watched import WatchedBackend
from gpuboost.backends.base import Backend
from gpuboost.ensemble import Ensemble
from gpuboost.learners.hamming_tree import HammingTree

WARM_UP = 5
"""Rounds that are not timed."""
LOST_BYTES = 8 << 20
"""So much memory a fit may leave in use: CUDA loads modules and keeps its own pools."""
EXACT = ("train_loss", "train_error", "edge")
"""What the history says that does not depend on the device."""

Model = Any


def fit(step: Step, one: Set, device: str, rounds: int, seconds: float, **more: Any) -> Model:
    """Train for so many rounds, or until the time is up."""
    end = time.perf_counter() + seconds
    return gpuboost.fit(
        one.X,
        one.y,
        device=device,
        n_estimators=rounds,
        max_leaf_nodes=step.choose(LEAVES, 5),
        random_state=0,
        callbacks=[lambda progress: time.perf_counter() > end],
        **more,
    )


def warm_up(step: Step, machine: Card | Emulation, sets: Sequence[Set]) -> None:
    """Load or compile the kernels, and let CUDA take the memory that it keeps."""
    for one in sets:
        fit(step, data.head(one, step.choose(2000, 60)), machine.device, 2, 60)


# ---- the same model ----------------------------------------------------------------------------------------------------------


def digest(model: Model, n_trees: int) -> str:
    """Return the digest of the model's first trees."""
    return Ensemble.from_trees(model.ensemble_.trees()[:n_trees], model.ensemble_.n_classes).digest()


def compare(step: Step, one: Set, models: dict[str, Model]) -> dict[str, Any]:
    """Return the digests of the rounds that all models have; a difference is a problem."""
    n_rounds = min(model.n_estimators_ for model in models.values())
    digests = {device: digest(model, n_rounds) for device, model in models.items()}
    histories = {device: [model.history_[key][:n_rounds] for key in EXACT] for device, model in models.items()}
    first, *others = models
    same = all(digests[o] == digests[first] and histories[o] == histories[first] for o in others)
    if not same:
        trees = {device: model.ensemble_.trees() for device, model in models.items()}
        equal = [t for t in range(n_rounds) if all(digest_of(trees[o][t]) == digest_of(trees[first][t]) for o in others)]
        broken = next((t for t in range(n_rounds) if t not in equal), None)
        step.problem(f"{one.name}: {first} and {', '.join(others)} train different models, first in tree {broken}")
    return {"rounds": n_rounds, "same": same, "digests": digests}


def digest_of(tree: Any) -> str:
    return Ensemble.from_trees([tree], tree.values.shape[1]).digest()


def round_times(model: Model) -> dict[str, float]:
    """Return the time of a round, and of what comes before the first."""
    seconds = np.diff(model.history_["seconds"])[WARM_UP:]
    if len(seconds) == 0:
        return {"rounds": model.n_estimators_}
    low, middle, high = np.quantile(seconds, [0.1, 0.5, 0.9])
    before = model.history_["seconds"][0]
    return {"rounds": model.n_estimators_, "median": middle, "low": low, "high": high, "until_first_round": before}


@dataclass(frozen=True)
class Bench:
    """The device, the sizes, and the models that it has trained, by set."""

    step: Step
    machine: Card | Emulation
    models: dict[str, Model]


def card(bench: Bench, one: Set) -> dict[str, Any]:
    """Train on the device."""
    step, machine = bench.step, bench.machine
    gc.collect()
    before = machine.used_bytes()
    model = fit(step, one, machine.device, step.choose(1000, 8), step.left(0.12))
    gc.collect()
    lost = machine.used_bytes() - before
    bench.models[one.name] = model
    times = round_times(model)
    text = f"{1e3 * times['median']:.2f} ms/round" if "median" in times else "too few rounds"
    step.say(f"{one.name} ({one.origin}) {one.X.shape}: {machine.device} {text} ({times['rounds']:.0f} rounds)")
    if lost > LOST_BYTES:
        step.problem(f"{one.name}: {lost:,} bytes of the device are still in use after the fit")
    return {"times": times, "bytes_lost": lost, "shape": one.X.shape, "origin": one.origin}


def cpu(bench: Bench, one: Set) -> dict[str, Any]:
    """Train on the CPU, and compare."""
    step, model = bench.step, bench.models[one.name]
    fit(step, data.head(one, step.choose(2000, 60)), "cpu", 2, 60)
    models = {bench.machine.device: model, "cpu": fit(step, one, "cpu", model.n_estimators_, step.left(0.25))}
    compared, times = compare(step, one, models), round_times(models["cpu"])
    text = f"cpu {1e3 * times['median']:.2f} ms/round; " if "median" in times else ""
    verdict = "same model" if compared["same"] else "DIFFERENT MODELS"
    step.say(f"{one.name}: {text}{verdict} over {compared['rounds']} rounds")
    return {"times": times, **compared}


def prediction(bench: Bench, one: Set) -> dict[str, Any]:
    """Return how many rows a second the model predicts, from the host's memory and back."""
    step, model = bench.step, bench.models[one.name]
    X, seconds = data.whole(one)[0], []
    for _ in range(step.choose(6, 2)):
        begun = time.perf_counter()
        model.predict(X)
        seconds.append(time.perf_counter() - begun)
    rate = len(X) / median(seconds[1:])  # the first may compile
    step.say(f"{one.name} prediction: {rate:,.0f} rows/s of {len(X)} by {model.n_estimators_} trees")
    return {"rows_per_second": rate, "rows": len(X), "trees": model.n_estimators_}


# ---- where the time goes -----------------------------------------------------------------------------------------------------


def watch(bench: Bench, one: Set, rounds: int, timed: bool) -> tuple[WatchedBackend, float, list[int]]:
    """Boost on a watched device.

    Return it, the seconds of the rounds after the warm-up, and how much had been seen by the end of each round.
    """
    backend, learner = WatchedBackend(bench.machine, timed=timed), HammingTree(bench.step.choose(LEAVES, 5))
    marks: list[int] = []
    clock: list[float] = []

    def mark(progress: Any) -> None:
        marks.append(len(backend.gpu.seen))
        clock.append(time.perf_counter())
        if progress.n_rounds == WARM_UP:
            backend.gpu.waited, backend.gpu.n_waits, backend.gpu.n_launches = 0.0, 0, 0

    boost(problem_on(backend, bench.models[one.name].bin_mapper_, one.X, one.y), rounds, learner, [mark])
    return backend, clock[-1] - clock[WARM_UP - 1], marks


def profile(bench: Bench, one: Set) -> dict[str, Any]:
    """Return how a round's time divides between device and host, and the device's among kernels."""
    step, rounds = bench.step, bench.step.choose(60, WARM_UP + 2)
    plain, seconds, _ = watch(bench, one, rounds, timed=False)
    n = rounds - WARM_UP
    found: dict[str, Any] = {
        "round_seconds": seconds / n,
        "waited_seconds": plain.gpu.waited / n,
        "waits": plain.gpu.n_waits / n,
        "launches": plain.gpu.n_launches / n,
        "peak_bytes": plain.gpu.peak_bytes,
    }
    close(plain)
    timed, _, marks = watch(bench, one, step.choose(30, WARM_UP + 2), timed=True)
    n = len(marks) - WARM_UP
    of_kernel: dict[str, float] = {}
    for seen in timed.gpu.seen[marks[WARM_UP - 1] : marks[-1]]:
        of_kernel[seen.name] = of_kernel.get(seen.name, 0.0) + seen.stopwatch.seconds / n
    close(timed)
    found["device_seconds"] = sum(of_kernel.values())
    found["device_seconds_of"] = dict(sorted(of_kernel.items(), key=lambda item: -item[1]))
    largest = ", ".join(f"{name} {1e3 * s:.3f}" for name, s in list(found["device_seconds_of"].items())[:5])
    step.say(
        f"{one.name} a round: {1e3 * found['round_seconds']:.2f} ms, the device works {1e3 * found['device_seconds']:.2f} "
        f"({largest}), the host waits {1e3 * found['waited_seconds']:.2f} in {found['waits']:.1f} turns, "
        f"{found['launches']:.0f} launches; peak {found['peak_bytes'] / 2**20:.0f} MiB"
    )
    return found


def close(backend: Backend) -> None:
    backend.close()
    gc.collect()


# ---- errors ------------------------------------------------------------------------------------------------------------------


def curve(bench: Bench, one: Set) -> dict[str, Any]:
    """Return the rounds and the training time to given test errors; the time is that of the fit without a test set."""
    step, device, timed = bench.step, bench.machine.device, bench.models[one.name]
    model = fit(step, one, device, timed.n_estimators_, step.left(0.15), eval_set=(one.X_test, one.y_test))
    compared = compare(step, one, {device: timed, "with a test set": model})
    errors, reached = model.history_["valid_error"], {}
    for target in one.targets:
        t = next((t for t, error in enumerate(errors) if error <= target), None)
        reached[str(target)] = None if t is None else {"rounds": t + 1, "seconds": timed.history_["seconds"][t]}
    text = ", ".join(f"{100 * float(e):g} %: {r['rounds']} ({r['seconds']:.1f} s)" for e, r in reached.items() if r)
    step.say(f"{one.name} test error {100 * min(errors):.2f} % at best of {len(errors)}; rounds to {text or 'no target'}")
    return {"reached": reached, "errors": errors[:: max(1, len(errors) // 50)], "best": min(errors), **compared}


def main(step: Step) -> None:
    bench = Bench(step, open_machine(step.dry_run), {})
    sets = [data.load(step, name) for name in data.SETS]
    step.attempt("warm-up", warm_up, step, bench.machine, sets)
    for measure in (card, profile, prediction, curve, cpu):  # the CPU is slow, and last
        for one in sets:
            if measure is card or one.name in bench.models:
                step.attempt(f"{one.name} {measure.__name__}", measure, bench, one)


if __name__ == "__main__":
    run("training", main)

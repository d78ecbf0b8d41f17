"""The step micro: the card's ceilings, what a launch and a wait cost, and three ways to queue the same growth."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.gpu import queueing
from benchmarks.gpu.machine import Card, Emulation, open_machine
from benchmarks.gpu.step import Step, run
from gpuboost.backends.cuda.gpu import Gpu
from gpuboost.backends.cuda.kernels import STRUCTS
from gpuboost.backends.cuda.launch import Launch

UNROLLED = 8
"""As in ``micro.cu``."""
WARPS = 32
BLOCKS_EACH = 2
"""Blocks of 32 warps on a multiprocessor: all that it holds."""


def atomics(machine: Card | Emulation, gpu: Gpu, ways: int, same_address: bool, repeats: int, times: int) -> dict[str, Any]:
    """Return how fast the card adds in shared memory when ``ways`` lanes of every warp meet."""
    n_blocks = BLOCKS_EACH * gpu.limits.n_multiprocessors
    cycles, sink = gpu.empty((n_blocks,), np.int64), gpu.empty((n_blocks,), np.int32)
    scalars = (np.int32(n) for n in (ways, same_address, 3, repeats))
    launch = Launch(machine.kernels["micro_atomics"], (n_blocks, 1, 1), 32 * WARPS, (cycles, sink, *scalars), 0)
    launch.queue(gpu)
    seconds, taken = [], []
    for _ in range(times):
        machine.backlog()
        with machine.timed() as stopwatch:
            launch.queue(gpu)
        taken.append(float(np.median(gpu.get(cycles))))
        seconds.append(stopwatch.seconds)
    instructions = UNROLLED * repeats * WARPS * BLOCKS_EACH  # of a multiprocessor
    return {
        "ways": ways,
        "meet in": "one word" if same_address else "one bank",
        "adds_per_second": 32 * instructions * gpu.limits.n_multiprocessors / median(seconds),
        "warp_instructions_per_cycle": instructions / median(taken) if median(taken) > 0 else None,
        "seconds": median(seconds),
    }


def all_atomics(step: Step, machine: Card | Emulation) -> list[dict[str, Any]]:
    gpu, repeats, times = machine.open_gpu(), step.choose(400, 1), step.choose(9, 1)
    cases = [(1, False), *((ways, same) for same in (False, True) for ways in (2, 4, 32))]
    found = [atomics(machine, gpu, ways, same, max(1, repeats // ways), times) for ways, same in cases]
    step.say("shared int32 atomicAdd   adds/s  warp instructions per cycle and multiprocessor")
    for one in found:
        rate, warps = one["warp_instructions_per_cycle"], one["adds_per_second"] / 32 / gpu.limits.n_multiprocessors
        text = "-" if rate is None else f"{rate:.3f} (at {warps / rate / 1e9:.2f} GHz)"
        step.say(f"  {one['ways']:2d} lanes in {one['meet in']:8s}  {one['adds_per_second'] / 1e12:7.3f} T  {text}")
    return found


def copy_rate(step: Step, machine: Card | Emulation) -> dict[str, Any]:
    """Return the bytes read and written per second by a copy within the device's memory."""
    n_bytes = 256 << 20
    copy, seconds = machine.copier(n_bytes), []
    for _ in range(12):
        with machine.timed() as stopwatch:
            copy()
        seconds.append(stopwatch.seconds)
    rate = 2 * n_bytes / median(seconds)
    step.say(f"copy within device memory  {rate / 1e12:.2f} TB/s, read and written")
    return {"bytes": 2 * n_bytes, "bytes_per_second": rate}


def host_seconds(machine: Card | Emulation, queue: Callable[[], Any], times: int) -> float:
    """Return what the host needs to queue something, from runs of 100."""
    taken = []
    for _ in range(times):
        machine.finish()
        begun = time.perf_counter()
        for _ in range(100):
            queue()
        taken.append((time.perf_counter() - begun) / 100)
    machine.finish()
    return median(taken)


def launches(step: Step, machine: Card | Emulation) -> dict[str, Any]:
    """Return what a launch costs the host, without arguments and with as many as ``histogram`` has."""
    gpu, times = machine.open_gpu(), step.choose(15, 1)
    array, sizes = gpu.empty((1,), np.int32), np.zeros((), STRUCTS["HistogramSizes"])
    many = (*[array] * 9, sizes)
    found: dict[str, Any] = {}
    for name, arguments in (("micro_nothing", ()), ("micro_many", many)):
        launch = Launch(machine.kernels[name], (1, 1, 1), 32, arguments, 0)
        found[name] = {"Launch.queue": host_seconds(machine, partial(launch.queue, gpu), times)}
        step.attempt(f"raw {name}", add_raw, machine, found[name], name, arguments, times)
    step.say("launch, host time  " + ", ".join(f"{n[6:]}: {micros(found[n])}" for n in found))
    return found


def micros(found: dict[str, float]) -> str:
    return " ".join(f"{name} {1e6 * seconds:.1f} us" for name, seconds in found.items())


def add_raw(machine: Card | Emulation, found: dict[str, float], name: str, arguments: tuple[Any, ...], times: int) -> float:
    call = machine.raw(machine.kernels[name])
    found["CuPy"] = host_seconds(machine, lambda: call((1,), (32,), arguments), times)
    return found["CuPy"]


def waiting(step: Step, machine: Card | Emulation) -> dict[str, float]:
    """Return what it costs to wait for nothing, and to fetch 1 KB; the card's for an empty kernel."""
    gpu = machine.open_gpu()
    array, nothing = gpu.empty((1024,), np.uint8), Launch(machine.kernels["micro_nothing"], (1, 1, 1), 32, (), 0)

    def launch_and_get() -> None:
        nothing.queue(gpu)
        gpu.get(array)

    actions: dict[str, Callable[[], Any]] = {"finish": machine.finish, "get 1 KB": partial(gpu.get, array)}
    actions["launch and get 1 KB"] = launch_and_get
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for _ in range(step.choose(300, 3)):
        for name, action in actions.items():
            begun = time.perf_counter()
            action()
            taken[name].append(time.perf_counter() - begun)
    machine.backlog()
    stopwatches = []
    for _ in range(step.choose(100, 3)):
        with machine.timed() as stopwatch:
            nothing.queue(gpu)
        stopwatches.append(stopwatch)
    found = {name: median(times) for name, times in taken.items()}
    found["empty kernel"] = median(s.seconds for s in stopwatches)
    found["empty pair of events, taken off every kernel's time"] = machine.empty
    step.say(f"waiting  {micros(found)}")
    return found


def main(step: Step) -> None:
    machine = open_machine(step.dry_run)
    step.attempt("atomics", all_atomics, step, machine)
    step.attempt("copy", copy_rate, step, machine)
    step.attempt("launches", launches, step, machine)
    step.attempt("waiting", waiting, step, machine)
    step.attempt("growth", queueing.three_ways, step, machine)


if __name__ == "__main__":
    run("micro", main)

"""The step adoption: arrays of CuPy and PyTorch that another stream is still writing, read where they lie."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gpuboost
from benchmarks.gpu import data
from benchmarks.gpu.data import Set
from benchmarks.gpu.machine import BACKLOG_CYCLES, Card, Emulation, open_machine
from benchmarks.gpu.step import Skip, Step, run

Fit = Callable[[Any], Any]


def from_cupy(machine: Card, one: Set, fit: Fit) -> Any:
    """Fit in a stream of the caller's, in which the array is written some milliseconds later."""
    cupy = machine.cupy
    source, X = cupy.asarray(one.X), cupy.empty(one.X.shape, one.X.dtype)
    X.data.memset(0, X.nbytes)
    machine.finish()
    with cupy.cuda.Stream(non_blocking=True):
        machine.backlog()
        X.data.copy_from_device_async(source.data, X.nbytes)
        return fit(X)


def from_torch(machine: Card, one: Set, fit: Fit) -> Any:
    """Fit in a stream of PyTorch's, which CuPy does not know: it has to wait for it."""
    try:
        import torch
    except ImportError as error:
        raise Skip("there is no PyTorch") from error
    if not torch.cuda.is_available():
        raise Skip("this PyTorch has no CUDA")
    source = torch.as_tensor(one.X).cuda()
    X = torch.zeros_like(source)
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda._sleep(BACKLOG_CYCLES)
        X.copy_(source, non_blocking=True)
        return fit(X)


def adopt(machine: Card, one: Set, fit: Fit, way: Callable[[Card, Set, Fit], Any]) -> dict[str, Any]:
    """Return the digest of a model, and the time of the second fit."""
    way(machine, one, fit)
    begun = time.perf_counter()
    model = way(machine, one, fit)
    return {"digest": model.ensemble_.digest(), "seconds": time.perf_counter() - begun}


def main(step: Step) -> None:
    machine = open_machine(step.dry_run)
    if isinstance(machine, Emulation):
        raise Skip("the emulated device has no streams")
    one = data.head(data.load(step, "mnist"), 20_000)

    def fit(X: Any) -> Any:
        return gpuboost.fit(X, one.y, device=machine.device, n_estimators=3, max_leaf_nodes=5, random_state=0)

    expected = fit(one.X).ensemble_.digest()
    step.note("host", {"digest": expected})
    for name, way in {"CuPy": from_cupy, "PyTorch": from_torch}.items():
        found = step.attempt(name, adopt, machine, one, fit, way)
        if not found:
            step.say(f"{name}: {step.found.get(name, {}).get('skipped', 'failed')}")
            continue
        same = found["digest"] == expected
        step.say(f"{name}: {'same model' if same else 'ANOTHER MODEL'} from a side stream, {found['seconds']:.2f} s")
        if not same:
            step.problem(f"an array of {name} on a side stream is read before it is written")


if __name__ == "__main__":
    run("adoption", main)

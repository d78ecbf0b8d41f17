"""The backends that must give what the NumPy backend gives, and how to open them."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import growth
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.gpu import Limits
from gpuboost.backends.cuda.plan import GrowthPlan, plan_growth
from gpuboost.errors import DeviceMemoryError, DeviceUnavailableError
from tests.cuda_on_cpu.cupy_arrays import CupyArraysGpu
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.problems import cpu_backend

Opener = Callable[[], AbstractContextManager[Backend]]
Once = Callable[..., Any]
"""See the fixture `once`."""

ROOMY = Limits(n_multiprocessors=2, shared_per_block=227 * 1024, shared_per_multiprocessor=1024 * 1024)
"""All four features of a word in shared memory, and small blocks."""
SMALL = Limits(n_multiprocessors=3, shared_per_block=64 * 1024, shared_per_multiprocessor=256 * 1024)
"""Two features of a word at a time with 256 bins, four with few."""
LEAST = Limits(n_multiprocessors=1, shared_per_block=48 * 1024, shared_per_multiprocessor=192 * 1024)
"""One feature of a word at a time with 256 bins."""


def emulated(order: str, limits: Limits = ROOMY, seed: int = 0, *, linked: bool = False) -> CudaBackend:
    """The CUDA backend with its kernels compiled for the CPU, the threads run in the given order."""
    return CudaBackend(EmulatedGpu(order=order, seed=seed, limits=limits, linked=linked))


def tight_plan(*arguments: Any) -> GrowthPlan:
    """A plan for nearly the least memory that will do: features come in many launches, and no histogram is kept."""
    *problem, _, limits, wide = arguments
    for bits in range(8, 40):
        try:
            return plan_growth(*problem, 2**bits, limits, wide)
        except DeviceMemoryError:
            continue
    raise AssertionError(problem)


@contextmanager
def tight(order: str, limits: Limits, seed: int = 0) -> Iterator[Backend]:
    """As `emulated`, on a device that is nearly full."""
    with mock.patch.object(growth, "plan_growth", tight_plan), emulated(order, limits, seed) as backend:
        yield backend


@contextmanager
def cuda() -> Iterator[Backend]:
    """The CUDA backend on the card, or a skipped test; with REQUIRE_GPU=1 a failed one."""
    from gpuboost.devices import open_backend

    try:
        backend = open_backend("cuda")
    except DeviceUnavailableError as error:
        if os.environ.get("REQUIRE_GPU") == "1":
            pytest.fail(f"REQUIRE_GPU=1, but {error}")
        pytest.skip(str(error))
    with backend:
        yield backend


CPU: dict[str, Opener] = {f"cpu-{n}": lambda n=n: cpu_backend(n) for n in (1, 2, 4)}  # type: ignore[misc]
EMULATED: dict[str, Opener] = {
    "emulated-forward": lambda: emulated("forward"),
    "emulated-reverse": lambda: emulated("reverse", SMALL),
    "emulated-random": lambda: emulated("random", LEAST, seed=1),
    "emulated-tight": lambda: tight("random", ROOMY, seed=2),
    "emulated-tight-least": lambda: tight("reverse", LEAST),
}
if importlib.util.find_spec("cupy"):
    EMULATED["emulated-cupy"] = lambda: CudaBackend(CupyArraysGpu(limits=SMALL))
VARIANTS = tuple(EMULATED)[1:]
"""By default a case meets the first of the emulated devices and one of these in turn, see `conftest.py`."""
CUDA: dict[str, Opener] = {"cuda": cuda}
SLOW = (CPU | EMULATED).keys() - {"cpu-2", "emulated-forward"}
"""Backends whose tests are marked slow: each has a sibling of its kind that is not."""


def thinned(values: Iterable[Any], step: int, breadth: float = 1) -> list[Any]:
    """Parameters of a test, of which every ``step``-th is in the fast part, and besides one in ``breadth`` in the default run.

    The latter may be no whole number, so that the cases that are kept go with no period of the parameters. Of a test with
    several, the values are tuples.
    """
    values = list(values)
    kept = {int(k * breadth) for k in range(len(values))}

    def marks(i: int) -> list[pytest.MarkDecorator]:
        if i % step == 0:
            return []
        return [pytest.mark.slow] if i in kept else [pytest.mark.exhaustive]

    return [pytest.param(*(v if isinstance(v, tuple) else (v,)), marks=marks(i)) for i, v in enumerate(values)]


def candidates(device: str | None) -> dict[str, Opener]:
    """The backends to test: those of every machine, or with ``--device cuda`` the card."""
    return CUDA if device == "cuda" else CPU | EMULATED

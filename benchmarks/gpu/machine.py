"""The device that is measured: a card, or for dry runs the tests' emulated one. Both tell time in the same way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Protocol, Self

import numpy as np

from benchmarks.gpu.step import Skip, is_lost
from gpuboost import devices
from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import kernels
from gpuboost.backends.cuda.cupy_gpu import GRAPHS
from gpuboost.backends.cuda.gpu import Gpu
from gpuboost.backends.cuda.kernels import Kernel, signature

MICRO = {
    "micro_atomics": "cycles:i8* sink:i4* ways:i4 same_address:i4 value:i4 repeats:i4",
    "micro_nothing": "",
    "micro_many": " ".join([f"a{i}:i4*?" for i in range(9)] + ["sizes:HistogramSizes"]),
    "micro_spin": "cycles:i8",
}
BACKLOG_CYCLES = 12_000_000
"""For so long the card is kept busy while work is queued, so that kernels are timed back to back: about 6 ms."""
EMULATED_BYTES = 1 << 30
SHORTEST = 1e-8
"""What is as short as an empty pair of events takes so many seconds, so that rates are finite."""
EMPTY_PAIRS = 101


def micro_kernels() -> tuple[dict[str, Kernel], str]:
    """Return the kernels of ``micro.cu`` and its text."""
    text = (Path(__file__).parent / "micro.cu").read_text(encoding="utf-8")
    return {name: Kernel(name, "micro", signature(arguments), 1024) for name, arguments in MICRO.items()}, text


class Stopwatch(Protocol):
    """The time that the device needs for what is queued inside the ``with`` block."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *exception: object) -> None: ...

    @property
    def seconds(self) -> float:
        """The time; it waits for the device."""
        ...

    def until(self, later: Any) -> float:
        """Return the time from its beginning to another's end."""
        ...


class Machine(Protocol):
    """A device."""

    device: str
    """Its name for `gpuboost.fit`."""
    empty: float
    """Seconds that a stopwatch takes off: what it would measure around nothing."""

    def open_gpu(self) -> Gpu:
        """Return it anew, with memory of its own."""
        ...

    def timed(self) -> Stopwatch:
        """Return a stopwatch."""
        ...

    def finish(self) -> None:
        """Wait for all that is queued."""
        ...

    def backlog(self) -> None:
        """Keep the device busy for some milliseconds, so that what is queued next runs without gaps."""
        ...

    def define(self, kernel: Kernel, source: str) -> None:
        """Make a kernel that is not registered ready for launches, from its CUDA C."""
        ...

    def held_bytes(self, gpu: Gpu) -> int:
        """Return the memory that a device object holds."""
        ...

    def used_bytes(self) -> int:
        """Return the memory that is in use on the device, by whomever."""
        ...

    def copier(self, n_bytes: int) -> Callable[[], None]:
        """Return a function that queues a copy within the device's memory."""
        ...

    def raw(self, kernel: Kernel) -> Callable[..., None]:
        """Return the function below `Gpu.launch`, of (grid, block, arguments)."""
        ...


class EventStopwatch:
    """Two CUDA events.

    Parameters
    ----------
    cuda : module
        `cupy.cuda`.
    empty : float
        Seconds that a pair of events measures with nothing between them; they are taken off.
    """

    def __init__(self, cuda: Any, empty: float) -> None:
        self.cuda, self.empty, self.begun, self.ended = cuda, empty, cuda.Event(), cuda.Event()

    def __enter__(self) -> Self:
        self.begun.record()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.record()

    @property
    def seconds(self) -> float:
        return self.until(self)

    def until(self, later: Any) -> float:
        later.ended.synchronize()
        return max(float(self.cuda.get_elapsed_time(self.begun, later.ended)) / 1e3 - self.empty, SHORTEST)


class WallStopwatch:
    """The host's clock: an emulated launch returns when it is done."""

    def __enter__(self) -> Self:
        self.begun = time.perf_counter()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended = time.perf_counter()

    @property
    def seconds(self) -> float:
        return self.until(self)

    def until(self, later: Any) -> float:
        return float(later.ended - self.begun)


class Card:
    """The current CUDA device, through CuPy."""

    device = "cuda"

    def __init__(self) -> None:
        devices.open_backend("cuda").close()  # raises, with what to do, if it cannot be used
        import cupy

        self.cupy, self.index = cupy, int(cupy.cuda.runtime.getDevice())
        self.not_compiled: str | None = None
        self._kernels, text = micro_kernels()
        try:
            for kernel in self._kernels.values():
                self.define(kernel, text)
        except Exception as error:
            if is_lost(error):
                raise
            self.not_compiled = f"only fatbins run here: {type(error).__name__}: {error}"[:200]
        self.empty = 0.0
        self.empty = self._empty_pair()

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels of ``micro.cu``, which has no fatbin."""
        if self.not_compiled is not None:
            raise Skip(self.not_compiled)
        return self._kernels

    def _empty_pair(self) -> float:
        """Return the seconds that two events measure with nothing between them."""
        self.backlog()
        pairs = []
        for _ in range(EMPTY_PAIRS):
            with self.timed() as stopwatch:
                pass
            pairs.append(stopwatch)
        return median(pair.seconds for pair in pairs)

    def open_gpu(self) -> Gpu:
        from gpuboost.backends.cuda.cupy_gpu import CupyGpu

        return CupyGpu(self.index)

    def timed(self) -> Stopwatch:
        return EventStopwatch(self.cupy.cuda, self.empty)

    def finish(self) -> None:
        self.cupy.cuda.get_current_stream().synchronize()

    def backlog(self) -> None:
        if self.not_compiled is None:
            self.raw(self._kernels["micro_spin"])((1,), (32,), (np.int64(BACKLOG_CYCLES),))

    def define(self, kernel: Kernel, source: str) -> None:
        from gpuboost.backends.cuda.cupy_gpu import FUNCTIONS, Function

        if self.not_compiled is not None:
            raise Skip(self.not_compiled)
        module = self.cupy.RawModule(code=source, options=kernels.OPTIONS)
        FUNCTIONS[self.index, kernel.file, kernel.name] = Function.of(module.get_function(kernel.name))

    def held_bytes(self, gpu: Gpu) -> int:
        return int(gpu.pool.blocks.total_bytes())  # type: ignore[attr-defined]

    def used_bytes(self) -> int:
        free, total = self.cupy.cuda.runtime.memGetInfo()
        return int(total - free)

    def copier(self, n_bytes: int) -> Callable[[], None]:
        gpu = self.open_gpu()
        source = gpu.put(np.frombuffer(np.random.default_rng(0).bytes(n_bytes), np.uint8))
        target = gpu.empty((n_bytes,), np.uint8)
        return lambda: target.data.copy_from_device_async(source.data, n_bytes)

    def raw(self, kernel: Kernel) -> Callable[..., None]:
        from gpuboost.backends.cuda.cupy_gpu import FUNCTIONS

        call: Callable[..., None] = FUNCTIONS[self.index, kernel.file, kernel.name].call
        return call


class Emulation:
    """The device of the tests: the same kernels as C++ on the CPU. Its times say nothing about a card."""

    device = "emulated"
    empty = 0.0

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.gpus: list[Gpu] = []
        self.kernels, self.sources["micro"] = micro_kernels()

    def open_gpu(self) -> Gpu:
        from tests.cuda_on_cpu.gpu import EmulatedGpu

        def source(file: str) -> str:
            return self.sources.get(file) or kernels.source(file)

        gpu = EmulatedGpu(memory=EMULATED_BYTES, source=source, graphs=os.environ.get(GRAPHS) != "0")
        self.gpus.append(gpu)
        return gpu

    def timed(self) -> Stopwatch:
        return WallStopwatch()

    def finish(self) -> None:
        """Nothing is queued."""

    def backlog(self) -> None:
        """There are no gaps."""

    def define(self, kernel: Kernel, source: str) -> None:
        self.sources[kernel.file] = source

    def held_bytes(self, gpu: Gpu) -> int:
        return EMULATED_BYTES - int(gpu.free_bytes())

    def used_bytes(self) -> int:
        return sum(self.held_bytes(gpu) for gpu in self.gpus)

    def copier(self, n_bytes: int) -> Callable[[], None]:
        raise Skip("the emulated device has no copies of its own")

    def raw(self, kernel: Kernel) -> Callable[..., None]:
        raise Skip("there is no CuPy below the emulated device")


def open_machine(dry_run: bool) -> Card | Emulation:
    """Return the device that is measured, known to `gpuboost.fit` by its name."""
    if not dry_run:
        return Card()
    machine = Emulation()
    open_backend(machine.device, lambda: cuda_backend(machine.open_gpu()))
    return machine


def cuda_backend(gpu: Gpu) -> Backend:
    """Return the CUDA backend on a device."""
    from gpuboost.backends.cuda.backend import CudaBackend

    return CudaBackend(gpu)


def open_backend(name: str, opener: Callable[[], Backend]) -> None:
    """Let `gpuboost.fit` know a device by that name."""
    devices.OPENERS[name] = lambda index: opener()

"""A `gpuboost.backends.cuda.gpu.Gpu` without a card: NumPy memory and emulated kernels."""

from __future__ import annotations

import ctypes
import secrets
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda import kernels
from gpuboost.backends.cuda.gpu import DeviceMatrix, Limits
from gpuboost.backends.cuda.kernels import Argument, Kernel
from gpuboost.errors import DeviceMemoryError
from tests.cuda_on_cpu import caller, emulator
from tests.cuda_on_cpu.device_array import DeviceArray
from tests.cuda_on_cpu.linked import LinkedDevice
from tests.cuda_on_cpu.requirement import require

LIMITS = Limits(n_multiprocessors=4, shared_per_block=99 * 1024, shared_per_multiprocessor=100 * 1024)
N_GARBAGE = (1 << 20) + 1  # odd, so that where it is repeated words differ


@lru_cache(maxsize=8)
def garbage(seed: int) -> NDArray[np.uint8]:
    """Bytes other than 0."""
    return np.random.default_rng(seed).integers(1, 256, N_GARBAGE, np.uint8)


class EmulatedGpu:
    """A small device. A file of kernels is compiled when the first of them is launched.

    Where kernels cannot be compiled, the test that asks for one is skipped.

    Parameters
    ----------
    order : {"forward", "reverse", "random"}
        In which order blocks, and the threads of a block, run.
    seed : int
        Of the random order and of the garbage in memory that nobody has written.
    memory : int
        Bytes of the device.
    limits : Limits
    source : callable
        From the name of a file to its CUDA C; other than the default to run kernels with planted errors.
    graphs : bool
        Whether what is queued can be captured.
    linked : bool
        Whether the devices of several workers can be linked, as NCCL does.
    """

    label = "emulated"

    def __init__(
        self,
        order: str = "forward",
        seed: int = 0,
        *,
        memory: int = 1 << 30,
        limits: Limits = LIMITS,
        source: Callable[[str], str] = kernels.source,
        graphs: bool = True,
        linked: bool = False,
    ) -> None:
        require(emulator.unavailable())
        if order not in emulator.ORDERS:
            raise ValueError(f"order must be one of {emulator.ORDERS}, got {order!r}")
        self.limits = limits
        self._order = order
        self._seed = seed
        self._memory = memory
        self._used = 0
        self._source = source
        self._n_launches = 0
        self._graphs = graphs
        self._linked = linked
        self._captured: list[Callable[[], None]] | None = None
        self._compiled: dict[str, emulator.CompiledKernel] = {}

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> DeviceArray:
        assert self._captured is None  # a captured allocation would be made again by every replay
        memory = self._allocate(shape, np.dtype(dtype))
        filling = garbage(self._seed)
        memory.reshape(-1).view(np.uint8)[:] = (
            filling[: memory.nbytes] if memory.nbytes <= N_GARBAGE else np.resize(filling, memory.nbytes)
        )
        return DeviceArray(memory)

    def put(self, array: NDArray[Any]) -> DeviceArray:
        memory = self._allocate(array.shape, array.dtype)
        memory[...] = array
        return DeviceArray(memory)

    def get(self, array: DeviceArray) -> NDArray[Any]:
        assert self._captured is None  # nothing has been done yet
        return array.memory.copy()

    def address(self, array: DeviceArray) -> int:
        return array.address

    def zero(self, array: DeviceArray) -> None:
        if not array.flags.c_contiguous:
            raise ValueError(f"only C-contiguous arrays can be set to zero, got strides {array.strides}")
        where = self._captured_as(array)
        self._queue(lambda: where.memory.fill(0))

    def capture(self, queue: Callable[[], None]) -> list[Callable[[], None]] | None:
        if not self._graphs:
            return None
        self._captured = []
        try:
            queue()
            return self._captured
        finally:
            self._captured = None

    def replay(self, graph: list[Callable[[], None]]) -> None:
        for work in graph:
            work()

    def _captured_as(self, array: DeviceArray) -> DeviceArray:
        """Return the array; where it is captured, one that knows its place and does not keep its memory, like a graph's."""
        if self._captured is None:
            return array
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * array.nbytes).from_address(array.address))
        return DeviceArray(memory.view(array.dtype).reshape(array.shape))

    def _queue(self, work: Callable[[], None]) -> None:
        """Do it now, or note it for `replay`."""
        if self._captured is None:
            work()
        else:
            self._captured.append(work)

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], block: int, arguments: tuple[Argument, ...], shared_bytes: int
    ) -> None:
        arguments = tuple(self._captured_as(one) if isinstance(one, DeviceArray) else one for one in arguments)

        def run() -> None:
            self._n_launches += 1
            self.compiled(kernel).launch(
                grid,
                block,
                arguments,
                shared_bytes=shared_bytes,
                shared_limit=self.limits.shared_per_block,
                order=self._order,
                seed=(self._seed << 32) + self._n_launches,
            )

        self._queue(run)

    def adopt(self, matrix: Any) -> DeviceMatrix | None:
        return caller.adopt(self, matrix)

    def free_bytes(self) -> int:
        return self._memory - self._used

    def name_for_peers(self) -> tuple[str, str]:
        return f"emulated {id(self):#x}", "threads" if self._linked else ""

    def new_group(self) -> bytes:
        return secrets.token_bytes(16)

    def join(self, group: bytes, rank: int, size: int, check: Callable[[], None]) -> LinkedDevice:
        return LinkedDevice(group, rank, size, check)

    def close(self) -> None:
        """Nothing is held back: memory is free as soon as nobody refers to it."""

    def compiled(self, kernel: Kernel) -> emulator.CompiledKernel:
        """Compile a kernel, unless that is done."""
        compiled = self._compiled.get(kernel.name)
        if compiled is None or compiled.kernel is not kernel:
            rows = emulator.load(self._source(kernel.file), f"{kernel.file}.cu")
            if kernel.name not in rows:
                raise ValueError(f"{kernel.file}.cu has no kernel {kernel.name!r}, only {sorted(rows)}")
            compiled = self._compiled[kernel.name] = emulator.CompiledKernel(kernel, rows[kernel.name])
        return compiled

    def _allocate(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        n_bytes = int(np.prod(shape, dtype=object)) * dtype.itemsize
        if n_bytes > self.free_bytes():
            raise DeviceMemoryError(
                f"an array needs {n_bytes} bytes, but only {self.free_bytes()} of the device's {self._memory} are free"
            )
        memory = np.empty(shape, dtype)
        self._used += n_bytes
        weakref.finalize(memory, self._free, n_bytes)
        return memory

    def _free(self, n_bytes: int) -> None:
        self._used -= n_bytes

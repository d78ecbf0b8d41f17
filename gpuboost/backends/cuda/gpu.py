"""What the CUDA backend needs of a device: arrays and launches, and no more.

`cupy_gpu` offers it on a CUDA card. The tests offer it on the CPU, with the same kernels compiled as C++, so
that all of the backend's host code and all kernels run without a card.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda.kernels import Argument, Kernel

GpuArray = Any
"""An array on the device, with ``dtype``, ``shape``, ``nbytes``, ``flags.c_contiguous``, ``reshape``, ``view`` and slices."""


@dataclass(frozen=True)
class Limits:
    """What a launch may use.

    Attributes
    ----------
    n_multiprocessors : int
    shared_per_block : int
        Bytes of dynamic shared memory that a block may opt in to.
    shared_per_multiprocessor : int
        Bytes that the blocks on one multiprocessor share.
    threads_per_multiprocessor, registers_per_multiprocessor : int
        What the blocks on one multiprocessor have together.
    """

    n_multiprocessors: int
    shared_per_block: int
    shared_per_multiprocessor: int
    threads_per_multiprocessor: int = 2048
    registers_per_multiprocessor: int = 65536


@dataclass(frozen=True, eq=False)
class DeviceMatrix:
    """A caller's matrix on the device, as it lies there.

    Attributes
    ----------
    values : device array of uint8, shape (n_bytes,)
        Its bytes, from the first element on.
    dtype : numpy.dtype
        A float of 16, 32 or 64 bits, or an integer.
    shape, strides : tuple of int
        Rows and columns; strides in elements.
    """

    values: GpuArray
    dtype: np.dtype[Any]
    shape: tuple[int, int]
    strides: tuple[int, int]


class Part(NamedTuple):
    """A sum over the devices of several workers, which one of them gets.

    Attributes
    ----------
    array : device array of int32 or int64, C-contiguous
        What this worker adds: as many numbers on all workers.
    root : int
        The worker that gets the sum.
    into : device array, optional
        Where it is written, on that worker; as large as ``array``.
    """

    array: GpuArray
    root: int
    into: GpuArray | None


class Communicator(Protocol):
    """What links a device to those of other workers. All workers make the same calls in the same order."""

    def reduce(self, parts: Sequence[Part]) -> None:
        """Queue sums. Exact, if they fit in the dtype."""

    def wait(self, check: Callable[[], None]) -> None:
        """Wait until all that has been queued is done. ``check`` raises if it never will be; that ends the link."""

    def close(self) -> None:
        """Give the link up. All sums are done."""


class Gpu(Protocol):
    """A device. Work is queued in order; only `get` and `free_bytes` wait for it."""

    label: str
    """What estimators report as ``device_``, such as "cuda:0"."""
    limits: Limits

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> GpuArray:
        """Return a C-contiguous array with undefined contents.

        Raises
        ------
        DeviceMemoryError
            If there is no room for it.
        """

    def put(self, array: NDArray[Any]) -> GpuArray:
        """Return a C-contiguous copy of a host array."""

    def get(self, array: GpuArray) -> NDArray[Any]:
        """Return a host copy of an array or view, when all work queued before is done."""

    def address(self, array: GpuArray) -> int:
        """Return where an array lies, for kernels that follow pointers."""

    def zero(self, array: GpuArray) -> None:
        """Set a C-contiguous array or view to zero."""

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], block: int, arguments: tuple[Argument, ...], shared_bytes: int
    ) -> None:
        """Queue a kernel. The arguments have been checked by `gpuboost.backends.cuda.launch.launch`."""

    def capture(self, queue: Callable[[], None]) -> Any | None:
        """Return what ``queue`` queues, launches and zeros, as one item that `replay` queues; None if that cannot be done.

        It may neither allocate nor wait. Nothing of it is done now. The arrays must live as long as it is replayed.
        """

    def replay(self, graph: Any) -> None:
        """Queue all that has been captured, in one call."""

    def adopt(self, matrix: Any) -> DeviceMatrix | None:
        """Return a matrix that lies on a device as one on this device, without a copy where it is dense and here.

        None if it is on the host.
        """

    def free_bytes(self) -> int:
        """Return how much memory can still be allocated."""

    def name_for_peers(self) -> tuple[str, str]:
        """Return a name of the device that no other device has, and what it can be linked by, "" if by nothing.

        Devices can be linked that say the same.
        """

    def new_group(self) -> bytes:
        """Return a name by which several workers' devices meet in `join`; one of them makes it."""

    def join(self, group: bytes, rank: int, size: int, check: Callable[[], None]) -> Communicator:
        """Link this device with those of the other workers, who all call it; wait for them as `Communicator.wait` does."""

    def close(self) -> None:
        """Give all memory back that is no longer referenced."""

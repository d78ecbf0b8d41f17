"""The emulated device with real `cupy.ndarray` objects, which lie in host memory: their slices, views and flags are CuPy's.

CuPy can be installed and make such arrays on a machine without a card or a driver. It must not touch what is in them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda.kernels import Argument, Kernel
from tests.cuda_on_cpu.device_array import DeviceArray
from tests.cuda_on_cpu.gpu import EmulatedGpu


class CupyArraysGpu(EmulatedGpu):
    """As `EmulatedGpu`, but what it gives and takes are CuPy's arrays."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> Any:
        return as_cupy(super().empty(shape, dtype).memory)

    def put(self, array: NDArray[Any]) -> Any:
        return as_cupy(super().put(array).memory)

    def get(self, array: Any) -> NDArray[Any]:
        return super().get(seen(array))

    def address(self, array: Any) -> int:
        return int(array.data.ptr)

    def zero(self, array: Any) -> None:
        super().zero(seen(array))

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], block: int, arguments: tuple[Argument, ...], shared_bytes: int
    ) -> None:
        mine = tuple(seen(one) if hasattr(one, "data") and hasattr(one.data, "ptr") else one for one in arguments)
        super().launch(kernel, grid, block, mine, shared_bytes)


def as_cupy(memory: NDArray[Any]) -> Any:
    """Return host memory as an array of CuPy's, which keeps it alive."""
    import cupy

    owner = cupy.cuda.UnownedMemory(memory.ctypes.data, memory.nbytes, memory, 0)
    return cupy.ndarray(memory.shape, memory.dtype, cupy.cuda.MemoryPointer(owner, 0))


def seen(array: Any) -> DeviceArray:
    """Return an array of CuPy's as the emulator's; it keeps the same memory alive."""
    owner: NDArray[Any] = array.data.mem._owner
    offset = array.data.ptr - owner.ctypes.data
    return DeviceArray(np.ndarray(array.shape, array.dtype, owner, offset, array.strides))

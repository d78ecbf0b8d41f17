"""Arrays that a caller may have on the emulated device: of CuPy, of PyTorch, and of libraries that offer only a protocol.

Their memory is NumPy's, but what reads it as if it were on the host fails, and what is copied to the host is counted.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.cuda import cupy_gpu
from gpuboost.backends.cuda.gpu import DeviceMatrix
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.device_array import DeviceArray

if TYPE_CHECKING:
    from tests.cuda_on_cpu.gpu import EmulatedGpu


class Traffic:
    """How many bytes of an array, its slices included, were copied to the host, and how many at a time at most."""

    def __init__(self) -> None:
        self.total = self.largest = 0

    def count(self, n_bytes: int) -> None:
        self.total += n_bytes
        self.largest = max(self.largest, n_bytes)


class Device:
    """Like `cupy.cuda.Device`."""

    current = 0

    def __init__(self, index: int) -> None:
        self.id = index
        self.left: list[int] = []
        self.n_synchronised = 0

    def __enter__(self) -> Device:
        self.left.append(Device.current)
        Device.current = self.id
        return self

    def __exit__(self, *exception: object) -> None:
        Device.current = self.left.pop()

    def synchronize(self) -> None:
        self.n_synchronised += 1


class Address(int):
    """A number that knows the array that it is the address of."""

    traffic: Traffic


class Pointer:
    """Like `cupy.cuda.MemoryPointer`: an address, and what keeps the memory there alive."""

    def __init__(self, address: int, owner: Any, device: Device, traffic: Traffic) -> None:
        self.address, self.owner, self.device, self.traffic = address, owner, device, traffic

    @property
    def ptr(self) -> Address:
        address = Address(self.address)
        address.traffic = self.traffic
        return address

    def at(self, address: int) -> Pointer:
        return Pointer(address, self.owner, self.device, self.traffic)

    def __add__(self, n: int) -> Pointer:
        return self.at(self.address + n)

    def copy_from_device_async(self, source: Pointer, n_bytes: int) -> None:
        assert source.device.n_synchronised > 0, "work that is queued on the other device may not be done"
        ctypes.memmove(self.address, source.address, n_bytes)

    def view(self, shape: tuple[int, ...], dtype: Any, strides: tuple[int, ...] | None) -> NDArray[Any]:
        layout = {
            "shape": shape,
            "typestr": np.dtype(dtype).str,
            "data": (self.address, False),
            "strides": strides,
            "version": 3,
        }
        return np.asarray(SimpleNamespace(__array_interface__=layout, owner=self))


class CupyArray(DeviceArray):
    """Like `cupy.ndarray`."""

    __module__ = "cupy"

    def __init__(self, shape: tuple[int, ...], dtype: Any, data: Pointer, strides: tuple[int, ...] | None = None) -> None:
        self.data = data
        super().__init__(data.view(tuple(shape), dtype, strides))

    def _like(self, array: DeviceArray) -> CupyArray:
        return CupyArray(array.shape, array.dtype, self.data.at(array.address), array.strides)

    def __getitem__(self, key: Any) -> CupyArray:
        return self._like(super().__getitem__(key))

    def view(self, dtype: Any) -> CupyArray:
        return self._like(super().view(dtype))

    @property
    def device(self) -> Device:
        return self.data.device

    @property
    def traffic(self) -> Traffic:
        return self.data.traffic

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        layout = {"shape": self.shape, "strides": self.strides, "typestr": self.dtype.str}
        return {**layout, "data": (self.address, False), "version": 3, "stream": 1}

    @property
    def T(self) -> CupyArray:
        return self._like(DeviceArray(self.memory.T))

    def get(self) -> NDArray[Any]:
        assert self.flags.c_contiguous, "CuPy compiles a kernel for that"
        self.traffic.count(self.nbytes)
        return self.memory.copy()


class MinimalArray:
    """An array of a library that offers its memory, and nothing else."""

    def __init__(self, array: CupyArray) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return self.array.__cuda_array_interface__


class NumbaArray(MinimalArray):
    """Like a device array of Numba: it can be sliced, but not with an array of row numbers."""

    def __init__(self, array: CupyArray) -> None:
        super().__init__(array)
        self.dtype, self.shape = array.dtype, array.shape

    def __getitem__(self, key: Any) -> NumbaArray:
        return NumbaArray(self.array[key])


class Tensor:
    """Like a dense tensor of PyTorch, on the device or (with an ndarray) on the host."""

    __module__ = "torch"

    def __init__(
        self, array: CupyArray | NDArray[Any], *, requires_grad: bool = False, dtype: str = "", layout: str = "strided"
    ):
        self.array, self.requires_grad = array, requires_grad
        self.dtype = f"torch.{dtype or array.dtype}"
        self.layout = f"torch.{layout}"
        self.is_cuda = isinstance(array, CupyArray)
        self.device = "cuda:0" if self.is_cuda else "cpu"
        self.shape = array.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Tensor:
        keys = key if isinstance(key, tuple) else (key,)
        if any(isinstance(k, slice) and (k.step or 1) < 0 for k in keys):
            raise ValueError("step must be greater than zero")
        return Tensor(self.array[key], requires_grad=self.requires_grad)

    def detach(self) -> Tensor:
        return Tensor(self.array)

    def to(self, device: str) -> Tensor:
        return self if device == self.device else Tensor(on_device(self.numpy()) if device != "cpu" else self.numpy(force=True))

    def numpy(self, force: bool = False) -> NDArray[Any]:
        if not force and (self.is_cuda or self.requires_grad):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return self.array.get() if self.is_cuda else self.array

    def __array__(self, *_: Any, **__: Any) -> NDArray[Any]:
        return self.numpy()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0) if self.is_cuda else (1, 0)

    def __dlpack__(self, **_: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        return self.array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if not self.is_cuda:
            raise AttributeError("Can't get __cuda_array_interface__ on non-CUDA tensor type")
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad")
        return self.array.__cuda_array_interface__


def on_device(host: NDArray[Any], index: int = 0) -> CupyArray:
    """Return an array on a device with the contents and the layout of ``host``, whose memory it uses."""
    data = Pointer(host.__array_interface__["data"][0], host, Device(index), Traffic())
    return CupyArray(host.shape, host.dtype, data, host.strides)


def memcpy2DAsync(
    target: int, target_pitch: int, source: Address, pitch: int, width: int, height: int, kind: str, stream: str
) -> None:
    assert (kind, stream) == ("device to host", "current")
    source.traffic.count(width * height)
    for row in range(height):
        ctypes.memmove(target + row * target_pitch, source + row * pitch, width)


CUPY = SimpleNamespace(
    cuda=SimpleNamespace(
        get_current_stream=lambda: SimpleNamespace(ptr="current", synchronize=lambda: None),
        runtime=SimpleNamespace(memcpy2DAsync=memcpy2DAsync, memcpyDeviceToHost="device to host"),
    ),
    ndarray=CupyArray,
    asarray=lambda x: on_device(x, Device.current) if isinstance(x, np.ndarray) else x.array,
    from_dlpack=lambda x: x.__dlpack__(stream=1),
)
"""What is used of the module ``cupy``."""
TORCH = SimpleNamespace(Tensor=Tensor, from_numpy=Tensor)
"""What is used of the module ``torch``."""


@contextmanager
def modules() -> Iterator[None]:
    """Let ``cupy`` and ``torch`` be loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", CUPY)
        patch.setitem(sys.modules, "torch", TORCH)
        yield


def adopt(gpu: EmulatedGpu, matrix: Any) -> DeviceMatrix | None:
    """Do what a card does, `gpuboost.backends.cuda.cupy_gpu.adopt`, on the emulated device."""
    card = SimpleNamespace(
        cupy=CUPY,
        device=nullcontext(),
        index=0,
        empty=lambda shape, dtype: on_device(gpu.empty(shape, dtype).memory),
    )
    found = cupy_gpu.as_device_matrix(card, matrix)
    if found is None or min(found.strides) >= 0 or emulator.sanitizer() != "asan":
        return found
    # The sanitizer lets a kernel see no byte before its arguments.
    bytes_per_element = found.dtype.itemsize
    strides = tuple(stride * bytes_per_element for stride in found.strides)
    values = gpu.put(np.array(found.values.data.view(found.shape, found.dtype, strides), order="C").reshape(-1).view(np.uint8))
    return DeviceMatrix(values, found.dtype, found.shape, (found.shape[1], 1))

"""What `gpuboost` uses of CuPy, on NumPy memory: an imagined machine with CUDA devices, and all that can be wrong with it.

It is meaner than a card where CUDA leaves room: copies from the host read their source as late as they may, device memory is
full of garbage, and a pool or a device keeps account of every byte.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class CUDADriverError(CUDARuntimeError):
    pass


class OutOfMemoryError(MemoryError):
    pass


class CompileException(Exception):
    pass


class Cuda:
    """A machine's CUDA: its devices, and everything that was done with them."""

    def __init__(self, n_devices: int = 1, *, runtime: int = 13000, memory: int = 1 << 24) -> None:
        self.n_devices = n_devices
        self.runtime_version = runtime
        self.nvrtc_version: tuple[int, int] | Exception = (13, 0)
        self.memory = memory
        self.allocated = [0] * max(1, n_devices)
        self.limit = 0
        self.current = 0
        self.stream = Stream(self)
        self.initialised = False
        self.query: Exception | None = None
        self.load: Callable[[RawModule], None] = lambda module: None
        self.kernels: dict[str, Callable[..., None]] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.modules: list[RawModule] = []
        self.arenas: list[list[Block]] = []
        self.pending: list[Callable[[], None]] = []
        self.n_synchronised = 0

    def device_count(self) -> int:
        if self.query is not None:
            raise self.query
        self.initialised = True
        return self.n_devices

    def context(self) -> int:
        if not self.initialised:
            raise CUDADriverError(3, "CUDA_ERROR_NOT_INITIALIZED: initialization error")
        return 0

    def nvrtc(self) -> tuple[int, int]:
        if isinstance(self.nvrtc_version, Exception):
            raise self.nvrtc_version
        return self.nvrtc_version

    def synchronise(self) -> None:
        """Do what was queued."""
        self.n_synchronised += 1
        for work in self.pending:
            work()
        self.pending = []

    def module(self) -> types.ModuleType:
        """Return what ``import cupy`` gives on this machine."""
        cupy: Any = types.ModuleType("cupy")
        cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)

        def bound(cls: type) -> Callable[..., Any]:
            return lambda *args, **kwargs: cls(self, *args, **kwargs)

        cupy.ndarray = Array
        cupy.asarray = lambda x: x if isinstance(x, Array) else x.wrapped
        cupy.from_dlpack = lambda x: x.wrapped
        cupy.RawModule = bound(RawModule)
        cupy.cuda = types.SimpleNamespace(
            Device=bound(Device),
            MemoryPool=bound(MemoryPool),
            alloc_pinned_memory=Pinned,
            get_current_stream=lambda: self.stream,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            compiler=types.SimpleNamespace(CompileException=CompileException),
            nvrtc=types.SimpleNamespace(getVersion=self.nvrtc),
            driver=types.SimpleNamespace(CUDADriverError=CUDADriverError, ctxGetCurrent=self.context),
            runtime=types.SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                getDeviceCount=self.device_count,
                getDevice=lambda: self.current,
                runtimeGetVersion=lambda: self.runtime_version,
                getDeviceProperties=lambda index: {"name": f"Imagined {index}".encode()},
            ),
        )
        return cupy


class Stream:
    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda

    def synchronize(self) -> None:
        self.cuda.synchronise()


class Device:
    def __init__(self, cuda: Cuda, index: int) -> None:
        self.cuda, self.id = cuda, index
        self.attributes = {
            "MultiProcessorCount": 132,
            "MaxSharedMemoryPerBlockOptin": 227 << 10,
            "MaxSharedMemoryPerMultiprocessor": 228 << 10,
        }
        self.compute_capability = "90"
        self.left: list[int] = []

    def __enter__(self) -> Device:
        self.left.append(self.cuda.current)
        self.cuda.current = self.id
        return self

    def __exit__(self, *exception: object) -> None:
        self.cuda.current = self.left.pop()

    @property
    def mem_info(self) -> tuple[int, int]:
        return self.cuda.memory - self.cuda.allocated[self.id], self.cuda.memory

    def synchronize(self) -> None:
        self.cuda.synchronise()


class Block:
    """Device memory. It counts as allocated until nobody has it, a pool included."""

    def __init__(self, cuda: Cuda, n_bytes: int) -> None:
        self.cuda, self.device = cuda, cuda.current
        self.bytes = np.random.default_rng(n_bytes).integers(1, 256, n_bytes, np.uint8)
        cuda.allocated[self.device] += n_bytes
        weakref.finalize(self, self.free, cuda, self.device, n_bytes)

    @staticmethod
    def free(cuda: Cuda, device: int, n_bytes: int) -> None:
        cuda.allocated[device] -= n_bytes


class Lease:
    """A block of a pool, in use; it goes back to the pool, if that is still there."""

    def __init__(self, pool: MemoryPool, block: Block) -> None:
        self.block = block
        weakref.finalize(self, self.give_back, weakref.ref(pool), block)

    @staticmethod
    def give_back(pool_reference: Callable[[], MemoryPool | None], block: Block) -> None:
        pool = pool_reference()
        if pool is not None:
            pool.used -= len(block.bytes)
            pool.free.append(block)


class MemoryPool:
    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.free: list[Block] = []
        self.used = 0
        cuda.arenas.append(self.free)  # a pool that goes does not free what it holds

    def malloc(self, n_bytes: int) -> Pointer:
        block = next((b for b in self.free if len(b.bytes) == n_bytes), None)
        if block is not None:
            self.free.remove(block)
        else:
            available = self.cuda.memory - self.cuda.allocated[self.cuda.current]
            limit = self.cuda.limit or self.cuda.memory
            if n_bytes > min(available, limit - self.used):
                raise OutOfMemoryError(f"Out of memory allocating {n_bytes:,} bytes")
            block = Block(self.cuda, n_bytes)
        self.used += n_bytes
        return Pointer(Lease(self, block))

    def free_all_blocks(self) -> None:
        self.free.clear()

    def free_bytes(self) -> int:
        return sum(len(block.bytes) for block in self.free)

    def used_bytes(self) -> int:
        return self.used

    def get_limit(self) -> int:
        return self.cuda.limit


class Pointer:
    """Somewhere in a block."""

    def __init__(self, mem: Lease, offset: int = 0) -> None:
        self.mem, self.offset = mem, offset

    def __add__(self, n: int) -> Pointer:
        return Pointer(self.mem, self.offset + n)

    def __sub__(self, n: int) -> Pointer:
        return self + -n

    def bytes(self, n: int) -> NDArray[np.uint8]:
        assert 0 <= self.offset <= self.offset + n <= len(self.mem.block.bytes)
        return self.mem.block.bytes[self.offset : self.offset + n]

    def _queue(self, work: Callable[[], None]) -> None:
        self.mem.block.cuda.pending.append(work)

    def copy_from_host_async(self, address: int, n: int) -> None:
        target = self.bytes(n)
        self._queue(lambda: ctypes.memmove(target.ctypes.data, address, n) and None)

    def copy_to_host_async(self, address: int, n: int, stream: Stream) -> None:
        source = self.bytes(n)
        self._queue(lambda: ctypes.memmove(address, source.ctypes.data, n) and None)

    def copy_from_device_async(self, source: Pointer, n: int) -> None:
        self._queue(lambda: self.bytes(n).__setitem__(slice(None), source.bytes(n)))

    def memset_async(self, value: int, n: int) -> None:
        self._queue(lambda: self.bytes(n).fill(value))


class Array:
    """Like `cupy.ndarray`: a view of device memory."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, data: Pointer, strides: tuple[int, ...] | None = None) -> None:
        self.data, self.dtype = data, np.dtype(dtype)
        # Looked at only for its layout.
        whole = data.mem.block.bytes
        self.layout: NDArray[Any] = np.ndarray(shape, self.dtype, whole, data.offset, strides)

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "strides", "nbytes", "size", "flags", "ndim"):
            return getattr(self.layout, name)
        raise AttributeError(name)

    @property
    def device(self) -> Device:
        return Device(self.data.mem.block.cuda, self.data.mem.block.device)

    def _like(self, layout: NDArray[Any]) -> Array:
        moved = layout.ctypes.data - self.layout.ctypes.data
        return Array(layout.shape, layout.dtype, self.data + moved, layout.strides)

    def __getitem__(self, key: Any) -> Array:
        return self._like(self.layout[(*key, ...) if isinstance(key, tuple) else (key, ...)])  # never a scalar

    def __setitem__(self, key: Any, value: Array) -> None:
        target, source = self.layout[key], value.layout
        self.data._queue(lambda: target.__setitem__(..., source))

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    def view(self, dtype: Any) -> Array:
        return self._like(self.layout.view(dtype))

    def reshape(self, *shape: int) -> Array:
        return self._like(self.layout.reshape(*shape))

    @property
    def T(self) -> Array:
        return self._like(self.layout.T)


class Pinned(bytearray):
    """Page-locked host memory, of a whole number of pages as in CuPy's pool. Who comes next overwrites it."""

    next_users: ClassVar[list[Any]] = []

    def __init__(self, n_bytes: int) -> None:
        super().__init__(-(-n_bytes // 4096) * 4096)
        self.ptr = np.frombuffer(self, np.uint8).ctypes.data

    def __del__(self) -> None:
        self[:] = b"\xff" * len(self)
        self.next_users.append(self)


class RawModule:
    def __init__(self, cuda: Cuda, *, code: str | None = None, path: str | None = None, options: tuple[str, ...] = ()) -> None:
        self.cuda, self.code, self.path, self.options = cuda, code, path, options
        cuda.modules.append(self)

    def get_function(self, name: str) -> RawKernel:
        self.cuda.load(self)
        return RawKernel(self.cuda, name)


class RawKernel:
    def __init__(self, cuda: Cuda, name: str) -> None:
        self.cuda, self.name = cuda, name
        self.allowed = [48 << 10]

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self.allowed[-1]

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, n: int) -> None:
        self.allowed.append(n)

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], *, shared_mem: int = 0) -> None:
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise CUDADriverError(1, "CUDA_ERROR_INVALID_VALUE: invalid argument")
        self.cuda.launches.append((self.cuda.current, self.name, grid, block, shared_mem))
        if self.name in self.cuda.kernels:
            work = self.cuda.kernels[self.name]
            self.cuda.pending.append(lambda: work(*args))


@contextmanager
def current_device(cuda: Cuda, index: int) -> Iterator[None]:
    """Make another device current, as a caller may have."""
    before, cuda.current = cuda.current, index
    try:
        yield
    finally:
        assert cuda.current == index  # nobody may have changed it
        cuda.current = before

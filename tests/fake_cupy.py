"""What `gpuboost` uses of CuPy, on NumPy memory: an imagined machine with CUDA devices, and all that can be wrong with it.

It is meaner than a card where CUDA leaves room: copies from the host read their source as late as they may, device memory is
full of garbage, and a pool or a device keeps account of every byte. A pool divides its blocks, and leaks divided ones if it
goes first.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import types
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
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
        self.streams: list[Stream] = []
        self.stream = Stream(self)
        self.initialised = False
        self.query: Exception | None = None
        self.load: Callable[[RawModule], None] = lambda module: None
        self.kernels: dict[str, Callable[..., None]] = {}
        self.launches: list[tuple[Any, ...]] = []
        self.modules: list[RawModule] = []
        self.arenas: list[list[Piece]] = []
        self.leaked: list[Piece] = []
        self.callers_pool = MemoryPool(self)
        self.pinnable = True
        self.static_shared = 0
        self.captured: list[Callable[[], None]] | None = None
        self.capture_error: Exception | None = None
        self.n_synchronised = 0
        self.lost: dict[int, CUDARuntimeError] = {}
        self.can_make_lost_current = False
        self.freed_of_lost: list[int] = []

    def queue(self, work: Callable[[], None]) -> None:
        """Queue work on the current stream; or note it, if what is queued is being captured."""
        self.check()
        (self.stream.pending if self.captured is None else self.captured).append(work)

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

    def pinned(self, n_bytes: int) -> Pinned:
        if not self.pinnable:
            raise CUDARuntimeError(2, "cudaErrorMemoryAllocation: out of memory")
        return Pinned(n_bytes)

    def check(self, device: int | None = None) -> None:
        """Raise the error of a device that is lost; the current one by default."""
        error = self.lost.get(self.current if device is None else device)
        if error is not None:
            raise type(error)(error.status, str(error))

    def synchronise(self, *streams: Stream) -> None:
        """Do what was queued on these streams, or on all of them."""
        assert self.captured is None  # CUDA refuses to wait for what is being captured
        self.check()
        self.n_synchronised += 1
        for stream in streams or self.streams:
            while stream.pending:
                stream.pending.pop(0)()
        self.check()

    def copy_rows(
        self, target: int, target_pitch: int, source: int, pitch: int, width: int, height: int, kind: str, stream: Stream
    ) -> None:
        """What ``cudaMemcpy2DAsync`` does."""
        assert kind == "device to host"
        for row in range(height):
            address = source + row * pitch
            stream.pending.append(lambda row=row, address=address: ctypes.memmove(target + row * target_pitch, address, width))

    def module(self) -> types.ModuleType:
        """Return what ``import cupy`` gives on this machine."""
        cupy: Any = types.ModuleType("cupy")
        cupy.__spec__ = importlib.machinery.ModuleSpec("cupy", None)

        def bound(cls: type) -> Callable[..., Any]:
            return lambda *args, **kwargs: cls(self, *args, **kwargs)

        cupy.ndarray = Array
        cupy.asarray = lambda x: x.wrapped  # of its own arrays on other devices it makes copies
        cupy.from_dlpack = lambda x: x.wrapped
        cupy.RawModule = bound(RawModule)
        cupy.get_default_memory_pool = lambda: self.callers_pool
        cupy.cuda = types.SimpleNamespace(
            Device=bound(Device),
            MemoryPool=bound(MemoryPool),
            UnownedMemory=bound(UnownedMemory),
            MemoryPointer=Pointer,
            alloc_pinned_memory=self.pinned,
            Stream=bound(Stream),
            get_current_stream=lambda: self.stream,
            memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
            compiler=types.SimpleNamespace(CompileException=CompileException),
            nvrtc=types.SimpleNamespace(getVersion=self.nvrtc),
            driver=types.SimpleNamespace(CUDADriverError=CUDADriverError, ctxGetCurrent=self.context),
            runtime=types.SimpleNamespace(
                CUDARuntimeError=CUDARuntimeError,
                streamCaptureModeRelaxed=2,
                getDeviceCount=self.device_count,
                getDevice=lambda: self.current,
                runtimeGetVersion=lambda: self.runtime_version,
                getDeviceProperties=lambda index: {"name": f"Imagined {index}".encode(), "uuid": bytes([index]) * 16},
                memcpy2DAsync=self.copy_rows,
                memcpyDeviceToHost="device to host",
            ),
        )
        return cupy


class Stream:
    """Streams do not wait for each other."""

    def __init__(self, cuda: Cuda, *, non_blocking: bool = False) -> None:
        self.cuda, self.is_own = cuda, non_blocking
        self.left: list[Stream] = []
        self.pending: list[Callable[[], None]] = []
        cuda.streams.append(self)

    def __enter__(self) -> Stream:
        self.left.append(self.cuda.stream)
        self.cuda.stream = self
        return self

    def __exit__(self, *exception: object) -> None:
        self.cuda.stream = self.left.pop()

    @property
    def ptr(self) -> Stream:
        return self

    def synchronize(self) -> None:
        self.cuda.synchronise(self)

    def begin_capture(self, mode: int) -> None:
        assert self.is_own  # the default stream cannot be captured
        assert mode == self.cuda.module().cuda.runtime.streamCaptureModeRelaxed  # other threads may allocate
        self.cuda.captured = []

    def end_capture(self) -> Graph:
        captured, self.cuda.captured = self.cuda.captured, None
        if self.cuda.capture_error is not None:
            raise self.cuda.capture_error
        return Graph(self.cuda, captured or [])


@dataclass
class Graph:
    cuda: Cuda
    captured: list[Callable[[], None]]

    def launch(self, stream: Stream) -> None:
        assert stream is self.cuda.stream
        self.cuda.check()
        stream.pending += self.captured


class Device:
    def __init__(self, cuda: Cuda, index: int) -> None:
        self.cuda, self.id = cuda, index
        self.attributes = {
            "MultiProcessorCount": 132,
            "MaxSharedMemoryPerBlockOptin": 227 << 10,
            "MaxSharedMemoryPerMultiprocessor": 228 << 10,
            "MaxThreadsPerMultiProcessor": 2048,
            "MaxRegistersPerMultiprocessor": 65536,
        }
        self.compute_capability = "90"
        self.left: list[int] = []

    def __enter__(self) -> Device:
        if not self.cuda.can_make_lost_current:
            self.cuda.check(self.id)
        self.left.append(self.cuda.current)
        self.cuda.current = self.id
        return self

    def __exit__(self, *exception: object) -> None:
        self.cuda.current = self.left.pop()

    @property
    def mem_info(self) -> tuple[int, int]:
        self.cuda.check(self.id)
        return self.cuda.memory - self.cuda.allocated[self.id], self.cuda.memory

    def synchronize(self) -> None:
        with self:
            self.cuda.synchronise()


class Block:
    """Device memory. It counts as allocated until nobody has it, a pool included."""

    def __init__(self, cuda: Cuda, n_bytes: int) -> None:
        cuda.check()
        self.cuda, self.device = cuda, cuda.current
        self.bytes = np.random.default_rng(n_bytes).integers(1, 256, n_bytes, np.uint8)
        cuda.allocated[self.device] += n_bytes
        weakref.finalize(self, self.free, cuda, self.device, n_bytes)

    @staticmethod
    def free(cuda: Cuda, device: int, n_bytes: int) -> None:
        cuda.allocated[device] -= n_bytes
        if device in cuda.lost:  # CuPy prints an error of the destructor
            cuda.freed_of_lost.append(n_bytes)


@dataclass(frozen=True, eq=False)
class Piece:
    """A stretch of a block, or all of it."""

    block: Block
    start: int
    stop: int

    @property
    def cuda(self) -> Cuda:
        return self.block.cuda

    @property
    def device(self) -> int:
        return self.block.device

    @property
    def bytes(self) -> NDArray[np.uint8]:
        return self.block.bytes[self.start : self.stop]

    @property
    def is_whole(self) -> bool:
        return self.stop - self.start == len(self.block.bytes)


class Lease:
    """A piece of a pool, in use; it goes back to the pool. If that has gone, a whole block is free, and a part of one leaks."""

    def __init__(self, pool: MemoryPool, piece: Piece) -> None:
        self.block = piece
        weakref.finalize(self, self.give_back, weakref.ref(pool), piece)

    @staticmethod
    def give_back(pool_reference: Callable[[], MemoryPool | None], piece: Piece) -> None:
        pool = pool_reference()
        if pool is not None:
            pool.take_back(piece)
        elif not piece.is_whole:
            piece.cuda.leaked.append(piece)


class UnownedMemory:
    """Memory at an address, which lives as long as its owner."""

    def __init__(self, cuda: Cuda, ptr: int, size: int, owner: Any, device_id: int) -> None:
        memory = (ctypes.c_uint8 * size).from_address(ptr) if size else b""
        self.block = types.SimpleNamespace(cuda=cuda, device=device_id, bytes=np.frombuffer(memory, np.uint8))
        self.owner = owner


class MemoryPool:
    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.free: list[Piece] = []
        self.used = 0
        cuda.arenas.append(self.free)  # a pool that goes does not free what it holds
        weakref.finalize(self, self.go, cuda, self.free)

    @staticmethod
    def go(cuda: Cuda, free: list[Piece]) -> None:
        cuda.freed_of_lost += [piece.stop - piece.start for piece in free if piece.device in cuda.lost]  # or does it?

    def malloc(self, n_bytes: int) -> Pointer:
        fitting = [piece for piece in self.free if piece.stop - piece.start >= n_bytes]
        if fitting and n_bytes:
            found = min(fitting, key=lambda piece: piece.stop - piece.start)
            self.free.remove(found)
            piece = Piece(found.block, found.start, found.start + n_bytes)
            if piece.stop < found.stop:
                self.free.append(Piece(found.block, piece.stop, found.stop))
        else:
            available = self.cuda.memory - self.cuda.allocated[self.cuda.current]
            limit = self.cuda.limit or self.cuda.memory
            if n_bytes > min(available, limit - self.used):
                raise OutOfMemoryError(f"Out of memory allocating {n_bytes:,} bytes")
            piece = Piece(Block(self.cuda, n_bytes), 0, n_bytes)
        self.used += n_bytes
        return Pointer(Lease(self, piece), 0)

    def take_back(self, piece: Piece) -> None:
        self.used -= piece.stop - piece.start
        for other in list(self.free):  # neighbours become one
            if other.block is piece.block and (other.stop == piece.start or piece.stop == other.start):
                self.free.remove(other)
                piece = Piece(piece.block, min(other.start, piece.start), max(other.stop, piece.stop))
        self.free.append(piece)

    def free_all_blocks(self) -> None:
        self.free[:] = [piece for piece in self.free if not piece.is_whole]

    def free_bytes(self) -> int:
        return sum(piece.stop - piece.start for piece in self.free)

    def used_bytes(self) -> int:
        return self.used

    def get_limit(self) -> int:
        return self.cuda.limit


class Pointer:
    """Somewhere in a block."""

    def __init__(self, mem: Lease | UnownedMemory, offset: int) -> None:
        self.mem, self.offset = mem, offset

    @property
    def ptr(self) -> int:
        return self.mem.block.bytes.ctypes.data + self.offset

    def __add__(self, n: int) -> Pointer:
        return Pointer(self.mem, self.offset + n)

    def __sub__(self, n: int) -> Pointer:
        return self + -n

    def bytes(self, n: int) -> NDArray[np.uint8]:
        assert 0 <= self.offset <= self.offset + n <= len(self.mem.block.bytes)
        return self.mem.block.bytes[self.offset : self.offset + n]

    def _queue(self, work: Callable[[], None]) -> None:
        self.mem.block.cuda.queue(work)

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

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.id

    def get(self) -> NDArray[Any]:
        assert self.flags.c_contiguous, "CuPy compiles a kernel for that"
        host = np.empty(self.shape, self.dtype)
        stream = self.device.cuda.stream
        self.data.copy_to_host_async(host.ctypes.data, self.nbytes, stream)
        stream.synchronize()
        return host

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
        self.shared_size_bytes = cuda.static_shared
        self.allowed = [(48 << 10) - cuda.static_shared]

    @property
    def max_dynamic_shared_size_bytes(self) -> int:
        return self.allowed[-1]

    @max_dynamic_shared_size_bytes.setter
    def max_dynamic_shared_size_bytes(self, n: int) -> None:
        self.allowed.append(n)

    def __call__(self, grid: tuple[int, ...], block: tuple[int, ...], args: tuple[Any, ...], *, shared_mem: int = 0) -> None:
        self.cuda.check()
        if shared_mem > self.max_dynamic_shared_size_bytes:
            raise CUDADriverError(1, "CUDA_ERROR_INVALID_VALUE: invalid argument")
        self.cuda.launches.append((self.cuda.current, self.name, grid, block, shared_mem))
        if self.name in self.cuda.kernels:
            work = self.cuda.kernels[self.name]
            self.cuda.queue(lambda: work(*args))


@contextmanager
def current_device(cuda: Cuda, index: int) -> Iterator[None]:
    """Make another device current, as a caller may have."""
    before, cuda.current = cuda.current, index
    try:
        yield
    finally:
        assert cuda.current == index  # nobody may have changed it
        cuda.current = before

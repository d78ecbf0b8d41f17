"""A CUDA card, through CuPy: `CupyGpu`. It uses CuPy's memory pools, streams and module loading, and none of its kernels."""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from gpuboost.backends.cuda import availability, fatbin, kernels, nccl
from gpuboost.backends.cuda.cupy_memory import Lease, Pool, Staging
from gpuboost.backends.cuda.device_arrays import as_cupy, lies_on_device, span
from gpuboost.backends.cuda.gpu import Communicator, DeviceMatrix, GpuArray, Limits
from gpuboost.backends.cuda.kernels import Argument, Kernel
from gpuboost.backends.cuda.loss import failures, notices_loss, refuse_lost
from gpuboost.errors import DeviceMemoryError, DeviceUnavailableError

SHARED_BY_DEFAULT = 48 * 1024
"""Bytes of shared memory, static and dynamic, that a kernel may use without opting in."""

GRAPHS = "GPUBOOST_CUDA_GRAPHS"
"""The environment variable that is 0 where growths are to be queued launch by launch, not captured as CUDA graphs."""

NCCL = "GPUBOOST_NCCL"
"""The environment variable that is 0 where sums of several workers' devices are to travel through the hosts, without NCCL."""

STAGING_BYTES = 1 << 20
"""Host memory that small arrays go through, so that nobody waits for their copies."""

OUT_OF_MEMORY = 2
"""Status of the driver and of the run-time: no memory, on the device or to be page-locked."""

WRONG_BINARY = (200, 209, 218, 222)
"""Driver errors that mean "not for this device": invalid image, no binary for it, invalid or unsupported PTX."""


@dataclass
class Function:
    """A loaded kernel, and the dynamic shared memory that it may use so far."""

    call: Any
    shared_bytes: int

    @classmethod
    def of(cls, call: Any) -> Function:
        """Return a kernel that CuPy has loaded."""
        return cls(call, SHARED_BY_DEFAULT - int(call.shared_size_bytes))


FUNCTIONS: dict[tuple[int, str, str], Function] = {}
"""Loaded kernels of this process by device, file and name; all `CupyGpu` of a device share them."""

LOADING = threading.Lock()


class CupyGpu:
    """The CUDA device ``index``, as a `gpuboost.backends.cuda.gpu.Gpu`.

    A call leaves the caller's current device as it is and works on the caller's current stream. Arrays come from a memory pool
    of this object, not from CuPy's own, whose unused blocks go back to CUDA when memory is short or asked for.

    Parameters
    ----------
    index : int
        CUDA's number of the device.
    """

    def __init__(self, index: int) -> None:
        import cupy

        self.cupy = cupy
        self.index = index
        self.label = f"cuda:{index}"
        self.device = cupy.cuda.Device(index)
        attributes = self.device.attributes
        self.limits = Limits(
            n_multiprocessors=attributes["MultiProcessorCount"],
            shared_per_block=attributes["MaxSharedMemoryPerBlockOptin"],
            shared_per_multiprocessor=attributes["MaxSharedMemoryPerMultiprocessor"],
            threads_per_multiprocessor=attributes["MaxThreadsPerMultiProcessor"],
            registers_per_multiprocessor=attributes["MaxRegistersPerMultiprocessor"],
        )
        self.failures = failures(cupy)
        self.pool = Pool(cupy, self.device)
        self.staging: Staging | None = None

    # ---- memory --------------------------------------------------------------------------------------------------------------

    @notices_loss
    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> GpuArray:
        n_bytes = math.prod(int(n) for n in shape) * np.dtype(dtype).itemsize
        with self.device:
            try:
                block = self._malloc(n_bytes)
            except self.cupy.cuda.memory.OutOfMemoryError as error:
                free, total = self.free_bytes(), self.device.mem_info[1]
                raise DeviceMemoryError(
                    f"{self.label} has no room for an array of {n_bytes:,} bytes: {free:,} of its {total:,} bytes are free. "
                    'Fewer rows, features or leaves need less; device="cpu" uses the memory of the computer.'
                ) from error
            memory = self.cupy.cuda.UnownedMemory(block.ptr, n_bytes, Lease(self.pool, block), self.index)
            return self.cupy.ndarray(shape, dtype, self.cupy.cuda.MemoryPointer(memory, 0))

    def _malloc(self, n_bytes: int) -> Any:
        try:
            return self.pool.blocks.malloc(n_bytes)
        except self.cupy.cuda.memory.OutOfMemoryError:
            self.cupy.get_default_memory_pool().free_all_blocks()
            return self.pool.blocks.malloc(n_bytes)

    @notices_loss
    def put(self, array: NDArray[Any]) -> GpuArray:
        source = np.asarray(array, order="C")
        target = self.empty(source.shape, source.dtype)
        with self.device:
            staged = self._stage(source) if 0 < source.nbytes <= STAGING_BYTES else None
            if staged is not None:
                target.data.copy_from_host_async(staged, source.nbytes)
            elif source.nbytes:
                # CUDA may still read pageable memory when it returns, where the device can address it. So wait.
                target.data.copy_from_host_async(source.ctypes.data, source.nbytes)
                self.cupy.cuda.get_current_stream().synchronize()
        return target

    def _stage(self, source: NDArray[Any]) -> int | None:
        """Copy an array to memory that stays unchanged until the device has read it, and return its address.

        None if the computer has no memory left that can be page-locked.
        """
        if self.staging is None:
            try:
                self.staging = Staging(self.cupy.cuda.alloc_pinned_memory(STAGING_BYTES), self.device)
            except self.cupy.cuda.runtime.CUDARuntimeError as error:
                if error.status != OUT_OF_MEMORY:
                    raise
                return None
        staging = self.staging
        if staging.used + source.nbytes > STAGING_BYTES:
            self.device.synchronize()
            staging.used = 0
        host = np.frombuffer(staging.memory, np.uint8, source.nbytes, staging.used)
        host[:] = source.reshape(-1).view(np.uint8)
        address = int(staging.memory.ptr) + staging.used
        staging.used += -(-source.nbytes // 16) * 16
        return address

    @notices_loss
    def get(self, array: GpuArray) -> NDArray[Any]:
        # The bytes that a view spans are copied as they are and looked at with its strides here: to gather them there, CuPy
        # would compile a kernel of its own, which needs the headers of the CUDA toolkit.
        first, end = span(array)
        n_bytes = end - first
        host = np.empty(n_bytes, np.uint8)
        with self.device:
            stream = self.cupy.cuda.get_current_stream()
            if n_bytes:
                (array.data + first).copy_to_host_async(host.ctypes.data, n_bytes, stream)
            stream.synchronize()
        seen: NDArray[Any] = np.ndarray(array.shape, array.dtype, host, -first, array.strides)
        return seen if seen.flags.c_contiguous else seen.copy()

    def address(self, array: GpuArray) -> int:
        return int(array.data.ptr)

    def zero(self, array: GpuArray) -> None:
        try:
            with self.device:
                array.data.memset_async(0, array.nbytes)
        except self.failures as error:
            refuse_lost(self, error)
            raise

    @notices_loss
    def capture(self, queue: Callable[[], None]) -> Any | None:
        if os.environ.get(GRAPHS) == "0":
            return None
        cuda, graph = self.cupy.cuda, None
        with self.device, cuda.Stream(non_blocking=True) as stream:  # CUDA does not capture its default stream
            try:
                stream.begin_capture(cuda.runtime.streamCaptureModeRelaxed)  # other threads may allocate meanwhile
                try:
                    queue()
                finally:
                    graph = stream.end_capture()
            except self.failures as error:
                logging.getLogger("gpuboost").info("a growth is queued launch by launch, as it cannot be captured: %s", error)
        return graph

    @notices_loss
    def replay(self, graph: Any) -> None:
        with self.device:
            graph.launch(self.cupy.cuda.get_current_stream())

    @notices_loss
    def adopt(self, matrix: Any) -> DeviceMatrix | None:
        return as_device_matrix(self, matrix)

    @notices_loss
    def free_bytes(self) -> int:
        with self.device:
            self.cupy.get_default_memory_pool().free_all_blocks()
            blocks = self.pool.blocks
            free = int(self.device.mem_info[0]) + int(blocks.free_bytes())
            limit = int(blocks.get_limit())  # from CuPy's CUPY_GPU_MEMORY_LIMIT
            return min(free, limit - int(blocks.used_bytes())) if limit else free

    def close(self) -> None:
        self.staging = None
        self.pool.closed = True
        self.pool.release()
        self.pool = Pool(self.cupy, self.device)

    # ---- other workers' devices ----------------------------------------------------------------------------------------------

    def name_for_peers(self) -> tuple[str, str]:
        uuid = bytes(self.cupy.cuda.runtime.getDeviceProperties(self.index)["uuid"])
        version = None if os.environ.get(NCCL) == "0" else nccl.version(self.cupy)
        return uuid.hex(), "" if version is None else f"NCCL {version}"

    def new_group(self) -> bytes:
        return nccl.new_group(self.cupy)

    def join(self, group: bytes, rank: int, size: int, check: Callable[[], None]) -> Communicator:
        return nccl.Nccl(self.cupy, self.device, group, rank, size, check)

    # ---- kernels -------------------------------------------------------------------------------------------------------------

    def launch(
        self, kernel: Kernel, grid: tuple[int, int, int], block: int, arguments: tuple[Argument, ...], shared_bytes: int
    ) -> None:
        try:  # a decorator would take longer than all else that is ours here
            with self.device:
                function = FUNCTIONS.get((self.index, kernel.file, kernel.name)) or self.load(kernel)
                if shared_bytes > function.shared_bytes:
                    with LOADING:  # the number follows the deed: other threads go by it
                        function.call.max_dynamic_shared_size_bytes = max(function.shared_bytes, shared_bytes)
                        function.shared_bytes = max(function.shared_bytes, shared_bytes)
                function.call(grid, (block,), arguments, shared_mem=shared_bytes)
        except self.failures as error:
            refuse_lost(self, error)
            raise

    def load(self, kernel: Kernel) -> Function:
        """Return a kernel, loaded from a fatbin of the same source if there is one, compiled if not.

        Raises
        ------
        DeviceUnavailableError
            If it cannot be compiled, or what the compiler made is not for this device.
        DeviceMemoryError
            If the device has no room for its code.
        """
        key = self.index, kernel.file, kernel.name
        with LOADING, self.device:
            if key not in FUNCTIONS:
                try:
                    call = self._prebuilt(kernel) or self._compiled(kernel)
                except self.cupy.cuda.driver.CUDADriverError as error:
                    if error.status != OUT_OF_MEMORY:
                        raise
                    raise DeviceMemoryError(f"{self.label} has no room for the kernel {kernel.name} ({error})") from error
                FUNCTIONS[key] = Function.of(call)
            return FUNCTIONS[key]

    def _prebuilt(self, kernel: Kernel) -> Any | None:
        path = fatbin.find(kernel.file)
        if path is None:
            return None
        try:
            return self.cupy.RawModule(path=str(path)).get_function(kernel.name)
        except self.cupy.cuda.driver.CUDADriverError as error:
            if error.status not in WRONG_BINARY:
                raise
            logging.getLogger("gpuboost").info("%s is not for %s: %s", path, self.label, error)
            return None

    def _compiled(self, kernel: Kernel) -> Any:
        try:  # CuPy keeps the module in memory for the file's other kernels, and on disk
            module = self.cupy.RawModule(code=kernels.source(kernel.file), options=kernels.OPTIONS)
            return module.get_function(kernel.name)
        except (self.cupy.cuda.compiler.CompileException, OSError, ImportError, RuntimeError) as error:
            reason = self._why(error)
            if reason is None:
                raise
            raise DeviceUnavailableError(f"{self.label}: {reason}") from error

    def _why(self, error: Exception) -> str | None:
        """Say why nothing was compiled, and what to do; None if the error is not about compiling."""
        cuda = self.cupy.cuda
        if isinstance(error, cuda.compiler.CompileException):
            log = "\n".join(str(error).strip().splitlines()[:8])
            return (
                f"NVRTC {'.'.join(map(str, cuda.nvrtc.getVersion()))} does not compile for compute capability "
                f"{self.device.compute_capability}. It may be too new or too old for the device. It said:\n{log}"
            )
        if isinstance(error, cuda.driver.CUDADriverError) and error.status in WRONG_BINARY:
            return f"the driver refuses what NVRTC compiled ({error}). Upgrade CuPy with NVRTC, or the driver."
        if isinstance(error, self.failures):
            return None
        if isinstance(error, OSError):
            return f"CuPy cannot keep compiled kernels ({error}). Set CUPY_CACHE_DIR to a folder that can be written."
        major = cuda.runtime.runtimeGetVersion() // 1000
        return f"CuPy cannot compile ({error}). Install NVRTC and the CUDA headers: {availability.install_compiler(major)}"


def as_device_matrix(gpu: CupyGpu, matrix: Any) -> DeviceMatrix | None:
    """Return a caller's matrix as one on ``gpu``: see `gpuboost.backends.cuda.gpu.Gpu.adopt`.

    A matrix on the same device is not copied, whatever its layout. It must live until the work that is queued with it is done.

    Parameters
    ----------
    gpu : CupyGpu
    matrix : array, shape (n_rows, n_columns)
        Of booleans, integers or floats.

    Returns
    -------
    DeviceMatrix or None
        Its bytes begin with the first element; where strides are negative, there are more before it. None if the matrix is on
        the host.

    Raises
    ------
    ValueError
        If the elements are not aligned, such as a field of packed records.
    DeviceMemoryError
        If there is no room for a matrix from another device.
    """
    if not lies_on_device(matrix):
        return None
    with gpu.device:
        array = as_cupy(matrix)
        address = int(array.data.ptr)
        if any(number % array.dtype.itemsize for number in (address, *array.strides)):
            raise ValueError(
                f"a device array of {array.dtype} at {address:#x} has the strides {array.strides}: its elements are not "
                "aligned; copy it"
            )
        if array.device.id != gpu.index:
            array = copy_from_other_device(gpu, array)
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        values = gpu.cupy.ndarray((span(array)[1],), np.uint8, array.data)
    row, column = (stride // array.dtype.itemsize for stride in array.strides)
    return DeviceMatrix(values, np.dtype(array.dtype), array.shape, (row, column))


def copy_from_other_device(gpu: CupyGpu, array: GpuArray) -> GpuArray:
    """Return a copy of an array from another device, with the same strides: all bytes that it spans travel."""
    array.device.synchronize()  # the streams of two devices do not wait for each other
    first, end = span(array)
    copy = gpu.empty((end - first,), np.uint8)
    copy.data.copy_from_device_async(array.data + first, end - first)
    return gpu.cupy.ndarray(array.shape, array.dtype, copy.data + -first, array.strides)

"""Reading a caller's matrix where it lies: arrays of CuPy, PyTorch, JAX, Numba and others on a CUDA device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import GpuArray
from gpuboost.errors import DeviceUnavailableError

DLPACK_CUDA = (2, 13)
"""DLPack's numbers of CUDA memory: that of a device, and managed memory."""


def lies_on_device(x: Any) -> bool:
    """Return whether an array is in the memory of a CUDA device, by ``__dlpack_device__`` or ``__cuda_array_interface__``."""
    if hasattr(x, "__dlpack_device__"):
        return x.__dlpack_device__()[0] in DLPACK_CUDA
    return hasattr(x, "__cuda_array_interface__")


def as_cupy(x: Any) -> GpuArray:
    """Return the memory of a device array as a CuPy array, without a copy, ready for work on CuPy's current stream.

    Of the two protocols, DLPack makes that stream wait for the producer's current one, and CuPy waits itself for the stream
    that version 3 of the CUDA array interface names. Earlier versions, and CuPy's own arrays, do not say on which stream they
    were made: the whole device is waited for.

    Raises
    ------
    DeviceUnavailableError
        If there is no CuPy.
    """
    try:
        import cupy
    except ImportError as error:
        message = f"the {type(x).__name__} lies on a CUDA device, and reading it there needs CuPy: {error}"
        raise DeviceUnavailableError(f"{message}. Install CuPy, or pass a NumPy array.") from error
    if isinstance(x, cupy.ndarray):
        x.device.synchronize()
        return x
    if hasattr(x, "detach"):  # PyTorch exports no tensors that require gradients
        x = x.detach()
    by_dlpack = hasattr(x, "__dlpack__")
    try:
        array = cupy.from_dlpack(x) if by_dlpack else cupy.asarray(x)
    except Exception as error:
        if type(error).__name__ != "CUDARuntimeError":
            raise
        message = f"the {type(x).__name__} lies on a CUDA device, and CUDA does not work here: {error}"
        raise DeviceUnavailableError(f"{message}. Pass a NumPy array.") from error
    if not by_dlpack and x.__cuda_array_interface__.get("version", 0) < 3:
        array.device.synchronize()
    return array


def to_numpy(array: GpuArray) -> NDArray[Any]:
    """Return a copy of a CuPy array on the host, by plain copies of memory.

    CuPy's own ``get`` compiles a kernel to gather what is not in C order, which needs the compiler and the headers of CUDA.
    """
    if array.flags.c_contiguous:
        return array.get()  # type: ignore[no-any-return]
    if array.ndim == 2:
        row, column = array.strides
        if abs(row) < abs(column):
            return to_numpy(array.T).T
        if column == array.dtype.itemsize and row >= array.shape[1] * column:
            return _rows_to_numpy(array)
    first, end = span(array)
    memory = type(array)((end - first,), np.uint8, array.data + first).get()
    strided: NDArray[Any] = np.ndarray(array.shape, array.dtype, memory, -first, array.strides)
    return strided.copy()


def _rows_to_numpy(array: GpuArray) -> NDArray[Any]:
    """Return a copy of a matrix whose rows are dense, such as some columns of another, and only of that."""
    import cupy

    host = np.empty(array.shape, array.dtype)
    (n_rows, _), width = array.shape, host.strides[0]
    with array.device:
        stream, runtime = cupy.cuda.get_current_stream(), cupy.cuda.runtime
        target, source = (host.ctypes.data, width), (array.data.ptr, array.strides[0])
        runtime.memcpy2DAsync(*target, *source, width, n_rows, runtime.memcpyDeviceToHost, stream.ptr)
        stream.synchronize()
    return host


def span(array: GpuArray) -> tuple[int, int]:
    """Return the first byte that a strided array covers, and the one behind the last, counted from its first element."""
    if not array.size:
        return 0, 0
    ends = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + int(array.dtype.itemsize)

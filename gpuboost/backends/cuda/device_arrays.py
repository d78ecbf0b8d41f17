"""Reading a caller's matrix where it lies: arrays of CuPy, PyTorch, JAX, Numba and others on a CUDA device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuboost.backends.cuda.gpu import DeviceMatrix, GpuArray
from gpuboost.errors import DeviceUnavailableError

if TYPE_CHECKING:
    from gpuboost.backends.cuda.cupy_gpu import CupyGpu

DLPACK_CUDA = (2, 13)
"""DLPack's numbers of CUDA memory: that of a device, and managed memory."""


def lies_on_device(x: Any) -> bool:
    """Return whether an array is in the memory of a CUDA device, by ``__dlpack_device__`` or ``__cuda_array_interface__``."""
    if hasattr(x, "__dlpack_device__"):
        return x.__dlpack_device__()[0] in DLPACK_CUDA
    return hasattr(x, "__cuda_array_interface__")


def as_cupy(x: Any) -> GpuArray:
    """Return the memory of a device array as a CuPy array, without a copy, ready for work on CuPy's current stream.

    Of the two protocols, DLPack makes that stream wait for the producer's. CuPy waits itself for the stream that version 3 of
    the CUDA array interface names; PyTorch speaks version 2, which names none.

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
        return x
    if hasattr(x, "detach"):  # PyTorch exports no tensors that require gradients
        x = x.detach()
    try:
        return cupy.from_dlpack(x) if hasattr(x, "__dlpack__") else cupy.asarray(x)
    except Exception as error:
        if type(error).__name__ != "CUDARuntimeError":
            raise
        message = f"the {type(x).__name__} lies on a CUDA device, and CUDA does not work here: {error}"
        raise DeviceUnavailableError(f"{message}. Pass a NumPy array.") from error


def adopt(gpu: CupyGpu, matrix: Any) -> DeviceMatrix | None:
    """Return a caller's matrix as one on ``gpu``: see `gpuboost.backends.cuda.gpu.Gpu.adopt`.

    A matrix on the same device is not copied, whatever its layout, unless it holds half floats. It must live until the work
    that is queued with it is done.

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
        If there is no room for the floats of half floats, or for a matrix from another device.
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
            array = _brought(gpu, array)
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        if array.dtype == np.float16:
            floats = gpu.empty(array.shape, np.float32)
            floats[...] = array
            array = floats
        values = gpu.cupy.ndarray((span(array)[1],), np.uint8, array.data)
    row, column = (stride // array.dtype.itemsize for stride in array.strides)
    return DeviceMatrix(values, np.dtype(array.dtype), array.shape, (row, column))


def span(array: GpuArray) -> tuple[int, int]:
    """Return the first byte that a strided array covers, and the one behind the last, counted from its first element."""
    if not array.size:
        return 0, 0
    ends = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    return sum(end for end in ends if end < 0), sum(end for end in ends if end > 0) + int(array.dtype.itemsize)


def _brought(gpu: CupyGpu, array: GpuArray) -> GpuArray:
    """Return a copy of an array from another device, with the same strides: all bytes that it spans travel."""
    array.device.synchronize()  # the streams of two devices do not wait for each other
    first, end = span(array)
    copy = gpu.empty((end - first,), np.uint8)
    copy.data.copy_from_device_async(array.data + first, end - first)
    return gpu.cupy.ndarray(array.shape, array.dtype, copy.data + -first, array.strides)

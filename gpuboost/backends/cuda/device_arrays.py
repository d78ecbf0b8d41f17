"""Reading a caller's matrix where it lies: arrays of CuPy, PyTorch, JAX, Numba and others on a CUDA device."""

from __future__ import annotations

from typing import Any

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

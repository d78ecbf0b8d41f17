"""Arrays that are not NumPy's: those on a CUDA device, whatever library they are of, and PyTorch's anywhere.

Nothing is imported here for them. They are known by the name of their class's module and by their protocols, and the library of
an array that somebody passes has been loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.device_arrays import as_cupy, lies_on_device, to_numpy
from gpuboost.binning import ComputedMatrix

__all__ = ["as_type_of", "device_array", "dtype_of", "lies_on_device", "origin", "to_host"]


def origin(x: Any, packages: Iterable[str]) -> str | None:
    """Return which of ``packages`` the class of ``x``, or one that it is derived from, belongs to; None if to none."""
    for base in type(x).__mro__:
        name = base.__module__.partition(".")[0]
        if name in packages:
            return name
    return None


def to_host(x: Any, name: str = "the array") -> Any:
    """Return an array on a device, a PyTorch tensor, or a matrix that is to be computed as an ndarray; anything else as it is.

    Parameters
    ----------
    x : Any
    name : str
        What messages call x.

    Raises
    ------
    TypeError
        If x is sparse, of cuDF, or of a dtype that NumPy does not have, such as bfloat16.
    DeviceUnavailableError
        If it is on a device, not of PyTorch, and CuPy is not installed.
    """
    if isinstance(x, ComputedMatrix):
        return np.asarray(x)
    _refuse(x, name)
    if origin(x, ("torch",)):
        dtype_of(x, name)
        return x.numpy(force=True)  # detached, and copied from wherever it is
    return to_numpy(as_cupy(device_array(x, name))) if lies_on_device(x) else x


def as_type_of(result: NDArray[Any], x: Any) -> Any:
    """Return ``result`` as an array of the library of ``x``, on the device of ``x``.

    It stays an ndarray if x is of neither CuPy nor PyTorch, or if the result holds no numbers, such as labels that are text.
    """
    library = origin(x, ("cupy", "torch"))
    if library is None or result.dtype.kind not in "biuf" or result.dtype.itemsize > 8:
        return result
    if library == "cupy":
        with x.device:
            return sys.modules["cupy"].asarray(result)
    return sys.modules["torch"].from_numpy(result).to(x.device)


def dtype_of(x: Any, name: str) -> np.dtype[Any]:
    """Return the dtype of an array of any library as NumPy's; a TypeError if NumPy has no such dtype."""
    try:
        dtype = np.dtype(str(x.dtype).removeprefix("torch."))
    except TypeError:
        dtype = np.dtype(np.void)
    if dtype.kind not in "biufc":
        raise TypeError(
            f"{name} has the dtype {x.dtype}, which is none of NumPy's numbers; convert it, for instance to float32"
        )
    return dtype


def device_array(x: Any, name: str) -> Any:
    """Return a device array that has a shape, a dtype and slices: x itself, or a CuPy array if x offers only its memory.

    Raises the same errors as `to_host`.
    """
    _refuse(x, name)
    x = x if all(hasattr(x, what) for what in ("shape", "dtype", "__getitem__")) else as_cupy(x)
    dtype_of(x, name)
    return x


def _refuse(x: Any, name: str) -> None:
    """Raise a TypeError for what looks like an array of numbers and is none."""
    source = origin(x, ("torch", "cudf", "cupyx"))
    kind = type(x).__name__
    if source == "cudf":
        raise TypeError(f"{name} is a {kind} of cuDF, which is not supported; use .to_cupy() or .to_pandas()")
    if source == "cupyx" or (source == "torch" and str(x.layout) != "torch.strided"):
        dense = "toarray" if source == "cupyx" else "to_dense"
        raise TypeError(f"{name} is sparse ({kind}), but dense data is required; use .{dense}()")

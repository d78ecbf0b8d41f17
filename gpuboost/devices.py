"""From the ``device`` parameter to a backend."""

from __future__ import annotations

import re
from numbers import Integral

from gpuboost.backends.base import Backend
from gpuboost.errors import DeviceUnavailableError

EXPECTED = 'expected "auto", "cpu", "numpy", "cuda", "cuda:<number>" or a CUDA device number'


def open_backend(device: str | int, n_jobs: int | None = None) -> Backend:
    """Return the backend for ``device``.

    Parameters
    ----------
    device : str or int
        "auto" is the CPU in this version.
    n_jobs : int or None
        Threads of the CPU backend.

    Raises
    ------
    ValueError
        If ``device`` is none of the known names.
    DeviceUnavailableError
        If it names a CUDA device.
    """
    if isinstance(device, Integral) and not isinstance(device, bool):
        if device < 0:
            raise ValueError(f"device must not be negative, got {device!r}; {EXPECTED}")
        device = f"cuda:{device}"
    if device in ("auto", "cpu"):
        from gpuboost.backends.cpu_backend import CpuBackend

        return CpuBackend(n_jobs)
    if device == "numpy":
        from gpuboost.backends.numpy_backend import NumpyBackend

        return NumpyBackend()
    if isinstance(device, str) and re.fullmatch(r"cuda(:\d+)?", device):
        raise DeviceUnavailableError(
            f'device={device!r} was asked for, but this version of gpuboost has no CUDA backend yet; use device="cpu" '
            'or "auto", which train the same model'
        )
    raise ValueError(f"device={device!r} is unknown; {EXPECTED}")

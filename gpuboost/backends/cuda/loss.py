"""Devices that are lost: which errors of CUDA mean that, and what is said."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from gpuboost.errors import DeviceLostError

LOST: dict[int, str] = {}
"""The devices that this process can use no more, by number, and the errors that said so."""

STATUSES = frozenset({4, 46, 100, 101, 214, 220, 226, 700, 702, 709, 710, *range(714, 720), 727, 802, 805, 806, 807, 999})
"""Statuses, of the driver and of the run-time, after which every call fails: the device has gone or is not to be had, its
memory is damaged, or a kernel has crashed, which takes the process's context along."""

Method = TypeVar("Method", bound=Callable[..., Any])


def failures(cupy: Any) -> tuple[type[Exception], ...]:
    """Return the types of CUDA's errors. Where a pool is asked for memory and has none, the error is of another."""
    return cupy.cuda.driver.CUDADriverError, cupy.cuda.runtime.CUDARuntimeError


def notices_loss(method: Method) -> Method:
    """Let a method of `gpuboost.backends.cuda.cupy_gpu.CupyGpu` do `refuse_lost` where it meets an error of CUDA."""

    @functools.wraps(method)
    def guarded(gpu: Any, *arguments: Any) -> Any:
        try:
            return method(gpu, *arguments)
        except gpu.failures as error:
            refuse_lost(gpu, error)
            raise

    return guarded  # type: ignore[return-value]


def refuse_lost(gpu: Any, error: Any) -> None:
    """Raise a DeviceLostError if an error of CUDA means that the device is lost."""
    if error.status in STATUSES:
        LOST[gpu.index] = str(error)
        raise DeviceLostError(
            f"{gpu.label} has stopped working ({error}), and this process can use it no more: start another. nvidia-smi, "
            "and the lines with Xid in the log of the system (dmesg), tell whether the device is broken."
        ) from error

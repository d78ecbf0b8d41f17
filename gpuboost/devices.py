"""From the ``device`` parameter to a backend."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from numbers import Integral

from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import availability
from gpuboost.backends.cuda.availability import DeviceProblem
from gpuboost.backends.divided import DividedGrowth
from gpuboost.backends.sharded import ShardedBackend
from gpuboost.errors import DeviceUnavailableError
from gpuboost.messages import warn
from gpuboost.peers.base import ALONE, Peers

EXPECTED = 'expected "auto", "cpu", "numpy", "cuda", "cuda:<number>" or a CUDA device number'


def open_backend(device: str | int, n_jobs: int | None = None, peers: Peers = ALONE) -> Backend:
    """Return the backend for ``device``, for a part of the rows if there are peers that have the others.

    Parameters
    ----------
    device : str or int
        "auto" is the current CUDA device if CUDA can be used, else the CPU. "cpu", "numpy" (the slow reference), "cuda" (the
        current CUDA device), "cuda:1" and 1 never fall back on another.
    n_jobs : int or None
        Threads of the CPU backend.
    peers : Peers

    Raises
    ------
    ValueError
        If ``device`` is none of the known names, or stands for devices of different kinds on the workers.
    DeviceUnavailableError
        If it names a CUDA device that cannot be used.
    """
    local = open_local(device, n_jobs)
    if peers.size == 1:
        return local
    kinds = [kind.decode() for kind in peers.gather(type(local).__name__.encode(), "kind of backend")]
    if len(set(kinds)) > 1:
        local.close()
        others = ", ".join(f"worker {rank} {kind}" for rank, kind in enumerate(kinds))
        raise ValueError(f'device={device!r} must be of one kind on all workers, but is {others}; say device="cpu" or "cuda"')
    try:
        local.link(peers)
    except BaseException:
        local.close()
        raise
    return ShardedBackend(local, peers)


def open_local(device: str | int, n_jobs: int | None) -> DividedGrowth:
    """Return the backend for ``device`` on this machine, see `open_backend`."""
    if isinstance(device, Integral) and not isinstance(device, bool):
        if device < 0:
            raise ValueError(f"device must not be negative, got {device!r}; {EXPECTED}")
        device = f"cuda:{device}"
    if device == "auto":
        problem = device_problem(None)
        if problem is None:
            return OPENERS["cuda"](None)
        notify_once(problem)
        device = "cpu"
    if device == "cpu":
        from gpuboost.backends.cpu.backend import CpuBackend

        return CpuBackend(n_jobs)
    if device == "numpy":
        from gpuboost.backends.reference.backend import NumpyBackend

        return NumpyBackend()
    match = re.fullmatch(r"([a-z]+)(?::(\d+))?", device) if isinstance(device, str) else None
    if match is None or match[1] not in OPENERS:
        raise ValueError(f"device={device!r} is unknown; {EXPECTED}")
    return OPENERS[match[1]](None if match[2] is None else int(match[2]))


def open_cuda(index: int | None) -> DividedGrowth:
    """Return the backend of CUDA device ``index``, or of the current one.

    Raises
    ------
    DeviceUnavailableError
        If it cannot be used. The message says why, what was found, and what to do.
    """
    problem = device_problem(index)
    if problem is not None:
        name = "cuda" if index is None else f"cuda:{index}"
        advice = f"\n  To do: {problem.advice}" if problem.advice else ""
        raise DeviceUnavailableError(
            f'device="{name}" cannot be used: {problem.reason}.{advice}\n  Found: {availability.findings()}\n'
            '  device="cpu" trains the same model; "python -m gpuboost doctor" says more.'
        )
    from gpuboost.backends.cuda.backend import CudaBackend
    from gpuboost.backends.cuda.cupy_gpu import CupyGpu

    return CudaBackend(CupyGpu(availability.current_device() if index is None else index))


OPENERS: dict[str, Callable[[int | None], DividedGrowth]] = {"cuda": open_cuda}
"""How to open the backends of devices that have numbers; None is the current one."""

told: set[DeviceProblem] = set()
"""What `tell` has said in this process."""


def device_problem(index: int | None) -> DeviceProblem | None:
    """Return why CUDA device ``index``, or the current one, cannot be used; None if it can.

    The first call initialises CUDA, if it comes as far.
    """
    if availability.forked():
        return DeviceProblem(
            "this process was forked from one that had used CUDA, which CUDA does not support", availability.USE_SPAWN
        )
    common = availability.common_problem()
    if common is not None:
        return common
    try:
        return kernel_problem(availability.current_device() if index is None else index)
    except Exception as error:
        return availability.query_problem(error)


working: set[int] = set()
"""The devices that have been found to work. Others are tried again when asked for: they may only have been full."""


def kernel_problem(index: int) -> DeviceProblem | None:
    """Return what keeps one device from being used: it is not there, or no kernel can be loaded."""
    from gpuboost.backends.cuda.cupy_gpu import CupyGpu
    from gpuboost.backends.cuda.kernels import KERNELS
    from gpuboost.backends.cuda.loss import LOST

    if index in LOST:
        return DeviceProblem(f"cuda:{index} has stopped working in this process ({LOST[index]})", "Start another process")
    if index in working:
        return None
    n_devices = availability.import_cupy().cuda.runtime.getDeviceCount()
    if index >= n_devices:
        names = f"only cuda:0 to cuda:{n_devices - 1} exist" if n_devices > 1 else "only cuda:0 exists"
        return DeviceProblem(f"there is no device cuda:{index}, {names}", "CUDA_VISIBLE_DEVICES may hide others")
    try:
        CupyGpu(index).load(next(iter(KERNELS.values())))
    except DeviceUnavailableError as error:
        return DeviceProblem(str(error), "")
    except Exception as error:
        return DeviceProblem(
            f"cuda:{index} does not work ({error})", "See whether nvidia-smi works, and what else uses the device"
        )
    working.add(index)
    return None


def notify_once(problem: DeviceProblem) -> None:
    """Say once why "auto" is the CPU: a warning where a user may expect a GPU, a note in the log on an ordinary machine."""
    if problem in told:
        return
    told.add(problem)
    message = f'device="auto" trains on the CPU: {problem.reason}. {problem.advice}'.strip()
    if not availability.gpu_expected():
        logging.getLogger("gpuboost").info(message)
        return
    warn(f'{message} (device="cpu" says nothing)')

"""Sums over the devices of several workers, through NCCL: integers only, so that their order cannot matter.

NCCL waits for ever for a worker that has gone. So nobody waits for NCCL: whoever has queued a sum asks now and then whether it
is done, and in between whether the other workers still live, of whom the host's links hear.

References
----------
NVIDIA Collective Communication Library (NCCL) documentation, "Group Calls" and "Fault Tolerance".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpuboost.backends.cuda.gpu import Part

EAGER_SECONDS = 0.002
"""How long a sum is waited for without sleeping: most take less."""
SLEEP_SECONDS = 0.0002


class Nccl:
    """A device's place among those of all workers, as a `gpuboost.backends.cuda.gpu.Communicator`.

    Parameters
    ----------
    cupy : module
    device : cupy.cuda.Device
    group : bytes
        Names the workers' meeting, see `new_group`.
    rank, size : int
    check : callable
        Called while this worker waits for the others; what it raises ends the waiting.
    """

    def __init__(self, cupy: Any, device: Any, group: bytes, rank: int, size: int, check: Callable[[], None]) -> None:
        self._cupy, self._nccl, self._device = cupy, cupy.cuda.nccl, device
        self._types = {np.dtype(np.int32): self._nccl.NCCL_INT32, np.dtype(np.int64): self._nccl.NCCL_INT64}
        self._communicator: Any = None
        self._error: BaseException | None = None
        meeting = threading.Thread(target=self._meet, args=(group, rank, size), name="gpuboost-nccl", daemon=True)
        meeting.start()
        self._wait(lambda: not meeting.is_alive(), check)
        if self._error is not None:
            raise self._error

    def _meet(self, group: bytes, rank: int, size: int) -> None:
        """Wait for all workers, in a thread that is left behind if one of them does not come."""
        try:
            with self._device:
                name = tuple(np.frombuffer(group, np.int8).tolist())
                self._communicator = self._nccl.NcclCommunicator(size, name, rank)
        except BaseException as error:
            self._error = error

    def reduce(self, parts: Sequence[Part]) -> None:
        with self._device:
            stream = self._cupy.cuda.get_current_stream().ptr
            self._nccl.groupStart()  # all of them travel together
            try:
                for array, root, into in parts:
                    target = 0 if into is None else into.data.ptr
                    kind = self._types[np.dtype(array.dtype)]
                    self._communicator.reduce(array.data.ptr, target, array.size, kind, self._nccl.NCCL_SUM, root, stream)
            finally:
                self._nccl.groupEnd()

    def wait(self, check: Callable[[], None]) -> None:
        with self._device:
            done = self._cupy.cuda.Event(block=False, disable_timing=True)
            done.record(self._cupy.cuda.get_current_stream())
            self._wait(lambda: bool(done.done), check)

    def _wait(self, is_done: Callable[[], bool], check: Callable[[], None]) -> None:
        eager_until = time.monotonic() + EAGER_SECONDS
        try:
            while not is_done():
                if time.monotonic() < eager_until:
                    continue
                check()
                if self._communicator is not None:
                    self._communicator.check_async_error()
                time.sleep(SLEEP_SECONDS)
        except BaseException:
            self.abort()
            raise

    def abort(self) -> None:
        communicator, self._communicator = self._communicator, None
        if communicator is not None:
            communicator.abort()

    def close(self) -> None:
        communicator, self._communicator = self._communicator, None
        if communicator is not None:
            communicator.destroy()


def version(cupy: Any) -> int | None:
    """Return the version of NCCL that CuPy has found; None if there is none."""
    nccl = getattr(cupy.cuda, "nccl", None)
    if nccl is None or not getattr(nccl, "available", False):
        return None
    return int(nccl.get_version())


def new_group(cupy: Any) -> bytes:
    """Return a name by which workers meet in NCCL; one of them makes it and tells the others."""
    return np.array(cupy.cuda.nccl.get_unique_id(), np.int8).tobytes()

"""Memory that CUDA knows, on the device and on the host, and how it goes, also when the device is lost."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from gpuboost.backends.cuda.loss import failures

ABANDONED: set[Any] = set()
"""Pools of lost devices: to give their blocks back to CUDA would fail, with a message for each."""


class Pool:
    """A memory pool on a device, which gives all back to CUDA when it goes, and earlier what has no array once it is closed."""

    def __init__(self, cupy: Any, device: Any) -> None:
        self.blocks = cupy.cuda.MemoryPool()
        self.device = device
        self.failures = failures(cupy)
        self.closed = False

    def release(self) -> None:
        """Give what no array uses back to CUDA. It raises no error, as another may be on its way."""
        try:
            self.device.synchronize()
            with self.device:
                self.blocks.free_all_blocks()
        except self.failures:
            ABANDONED.add(self.blocks)

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.release()


class Lease:
    """A block of a pool in use: the owner of an array's memory.

    It keeps the pool. CuPy's would else go while an exception or a caller holds arrays, and a pool that goes leaks every
    allocation that it has divided between a living array and others.
    """

    def __init__(self, pool: Pool, block: Any) -> None:
        self.pool, self.block = pool, block

    def __del__(self) -> None:
        if not sys.is_finalizing():
            self.block = None
            if self.pool.closed:
                self.pool.release()


class Staging:
    """Page-locked host memory for copies to a device that nobody waits for. It goes when they are done.

    Attributes
    ----------
    memory : cupy.cuda.PinnedMemoryPointer
    used : int
        Bytes, from its start on, that copies may still read.
    """

    def __init__(self, memory: Any, device: Any) -> None:
        self.memory, self.device, self.used = memory, device, 0

    def __del__(self) -> None:
        if not sys.is_finalizing():
            with contextlib.suppress(RuntimeError):  # CUDA's, of a device that is lost, which reads nothing any more
                self.device.synchronize()

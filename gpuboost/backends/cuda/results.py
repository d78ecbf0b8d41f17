"""Small results of kernels, which wait on the device until the host needs one: then all of them come in one transfer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.cuda.gpu import Gpu, GpuArray

CAPACITY = 1 << 16
"""Numbers of 64 bits that wait side by side: half a megabyte, which is set to zero once in many rounds."""


class Pending:
    """A result that the device works out. ``get``, ``float()`` and ``int()`` wait for it, once.

    Attributes
    ----------
    array : device array of int64
        Zero until a kernel adds to it.
    """

    def __init__(self, results: Results, array: GpuArray) -> None:
        self.results = results
        self.array = array
        self.host: IntArray | None = None

    @property
    def bits(self) -> GpuArray:
        """The same as the bits of float64, for a maximum."""
        return self.array.view(np.uint64)

    def get(self) -> IntArray:
        """Return the result on the host, shape (n,)."""
        if self.host is None:
            self.results.fetch(self)
        assert self.host is not None
        return self.host

    def __float__(self) -> float:
        return float(self.get().view(np.float64)[0])

    def __int__(self) -> int:
        return int(self.get()[0])


class Results:
    """The results that nobody has asked for yet.

    Parameters
    ----------
    gpu : Gpu
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.memory: GpuArray | None = None
        self.fetched = self.used = 0
        self.waiting: list[Pending] = []

    def reserve(self, n: int) -> Pending:
        """Return ``n`` numbers that are zero."""
        if n > CAPACITY:  # nothing small waits for something large
            own = Pending(self, self.gpu.empty((n,), np.int64))
            self.gpu.zero(own.array)
            return own
        self.make_room(n)
        assert self.memory is not None
        pending = Pending(self, self.memory[self.used : self.used + n])
        self.used += n
        self.waiting.append(pending)
        return pending

    def fetch(self, wanted: Pending) -> None:
        """Bring all results that wait, or ``wanted`` if that is a large one, which waits alone."""
        if self.memory is None or wanted not in self.waiting:
            wanted.host = self.gpu.get(wanted.array)
            return
        host: NDArray[Any] = self.gpu.get(self.memory[self.fetched : self.used])
        at = 0
        for pending in self.waiting:
            n = pending.array.shape[0]
            pending.host = host[at : at + n]
            at += n
        self.fetched, self.waiting = self.used, []

    def make_room(self, n: int) -> None:
        """Let the next ``n`` numbers lie side by side. What waits may be fetched, and is then no longer on the device.

        So this comes before kernels are queued of which one reads what another has written.
        """
        if self.memory is not None and self.used + n <= CAPACITY:
            return
        if self.memory is None:
            self.memory = self.gpu.empty((CAPACITY,), np.int64)
        elif self.waiting:
            self.fetch(self.waiting[0])
        self.gpu.zero(self.memory)
        self.fetched = self.used = 0

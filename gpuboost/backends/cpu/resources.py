"""What the parts of the CPU backend share: a team of threads, and memory that is kept."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.threads import Team, usable_threads


class Scratch:
    """Named memory of one thread that is kept between calls, with what has been left in it; 0 at first."""

    def __init__(self) -> None:
        self.memory: dict[tuple[str, Any], NDArray[Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        size = math.prod(shape)
        memory = self.memory.get((name, dtype))
        if memory is None or len(memory) < size:
            self.memory[name, dtype] = memory = np.zeros(size, dtype)
        return memory[:size].reshape(shape)


class CpuResources:
    """Threads and memory.

    Parameters
    ----------
    n_jobs : int or None
        See `gpuboost.backends.cpu.threads.usable_threads`.

    Attributes
    ----------
    team : Team
    scratch : Scratch
        Of the calling thread.
    spare : list of Scratch
        Each thread of a team takes one from it and puts it back.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.team = Team(usable_threads(n_jobs))
        self.free()

    def free(self) -> None:
        """Give back the memory."""
        self.scratch = Scratch()
        self.spare: list[Scratch] = []
        self.numbers = np.zeros(0, np.int32)

    def arange(self, n: int) -> NDArray[np.int32]:
        """Return the row numbers 0..n-1."""
        if len(self.numbers) != n:
            self.numbers = np.arange(n, dtype=np.int32)
        return self.numbers

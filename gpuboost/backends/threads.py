"""How many threads to use, and a small team of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def usable_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``: never more than the process may use.

    The limit is the CPU affinity, the container's CPU quota and ``OMP_NUM_THREADS``, and 1 inside a worker of a parallel joblib
    call that has shared out the CPUs already. ``None`` and -1 mean the limit, -2 one less, and so on, as in scikit-learn.

    Raises
    ------
    ValueError
        If ``n_jobs`` is 0.
    """
    import joblib

    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; expected None, a positive number of threads, or -1 for all")
    limit = min(joblib.cpu_count(), joblib.effective_n_jobs(-1))
    variable = os.environ.get("OMP_NUM_THREADS", "")
    if variable.isdigit() and int(variable) > 0:
        limit = min(limit, int(variable))
    wanted = limit if n_jobs is None else n_jobs if n_jobs > 0 else limit + 1 + n_jobs
    return max(1, min(wanted, limit))


class Team:
    """Threads that share a compiled loop over a range.

    The loops release the GIL. The threads start with the first loop that is worth sharing and end with `close`, so a process
    that forks afterwards, or trains in several threads at once, is safe.
    """

    WORTH_SHARING = 400_000
    """Elementary operations below which starting a loop on other threads costs more than it gains (about 0.1 ms)."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.pool: ThreadPoolExecutor | None = None

    def map(self, loop: Callable[..., Any], size: int, work: int, *arguments: Any) -> list[Any]:
        """Run ``loop(lo, hi, *arguments)`` over consecutive ranges that cover ``range(size)``; return its results in order.

        ``work`` estimates the elementary operations of the whole loop.
        """
        if self.n_threads == 1 or size < 2 or work < self.WORTH_SHARING:
            return [loop(0, size, *arguments)]
        if self.pool is None:
            self.pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="gpuboost")
        # More pieces than threads even out unequal pieces, but only as long as each is worth its start.
        n_pieces = min(size, max(self.n_threads, min(4 * self.n_threads, work // self.WORTH_SHARING)))
        bounds = [size * i // n_pieces for i in range(n_pieces + 1)]
        pieces = zip(bounds[:-1], bounds[1:], strict=True)
        return [f.result() for f in [self.pool.submit(loop, lo, hi, *arguments) for lo, hi in pieces]]

    def close(self) -> None:
        """End the threads."""
        if self.pool is not None:
            self.pool.shutdown(cancel_futures=True)
            self.pool = None

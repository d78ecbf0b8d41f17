"""How many threads to use, and a small team of them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable
from typing import Any


def usable_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``: never more than the process may use.

    The limit is the CPU affinity, the container's CPU quota and ``OMP_NUM_THREADS``, and 1 inside a worker of a parallel call.
    ``None`` and -1 mean the limit, -2 one less, and so on, as in scikit-learn.

    Raises
    ------
    ValueError
        If ``n_jobs`` is 0.
    """
    import joblib

    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0; expected None, a positive number of threads, or -1 for all")
    limit = 1 if is_worker() else int(joblib.cpu_count())
    variable = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    if variable.isdecimal() and int(variable) > 0:
        limit = min(limit, int(variable))
    wanted = limit if n_jobs is None else n_jobs if n_jobs > 0 else limit + 1 + n_jobs
    return max(1, min(wanted, limit))


def is_worker() -> bool:
    """Whether other workers of a parallel call share the CPUs: those of joblib's threads, or of a pool of `multiprocessing`.

    (joblib's processes of the default kind, loky, are given their share of the CPUs as ``OMP_NUM_THREADS``.)
    """
    from joblib.parallel import get_active_backend

    in_thread_of_call = threading.current_thread() is not threading.main_thread() and get_active_backend()[0].nesting_level
    return multiprocessing.current_process().daemon or bool(in_thread_of_call)


class Team:
    """Threads that share a compiled loop over a range.

    The loops release the GIL. The caller is a member of the team; the others start with the first loop that is worth sharing,
    sleep between loops, and end with `close`. So a process that forks afterwards, or trains in several threads, is safe.

    Parameters
    ----------
    n_threads : int
        Members of the team, the caller included.
    """

    WORTH_SHARING = 6_000_000
    """Additions below which sharing costs more than it gains: waking the others, and moving the rows into their caches."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads
        self.members: list[Member] = []

    def map(self, loop: Callable[..., Any], size: int, work: int, *arguments: Any) -> list[Any]:
        """Run ``loop(lo, hi, *arguments)`` over consecutive ranges that cover ``range(size)``; return its results in order.

        ``work`` estimates the additions of the whole loop (about 0.2 ns each).
        """
        if self.n_threads == 1 or size < 2 or work < self.WORTH_SHARING:
            return [loop(0, size, *arguments)]
        if not self.members:
            self.members = [Member() for _ in range(self.n_threads - 1)]
        # More pieces than threads even out unequal pieces, as long as each is worth its call.
        n_pieces = min(size, max(self.n_threads, min(8 * self.n_threads, work // (self.WORTH_SHARING // 4))))
        bounds = [size * i // n_pieces for i in range(n_pieces + 1)]
        results: list[Any] = [None] * n_pieces
        pieces = iter(range(n_pieces))  # its next() is atomic: every piece is taken once

        def share() -> None:
            for i in pieces:
                results[i] = loop(bounds[i], bounds[i + 1], *arguments)

        for member in self.members:
            member.begin(share)
        try:
            share()
        finally:
            for _ in pieces:  # after an interrupt: nobody begins another piece
                pass
            failures = [member.wait() for member in self.members]
        for failure in failures:
            if failure is not None:
                raise failure
        return results

    def close(self) -> None:
        """End the threads."""
        for member in self.members:
            member.begin(None)
        for member in self.members:
            member.thread.join()
        self.members = []


class Member:
    """A thread that sleeps until it is given something to run.

    A pool's queues and futures would cost 0.1 ms a loop more.
    """

    def __init__(self) -> None:
        self.wake, self.done = threading.Lock(), threading.Lock()
        self.wake.acquire()
        self.done.acquire()
        self.task: Callable[[], None] | None = None
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self._live, name="gpuboost", daemon=True)
        self.thread.start()

    def begin(self, task: Callable[[], None] | None) -> None:
        """Start ``task``; None ends the thread."""
        self.task = task
        self.wake.release()

    def wait(self) -> BaseException | None:
        """Wait for the task to end, and return what it raised."""
        self.done.acquire()
        failure, self.failure = self.failure, None
        return failure

    def _live(self) -> None:
        while True:
            self.wake.acquire()
            if self.task is None:
                return
            try:
                self.task()
            except BaseException as failure:
                self.failure = failure
            self.task = None  # hold no arrays while asleep
            self.done.release()

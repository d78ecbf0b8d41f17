"""Workers that are threads of one process: for tests, and for rows that lie in several arrays of one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.errors import WorkerLostError, WorkersPartedError
from gpuboost.peers.base import Call, Integer, Number, Peers, check_bounds, check_integers, describe, parted

Result = TypeVar("Result")
Value = TypeVar("Value", bound=NDArray[Any] | bytes)
Outcome = TypeVar("Outcome")
Failure = Callable[[str], Exception]  # from the name of a call to the error that it raises


def run_workers(size: int, function: Callable[[Peers], Result], timeout: float = 60) -> list[Result]:
    """Run ``function`` on several workers at once, each with its own `Peers`, and return what they return, by rank.

    Parameters
    ----------
    size : int
        Number of workers, at least 1.
    function : callable
    timeout : float
        Seconds that a worker waits for the others in one call, and that workers get to end when another has failed.

    Raises
    ------
    Exception
        What a worker raises: the first error that is not a consequence of another worker's.
    """
    if size < 1:
        raise ValueError(f"size must be at least 1 worker, got {size}")
    meeting = _Meeting(size, timeout)
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def work(rank: int) -> None:
        try:
            results[rank] = function(_Worker(meeting, rank))
        except BaseException as error:  # whatever it is, nobody may wait for this worker any longer
            error.add_note(f"raised by worker {rank} of {size}")
            errors.append(error)
            meeting.fail(partial(WorkerLostError, rank))
        meeting.leave(rank)

    threads = [threading.Thread(target=work, args=(rank,), name=f"worker {rank}", daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    try:
        meeting.wait_for_the_end()
    except BaseException:  # an interrupt of the caller's thread
        meeting.fail(partial(WorkerLostError, 0))
        raise
    for thread in threads:
        thread.join(timeout)
    if errors:
        raise next((error for error in errors if not _is_consequence(error)), errors[0])
    for rank in sorted(set(range(size)) - results.keys()):  # it knows of a failure, and goes on
        raise WorkerLostError(rank, "the end")
    return [results[rank] for rank in range(size)]


def _is_consequence(error: BaseException | None) -> bool:
    """Whether an error says that another worker was lost, or came of one that does."""
    while error is not None and not isinstance(error, WorkerLostError):
        error = error.__cause__ or error.__context__
    return error is not None


class _Meeting:
    """Where the workers wait until all have made the same call."""

    def __init__(self, size: int, timeout: float) -> None:
        self.size = size
        self.timeout = timeout
        self._changed = threading.Condition()
        self._offers: dict[int, tuple[Call, Any]] = {}  # of the workers that have come
        self._ended: set[int] = set()
        self._n_held = 0
        self._outcome: Any = None
        self._failure: Failure | None = None

    def hold(self, rank: int, call: Call, value: Value, combine: Callable[[Sequence[Value]], Outcome]) -> Outcome:
        """Return ``combine`` of all workers' values in the order of ranks. The last worker to come computes it for all."""
        with self._changed:
            self._check(rank, call)
            self._offers[rank] = call, value
            number = self._n_held
            if len(self._offers) == self.size:
                self._outcome = combine([self._offers[worker][1] for worker in range(self.size)])
                self._offers.clear()
                self._n_held += 1
                self._changed.notify_all()
            elif not self._changed.wait_for(lambda: self._failure or self._n_held > number, self.timeout):
                missing = min(set(range(self.size)) - self._offers.keys())
                self.fail(partial(WorkerLostError, missing))
            if self._n_held == number:
                self._raise_failure(call.what)
            outcome: Outcome = self._outcome  # not replaced before this worker has come to the next meeting
            return outcome

    def _check(self, rank: int, call: Call) -> None:
        """Compare a worker's call with one of those who wait already, and with those who have ended."""
        others: list[tuple[int, Call | str]] = [(worker, offered) for worker, (offered, _) in self._offers.items()]
        others += [(worker, "its end") for worker in self._ended]
        for worker, other in others:
            if other != call:
                self._part(rank, call, worker, other)
        self._raise_failure(call.what)

    def _part(self, worker: int, call: Call | str, other: int, other_call: Call | str) -> None:
        message = str(parted(worker, call, other, other_call))
        self.fail(lambda what: WorkersPartedError(message))

    def _raise_failure(self, what: str) -> None:
        if self._failure is not None:
            raise self._failure(what)

    def check(self, what: str) -> None:
        """Raise the error of a failure that is known."""
        with self._changed:
            self._raise_failure(what)

    def fail(self, failure: Failure) -> None:
        """Let all workers fail: those who wait at once, the others in their next call. The first failure stays."""
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def leave(self, rank: int) -> None:
        """Take note that a worker has ended. Who waits for it fails."""
        with self._changed:
            self._ended.add(rank)
            for worker, (call, _) in self._offers.items():
                self._part(worker, call, rank, "its end")
            self._changed.notify_all()

    def wait_for_the_end(self) -> None:
        """Wait until all workers have ended or one has failed."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure or len(self._ended) == self.size)


class _Worker:
    """The `Peers` of one thread."""

    def __init__(self, meeting: _Meeting, rank: int) -> None:
        self.rank = rank
        self.size = meeting.size
        self._meeting = meeting
        self._n_calls = 0

    def sum(self, array: NDArray[Integer], what: str) -> NDArray[Integer]:
        check_integers(array, what)
        return self._meet("sum", array, what, partial(_fold, np.add))

    def max(self, array: NDArray[Number], what: str) -> NDArray[Number]:
        return self._meet("max", array, what, partial(_fold, np.maximum))

    def gather(self, data: bytes, what: str) -> list[bytes]:
        return list(self._meet("gather", data, what, tuple))

    def reduce_scatter(self, array: NDArray[Integer], bounds: IntArray, what: str) -> NDArray[Integer]:
        check_integers(array, what)
        check_bounds(bounds, self.size, len(array), what)

        def combine(arrays: Sequence[NDArray[Integer]]) -> list[NDArray[Integer]]:
            return [_fold(np.add, [array[first:last] for array in arrays]) for first, last in pairwise(bounds)]

        return self._meet("reduce_scatter", array, what, combine, bounds)[self.rank]

    def check(self, what: str) -> None:
        self._meeting.check(what)

    def _meet(
        self,
        op: str,
        value: Value,
        what: str,
        combine: Callable[[Sequence[Value]], Outcome],
        bounds: IntArray | None = None,
    ) -> Outcome:
        call = describe(self._n_calls, op, what, value, bounds)
        self._n_calls += 1
        return self._meeting.hold(self.rank, call, value, combine)


def _fold(operation: np.ufunc, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Apply an operation to all arrays. The result cannot be written, as all workers get the same one."""
    folded = np.asarray(reduce(operation, arrays)).view()
    folded.flags.writeable = False
    return folded

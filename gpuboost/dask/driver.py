"""The side of the client: starts a task on every worker, brings them together, and watches them until the model is there."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from gpuboost.dask.cluster import first_lost, silences, sole_use
from gpuboost.dask.worker import Assignment, Work, reach, tell, train_here
from gpuboost.errors import WorkerLostError
from gpuboost.messages import warn
from gpuboost.peers.greeting import TOKEN_BYTES, Address

Block = tuple[int, Any, Any, Any]
"""The first row, X, y and the weights of a partition; X that is to be read by the worker brings the others."""

STEP_SECONDS = 0.5
"""On some systems an interrupt waits for so long."""
GRACE_SECONDS = 0.5
"""How long it waits, when a worker is lost, for an error that says more."""
OWN_END_SECONDS = 5.0
"""How long it waits for the end of a task whose links have closed while its worker lives: its own error is on the way."""
FETCH_SECONDS = 300
"""How long the finished model may take to come."""
PLAIN = ("tcp://", "inproc://")
"""Addresses of workers that ask for no encryption."""


@dataclass(frozen=True)
class Options:
    """How the workers of a training are linked and watched, see `gpuboost.dask.fit`."""

    links: str = "auto"
    ports: tuple[int, int] | None = None
    lost_after: float = 30
    start_within: float = 60


def train_on_workers(
    client: Any, shares: Mapping[str, Sequence[list[Block]]], estimator: Any, options: Options, work: Work
) -> bytes:
    """Train on some workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    shares : dict
        The blocks of the training set and of every evaluation set by the address of the worker that gets them, in the order of
        ranks.
    estimator : BoostingClassifier
    options : Options
    work : callable
        What every worker does, see `gpuboost.estimators.parts.fit_worker`.

    Returns
    -------
    bytes
        The model's file.

    Raises
    ------
    Exception
        The first error of a worker that does not come of the loss of another.
    WorkerLostError
        If there is none but that. Its ``worker`` is a number in the order of ``shares``.
    TimeoutError
        If some workers do not begin in time.
    """
    with sole_use(client, list(shares)):
        return Driver(client, tuple(shares), options).run(list(shares.values()), estimator, work)


class Driver:
    """One training on a cluster.

    Parameters
    ----------
    client : distributed.Client
    workers : tuple of str
        The addresses of the workers, by rank.
    options : Options
    """

    def __init__(self, client: Any, workers: tuple[str, ...], options: Options) -> None:
        self.client, self.workers, self.options = client, workers, options
        self.name = f"gpuboost-{secrets.token_hex(16)}"
        self.futures: list[Any] = []
        self.reports: dict[int, dict[str, Any]] = {}
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._ended: set[int] = set()

    def run(self, shares: Sequence[Sequence[list[Block]]], estimator: Any, work: Work) -> bytes:
        """Train, and return the model's file. Whatever happens, no task stays."""
        self.client.subscribe_topic(self.name, self._hear)
        try:
            self._submit(shares, estimator, work)
            self._watch()
            self._bring_together()
            while len(self._ended) < len(self.workers):
                self._step()
            return self._fetch()
        finally:
            if self.client.status == "running":
                self.client.unsubscribe_topic(self.name)
                self.client.cancel(self.futures)  # a worker whose task is not wanted ends it

    def _submit(self, shares: Sequence[Sequence[list[Block]]], estimator: Any, work: Work) -> None:
        token = secrets.token_bytes(TOKEN_BYTES)
        for rank, (address, blocks) in enumerate(zip(self.workers, shares, strict=True)):
            assignment = Assignment(self.name, token, rank, self.workers, self.options.ports)
            # Pinned: on another worker it could do nothing, and its blocks would travel there first. That Dask waits for a
            # pinned worker for ever does no harm, as we watch the workers.
            future = self.client.submit(
                train_here,
                assignment,
                estimator,
                blocks,
                work,
                key=f"{self.name}-{rank}",
                workers=[address],
                allow_other_workers=False,
                pure=False,
                retries=0,
            )
            future.add_done_callback(lambda _, rank=rank: self._events.put(lambda: self._end(rank)))
            self.futures.append(future)

    # ---- what happens --------------------------------------------------------------------------------------------------------

    def _hear(self, event: tuple[float, dict[str, Any]]) -> None:
        """Take a worker's report. Called in the event loop of the client."""
        self._events.put(lambda: self._take_report(event[1]))

    def _take_report(self, report: dict[str, Any]) -> None:
        rank = report["rank"]
        if rank in self.reports:
            self._lose(rank, f"{self.workers[rank]} was started anew")
        self.reports[rank] = report

    def _step(self, seconds: float = STEP_SECONDS) -> None:
        """Wait for something to happen, for a time."""
        with suppress(queue.Empty):
            self._events.get(timeout=seconds)()

    def _watch(self) -> None:
        """Let the scheduler tell when a worker is lost."""
        tasks = [(address, future.key) for address, future in zip(self.workers, self.futures, strict=True)]
        self._ask(lambda: first_lost(self.client, tasks, self.options.lost_after), self._take_loss)

    def _take_loss(self, loss: tuple[int, str] | None) -> None:
        if loss is not None:
            self._lose(*loss)
        self._watch()  # the scheduler did not know of our tasks yet

    def _ask(self, question: Callable[[], Any], take: Callable[[Any], None]) -> None:
        """Call a function that may take long, or for ever if a worker is stopped, and take its answer when it has come."""

        def ask() -> None:
            try:
                answer = question()
            except Exception as error:
                self._events.put(partial(_raise_again, error))
            else:
                self._events.put(partial(take, answer))

        threading.Thread(target=ask, name=self.name, daemon=True).start()

    def _end(self, rank: int) -> None:
        """Take note that a task has ended."""
        future = self.futures[rank]
        if future.status == "finished":
            self._ended.add(rank)
        elif future.status == "error":
            error = future.exception()
            if isinstance(error, WorkerLostError):
                self._lose(error.worker, f"it was {self._name_of(error.worker)}", error.what, OWN_END_SECONDS)
            self._raise(rank)
        else:  # Dask cancels the tasks whose data were only in the memory of a worker that has gone
            known = silences(self.client) if self.client.status == "running" else self.workers
            for lost, address in enumerate(self.workers):
                if address not in known:
                    self._lose(lost, f"{address} has left the cluster")
            raise RuntimeError(f"the task of worker {rank} ({self.workers[rank]}) was {future.status} by somebody else")

    def _fetch(self) -> bytes:
        """Return the model's file. Its worker is watched until it is here."""
        models: list[bytes] = []
        self._ask(partial(self.futures[0].result, timeout=FETCH_SECONDS), models.append)
        while not models:
            self._step()
        return models[0]

    def _name_of(self, rank: int) -> str:
        return self.workers[rank] if rank < len(self.workers) else "none of ours"

    def _raise(self, rank: int) -> None:
        error = self.futures[rank].exception()
        error.add_note(f"raised by worker {rank} of {len(self.workers)} ({self.workers[rank]})")
        raise error.with_traceback(self.futures[rank].traceback())

    def _lose(self, rank: int, how: str, what: str = "a look at the cluster", seconds: float = GRACE_SECONDS) -> None:
        """Raise the error that says most of why a worker was lost: another's own, if one comes.

        Parameters
        ----------
        rank : int
        how, what : str
            See `WorkerLostError`.
        seconds : float
            How long to wait for such an error while the worker is in the cluster.
        """
        began = time.monotonic()
        while (waited := time.monotonic() - began) < seconds:
            pending = {other for other, future in enumerate(self.futures) if not future.done()}  # first: errors may come now
            for other, future in enumerate(self.futures):
                if future.status == "error" and not isinstance(future.exception(), WorkerLostError):
                    self._raise(other)
            has_time = pending and pending != {rank} and waited < GRACE_SECONDS
            if not pending or (not has_time and self._name_of(rank) not in silences(self.client)):
                break
            time.sleep(0.02)
        raise WorkerLostError(rank, what, how)

    # ---- the start -----------------------------------------------------------------------------------------------------------

    def _bring_together(self) -> None:
        """Wait until all tasks have begun, and tell them how to reach each other."""
        deadline = time.monotonic() + self.options.start_within
        while len(self.reports) < len(self.workers):
            self._step(min(STEP_SECONDS, max(0.0, deadline - time.monotonic())))
            if time.monotonic() > deadline and len(self.reports) < len(self.workers):
                missing = ", ".join(address for rank, address in enumerate(self.workers) if rank not in self.reports)
                raise TimeoutError(
                    f"the training has not begun within start_within={self.options.start_within:g} s on {missing}; "
                    "other tasks may hold all threads there"
                )
        self._check_versions()
        addresses = [(self.reports[rank]["host"], self.reports[rank]["port"]) for rank in range(len(self.workers))]
        self._on_all(tell, addresses if self._has_sockets(addresses) else None)

    def _check_versions(self) -> None:
        """Refuse workers that could compute different models."""
        first = self.reports[0]["versions"]
        for rank, address in enumerate(self.workers):
            for package, version in self.reports[rank]["versions"].items():
                if version != first[package]:
                    raise RuntimeError(
                        f"all workers must have the same versions, but {package} is {first[package]} on {self.workers[0]} "
                        f"and {version} on {address}"
                    )

    def _has_sockets(self, addresses: list[Address]) -> bool:
        """Whether the workers are linked by sockets of our own."""
        if self.options.links != "auto":
            return self.options.links == "sockets"
        if not all(address.startswith(PLAIN) for address in self.workers):
            return False
        for address, failures in self._on_all(reach, addresses).items():
            for peer, reason in failures:
                host, port = addresses[peer]
                warn(
                    f"the worker {address} cannot reach {host}, port {port}: {reason}; the workers are linked by Dask's "
                    "connections, which are slower. Open some ports and name them by ports=(low, high), or say links='dask'.",
                    RuntimeWarning,
                )
                return False
        return True

    def _on_all(self, function: Callable[..., Any], *arguments: Any) -> dict[str, Any]:
        """Run a coroutine in the event loop of every worker, and watch them meanwhile."""
        answers: list[dict[str, Any]] = []
        run = partial(self.client.run, function, self.name, *arguments, workers=list(self.workers), on_error="return")
        self._ask(run, answers.append)
        while not answers:
            self._step()
        for address, answer in answers[0].items():
            if isinstance(answer, OSError):
                self._lose(self.workers.index(address), f"{address} does not answer: {answer}")
            if isinstance(answer, Exception):
                raise answer
        return answers[0]


def _raise_again(error: Exception) -> None:
    raise error

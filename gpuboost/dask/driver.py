"""The side of the client: starts a task on every worker, brings them together, and watches them until the model is there."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpuboost.dask.cluster import silences, sole_use
from gpuboost.dask.worker import Assignment, Work, reach, tell, train_here
from gpuboost.errors import WorkerLostError
from gpuboost.messages import warn
from gpuboost.peers.greeting import TOKEN_BYTES, Address

Block = tuple[int, Any, Any, Any]
"""The first row, X, y and the weights of a partition; X that is to be read by the worker brings the others."""

LOOK_SECONDS = 0.5
"""How often the driver asks the scheduler for the workers."""
GRACE_SECONDS = 0.5
"""How long it waits, when a worker is lost, for an error that says more."""
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
        self._silent: set[int] = set()  # at the last look
        self._next_look = 0.0

    def run(self, shares: Sequence[Sequence[list[Block]]], estimator: Any, work: Work) -> bytes:
        """Train, and return the model's file. Whatever happens, no task stays."""
        self.client.subscribe_topic(self.name, self._hear)
        try:
            self._submit(shares, estimator, work)
            self._bring_together()
            while len(self._ended) < len(self.workers):
                self._step()
            model: bytes = self.futures[0].result(timeout=FETCH_SECONDS)
            return model
        finally:
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

    def _step(self) -> None:
        """Wait for something to happen, and look for the workers from time to time."""
        try:
            happened = self._events.get(timeout=max(0.0, min(LOOK_SECONDS, self._next_look - time.monotonic())))
        except queue.Empty:
            self._look()
            self._next_look = time.monotonic() + LOOK_SECONDS
        else:
            happened()

    def _look(self) -> None:
        """Find the workers that have left, or that the scheduler has not heard of twice in a row."""
        known = silences(self.client)
        silent = set()
        for rank, address in enumerate(self.workers):
            if rank in self._ended:
                continue
            if address not in known:
                self._lose(rank, f"{address} has left the cluster")
            elif known[address] > self.options.lost_after:
                if rank in self._silent:  # the scheduler may have been silent itself, and have its post to read first
                    self._lose(rank, f"{address} has not been heard of for {known[address]:.0f} s")
                silent.add(rank)
        self._silent = silent

    def _end(self, rank: int) -> None:
        """Take note that a task has ended."""
        future = self.futures[rank]
        if future.status == "finished":
            self._ended.add(rank)
        elif future.status == "error":
            error = future.exception()
            if isinstance(error, WorkerLostError):
                self._lose(error.worker, f"it was {self._name_of(error.worker)}", error.what)
            self._raise(rank)
        else:
            raise RuntimeError(f"the task of worker {rank} ({self.workers[rank]}) was {future.status} by somebody else")

    def _name_of(self, rank: int) -> str:
        return self.workers[rank] if rank < len(self.workers) else "none of ours"

    def _raise(self, rank: int) -> None:
        error = self.futures[rank].exception()
        error.add_note(f"raised by worker {rank} of {len(self.workers)} ({self.workers[rank]})")
        raise error.with_traceback(self.futures[rank].traceback())

    def _lose(self, rank: int, how: str, what: str = "a look at the cluster") -> None:
        """Raise the error that says most of why a worker was lost."""
        deadline = time.monotonic() + GRACE_SECONDS
        while time.monotonic() < deadline:
            for other, future in enumerate(self.futures):
                if future.status == "error" and not isinstance(future.exception(), WorkerLostError):
                    self._raise(other)
            pending = {other for other, future in enumerate(self.futures) if not future.done()}
            if not pending or (pending == {rank} and self.workers[rank] not in silences(self.client)):
                break
            time.sleep(0.02)
        raise WorkerLostError(rank, what, how)

    # ---- the start -----------------------------------------------------------------------------------------------------------

    def _bring_together(self) -> None:
        """Wait until all tasks have begun, and tell them how to reach each other."""
        self._next_look = time.monotonic() + LOOK_SECONDS
        deadline = time.monotonic() + self.options.start_within
        while len(self.reports) < len(self.workers):
            self._step()
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
        """Run a coroutine in the event loop of every worker, and go on watching: a worker that is stopped does not answer."""
        answers: list[dict[str, Any] | Exception] = []

        def ask() -> None:
            try:
                answers.append(self.client.run(function, self.name, *arguments, workers=list(self.workers)))
            except Exception as error:
                answers.append(error)
            self._events.put(lambda: None)

        threading.Thread(target=ask, name=self.name, daemon=True).start()
        while not answers:
            self._step()
        if isinstance(answers[0], Exception):
            raise answers[0]
        return answers[0]

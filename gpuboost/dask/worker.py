"""What runs on a worker of Dask: the task that trains, and what its event loop answers meanwhile.

The task opens its links, reports where it can be reached, takes its rows, waits until the driver has the reports of all,
connects and trains. All that a worker keeps of a training is the task's `Seat`, which goes with the task.
"""

from __future__ import annotations

import asyncio
import copy
import hashlib
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from distributed import get_worker
from distributed.comm.addressing import get_address_host
from distributed.worker import WORKER_ANY_RUNNING

from gpuboost.dask.comms import CommLinks, take_links
from gpuboost.errors import WorkerLostError, WorkersPartedError
from gpuboost.peers.collectives import partners
from gpuboost.peers.greeting import START, Address
from gpuboost.peers.local_rows import LocalRows
from gpuboost.peers.sockets import Links
from gpuboost.persistence.checkpoint import Checkpoint
from gpuboost.registry import __version__

logger = logging.getLogger("distributed.gpuboost")

Work = Callable[[Any, LocalRows, Any], bytes]
"""Trains an estimator on a worker's rows with the help of its peers, and returns the model's file."""

LOOK_SECONDS = 0.2
"""How often a worker looks whether its task is still wanted."""
REACH_SECONDS = 5.0
"""How long a worker tries whether it can reach another."""


@dataclass(frozen=True)
class Assignment:
    """What a worker is told of the training that it takes part in.

    Attributes
    ----------
    run : str
        Names the training.
    token : bytes
        See `Links.connect`.
    rank : int
    workers : tuple of str
        The addresses of all workers, by rank.
    ports : tuple of int, optional
    """

    run: str
    token: bytes
    rank: int
    workers: tuple[str, ...]
    ports: tuple[int, int] | None


class Seat:
    """A worker's place in a training that is on.

    Parameters
    ----------
    worker : distributed.Worker
    assignment : Assignment
    """

    def __init__(self, worker: Any, assignment: Assignment) -> None:
        self.worker, self.assignment = worker, assignment
        host = get_address_host(worker.address)
        self.sockets = Links(host, assignment.ports)
        self.comms = CommLinks(worker, assignment.run)
        self._key = worker.get_current_task()
        self._has_ended = False
        self._told = threading.Event()
        self._addresses: list[Address] | None = None
        self._failure: Exception | None = None

    def __enter__(self) -> Seat:
        asyncio.run_coroutine_threadsafe(self._sit_down(), self.worker.loop.asyncio_loop).result()
        self.worker.log_event(self.assignment.run, self.report())
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self._has_ended = True
        self.sockets.close(error)
        self.comms.close(error)
        self.worker.loop.asyncio_loop.call_soon_threadsafe(self._stand_up)

    async def _sit_down(self) -> None:
        seats = SEATS.setdefault(self.worker, {})
        seats[self.assignment.run] = self
        take_links(self.worker, lambda run: seats[run].comms if run in seats else None)
        self._watching = asyncio.ensure_future(self._end_if_unwanted())

    def _stand_up(self) -> None:
        SEATS[self.worker].pop(self.assignment.run, None)
        self._watching.cancel()

    async def _end_if_unwanted(self) -> None:
        """End the training when nobody wants the task's result any more: it was cancelled, or its client has gone.

        A worker that closes waits for its tasks, so its training ends as well.
        """
        reason: Exception = RuntimeError("the training was ended from outside")
        try:
            while (task := self.worker.state.tasks.get(self._key)) and task.state in ("executing", "long-running"):
                if self.worker.status not in WORKER_ANY_RUNNING:
                    reason = WorkerLostError(self.assignment.rank, "the closing of the worker")
                    break
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            if not self._has_ended:
                self.abort(reason)

    def abort(self, error: Exception) -> None:
        """Let the task raise ``error`` in the call of its peers that it is in, or in its next one."""
        self._failure = self._failure or error
        self._told.set()
        self.sockets.abort(error)
        self.comms.abort(error)

    def tell(self, addresses: list[Address] | None) -> None:
        """Tell the task where the others listen; with None they are linked by Dask's own connections."""
        self._addresses = addresses
        self._told.set()

    def report(self) -> dict[str, Any]:
        """Return what the driver must know before the start."""
        return {
            "rank": self.assignment.rank,
            "host": self.sockets.address[0],
            "port": self.sockets.address[1],
            "versions": {"gpuboost": __version__, "numpy": np.__version__},
        }

    def connect(self) -> Links | CommLinks:
        """Wait until the driver has heard of all workers, and connect to them."""
        self._told.wait()
        if self._failure is not None:
            raise self._failure
        rank, workers, token = self.assignment.rank, self.assignment.workers, self.assignment.token
        # The driver watches the workers; who takes long to compile or to sort its rows is not lost.
        if self._addresses is None:
            self.sockets.close()
            self.comms.connect(rank, workers)
            return self.comms
        self.sockets.connect(rank, self._addresses, token, names=workers, start_within=None, lost_after=None)
        return self.sockets


SEATS: WeakKeyDictionary[Any, dict[str, Seat]] = WeakKeyDictionary()
"""The trainings that the workers of this process take part in, by name."""


def train_here(assignment: Assignment, estimator: Any, blocks: list[Any], work: Work) -> bytes | None:
    """Train with the other workers; the task that Dask runs on every one of them.

    Parameters
    ----------
    assignment : Assignment
    estimator : BoostingClassifier
    blocks : list
        See `local_rows`; the first is the training set, the others are evaluation sets.
    work : callable

    Returns
    -------
    bytes or None
        The model's file, on rank 0.

    Raises
    ------
    WorkersPartedError
        If the workers have made different models.
    """
    worker = get_worker()
    rank = assignment.rank
    if worker.address != assignment.workers[rank]:  # somebody else has moved the task
        raise WorkerLostError(rank, START)
    estimator = prepared(estimator, rank, worker.state.nthreads)
    with Seat(worker, assignment) as seat:
        first, *others = [local_rows(one) for one in blocks]
        local = LocalRows(first.X, first.y, first.sample_weight, first.first_rows, others)
        peers = seat.connect()
        model = work(estimator, local, peers)
        digest = hashlib.sha256(model).digest()
        digests = peers.gather(digest, "the models")
        if any(other != digest for other in digests):
            different = next(other for other in range(len(digests)) if digests[other] != digest)
            raise WorkersPartedError(f"workers {rank} and {different} have made different models: this is a bug")
        peers.close()
    return model if rank == 0 else None


def prepared(estimator: Any, rank: int, n_threads: int) -> Any:
    """Return a copy of the estimator for a worker. Only the first has callbacks; their checkpoints must find their folders."""
    callbacks = estimator.callbacks if rank == 0 else None
    for callback in callbacks or ():
        if isinstance(callback, Checkpoint):
            replace(callback)
    own = copy.copy(estimator)  # which Dask may use again
    return own.set_params(n_jobs=n_threads, callbacks=callbacks)


def local_rows(blocks: list[tuple[int, Any, Any, Any]]) -> LocalRows:
    """Return the rows of a set from tuples (first row, X, y, weight), whose X may still have to be read."""
    read = [(first, *(X.read() if y is None else (X, y, weight))) for first, X, y, weight in blocks]
    weights = [weight for _, _, _, weight in read]
    has_weights = any(weight is not None for weight in weights)
    return LocalRows(
        [X for _, X, _, _ in read], [y for _, _, y, _ in read], weights if has_weights else None, [first for first, *_ in read]
    )


# ---- what the driver asks of a worker's event loop ---------------------------------------------------------------------------


async def reach(run: str, addresses: list[Address], dask_worker: Any) -> list[tuple[int, str]]:
    """Return the partners that a worker cannot reach, each with the reason."""
    seat = SEATS.get(dask_worker, {}).get(run)
    if seat is None:
        return []
    failures = []
    for peer in sorted(partners(seat.assignment.rank, len(addresses))):
        host, port = addresses[peer]
        try:
            _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), REACH_SECONDS)
            writer.close()
        except (TimeoutError, OSError) as error:
            failures.append((peer, str(error) or "no answer"))
    return failures


async def tell(run: str, addresses: list[Address] | None, dask_worker: Any) -> None:
    """Tell a worker how to connect to the others."""
    seat = SEATS.get(dask_worker, {}).get(run)
    if seat is not None:
        seat.tell(addresses)

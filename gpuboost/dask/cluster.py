"""What is asked of the scheduler: which workers are there, and the sole use of some.

The scheduler may not have gpuboost, so what runs there is a function within a function, which is sent whole and not by name.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from distributed import MultiLock, wait

LOOK_SECONDS = 1
"""How often who waits for workers, or for their data, looks whether that has sense."""
LOCK_KIND = "gpuboost"


def silences(client: Any) -> dict[str, float]:
    """Return the workers of a cluster, and the seconds since the scheduler has heard of each.

    `Client.scheduler_info` will not do: it may be old, or list some of the workers.
    """

    def seconds(dask_scheduler: Any) -> dict[str, float]:
        from distributed.metrics import time

        now = time()
        return {address: now - worker.last_seen for address, worker in dask_scheduler.workers.items()}

    known: dict[str, float] = client.run_on_scheduler(seconds)
    return known


def wait_for(client: Any, futures: Sequence[Any], patience: float) -> None:
    """Wait until futures are computed.

    Raises
    ------
    Exception
        What the computation of one raises.
    RuntimeError
        If one went with its worker and cannot be computed anew, or waits for a certain worker for longer than ``patience``
        seconds: Dask would wait for ever.
    """
    since: float | None = None
    while pending := [future for future in futures if future.status in ("pending", "lost")]:
        with suppress(TimeoutError, CancelledError):
            wait(pending, timeout=LOOK_SECONDS)
        stuck = _task_without_worker(client, [future.key for future in pending])
        since = None if stuck is None else since or time.monotonic()
        if since is not None and time.monotonic() - since > patience:
            raise RuntimeError(f"no worker may compute {stuck}; do not bind data to workers that may go")
    for future in futures:
        if future.status == "cancelled":
            raise RuntimeError(
                f"the partition {future.key!r} was only in the memory of a worker that has gone, or was cancelled; "
                "pass collections that can be computed anew"
            )
        if future.status == "error":
            future.result()


def _task_without_worker(client: Any, keys: list[Any]) -> str | None:
    """Return a task that some of these wait for and that no worker there is may compute, if there is one."""

    def find(dask_scheduler: Any) -> str | None:
        found = [dask_scheduler.tasks[key] for key in keys if key in dask_scheduler.tasks]
        seen = set(found)
        for task in found:  # grows meanwhile
            if task.state == "no-worker":
                return str(task.key)
            new = set(task.waiting_on or ()) - seen
            seen |= new
            found.extend(new)
        return None

    stuck: str | None = client.run_on_scheduler(find)
    return stuck


def forget_worker(client: Any, address: str) -> None:
    """Let the scheduler give up a worker that does not answer: what it held is computed anew elsewhere."""

    async def remove(dask_scheduler: Any) -> None:
        if address in dask_scheduler.workers:
            await dask_scheduler.remove_worker(address, stimulus_id="gpuboost-lost-worker", close=False)

    client.run_on_scheduler(remove)


@contextmanager
def sole_use(client: Any, workers: Sequence[str]) -> Iterator[None]:
    """Keep other trainings that span workers off these, and wait for those that are on.

    The locks are named by the workers' addresses, as XGBoost's are. Dask would never release those of a client that is gone.
    """
    lock = MultiLock(list(workers), client)
    lock.id = f"{LOCK_KIND}/{client.id}/{uuid.uuid4().hex}"
    while not lock.acquire(timeout=LOOK_SECONDS):
        _release_of_the_gone(client)
    try:
        yield
    finally:
        with suppress(Exception):  # of a client that has been closed: then others release it
            lock.release()


def _release_of_the_gone(client: Any) -> None:
    kind = LOCK_KIND

    def release(dask_scheduler: Any) -> None:
        locks = dask_scheduler.extensions["multi_locks"]
        for user in [user for user, n_left in locks.requests_left.items() if n_left == 0]:
            parts = str(user).split("/")
            if parts[0] == kind and parts[1] not in dask_scheduler.clients:
                locks.release(id=user)

    client.run_on_scheduler(release)

"""What is asked of the scheduler: which workers are there, and the sole use of some.

The scheduler may not have gpuboost, so what runs there is a function within a function, which is sent whole and not by name.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from typing import Any

from distributed import Client, MultiLock, wait

from gpuboost.messages import warn

LOCK_SECONDS = 5
"""How often who waits for workers looks whether those that hold them are gone."""
LOOK_SECONDS = 0.5
"""How often the scheduler looks for workers that are lost."""
BEGIN_SECONDS = 2
"""How long the tasks of a training may be on their way to the scheduler."""
LOCK_KIND = "gpuboost"


def check_client(client: Any) -> None:
    """Raise a TypeError if it is no client of a cluster."""
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got a {type(client).__name__}")


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


def first_lost(client: Any, tasks: Sequence[tuple[str, str]], lost_after: float) -> tuple[int, str] | None:
    """Wait until a worker is lost whose task has not ended, or that has the model; or until there is no such task.

    Parameters
    ----------
    client : distributed.Client
    tasks : sequence of (str, str)
        The address of every worker, and the key of its task.
    lost_after : float
        Seconds after which a worker is lost that the scheduler does not hear of.

    Returns
    -------
    tuple of (int, str), or None
        Its number among the tasks, and what has become of it.
    """
    client_id, look_seconds, begin_seconds, holder = client.id, LOOK_SECONDS, BEGIN_SECONDS, 0

    async def watch(dask_scheduler: Any) -> tuple[int, str] | None:
        import asyncio
        from time import monotonic

        from distributed.metrics import time

        silent: set[int] = set()
        began = monotonic()
        while client_id in dask_scheduler.clients:
            known = [dask_scheduler.tasks.get(key) for _, key in tasks]
            if not any(known) and monotonic() - began > begin_seconds:
                break
            silent_before, silent = silent, set()
            for i, (address, _) in enumerate(tasks):
                if known[i] is None or known[i].state == "erred" or (known[i].state == "memory" and i != holder):
                    continue
                worker = dask_scheduler.workers.get(address)
                if worker is None:
                    return i, f"{address} has left the cluster"
                seconds = time() - worker.last_seen
                if seconds > lost_after:
                    if i in silent_before:  # else the scheduler may have been silent itself, and have its post to read
                        return i, f"{address} has not been heard of for {seconds:.0f} s"
                    silent.add(i)
            await asyncio.sleep(look_seconds)
        return None

    lost: tuple[int, str] | None = client.run_on_scheduler(watch)
    return lost


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
            wait(pending, timeout=max(patience / 4, 0.1))
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


def give_up(client: Any, address: str, lost_after: float, *, for_good: bool) -> None:
    """Let nothing wait for a worker that is lost. If it is silent it starts anew; if it answers, it is removed if for good."""
    if silences(client).get(address, 0) > lost_after:
        restart = threading.Thread(target=restart_silent, args=(client, [address], lost_after), daemon=True)
        restart.start()  # it takes seconds
    elif for_good:
        forget_worker(client, address)


def restart_silent(client: Any, workers: Collection[str], lost_after: float) -> list[str]:
    """Start those workers anew that are not heard of for so many seconds, as Dask itself does after minutes; return which.

    Until then whatever needs them would wait. One without a nanny is given up.
    """
    addresses = list(workers)

    async def restart(dask_scheduler: Any) -> list[str]:
        from distributed.metrics import time

        now, known = time(), dask_scheduler.workers
        silent = [one for one in addresses if one in known and now - known[one].last_seen > lost_after]
        if silent:
            await dask_scheduler.restart_workers(
                silent, wait_for_workers=False, on_error="return", stimulus_id=f"gpuboost-silent-{now}"
            )
        return silent

    restarted: list[str] = client.run_on_scheduler(restart)
    return restarted


@contextmanager
def silent_restarted(client: Any, lost_after: float) -> Iterator[None]:
    """Start workers anew that fall silent, and say so at the end: the client waits for what they hold or compute.

    What they held is then computed anew, as is that of a worker that dies.
    """
    has_ended = threading.Event()
    restarted: list[str] = []

    def look() -> None:
        silent: set[str] = set()
        with suppress(Exception):  # of a client that has been closed
            while not has_ended.wait(LOOK_SECONDS):
                before, silent = silent, {one for one, seconds in silences(client).items() if seconds > lost_after}
                if before & silent:  # twice, see `first_lost`
                    restarted.extend(restart_silent(client, before & silent, lost_after))

    thread = threading.Thread(target=look, name=f"{LOCK_KIND}-silent", daemon=True)
    thread.start()
    try:
        yield
    finally:
        has_ended.set()
        thread.join(LOOK_SECONDS)
        for address in restarted:
            warn(f"the worker {address} was started anew: it had not been heard of for {lost_after:g} s", RuntimeWarning)


@contextmanager
def sole_use(client: Any, workers: Sequence[str]) -> Iterator[None]:
    """Keep other trainings that span workers off these, and wait for those that are on.

    The locks are named by the workers' addresses, as XGBoost's are. Dask would never release those of a client that is gone.
    """
    lock = MultiLock(list(workers), client)
    lock.id = f"{LOCK_KIND}/{client.id}/{uuid.uuid4().hex}"
    _release_of_the_gone(client)
    while not lock.acquire(timeout=LOCK_SECONDS):
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

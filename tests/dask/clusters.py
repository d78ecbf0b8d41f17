"""Clusters of Dask on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import dask
import pytest

pytest.importorskip("distributed")

import psutil  # which Dask's workers need
from distributed import Client, LocalCluster

from gpuboost.dask.cluster import silences
from gpuboost.dask.worker import SEATS


@contextmanager
def cluster(n_workers: int, *, processes: bool, **options: Any) -> Iterator[Client]:
    """Return a client of workers that are processes, or threads of this one."""
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}),  # else a worker killed twice is given up
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=":0",
            memory_limit=0,
            silence_logs=50,
            **options,
        ) as workers,
        Client(workers) as client,
    ):
        client.wait_for_workers(n_workers)
        yield client


def addresses(client: Client) -> list[str]:
    """The workers of a cluster."""
    return sorted(silences(client))


def is_at_rest(client: Client) -> bool:
    """Whether no training has left anything: no task in the scheduler, no seat on a worker."""

    def tasks(dask_scheduler: Any) -> list[str]:
        return [str(key) for key in dask_scheduler.tasks if str(key).startswith("gpuboost-")]

    return not client.run_on_scheduler(tasks) and not any(client.run(seats, on_error="ignore").values())


def seats(dask_worker: Any) -> int:
    return len(SEATS.get(dask_worker, {}))


def wait_until(is_so: Callable[[], Any], seconds: float = 10) -> None:
    """Wait for something; fail if it does not come."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.05)


def processes() -> set[int]:
    """The processes that this one has started and that have not ended, but for Python's own helpers."""
    found = set()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if child.status() != psutil.STATUS_ZOMBIE and "resource_tracker" not in " ".join(child.cmdline()):
                found.add(child.pid)
    return found

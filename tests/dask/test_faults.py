"""Workers that are processes, and what becomes of a training when one comes to harm: an error soon, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask.array as da
from distributed import Client

import gpuboost
from gpuboost.dask.driver import Options, train_on_workers
from gpuboost.dask.fitting import Data, fit_with_retries
from gpuboost.errors import WorkerLostError, WorkersPartedError
from gpuboost.persistence.model_file import to_bytes
from tests.dask.clusters import addresses, cluster, is_at_rest, wait_until
from tests.dask.stand_in import Anything, DiesOnce, Rounds, calls

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals are those of POSIX")

N_WORKERS = 3


@pytest.fixture(scope="module")
def shared_client() -> Iterator[Client]:
    with cluster(N_WORKERS, processes=True) as client:
        train(client, Rounds(1))  # every worker has imported what it needs
        yield client


@pytest.fixture
def client(shared_client: Client) -> Iterator[Client]:
    """Three workers, which are there again and at rest after each test."""
    yield shared_client
    wait_until(lambda: len(addresses(shared_client)) == N_WORKERS and is_at_rest(shared_client), 20)


def train(client: Client, work: Callable[..., bytes], **options: Any) -> bytes:
    return train_on_workers(client, {worker: [[]] for worker in addresses(client)}, Anything(), Options(**options), work)


def test_all_goes_well(client: Client) -> None:
    assert train(client, Rounds(20)) == str(20 * (0 + 1 + 2)).encode()


@pytest.mark.parametrize("links", ["sockets", pytest.param("dask", marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("harm", ["raise", "part", "SIGKILL"])
def test_harm_in_the_middle_is_an_error_at_once(client: Client, harm: str, links: str) -> None:
    kind = {"raise": ZeroDivisionError, "part": WorkersPartedError, "SIGKILL": WorkerLostError}[harm]
    address = addresses(client)[1]
    started = time.monotonic()
    with pytest.raises(kind) as raised:
        train(client, Rounds(20, 1, 9, harm), links=links)
    assert time.monotonic() - started < 2
    error = raised.value
    if isinstance(error, WorkerLostError):
        assert error.worker == 1
        assert address in str(error)
    else:
        assert any(address in note for note in error.__notes__) or harm == "part"
    if harm == "SIGKILL":
        wait_until(lambda: len(addresses(client)) == N_WORKERS, 20)
    assert train(client, Rounds(2), links=links) == b"6"


@pytest.mark.exhaustive
@pytest.mark.parametrize("at", [0, 1, 19])
@pytest.mark.parametrize("rank", [0, 2])
def test_harm_at_any_moment(client: Client, rank: int, at: int) -> None:
    for harm, kind in [("raise", ZeroDivisionError), ("SIGKILL", WorkerLostError)]:
        wait_until(lambda: len(addresses(client)) == N_WORKERS, 20)
        started = time.monotonic()
        with pytest.raises(kind):
            train(client, Rounds(20, rank, at, harm))
        assert time.monotonic() - started < 2 + 20 * 0.02


@pytest.mark.exhaustive
@pytest.mark.parametrize("links", ["sockets", "dask"])
def test_a_stopped_worker_is_lost_after_the_limit(client: Client, tmp_path: Path, links: str) -> None:
    stopped = addresses(client)[1]
    started = time.monotonic()
    pid = tmp_path / "pid"
    try:
        with pytest.raises(WorkerLostError, match="has not been heard of for") as raised:
            train(client, Rounds(20, 1, 5, "SIGSTOP", str(pid)), lost_after=2, links=links)
        assert 2 <= time.monotonic() - started < 4.5
        assert raised.value.worker == 1
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    wait_until(lambda: stopped not in addresses(client) and len(addresses(client)) == N_WORKERS, 20)
    assert train(client, Rounds(2)) == b"6"


@pytest.mark.slow
def test_who_does_not_begin_is_named(client: Client) -> None:
    busy = addresses(client)[2]
    task = client.submit(time.sleep, 4, workers=[busy], pure=False)
    wait_until(lambda: client.processing()[busy])
    with pytest.raises(TimeoutError, match=rf"has not begun within start_within=1.5 s on .*{busy}.*; other tasks"):
        train(client, Rounds(2), start_within=1.5)
    task.result()


@pytest.mark.exhaustive
def test_two_trainings_take_turns(client: Client) -> None:
    results: list[bytes] = []
    with Client(client.scheduler.address) as other:
        threads = [threading.Thread(target=lambda c=c: results.append(train(c, Rounds(15)))) for c in (client, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
    assert results == [b"45", b"45"]


CHILD = """
import sys
from distributed import Client
from tests.dask.test_faults import train, Rounds
if __name__ == "__main__":
    with Client(sys.argv[1]) as client:
        train(client, Rounds(100_000, 1, 5, "", sys.argv[2]))
"""


@pytest.mark.exhaustive
def test_a_training_ends_with_its_client(client: Client, tmp_path: Path) -> None:
    """The client is killed; its tasks end, and the workers that it held are free."""
    path = tmp_path / "pid"
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, client.scheduler.address, str(path)], env=os.environ | {"PYTHONPATH": os.getcwd()}
    )
    try:
        wait_until(path.exists, 30)
        assert not is_at_rest(client)
    finally:
        child.kill()
        child.wait()
    wait_until(lambda: is_at_rest(client), 5)
    assert train(client, Rounds(2)) == b"6"


@pytest.mark.exhaustive
@pytest.mark.parametrize("who", ["worker", "client"])
def test_a_worker_or_the_client_is_closed_in_the_middle(tmp_path: Path, who: str) -> None:
    """A worker that closes does not wait for the training's end: Dask would kill it after a time."""
    path = tmp_path / "pid"
    with cluster(2, processes=False) as client, Client(client.scheduler.address) as other:
        closed = addresses(client)[0]

        def close() -> None:
            wait_until(path.exists)
            if who == "worker":
                client.sync(next(w for w in client.cluster.workers.values() if w.address == closed).close)
            else:
                other.close()

        thread = threading.Thread(target=close)
        thread.start()
        with pytest.raises((WorkerLostError, RuntimeError), match=closed if who == "worker" else "by somebody else|closed"):
            train(other, Rounds(100_000, 1, 5, "", str(path)))
        began = time.monotonic()
        thread.join()
        assert time.monotonic() - began < 5
        wait_until(lambda: is_at_rest(client))


@pytest.mark.exhaustive
def test_an_interrupt_of_the_client_ends_the_training(client: Client, tmp_path: Path) -> None:
    path = tmp_path / "pid"

    def interrupt() -> None:
        wait_until(path.exists)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        train(client, Rounds(100_000, 1, 5, "", str(path)))
    thread.join()
    wait_until(lambda: is_at_rest(client), 5)


@pytest.mark.exhaustive
@pytest.mark.parametrize("with_checkpoint", [True, False])
def test_a_training_goes_on_with_the_workers_that_are_left(client: Client, tmp_path: Path, with_checkpoint: bool) -> None:
    """The model is that of one process which nobody disturbed, byte for byte."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = (X[:, 0] + rng.normal(size=90) > 0).astype(int)
    estimator = gpuboost.AdaBoostMHClassifier(n_estimators=8, device="numpy")
    data = Data(client, [(placed(client, X, allow_other_workers=True), da.from_array(y, chunks=30), None)], Options())
    keep = gpuboost.Checkpoint(tmp_path / "model", every=3) if with_checkpoint else None
    with pytest.warns(RuntimeWarning, match="trying again on the workers that are left"):
        model = fit_with_retries(data, estimator, Options(), 1, keep, DiesOnce(1, 5, str(tmp_path / "died")))
    assert bytes(to_bytes(model)) == bytes(to_bytes(gpuboost.AdaBoostMHClassifier(n_estimators=8, device="numpy").fit(X, y)))
    if with_checkpoint:
        assert gpuboost.load(tmp_path / "model").n_estimators_ == 6


def placed(client: Client, X: Any, **options: Any) -> list[Any]:
    """Put as many rows on every worker."""
    blocks = np.split(X, N_WORKERS)
    where = addresses(client)
    return [client.submit(np.copy, one, workers=[at], pure=False, **options) for one, at in zip(blocks, where, strict=True)]


@pytest.mark.exhaustive
@pytest.mark.parametrize("are_computed", [True, False])
def test_data_that_went_with_a_worker_are_an_error(client: Client, tmp_path: Path, are_computed: bool) -> None:
    """Bound to a worker that is gone, or only there: Dask would wait without end, or say that something was cancelled."""
    X, y = np.arange(90.0).reshape(30, 3), np.arange(30) % 2
    where = addresses(client)
    parts = placed(client, X) if are_computed else [client.scatter(X[:10], workers=[at], hash=False) for at in where]
    data = Data(client, [(parts, da.from_array(y, chunks=10), None)], Options(start_within=0.5))
    message = "no worker may compute" if are_computed else "was only in the memory of a worker that has gone"
    with pytest.warns(RuntimeWarning), pytest.raises(RuntimeError, match=message):
        fit_with_retries(data, Anything(), Options(), 1, None, Rounds(20, 1, 5, "SIGKILL"))


@pytest.mark.exhaustive
def test_a_cluster_that_encrypts(tmp_path: Path) -> None:
    """The workers are linked by Dask's connections, which encrypt."""
    pytest.importorskip("cryptography")
    with cluster(2, processes=False, security=True, protocol="tls://") as client:
        assert train(client, calls) == b"CommLinks"

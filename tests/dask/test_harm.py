"""A worker of a real training is killed, stopped or raises an error, at ten random moments each.

The client gets one error that names the worker within two seconds (of a stopped one: and the time-out). Nothing is left of the
training, and the next one makes the model of one process, byte for byte.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("distributed")

import dask
from distributed import Client

import gpuboost.dask
from gpuboost.errors import WorkerLostError
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.peers.base import Peers
from gpuboost.peers.threads import run_workers
from gpuboost.persistence.model_file import to_bytes
from tests.dask.clusters import addresses, cluster, is_at_rest, processes, wait_until
from tests.dask.stand_in import CountedPeers, Harmed, partition_of_harm

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals are those of POSIX")

N_WORKERS = 3
LOST_AFTER = 6.0
"""Seconds; more than a busy machine keeps a worker from being heard of."""
SECONDS = 2.0
"""Within which the client has the error; of a stopped worker, after LOST_AFTER. Where more run than there are cores, longer."""
RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)
FEW: dict[str, Any] = {"n_estimators": 6, "max_leaf_nodes": 4, "device": "numpy", "random_state": 0, "early_stopping": True}


class Moment(NamedTuple):
    """When and where a worker comes to harm: in which part of the calls of a training, from 0 to 1."""

    harm: str
    share: float
    n_workers: int
    rank: int
    delay: float


def moments() -> list[Any]:
    """Ten of each harm, one in every tenth of a training. One of each, at the end, in the middle or first, is in every run."""
    found = []
    for kind, harm in enumerate(("SIGKILL", "SIGSTOP", "raise")):
        rng = np.random.default_rng(kind)
        for tenth in range(10):
            n_workers = 2 + tenth % 2
            moment = Moment(harm, (tenth + rng.random()) / 10, n_workers, int(rng.integers(n_workers)), 0.01 * rng.random())
            marks = [] if (harm, tenth) in (("SIGKILL", 9), ("SIGSTOP", 5), ("raise", 0)) else [pytest.mark.exhaustive]
            found.append(pytest.param(moment, id=f"{harm}-{tenth}", marks=marks))
    return found


@pytest.fixture(scope="module")
def three() -> Iterator[Client]:
    before = processes()
    with cluster(N_WORKERS, processes=True) as client:
        yield client
    assert processes() == before


@pytest.fixture
def client(three: Client) -> Iterator[Client]:
    """Three workers, which are there again and at rest after each test."""
    before = processes()
    three.run(import_all)
    yield three
    wait_until(lambda: len(addresses(three)) == len(processes()) == N_WORKERS and is_at_rest(three), 30)
    assert len(processes() & before) >= N_WORKERS - 1, "others than the one that came to harm were started anew"


def import_all() -> None:
    """Import what a training needs: a worker that is short of time and imports is not heard of meanwhile."""
    import gpuboost.estimators.parts  # noqa: F401


def placed(client: Client, where: list[str]) -> list[list[Any]]:
    """The features and the labels in as many partitions as there are workers, one on each."""

    def divided(rows: Any) -> list[Any]:
        blocks = zip(np.array_split(rows, len(where)), where, strict=True)
        return [client.submit(np.copy, one, workers=[at], allow_other_workers=True, pure=False) for one, at in blocks]

    return [divided(X), divided(Y)]


def fitted(client: Client, where: list[str], **options: Any) -> bytes:
    """The model file of a training on some workers, each of which has as many rows."""
    return bytes(to_bytes(gpuboost.dask.fit(client, *placed(client, where), **FEW | options)))


def expected() -> bytes:
    """The model file of one process."""
    return bytes(to_bytes(gpuboost.fit(X, Y, **FEW)))


def n_calls() -> int:
    """How many calls of its peers a worker makes in a training."""

    def work(peers: Peers) -> int:
        counted = CountedPeers(peers)
        rows = slice(60 * peers.rank, 60 * peers.rank + 60)
        part = Part(X[rows], Y[rows], np.array([peers.rank]), np.array([60]))
        fit_part(gpuboost.AdaBoostMHClassifier(**FEW), part, counted)
        return counted.n_calls

    return int(run_workers(2, work)[0])


@pytest.mark.slow
@pytest.mark.parametrize("moment", moments())
def test_harm(client: Client, moment: Moment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = addresses(client)[: moment.n_workers]
    kind = ZeroDivisionError if moment.harm == "raise" else WorkerLostError
    path = tmp_path / "harm"
    harmed = Harmed(moment.rank, int(moment.share * n_calls()), moment.harm, moment.delay, str(path))
    with monkeypatch.context() as patch:
        patch.setattr("gpuboost.dask.fitting.fit_worker", harmed)
        with pytest.raises(kind) as raised:
            fitted(client, where, lost_after=LOST_AFTER if moment.harm == "SIGSTOP" else 60)
    pid, began = path.read_text(encoding="utf-8").split()
    seconds = time.time() - float(began)
    print(f"{moment.harm} of worker {moment.rank} of {moment.n_workers}: {seconds:.2f} s to the error")
    patience = SECONDS * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
    assert seconds < patience + (LOST_AFTER if moment.harm == "SIGSTOP" else 0)
    said = " ".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert where[moment.rank] in said
    assert f"worker {moment.rank} " in said
    left = [one for one in addresses(client) if one != where[moment.rank]]
    assert fitted(client, left) == expected()
    if moment.harm != "raise":
        wait_until(lambda: int(pid) not in processes())


@pytest.mark.exhaustive
@pytest.mark.parametrize("harm", ["SIGKILL", "SIGSTOP"])
def test_harm_before_the_training_is_made_good(client: Client, tmp_path: Path, harm: str) -> None:
    """Partitions that a worker held or computed are computed by others; Dask alone would wait for minutes for a stopped one."""
    path = tmp_path / "harm"
    parts = [dask.delayed(partition_of_harm)(X[:40], harm, str(path)), *map(dask.delayed, (X[40:70], X[70:]))]
    labels = [dask.delayed(Y[low:high]) for low, high in ((0, 40), (40, 70), (70, 120))]
    begun = time.monotonic()
    with pytest.warns(RuntimeWarning, match="was started anew") if harm == "SIGSTOP" else nullcontext():
        model = gpuboost.dask.fit(client, parts, labels, lost_after=LOST_AFTER, **FEW)
    assert bytes(to_bytes(model)) == expected()
    assert time.monotonic() - begun < LOST_AFTER + 20  # Dask gives the process some seconds before it kills it
    wait_until(lambda: int(path.read_text(encoding="utf-8")) not in processes())


@pytest.mark.exhaustive
def test_a_training_resumes_on_any_number_of_workers(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the checkpoint of three workers, one of whom was killed: on one, two and three, to the bytes of one process."""
    keep = gpuboost.Checkpoint(tmp_path / "model", every=1)
    harmed = Harmed(1, int(0.6 * n_calls()), "SIGKILL", 0.0, str(tmp_path / "harm"))
    with monkeypatch.context() as patch:
        patch.setattr("gpuboost.dask.fitting.fit_worker", harmed)
        with pytest.raises(WorkerLostError):
            fitted(client, addresses(client), checkpoint=keep)
    wait_until(lambda: len(addresses(client)) == N_WORKERS, 30)
    for n_workers in (1, 2, 3):
        begun = gpuboost.load(tmp_path / "model")
        assert 1 <= begun.n_estimators_ < FEW["n_estimators"]
        begun.set_params(n_estimators=FEW["n_estimators"], warm_start=True)
        model = gpuboost.dask.fit(client, *placed(client, addresses(client)[:n_workers]), estimator=begun)
        assert len(model.workers_) == n_workers
        assert model.ensemble_.digest() == gpuboost.fit(X, Y, **FEW).ensemble_.digest()


@pytest.mark.exhaustive
def test_two_trainings_at_once(client: Client) -> None:
    models: list[bytes] = []
    with Client(client.scheduler.address) as other:
        threads = [
            threading.Thread(target=lambda one=one: models.append(fitted(one, addresses(one)))) for one in (client, other)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert models == [expected()] * 2


@pytest.mark.exhaustive
def test_a_worker_that_joins_disturbs_nothing_and_has_part_in_the_next(client: Client) -> None:
    longer = {"n_estimators": 60}
    models: list[bytes] = []
    thread = threading.Thread(target=lambda: models.append(fitted(client, addresses(client), **longer)))
    thread.start()
    try:
        client.cluster.scale(N_WORKERS + 1)
        client.wait_for_workers(N_WORKERS + 1)
        thread.join(60)
        assert models == [bytes(to_bytes(gpuboost.fit(X, Y, **FEW | longer)))]
        assert fitted(client, addresses(client)) == expected()
    finally:
        client.cluster.scale(N_WORKERS)


@pytest.mark.exhaustive
def test_empty_partitions_and_other_columns(client: Client) -> None:
    """No worker hears of the former; the latter are an error, and the next training is right."""
    parts, labels = ([dask.delayed(one[low:high]) for low, high in ((0, 0), (0, 90), (90, 90), (90, 120))] for one in (X, Y))
    assert bytes(to_bytes(gpuboost.dask.fit(client, parts, labels, **FEW))) == expected()
    with pytest.raises(ValueError, match="partition 0 of X and partition 3 of X have other columns: 4 and 3 of them"):
        gpuboost.dask.fit(client, [*parts[:3], dask.delayed(X[90:, :3])], labels, **FEW)
    assert fitted(client, addresses(client)) == expected()

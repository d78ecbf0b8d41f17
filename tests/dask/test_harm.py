"""A worker of a real training is killed, stopped or raises an error, at ten random moments each.

The client gets one error that names the worker within two seconds (of a stopped one: and the time-out). Nothing is left of the
training, and the next one makes the model of one process, byte for byte.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("distributed")

from distributed import Client

import gpuboost
from gpuboost.errors import WorkerLostError
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.peers.base import Peers
from gpuboost.peers.threads import run_workers
from gpuboost.persistence.model_file import to_bytes
from tests.dask.clusters import addresses, cluster, is_at_rest, processes, wait_until
from tests.dask.stand_in import CountedPeers, Harmed

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the signals are those of POSIX")

N_WORKERS = 3
LOST_AFTER = 6.0
"""Seconds; more than a busy machine keeps a worker from being heard of."""
SECONDS = 2.0
"""Within which the client has the error; of a stopped worker, after LOST_AFTER."""
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
    """Ten of each harm, one in every tenth of a training. One of each, at the end, in the middle or first, is not exhaustive."""
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


def fitted(client: Client, where: list[str], **options: Any) -> bytes:
    """The model file of a training on some workers, each of which has as many rows."""
    blocks = zip(np.array_split(X, len(where)), np.array_split(Y, len(where)), where, strict=True)
    parts = [
        [client.submit(np.copy, one, workers=[at], allow_other_workers=True, pure=False) for one in (x, y)]
        for x, y, at in blocks
    ]
    model = gpuboost.dask.fit(client, [x for x, _ in parts], [y for _, y in parts], **FEW | options)
    return bytes(to_bytes(model))


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


@pytest.mark.parametrize("moment", moments())
def test_harm(client: Client, moment: Moment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any) -> None:
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
    record_property("seconds", round(seconds, 2))
    assert seconds < SECONDS + (LOST_AFTER if moment.harm == "SIGSTOP" else 0)
    said = " ".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert where[moment.rank] in said
    assert f"worker {moment.rank} " in said
    left = [one for one in addresses(client) if one != where[moment.rank]]
    assert fitted(client, left) == expected()
    if moment.harm != "raise":
        wait_until(lambda: int(pid) not in processes())

"""What the workers of the tests do in place of a training by the rows of all: each of them gets all rows, and trains alone."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gpuboost.peers.base import Peers
from gpuboost.peers.local_rows import LocalRows


def train(estimator: Any, local: LocalRows, peers: Peers) -> bytes:
    """Train on all rows in their order, by the reference, in lockstep with the others."""
    (X, y, weight), *sets = (whole(one, peers) for one in (local, *local.evaluation))
    estimator.device = "numpy"
    in_lockstep = InLockstep(peers)
    estimator.callbacks = [*(estimator.callbacks or ()), in_lockstep]
    from gpuboost.persistence.model_file import to_bytes

    estimator.fit(X, y, weight, [one if one[2] is not None else one[:2] for one in sets] or None)
    return bytes(to_bytes(estimator))


@dataclass(frozen=True)
class DiesOnce:
    """`train`, in which one worker is killed after some rounds, the first time."""

    rank: int
    after: int
    path: str

    def __call__(self, estimator: Any, local: LocalRows, peers: Peers) -> bytes:
        def die(progress: Any) -> None:
            if progress.n_rounds == self.after and not Path(self.path).exists():
                Path(self.path).touch()
                os.kill(os.getpid(), signal.SIGKILL)

        if peers.rank == self.rank:
            estimator.callbacks = [*(estimator.callbacks or ()), die]
        return train(estimator, local, peers)


class InLockstep:
    """A callback that meets the other workers in every round."""

    def __init__(self, peers: Peers) -> None:
        self.peers = peers

    def __call__(self, progress: Any) -> None:
        self.peers.sum(np.ones(1, np.int64), f"round {progress.n_rounds}")


def whole(local: LocalRows, peers: Peers) -> tuple[Any, Any, Any]:
    """Return the rows of all workers in their order."""
    weights = local.sample_weight or [None] * len(local.X)
    own = list(zip(local.first_rows, local.X, local.y, weights, strict=True))
    blocks = [block for one in peers.gather(pickle.dumps(own), "rows") for block in pickle.loads(one)]
    blocks.sort(key=lambda block: int(block[0]))
    lengths = [len(block[2]) for block in blocks]
    assert [block[0] for block in blocks] == np.cumsum([0, *lengths[:-1]]).tolist(), "rows are not there once"
    X, y, weight = (together([block[i] for block in blocks]) for i in (1, 2, 3))
    return X, y, weight


def together(parts: list[Any]) -> Any:
    """Return arrays, or frames of one library, as one."""
    if parts[0] is None:
        return None
    package = type(parts[0]).__module__.partition(".")[0]
    if package == "pandas":
        import pandas as pd

        return pd.concat(parts)
    if package == "pyarrow":
        import pyarrow as pa

        return pa.concat_tables(parts)
    return np.concatenate(parts)


class Anything:
    """In the place of an estimator, for work that needs none: workers have little to import."""

    callbacks = None

    def set_params(self, **parameters: Any) -> Anything:
        return self


@dataclass(frozen=True)
class Rounds:
    """Many calls, in one of which a worker comes to harm.

    Attributes
    ----------
    n_rounds : int
    rank, at : int
        Which worker, and in which round; -1 is none.
    harm : str
        The name of a signal, "raise" or "part".
    path : str
        A file in which the worker writes the number of its process before that.
    """

    n_rounds: int = 20
    rank: int = -1
    at: int = -1
    harm: str = ""
    path: str = ""

    def __call__(self, estimator: Any, local: LocalRows, peers: Peers) -> bytes:
        total = 0
        for i in range(self.n_rounds):
            if (peers.rank, i) == (self.rank, self.at):
                self.come_to_harm(peers)
            total += int(peers.sum(np.full(20000 if i % 2 else 3, peers.rank), f"round {i}")[0])
            time.sleep(0.01)
        return str(total).encode()

    def come_to_harm(self, peers: Peers) -> None:
        if self.path:
            Path(self.path).write_text(str(os.getpid()), encoding="utf-8")
        if self.harm == "raise":
            raise ZeroDivisionError("a worker's own error")
        if self.harm == "part":
            peers.max(np.ones(1), "something else")
        elif self.harm:
            os.kill(os.getpid(), getattr(signal, self.harm))
            time.sleep(0.1)


def calls(estimator: Any, local: LocalRows, peers: Peers) -> bytes:
    """Every kind of call, small and large, compared with what NumPy makes of what all workers have."""
    everyone = range(peers.size)
    for length in (0, 5, 30_001):
        of_all = [np.random.default_rng(rank).integers(-9, 9, (length, 3)) for rank in everyone]
        own = of_all[peers.rank]
        bounds = np.array([length * i // peers.size for i in range(peers.size + 1)])
        part = slice(bounds[peers.rank], bounds[peers.rank + 1])
        np.testing.assert_array_equal(peers.sum(own, "a sum"), np.sum(of_all, axis=0), strict=True)
        np.testing.assert_array_equal(peers.max(own / 7, "a maximum"), np.max(of_all, axis=0) / 7, strict=True)
        np.testing.assert_array_equal(peers.reduce_scatter(own, bounds, "parts"), np.sum(of_all, axis=0)[part], strict=True)
        assert peers.gather(length * bytes([peers.rank]), "bytes") == [length * bytes([rank]) for rank in everyone]
    return type(peers).__name__.encode()


@dataclass(frozen=True)
class Harmed:
    """The real training, in which a worker comes to harm.

    Attributes
    ----------
    rank : int
        Which worker; -1 is none.
    call : int
        In which of the calls of its peers.
    harm : str
        The name of a signal, or "raise".
    delay : float
        Seconds after which a signal arrives, at whatever the worker does then.
    path : str
        A file in which the worker writes the number of its process, and the time.
    """

    rank: int = -1
    call: int = -1
    harm: str = ""
    delay: float = 0.0
    path: str = ""

    def __call__(self, estimator: Any, local: LocalRows, peers: Peers) -> bytes:
        from gpuboost.estimators.parts import fit_worker

        return fit_worker(estimator, local, CountedPeers(peers, self.come_to_harm if peers.rank == self.rank else None))

    def come_to_harm(self, call: int) -> None:
        if call != self.call:
            return
        if self.harm == "raise":
            self.tell()
            raise ZeroDivisionError("a worker's own error")
        threading.Timer(self.delay, self.hit).start()

    def hit(self) -> None:
        self.tell()
        os.kill(os.getpid(), getattr(signal, self.harm))

    def tell(self) -> None:
        unfinished = Path(f"{self.path}.new")
        unfinished.write_text(f"{os.getpid()} {time.time()}", encoding="utf-8")
        unfinished.rename(self.path)


class CountedPeers:
    """Peers whose calls are counted, and that say the number of a call before they make it."""

    def __init__(self, peers: Peers, before: Callable[[int], None] | None = None) -> None:
        self.peers, self.before = peers, before
        self.rank, self.size = peers.rank, peers.size
        self.n_calls = 0

    def _meet(self, op: str, *arguments: Any) -> Any:
        if self.before is not None:
            self.before(self.n_calls)
        self.n_calls += 1
        return getattr(self.peers, op)(*arguments)

    def sum(self, array: Any, what: str) -> Any:
        return self._meet("sum", array, what)

    def max(self, array: Any, what: str) -> Any:
        return self._meet("max", array, what)

    def gather(self, data: bytes, what: str) -> Any:
        return self._meet("gather", data, what)

    def reduce_scatter(self, array: Any, bounds: Any, what: str) -> Any:
        return self._meet("reduce_scatter", array, bounds, what)


def partition_of_harm(block: Any, harm: str, path: str) -> Any:
    """Return the block, unless it is the first time: then the worker comes to harm."""
    if not Path(path).exists():
        Path(path).write_text(str(os.getpid()), encoding="utf-8")
        os.kill(os.getpid(), getattr(signal, harm))
        time.sleep(0.1)
    return block

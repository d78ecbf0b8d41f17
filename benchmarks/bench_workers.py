"""Training on several workers of this machine, linked by TCP: what a round costs, and what travels.

    python benchmarks/bench_workers.py traffic --data-dir DIR [--workers 2,4] [--sets mnist,covtype,many]
    python benchmarks/bench_workers.py time --data-dir DIR [--workers 1,2] [--repeats 5]

``traffic``  bytes that a worker sends, and its calls, in a round of AdaBoost.MH, beside a dense reduce-scatter of the smaller
             children's histograms: ``(p - 1) / p`` of them (section "Communication" of the documentation of `gpuboost.peers`)
``time``     the time of a round with one thread a worker, interleaved, as medians over rounds and repeats

Workers share the machine's cores: with more workers than cores, times say nothing. ``many`` are 100 generated classes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import secrets
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from _tables import markdown

import gpuboost
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.peers.base import ALONE
from gpuboost.peers.sockets import Links

LEAVES = {"mnist": 9, "covtype": 20, "many": 20}
ROUNDS = 12
SKIPPED = 3
"""Rounds that are not counted: in the first ones, memory is asked for."""


class Meter:
    """The peers of a worker, which note at the end of every round what has been sent and when."""

    def __init__(self, peers: Any) -> None:
        self.peers, self.rank, self.size = peers, peers.rank, peers.size
        self.rounds: list[tuple[float, int, int]] = []
        self.dense = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.peers, name)

    def reduce_scatter(self, array: Any, bounds: Any, what: str) -> Any:
        self.dense += array.nbytes
        return self.peers.reduce_scatter(array, bounds, what)

    def sum(self, array: Any, what: str) -> Any:
        if what.startswith("who asks to stop"):
            self.rounds.append((time.perf_counter(), self.peers.bytes_sent, self.peers.n_calls))
        return self.peers.sum(array, what)


def load(name: str, data_dir: Path) -> tuple[np.ndarray, np.ndarray]:
    if name == "many":
        rng = np.random.default_rng(0)
        return rng.normal(size=(40_000, 20)).astype(np.float32), rng.integers(0, 100, 40_000)
    content = np.load(data_dir / f"{name}.npz")
    X, y = (content["X"], content["y"]) if "X" in content else (content["X_train"], content["y_train"])
    order = np.random.default_rng(0).permutation(len(X))[: 290_506 if name == "covtype" else len(X)]
    return X[order], y[order]


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Be one worker: train on a part of the rows."""
    rank, size = job["rank"], job["size"]
    with Links("127.0.0.1") as links:
        print(json.dumps(links.address), flush=True)
        addresses = [tuple(one) for one in json.loads(sys.stdin.readline())]
        X, y = load(job["set"], Path(job["data_dir"]))
        bounds = np.linspace(0, len(X), size + 1).astype(int)
        rows = slice(bounds[rank], bounds[rank + 1])
        peers: Any = ALONE
        if size > 1:
            links.connect(rank, addresses, bytes.fromhex(job["token"]), start_within=300, lost_after=300)
            peers = links
        meter = Meter(peers)
        model = gpuboost.AdaBoostMHClassifier(
            n_estimators=job["rounds"], max_leaf_nodes=LEAVES[job["set"]], device="cpu", n_jobs=1
        )
        part = Part(X[rows], y[rows], np.array([rank]), np.array([rows.stop - rows.start]))
        model = fit_part(model, part, meter)  # type: ignore[arg-type]
    seconds = np.diff(model.history_["seconds"])[SKIPPED:].tolist()
    found: dict[str, Any] = {"seconds": median(seconds), "digest": model.ensemble_.digest()}
    if size > 1:
        counted = np.diff(np.array(meter.rounds)[:, 1:], axis=0)[SKIPPED:]
        found |= {
            "bytes": float(counted[:, 0].mean()),
            "calls": float(counted[:, 1].mean()),
            "dense": meter.dense / job["rounds"],
        }
    return found


def group(name: str, size: int, data_dir: Path, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Train on ``size`` workers; return what each has found."""
    token = secrets.token_hex(32)
    workers = []
    for rank in range(size):
        job = {"rank": rank, "size": size, "set": name, "data_dir": str(data_dir), "token": token, "rounds": rounds}
        command = [sys.executable, __file__, "work", "--job", json.dumps(job)]
        workers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    addresses = [json.loads(worker.stdout.readline()) for worker in workers]  # type: ignore[union-attr]
    for worker in workers:
        print(json.dumps(addresses), file=worker.stdin, flush=True)
    outputs = [worker.communicate()[0] for worker in workers]
    if any(worker.returncode for worker in workers):
        raise SystemExit(f"a worker has failed on {name}")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def traffic(options: argparse.Namespace) -> dict[str, Any]:
    rows, found = [], {}
    for name in options.sets:
        for size in options.workers:
            workers = group(name, size, options.data_dir)
            sent, dense = max(one["bytes"] for one in workers), workers[0]["dense"] * (size - 1) / size
            found[f"{name}, {size}"] = workers
            rows.append(
                [
                    name,
                    str(size),
                    f"{sent / 1e6:.3f}",
                    f"{dense / 1e6:.3f}",
                    f"{sent / dense:.2f}",
                    f"{workers[0]['calls']:.0f}",
                ]
            )
    print(markdown(["set", "workers", "MB a worker and round", "dense", "of it", "calls"], rows))
    return found


def times(options: argparse.Namespace) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {}
    for _ in range(options.repeats):
        for name in options.sets:
            digests = set()
            for size in options.workers:
                workers = group(name, size, options.data_dir, 25)
                seconds.setdefault(f"{name}, {size}", []).append(max(one["seconds"] for one in workers))
                digests |= {one["digest"] for one in workers}
            assert len(digests) == 1, "the models differ"
    rows = []
    for name in options.sets:
        base = seconds[f"{name}, {options.workers[0]}"]
        for size in options.workers:
            own = seconds[f"{name}, {size}"]
            ratios = sorted(a / b for a, b in zip(own, base, strict=True))
            rows.append(
                [name, str(size), f"{1000 * median(own):.1f}", f"{median(ratios):.2f} [{ratios[0]:.2f}, {ratios[-1]:.2f}]"]
            )
    print(markdown(["set", "workers", "ms a round", f"of {options.workers[0]}"], rows))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["traffic", "time", "work"])
    parser.add_argument("--data-dir", type=Path, default=Path())
    parser.add_argument("--sets", type=lambda text: text.split(","), default=["covtype"])
    parser.add_argument("--workers", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if options.part == "work":
        print(json.dumps(work(json.loads(options.job))))
        return
    found = {"traffic": traffic, "time": times}[options.part](options)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / f"workers-{options.part}-{datetime.date.today()}.json"
    path.write_text(json.dumps({"gpuboost": gpuboost.__version__, **found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

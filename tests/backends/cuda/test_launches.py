"""What a growth and a round queue, counted on the emulated device, so that nothing grows unnoticed."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.growth import ASK_EVERY
from gpuboost.learners.growth import grow
from tests.candidates import tight
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.requirement import require
from tests.problems import coded, stats_of


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What has been queued, by the names of kernels, "zero" and "put"; and how often the host has waited, as "get"."""
    require(emulator.unavailable())
    seen: Counter[str] = Counter()

    def count(method: str) -> None:
        original = getattr(EmulatedGpu, method)

        def counted(gpu: EmulatedGpu, what: Any, *rest: Any) -> Any:
            seen[what.name if method == "launch" else method] += 1
            return original(gpu, what, *rest)

        monkeypatch.setattr(EmulatedGpu, method, counted)

    for method in ("launch", "zero", "put", "get"):
        count(method)
    return seen


def problem(n_rows: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return coded(rng.integers(0, 50, (5, n_rows))), rng.integers(-99, 100, (n_rows, 3))


@pytest.mark.parametrize("max_leaves", [2, 3, 9, ASK_EVERY])
def test_five_items_an_inner_node(queued: Counter[str], max_leaves: int) -> None:
    """The first growth, which is recorded, and another one."""
    data, quantised = problem()
    with CudaBackend(EmulatedGpu()) as backend:
        matrix, stats = backend.load(data), stats_of(backend, quantised)
        for _ in range(2):
            queued.clear()
            grow(backend, matrix, stats, max_leaves)
            n_cuts = max_leaves - 1
            steps = dict.fromkeys(("pop_best_leaf", "partition_rows", "partition_nodes", "histogram", "sweep_edge"), n_cuts)
            assert queued == Counter({**steps, "init_roots": 1, "root_totals": 1, "zero": 1})


def test_without_kept_histograms_both_children_are_counted(queued: Counter[str]) -> None:
    data, quantised = problem()
    with tight("forward", EmulatedGpu().limits) as backend:
        matrix, stats = backend.load(data), stats_of(backend, quantised)
        queued.clear()
        grow(backend, matrix, stats, 4)
    n_tiles = queued["sweep_edge"] // 3
    assert queued["histogram"] == queued["zero"] == 5 * n_tiles  # of the root and of two children twice


@pytest.mark.parametrize(
    ("algorithm", "options", "n_others", "waits"),
    [
        ("adaboost-mh", {"variant": "discrete"}, 17, 3),
        ("adaboost-mh", {"variant": "real"}, 19, 4),
        ("samme", {}, 19, 4),
        ("gamble", {}, 19, 4),
    ],
)
def test_a_round(
    queued: Counter[str], monkeypatch: pytest.MonkeyPatch, algorithm: str, options: dict[str, Any], n_others: int, waits: int
) -> None:
    """Besides five items an inner node."""
    from gpuboost import devices

    monkeypatch.setitem(devices.OPENERS, "emulated", lambda index: CudaBackend(EmulatedGpu()))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
    counts: list[Counter[str]] = []
    gpuboost.fit(
        X, y, algorithm=algorithm, n_estimators=5, max_leaf_nodes=5, device="emulated",
        callbacks=[lambda progress: counts.append(queued.copy())], **options,
    )  # fmt: skip
    rounds = [after - before for before, after in itertools.pairwise(counts[1:])]  # the first round records
    assert [sum(one.values()) - one["get"] - 5 * 4 for one in rounds] == [n_others] * 3
    assert [one["get"] for one in rounds] == [waits] * 3

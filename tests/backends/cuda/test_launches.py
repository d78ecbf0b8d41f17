"""What a growth and a round queue, counted on the emulated device, so that nothing grows unnoticed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost import devices, training
from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import results
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.growth import ASK_EVERY
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import SoftmaxRows
from gpuboost.learners.growth import grow
from tests.backends.test_softmax import random_rows
from tests.candidates import thinned, tight
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.requirement import require
from tests.problems import coded, stats_of


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What has been queued, by the names of kernels, "zero", "put" and "replay"; and how often the host has waited, as "get".

    What a graph holds counts as well, under its own names.
    """
    require(emulator.unavailable())
    seen: Counter[str] = Counter()

    def count(method: str) -> None:
        original = getattr(EmulatedGpu, method)

        def counted(gpu: EmulatedGpu, what: Any, *rest: Any) -> Any:
            seen[what.name if method == "launch" else method] += 1
            return original(gpu, what, *rest)

        monkeypatch.setattr(EmulatedGpu, method, counted)

    for method in ("launch", "zero", "put", "get", "replay"):
        count(method)
    return seen


def problem(n_rows: int = 400) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return coded(rng.integers(0, 50, (5, n_rows))), rng.integers(-99, 100, (n_rows, 3))


STEPS = ("pop_best_leaf", "partition_rows", "partition_nodes", "histogram", "sweep_edge")


@pytest.mark.parametrize("max_leaves", [2, 3, 9, ASK_EVERY + 1, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("graphs", [False, True])
def test_five_items_an_inner_node(queued: Counter[str], max_leaves: int, graphs: bool) -> None:
    """A growth that is recorded, one that is captured or queued again, and one that is replayed, in three calls."""
    data, quantised = problem()
    with CudaBackend(EmulatedGpu(graphs=graphs)) as backend:
        matrix, stats = backend.load(data), stats_of(backend, quantised)
        grow(backend, matrix, stats, max_leaves)
        backend.recordings.clear()  # but not what is made once, such as buffers
        expected = Counter({**dict.fromkeys(STEPS, max_leaves - 1), "init_roots": 1, "root_totals": 1})
        nodes = []
        for replays in (0, graphs, graphs):
            queued.clear()
            frontier = grow(backend, matrix, stats, max_leaves)
            again = Counter({"init_roots": 1, "root_totals": 1, "replay": 1})
            assert queued == (expected if not replays else expected + Counter(replay=1) if len(nodes) == 1 else again)
            nodes.append(backend.read_nodes(frontier)[0].copy())
        assert (nodes[0] == nodes[1]).all()
        assert (nodes[0] == nodes[2]).all()


def test_without_kept_histograms_both_children_are_counted(queued: Counter[str]) -> None:
    data, quantised = problem()
    with tight("forward", EmulatedGpu().limits) as backend:
        matrix, stats = backend.load(data), stats_of(backend, quantised)
        grow(backend, matrix, stats, 4)
        queued.clear()
        grow(backend, matrix, stats, 4)
    n_tiles = queued["sweep_edge"] // 3
    assert queued["histogram"] == queued["zero"] == 5 * n_tiles  # of the root and of two children twice


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let "emulated" be a device."""
    require(emulator.unavailable())
    monkeypatch.setitem(devices.OPENERS, "emulated", lambda index: CudaBackend(EmulatedGpu(graphs=False)))


@pytest.fixture
def rounds(device: None, queued: Counter[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Counter[str]]]:
    """Train for some rounds; return what those after the second have queued, from one look at the scores to the next."""
    seen: list[Counter[str]] = []
    observe = training.observe

    def counted(*arguments: Any) -> Any:
        found = observe(*arguments)
        seen.append(queued.copy())
        return found

    def run(algorithm: str, **options: Any) -> list[Counter[str]]:
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(300, 4)), rng.integers(0, 4, 300)
        gpuboost.fit(X, y, algorithm=algorithm, n_estimators=5, device="emulated", **options)
        return [after - before for before, after in itertools.pairwise(seen[1:])]  # the first round records

    monkeypatch.setattr(training, "observe", counted)
    return run


@pytest.mark.parametrize(
    ("algorithm", "options", "n_others", "waits"),
    [
        ("adaboost-mh", {"variant": "discrete"}, 11, 2),
        ("adaboost-mh", {"variant": "real"}, 12, 3),
        ("samme", {}, 12, 3),
        ("gamble", {}, 12, 3),
    ],
)
def test_a_round(
    rounds: Callable[..., list[Counter[str]]], algorithm: str, options: dict[str, Any], n_others: int, waits: int
) -> None:
    """Besides five items an inner node."""
    found = rounds(algorithm, max_leaf_nodes=5, **options)
    assert [sum(one.values()) - one["get"] - 5 * 4 for one in found] == [n_others] * 3
    assert [one["get"] for one in found] == [waits] * 3


@pytest.mark.parametrize(
    ("algorithm", "options", "n_others", "waits"),
    thinned(
        [("mart", {}, 13, 3), ("abc-boost", {}, 15, 4), ("abc-boost", {"loss": "mart"}, 15, 4), ("logitboost", {}, 13, 3)], 4
    ),
)
def test_a_round_of_newton_trees(
    rounds: Callable[..., list[Counter[str]]], algorithm: str, options: dict[str, Any], n_others: int, waits: int
) -> None:
    """All trees of a round grow together: 110 items with 20 leaves. A search waits once more, for the candidates' losses."""
    found = rounds(algorithm, max_leaf_nodes=20, **options)
    assert [sum(one.values()) - one["get"] - 5 * 19 for one in found] == [n_others] * 3
    assert [one["get"] for one in found] == [waits] * 3


@pytest.mark.emulator
@pytest.mark.parametrize("before", ["reweight", "nothing"])
def test_results_begin_again_at_any_place(monkeypatch: pytest.MonkeyPatch, before: str) -> None:
    """What one kernel writes and another reads stays where it is until both are queued, wherever the memory ends."""
    require(emulator.unavailable())
    monkeypatch.setattr(results, "CAPACITY", 32)
    rng = np.random.default_rng(0)
    state, signs = np.ldexp(rng.random((50, 4)) + 0.1, -40), rng.choice(np.array([-1, 1], np.int8), (50, 4))
    weight, leaf_index, table = np.ones(50, np.int32), np.arange(50, dtype=np.int32) % 3, rng.random((3, 2, 4)) + 0.5
    softmax = random_rows(50, 4)

    def outcome(backend: Backend) -> list[Any]:
        own, *others = (backend.put(array) for array in (state.copy(), signs, weight, leaf_index))
        if before == "nothing":
            return list(backend.softmax_summary(SoftmaxRows(*map(backend.put, softmax)), 30))
        maximum = backend.reweight(own, others[0], others[2], table)
        stats = backend.statistics(own, *others[:2], 50, maximum)
        return [backend.get(stats.quantised), stats.shift, stats.sum, stats.sum_abs, float(maximum)]

    expected = outcome(NumpyBackend())
    with CudaBackend(EmulatedGpu()) as backend:
        for used in range(1, results.CAPACITY + 1):
            backend.results = results.Results(backend.gpu)
            backend.results.reserve(used)
            for found, wanted in zip(outcome(backend), expected, strict=True):
                assert np.array_equal(found, wanted), used

"""Row states with one entry a row: a backend may keep them in a form of its own, and must give what the plain form gives."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.frontier import CUT, FEATURE, GAIN, LEFT, MISSING_LEFT, WHOLE, GrowthScope
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Counts, Device, Stats
from gpuboost.learners.growth import grow
from tests.backends.test_conformance import random_codes, same
from tests.problems import coded

REFERENCE = NumpyBackend()


@pytest.fixture(autouse=True)
def share_all_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Team, "WORTH_SHARING", 4)


@dataclass(frozen=True)
class Rows:
    """Rows of one class each. Most of the weights are nothing in units of the sum."""

    state: NDArray[np.float64]
    signs: NDArray[np.int8]
    frequency_weight: NDArray[np.int32]
    counts: NDArray[np.int32]

    @classmethod
    def random(cls, n_rows: int, n_classes: int, seed: int) -> Rows:
        rng = np.random.default_rng([n_rows, n_classes, seed])
        label = rng.integers(0, n_classes, n_rows)
        weight = rng.random(n_rows) * 10.0 ** -rng.choice([0, 1, 9, 20, 250], n_rows)
        weight[rng.integers(n_rows)] = 1.5
        of_class = label[:, None] == np.arange(n_classes)
        signs = np.where(of_class, 1, -1).astype(np.int8)
        counts = rng.integers(0, (2**30 - 1) // n_rows + 1, n_rows) * rng.integers(0, 2, n_rows)
        return cls(weight[:, None] * of_class, signs, rng.integers(1, 5, n_rows).astype(np.int32), counts.astype(np.int32))

    def put(self, backend: Backend) -> tuple[Device, Device, Device]:
        return backend.put_one_hot(self.state), backend.put(self.signs), backend.put(self.frequency_weight)

    def statistics(self, backend: Backend, fraction: float) -> Stats:
        limit = Counts(backend.put(self.counts), max(1, int(fraction * self.counts.sum()))) if fraction else None
        return self.of(backend, limit)

    def of(self, backend: Backend, limit: Counts | None) -> Stats:
        return backend.statistics(*self.put(backend), int(self.frequency_weight.sum()), 1.5, limit)


SHAPES = [(1, 1), (1, 3), (7, 2), (100, 4), (513, 5), (33, 17), (300, 30)]


@pytest.mark.parametrize("shape", SHAPES)
def test_state_and_statistics(candidate: Backend, shape: tuple[int, int]) -> None:
    rows = Rows.random(*shape, 0)
    state, _, frequency_weight = rows.put(candidate)
    assert candidate.maximum(state) == 1.5
    assert same(
        candidate.channel_sums(state, frequency_weight, 20), REFERENCE.channel_sums(rows.state, rows.frequency_weight, 20)
    )
    rng = np.random.default_rng(1)
    leaf_index = rng.integers(0, 5, shape[0]).astype(np.int32)
    for fraction in (0.0, 0.1):
        stats, expected = rows.statistics(candidate, fraction), rows.statistics(REFERENCE, fraction)
        assert (stats.shift, stats.min_count, stats.n_classes) == (expected.shift, expected.min_count, shape[1])
        assert same(stats.sum, expected.sum)
        assert same(stats.sum_abs, expected.sum_abs)
        sums = candidate.leaf_sums(stats, candidate.put(leaf_index), 5)
        assert all(map(same, sums, REFERENCE.leaf_sums(expected, leaf_index, 5)))
    assert same(candidate.get(state), rows.state)  # none of them writes


@pytest.mark.parametrize("shape", SHAPES)
def test_reweight(candidate: Backend, shape: tuple[int, int]) -> None:
    rows, rng = Rows.random(*shape, 1), np.random.default_rng(2)
    state, signs, _ = rows.put(candidate)
    expected = rows.state.copy()
    for _ in range(3):  # down to the floor, in part
        leaf_index = rng.integers(0, 4, shape[0]).astype(np.int32)
        table = 10.0 ** rng.integers(-120, 3, (4, 2, shape[1])) * rng.random((4, 2, shape[1]))
        largest = candidate.reweight(state, signs, candidate.put(leaf_index), table)
        assert float(largest) == REFERENCE.reweight(expected, rows.signs, leaf_index, table)
        assert same(candidate.get(state), expected)


@pytest.mark.parametrize("max_leaves", [2, 7])
@pytest.mark.parametrize("fraction", [0.0, 0.02])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_classes"), [(30, 3, 3), (400, 3, 2), (25, 17, 2), (257, 2, 16), (90, 3, 30)]
)
def test_growth(candidate: Backend, n_rows: int, n_features: int, n_classes: int, fraction: float, max_leaves: int) -> None:
    matrix, rows = random_codes(n_rows, n_features, 6), Rows.random(n_rows, n_classes, 3)
    data = candidate.load(matrix)
    some = np.random.default_rng(4).permutation(n_rows)[: n_rows // 2].astype(np.int32)
    for chosen in (None, some, None):
        trees = []
        for backend, own in ((candidate, data), (REFERENCE, matrix)):
            stats = replace(rows.statistics(backend, fraction), criterion="gini")
            start = WHOLE if chosen is None else GrowthScope(backend.put(chosen))
            frontier = grow(backend, own, stats, max_leaves, start)
            nodes, edges = backend.read_nodes(frontier)
            made = nodes[0][:, LEFT] > 0
            found = [nodes[0][made][:, [FEATURE, CUT, MISSING_LEFT, LEFT, GAIN]], edges[0][made]]
            trees.append(found if chosen is not None else [*found, backend.get(backend.node_of_rows(frontier))])
        assert all(map(same, *trees))
        assert len(trees[0][0]) > 0


def test_rows_without_weight_go_where_the_cuts_send_them(candidate: Backend) -> None:
    # The rows 0 and 1 decide, on feature 0: code 1 is class 0, code 2 is class 1. The others weigh 2**-40 of that, less than
    # half a unit; 2, 3 and 4 have the codes 1, 2 and 0 (missing), which goes left where nothing speaks against it.
    matrix = coded(np.array([[1, 2, 1, 2, 0], [1, 1, 2, 2, 2]], np.uint8), [3, 3])
    weight = np.array([1.0, 1.0, 2.0**-40, 2.0**-40, 2.0**-40])
    label = np.array([0, 1, 1, 0, 1])
    state = weight[:, None] * (label[:, None] == [0, 1])
    signs, frequency_weight = np.where(state > 0, 1, -1).astype(np.int8), np.ones(5, np.int32)
    device = [candidate.put_one_hot(state), candidate.put(signs), candidate.put(frequency_weight)]
    stats = replace(candidate.statistics(*device, 5, 1.0), criterion="gini")
    assert stats.sum_abs.tolist() == [2**stats.shift, 2**stats.shift]
    frontier = grow(candidate, candidate.load(matrix), stats, 4)
    assert candidate.get(candidate.node_of_rows(frontier)).tolist() == [[1, 2, 1, 2, 1]]

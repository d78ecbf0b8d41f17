"""What a growth starts from: some rows, several stretches of them side by side, some features, for one tree or a batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.search import histogram_layout
from gpuboost.backends.frontier import FEATURE, GAIN, LEFT, SLOT, START, STOP, GrowthScope
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Counts, Shifts, Stats
from gpuboost.binning import BinnedMatrix
from gpuboost.learners.growth import grow
from tests.backends.test_conformance import Rows, random_codes, same
from tests.backends.test_softmax import on, pairs_of, random_rows
from tests.candidates import Once
from tests.problems import cpu_backend, stats_of

REFERENCE = NumpyBackend()


def part(stats: Stats, rows: NDArray[Any]) -> Stats:
    """The statistics of some rows, in the reference's layout."""
    return replace(stats, quantised=stats.quantised[:, rows], sum=stats.quantised[0, rows].sum(axis=0, dtype=np.int64))


def alone(matrix: BinnedMatrix, stats: Stats, rows: NDArray[Any], max_leaves: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """The oracle: the tree of a matrix that has these rows only."""
    own = replace(matrix, codes=matrix.codes[:, rows])
    nodes, edges = REFERENCE.read_nodes(grow(REFERENCE, own, part(stats, rows), max_leaves))
    return nodes[0], edges[0]


@pytest.mark.parametrize("max_leaves", [2, 3, 9])
@pytest.mark.parametrize("fraction", [0.0, 0.02])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_classes"), [(30, 3, 3), (400, 5, 2), (257, 3, 16), (40, 33, 1), (60, 65, 4), (3000, 4, 5)]
)
def test_some_rows(
    candidate: Backend, once: Once, n_rows: int, n_features: int, n_classes: int, fraction: float, max_leaves: int
) -> None:
    matrix, problem = random_codes(n_rows, n_features, 3), Rows.random(n_rows, n_classes, 4)
    rng = np.random.default_rng(5)
    data, stats = candidate.load(matrix), problem.statistics(candidate, fraction)
    for size in (1, n_rows // 3, n_rows):  # other sizes one after another, too
        rows = rng.permutation(n_rows)[:size].astype(np.int32)
        frontier = grow(candidate, data, stats, max_leaves, GrowthScope(candidate.put(rows)))
        nodes, edges = candidate.read_nodes(frontier)
        expected, expected_edges = once(alone, matrix, problem.statistics(REFERENCE, fraction), rows, max_leaves)
        made = nodes[0][:, LEFT] > 0
        assert nodes[0][:, START:GAIN][:, [0, 1, 5, 6]].tolist() == expected[:, START:GAIN][:, [0, 1, 5, 6]].tolist()
        assert nodes[0][made][:, 2:7].tolist() == expected[made][:, 2:7].tolist()
        assert nodes[0][:, GAIN].tolist() == expected[:, GAIN].tolist()
        assert edges[0][made].tolist() == expected_edges[made].tolist()
        held = np.array(candidate.get(frontier.rows))[0]
        assert sorted(held.tolist()) == sorted(rows.tolist())


@pytest.mark.parametrize("max_leaves", [2, 5])
@pytest.mark.parametrize("n_leaves", [1, 2, 8])
@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(30, 3, 1), (400, 5, 1), (200, 17, 3), (3000, 4, 1)])
def test_stretches_of_rows(
    candidate: Backend, once: Once, n_rows: int, n_features: int, n_classes: int, n_leaves: int, max_leaves: int
) -> None:
    matrix, problem = random_codes(n_rows, n_features, 6), Rows.random(n_rows, n_classes, 7)
    leaf_index = np.random.default_rng(8).integers(0, n_leaves + 1, n_rows).astype(np.int32)
    leaf_index[leaf_index == n_leaves] = 0  # the first is the largest, and of eight groups some may be empty
    rows, bounds = candidate.rows_by_leaf(candidate.put(leaf_index), n_leaves)
    assert bounds.tolist() == [int((leaf_index < g).sum()) for g in range(n_leaves + 1)]
    assert np.array(candidate.get(rows)).tolist() == [i for g in range(n_leaves) for i in range(n_rows) if leaf_index[i] == g]
    data, stats = candidate.load(matrix), problem.statistics(candidate)
    nodes, edges = candidate.read_nodes(grow(candidate, data, stats, max_leaves, GrowthScope(rows, bounds)))
    assert len(nodes) == n_leaves
    for g in range(n_leaves):
        own = np.flatnonzero(leaf_index == g)
        expected, expected_edges = once(alone, matrix, problem.statistics(REFERENCE), own, max_leaves)
        made = expected[:, LEFT] > 0
        assert (nodes[g][made][:, [START, STOP]] - bounds[g]).tolist() == expected[made][:, [START, STOP]].tolist()
        assert nodes[g][made][:, 2:7].tolist() == expected[made][:, 2:7].tolist()
        assert nodes[g][:, GAIN].tolist() == expected[:, GAIN].tolist()
        assert edges[g][made].tolist() == expected_edges[made].tolist()


@pytest.mark.parametrize("criterion", ["edge", "gini"])
@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(60, 5, 3), (300, 40, 2), (100, 130, 4)])
def test_some_features(candidate: Backend, once: Once, n_rows: int, n_features: int, n_classes: int, criterion: Any) -> None:
    matrix, problem = random_codes(n_rows, n_features, 9), Rows.random(n_rows, n_classes, 10)
    problem = replace(problem, signs=np.ones_like(problem.signs))
    data, stats = candidate.load(matrix), replace(problem.statistics(candidate), criterion=criterion)
    rng = np.random.default_rng(11)
    for share in (0.0, 0.2, 0.7, 1.0):
        features = rng.random(n_features) < share
        frontier = grow(candidate, data, stats, 6, GrowthScope(feature_mask=features))
        without = replace(matrix, codes=np.where(features[:, None], matrix.codes, np.uint8(1)))
        expected = once(grow, REFERENCE, without, replace(problem.statistics(REFERENCE), criterion=criterion), 6)
        nodes, edges = candidate.read_nodes(frontier)
        made = expected.nodes[0, :, LEFT] > 0
        assert nodes[0][made][:, :7].tolist() == expected.nodes[0][made][:, :7].tolist()
        assert nodes[0][:, GAIN].tolist() == expected.nodes[0][:, GAIN].tolist()
        assert edges[0][made].tolist() == expected.edges[0][made].tolist()
        leaf_index, expected_group = candidate.get(candidate.node_of_rows(frontier)), REFERENCE.node_of_rows(expected)
        assert np.array(leaf_index).tolist() == expected_group.tolist()


def test_histograms_of_the_cpu_have_room_for_the_drawn_features_alone() -> None:
    matrix, backend = random_codes(300, 130, 9), cpu_backend()
    features = np.arange(130) % 7 == 3
    stats = Rows.random(300, 2, 10).statistics(backend)
    frontier = backend.start_growth(backend.load(matrix), stats, 6, GrowthScope(feature_mask=features))
    shape, _ = histogram_layout(frontier)
    assert shape[1] == matrix.n_bins[features & matrix.usable].sum()


def test_some_rows_and_features_in_stretches(candidate: Backend) -> None:
    matrix, problem = random_codes(500, 20, 12), Rows.random(500, 1, 13)
    rows = np.random.default_rng(14).permutation(500)[:300].astype(np.int32)
    features = np.arange(20) % 3 > 0
    bounds = np.array([0, 120, 120, 300])
    scope = GrowthScope(candidate.put(rows), bounds, features)
    nodes, _ = candidate.read_nodes(grow(candidate, candidate.load(matrix), problem.statistics(candidate), 4, scope))
    without = replace(matrix, codes=np.where(features[:, None], matrix.codes, np.uint8(1)))
    for g, (first, stop) in enumerate(itertools.pairwise(bounds)):
        expected, _ = alone(without, problem.statistics(REFERENCE), rows[first:stop], 4)
        assert nodes[g][:, GAIN].tolist() == expected[:, GAIN].tolist()


def test_stumps_by_rebel_side_by_side(candidate: Backend) -> None:
    # Each root has a mass of its own, which is that of its rows.
    matrix, problem = random_codes(400, 6, 2), Rows.random(400, 3, 2)
    leaf_index = np.random.default_rng(6).integers(0, 3, 400).astype(np.int32)
    order, bounds = candidate.rows_by_leaf(candidate.put(leaf_index), 3)
    stats = replace(problem.statistics(candidate), criterion="rebel")
    nodes, edges = candidate.read_nodes(grow(candidate, candidate.load(matrix), stats, 2, GrowthScope(order, bounds)))
    whole = problem.statistics(REFERENCE)
    for g in range(3):
        own = np.flatnonzero(leaf_index == g)
        own_stats = replace(part(whole, own), criterion="rebel")
        alone = grow(REFERENCE, replace(matrix, codes=matrix.codes[:, own]), own_stats, 2)
        assert same(nodes[g, 0, FEATURE:SLOT], alone.nodes[0, 0, FEATURE:SLOT])
        assert same(edges[g, 0], alone.edges[0, 0])


# ---- a batch of trees with statistics of their own ---------------------------------------------------------------------------


def newton_batch(n_rows: int, n_trees: int, weighted: bool) -> Callable[[Backend], Stats]:
    arrays = (*random_rows(n_rows, 4, 6)[:3], np.ones(n_rows))
    pairs, frequency_weight = pairs_of(4, 7)[:n_trees], arrays[2].astype(np.int32)

    def batch(backend: Backend) -> Stats:
        counts = Counts(backend.put(frequency_weight), 1 + n_rows // 9)
        return backend.softmax_statistics(
            on(backend, arrays), pairs, Shifts(12, 12), counts, backend.put(frequency_weight) if weighted else None
        )

    return batch


def batch_of(quantised: NDArray[Any], criterion: Any, counts: NDArray[Any], min_count: int) -> Callable[[Backend], Stats]:
    """Statistics of a batch with exactly the integers ``quantised`` (n_trees, n_rows, n_classes)."""

    def batch(backend: Backend) -> Stats:
        alone = [stats_of(backend, one, counts, min_count) for one in quantised]
        padded = np.concatenate([np.array(backend.get(stats.quantised)) for stats in alone])
        sums, sum_abs = (np.asarray(sum(getattr(s, name) for s in alone)) for name in ("sum", "sum_abs"))
        return Stats(backend.put(padded), 0, sums, sum_abs, min_count, criterion)

    return batch


def random_lists(n_rows: int, n_trees: int, seed: int) -> list[list[NDArray[Any]]]:
    """The same rows for all trees; rows of their own, in which a row may be many times, the second tree with few; all rows."""
    rng = np.random.default_rng(seed)
    own = [rng.permutation(n_rows)[: max(1, n_rows * (2 + t % 3) // 5)] for t in range(n_trees)]
    if n_trees > 1:
        own[1] = own[1][:1]
    everything = [np.arange(n_rows)] * n_trees
    return [[rng.permutation(n_rows)[: 1 + n_rows // 2]], own, everything]


@dataclass(frozen=True)
class Grown:
    """A batch, what its trees start from, and each of them grown from a matrix with its rows only."""

    matrix: BinnedMatrix
    batch: Callable[[Backend], Stats]
    lists: list[NDArray[Any]]
    max_leaves: int

    @cached_property
    def alone(self) -> list[tuple[NDArray[Any], NDArray[Any]]]:
        whole = self.batch(REFERENCE)
        own = [self.lists[t % len(self.lists)] for t in range(len(whole.quantised))]
        return [alone(self.matrix, whole.of_tree(t), rows, self.max_leaves) for t, rows in enumerate(own)]

    def check(self, backend: Backend) -> None:
        bounds = np.cumsum([0, *map(len, self.lists)]) if len(self.lists) > 1 else None
        scope = GrowthScope(backend.put(np.concatenate(self.lists).astype(np.int32)), bounds)
        frontier = grow(backend, backend.load(self.matrix), self.batch(backend), self.max_leaves, scope)
        nodes, edges = (np.array(a) for a in backend.read_nodes(frontier))
        totals, held, whole = (
            np.array(backend.read_totals(frontier)[1]),
            np.array(backend.get(frontier.rows)),
            self.batch(REFERENCE),
        )
        for t, (expected, expected_edges) in enumerate(self.alone):
            own, made = self.lists[t % len(self.lists)], expected[:, LEFT] > 0
            first = 0 if bounds is None else bounds[t]
            assert nodes[t, 0, [START, STOP]].tolist() == [first, first + len(own)]
            assert (nodes[t][made][:, [START, STOP]] - first).tolist() == expected[made][:, [START, STOP]].tolist()
            assert nodes[t][made][:, 2:7].tolist() == expected[made][:, 2:7].tolist()
            assert nodes[t][:, GAIN].tolist() == expected[:, GAIN].tolist()
            assert edges[t][made].tolist() == expected_edges[made].tolist()
            assert totals[t, 0].tolist() == whole.quantised[t, own].sum(axis=0, dtype=np.int64).tolist()
            stretch = held[t % len(held), first : first + len(own)]
            assert sorted(stretch.tolist()) == sorted(own.tolist())
        assert len(nodes) == len(self.alone)


def newton_cases(n_rows: int, n_features: int, n_trees: int, weighted: bool, max_leaves: int) -> list[Grown]:
    matrix, batch = random_codes(n_rows, n_features, 0), newton_batch(n_rows, n_trees, weighted)
    return [Grown(matrix, batch, lists, max_leaves) for lists in random_lists(n_rows, n_trees, 1)]


def cases(criterion: str, n_classes: int) -> list[Grown]:
    rng = np.random.default_rng(n_classes)
    quantised = rng.integers(0 if criterion == "gini" else -9, 10, (3, 120, n_classes))
    matrix, batch = random_codes(120, 3, 3), batch_of(quantised, criterion, rng.integers(1, 4, 120), 12)
    return [Grown(matrix, batch, lists, 2 if criterion == "rebel" else 5) for lists in random_lists(120, 3, 2)]


SIZES = [(1, 1, 2), (40, 17, 4), (200, 3, 2), (80, 4, 1)]


@pytest.mark.parametrize("max_leaves", [2, 7])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_newton_trees_of_some_rows(
    candidate: Backend, once: Once, size: tuple[int, int, int], weighted: bool, max_leaves: int
) -> None:
    for case in once(newton_cases, *size, weighted, max_leaves):  # one after another on the same backend
        case.check(candidate)


@pytest.mark.parametrize("criterion", ["edge", "gini", "rebel"])
@pytest.mark.parametrize("n_classes", [1, 5])
def test_a_batch_of_any_criterion(candidate: Backend, once: Once, n_classes: int, criterion: str) -> None:
    for case in once(cases, criterion, n_classes):
        case.check(candidate)


@pytest.mark.slow
def test_the_reference_grows_trees_of_some_rows_as_those_of_data_without_the_others() -> None:
    for size, weighted, max_leaves in itertools.product(SIZES, (False, True), (2, 7)):
        for case in newton_cases(*size, weighted, max_leaves):
            case.check(REFERENCE)
    for criterion, n_classes in itertools.product(("edge", "gini", "rebel"), (1, 5)):
        for case in cases(criterion, n_classes):
            case.check(REFERENCE)


def test_a_batch_with_some_features(candidate: Backend, once: Once) -> None:
    matrix, batch = random_codes(300, 40, 4), newton_batch(300, 3, False)
    features, lists = np.arange(40) % 3 == 1, random_lists(300, 3, 5)[1]
    scope = GrowthScope(candidate.put(np.concatenate(lists).astype(np.int32)), np.cumsum([0, *map(len, lists)]), features)
    nodes, _ = candidate.read_nodes(grow(candidate, candidate.load(matrix), batch(candidate), 5, scope))
    without = replace(matrix, codes=np.where(features[:, None], matrix.codes, np.uint8(1)))
    for t, rows in enumerate(lists):
        expected, _ = once(alone, without, batch(REFERENCE).of_tree(t), rows, 5)
        assert nodes[t][:, GAIN].tolist() == expected[:, GAIN].tolist()
        assert features[nodes[t][nodes[t][:, LEFT] > 0, FEATURE]].all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_rows", "n_trees"), [(1, 1), (700, 5)])
def test_the_weight_of_a_row_in_a_newton_tree_is_its_curvature(
    candidate: Backend, n_rows: int, n_trees: int, weighted: bool
) -> None:
    batch = newton_batch(n_rows, n_trees, weighted)
    expected = np.asarray(batch(REFERENCE).quantised[:, :, 1 + weighted], np.int64)
    for backend in (candidate, REFERENCE):
        sum_abs = backend.row_weights(batch(backend))
        assert sum_abs.dtype == np.int64
        assert sum_abs.tolist() == expected.tolist()


def test_bounds_need_rows_and_as_many_statistics(candidate: Backend) -> None:
    with pytest.raises(ValueError, match="bounds divide rows"):
        GrowthScope(bounds=np.array([0, 3]))
    data, batch = candidate.load(random_codes(9, 2, 0)), newton_batch(9, 3, False)
    scope = GrowthScope(candidate.put(np.arange(9, dtype=np.int32)), np.array([0, 4, 9]))
    with pytest.raises(ValueError, match="the bounds are of 2 trees, the statistics of 3"):
        grow(candidate, data, batch(candidate), 3, scope)

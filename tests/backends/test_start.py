"""What a growth starts from: some rows, several stretches of them side by side, some features."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import FEATURE, GAIN, LEFT, SLOT, START, STOP, Backend, Start, Stats
from gpuboost.backends.numpy_backend import NumpyBackend
from gpuboost.binning import BinnedMatrix
from gpuboost.learners.growth import grow
from tests.backends.test_conformance import Rows, random_codes, same

REFERENCE = NumpyBackend()


def part(stats: Stats, rows: NDArray[Any]) -> Stats:
    """The statistics of some rows, in the reference's layout."""
    return replace(stats, q=stats.q[:, rows], signed=stats.q[0, rows].sum(axis=0, dtype=np.int64))


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
def test_some_rows(candidate: Backend, n_rows: int, n_features: int, n_classes: int, fraction: float, max_leaves: int) -> None:
    matrix, problem = random_codes(n_rows, n_features, 3), Rows.random(n_rows, n_classes, 4)
    rng = np.random.default_rng(5)
    data, stats = candidate.load(matrix), problem.statistics(candidate, fraction)
    for size in (1, n_rows // 3, n_rows):  # other sizes one after another, too
        rows = rng.permutation(n_rows)[:size].astype(np.int32)
        frontier = grow(candidate, data, stats, max_leaves, Start(candidate.put(rows)))
        nodes, edges = candidate.read_nodes(frontier)
        expected, expected_edges = alone(matrix, problem.statistics(REFERENCE, fraction), rows, max_leaves)
        made = nodes[0][:, LEFT] > 0
        assert nodes[0][:, START:GAIN][:, [0, 1, 5, 6]].tolist() == expected[:, START:GAIN][:, [0, 1, 5, 6]].tolist()
        assert nodes[0][made][:, 2:7].tolist() == expected[made][:, 2:7].tolist()
        assert nodes[0][:, GAIN].tolist() == expected[:, GAIN].tolist()
        assert edges[0][made].tolist() == expected_edges[made].tolist()
        held = np.array(candidate.get(frontier.rows))[0]
        assert sorted(held.tolist()) == sorted(rows.tolist())


@pytest.mark.parametrize("max_leaves", [2, 5])
@pytest.mark.parametrize("n_groups", [1, 2, 8])
@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(30, 3, 1), (400, 5, 1), (200, 17, 3), (3000, 4, 1)])
def test_stretches_of_rows(
    candidate: Backend, n_rows: int, n_features: int, n_classes: int, n_groups: int, max_leaves: int
) -> None:
    matrix, problem = random_codes(n_rows, n_features, 6), Rows.random(n_rows, n_classes, 7)
    group = np.random.default_rng(8).integers(0, n_groups + 1, n_rows).astype(np.int32)
    group[group == n_groups] = 0  # the first is the largest, and of eight groups some may be empty
    rows, bounds = candidate.rows_by_group(candidate.put(group), n_groups)
    assert bounds.tolist() == [int((group < g).sum()) for g in range(n_groups + 1)]
    assert np.array(candidate.get(rows)).tolist() == [i for g in range(n_groups) for i in range(n_rows) if group[i] == g]
    data, stats = candidate.load(matrix), problem.statistics(candidate)
    nodes, edges = candidate.read_nodes(grow(candidate, data, stats, max_leaves, Start(rows, bounds)))
    assert len(nodes) == n_groups
    for g in range(n_groups):
        expected, expected_edges = alone(matrix, problem.statistics(REFERENCE), np.flatnonzero(group == g), max_leaves)
        made = expected[:, LEFT] > 0
        assert (nodes[g][made][:, [START, STOP]] - bounds[g]).tolist() == expected[made][:, [START, STOP]].tolist()
        assert nodes[g][made][:, 2:7].tolist() == expected[made][:, 2:7].tolist()
        assert nodes[g][:, GAIN].tolist() == expected[:, GAIN].tolist()
        assert edges[g][made].tolist() == expected_edges[made].tolist()


@pytest.mark.parametrize("criterion", ["edge", "gini"])
@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(60, 5, 3), (300, 40, 2), (100, 130, 4)])
def test_some_features(candidate: Backend, n_rows: int, n_features: int, n_classes: int, criterion: Any) -> None:
    matrix, problem = random_codes(n_rows, n_features, 9), Rows.random(n_rows, n_classes, 10)
    problem = replace(problem, signs=np.ones_like(problem.signs))
    data, stats = candidate.load(matrix), replace(problem.statistics(candidate), criterion=criterion)
    rng = np.random.default_rng(11)
    for share in (0.0, 0.2, 0.7, 1.0):
        features = rng.random(n_features) < share
        frontier = grow(candidate, data, stats, 6, Start(features=features))
        without = replace(matrix, codes=np.where(features[:, None], matrix.codes, np.uint8(1)))
        expected = grow(REFERENCE, without, replace(problem.statistics(REFERENCE), criterion=criterion), 6)
        nodes, edges = candidate.read_nodes(frontier)
        made = expected.nodes[0, :, LEFT] > 0
        assert nodes[0][made][:, :7].tolist() == expected.nodes[0][made][:, :7].tolist()
        assert nodes[0][:, GAIN].tolist() == expected.nodes[0][:, GAIN].tolist()
        assert edges[0][made].tolist() == expected.edges[0][made].tolist()
        group, expected_group = candidate.get(candidate.node_of_rows(frontier)), REFERENCE.node_of_rows(expected)
        assert np.array(group).tolist() == expected_group.tolist()


def test_some_rows_and_features_in_stretches(candidate: Backend) -> None:
    matrix, problem = random_codes(500, 20, 12), Rows.random(500, 1, 13)
    rows = np.random.default_rng(14).permutation(500)[:300].astype(np.int32)
    features = np.arange(20) % 3 > 0
    bounds = np.array([0, 120, 120, 300])
    start = Start(candidate.put(rows), bounds, features)
    nodes, _ = candidate.read_nodes(grow(candidate, candidate.load(matrix), problem.statistics(candidate), 4, start))
    without = replace(matrix, codes=np.where(features[:, None], matrix.codes, np.uint8(1)))
    for g, (first, stop) in enumerate(itertools.pairwise(bounds)):
        expected, _ = alone(without, problem.statistics(REFERENCE), rows[first:stop], 4)
        assert nodes[g][:, GAIN].tolist() == expected[:, GAIN].tolist()


def test_stumps_by_rebel_side_by_side(candidate: Backend) -> None:
    # Each root has a mass of its own, which is that of its rows.
    matrix, problem = random_codes(400, 6, 2), Rows.random(400, 3, 2)
    group = np.random.default_rng(6).integers(0, 3, 400).astype(np.int32)
    order, bounds = candidate.rows_by_group(candidate.put(group), 3)
    stats = replace(problem.statistics(candidate), criterion="rebel")
    nodes, edges = candidate.read_nodes(grow(candidate, candidate.load(matrix), stats, 2, Start(order, bounds)))
    whole = problem.statistics(REFERENCE)
    for g in range(3):
        own = np.flatnonzero(group == g)
        own_stats = replace(part(whole, own), criterion="rebel")
        alone = grow(REFERENCE, replace(matrix, codes=matrix.codes[:, own]), own_stats, 2)
        assert same(nodes[g, 0, FEATURE:SLOT], alone.nodes[0, 0, FEATURE:SLOT])
        assert same(edges[g, 0], alone.edges[0, 0])


def test_bounds_need_rows(candidate: Backend) -> None:
    with pytest.raises(ValueError, match="bounds divide rows"):
        Start(bounds=np.array([0, 3]))

"""Exact pruning: the trees are those of the plain search, whatever is pruned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from gpuboost.backends import cpu_pruning
from gpuboost.backends.base import GAIN, LEFT, Backend, Start, Stats
from gpuboost.backends.cpu_backend import CpuBackend
from gpuboost.backends.numpy_backend import NumpyBackend
from gpuboost.learners.growth import grow
from tests.backends.test_conformance import Rows, random_codes
from tests.problems import coded, stats_of

REFERENCE = NumpyBackend()


@pytest.fixture(autouse=True)
def _always_worthwhile(candidate: Backend) -> Iterator[None]:
    if not isinstance(candidate, CpuBackend):
        pytest.skip("only the CPU backend prunes")
    with mock.patch.object(cpu_pruning, "WORTHWHILE", 1e9), mock.patch.object(cpu_pruning, "PAUSE", 0):
        yield


def signed_for(stats: Stats, criterion: Any) -> Stats:
    return replace(stats, criterion=criterion)


def same_trees(candidate: Backend, matrix: Any, make: Any, max_leaves: int, start: Any) -> None:
    expected = grow(REFERENCE, matrix, make(REFERENCE), max_leaves, start(REFERENCE, quick=False))
    data = candidate.load(matrix)
    for _ in range(3):  # what has been learned of earlier growths has no influence
        frontier = grow(candidate, data, make(candidate), max_leaves, start(candidate, quick=True))
        nodes, edges = candidate.read_nodes(frontier)
        made = expected.nodes[:, :, LEFT] > 0
        assert (nodes[:, :, LEFT] > 0).tolist() == made.tolist()
        assert nodes[made][:, 2:7].tolist() == expected.nodes[made][:, 2:7].tolist()
        assert nodes[:, :, GAIN].tolist() == expected.nodes[:, :, GAIN].tolist()
        assert edges[made].tolist() == expected.edges[made].tolist()
    if start(candidate, quick=True).rows is None:
        group, expected_group = candidate.get(candidate.node_of_rows(frontier)), REFERENCE.node_of_rows(expected)
        assert np.array(group).tolist() == expected_group.tolist()


def everything(backend: Backend, quick: bool) -> Start:
    return Start(quick=quick)


@pytest.mark.parametrize("max_leaves", [2, 5, 12])
@pytest.mark.parametrize("criterion", ["edge", "gini", "rebel"])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_classes"), [(1, 1, 1), (40, 3, 3), (400, 17, 2), (300, 5, 5), (200, 70, 4), (3000, 6, 3)]
)
def test_random_problems(
    candidate: Backend, n_rows: int, n_features: int, n_classes: int, criterion: Any, max_leaves: int
) -> None:
    matrix, problem = random_codes(n_rows, n_features, 20), Rows.random(n_rows, n_classes, 21)
    if criterion == "gini":
        problem = replace(problem, signs=np.ones_like(problem.signs))
    leaves = 2 if criterion == "rebel" else max_leaves
    same_trees(candidate, matrix, lambda b: signed_for(problem.statistics(b), criterion), leaves, everything)


@pytest.mark.parametrize("seed", range(12))
def test_ties_everywhere(candidate: Backend, seed: int) -> None:
    # Few distinct codes, features that stand twice, rows that stand twice, weights of 0 to 2 and a few heavy ones.
    rng = np.random.default_rng(seed)
    n_rows, n_features, n_classes = int(rng.integers(2, 200)), int(rng.integers(1, 20)), int(rng.integers(1, 5))
    codes = rng.integers(0, int(rng.integers(2, 5)), (n_features, n_rows))
    codes[rng.integers(n_features, size=n_features // 2)] = codes[0]
    q = rng.integers(-2, 3, (n_rows, n_classes))
    q[rng.random(n_rows) < 0.1] *= 100
    again = rng.integers(0, n_rows, n_rows)
    codes, q = codes[:, again], q[again]
    criterion: Any = ("edge", "gini", "rebel")[seed % 3]
    q = abs(q) if criterion == "gini" else q
    leaves = 2 if criterion == "rebel" else int(rng.integers(2, 9))
    same_trees(candidate, coded(codes), lambda b: signed_for(stats_of(b, q), criterion), leaves, everything)


@pytest.mark.parametrize("seed", range(8))
def test_some_rows_and_features(candidate: Backend, seed: int) -> None:
    matrix, problem = random_codes(500, 20, seed), Rows.random(500, 3, seed)
    rng = np.random.default_rng(seed)
    rows, features = rng.permutation(500)[:300].astype(np.int32), rng.random(20) < 0.7
    bounds = np.array([0, 120, 300]) if seed % 2 else None

    def start(backend: Backend, quick: bool) -> Start:
        return Start(backend.put(rows), bounds, features, quick=quick)

    same_trees(candidate, matrix, problem.statistics, 6, start)


def test_it_prunes(candidate: Backend) -> None:
    # A few rows hold nearly all of the weight, and one feature of 40 tells them apart: the other rows are not counted for
    # the others.
    rng = np.random.default_rng(30)
    codes = rng.integers(1, 30, (40, 4000))
    q = rng.choice([-1, 1], (4000, 2))
    q[:100] = np.where(codes[7, :100] > 15, 30_000, -30_000)[:, None]
    stats = stats_of(candidate, q)
    frontier = grow(candidate, candidate.load(coded(codes)), stats, 4, Start(quick=True))
    division = frontier.work["division"]
    assert division is not None
    assert frontier.nodes[0, 0, 2] == 7

"""Trees that grow by passes over codes in a file are those of codes in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.backends.cpu import passes
from gpuboost.backends.cpu.passes import PassSearch
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.frontier import BASELINE, CUT, FEATURE, GAIN, LEFT, MISSING_LEFT, WHOLE, Frontier, GrowthScope
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Stats
from gpuboost.binning import BinnedMatrix, StoredMatrix
from gpuboost.binning import stored as stored_module
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.ensemble import Ensemble
from gpuboost.learners.growth import grow
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.tree import Tree
from tests.backends.test_conformance import Rows, class_weights, random_codes
from tests.backends.test_sharded import BOOSTERS, DATA
from tests.candidates import emulated as open_emulated
from tests.problems import blobs, coded, digest, fit, stats_of
from tests.stored import FileBackend, stored

REFERENCE = NumpyBackend()
COLUMNS = [FEATURE, CUT, MISSING_LEFT, LEFT, BASELINE, GAIN]


@pytest.fixture(params=[1, 3])
def backend(request: pytest.FixtureRequest, share_all_loops: None) -> Iterator[FileBackend]:
    """A backend that reads its codes from files, a few rows at a time."""
    with mock.patch.object(stored_module, "CHUNK_BYTES", 1700), FileBackend(request.param) as opened:
        yield opened


@pytest.fixture
def emulated() -> Iterator[CudaBackend]:
    """The CUDA backend on the CPU."""
    with open_emulated("forward") as opened:
        yield opened


def assert_same_growth(backend: FileBackend, mine: Frontier, theirs: Frontier, is_whole: bool = True) -> None:
    nodes, edges = backend.read_nodes(mine)
    totals = backend.read_totals(mine)[1]
    made = theirs.nodes[:, :, LEFT] > 0
    assert nodes[made][:, COLUMNS].tolist() == theirs.nodes[made][:, COLUMNS].tolist()
    assert nodes[:, :, [LEFT, BASELINE, GAIN]].tolist() == theirs.nodes[:, :, [LEFT, BASELINE, GAIN]].tolist()
    assert edges[nodes[:, :, GAIN] > 0].tolist() == theirs.edges[nodes[:, :, GAIN] > 0].tolist()
    assert totals.tolist() == theirs.totals.tolist()
    if is_whole:
        assert backend.get(backend.node_of_rows(mine)).tolist() == REFERENCE.node_of_rows(theirs).tolist()


def assert_grows_alike(
    backend: FileBackend, matrix: BinnedMatrix, stats: Callable[[Any], Stats], max_leaves: int, scope: GrowthScope = WHOLE
) -> Frontier:
    data = backend.load(matrix)
    assert data.blocks.size == 0  # they are in the file
    mine = grow(backend, data, stats(backend), max_leaves, scope)
    assert isinstance(mine.work.search, PassSearch)
    theirs = grow(REFERENCE, matrix, stats(REFERENCE), max_leaves, scope)
    assert_same_growth(backend, mine, theirs, scope.sample_indices is None)
    return theirs


CRITERIA = [("edge", 2), ("edge", 9), ("gini", 7), ("entropy", 7), ("rebel", 2), ("newton", 9)]


@pytest.mark.parametrize("fraction", [0.0, 0.05])
@pytest.mark.parametrize(("criterion", "max_leaves"), CRITERIA)
@pytest.mark.parametrize(("n_rows", "n_features", "n_channels"), [(1, 1, 2), (300, 5, 2), (90, 65, 4), (257, 3, 17)])
def test_growth(
    backend: FileBackend, n_rows: int, n_features: int, n_channels: int, criterion: Any, max_leaves: int, fraction: float
) -> None:
    matrix = random_codes(n_rows, n_features, 0)
    rows = class_weights(matrix, n_channels) if criterion in ("gini", "entropy") else Rows.random(n_rows, n_channels, 1)
    if criterion == "newton":  # the last channel is a curvature
        rows.signs[:, -1] = 1

    def stats(backend: Any) -> Stats:
        return replace(rows.statistics(backend, fraction), criterion=criterion)

    assert_grows_alike(backend, matrix, stats, max_leaves)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_growth_of_small_numbers(data: st.DataObject) -> None:
    """Few distinct sums, so that many scores are equal."""
    n_rows, n_features, n_classes = (data.draw(st.integers(1, high)) for high in (24, 4, 3))
    seed, max_leaves = data.draw(st.integers(0, 10**6)), data.draw(st.integers(2, 9))
    rng = np.random.default_rng(seed)
    matrix = coded(rng.integers(0, 4, (n_features, n_rows)))
    quantised = rng.integers(-2, 3, (n_rows, n_classes))
    with mock.patch.object(stored_module, "CHUNK_BYTES", 16 * data.draw(st.integers(1, 30))), FileBackend() as backend:
        assert_grows_alike(backend, matrix, lambda one: stats_of(one, quantised), max_leaves)


def batch(backend: Any, quantised: Any) -> Stats:
    """Statistics of several trees."""
    alone = [stats_of(backend, one) for one in quantised]
    together = np.concatenate([backend.get(stats.quantised) for stats in alone])
    return Stats(backend.put(together), 0, sum(s.sum for s in alone), sum(s.sum_abs for s in alone))


@pytest.mark.parametrize("room", [1 << 30, 1])
def test_batch(backend: FileBackend, room: int) -> None:
    """The trees of a batch pass together, or one after another where there is no room for all."""
    matrix, rng = random_codes(200, 6, 3), np.random.default_rng(4)
    quantised = [rng.integers(-50, 51, (200, 3)), np.zeros((200, 3)), np.sign(matrix.codes[0][:, None] - 3.0) * [3, 5, 7]]
    with mock.patch.object(passes, "HISTOGRAM_BYTES", room):
        assert_grows_alike(backend, matrix, lambda one: batch(one, quantised), 6)


@pytest.mark.parametrize("n_trees", [1, 3])
def test_some_rows_and_features(backend: FileBackend, n_trees: int) -> None:
    matrix, rng = random_codes(300, 8, 6), np.random.default_rng(7)
    quantised = rng.integers(-9, 10, (n_trees, 300, 2))
    rows, features = rng.permutation(300)[:200].astype(np.int32), np.arange(8) % 3 > 0
    for scope in (GrowthScope(rows), GrowthScope(rows, feature_mask=features), GrowthScope(feature_mask=features)):
        assert_grows_alike(backend, matrix, lambda one: batch(one, quantised), 5, scope)
    bounds = np.array([0, 120, 120, 200])
    assert_grows_alike(backend, matrix, lambda one: batch(one, quantised), 4, GrowthScope(rows, bounds))


@pytest.mark.parametrize("chunk", [1300, 8 << 20])
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("name", BOOSTERS)
def test_boosters(name: str, data: str, chunk: int, once: Callable[..., Any]) -> None:
    alone = once(fit, BOOSTERS[name], DATA[data], NumpyBackend(), 6)
    with mock.patch.object(stored_module, "CHUNK_BYTES", chunk), FileBackend() as backend:
        training = fit(BOOSTERS[name], DATA[data], backend, 6)
    assert digest(training.trees, DATA[data].n_classes) == digest(alone.trees, DATA[data].n_classes)
    for what in alone.history.keys() - {"seconds"}:
        assert str(training.history[what]) == str(alone.history[what])  # NaN is NaN


def depth(tree: Tree, node: int = 0) -> int:
    return 1 + max(depth(tree, child) for child in (tree.left[node], tree.right[node])) if node >= 0 else 0


@pytest.mark.parametrize("max_leaves", [2, 20])
def test_a_tree_reads_the_file_once_more_than_it_is_deep(max_leaves: int) -> None:
    reads, chunks = [], StoredMatrix.chunks
    data, booster = blobs(600, 6, 3, seed=1, noise=2.0), AdaBoostMH(HammingTree(max_leaves), "single-label", "real")

    def counted(matrix: StoredMatrix, *blocks: int) -> Any:
        reads.append(blocks)
        return chunks(matrix, *blocks)

    with FileBackend() as backend, mock.patch.object(StoredMatrix, "chunks", counted):
        trees = fit(booster, data, backend, n_rounds=8).trees
    assert 8 * 2 <= len(reads) <= sum(depth(tree, tree.first) + 1 for tree in trees)
    assert len(reads) < 8 * max_leaves / 2 or max_leaves == 2


def test_the_use_of_trees(backend: FileBackend, tmp_path: Path) -> None:
    data = blobs(400, 20, 3, seed=2)
    booster = AdaBoostMH(HammingTree(6), "single-label", "real")
    trees = fit(booster, data, REFERENCE, 4).trees
    ensemble, matrix = Ensemble.from_trees(trees, 3), data.mapper().transform(data.X)
    loaded = backend.load(matrix)
    assert backend.apply(trees[1], loaded).tolist() == REFERENCE.apply(trees[1], matrix).tolist()
    scores, expected = np.zeros((2, 400, 3))
    backend.predict(ensemble, loaded, scores, 1, 4)
    REFERENCE.predict(ensemble, matrix, expected, 1, 4)
    assert scores.tolist() == expected.tolist()
    cell, expected_cell = np.full((2, 400), 5, np.int32)
    backend.set_bit(cell, 1, loaded, 17, 100, True)
    REFERENCE.set_bit(expected_cell, 1, matrix, 17, 100, True)
    assert cell.tolist() == expected_cell.tolist()
    assert backend.usable(loaded).tolist() == matrix.usable.tolist()


def test_other_backends_take_the_codes_into_memory(emulated: CudaBackend, tmp_path: Path) -> None:
    matrix, problem = random_codes(70, 40, 5), Rows.random(70, 3, 6)
    expected = grow(REFERENCE, matrix, problem.statistics(REFERENCE), 5)
    with mock.patch.object(stored_module, "CHUNK_BYTES", 900):
        for backend in (REFERENCE, emulated):
            mine = grow(backend, backend.load(stored(matrix, tmp_path / "codes")), problem.statistics(backend), 5)
            assert backend.read_nodes(mine)[0][0, :, COLUMNS].tolist() == expected.nodes[0, :, COLUMNS].tolist()
            leaves = np.asarray(backend.get(backend.node_of_rows(mine)))
            assert leaves.tolist() == REFERENCE.node_of_rows(expected).tolist()

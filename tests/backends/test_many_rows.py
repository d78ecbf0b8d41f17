"""Sums beyond int32: what backends do above `gpuboost.fixedpoint.NARROW_ROWS` rows, on few rows with that number lowered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost import fixedpoint
from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import plan
from gpuboost.backends.frontier import FEATURE, GAIN, LEFT, SLOT
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Counts, Shifts, SoftmaxRows, Stats
from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.rebel import Rebel
from gpuboost.boosters.samme import SAMME
from gpuboost.learners.growth import grow
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct
from tests.backends.test_conformance import (
    Rows,
    assert_same_stats,
    assert_same_trees,
    class_weights,
    random_codes,
    same,
)
from tests.candidates import Once
from tests.problems import Data, blobs, coded, cpu_backend, digest, fit, stats_of

REFERENCE = NumpyBackend()
SHAPES = [(30, 2, 3), (400, 5, 2), (150, 17, 5), (257, 3, 16), (60, 65, 4), (90, 4, 33)]
"""Rows, features and channels."""


@pytest.fixture(autouse=True)
def all_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixedpoint, "NARROW_ROWS", 1)


def many(n_rows: int, n_channels: int, seed: int = 0) -> Rows:
    """Rows that stand for up to `MAX_REPEAT` each, and counts whose sum is beyond 32 bits."""
    rows = Rows.random(n_rows, n_channels, seed)
    counts = np.random.default_rng([n_rows, seed]).integers(0, 2**30, n_rows).astype(np.int32)
    return replace(rows, counts=counts)


# ---- rows --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize(("n_rows", "n_channels"), [(1, 1), (2, 2), (513, 5), (64, 17), (3000, 3)])
def test_statistics(candidate: Backend, n_rows: int, n_channels: int, fraction: float) -> None:
    rows, rng = many(n_rows, n_channels), np.random.default_rng(1)
    stats, expected = (rows.statistics(backend, fraction) for backend in (candidate, REFERENCE))
    assert stats.wide
    assert_same_stats(candidate, stats, expected)
    assert n_rows < 100 or expected.sum_abs.max() > 2**32
    table = rng.choice(np.array([-1, 1], np.int8), (rows.n_leaves, n_channels))
    leaf_index, n_leaves = candidate.put(rows.leaf_index), rows.n_leaves + 1
    flipped, theirs = candidate.flip(stats, leaf_index, table), REFERENCE.flip(expected, rows.leaf_index, table)
    assert flipped.wide
    assert_same_stats(candidate, flipped, theirs)
    for mine, other in ((stats, expected), (flipped, theirs)):
        sums = candidate.leaf_sums(mine, leaf_index, n_leaves), REFERENCE.leaf_sums(other, rows.leaf_index, n_leaves)
        assert all(same(one, two) for one, two in zip(*sums, strict=True))
        assert same(candidate.row_weights(mine), REFERENCE.row_weights(other))


def softmax_rows(n_rows: int, n_classes: int) -> tuple[NDArray[Any], ...]:
    """Probabilities, targets, repeats and factors."""
    rng = np.random.default_rng([n_rows, n_classes])
    p = np.exp(rng.normal(size=(n_rows, n_classes)))
    target, repeats = rng.integers(0, n_classes, n_rows).astype(np.int32), rng.integers(1, 4097, n_rows).astype(np.int32)
    return p / p.sum(axis=1, keepdims=True), target, repeats, np.ones(n_rows)


def newton_stats(backend: Backend, n_rows: int, pairs: NDArray[np.int64], weighted: bool) -> Stats:
    arrays = softmax_rows(n_rows, 4)
    counts = Counts(backend.put(many(n_rows, 1).counts), 1 + 2**27 * n_rows)
    rows, weights = SoftmaxRows(*map(backend.put, arrays)), backend.put(arrays[2]) if weighted else None
    return backend.softmax_statistics(rows, pairs, Shifts(17, 17, wide=True), counts, weights)


PAIRS = np.array([(-1, 0), (0, 2), (3, 1), (1, 2)], np.int64)


@pytest.mark.parametrize("weighted", [False, True])
def test_derivatives(candidate: Backend, weighted: bool) -> None:
    stats, expected = (newton_stats(backend, 700, PAIRS, weighted) for backend in (candidate, REFERENCE))
    assert stats.wide
    assert expected.sum_abs.max() > 2**33
    assert_same_stats(candidate, stats, expected)


# ---- growing trees -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("max_leaves", [2, 8])
@pytest.mark.parametrize(("n_rows", "n_features", "n_channels"), SHAPES)
def test_growth(candidate: Backend, once: Once, n_rows: int, n_features: int, n_channels: int, max_leaves: int) -> None:
    matrix, rows = random_codes(n_rows, n_features, 0), many(n_rows, n_channels, 1)
    expected = assert_same_trees(candidate, once, matrix, rows.statistics, max_leaves)
    assert n_rows < 100 or abs(expected.edges).max() > 2**31


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 11, 16])
@pytest.mark.parametrize("fraction", [1e-9, 0.1])
def test_growth_with_a_smallest_leaf(candidate: Backend, once: Once, n_classes: int, fraction: float) -> None:
    matrix, rows = random_codes(80, 6, n_classes), many(80, n_classes, 2)
    expected = assert_same_trees(candidate, once, matrix, lambda backend: rows.statistics(backend, fraction), 6)
    assert expected.totals[0, 0, n_classes] > 2**35
    assert (expected.nodes[0, :, LEFT] > 0).any()


@pytest.mark.parametrize("criterion", ["gini", "entropy", "rebel"])
@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize(("n_rows", "n_features", "n_channels"), [(300, 5, 2), (90, 17, 5), (40, 5, 17)])
def test_growth_by_other_criteria(
    candidate: Backend, once: Once, n_rows: int, n_features: int, n_channels: int, fraction: float, criterion: Any
) -> None:
    matrix = random_codes(n_rows, n_features, 0)
    rows = many(n_rows, n_channels) if criterion == "rebel" else class_weights(matrix, n_channels)
    rows = replace(rows, counts=many(n_rows, n_channels).counts)

    def stats(backend: Backend) -> Stats:
        return replace(rows.statistics(backend, fraction), criterion=criterion)

    expected = assert_same_trees(candidate, once, matrix, stats, 2 if criterion == "rebel" else 7)
    assert (expected.nodes[0, :, LEFT] > 0).any()
    assert n_rows < 300 or abs(expected.edges).max() > 2**31


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_trees", [1, 4])
def test_growth_by_newton(candidate: Backend, once: Once, n_trees: int, weighted: bool) -> None:
    matrix = random_codes(300, 9, 0)
    expected = assert_same_trees(
        candidate, once, matrix, lambda backend: newton_stats(backend, 300, PAIRS[:n_trees], weighted), 6
    )
    assert (expected.nodes[:, :, LEFT] > 0).any(axis=1).all()


@pytest.mark.slow
@pytest.mark.parametrize(("n_trees", "n_channels"), [(10, 3), (3, 2), (2, 5)])
def test_a_batch(candidate: Backend, once: Once, n_trees: int, n_channels: int) -> None:
    matrix, rng = random_codes(300, 70, 3), np.random.default_rng(4)  # more than one block of rows, of features and of trees
    quantised = rng.integers(-(2**30), 2**30 + 1, (n_trees, 300, n_channels))

    def nodes(backend: Backend) -> NDArray[np.int64]:
        alone = [stats_of(backend, of_tree) for of_tree in quantised]
        together = np.concatenate([backend.get(stats.quantised) for stats in alone])
        batch = Stats(backend.put(together), 0, sum(s.sum for s in alone), sum(s.sum_abs for s in alone), wide=True)
        frontier = grow(backend, backend.load(matrix), batch, 4)
        return np.array(backend.get(frontier.nodes))[:, :, :SLOT]

    expected = once(nodes, REFERENCE)
    assert same(nodes(candidate), expected)
    assert (expected[:, 0, LEFT] > 0).all()


@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(300, 3, 3), (120, 40, 6)])
def test_one_class_a_row(candidate: Backend, once: Once, n_rows: int, n_features: int, n_classes: int, fraction: float) -> None:
    matrix = random_codes(n_rows, n_features, 0)
    rows = replace(class_weights(matrix, n_classes), counts=many(n_rows, n_classes).counts)
    limit = max(1, int(fraction * rows.counts.sum(dtype=np.int64)))
    positive = np.where(rows.state > 0, rows.state, 0.0)
    positive[positive.sum(axis=1) == 0, 0] = 2.0**-40  # every row has one class; this weighs less than a unit

    def stats(backend: Backend) -> Stats:
        counts = Counts(backend.put(rows.counts), limit) if fraction else None
        on_device = backend.put_one_hot(positive), backend.put(rows.signs), backend.put(rows.frequency_weight)
        found = backend.statistics(*on_device, int(rows.frequency_weight.sum()), float(positive.max()), counts)
        return replace(found, criterion="gini")

    def grown(backend: Backend) -> tuple[NDArray[Any], ...]:
        data, own = backend.load(matrix), stats(backend)
        frontier = grow(backend, data, own, 7)
        leaf_index = backend.node_of_rows(frontier)
        sums = backend.leaf_sums(own, leaf_index[0], 13)
        nodes = np.array(backend.get(frontier.nodes))[:, :, [FEATURE, LEFT, GAIN]]
        return nodes, np.array(backend.get(frontier.totals)), np.array(backend.get(leaf_index)), sums[0]

    expected = once(grown, REFERENCE)
    assert all(same(one, other) for one, other in zip(grown(candidate), expected, strict=True))
    assert expected[1].max() > 2**32


@pytest.mark.parametrize("n_channels", [1, 2, 4, 5, 16, 17])
def test_the_largest_sums(candidate: Backend, monkeypatch: pytest.MonkeyPatch, n_channels: int) -> None:
    # 70001 rows of 2**30 - 1 units, in all of whose lower 16 bits are ones, and as many of -2**30. A feature's most frequent
    # code is skipped, the lower of equals: so the one feature counts the first rows, the other one the second. Blocks of a
    # device take as many rows as they may.
    monkeypatch.setattr(plan, "stretches", lambda *_: 1)
    n = 70_001
    quantised = np.repeat([2**30 - 1, -(2**30)], n)[:, None] * np.ones(n_channels, np.int64)
    stats = replace(stats_of(candidate, quantised), wide=True)
    codes = np.repeat([[2, 1], [1, 2]], n, axis=1)
    frontier = grow(candidate, candidate.load(coded(codes)), stats, 3)
    nodes, totals = np.array(candidate.get(frontier.nodes))[0], np.array(candidate.get(frontier.totals))[0]
    assert nodes[0, GAIN] == n_channels * n * (2**31 - 1) == stats.total
    assert totals[1:3].tolist() == [[-n * 2**30] * n_channels, [n * (2**30 - 1)] * n_channels]
    leaf_index = candidate.put(np.repeat(np.array([1, 0], np.int32), n))
    sums, sum_abs = candidate.leaf_sums(stats, leaf_index, 2)
    assert sums.tolist() == totals[1:3].tolist()
    assert sum_abs.tolist() == abs(totals[1:3]).tolist()


# ---- whole fits --------------------------------------------------------------------------------------------------------------

BOOSTERS: dict[str, Callable[[], Booster[Any]]] = {
    "trees": lambda: AdaBoostMH(HammingTree(6), "single-label"),
    "real trees": lambda: AdaBoostMH(HammingTree(5), "single-label", "real", 0.5, 0.1),
    "products": lambda: AdaBoostMH(StumpProduct(3), "single-label"),
    "samme.r": lambda: SAMME(6, variant="real"),
    "gamble": lambda: Gamble(6, 0.5, 0.05),
    "rebel": lambda: Rebel(3),
    "mart": lambda: ABCBoost("mart", None, 1, None, 5, 10, 0.3),
    "abc-logit": lambda: ABCBoost("logit", "search", 1, None, 5, 1, 0.3),
}


def repeated(n_rows: int, largest: int, seed: int = 0) -> Data:
    """Rows with integer weights up to ``largest``, one of them 1."""
    data, rng = blobs(n_rows, 4, 3, seed), np.random.default_rng(seed)
    weights = rng.integers(1, largest + 1, n_rows).astype(np.float64)
    weights[0] = 1.0
    return replace(data, weights=weights)


def outcome(booster: Booster[Any], data: Data, backend: Backend, evaluation: Data) -> tuple[str, str]:
    training = fit(booster, data, backend, 3, evaluation=evaluation)
    history = {key: values for key, values in training.history.items() if key != "seconds"}
    return digest(training.trees, data.n_classes), repr(history)  # NaN is itself in a text


@pytest.mark.parametrize("name", BOOSTERS)
def test_fits(candidate: Backend, once: Once, name: str) -> None:
    data, evaluation = repeated(200, fixedpoint.MAX_REPEAT), repeated(50, 7, 1)
    expected = once(outcome, BOOSTERS[name](), data, REFERENCE, evaluation)
    assert outcome(BOOSTERS[name](), data, candidate, evaluation) == expected


@pytest.mark.parametrize("name", BOOSTERS)
def test_weights_are_repeated_rows(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # By the rows counted with their repeats: 30 rows or as many as they stand for, both are on the same side of the limit.
    data = repeated(30, fixedpoint.MAX_REPEAT)
    rows = np.repeat(np.arange(30), data.weights.astype(np.int64))
    each = replace(data.subset(rows), weights=None)
    digests = set()
    for limit in (len(rows), len(rows) - 1):
        monkeypatch.setattr(fixedpoint, "NARROW_ROWS", limit)
        with cpu_backend() as backend:
            one, other = (digest(fit(BOOSTERS[name](), of_rows, backend, 3).trees, 3) for of_rows in (data, each))
        assert one == other
        digests.add(one)
    assert len(digests) == 2  # more than 13 bits are dropped, or 13


@pytest.mark.slow
@pytest.mark.parametrize("name", BOOSTERS)
def test_eight_million_rows(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    data = repeated(2000, 1)
    data.weights[1:] = fixedpoint.MAX_REPEAT
    assert int(data.split()[0].sum()) == 1999 * 4096 + 1 > 2**22
    evaluation, digests = repeated(50, 7, 1), []
    for limit in (2**22, 2**24):
        monkeypatch.setattr(fixedpoint, "NARROW_ROWS", limit)
        with cpu_backend(2) as backend:
            mine, expected = (outcome(BOOSTERS[name](), data, one, evaluation) for one in (backend, REFERENCE))
        assert mine == expected
        digests.append(expected[0])
    assert digests[0] != digests[1]

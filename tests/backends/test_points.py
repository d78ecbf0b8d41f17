"""Distances to training points on every backend: worked by hand, and the same as on the NumPy backend."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.points import NONE
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.sharded import ShardedBackend
from gpuboost.peers.base import ALONE
from gpuboost.similarities.ensemble import Similarities, Similarity, TrainingPoints
from tests.candidates import thinned
from tests.problems import stats_of

REFERENCE = NumpyBackend()
SHAPES = [(1, 1), (2, 3), (33, 16), (300, 17), (700, 64), (65, 100)]


def random_levels(n_rows: int, n_features: int, seed: int = 0) -> NDArray[np.uint8]:
    """Levels with extremes and equal rows."""
    rng = np.random.default_rng([n_rows, n_features, seed])
    levels = rng.choice(np.array([0, 1, 2, 127, 128, 254, 255], np.uint8), (n_rows, n_features))
    levels[n_rows // 2] = levels[0]
    return levels


def line(*positions: int) -> NDArray[np.uint8]:
    return np.array(positions, np.uint8)[:, None]


# ---- by hand -----------------------------------------------------------------------------------------------------------------


def test_distances_by_hand(candidate: Backend) -> None:
    rows = candidate.load_points(np.array([[0, 0], [3, 4], [255, 255], [250, 0]], np.uint8))
    assert rows.n_rows == 4
    distances = candidate.get(candidate.squared_distances(rows, np.array([0, 0], np.uint8)))
    assert distances.dtype == np.int32
    assert distances.tolist() == [0, 25, 2 * 255**2, 250**2]
    assert candidate.get(candidate.squared_distances(rows, np.array([255, 4], np.uint8))).tolist() == [
        255**2 + 16,
        252**2,
        251**2,
        25 + 16,
    ]


def test_rings_and_sides_by_hand(candidate: Backend) -> None:
    distances = candidate.put(np.array([0, 1, 4, 5, 9, 100], np.int32))
    radii = np.array([0, 4, 9], np.int64)
    assert candidate.get(candidate.ring_index(distances, radii)).tolist() == [0, 1, 1, 2, 2, 3]
    assert candidate.get(candidate.ring_index(distances, radii[:1])).tolist() == [0, 1, 1, 1, 1, 1]
    others = candidate.put(np.array([0, 0, 4, 6, 8, 2**29], np.int32))
    assert candidate.get(candidate.nearer_index(distances, others)).tolist() == [1, 0, 1, 1, 0, 1]
    assert candidate.get(candidate.nearer_index(distances, 5)).tolist() == [1, 1, 1, 1, 0, 0]
    assert candidate.get(candidate.nearer_index(distances, 0)).tolist() == [1, 0, 0, 0, 0, 0]


def test_the_nearest_of_the_other_group_by_hand(candidate: Backend) -> None:
    # Row 0 is the anchor's equal in the other group: it is not a row to compare with. Rows 3 and 4 are equally near.
    distances = candidate.put(np.array([0, 9, 1, 4, 4, 25], np.int32))
    sides = candidate.put(np.array([[-1], [-1], [1], [-1], [-1], [-1]], np.int8))
    rows, nearest = candidate.opposite_rows(distances, sides, 1)
    assert candidate.get(rows).tolist() == [0, 1, 0, 1, 1, 1]
    assert nearest == 3
    rows, nearest = candidate.opposite_rows(distances, sides, -1)
    assert (candidate.get(rows).tolist(), nearest) == ([0, 0, 1, 0, 0, 0], 2)
    alike = candidate.put(np.full((6, 1), 1, np.int8))
    assert candidate.opposite_rows(distances, alike, 1)[1] == NONE


def test_similar_rows_are_dropped_by_hand(candidate: Backend) -> None:
    # The anchor at 100, the candidate at 110: D = 100, d = 5, m = 105. With z = x - 105 a row is dropped where
    # f = 5 z / (4 * 625 + z**4) in the candidate's direction is at least half of that at z = 5, 25 / 3125 = 0.008: 0.004.
    # z = 3: 15 / 2581 = 0.00581; z = 2: 10 / 2516 = 0.00397; z = 6: 30 / 3796 = 0.0079; z = 9: 45 / 9061 = 0.00497;
    # z = 10: 50 / 12500 = 0.004, exactly a half; z = 11: 55 / 17141 = 0.0032.
    positions = (100, 107, 108, 110, 111, 114, 115, 116, 95)
    rows = candidate.load_points(line(*positions))
    to_anchor, to_candidate = (candidate.squared_distances(rows, line(at)[0]) for at in (100, 110))
    sides = candidate.put(np.array([[1]] + [[-1]] * 8, np.int8))
    others, nearest = candidate.opposite_rows(to_anchor, sides, 1)
    assert nearest == 8  # at 95
    left = candidate.drop_similar(others, to_anchor, to_candidate, 100)
    assert candidate.get(others).tolist() == [0, 1, 0, 0, 0, 0, 0, 1, 1]
    assert left == 8
    assert candidate.drop_similar(others, to_anchor, candidate.squared_distances(rows, line(95)[0]), 25) == 1
    # 116 is far from both, and is left to the end.
    assert candidate.drop_similar(others, to_anchor, candidate.squared_distances(rows, line(107)[0]), 49) == 7
    assert candidate.drop_similar(others, to_anchor, candidate.squared_distances(rows, line(116)[0]), 256) == NONE
    assert not candidate.get(others).any()


def test_products_by_hand(candidate: Backend) -> None:
    # A row of weight 2 counts as two rows of (3, -1): twice (9, -3; -3, 1), and one of (-2, 5).
    stats = stats_of(candidate, [[6, -2], [-2, 5]])
    products = candidate.class_products(stats, candidate.put(np.array([2, 1], np.int32)))
    assert products.tolist() == [[18 + 4, -6 - 10], [-6 - 10, 2 + 25]]


# ---- against the reference ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_features"), thinned(SHAPES, 3))
def test_all_primitives_agree(candidate: Backend, n_rows: int, n_features: int) -> None:
    levels = random_levels(n_rows, n_features)
    rng = np.random.default_rng(1)
    sides = rng.choice(np.array([-1, 1], np.int8), (len(levels), 1))
    for backend in (REFERENCE, candidate):
        assert backend.load_points(levels).n_rows == len(levels)

    def results(backend: Backend) -> list[object]:
        rows, own_sides = backend.load_points(levels), backend.put(sides)
        to_anchor = backend.squared_distances(rows, levels[0])
        found: list[object] = [backend.get(to_anchor).tolist()]
        radii = np.unique(backend.get(to_anchor)[::3]).astype(np.int64)
        found.append(backend.get(backend.ring_index(to_anchor, radii)).tolist())
        others, nearest = backend.opposite_rows(to_anchor, own_sides, 1)
        while nearest != NONE:
            to_candidate = backend.squared_distances(rows, levels[nearest])
            found += [nearest, backend.get(backend.nearer_index(to_anchor, to_candidate)).tolist()]
            nearest = backend.drop_similar(others, to_anchor, to_candidate, int(backend.get(to_anchor)[nearest]))
            found.append(backend.get(others).tolist())
        return found

    assert results(candidate) == results(REFERENCE)


@pytest.mark.parametrize("n_classes", thinned([1, 2, 3, 10, 17], 2))
def test_products_agree(candidate: Backend, n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    weights = rng.integers(1, 9, 400).astype(np.int32)
    units = rng.integers(-40, 41, (400, n_classes))
    expected = sum(int(w) * np.outer(u, u) for w, u in zip(weights, units, strict=True))
    stats = stats_of(candidate, units * weights[:, None])
    assert np.array_equal(candidate.class_products(stats, candidate.put(weights)), expected)


def test_the_largest_products_fit(candidate: Backend) -> None:
    # Magnitudes of a class add up to less than 2**30.
    stats = stats_of(candidate, [[2**30 - 2, -(2**30 - 2)], [1, 1]])
    products = candidate.class_products(stats, candidate.put(np.ones(2, np.int32)))
    assert products.tolist() == [[(2**30 - 2) ** 2 + 1, 1 - (2**30 - 2) ** 2], [1 - (2**30 - 2) ** 2, (2**30 - 2) ** 2 + 1]]


def test_the_largest_distances_fit(candidate: Backend) -> None:
    # 8256 features of 255 levels beside each other: just below 2**29. 10 D (A - B) and the square are near 2**63.
    n = 2**29 // 255**2
    levels = np.stack([np.zeros(n), np.full(n, 255), np.where(np.arange(n) < 100, 0, 255)]).astype(np.uint8)
    rows = candidate.load_points(levels)
    to_anchor, to_candidate = (candidate.squared_distances(rows, levels[i]) for i in (0, 1))
    assert candidate.get(to_anchor).tolist() == [0, n * 255**2, (n - 100) * 255**2]
    others, nearest = candidate.opposite_rows(to_anchor, candidate.put(np.array([[1], [-1], [-1]], np.int8)), 1)
    assert nearest == 2
    assert candidate.drop_similar(others, to_anchor, to_candidate, n * 255**2) == NONE
    assert candidate.get(others).tolist() == [0, 0, 0]


def some_similarities(levels: NDArray[np.uint8], n_classes: int) -> Similarities:
    """All kinds, with points that are used again."""
    rng = np.random.default_rng(0)
    points = TrainingPoints(levels, np.arange(len(levels)), np.zeros(len(levels), np.int32))
    rounds = []
    for numbers, radius in [([0, 1], 0), ([2], 900), ([], 0), ([1, 3], 0), ([3], 0), ([0, 2], 0)]:
        values = rng.normal(size=n_classes)
        rounds.append([Similarity(points.take(numbers), radius, np.stack([-values, values]))])
    return Similarities.from_rounds(rounds, n_classes, levels.shape[1])


def test_scores_are_sums_of_what_the_similarities_say(candidate: Backend) -> None:
    levels = random_levels(90, 5)
    ensemble = some_similarities(levels[:4], 3)
    squares = ((levels[:, None].astype(int) - levels[:4].astype(int)) ** 2).sum(axis=2)
    says = np.array(
        [
            squares[:, 0] <= squares[:, 1],
            squares[:, 2] <= 900,
            np.ones(90, bool),
            squares[:, 1] <= squares[:, 3],
            squares[:, 3] <= 0,
            squares[:, 0] <= squares[:, 2],
        ]
    )
    rows = candidate.load_points(levels)
    for first, stop in itertools.combinations(range(7), 2):
        scores = candidate.put(np.zeros((90, 3)))
        candidate.add_similarities(ensemble, rows, scores, first, stop)
        expected = np.zeros((90, 3))
        for t in range(first, stop):
            expected += np.where(says[t], 1.0, -1.0)[:, None] * ensemble.coefficients[t]
        assert candidate.get(scores).tobytes() == expected.tobytes()


def test_workers_refuse() -> None:
    backend = ShardedBackend(REFERENCE, ALONE)
    with pytest.raises(TypeError, match="divided among workers are not compared with training points"):
        backend.load_points(line(1, 2))

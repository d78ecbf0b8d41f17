"""The search of section 5.4: rounds worked by hand, and every candidate against brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.learners.similarity_search import N_RADII, LoadedPoints, SimilaritySearch, best_isolated_row
from gpuboost.similarities.ensemble import TrainingPoints
from tests.problems import stats_of

REFERENCE = NumpyBackend()


def load(backend: Backend, levels: NDArray[np.uint8]) -> LoadedPoints:
    points = TrainingPoints(levels, np.arange(len(levels)) + 100, np.zeros(len(levels), np.int32))
    return LoadedPoints(backend.load_points(levels), points)


def on_a_line(backend: Backend, *positions: int) -> LoadedPoints:
    return load(backend, np.array(positions, np.uint8)[:, None])


def signs(backend: Backend, values: list[int]) -> object:
    return backend.put(np.array(values, np.int8)[:, None])


def test_two_points_by_hand(backend: Backend) -> None:
    # One class that counts: rows at 0, 10, 20, 30 with weights 4, 3 for and 2, 5 against. Between 10 and 20 all is right.
    data, stats = on_a_line(backend, 0, 10, 20, 30), stats_of(backend, [[4], [3], [-2], [-5]])
    found = SimilaritySearch(False, 50)(backend, data, stats, signs(backend, [1, 1, -1, -1]), 1)
    assert found.tree.points.levels.tolist() == [[10], [20]]
    assert found.tree.points.rows.tolist() == [101, 102]
    assert backend.get(found.leaf_index).tolist() == [1, 1, 0, 0]
    assert (found.right.tolist(), found.wrong.tolist()) == ([14], [0])
    # Smoothed by one unit: right 15, wrong 1, and the loss is 14 sqrt(1 / 15).
    assert found.loss == pytest.approx(14 / math.sqrt(15), rel=1e-12)
    assert found.coefficients == pytest.approx([math.log(15) / 2], rel=1e-12)


def test_a_ball_by_hand(backend: Backend) -> None:
    # For within 5 of 20, against elsewhere: a ball, or the points 20 and 30 or 10, which leave one side wrong.
    data = on_a_line(backend, 0, 10, 17, 20, 25, 40, 50)
    stats = stats_of(backend, [[-1], [-1], [1], [1], [1], [-1], [-1]])
    groups = signs(backend, [-1, -1, 1, 1, 1, -1, -1])
    found = SimilaritySearch(True, 50)(backend, data, stats, groups, 3)
    assert found.tree.points.levels.tolist() == [[20]]
    assert 25 <= found.tree.radius < 100
    assert found.wrong.tolist() == [0]
    alone = SimilaritySearch(False, 50)(backend, data, stats, groups, 3)
    assert (len(alone.tree.points), alone.right.tolist()) in ((2, [5]), (1, [5]))


def test_nobody_is_told_apart(backend: Backend) -> None:
    # Equal points, unequal labels: +1 everywhere is as good as anything, and comes first.
    data, stats = on_a_line(backend, 7, 7, 7), stats_of(backend, [[2], [-1], [1]])
    found = SimilaritySearch(True, 50)(backend, data, stats, signs(backend, [1, -1, 1]), 0)
    assert len(found.tree.points) == 0
    assert (found.right.tolist(), found.wrong.tolist()) == ([3], [1])
    assert data.first_rows.tolist() == [0]


def test_the_best_isolated_point_by_hand(backend: Backend) -> None:
    # Points at 1, 2 and 3 with sums 3 - 2, -4 and 5 of weights that add up to 2 of 14. Told apart: 2 * 1 - 2 = 0,
    # 2 * -4 - 2 = -10, 2 * 5 - 2 = 8: the point at 2.
    data, stats = on_a_line(backend, 1, 1, 2, 3), stats_of(backend, [[3], [-2], [-4], [5]])
    assert best_isolated_row(backend, data, stats) == 2
    assert data.first_rows.tolist() == [0, 2, 3]


def brute_force(
    levels: NDArray[np.int64], weights: NDArray[np.int64], side: NDArray[np.int64], anchor: int, balls: bool, most: int
) -> float:
    """The lowest smoothed loss of all candidates, with distances and the drop rule in Python's numbers."""
    squares = ((levels - levels[anchor]) ** 2).sum(axis=1)
    distinct = np.unique(levels, axis=0)
    spread = distinct if len(distinct) <= N_RADII else distinct[np.arange(N_RADII) * len(distinct) // N_RADII]
    alive = [i for i in range(len(levels)) if side[i] != side[anchor] and squares[i] > 0]
    radii = {0}
    if balls:
        radii |= set(((spread - levels[anchor]) ** 2).sum(axis=1).tolist())
        radii |= {int(squares[alive].min()) - 1} if alive else set()
    answers = [np.ones(len(levels), bool), *(squares <= radius for radius in radii)]
    for _ in range(most):
        if not alive:
            break
        j = min(alive, key=lambda i: (int(squares[i]), i))
        to_j = ((levels - levels[j]) ** 2).sum(axis=1)
        answers.append(squares <= to_j)
        d, m = (levels[anchor] - levels[j]) / 2, (levels[anchor] + levels[j]) / 2

        def f(x: NDArray[np.int64], d: NDArray[np.float64] = d, m: NDArray[np.float64] = m) -> float:
            return float(d @ (x - m) / (4 * (d @ d) ** 2 + ((x - m) @ (x - m)) ** 2))

        alive = [i for i in alive if not f(levels[i]) <= f(levels[j]) / 2 + 1e-15 * abs(f(levels[j]))]
    losses = []
    for answer in answers:
        edge = (np.where(answer, 1, -1)[:, None] * weights).sum(axis=0)
        whole = abs(weights).sum(axis=0)
        right, wrong = (whole + edge) // 2, (whole - edge) // 2
        more = np.maximum(whole // 4096, 1)
        losses.append(
            float((right * np.sqrt((wrong + more) / (right + more)) + wrong * np.sqrt((right + more) / (wrong + more))).sum())
        )
    return min(losses)


@pytest.mark.parametrize("seed", range(12))
def test_the_best_of_all_candidates(backend: Backend, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_features, n_classes = int(rng.integers(2, 60)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
    levels = rng.integers(0, 12 if seed % 2 else 200, (n_rows, n_features))
    levels = levels[np.lexsort(levels.T[::-1])]
    weights = rng.integers(-50, 51, (n_rows, n_classes))
    side = rng.choice([-1, 1], n_rows)
    anchor, balls, most = int(rng.integers(n_rows)), bool(seed % 3), int(rng.integers(1, 9))
    data, stats = load(backend, levels.astype(np.uint8)), stats_of(backend, weights)
    found = SimilaritySearch(balls, most)(backend, data, stats, signs(backend, side.tolist()), anchor)
    assert found.loss == pytest.approx(brute_force(levels, weights, side, anchor, balls, most), rel=1e-12)


def test_radii_are_of_points_spread_over_all() -> None:
    data = on_a_line(REFERENCE, *range(254), 3, 3)
    assert len(data.spread) == N_RADII
    assert len(on_a_line(REFERENCE, 1, 1, 5).spread) == 2

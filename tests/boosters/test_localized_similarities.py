"""REBEL on localized similarities: rounds worked by hand, what the thesis proves, and the same bytes everywhere."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.base import Problem
from gpuboost.boosters.localized_similarities import LocalizedSimilarities, SimilarityProblem, groups
from gpuboost.boosters.rebel import subcosts
from gpuboost.fixedpoint import split_weights
from gpuboost.learners.similarity_search import LoadedPoints, SimilaritySearch
from gpuboost.similarities.ensemble import Similarities, TrainingPoints
from gpuboost.training import Training, train
from tests.candidates import Once, thinned

SEARCH = SimilaritySearch(True, 50)
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])


def problem(
    backend: Backend, levels: NDArray[Any], target: NDArray[Any], n_classes: int, weights: NDArray[Any] | None = None
) -> Problem:
    """Rows in the order that `LoadedPoints` wants."""
    order = np.lexsort((target, *levels.T[::-1]))
    levels, target = levels[order].astype(np.uint8), target[order].astype(np.int32)
    points = TrainingPoints(levels, order, target)
    row_weights = split_weights(np.ones(len(target)) if weights is None else weights[order].astype(float))
    return SimilarityProblem(backend, LoadedPoints(backend.load_points(levels), points), target, n_classes, *row_weights)


def fit(booster: LocalizedSimilarities, one: Problem, n_rounds: int, **options: Any) -> Training:
    return train(booster, one, n_rounds=n_rounds, **options)


def digest(training: Training, one: Problem) -> str:
    levels = one.data.points.levels
    return Similarities.from_rounds(training.rounds, one.n_classes, levels.shape[1]).digest()  # type: ignore[arg-type]


def ratios(training: Training) -> NDArray[np.float64]:
    losses = np.array([1.0, *training.history["train_loss"]])
    return losses[1:] / losses[:-1]


def random_problem(seed: int, *, distinct: bool) -> tuple[NDArray[Any], NDArray[Any], int]:
    """Few rows of few levels, labels that may say nothing."""
    rng = np.random.default_rng(seed)
    n_rows, n_features, n_classes = int(rng.integers(4, 40)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    levels = rng.integers(0, 256 if distinct else 5, (n_rows, n_features))
    if distinct:
        levels = np.unique(levels, axis=0)
    target = rng.integers(0, n_classes, len(levels))
    if seed % 2:
        target = np.minimum(levels[:, 0] * n_classes // (levels[:, 0].max() + 1), n_classes - 1)
    return levels, target, n_classes


# ---- by hand -----------------------------------------------------------------------------------------------------------------


def test_a_round_by_hand(backend: Backend) -> None:
    # Classes 0, 0, 1, 1 at 10, 20, 30, 40: the groups are the classes, and 20 and 30, or their neighbours, tell them apart.
    # Weights 1/2: right 2, wrong 0 of each class, smoothed by 1 / 4096 of 2 in 2**29 units: a = ln(4097) / 2, about 4.16.
    one = problem(backend, np.array([[10], [20], [30], [40]]), np.array([0, 0, 1, 1]), 2)
    training = fit(LocalizedSimilarities(SEARCH), one, 5)
    assert len(training.rounds) == 1
    assert training.reason == "the weak learner has nothing left to learn"
    similarity: Any = training.trees[0]
    a = np.log(4097) / 2
    sign = 1 if similarity.points.rows[0] in (0, 1) else -1
    assert similarity.values == pytest.approx(sign * np.array([[-a, a], [a, -a]]), rel=1e-6)
    assert training.history["edge"] == [1.0]
    assert training.history["train_error"] == [0.0]
    # A class's loss was 2 and is 2 exp(-a) + 0.
    assert training.history["train_loss"] == pytest.approx([np.exp(-a)], rel=1e-6)


def test_the_groups_of_three_classes(backend: Backend) -> None:
    # Class 0 weighs as much as both others: it is one group, they are the other.
    target = np.array([0] * 10 + [1] * 5 + [2] * 5)
    one = problem(backend, np.arange(20)[:, None], target, 3)
    state = LocalizedSimilarities(SEARCH).row_state(one)
    sides = backend.get(groups(one, state, state.statistics()))[:, 0]
    assert len(set(sides[:10].tolist())) == 1
    assert (sides[10:] == -sides[0]).all()


def test_what_is_drawn_depends_on_seed_and_round_only() -> None:
    one = problem(NumpyBackend(), np.array([[1], [1], [2], [3]]), np.array([0, 1, 0, 1]), 2)
    drawn = [[LocalizedSimilarities(SEARCH, seed=seed).draw(one.data, t) for t in range(60)] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(drawn[0]) == {0, 2, 3}  # every distinct point has a row


# ---- what the thesis proves --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("anchor", ["random", "best"])
@pytest.mark.parametrize("part", thinned(range(4), 4))
def test_every_round_lowers_the_loss(part: int, anchor: Any) -> None:
    for seed in range(25 * part, 25 * part + 25):
        levels, target, n_classes = random_problem(seed, distinct=True)
        one = problem(NumpyBackend(), levels, target, n_classes)
        training = fit(LocalizedSimilarities(SEARCH, anchor, seed=seed), one, 12)
        assert (ratios(training) < 1).all()
        assert len(training.rounds) == 12 or training.history["edge"][-1] == 1.0


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_of_a_round(seed: int) -> None:
    """Section 5.4: the loss ratio is at most 1 - 2 / (K N**2), for N of 4 or more distinct points."""
    levels, target, n_classes = random_problem(seed, distinct=True)
    search = SimilaritySearch(False, 1)
    training = fit(LocalizedSimilarities(search, "best"), problem(NumpyBackend(), levels, target, n_classes), 30)
    assert (ratios(training) <= 1 - 2 / (n_classes * len(levels) ** 2)).all()


def test_labels_at_random_are_learned() -> None:
    """The training error becomes 0 on any set of distinct points, as one-point similarities tell each apart."""
    rng = np.random.default_rng(0)
    levels = np.unique(rng.integers(0, 256, (40, 2)), axis=0)
    one = problem(NumpyBackend(), levels, rng.integers(0, 4, len(levels)), 4)
    training = fit(LocalizedSimilarities(SEARCH), one, 300)
    assert training.history["train_error"][-1] == 0


def test_equal_points_with_different_labels() -> None:
    # Three of four rows at each point have one label: the lowest error is a quarter, and weights that cancel end the training.
    levels = np.repeat([[10], [20], [30]], 4, axis=0)
    target = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1])
    training = fit(LocalizedSimilarities(SEARCH), problem(NumpyBackend(), levels, target, 2), 500)
    assert training.history["train_error"][-1] == 0.25
    assert (ratios(training)[:8] < 1).all()
    assert (ratios(training) < 1 + 1e-8).all()  # at the end a round moves nothing but the rounding
    assert training.reason == "the weak learner has nothing left to learn"
    # The weights of a point are then 3 e**-H and e**H: H = ln(3) / 2, and the loss is 2 sqrt(3) of 4.
    assert training.history["train_loss"][-1] == pytest.approx(np.sqrt(3) / 2, rel=1e-3)


# ---- weights and costs -------------------------------------------------------------------------------------------------------


def test_a_row_of_weight_two_is_two_rows() -> None:
    levels, target, n_classes = random_problem(3, distinct=False)
    weights = np.random.default_rng(0).integers(1, 4, len(levels))
    booster = LocalizedSimilarities(SEARCH, seed=1)
    once = fit(booster, problem(NumpyBackend(), levels, target, n_classes, weights), 12)
    repeated = problem(NumpyBackend(), np.repeat(levels, weights, axis=0), np.repeat(target, weights), n_classes)
    again = fit(booster, repeated, 12)
    assert once.history["train_loss"] == again.history["train_loss"]
    for (one,), (other,) in zip(once.rounds, again.rounds, strict=True):
        a: Any = one
        b: Any = other
        assert a.points.levels.tolist() == b.points.levels.tolist()
        assert a.values.tolist() == b.values.tolist()


def test_costs_are_those_of_rebel() -> None:
    levels, target, _ = random_problem(2, distinct=True)
    one = problem(NumpyBackend(), levels, target % 3, 3)
    state = LocalizedSimilarities(SEARCH, costs=COSTS).row_state(one)
    assert one.backend.get(state.state) == pytest.approx(subcosts(3, COSTS)[one.target], rel=1e-15)
    training = fit(LocalizedSimilarities(SEARCH, costs=COSTS), one, 20, costs=COSTS)
    assert (ratios(training) < 1).all()


def test_nothing_that_costs() -> None:
    one = problem(NumpyBackend(), np.array([[1], [2]]), np.array([0, 1]), 2)
    assert fit(LocalizedSimilarities(SEARCH, costs=np.zeros((2, 2))), one, 5).rounds == []


# ---- the same everywhere -----------------------------------------------------------------------------------------------------

BOOSTERS = {
    "default": LocalizedSimilarities(SEARCH, seed=2),
    "best anchor": LocalizedSimilarities(SimilaritySearch(False, 3), "best"),
    "costs": LocalizedSimilarities(SEARCH, costs=COSTS, seed=4),
}


@pytest.mark.parametrize("name", BOOSTERS)
def test_every_backend_makes_the_same_model(candidate: Backend, name: str, once: Once) -> None:
    rng = np.random.default_rng(5)
    target = rng.integers(0, 3, 150)
    levels = np.clip(rng.normal(size=(150, 18)) * 30 + 40 * target[:, None] + 60, 0, 254).astype(np.uint8)
    weights = rng.integers(1, 4, 150)

    def trained(backend: Backend) -> tuple[str, Any]:
        one, other = (
            problem(backend, levels[:100], target[:100], 3, weights[:100]),
            problem(backend, levels[100:], target[100:], 3),
        )
        training = fit(BOOSTERS[name], one, 8, evaluation={"valid": other})
        return digest(training, one), {key: value for key, value in training.history.items() if key != "seconds"}

    assert trained(candidate) == once(trained, NumpyBackend())


def test_a_continued_training_is_one_long_training(backend: Backend) -> None:
    levels, target, n_classes = random_problem(10, distinct=True)
    one = problem(backend, levels, target, n_classes)
    booster = LocalizedSimilarities(SEARCH, seed=3)
    whole, part = fit(booster, one, 9), fit(booster, one, 4)
    continued = fit(booster, one, 9, initial_rounds=part.rounds, history=part.history)
    assert digest(continued, one) == digest(whole, one)
    assert continued.history["train_loss"] == whole.history["train_loss"]
    perfect = fit(booster, problem(backend, np.array([[1], [9]]), np.array([0, 1]), 2), 5)
    again = fit(booster, problem(backend, np.array([[1], [9]]), np.array([0, 1]), 2), 5, initial_rounds=perfect.rounds)
    assert len(again.rounds) == len(perfect.rounds) == 1


def test_the_search_decides_what_is_tried() -> None:
    levels, target, n_classes = random_problem(21, distinct=True)
    losses = [
        fit(replace(BOOSTERS["default"], search=search), problem(NumpyBackend(), levels, target, n_classes), 1).history[
            "train_loss"
        ][0]
        for search in (SimilaritySearch(False, 1), SimilaritySearch(False, 50), SEARCH)
    ]
    assert all(more <= less for less, more in itertools.pairwise(losses))
    assert losses[2] < losses[0]

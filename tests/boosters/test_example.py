"""The template, Gentle AdaBoost.MH: by hand, beside an oracle for two classes and GAMBLE, on all backends, to its end."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.example import GentleAdaBoostMH, gentle_values
from gpuboost.boosters.gamble import Gamble
from tests.problems import Data, blobs, digest, fit, scores, sign_matrix

COUNTS = st.integers(0, 2**30 - 1)


def history(training: object) -> dict[str, list[float]]:
    return {key: values for key, values in vars(training)["history"].items() if key != "seconds"}


# ---- by hand -----------------------------------------------------------------------------------------------------------------


def test_values_by_hand() -> None:
    # W+ and W-: 3 and 1, 0 and 2, none, 5 and 5.
    values = gentle_values(np.array([[2, -2], [0, 0]]), np.array([[4, 2], [0, 10]]))
    assert values.tolist() == [[0.5, -1.0], [0.0, 0.0]]


def test_round_by_hand(backend: Backend) -> None:
    # Classes 0 0 1 2 in a row: 12 pairs of weight 1. The cut after 0 0 has the edge 4 + 2 + 2 = 8 (after the first row it is 2,
    # after the third 6, without a cut 4). Left all is pure: 1, -1, -1. Right class 0 is pure, the others are divided.
    data = Data(np.arange(4.0)[:, None], sign_matrix([0, 0, 1, 2], 3))
    training = fit(GentleAdaBoostMH(2), data, backend, 1)
    assert training.trees[0].cut.tolist() == [2]
    assert training.trees[0].values.tolist() == [[1, -1, -1], [-1, 0, 0]]
    # Eight pairs are multiplied by exp(-1), four stay.
    assert training.history["train_loss"] == pytest.approx([(8 / math.e + 4) / 12], rel=1e-8)
    assert training.history["edge"] == [8 / 12]
    assert training.history["train_error"] == [0.25]  # class 1 is the first of equals on the right


@given(COUNTS, COUNTS)
def test_no_value_raises_the_loss(right: int, wrong: int) -> None:
    value = float(gentle_values(np.array([[right - wrong]]), np.array([[right + wrong]]))[0, 0])
    after = right * math.exp(-value) + wrong * math.exp(value)
    assert after == pytest.approx((right + wrong) * (math.cosh(value) - value * math.sinh(value)), rel=1e-12)
    assert after <= (right + wrong) * (1 + 1e-14)


# ---- identities --------------------------------------------------------------------------------------------------------------


def binary_gentle_adaboost(data: Data, n_rounds: int) -> tuple[NDArray[np.float64], list[float]]:
    """Algorithm 4 with the stump of the largest edge, for y in {-1, +1}: the rows' scores F, and the loss after every round."""
    X, y, weights = data.X, data.signs[:, 0].astype(float), data.weights
    phi = np.stack([np.where(X[:, f] > value, 1.0, -1.0) for f in range(X.shape[1]) for value in np.unique(X[:, f])])
    F, losses = np.zeros(len(y)), []
    for _ in range(n_rounds):
        w = weights * np.exp(-y * F)
        side = phi[np.argmax(abs(phi @ (w * y)))] > 0
        for rows in (side, ~side):
            F[rows] += np.average(y[rows], weights=w[rows]) if rows.any() else 0.0
        losses.append(float(np.average(np.exp(-y * F), weights=weights)))
    return F, losses


@pytest.mark.parametrize("seed", range(5))
def test_two_classes_are_binary_gentle_adaboost(backend: Backend, seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = blobs(60, 3, 2, seed)
    data = Data(data.X, data.signs, rng.uniform(0.5, 1.0, 60))  # no two cuts have the same edge
    training = fit(GentleAdaBoostMH(2), data, backend, 12)
    F, losses = binary_gentle_adaboost(data, 12)
    assert scores(training.trees, data, backend, data.mapper()) == pytest.approx(np.stack([F, -F], axis=1), abs=1e-6)
    assert training.history["train_loss"] == pytest.approx(losses, rel=1e-6)


def test_two_classes_are_gamble_at_rate_one_half(backend: Backend) -> None:
    # Where there is one cut to choose, the criteria of both choose it. (Three rounds fit the shares of a leaf to the last bit.)
    X = np.repeat([0.0, 1.0], [7, 9])[:, None]
    data = Data(X, sign_matrix(np.where(np.arange(16) % 5 == 0, 1 - X[:, 0], X[:, 0]).astype(int), 2))
    gentle, gamble = (fit(booster, data, backend, 3) for booster in (GentleAdaBoostMH(2), Gamble(2, 0.5)))
    assert [tree.n_leaves for tree in gentle.trees] == [2] * 3
    for one, other in zip(gentle.trees, gamble.trees, strict=True):
        assert one.values == pytest.approx(other.values, abs=1e-7)
    assert gentle.history["train_loss"] == pytest.approx(gamble.history["train_loss"], rel=1e-7)


# ---- trainings ---------------------------------------------------------------------------------------------------------------


def variety() -> list[tuple[Data, int]]:
    """Sets with the number of leaves to train them with: classes, weights, missing values, many labels a row."""
    plain = blobs(90, 4, 3, 0)
    rng = np.random.default_rng(1)
    holes = np.where(rng.random(plain.X.shape) < 0.3, np.nan, plain.X)
    many = np.where(plain.X + rng.normal(size=plain.X.shape) > 0, 1, -1).astype(np.int8)
    return [
        (plain, 4),
        (Data(holes, plain.signs, rng.uniform(0.1, 1.0, 90)), 5),
        (Data(plain.X.round(), many, rng.integers(1, 4, 90).astype(float), max_bins=5), 3),
        (blobs(60, 3, 17, 2), 9),
        (blobs(40, 2, 1, 3), 2),
    ]


@pytest.mark.parametrize("number", range(len(variety())))
def test_every_backend_makes_the_same_model(candidate: Backend, number: int) -> None:
    data, max_leaf_nodes = variety()[number]
    booster = GentleAdaBoostMH(max_leaf_nodes)
    one, other = (fit(booster, data, backend, 5, evaluation=data) for backend in (NumpyBackend(), candidate))
    assert digest(one.trees, data.n_classes) == digest(other.trees, data.n_classes)
    assert history(one) == history(other)


@pytest.mark.slow
def test_the_loss_is_that_of_the_scores_and_falls(backend: Backend) -> None:
    for data, max_leaf_nodes in variety():
        training = fit(GentleAdaBoostMH(max_leaf_nodes), data, backend, 10, evaluation=data)
        losses = training.history["train_loss"]
        assert losses == sorted(losses, reverse=True)
        assert losses[0] < 1
        f = scores(training.trees, data, backend, data.mapper())
        loss = np.average(np.exp(-data.signs * f).mean(axis=1), weights=data.weights)
        assert losses[-1] == pytest.approx(loss, rel=1e-6)
        assert training.history["valid_loss"] == losses


def test_weight_two_is_a_row_twice(backend: Backend) -> None:
    data = blobs(60, 3, 3, 1)
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    one = fit(GentleAdaBoostMH(4), Data(data.X, data.signs, weights), backend, 5)
    other = fit(GentleAdaBoostMH(4), data.subset(np.repeat(np.arange(60), weights.astype(int))), backend, 5)
    assert [tree.values.tobytes() for tree in one.trees] == [tree.values.tobytes() for tree in other.trees]


@pytest.mark.slow
def test_a_continued_training_is_one_long_training(backend: Backend) -> None:
    for data, max_leaf_nodes in variety():
        booster = GentleAdaBoostMH(max_leaf_nodes)
        long, half = (fit(booster, data, backend, n) for n in (8, 3))
        more = fit(booster, data, backend, 8, initial_rounds=half.rounds, history=half.history)
        assert digest(more.trees, data.n_classes) == digest(long.trees, data.n_classes)
        assert history(more) == history(long)


def test_what_ends_a_training() -> None:
    # Two rows that cannot be told apart, of two classes: no edge. Classes that one cut separates: every round is as good.
    twins = fit(GentleAdaBoostMH(3), Data(np.zeros((2, 1)), sign_matrix([0, 1], 2)), NumpyBackend(), 10)
    assert (twins.trees, twins.reason) == ([], "the weak learner has nothing left to learn")
    apart = fit(GentleAdaBoostMH(3), Data(np.array([[0.0], [1.0]]), sign_matrix([0, 1], 2)), NumpyBackend(), 40)
    assert apart.history["train_loss"] == pytest.approx([math.exp(-t) for t in range(1, 41)], rel=1e-6)

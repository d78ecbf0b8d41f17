"""GAMBLE with regressors: a round worked by hand, its oracles, its bounds, and its kinship with trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.gamble_regressors import GambleRegressors, RegressionProblem, RegressionStep
from gpuboost.estimators.gamble_regressors import RegressorTemplate
from gpuboost.fixedpoint import split_weights
from gpuboost.training import Training, train
from tests.problems import Data, blobs, fit, sign_matrix

Floats = NDArray[np.float64]


@dataclass
class Given:
    """A regression that predicts what it is told."""

    values: Any

    def predict(self, X: Any) -> Floats:
        return np.broadcast_to(self.values, (len(X), np.shape(self.values)[-1])).astype(float)


@dataclass
class Recorder:
    """A regressor that keeps what it is given, and predicts the weighted means of the targets."""

    calls: list[tuple[Floats, Floats, Sequence[int]]] = field(default_factory=list)

    def fit(self, X: Any, targets: Floats, weights: Floats, seed: Sequence[int]) -> Given:
        self.calls.append((targets, weights, seed))
        return Given(np.average(targets, axis=0, weights=weights))


def problem_of(data: Data) -> RegressionProblem:
    weights = np.ones(len(data.X)) if data.weights is None else data.weights
    return RegressionProblem(
        NumpyBackend(), data.X, data.signs.argmax(axis=1).astype(np.int32), data.n_classes, *split_weights(weights)
    )


def boost(booster: GambleRegressors, data: Data, n_rounds: int, **options: Any) -> Training:
    return train(booster, problem_of(data), n_rounds=n_rounds, **options)


def boosting(regressor: Any, rate: float, seed: int = 0) -> GambleRegressors:
    template = RegressorTemplate.of(regressor)
    return GambleRegressors(template, template, rate, seed)


def scores_of(steps: Sequence[Any], X: Floats) -> Floats:
    scores: Floats = sum(step.values(X) for step in steps)
    return scores


# ---- a round -----------------------------------------------------------------------------------------------------------------

ROW = Data(np.arange(4.0)[:, None], sign_matrix([0, 0, 1, 2], 3))


def test_first_round_by_hand() -> None:
    # Classes 0 0 1 2 in a row; the best stump leaves 0 0 | 1 2 in both regressions.
    # g: (1, -1/2, -1/2) | (-1/2, 1/4, 1/4). h: (1, 1/4, 1/4) | (1/4, 5/8, 5/8). r = 3 g / h: (3, -6, -6) | (-6, 6/5, 6/5).
    # Less the means, -3 | -6/5: f = (6, -3, -3) | (-24/5, 12/5, 12/5).
    training = boost(boosting(DecisionTreeRegressor(max_leaf_nodes=2), 1.0), ROW, 1)
    step: Any = training.trees[0]
    expected = np.array([[6, -3, -3], [6, -3, -3], [-4.8, 2.4, 2.4], [-4.8, 2.4, 2.4]])
    assert step.values(ROW.X) == pytest.approx(expected, rel=1e-12)
    # Weights become exp(-f_y / 2) of their old value, and of the four rows that of class 2 is taken for class 1.
    assert training.history["train_loss"] == pytest.approx([(2 * math.exp(-3) + 2 * math.exp(-1.2)) / 4], rel=1e-8)
    assert training.history["train_error"] == [0.25]
    assert training.history["edge"] == pytest.approx([1 - 3 / 2 * 1 / 4])


def test_what_the_regressors_are_given() -> None:
    g, h = Recorder(), Recorder()
    weighted = Data(ROW.X, ROW.signs, np.array([1.0, 1.0, 2.0, 2.0]))
    boost(GambleRegressors(g, h, 1.0, 7), weighted, 2)
    coding = np.where(ROW.signs > 0, 1, -1 / 2)
    for recorder, targets in ((g, coding), (h, coding**2)):
        assert [seed for _, _, seed in recorder.calls] == [(7, 0), (7, 1)]
        for given_targets, _, _ in recorder.calls:
            assert given_targets == pytest.approx(targets)
        # Two rows of weight 2 count as four: the weights add up to six.
        assert recorder.calls[0][1] == pytest.approx([1, 1, 2, 2])
        assert recorder.calls[1][1].sum() == pytest.approx(6)
    # Means of y: (0, 0, 0): class 0 weighs 2, class 1 and 2, too. So nothing moves, and the second round is the first.
    assert g.calls[1][1] == pytest.approx([1, 1, 2, 2])


def test_weights_follow_the_steps() -> None:
    # Shares 1/2, 1/4, 1/4: g = (1/4, -1/8, -1/8), h = (5/8, 7/16, 7/16), r = 3 g / h = (6/5, -6/7, -6/7), mean -6/35.
    g, h = Recorder(), Recorder()
    boost(GambleRegressors(g, h, 0.5, 0), ROW, 2)
    f = 0.5 * (np.array([6 / 5, -6 / 7, -6 / 7]) + 6 / 35)
    w = np.exp(-f[[0, 0, 1, 2]] / 2)
    assert g.calls[1][1] == pytest.approx(4 * w / w.sum(), rel=1e-12)


def test_two_classes_need_one_regression_of_one_target() -> None:
    g, h = Recorder(), Recorder()
    data = Data(np.zeros((3, 1)), sign_matrix([0, 0, 1], 2))
    training = boost(GambleRegressors(g, h, 0.5, 0), data, 1)
    assert h.calls == []
    assert g.calls[0][0].tolist() == [[1], [1], [-1]]
    step: Any = training.trees[0]
    assert step.values(data.X)[0] == pytest.approx([1 / 3, -1 / 3])  # the mean of y, and its negative


def test_one_class_is_nothing_to_learn() -> None:
    training = boost(GambleRegressors(Recorder(), Recorder(), 1.0, 0), Data(np.zeros((3, 1)), np.ones((3, 1), np.int8)), 5)
    assert (training.trees, training.reason) == ([], "the weak learner has nothing left to learn")


# ---- the step ----------------------------------------------------------------------------------------------------------------


def test_predictions_out_of_range_are_clipped() -> None:
    # K = 3: g is clipped to -1/2 .. 1, h to 1/4 .. 1, r = 3 g / h to 3 at most. g / h = 1 / 1, -1/2 / (1/4), 0 / (1/4) makes
    # r = (3, -6, 0) with the mean -1. Then 1 / (1/2), -1/2 / (1/4), -1/2 / 1: r = (3, -6, -3/2), mean -3/2.
    step = RegressionStep(Given([7.0, -3.0, 0.0]), Given([9.0, -2.0, 0.0]), 3, 1.0)
    assert step.values(np.zeros((2, 1))).tolist() == [[4, -5, 1]] * 2
    step = RegressionStep(Given([2.0, -0.6, -0.5]), Given([0.5, 0.1, 1.0]), 3, 1.0)
    assert step.values(np.zeros((1, 1))).tolist() == [[4.5, -4.5, 0]]
    assert RegressionStep(Given([-7.0]), None, 2, 0.5).values(np.zeros((1, 1))).tolist() == [[-1, 1]]


@given(st.integers(2, 9).flatmap(lambda k: arrays(float, (2, 5, k), elements=st.floats(-1e30, 1e30))))
def test_result_3_holds_for_all_regressors(values: Floats) -> None:
    g, h = values
    k = g.shape[1]
    step = RegressionStep(Given(g[:, :1]), None, 2, 1.0) if k == 2 else RegressionStep(Given(g), Given(h), k, 1.0)
    f = step.values(np.zeros((5, 1)))
    assert abs(f).max() <= (k * k - k) * (1 + 1e-12)
    assert f.sum(axis=1) == pytest.approx(np.zeros(5), abs=1e-9)


@pytest.mark.parametrize("params", [{}, {"max_features": 1}, {"splitter": "random"}], ids=str)
def test_g_and_h_are_one_tree(params: dict[str, Any]) -> None:
    # Theorem 3.2 and corollary 3.1, for which trees that are grown at random need the same random numbers.
    data = blobs(100, 4, 4, 0)
    training = boost(boosting(DecisionTreeRegressor(max_leaf_nodes=6, **params), 0.5), data, 3)
    for step in training.trees:
        s: Any = step
        assert s.h.predict(data.X) == pytest.approx((2 * s.g.predict(data.X) + 1) / 3, abs=1e-12)


# ---- oracles -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("regressor", [DecisionTreeRegressor(max_leaf_nodes=4), Ridge(alpha=2.0)], ids=str)
def test_two_classes_at_rate_one_half_are_gentle_adaboost(regressor: Any) -> None:
    data = blobs(80, 3, 2, 3)
    y, F, w = np.where(data.signs[:, 0] > 0, 1.0, -1.0), np.zeros(80), np.ones(80)
    for _ in range(6):  # Friedman, Hastie and Tibshirani (2000), algorithm 4
        f = np.clip(regressor.fit(data.X, y, sample_weight=w).predict(data.X), -1, 1)  # where E_w[y] lies
        F += f
        w *= np.exp(-y * f)
        w *= 80 / w.sum()
    steps = boost(boosting(regressor, 0.5), data, 6).trees
    assert scores_of(steps, data.X) == pytest.approx(np.column_stack([F, -F]), rel=1e-9, abs=1e-9)


@pytest.mark.slow
def test_trees_as_regressors_are_algorithm_2() -> None:
    data = blobs(200, 4, 4, 1)
    general = boost(boosting(DecisionTreeRegressor(max_leaf_nodes=8), 0.5), data, 15)
    trees = fit(Gamble(8, 0.5), data, NumpyBackend(), 15)
    # The same cuts as long as nothing is a tie: fixed point rounds to nine digits.
    assert general.history["train_loss"][:3] == pytest.approx(trees.history["train_loss"][:3], rel=1e-6)
    assert general.history["edge"][:3] == pytest.approx(trees.history["edge"][:3], rel=1e-6)
    assert general.history["train_error"][-1] == pytest.approx(trees.history["train_error"][-1], abs=0.03)


def test_trees_as_regressors_search_as_in_algorithm_2() -> None:
    data = blobs(200, 2, 30, 0, noise=2.0)
    template = RegressorTemplate.of(DecisionTreeRegressor(max_leaf_nodes=6))
    general = boost(GambleRegressors(template, template, 1.0, 0, line_search=True), data, 5)
    trees = fit(Gamble(6, 1.0, line_search=True), data, NumpyBackend(), 5)
    rates: Any = [step.learning_rate for step in general.trees]  # type: ignore[attr-defined]
    assert min(rates) < 1
    assert general.history["train_loss"][:2] == pytest.approx(trees.history["train_loss"][:2], rel=1e-6)
    assert (np.diff([1.0, *general.history["train_loss"]]) < 0).all()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_loss_is_that_of_the_scores(n_classes: int) -> None:
    data = blobs(60, 3, n_classes, 4)
    weighted = Data(data.X, data.signs, np.random.default_rng(0).uniform(0.5, 1, 60))
    training = boost(boosting(Ridge(), 0.5), weighted, 4, evaluation={"valid": problem_of(data)})
    own = scores_of(training.trees, data.X)[data.signs > 0]
    losses = np.exp(-own / (n_classes - 1))
    assert training.history["train_loss"][-1] == pytest.approx(np.average(losses, weights=weighted.weights), rel=1e-6)
    assert training.history["valid_loss"][-1] == pytest.approx(losses.mean(), rel=1e-6)


def test_a_continued_training_is_one_long_training() -> None:
    data, booster = blobs(80, 3, 3, 2), boosting(DecisionTreeRegressor(max_leaf_nodes=4, max_features=1), 0.5, seed=3)
    long = boost(booster, data, 6)
    half = boost(booster, data, 3)
    continued = boost(booster, data, 6, initial_rounds=half.rounds, history=half.history)
    assert (scores_of(continued.trees, data.X) == scores_of(long.trees, data.X)).all()
    assert continued.history["train_loss"] == long.history["train_loss"]
    assert continued.history["train_error"] == long.history["train_error"]
    assert continued.trees[:3] == half.trees

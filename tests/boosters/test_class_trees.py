"""SAMME and GAMBLE: rounds worked by hand, brute force, identities, and what ends a training."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.criteria import purity
from gpuboost.backends.frontier import as_float
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.gamble import Gamble, best_step, newton_values, shortened_newton_values
from gpuboost.boosters.samme import SAMME, discrete_values, real_values
from gpuboost.learners.class_tree import ClassTree
from tests.problems import Data, blobs, coded, fit, scores, sign_matrix, stats_of


def one_column(labels: list[int], n_classes: int, weights: NDArray[np.float64] | None = None) -> Data:
    return Data(np.arange(len(labels), dtype=float)[:, None], sign_matrix(labels, n_classes), weights)


# ---- values of leaves --------------------------------------------------------------------------------------------------------


def test_discrete_values_by_hand() -> None:
    # K = 3. The leaves predict 0 and 2 and are right on 6 + 3 of 12: err = 1/4, alpha = ln 3 + ln 2 = ln 6,
    # beta = 4/3 ln 6; the other classes get -beta / 2.
    beta = 4 / 3 * math.log(6)
    values = discrete_values(np.array([[6, 1, 1], [0, 1, 3]]))
    assert values == pytest.approx(np.array([[beta, -beta / 2, -beta / 2], [-beta / 2, -beta / 2, beta]]), rel=1e-14)
    # A row that is missed gets exp(alpha) = 6 times the factor of one that is hit.
    assert math.exp(-(-beta / 2) / 2) / math.exp(-beta / 2) == pytest.approx(6)


def test_discrete_ties_go_to_the_lowest_class_and_chance_ends() -> None:
    assert discrete_values(np.array([[4, 4, 1]])).argmax() == 0
    assert discrete_values(np.array([[4, 4, 4]])) is None  # right on a third: chance
    assert discrete_values(np.array([[5, 4, 4], [0, 0, 0]])) is not None
    perfect = discrete_values(np.array([[9, 0], [0, 7]]))
    assert perfect[0, 0] == pytest.approx(0.5 * math.log(15))  # one of 16 units counts as missed: alpha = ln 15


def test_real_values_by_hand() -> None:
    # The whole has 2048 and 1024 units: every leaf is given 2 and 1. (K - 1) (ln p_k - mean) with K = 2.
    values = real_values(np.array([[2046, 0], [2, 1024]]))
    a, b = math.log(2048), math.log(1)
    c, d = math.log(4), math.log(1025)
    assert values == pytest.approx(np.array([[(a - b) / 2, (b - a) / 2], [(c - d) / 2, (d - c) / 2]]), rel=1e-14)


def test_newton_values_by_hand() -> None:
    # K = 3, sums (3, 2, 1): g = (1/4, 0, -1/4), r = 6 g / (g + 1) = (6/5, 0, -2), less their mean -4/15.
    assert newton_values(np.array([[3, 2, 1]])) == pytest.approx(np.array([[22 / 15, 4 / 15, -26 / 15]]), rel=1e-14)
    # A pure leaf multiplies the weights of its class by exp(-f / (K - 1)) = exp(-K).
    assert newton_values(np.array([[0, 5, 0, 0]]))[0, 1] / 3 == pytest.approx(4)
    assert (newton_values(np.array([[0, 0, 0], [2, 2, 2]])) == 0).all()


@pytest.mark.parametrize("sums", [[7, 3], [1, 0], [5, 5], [0, 9]])
def test_gamble_with_two_classes_is_gentle_adaboost(sums: list[int]) -> None:
    # Gentle AdaBoost adds E_w[y] to a single score F, of which GAMBLE's scores at rate 1/2 are F and -F: its g_1 is E_w[y].
    expectation = (sums[0] - sums[1]) / sum(sums)
    f = 0.5 * newton_values(np.array([sums]))
    assert f[0].tolist() == pytest.approx([expectation, -expectation])


# ---- trees -------------------------------------------------------------------------------------------------------------------


def test_purity_against_fractions() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        sums = rng.integers(0, 1 << 26, int(rng.integers(1, 6)))
        exact = sum(Fraction(int(s)) ** 2 for s in sums) / max(int(sums.sum()), 1)
        assert purity(sums, len(sums)) == pytest.approx(float(exact), rel=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_stump_against_all_cuts(backend: Backend, seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(2, 25)), int(rng.integers(2, 5))
    codes, labels = rng.integers(0, 5, (3, n_rows)), rng.integers(0, n_classes, n_rows)
    quantised = np.where(labels[:, None] == np.arange(n_classes), rng.integers(0, 9, n_rows)[:, None], 0)

    def squares_over_sum(rows: NDArray[np.bool_]) -> Fraction:
        sums = quantised[rows].sum(axis=0)
        return Fraction(int((sums**2).sum()), max(int(sums.sum()), 1))

    worth = [
        squares_over_sum(left) + squares_over_sum(~left)
        for column in codes
        for cut in range(1, 6)
        for missing_left in (True, False)
        for left in [(column <= cut) & ((column > 0) | missing_left)]
    ]
    best = max(worth) - squares_over_sum(np.ones(n_rows, bool))
    stats = stats_of(backend, quantised)
    tree = ClassTree(2)(backend, backend.load(coded(codes)), stats).tree
    assert tree.gain.sum() * max(stats.total, 1) == pytest.approx(float(best), abs=1e-12)


def test_sums_of_the_leaves(backend: Backend) -> None:
    # Rows of classes 0 0 1 1 2 2 in order: two cuts separate them.
    quantised = np.repeat(np.eye(3, dtype=int), 2, axis=0) * np.array([1, 2, 3, 4, 5, 6])[:, None]
    stats = stats_of(backend, quantised)
    grown = ClassTree(3)(backend, backend.load(coded([[1, 1, 2, 2, 3, 3]])), stats)
    assert sorted(grown.sums[0].tolist()) == [[0, 0, 11], [0, 7, 0], [3, 0, 0]]
    assert (np.asarray(grown.tree.values) == 0).all()
    gains = as_float(np.array([0], np.int64))
    assert gains.tolist() == [0.0]


# ---- rounds ------------------------------------------------------------------------------------------------------------------


def test_samme_round_by_hand(backend: Backend) -> None:
    # Classes 0 0 1 2 in a row. The best stump leaves 0 0 | 1 2 (purities 2 + 1): right on 3 of 4, alpha = ln 3 + ln 2 = ln 6.
    training = fit(SAMME(2), one_column([0, 0, 1, 2], 3), backend, 1)
    beta = 4 / 3 * math.log(6)
    assert training.trees[0].values == pytest.approx(
        np.array([[beta, -beta / 2, -beta / 2], [-beta / 2, beta, -beta / 2]]), rel=1e-8
    )
    # Three rows get exp(-beta / 2) = 6^(-2/3), one exp(beta / 4) = 6^(1/3): of 4 before.
    assert training.history["train_loss"] == pytest.approx([(3 * 6 ** (-2 / 3) + 6 ** (1 / 3)) / 4], rel=1e-8)
    assert training.history["edge"] == pytest.approx([(3 * 3 - 4) / 8])
    assert training.history["train_error"] == [0.25]


def test_gamble_round_by_hand(backend: Backend) -> None:
    # The same stump. Left leaf pure: f / (K - 1) = (3, -3/2, -3/2). Right: sums (0, 1, 1), g = (-1/2, 1/4, 1/4),
    # r = 6 g / (g + 1) = (-6, 6/5, 6/5), less the mean -6/5: f = (-24/5, 12/5, 12/5).
    training = fit(Gamble(2, 1.0), one_column([0, 0, 1, 2], 3), backend, 1)
    assert training.trees[0].values == pytest.approx(np.array([[6, -3, -3], [-4.8, 2.4, 2.4]]), rel=1e-8)
    loss = (2 * math.exp(-3) + 2 * math.exp(-1.2)) / 4
    assert training.history["train_loss"] == pytest.approx([loss], rel=1e-8)


@pytest.mark.parametrize(
    "booster", [SAMME(4), SAMME(4, variant="real"), Gamble(4, 0.5), Gamble(4, 1.0, line_search=True)], ids=str
)
def test_loss_is_that_of_the_scores(backend: Backend, booster: SAMME | Gamble) -> None:
    data = blobs(150, 3, 4, 0)
    training = fit(booster, data, backend, 6)
    f = scores(training.trees, data, backend, data.mapper())
    assert f.sum(axis=1) == pytest.approx(np.zeros(150), abs=1e-9)
    own = f[data.signs > 0]
    assert training.history["train_loss"][-1] == pytest.approx(np.exp(-own / 3).mean(), rel=1e-6)


def test_weight_two_is_a_row_twice(backend: Backend) -> None:
    data = blobs(60, 3, 3, 1)
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    twice = data.subset(np.repeat(np.arange(60), weights.astype(int)))
    for booster in (SAMME(4), SAMME(4, variant="real"), Gamble(4, 1.0)):
        one = fit(booster, Data(data.X, data.signs, weights), backend, 5)
        other = fit(booster, twice, backend, 5)
        assert [t.values.tobytes() for t in one.trees] == [t.values.tobytes() for t in other.trees]


@pytest.mark.parametrize("booster", [SAMME(3), SAMME(3, variant="real"), Gamble(3, 1.0)], ids=str)
def test_a_continued_training_is_one_long_training(backend: Backend, booster: SAMME | Gamble) -> None:
    data = blobs(80, 3, 3, 2)
    long = fit(booster, data, backend, 8)
    half = fit(booster, data, backend, 4)
    continued = fit(booster, data, backend, 8, initial_rounds=half.rounds, history=half.history)
    assert [t.values.tobytes() for t in continued.trees] == [t.values.tobytes() for t in long.trees]


def test_what_ends_a_training() -> None:
    backend = NumpyBackend()
    perfect = fit(SAMME(3), one_column([0, 0, 1, 1], 2), backend, 10)
    assert (len(perfect.trees), perfect.reason) == (1, "the weak learner has nothing left to learn")
    # Two rows that cannot be told apart, of two classes: no tree is better than chance.
    twins = Data(np.zeros((2, 1)), sign_matrix([0, 1], 2))
    assert fit(SAMME(3), twins, backend, 10).trees == []
    assert len(fit(Gamble(3, 1.0), twins, backend, 10).trees) == 1  # a leaf for all: the shares of the classes
    assert len(fit(Gamble(3, 1.0), one_column([0, 0, 1, 1], 2), backend, 10).trees) == 10


# ---- the line search ---------------------------------------------------------------------------------------------------------


def test_line_search_by_hand() -> None:
    # K = 2, weights 9 and 1: f = 2 g = (8/5, -8/5). Losses 9 exp(-s 8/5) + exp(s 8/5): 6.8 for s = 1, 6.3 for 1/2, 7.5 for 1/4.
    assert shortened_newton_values(np.array([[9, 1]])) == pytest.approx(np.array([[0.8, -0.8]]))
    # Pure leaves take the whole step; a leaf of which nothing is known takes none.
    assert shortened_newton_values(np.array([[5, 0], [0, 3]])) == pytest.approx(np.array([[2, -2], [-2, 2]]))
    assert (shortened_newton_values(np.array([[2, 2, 2]])) == 0).all()


def test_a_line_search_ends_whatever_the_direction() -> None:
    assert best_step(np.array([1, 2]), np.array([1.0, 1.0])) == 1.0
    assert best_step(np.array([1, 2]), np.array([0.0, 0.0])) == 1.0
    assert 0 < best_step(np.array([1, 2]), np.array([-1.0, -1.0])) < 1e-15  # any step makes it worse


def test_the_step_has_the_lowest_loss_of_all_halves() -> None:
    rng, steps = np.random.default_rng(0), set()
    for n_classes in (3, 10, 26):
        for _ in range(30):
            sums = np.floor(1e6 * rng.dirichlet(np.full(n_classes, 0.3), 4)).astype(np.int64)
            values, short = newton_values(np.array(sums)), shortened_newton_values(np.array(sums))
            losses = [(sums * np.exp(-(0.5**n) * values / (n_classes - 1))).sum() for n in range(12)]
            assert short == pytest.approx(0.5 ** int(np.argmin(losses)) * values)
            assert min(losses) < sums.sum()
            steps.add(int(np.argmin(losses)))
    assert len(steps) > 2


@pytest.mark.slow
def test_with_a_line_search_the_loss_never_rises(backend: Backend) -> None:
    data = blobs(400, 2, 30, 0, noise=2.0)
    full, short = (fit(Gamble(6, 1.0, line_search=search), data, backend, 8).history["train_loss"] for search in (False, True))
    assert (np.diff([1.0, *short]) < 0).all()
    assert not (np.diff([1.0, *full]) < 0).all()

"""REBEL: rounds worked by hand, identities of the thesis, costs, and what ends a training."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.rebel import Rebel, subcosts
from gpuboost.learners import layered_tree
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.training import train
from tests.problems import Data, blobs, cpu_backend, fit, scores, sign_matrix

Floats = NDArray[np.float64]

COSTS = np.array([[0.0, 3.0, 4.0], [1.0, 0.0, 1.0], [10.0, 0.0, 0.0]])


def one_column(labels: list[int], n_classes: int, weights: Floats | None = None) -> Data:
    return Data(np.arange(len(labels), dtype=float)[:, None], sign_matrix(labels, n_classes), weights)


def trees_of(training: Any) -> list[bytes]:
    return [b"".join(np.asarray(getattr(t, name)).tobytes() for name in ("feature", "cut", "values")) for t in training.trees]


# ---- subcosts ----------------------------------------------------------------------------------------------------------------


def test_subcosts_by_hand() -> None:
    # Class 0: |c| = 5, others sqrt(2) / 10 * (9, 16), own 5 / (2 sqrt(2)). Class 1: |c| = sqrt(2), 1/2 everywhere.
    # Class 2: |c| = 10, others sqrt(2) / 20 * (100, 0), own 10 / (2 sqrt(2)). The largest, 7.07, becomes 7.07 / 8.
    root = math.sqrt(2)
    expected = [[5 / (2 * root), 0.9 * root, 1.6 * root], [0.5, 0.5, 0.5], [5 * root, 0, 10 / (2 * root)]]
    assert subcosts(3, COSTS) * 8 == pytest.approx(np.array(expected), rel=1e-15)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 7, 26])
def test_subcosts_are_a_half_without_costs(n_classes: int) -> None:
    assert (subcosts(n_classes, None) == np.full((n_classes, n_classes), 0.5)).all()
    assert (subcosts(n_classes, 1.0 - np.eye(n_classes)) == 0.5).all()
    assert subcosts(1, np.zeros((1, 1))).tolist() == [[0.5]]


def test_subcosts_bound_the_costs() -> None:
    # The loss is at least the cost of a mistake (eq. 4.6): 2 sqrt(c+_k c-_y) = c_k, and all are in one unit.
    rng = np.random.default_rng(0)
    costs = rng.exponential(size=(5, 5)) * (1 - np.eye(5))
    costs[2] *= 1e-90
    w = subcosts(5, costs)
    bound = 2 * np.sqrt(w * np.diag(w)[:, None]) * (1 - np.eye(5))
    unit = bound[0, 1] / costs[0, 1]
    assert math.frexp(unit)[0] == pytest.approx(0.5, rel=1e-12)
    assert bound / unit == pytest.approx(costs, rel=1e-12)


# ---- rounds ------------------------------------------------------------------------------------------------------------------


def test_rounds_by_hand(backend: Backend) -> None:
    # Classes 0 0 1 2 in a row, 1/2 everywhere. The constant classifier is right on 1, 1/2, 1/2 and wrong on 1, 3/2, 3/2:
    # a_0 = (0, -ln(3) / 2, the same), loss 2 sqrt(right wrong) = 2, sqrt(3), sqrt(3) of 6.
    training = fit(Rebel(1), one_column([0, 0, 1, 2], 3), backend, 2)
    smooth = 1 / layered_tree.SMOOTHING
    a = 0.5 * math.log((0.5 + 2 * smooth) / (1.5 + 2 * smooth))
    assert training.trees[0].values == pytest.approx(np.array([[0, a, a]]), rel=1e-7)
    assert training.history["train_loss"][0] == pytest.approx((2 + 2 * math.sqrt(3)) / 6, rel=1e-6)
    # |right - wrong| = 0, 1, 1 of 6.
    assert training.history["edge"][0] == pytest.approx(2 / 6)
    # Classes 1 and 2 now weigh sqrt(3) / 2 for their row and 1 / (2 sqrt(3)) for each other. The cut after two rows separates
    # class 0; classes 1 and 2 have P = 0, E = 2 / sqrt(3) and T = sqrt(3), so sqrt(T^2 - E^2) = sqrt(5 / 3) is left of each.
    # (The cut after three leaves sqrt(3), sqrt(8 / 3) and 0; that after one sqrt(3), and twice sqrt(3 - 1 / 3).)
    stump = training.trees[1]
    assert (stump.feature.tolist(), stump.cut.tolist()) == ([0], [2])
    t, e = math.sqrt(3), 2 / math.sqrt(3)
    b = 0.5 * math.log(((t + e) / 2 + t * smooth) / ((t - e) / 2 + t * smooth))
    pure = -0.5 * math.log((2 + 2 * smooth) / (2 * smooth))
    assert stump.values == pytest.approx(np.array([[-pure, -b, -b], [pure, b, b]]), rel=1e-3)  # a_0 is smoothed, too
    left = 2 * math.exp(pure) + 2 * math.sqrt(5 / 3)
    assert training.history["train_loss"][1] == pytest.approx(left / 6, rel=1e-3)
    assert training.history["train_error"] == [0.5, 0.25]  # 1 and 2 tie on the right


@pytest.mark.parametrize("costs", [None, COSTS], ids=["uniform", "costs"])
@pytest.mark.parametrize("depth", [1, 3])
def test_loss_is_that_of_the_scores(backend: Backend, depth: int, costs: Floats | None) -> None:
    data = blobs(150, 3, 3, 0)
    data = replace(data, weights=np.random.default_rng(1).uniform(0.1, 1, 150))
    training = fit(Rebel(depth, costs), data, backend, 8)
    f = scores(training.trees, data, backend, data.mapper())
    first = subcosts(data.n_classes, costs)[data.signs.argmax(axis=1)] * data.weights[:, None]  # type: ignore[index]
    assert training.history["train_loss"][-1] == pytest.approx((first * np.exp(-data.signs * f)).sum() / first.sum(), rel=1e-6)


def test_coefficients_are_the_best(backend: Backend) -> None:
    # Moving any coefficient of the last tree either way raises the loss, but for what is smoothed.
    data = blobs(100, 3, 4, 1)
    training = fit(Rebel(2), data, backend, 5)
    before = scores(training.trees[:-1], data, backend, data.mapper())
    last = scores(training.trees[-1:], data, backend, data.mapper())
    w = subcosts(data.n_classes, None)[data.signs.argmax(axis=1)] * np.exp(-data.signs * before)
    gradient = (w * data.signs * np.sign(last) * np.exp(-data.signs * last)).sum(axis=0)
    assert abs(gradient).max() <= 2e-4 * w.sum()
    assert abs(last).min(axis=0) == pytest.approx(abs(last).max(axis=0), rel=1e-15)  # one vector, with two signs


@pytest.mark.slow
def test_two_classes_are_mirrored(backend: Backend) -> None:
    # Appendix 7.3: H_1 = -H_2, here to the last bit.
    training = fit(Rebel(3), blobs(200, 4, 2, 2, noise=2.0), backend, 10)
    assert len(training.trees) == 10
    for tree in training.trees:
        assert tree.values[:, 0].tobytes() == (0.0 - tree.values[:, 1]).tobytes()


def binary_adaboost(x: Floats, y: NDArray[np.int64], n_rounds: int) -> list[Floats]:
    """Binary AdaBoost with the constant first, then stumps: the scores of the rows after every round."""
    cuts = [np.where(x[:, f] <= v, -1.0, 1.0) for f in range(x.shape[1]) for v in np.unique(x[:, f])[:-1]]
    h, found = np.zeros(len(y)), []
    for t in range(n_rounds):
        w = np.exp(-y * h)
        best = max([np.ones(len(y))] if t == 0 else cuts, key=lambda f: abs((w * y * f).sum()))
        edge = (w * y * best).sum() / w.sum()
        more = 2 / layered_tree.SMOOTHING
        h = h + best * 0.5 * np.log((1 + edge + more) / (1 - edge + more))
        found.append(h)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_two_classes_are_binary_adaboost(backend: Backend, seed: int) -> None:
    data = blobs(60, 3, 2, seed, noise=2.0)
    data = data.subset(np.concatenate([np.flatnonzero(data.signs[:, 0] > 0)[:20], np.flatnonzero(data.signs[:, 1] > 0)]))
    training = fit(Rebel(1), data, backend, 8)
    expected = binary_adaboost(data.X, data.signs[:, 1].astype(int), 8)
    for t, h in enumerate(expected, start=1):
        f = scores(training.trees[:t], data, backend, data.mapper())
        assert f[:, 1] == pytest.approx(h, rel=1e-5, abs=1e-6)


@pytest.mark.slow
def test_two_classes_are_our_adaboost(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    # With as many rows of each class a_0 is 0 and left out; with hardly any smoothing the coefficients are the same.
    monkeypatch.setattr(layered_tree, "SMOOTHING", 2**40)
    data = blobs(300, 4, 2, 3, noise=2.0)
    n = int(min((data.signs > 0).sum(axis=0)))
    data = data.subset(np.concatenate([np.flatnonzero(data.signs[:, k] > 0)[:n] for k in (0, 1)]))
    ours = fit(AdaBoostMH(HammingTree(2), "single-label"), data, backend, 12)
    training = fit(Rebel(1), data, backend, 12)
    assert len(training.trees) == 12
    for one, other in zip(training.trees, ours.trees, strict=True):
        assert (one.feature.tolist(), one.cut.tolist()) == (other.feature.tolist(), other.cut.tolist())
        assert one.values == pytest.approx(other.values, rel=1e-6)


# ---- the loss ----------------------------------------------------------------------------------------------------------------


@st.composite
def problems(draw: st.DrawFn) -> tuple[Data, Rebel]:
    n_rows, n_classes = draw(st.integers(2, 30)), draw(st.integers(2, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    X = rng.integers(0, 6, (n_rows, 2)).astype(float)
    X[rng.random(X.shape) < 0.2] = np.nan
    costs = rng.choice([0.0, 0.1, 1.0, 3.0, 100.0], (n_classes, n_classes)) * (1 - np.eye(n_classes))
    costs[0, 1] = 1.0
    labels = rng.integers(0, n_classes, n_rows)
    labels[0] = 0
    weights = [None, rng.uniform(1e-6, 1, n_rows), rng.integers(1, 5, n_rows).astype(float)][draw(st.integers(0, 2))]
    booster = Rebel(draw(st.integers(1, 4)), draw(st.sampled_from([None, costs])), draw(st.sampled_from([0.1, 1.0, 2.0])))
    return Data(X, sign_matrix(labels, n_classes), weights), booster


@pytest.mark.slow
@given(problems())
@settings(deadline=None, max_examples=60)
def test_the_loss_never_rises(problem: tuple[Data, Rebel]) -> None:
    data, booster = problem
    training = fit(booster, data, NumpyBackend(), 6)
    losses = np.array([1.0, *training.history.get("train_loss", [])])
    assert (losses[1:] <= losses[:-1] * (1 + 1e-7)).all()  # the sums are rounded to 30 bits
    assert np.isfinite(losses).all()
    assert all(np.isfinite(tree.values).all() for tree in training.trees)


def test_a_rate_that_overshoots_ends_the_training(backend: Backend) -> None:
    data = blobs(100, 3, 3, 4, noise=2.0)
    losses = fit(Rebel(1, None, 3.0), data, backend, 50).history["train_loss"]
    assert len(losses) < 50
    assert losses == sorted(losses, reverse=True)


# ---- costs -------------------------------------------------------------------------------------------------------------------


def plane(seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Points of three classes in the plane, from overlapping clusters, as in figure 4.3."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(-2, 2, (9, 2))
    cluster = rng.integers(0, 9, 600)
    return centres[cluster] + 0.4 * rng.normal(size=(600, 2)), cluster % 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_costly_false_negatives_are_avoided(seed: int) -> None:
    X, y = plane(seed)
    data = Data(X, sign_matrix(y, 3))
    with cpu_backend() as backend:

        def missed(costs: Floats | None) -> tuple[int, float]:
            training = fit(Rebel(2, costs), data, backend, 101)
            wrong = scores(training.trees, data, backend, data.mapper()).argmax(axis=1) != y
            return int(wrong[y == 1].sum()), float(wrong.mean())

        costs = 1.0 - np.eye(3)
        costs[1] *= 10
        blind, costly = missed(None), missed(costs)
        assert blind[0] > 5
        assert costly[0] == 0
        assert costly[1] > blind[1]  # at the expense of the others


@pytest.mark.parametrize("seed", range(4))
def test_costly_false_positives_are_avoided(seed: int) -> None:
    X, y = plane(seed)
    data = Data(X, sign_matrix(y, 3))
    costs = 1.0 - np.eye(3)
    costs[:, 1] *= 10
    with cpu_backend() as backend:
        training = fit(Rebel(2, costs), data, backend, 101)
        predicted = scores(training.trees, data, backend, data.mapper()).argmax(axis=1)
    assert (y[predicted == 1] == 1).all()
    assert (predicted == 1).sum() > 20


def test_a_row_that_costs_nothing_has_no_influence(backend: Backend) -> None:
    data = blobs(120, 3, 4, 5)
    costs = np.random.default_rng(0).uniform(0.5, 2, (4, 4)) * (1 - np.eye(4))
    costs[2] = 0
    paid = np.flatnonzero(data.signs[:, 2] < 0)
    mapper = data.mapper()
    trainings = []
    for rows in (np.arange(120), paid):
        trainings.append(train(Rebel(2, costs), data.subset(rows).on(backend, mapper), n_rounds=8))
    one, other = trainings
    assert [tree.feature.tolist() for tree in one.trees] == [tree.feature.tolist() for tree in other.trees]
    assert np.concatenate([t.values for t in one.trees]) == pytest.approx(
        np.concatenate([t.values for t in other.trees]), rel=1e-5
    )


def test_what_is_free_stays_free(backend: Backend) -> None:
    # Nobody pays for a 2: class 2 has weight only from its own rows, and no other row ever gets any.
    costs = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    data = blobs(90, 2, 3, 6)
    booster = Rebel(2, costs)
    problem = data.on(backend)
    state = booster.row_state(problem)
    assert len(list(itertools.islice(booster.rounds(problem, state, 0), 10))) == 10
    w = np.array(backend.get(state.state))
    own = data.signs > 0
    assert ((w > 0) == (own | (np.arange(3) < 2))).all()


# ---- beginnings and ends -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("costs", [None, COSTS], ids=["uniform", "costs"])
def test_a_continued_training_is_one_long_training(backend: Backend, costs: Floats | None) -> None:
    data, booster = blobs(80, 3, 3, 2), Rebel(2, costs, 0.5)
    long = fit(booster, data, backend, 8)
    for n in (0, 1, 4):
        half = fit(booster, data, backend, n) if n else None
        initial_rounds, history = (half.rounds, half.history) if half else ((), None)
        continued = fit(booster, data, backend, 8, initial_rounds=initial_rounds, history=history)
        assert trees_of(continued) == trees_of(long)


def test_weight_two_is_a_row_twice(backend: Backend) -> None:
    data = blobs(60, 3, 3, 1)
    weights = np.where(np.arange(60) % 3 == 0, 2.0, 1.0)
    twice = data.subset(np.repeat(np.arange(60), weights.astype(int)))
    booster = Rebel(3, COSTS)
    assert trees_of(fit(booster, replace(data, weights=weights), backend, 5)) == trees_of(fit(booster, twice, backend, 5))


@pytest.mark.slow
def test_smallest_leaves(backend: Backend) -> None:
    data = blobs(200, 3, 3, 7)
    free, bound = (fit(Rebel(4, None, 1.0, share), data, backend, 6) for share in (0.0, 0.2))
    problem = data.on(backend)

    def smallest(training: Any) -> float:
        leaves = [np.bincount(np.array(backend.get(backend.apply(tree, problem.data)))) for tree in training.trees]
        return min(int(n.min()) for n in leaves) / 200

    assert smallest(free) < 0.05
    assert smallest(bound) >= 0.2


def test_what_ends_a_training(backend: Backend) -> None:
    perfect = fit(Rebel(1), one_column([0, 0, 1, 1], 2), backend, 10)
    assert (len(perfect.trees), perfect.reason) == (1, "the weak learner has nothing left to learn")  # without an a_0
    assert fit(Rebel(1), one_column([0, 0, 1, 1], 2), backend, 12, initial_rounds=perfect.rounds).trees == perfect.trees
    # Rows that cannot be told apart: the shares of the classes are all there is to learn, once.
    twins = Data(np.zeros((3, 1)), sign_matrix([0, 0, 1], 2))
    assert 1 <= len(fit(Rebel(2), twins, backend, 10).trees) < 10
    # One class alone has costs: always predicting it costs nothing.
    costs = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    training = fit(Rebel(2, costs), blobs(50, 2, 3, 8), backend, 10)
    assert len(training.trees) == 1
    assert training.trees[0].values.argmax() == 0
    # Several classes are never all perfect, and the margins grow.
    assert len(fit(Rebel(2), one_column([0, 1, 2, 3], 4), backend, 10).trees) == 10

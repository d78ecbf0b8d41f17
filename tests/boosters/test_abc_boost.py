"""MART, LogitBoost and ABC-Boost: rounds worked by hand, a brute-force search, identities, and what ends a training."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.abc_boost import ABCBoost, class_pairs
from gpuboost.boosters.base import Round
from gpuboost.training import Training
from tests.problems import Data, blobs, digest, fit, rounds_of, scores, sign_matrix

METHODS = {"mart": ("mart", None), "logit": ("logit", None), "abc-mart": ("mart", "search"), "abc-logit": ("logit", "search")}


def booster(method: str, **options: Any) -> ABCBoost:
    loss, base_class = METHODS[method]
    own = {"gap": 1, "n_candidates": None, "max_leaf_nodes": 4, "min_samples_leaf": 1, "learning_rate": 0.1}
    return ABCBoost(loss=loss, base_class=base_class, **(own | options))  # type: ignore[arg-type]


def rounds(one: ABCBoost, data: Data, n: int, backend: Backend | None = None) -> list[Round]:
    problem = data.on(backend or NumpyBackend())
    return [step for step, _ in zip(rounds_of(one, problem), range(n), strict=False)]


def line(labels: list[int], n_classes: int, weights: NDArray[np.float64] | None = None) -> Data:
    return Data(np.arange(len(labels), dtype=float)[:, None], sign_matrix(labels, n_classes), weights)


# ---- by hand -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["mart", "logit"])
def test_first_round_without_base_class_by_hand(backend: Backend, method: str) -> None:
    # Rows 0 0 1 2 with p = 1/3. Class 0: g = (2/3, 2/3, -1/3, -1/3), h = 2/9 each: cut after row 1, steps
    # nu (2/3) (4/3) / (4/9) = 2 nu and nu (2/3) (-2/3) / (4/9) = -nu. Class 2: cut after row 2, -nu and 2 nu. Class 1 gains
    # 1/6 with one row (the third is alone on no side of one cut): after row 1 or after row 2 it is the same, so the lower.
    (step,) = rounds(booster(method, max_leaf_nodes=2), line([0, 0, 1, 2], 3), 1, backend)
    assert [grown.tree.cut.tolist() for grown in step.trees] == [[2], [2], [3]]
    values = [grown.tree.values for grown in step.trees]
    assert values[0] == pytest.approx(0.1 * np.array([[2.0, 0, 0], [-1, 0, 0]]), rel=1e-7)
    assert values[1] == pytest.approx(0.1 * np.array([[0, -1.0, 0], [0, 0.5, 0]]), rel=1e-7)
    assert values[2] == pytest.approx(0.1 * np.array([[0, 0, -1.0], [0, 0, 2]]), rel=1e-7)
    f = np.array([[0.2, -0.1, -0.1], [0.2, -0.1, -0.1], [-0.1, 0.05, -0.1], [-0.1, 0.05, 0.2]])
    loss = sum(math.log(np.exp(row - row[y]).sum()) for row, y in zip(f, [0, 0, 1, 2], strict=True))
    assert step.loss == pytest.approx(loss / (4 * math.log(3)), rel=1e-7)


def test_first_round_with_a_base_class_by_hand(backend: Backend) -> None:
    # The same rows with base class 0: for class 1 g = (-1, -1, 1, 0), h = 2/9 + 2/9 + 2/9; cut after row 1: steps
    # nu (-2) / (4/3) = -1.5 nu and nu 1 / (4/3) = 0.75 nu. For class 2 g = (-1, -1, 0, 1): the same gain after rows 1 and 2
    # (4/2 + 1/2 against 4/3 + 1, times 3/2)... the former is larger.
    one = ABCBoost("logit", 0, 1, None, 2, 1, 0.1)
    (step,) = rounds(one, line([0, 0, 1, 2], 3), 1, backend)
    assert [grown.tree.cut.tolist() for grown in step.trees] == [[2], [2]]
    assert step.trees[0].tree.values == pytest.approx(0.1 * np.array([[1.5, -1.5, 0], [-0.75, 0.75, 0]]), rel=1e-7)
    assert step.trees[1].tree.values == pytest.approx(0.1 * np.array([[1.5, 0, -1.5], [-0.75, 0, 0.75]]), rel=1e-7)
    assert step.metrics["base_class"] == 0


def test_two_classes_have_one_tree(backend: Backend) -> None:
    # Two-class LogitBoost: the log-odds get nu sum(r - p) / sum(p (1 - p)), half of it by each score: rows 0 1 1, cut after the
    # first: nu (-1/2) / (1/4) = -2 nu and 2 nu.
    for method in METHODS:
        (step,) = rounds(booster(method, max_leaf_nodes=2), line([0, 1, 1], 2), 1, backend)
        (grown,) = step.trees
        assert grown.tree.values == pytest.approx(0.1 * np.array([[1.0, -1], [-1, 1]]), rel=1e-7)


def test_pairs_of_classes() -> None:
    assert class_pairs(3, []).tolist() == [[-1, 0], [-1, 1], [-1, 2]]
    assert class_pairs(4, [1]).tolist() == [[0, 1], [1, 2], [1, 3]]
    assert len(class_pairs(9, range(9))) == 36
    assert class_pairs(4, [0, 2]).tolist() == [[0, 1], [0, 2], [0, 3], [1, 2], [2, 3]]
    assert class_pairs(2, []).tolist() == class_pairs(2, [1]).tolist() == [[0, 1]]


# ---- the search --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logit", "mart"])
@pytest.mark.parametrize("n_classes", [3, 4, 5])
def test_search_against_brute_force(loss: Any, n_classes: int) -> None:
    # Train with every class as the fixed base for a round, and take the one with the lowest loss; round after round.
    data = blobs(90, 3, n_classes, seed=3)
    found = rounds(ABCBoost(loss, "search", 1, None, 5, 2, 0.3), data, 4)
    problem = data.on(NumpyBackend())
    initial_rounds: list[Any] = []
    for step in found:
        tried = [next(rounds_of(ABCBoost(loss, b, 1, None, 5, 2, 0.3), problem, initial_rounds)) for b in range(n_classes)]
        losses = [one.loss for one in tried]
        best = int(np.argmin(losses))
        assert step.metrics["base_class"] == best
        assert step.metrics["candidate_losses"] == pytest.approx(losses, rel=1e-7)
        assert step.loss == losses[best]
        trees = [grown.tree for grown in step.trees]
        assert digest(trees, n_classes) == digest([grown.tree for grown in tried[best].trees], n_classes)
        initial_rounds.append(trees)


@pytest.mark.slow
def test_gap_and_fixed_base(backend: Backend) -> None:
    data = blobs(80, 3, 4, seed=4)
    plain = fit(booster("abc-logit"), data, backend, 9).history
    gap = fit(booster("abc-logit", gap=4), data, backend, 9).history
    assert [bool(losses) for losses in gap["candidate_losses"]] == [True, False, False, False] * 2 + [True]
    assert gap["base_class"][0] == plain["base_class"][0]
    for first in (0, 4):
        assert len(set(gap["base_class"][first : first + 4])) == 1
    fixed = fit(ABCBoost("logit", 2, 1, None, 4, 1, 0.1), data, backend, 3).history
    assert fixed["base_class"] == [2, 2, 2]


@pytest.mark.slow
def test_candidates_are_the_classes_with_the_largest_losses(backend: Backend) -> None:
    data = blobs(80, 3, 5, seed=5)
    first, *_ = rounds(booster("abc-mart", n_candidates=2), data, 1, backend)
    sizes = (data.signs > 0).sum(axis=0)  # at first every row has the same loss
    assert len(first.metrics["candidate_losses"]) == 2  # type: ignore[arg-type]
    assert first.metrics["base_class"] in np.argsort(-sizes, kind="stable")[:2]
    everything = fit(booster("abc-mart"), data, backend, 5)
    assert digest(fit(booster("abc-mart", n_candidates=5), data, backend, 5).trees, 5) == digest(everything.trees, 5)


# ---- identities --------------------------------------------------------------------------------------------------------------


def training_digest(training: Training, n_classes: int) -> str:
    return digest(training.trees, n_classes)


@pytest.mark.parametrize("method", METHODS)
def test_weight_two_is_the_row_twice(backend: Backend, method: str) -> None:
    data, one = blobs(60, 3, 3, seed=6), booster(method, min_samples_leaf=4)
    times = np.random.default_rng(6).integers(1, 4, 60)
    times[0] = 1
    weighted = fit(one, Data(data.X, data.signs, times.astype(float)), backend, 6)
    repeated = fit(one, data.subset(np.repeat(np.arange(60), times)), backend, 6)
    assert training_digest(weighted, 3) == training_digest(repeated, 3)
    assert weighted.history["train_loss"] == repeated.history["train_loss"]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("gap", [1, 3])
def test_continuing_is_one_long_training(backend: Backend, method: str, gap: int) -> None:
    data = blobs(70, 3, 4, seed=7)
    data = Data(data.X, data.signs, np.random.default_rng(7).uniform(0.2, 1.0, 70))
    long = fit(booster(method, gap=gap), data, backend, 8, evaluation=blobs(30, 3, 4, seed=8))
    for k in (1, 4, 7):
        base = long.history["base_class"][k - 1]
        one = booster(method, gap=gap, first_base=0 if math.isnan(base) else int(base))
        before = {key: values[:k] for key, values in long.history.items()}
        more = fit(one, data, backend, 8, evaluation=blobs(30, 3, 4, seed=8), initial_rounds=long.rounds[:k], history=before)
        assert training_digest(more, 4) == training_digest(long, 4)
        for key in ("train_loss", "valid_loss", "train_error", "valid_error"):
            assert more.history[key] == long.history[key]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_loss_and_scores_agree(backend: Backend, method: str) -> None:
    data = blobs(60, 3, 3, seed=9)
    result = fit(booster(method), data, backend, 12)
    f, y = scores(result.trees, data, backend, data.mapper()), data.signs.argmax(axis=1)
    loss = np.log(np.exp(f - f[np.arange(60), y][:, None]).sum(axis=1)).sum() / (60 * math.log(3))
    assert result.history["train_loss"][-1] == pytest.approx(loss, rel=1e-8)
    assert np.diff([1.0, *result.history["train_loss"]]).max() < 0
    if "abc" in method:
        assert np.abs(f.sum(axis=1)).max() < 1e-12  # the sum-to-zero constraint


def test_smallest_leaf(backend: Backend) -> None:
    data = blobs(90, 3, 3, seed=10)
    for step in rounds(booster("abc-logit", min_samples_leaf=13, max_leaf_nodes=9), data, 3, backend):
        for grown in step.trees:
            leaf_index = np.array(backend.get(backend.apply(grown.tree, data.on(backend).data)))
            assert np.bincount(leaf_index, minlength=grown.tree.n_leaves).min() >= 13


# ---- ends and edges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_separable_rows_end_the_training(backend: Backend, method: str) -> None:
    data = line([0, 0, 1, 1, 2, 2], 3)
    result = fit(booster(method, learning_rate=1.0), data, backend, 2000)
    assert result.reason == "the weak learner has nothing left to learn"
    assert 5 < len(result.rounds) < 500
    assert result.history["train_error"][-1] == 0
    assert result.history["train_loss"][-1] < 1e-9
    assert np.isfinite(scores(result.trees, data, backend, data.mapper())).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_perfect_fit_with_contradictions_stays_finite(backend: Backend, method: str) -> None:
    # The last two rows are equal and have different labels: the loss cannot fall below 2 ln 2, and nothing becomes NaN.
    data = Data(np.array([[0.0], [1], [2], [3], [3]]), sign_matrix([0, 1, 2, 0, 1], 3))
    result = fit(booster(method, learning_rate=1.0), data, backend, 300)
    assert len(result.rounds) == 300
    assert result.history["train_loss"][-1] == pytest.approx(2 * math.log(2) / (5 * math.log(3)), rel=1e-3)
    assert np.isfinite(scores(result.trees, data, backend, data.mapper())).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_a_class_without_rows_and_one_with_a_single_row(backend: Backend, method: str) -> None:
    data = blobs(50, 2, 3, seed=11)
    signs = np.full((50, 5), -1, np.int8)
    signs[:, :3] = data.signs
    signs[0] = [-1, -1, -1, 1, -1]  # class 3 has one row, class 4 none
    data = Data(data.X, signs, max_bins=16)
    result = fit(booster(method, min_samples_leaf=10), data, backend, 40)
    f = scores(result.trees, data, backend, data.mapper())
    assert np.isfinite(f).all()
    assert (f.argmax(axis=1) != 4).all()


def test_steps_are_limited() -> None:
    one = booster("logit", learning_rate=1000.0)
    gradient, curvature = np.array([[1 << 20, -(1 << 20), 5, 0]]), np.array([[1, 1, 0, 7]])
    steps = one.steps(gradient, curvature, 0, 4, has_base=True)
    assert steps.tolist() == [[20.0, -20.0, 0.0, 0.0]]  # 80 for a row of four trees
    assert booster("logit").steps(gradient, curvature, 0, 4, has_base=True).tolist() == [[5.0, -5.0, 0.0, 0.0]]

"""Scores and probabilities: finite, consistent, and those of the best round."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import log_loss

from gpuboost import AdaBoostMHClassifier
from tests.traps.problem import NOISY, VARIANTS, X, Y, digest, make


@pytest.mark.parametrize("rate", [1.0, 3.0, 10.0])
@pytest.mark.parametrize("params", VARIANTS, ids=str)
def test_large_steps_do_no_harm(params: dict[str, Any], rate: float) -> None:
    iris, y = load_iris(return_X_y=True)
    model = make(100, learning_rate=rate, **params).fit(iris, y)
    for quantity in (model.ensemble_.values, model.predict_proba(iris), model.feature_importances_):
        assert np.isfinite(quantity).all()
    scores = [float(np.mean(stage == y)) for stage in model.staged_predict(iris)]
    assert min(scores) >= 0.6  # no round makes it a model of one class
    assert scores[-1] >= scores[0]


@pytest.mark.slow
@pytest.mark.parametrize("params", VARIANTS, ids=str)
def test_many_rounds_stay_finite(params: dict[str, Any]) -> None:
    model = make(2000, **params).fit(X, NOISY)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.history_["train_error"][-1] <= model.history_["train_error"][0]


def test_a_column_that_is_always_right() -> None:
    """Weights of a class that is never wrong shrink, and do not vanish; a perfect learner ends the discrete variant."""
    y = np.where(X[:, 0] > 0, 2, (X[:, 1] > 0).astype(int))
    y[:3] = 2 - y[:3]
    model = make(500, learner="stump").fit(np.c_[X, 1e6 * (y == 2)], y)
    assert np.isfinite(model.predict_proba(np.c_[X, 1e6 * (y == 2)])).all()
    assert make(variant="discrete").fit(X[:, :1], Y > 0).n_estimators_ == 1


@pytest.mark.parametrize("params", VARIANTS, ids=str)
@pytest.mark.parametrize("n_rows", [5, 100, 2000])
def test_one_row_against_many_is_learnt(n_rows: int, params: dict[str, Any]) -> None:
    """Every cut is perfect, but the smoothing of a leaf with a single row of many leans towards the others at first."""
    last = np.arange(n_rows) == n_rows - 1
    rows = np.where(last, 100, np.arange(n_rows) % 100)[:, None]  # a bin of its own
    assert np.array_equal(make(3, **params).fit(rows, last).predict(rows), last)


def stages(model: AdaBoostMHClassifier, data: Any) -> Iterator[Any]:
    """The predictions, probabilities and scores after each tree."""
    generators = model.staged_predict(data), model.staged_predict_proba(data), model.staged_decision_function(data)
    return zip(*generators, strict=True)


@pytest.mark.parametrize("params", VARIANTS, ids=str)
def test_predict_is_the_argmax_of_the_probabilities(params: dict[str, Any]) -> None:
    digits, y = load_digits(return_X_y=True)
    digits, y = digits[:300], y[:300]
    model = make(20, **params).fit(digits, y)
    for labels, p, scores in stages(model, digits):
        assert np.array_equal(model.classes_[p.argmax(axis=1)], labels)
        assert np.array_equal(model.classes_[scores.argmax(axis=1)], labels)
        assert p.min() >= 0
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.array_equal(labels, model.predict(digits))
    assert np.array_equal(p, model.predict_proba(digits))
    assert np.array_equal(scores, model.decision_function(digits))


@pytest.mark.parametrize("params", VARIANTS, ids=str)
def test_two_classes_have_one_score(params: dict[str, Any]) -> None:
    y = np.where(NOISY > 0, "yes", "no")
    model = make(20, **params).fit(X, y)
    for labels, p, score in stages(model, X):
        assert score.shape == (120,)
        assert np.array_equal(np.where(score > 0, "yes", "no"), labels)
        assert np.array_equal(model.classes_[p.argmax(axis=1)], labels)


@pytest.mark.parametrize("params", VARIANTS, ids=str)
def test_classes_that_tie_exactly(params: dict[str, Any]) -> None:
    """Every row stands twice, with swapped labels: nothing tells the classes apart, and the first one wins."""
    twice, y = np.r_[X, X], np.r_[np.where(Y > 0, 5, 8), np.where(Y > 0, 8, 5)]
    model = make(**params).fit(twice, y)
    assert (model.predict(X) == 5).all()
    assert np.array_equal(model.predict_proba(X), np.full((120, 2), 0.5))
    three = make(**params).fit(np.r_[twice, X + 100], np.r_[y, np.full(120, 9)])
    assert np.array_equal(three.classes_[three.predict_proba(X).argmax(axis=1)], three.predict(X))
    assert (three.predict(X) == 5).all()


@pytest.mark.parametrize(
    "params", [{"learning_rate": 10.0}, {"variant": "discrete", "learning_rate": 10.0}, {"learner": "stump"}]
)
def test_extreme_scores_give_probabilities(params: dict[str, Any]) -> None:
    """300 classes of three rows each, and scores pushed to hundreds."""
    rng = np.random.default_rng(7)
    data, y = rng.normal(size=(900, 2)), np.arange(900) % 300
    model = make(12, **params).fit(data, y)
    p = model.predict_proba(data)
    assert p.min() > 0
    assert p.max() <= 1
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.array_equal(p.argmax(axis=1), model.predict(data))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(log_loss(y, p))
    assert np.isfinite(np.log(p)).all()


@pytest.fixture(scope="module")
def shuffled() -> NDArray[np.int64]:
    return np.random.default_rng(9).permutation(NOISY[80:])


@pytest.mark.parametrize("stop", ["patience", "smoothed"])
def test_predict_uses_the_best_round(stop: str, shuffled: NDArray[np.int64]) -> None:
    model = make(70, early_stopping=stop, learner="stump").fit(X[:80], NOISY[:80], eval_set=(X[80:], shuffled))
    errors = np.array(model.history_["valid_error"])
    best = model.n_estimators_
    if stop == "patience":
        assert best == errors.argmin() + 1
        assert len(errors) == min(70, best + 50)
    assert model.ensemble_.n_trees == best < len(errors)
    assert float(np.mean(model.predict(X[80:]) != shuffled)) == errors[best - 1]
    *_, last = model.staged_predict_proba(X)
    assert np.array_equal(last, model.predict_proba(X))
    plain = make(best, learner="stump").fit(X[:80], NOISY[:80])
    assert digest(pickle.loads(pickle.dumps(model))) == digest(model) == digest(plain)
    assert digest(clone(model).fit(X[:80], NOISY[:80], eval_set=(X[80:], shuffled))) == digest(model)


def test_a_longer_patience_is_never_worse(shuffled: NDArray[np.int64]) -> None:
    errors = []
    for patience in (1, 3, 10, 30, 1000):
        model = make(40, early_stopping="patience", n_iter_no_change=patience, learner="stump")
        model.fit(X[:80], NOISY[:80], eval_set=(X[80:], shuffled))
        assert len(model.history_["valid_error"]) == min(40, model.n_estimators_ + patience)
        errors.append(model.history_["valid_error"][model.n_estimators_ - 1])
    assert errors == sorted(errors, reverse=True)


def test_ties_of_the_validation_error_go_to_the_first_round() -> None:
    model = make(20, early_stopping="patience", n_iter_no_change=6, learner="stump", variant="discrete").fit(
        X, NOISY, eval_set=(np.full((5, 3), np.nan), [0] * 5)
    )
    assert len(set(model.history_["valid_error"])) == 1
    assert model.n_estimators_ == 1
    assert len(model.history_["valid_error"]) == 7
    assert model.stop_reason_ == "early stopping"

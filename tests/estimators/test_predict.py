"""Predictions through the estimator: probabilities, multi-label problems, blocks, importances."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from gpuboost import AdaBoostMHClassifier
from gpuboost.boosters import adaboost_mh
from gpuboost.estimators import predictor
from gpuboost.links import independent, normalised
from tests.traps.problem import METHODS, NOISY, X, digest, make

INDICATORS = np.c_[NOISY == 0, NOISY > 0, X[:, 1] > 0].astype(int)


def sigmoid(x: float) -> float:
    return 1.0 / (1.0 + math.exp(-x))


@pytest.mark.parametrize(("initial", "offset"), [("auto", math.log(2)), ("single-label", math.log(2)), ("uniform", 0.0)])
def test_probabilities_are_sigmoids_of_scores_divided_by_their_sum(initial: str, offset: float) -> None:
    model = make(initial_weights=initial).fit(X, NOISY)
    for scores, p in zip(model.decision_function(X[:20]), model.predict_proba(X[:20]), strict=True):
        each = [sigmoid(2 * f - offset) for f in scores]
        np.testing.assert_allclose(p, np.array(each) / sum(each), rtol=1e-13)


FIVE, NNYYN = [[0.0], [0.0], [1.0], [1.0], [1.0]], ["n", "n", "y", "y", "n"]


def test_one_round_of_two_classes_by_hand() -> None:
    """A stump that is wrong on one of five rows has the edge 3/5, the coefficient ln(2), and odds of 4 to 1."""
    model = make(1, learner="stump", variant="discrete").fit(FIVE, NNYYN)
    assert model.history_["edge"] == [0.6]
    assert model.history_["train_error"] == [0.2]
    np.testing.assert_allclose(model.history_["train_loss"], [0.8], rtol=1e-9)  # sqrt(1 - 0.6**2)
    np.testing.assert_allclose(model.decision_function([[0.0], [1.0]]), [-2 * math.log(2), 2 * math.log(2)], rtol=1e-15)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]]), [[0.8, 0.2], [0.2, 0.8]], rtol=1e-14)


def test_one_round_of_the_real_variant_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a smoothing of 1/5, a class that has 3 or 2 of the 5 weights for it gets 2 more in these shares: 6/5 and 4/5.

    The odds of "n" are (2 + 6/5) : 4/5 = 4 : 1 on the left and (1 + 6/5) : (2 + 4/5) = 11 : 14 on the right, those of "y" the
    reverse. The probabilities are just that, and the loss is made of the roots: 2 of the rows are right on the left, on the
    right 2 are right and 1 is wrong.
    """
    monkeypatch.setattr(adaboost_mh, "SMOOTHING", 5)
    model = make(1, learner="stump").fit(FIVE, NNYYN)
    assert model.history_["edge"] == [0.6]
    np.testing.assert_allclose(model.decision_function([[0.0], [1.0]]), [-math.log(4), math.log(14 / 11)], rtol=1e-7)
    np.testing.assert_allclose(model.predict_proba([[0.0], [1.0]]), [[4 / 5, 1 / 5], [11 / 25, 14 / 25]], rtol=1e-8)
    loss = (2 * math.sqrt(1 / 4) + 2 * math.sqrt(11 / 14) + math.sqrt(14 / 11)) / 5
    np.testing.assert_allclose(model.history_["train_loss"], [loss], rtol=1e-8)


SCORE = st.floats(-2000, 2000) | st.sampled_from([0.0, 1e-300])
ROWS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 6)),
    elements=SCORE,
)


@given(ROWS)
def test_any_scores_give_probabilities_that_agree_with_them(scores: np.ndarray) -> None:
    model = AdaBoostMHClassifier()
    model.initial_weights_ = "single-label"
    log_p = model._log_probabilities(scores)
    p = normalised(log_p, scores.argmax(axis=1))
    assert np.array_equal(p.argmax(axis=1), scores.argmax(axis=1))
    assert p.min() > 0
    assert p.max() <= 1
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    q = independent(model._log_probabilities(scores), scores > 0)
    assert np.array_equal(q > 0.5, scores > 0)
    assert q.min() > 0
    assert q.max() <= 1


def test_a_reversed_last_bit_is_repaired() -> None:
    p = normalised(np.log([[0.5, 0.5], [0.3, 0.7]]), np.array([1, 1]))
    assert p[0].tolist() == [0.5, np.nextafter(0.5, 1.0)]
    np.testing.assert_allclose(p[1], [0.3, 0.7], rtol=1e-15)


def test_multi_label_problems() -> None:
    model = make(12).fit(X, INDICATORS, eval_set=(X, INDICATORS))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.multi_label_
    assert model.initial_weights_ == "uniform"
    labels, p, scores = model.predict(X), model.predict_proba(X), model.decision_function(X)
    assert labels.dtype == np.int64
    assert labels.shape == INDICATORS.shape
    assert np.array_equal(labels, scores > 0)
    assert np.array_equal(labels, p > 0.5)
    np.testing.assert_allclose(p, [[sigmoid(2 * f) for f in row] for row in scores], rtol=1e-13)
    assert model.score(X, INDICATORS) == np.mean((labels == INDICATORS).all(axis=1))
    np.testing.assert_allclose(model.history_["train_error"][-1], np.mean(labels != INDICATORS))
    assert model.history_["valid_error"] == model.history_["train_error"]


def test_two_label_columns_have_two_scores() -> None:
    model = make().fit(X, INDICATORS[:, 1:].astype(float))
    assert model.decision_function(X).shape == (120, 2)
    assert model.predict(X).shape == (120, 2)


def test_an_indicator_of_one_label_a_row_is_a_uniform_single_label_problem() -> None:
    one_hot = NOISY[:, None] == np.arange(3)
    assert digest(make().fit(X, one_hot)) == digest(make(initial_weights="uniform").fit(X, NOISY))
    with pytest.raises(ValueError, match="needs one label a row, but y is an indicator matrix"):
        make(initial_weights="single-label").fit(X, one_hot)


def test_blocks_of_rows_do_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make().fit(X, NOISY)
    whole = [model.predict(X), model.predict_proba(X), model.decision_function(X)]
    monkeypatch.setattr(predictor, "BLOCK_BYTES", 7 * (3 + 8 * 3))  # 7 rows
    for a, b in zip(whole, [model.predict(X), model.predict_proba(X), model.decision_function(X)], strict=True):
        assert np.array_equal(a, b)
    monkeypatch.setattr(predictor, "BLOCK_BYTES", 1)
    assert np.array_equal(model.predict(X[:5]), whole[0][:5])


def test_stages_are_models_of_fewer_rounds() -> None:
    model = make(5).fit(X, NOISY)
    for n, (labels, p) in enumerate(zip(model.staged_predict(X), model.staged_predict_proba(X), strict=True), start=1):
        shorter = make(n).fit(X, NOISY)
        assert np.array_equal(labels, shorter.predict(X))
        assert np.array_equal(p, shorter.predict_proba(X))
    assert n == 5
    kept = list(model.staged_decision_function(X))  # stages are copies
    assert not np.array_equal(kept[0], kept[1])


def test_importances_are_shares_of_the_edge() -> None:
    model = make().fit(X, NOISY)
    gains = np.zeros(3)
    for tree in model.ensemble_.trees():
        for feature, gain in zip(tree.feature, tree.gain, strict=True):
            gains[feature] += gain
    np.testing.assert_allclose(model.feature_importances_, gains / gains.sum(), rtol=1e-12)
    assert model.feature_importances_.argmax() == 0


def test_the_score_takes_weights_and_unknown_labels() -> None:
    model = make().fit(X, NOISY)
    right = model.predict(X) == NOISY
    assert model.score(X, NOISY) == right.mean()
    np.testing.assert_allclose(model.score(X, NOISY, np.arange(120)), np.average(right, weights=np.arange(120)), rtol=1e-12)
    other = np.where(np.arange(120) < 60, 99, NOISY)
    assert model.score(X, other) == right[60:].sum() / 120


@pytest.mark.parametrize("method", [*METHODS, "score"])
def test_an_estimator_that_is_not_fitted(method: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(make(), method)(*((X, NOISY) if method == "score" else (X,)))
    with pytest.raises(NotFittedError):
        _ = make().feature_importances_


def test_a_score_of_zero_predicts_no_label() -> None:
    """Every row stands twice, the second time with the other labels: all scores are 0."""
    model = make().fit(np.r_[X, X], np.r_[INDICATORS, 1 - INDICATORS])
    assert not model.predict(X).any()
    assert (model.predict_proba(X) == 0.5).all()


@pytest.mark.parametrize("method", ["staged_predict", "staged_predict_proba", "staged_decision_function"])
def test_stages_are_of_the_model_that_was_asked(method: str) -> None:
    model = make().fit(X, NOISY)
    expected = list(getattr(model, method)(X))
    stages = getattr(model, method)(X)
    found = [next(stages)]
    model.fit(X, NOISY == 1)  # other classes, other trees
    found += stages
    assert [stage.tobytes() for stage in found] == [stage.tobytes() for stage in expected]


def test_scores_of_labels_that_are_no_classes() -> None:
    model = make(2).fit(X, NOISY)
    with pytest.warns(UserWarning, match="no label of y is a class of the model, whose classes are"):
        assert model.score(X, np.full(len(X), "other")) == 0.0

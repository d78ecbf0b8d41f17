"""RebelClassifier: its cost matrix, what it has no probabilities for, and the traps that costs bring."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score

import gpuboost
from gpuboost import AdaBoostMHClassifier, RebelClassifier, cost_scorer, mean_cost
from tests.traps.problem import NOISY, X, Y

NAMES = np.array(["north", "south", "west"])
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
TABLE = {str(t): dict(zip(NAMES.tolist(), row, strict=True)) for t, row in zip(NAMES, COSTS.tolist(), strict=True)}
FREE = np.array([[0.0, 1.0, 4.0], [0.0, 0.0, 0.0], [9.0, 3.0, 0.0]])


def make(**params: Any) -> RebelClassifier:
    return RebelClassifier(**{"n_estimators": 8, "device": "cpu", "n_jobs": 1, **params})


def digest(model: RebelClassifier) -> str:
    return model.ensemble_.digest()


# ---- costs -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [COSTS, COSTS.tolist(), TABLE, pd.DataFrame(COSTS, NAMES, NAMES)])
def test_all_forms_of_a_cost_matrix(given: Any) -> None:
    labels = NAMES[NOISY]
    model = make(cost_matrix=given).fit(X, labels)
    assert digest(model) == digest(make(cost_matrix=COSTS).fit(X, labels))
    assert digest(model) != digest(make().fit(X, labels))
    assert model.cost_matrix_.tolist() == COSTS.tolist()
    assert model.expected_cost(X, labels) == pytest.approx(mean_cost(labels, model.predict(X), TABLE), rel=1e-14)


def test_costs_by_label_find_their_classes() -> None:
    # The same costs, written down in another order.
    turned = {t: dict(reversed(row.items())) for t, row in reversed(TABLE.items())}
    assert digest(make(cost_matrix=turned).fit(X, NAMES[NOISY])) == digest(make(cost_matrix=TABLE).fit(X, NAMES[NOISY]))


@pytest.mark.parametrize("unit", [2.0**-40, 8.0, 1e-90])
def test_the_unit_of_the_costs_does_not_matter(unit: float) -> None:
    one, other = make(cost_matrix=COSTS).fit(X, NOISY), make(cost_matrix=COSTS * unit).fit(X, NOISY)
    assert one.decision_function(X) == pytest.approx(other.decision_function(X), abs=1e-6)
    assert other.history_["train_cost"] == pytest.approx([unit * cost for cost in one.history_["train_cost"]], rel=1e-12)


@pytest.mark.parametrize("unit", [1.0, 3.0, 1e-7])
def test_equal_costs_are_no_costs(unit: float) -> None:
    model = make(cost_matrix=unit * (1 - np.eye(3))).fit(X, NOISY)
    assert model.cost_matrix_ is None
    assert digest(model) == digest(make().fit(X, NOISY))
    assert np.array_equal(model.predict_proba(X), make().fit(X, NOISY).predict_proba(X))


@pytest.mark.parametrize(
    ("costs", "message"),
    [
        (COSTS[:2], r"the shape \(3, 3\), got the shape \(2, 3\)"),
        (-COSTS, "not negative"),
        (COSTS + 1, "must be 0, as the right class costs nothing"),
        (np.zeros((3, 3)), "zero everywhere"),
        ({"north": {"south": 1}, "south": {"north": 1}}, "has no costs for the class 'west'"),
    ],
)
def test_costs_that_are_none(costs: Any, message: str) -> None:
    model = make(cost_matrix=costs)
    with pytest.raises(ValueError, match=message):
        model.fit(X, NAMES[NOISY])
    assert not hasattr(model, "classes_")


def test_a_class_that_costs_nothing_to_miss_has_no_influence() -> None:
    """Neither on the bins, nor on the leaves, nor on the counts: its rows may be anywhere."""
    moved = np.where((NOISY == 1)[:, None], 1e6 * X, X)
    for params in ({}, {"max_bins": 5}, {"min_weight_fraction_leaf": 0.1}):
        with pytest.warns(UserWarning, match=r"missing the classes \[1\] costs nothing"):
            one, other = (make(cost_matrix=FREE, **params).fit(rows, NOISY) for rows in (X, moved))
        assert digest(one) == digest(other)
        assert one.classes_.tolist() == [0, 1, 2]
    assert set(one.predict(X[NOISY != 1])) <= {0, 1, 2}


def test_costly_mistakes_become_rare() -> None:
    for k in range(3):
        costs = 1.0 - np.eye(3)
        costs[k] *= 20
        blind, costly = make(max_depth=1).fit(X, NOISY), make(max_depth=1, cost_matrix=costs).fit(X, NOISY)
        missed = [int((model.predict(X)[k == NOISY] != k).sum()) for model in (blind, costly)]
        assert missed[1] < missed[0] or missed == [0, 0]
        assert costly.expected_cost(X, NOISY) < blind.expected_cost(X, NOISY, costs)


def test_sample_weights_multiply_costs() -> None:
    # A class whose rows weigh 4 is one whose mistakes cost 4 times as much.
    costs = 1.0 - np.eye(3)
    costs[2] *= 4
    weighted = make(class_weight={2: 4}).fit(X, NOISY)
    assert weighted.decision_function(X) == pytest.approx(make(cost_matrix=costs).fit(X, NOISY).decision_function(X), abs=1e-5)


# ---- probabilities -----------------------------------------------------------------------------------------------------------


def test_probabilities_of_equal_costs() -> None:
    model = make(n_estimators=5, max_depth=1).fit(X, NOISY)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        proba = model.predict_proba(X)
        log_loss(NOISY, proba)
    p = 1 / (1 + np.exp(-2 * model.decision_function(X)))
    assert proba == pytest.approx(p / p.sum(axis=1, keepdims=True), rel=1e-12)
    for labels, stage in zip(model.staged_predict(X), model.staged_predict_proba(X), strict=True):
        assert np.array_equal(labels, stage.argmax(axis=1))


def test_shares_of_the_classes_are_met() -> None:
    # A column that says nothing: the constant classifier has the shares of the classes, 20 : 30 : 50.
    labels = np.repeat([0, 1, 2], [20, 30, 50])
    with pytest.warns(UserWarning, match="no column"):
        model = make().fit(np.zeros((100, 1)), labels)
    assert model.predict_proba([[0.0]]) == pytest.approx(np.array([[0.2, 0.3, 0.5]]), rel=1e-9)
    weak = make(n_estimators=1).fit(np.arange(100.0)[:, None] % 7, labels)
    assert weak.predict_proba([[0.0]]) == pytest.approx(np.array([[0.2, 0.3, 0.5]]), rel=1e-3)


def test_a_constant_model_with_costs() -> None:
    labels = np.repeat([0, 1, 2], [20, 30, 50])
    costs = np.array([[0.0, 9.0, 9.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # expected: 80, 180 + 50, 180 + 30
    with pytest.warns(UserWarning, match="no column"):
        model = make(cost_matrix=costs).fit(np.zeros((100, 1)), labels)
    assert model.predict([[0.0]]).tolist() == [0]
    with pytest.warns(UserWarning, match="costs nothing"):
        free = make(cost_matrix=[[0, 1, 2], [0, 0, 0], [0, 0, 0]]).fit(X, NOISY)
    assert np.isfinite(free.decision_function(X)).all()
    assert set(free.predict(X)) == {0}


def test_unequal_costs_have_no_probabilities() -> None:
    model = make(cost_matrix=COSTS)
    for fitted in (model, model.fit(X, NOISY)):
        assert not hasattr(fitted, "predict_proba")
        assert not hasattr(fitted, "staged_predict_proba")
        with pytest.raises(AttributeError) as caught:
            fitted.predict_proba(X)
        assert str(caught.value).startswith("no predict_proba: a RebelClassifier that was trained with unequal costs")
        assert "train one without cost_matrix" in str(caught.value)
    with pytest.raises(ValueError, match="no probabilities: train one without cost_matrix"):
        model.predict(X, cost_matrix=COSTS)
    assert model.decision_function(X).shape == (120, 3)
    assert [stage.shape for stage in model.staged_decision_function(X)] == [(120, 3)] * model.n_estimators_
    assert hasattr(make(), "predict_proba")


# ---- training ----------------------------------------------------------------------------------------------------------------


def test_early_stopping_looks_at_the_cost() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(120, 3))
    labels = np.where(rng.random(120) < 0.3, rng.integers(0, 3, 120), Y)
    params = {"cost_matrix": COSTS, "n_estimators": 60, "early_stopping": "patience", "n_iter_no_change": 30}
    model = make(**params).fit(X, labels, eval_set=(X + 0.5 * noise, Y))
    costs, errors = model.history_["valid_cost"], model.history_["valid_error"]
    assert model.n_estimators_ == int(np.argmin(costs)) + 1
    assert int(np.argmin(costs)) != int(np.argmin(errors))
    assert model.expected_cost(X + 0.5 * noise, Y) == pytest.approx(min(costs), rel=1e-12)
    held_out = make(**params, random_state=0).fit(X, labels)
    assert held_out.n_estimators_ == int(np.argmin(held_out.history_["valid_cost"])) + 1


def test_a_warm_start_is_one_long_training() -> None:
    model = make(n_estimators=3, cost_matrix=COSTS, warm_start=True).fit(X, NOISY)
    model.set_params(n_estimators=8).fit(X, NOISY)
    assert digest(model) == digest(make(cost_matrix=COSTS).fit(X, NOISY))
    with pytest.raises(ValueError, match="another cost_matrix"):
        model.set_params(cost_matrix=COSTS.T, n_estimators=9).fit(X, NOISY)
    with pytest.raises(ValueError, match="another cost_matrix"):
        model.set_params(cost_matrix=None).fit(X, NOISY)
    assert digest(model) == digest(make(cost_matrix=COSTS).fit(X, NOISY))


@pytest.mark.parametrize("costs", [None, COSTS], ids=["equal", "unequal"])
def test_numpy_and_cpu_agree(costs: Any) -> None:
    one, other = (make(cost_matrix=costs, max_depth=4, device=device).fit(X, NOISY) for device in ("numpy", "cpu"))
    assert digest(one) == digest(other)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


def test_two_classes_have_one_score() -> None:
    model = make(cost_matrix=[[0, 1], [5, 0]]).fit(X, Y > 0)
    f = model.decision_function(X)
    assert f.shape == (120,)
    assert np.array_equal(model.predict(X), f > 0)


@pytest.mark.slow
def test_accuracy_on_digits() -> None:
    digits, labels = load_digits(return_X_y=True)
    model = make(n_estimators=150, max_depth=3).fit(digits[:900], labels[:900])
    other = AdaBoostMHClassifier(n_estimators=150, n_jobs=1, device="cpu").fit(digits[:900], labels[:900])
    assert model.score(digits[900:], labels[900:]) > max(0.93, other.score(digits[900:], labels[900:]) - 0.02)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"max_depth": 0}, ValueError, "max_depth must be an integer from 1 to 6, got 0"),
        ({"max_depth": 7}, ValueError, "max_depth must be an integer from 1 to 6, got 7"),
        ({"max_depth": 2.0}, TypeError, "max_depth"),
        ({"learning_rate": 0}, ValueError, "learning_rate"),
        ({"min_weight_fraction_leaf": 0.6}, ValueError, "min_weight_fraction_leaf"),
    ],
)
def test_parameters_that_are_wrong(params: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**params).fit(X, NOISY)


def test_several_labels_a_row_are_refused() -> None:
    for params in ({}, {"cost_matrix": COSTS}):
        with pytest.raises(ValueError, match="RebelClassifier needs one label a row"):
            make(**params).fit(X, np.c_[NOISY == 0, NOISY > 0, NOISY > 1])


# ---- tools -------------------------------------------------------------------------------------------------------------------


def test_fit_knows_the_algorithm() -> None:
    model = gpuboost.fit(X, NOISY, algorithm="rebel", device="cpu", n_estimators=3, cost_matrix=COSTS)
    assert isinstance(model, RebelClassifier)
    assert model.n_estimators_ == 3


def test_tools_of_scikit_learn() -> None:
    model = make(cost_matrix=TABLE, n_estimators=4)
    again = pickle.loads(pickle.dumps(clone(model).fit(X, NAMES[NOISY])))
    assert np.array_equal(again.predict(X), model.fit(X, NAMES[NOISY]).predict(X))
    scores = cross_val_score(model, X, NAMES[NOISY], scoring=cost_scorer(TABLE), cv=3)
    assert (scores < 0).all()
    search = GridSearchCV(model, {"max_depth": [1, 2], "cost_matrix": [None, TABLE]}, scoring=cost_scorer(TABLE), cv=2)
    assert search.fit(X, NAMES[NOISY]).best_params_["cost_matrix"] in (None, TABLE)

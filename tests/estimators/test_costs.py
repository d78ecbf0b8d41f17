"""Costs through the estimators: decisions, what they cost, and stopping early by it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeRegressor

from gpuboost import (
    AdaBoostMHClassifier,
    GambleClassifier,
    RebelClassifier,
    SAMMEClassifier,
    devices,
    mean_cost,
    min_cost_labels,
)
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.estimators import predictor
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.traps.problem import NOISY, X

NAMES = np.array(["north", "south", "west"])
RNG = np.random.default_rng(3)
NUMBERS = np.where(RNG.random(120) < 0.4, RNG.integers(0, 3, 120), NOISY)  # hard to tell, so that the costs decide
Y = NAMES[NUMBERS]
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
TABLE = {str(t): dict(zip(NAMES.tolist(), row, strict=True)) for t, row in zip(NAMES, COSTS.tolist(), strict=True)}
MODELS = [
    AdaBoostMHClassifier(n_estimators=4, max_leaf_nodes=3, device="cpu", n_jobs=1),
    SAMMEClassifier(n_estimators=4, max_leaf_nodes=3, device="cpu", n_jobs=1),
    SAMMEClassifier(n_estimators=4, max_leaf_nodes=3, variant="real", device="cpu", n_jobs=1),
    GambleClassifier(n_estimators=4, max_leaf_nodes=3, device="cpu", n_jobs=1),
    GambleClassifier(n_estimators=4, regressor=DecisionTreeRegressor(max_leaf_nodes=3, random_state=0), device="cpu", n_jobs=1),
    RebelClassifier(n_estimators=4, device="cpu", n_jobs=1),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)


def cost_by_hand(true: Any, predicted: Any) -> float:
    return sum(TABLE[t][p] for t, p in zip(true, predicted, strict=True)) / len(true)


# ---- decisions ---------------------------------------------------------------------------------------------------------------


@every_model
@pytest.mark.parametrize("given", [COSTS, TABLE, pd.DataFrame(COSTS, NAMES, NAMES)])
def test_labels_of_least_expected_cost(model: Any, given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model.fit(X, Y)
    expected = [NAMES[min(range(3), key=lambda k: float(p @ COSTS[:, k]))] for p in model.predict_proba(X)]
    found = model.predict(X, cost_matrix=given)
    assert found.dtype == model.classes_.dtype
    assert found.tolist() == expected == min_cost_labels(model.predict_proba(X), COSTS, model.classes_).tolist()
    assert expected != model.predict(X).tolist()
    monkeypatch.setattr(predictor, "BLOCK_BYTES", 7 * (3 + 8 * 3))  # 7 rows
    assert model.predict(X, given).tolist() == expected


@every_model
def test_with_equal_costs_the_class_is_the_likeliest(model: Any) -> None:
    model.fit(X, Y)
    assert np.array_equal(model.predict(X, cost_matrix=7 * (1 - np.eye(3))), model.predict(X))


def test_two_classes_have_a_threshold() -> None:
    """To miss True costs three times as much as to cry wolf: True is predicted from a probability of 1/4 on, beyond the tie."""
    model = MODELS[0].fit(X, NUMBERS > 0)
    proba = model.predict_proba(X)[:, 1]
    assert np.array_equal(model.predict(X, [[0, 1], [3, 0]]), 3 * proba > 1 - proba)
    assert ((proba > 0.25) != (proba > 0.5)).any()


def test_one_class_is_predicted_whatever_it_costs() -> None:
    model = MODELS[0].fit(X[:5], ["a"] * 5)
    assert model.predict(X[:2], [[0]]).tolist() == ["a", "a"]
    assert model.expected_cost(X[:2], ["a", "a"], [[0]]) == 0.0


# ---- what predictions cost ---------------------------------------------------------------------------------------------------


@every_model
def test_the_expected_cost_is_that_of_plain_predictions(model: Any) -> None:
    model.fit(X, Y)
    plain, careful = model.predict(X), model.predict(X, COSTS)
    assert model.expected_cost(X, Y, COSTS) == cost_by_hand(Y, plain)
    assert model.expected_cost(X, Y, TABLE) == cost_by_hand(Y, plain)
    assert mean_cost(Y, careful, COSTS) == cost_by_hand(Y, careful) != cost_by_hand(Y, plain)
    assert model.expected_cost(X, Y) == np.mean(plain != Y)
    weights = np.arange(120) % 3
    rows = np.repeat(np.arange(120), weights)
    assert model.expected_cost(X, Y, COSTS, weights) == cost_by_hand(Y[rows], plain[rows])


def test_rows_that_lack_a_class_or_bring_another() -> None:
    model = MODELS[3].fit(X[NUMBERS < 2], Y[NUMBERS < 2])
    plain = model.predict(X)
    assert model.expected_cost(X, Y, TABLE) == cost_by_hand(Y, plain)
    assert model.expected_cost(X, Y) == np.mean(plain != Y)
    north = np.full(120, "north")
    assert model.expected_cost(X, north, TABLE) == model.expected_cost(X, north, COSTS[:2, :2]) == cost_by_hand(north, plain)
    with pytest.raises(ValueError, match=r"y_true has the label 'west', for which cost_matrix has no costs"):
        model.expected_cost(X, Y, COSTS[:2, :2])
    with pytest.raises(ValueError, match=r"\['north', 'south'\], the shape \(2, 2\), got the shape \(3, 3\)"):
        model.predict(X, COSTS)


def test_costs_need_one_label_a_row() -> None:
    model = MODELS[0].fit(X, np.c_[NOISY == 0, NOISY > 0])
    message = r"costs need one label a row, but y is an indicator matrix \(multi-label\)"
    with pytest.raises(ValueError, match=message):
        model.predict(X, [[0, 1], [1, 0]])
    with pytest.raises(ValueError, match=message):
        model.expected_cost(X, np.c_[NOISY == 0, NOISY > 0])


def test_an_estimator_that_is_not_fitted() -> None:
    model = GambleClassifier(device="cpu")
    with pytest.raises(NotFittedError):
        model.predict(X, COSTS)
    with pytest.raises(NotFittedError):
        model.expected_cost(X, Y, COSTS)


def test_the_wrong_number_of_labels_is_of_y() -> None:
    with pytest.raises(ValueError, match="y must have one entry for each of the 120 rows of X, got 3"):
        MODELS[3].fit(X, Y).expected_cost(X, Y[:3], COSTS)


# ---- classifiers that train by costs -----------------------------------------------------------------------------------------


class Costly(GambleClassifier):
    """A classifier that is told costs and looks at them only to stop."""

    costs: Any = None

    def _costs(self) -> Any:
        return self.costs


def costly(costs: Any, **params: Any) -> Costly:
    model = Costly(**{"n_estimators": 12, "max_leaf_nodes": 3, "n_jobs": 1, "device": "cpu", **params})
    model.costs = costs
    return model


TRAINING, HELD_OUT = np.arange(80), np.arange(80, 120)
EVAL_SET = (X[HELD_OUT], Y[HELD_OUT])


@pytest.mark.parametrize("device", ["numpy", "cpu", "emulated"])
@pytest.mark.parametrize("given", [COSTS, TABLE])
def test_the_history_has_the_costs_of_every_round(given: Any, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(devices.OPENERS, "emulated", lambda index: CudaBackend(EmulatedGpu()))
    model = costly(given, device=device).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    for rows, name in ((TRAINING, "train"), (HELD_OUT, "valid")):
        stages = [cost_by_hand(Y[rows], stage) for stage in model.staged_predict(X[rows])]
        assert model.history_[f"{name}_cost"] == stages
        assert len(set(stages)) > 1
    blind = GambleClassifier(n_estimators=12, max_leaf_nodes=3, n_jobs=1, device="cpu").fit(X[TRAINING], Y[TRAINING])
    assert model.ensemble_.digest() == blind.ensemble_.digest()


def test_costs_are_weighted_as_errors_are() -> None:
    weights = np.arange(1, 81) % 4 + 1
    model = costly(COSTS).fit(X[TRAINING], Y[TRAINING], weights, eval_set=(*EVAL_SET, np.arange(40)))
    assert model.history_["train_cost"][-1] == model.expected_cost(X[TRAINING], Y[TRAINING], COSTS, weights)
    assert model.history_["valid_cost"][-1] == model.expected_cost(*EVAL_SET, COSTS, np.arange(40))
    weights = np.random.default_rng(0).uniform(0.1, 1.0, 80)
    model = costly(COSTS).fit(X[TRAINING], Y[TRAINING], weights)
    expected = model.expected_cost(X[TRAINING], Y[TRAINING], COSTS, weights)
    np.testing.assert_allclose(model.history_["train_cost"][-1], expected, rtol=1e-8)


def test_early_stopping_keeps_the_cheapest_round() -> None:
    whole = costly(COSTS, n_estimators=30).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    costs, errors = (np.array(whole.history_[f"valid_{what}"]) for what in ("cost", "error"))
    assert costs.argmin() != errors.argmin()
    model = costly(COSTS, n_estimators=30, early_stopping="patience").fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    assert model.n_estimators_ == costs.argmin() + 1
    assert model.expected_cost(*EVAL_SET) == costs.min()
    hold_out = costly(TABLE, early_stopping=True, random_state=0).fit(X, Y)
    assert len(hold_out.history_["valid_cost"]) == 12


def test_the_expected_cost_is_by_the_costs_that_it_was_told() -> None:
    model = costly(TABLE).fit(X[NUMBERS < 2], Y[NUMBERS < 2])  # without a class
    assert model.expected_cost(X, Y) == cost_by_hand(Y, model.predict(X))
    assert model.expected_cost(X, Y, {t: {p: float(t != p) for p in TABLE} for t in TABLE}) == np.mean(model.predict(X) != Y)


def test_a_training_by_costs_is_continued() -> None:
    long = costly(COSTS).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    model = costly(COSTS, n_estimators=5, warm_start=True).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    model.set_params(n_estimators=12).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    assert model.history_["valid_cost"] == long.history_["valid_cost"]
    assert model.history_["train_cost"] == long.history_["train_cost"]


def test_costs_that_come_late() -> None:
    model = costly(None, n_estimators=5, warm_start=True).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    assert "valid_cost" not in model.history_
    model.costs = COSTS
    model.set_params(n_estimators=7).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    assert np.isnan(model.history_["valid_cost"]).tolist() == [True] * 5 + [False] * 2
    model = costly(None, n_estimators=5, warm_start=True).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)
    model.costs = COSTS
    with pytest.raises(ValueError, match="needs the cost matrix to be there from the first fit on"):
        model.set_params(n_estimators=7, early_stopping=True).fit(X[TRAINING], Y[TRAINING], eval_set=EVAL_SET)


def test_classes_that_cost_nothing_to_miss_are_named() -> None:
    with pytest.warns(
        UserWarning, match=r"missing the classes \['north', 'west'\] costs nothing: their rows of the cost matrix"
    ):
        costly([[0, 0, 0], [1, 0, 1], [0, 0, 0]], n_estimators=1).fit(X, Y)


def test_wrong_costs_stop_a_fit_before_it_starts() -> None:
    for costs, message in ((COSTS[:2], r"the shape \(3, 3\)"), (0 * COSTS, "zero everywhere"), (-COSTS, "not negative")):
        model = costly(costs)
        with pytest.raises(ValueError, match=message):
            model.fit(X, Y)
        assert not hasattr(model, "classes_")


def test_costs_are_not_those_of_many_labels() -> None:
    class Many(AdaBoostMHClassifier):
        def _costs(self) -> Any:
            return [[0, 1], [1, 0]]

    with pytest.raises(ValueError, match=r"costs need one label a row, but y is an indicator matrix \(multi-label\)"):
        Many(device="cpu").fit(X, np.c_[NUMBERS == 0, NUMBERS > 0])

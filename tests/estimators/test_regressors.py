"""`GambleClassifier(regressor=...)`: what it takes and refuses, and that it is a boosting classifier like the others."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

import gpuboost
from gpuboost import GambleClassifier
from gpuboost.progress import Progress
from tests.traps.problem import FRAME, METHODS, NOISY, X, Y

TREE = DecisionTreeRegressor(max_leaf_nodes=4)
RANDOM = DecisionTreeRegressor(max_leaf_nodes=4, max_features=1)


def make(regressor: Any, n_estimators: int = 4, **params: Any) -> GambleClassifier:
    return GambleClassifier(n_estimators=n_estimators, regressor=regressor, **{"random_state": 0, "device": "cpu", **params})


def recorded(model: GambleClassifier) -> dict[str, list[float]]:
    return {key: values for key, values in model.history_.items() if key != "seconds"}


def same(one: GambleClassifier, other: GambleClassifier) -> bool:
    return bool((one.decision_function(X) == other.decision_function(X)).all())


class Faulty(RegressorMixin, BaseEstimator):
    """Predicts the same for all rows; from the third fit on, something is wrong."""

    n_fits = 0

    def __init__(self, fault: str = "nan") -> None:
        self.fault = fault

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Faulty:
        Faulty.n_fits += 1
        self.broken_ = Faulty.n_fits > 2
        if self.broken_ and self.fault == "interrupt":
            raise KeyboardInterrupt
        return self

    def predict(self, X: Any) -> Any:
        values = {"nan": np.full(len(X), np.nan), "shape": np.zeros(len(X) + 1)}
        return values[self.fault] if self.broken_ and self.fault in values else np.full(len(X), 0.25)


# ---- what is taken -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("regressor", "n_fits"),
    [
        (Ridge(), 1),
        (TREE, 1),
        (SVR(), 3),
        (RandomForestRegressor(3), 1),
        (MultiOutputRegressor(SVR()), 1),
        (HistGradientBoostingRegressor(max_iter=2), 3),
        (make_pipeline(StandardScaler(), Ridge()), 1),
        (make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), SVR())), 3),
    ],
    ids=lambda r: type(r).__name__,
)
def test_regressors_of_one_and_of_several_outputs(regressor: Any, n_fits: int) -> None:
    model = make(regressor, 2).fit(X, Y)
    assert [len(step.g.regressors) for step in model.estimators_] == [n_fits] * 2
    assert [len(step.h.regressors) for step in model.estimators_] == [n_fits] * 2
    assert model.score(X, Y) > 0.7
    two = make(regressor, 2).fit(X, Y > 0)
    assert [(len(step.g.regressors), step.h) for step in two.estimators_] == [(1, None)] * 2


def test_weights_reach_the_last_step_of_a_pipeline() -> None:
    weights = np.random.default_rng(0).uniform(0.1, 1, 120)
    plain, wrapped = (
        make(one, 3).fit(X, NOISY, weights) for one in (Ridge(), Pipeline([("a", "passthrough"), ("b", Ridge())]))
    )
    assert same(plain, wrapped)
    assert not same(plain, make(Ridge(), 3).fit(X, NOISY))


def test_a_pair_is_g_and_h() -> None:
    model = make((TREE, Ridge()), 2).fit(X, Y)
    for step in model.estimators_:
        assert [type(r) for r in (*step.g.regressors, *step.h.regressors)] == [DecisionTreeRegressor, Ridge]
    assert same(make([Ridge(), Ridge()]).fit(X, Y), make(Ridge()).fit(X, Y))


@pytest.mark.parametrize(
    ("regressor", "error", "message"),
    [
        (KNeighborsRegressor(), ValueError, r"whose fit takes sample_weight.*, got KNeighborsRegressor\(\)"),
        (make_pipeline(StandardScaler(), KNeighborsRegressor()), ValueError, "whose fit takes sample_weight"),
        (Pipeline([("a", StandardScaler()), ("b", "passthrough")]), TypeError, "must be a scikit-learn regressor"),
        (TransformedTargetRegressor(Ridge()), ValueError, "whose fit takes sample_weight"),
        ((Ridge(), KNeighborsRegressor()), ValueError, "got KNeighborsRegressor"),
        (
            LogisticRegression(),
            TypeError,
            r"must be a scikit-learn regressor, such as Ridge\(\), or a pair of them, got Logistic",
        ),
        (Ridge, TypeError, "got <class"),
        ("ridge", TypeError, "got 'ridge'"),
        ((Ridge(),), ValueError, "a scikit-learn regressor or a pair of them, got 1"),
        ((Ridge(), None), TypeError, "got None"),
    ],
    ids=str,
)
def test_what_is_no_regressor_with_weights_is_refused(regressor: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(regressor).fit(X, Y)


def test_a_wrong_parameter_is_not_looked_at_before_fit() -> None:
    assert is_classifier(make("ridge"))


def test_multi_label_is_refused() -> None:
    with pytest.raises(ValueError, match="GambleClassifier needs one label a row"):
        make(Ridge()).fit(X, np.column_stack([Y > 0, Y > 1]))


def test_missing_values_are_the_regressors_affair() -> None:
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    taking, refusing = HistGradientBoostingRegressor(max_iter=2), Ridge()
    assert make(taking, 2).fit(holes, Y).score(holes, Y) > 0.5
    with pytest.raises(ValueError, match="Input X contains NaN"):
        make(refusing).fit(holes, Y)
    with pytest.raises(ValueError, match="Input X contains NaN"):
        make(refusing).fit(X, Y).predict(holes)
    allowed = [make(one).__sklearn_tags__().input_tags.allow_nan for one in (None, taking, refusing, (taking, refusing))]
    assert allowed == [True, True, False, False]


@pytest.mark.parametrize("fault", ["nan", "shape"])
def test_predictions_that_make_no_sense_are_named(fault: str) -> None:
    Faulty.n_fits = 0
    message = {
        "nan": r"Faulty\(\) predicts NaN or infinity",
        "shape": r"Faulty\(fault='shape'\) predicts 1 targets of 120 rows",
    }
    with pytest.raises(ValueError, match=message[fault]):
        make(Faulty(fault)).fit(X, Y > 0)


def test_the_regressor_is_a_nested_parameter_and_stays_unfitted() -> None:
    model = make(Ridge()).set_params(regressor__alpha=3.0)
    assert model.fit(X, Y).estimators_[0].g.regressors[0].alpha == 3.0
    assert not hasattr(model.regressor, "coef_")
    copied = clone(make((TREE, Ridge())))
    assert [type(one) for one in copied.regressor] == [DecisionTreeRegressor, Ridge]
    assert same(gpuboost.fit(X, Y, algorithm="gamble", regressor=Ridge(3.0), n_estimators=4), model)


# ---- random choices ----------------------------------------------------------------------------------------------------------


def test_random_states() -> None:
    pipeline = Pipeline([("a", RandomForestRegressor(2, random_state=1)), ("b", RANDOM)][1:])
    model = make(pipeline, 3).fit(X, NOISY)
    seeds = [[r.get_params()["b__random_state"] for one in (s.g, s.h) for r in one.regressors] for s in model.estimators_]
    assert all(len(set(of_round)) == 1 for of_round in seeds)  # g and h choose alike
    assert len({of_round[0] for of_round in seeds}) == 3
    assert same(make(pipeline, 3).fit(X, NOISY), model)
    assert not same(make(pipeline, 3, random_state=1).fit(X, NOISY), model)


# ---- a boosting classifier like the others -----------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [Y, np.array(["a", "b", "c"])[Y], Y > 0], ids=["numbers", "text", "two"])
def test_methods_agree(labels: Any) -> None:
    model = make(TREE, 5).fit(X, labels)
    p, f = model.predict_proba(X), model.decision_function(X)
    assert (model.classes_[p.argmax(axis=1)] == model.predict(X)).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    if f.ndim == 2:
        np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), (f[:, 1] - f[:, 0]) / 2)  # softmax(F / (K - 1))
    assert model.score(X, labels) == np.mean(model.predict(X) == labels)
    for method in METHODS[:3]:
        stages = list(getattr(model, f"staged_{method}")(X))
        assert len(stages) == model.n_estimators_ == 5
        np.testing.assert_array_equal(stages[-1], getattr(model, method)(X))
    again = pickle.loads(pickle.dumps(model))
    assert same(again, model)


def test_attributes() -> None:
    model = make(TREE).fit(FRAME, Y)
    for name in ("ensemble_", "bin_mapper_", "feature_importances_"):
        with pytest.raises(AttributeError, match=f"boosts a regressor has no {name}, but estimators_"):
            getattr(model, name)
    with pytest.raises(AttributeError, match="no attribute 'something'"):
        getattr(model, "some" + "thing")
    assert (model.n_features_in_, list(model.feature_names_in_), model.device_) == (3, list("abc"), "numpy")
    trees = make(None).fit(X, Y)
    assert vars(model.set_params(regressor=None).fit(X, Y)).keys() == vars(trees).keys()
    assert vars(trees.set_params(regressor=TREE).fit(X, Y)).keys() == vars(make(TREE).fit(X, Y)).keys()
    trees.set_params(regressor=None)  # what the model consists of does not change
    assert same(trees, make(TREE).fit(X, Y))
    assert not hasattr(make(TREE), "feature_importances_")


def test_data_frames_are_columns_of_numbers() -> None:
    model = make(Ridge()).fit(FRAME, Y)
    assert same(make(Ridge()).fit(X, Y), make(Ridge()).fit(np.asfortranarray(X[:, ::-1])[:, ::-1], Y))
    np.testing.assert_array_equal(model.predict(FRAME), make(Ridge()).fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="expected 'a', got 'b'"):
        model.predict(pd.DataFrame(X, columns=list("bac")))


def test_one_class_is_predicted() -> None:
    model = make(Ridge()).fit(X, np.full(120, "only"))
    assert (model.n_estimators_, model.predict(X[:2]).tolist()) == (0, ["only", "only"])
    assert model.predict_proba(X[:1]).tolist() == [[1.0]]


@pytest.mark.parametrize("regressor", [Ridge(), TREE], ids=str)
def test_weights(regressor: Any) -> None:
    def scores(rows: Any, weights: Any = None, **params: Any) -> Any:
        return make(regressor, **params).fit(X[rows], NOISY[rows], weights).decision_function(X)

    weights, every = np.arange(120) % 4, np.arange(120)
    np.testing.assert_allclose(scores(every, weights), scores(np.repeat(every, weights)), rtol=1e-6, atol=1e-9)
    by_class = np.array([0.5, 1.0, 2.0])
    weighted = scores(every, class_weight=dict(enumerate(by_class)))
    np.testing.assert_allclose(weighted, scores(every, by_class[NOISY]), rtol=1e-9, atol=1e-9)


def test_evaluation_sets_and_early_stopping() -> None:
    model = make(TREE, 5).fit(X, NOISY, eval_set=[(X, NOISY), (X[:40], NOISY[:40])])
    assert model.history_["valid_loss"] == pytest.approx(model.history_["train_loss"])
    stages = [np.mean(p != NOISY[:40]) for p in model.staged_predict(X[:40])]
    assert model.history_["valid_1_error"] == stages
    stopped = make(TREE, 60, early_stopping="patience", n_iter_no_change=3).fit(X, NOISY)
    errors = stopped.history_["valid_error"]
    assert stopped.n_estimators_ == len(stopped.estimators_) == int(np.argmin(errors)) + 1
    assert len(errors) == stopped.n_estimators_ + 3 < 60
    assert stopped.stop_reason_ == "early stopping"


def test_callbacks_and_interrupts() -> None:
    def stop_at_two(progress: Progress) -> bool:
        return progress.n_rounds == 2

    plain = make(RANDOM, 2).fit(X, NOISY)
    assert same(make(RANDOM, 9, callbacks=[stop_at_two]).fit(X, NOISY), plain)
    Faulty.n_fits = 0
    with pytest.warns(UserWarning, match="interrupted after 2 rounds; the model keeps them"):
        model = make(Faulty("interrupt"), 9).fit(X, NOISY > 0)
    assert (model.n_estimators_, len(model.estimators_), model.stop_reason_) == (2, 2, "interrupted")


def test_a_fit_that_fails_leaves_the_old_model() -> None:
    model = make(TREE).fit(FRAME, Y)
    before = dict(vars(model))
    Faulty.n_fits = 2
    for regressor, message in ((KNeighborsRegressor(), "takes sample_weight"), (Faulty(), "predicts NaN")):
        with pytest.raises(ValueError, match=message):
            model.set_params(regressor=regressor).fit(X, Y > 0)
        assert vars(model.set_params(regressor=before["regressor"])) == before


@pytest.mark.parametrize("params", [{}, {"early_stopping": True}], ids=str)
def test_a_continued_training_is_one_long_training(params: dict[str, Any]) -> None:
    evaluation = None if params else (X[:30], NOISY[:30])
    long = make(RANDOM, 6, **params).fit(X, NOISY, eval_set=evaluation)
    model = make(RANDOM, 1, warm_start=True, **params).fit(X, NOISY, eval_set=evaluation)
    for n in (3, 6):
        model = pickle.loads(pickle.dumps(model)).set_params(n_estimators=n).fit(X, NOISY, eval_set=evaluation)
    assert same(model, long)
    assert recorded(model) == recorded(long)


def test_what_a_continued_model_keeps() -> None:
    model = make(TREE, 2, warm_start=True, learning_rate=0.5).fit(X, NOISY)
    before = model.decision_function(X)
    model.set_params(n_estimators=3, learning_rate=0.1, regressor=Ridge()).fit(X, NOISY)
    np.testing.assert_array_equal(list(model.staged_decision_function(X))[1], before)
    with pytest.raises(ValueError, match="continues a model of regressors, got regressor=None"):
        model.set_params(regressor=None, n_estimators=4).fit(X, NOISY)
    with pytest.raises(ValueError, match=r"continues a model of trees, got regressor=Ridge\(\)"):
        make(None, 2, warm_start=True).fit(X, NOISY).set_params(regressor=Ridge()).fit(X, NOISY)


def test_learning_rates() -> None:
    for rate, found in (("auto", 2 / 3), ("line-search", 1.0), (0.3, 0.3)):
        for regressor in (None, TREE):
            assert make(regressor, 1, learning_rate=rate).fit(X, Y).learning_rate_ == found
    assert make(None, 1).fit(X, Y > 0).learning_rate_ == 1.0
    # Where there is little to learn, the half step of Gentle AdaBoost is best.
    labels, stump = np.random.default_rng(0).random(120) < 0.5, DecisionTreeRegressor(max_depth=1, min_samples_leaf=40)
    searching, full = (make(stump, 1, learning_rate=rate).fit(X, labels) for rate in ("line-search", 1.0))
    assert searching.estimators_[0].learning_rate == 0.5
    assert searching.history_["train_loss"] < full.history_["train_loss"]
    with pytest.raises(ValueError, match='learning_rate must be one of "auto", "line-search", got \'fast\''):
        make(None, learning_rate="fast").fit(X, Y)

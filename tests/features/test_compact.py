"""Pipelines without the columns that their models do not use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gpuboost
from gpuboost.features import HaarFeatures, compact

X, Y = load_digits(return_X_y=True)
TRAIN, TEST = slice(0, 300), slice(300, 500)


def fitted(model: Any, *before: Any, **haar: Any) -> Any:
    features = HaarFeatures((8, 8), 200, random_state=0, device="cpu").set_params(**haar)
    return make_pipeline(*before, features, model).fit(X[TRAIN], Y[TRAIN])


def adaboost(**parameters: Any) -> gpuboost.AdaBoostMHClassifier:
    return gpuboost.AdaBoostMHClassifier(
        **{"n_estimators": 5, "max_leaf_nodes": 6, "max_features": 0.2, "random_state": 0, "device": "cpu", **parameters}
    )


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "model",
    [adaboost(), gpuboost.SAMMEClassifier(n_estimators=4, device="cpu"), gpuboost.MartClassifier(n_estimators=2, device="cpu")],
    ids=["adaboost-mh", "samme", "mart"],
)
def test_predictions_stay_what_they_are(model: Any, lazy: bool) -> None:
    pipeline = fitted(model, FunctionTransformer(np.sqrt), lazy=lazy)
    before = pipeline.decision_function(X[TEST])
    smaller = compact(pipeline)
    used = np.unique(pipeline[-1].ensemble_.feature)
    assert smaller[-1].n_features_in_ == len(smaller[-2].rectangles_) == len(used) < 200
    np.testing.assert_array_equal(np.unique(smaller[-1].ensemble_.feature), np.arange(len(used)))
    np.testing.assert_array_equal(smaller[-2].rectangles_, pipeline[-2].rectangles_[used])
    np.testing.assert_array_equal(smaller.decision_function(X[TEST]), before)
    np.testing.assert_array_equal(smaller.predict_proba(X[TEST]), pipeline.predict_proba(X[TEST]))
    np.testing.assert_array_equal(smaller.predict(X[TEST]), pipeline.predict(X[TEST]))
    importances = pipeline[-1].feature_importances_[used]  # the others have none
    np.testing.assert_allclose(smaller[-1].feature_importances_, importances, rtol=1e-12)
    assert pipeline[-1].n_features_in_ == 200  # what was passed is left alone
    np.testing.assert_array_equal(pipeline.decision_function(X[TEST]), before)


def test_it_can_be_saved_and_made_smaller_again(tmp_path: Path) -> None:
    smaller = compact(fitted(adaboost()))
    smaller[-1].save(tmp_path / "model")
    values = smaller[-2].transform(X[TEST])
    np.testing.assert_array_equal(gpuboost.load(tmp_path / "model").predict(values), smaller.predict(X[TEST]))
    again = compact(smaller)
    assert again[-1].ensemble_.digest() == smaller[-1].ensemble_.digest()


def test_names_of_columns_are_those_of_the_used_ones() -> None:
    features = HaarFeatures((8, 8), 200, random_state=0, device="cpu").set_output(transform="pandas")
    pipeline = make_pipeline(features, adaboost()).fit(X[TRAIN], Y[TRAIN])
    smaller = compact(pipeline)
    used = np.unique(pipeline[-1].ensemble_.feature)
    assert smaller[-1].feature_names_in_.tolist() == pipeline[-2].get_feature_names_out()[used].tolist()
    np.testing.assert_array_equal(smaller.predict(X[TEST]), pipeline.predict(X[TEST]))


def test_a_model_that_uses_no_column_keeps_one() -> None:
    pipeline = make_pipeline(HaarFeatures((8, 8), 200, random_state=0, device="cpu"), adaboost()).fit(X[TRAIN], np.ones(300))
    smaller = compact(pipeline)
    assert smaller[-1].n_features_in_ == 1
    np.testing.assert_array_equal(smaller.decision_function(X[TEST]), pipeline.decision_function(X[TEST]))


def test_what_is_no_such_pipeline_is_refused() -> None:
    features, wrong = HaarFeatures((8, 8), 20, device="cpu"), "must end in HaarFeatures and a classifier of gpuboost, got"
    for pipeline, found in (
        (adaboost(), "AdaBoostMHClassifier"),
        (make_pipeline(adaboost()), r"\['AdaBoostMHClassifier'\]"),
        (make_pipeline(features, DecisionTreeClassifier()), r"\['HaarFeatures', 'DecisionTreeClassifier'\]"),
        (make_pipeline(features, FunctionTransformer(), adaboost()), r"\['HaarFeatures', 'FunctionTransformer', 'AdaB"),
    ):
        with pytest.raises(TypeError, match=f"{wrong} {found}"):
            compact(pipeline)
    with pytest.raises(NotFittedError):
        compact(make_pipeline(features, adaboost()))
    regressors = gpuboost.GambleClassifier(n_estimators=2, regressor=DecisionTreeRegressor(max_depth=2), device="cpu")
    with pytest.raises(TypeError, match="GambleClassifier that boosts a regressor has no trees"):
        compact(fitted(regressors))

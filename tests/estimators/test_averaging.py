"""Averages of models: their scores, their cuts, and that they are models like any other."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gpuboost
from gpuboost.persistence.model_file import to_bytes

RNG = np.random.default_rng(8)
X = RNG.normal(size=(300, 3))
X[RNG.random(X.shape) < 0.1] = np.nan
X[:40, 2] = np.inf
Y = np.array(["a", "b", "c"])[1 * (np.nan_to_num(X[:, 0]) > 0) + (X[:, 1] > 0.5)]
NEW = np.concatenate([RNG.normal(size=(200, 3)), np.full((1, 3), np.nan), [[-np.inf, np.inf, 0.0]]])


def bagged(seed: int, algorithm: str = "adaboost-mh", **parameters: Any) -> Any:
    rows = np.random.default_rng(seed).integers(0, 300, 300)
    few = {"n_estimators": 3, "max_bins": 12, "device": "numpy"}
    return gpuboost.fit(X[rows], Y[rows], algorithm=algorithm, **few | parameters)


@pytest.mark.parametrize("algorithm", [name for name in gpuboost.ALGORITHMS if name != "localized-similarities"])
def test_scores_are_the_mean_and_files_hold_it(algorithm: str, tmp_path: Path) -> None:
    models = [bagged(seed, algorithm) for seed in range(3)]
    mean = gpuboost.average(models)
    expected = np.mean([model.decision_function(NEW) for model in models], axis=0)
    assert mean.decision_function(NEW) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert_array_equal(mean.predict(NEW), np.array(["a", "b", "c"])[expected.argmax(axis=1)])
    mean.save(tmp_path / "mean")
    again = gpuboost.load(tmp_path / "mean", device="numpy")
    assert again.n_averaged_ == pickle.loads(pickle.dumps(mean)).n_averaged_ == 3
    assert_array_equal(again.predict_proba(NEW), mean.predict_proba(NEW))
    assert to_bytes(again) == to_bytes(mean) == to_bytes(gpuboost.average(models))


def test_one_model_is_its_own_average() -> None:
    model = bagged(0)
    assert_array_equal(gpuboost.average([model]).decision_function(NEW), model.decision_function(NEW))
    four = gpuboost.average([model] * 4).decision_function(NEW)
    assert four == pytest.approx(model.decision_function(NEW), rel=1e-12, abs=1e-12)


def test_weights() -> None:
    models = [bagged(seed) for seed in range(2)]
    f, g = (model.decision_function(NEW) for model in models)
    assert gpuboost.average(models, [6, 2]).decision_function(NEW) == pytest.approx(0.75 * f + 0.25 * g, rel=1e-12, abs=1e-12)
    assert_array_equal(gpuboost.average(models, [0.0, 3.0]).decision_function(NEW), g)
    for wrong in ([1], [1, -1], [0, 0], [1, np.nan], [[1, 1]], "ab", ["1", "1"], {0: 1, 1: 1}, [1, 10**400]):
        with pytest.raises(ValueError, match="weights must be 2 finite numbers"):
            gpuboost.average(models, wrong)
    with pytest.raises(ValueError, match="weights must be 2 finite numbers"):
        gpuboost.average(models, np.ma.masked_equal([1, 2], 2))
    with pytest.raises(TypeError, match="models must be a sequence of fitted classifiers"):
        gpuboost.average(models[0])


def test_stages_are_the_means_of_stages() -> None:
    models = [bagged(0, n_estimators=2), bagged(1, n_estimators=4)]
    mean = gpuboost.average(models)
    stages = list(mean.staged_decision_function(NEW))
    f, g = (list(model.staged_decision_function(NEW)) for model in models)
    f += [f[-1]] * 2
    assert len(stages) == mean.n_estimators_ == 4
    for got, a, b in zip(stages, f, g, strict=True):
        assert got == pytest.approx((a + b) / 2, rel=1e-12, abs=1e-12)


def test_exports_know_it() -> None:
    mean = gpuboost.average([bagged(seed) for seed in range(2)])
    scores = np.zeros((len(NEW), 3))
    document = mean.to_dict()
    for tree in (tree for trees in document["rounds"] for tree in trees):
        for i, row in enumerate(NEW):
            node = tree["nodes"][0]
            while "leaf" not in node:
                value = row[node["feature"]]
                left = node["missing"] == "left" if np.isnan(value) else value < float(node["less_than"])
                node = tree["nodes"][node["left" if left else "right"]]
            scores[i] += node["leaf"]
    assert_array_equal(scores, mean.decision_function(NEW))


def test_importances_are_the_mean_of_gains() -> None:
    models = [bagged(seed) for seed in range(2)]
    gains = np.mean([model.ensemble_.feature_gains(3) for model in models], axis=0)
    assert gpuboost.average(models).feature_importances_ == pytest.approx(gains / gains.sum())


def test_an_average_is_calibrated_anew_and_not_continued() -> None:
    models = [bagged(seed, calibration="holdout") for seed in range(2)]
    with pytest.warns(UserWarning, match="calibrate it on rows of its own"):
        mean = gpuboost.average(models)
    assert not hasattr(mean, "temperature_")
    assert mean.calibrate(NEW[:200], np.array(["a", "b", "c"])[1 * (NEW[:200, 0] > 0) + (NEW[:200, 1] > 0.5)]).temperature_ > 0
    assert (mean.history_, mean.stop_reason_) == ({}, "average of 2 models")
    with pytest.raises(ValueError, match="cannot continue an average of models"):
        mean.set_params(warm_start=True).fit(X, Y)
    assert not hasattr(mean.set_params(warm_start=False).fit(X, Y), "n_averaged_")


def test_what_does_not_go_together() -> None:
    model = bagged(0)
    with pytest.raises(ValueError, match="at least one fitted classifier"):
        gpuboost.average([])
    with pytest.raises(TypeError, match=r"models\[1\] must be a fitted boosting classifier"):
        gpuboost.average([model, gpuboost.AdaBoostMHClassifier()])
    with pytest.raises(TypeError, match="models must be of one class"):
        gpuboost.average([model, bagged(0, "samme")])
    similar = gpuboost.fit(NEW[:200], Y[:200], algorithm="localized-similarities", n_estimators=2, device="numpy")
    with pytest.raises(TypeError, match="has no trees to join"):
        gpuboost.average([similar])
    with pytest.raises(ValueError, match="has the classes"):
        gpuboost.average([model, gpuboost.fit(X, Y == "a", n_estimators=1, device="numpy")])
    with pytest.raises(ValueError, match="has other columns"):
        gpuboost.average([model, gpuboost.fit(X[:, :2], Y, n_estimators=1, device="numpy")])
    with pytest.raises(ValueError, match="do not mean what those"):
        gpuboost.average([model, bagged(1, initial_weights="uniform")])
    with pytest.raises(ValueError, match="do not mean what those"):
        gpuboost.average([bagged(1, "rebel"), bagged(1, "rebel", cost_matrix=[[0, 1, 2], [1, 0, 1], [1, 1, 0]])])


def test_too_many_cuts_are_refused() -> None:
    rng = np.random.default_rng(0)
    models = []
    for _ in range(5):
        column = rng.normal(size=(400, 1))
        models.append(gpuboost.fit(column, np.arange(400) % 2, n_estimators=16, max_leaf_nodes=20, device="numpy"))
    with pytest.raises(ValueError, match=r"column 0 has \d+ different cuts .* train them with max_bins=51"):
        gpuboost.average(models)


def test_one_model_in_place_of_a_sequence_is_named() -> None:
    with pytest.raises(TypeError, match=r"models must be a sequence of fitted classifiers, got AdaBoostMHClassifier"):
        gpuboost.average(gpuboost.AdaBoostMHClassifier())

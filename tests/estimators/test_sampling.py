"""The parameters weight_trim, max_features and subsample of the estimators."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

import gpuboost
from gpuboost.boosters.sampling import Sampling
from tests.problems import blobs

ALGORITHMS: dict[str, dict[str, Any]] = {
    "adaboost-mh": {"max_leaf_nodes": 4},
    "samme": {"max_leaf_nodes": 4},
    "gamble": {"max_leaf_nodes": 4},
    "rebel": {"max_depth": 2},
    "abc-boost": {"max_leaf_nodes": 4, "min_samples_leaf": 2},
    "logitboost": {"max_leaf_nodes": 4, "min_samples_leaf": 2},
    "mart": {"max_leaf_nodes": 4, "min_samples_leaf": 2},
    "one-vs-all": {"max_leaf_nodes": 4},
    "adaboost-m1": {"max_leaf_nodes": 6},
    "adaboost-mr": {"max_leaf_nodes": 4, "learner": "single-label"},
    "adaboost-ecc": {"max_leaf_nodes": 4, "colourings": [[-1, 1, 1], [1, -1, 1], [1, 1, -1]]},
    "aoso-logitboost": {"max_leaf_nodes": 4, "min_samples_leaf": 2},
}
SAMPLED = {"weight_trim": 0.9, "max_features": 0.5, "subsample": 0.5}
DATA = blobs(120, 6, 3, 1)
X, Y = DATA.X, DATA.signs.argmax(axis=1)


def fit(algorithm: str, **options: Any) -> Any:
    return gpuboost.fit(X, Y, algorithm=algorithm, device="cpu", **{"n_estimators": 6, **ALGORITHMS[algorithm], **options})


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_defaults_are_the_plain_algorithm(algorithm: str) -> None:
    plain = fit(algorithm)
    for options in ({"weight_trim": 1.0}, {"weight_trim": 1, "max_features": 1, "subsample": 1, "random_state": 5}):
        assert fit(algorithm, **options).ensemble_.digest() == plain.ensemble_.digest()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("option", SAMPLED)
def test_each_parameter_arrives(algorithm: str, option: str) -> None:
    value = 0.5 if option != "weight_trim" else 0.9
    model = fit(algorithm, random_state=3, **{option: value})
    assert model.ensemble_.digest() != fit(algorithm).ensemble_.digest()
    assert model.ensemble_.digest() == fit(algorithm, random_state=3, **{option: value}).ensemble_.digest()
    other = fit(algorithm, random_state=4, **{option: value}).ensemble_.digest()
    assert (other == model.ensemble_.digest()) == (option == "weight_trim")  # in which nothing is random


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("random_state", [3, None])
def test_a_continued_model_is_one_long_training(algorithm: str, random_state: int | None) -> None:
    first = fit(algorithm, random_state=random_state, n_estimators=2, **SAMPLED)
    long = clone(first).set_params(n_estimators=6)
    if random_state is None:  # the seed that the first fit has drawn
        long.set_params(random_state=first._seed)
    continued = pickle.loads(pickle.dumps(first)).set_params(n_estimators=6, warm_start=True).fit(X, Y)
    assert continued.ensemble_.digest() == long.fit(X, Y).ensemble_.digest()
    assert continued.history_["train_loss"] == long.history_["train_loss"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_shares_that_are_none(algorithm: str) -> None:
    with pytest.raises(ValueError, match=r"weight_trim must be None or a number above 0, up to 1, got 0"):
        fit(algorithm, weight_trim=0)
    with pytest.raises(TypeError, match=r"weight_trim must be None or a number above 0, up to 1, got '0\.9'"):
        fit(algorithm, weight_trim="0.9")
    for name in ("max_features", "subsample"):
        with pytest.raises(ValueError, match=rf"{name} must be a number above 0, up to 1, got 1\.5"):
            fit(algorithm, **{name: 1.5})
        with pytest.raises(ValueError, match=rf"{name} must be a number above 0, up to 1, got nan"):
            fit(algorithm, **{name: float("nan")})
        with pytest.raises(TypeError, match=rf"{name} must be a number above 0, up to 1, got None"):
            fit(algorithm, **{name: None})
        with pytest.raises(TypeError, match=rf"{name} must be a number above 0, up to 1, got True"):
            fit(algorithm, **{name: True})


def test_what_the_parameters_become() -> None:
    model = gpuboost.SAMMEClassifier(weight_trim=np.float32(0.5), subsample=1)
    assert model._sampling(9) == Sampling(0.5, 1.0, 1.0, seed=9)
    assert gpuboost.SAMMEClassifier()._sampling() == Sampling()
    assert gpuboost.RebelClassifier(pruning=np.bool_(True))._sampling() == Sampling(pruning=True)


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if "min_samples_leaf" not in ALGORITHMS[name]])
def test_pruning_gives_the_same_model(algorithm: str) -> None:
    for options in ({}, {"random_state": 3, **SAMPLED}):
        plain, quick = (fit(algorithm, pruning=quick, **options) for quick in (False, True))
        assert plain.ensemble_.digest() == quick.ensemble_.digest()
    with pytest.raises(TypeError, match="pruning must be True or False, got 1"):
        fit(algorithm, pruning=1)


@pytest.mark.parametrize("option", SAMPLED)
def test_regressors_have_their_own(option: str) -> None:
    model = gpuboost.GambleClassifier(n_estimators=2, regressor=DecisionTreeRegressor(max_depth=2), **{option: 0.5})
    with pytest.raises(ValueError, match=rf"only class trees, regressor=None, .* got .*{option}=0\.5"):
        model.fit(X, Y)
    model.set_params(**{option: 1.0}).fit(X, Y)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["abc-boost", "mart"])
def test_newton_trees_with_weights(algorithm: str) -> None:
    weight = np.random.default_rng(1).integers(0, 4, len(Y))
    kept = weight > 0
    own = {"algorithm": algorithm, "n_estimators": 6, "random_state": 2, **ALGORITHMS[algorithm], **SAMPLED}
    models = [gpuboost.fit(X, Y, sample_weight=weight, device=device, **own) for device in ("numpy", "cpu")]
    models.append(gpuboost.fit(X[kept], Y[kept], sample_weight=weight[kept], device="cpu", **own))
    assert len({model.ensemble_.digest() for model in models}) == 1


def test_early_stopping_and_weights() -> None:
    weight = np.random.default_rng(0).integers(0, 4, len(Y))
    options = {"early_stopping": "patience", "n_iter_no_change": 3, "n_estimators": 30, "random_state": 0, **SAMPLED}
    models = [
        gpuboost.fit(X, Y, sample_weight=weight * scale, device=device, max_leaf_nodes=4, class_weight="balanced", **options)
        for scale, device in ((1, "numpy"), (1, "cpu"), (8, "cpu"))
    ]
    assert len({model.ensemble_.digest() for model in models}) == 1

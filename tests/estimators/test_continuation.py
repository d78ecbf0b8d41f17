"""Continuing a model on other rows, and weights that are no multiples of each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost import ABCBoostClassifier, AdaBoostMHClassifier, GambleClassifier


def test_missing_values_that_come_with_the_second_fit() -> None:
    # The cuts know of no missing values, but the rows that the model goes on with have some: an edge is never above 1.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(rng.random(120) < 0.2, 1, np.digitize(X[:, 0], [-0.4, 0.4]))
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    digests = set()
    for device in ("numpy", "cpu"):
        model = AdaBoostMHClassifier(n_estimators=3, max_leaf_nodes=4, device=device).fit(X, y)
        model.set_params(warm_start=True, n_estimators=8).fit(holes, y)
        assert max(model.history_["edge"]) <= 1.0
        digests.add(model.ensemble_.digest())
    assert len(digests) == 1


def test_real_leaves_change_continuously_with_the_weights() -> None:
    # 4096 is the largest multiple that is taken as a repetition: neither side of it is another model.
    X, y = np.repeat([[0.0], [1.0]], 100, axis=0), np.repeat([0, 1, 1], [90, 10, 100])
    p = [
        AdaBoostMHClassifier(n_estimators=1, learner="stump")
        .fit(X, y, sample_weight=np.repeat([1.0, heavy], 100))
        .predict_proba([[0.0], [1.0]])
        for heavy in (4096.0, 4097.0)
    ]
    np.testing.assert_allclose(p[0], p[1], atol=1e-3)


def test_weight_two_is_the_row_twice_in_any_unit() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    y = np.where(rng.random(150) < 0.2, 1, np.digitize(X[:, 0], [-0.4, 0.4]))
    for weights in (np.full(150, 2), rng.integers(2, 4, 150)):
        one = AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=4).fit(X, y, sample_weight=weights)
        two = AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=4).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("samme", {}),  # a tree that errs nowhere is the last
        ("samme", {"variant": "real"}),
        ("gamble", {"learning_rate": 2 / 3}),
        ("gamble", {"learning_rate": "line-search"}),
        ("adaboost-mh", {"variant": "discrete"}),
        ("rebel", {}),
        ("abc-boost", {}),
    ],
)
@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("values", [(0.0, 1.0, 2.0), (0.0, 1.0, 1.0), (0.0, 0.0, 0.0)])
@pytest.mark.filterwarnings("ignore:no column of X tells rows apart")
def test_a_training_that_has_ended_does_not_go_on(
    values: tuple[float, ...], device: str, name: str, params: dict[str, Any]
) -> None:
    # Three classes that one feature tells apart, or two of them, or none.
    X, y = np.repeat(values, 4)[:, None], np.repeat([0, 1, 2], 4)
    model = gpuboost.fit(X, y, algorithm=name, device=device, n_estimators=60, **params)
    ended, digest = model.n_estimators_, model.ensemble_.digest()
    assert ended == 1 or (name, params, values) != ("samme", {}, (0.0, 1.0, 2.0))
    for rounds in {max(ended - 1, 1), ended}:
        model = gpuboost.fit(X, y, algorithm=name, device=device, n_estimators=rounds, **params)
        model.set_params(n_estimators=60, warm_start=True).fit(X, y)
        assert (model.n_estimators_, model.ensemble_.digest()) == (ended, digest)


@pytest.mark.parametrize("base_class", ["search", None])
def test_the_base_class_of_a_dropped_round_is_forgotten(base_class: str | None) -> None:
    # Early stopping keeps the first round, and in the rounds that it drops there was another search.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = np.digitize(X[:, 0], [-0.6, 0.0, 0.6])
    other = (rng.normal(size=(80, 4)), rng.integers(0, 4, 80))
    params: dict[str, Any] = {"gap": 7, "base_class": base_class, "device": "cpu"}
    model = ABCBoostClassifier(n_estimators=60, early_stopping="patience", n_iter_no_change=30, **params)
    model.fit(X, y, eval_set=other)
    assert model.n_estimators_ < 7 < len(model.history_["base_class"])
    model.set_params(early_stopping=False, warm_start=True, n_estimators=10).fit(X, y)
    whole = ABCBoostClassifier(n_estimators=10, **params).fit(X, y)
    assert model.ensemble_.digest() == whole.ensemble_.digest()
    np.testing.assert_array_equal(model.history_["base_class"], whole.history_["base_class"])


def test_a_training_that_had_no_cuts_goes_on_where_there_are_some() -> None:
    # At first no cut leaves half of the weight on both sides, or no column tells classes apart: one leaf, the last tree.
    X = np.arange(11.0)[:, None]
    y = (X[:, 0] > 4).astype(int) + (X[:, 0] > 8)
    crossed = np.tile([0.0, 1.0], 20)[:, None]
    half = np.repeat([0, 1], 20)
    for device in ("numpy", "cpu"):
        model = GambleClassifier(n_estimators=5, warm_start=True, device=device, min_weight_fraction_leaf=0.5).fit(X, y)
        assert model.n_estimators_ == 1
        model.set_params(n_estimators=20, min_weight_fraction_leaf=0.0).fit(X, y)
        assert (model.n_estimators_, model.score(X, y)) == (20, 1.0)
        model = GambleClassifier(n_estimators=3, warm_start=True, device=device).fit(crossed, half)
        assert model.n_estimators_ == 1
        assert model.set_params(n_estimators=9).fit(np.sort(crossed, axis=0), half).score(np.sort(crossed, axis=0), half) == 1.0

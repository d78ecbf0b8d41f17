"""The estimators of MART, LogitBoost and ABC-Boost: parameters, labels, histories, probabilities."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine

import gpuboost
from gpuboost import ABCBoostClassifier, LogitBoostClassifier, MartClassifier
from gpuboost.datasets import make_poker_hands
from gpuboost.estimators.abc_boost import SoftmaxClassifier

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def make(kind: type[SoftmaxClassifier] = ABCBoostClassifier, **params: Any) -> SoftmaxClassifier:
    return kind(**{"n_estimators": 8, "device": "cpu", "n_jobs": 1, **params})


def test_names() -> None:
    for algorithm, kind in (("abc-boost", ABCBoostClassifier), ("mart", MartClassifier), ("logitboost", LogitBoostClassifier)):
        model = gpuboost.fit(X, Y, algorithm=algorithm, n_estimators=5, device="cpu")
        assert type(model) is kind
        assert model.score(X, Y) > 0.9


@pytest.mark.parametrize(("kind", "loss"), [(MartClassifier, "mart"), (LogitBoostClassifier, "logit")])
def test_without_base_class_it_is_the_same_model(kind: type[SoftmaxClassifier], loss: str) -> None:
    one, other = make(kind).fit(X, Y), make(loss=loss, base_class=None).fit(X, Y)
    assert one.ensemble_.digest() == other.ensemble_.digest()
    assert (one.n_estimators_, one.ensemble_.n_trees) == (8, 24)
    assert all(map(math.isnan, one.history_["base_class"]))


@pytest.mark.parametrize("kind", [MartClassifier, LogitBoostClassifier])
def test_an_unknown_argument_is_one_of_the_class_that_was_called(kind: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected keyword argument 'pruning'"):
        kind(pruning=True)
    defaults = ABCBoostClassifier(max_bins=7).get_params()
    known = {name: value for name, value in defaults.items() if name not in ("loss", "base_class", "gap", "n_candidates")}
    assert clone(kind(max_bins=7)).get_params() == known


def test_base_class_is_a_label() -> None:
    model = make(base_class="virginica").fit(X, NAMES)
    assert model.history_["base_class"] == [2] * 8
    assert model.ensemble_.digest() == make(base_class=2).fit(X, Y).ensemble_.digest()
    with pytest.raises(ValueError, match=r"base_class must be .* a class of y, .*'setosa'.*, got 'rose'"):
        make(base_class="rose").fit(X, NAMES)


def test_search_is_the_search_even_if_a_class_is_called_so() -> None:
    names = np.where(Y == 0, "search", NAMES)
    plain = make().fit(X, Y)
    assert make().fit(X, names).ensemble_.digest() == plain.ensemble_.digest()
    assert all(plain.history_["candidate_losses"])


@pytest.mark.parametrize("label", [np.array([0, 1]), [0], {}, math.nan, "0"])
def test_base_class_is_no_label(label: Any) -> None:
    with pytest.raises(ValueError, match=r"base_class must be .* a class of y, .* got "):
        make(base_class=label).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "hinge"}, "loss must be one of .*, got 'hinge'"),
        ({"gap": 0}, "gap must be .* at least 1, got 0"),
        ({"n_candidates": 0}, "n_candidates must be .* at least 1, got 0"),
        ({"min_samples_leaf": 0}, "min_samples_leaf must be an integer from 1 to 2147483647, got 0"),
        ({"min_samples_leaf": 10**30}, "min_samples_leaf must be an integer from 1 to 2147483647, got 10{30}"),
        ({"min_samples_leaf": 10**9999}, "min_samples_leaf must be an integer .*, got an integer of 33216 bits"),
        ({"learning_rate": 10**400}, "learning_rate must be a number above 0, up to 1000000, got an integer of 1329 bits"),
        ({"learning_rate": 1e308}, "learning_rate must be a number above 0, up to 1000000, got 1e[+]308"),
        ({"max_leaf_nodes": 1}, "max_leaf_nodes must be .* at least 2, got 1"),
        ({"learning_rate": 0}, "learning_rate must be .*, got 0"),
    ],
)
def test_wrong_parameters(params: dict[str, Any], message: str) -> None:
    model = make().fit(X, Y)
    before = model.ensemble_.digest()
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(X, Y)
    assert model.ensemble_.digest() == before


def test_indicator_matrices_are_refused() -> None:
    with pytest.raises(ValueError, match="needs one label a row"):
        make().fit(X, np.eye(3, dtype=int)[Y])


def test_history_and_stages() -> None:
    model = make(gap=3).fit(X, NAMES, eval_set=(X[::3], NAMES[::3]))
    history = model.history_
    assert {len(values) for values in history.values()} == {8}
    assert [len(losses) for losses in history["candidate_losses"]] == [3, 0, 0, 3, 0, 0, 3, 0]
    for loss, base, losses in zip(history["train_loss"], history["base_class"], history["candidate_losses"], strict=True):
        assert not losses or loss == pytest.approx(losses[base], rel=1e-9) == min(losses)
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == 8
    assert (stages[-1] == model.predict_proba(X)).all()
    own = stages[3][np.arange(150), Y]
    assert history["train_loss"][3] == pytest.approx(-np.log(own).mean() / math.log(3), rel=1e-8)
    assert history["valid_loss"][3] == pytest.approx(-np.log(own[::3]).mean() / math.log(3), rel=1e-8)


def test_probabilities_are_the_softmax_of_the_scores() -> None:
    model = make().fit(X, Y)
    f, p = model.decision_function(X), model.predict_proba(X)
    assert p == pytest.approx(np.exp(f) / np.exp(f).sum(axis=1, keepdims=True), rel=1e-12)
    assert (p.argmax(axis=1) == model.predict(X)).all()


@pytest.mark.parametrize("kind", [ABCBoostClassifier, MartClassifier])
def test_more_rounds_are_one_long_fit(kind: type[SoftmaxClassifier]) -> None:
    params = {"gap": 3} if kind is ABCBoostClassifier else {}
    wine, labels = load_wine(return_X_y=True)
    long = make(kind, n_estimators=7, **params).fit(wine, labels)
    more = make(kind, n_estimators=2, warm_start=True, **params).fit(wine, labels)
    for n in (5, 7):
        more = pickle.loads(pickle.dumps(more)).set_params(n_estimators=n).fit(wine, labels)
    assert more.ensemble_.digest() == long.ensemble_.digest()
    assert more.history_["train_loss"] == long.history_["train_loss"]


def test_early_stopping_keeps_whole_rounds() -> None:
    model = make(n_estimators=60, early_stopping="patience", n_iter_no_change=5, random_state=0).fit(X, Y)
    assert model.stop_reason_ == "early stopping"
    assert model.ensemble_.n_trees == 2 * model.n_estimators_


def test_columns_that_say_nothing_give_the_shares() -> None:
    with pytest.warns(UserWarning, match="no column of X tells rows apart"):
        model = make().fit(np.zeros((10, 1)), [0, 0, 0, 0, 0, 1, 1, 1, 2, 2])
    assert model.predict_proba([[0.0]])[0] == pytest.approx([0.5, 0.3, 0.2])


@pytest.mark.slow
def test_abc_boost_learns_poker_hands_faster() -> None:
    # What the papers are about, on a small scale: after 60 rounds ABC-MART has a loss that MART is far from.
    hands, labels = make_poker_hands(6000, 0)
    mart = make(MartClassifier, n_estimators=60).fit(hands, labels).history_["train_loss"][-1]
    abc = make(loss="mart", gap=10, n_estimators=60).fit(hands, labels).history_["train_loss"][-1]
    assert abc < 0.97 * mart

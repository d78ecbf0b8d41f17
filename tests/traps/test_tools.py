"""Life among the tools of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpuboost import AdaBoostMHClassifier
from tests.traps.problem import X, Y, make


class Silent:
    def __call__(self, progress: Any) -> bool:
        return False


def test_clone_and_parameters() -> None:
    callbacks = [Silent()]
    class_weight = {0: 2.0}
    seed = np.random.default_rng(0)
    model = make(callbacks=callbacks, class_weight=class_weight, random_state=seed, early_stopping=True)
    given = model.get_params()
    assert given["callbacks"] is callbacks
    assert given["class_weight"] is class_weight
    model.fit(X, Y)
    assert all(model.get_params()[name] is value for name, value in given.items())
    assert class_weight == {0: 2.0}
    copy = clone(model)
    assert not any(name.endswith("_") for name in vars(copy))
    with pytest.raises(NotFittedError):
        copy.predict(X)
    plain = clone(make().fit(X, Y))
    assert plain.get_params() == make().get_params()
    assert repr(AdaBoostMHClassifier(n_estimators=5)) == "AdaBoostMHClassifier(n_estimators=5)"
    assert clone(make_pipeline(StandardScaler(), make())).fit(X, Y).score(X, Y) == 1.0


def test_a_wrong_value_fails_in_fit_only() -> None:
    model = AdaBoostMHClassifier(n_estimators=-1)
    clone(model.set_params(learner="oak"))
    with pytest.raises(ValueError, match="n_estimators must be an integer of at least 1, got -1"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match='learner must be one of "tree", "stump", "product", "single-label", got \'oak\''):
        model.set_params(n_estimators=3).fit(X, Y)


def test_in_the_company_of_other_tools() -> None:
    words = np.array(["l", "m", "r"])[Y]
    assert is_classifier(make())
    search = GridSearchCV(make(), {"max_leaf_nodes": [2, 4], "n_estimators": [1, 3]}, cv=2).fit(X, words)
    assert search.best_score_ > 0.9
    for tool in (
        StackingClassifier([("a", make()), ("b", make(learner="stump"))], cv=2),
        VotingClassifier([("a", make()), ("b", make(variant="discrete"))], voting="soft"),
        OneVsRestClassifier(make()),
    ):
        assert tool.fit(X, words).score(X, words) > 0.95

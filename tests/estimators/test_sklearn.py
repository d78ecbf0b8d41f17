"""scikit-learn's own checks, and how the estimators get on with its tools."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpuboost import (
    ABCBoostClassifier,
    AdaBoostECCClassifier,
    AdaBoostM1Classifier,
    AdaBoostMHClassifier,
    AdaBoostMRClassifier,
    AOSOLogitBoostClassifier,
    FilterBoostClassifier,
    GambleClassifier,
    LocalizedSimilaritiesClassifier,
    LogitBoostClassifier,
    MartClassifier,
    OneVsAllClassifier,
    OutputCodeClassifier,
    RebelClassifier,
    SAMMEClassifier,
)

# Few rounds, for the sake of time and of one check: it weighs a class down by 10**7 and wants it to be forgotten, but boosting
# goes on until every row that exists is fitted. All other checks pass with any number of rounds.
ESTIMATORS = [
    AdaBoostMHClassifier(n_estimators=20, n_jobs=1),
    MartClassifier(n_estimators=20, n_jobs=1),
    GambleClassifier(n_estimators=2, regressor=Ridge()),
    OutputCodeClassifier(AdaBoostMHClassifier(n_estimators=10, n_jobs=1)),
]
MORE_ESTIMATORS = [
    SAMMEClassifier(n_estimators=3, n_jobs=1),
    FilterBoostClassifier(n_estimators=5, examples_per_round=200, random_state=0, n_jobs=1),
    ABCBoostClassifier(n_estimators=20, n_jobs=1),
    LogitBoostClassifier(n_estimators=20, n_jobs=1),
    RebelClassifier(n_estimators=10, n_jobs=1),
    LocalizedSimilaritiesClassifier(n_estimators=15, random_state=0, n_jobs=1),
    AdaBoostMRClassifier(n_estimators=10, n_jobs=1),
    AOSOLogitBoostClassifier(n_estimators=20, n_jobs=1),
]
VARIANTS = [
    LocalizedSimilaritiesClassifier(n_estimators=15, anchor="best", balls=False, scaling="common", n_jobs=1),
    ABCBoostClassifier(n_estimators=20, loss="mart", gap=5, n_jobs=1),
    AdaBoostMHClassifier(n_estimators=20, variant="discrete", n_jobs=1),
    AdaBoostMHClassifier(n_estimators=20, learner="stump", n_jobs=1),
    AdaBoostMHClassifier(n_estimators=10, learner="single-label", variant="discrete", n_jobs=1),
    AdaBoostM1Classifier(n_estimators=3, n_jobs=1),
    AdaBoostECCClassifier(n_estimators=20, random_state=0, n_jobs=1),
    OneVsAllClassifier(n_estimators=10, n_jobs=1),
    OutputCodeClassifier(AdaBoostMHClassifier(n_estimators=10, n_jobs=1), code="one-vs-all", joint=True),
    AdaBoostMHClassifier(n_estimators=20, learner="product", n_factors=2, n_jobs=1),
    SAMMEClassifier(n_estimators=3, variant="real", n_jobs=1),
    GambleClassifier(n_estimators=3, n_jobs=1),
    GambleClassifier(n_estimators=2, regressor=DecisionTreeRegressor(max_leaf_nodes=4, min_weight_fraction_leaf=0.01)),
    OutputCodeClassifier(LogitBoostClassifier(n_estimators=10, n_jobs=1), code="one-vs-all", decoding="hamming"),
]


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the checks that an estimator cannot pass, and why."""
    if not isinstance(estimator, FilterBoostClassifier):
        return {}
    # A filter accepts rows whatever they weigh, and the Newton step of a leaf that holds such rows alone is that of any weight.
    return {"check_class_weight_classifiers": "a class that weighs 10**-7 is fitted where it is by itself"}


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(MORE_ESTIMATORS, expected_failed_checks=expected_failures)
def test_scikit_learn_check_of_more(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.exhaustive
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_check_of_variants(estimator: Any, check: Any) -> None:
    check(estimator)

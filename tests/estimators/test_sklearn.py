"""scikit-learn's own checks, and how the estimators get on with its tools."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from gpuboost import AdaBoostMHClassifier

ESTIMATORS = [
    AdaBoostMHClassifier(n_estimators=10, max_bins=16, max_leaf_nodes=4, n_jobs=1),
    AdaBoostMHClassifier(n_estimators=10, max_bins=16, learner="stump", n_jobs=1),
    AdaBoostMHClassifier(n_estimators=10, max_bins=16, learner="product", n_factors=2, n_jobs=1),
    AdaBoostMHClassifier(n_estimators=10, max_bins=16, max_leaf_nodes=4, variant="real", n_jobs=1),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)

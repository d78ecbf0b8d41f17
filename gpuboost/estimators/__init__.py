"""The scikit-learn layer: it validates, encodes labels, hands over to `gpuboost.training.train` and predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpuboost.registry import estimator_class

if TYPE_CHECKING:
    from gpuboost.estimators.abc_boost import ABCBoostClassifier, LogitBoostClassifier, MartClassifier
    from gpuboost.estimators.adaboost_m1 import AdaBoostM1Classifier
    from gpuboost.estimators.adaboost_mh import AdaBoostMHClassifier
    from gpuboost.estimators.adaboost_mr import AdaBoostECCClassifier, AdaBoostMRClassifier
    from gpuboost.estimators.aoso_logitboost import AOSOLogitBoostClassifier
    from gpuboost.estimators.base import BoostingClassifier
    from gpuboost.estimators.filterboost import FilterBoostClassifier
    from gpuboost.estimators.gamble import GambleClassifier
    from gpuboost.estimators.localized_similarities import LocalizedSimilaritiesClassifier
    from gpuboost.estimators.one_vs_all import OneVsAllClassifier
    from gpuboost.estimators.output_code import OutputCodeClassifier
    from gpuboost.estimators.rebel import RebelClassifier
    from gpuboost.estimators.samme import SAMMEClassifier

__all__ = [
    "ABCBoostClassifier",
    "AOSOLogitBoostClassifier",
    "AdaBoostECCClassifier",
    "AdaBoostM1Classifier",
    "AdaBoostMHClassifier",
    "AdaBoostMRClassifier",
    "BoostingClassifier",
    "FilterBoostClassifier",
    "GambleClassifier",
    "LocalizedSimilaritiesClassifier",
    "LogitBoostClassifier",
    "MartClassifier",
    "OneVsAllClassifier",
    "OutputCodeClassifier",
    "RebelClassifier",
    "SAMMEClassifier",
]


def __getattr__(name: str) -> Any:
    """Load an estimator when it is asked for: each brings its booster, its learners and its primitives."""
    if name == "BoostingClassifier":
        from gpuboost.estimators.base import BoostingClassifier

        return BoostingClassifier
    if name in __all__:
        return estimator_class(name)
    raise AttributeError(f"module 'gpuboost.estimators' has no attribute {name!r}")

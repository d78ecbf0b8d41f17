"""The scikit-learn layer: it validates, encodes labels, hands over to `gpuboost.training.train` and predicts."""

from gpuboost.estimators.abc_boost import ABCBoostClassifier, LogitBoostClassifier, MartClassifier
from gpuboost.estimators.adaboost_mh import AdaBoostMHClassifier
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.gamble import GambleClassifier
from gpuboost.estimators.rebel import RebelClassifier
from gpuboost.estimators.samme import SAMMEClassifier

__all__ = [
    "ABCBoostClassifier",
    "AdaBoostMHClassifier",
    "BoostingClassifier",
    "GambleClassifier",
    "LogitBoostClassifier",
    "MartClassifier",
    "RebelClassifier",
    "SAMMEClassifier",
]

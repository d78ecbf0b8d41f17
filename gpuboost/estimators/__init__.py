"""The scikit-learn layer: it validates, encodes labels, hands over to `gpuboost.training.train` and predicts."""

from gpuboost.estimators.adaboost_mh import AdaBoostMHClassifier
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.gamble import GambleClassifier
from gpuboost.estimators.samme import SAMMEClassifier

__all__ = ["AdaBoostMHClassifier", "BoostingClassifier", "GambleClassifier", "SAMMEClassifier"]

"""The scikit-learn layer: it validates, encodes labels, hands over to `gpuboost.training.train` and predicts."""

from gpuboost.estimators.adaboost_mh import AdaBoostMHClassifier
from gpuboost.estimators.base import BoostingClassifier

__all__ = ["AdaBoostMHClassifier", "BoostingClassifier"]

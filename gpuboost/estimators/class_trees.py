"""What the estimators of the multi-class exponential loss share."""

from __future__ import annotations

from gpuboost.array_types import Floats, IntArray
from gpuboost.boosters.class_trees import centred
from gpuboost.estimators.base import SingleLabelClassifier
from gpuboost.exactmath import log
from gpuboost.links import Link, Softmax


class ClassTreeClassifier(SingleLabelClassifier):
    """Base class of classifiers whose probabilities are ``softmax(F / (K - 1))`` (theorem 3.1 of the GAMBLE paper)."""

    _margin_loss = "exponential"

    def _link(self, n_classes: int) -> Link:
        return Softmax(max(n_classes - 1, 1))

    def _prior_scores(self, positive: IntArray, total: int) -> Floats:
        scores: Floats = max(len(positive) - 1, 1) * centred(log(positive)[None, :])[0]
        return scores

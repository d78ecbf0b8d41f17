"""The estimator of one-vs-all AdaBoost (`gpuboost.boosters.comparison.one_vs_all`)."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.comparison.one_vs_all import OneVsAll
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.estimators.base import SingleLabelClassifier
from gpuboost.estimators.voting import VotingParameters
from gpuboost.exactmath import log
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.links import Link, Sigmoid


class OneVsAllClassifier(VotingParameters, SingleLabelClassifier):
    """One-vs-all AdaBoost: for each class a binary AdaBoost against all others, whose largest score wins.

    `AdaBoostMHClassifier` minimises the same loss with trees that all classes share.

    Parameters
    ----------
    n_estimators : int, default 500
        Rounds of boosting, of one tree for each class.
    variant : {"discrete", "real"}, default "discrete"
        "discrete" is AdaBoost, with one coefficient for each tree; "real" has one for each leaf.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. "train_loss" and "edge" are means over the classes.

    See Also
    --------
    OutputCodeClassifier : Other codes, and any binary booster.

    References
    ----------
    Y. Freund and R. Schapire (1997), A decision-theoretic generalization of on-line learning and an application to boosting,
    Journal of Computer and System Sciences 55.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import OneVsAllClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> OneVsAllClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    n_estimators: int = 500
    learner: Literal["tree", "stump", "product"] = "tree"
    variant: Literal["discrete", "real"] = "discrete"

    _margin_loss = "exponential"

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> OneVsAll:
        self._check_labels(encoder)
        return OneVsAll(
            AdaBoostMH(
                self._learner(len(encoder.classes), sample),
                "uniform",
                self.variant,
                float(self.learning_rate),
                float(self.min_weight_fraction_leaf),
                self._sampling(self._seed),
            )
        )

    def _link(self, n_classes: int) -> Link:
        return Sigmoid(2.0)

    def _prior_scores(self, positive: IntArray, total: int) -> Floats:
        return np.clip(0.5 * (log(positive) - log(total - positive)), -MAX_STEP, MAX_STEP)

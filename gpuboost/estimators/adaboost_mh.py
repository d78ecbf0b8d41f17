"""The estimator of AdaBoost.MH (`gpuboost.boosters.adaboost_mh`)."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.voting import VotingParameters
from gpuboost.exactmath import log
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.links import Link, Sigmoid


class AdaBoostMHClassifier(VotingParameters, BoostingClassifier):
    """AdaBoost.MH with multi-class Hamming trees, stumps or products of stumps (Kegl 2014).

    The algorithm boosts one vector-valued classifier a round, which votes for or against every class, and whose cuts are shared
    by all classes. The same data and parameters give the same model on every backend and with any number of threads.

    Parameters
    ----------
    n_estimators : int, default 1000
        Rounds of boosting, the number of trees.
    learner : {"tree", "stump", "product", "single-label"}, default "tree"
        The weak learner: Hamming trees (section 3 of the paper), decision stumps, or products of decision stumps (Kegl and
        Busa-Fekete 2009). "single-label" are trees whose leaves vote for one class and against all others, for comparison;
        they need ``variant="discrete"``.
    variant : {"real", "discrete"}, default "real"
        "discrete" gives each round one coefficient (eq. 12), "real" one to every leaf and class (section 2.3). The latter needs
        fewer rounds; the former, with which the paper's experiments were made, suffers less from wrong labels.
    initial_weights : {"auto", "single-label", "uniform"}, default "auto"
        How the weight of a row is divided among the classes: half of it to the row's own class (eq. 3), or equally. "auto" is
        "single-label" for a y of labels and "uniform" for an indicator matrix.

    Attributes
    ----------
    initial_weights_ : {"single-label", "uniform"}
        What ``initial_weights`` has become.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Each feature's share of the edge that all cuts have won.

    See Also
    --------
    SAMMEClassifier : Trees that vote for one class, for a loss of one label a row.
    ABCBoostClassifier : A tree for each class, for the log loss.
    FilterBoostClassifier : Trees from a stream, for more rows than memory holds.

    References
    ----------
    B. Kegl (2014), The return of AdaBoost.MH: multi-class Hamming trees, ICLR.

    B. Kegl and R. Busa-Fekete (2009), Boosting products of base classifiers, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import AdaBoostMHClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostMHClassifier(n_estimators=20, max_leaf_nodes=4).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    n_estimators: int = 1000
    learner: Literal["tree", "stump", "product", "single-label"] = "tree"
    variant: Literal["real", "discrete"] = "real"
    initial_weights: Literal["auto", "single-label", "uniform"] = "auto"

    _learners = ("tree", "stump", "product", "single-label")
    _margin_loss = "exponential"
    _own_fitted = ("initial_weights_",)

    def _check_own_fitted(self) -> None:
        parameters.check_choice("initial_weights_", self.initial_weights_, ("single-label", "uniform"))

    def _check_own_parameters(self) -> None:
        parameters.check_choice("initial_weights", self.initial_weights, ("auto", "single-label", "uniform"))

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> AdaBoostMH:
        if encoder.multi_label and self.initial_weights == "single-label":
            raise ValueError(
                'initial_weights="single-label" needs one label a row, but y is an indicator matrix; use "uniform" or "auto"'
            )
        if self.initial_weights == "auto":
            self.initial_weights_ = "uniform" if encoder.multi_label else "single-label"
        else:
            self.initial_weights_ = self.initial_weights
        if previous is not None and previous.initial_weights_ != self.initial_weights_:
            raise ValueError(
                f"warm_start=True continues a model with initial_weights={previous.initial_weights_!r}, "
                f"got {self.initial_weights_!r}"
            )
        return AdaBoostMH(
            self._learner(len(encoder.classes), sample),
            self.initial_weights_,  # type: ignore[arg-type]
            self.variant,
            float(self.learning_rate),
            float(self.min_weight_fraction_leaf),
            self._sampling(self._seed),
        )

    def _offset(self, n_classes: int) -> float:
        """Return the log of the odds against a class that its initial weights have levelled."""
        return float(log(max(n_classes - 1, 1))) if self.initial_weights_ == "single-label" else 0.0

    def _link(self, n_classes: int) -> Link:
        # A class is a binary problem of its own, whose exponential loss is lowest at half the log odds: those of its share
        # p : 1 - p of the rows if both sides weigh the same, or p : (1 - p) / (K - 1) with the weights of eq. 3.
        return Sigmoid(2.0, self._offset(n_classes))

    def _prior_scores(self, positive: NDArray[np.int64], total: int) -> NDArray[np.float64]:
        scores = 0.5 * (log(positive) - log(total - positive) + self._offset(len(positive)))
        return np.clip(scores, -MAX_STEP, MAX_STEP)

"""The estimators of the ranking loss: AdaBoost.MR, .M2 and .MM, and .OC and .ECC (`gpuboost.boosters.comparison`)."""

from __future__ import annotations

from typing import Any, Literal, Self

from gpuboost.array_types import Floats, IntArray
from gpuboost.boosters.class_trees import centred
from gpuboost.boosters.colouring import Colourings
from gpuboost.boosters.comparison.adaboost_ecc import AdaBoostECC
from gpuboost.boosters.comparison.adaboost_mr import AdaBoostMR
from gpuboost.codes.colourings import check_colourings
from gpuboost.estimators.base import SingleLabelClassifier
from gpuboost.estimators.voting import VotingParameters
from gpuboost.exactmath import log
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.links import Link, Softmax


class RankingClassifier(VotingParameters, SingleLabelClassifier):
    """Base class of classifiers that rank a row's class above all others, pair by pair: ``exp((f_l - f_y) / 2)``."""

    _margin_loss = "exponential"

    def _link(self, n_classes: int) -> Link:
        return Softmax()  # the loss of a pair is lowest where its scores differ by the log odds of its classes

    def _prior_scores(self, positive: IntArray, total: int) -> Floats:
        scores: Floats = centred(log(positive)[None, :])[0]
        return scores


class AdaBoostMRClassifier(RankingClassifier):
    """AdaBoost.MR, .M2 and .MM: boosting on the pairs of a row's class and each other class.

    With one label a row AdaBoost.MR (Schapire and Singer 1999) and AdaBoost.M2 (Freund and Schapire 1997) are one algorithm.
    AdaBoost.MM (Mukherjee and Schapire 2013) is that of trees whose leaves vote for one class: ``learner="single-label"``.

    Parameters
    ----------
    n_estimators : int, default 1000
        Rounds of boosting, the number of trees.
    learner : {"tree", "stump", "product", "single-label"}, default "tree"
        The weak learner: Hamming trees, decision stumps or products of stumps, which vote for or against every class (.MR,
        .M2); or trees whose leaves vote for one class (.MM).
    variant : {"discrete", "real"}, default "discrete"
        "discrete" gives each round one coefficient, as the papers do; "real" gives one to every leaf and class, which minimise
        a bound of the loss.

    See Also
    --------
    AdaBoostMHClassifier : The same learners, on the pairs of a row and a class.
    AdaBoostECCClassifier : The same loss, with binary trees for two groups of classes.

    References
    ----------
    R. Schapire and Y. Singer (1999), Improved boosting algorithms using confidence-rated predictions, Machine Learning 37.
    I. Mukherjee and R. Schapire (2013), A theory of multiclass boosting, JMLR 14.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import AdaBoostMRClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostMRClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    n_estimators: int = 1000
    learner: Literal["tree", "stump", "product", "single-label"] = "tree"
    variant: Literal["discrete", "real"] = "discrete"

    _learners = ("tree", "stump", "product", "single-label")

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> AdaBoostMR:
        self._check_labels(encoder)
        return AdaBoostMR(
            self._learner(len(encoder.classes), sample),
            variant=self.variant,
            learning_rate=float(self.learning_rate),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=self._sampling(self._seed),
        )


class AdaBoostECCClassifier(RankingClassifier):
    """AdaBoost.OC and AdaBoost.ECC: every round divides the classes in two and boosts a binary tree that tells them apart.

    Parameters
    ----------
    n_estimators : int, default 1000
        Rounds of boosting, the number of trees.
    learner : {"tree", "stump", "product"}, default "tree"
        The binary weak learner.
    variant : {"ecc", "oc", "leaf"}, default "ecc"
        How many coefficients a tree has: one for each of its two votes (AdaBoost.ECC), one (AdaBoost.OC), or one for each leaf.
    colourings : array-like of -1 and +1, shape (n_colourings, n_classes), optional
        The two groups, in the order of ``classes_``, which the rounds take in turns; random halves by default.

    See Also
    --------
    OutputCodeClassifier : A code that is fixed before the training.
    FilterBoostClassifier : The same division, for rows from a stream: ``multiclass="oc"``.

    References
    ----------
    R. Schapire (1997), Using output codes to boost multiclass learning problems, ICML. V. Guruswami and A. Sahai (1999),
    Multiclass learning, boosting, and error-correcting codes, COLT.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import AdaBoostECCClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostECCClassifier(n_estimators=20, random_state=0).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    n_estimators: int = 1000
    learner: Literal["tree", "stump", "product"] = "tree"
    variant: Literal["ecc", "oc", "leaf"] = "ecc"
    colourings: Any = None

    _variants = ("ecc", "oc", "leaf")

    def _draws(self, eval_set: Any) -> bool:
        return self.colourings is None or super()._draws(eval_set)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> AdaBoostECC:
        self._check_labels(encoder)
        n_classes = len(encoder.classes)
        return AdaBoostECC(
            self._learner(2, sample),
            variant="discrete" if self.variant == "oc" else "real",
            learning_rate=float(self.learning_rate),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=self._sampling(self._seed),
            colourings=Colourings(n_classes, self._seed, check_colourings(self.colourings, n_classes)),
            kind=self.variant,
        )

"""The estimators of MART, robust LogitBoost and ABC-Boost (`gpuboost.boosters.abc_boost`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, Self

from gpuboost.array_types import Floats, IntArray
from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.boosters.base import Metric
from gpuboost.boosters.class_trees import centred
from gpuboost.estimators.base import SingleLabelClassifier
from gpuboost.estimators.parameters import SamplingParameters
from gpuboost.exactmath import log
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder, shown
from gpuboost.inputs.samples import Sample
from gpuboost.links import Link, Softmax


class SoftmaxClassifier(SamplingParameters, SingleLabelClassifier):
    """Base class of classifiers whose probabilities are the softmax of their scores, with a regression tree for each class.

    A subclass defines the loss and the base class.

    Parameters
    ----------
    max_leaf_nodes : int, default 20
        Leaves of a tree, at least 2.
    min_samples_leaf : int, default 10
        The rows, counted with integer sample weights, that each side of a cut must have of those that the tree is grown from.
    learning_rate : float, default 0.1
        Multiplies the leaves' values.
    weight_trim : float or None, default None
        Each tree is grown from the rows that are the heaviest for it only, those that hold this share of the curvature
        ``p (1 - p)`` of its class, or of that of its pair of classes, such as 0.99 (weight trimming). The losses that a search
        compares are of all rows. None: all rows.
    """

    max_leaf_nodes: int = 20
    min_samples_leaf: int = 10
    learning_rate: float = 0.1

    _loss: ClassVar[Literal["logit", "mart"]] = "logit"
    """The loss of a class that has no such parameter, see `ABCBoost`."""
    _margin_loss = "logistic"
    _metrics: ClassVar[Mapping[str, Metric]] = MappingProxyType({"base_class": float("nan"), "candidate_losses": []})

    def _check_own_parameters(self) -> None:
        parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_integer("min_samples_leaf", self.min_samples_leaf, 1, parameters.MAX_ROWS)
        parameters.check_learning_rate(self.learning_rate)

    def _base(self, encoder: LabelEncoder) -> Literal["search"] | int | None:
        return None

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> ABCBoost:
        self._check_labels(encoder)
        kept = previous.n_estimators_ if previous else 0  # early stopping keeps the history of the rounds that it drops
        last = previous.history_["base_class"][kept - 1 : kept] if previous else []
        return ABCBoost(
            loss=getattr(self, "loss", self._loss),
            base_class=self._base(encoder),
            gap=int(getattr(self, "gap", 1)),
            n_candidates=getattr(self, "n_candidates", None),
            max_leaf_nodes=int(self.max_leaf_nodes),
            min_samples_leaf=int(self.min_samples_leaf),
            learning_rate=float(self.learning_rate),
            sampling=self._sampling(self._seed),
            first_base=int(last[0]) if last and last[0] == last[0] else 0,
        )

    def _link(self, n_classes: int) -> Link:
        return Softmax()

    def _prior_scores(self, positive: IntArray, total: int) -> Floats:
        scores: Floats = centred(log(positive)[None, :])[0]
        return scores


class ABCBoostClassifier(SoftmaxClassifier):
    """ABC-Boost: adaptive base class boosting, ABC-MART and ABC-LogitBoost (Li 2009, 2010).

    Parameters
    ----------
    loss : {"logit", "mart"}, default "logit"
        How trees are cut: by the gain of a Newton step (robust LogitBoost), or by that of least squares (MART). The leaves take
        Newton steps in both.
    base_class : "search", a label or None, default "search"
        The class whose score is minus the sum of the others. "search" takes the one that lowers the training loss the most,
        also if there is a class of that name. None: no base class, the trees of `LogitBoostClassifier` and `MartClassifier`.
    gap : int, default 1
        Search in every ``gap``-th round only, and keep the base class in between ("Fast ABC-Boost").
    n_candidates : int or None, default None
        Search among this many classes only, those whose rows have the largest loss. None: among all.
    n_estimators : int, default 500
        Rounds of boosting, of one tree less than there are classes.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. "base_class" is the number of each round's base class in ``classes_``, and
        "candidate_losses" are the training losses that the candidates would have had (empty in rounds without a search). The
        values of ``ensemble_`` are the papers' F.

    See Also
    --------
    LogitBoostClassifier, MartClassifier : The same without a base class.

    Notes
    -----
    The papers need three classes. With two, every round has one tree, whose steps move both scores: two-class LogitBoost.

    References
    ----------
    P. Li (2009), ABC-Boost: adaptive base class boost for multi-class classification, ICML. P. Li (2010), Robust LogitBoost and
    adaptive base class (ABC) LogitBoost, UAI. P. Li (2010), Fast ABC-Boost for multi-class classification.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import ABCBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> ABCBoostClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    loss: Literal["logit", "mart"] = "logit"
    base_class: Any = "search"
    gap: int = 1
    n_candidates: int | None = None

    def _check_own_parameters(self) -> None:
        parameters.check_choice("loss", self.loss, ("logit", "mart"))
        parameters.check_integer("gap", self.gap, 1)
        if self.n_candidates is not None:
            parameters.check_integer("n_candidates", self.n_candidates, 1)
        super()._check_own_parameters()

    def _base(self, encoder: LabelEncoder) -> Literal["search"] | int | None:
        if self.base_class is None:
            return None
        if isinstance(self.base_class, str) and self.base_class == "search":
            return "search"
        number = encoder.number(self.base_class)
        if number is None:
            raise ValueError(
                f'base_class must be "search", None or a class of y, {shown(encoder.classes)}, got {self.base_class!r}'
            )
        return number


class LogitBoostClassifier(SoftmaxClassifier):
    """Robust LogitBoost: a regression tree for each class in every round, cut by the gain of a Newton step (Li 2010).

    It is `ABCBoostClassifier` with ``loss="logit"`` and ``base_class=None``.

    See Also
    --------
    MartClassifier : The same with trees cut by least squares.
    ABCBoostClassifier : The same with a base class, for the papers' ABC-LogitBoost.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import LogitBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> LogitBoostClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """


class MartClassifier(SoftmaxClassifier):
    """MART: a regression tree for each class in every round, cut by least squares (Friedman 2001; algorithm 1 of Li 2010).

    It is `ABCBoostClassifier` with ``loss="mart"`` and ``base_class=None``.

    See Also
    --------
    LogitBoostClassifier : The same with trees cut by the gain of a Newton step.
    ABCBoostClassifier : The same with a base class, for the papers' ABC-MART.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import MartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MartClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    _loss = "mart"

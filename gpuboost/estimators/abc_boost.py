"""The estimators of MART, robust LogitBoost and ABC-Boost (`gpuboost.boosters.abc_boost`)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import update_wrapper
from types import FunctionType, MappingProxyType
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.boosters.base import Metric
from gpuboost.boosters.class_trees import centred
from gpuboost.estimators.sampling import sampling_of
from gpuboost.estimators.single_label import SingleLabelClassifier
from gpuboost.exactmath import log
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder, shown
from gpuboost.inputs.samples import Sample
from gpuboost.links import Link, Softmax
from gpuboost.progress import Progress

Floats = NDArray[np.float64]


class SoftmaxClassifier(SingleLabelClassifier):
    """Base class of classifiers whose probabilities are the softmax of their scores, with a regression tree for each class.

    A subclass says the loss and the base class.
    """

    _metrics: Mapping[str, Metric] = MappingProxyType({"base_class": float("nan"), "candidate_losses": []})

    def _check_own_parameters(self) -> None:
        parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_integer("min_samples_leaf", self.min_samples_leaf, 1, parameters.MAX_ROWS)
        sampling_of(self)
        parameters.check_learning_rate(self.learning_rate)

    @abstractmethod
    def _loss(self) -> Literal["logit", "mart"]:
        """Return the loss, see `ABCBoost`."""

    def _base(self, encoder: LabelEncoder) -> Literal["search"] | int | None:
        return None

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> ABCBoost:
        self._check_labels(encoder)
        kept = previous.n_estimators_ if previous else 0  # early stopping keeps the history of the rounds that it drops
        last = previous.history_["base_class"][kept - 1 : kept] if previous else []
        return ABCBoost(
            loss=self._loss(),
            base_class=self._base(encoder),
            gap=int(getattr(self, "gap", 1)),
            n_candidates=getattr(self, "n_candidates", None),
            max_leaf_nodes=int(self.max_leaf_nodes),
            min_samples_leaf=int(self.min_samples_leaf),
            learning_rate=float(self.learning_rate),
            sampling=sampling_of(self, self._seed),
            first_base=int(last[0]) if last and last[0] == last[0] else 0,
        )

    def _link(self, n_classes: int) -> Link:
        return Softmax()

    def _prior_scores(self, positive: NDArray[np.int64], total: int) -> Floats:
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
    max_leaf_nodes : int, default 20
        Leaves of a tree, at least 2.
    min_samples_leaf : int, default 10
        The rows, counted with integer sample weights, that each side of a cut must have of those that the tree is grown from.
    weight_trim, max_features, subsample
        See `AdaBoostMHClassifier`. All trees of a round have the same random rows and features. ``weight_trim`` gives each tree
        the rows that are the heaviest for it, by the curvature ``p (1 - p)`` of its class, or that of its pair of classes. The
        losses that a search compares are of all rows, too.
    learning_rate : float, default 0.1
        Multiplies the leaves' values.
    max_bins : int, default 255
        Bins of a feature's values, 2 to 255. A feature with no more distinct values is cut between any two of them.
    class_weight, early_stopping, validation_fraction, n_iter_no_change, random_state
        See `AdaBoostMHClassifier`.
    device : str or int, default "auto"
        "auto", "cpu", "numpy" (a slow reference), "cuda", "cuda:1" or the number of a CUDA device.
    n_jobs, verbose, warm_start, callbacks
        See `AdaBoostMHClassifier`.

    Attributes
    ----------
    classes_, n_features_in_, ensemble_, history_, n_estimators_, stop_reason_, device_, feature_importances_
        See `AdaBoostMHClassifier`. The ensemble's values are the papers' F. The history has "base_class", the number of each
        round's base class in ``classes_``, and "candidate_losses", the training losses that the candidates would have had
        (empty in rounds without a search).

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

    def __init__(
        self,
        *,
        loss: Literal["logit", "mart"] = "logit",
        base_class: Any = "search",
        gap: int = 1,
        n_candidates: int | None = None,
        n_estimators: int = 500,
        max_leaf_nodes: int = 20,
        min_samples_leaf: int = 10,
        weight_trim: float | None = None,
        max_features: float = 1.0,
        subsample: float = 1.0,
        learning_rate: float = 0.1,
        max_bins: int = 255,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        early_stopping: bool | Literal["smoothed", "patience"] = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        device: str | int = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Progress], Any]] | None = None,
    ) -> None:
        self.loss = loss
        self.base_class = base_class
        self.gap = gap
        self.n_candidates = n_candidates
        self.n_estimators = n_estimators
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.weight_trim = weight_trim
        self.max_features = max_features
        self.subsample = subsample
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start
        self.callbacks = callbacks

    def _check_own_parameters(self) -> None:
        parameters.check_choice("loss", self.loss, ("logit", "mart"))
        parameters.check_integer("gap", self.gap, 1)
        if self.n_candidates is not None:
            parameters.check_integer("n_candidates", self.n_candidates, 1)
        super()._check_own_parameters()

    def _loss(self) -> Literal["logit", "mart"]:
        return self.loss

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


class TreePerClassClassifier(SoftmaxClassifier):
    """Base class of `LogitBoostClassifier` and `MartClassifier`, which have the same parameters."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" not in vars(cls):  # a copy, by whose name Python's errors about arguments call the class
            cls.__init__ = renamed(cls.__init__, f"{cls.__qualname__}.__init__")  # type: ignore[method-assign]

    def __init__(
        self,
        *,
        n_estimators: int = 500,
        max_leaf_nodes: int = 20,
        min_samples_leaf: int = 10,
        weight_trim: float | None = None,
        max_features: float = 1.0,
        subsample: float = 1.0,
        learning_rate: float = 0.1,
        max_bins: int = 255,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        early_stopping: bool | Literal["smoothed", "patience"] = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        device: str | int = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Progress], Any]] | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.weight_trim = weight_trim
        self.max_features = max_features
        self.subsample = subsample
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start
        self.callbacks = callbacks


def renamed(function: Any, name: str) -> Any:
    """Return a copy of a function with another qualified name."""
    copied = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
    update_wrapper(copied, function)
    copied.__kwdefaults__, copied.__qualname__ = function.__kwdefaults__, name
    return copied


class LogitBoostClassifier(TreePerClassClassifier):
    """Robust LogitBoost: a regression tree for each class in every round, cut by the gain of a Newton step (Li 2010).

    It is `ABCBoostClassifier` with ``loss="logit"`` and ``base_class=None``; see there for the parameters and attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import LogitBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> LogitBoostClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    def _loss(self) -> Literal["logit", "mart"]:
        return "logit"


class MartClassifier(TreePerClassClassifier):
    """MART: a regression tree for each class in every round, cut by least squares (Friedman 2001; algorithm 1 of Li 2010).

    It is `ABCBoostClassifier` with ``loss="mart"`` and ``base_class=None``; see there for the parameters and attributes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import MartClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> MartClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    def _loss(self) -> Literal["logit", "mart"]:
        return "mart"

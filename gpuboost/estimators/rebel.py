"""The estimator of REBEL (`gpuboost.boosters.rebel`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.backends.base import Backend
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.boosters.rebel import Rebel, subcosts
from gpuboost.costs.matrix import check_cost_matrix
from gpuboost.estimators.base import SingleLabelClassifier
from gpuboost.estimators.parameters import GrowthParameters
from gpuboost.exactmath import log
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.links import Link, Sigmoid

MAX_DEPTH = 6
"""The paper's trees have up to four layers."""

NO_PROBABILITIES = (
    "a RebelClassifier that was trained with unequal costs has scores for the classes, but no probabilities: train one without "
    "cost_matrix for them, and decide by predict(X, cost_matrix=...) or min_cost_labels"
)


class OfProbabilities:
    """A method that is not there if a model, or one about to be trained, has no probabilities: the AttributeError says why.

    scikit-learn's ``available_if`` keeps the reason for the error's cause, which few get to see.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, model: RebelClassifier | None, owner: type) -> Any:
        if model is None:
            return self.method
        if vars(model).get("cost_matrix_", model.cost_matrix) is not None:
            raise AttributeError(f"no {self.method.__name__}: {NO_PROBABILITIES}")
        return MethodType(self.method, model)


class RebelClassifier(GrowthParameters, SingleLabelClassifier):
    """REBEL: cost-sensitive multi-class boosting (Appel, Burgos-Artizzu and Perona 2016).

    A round adds ``f(x) a``: a shallow tree f that says -1 or +1, shared by all classes, times a vector a. The scores of a row
    bound what it costs to predict the class of the largest one.

    Parameters
    ----------
    cost_matrix : array-like, pandas DataFrame, dict of dicts, or None, default None
        ``C[true, predicted]``, what mistakes cost: not negative, 0 for right predictions. An array has its rows and columns in
        the order of the sorted labels, the others are read by label: see `gpuboost.costs.check_cost_matrix`. A class may cost
        nothing to miss; its rows are left out then, and `fit` warns. None: every mistake costs 1. A matrix of equal costs
        is the same. The costs of a row are multiplied by its weight. Early stopping looks at the mean cost, not at the error.
    max_depth : int, default 2
        Layers of a tree, 1 to 6. A tree has up to ``2**max_depth`` leaves.
    learning_rate : float, default 1.0
        Multiplies the vectors, but that of the constant classifier, which is the first round unless it is zero; 1 is the
        paper's algorithm.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. "edge" is the share of the weight that a tree is right about with the signs of its
        vector, less the share that it is wrong about. The values of ``ensemble_`` are the paper's H.
    cost_matrix_ : ndarray of float64, shape (n_classes, n_classes), or None
        The costs in the order of ``classes_``; None if all mistakes cost the same.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Each feature's share of the loss that all cuts have saved.

    See Also
    --------
    gpuboost.min_cost_labels : The two-step way: decisions by costs from any classifier's probabilities.
    AdaBoostMHClassifier : The same loss without costs, with larger trees.

    Notes
    -----
    For equal costs, and for two classes with any costs, the class of the largest score is that of least expected cost once the
    loss is as low as it can be. For unequal costs and more classes it is the paper's surrogate, and not always the same class:
    with the true distribution known, it is another one in 11 % of random problems with three classes, 28 % with five and 51 %
    with ten, which costs 4, 10 and 17 % more. So training with costs is much better than to ignore them (a quarter less on
    synthetic problems), but the two-step way tends to be cheaper still: train without ``cost_matrix``, and call
    ``predict(X, cost_matrix=costs)``. That takes good probabilities: with log odds four times too large it is the other way
    round.

    The probabilities of a model without costs are those of each class against the others, ``1 / (1 + exp(-2 H_k))``, divided by
    their sum. With unequal costs the scores mix probabilities and costs, and there is no `predict_proba`.

    References
    ----------
    R. Appel, X. Burgos-Artizzu and P. Perona (2016), Improved multi-class cost-sensitive boosting via estimation of the
    minimum-risk class, arXiv:1607.03547. It is chapter 4 of Appel's thesis, whose equations the code cites.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import RebelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [10, 10, 0]]
    >>> model = RebelClassifier(cost_matrix=costs, n_estimators=20).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> model.expected_cost(X, y)
    0.0
    """

    cost_matrix: Any = None
    max_depth: int = 2
    learning_rate: float = 1.0

    _margin_loss = "exponential"
    _own_fitted = ("cost_matrix_",)

    def _check_own_fitted(self) -> None:
        if self.cost_matrix_ is not None:
            check_cost_matrix(self.cost_matrix_, self.classes_)

    def _check_own_parameters(self) -> None:
        parameters.check_integer("max_depth", self.max_depth, 1, MAX_DEPTH)
        parameters.check_learning_rate(self.learning_rate)

    def _costs(self) -> Any:
        return self.cost_matrix

    def _evaluation(
        self, backend: Backend, sample: Sample, eval_set: Any, encoder: LabelEncoder
    ) -> tuple[Sample, dict[str, Sample]]:
        """Also find the costs, and leave out the rows that cost nothing: no bin, leaf or count is to depend on them."""
        self._check_labels(encoder)
        costs = self._checked_costs(encoder)
        self.cost_matrix_ = None if costs is None or are_equal(costs) else costs
        if self.cost_matrix_ is not None:
            costly: NDArray[np.bool_] = np.any(self.cost_matrix_ > 0, axis=1)
            sample = sample.subset(np.flatnonzero(costly[sample.target]))
        return super()._evaluation(backend, sample, eval_set, encoder)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> Rebel:
        if previous is not None and not same_costs(previous.cost_matrix_, self.cost_matrix_):
            raise ValueError("warm_start=True continues a model with another cost_matrix")
        return Rebel(
            max_depth=int(self.max_depth),
            costs=self.cost_matrix_,
            learning_rate=float(self.learning_rate),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=self._sampling(self._seed),
        )

    def _link(self, n_classes: int) -> Link | None:
        # A class is a binary problem of its own with equal weights, whose exponential loss is lowest at half the log odds.
        return Sigmoid(2.0) if self.cost_matrix_ is None else None

    def _log_probabilities(self, scores: Floats) -> Floats:
        if self.cost_matrix_ is not None:
            raise ValueError(NO_PROBABILITIES)
        return super()._log_probabilities(scores)

    def _prior_scores(self, positive: NDArray[np.int64], total: int) -> Floats:
        weights = subcosts(len(positive), self.cost_matrix_)
        of_class = positive[:, None] * weights
        right = np.diag(of_class)
        wrong = np.add.accumulate(of_class - np.diag(right), axis=0)[-1]
        with np.errstate(invalid="ignore"):
            scores = np.where((right > 0) | (wrong > 0), 0.5 * (log(right) - log(wrong)), 0.0)
        return np.clip(scores, -MAX_STEP, MAX_STEP)

    @OfProbabilities
    def predict_proba(self, X: Any) -> Any:
        """Estimate the probabilities of the classes; not there if the costs of the training were unequal.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)

        Returns
        -------
        array of float64, shape (n_rows, n_classes)
            See `AdaBoostMHClassifier.predict_proba`.
        """
        return super().predict_proba(X)

    @OfProbabilities
    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """Yield what `predict_proba` would return after 1, 2, ..., ``n_estimators_`` rounds."""
        return super().staged_predict_proba(X)


def same_costs(one: Floats | None, other: Floats | None) -> bool:
    """Whether two models were trained by the same costs."""
    return one is other if one is None or other is None else np.array_equal(one, other)


def are_equal(costs: Floats) -> bool:
    """Whether all mistakes cost the same."""
    mistakes = costs[~np.eye(len(costs), dtype=bool)]
    return bool((mistakes == mistakes[:1]).all())

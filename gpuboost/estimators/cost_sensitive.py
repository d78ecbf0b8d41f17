"""What the classifiers of REBEL's loss share: costs of mistakes, and the probabilities that there are without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import MethodType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.backends.base import Backend
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.boosters.rebel import subcosts
from gpuboost.costs.matrix import check_cost_matrix
from gpuboost.estimators.base import SingleLabelClassifier
from gpuboost.exactmath import log
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.links import Link, Sigmoid


def no_probabilities(kind: str) -> str:
    """Say why a model has no probabilities."""
    return (
        f"a {kind} that was trained with unequal costs has scores for the classes, but no probabilities: train one without "
        "cost_matrix for them, and decide by predict(X, cost_matrix=...) or min_cost_labels"
    )


class OfProbabilities:
    """A method that is not there if a model, or one about to be trained, has no probabilities: the AttributeError says why.

    scikit-learn's ``available_if`` keeps the reason for the error's cause, which few get to see.
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __get__(self, model: CostSensitiveClassifier | None, owner: type) -> Any:
        if model is None:
            return self.method
        if vars(model).get("cost_matrix_", model.cost_matrix) is not None:
            raise AttributeError(f"no {self.method.__name__}: {no_probabilities(type(model).__name__)}")
        return MethodType(self.method, model)


class CostSensitiveClassifier(SingleLabelClassifier):
    """Base class of the classifiers that boost the loss of REBEL.

    Parameters
    ----------
    cost_matrix : array-like, pandas DataFrame, dict of dicts, or None, default None
        ``C[true, predicted]``, what mistakes cost: not negative, 0 for right predictions. An array has its rows and columns in
        the order of the sorted labels, the others are read by label: see `gpuboost.costs.check_cost_matrix`. A class may cost
        nothing to miss; its rows are left out then, and `fit` warns. None: every mistake costs 1. A matrix of equal costs
        is the same. The costs of a row are multiplied by its weight. Early stopping looks at the mean cost, not at the error.

    Attributes
    ----------
    cost_matrix_ : ndarray of float64, shape (n_classes, n_classes), or None
        The costs in the order of ``classes_``; None if all mistakes cost the same.
    """

    cost_matrix: Any = None

    _margin_loss = "exponential"
    _own_fitted = ("cost_matrix_",)

    def _check_own_fitted(self) -> None:
        if self.cost_matrix_ is not None:
            check_cost_matrix(self.cost_matrix_, self.classes_)

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

    def _check_costs_of(self, previous: Self | None) -> None:
        """Refuse to continue a model that was trained by other costs."""
        if previous is not None and not same_costs(previous.cost_matrix_, self.cost_matrix_):
            raise ValueError("warm_start=True continues a model with another cost_matrix")

    def _link(self, n_classes: int) -> Link | None:
        # A class is a binary problem of its own with equal weights, whose exponential loss is lowest at half the log odds.
        return Sigmoid(2.0) if self.cost_matrix_ is None else None

    def _log_probabilities(self, scores: Floats) -> Floats:
        if self.cost_matrix_ is not None:
            raise ValueError(no_probabilities(type(self).__name__))
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

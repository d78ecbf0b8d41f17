"""Prediction: scores, probabilities and labels of rows, their accuracy and their cost."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.array_types import Floats
from gpuboost.backends.base import Backend
from gpuboost.binning import BinMapper, ComputedMatrix
from gpuboost.costs.matrix import check_cost_matrix, least_cost
from gpuboost.costs.metrics import mean_cost, refuse_many_labels
from gpuboost.ensemble import Ensemble
from gpuboost.estimators.model import Model, TreeModel
from gpuboost.inputs.arrays import as_type_of, to_host
from gpuboost.inputs.columns import compare_columns, compare_number, record_columns
from gpuboost.inputs.containers import Blocks
from gpuboost.inputs.features import to_matrix
from gpuboost.inputs.label_encoder import LabelEncoder, label_array, shown
from gpuboost.inputs.weights import row_weights
from gpuboost.links import ClassSigmoids, Link, Tempered, independent, normalised
from gpuboost.messages import warn

BLOCK_BYTES = 64 << 20
"""Rows are predicted in blocks whose codes and scores take about this much memory."""

Finish = Callable[[Floats], NDArray[Any]]
Array = TypeVar("Array", bound=NDArray[Any])


class Predictor:
    """The part of a classifier that predicts.

    A subclass defines the link from scores to probabilities, and the costs if there are any.
    """

    device: str | int
    n_jobs: int | None
    classes_: NDArray[Any]
    n_features_in_: int
    multi_label_: bool
    n_estimators_: int
    _model: Model
    _seed: int
    _seed_matters: bool = True
    """Whether anything was drawn, or will be if the same training goes on."""
    _optional_fitted: ClassVar[tuple[str, ...]] = (
        "temperature_",
        "class_sigmoids_",
        "exit_lead_",
        "exit_every_",
        "exit_bound_",
        "n_averaged_",
    )
    """Fitted attributes that a model may have, and that a model file keeps."""

    @property
    def _model_kind(self) -> type[Model]:
        """What a training makes."""
        return TreeModel

    # ---- what a subclass defines -------------------------------------------------------------------------------------------

    def _link(self, n_classes: int) -> Link | None:
        """Return how scores become probabilities, by which `_log_probabilities` goes and exported models, too.

        None: the model has none, or `_log_probabilities` is overridden and computes what no `Link` does.
        """
        return None

    def _fitted_link(self, n_classes: int) -> Link | None:
        """Return the link of the algorithm with the temperature, or the sigmoids, that the model has been given."""
        fitted = vars(self)
        if "class_sigmoids_" in fitted:
            scales, offsets = fitted["class_sigmoids_"].tolist()
            return ClassSigmoids(tuple(scales), tuple(offsets))
        link = self._link(n_classes)
        return link.tempered(fitted["temperature_"]) if isinstance(link, Tempered) and "temperature_" in fitted else link

    def _log_probabilities(self, scores: Floats) -> Floats:
        """Return the logarithms of the class probabilities, shape (n_rows, n_classes); rows need not sum to 1."""
        link = self._fitted_link(scores.shape[1])
        if link is None:
            raise TypeError(f"{type(self).__name__} must define _link or _log_probabilities")
        return link.log_probabilities(scores)

    def _costs(self) -> Any:
        """Return the cost matrix to train by, in any form that `check_cost_matrix` takes; None if there is none.

        With one, the mean cost of the predictions stands in the history, and early stopping looks at it in place of the error.
        """
        return None

    # ---- fitted attributes that the model holds ------------------------------------------------------------------------------

    @property
    def ensemble_(self) -> Ensemble:
        """The trees."""
        return self._trees("ensemble_").ensemble

    @property
    def bin_mapper_(self) -> BinMapper:
        """The cuts of every feature."""
        return self._trees("bin_mapper_").bin_mapper

    @property
    def feature_importances_(self) -> Floats:
        """Each feature's share of the gain of all cuts, shape (n_features,); zeros if there is no cut."""
        check_is_fitted(self)
        gains = self._trees("feature_importances_").ensemble.feature_gains(self.n_features_in_)
        return gains / (gains.sum() or 1.0)

    def _set_model(self, **parts: Any) -> None:
        """Make what comes from a file the model."""
        self._model = self._model_kind(**parts)

    def _trees(self, attribute: str) -> TreeModel:
        """Return the model of trees that an attribute belongs to; raise an AttributeError if there is none."""
        model = vars(self).get("_model")
        if isinstance(model, TreeModel):
            return model
        kind = type(self).__name__
        if model is None:
            raise AttributeError(f"{kind!r} object has no attribute {attribute!r}")
        raise AttributeError(model.without_trees.format(kind=kind, attribute=attribute))

    # ---- rows to labels ----------------------------------------------------------------------------------------------------

    def _matrix(self, X: Any, *, reset: bool, name: str = "X", may_be_empty: bool = False) -> Any:
        """Return X as a matrix of numbers, with the columns of the training set (or records them with ``reset=True``).

        One that lies on a device stays there: see `to_backend`.
        """
        named = X.head if isinstance(X, Blocks) else X
        if not reset:
            compare_columns(self, named)
        matrix = to_matrix(X, self, name, may_be_empty=may_be_empty)
        if reset:
            record_columns(self, named, matrix.shape[1])
        else:
            compare_number(self, matrix.shape[1])
        return matrix

    def _scores_by_blocks(self, X: Any, finish: Callable[[Floats], Array]) -> Array:
        """Score the rows of X block by block; return what ``finish`` makes of them."""
        check_is_fitted(self)
        matrix = self._matrix(X, reset=False)
        (n_rows, n_features), n_classes = matrix.shape, len(self.classes_)
        step = max(1, BLOCK_BYTES // (n_features + 8 * n_classes))
        parts = []
        with self._model.open(self.device, self.n_jobs) as backend:
            matrix = to_backend(backend, matrix)
            for first in range(0, n_rows, step):
                block = matrix[first : first + step]
                data = self._model.encode(backend, block)
                scores = backend.put(np.zeros((block.shape[0], n_classes)))
                self._model.add_scores(backend, data, scores, 0, self.n_estimators_)
                parts.append(finish(backend.get(scores)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)  # type: ignore[return-value]

    def _staged(self, X: Any, finish: Finish) -> Iterator[Any]:
        """Check X at once, and return a generator of what ``finish`` makes of the scores after 1, 2, ... trees."""
        check_is_fitted(self)
        matrix = self._matrix(X, reset=False)

        def stages() -> Iterator[Any]:
            with self._model.open(self.device, self.n_jobs) as backend:
                data = self._model.encode(backend, to_backend(backend, matrix))
                scores = backend.put(np.zeros((matrix.shape[0], len(self.classes_))))
                for t in range(self.n_estimators_):
                    self._model.add_scores(backend, data, scores, t, t + 1)
                    yield as_type_of(finish(backend.get(scores).copy()), X)

        return stages()

    def _class_numbers(self, scores: Floats) -> NDArray[Any]:
        """Return the first class with the largest score, or the classes with a positive score."""
        return scores > 0 if self.multi_label_ else scores.argmax(axis=1)

    def _labels(self, scores: Floats) -> NDArray[Any]:
        numbers = self._class_numbers(scores)
        labels: NDArray[Any] = numbers.astype(np.int64) if self.multi_label_ else self.classes_[numbers]
        return labels

    def _probabilities(self, scores: Floats) -> Floats:
        shape = independent if self.multi_label_ else normalised
        return shape(self._log_probabilities(scores), self._class_numbers(scores))

    def _decision(self, scores: Floats) -> Floats:
        one_column = scores.shape[1] == 2 and not self.multi_label_
        return scores[:, 1] - scores[:, 0] if one_column else scores

    def predict(self, X: Any, cost_matrix: Any = None) -> Any:
        """Predict the classes by all trees; `gpuboost.estimators.exiting.Exiting` documents it."""
        if cost_matrix is None:
            return as_type_of(self._scores_by_blocks(X, self._labels), X)
        check_is_fitted(self)
        refuse_many_labels(self.multi_label_)
        costs = check_cost_matrix(cost_matrix, self.classes_)
        return as_type_of(self._scores_by_blocks(X, lambda f: self.classes_[least_cost(self._probabilities(f), costs)]), X)

    def predict_proba(self, X: Any) -> Any:
        """Estimate the probabilities of the classes.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)

        Returns
        -------
        array of float64, shape (n_rows, n_classes)
            In the order of ``classes_``, never below 2.2e-308. The first largest entry of a row is the predicted class, and a
            row sums to 1; in a multi-label problem every entry is for itself, above 1/2 where the class is predicted.
        """
        return as_type_of(self._scores_by_blocks(X, self._probabilities), X)

    def decision_function(self, X: Any) -> Any:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)

        Returns
        -------
        array of float64, shape (n_rows, n_classes), or (n_rows,) for two classes
            For two classes the difference of their scores: ``classes_[1]`` is predicted where it is positive.
        """
        return as_type_of(self._scores_by_blocks(X, self._decision), X)

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Yield what `predict` would return after 1, 2, ..., ``n_estimators_`` rounds."""
        model = copy.copy(self)  # a later fit of this estimator must not change what is still to come
        return model._staged(X, model._labels)

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """Yield what `predict_proba` would return after 1, 2, ..., ``n_estimators_`` rounds."""
        model = copy.copy(self)
        return model._staged(X, model._probabilities)

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """Yield what `decision_function` would return after 1, 2, ..., ``n_estimators_`` rounds."""
        model = copy.copy(self)
        return model._staged(X, model._decision)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows that are predicted right (with all their classes in a multi-label problem).

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
        y : array-like
            Labels of any type that `fit` takes. One that is no class counts as predicted wrong.
        sample_weight : array-like, shape (n_rows,), optional

        Returns
        -------
        float
        """
        numbers = self._scores_by_blocks(X, self._class_numbers)
        return share_right(numbers, y, LabelEncoder(self.classes_, self.multi_label_), sample_weight)

    def expected_cost(self, X: Any, y: Any, cost_matrix: Any = None, sample_weight: Any = None) -> float:
        """Return what the predictions of ``predict(X)`` cost on average where y is true.

        What the labels of least expected cost would cost is another number:
        ``mean_cost(y, model.predict(X, cost_matrix=costs), costs)``.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
        y : array-like, shape (n_rows,)
            Labels of any type that `fit` takes. Costs with labels of their own (a DataFrame or a dict) may have one that is no
            class.
        cost_matrix : array-like, pandas DataFrame, or dict of dicts, optional
            ``C[true, predicted]``, see `gpuboost.costs.check_cost_matrix`. By default the costs that the classifier was
            trained by; every mistake costs 1 if there are none, which is the error rate.
        sample_weight : array-like, shape (n_rows,), optional

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If a label has no costs, the costs are not usable, or the problem is multi-label.
        """
        check_is_fitted(self)
        refuse_many_labels(self.multi_label_)
        predicted = self._scores_by_blocks(X, self._labels)
        costs = self._costs() if cost_matrix is None else cost_matrix
        weights = row_weights(sample_weight, len(predicted))
        rows = np.flatnonzero(weights)
        y = label_array(y, len(predicted), rows=rows)
        return mean_cost(y, predicted[rows], costs, classes=self.classes_, sample_weight=weights[rows])


def take_over(estimator: Any, fitted: Any) -> None:
    """Give an estimator the fitted attributes of a copy, and keep its parameters."""
    own = estimator.get_params(deep=False)
    for name in vars(estimator).keys() - vars(fitted).keys():
        del estimator.__dict__[name]
    estimator.__dict__.update({name: value for name, value in vars(fitted).items() if name not in own})


def to_backend(backend: Backend, matrix: Any) -> Any:
    """Return a checked matrix as one that the backend can encode: one on a device comes to the host if need be.

    One that is to be computed is computed on the backend.
    """
    if isinstance(matrix, ComputedMatrix):
        return matrix.on(backend)
    return matrix if backend.reads_device_arrays else to_host(matrix)


def share_right(numbers: NDArray[Any], y: Any, encoder: LabelEncoder, sample_weight: Any) -> float:
    """Return the weighted share of rows whose predicted class number, or all of whose predicted 0 and 1, are those of y."""
    weights = row_weights(sample_weight, len(numbers))
    rows = np.flatnonzero(weights)
    true = encoder.encode(label_array(y, len(numbers), rows=rows), unknown_ok=True)
    if true.ndim == 1 and len(true) and (true < 0).all():
        warn(f"no label of y is a class of the model, whose classes are {shown(encoder.classes)}")
    right = numbers[rows] == true
    return float(np.average(right if right.ndim == 1 else right.all(axis=1), weights=weights[rows]))

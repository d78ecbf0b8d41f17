"""Decisions by costs from any classifier's probabilities, and what predictions cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.costs.matrix import average_cost, check_cost_matrix, cost_table, costs_among, is_labelled, least_cost
from gpuboost.inputs import parameters
from gpuboost.inputs.arrays import as_type_of, to_host
from gpuboost.inputs.label_encoder import LabelEncoder, label_array, object_array, shown
from gpuboost.inputs.label_values import distinct, label_list, ordered
from gpuboost.inputs.weights import row_weights

TOLERANCE = 1e-3
"""Probabilities of a row sum to 1 up to this: those of other libraries may have been rounded."""


def min_cost_labels(proba: Any, cost_matrix: Any, classes: Any = None) -> Any:
    """Return the labels of least expected cost: the two-step way to be sensitive to costs, with any classifier.

    A row gets the class k with the lowest ``sum_y proba[i, y] C[y, k]``, the first of equals.

    Parameters
    ----------
    proba : array-like or device array, shape (n_rows, n_classes)
        Class probabilities, such as those of a ``predict_proba``: not negative, rows sum to 1 (to 0.001).
    cost_matrix : array-like, pandas DataFrame, or dict of dicts
        ``C[true, predicted]``, see `gpuboost.costs.check_cost_matrix`.
    classes : array-like, shape (n_classes,), optional
        The labels of the columns of ``proba``, no two the same: a classifier's ``classes_``. Without them the labels are the
        numbers of the columns, 0, 1, ..., n_classes - 1.

    Returns
    -------
    array, shape (n_rows,)
        Labels in the dtype of ``classes``, or int64. A CuPy array or PyTorch tensor if ``proba`` is one and the labels are
        numbers, else an ndarray.

    Raises
    ------
    ValueError
        If the probabilities or the costs are not usable.

    Examples
    --------
    >>> from gpuboost import min_cost_labels
    >>> costs = {"benign": {"malignant": 1}, "malignant": {"benign": 10}}
    >>> min_cost_labels([[0.95, 0.05], [0.85, 0.15]], costs, ["benign", "malignant"]).tolist()
    ['benign', 'malignant']
    """
    checked = _probabilities(proba)
    n_classes = checked.shape[1]
    labels = np.arange(n_classes) if classes is None else label_array(classes, n_classes, "classes", beside="columns of proba")
    if labels.ndim != 1:
        raise ValueError(f"classes must be one label for each column of proba, got the shape {labels.shape}")
    return as_type_of(labels[least_cost(checked, check_cost_matrix(cost_matrix, labels))], proba)


def _probabilities(proba: Any) -> NDArray[np.float64]:
    """Return probabilities as float64 (n_rows, n_classes) if they are some."""
    given = np.asarray(to_host(proba, "proba"))
    if given.ndim != 2 or given.shape[1] == 0 or given.dtype.kind not in "biuf":
        raise ValueError(
            f"proba must be numbers of shape (n_rows, n_classes), got the shape {given.shape} and the dtype {given.dtype}"
        )
    checked = given.astype(np.float64)
    sums = np.add.accumulate(checked, axis=1)[:, -1]
    wrong = np.flatnonzero(~((checked >= 0).all(axis=1) & (abs(sums - 1.0) <= TOLERANCE)))
    if len(wrong):
        row = checked[wrong[0]].tolist()
        raise ValueError(
            f"proba must have rows of probabilities that are not negative and sum to 1, got {row} in row {wrong[0]}, "
            f"which sum to {sums[wrong[0]]:g}"
        )
    return checked


def mean_cost(y_true: Any, y_pred: Any, cost_matrix: Any = None, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Return the mean cost of predictions, ``sum_i w_i C[y_true_i, y_pred_i] / sum_i w_i``.

    Parameters
    ----------
    y_true, y_pred : array-like, shape (n_rows,)
        True labels and predicted ones.
    cost_matrix : array-like, pandas DataFrame, or dict of dicts, optional
        ``C[true, predicted]``, see `gpuboost.costs.check_cost_matrix`. Without it every mistake costs 1: the error rate.
    classes : array-like, shape (n_classes,), optional
        The labels of the rows and columns of an array. Without them they are the sorted labels that stand in
        ``y_true`` and ``y_pred``. A DataFrame or a dict has its own labels.
    sample_weight : array-like, shape (n_rows,), optional

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a label has no costs, or the costs are not usable.
    TypeError
        If the order of the labels is asked for, and they are not of one type that can be ordered.

    Examples
    --------
    >>> from gpuboost import mean_cost
    >>> mean_cost(["a", "b", "b", "b"], ["a", "a", "b", "b"], {"a": {"b": 1}, "b": {"a": 10}})
    2.5
    """
    true = _labels(y_true, _length(y_pred), "y_true")
    predicted = _labels(y_pred, len(true), "y_pred")
    given = [*label_list(true), *label_list(predicted)]
    if cost_matrix is None:
        labels = distinct(given)
        costs = 1.0 - np.eye(len(labels))
    else:
        if classes is None and not is_labelled(cost_matrix):
            classes = ordered(given, "y_true and y_pred")
        labels, costs = cost_table(cost_matrix, classes)
    weights = row_weights(sample_weight, len(true))
    cells = _numbers(true, labels, "y_true") * len(labels) + _numbers(predicted, labels, "y_pred")
    return average_cost(np.bincount(cells, weights, costs.size).reshape(costs.shape), costs)


def _length(y: Any) -> int:
    if not hasattr(y, "__len__") or len(y) == 0:
        raise ValueError(f"y_pred must have at least one label, got {y!r}")
    return len(y)


def _labels(y: Any, n_rows: int, name: str) -> NDArray[Any]:
    """Return y as an array of labels, shape (n_rows,)."""
    labels = label_array(y, n_rows, name, beside="labels in y_pred")
    refuse_many_labels(labels.ndim != 1, name)
    return labels


def refuse_many_labels(multi_label: bool, name: str = "y") -> None:
    """Raise a ValueError for a multi-label problem: a row of it has no one true class that a cost could belong to."""
    if multi_label:
        raise ValueError(f"costs need one label a row, but {name} is an indicator matrix (multi-label)")


def _numbers(y: NDArray[Any], labels: list[Any], name: str) -> NDArray[np.int64]:
    """Return the positions of y among labels."""
    known = object_array(labels)
    numbers = LabelEncoder(known, multi_label=False).encode(y, name, unknown_ok=True)
    if (numbers < 0).any():
        label = label_list(y[numbers < 0])[0]
        raise ValueError(f"{name} has the label {label!r}, for which cost_matrix has no costs: its labels are {shown(known)}")
    return numbers


@dataclass(frozen=True, eq=False)
class CostScorer:
    """What `cost_scorer` returns: a scorer for scikit-learn, the mean cost with a minus sign."""

    cost_matrix: Any
    classes: Any = None
    min_cost: bool = False

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        labels, costs = cost_table(self.cost_matrix, estimator.classes_ if self.classes is None else self.classes)
        if self.min_cost and not decides_by_costs(estimator):
            chosen = least_cost(_probabilities(estimator.predict_proba(X)), costs_among(labels, costs, estimator.classes_))
            predicted = np.asarray(estimator.classes_)[chosen]
        else:
            predicted = estimator.predict(X)
        return -mean_cost(y, predicted, costs, classes=labels, sample_weight=sample_weight)


def decides_by_costs(estimator: Any) -> bool:
    """Whether a classifier, or the last step of a pipeline, was trained by unequal costs: it has no probabilities."""
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    return getattr(last, "cost_matrix_", None) is not None and not hasattr(last, "predict_proba")


def cost_scorer(cost_matrix: Any, *, classes: Any = None, min_cost: bool = False) -> CostScorer:
    """Return a scorer for ``cross_val_score``, ``GridSearchCV`` and the like: the higher, the cheaper the predictions.

    Parameters
    ----------
    cost_matrix : array-like, pandas DataFrame, or dict of dicts
        ``C[true, predicted]``, see `gpuboost.costs.check_cost_matrix`. A DataFrame or a dict suits folds that lack a class.
    classes : array-like, shape (n_classes,), optional
        The labels of the rows and columns of an array, if not those of the classifier's ``classes_``.
    min_cost : bool, default False
        Whether to score the labels of least expected cost (`min_cost_labels` of ``predict_proba``) in place of ``predict``.
        A `RebelClassifier` that was trained by unequal costs decides by them itself and has no probabilities: its ``predict``
        is scored, so that a search can compare both ways.

    Returns
    -------
    callable
        ``scorer(estimator, X, y, sample_weight=None)`` is ``-mean_cost``. It works with every classifier of scikit-learn's
        interface, and can be pickled if the costs can.

    Raises
    ------
    ValueError
        If the costs are not usable; those of an array without ``classes`` are checked when it scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from gpuboost import GambleClassifier, cost_scorer
    >>> costs = [[0, 1, 1], [1, 0, 5], [1, 1, 0]]
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = cross_val_score(GambleClassifier(n_estimators=5), X, y, scoring=cost_scorer(costs))
    """
    parameters.check_bool("min_cost", min_cost)
    if classes is not None or is_labelled(cost_matrix):
        cost_table(cost_matrix, classes)
    return CostScorer(cost_matrix, classes, min_cost)

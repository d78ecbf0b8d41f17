"""Checks of what an active learner is given: committees, labels, weights, evaluation sets."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from gpuboost.active.pools import checked_pool
from gpuboost.active.utility import Oracle
from gpuboost.array_types import Floats
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.inputs import parameters
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.containers import to_numpy
from gpuboost.inputs.label_encoder import label_array, object_array, raw_labels
from gpuboost.inputs.label_values import holds, label_list
from gpuboost.inputs.weights import row_weights


def checked_committee(estimator: Any) -> Any:
    """Return a clone of the estimator if it can be trained and asked for scores."""
    if isinstance(estimator, type):
        raise TypeError(f"estimator must be an instance such as {estimator.__name__}(), got the class")
    can_score = hasattr(estimator, "decision_function") or hasattr(estimator, "predict_proba")
    if not can_score or not all(hasattr(estimator, name) for name in ("get_params", "fit", "predict")):
        raise TypeError(
            "estimator must be a classifier with fit, predict, get_params, and decision_function or predict_proba, "
            f"got {estimator!r:.80}"
        )
    if isinstance(estimator, BoostingClassifier):
        estimator._check_parameters()
    for name, value in estimator.get_params().items():
        if name.endswith("decision_function_shape") and isinstance(value, str) and value == "ovo":
            raise ValueError(f'{name} of the estimator must be "ovr", which gives a score for each class, got "ovo"')
    return clone(estimator)


def check_candidates(value: Any) -> Any:
    """Return ``max_candidates`` if it is None, a positive integer or a share."""
    if value is None:
        return None
    if isinstance(value, Integral):
        return parameters.check_integer("max_candidates", value, 1)
    if not isinstance(value, Real):
        raise TypeError(f"max_candidates must be None, an integer or a float, got {value!r}")
    if not 0 < float(value) <= 1:
        raise ValueError(f"max_candidates must be above 0 and at most 1.0 if it is a float, a share of the pool, got {value!r}")
    return float(value)


def watched_set(n_features: int, i: int, X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray[Any], Floats | None]:
    """Return an evaluation set with its labels and weights as arrays."""
    name = f"eval_set[{i}]"
    pool = checked_pool(X, f"X of {name}")
    if pool.shape[1] != n_features:
        raise ValueError(f"X of {name} must have the {n_features} columns of X, got {pool.shape[1]}")
    labels = one_label_a_row(label_array(y, pool.shape[0], f"y of {name}"), f"y of {name}")
    weights = None if sample_weight is None else row_weights(sample_weight, pool.shape[0], f"sample_weight of {name}")
    return pool, labels, weights


def checked_labels(labels: Any, n_rows: int) -> NDArray[Any]:
    """Return the labels that somebody teaches."""
    try:
        n_labels = len(labels)
    except TypeError as error:
        raise TypeError(f"labels must be a list of one label for each row in indices, got {labels!r:.80}") from error
    if n_labels != n_rows:
        raise ValueError(f"labels must have one entry for each of the {n_rows} rows in indices, got {n_labels}")
    return one_label_a_row(label_array(labels, n_rows, "labels"), "labels")


def pool_labels(y: Any, n_rows: int) -> Oracle:
    """Return the labels of the whole pool as a function of rows; only those that are asked for must be there."""
    labels = one_label_a_row(raw_labels(y, n_rows, "oracle"), "oracle")
    return lambda rows: label_array(labels, n_rows, "oracle", rows)


def answers(labels: Any, n_rows: int) -> Any:
    """Return what an oracle has said if it has one label for each row that it was asked about."""
    if isinstance(labels, (str, bytes)) or not hasattr(labels, "__len__") or getattr(labels, "ndim", 1) == 0:
        raise TypeError(
            f"oracle must return a list of one label for each row that it is given, {n_rows} here, got {labels!r:.80}"
        )
    if len(labels) != n_rows:
        raise ValueError(f"oracle must return one label for each of the {n_rows} rows that it is given, got {len(labels)}")
    return labels


def one_label_a_row(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Refuse a matrix of labels."""
    if labels.ndim != 1:
        raise ValueError(f"{name} must be one label a row, got shape {labels.shape}: a multi-label problem has no margin")
    return labels


def checked_weights(sample_weight: Any, n_rows: int) -> Floats:
    """Return the weights that somebody teaches as they are."""
    row_weights(sample_weight, n_rows)  # for its errors; the scale that it chooses would differ from batch to batch
    return np.broadcast_to(to_numpy(to_host(sample_weight)), n_rows).astype(np.float64)


def joined(known: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Return two arrays of labels as one that holds them as they are: NumPy would turn numbers beside text into text."""
    labels = [*label_list(known), *label_list(new)]
    kinds = {known.dtype.kind, new.dtype.kind}
    if len(kinds) == 1 or kinds <= set("biuf"):
        array = np.concatenate([known, new])
        if holds(array, labels):
            return array
    return object_array(labels)

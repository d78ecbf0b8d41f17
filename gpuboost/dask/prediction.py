"""Predictions where the rows are, one partition at a time; nothing is computed before somebody asks for it."""

from __future__ import annotations

import copy
from typing import Any

import dask.array
import numpy as np
from distributed import Client
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.dask.cluster import check_client
from gpuboost.streams.dask_collections import is_dask


def predict(client: Client, model: Any, X: Any) -> Any:
    """Predict the classes of the rows of a collection.

    Parameters
    ----------
    client : distributed.Client
    model : BoostingClassifier
        Fitted.
    X : dask array or frame, shape (n_rows, n_features)

    Returns
    -------
    dask array, shape (n_rows,) or (n_rows, n_classes)
        In the partitions of X; as the method ``predict`` of the model, in the dtype of ``classes_``.

    Raises
    ------
    TypeError
        If X is no collection of Dask, or the model no classifier of gpuboost.
    NotFittedError
        If the model is not fitted.
    """
    check_client(client)
    _check_model(model, "predict")
    return _by_partition(client, model, X, "predict", model.classes_.dtype if not model.multi_label_ else np.dtype(np.int64))


def predict_proba(client: Client, model: Any, X: Any) -> Any:
    """Estimate the probabilities of the classes, shape (n_rows, n_classes), float64; all else as `predict`."""
    check_client(client)
    _check_model(model, "predict_proba")
    return _by_partition(client, model, X, "predict_proba", np.dtype(np.float64))


def _check_model(model: Any, method: str) -> None:
    """Raise an error if a model cannot predict the classes, before a task is made."""
    check_is_fitted(model)
    if not all(hasattr(model, name) for name in (method, "classes_", "multi_label_")):
        raise TypeError(f"model must be a classifier of gpuboost that has {method}, got a {type(model).__name__}")


def _by_partition(client: Client, model: Any, X: Any, method: str, dtype: np.dtype[Any]) -> Any:
    if not is_dask(X) or not hasattr(X, "to_delayed") or getattr(X, "ndim", 2) != 2:
        raise TypeError(f"X must be an array or a frame of Dask with rows and columns, got a {type(X).__name__}")
    model = copy.copy(model)
    model.n_jobs = 1  # Dask predicts as many partitions at once as there are threads
    sent = client.scatter(model, hash=False)  # once to a worker, not into every task
    has_columns = method == "predict_proba" or model.multi_label_
    columns = (len(model.classes_),) if has_columns else ()
    if hasattr(X, "chunks"):
        lengths, parts = X.chunks[0], np.ravel(X.rechunk({1: -1}).to_delayed())
    else:
        lengths, parts = (np.nan,) * X.npartitions, X.to_delayed()
    predicted = dask.delayed(predicted_block)
    blocks = [
        dask.array.from_delayed(predicted(sent, part, method, columns, dtype), (length, *columns), dtype)
        for length, part in zip(lengths, parts, strict=True)
    ]
    return dask.array.concatenate(blocks)


def predicted_block(model: Any, block: Any, method: str, columns: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the predictions for a partition, on a worker; one without rows has none."""
    if len(block) == 0:
        return np.empty((0, *columns), dtype)
    predictions: NDArray[Any] = getattr(model, method)(block)
    return predictions

"""A fitted pipeline without the columns that its model does not use."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.model import TreeModel
from gpuboost.features.haar import HaarFeatures


def compact(pipeline: Any) -> Any:
    """Return a fitted pipeline that computes only those Haar features that its model uses, and predicts the same.

    Parameters
    ----------
    pipeline : sklearn.pipeline.Pipeline
        Fitted, with `HaarFeatures` and one of this package's classifiers of trees as its last two steps.

    Returns
    -------
    Pipeline
        A copy; the one that was passed stays what it is. Scores, probabilities and labels are the same, bit for bit.

    Raises
    ------
    TypeError
        If these are not its last two steps, or the model has no trees.
    NotFittedError
        If it is not fitted.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from gpuboost import AdaBoostMHClassifier
    >>> from gpuboost.features import HaarFeatures, compact
    >>> X, y = load_digits(return_X_y=True)
    >>> model = AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=8, max_features=0.1, random_state=0)
    >>> pipeline = make_pipeline(HaarFeatures((8, 8), 500, random_state=0), model).fit(X, y)
    >>> small = compact(pipeline)
    >>> small[-1].n_features_in_ < 40, bool((small.predict(X) == pipeline.predict(X)).all())
    (True, True)
    """
    from sklearn.utils.validation import check_is_fitted

    steps = list(getattr(pipeline, "steps", ()))
    found = [type(step).__name__ for _, step in steps] or type(pipeline).__name__
    if len(steps) < 2 or not isinstance(steps[-2][1], HaarFeatures) or not isinstance(steps[-1][1], BoostingClassifier):
        raise TypeError(f"pipeline must end in HaarFeatures and a classifier of gpuboost, got {found}")
    (haar_name, haar), (name, model) = steps[-2:]
    check_is_fitted(model)
    if not isinstance(model._model, TreeModel):
        reason = model._model.without_trees.format(kind=type(model).__name__, attribute="trees")
        raise TypeError(f"what columns the pipeline uses is not known: {reason}")
    used = np.unique(model.ensemble_.feature)
    if used.size == 0:
        used = np.zeros(1, used.dtype)  # a matrix has a column
    smaller = copy.copy(pipeline)
    smaller.steps = [*steps[:-2], (haar_name, haar.select(used)), (name, of_columns(model, used))]
    return smaller


def of_columns(model: BoostingClassifier, used: IntArray) -> BoostingClassifier:
    """Return a copy of a fitted classifier for a matrix of the columns ``used`` alone, ascending, with all that it uses."""
    smaller = copy.copy(model)
    ensemble = replace(model.ensemble_, feature=np.searchsorted(used, model.ensemble_.feature).astype(np.int32))
    smaller._model = TreeModel(model.bin_mapper_.select(used), ensemble)
    smaller.n_features_in_ = len(used)
    if model._column_names:
        smaller._column_names = [model._column_names[f] for f in used]
    if hasattr(model, "feature_names_in_"):
        smaller.feature_names_in_ = model.feature_names_in_[used]
    return smaller

"""Several fitted models as one: the mean of their scores."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.binning import MAX_VALUE_BINS, BinMapper
from gpuboost.ensemble import Ensemble
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.model import TreeModel
from gpuboost.inputs.label_encoder import shown
from gpuboost.inputs.label_values import label_keys
from gpuboost.inputs.parameters import as_float
from gpuboost.messages import warn


def average(models: Sequence[Any], weights: Any = None) -> Any:
    """Join fitted models into one, whose scores are the weighted mean of theirs.

    For models of bootstrap samples (bagging), or of other seeds. The mean of scores, not of probabilities, is what one ensemble
    of trees can say: the result is a model like any other, and is saved, exported and explained as one. Round t of it has the
    trees of round t of all models, so that `staged_predict` and its kin go through the means of the models so far.

    Parameters
    ----------
    models : sequence of classifiers
        Fitted, of one class, with the same classes and columns, and the same link from scores to probabilities.
    weights : array-like, shape (n_models,), optional
        Not negative; only their ratios count. By default all are the same.

    Returns
    -------
    BoostingClassifier
        Of the class and with the parameters of the first model. Its ``n_averaged_`` is the number of models. It has no history,
        no temperature (with a warning if the models have one: the mean of several is less sure than each, so `calibrate` it),
        and cannot be continued by ``warm_start``. Its cuts are those that the trees use.

    Raises
    ------
    TypeError
        If ``models`` is no sequence, or something in it is no fitted classifier of gpuboost, is no model of trees, or is of
        another class than the first.
    ValueError
        If the models do not go together, a weight is not usable, or a column has more than 254 different cuts: models that were
        trained on the same rows share theirs, others can be trained with a smaller ``max_bins``.

    Examples
    --------
    >>> import gpuboost
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> models = [gpuboost.fit(X, y, n_estimators=10, subsample=0.5, random_state=seed) for seed in range(3)]
    >>> gpuboost.average(models).predict(X[:2])
    array([0, 0])
    """
    if not isinstance(models, Iterable):
        raise TypeError(f"models must be a sequence of fitted classifiers, got {models!r:.100}")
    models = list(models)
    _check_models(models)
    shares = _shares(weights, len(models))
    mapper = joined_cuts([_used_cuts(model) for model in models], _names(models[0]))
    ensembles = [scaled(model, mapper, share) for model, share in zip(models, shares.tolist(), strict=True)]
    by_round = zip_longest(*(ensemble.rounds() for ensemble in ensembles), fillvalue=[])
    rounds = [[tree for trees in one for tree in trees] for one in by_round]
    mean = copy.copy(models[0])
    mean._forget("_trained_on", "device_", *mean._optional_fitted)
    mean._model = TreeModel(mapper, Ensemble.from_rounds(rounds, len(mean.classes_)))
    mean.n_estimators_, mean.history_, mean._seed_matters = len(rounds), {}, False
    mean.n_averaged_, mean.stop_reason_ = len(models), f"average of {len(models)} models"
    if any(model._is_calibrated() for model in models):
        warn("the temperatures of the models are not that of their average, which has none: calibrate it on rows of its own")
    return mean


def _check_models(models: list[Any]) -> None:
    """Raise a TypeError or ValueError if the models do not go together."""
    if not models:
        raise ValueError("models must be at least one fitted classifier, got none")
    for i, model in enumerate(models):
        first, kind = models[0], type(model).__name__
        if not isinstance(model, BoostingClassifier) or not model.__sklearn_is_fitted__():
            raise TypeError(f"models[{i}] must be a fitted boosting classifier of gpuboost, got {model!r:.100}")
        if type(model) is not type(first):
            raise TypeError(f"all models must be of one class, but models[0] is a {type(first).__name__}, models[{i}] a {kind}")
        if not isinstance(model._model, TreeModel):
            reason = model._model.without_trees.format(kind=kind, attribute="trees")
            raise TypeError(f"models[{i}] has no trees to join: {reason}")
        classes = [label_keys(one.classes_) for one in (first, model)]
        if classes[0] != classes[1] or model.multi_label_ != first.multi_label_:
            raise ValueError(f"models[0] has the classes {shown(first.classes_)}, but models[{i}] has {shown(model.classes_)}")
        if model.n_features_in_ != first.n_features_in_ or _names(model) != _names(first):
            raise ValueError(f"models[{i}] has other columns than models[0]: {_names(model)!r:.200}, {_names(first)!r:.200}")
        links = [one._link(len(one.classes_)) for one in (first, model)]
        costs: list[Any] = [getattr(one, "cost_matrix_", None) for one in (first, model)]
        if links[0] != links[1] or not np.array_equal(costs[0], costs[1]):
            raise ValueError(
                f"the scores of models[{i}] do not mean what those of models[0] do: their links are {links[1]} and {links[0]}, "
                "or they were trained by other costs"
            )


def _names(model: Any) -> list[Any]:
    """Return the names of the columns, or their numbers."""
    names = model._column_names
    return list(range(model.n_features_in_)) if names is None else list(names)


def _shares(weights: Any, n_models: int) -> Floats:
    """Return weights that sum to 1."""
    numbers = np.ones(n_models) if weights is None else np.asanyarray(weights)  # with its mask, if it has one
    given = np.array([as_float(one) for one in numbers.tolist()] if numbers.shape == (n_models,) else [])
    if given.shape != (n_models,) or not np.isfinite(given).all() or (given < 0).any() or not given.any():
        raise ValueError(
            f"weights must be {n_models} finite numbers that are not negative, and not all 0, got {weights!r:.100}"
        )
    given = given / given.max()
    shares: Floats = given / np.add.accumulate(given)[-1]
    return shares


def _used_cuts(model: Any) -> BinMapper:
    """Return the cuts that the trees of a model use."""
    mapper, ensemble = model.bin_mapper_, model.ensemble_
    cut = ensemble.cut.astype(np.int64)
    is_cut = (cut > 0) & (cut <= mapper.n_cuts[ensemble.feature])
    used = np.unique((mapper.cut_offsets[ensemble.feature] + cut - 1)[is_cut])
    offsets = np.searchsorted(used, mapper.cut_offsets)
    return BinMapper(mapper.cut_values[used], offsets.astype(np.int64), mapper.has_missing)


def joined_cuts(mappers: list[BinMapper], names: list[Any]) -> BinMapper:
    """Return a mapper with the cuts of all, each once.

    Raises
    ------
    ValueError
        If a feature has too many.
    """
    cuts = [np.unique(np.concatenate([one.cuts(f) for one in mappers])) for f in range(mappers[0].n_features)]
    for name, own in zip(names, cuts, strict=True):
        if len(own) >= MAX_VALUE_BINS:
            raise ValueError(
                f"column {name!r} has {len(own)} different cuts in these models, and one model has at most "
                f"{MAX_VALUE_BINS - 1}: train them with max_bins={max(2, MAX_VALUE_BINS // len(mappers))}, or on the same rows"
            )
    return BinMapper(
        cut_values=np.concatenate(cuts),
        cut_offsets=np.cumsum([0, *map(len, cuts)], dtype=np.int64),
        has_missing=np.logical_or.reduce([one.has_missing for one in mappers]),
    )


def scaled(model: Any, mapper: BinMapper, share: float) -> Ensemble:
    """Return the trees of a model over the cuts of ``mapper``, which has all that they use, with ``share`` of their values.

    A row goes left where its value is below the cut (see `gpuboost.export.trees`), and so it does by any codes.
    """
    old: BinMapper = model.bin_mapper_
    ensemble: Ensemble = model.ensemble_
    cut, feature = ensemble.cut.astype(np.int64), ensemble.feature
    all_left = cut > old.n_cuts[feature]
    moved = np.where(all_left, mapper.n_cuts[feature] + 1, 0)
    for node in np.flatnonzero((cut > 0) & ~all_left).tolist():
        f = feature[node]
        moved[node] = 1 + np.searchsorted(mapper.cuts(f), old.cuts(f)[cut[node] - 1])
    return replace(ensemble, cut=moved.astype(np.uint8), values=ensemble.values * share, gain=ensemble.gain * share)

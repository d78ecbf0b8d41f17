"""The trees of a fitted model with real thresholds in place of codes: what every target starts from.

`gpuboost.binning` gives a value the code ``1 + number of cuts <= x``, and a row goes left where ``1 <= code <= cut``. So it
goes left exactly where ``x < c`` for c, the cut-th of the feature's ascending cuts. The cuts are float64, and x is compared as
float64: those of a float32 or integer matrix, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.ensemble import Ensemble
from gpuboost.tree import constant_tree

Model = Any
"""A fitted `gpuboost.estimators.base.BoostingClassifier`, of a higher layer than its exports."""


class Exportable:
    """What marks the classifiers of gpuboost for their exports."""


@dataclass(frozen=True)
class RealTree:
    """A tree over feature values.

    A row goes left at a node if ``x < threshold``, or if x is NaN and ``missing_left`` is set. A node that only tells missing
    values from the others has the threshold -inf, below which there is nothing.

    Attributes
    ----------
    feature : ndarray of int32, shape (n_inner,)
    threshold : ndarray of float64, shape (n_inner,)
        Never NaN or -0.0; +inf parts the largest finite numbers from infinity.
    missing_left : ndarray of bool, shape (n_inner,)
    left, right : ndarray of int64, shape (n_inner,)
        Numbers of nodes: inner nodes first, then leaves, so that leaf i is node ``n_inner + i``. The root is node 0.
    values : ndarray of float64, shape (n_inner + 1, n_classes)
        What the leaves add to the scores.
    """

    feature: NDArray[np.int32]
    threshold: NDArray[np.float64]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def n_inner(self) -> int:
        return len(self.feature)


def real_trees(model: Model) -> list[RealTree]:
    """Return the trees of an `exported_ensemble` in the order in which their values are added."""
    ensemble, mapper = exported_ensemble(model), model.bin_mapper_
    feature, cut = ensemble.feature, ensemble.cut.astype(np.int64)
    # Past the last cut every value goes left. That is the same as no value going left, with the sides exchanged.
    all_left = cut > mapper.n_cuts[feature]
    by_value = (cut > 0) & ~all_left
    threshold = np.full(len(cut), -np.inf)
    threshold[by_value] = mapper.cut_values[(mapper.cut_offsets[feature] + cut - 1)[by_value]]
    left, right = np.where(all_left, [ensemble.right, ensemble.left], [ensemble.left, ensemble.right])
    missing_left = ensemble.missing_left ^ all_left
    trees = []
    for nodes, leaves in zip(pairwise(ensemble.node_offset), pairwise(ensemble.leaf_offset), strict=True):
        n = slice(*nodes)
        children = node_numbers(left[n]), node_numbers(right[n])
        trees.append(RealTree(feature[n], threshold[n], missing_left[n], *children, ensemble.values[slice(*leaves)]))
    return trees


def node_numbers(children: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return the nodes of a tree's children, of which `gpuboost.tree.Tree` writes leaf i as ``~i``: ``n_inner + i``."""
    return np.where(children < 0, len(children) + ~children.astype(np.int64), children)


def exported_ensemble(model: Model) -> Ensemble:
    """Return the trees of a fitted model; one that adds 0 if there is none.

    Raises
    ------
    TypeError
        If the model does not consist of trees.
    sklearn.exceptions.NotFittedError
        If it is not fitted.
    """
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(model, Exportable):
        raise TypeError(f"model must be a fitted classifier of gpuboost, got {type(model).__name__}")
    fitted: Model = model
    check_is_fitted(fitted)
    kind = type(fitted).__name__
    if not hasattr(fitted, "ensemble_"):
        raise TypeError(f"only models of trees can be exported, but this {kind} boosts the regressor {fitted.regressor!r:.200}")
    if not isinstance(fitted.ensemble_, Ensemble):
        raise TypeError(f"only models of trees can be exported, but this {kind} compares rows with training points")
    n_classes = len(fitted.classes_)
    return (
        fitted.ensemble_ if fitted.ensemble_.n_trees else Ensemble.from_trees([constant_tree(np.zeros(n_classes))], n_classes)
    )


def feature_names(model: Model) -> list[str]:
    """Return the names of the columns; x0, x1, ... if they have none."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(model.n_features_in_)] if names is None else [str(name) for name in names]

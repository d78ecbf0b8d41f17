"""What makes the arrays of a model file a model: a few passes over each of them, and no loop in Python.

A model that passes can be scored on any rows: every walk through a tree ends in a leaf, and no index is out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning import MAX_VALUE_BINS, BinMapper
from gpuboost.ensemble import Ensemble
from gpuboost.similarities.ensemble import Similarities
from gpuboost.similarities.scale import MAX_SQUARED_DISTANCE, FeatureScale


def check_ensemble(model: Ensemble, n_classes: int, n_cuts: NDArray[np.int32]) -> None:
    """Check the trees of a model.

    Parameters
    ----------
    model : Ensemble
        Of arrays with the right dtypes and numbers of dimensions.
    n_classes : int
    n_cuts : ndarray of int32, shape (n_features,)

    Raises
    ------
    ValueError
        If they are not trees over these features with these classes.
    """
    _check_offsets("trees", model.node_offset, len(model.feature))
    _check_offsets("leaves", model.leaf_offset, len(model.values))
    _check_offsets("rounds", model.round_offset, model.n_trees)
    if not np.array_equal(model.leaf_offset, model.node_offset + np.arange(model.n_trees + 1)):
        raise ValueError("a tree has not one leaf more than it has nodes")
    for name in ("cut", "missing_left", "left", "right", "gain"):
        if len(getattr(model, name)) != len(model.feature):
            raise ValueError(f"there is not one {name} for each node")
    if model.n_classes != n_classes:
        raise ValueError(f"its leaves have {model.n_classes} values for {n_classes} classes")
    if not (np.isfinite(model.values).all() and np.isfinite(model.gain).all()):
        raise ValueError("a leaf's value or a gain is not finite")
    _check_cuts(model, n_cuts)
    _check_children(model)


def _check_cuts(model: Ensemble, n_cuts: NDArray[np.int32]) -> None:
    """Every cut is one between the bins of a feature that there is (or parts its missing values from all others)."""
    if not len(model.feature):
        return
    if model.feature.min() < 0 or model.feature.max() >= len(n_cuts):
        raise ValueError(f"a node asks for a feature that is not one of {len(n_cuts)}")
    if (model.cut > n_cuts[model.feature] + 1).any():
        raise ValueError("a node cuts behind the last bin of its feature")


def _check_children(model: Ensemble) -> None:
    """All nodes but the roots, and all leaves, are the child of one node, which comes before it in its tree: no cycles."""
    nodes = np.diff(model.node_offset)
    first_node, first_leaf = (np.repeat(offset[:-1], nodes) for offset in (model.node_offset, model.leaf_offset))
    number = np.arange(len(model.feature)) - first_node
    n_nodes = np.repeat(nodes, nodes)
    is_inner = np.zeros(len(model.feature), bool)
    is_leaf = np.zeros(len(model.values), bool)
    roots = model.node_offset[:-1][nodes > 0]
    alone = model.leaf_offset[:-1][nodes == 0]
    for child in (model.left, model.right):
        inner = child >= 0
        if (inner & ((child <= number) | (child >= n_nodes))).any() or (~inner & (~child > n_nodes)).any():
            raise ValueError("a node's child is not one that comes after it in its tree")
        is_inner[(first_node + child)[inner]] = True
        is_leaf[(first_leaf + ~child)[~inner]] = True
    # A tree has twice as many children as nodes, which is the number of its leaves and of its nodes but the root: if all of
    # them are somebody's child, none is the child of two.
    is_inner[roots] = is_leaf[alone] = True
    if not (is_inner.all() and is_leaf.all()):
        raise ValueError("a node or leaf is the child of two nodes, or of none")


def check_bins(mapper: BinMapper) -> None:
    """Check the cuts of the features.

    Raises
    ------
    ValueError
        If they are not ascending, or too many.
    """
    if len(mapper.cut_offsets) != mapper.n_features + 1:
        raise ValueError(f"there are cuts of {len(mapper.cut_offsets) - 1} features, not of {mapper.n_features}")
    _check_offsets("features", mapper.cut_offsets, len(mapper.cut_values))
    if (np.diff(mapper.cut_offsets) >= MAX_VALUE_BINS).any():
        raise ValueError(f"a feature has more than {MAX_VALUE_BINS - 1} cuts")
    is_first = np.zeros(len(mapper.cut_values) + 1, bool)
    is_first[mapper.cut_offsets] = True
    ascends = mapper.cut_values[1:] > mapper.cut_values[:-1]
    if np.isnan(mapper.cut_values).any() or not (ascends | is_first[1:-1]).all():
        raise ValueError("the cuts of a feature are not ascending numbers")


def _check_offsets(what: str, offsets: NDArray[Any], stop: int) -> None:
    """Offsets begin with 0, do not fall, and end with the number of what they divide."""
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != stop or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"the offsets of the {what} do not divide {stop} entries")


def check_scale(scale: FeatureScale) -> None:
    """Check the levels of the features.

    Raises
    ------
    ValueError
        If a unit is not positive, or a level not among those that there are.
    """
    if not len(scale.low) == len(scale.unit) == len(scale.top) == len(scale.missing):
        raise ValueError("there is not one scale for each feature")
    if not (np.isfinite(scale.low).all() and np.isfinite(scale.unit).all() and (scale.unit / 2 > 0).all()):
        raise ValueError("a feature's lowest value is not finite, or its unit not positive")
    if (scale.missing > scale.top).any():
        raise ValueError("the level of a missing value is above the last one")
    if int((scale.top.astype(np.int64) ** 2).sum()) > MAX_SQUARED_DISTANCE:
        raise ValueError("its squared distances do not fit in 31 bits")


def check_similarities(model: Similarities, n_classes: int, top: NDArray[np.uint8]) -> None:
    """Check the similarities of a model.

    Parameters
    ----------
    model : Similarities
        Of arrays with the right dtypes and numbers of dimensions.
    n_classes : int
    top : ndarray of uint8, shape (n_features,)
        The largest level of each feature.

    Raises
    ------
    ValueError
        If they are not similarities over these features with these classes.
    """
    if not (len(model.levels) == len(model.rows) == len(model.classes)):
        raise ValueError("there is not one row and one class for each point")
    if model.levels.shape[1] != len(top) or (model.levels > top).any():
        raise ValueError("a point has other features, or a level above the last one")
    if (model.rows < 0).any() or (model.classes < 0).any() or (model.classes >= n_classes).any():
        raise ValueError(f"a point's row is negative, or its class not one of {n_classes}")
    if not len(model.first) == len(model.second) == len(model.radius) == len(model.coefficients):
        raise ValueError("there are not two points, a radius and coefficients for each round")
    if model.n_classes != n_classes or not np.isfinite(model.coefficients).all():
        raise ValueError(f"its coefficients are not finite, or not of {n_classes} classes")
    for numbers in (model.first, model.second):
        if ((numbers < -1) | (numbers >= model.n_points)).any():
            raise ValueError("a round asks for a point that is not there")
    if ((model.first < 0) & (model.second >= 0)).any():
        raise ValueError("a round has a second point, but no first one")
    has_radius = (model.first >= 0) & (model.second < 0)
    if (model.radius < 0).any() or (model.radius > MAX_SQUARED_DISTANCE).any() or model.radius[~has_radius].any():
        raise ValueError("a radius is out of range, or stands where there is no one point")
    used = np.concatenate([model.first, model.second])
    if len(np.unique(used[used >= 0])) != model.n_points:
        raise ValueError("a point is not used")

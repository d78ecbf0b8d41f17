"""What makes the arrays of a model file a model: a few passes over each of them, and no loop in Python.

A model that passes can be scored on any rows: every walk through a tree ends in a leaf, and no index is out of range.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning import MAX_VALUE_BINS, BinMapper
from gpuboost.ensemble import Ensemble


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

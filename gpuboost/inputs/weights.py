"""Sample weights and class weights, from what the caller passes to one positive number a row."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.exactsum import exact_sums
from gpuboost.fixedpoint import STATE_FLOOR, exponent, largest_of
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.containers import only_column, to_numpy
from gpuboost.inputs.label_encoder import LabelEncoder, shown
from gpuboost.inputs.parameters import as_float
from gpuboost.peers.base import ALONE, Peers, agree


def row_weights(sample_weight: Any, n_rows: int, name: str = "sample_weight", peers: Peers = ALONE) -> Floats:
    """Return the rows' weights, float64 (n_rows,), scaled by a power of two; 1 each if none are given.

    ``peers`` have more rows, whose weights get the same scale.

    Raises
    ------
    ValueError
        If there is not one weight a row, one is negative, NaN or infinite, or all are 0.
    TypeError
        If the weights are on a device with a dtype that NumPy does not have.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, sample_weight)
    sample_weight = only_column(to_host(sample_weight, name), name)
    if np.ma.is_masked(sample_weight):
        raise ValueError(f"{name} must be numbers, but some are masked; a row of weight 0 is one that does not exist")
    try:
        given = to_numpy(sample_weight)
        text = [weight for weight in given.flat if isinstance(weight, (str, bytes))] if given.dtype.kind == "O" else []
        if given.dtype.kind not in "biufcO" or text:
            raise ValueError(f"got {text[0]!r}" if text else f"got the dtype {given.dtype}")
        if given.dtype.kind == "c":
            raise ValueError(f"Complex data not supported: {name} has dtype {given.dtype}")
        weights = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers: {error}") from error
    if weights.ndim != 1:
        raise ValueError(f"Sample weights must be 1D array or scalar: {name} has the shape {weights.shape}")
    if len(weights) != n_rows:
        raise ValueError(f"{name} must have one entry for each of the {n_rows} rows of X, got {len(weights)}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        row = int(np.flatnonzero(~np.isfinite(weights) | (weights < 0))[0])
        raise ValueError(f"{name} must be finite and not negative, got {weights[row]} in row {row}")
    if largest_of(weights, peers) == 0.0:
        raise ValueError(f"{name} is zero in every row: there is nothing to learn from")
    return to_unit_scale(weights, peers)


def to_unit_scale(weights: Floats, peers: Peers = ALONE) -> Floats:
    """Scale weights by a power of two so that the largest is in [1/2, 1); positive ones do not vanish beside it."""
    whole = exponent(largest_of(weights, peers))
    agree(peers, "scale of the weights", whole)
    return scaled_down(weights, whole)


def scaled_down(weights: Floats, whole: int) -> Floats:
    """Return weights times ``2**-whole``; positive ones stay above 0."""
    half = whole // 2  # two steps, as the power itself may be out of range
    scaled = np.ldexp(np.ldexp(weights, -half), half - whole)
    return np.where(weights > 0, np.maximum(scaled, STATE_FLOOR), 0.0)


def class_weights(
    class_weight: Any, encoder: LabelEncoder, target: NDArray[Any], weights: Floats, peers: Peers = ALONE
) -> Floats:
    """Return the weight of each class, shape (n_classes,).

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weights by label; classes that are not in the dict weigh 1. "balanced" gives all classes the same total weight.
    encoder : LabelEncoder
    target : ndarray
        The rows' targets.
    weights : ndarray of float64, shape (n_rows,)
        The rows' weights.
    peers : Peers
        The workers that have the rows of the training set.

    Raises
    ------
    ValueError
        If a key is no class, a weight is negative or not finite, all are 0, or the problem is multi-label.
    """
    n_classes = len(encoder.classes)
    if class_weight is None:
        return np.ones(n_classes)
    if encoder.multi_label:
        raise ValueError("class_weight must be None for a multi-label y, whose rows have several classes; use sample_weight")
    if isinstance(class_weight, str) and class_weight == "balanced":
        sums = exact_sums(weights, target, n_classes, peers)
        agree(peers, "weights of the classes", sums)
        return 1.0 / sums
    result = np.ones(n_classes)
    for label, weight in class_weight.items():
        k = encoder.number(label)
        if k is None:
            raise ValueError(f"class_weight has the key {label!r}, which is no class of y: {shown(encoder.classes)}")
        if not 0 <= as_float(weight) < np.inf:
            raise ValueError(f"class_weight[{label!r}] must be a finite number that is not negative, got {weight!r}")
        result[k] = weight
    if not result.any():
        raise ValueError("class_weight is 0 for every class: there is nothing to learn from")
    return result

"""The check that X has the columns that the model was trained on.

The messages are those of scikit-learn, but the names are found here: which data frames scikit-learn recognises depends on its
version, and a frame that it takes for an array would be predicted with its columns in any order.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from gpuboost.inputs.containers import frame_names
from gpuboost.messages import warn

N_SHOWN = 5
"""Messages list that many names."""


def record_columns(estimator: Any, X: Any, n_features: int) -> None:
    """Remember the columns of the training set: ``n_features_in_`` and, if they are strings, ``feature_names_in_``.

    Raises
    ------
    TypeError
        If some names are strings and some are not.
    ValueError
        If a name stands more than once.
    """
    record_names(estimator, frame_names(X), n_features)


def record_names(estimator: Any, names: list[Any] | None, n_features: int) -> None:
    """`record_columns` of names that are known."""
    kinds = sorted({"str" if isinstance(name, str) else type(name).__name__ for name in names or ()})
    if "str" in kinds and len(kinds) > 1:
        raise TypeError(f"Feature names are only supported if all input features have string names, got names of types {kinds}")
    if names:
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise ValueError(f"column names of X must be unique, but {name!r} stands {count} times")
    estimator.n_features_in_ = n_features
    estimator._column_names = names
    if kinds == ["str"]:
        estimator.feature_names_in_ = np.array(names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def compare_columns(estimator: Any, X: Any) -> None:
    """Check X, before its values are looked at, against the columns of the training set.

    A column too many is named as such, whatever it holds. Warns if only one of the two has (string) names. Names that are no
    strings are compared, too, which scikit-learn does not.

    Raises
    ------
    ValueError
        If the names, their order or their number differ: the first wrong column is named. Only of a frame or an ndarray is the
        number known here; see `compare_number`.
    """
    names, expected = frame_names(X), estimator._column_names
    is_named = bool(names) and all(isinstance(name, str) for name in names or ())
    was_named = hasattr(estimator, "feature_names_in_")
    kind = type(estimator).__name__
    if was_named and not is_named:
        warn(f"X does not have valid feature names, but {kind} was fitted with feature names")
    elif is_named and not was_named:
        warn(f"X has feature names, but {kind} was fitted without feature names")
    elif names and expected and names != expected:
        raise ValueError(_difference(expected, names))
    if names is not None:
        compare_number(estimator, len(names))
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        compare_number(estimator, X.shape[1])


def compare_names(estimator: Any, names: list[Any] | None, n_features: int) -> None:
    """Raise a ValueError if these are not the columns of the training set."""
    expected = estimator._column_names
    if names and expected and names != expected:
        raise ValueError(_difference(expected, names))
    compare_number(estimator, n_features)


def compare_number(estimator: Any, n_features: int) -> None:
    """Raise a ValueError if there are more or fewer columns than in the training set."""
    kind, expected = type(estimator).__name__, estimator.n_features_in_
    if n_features != expected:
        raise ValueError(f"X has {n_features} features, but {kind} is expecting {expected} features as input.")


def _difference(expected: list[Any], names: list[Any]) -> str:
    """Say how the names of columns differ from the expected ones."""
    text = "The feature names should match those that were passed during fit.\n"
    unseen, missing = set(names) - set(expected), set(expected) - set(names)
    if unseen:
        text += "Feature names unseen at fit time:\n" + _listed(unseen)
    if missing:
        text += "Feature names seen at fit time, yet now missing:\n" + _listed(missing)
    if not unseen and not missing:
        text += "Feature names must be in the same order as they were in fit.\n"
    same = [a == b for a, b in zip(expected, names, strict=False)]
    first = same.index(False) if False in same else len(same)
    wanted = repr(expected[first]) if first < len(expected) else "no more columns"
    received = repr(names[first]) if first < len(names) else "no more columns"
    return f"{text}The first wrong column is number {first}: expected {wanted}, got {received}."


def _listed(names: set[Any]) -> str:
    ordered = sorted(map(str, names))
    return "".join(f"- {name}\n" for name in ordered[:N_SHOWN]) + ("- ...\n" if len(ordered) > N_SHOWN else "")

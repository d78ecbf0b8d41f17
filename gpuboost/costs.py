"""Misclassification costs: ``C[true, predicted]`` is what it costs to predict one class where another is true.

Everywhere in this package a row of a cost matrix is a true class and a column a predicted one, as in a confusion matrix, and
the right class costs nothing: section 4.2 of Appel's thesis writes ``C[y, k]``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from itertools import product
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SMALLEST, LARGEST = 1e-100, 1e100
"""Costs that are not 0 lie between these, so that no square, sum or ratio of them leaves float64."""

N_SHOWN = 10
"""Messages list that many labels."""


def check_cost_matrix(cost_matrix: Any, classes: Any) -> Floats:
    """Return a cost matrix as an array in the order of the classes.

    Parameters
    ----------
    cost_matrix : array-like, pandas DataFrame, or dict of dicts
        ``C[true, predicted]``. An array has its rows and columns in the order of ``classes``. A DataFrame is read by the labels
        of its index (true) and its columns (predicted), a dict of dicts is ``{true: {predicted: cost}}``. The diagonal of a
        dict may be left out; every other cost must be given. What is labelled may have more labels than there are
        classes, so that a part of the data that lacks a class can use the costs of all.
    classes : array-like, shape (n_classes,)
        The labels, as in ``classes_``.

    Returns
    -------
    ndarray of float64, shape (n_classes, n_classes)
        A copy. A class that costs nothing to miss, whose row is zero, is accepted with a warning.

    Raises
    ------
    ValueError
        If the shape or the labels are not those of the classes, a cost is missing, no number, not finite, negative, or beyond
        1e-100 .. 1e100, the diagonal is not zero, or all costs are zero.
    TypeError
        If the matrix is a data frame without row labels.
    """
    wanted = _labels_of(classes)
    labels, costs = _read(cost_matrix, wanted)
    position = {label: i for i, label in enumerate(labels)}
    for label in wanted:
        if label not in position:
            raise ValueError(f"cost_matrix has no costs for the class {label!r}; its labels are {_shown(labels)}")
    chosen = [position[label] for label in wanted]
    costs = costs[np.ix_(chosen, chosen)]
    free = np.flatnonzero(~costs.any(axis=1))
    if len(wanted) > 1 and len(free) == len(wanted):
        raise ValueError("cost_matrix is zero everywhere: no mistake costs anything")
    if len(wanted) > 1 and len(free):
        from gpuboost.estimators.warn import warn

        label = wanted[free[0]]
        warn(f"the cost matrix says that missing the class {label!r} costs nothing: its row (true class) is zero")
    return costs


# ---- reading -----------------------------------------------------------------------------------------------------------------


def _read(cost_matrix: Any, classes: list[Any] | None) -> tuple[list[Any], Floats]:
    """Return a matrix's labels and its costs: its own labels if it has some, else the classes."""
    if hasattr(cost_matrix, "columns"):
        cost_matrix = _frame_to_dict(cost_matrix)
    if isinstance(cost_matrix, Mapping):
        labels, entries = _square(cost_matrix)
    else:
        entries = _matrix(cost_matrix)
        labels = list(range(len(entries))) if classes is None else classes
        if entries.shape != (len(labels), len(labels)):
            raise ValueError(
                "cost_matrix must have a row for every true class and a column for every predicted class of "
                f"{_shown(labels)}, the shape {(len(labels), len(labels))}, got the shape {entries.shape}"
            )
    return labels, _checked(entries, labels)


def _frame_to_dict(frame: Any) -> dict[Any, dict[Any, Any]]:
    """Return a pandas DataFrame as a dict of dicts."""
    if not hasattr(frame, "index"):
        raise TypeError(
            f"cost_matrix is a {type(frame).__module__.partition('.')[0]} {type(frame).__name__}, which has no row labels; "
            "pass a pandas DataFrame, a dict of dicts by label, or an array in the order of the classes"
        )
    rows, columns = _labels_of(frame.index), _labels_of(frame.columns)
    for what, labels in (("row", rows), ("column", columns)):
        twice = [label for label in labels if labels.count(label) > 1]
        if twice:
            raise ValueError(f"cost_matrix must have one {what} for each label, but {twice[0]!r} stands {len(twice)} times")
    values = frame.to_numpy(dtype=object)
    return {row: dict(zip(columns, costs, strict=True)) for row, costs in zip(rows, values.tolist(), strict=True)}


def _square(table: Mapping[Any, Any]) -> tuple[list[Any], NDArray[Any]]:
    """Return the labels of a dict of dicts, and its entries as objects, shape (n_labels, n_labels)."""
    for true, row in table.items():
        if not isinstance(row, Mapping):
            raise ValueError(f"cost_matrix[{true!r}] must be a dict of costs by predicted label, got {row!r}")
    labels = list(dict.fromkeys([*table, *(predicted for row in table.values() for predicted in row)]))
    rowless = [label for label in labels if label not in table]
    if rowless:
        raise ValueError(f"cost_matrix has no row for the true class {rowless[0]!r}, only for {_shown(list(table))}")
    entries = np.zeros((len(labels), len(labels)), object)
    for (i, true), (j, predicted) in product(enumerate(labels), repeat=2):
        if i != j and predicted not in table[true]:
            raise ValueError(f"cost_matrix[{true!r}] has no cost for the predicted class {predicted!r}")
        entries[i, j] = table[true].get(predicted, 0)
    return labels, entries


def _matrix(cost_matrix: Any) -> NDArray[Any]:
    """Return an array-like as a matrix of numbers or objects."""
    expected = "cost_matrix must be a matrix of numbers, a pandas DataFrame or a dict of dicts by label"
    try:
        entries = np.asarray(cost_matrix)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{expected}: {error}") from error
    if np.ma.is_masked(cost_matrix):
        raise ValueError(f"{expected}, but some of its entries are masked")
    if entries.ndim != 2 or entries.dtype.kind not in "biufO":
        received = repr(cost_matrix) if entries.ndim == 0 else f"an array of shape {entries.shape} and dtype {entries.dtype}"
        raise ValueError(f"{expected}, got {received}")
    return entries


def _checked(entries: NDArray[Any], labels: list[Any]) -> Floats:
    """Return entries as float64 if all of them can be costs."""
    for i, row in enumerate(entries.tolist()):
        for j, cost in enumerate(row):
            expected = None
            if not isinstance(cost, Real) or not 0 <= float(cost) < np.inf:
                expected = "a finite number that is not negative"
            elif i == j and cost != 0:
                expected = "0, as the right class costs nothing (subtract it from its row: no decision changes)"
            elif cost != 0 and not SMALLEST <= float(cost) <= LARGEST:
                expected = f"0 or from {SMALLEST:g} to {LARGEST:g}; choose another unit of cost"
            if expected:
                raise ValueError(
                    f"the cost of predicting {labels[j]!r} where {labels[i]!r} is true (row {i}, column {j} of cost_matrix) "
                    f"must be {expected}, got {cost!r}"
                )
    return entries.astype(np.float64) + 0.0  # no -0


def _labels_of(labels: Iterable[Hashable]) -> list[Any]:
    """Return labels as a list of Python objects."""
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def _shown(labels: list[Any]) -> str:
    return f"[{', '.join(map(repr, labels[:N_SHOWN]))}{', ...' if len(labels) > N_SHOWN else ''}]"

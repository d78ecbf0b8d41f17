"""Misclassification costs: ``C[true, predicted]`` is what it costs to predict one class where another is true.

Everywhere in this package a row of a cost matrix is a true class and a column a predicted one, as in a confusion matrix, and
the right class costs nothing: section 4.2 of Appel's thesis writes ``C[y, k]``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.inputs.label_values import label_key, label_keys, label_list
from gpuboost.inputs.parameters import as_float

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
        of its index (true) and its columns (predicted), a dict of dicts (or Series) is ``{true: {predicted: cost}}``. That is
        not ``DataFrame.to_dict()``, which begins with the columns, but ``DataFrame.to_dict("index")``. The diagonal of a
        dict may be left out; every other cost must be given. What is labelled may have more labels than there are
        classes, so that a part of the data that lacks a class can use the costs of all.
    classes : array-like, shape (n_classes,)
        The labels, as in ``classes_``.

    Returns
    -------
    ndarray of float64, shape (n_classes, n_classes)
        A copy. A class may cost nothing to miss (a row of zeros): no decision about its rows costs anything. Training on such a
        matrix warns.

    Raises
    ------
    ValueError
        If the shape or the labels are not those of the classes, a label stands twice, a cost is missing, no number, not finite,
        negative, or beyond 1e-100 .. 1e100, the diagonal is not zero, or all costs are zero.
    TypeError
        If the matrix is a data frame without row labels.
    """
    wanted = _distinct(classes, "classes must be distinct")
    costs = costs_among(*cost_table(cost_matrix, wanted), wanted)
    _refuse_zeros(costs, wanted)
    return costs


def cost_table(cost_matrix: Any, classes: Any) -> tuple[list[Any], Floats]:
    """Return the labels of a cost matrix, and its costs in their order, float64 (n_labels, n_labels).

    The labels of a DataFrame or a dict are its own, whatever ``classes`` are; those of an array are ``classes``. See
    `check_cost_matrix` for the rest.
    """
    if hasattr(cost_matrix, "columns"):
        cost_matrix = _frame_to_dict(cost_matrix)
    if isinstance(cost_matrix, Mapping):
        labels, entries = _square(cost_matrix)
    else:
        labels, entries = _distinct(classes, "classes must be distinct"), _matrix(cost_matrix)
        if entries.shape != (len(labels), len(labels)):
            raise ValueError(
                "cost_matrix must have a row for every true class and a column for every predicted class of "
                f"{_shown(labels)}, the shape {(len(labels), len(labels))}, got the shape {entries.shape}"
            )
    costs = _checked(entries, labels)
    _refuse_zeros(costs, labels)
    return labels, costs


def costs_among(labels: list[Any], costs: Floats, classes: Any) -> Floats:
    """Return the part of a `cost_table` that some of its classes have, in their order."""
    position = {key: i for i, key in enumerate(label_keys(labels))}
    wanted = label_list(classes)
    for label in wanted:
        if label_key(label) not in position:
            raise ValueError(f"cost_matrix has no costs for the class {label!r}; its labels are {_shown(labels)}")
    chosen = [position[key] for key in label_keys(wanted)]
    return costs[np.ix_(chosen, chosen)]


def is_labelled(cost_matrix: Any) -> bool:
    """Whether a cost matrix brings its own labels."""
    return hasattr(cost_matrix, "columns") or isinstance(cost_matrix, Mapping)


def least_cost(proba: Floats, costs: Floats) -> NDArray[np.intp]:
    """Return the class of least expected cost, ``argmin_k sum_y proba[i, y] C[y, k]``; the first of equals.

    Parameters
    ----------
    proba : ndarray of float64, shape (n_rows, n_classes)
    costs : ndarray of float64, shape (n_classes, n_classes)
        From `check_cost_matrix`.

    Returns
    -------
    ndarray of int, shape (n_rows,)
        The sums are taken in the order of the classes, one rounding an operation: the same on every machine.
    """
    expected = np.zeros(proba.shape)
    for y, cost in enumerate(costs):
        expected += proba[:, y, None] * cost
    chosen: NDArray[np.intp] = expected.argmin(axis=1)
    return chosen


def average_cost(confusion: NDArray[Any], costs: Floats) -> float:
    """Return the mean cost of predictions whose weights are ``confusion[true, predicted]``, summed row by row."""
    return float((confusion * costs).cumsum()[-1]) / float(confusion.cumsum()[-1])


# ---- reading -----------------------------------------------------------------------------------------------------------------


def _frame_to_dict(frame: Any) -> dict[Any, dict[Any, Any]]:
    """Return a pandas DataFrame as a dict of dicts."""
    if not hasattr(frame, "index"):
        raise TypeError(
            f"cost_matrix is a {type(frame).__module__.partition('.')[0]} {type(frame).__name__}, which has no row labels; "
            "pass a pandas DataFrame, a dict of dicts by label, or an array in the order of the classes"
        )
    rows = _distinct(frame.index, "cost_matrix must have one row for each label")
    columns = _distinct(frame.columns, "cost_matrix must have one column for each label")
    values = frame.to_numpy(dtype=object)
    return {row: dict(zip(columns, costs, strict=True)) for row, costs in zip(rows, values.tolist(), strict=True)}


def _square(table: Mapping[Any, Any]) -> tuple[list[Any], NDArray[Any]]:
    """Return the labels of a dict of dicts, and its entries as objects, shape (n_labels, n_labels)."""
    labels = _distinct(table, "cost_matrix must have one row for each label")
    known = set(label_keys(labels))
    costs: list[dict[Any, Any]] = []
    for true, row in zip(labels, table.values(), strict=True):
        row = row.to_dict() if hasattr(row, "index") and hasattr(row, "to_dict") else row  # of a Series
        if not isinstance(row, Mapping):
            raise ValueError(f"cost_matrix[{true!r}] must be a dict of costs by predicted label, got {row!r}")
        predicted = _distinct(row, f"cost_matrix[{true!r}] must have one cost for each label")
        costs.append(dict(zip(label_keys(predicted), row.values(), strict=True)))
        rowless = [label for label in predicted if label_key(label) not in known]
        if rowless:
            raise ValueError(f"cost_matrix has no row for the true class {rowless[0]!r}, only for {_shown(labels)}")
    entries = np.zeros((len(labels), len(labels)), object)
    for (i, true), (j, label) in product(enumerate(labels), repeat=2):
        if i != j and label_key(label) not in costs[i]:
            raise ValueError(f"cost_matrix[{true!r}] has no cost for the predicted class {label!r}")
        entries[i, j] = costs[i].get(label_key(label), 0)
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
    costs = np.array([[as_float(entry) for entry in row] for row in entries.tolist()], np.float64)
    for (i, true), (j, predicted) in product(enumerate(labels), repeat=2):
        if not 0 <= costs[i, j] < np.inf:
            expected = "a finite number that is not negative"
        elif i == j and costs[i, j] != 0:
            expected = "0, as the right class costs nothing (subtracting it from its row changes no decision)"
        elif costs[i, j] != 0 and not SMALLEST <= costs[i, j] <= LARGEST:
            expected = f"0 or from {SMALLEST:g} to {LARGEST:g}: choose another unit of cost"
        else:
            continue
        raise ValueError(
            f"the cost of predicting {predicted!r} where {true!r} is true (row {i}, column {j} of cost_matrix) must be "
            f"{expected}, got {entries.tolist()[i][j]!r}"
        )
    return costs.reshape(entries.shape) + 0.0  # no -0


def _refuse_zeros(costs: Floats, labels: list[Any]) -> None:
    if len(labels) > 1 and not costs.any():
        raise ValueError(f"cost_matrix is zero everywhere: no mistake among the classes {_shown(labels)} costs anything")


def _distinct(labels: Iterable[Hashable], expected: str) -> list[Any]:
    """Return labels as a list of objects, none of which stands twice."""
    listed = label_list(labels)
    count = Counter(label_keys(listed))
    if len(count) < len(listed):
        label = next(label for label in listed if count[label_key(label)] > 1)
        raise ValueError(f"{expected}, but {label!r} stands {count[label_key(label)]} times")
    return listed


def _shown(labels: list[Any]) -> str:
    return f"[{', '.join(map(repr, labels[:N_SHOWN]))}{', ...' if len(labels) > N_SHOWN else ''}]"

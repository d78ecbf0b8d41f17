"""Cost matrices, and what is decided and measured with them."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from gpuboost.costs import check_cost_matrix

LABELS = ["a", "b", "c"]
COSTS = [[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]]  # COSTS[true][predicted]
TABLE = {true: dict(zip(LABELS, row, strict=True)) for true, row in zip(LABELS, COSTS, strict=True)}


def without_diagonal(table: dict[Any, dict[Any, float]]) -> dict[Any, dict[Any, float]]:
    return {true: {k: cost for k, cost in row.items() if k != true} for true, row in table.items()}


# ---- what is accepted --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        COSTS,
        np.array(COSTS, np.float32),
        np.array(COSTS, int),
        np.asfortranarray(COSTS),
        np.array(COSTS, object),
        [[Fraction(cost) for cost in row] for row in COSTS],
        TABLE,
        without_diagonal(TABLE),
        pd.DataFrame(COSTS, index=LABELS, columns=LABELS),
        pd.DataFrame(COSTS, index=LABELS, columns=LABELS).loc[["c", "a", "b"], ["b", "c", "a"]],
        pd.DataFrame(COSTS, index=LABELS, columns=LABELS, dtype=object),
        {true: TABLE[true] for true in reversed(LABELS)},
    ],
)
def test_a_row_is_a_true_class_in_every_form(given: Any) -> None:
    costs = check_cost_matrix(given, np.array(LABELS))
    assert costs.dtype == np.float64
    assert costs.tolist() == COSTS


def test_the_caller_keeps_the_array() -> None:
    given = np.array(COSTS)
    given.flags.writeable = False
    costs = check_cost_matrix(given, LABELS)
    costs[:] = 7.0
    assert given.tolist() == COSTS


@pytest.mark.parametrize("classes", [np.array([-1, 1]), np.array([False, True]), np.array([0.5, 2.0]), np.array([b"n", b"y"])])
def test_labels_of_any_type(classes: np.ndarray) -> None:
    first, second = classes
    assert check_cost_matrix({first: {second: 10}, second: {first: 1}}, classes).tolist() == [[0, 10], [1, 0]]
    frame = pd.DataFrame([[0, 1], [10, 0]], index=classes[::-1], columns=classes[::-1])
    assert check_cost_matrix(frame, classes).tolist() == [[0, 10], [1, 0]]


def test_labels_are_compared_by_value() -> None:
    assert check_cost_matrix({1.0: {2.0: 5}, 2.0: {1.0: 6}}, np.array([1, 2])).tolist() == [[0, 5], [6, 0]]


def test_what_is_labelled_may_know_more_classes() -> None:
    """So a fold that lacks a class uses the costs of all."""
    assert check_cost_matrix(TABLE, ["a", "c"]).tolist() == [[0, 2], [5, 0]]
    assert check_cost_matrix(pd.DataFrame(COSTS, LABELS, LABELS), ["b", "c"]).tolist() == [[0, 4], [6, 0]]
    assert check_cost_matrix(TABLE, ["b"]).tolist() == [[0]]


@pytest.mark.parametrize("given", [[[0]], {"a": {}}, {"a": {"a": 0.0}}, np.zeros((1, 1))])
def test_one_class_has_no_mistakes(given: Any) -> None:
    assert check_cost_matrix(given, ["a"]).tolist() == [[0.0]]


def test_a_negative_zero_is_zero() -> None:
    assert not np.signbit(check_cost_matrix([[-0.0, 1], [1, -0.0]], [0, 1])).any()


def test_a_class_that_costs_nothing_to_miss_is_worth_a_warning() -> None:
    with pytest.warns(UserWarning, match=r"missing the class 'b' costs nothing: its row \(true class\) is zero") as caught:
        costs = check_cost_matrix([[0, 1, 2], [0, 0, 0], [5, 6, 0]], LABELS)
    assert costs[1].tolist() == [0, 0, 0]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_cost_matrix([[0, 0, 1], [1, 0, 1], [1, 0, 0]], LABELS)  # a column of zeros is free to predict, not to miss


# ---- what is not -------------------------------------------------------------------------------------------------------------


def changed(i: int, j: int, cost: Any) -> list[list[Any]]:
    costs: list[list[Any]] = [list(row) for row in COSTS]
    costs[i][j] = cost
    return costs


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            changed(0, 1, -1.0),
            r"predicting 'b' where 'a' is true \(row 0, column 1 of cost_matrix\) must be a finite.*got -1.0",
        ),
        (changed(2, 0, np.nan), r"predicting 'a' where 'c' is true \(row 2, column 0 .*not negative, got nan"),
        (changed(2, 0, np.inf), "must be a finite number that is not negative, got inf"),
        (changed(2, 0, None), "must be a finite number that is not negative, got None"),
        (changed(1, 1, 0.5), r"predicting 'b' where 'b' is true .* must be 0, as the right class costs nothing .*got 0.5"),
        (changed(1, 0, 1e101), "must be 0 or from 1e-100 to 1e.100; choose another unit of cost, got 1e.101"),
        (changed(1, 0, 1e-101), "choose another unit of cost, got 1e-101"),
        (np.zeros((3, 3)), "zero everywhere"),
        (COSTS[:2], r"a row for every true class and .* of \['a', 'b', 'c'\], the shape \(3, 3\), got the shape \(2, 3\)"),
        (np.zeros((2, 2)), r"the shape \(3, 3\), got the shape \(2, 2\)"),
        ([0, 1, 2], r"matrix of numbers, a pandas DataFrame or a dict of dicts by label, got an array of shape \(3,\)"),
        ([[0, 1], [2]], "must be a matrix of numbers"),
        ("balanced", "must be a matrix of numbers, .* got 'balanced'"),
        (7, "must be a matrix of numbers, .* got 7"),
        (np.array(COSTS, complex), "got an array of shape .* and dtype complex128"),
        (np.array(COSTS, str), "got an array of shape .* and dtype <U"),
        (np.ma.masked_equal(COSTS, 4.0), "some of its entries are masked"),
        ({"a": TABLE["a"], "b": TABLE["b"]}, r"no row for the true class 'c', only for \['a', 'b'\]"),
        ({**TABLE, "a": {"b": 1}}, "cost_matrix\\['a'\\] has no cost for the predicted class 'c'"),
        ({**TABLE, "b": 3.0}, r"cost_matrix\['b'\] must be a dict of costs by predicted label, got 3.0"),
        ({**TABLE, "d": {"a": 1}}, r"cost_matrix\['a'\] has no cost for the predicted class 'd'"),
        ({**TABLE, "a": {**TABLE["a"], "x": 1}}, r"no row for the true class 'x', only for \['a', 'b', 'c'\]"),
        ({**TABLE, "c": {"a": 5, "b": "6"}}, r"predicting 'b' where 'c' is true \(row 2, column 1 .*got '6'"),
        ({0: {1: 1, 2: 1}, 1: {0: 1, 2: 1}, 2: {0: 1, 1: 1}}, r"no costs for the class 'a'; its labels are \[0, 1, 2\]"),
        (pd.DataFrame(COSTS), r"no costs for the class 'a'; its labels are \[0, 1, 2\]"),
        (pd.DataFrame(COSTS, LABELS, ["a", "b", "b"]), "must have one column for each label, but 'b' stands 2 times"),
        (pd.DataFrame(COSTS, ["a", "c", "c"], LABELS), "must have one row for each label, but 'c' stands 2 times"),
    ],
)
def test_what_cannot_be_costs_is_named(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_cost_matrix(given, np.array(LABELS))


def test_a_frame_without_row_labels() -> None:
    with pytest.raises(TypeError, match="cost_matrix is a polars DataFrame, which has no row labels; pass a pandas DataFrame"):
        check_cost_matrix(pl.DataFrame(COSTS, schema=LABELS), LABELS)


def test_labels_must_be_those_of_the_classes_and_not_their_text() -> None:
    with pytest.raises(ValueError, match=r"no costs for the class 0; its labels are \['0', '1'\]"):
        check_cost_matrix({"0": {"1": 1}, "1": {"0": 1}}, [0, 1])

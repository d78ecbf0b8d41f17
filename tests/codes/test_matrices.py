"""Codes: what kinds there are, how far apart their rows are, and what is no code."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

from gpuboost.codes.matrices import CODES, all_columns, check_code, code_matrix, minimum_distance

LABELS = ["eggs", "ham", "spam"]


def distance_by_hand(matrix: Any) -> float:
    """Allwein's distance: the sum over columns of (1 - a b) / 2."""
    return min(sum((1 - int(a) * int(b)) / 2 for a, b in zip(u, v, strict=True)) for u, v in combinations(matrix, 2))


def up_to_sign(matrix: Any) -> set[tuple[int, ...]]:
    columns = [tuple(column.tolist()) for column in matrix.T]
    return {max(column, tuple(-entry for entry in column)) for column in columns}


def test_the_codes_of_three_classes() -> None:
    assert code_matrix("one-vs-all", LABELS).tolist() == [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    assert code_matrix("all-pairs", LABELS).tolist() == [[1, 1, 0], [-1, 0, 1], [0, -1, -1]]
    assert code_matrix("exhaustive", LABELS).tolist() == [[1, 1, 1], [-1, -1, 1], [-1, 1, -1]]
    assert code_matrix("dense", LABELS).tolist() == code_matrix("exhaustive", LABELS).tolist()  # there are no other columns
    every = {max(c, tuple(-e for e in c)) for c in product((-1, 0, 1), repeat=3) if {-1, 1} <= set(c)}
    assert up_to_sign(code_matrix("sparse", LABELS)) == every
    assert len(every) == 6


@pytest.mark.parametrize("code", CODES)
def test_two_classes_have_one_column(code: str) -> None:
    assert code_matrix(code, ["no", "yes"]).tolist() == [[1], [-1]]
    with pytest.raises(ValueError, match=r"at least two classes, got \['no'\]"):
        code_matrix(code, ["no"])


@pytest.mark.parametrize("k", [3, 4, 5, 8])
def test_the_distances_of_known_codes(k: int) -> None:
    classes = range(k)
    expected = {"one-vs-all": 2, "all-pairs": (k * (k - 1) / 2 + 1) / 2, "exhaustive": 2 ** (k - 2)}
    for code, distance in expected.items():
        matrix = code_matrix(code, classes)
        assert minimum_distance(matrix) == distance == distance_by_hand(matrix)
    assert code_matrix("exhaustive", classes).shape == (k, 2 ** (k - 1) - 1)
    assert len(up_to_sign(code_matrix("exhaustive", classes))) == 2 ** (k - 1) - 1


@pytest.mark.parametrize("matrix", [[[1, 0], [1, 1], [-1, -1]], [[0, 1], [1, 0], [-1, -1]], [[1, 1, -1], [-1, -1, 1]]])
def test_a_distance_counts_zeros_half(matrix: list[list[int]]) -> None:
    assert minimum_distance(matrix) == distance_by_hand(matrix)


@pytest.mark.parametrize(
    ("code", "k", "n_columns"), [("dense", 6, 26), ("dense", 10, 34), ("sparse", 5, 35), ("sparse", 10, 50)]
)
def test_random_codes(code: str, k: int, n_columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.codes.matrices.DRAWS", 500)
    matrix = code_matrix(code, range(k), 7)
    assert matrix.shape == (k, n_columns)  # ceil(10 log2 k), ceil(15 log2 k)
    assert matrix.dtype == np.int8
    assert set(np.unique(matrix).tolist()) == ({-1, 1} if code == "dense" else {-1, 0, 1})
    assert len(up_to_sign(matrix)) == n_columns
    assert np.array_equal(check_code(matrix, range(k)), matrix)
    assert np.array_equal(code_matrix(code, range(k), 7), matrix)
    assert not np.array_equal(code_matrix(code, range(k), 8), matrix)
    # One draw has about the half of l as the mean distance; the best of many gets within a third of what no code exceeds,
    # the mean over all pairs of rows of a balanced code, l k / (2 (k - 1)).
    assert minimum_distance(matrix) > 2 / 3 * n_columns * k / (2 * (k - 1))


def test_all_columns_are_counted_right() -> None:
    for k in (2, 3, 4, 5):
        matrix = all_columns(k)
        assert len(up_to_sign(matrix)) == matrix.shape[1] == (3**k - 2 ** (k + 1) + 1) // 2


BAD: list[tuple[Any, type[Exception], str]] = [
    ("one-vs-one", ValueError, "code must be one of \"all-pairs\", .* or a matrix, got 'one-vs-one'"),
    ("spars", ValueError, "did you mean sparse"),
    (None, TypeError, "code must be a name or a matrix of -1, 0 and 1, got None"),
    ([["1"], ["0"], ["-1"]], TypeError, "code must be a name or a matrix"),
    ([[1], [-1, 1], [1]], ValueError, "code must be a name or a matrix of -1, 0 and 1: "),
    ([[1, -1], [-1, 1]], ValueError, r"a row for each of the 3 classes \['eggs', 'ham', 'spam'\] .* got the shape \(2, 2\)"),
    ([1, -1, 1], ValueError, r"got the shape \(3,\)"),
    (np.zeros((3, 0)), ValueError, r"at least one column, got the shape \(3, 0\)"),
    ([[1, 1], [-1, 2], [0, -1]], ValueError, r"got 2 in row 1 \(class 'ham'\), column 1"),
    ([[1, 1], [-1, -1], [np.nan, -1]], ValueError, r"got nan in row 2 \(class 'spam'\), column 0"),
    ([[1, 1], [-1, 1], [0, 1]], ValueError, "code has no -1 in column 1"),
    ([[1, 0], [-1, 0], [0, -1]], ValueError, "code has no 1 in column 1"),
    ([[1, 1], [0, 0], [-1, -1]], ValueError, "only zeros in row 1: the class 'ham' would be in no binary problem"),
    ([[1, -1], [-1, 1], [1, -1]], ValueError, "the same rows 0 and 2: nothing would tell the class 'eggs' from 'spam'"),
]


@pytest.mark.parametrize(("code", "error", "message"), BAD)
def test_what_is_no_code(code: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        code_matrix(code, LABELS)


def test_an_exhaustive_code_has_a_limit() -> None:
    assert code_matrix("exhaustive", range(12)).shape == (12, 2047)
    with pytest.raises(ValueError, match=r"of 13 classes has 2\*\*12 - 1 columns"):
        code_matrix("exhaustive", range(13))


def test_a_matrix_is_taken_in_any_type() -> None:
    given = [[1, 0], [-1, 1], [0, -1]]
    for matrix in (given, np.array(given, np.int64), np.array(given, np.float32)):
        code = code_matrix(matrix, np.array(LABELS))
        assert (code.dtype, code.tolist()) == (np.int8, given)

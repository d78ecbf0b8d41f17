"""Decoding: by hand, by the formula of the paper, and at the edge of what float64 holds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpuboost.codes.decoding import MARGIN_OF_LOG_ODDS, decode
from gpuboost.codes.matrices import code_matrix, minimum_distance

RNG = np.random.default_rng(0)
LOSSES = {"exponential": lambda z: math.exp(-z), "logistic": lambda z: math.log1p(math.exp(-z))}


def losses(margins: Any, matrix: Any, loss: str) -> Any:
    """The sum over the columns of L(M[k, s] f_s)."""
    return np.array([[sum(LOSSES[loss](int(m) * f) for m, f in zip(row, fs, strict=True)) for row in matrix] for fs in margins])


def test_all_pairs_of_three_classes_by_hand() -> None:
    matrix = code_matrix("all-pairs", "abc")  # a or b, a or c, b or c
    margins = np.log([[2.0, 3.0, 5.0], [4.0, 0.5, 0.25]])
    # exp(-M f): for a 1/2 + 1/3 + 1, for b 2 + 1 + 1/5, for c 1 + 3 + 5; in the second row for c 1 + 1/2 + 1/4.
    expected = [[11 / 6, 3.2, 9], [0.25 + 2 + 1, 4 + 1 + 4, 1.75]]
    assert np.exp(-decode(margins, matrix, "exponential")) == pytest.approx(np.array(expected))
    # 1 + exp(-M f), multiplied: for a 3/2 * 4/3 * 2, for b 3 * 2 * 6/5, for c 2 * 4 * 6.
    expected = [[4, 7.2, 48], [1.25 * 3 * 2, 5 * 2 * 5, 2 * 1.5 * 1.25]]
    assert np.exp(-decode(margins, matrix, "logistic")) == pytest.approx(np.array(expected))
    # Signs + + +: a wins two, b one of two, c none; + - -: a wins one of two, b none, c two.
    assert decode(margins, matrix, "hamming").tolist() == [[2, 0, -2], [0, -2, 2]]


def test_hamming_decoding_by_hand_with_zeros() -> None:
    matrix = np.array([[1, 0, -1, 1], [-1, 1, 0, 0], [0, -1, 1, 0]])
    margins = [[0.1, -7.0, -0.2, 0.0], [-3.0, 4.0, 5.0, -1.0], [0.0, 0.0, 0.0, 0.0]]
    assert decode(margins, matrix, "hamming").tolist() == [[2, -2, 0], [-3, 2, 0], [0, 0, 0]]
    assert decode(margins, matrix, "hamming").argmax(axis=1).tolist() == [0, 1, 0]  # ties go to the first


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("code", ["one-vs-all", "all-pairs", "sparse", "exhaustive"])
def test_the_least_loss_wins(code: str, loss: Any) -> None:
    matrix = code_matrix(code, range(5), 1)
    margins = RNG.normal(size=(50, matrix.shape[1]))
    expected = losses(margins, matrix, loss)
    scores = decode(margins, matrix, loss)
    assert (np.exp(-scores) if loss == "exponential" else -scores) == pytest.approx(expected)
    assert scores.argmax(axis=1).tolist() == expected.argmin(axis=1).tolist()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_against_all_is_the_largest_margin(loss: Any) -> None:
    # What the losses of two classes differ by is g(f_j) - g(f_k) with g(f) = L(-f) - L(f), which rises with f.
    margins = 3 * RNG.normal(size=(1000, 6))
    assert np.array_equal(decode(margins, code_matrix("one-vs-all", range(6)), loss).argmax(axis=1), margins.argmax(axis=1))


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_two_classes_get_the_log_odds(loss: Any) -> None:
    margins = np.array([[-3.0], [0.0], [0.25], [590.0], [900.0]])
    first, second = decode(margins, [[-1], [1]], loss).T
    assert second - first == pytest.approx(margins[:, 0] / MARGIN_OF_LOG_ODDS[loss], rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_large_margins_do_not_overflow(loss: Any) -> None:
    matrix = code_matrix("one-vs-all", range(3))
    margins = [[800.0, 900.0, -5.0], [-1200.0, -900.0, -1000.0], [1e300, -1e300, 0.0]]
    scores = decode(margins, matrix, loss)
    assert np.isfinite(scores).all()
    assert scores.argmax(axis=1).tolist() == [1, 1, 0]
    assert scores[0, :2] == pytest.approx([-900.0, -800.0], abs=0.01)  # of the largest loss; the others are below exp(-5)


def test_scores_do_not_depend_on_the_other_rows() -> None:
    matrix = code_matrix("sparse", range(5), 1)
    margins = RNG.normal(scale=500, size=(20, matrix.shape[1]))
    for loss in ("exponential", "logistic", "hamming"):
        alone = np.concatenate([decode(row[None], matrix, loss) for row in margins])
        assert decode(margins, matrix, loss).tobytes() == alone.tobytes()
    assert decode(margins[:0], matrix, "exponential").shape == (0, 5)


def test_theorem_1_holds_and_its_citation_does_not() -> None:
    """Theorem 1 of Allwein et al. on made-up margins; theorem 13 of Bradley and Schapire, read literally, fails on two rows."""
    matrix = code_matrix("all-pairs", range(3))
    rho, n_columns = minimum_distance(matrix), 3
    y = RNG.integers(3, size=2000)
    margins = 0.7 * matrix[y] + RNG.normal(size=(2000, 3))
    for loss, at_zero in (("exponential", 1.0), ("logistic", math.log(2))):
        eps = losses(margins, matrix, loss)[np.arange(2000), y].mean() / n_columns
        errors = (decode(margins, matrix, loss).argmax(axis=1) != y).mean()
        votes = (decode(margins, matrix, "hamming").argmax(axis=1) != y).mean()
        assert 0 < errors <= n_columns * eps / (rho * at_zero)
        assert 0 < votes <= 2 * n_columns * eps / (rho * at_zero)
    # All margins 0, true class 1: predicted is class 0. eps = L(0), and l - M(i) . M(j) = 2 of the matrix (1, -1).
    assert decode([[0.0]], [[1], [-1]], "logistic").argmax() == 0
    assert 1 * math.log(2) / (2 * math.log(2)) < 1 <= 1 * math.log(2) / (minimum_distance([[1], [-1]]) * math.log(2))
    # The third column has no part in class 0. Without L(0) for it eps is too small for a row of class 0 that is just missed.
    row = [[-1e-3, 20.0, 40.0]]
    assert decode(row, matrix, "logistic").argmax() == 1
    loss_of_row = losses(row, matrix, "logistic")[0, 0]
    assert (loss_of_row - math.log(2)) / (rho * math.log(2)) < 1 <= loss_of_row / (rho * math.log(2))


def test_shapes_and_losses_are_checked() -> None:
    with pytest.raises(ValueError, match=r"a column for each of the matrix \(3, 3\), got the shape \(2, 2\)"):
        decode(np.zeros((2, 2)), code_matrix("one-vs-all", range(3)), "logistic")
    with pytest.raises(ValueError, match='loss must be one of "exponential", "logistic", "hamming", got \'hinge\''):
        decode([[0.0]], [[1], [-1]], "hinge")  # type: ignore[arg-type]

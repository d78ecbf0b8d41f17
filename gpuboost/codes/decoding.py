"""From the margins of the binary problems of a code to scores of the classes (Allwein et al. 2000).

With the margin f_s of the column s, loss-based decoding predicts ``argmin_k sum_s L(M[k, s] f_s)``, where L is the loss that
the binary classifiers were trained by, and Hamming decoding ``argmax_k sum_s sign(M[k, s] f_s)``.

Theorem 1 and corollary 2 of the paper bound the share of wrong predictions by ``l eps / (rho L(0))`` and by twice that. Here
eps is the mean loss over rows and columns, to which a column in which the row's class has a zero adds L(0), and rho is
`gpuboost.codes.matrices.minimum_distance`. Theorem 13 of Bradley and Schapire (2007), which cites it, has a rho twice as large
and leaves out the L(0) of the zeros: in that form it does not hold.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.exactmath import exp, log, log_sigmoid

MarginLoss = Literal["exponential", "logistic"]
Decoding = Literal["exponential", "logistic", "hamming"]

MARGIN_OF_LOG_ODDS: dict[MarginLoss, float] = {"exponential": 0.5, "logistic": 1.0}
"""A loss is lowest at the margin that is so many times the log odds: exp(-z) at half of them, ln(1 + exp(-z)) at them."""

LARGEST = 600.0
"""The exponential of a margin up to that is an ordinary number, and so is a sum of very many of them."""


def decode(margins: Any, matrix: Any, loss: Decoding) -> Floats:
    """Return scores of the classes, of which the largest is that of the decoded class.

    Parameters
    ----------
    margins : array-like, shape (n_rows, n_columns)
        Of the binary problems, positive for the class 1; finite.
    matrix : array-like, shape (n_classes, n_columns)
        A code.
    loss : {"exponential", "logistic", "hamming"}
        The loss that the binary classifiers were trained by, ``exp(-z)`` or ``ln(1 + exp(-z))`` of z = y f; or their votes.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_classes)
        "logistic": minus the sum of the losses. "exponential": minus the logarithm of that sum, which cannot overflow.
        "hamming": the number of columns that agree less the number of those that do not; a zero in the matrix, or a margin of
        0, is neither. With two classes and one column the second score less the first is then the log odds of the second
        class, as the two losses see them.
    """
    margins, matrix = np.asarray(margins, np.float64), np.asarray(matrix)
    if margins.ndim != 2 or matrix.ndim != 2 or margins.shape[1] != matrix.shape[1]:
        raise ValueError(f"margins must have a column for each of the matrix {matrix.shape}, got the shape {margins.shape}")
    if loss == "hamming":
        return summed(np.sign(margins), -np.sign(margins), 0.0, matrix)
    if loss == "logistic":
        return summed(log_sigmoid(margins), log_sigmoid(-margins), float(log_sigmoid(0.0)), matrix)
    if loss != "exponential":
        raise ValueError(f'loss must be one of "exponential", "logistic", "hamming", got {loss!r}')
    is_large = np.max(np.abs(margins), axis=1, initial=0.0) > LARGEST
    ordinary = np.where(is_large[:, None], 0.0, margins)
    scores: Floats = -log(summed(exp(-ordinary), exp(ordinary), 1.0, matrix))
    scores[is_large] = -log_of_sum(margins[is_large], matrix)
    return scores


def summed(positive: Floats, negative: Floats, zero: float, matrix: Any) -> Floats:
    """Add up over the columns, in their order, what a 1, a -1 and a 0 in the matrix stand for; return (n_rows, n_classes).

    ``positive`` and ``negative`` have the shape (n_rows, n_columns).
    """
    total = np.zeros((len(positive), len(matrix)))
    zeros = np.full(len(positive), zero)
    for s, column in enumerate(matrix.T):
        total += np.stack([negative[:, s], zeros, positive[:, s]], axis=1)[:, column + 1]
    return total


def log_of_sum(margins: Floats, matrix: Any) -> Floats:
    """Return the logarithms of the sums of the exponential losses, of each of which the largest term is taken out first."""
    largest = np.full((len(margins), len(matrix)), -np.inf)
    for f, column in zip(margins.T, matrix.T, strict=True):
        np.maximum(largest, -np.multiply.outer(f, column), out=largest)
    total = np.zeros_like(largest)
    for f, column in zip(margins.T, matrix.T, strict=True):
        total += exp(-np.multiply.outer(f, column) - largest)
    sums: Floats = largest + log(total)
    return sums

"""From many classes to two groups: the binarisation of section 5.3 of Appel's thesis."""

from __future__ import annotations

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.fixedpoint import exponent

SQUARINGS = 24
"""The matrix to the power of ``2**24``: a second eigenvalue that is smaller by one millionth has ``exp(-16)`` left."""


def group_coefficients(products: IntArray, sum_abs: IntArray) -> Floats:
    """Return the coefficients c whose ``sum_k w_nk y_nk c_k`` has the sign of row n's group (eqs. 5.5 to 5.8).

    With ``u_n = w_n y_n / sqrt(sum_n w_n)`` the groups are the signs of the first eigenvector of ``U^T U``, n x n. That is
    ``U^T e`` for the first eigenvector e of ``U U^T``, K x K, and so ``c_k = e_k / sqrt(sum_n w_nk)``. The eigenvector is found
    by squaring the matrix, in sums of one order: LAPACK's bits differ between machines. Of several first eigenvectors it is the
    projection of the axis of one class on them; the component of that class is positive.

    Parameters
    ----------
    products : ndarray of int64, shape (n_classes, n_classes)
        ``sum_n w_nk y_nk w_nl y_nl`` in squared units, see `gpuboost.backends.points.PointPrimitives.class_products`.
    sum_abs : ndarray of int64, shape (n_classes,)
        ``sum_n w_nk`` in units.

    Returns
    -------
    ndarray of float64, shape (n_classes,)
        0 for a class without weight.
    """
    roots = np.sqrt(np.maximum(sum_abs, 1).astype(np.float64))
    matrix = products / roots[:, None] / roots
    for _ in range(SQUARINGS):
        matrix = np.ldexp(matrix, -exponent(float(abs(matrix).max())))
        squared = np.zeros_like(matrix)
        for k in range(len(matrix)):
            squared += matrix[:, k, None] * matrix[k]
        matrix = squared
    vector = matrix[:, matrix.diagonal().argmax()]
    coefficients: Floats = np.ldexp(vector, -exponent(float(abs(vector).max()))) / roots
    return coefficients

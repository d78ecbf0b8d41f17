"""Two groups of the classes: against LAPACK, by hand, and the bound of the thesis."""

from __future__ import annotations

import numpy as np
import pytest

from gpuboost.learners.binarisation import group_coefficients


def products(u: np.ndarray) -> np.ndarray:
    return u.T @ u


def test_two_classes_are_the_groups() -> None:
    # Equal weights, y = (+, -) and (-, +): the groups are the classes.
    u = np.array([[1, -1]] * 3 + [[-1, 1]] * 4)
    c = group_coefficients(products(u), abs(u).sum(axis=0))
    assert c == pytest.approx(c[0] * np.array([1, -1]), rel=1e-12)
    assert c[0] > 0
    assert np.sign(u @ c).tolist() == [1] * 3 + [-1] * 4


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10, 26])
def test_the_first_eigenvector(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    weights = rng.integers(1, 2**20, (300, n_classes)) * rng.integers(1, 60, n_classes)
    target = rng.integers(0, n_classes, 300)
    u = weights * np.where(np.arange(n_classes) == target[:, None], 1, -1)
    sums = weights.sum(axis=0)
    c = group_coefficients(products(u), sums)
    roots = np.sqrt(sums)
    values, vectors = np.linalg.eigh(products(u) / np.outer(roots, roots))
    e = vectors[:, -1] * np.sign(vectors[:, -1] @ (c * roots))
    assert c * roots / np.linalg.norm(c * roots) == pytest.approx(e, abs=1e-6)
    # eq. 5.7: the first eigenvalue is at least the trace over K; eq. 5.8: so is <b, v>**2 at least 1.
    v = u @ c / np.linalg.norm(u @ c)
    assert values[-1] >= values.sum() / n_classes
    assert abs(v).sum() ** 2 >= 1


def test_equal_eigenvalues() -> None:
    # Three classes of equal weight: the eigenvalues of two directions are the same, and one of them is taken.
    u = np.repeat(np.where(np.eye(3, dtype=bool), 1, -1), 4, axis=0)
    c = group_coefficients(products(u), abs(u).sum(axis=0))
    assert np.isfinite(c).all()
    assert len(set(np.sign(u @ c).tolist())) == 2


def test_a_class_without_weight_is_left_out() -> None:
    u = np.array([[2, 0, -1], [-1, 0, 2], [-2, 0, 3]])
    c = group_coefficients(products(u), abs(u).sum(axis=0))
    assert c[1] == 0
    assert c[2] > 0 > c[0]  # the largest component, that of the class of which most can be said, is positive
    assert np.sign(u @ c).tolist() == [-1, 1, 1]


def test_largest_and_smallest_integers() -> None:
    u = np.array([[2**29, -1], [-1, 2**29]], dtype=object)
    c = group_coefficients((u.T @ u).astype(np.int64), np.array([2**29 + 1, 2**29 + 1]))
    assert c[0] > 0 > c[1]
    tiny = group_coefficients(np.array([[1, -1], [-1, 1]]), np.array([1, 1]))
    assert tiny == pytest.approx(tiny[0] * np.array([1, -1]))

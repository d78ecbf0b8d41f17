from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from gpuboost.export.shap import MAX_PATH, refuse_large
from gpuboost.tree import Tree
from tests.export.models import X, model, rows, scores

pytest.importorskip("shap")


def size(fitted: Any) -> float:
    return float(sum(abs(tree.values).max() for tree in fitted.ensemble_.trees()))


@pytest.mark.parametrize(
    "kind", ["adaboost.mh", "products", "multi-label", "two classes", "samme", "abc", "one class", "priors"]
)
def test_values_add_up_to_the_scores(kind: str) -> None:
    fitted = model(kind)
    Z = rows(fitted, 30)[::30]
    background = np.concatenate([X[:3], Z[:3]])
    explainer = fitted.to_shap(background)
    told = explainer(Z)
    assert told.values.shape == (*Z.shape, len(fitted.classes_))
    np.testing.assert_allclose(explainer.expected_value, scores(fitted, background).mean(axis=0), rtol=1e-12, atol=1e-12)
    error = told.values.sum(axis=1) + told.base_values - scores(fitted, Z)
    assert abs(error).max() <= 2e-7 * max(size(fitted), 1e-9)
    assert told.feature_names == [f"x{i}" for i in range(6)]
    assert told.output_names == [str(label) for label in fitted.classes_]


@pytest.mark.parametrize("kind", ["adaboost.mh", "mart"])
def test_values_are_shapley_values(kind: str) -> None:
    """By the definition: what a feature adds to a coalition, weighted, over all coalitions; the rest is background."""
    fitted = model(kind)
    Z, background = rows(fitted, 10)[[0, 200, -1, -2]], X[:5]
    n = X.shape[1]
    value = {}
    for size_of in range(n + 1):
        for members in itertools.combinations(range(n), size_of):
            mixed = np.repeat(background[None], len(Z), axis=0)
            mixed[:, :, list(members)] = Z[:, None, list(members)]
            value[members] = scores(fitted, mixed.reshape(-1, n)).reshape(len(Z), len(background), -1).mean(axis=1)
    expected = np.zeros((len(Z), n, len(fitted.classes_)))
    for feature in range(n):
        for members, before in value.items():
            if feature not in members:
                weight = math.factorial(len(members)) * math.factorial(n - len(members) - 1) / math.factorial(n)
                expected[:, feature] += weight * (value[tuple(sorted((*members, feature)))] - before)
    np.testing.assert_allclose(fitted.to_shap(background)(Z).values, expected, rtol=0, atol=2e-7 * size(fitted))


def test_all_rows_of_the_background_count() -> None:
    fitted = model("two classes")
    explainer = fitted.to_shap(X)
    np.testing.assert_allclose(explainer.expected_value, scores(fitted, X).mean(axis=0), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [MAX_PATH, MAX_PATH + 1])
def test_what_shap_cannot_count_is_refused(n: int) -> None:
    """A staircase: node i has a leaf on the left and node i + 1 on the right; it asks for feature i, or all for one."""
    steps = np.arange(n, dtype=np.int32)
    right = np.where(steps < n - 1, steps + 1, ~n).astype(np.int32)
    sides = (np.ones(n, np.uint8), np.zeros(n, bool), ~steps, right, np.zeros((n + 1, 2)), np.zeros(n))
    refuse_large(Tree(steps * 0, *sides))
    if n == MAX_PATH:
        refuse_large(Tree(steps, *sides))
    else:
        with pytest.raises(ValueError, match=r"at most 32767 nodes and 30 features.*has 63 nodes and 31 features on a way"):
            refuse_large(Tree(steps, *sides))


def test_columns_are_checked() -> None:
    with pytest.raises(ValueError, match="X has 2 features"):
        model("mart").to_shap(X[:, :2])

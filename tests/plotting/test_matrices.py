"""Confusion and cost matrices: what stands in the cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.metrics import confusion_matrix

import gpuboost
from tests.plotting.fitted import COSTS, KINDS, flowers, model


def cells(axes: Any) -> dict[tuple[int, int], str]:
    """Return the texts by row and column."""
    return {(int(text.get_position()[1]), int(text.get_position()[0])): text.get_text() for text in axes.texts}


def test_counts_and_shares() -> None:
    X, y = flowers(60, 1)
    axes = model().plot.confusion(X, y)
    table = confusion_matrix(y, model().predict(X), labels=model().classes_)
    shares = table / table.sum(axis=1, keepdims=True)
    assert_array_equal(axes.images[0].get_array(), shares)
    for (i, j), text in cells(axes).items():
        if table[i, j] == 0:
            assert text == ""
            continue
        count, share = text.split("\n")
        assert int(count) == table[i, j]
        assert float(share.removesuffix(" %")) == pytest.approx(100 * shares[i, j], abs=0.5)
    assert len(cells(axes)) == 9
    labels = sorted(KINDS)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == labels
    assert [tick.get_text() for tick in axes.get_yticklabels()] == labels
    error = 100 * (1 - table.trace() / 60)
    assert axes.get_title() == f"Confusion matrix: error {error:.0f} % of 60 rows"


@pytest.mark.parametrize("weights", [np.arange(60) % 3, np.full(60, 0.3), 5])
def test_weights(weights: Any) -> None:
    X, y = flowers(60, 1)
    axes = model().plot.confusion(X, y, sample_weight=weights)
    given = np.broadcast_to(np.asarray(weights, float), 60)
    table = confusion_matrix(y, model().predict(X), labels=model().classes_, sample_weight=given)
    drawn = {cell: float(text.split("\n")[0]) if text else 0.0 for cell, text in cells(axes).items()}
    assert drawn == {cell: pytest.approx(table[cell], rel=1e-3) for cell in np.ndindex(3, 3)}
    assert f"of a weight of {given.sum():.4g}" in axes.get_title()


def test_labels_that_are_no_class_have_rows() -> None:
    X, y = flowers(60, 1)
    y = y.astype(object)
    y[:7], y[7:9] = "weed", "grass"
    axes = model().plot.confusion(X, y)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [*sorted(KINDS), "grass", "weed"]
    counts = {cell: int(text.split("\n")[0]) for cell, text in cells(axes).items() if text}
    assert [sum(n for (i, _), n in counts.items() if i == row) for row in (3, 4)] == [2, 7]


def test_many_classes_are_shaded_without_text() -> None:
    y = np.arange(160) % 40
    fitted = gpuboost.fit(y[:, None], y, n_estimators=2, device="numpy")
    axes = fitted.plot.confusion(y[:, None], y)
    assert not axes.texts
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [str(k) for k in range(0, 40, 2)]


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([True, False], ["False", "True"]),
        ([1.5, -2.0], ["-2.0", "1.5"]),
        (np.array(["2020-01-01", "2021-06-30"], "datetime64[ns]"), ["2020-01-01", "2021-06-30"]),
        ([b"a", b"b"], ["b'a'", "b'b'"]),
    ],
)
def test_labels_of_any_type(labels: Any, expected: list[str]) -> None:
    X = np.arange(20.0)[:, None]
    y = np.asarray(labels)[(X[:, 0] > 9).astype(int)]
    axes = gpuboost.fit(X, y, n_estimators=1, device="numpy").plot.confusion(X, y)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == expected
    assert [text.split("\n")[0] for text in cells(axes).values() if text] == ["10", "10"]


@pytest.mark.parametrize("min_cost", [False, True])
def test_costs_beside_confusion(min_cost: bool) -> None:
    X, y = flowers(60, 1)
    fitted = model()
    figure = fitted.plot.costs(X, y, COSTS, min_cost=min_cost)
    left, right = figure.axes[:2]
    matrix = COSTS.loc[fitted.classes_, fitted.classes_].to_numpy()
    assert_array_equal(left.images[0].get_array(), matrix)
    assert {cell: float(text or 0) for cell, text in cells(left).items()} == {cell: matrix[cell] for cell in np.ndindex(3, 3)}
    predicted = fitted.predict(X, cost_matrix=COSTS if min_cost else None)
    table = confusion_matrix(y, predicted, labels=fitted.classes_)
    assert {cell: int(text.split("\n")[0] or 0) for cell, text in cells(right).items()} == {
        cell: table[cell] for cell in np.ndindex(3, 3)
    }
    assert f"{(table * matrix).sum() / 60:.4g}" in figure.get_suptitle()


def test_costs_of_training_are_the_default() -> None:
    X, y = flowers()
    fitted = gpuboost.RebelClassifier(n_estimators=2, cost_matrix=COSTS, device="numpy").fit(X, y)
    matrix = COSTS.loc[fitted.classes_, fitted.classes_].to_numpy()
    assert_array_equal(fitted.plot.costs(X, y).axes[0].images[0].get_array(), matrix)


def test_what_cannot_be_drawn() -> None:
    X, y = flowers(60, 1)
    with pytest.raises(ValueError, match="cost_matrix is needed"):
        model().plot.costs(X, y)
    with pytest.raises(ValueError, match="'weed', which is no class"):
        model().plot.costs(X, np.where(np.arange(60) == 3, "weed", y), COSTS)
    with pytest.raises(ValueError, match="one entry for each of the 60 rows"):
        model().plot.confusion(X, y[:5])
    many = gpuboost.fit(X, np.eye(3, dtype=int)[np.arange(60) % 3], n_estimators=1, device="numpy")
    with pytest.raises(ValueError, match="multi-label"):
        many.plot.confusion(X, np.eye(3, dtype=int)[np.arange(60) % 3])
    with pytest.raises(ValueError, match="multi-label"):
        many.plot.decision_map(X, columns=(0, 1))

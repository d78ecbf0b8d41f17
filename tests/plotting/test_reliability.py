"""Reliability: bins, their means and the calibration error, by hand and against a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.plotting.reliability import binned, measure
from tests.plotting.fitted import COSTS, flowers, model


def test_bins_by_hand() -> None:
    p = np.array([0.1, 0.3, 0.9, 1.0, 0.75])
    found = binned(p, np.array([False, True, True, False, True]), np.array([1.0, 1.0, 2.0, 1.0, 0.0]), 2)
    # The first bin has 0.1 and 0.3, of which one came true; the second 0.9 twice and 1.0, of which two did.
    assert found.confidence.tolist() == pytest.approx([0.2, 2.8 / 3])
    assert found.observed.tolist() == pytest.approx([0.5, 2 / 3])
    assert found.share.tolist() == [0.4, 0.6]
    assert found.error == pytest.approx(0.4 * 0.3 + 0.6 * (0.8 / 3))


def test_bins_without_rows_are_left_out() -> None:
    assert binned(np.array([0.05, 0.95]), np.array([True, True]), np.ones(2), 10).share.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_is_that_of_a_plain_loop(weighted: bool) -> None:
    X, y = flowers(60, 1)
    weights = np.arange(60.0) % 4 if weighted else np.ones(60)
    p, right = model().predict_proba(X), model().predict(X) == y
    gap = 0.0
    for low in np.arange(5) / 5:
        inside = (p.max(axis=1) >= low) & ((p.max(axis=1) < low + 0.2) | (low == 0.8))
        gap += abs(weights[inside] @ (p.max(axis=1) - right)[inside])
    axes = model().plot.reliability(X, y, sample_weight=weights if weighted else None, n_bins=5)
    assert measure(model(), X, y, weights, 5).error == pytest.approx(gap / weights.sum())
    assert axes.get_title() == f"Reliability: calibration error {100 * gap / weights.sum():.1f} %"


def test_every_class_of_several_labels_counts() -> None:
    X = np.arange(12.0)[:, None]
    Y = np.column_stack([X[:, 0] > 5, X[:, 0] % 2 > 0]).astype(int)
    many = gpuboost.fit(X, Y, n_estimators=3, max_leaf_nodes=2, device="numpy")
    found = measure(many, X, Y, None, 4)
    assert (found.share * 24).round(9).tolist() == np.bincount(
        (many.predict_proba(X) * 4).astype(int).clip(0, 3).ravel()
    ).tolist()
    assert many.plot.reliability(X, Y).get_xlabel() == "probability of the class"


def test_refusals() -> None:
    X, y = flowers()
    costly = gpuboost.RebelClassifier(cost_matrix=COSTS, n_estimators=2, device="numpy").fit(X, y)
    with pytest.raises(ValueError, match="that was trained by costs has no probabilities"):
        costly.plot.reliability(X, y)
    bad: Any = 0
    with pytest.raises(ValueError, match="n_bins must be"):
        model().plot.reliability(X, y, n_bins=bad)

"""Continuing a model on other rows, and weights that are no multiples of each other."""

from __future__ import annotations

import numpy as np

from gpuboost import AdaBoostMHClassifier


def test_missing_values_that_come_with_the_second_fit() -> None:
    # The cuts know of no missing values, but the rows that the model goes on with have some: an edge is never above 1.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    y = np.where(rng.random(120) < 0.2, 1, np.digitize(X[:, 0], [-0.4, 0.4]))
    holes = np.where(rng.random(X.shape) < 0.3, np.nan, X)
    digests = set()
    for device in ("numpy", "cpu"):
        model = AdaBoostMHClassifier(n_estimators=3, max_leaf_nodes=4, device=device).fit(X, y)
        model.set_params(warm_start=True, n_estimators=8).fit(holes, y)
        assert max(model.history_["edge"]) <= 1.0
        digests.add(model.ensemble_.digest())
    assert len(digests) == 1


def test_real_leaves_change_continuously_with_the_weights() -> None:
    # 4096 is the largest multiple that is taken as a repetition: neither side of it is another model.
    X, y = np.repeat([[0.0], [1.0]], 100, axis=0), np.repeat([0, 1, 1], [90, 10, 100])
    p = [
        AdaBoostMHClassifier(n_estimators=1, learner="stump")
        .fit(X, y, sample_weight=np.repeat([1.0, heavy], 100))
        .predict_proba([[0.0], [1.0]])
        for heavy in (4096.0, 4097.0)
    ]
    np.testing.assert_allclose(p[0], p[1], atol=1e-3)


def test_weight_two_is_the_row_twice_in_any_unit() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 3))
    y = np.where(rng.random(150) < 0.2, 1, np.digitize(X[:, 0], [-0.4, 0.4]))
    for weights in (np.full(150, 2), rng.integers(2, 4, 150)):
        one = AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=4).fit(X, y, sample_weight=weights)
        two = AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=4).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
        np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(X), atol=1e-6)

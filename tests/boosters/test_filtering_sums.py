"""What is summed up over drawn rows, trees by purity, and the probabilities of AdaBoost."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gpuboost import FilterBoostClassifier
from gpuboost.boosters.filtering.tallies import Sums, _expansion


class Rows:
    """What `Sums` asks of a part."""

    def __init__(self, weight: Any, label_weight: Any, wrong: Any, loss: Any, begin: int, end: int) -> None:
        rows = slice(begin, end)
        self.begin, self.end = begin, end
        self.weight, self.label_weight, self.wrong, self.loss = weight[rows], label_weight[rows], wrong[rows], loss[rows]
        self.exists = self.weight > 0


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_are_exact_however_rows_are_cut(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    n = 300
    weight = np.where(rng.random(n) < 0.2, 0.0, rng.random(n) * 10.0 ** rng.integers(-9, 9, n)) if weighted else np.ones(n)
    columns = weight, rng.integers(0, 1 << 55, n), rng.random(n) < 0.5, rng.integers(0, 1 << 20, n)
    tallies = []
    for cuts in ([0, n], [0, 1, 2, 150, n], list(range(0, n + 1, 10))):
        sums = Sums()
        for begin, end in itertools.pairwise(cuts):
            sums.add([Rows(*columns, begin, end)])  # type: ignore[list-item]
        assert sums.n_rows == n
        tallies.append(sums.tally(2))
    assert tallies[0] == tallies[1] == tallies[2]
    if not weighted:
        assert tallies[0].label_weight == float(Fraction(int(columns[1].sum()))) / n / 2**32


def test_an_expansion_has_the_sum_of_its_numbers() -> None:
    numbers = [1e300, 1.0, -1e300, 2.0**-60, 3.0, 1e-200]
    found = _expansion(numbers)
    assert sum(map(Fraction, found)) == sum(map(Fraction, numbers))
    assert found == sorted(found, key=abs, reverse=True)
    assert _expansion([1.0, -1.0]) == []


def test_the_probability_of_adaboost_is_of_twice_the_score() -> None:
    """Section 2.1: the exponential loss is least at half the log odds, the logistic one at the log odds."""
    X, y = np.repeat([[0.0], [1.0]], 50, axis=0), np.repeat([0, 1], 50)
    y = np.where(np.arange(100) % 5 == 0, 1 - y, y)  # a fifth of the labels is wrong
    for weighting, factor in (("exponential", 2), ("logistic", 1)):
        model = FilterBoostClassifier(
            n_estimators=40, max_leaf_nodes=2, leaf_values="vote", draw="all", weighting=weighting, random_state=0
        ).fit(X, y)
        proba, scores = model.predict_proba(X)[:, 1], model.decision_function(X)
        np.testing.assert_allclose(proba, 1 / (1 + np.exp(-factor * scores)), rtol=1e-12)
        np.testing.assert_allclose(proba, np.where(X[:, 0] == 1, 0.8, 0.2), atol=1e-3)


@pytest.mark.parametrize("params", [{"leaf_values": "paper"}, {"leaf_values": "newton"}, {"multiclass": "oc"}])
def test_confidences_find_a_pure_leaf(params: dict[str, Any]) -> None:
    """No vote changes by a split that leaves a side with the same class ahead; confidences do.

    Of rows with x = 1 all are of class 1; of the others two thirds. The edge of every stump is that of a constant vote.
    """
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(600) < 0.3, rng.random(600) < 0.5]).astype(float)
    y = ((X[:, 0] == 1) | (np.arange(600) % 3 > 0)).astype(int)
    model = FilterBoostClassifier(
        n_estimators=1, max_leaf_nodes=2, draw="all", examples_per_round=600, random_state=0, **params
    ).fit(X, y)
    assert model.ensemble_.feature.tolist() == [0]

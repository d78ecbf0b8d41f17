"""What rows weigh for each wrong label: by the formulas, and the same on every backend."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.label_weights import LOSS_BITS, WEIGHT_BITS, in_units, label_weights, margins_to_others
from gpuboost.backends.reference.backend import NumpyBackend

UNIT, BIT = 2**WEIGHT_BITS, 2**LOSS_BITS


def scores_of(n_rows: int, n_classes: int, seed: int = 0) -> tuple[Any, Any]:
    """Scores of every size, some equal, and classes."""
    rng = np.random.default_rng([seed, n_classes])
    scores = rng.normal(size=(n_rows, n_classes)) * 10.0 ** rng.integers(-4, 4, (n_rows, 1))
    scores[::7] = rng.integers(-1, 2, (len(scores[::7]), n_classes))  # ties
    scores[3], scores[4, 0], scores[5, -1] = -0.0, 1e300, -1e300
    scores[6] = np.ldexp(1.0, -1074)
    return scores, rng.integers(0, n_classes, n_rows)


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_formulas(n_classes: int) -> None:
    scores, target = scores_of(200, n_classes)
    plain, mada = (label_weights(scores, target, weighting) for weighting in ("logistic", "madaboost"))
    for i, y in enumerate(target):
        loss = 0.0
        for k in range(n_classes):
            if k == y:
                assert plain.q[i, k] == mada.q[i, k] == 0
                continue
            margin = float(scores[i, y] - scores[i, k])
            small = math.exp(-min(abs(margin), 700.0))
            q = (small if margin > 0 else 1.0) / (1 + small)
            assert abs(plain.q[i, k] - UNIT * q) <= 0.500001
            assert abs(mada.q[i, k] - UNIT * (small if margin > 0 else 1.0)) <= 0.500001
            loss += 33.0 if plain.q[i, k] == UNIT else -math.log2(1 - plain.q[i, k] / UNIT)
        for one in (plain, mada):  # the loss is logistic, whatever the rows weigh
            assert abs(one.loss[i] - BIT * loss) <= 0.500001 * (n_classes - 1)
            assert one.total[i] == one.q[i].sum()
            assert one.wrong[i] == (int(np.argmax(scores[i])) != y)


def test_the_empty_model() -> None:
    found = label_weights(np.zeros((4, 4)), np.array([0, 1, 2, 3]), "logistic")
    assert (found.q == np.where(np.eye(4) > 0, 0, UNIT // 2)).all()
    assert found.loss.tolist() == [3 * BIT] * 4  # a bit for every wrong label
    assert found.wrong.tolist() == [False, True, True, True]  # the first of equals is predicted


def test_the_two_weights_of_a_pair_sum_to_one() -> None:
    scores, _ = scores_of(300, 2)
    one, other = (label_weights(scores, np.full(300, y), "logistic").total for y in (0, 1))
    assert (abs(one + other - UNIT) <= 1).all()


def test_margins_to_others_by_hand() -> None:
    margins, others = margins_to_others(np.array([[1.0, 4.0, 2.0], [0.0, 0.5, -1.0]]), np.array([2, 0]))
    assert margins.tolist() == [[1.0, -2.0], [-0.5, 1.0]]
    assert others.tolist() == [[0, 1], [1, 2]]
    assert in_units(np.array([0.0, 0.25, 1.0])).tolist() == [0, UNIT // 4, UNIT]


@pytest.mark.parametrize("n_classes", [2, 3, 17])
@pytest.mark.parametrize("weighting", ["logistic", "madaboost"])
def test_all_backends_agree(n_classes: int, weighting: str, candidate: Backend, once: Any) -> None:
    scores, target = scores_of(300, n_classes, seed=1)
    expected = once(lambda: NumpyBackend().weigh_labels(scores, target, weighting, 0, 300))
    on_device = candidate.put(scores)
    for first, stop in ((0, 300), (17, 18), (100, 291)):
        found = candidate.weigh_labels(on_device, target, weighting, first, stop)
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b[first:stop])

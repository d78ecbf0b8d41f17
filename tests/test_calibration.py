"""Temperatures and sigmoids: against searches on a grid, known answers, and other divisions of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from gpuboost.calibration import HeldOut, fit_class_sigmoids, fit_temperature, log_losses, power
from gpuboost.links import ClassSigmoids, Sigmoid, Softmax, Tempered, normalised
from gpuboost.peers.base import Peers
from gpuboost.peers.threads import run_workers

LINKS: dict[str, Tempered] = {
    "softmax": Softmax(),
    "divided": Softmax(4.0),
    "sigmoid": Sigmoid(2.0, 1.3),
    "logistic": Sigmoid(1.0),
}


def drawn(temperature: float, link: Tempered, n_rows: int = 4000, n_classes: int = 4, seed: int = 0) -> HeldOut:
    """Labels drawn from the probabilities that the scores have at a temperature."""
    rng = np.random.default_rng(seed)
    scores = 3 * rng.normal(size=(n_rows, n_classes))
    p = normalised(link.log_probabilities(scores), scores.argmax(axis=1))
    target = (rng.random((n_rows, 1)) > np.cumsum(p, axis=1)).sum(axis=1).clip(0, n_classes - 1)
    return HeldOut(scores * temperature, target, rng.integers(1, 4, n_rows).astype(float))


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("temperature", [0.25, 1.0, 17.0])
def test_the_temperature_that_labels_were_drawn_by_is_found(link: Tempered, temperature: float) -> None:
    assert fit_temperature(drawn(temperature, link), link) == pytest.approx(temperature, rel=0.12)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_no_other_temperature_has_a_lower_loss(link: Tempered) -> None:
    held = drawn(5.0, link, n_rows=300)
    unsure = 1 / 301

    def loss(exponent: int) -> float:
        return float(held.weights @ log_losses(held, link.tempered(power(exponent)), unsure))

    grid = range(-1280, 1281)
    assert fit_temperature(held, link) == power(min(grid, key=loss))


def test_powers_are_those_of_two_where_they_are() -> None:
    assert [power(128 * n) for n in (-10, -1, 0, 1, 3)] == [2.0**-10, 0.5, 1.0, 2.0, 8.0]
    assert power(64) == pytest.approx(2**0.5, rel=1e-15)
    assert power(-1) * power(1) == pytest.approx(1.0, rel=1e-15)


def test_losses_are_those_of_other_formulas() -> None:
    held = drawn(1.0, Softmax(), 50)
    rows = np.arange(50)
    assert log_losses(held, Softmax(2.0)) == pytest.approx(-log_softmax(held.scores / 2, axis=1)[rows, held.target], rel=1e-12)
    p = expit(2 * held.scores - 0.7)
    expected = -np.log(p[rows, held.target] / p.sum(axis=1))
    assert log_losses(held, Sigmoid(2.0, 0.7)) == pytest.approx(expected, rel=1e-9)
    any_class = -np.log(p / p.sum(axis=1, keepdims=True)).mean(axis=1)
    assert log_losses(held, Sigmoid(2.0, 0.7), 0.1) == pytest.approx(0.9 * expected + 0.1 * any_class, rel=1e-9)
    many = held._replace(target=held.scores > 0.5)
    q = np.where(many.target, p, 1 - p)
    assert log_losses(many, Sigmoid(2.0, 0.7)) == pytest.approx(-np.log(q).sum(axis=1), rel=1e-9)


def test_rows_that_are_all_right_do_not_ask_for_certainty() -> None:
    """Two classes, margin m, n rows: by hand sigmoid(m / T) = 1 - 1 / (2 (n + 1)), or m / T = log(2 n + 1)."""
    scores = np.tile([[0.0, 6.0]], (20, 1))
    held = HeldOut(scores, np.ones(20, np.int64), np.ones(20))
    assert fit_temperature(held, Softmax()) == pytest.approx(6.0 / np.log(41.0), rel=0.004)


def test_weights_are_repeated_rows() -> None:
    held = drawn(3.0, Softmax(), 200)
    rows = np.repeat(np.arange(200), held.weights.astype(int))
    repeated = HeldOut(held.scores[rows], held.target[rows], np.ones(len(rows)))
    assert fit_temperature(held, Softmax()) == pytest.approx(fit_temperature(repeated, Softmax()), rel=0.02)
    assert fit_temperature(held._replace(weights=held.weights * 1e-9), Softmax()) == fit_temperature(held, Softmax())


@pytest.mark.parametrize("sizes", [(100, 100), (3, 0, 197), (199, 1)])
def test_any_division_of_the_rows_finds_the_same_bits(sizes: tuple[int, ...]) -> None:
    held = drawn(9.0, LINKS["sigmoid"], 200)
    bounds = np.cumsum([0, *sizes])

    def work(peers: Peers) -> Any:
        rows = slice(bounds[peers.rank], bounds[peers.rank + 1])
        own = HeldOut(*(column[rows] for column in held[:3]), peers)
        return fit_temperature(own, LINKS["sigmoid"]), fit_class_sigmoids(own, LINKS["sigmoid"]).tobytes()

    alone = fit_temperature(held, LINKS["sigmoid"]), fit_class_sigmoids(held, LINKS["sigmoid"]).tobytes()
    assert run_workers(len(sizes), work) == [alone] * len(sizes)


@pytest.mark.parametrize("link", [Softmax(), Sigmoid(2.0, 1.3)])
def test_sigmoids_have_the_least_loss(link: Tempered) -> None:
    held = drawn(2.0, link, 500)
    found = fit_class_sigmoids(held, link)
    for k in range(4):
        positive = held.target == k
        n = positive.sum()
        target = np.where(positive, (n + 1) / (n + 2), 1 / (500 - n + 2))

        def loss(ab: Any, k: int = k, target: Any = target) -> float:
            z = ab[0] * held.scores[:, k] - ab[1]
            return float(held.weights @ (np.logaddexp(0, -z) * target + np.logaddexp(0, z) * (1 - target)))

        best = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10, "maxiter": 4000})
        assert loss(found[:, k]) <= best.fun * (1 + 1e-8)
        assert found[:, k] == pytest.approx(best.x, abs=1e-3)


@pytest.mark.parametrize("factor", [1.0, 30.0, 1000.0, 2.0**-8])
def test_sigmoids_are_found_however_large_scores_are(factor: float) -> None:
    """Scores that are f times as large have the scale by f, and the same probabilities."""
    held = drawn(2.0, Sigmoid(2.0), 500)
    expected = fit_class_sigmoids(held, Sigmoid(2.0))
    found = fit_class_sigmoids(held._replace(scores=factor * held.scores), Sigmoid(2.0))
    assert found[0] * factor == pytest.approx(expected[0], rel=1e-3)
    assert found[1] == pytest.approx(expected[1], abs=1e-3)


def test_sigmoids_of_scores_that_say_nothing_are_flat() -> None:
    scores = np.array([[1.0, -1.0]] * 6 + [[-1.0, 1.0]] * 4)
    held = HeldOut(scores, np.array([1] * 6 + [0] * 4), np.ones(10))  # the wrong way round
    scales, offsets = fit_class_sigmoids(held, Softmax())
    assert_array_equal(scales, 0.0)
    # Platt's targets: 4 rows with 5/6 and 6 with 1/8 of class 0, or 6 with 7/8 and 4 with 1/6 of class 1.
    means = np.array([4 * 5 / 6 + 6 / 8, 6 * 7 / 8 + 4 / 6]) / 10
    assert expit(-offsets) == pytest.approx(means, rel=1e-4)


def test_a_sigmoid_lifts_no_class_above_the_predicted_one() -> None:
    scores = np.array([[2.0, 1.0, -3.0]])
    log_p = ClassSigmoids((1.0, 9.0, 1.0), (2.0, 0.0, 0.0)).log_probabilities(scores)
    p = normalised(log_p, scores.argmax(axis=1))[0]
    a, c = 0.5, expit(-3.0)  # class 1 had expit(9), and is lowered to class 0's one half
    assert p == pytest.approx(np.array([a, a, c]) / (2 * a + c), rel=1e-12)
    assert p.argmax() == 0
    assert p.sum() == pytest.approx(1.0)

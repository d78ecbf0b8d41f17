"""How sure a model may be: a temperature, or a sigmoid for each class, fitted to the scores of rows that it was not trained on.

Boosting goes on raising the margins of rows that it has right, so that scores, as log odds, say far too much. What is too much
is seen on other rows. All is computed with our own exponential and logarithm, and sums over rows are rounded once
(`gpuboost.exactsum`): every backend and any number of workers find the same numbers.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.exactmath import LN2_HIGH, LN2_LOW, exp, log, log_sigmoid, sigmoid
from gpuboost.exactsum import exact_sums
from gpuboost.links import Sigmoid, Softmax, Tempered
from gpuboost.peers.base import ALONE, Peers

STEPS_OF_DOUBLING = 128
"""Temperatures are searched for among the powers of ``2**(1 / 128)``, half a percent apart."""
DOUBLINGS = 10
"""How often a temperature may double, or halve."""
NEWTON_STEPS = 100
HALVINGS = 30


class HeldOut(NamedTuple):
    """Rows that a model was not trained on, or one worker's part of them.

    Attributes
    ----------
    scores : ndarray of float64, shape (n_rows, n_classes)
    target : ndarray, shape (n_rows,) or (n_rows, n_classes)
        Class numbers, or the 0 and 1 of a multi-label problem.
    weights : ndarray of float64, shape (n_rows,)
        Positive, of any scale.
    peers : Peers
        The workers that have the rows.
    """

    scores: Floats
    target: NDArray[Any]
    weights: Floats
    peers: Peers = ALONE

    def total(self, *columns: Floats) -> list[float]:
        """Return the weighted sum of each column (n_rows,) over all rows, rounded once."""
        values = np.concatenate([self.weights * column for column in columns])
        groups = np.repeat(np.arange(len(columns)), len(self.weights))
        sums: list[float] = exact_sums(values, groups, len(columns), self.peers).tolist()
        return sums

    def n_rows(self) -> int:
        """Return the number of the rows of all workers."""
        return int(self.peers.sum(np.array([len(self.weights)]), "rows to calibrate on")[0])


def fit_temperature(held: HeldOut, link: Tempered) -> float:
    """Return the temperature of the least log-loss (Guo, Pleiss, Sun and Weinberger 2017).

    Scores are divided by it. Every label counts as ``1 / (n_rows + 1)`` of a row that is equally likely to be of any class:
    without that, rows that are all predicted right would ask for a temperature of 0.

    Parameters
    ----------
    held : HeldOut
    link : Softmax or Sigmoid
        That of the algorithm.

    Returns
    -------
    float
        A power of ``2**(1 / 128)``, from ``2**-10`` to ``2**10``.
    """
    unsure = 1.0 / (held.n_rows() + 1)

    @cache
    def loss(exponent: int) -> float:
        return held.total(log_losses(held, link.tempered(power(exponent)), unsure))[0]

    best, limit = 0, DOUBLINGS * STEPS_OF_DOUBLING
    step = STEPS_OF_DOUBLING
    while step:
        nearby = [one for one in (best - step, best + step) if -limit <= one <= limit]
        lowest = min(nearby, key=loss)
        if loss(lowest) < loss(best):
            best = lowest
        else:
            step //= 2
    return power(best)


def power(exponent: int) -> float:
    """Return ``2**(exponent / STEPS_OF_DOUBLING)``, exact if that is a power of two."""
    whole, part = divmod(exponent, STEPS_OF_DOUBLING)
    return float(np.ldexp(exp(part * (LN2_HIGH + LN2_LOW) / STEPS_OF_DOUBLING), whole))


def log_losses(held: HeldOut, link: Tempered, unsure: float = 0.0) -> Floats:
    """Return minus the log-probability of each row's label, or of its 0 and 1; ``unsure`` is the share of any other label.

    Parameters
    ----------
    held : HeldOut
    link : Softmax or Sigmoid
    unsure : float, default 0.0
        In [0, 1).

    Returns
    -------
    ndarray of float64, shape (n_rows,)
    """
    n_classes = held.scores.shape[1]
    if held.target.ndim == 1:
        log_p = link.log_probabilities(held.scores)
        log_p = log_p - log_p.max(axis=1, keepdims=True)
        log_p -= log(np.add.accumulate(exp(log_p), axis=1)[:, -1:])
        of_label = np.take_along_axis(log_p, held.target[:, None], axis=1)[:, 0]
        of_any = np.add.accumulate(log_p, axis=1)[:, -1] / n_classes
    else:
        assert isinstance(link, Sigmoid)  # the only link of a multi-label problem
        log_p = link.log_probabilities(held.scores)
        log_q = log_sigmoid(link.offset - link.scale * held.scores)
        of_label = np.add.accumulate(np.where(held.target > 0, log_p, log_q), axis=1)[:, -1]
        of_any = np.add.accumulate(0.5 * (log_p + log_q), axis=1)[:, -1]
    losses: Floats = -((1.0 - unsure) * of_label + unsure * of_any)
    return losses


def fit_class_sigmoids(held: HeldOut, link: Tempered) -> Floats:
    """Return scale and offset of a sigmoid for each class (Platt 1999; one class against the rest: Zadrozny and Elkan 2002).

    With Platt's targets, ``(n_positive + 1) / (n_positive + 2)`` and ``1 / (n_negative + 2)``, and the Newton method of Lin,
    Lin and Weng (2007).

    Parameters
    ----------
    held : HeldOut
    link : Softmax or Sigmoid
        That of the algorithm, with whose temperature the search begins.

    Returns
    -------
    ndarray of float64, shape (2, n_classes)
        Scales, which are not negative, and offsets, as `gpuboost.links.ClassSigmoids` has them.
    """
    n_classes = held.scores.shape[1]
    first = link.tempered(fit_temperature(held, link))  # where scores say far too much, steps have no curvature to go by
    first = Sigmoid(1.0 / first.divisor) if isinstance(first, Softmax) else first
    found = np.empty((2, n_classes))
    for k in range(n_classes):
        positive = held.target == k if held.target.ndim == 1 else held.target[:, k] > 0
        found[:, k] = _platt(held, held.scores[:, k], positive, (first.scale, first.offset))
    return found


def _platt(held: HeldOut, score: Floats, positive: NDArray[np.bool_], first: tuple[float, float]) -> tuple[float, float]:
    """Return the scale a and the offset b with the least log-loss of ``sigmoid(a score - b)``; a is not negative."""
    n_positive = int(held.peers.sum(np.array([positive.sum()]), "rows of a class to calibrate on")[0])
    n_negative = held.n_rows() - n_positive
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))

    def loss(a: float, b: float) -> float:
        z = a * score - b
        return held.total(-(target * log_sigmoid(z) + (1.0 - target) * log_sigmoid(-z)))[0]

    a, b = first
    best = loss(a, b)
    for _ in range(NEWTON_STEPS):
        step_a, step_b = _newton_step(held, score, target, (a, b))
        for halving in range(HALVINGS):
            next_a, next_b = max(a + step_a * 2.0**-halving, 0.0), b + step_b * 2.0**-halving
            reached = loss(next_a, next_b)
            if reached < best:
                break
        else:
            break
        gained, (a, b, best) = best - reached, (next_a, next_b, reached)
        if gained <= 1e-10 * best:
            break
    return a, b


def _newton_step(held: HeldOut, score: Floats, target: Floats, at: tuple[float, float]) -> tuple[float, float]:
    """Return the Newton step of `_platt`, or one of gradient descent where the curvature is too small to divide by."""
    p = sigmoid(at[0] * score - at[1])
    slope, curvature = p - target, p * (1.0 - p)
    columns = (slope * score, slope, curvature * score * score, curvature * score, curvature)
    slope_a, slope_b, h_aa, h_ab, h_bb = held.total(*columns)
    h_aa, h_bb = h_aa * (1.0 + 1e-9), h_bb * (1.0 + 1e-9)
    determinant = h_aa * h_bb - h_ab * h_ab
    if not (determinant > 0.0 and h_bb > 0.0):
        return -slope_a, slope_b
    # The derivative by b has the other sign, as b is subtracted.
    step_a, step_b = (-slope_a * h_bb + slope_b * h_ab) / determinant, (slope_b * h_aa - slope_a * h_ab) / determinant
    return (0.0, slope_b / h_bb) if at[0] == 0.0 and step_a < 0.0 else (step_a, step_b)

"""Rules by which rows leave an ensemble before its last tree, and how they are found.

The soft cascade of Bourdev and Brandt (2005), and of Appel's thesis ("Cascaded Evaluation"), for any number of classes. Scores
after t rounds are ``S(t)``, the leader is the first largest, and its lead is what it has more than the second.

**Exact.** ``R_t[a, b]``, the sum over the trees behind t of the largest ``v_b - v_a`` among their leaves, is the most that b
can gain on a. A row whose leader a has ``S_a - S_b > R_t[a, b]`` for every b, and a little more for rounding, keeps its label.

**Calibrated.** Rows leave when their lead exceeds one constant, the same at every checkpoint. A row that was not trained on
*needs* the largest lead that it has at a checkpoint where its leader is not yet its final label, or 0. With the (k+1)-th
largest need of n rows as the constant, at most k of them change their label; and a new row of the same source is among the k +
1 largest of n + 1 with a probability of at most ``(k + 1) / (n + 1)``, whatever the model is. That holds for rows that were not
trained on: those that were have large leads early.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.early_exit import ExitRule
from gpuboost.ensemble import Ensemble

EVERY = 10
"""Rounds between two checkpoints: 5 and 20 make next to no difference."""
ROUNDING = 2.0**-53
BLOCK_CELLS = 1 << 22
"""Of a tree's (leaf, class, class) table, so many cells are held at a time."""


class ExitLead(NamedTuple):
    """The constant of the calibrated rule.

    Attributes
    ----------
    lead : float
        Rows with a larger one leave.
    bound : float
        A new row gets another label than that of all trees with at most this probability.
    """

    lead: float
    bound: float


def checkpoints(n_rounds: int, every: int) -> IntArray:
    """Return the numbers of rounds after which rows may leave; the last is ``n_rounds``."""
    return np.append(np.arange(every, n_rounds, every, dtype=np.int64), n_rounds)


def calibrated_rule(ensemble: Ensemble, every: int, lead: float) -> ExitRule:
    """Return the rule of one constant."""
    return ExitRule(ensemble.round_offset[checkpoints(ensemble.n_rounds, every)], np.full((1, 1, 1), lead))


def exact_rule(ensemble: Ensemble, every: int) -> ExitRule:
    """Return the rule that changes no label.

    Scores are sums in float64, and so are those here. With T trees, ``u = 2**-53`` and M the sum of their largest absolute
    values, a score errs by at most ``T u M``, a range by ``2 (T + 1) u M``, and the difference that is compared by ``2 u M``: a
    margin of ``8 (T + 1) u M`` covers two scores and all of these.
    """
    trees = ensemble.round_offset[checkpoints(ensemble.n_rounds, every)]
    largest = 0.0
    gains = np.zeros((ensemble.n_classes, ensemble.n_classes))
    margins = np.zeros((len(trees), *gains.shape))
    for t in range(ensemble.n_trees - 1, -1, -1):
        values = ensemble.tree(t).values
        largest += float(np.abs(values).max())
        gains += largest_gains(values)
        margins[:-1][trees[:-1] == t] = gains
    return ExitRule(trees, margins + 8 * (ensemble.n_trees + 1) * ROUNDING * largest)


def largest_gains(values: Floats) -> Floats:
    """Return the largest ``v_b - v_a`` of a tree's leaves for each pair (a, b), shape (n_classes, n_classes)."""
    n_leaves, n_classes = values.shape
    step = max(1, BLOCK_CELLS // (n_leaves * n_classes))
    parts = [(values[:, None, :] - values[:, first : first + step, None]).max(axis=0) for first in range(0, n_classes, step)]
    return np.concatenate(parts)


def needs(stages: Floats) -> Floats:
    """Return the lead that each row needs to keep its final label.

    Parameters
    ----------
    stages : ndarray of float64, shape (n_checkpoints, n_rows, n_classes)
        Scores at the checkpoints, the last of which has all trees.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
    """
    leader = stages.argmax(axis=2)
    leads = lead_of(stages)
    of_others: Floats = np.where(leader != leader[-1], leads, 0.0).max(axis=0)
    return of_others


def lead_of(scores: Floats) -> Floats:
    """Return what the largest score of the last axis, of at least two, is above the second."""
    top = np.partition(scores, scores.shape[-1] - 2, axis=-1)
    lead: Floats = top[..., -1] - top[..., -2]
    return lead


def exit_lead(needed: Floats, allowed: float) -> ExitLead:
    """Return the constant with which a share of ``allowed`` of new rows, or less, changes its label.

    Parameters
    ----------
    needed : ndarray of float64, shape (n_rows,)
        See `needs`.
    allowed : float
        In [0, 1). With n rows the bound cannot be less than ``1 / (n + 1)``.
    """
    n = len(needed)
    k = min(math.floor(allowed * (n + 1)), n - 1)
    return ExitLead(float(np.sort(needed)[n - 1 - k]), (k + 1) / (n + 1))


def rounds_of(left_at: NDArray[np.int32], n_rounds: int, every: int) -> IntArray:
    """Return the rounds that rows took, from the checkpoints where they left."""
    return checkpoints(n_rounds, every)[left_at]

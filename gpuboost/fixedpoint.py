"""Fixed point: how weights become the integers that every sum over rows is made of.

Floating-point sums depend on the order of their terms, so two devices, or one device with two thread counts, disagree in the
last bits, and a boosting loop turns last bits into other trees. Integers do not: they are added exactly, in any order, by
threads, by atomics or by subtraction from a parent. A row state ``w >= 0`` enters the sums as

    q = repeat * rint(w * 2**shift)

where ``frequency_weight`` is the row's integer weight (1 if none was given), so that a row of weight 2 and a row that stands
twice in the data are the same thing to the last bit.

The shift rule
--------------
``shift`` is the largest power that provably keeps every channel's sum below ``2**30`` in magnitude. It is found from exact
things only, so that every backend finds the same one:

1. ``m``, the maximum of the state (exact), gives a first shift ``s0`` with ``2**30 <= m * 2**s0 < 2**31``;
2. ``S``, the largest channel sum of ``frequency_weight * rint(w * 2**s0)`` (an exact int64 sum);
3. ``R``, the sum of ``frequency_weight`` (the number of rows).

Rounding moves a row by at most ``frequency_weight / 2`` units, so a channel's real sum, in units of ``2**-s0``, is at most ``S
+ R/2``. With ``shift = s0 - d`` the integers of one channel therefore add up to at most

    (S + R/2) / 2**d + R/2,

and ``d`` is the smallest non-negative integer for which that is at most ``2**30 - 1``. One exists for every ``R`` up
to `MAX_ROWS`.

What follows for the sums: a histogram bin, a node total ``P``, a left sum ``L`` and the class-wise edge ``P - 2L`` (right minus
left) of any cut are signed partial sums of one channel, so they are below ``2**30`` in magnitude and, like ``2L``, safe in
int32. Sums over classes go up to ``K * 2**30`` and use int64.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.peers.base import ALONE, Peers, agree

CHANNEL_BITS = 30
"""No channel's sum exceeds ``2**CHANNEL_BITS - 1`` in magnitude."""

MAX_ROWS = 2**31 - 8
"""Rows (counted with their repeats) that the shift rule can serve."""

MAX_REPEAT = 4096
"""Integer sample weights up to this one are taken as repetitions, see `split_weights`."""

STATE_FLOOR = math.ldexp(1.0, -900)
"""A positive row state never falls below this (its maximum is kept near 1), so it can always come back."""


def exponent(maximum: float) -> int:
    """Return ``e`` with ``2**(e-1) <= maximum < 2**e``; 0 for a maximum of 0."""
    return math.frexp(maximum)[1]


def first_shift(maximum: float) -> int:
    """Return ``s0`` with ``2**30 <= maximum * 2**s0 < 2**31`` (step 1 of the shift rule)."""
    return 31 - exponent(maximum)


def final_shift(first: int, largest_sum: int, n_rows: int) -> int:
    """Return the shift of the shift rule.

    Parameters
    ----------
    first : int
        The first shift, from `first_shift`.
    largest_sum : int
        ``S``: the largest channel sum in units of ``2**-first``.
    n_rows : int
        ``R``: the sum of the rows' repeats.

    Returns
    -------
    int
        ``first - d`` for the smallest ``d >= 0`` with ``(S + R/2) / 2**d + R/2 <= 2**30 - 1``.

    Raises
    ------
    ValueError
        If ``n_rows`` exceeds `MAX_ROWS`.
    """
    if n_rows > MAX_ROWS:
        raise ValueError(f"at most {MAX_ROWS} rows (counted with integer weights) can be summed, got {n_rows}")
    room = 2 * (2**CHANNEL_BITS - 1) - n_rows  # everything is doubled, so that R/2 is an integer
    drop = 0
    while 2 * largest_sum + n_rows > room << drop:
        drop += 1
    return first - drop


def split_weights(weights: NDArray[np.float64], peers: Peers = ALONE) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Split positive sample weights into an integer repeat and a real factor.

    If all weights are integer multiples (up to `MAX_REPEAT`) of the smallest one, to 12 digits, they are repetitions: the
    multiples are returned with factors of 1, and the model is the one of the repeated rows, whatever the unit of the weights.
    Otherwise the repeats are 1 and the factors are the weights divided by the largest, `STATE_FLOOR` at least.

    Parameters
    ----------
    weights : ndarray of float64, shape (n_rows,)
        Positive and finite.
    peers : Peers
        The workers whose rows' weights these are a part of.

    Returns
    -------
    frequency_weight : ndarray of int32, shape (n_rows,)
    weight_scale : ndarray of float64, shape (n_rows,)
        In (0, 1].
    """
    # The reciprocal of a smallest weight would be rounded: the largest of the negatives is exact, and -0.0 does not occur.
    extremes = np.array([weights.max(initial=0.0), -weights.min() if len(weights) else -np.inf])
    largest, smallest = (peers.max(extremes, "largest and smallest weight") * [1.0, -1.0]).tolist()
    agree(peers, "largest and smallest weight", largest, smallest)
    if largest <= smallest * (MAX_REPEAT + 0.5):
        ratio = weights / smallest
        multiple = np.rint(ratio)
        is_other = np.array([bool((np.abs(ratio - multiple) > 1e-12 * multiple).any())]).astype(np.uint8)
        has_others = bool(peers.max(is_other, "whether weights are multiples")[0])
        agree(peers, "whether weights are multiples", has_others)
        if not has_others:
            return multiple.astype(np.int32), np.ones(len(weights))
    return np.ones(len(weights), np.int32), np.maximum(weights / largest, STATE_FLOOR)


def row_counts(
    frequency_weight: NDArray[np.int32], weight_scale: NDArray[np.float64], peers: Peers = ALONE
) -> NDArray[np.int32]:
    """Return the rows' weights as integers that add up to less than ``2**CHANNEL_BITS``, by the shift rule.

    Parameters
    ----------
    frequency_weight, weight_scale : ndarray, shape (n_rows,)
        From `split_weights`.
    peers : Peers
        The workers whose rows are added up.
    """

    def units(shift: int) -> NDArray[np.integer[Any]]:
        return frequency_weight * np.rint(np.ldexp(weight_scale, shift)).astype(np.int64)

    first = first_shift(largest_of(weight_scale, peers))
    sums = np.array([units(first).sum(), frequency_weight.sum(dtype=np.int64)])
    total, n_rows = peers.sum(sums, "row weights and number of rows").tolist()
    shift = final_shift(first, total, n_rows)
    agree(peers, "unit of the rows' counts", shift)
    return units(shift).astype(np.int32)


def largest_of(values: NDArray[np.float64], peers: Peers) -> float:
    """Return the largest of the workers' values, none of which is negative; 0 if there are none."""
    return float(peers.max(np.array([values.max(initial=0.0)]), "largest weight")[0])


def integer_weights(
    frequency_weight: NDArray[np.int32], weight_scale: NDArray[np.float64], peers: Peers = ALONE
) -> NDArray[np.int64]:
    """Return integer row weights for counting (quantile cuts, error rates).

    Repeats are returned as they are; real factors become multiples of ``2**-30`` of the largest weight, at least 1.
    """
    own = np.array([(weight_scale != 1.0).any()]).astype(np.uint8)
    are_real = bool(peers.max(own, "whether weights are real")[0])
    agree(peers, "whether weights are real", are_real)
    if not are_real:
        return frequency_weight.astype(np.int64)
    units = np.rint(weight_scale * 2.0**30).astype(np.int64)
    return np.maximum(units, 1)

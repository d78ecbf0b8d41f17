"""Fixed point: how weights become the integers that every sum over rows is made of.

Floating-point sums depend on the order of their terms, so two devices, or one device with two thread counts, disagree in the
last bits, and a boosting loop turns last bits into other trees. Integers do not: they are added exactly, in any order, by
threads, by atomics or by subtraction from a parent. A row state ``w >= 0`` enters the sums as

    q = repeat * rint(w * 2**shift)

where ``frequency_weight`` is the row's integer weight (1 if none was given), so that a row of weight 2 and a row that stands
twice in the data are the same thing to the last bit.

The shift rule
--------------
It is found from exact things only, so that every backend finds the same shift:

1. ``m``, the maximum of the state (exact), gives a first shift ``s0`` with ``2**30 <= m * 2**s0 < 2**31``;
2. ``S``, the largest channel sum of ``frequency_weight * rint(w * 2**s0)`` (an exact int64 sum);
3. ``R``, the sum of ``frequency_weight`` (the number of rows).

Up to `NARROW_ROWS` rows ``shift`` is the largest power that provably keeps every channel's sum below ``2**30`` in magnitude.
Rounding moves a row by at most ``frequency_weight / 2`` units, so a channel's real sum, in units of ``2**-s0``, is at most ``S
+ R/2``. With ``shift = s0 - d`` the integers of one channel therefore add up to at most

    (S + R/2) / 2**d + R/2,

and ``d`` is the smallest non-negative integer for which that is at most ``2**30 - 1``.

What follows for the sums: a histogram bin, a node total ``P``, a left sum ``L`` and the class-wise edge ``P - 2L`` (right minus
left) of any cut are signed partial sums of one channel, so they are below ``2**30`` in magnitude and, like ``2L``, safe in
int32. Sums over classes go up to ``K * 2**30`` and use int64.

More rows
---------
By that rule an average row has ``2**30 / R`` units: 256 where there are `NARROW_ROWS`, one where there are ``2**30``. So above
that number of rows no more than `MOST_DROPPED` bits are dropped, ``d`` is at most 13, and all sums of channels are int64:

- If ``d`` is smaller, everything above holds. Else ``w * 2**shift < 2**18``, and with a repeat of at most `MAX_REPEAT` ``q`` is
  at most ``2**30`` in magnitude: still int32.
- A channel's sum is at most ``R * 2**18``, below ``2**49``: exact in float64, and so are the sums and differences of two
  that the criteria make floats of. Sums over K classes are below ``2**62`` where ``R K`` is at most `MOST_ENTRIES`.
- A row of the largest weight has at least ``2**17`` units, however many rows there are.

The number of rows decides, and neither the largest repeat nor the largest ``q``: so rows that are repeated and rows that stand
several times in the data have the same shift.

An entry that is made of several others, as the gradient of two classes is, takes the same rule with its number of ``parts``:
it is up to ``parts`` times as large as ``m`` says, and its rounding is up to ``parts / 2`` units.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.peers.base import ALONE, Peers, agree

CHANNEL_BITS = 30
"""Up to `NARROW_ROWS` rows no channel's sum exceeds ``2**CHANNEL_BITS - 1`` in magnitude."""

NARROW_ROWS = 2**22
"""Up to so many rows (counted with their repeats) the sums of channels fit in int32."""

MOST_DROPPED = 13
"""Above `NARROW_ROWS` rows no more than so many bits of the first shift are dropped."""

MAX_ROWS = 2**31 - 1
"""Rows (counted with their repeats) that the shift rule can serve."""

MOST_ENTRIES = 2**44
"""Rows (counted with their repeats) times classes whose sums fit in int64."""

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


def is_wide(n_rows: int) -> bool:
    """Whether sums of channels over so many rows (counted with their repeats) need int64."""
    return n_rows > NARROW_ROWS


def check_size(n_rows: int, n_classes: int) -> None:
    """Raise a ValueError if sums over so many rows (counted with their repeats) and classes might overflow."""
    if n_rows > MAX_ROWS:
        raise ValueError(f"at most {MAX_ROWS} rows (counted with integer weights) can be summed, got {n_rows}")
    if n_rows * n_classes > MOST_ENTRIES:
        raise ValueError(
            f"at most {MOST_ENTRIES} pairs of a row (counted with integer weights) and a class can be summed, got {n_rows} "
            f"rows and {n_classes} classes"
        )


def most_dropped(n_rows: int, parts: int = 1) -> int:
    """Return how many bits of the first shift may be dropped; more than there are up to `NARROW_ROWS` rows."""
    return MOST_DROPPED + (parts - 1).bit_length() if is_wide(n_rows) else 64


def final_shift(first: int, largest_sum: int, n_rows: int, parts: int = 1) -> int:
    """Return the shift of the shift rule.

    Parameters
    ----------
    first : int
        The first shift, from `first_shift`.
    largest_sum : int
        ``S``: the largest channel sum in units of ``2**-first``.
    n_rows : int
        ``R``: the sum of the rows' repeats.
    parts : int
        Of how many rounded numbers an entry is made.

    Returns
    -------
    int
        ``first - d`` for the smallest ``d >= 0`` with ``(S + parts R/2) / 2**d + parts R/2 <= 2**30 - 1``, but above
        `NARROW_ROWS` rows for no ``d`` beyond `most_dropped`.

    Raises
    ------
    ValueError
        If ``n_rows`` exceeds `MAX_ROWS`.
    """
    check_size(n_rows, 1)
    roundings, most = parts * n_rows, most_dropped(n_rows, parts)
    room = 2 * (2**CHANNEL_BITS - 1) - roundings  # everything is doubled, so that R/2 is an integer
    drop = 0
    while drop < most and 2 * largest_sum + roundings > room << drop:
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
    split = WeightSplit(smallest, largest, may_repeat(smallest, largest))
    if split.are_repeats:
        is_other = np.array([not are_multiples(weights, smallest)]).astype(np.uint8)
        has_others = bool(peers.max(is_other, "whether weights are multiples")[0])
        agree(peers, "whether weights are multiples", has_others)
        split = split._replace(are_repeats=not has_others)
    return split.of(weights)


class WeightSplit(NamedTuple):
    """How the weights of a set are split, see `split_weights`.

    Attributes
    ----------
    smallest, largest : float
    are_repeats : bool
        Whether all weights are multiples of the smallest one.
    """

    smallest: float
    largest: float
    are_repeats: bool

    def of(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Return the integer and the real weights of some rows of the set."""
        if self.are_repeats:
            return np.rint(weights / self.smallest).astype(np.int32), np.ones(len(weights))
        return np.ones(len(weights), np.int32), np.maximum(weights / self.largest, STATE_FLOOR)

    def units(self, weights: NDArray[np.float64], n_rows: int) -> NDArray[np.int64]:
        """Return the integer weights of some of the ``n_rows`` rows of the set, see `integer_weights`."""
        frequency_weight, weight_scale = self.of(weights)
        return frequency_weight.astype(np.int64) if self.are_repeats else real_units(weight_scale, real_bits(n_rows, 1))


def may_repeat(smallest: float, largest: float) -> bool:
    """Whether weights between these may all be multiples of the smallest one."""
    return largest <= smallest * (MAX_REPEAT + 0.5)


def are_multiples(weights: NDArray[np.float64], smallest: float) -> bool:
    """Whether weights are integer multiples of a number, to 12 digits."""
    ratio = weights / smallest
    multiple = np.rint(ratio)
    return not (np.abs(ratio - multiple) > 1e-12 * multiple).any()


def row_counts(
    frequency_weight: NDArray[np.int32], weight_scale: NDArray[np.float64], peers: Peers = ALONE
) -> NDArray[np.int32]:
    """Return the rows' weights as integers by the shift rule: their sum is that of a channel.

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
    frequency_weight: NDArray[np.int32], weight_scale: NDArray[np.float64], n_labels: int = 1, peers: Peers = ALONE
) -> NDArray[np.int64]:
    """Return integer row weights for counting (quantile cuts, error rates).

    Repeats are returned as they are; real factors become multiples of ``2**-30`` of the largest weight, at least 1. Where sums
    over all rows and ``n_labels`` might pass ``2**62``, the multiples are of a larger power of two.
    """
    own = np.array([(weight_scale != 1.0).any()]).astype(np.uint8)
    are_real = bool(peers.max(own, "whether weights are real")[0])
    agree(peers, "whether weights are real", are_real)
    if not are_real:
        return frequency_weight.astype(np.int64)
    n_rows = int(peers.sum(np.array([len(weight_scale)]), "rows with real weights")[0])
    bits = real_bits(n_rows, n_labels)
    agree(peers, "bits of real weights", bits)
    return real_units(weight_scale, bits)


def real_bits(n_rows: int, n_labels: int) -> int:
    """Return the bits of the largest real weight as an integer, such that all can be summed."""
    return min(30, 62 - (n_rows * n_labels).bit_length())


def real_units(weight_scale: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """Return real weights as integers, at least 1."""
    units = np.rint(weight_scale * 2.0**bits).astype(np.int64)
    return np.maximum(units, 1)

"""Sums of floats that are rounded once, and so the same in any order of the terms and on any number of machines."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats
from gpuboost.peers.base import ALONE, Peers

MANTISSA_BITS = 53
PIECE_BITS = 18
"""A mantissa is added up in three pieces of so many bits: a float64 holds the sums of ``2**35`` of them exactly."""


def exact_sums(values: Floats, groups: NDArray[np.integer], n_groups: int, peers: Peers = ALONE) -> Floats:
    """Return the sum of each group's values on all workers, rounded once, half to even.

    A value is an integer of 53 bits times a power of two. The integers of one group and power are added up exactly, then the
    powers, in integers of any length: the superaccumulator of Kulisch, one cell a power, but only for those that occur.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Finite, of any sign; up to ``2**35`` of them.
    groups : ndarray of int, shape (n,)
        The group of each value, ``0 .. n_groups - 1``.
    n_groups : int
    peers : Peers
        The workers whose values are added up.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
        0 for a group without values.

    Raises
    ------
    OverflowError
        If a sum is beyond float64.
    """
    exponent, totals = _integer_sums(values, groups, n_groups)
    gathered = peers.gather(json.dumps([exponent, totals]).encode(), "exact sums")
    parts = [(int(exponent), totals) for exponent, totals in map(json.loads, gathered)]
    lowest = min(exponent for exponent, _ in parts)
    sums = [sum(totals[group] << exponent - lowest for exponent, totals in parts) for group in range(n_groups)]
    return np.array([float(total * Fraction(2) ** lowest) for total in sums])


def _integer_sums(values: Floats, groups: NDArray[np.integer], n_groups: int) -> tuple[int, list[int]]:
    """Return an exponent, and each group's sum as an integer in units of two to that power."""
    if not len(values):
        return 0, [0] * n_groups
    mantissas, exponents = np.frexp(values)
    integers = np.ldexp(mantissas, MANTISSA_BITS).astype(np.int64)
    lowest = int(exponents.min())
    n_powers = int(exponents.max()) - lowest + 1
    cells, n_cells = groups * np.int64(n_powers) + (exponents - lowest), n_groups * n_powers
    totals = [0] * n_groups  # in units of 2**(lowest - MANTISSA_BITS)
    for low in range(0, MANTISSA_BITS, PIECE_BITS):
        is_last = low + PIECE_BITS >= MANTISSA_BITS  # it keeps the sign
        pieces = integers >> low if is_last else integers >> low & (1 << PIECE_BITS) - 1
        sums = np.bincount(cells, pieces, n_cells)
        for cell in np.flatnonzero(sums).tolist():
            group, power = divmod(cell, n_powers)
            totals[group] += int(sums[cell]) << low + power
    return lowest - MANTISSA_BITS, totals

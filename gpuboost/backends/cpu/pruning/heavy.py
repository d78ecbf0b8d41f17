"""Compiled loops that divide rows by their mass, for exact pruning (see `gpuboost.backends.cpu.pruning.bounds`)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, compiled
from gpuboost.backends.cpu.loops.arguments import Rule
from gpuboost.backends.cpu.one_hot import WEIGHT

N_BUCKETS = 256
"""Masses are sorted into buckets by their exponent and the two bits behind it."""


class RowSplit(NamedTuple):
    """The rows of growing trees by mass: of a batch, with the trees as first axis, or of one tree.

    Attributes
    ----------
    mass : ndarray of int64, shape (n_rows,)
        A row's sum of abs(quantised).
    level : ndarray of uint8, shape (n_rows,)
        0 for heavy rows, 1 for light rows, 2 for rows without mass.
    stops : ndarray of int64, shape (M, 2)
        Where the heavy and the light rows of a node end.
    heavy : ndarray of int32, shape (M, C)
        Channel sums of a node's heavy rows.
    """

    mass: Array
    level: Array
    stops: Array
    heavy: Array


@compiled
def bucket(mass: int) -> Int:
    """Return 0 for no mass, else 1 + the place of ``mass`` among the quarters of all powers of two."""
    return np.uint64(1 + (np.float64(mass).view(np.int64) >> 50) - (1023 << 2)) if mass > 0 else np.uint64(0)


@compiled
def weigh(rows: Array, quantised: Array, rule: Rule, mass: Array, numbers: Array, sums: Array) -> None:
    """Compute the mass of ``rows``; add to the number and to the mass of the rows in every bucket."""
    for i in range(len(rows)):
        row = np.int64(rows[i])
        m = np.int64(0)
        if rule.one_hot:
            m += quantised[row, WEIGHT]
        else:
            for c in range(rule.n_classes):
                m += abs(np.int64(quantised[row, c]))
        mass[row] = m
        b = bucket(m)
        numbers[b] += 1
        sums[b] += m


@compiled
def least_heavy(numbers: Array, sums: Array, estimates: tuple[float, ...]) -> Int:
    """Return the least bucket of heavy rows, for which the fewest additions are expected.

    Of the ``estimates``, a tree counts the heavy rows ``halves`` times, and for the features that need them the light rows
    ``levels`` times. These are the share ``survivors`` times that of the mass of the light rows.
    """
    halves, levels, survivors = estimates
    total = max(sums.sum(), 1)
    n_heavy, n_light, light = numbers[1:].sum(), np.int64(0), np.int64(0)
    least, fewest = 1, np.inf
    for b in range(1, N_BUCKETS):
        needed = min(survivors * np.float64(light) / np.float64(total), 1.0)
        expected = halves * n_heavy + levels * needed * n_light
        if expected < fewest:
            least, fewest = b, expected
        n_heavy -= numbers[b]
        n_light += numbers[b]
        light += sums[b]
    return least


@compiled
def sort_rows(
    rows: Array, quantised: Array, rule: Rule, estimates: tuple[float, ...], mass: Array, level: Array, out: Array
) -> tuple[Int, Int]:
    """Write ``rows`` to ``out``: heavy ones, light ones, and those without mass, in their order within each of them.

    Returns the mass of the light rows, and that of all.
    """
    numbers, sums = np.zeros(N_BUCKETS, np.int64), np.zeros(N_BUCKETS, np.int64)
    weigh(rows, quantised, rule, mass, numbers, sums)
    least = least_heavy(numbers, sums, estimates)
    level_of, at = np.empty(N_BUCKETS, np.uint8), np.zeros(4, np.int64)
    for b in range(N_BUCKETS):
        level_of[b] = 0 if b >= least else 1 if b > 0 else 2
        at[level_of[b] + 1] += numbers[b]
    at[2] += at[1]
    for i in range(len(rows)):
        row = rows[i]
        own = level_of[bucket(mass[row])]
        level[row] = own
        out[at[own]] = row
        at[own] += 1
    return sums[:least].sum(), sums.sum()


@compiled
def first_from(level: Array, rows: Array, start: int, stop: int, least: int) -> Int:
    """Return the first of the places start..stop-1 whose row has at least this level, or stop."""
    while start < stop:
        middle = (start + stop) // 2
        if level[rows[middle]] >= least:
            stop = middle
        else:
            start = middle + 1
    return start

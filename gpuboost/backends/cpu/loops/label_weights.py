"""The compiled twin of `gpuboost.backends.label_weights.label_weights`."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Float, compiled, inlined
from gpuboost.backends.cpu.loops.logarithm import minus_log2
from gpuboost.backends.label_weights import LOSS_BITS, WEIGHT_BITS
from gpuboost.exactmath import EXP_COEFFICIENTS, LN2_HIGH, LN2_INVERSE, LN2_LOW

EXP_SERIES = tuple(EXP_COEFFICIENTS)
UNIT, LOSS_UNIT = 2.0**WEIGHT_BITS, 2.0**LOSS_BITS

AT_ONCE = 512
"""So many margins, with what they weigh, stay in the first-level cache."""


@inlined
def power_of_two(k: int) -> Float:
    return np.int64((np.int64(k) + 1023) << 52).view(np.float64)


@inlined
def exp_of_negative(x: float) -> Float:
    """`gpuboost.exactmath.exp` of a number that is not positive, operation by operation."""
    inside = max(x, -800.0)
    k = np.rint(inside * LN2_INVERSE)
    high = inside - k * LN2_HIGH
    low = k * LN2_LOW
    r = high - low
    tail = (high - r) - low
    rounded = 1.0 + r
    error = r - (rounded - 1.0)
    series = EXP_SERIES[0]
    for coefficient in EXP_SERIES[1:]:
        series *= r
        series += coefficient
    value = rounded + (error + (tail + r * r * series))
    exponent = np.int64(k)
    half = exponent >> 1  # rounds down, as // does
    return value * power_of_two(half) * power_of_two(exponent - half)


@compiled
def weigh_margins(margins: Array, madaboost: bool, q: Array, loss: Array) -> None:
    """Weigh margins that lie side by side: the loop takes several of them in one instruction."""
    for j in range(len(margins)):
        margin = margins[j]
        y_exp = exp_of_negative(-abs(margin))
        small = y_exp if margin > 0.0 else 1.0
        logistic = np.int64(np.rint(small / (1.0 + y_exp) * UNIT))
        q[j] = np.int64(np.rint(small * UNIT)) if madaboost else logistic
        bits = minus_log2(max(UNIT - np.float64(logistic), 0.5) / UNIT)
        loss[j] = np.int64(np.rint(bits * LOSS_UNIT))


@compiled
def weigh_labels(lo: int, hi: int, scores: Array, target: Array, first: int, madaboost: bool, out: Array) -> None:
    """Write q, its sum, the loss and whether a row is wrong to the columns of ``out``, (n_rows, n_classes + 3)."""
    n_others = scores.shape[1] - 1
    at_once = max(1, AT_ONCE // n_others)
    margins = np.empty(at_once * n_others)
    q, loss = np.empty(at_once * n_others, np.int64), np.empty(at_once * n_others, np.int64)
    for start in range(lo, hi, at_once):
        stop = min(hi, start + at_once)
        j = 0
        for i in range(first + start, first + stop):
            y = target[i]
            for other in range(n_others):
                margins[j] = scores[i, y] - scores[i, other + (other >= y)]
                j += 1
        weigh_margins(margins[:j], madaboost, q, loss)
        j = 0
        for i in range(start, stop):
            y, sum_q, sum_loss, n_above = target[first + i], np.int64(0), np.int64(0), 0
            for other in range(n_others):
                k = other + (other >= y)
                n_above += (margins[j] < 0.0) | ((margins[j] == 0.0) & (k < y))
                out[i, k] = q[j]
                sum_q += q[j]
                sum_loss += loss[j]
                j += 1
            out[i, y], out[i, n_others + 1], out[i, n_others + 2], out[i, n_others + 3] = 0, sum_q, sum_loss, n_above > 0

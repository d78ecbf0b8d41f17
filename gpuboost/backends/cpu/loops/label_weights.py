"""The compiled twin of `gpuboost.backends.label_weights.label_weights`."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Float, compiled, inlined
from gpuboost.backends.cpu.loops.logarithm import minus_log2
from gpuboost.backends.label_weights import LOSS_BITS, WEIGHT_BITS
from gpuboost.exactmath import EXP_COEFFICIENTS, LN2_HIGH, LN2_INVERSE, LN2_LOW

EXP_SERIES = tuple(EXP_COEFFICIENTS)
UNIT, LOSS_UNIT = 2.0**WEIGHT_BITS, 2.0**LOSS_BITS


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
def weigh_labels(lo: int, hi: int, scores: Array, target: Array, first: int, madaboost: bool, out: Array) -> None:
    """Write q, its sum, the loss and whether a row is wrong to the columns of ``out``, (n_rows, n_classes + 3)."""
    n_classes = scores.shape[1]
    for i in range(lo, hi):
        y = target[first + i]
        own = scores[first + i, y]
        total, loss, n_above = np.int64(0), np.int64(0), 0
        for k in range(n_classes):
            margin = own - scores[first + i, k]
            n_above += (margin < 0.0) | ((margin == 0.0) & (k < y))
            y_exp = exp_of_negative(-abs(margin))
            small = y_exp if margin > 0.0 else 1.0
            logistic = np.int64(np.rint(small / (1.0 + y_exp) * UNIT))
            q = np.int64(np.rint(small * UNIT)) if madaboost else logistic
            bits = minus_log2(max(UNIT - np.float64(logistic), 0.5) / UNIT)
            is_other = np.int64(k != y)
            out[i, k] = q * is_other
            total += q * is_other
            loss += np.int64(np.rint(bits * LOSS_UNIT)) * is_other
        out[i, n_classes], out[i, n_classes + 1], out[i, n_classes + 2] = total, loss, n_above > 0

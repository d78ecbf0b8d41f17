"""Compiled loops of the CPU backend over rows with class probabilities, see `gpuboost.backends.base.Backend`.

Each works on the rows lo..hi-1, without the GIL, so that threads can share it.
"""

from __future__ import annotations

import math

import numpy as np

from gpuboost.backends.jit import Array, Float, compiled
from gpuboost.exactmath import LOG2_COEFFICIENTS, SQRT_HALF
from gpuboost.fixedpoint import STATE_FLOOR

# ---- derivatives -------------------------------------------------------------------------------------------------------------


@compiled
def complement(p: Array, k: int) -> Float:
    """Return 1 - p[k], as the sum of the others where p[k] is above 1/2."""
    if p[k] <= 0.5:
        return 1.0 - p[k]
    others = 0.0
    for j in range(len(p)):
        if j != k:
            others += p[j]
    return others


@compiled
def largest_miss(lo: int, hi: int, p: Array, target: Array, factor: Array) -> Float:
    largest = 0.0
    for i in range(lo, hi):
        largest = max(largest, factor[i] * complement(p[i], target[i]))
    return largest


@compiled
def sums(lo: int, hi: int, p: Array, target: Array, repeat: Array, factor: Array, scale: float) -> tuple[Array, Array]:
    gradient, curvature = np.zeros(p.shape[1], np.int64), np.zeros(p.shape[1], np.int64)
    for i in range(lo, hi):
        times, f = np.int64(repeat[i]), factor[i]
        for k in range(p.shape[1]):
            missing = complement(p[i], k)
            g = missing if k == target[i] else p[i, k]
            gradient[k] += times * np.int64(np.rint(f * g * scale))
            curvature[k] += times * np.int64(np.rint(f * (p[i, k] * missing) * scale))
    return gradient, curvature


@compiled
def statistics(
    lo: int,
    hi: int,
    p: Array,
    target: Array,
    repeat: Array,
    factor: Array,
    pairs: Array,
    gradient_scale: float,
    curvature_scale: float,
    weights: Array,
    counts: Array,
    q: Array,
) -> tuple[Array, Array]:
    """Fill in the rows lo..hi-1 of ``q`` (n_trees, n_rows, C); ``weights`` may be empty."""
    n_classes = p.shape[1]
    n_weights = 1 if len(weights) else 0
    at_h, at_count = 1 + n_weights, 2 + n_weights
    g, h = np.zeros(n_classes, np.int32), np.zeros(n_classes)
    signed, mass = np.zeros(at_count + 1, np.int64), np.zeros(at_count, np.int64)
    for i in range(lo, hi):
        times, f = np.int32(repeat[i]), factor[i]
        for k in range(n_classes):
            missing = complement(p[i], k)
            g[k] = np.int32(np.rint(f * (missing if k == target[i] else -p[i, k]) * gradient_scale))
            h[k] = p[i, k] * missing
        for t in range(len(pairs)):
            base, k = pairs[t, 0], pairs[t, 1]
            row = q[t, i]
            slope, bend = g[k], h[k]
            if base >= 0:
                slope -= g[base]
                bend = (h[base] + h[k]) + 2.0 * (p[i, base] * p[i, k])
            row[0] = times * slope
            row[at_h] = times * np.int32(np.rint(f * bend * curvature_scale))
            row[at_count] = counts[i]
            if n_weights:
                row[1] = weights[i]
            for c in range(at_count):
                signed[c] += np.int64(row[c])
                mass[c] += np.int64(abs(row[c]))
            signed[at_count] += np.int64(row[at_count])
    return signed, mass


# ---- steps and losses --------------------------------------------------------------------------------------------------------


@compiled
def normalise(lo: int, hi: int, p: Array) -> None:
    for i in range(lo, hi):
        total = 0.0
        for k in range(p.shape[1]):
            total += p[i, k]
        for k in range(p.shape[1]):
            p[i, k] = max(p[i, k] / total, STATE_FLOOR)


@compiled
def minus_log2(x: float) -> Float:
    """The twin of `gpuboost.exactmath.minus_log2`, operation by operation."""
    mantissa, exponent = math.frexp(x)
    small = mantissa < SQRT_HALF
    m = 2.0 * mantissa if small else mantissa
    e = np.float64(exponent) - (1.0 if small else 0.0)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = LOG2_COEFFICIENTS[0]
    for coefficient in LOG2_COEFFICIENTS[1:]:
        series *= z
        series += coefficient
    return -e - s * series


@compiled
def losses(
    lo: int,
    hi: int,
    p: Array,
    target: Array,
    repeat: Array,
    factor: Array,
    groups: Array,
    pairs: Array,
    factors: Array,
    trees: Array,
    bounds: Array,
    scale: float,
) -> Array:
    """Candidate j consists of the trees ``trees[bounds[j]:bounds[j + 1]]``."""
    found = np.zeros((len(bounds) - 1, p.shape[1]), np.int64)
    own = np.zeros(p.shape[1])
    for i in range(lo, hi):
        for j in range(len(found)):
            own[:] = p[i]
            for t in trees[bounds[j] : bounds[j + 1]]:
                base, k, g = pairs[t, 0], pairs[t, 1], groups[t, i]
                own[k] *= factors[t, g, 0]
                if base >= 0:
                    own[base] *= factors[t, g, 1]
            total = 0.0
            for k in range(len(own)):
                total += own[k]
            loss = factor[i] * minus_log2(max(own[target[i]] / total, STATE_FLOOR))
            found[j, target[i]] += np.int64(repeat[i]) * np.int64(np.rint(loss * scale))
    return found

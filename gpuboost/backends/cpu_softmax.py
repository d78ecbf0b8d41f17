"""Compiled loops of the CPU backend over rows with class probabilities, see `gpuboost.backends.base.Backend`.

Each works on the rows lo..hi-1, without the GIL, so that threads can share it.
"""

from __future__ import annotations

import math

import numpy as np

from gpuboost.backends.jit import Array, Float, Int, compiled
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
def above_half(p: Array) -> tuple[Int, Float]:
    """Return the class whose probability is above 1/2, and the sum of the others; -1 if there is none."""
    for k in range(len(p)):
        if p[k] > 0.5:
            return k, complement(p, k)
    return -1, 0.0


CHUNK = 512
"""So many terms below 2**43 add up exactly in float64, which vector units add faster than they convert to integers."""


@compiled
def sums(lo: int, hi: int, p: Array, target: Array, repeat: Array, factor: Array, scale: float) -> tuple[Array, Array]:
    n_classes = p.shape[1]
    gradient, curvature = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    g, h = np.zeros(n_classes), np.zeros(n_classes)
    for first in range(lo, hi, CHUNK):
        g[:], h[:] = 0.0, 0.0
        for i in range(first, min(first + CHUNK, hi)):
            own, times, f = p[i], np.float64(repeat[i]), factor[i]
            for k in range(n_classes):  # as if every class were another one's, and below 1/2
                g[k] += times * np.rint(f * own[k] * scale)
                h[k] += times * np.rint(f * (own[k] * (1.0 - own[k])) * scale)
            y = target[i]
            g[y] += times * (np.rint(f * complement(own, y) * scale) - np.rint(f * own[y] * scale))
            k, others = above_half(own)
            if k >= 0:
                h[k] += times * (np.rint(f * (own[k] * others) * scale) - np.rint(f * (own[k] * (1.0 - own[k])) * scale))
        for k in range(n_classes):
            gradient[k] += np.int64(g[k])
            curvature[k] += np.int64(h[k])
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
    """Fill in the rows lo..hi-1 of ``q`` (n_trees, n_rows, C); return the sums of q and of abs(q), (n_trees, C).

    ``weights`` may be empty.
    """
    n_classes = p.shape[1]
    n_weights = 1 if len(weights) else 0
    at_h, at_count = 1 + n_weights, 2 + n_weights
    g, h = np.zeros((CHUNK, n_classes), np.int32), np.zeros((CHUNK, n_classes))
    signed, mass = np.zeros((len(pairs), at_count + 1), np.int64), np.zeros((len(pairs), at_count), np.int64)
    for first in range(lo, hi, CHUNK):
        n = min(CHUNK, hi - first)
        for i in range(n):
            own, f, y = p[first + i], factor[first + i], target[first + i]
            for k in range(n_classes):
                g[i, k] = np.int32(np.rint(f * -own[k] * gradient_scale))
                h[i, k] = own[k] * (1.0 - own[k])
            g[i, y] = np.int32(np.rint(f * complement(own, y) * gradient_scale))
            k, others = above_half(own)
            if k >= 0:
                h[i, k] = own[k] * others
        for t in range(len(pairs)):
            base, k = pairs[t, 0], pairs[t, 1]
            sum_g, sum_h, sum_w, sum_n, mass_g = np.int64(0), np.int64(0), np.int64(0), np.int64(0), np.int64(0)
            for i in range(n):
                slope, bend, row = g[i, k], h[i, k], q[t, first + i]
                if base >= 0:
                    slope -= g[i, base]
                    bend = (h[i, base] + bend) + 2.0 * (p[first + i, base] * p[first + i, k])
                slope = np.int32(repeat[first + i]) * slope
                curvature = np.int32(repeat[first + i]) * np.int32(np.rint(factor[first + i] * bend * curvature_scale))
                row[0], row[at_h], row[at_count] = slope, curvature, counts[first + i]
                sum_g += np.int64(slope)
                mass_g += np.int64(abs(slope))
                sum_h += np.int64(curvature)
                sum_n += np.int64(counts[first + i])
                if n_weights:
                    row[1] = weights[first + i]
                    sum_w += np.int64(weights[first + i])
            signed[t, 0] += sum_g
            signed[t, 1] += sum_w  # of no weights, 0
            signed[t, at_h] += sum_h
            signed[t, at_count] += sum_n
            mass[t, 0] += mass_g
            mass[t, 1] += sum_w
            mass[t, at_h] += sum_h
    return signed, mass


# ---- steps and losses --------------------------------------------------------------------------------------------------------


@compiled
def step(lo: int, hi: int, p: Array, groups: Array, pairs: Array, factors: Array, trees: Array) -> None:
    for t in trees:
        base, k = pairs[t, 0], pairs[t, 1]
        if base < 0:
            for i in range(lo, hi):
                p[i, k] *= factors[t, groups[t, i], 0]
        else:
            for i in range(lo, hi):
                p[i, k] *= factors[t, groups[t, i], 0]
                p[i, base] *= factors[t, groups[t, i], 1]
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

"""Compiled loops of the CPU backend over rows with class probabilities, see `gpuboost.backends.base.Backend`.

Each works on the rows lo..hi-1, without the GIL, so that threads can share it.
"""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Float, compiled
from gpuboost.backends.cpu.loops.logarithm import minus_log2
from gpuboost.backends.statistics import SoftmaxRows, SoftmaxSteps
from gpuboost.fixedpoint import STATE_FLOOR

CHUNK = 512
"""So many rows are worked on at a time, in the nearest caches. And so many terms below 2**43 add up exactly in float64, which
vector units add faster than they convert to integers."""


@compiled
def by_class(p: Array, out: Array) -> None:
    """Write the rows' probabilities class by class, so that loops over rows are vector code."""
    for k in range(p.shape[1]):
        for i in range(len(p)):
            out[k, i] = p[i, k]


# ---- derivatives -------------------------------------------------------------------------------------------------------------


@compiled
def small(x: float) -> Float:
    return x if x <= 0.5 else 0.0


@compiled
def complement(x: float, others: float) -> Float:
    """Return 1 - x; ``others`` are the sum of the row's `small` probabilities, all but x if that is not small."""
    return others if x > 0.5 else 1.0 - x


@compiled
def small_sum(p: Array) -> Float:
    others = 0.0
    for k in range(len(p)):
        others += small(p[k])
    return others


@compiled
def largest_miss(lo: int, hi: int, rows: SoftmaxRows) -> Float:
    p, target, _, weight_scale = rows
    largest = 0.0
    for i in range(lo, hi):
        largest = max(largest, weight_scale[i] * complement(p[i, target[i]], small_sum(p[i])))
    return largest


@compiled
def sums(lo: int, hi: int, rows: SoftmaxRows, scale: float) -> tuple[Array, Array]:
    p, target, frequency_weight, weight_scale = rows
    n_classes = p.shape[1]
    gradient, curvature = np.zeros(n_classes, np.int64), np.zeros(n_classes, np.int64)
    g, h = np.zeros(n_classes), np.zeros(n_classes)
    for first in range(lo, hi, CHUNK):
        g[:], h[:] = 0.0, 0.0
        for i in range(first, min(first + CHUNK, hi)):
            own, times, f, y = p[i], np.float64(frequency_weight[i]), weight_scale[i], target[i]
            others = small_sum(own)
            for k in range(n_classes):  # gradients as if every class were another one's
                g[k] += times * np.rint(f * own[k] * scale)
                h[k] += times * np.rint(f * (own[k] * complement(own[k], others)) * scale)
            g[y] += times * (np.rint(f * complement(own[y], others) * scale) - np.rint(f * own[y] * scale))
        for k in range(n_classes):
            gradient[k] += np.int64(g[k])
            curvature[k] += np.int64(h[k])
    return gradient, curvature


@compiled
def derivatives(own: Array, target: Array, weight_scale: Array, scale: float, others: Array, g: Array, h: Array) -> None:
    """Write the gradients in units and the curvatures of rows, given their probabilities `by_class`. ``others`` is scratch."""
    n_classes, n = len(own) - 1, len(target)
    others[:] = 0.0
    for k in range(n_classes):
        for i in range(n):
            others[i] += small(own[k, i])
    for k in range(n_classes):
        for i in range(n):
            g[k, i] = np.int32(np.rint(weight_scale[i] * -own[k, i] * scale))
            h[k, i] = own[k, i] * complement(own[k, i], others[i])
    for i in range(n):
        y = target[i]
        g[y, i] = np.int32(np.rint(weight_scale[i] * complement(own[y, i], others[i]) * scale))


@compiled
def statistics(
    lo: int,
    hi: int,
    rows: SoftmaxRows,
    pairs: Array,
    scales: tuple[float, ...],
    weights: Array,
    counts: Array,
    quantised: Array,
) -> tuple[Array, Array]:
    """Fill in the rows lo..hi-1 of ``quantised`` (n_trees, n_rows, C); return its sums, and those of its magnitudes.

    Both are (n_trees, C). ``scales`` are those of gradients and curvatures; ``weights`` is (1, n_rows), or has no rows
    if there are none: a worker may have no rows itself.
    """
    p, target, frequency_weight, weight_scale = rows
    gradient_scale, curvature_scale = scales
    n_classes = p.shape[1]
    has_weights = weights.shape[0] > 0
    at_h, at_count = 1 + has_weights, 2 + has_weights
    # The last class is base class -1, whose terms are 0.
    own, h, g = np.zeros((n_classes + 1, CHUNK)), np.zeros((n_classes + 1, CHUNK)), np.zeros((n_classes + 1, CHUNK), np.int32)
    channels, others = np.zeros((4, CHUNK), np.int32), np.empty(CHUNK)
    sums, sum_abs = np.zeros((len(pairs), 4), np.int64), np.zeros((len(pairs), 4), np.int64)
    for first in range(lo, hi, CHUNK):
        stop = min(first + CHUNK, hi)
        n, f, times = stop - first, weight_scale[first:stop], frequency_weight[first:stop]
        by_class(p[first:stop], own)
        derivatives(own, target[first:stop], f, gradient_scale, others, g, h)
        channels[at_count, :n] = counts[first:stop]
        if has_weights:
            channels[1, :n] = weights[0, first:stop]
        for t in range(len(pairs)):
            base, k = pairs[t, 0], pairs[t, 1]
            for i in range(n):
                bend = (h[base, i] + h[k, i]) + 2.0 * (own[base, i] * own[k, i])
                channels[0, i] = np.int32(times[i]) * (g[k, i] - g[base, i])
                channels[at_h, i] = np.int32(times[i]) * np.int32(np.rint(f[i] * bend * curvature_scale))
            for c in range(at_count + 1):
                total, size = np.int64(0), np.int64(0)
                for i in range(n):
                    total += np.int64(channels[c, i])
                    size += np.int64(abs(channels[c, i]))
                sums[t, c] += total
                sum_abs[t, c] += size
            interleave(channels, quantised[t, first:stop].reshape(-1), n)
    return sums[:, : at_count + 1], sum_abs[:, :at_count]


@compiled
def interleave(channels: Array, rows: Array, n: int) -> None:
    """Write four channels side by side."""
    for i in range(n):
        at = np.uint64(4 * i)
        rows[at] = channels[0, i]
        rows[at + np.uint64(1)] = channels[1, i]
        rows[at + np.uint64(2)] = channels[2, i]
        rows[at + np.uint64(3)] = channels[3, i]


# ---- steps and losses --------------------------------------------------------------------------------------------------------


@compiled
def multiply(own: Array, leaf_indices: Array, pairs: Array, multipliers: Array, trees: Array, total: Array) -> None:
    """Take trees into rows' probabilities `by_class`, and write the rows' sums, which are 1 no longer."""
    n = leaf_indices.shape[1]
    for t in trees:
        base, k = pairs[t, 0], pairs[t, 1]
        for i in range(n):
            own[k, i] *= multipliers[t, leaf_indices[t, i], 0]
        if base >= 0:
            for i in range(n):
                own[base, i] *= multipliers[t, leaf_indices[t, i], 1]
    total[:] = 0.0
    for k in range(len(own)):
        for i in range(n):
            total[i] += own[k, i]


@compiled
def step(lo: int, hi: int, p: Array, steps: SoftmaxSteps, trees: Array) -> None:
    leaf_indices, pairs, multipliers = steps
    own, total = np.empty((p.shape[1], CHUNK)), np.empty(CHUNK)
    for first in range(lo, hi, CHUNK):
        rows = p[first : min(first + CHUNK, hi)]
        by_class(rows, own)
        multiply(own, leaf_indices[:, first : first + len(rows)], pairs, multipliers, trees, total)
        for k in range(p.shape[1]):
            for i in range(len(rows)):
                rows[i, k] = max(own[k, i] / total[i], STATE_FLOOR)


@compiled
def losses(lo: int, hi: int, rows: SoftmaxRows, steps: SoftmaxSteps, trees: Array, bounds: Array, scale: float) -> Array:
    """Candidate j consists of the trees ``trees[bounds[j]:bounds[j + 1]]``."""
    p, target, frequency_weight, weight_scale = rows
    leaf_indices, pairs, multipliers = steps
    found = np.zeros((len(bounds) - 1, p.shape[1]), np.int64)
    own, after = np.empty((p.shape[1], CHUNK)), np.empty((p.shape[1], CHUNK))
    total, loss = np.empty(CHUNK), np.empty(CHUNK)
    for first in range(lo, hi, CHUNK):
        stop = min(first + CHUNK, hi)
        y, f = target[first:stop], weight_scale[first:stop]
        by_class(p[first:stop], own)
        for j in range(len(found)):
            after[:] = own
            multiply(after, leaf_indices[:, first:stop], pairs, multipliers, trees[bounds[j] : bounds[j + 1]], total)
            for i in range(stop - first):
                loss[i] = after[y[i], i]
            for i in range(stop - first):
                loss[i] = np.rint(f[i] * minus_log2(max(loss[i] / total[i], STATE_FLOOR)) * scale)
            for i in range(stop - first):
                found[j, y[i]] += np.int64(frequency_weight[first + i]) * np.int64(loss[i])
    return found

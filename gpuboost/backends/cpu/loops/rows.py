"""Compiled loops of the CPU backend over rows: binning, row state and statistics, and the use of trees.

Each works on the rows lo..hi-1, without the GIL, so that threads can share it. The limit of all of them is memory traffic: a
few bytes in and out for every row and class.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuboost.backends.cpu.jit import Array, Float, Int, compiled
from gpuboost.binning import MISSING_CODE
from gpuboost.fixedpoint import STATE_FLOOR

# ---- binning -----------------------------------------------------------------------------------------------------------------


STRETCH = 512
"""So many values are searched for side by side."""


@compiled
def bin_columns(lo: int, hi: int, values: Array, cut_values: Array, cut_offsets: Array, out: Array) -> None:
    """Code of x: 0 if missing, else 1 + number of cuts <= x, by a binary search without branches.

    All values of a stretch take a step before any takes the next: so they wait for their cuts together, in vectors where the
    processor can gather. One value after the other takes six times as long.
    """
    below = np.empty(STRETCH, np.int32)
    for f in range(lo, hi):
        cuts = cut_values[cut_offsets[f] : cut_offsets[f + 1]]
        for start in range(0, values.shape[1], STRETCH):
            x, codes = values[f, start : start + STRETCH], out[f, start : start + STRETCH]
            below[:] = 0
            width = len(cuts)
            while width > 0:
                half = (width + 1) >> 1
                for i in range(len(x)):
                    below[i] += half * (cuts[below[i] + half - 1] <= x[i])
                width -= half
            for i in range(len(x)):
                codes[i] = 0 if np.isnan(x[i]) else 1 + below[i]


# ---- row state and statistics ------------------------------------------------------------------------------------------------


@compiled
def largest_of(values: Array) -> Float:
    """Return the largest value, at least 0."""
    largest = 0.0
    for c in range(len(values)):
        largest = values[c] if values[c] > largest else largest
    return largest


@compiled
def maximum(lo: int, hi: int, state: Array) -> Float:
    largest = np.zeros(state.shape[1])
    for i in range(lo, hi):
        for c in range(state.shape[1]):
            largest[c] = state[i, c] if state[i, c] > largest[c] else largest[c]
    return largest_of(largest)


@compiled
def channel_sums(lo: int, hi: int, state: Array, frequency_weight: Array, scale: float) -> Array:
    sums = np.zeros(state.shape[1], np.int64)
    for i in range(lo, hi):
        times = np.int64(frequency_weight[i])
        for c in range(state.shape[1]):
            sums[c] += times * np.int64(np.rint(state[i, c] * scale))
    return sums


@compiled
def quantise(
    lo: int, hi: int, state: Array, signs: Array, frequency_weight: Array, scale: float, quantised: Array
) -> tuple[Array, Array]:
    n_channels = state.shape[1]
    sums, sum_abs = np.zeros(n_channels, np.int64), np.zeros(n_channels, np.int64)
    for i in range(lo, hi):
        times = np.int32(frequency_weight[i])
        for c in range(n_channels):
            units = np.int32(times * np.int32(np.rint(state[i, c] * scale)))
            value = np.int32(units * np.int32(signs[i, c]))
            quantised[i, c] = value
            sums[c] += np.int64(value)
            sum_abs[c] += np.int64(units)
    return sums, sum_abs


@compiled
def reweight(lo: int, hi: int, state: Array, signs: Array, leaf_index: Array, table: Array) -> Float:
    n_channels = state.shape[1]
    largest = np.zeros(n_channels)
    for i in range(lo, hi):
        g = leaf_index[i]
        for c in range(n_channels):
            w = state[i, c]
            multiplier = table[g, 1, c] if signs[i, c] > 0 else table[g, 0, c]
            product = w * multiplier
            product = product if product > STATE_FLOOR else STATE_FLOOR
            product = product if w > 0.0 else 0.0
            state[i, c] = product
            largest[c] = product if product > largest[c] else largest[c]
    return largest_of(largest)


@compiled
def project(lo: int, hi: int, state: Array, signs: Array, coefficients: Array, magnitude: Array, side: Array) -> Float:
    largest = 0.0
    for i in range(lo, hi):
        r = 0.0
        for c in range(state.shape[1]):
            product = state[i, c] * coefficients[c]
            r += product if signs[i, c] > 0 else -product
        size = abs(r)
        size = size if size >= STATE_FLOOR else 0.0
        magnitude[i, 0] = size
        side[i, 0] = -1 if r < 0.0 else 1
        largest = size if size > largest else largest
    return largest


@compiled
def flip(lo: int, hi: int, quantised: Array, leaf_index: Array, signs: Array, n_channels: int, out: Array) -> Array:
    sums = np.zeros(n_channels, np.int64)
    n_classes = signs.shape[1]
    for i in range(lo, hi):
        g = leaf_index[i]
        for c in range(n_classes):
            value = np.int32(quantised[i, c] * np.int32(signs[g, c]))
            out[i, c] = value
            sums[c] += np.int64(value)
        for c in range(n_classes, n_channels):  # counts have no sign
            out[i, c] = quantised[i, c]
            sums[c] += np.int64(quantised[i, c])
    return sums


@compiled
def leaf_sums(lo: int, hi: int, quantised: Array, leaf_index: Array, n_leaves: int, n_channels: int) -> tuple[Array, Array]:
    sums, sum_abs = np.zeros((n_leaves, n_channels), np.int64), np.zeros((n_leaves, n_channels), np.int64)
    for i in range(lo, hi):
        g = leaf_index[i]
        for c in range(n_channels):
            sums[g, c] += np.int64(quantised[i, c])
            sum_abs[g, c] += np.int64(abs(quantised[i, c]))
    return sums, sum_abs


@compiled
def row_weights(lo: int, hi: int, quantised: Array, first: int, n_classes: int, out: Array) -> None:
    for i in range(lo, hi):
        sum_abs = np.int64(0)
        for c in range(first, n_classes):
            sum_abs += abs(np.int64(quantised[i, c]))
        out[i] = sum_abs


# ---- using trees -------------------------------------------------------------------------------------------------------------


class TreeArrays(NamedTuple):
    """The nodes of a `gpuboost.tree.Tree`."""

    first: int
    feature: Array
    cut: Array
    missing_left: Array
    left: Array
    right: Array


class EnsembleArrays(NamedTuple):
    """The arrays of a `gpuboost.ensemble.Ensemble`."""

    node_offset: Array
    leaf_offset: Array
    feature: Array
    cut: Array
    missing_left: Array
    left: Array
    right: Array
    values: Array


@compiled
def apply(lo: int, hi: int, blocks: Array, tree: TreeArrays, out: Array) -> None:
    first, feature, cut, missing_left, left, right = tree
    n_rows, width = blocks.shape[1:]
    codes = blocks.reshape(-1)
    # Without divisions and branches a step takes half the time. Left iff low <= code <= cut, see `loops.growth.divide`.
    place, low, span = np.empty(len(feature), np.int64), np.empty(len(feature), np.uint8), np.empty(len(feature), np.uint8)
    children = np.empty(2 * len(feature), np.int32)
    for n in range(len(feature)):
        place[n] = feature[n] // width * n_rows * width + feature[n] % width
        low[n] = np.uint8(0 if missing_left[n] else 1)
        span[n] = np.uint8(cut[n] - low[n])
        children[2 * n], children[2 * n + 1] = right[n], left[n]
    for i in range(lo, hi):
        node = first
        while node >= 0:
            goes_left = np.uint8(codes[place[node] + i * width] - low[node]) <= span[node]
            node = children[2 * node + goes_left]
        out[i] = ~node


@compiled
def set_bit(lo: int, hi: int, blocks: Array, feature: int, cut: int, missing_left: bool, bit: int, cell: Array) -> None:
    width = blocks.shape[2]
    for i in range(lo, hi):
        code = blocks[feature // width, i, feature % width] if feature >= 0 else np.uint8(255)
        goes_left = feature >= 0 and code <= cut and (code != MISSING_CODE or missing_left)
        cell[i] = np.int32((cell[i] & ~(1 << bit)) | (goes_left << bit))


@compiled
def predict(lo: int, hi: int, blocks: Array, trees: EnsembleArrays, first: int, stop: int, scores: Array) -> None:
    """Walk a few rows at a time through all trees: their codes, their scores and one tree stay in the nearest cache."""
    node_offset, leaf_offset, feature, cut, missing_left, left, right, values = trees
    n_blocks, width = blocks.shape[0], blocks.shape[2]
    own = np.empty((max(1, 32768 // (n_blocks * width)), n_blocks * width), np.uint8)
    for begin in range(lo, hi, len(own)):
        n = min(hi - begin, len(own))
        for i in range(n):
            for b in range(n_blocks):
                own[i, b * width : (b + 1) * width] = blocks[b, begin + i]
        for t in range(first, stop):
            base = node_offset[t]
            root = 0 if node_offset[t + 1] > base else -1
            for i in range(n):
                node = root
                while node >= 0:
                    at = base + node
                    code = own[i, feature[at]]
                    goes_left = code <= cut[at] and (code != MISSING_CODE or missing_left[at])
                    node = left[at] if goes_left else right[at]
                leaf = leaf_offset[t] + ~node
                for k in range(scores.shape[1]):
                    scores[begin + i, k] += values[leaf, k]


@compiled
def add_scores(lo: int, hi: int, scores: Array, leaf_index: Array, values: Array) -> None:
    """Classes that no value moves are left alone: a sum that began at 0.0 is the same after 0.0 or -0.0 is added."""
    n_classes = scores.shape[1]
    moved = np.empty(n_classes, np.int64)
    n_moved = 0
    for k in range(n_classes):
        moved[n_moved] = k
        for g in range(len(values)):
            if values[g, k] != 0.0:
                n_moved += 1
                break
    for i in range(lo, hi):
        g = leaf_index[i]
        if n_moved == n_classes:
            for k in range(n_classes):
                scores[i, k] += values[g, k]
        else:
            for k in moved[:n_moved]:
                scores[i, k] += values[g, k]


@compiled
def class_errors(lo: int, hi: int, scores: Array, target: Array, units: Array) -> Int:
    wrong = np.int64(0)
    for i in range(lo, hi):
        y, n_above = target[i], 0
        own = scores[i, y]
        for k in range(scores.shape[1]):  # without branches; a tie is lost to a lower class
            n_above += (scores[i, k] > own) | ((scores[i, k] == own) & (k < y))
        wrong += units[i] * (n_above > 0)
    return wrong


@compiled
def confusion(lo: int, hi: int, scores: Array, target: Array, units: Array) -> Array:
    n_classes = scores.shape[1]
    counts = np.zeros((n_classes, n_classes), np.int64)
    for i in range(lo, hi):
        best = 0
        for k in range(1, n_classes):
            best = k if scores[i, k] > scores[i, best] else best
        counts[target[i], best] += units[i]
    return counts


@compiled
def sign_errors(lo: int, hi: int, scores: Array, target: Array, units: Array) -> Int:
    wrong = np.int64(0)
    for i in range(lo, hi):
        for k in range(scores.shape[1]):
            if (scores[i, k] > 0.0) != (target[i, k] > 0):
                wrong += units[i]
    return wrong

"""Compiled loops of the CPU backend. Each works on a range of rows or features, without the GIL, so that threads can share it.

The class axis is innermost and contiguous, so that one (row, feature) pair is a short vector addition; statistics are padded to
a multiple of four classes for it. The limit of a histogram is its additions: rows x features x classes int32 adds, at one
vector of 8 to 16 an instruction, each with a load and a store that mostly hit the first-level cache.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from gpuboost.backends.base import (
    BASELINE,
    CLOSED,
    CUT,
    FEATURE,
    GAIN,
    KEY,
    LEFT,
    MISSING_LEFT,
    SLOT,
    START,
    STOP,
)
from gpuboost.backends.simd import LANES, add_four
from gpuboost.binning import MISSING_CODE
from gpuboost.fixedpoint import STATE_FLOOR

Array = Any

compiled = njit(nogil=True, cache=True, error_model="numpy")

UNROLLED = 4
"""Up to this many vectors a row of statistics is added by code made for its width."""

ROW_BLOCK_BYTES = 192 * 1024
"""Rows are taken in blocks whose statistics stay in the second-level cache while all features pass over them."""


# ---- binning -----------------------------------------------------------------------------------------------------------------


@compiled
def bin_columns(lo: int, hi: int, values: Array, cut_values: Array, cut_offsets: Array, out: Array) -> None:
    """Code of x: 0 if missing, else 1 + number of cuts <= x, by a binary search without branches."""
    for f in range(lo, hi):
        first, n_cuts = cut_offsets[f], cut_offsets[f + 1] - cut_offsets[f]
        for i in range(values.shape[1]):
            x = values[f, i]
            below, width = 0, n_cuts
            while width > 0:
                half = (width + 1) // 2
                below += half * (cut_values[first + below + half - 1] <= x)
                width -= half
            out[f, i] = 0 if np.isnan(x) else 1 + below


# ---- row state and statistics ------------------------------------------------------------------------------------------------


@compiled
def maximum(lo: int, hi: int, state: Array) -> float:
    largest = np.zeros(state.shape[1])
    for i in range(lo, hi):
        for c in range(state.shape[1]):
            largest[c] = state[i, c] if state[i, c] > largest[c] else largest[c]
    return largest.max()


@compiled
def channel_sums(lo: int, hi: int, state: Array, repeat: Array, scale: float) -> Array:
    sums = np.zeros(state.shape[1], np.int64)
    for i in range(lo, hi):
        times = np.int64(repeat[i])
        for c in range(state.shape[1]):
            sums[c] += times * np.int64(np.rint(state[i, c] * scale))
    return sums


@compiled
def quantise(lo: int, hi: int, state: Array, signs: Array, repeat: Array, scale: float, q: Array) -> tuple[Array, Array]:
    n_channels = state.shape[1]
    signed, mass = np.zeros(n_channels, np.int64), np.zeros(n_channels, np.int64)
    for i in range(lo, hi):
        times = np.int32(repeat[i])
        for c in range(n_channels):
            units = np.int32(times * np.int32(np.rint(state[i, c] * scale)))
            value = np.int32(units * np.int32(signs[i, c]))
            q[i, c] = value
            signed[c] += np.int64(value)
            mass[c] += np.int64(units)
    return signed, mass


@compiled
def reweight(lo: int, hi: int, state: Array, signs: Array, group: Array, table: Array) -> float:
    n_channels = state.shape[1]
    largest = np.zeros(n_channels)
    for i in range(lo, hi):
        g = group[i]
        for c in range(n_channels):
            w = state[i, c]
            factor = table[g, 1, c] if signs[i, c] > 0 else table[g, 0, c]
            product = w * factor
            product = product if product > STATE_FLOOR else STATE_FLOOR
            product = product if w > 0.0 else 0.0
            state[i, c] = product
            largest[c] = product if product > largest[c] else largest[c]
    return largest.max()


@compiled
def flip(lo: int, hi: int, q: Array, group: Array, signs: Array, out: Array) -> Array:
    sums = np.zeros(signs.shape[1], np.int64)
    for i in range(lo, hi):
        g = group[i]
        for c in range(signs.shape[1]):
            value = np.int32(q[i, c] * np.int32(signs[g, c]))
            out[i, c] = value
            sums[c] += np.int64(value)
    return sums


@compiled
def group_sums(lo: int, hi: int, q: Array, group: Array, n_groups: int, n_channels: int) -> tuple[Array, Array]:
    signed, mass = np.zeros((n_groups, n_channels), np.int64), np.zeros((n_groups, n_channels), np.int64)
    for i in range(lo, hi):
        g = group[i]
        for c in range(n_channels):
            signed[g, c] += np.int64(q[i, c])
            mass[g, c] += np.int64(abs(q[i, c]))
    return signed, mass


# ---- histograms --------------------------------------------------------------------------------------------------------------


@compiled
def add_row(out: Array, i: int, q: Array, j: int, n_channels: int, lanes: tuple[int, ...]) -> None:
    """Add row j of ``q`` to row i of ``out``, both flat with ``n_channels`` entries a row.

    The length of ``lanes`` is known to the compiler, which unrolls the additions of up to `UNROLLED` vectors a row.
    """
    width = np.uint64(n_channels)
    target, source = np.uint64(i) * width, np.uint64(j) * width
    if len(lanes) > 0:
        for g in range(len(lanes)):
            add_four(out, target + np.uint64(LANES * g), q, source + np.uint64(LANES * g))
    elif n_channels >= LANES:
        for g in range(0, n_channels, LANES):
            add_four(out, target + np.uint64(g), q, source + np.uint64(g))
    else:
        for c in range(n_channels):
            out[target + np.uint64(c)] += q[source + np.uint64(c)]


@compiled
def histogram(
    lo: int,
    hi: int,
    codes: Array,
    usable: Array,
    bin_offsets: Array,
    skipped: Array,
    rows: Array,
    q: Array,
    out: Array,
    lanes: tuple[int, ...],
) -> None:
    """Add up ``q`` by bin over ``rows`` for the usable features lo..hi-1; ``out`` (n_bins_total, C) is overwritten.

    A feature with a most frequent bin worth skipping (``skipped >= 0``) first lists the rows of the other bins, without a branch;
    the skipped bin stays empty here, see `fill_skipped`.
    """
    n_channels = q.shape[1]
    flat_q, flat_out = q.reshape(-1), out.reshape(-1)
    block = max(256, ROW_BLOCK_BYTES // (4 * n_channels))
    listed = np.empty(min(block, max(len(rows), 1)), np.uint32)
    for u in range(lo, hi):
        f = usable[u]
        out[bin_offsets[f] : bin_offsets[f + 1]] = 0
    for start in range(0, len(rows), block):
        stop = min(len(rows), start + block)
        for u in range(lo, hi):
            f = usable[u]
            column, first = codes[f], bin_offsets[f]
            if skipped[f] < 0:
                for i in range(start, stop):
                    row = np.uint32(rows[i])
                    add_row(flat_out, first + column[row], flat_q, row, n_channels, lanes)
            else:
                skip = np.uint8(skipped[f])
                n_listed = 0
                for i in range(start, stop):
                    row = np.uint32(rows[i])
                    listed[n_listed] = row
                    n_listed += column[row] != skip
                for i in range(n_listed):
                    row = listed[i]
                    add_row(flat_out, first + column[row], flat_q, row, n_channels, lanes)


@compiled
def fill_skipped(lo: int, hi: int, usable: Array, bin_offsets: Array, skipped: Array, total: Array, out: Array) -> None:
    """Give each skipped bin the node's total minus all other bins: exact, because these are integers."""
    n_channels = out.shape[1]
    rest = np.empty(n_channels, np.int32)
    for u in range(lo, hi):
        f = usable[u]
        if skipped[f] >= 0:
            rest[:] = 0
            for c in range(len(total)):
                rest[c] = total[c]
            for b in range(bin_offsets[f], bin_offsets[f + 1]):
                for c in range(n_channels):
                    rest[c] -= out[b, c]
            out[bin_offsets[f] + skipped[f]] = rest


@compiled
def subtract(lo: int, hi: int, usable: Array, bin_offsets: Array, parent: Array, child: Array) -> None:
    """Turn the parent's histogram into that of the other child."""
    for u in range(lo, hi):
        f = usable[u]
        for b in range(bin_offsets[f], bin_offsets[f + 1]):
            for c in range(child.shape[1]):
                parent[b, c] -= child[b, c]


@compiled
def child_histograms(
    lo: int,
    hi: int,
    codes: Array,
    usable: Array,
    bin_offsets: Array,
    skipped: Array,
    rows: Array,
    q: Array,
    total: Array,
    child: Array,
    parent: Array,
    lanes: tuple[int, ...],
) -> None:
    """Histogram of the smaller child from its rows, of the larger one by subtraction in the parent's place."""
    histogram(lo, hi, codes, usable, bin_offsets, skipped, rows, q, child, lanes)
    fill_skipped(lo, hi, usable, bin_offsets, skipped, total, child)
    if len(parent):
        subtract(lo, hi, usable, bin_offsets, parent, child)


# ---- sweeps ------------------------------------------------------------------------------------------------------------------


@compiled
def sweep(
    lo: int, hi: int, usable: Array, bin_offsets: Array, has_missing: Array, histogram: Array, total: Array
) -> tuple[int, int, int, int]:
    """Return (score, feature, cut, missing_left) of the best cut of the usable features lo..hi-1; feature -1 if none beats the
    constant classifier."""
    n_channels = histogram.shape[1]
    edges, start = np.zeros(n_channels, np.int32), np.zeros(n_channels, np.int32)
    best_score, best_feature, best_cut, best_side = np.int64(0), -1, 0, 0
    for c in range(len(total)):
        start[c] = total[c]
        best_score += abs(total[c])
    for u in range(lo, hi):
        f = usable[u]
        first, n_bins = bin_offsets[f], bin_offsets[f + 1] - bin_offsets[f]
        if not has_missing[f]:  # both sides are the same; missing-left is the first
            edges[:] = start
            for cut in range(1, n_bins - 1):
                score = np.int64(0)
                for c in range(n_channels):
                    edge = edges[c] - 2 * histogram[first + cut, c]
                    edges[c] = edge
                    score += abs(edge)
                if score > best_score:
                    best_score, best_feature, best_cut, best_side = score, f, cut, 1
            continue
        edges[:] = start
        for cut in range(1, n_bins):
            left_score, right_score = np.int64(0), np.int64(0)
            for c in range(n_channels):
                edge = edges[c] - 2 * histogram[first + cut, c]
                edges[c] = edge
                right_score += abs(edge)
                left_score += abs(edge - 2 * histogram[first + MISSING_CODE, c])
            if left_score > best_score:
                best_score, best_feature, best_cut, best_side = left_score, f, cut, 1
            if right_score > best_score:
                best_score, best_feature, best_cut, best_side = right_score, f, cut, 0
    return best_score, best_feature, best_cut, best_side


@compiled
def settle(
    score: int,
    feature: int,
    cut: int,
    missing_left: int,
    bin_offsets: Array,
    histogram: Array,
    node: Array,
    total: Array,
    edges: Array,
) -> None:
    """Write the best classifier into the node's row of the node table, and queue the node."""
    node[FEATURE], node[CUT], node[MISSING_LEFT] = feature, cut, missing_left
    node[KEY] = score - node[BASELINE]
    edges[:] = total
    if feature >= 0:
        first = bin_offsets[feature]
        for b in range(first + 1 - missing_left, first + cut + 1):
            for c in range(len(edges)):
                edges[c] -= 2 * np.int64(histogram[b, c])


# ---- growing -----------------------------------------------------------------------------------------------------------------


@compiled
def select(step: int, nodes: Array, current: Array) -> bool:
    found = False
    for t in range(len(current)):
        best = 0
        for m in range(1, min(2 * step + 1, nodes.shape[1])):
            if nodes[t, m, KEY] > nodes[t, best, KEY]:
                best = m
        node = nodes[t, best]
        current[t] = -1
        if node[KEY] > 0:
            found = True
            current[t] = best
            node[GAIN], node[KEY] = node[KEY], CLOSED
            if node[FEATURE] >= 0:
                node[LEFT] = 2 * step + 1
    return found


@compiled
def partition(codes: Array, rows: Array, buffer: Array, nodes: Array, totals: Array, edges: Array, m: int) -> None:
    """Divide node m of one tree; rows keep their order on both sides, which keeps later reads sequential."""
    node = nodes[m]
    start, stop, child = node[START], node[STOP], node[LEFT]
    column = codes[node[FEATURE]]
    # Left iff low <= code <= cut, where low admits or refuses the missing code 0: one comparison, modulo 256.
    low = np.uint8(1 - node[MISSING_LEFT])
    span = np.uint8(node[CUT] - (1 - node[MISSING_LEFT]))
    n_left = n_right = 0
    for i in range(start, stop):
        row = rows[i]
        goes_left = np.uint8(column[row] - low) <= span
        rows[start + n_left] = row
        buffer[n_right] = row
        n_left += goes_left
        n_right += not goes_left
    middle = start + n_left
    rows[middle:stop] = buffer[:n_right]
    nodes[child, START], nodes[child, STOP] = start, middle
    nodes[child + 1, START], nodes[child + 1, STOP] = middle, stop
    for c in range(totals.shape[1]):
        vote = 1 if edges[m, c] > 0 else -1  # eq. 13
        totals[child, c] = (totals[m, c] - edges[m, c]) // 2
        totals[child + 1, c] = (totals[m, c] + edges[m, c]) // 2
        nodes[child, BASELINE] -= vote * totals[child, c]
        nodes[child + 1, BASELINE] += vote * totals[child + 1, c]


@compiled
def expand_children(
    codes: Array,
    usable: Array,
    bin_offsets: Array,
    has_missing: Array,
    skipped: Array,
    rows: Array,
    q: Array,
    nodes: Array,
    totals: Array,
    edges: Array,
    histograms: Array,
    small: int,
    large: int,
    lanes: tuple[int, ...],
) -> None:
    """Histograms and best classifiers of two siblings (or of the root, if ``large`` is -1) in one call, on one thread."""
    child = histograms[nodes[small, SLOT]]
    parent = histograms[nodes[large, SLOT]] if large >= 0 else child[:0]
    own = rows[nodes[small, START] : nodes[small, STOP]]
    n = len(usable)
    child_histograms(0, n, codes, usable, bin_offsets, skipped, own, q, totals[small], child, parent, lanes)
    for m in (small, large):
        if m >= 0:
            h = histograms[nodes[m, SLOT]]
            score, f, cut, side = sweep(0, n, usable, bin_offsets, has_missing, h, totals[m])
            settle(score, f, cut, side, bin_offsets, h, nodes[m], totals[m], edges[m])


@compiled
def node_of_rows(rows: Array, nodes: Array, out: Array) -> None:
    for m in range(len(nodes)):
        if nodes[m, LEFT] == 0:
            for i in range(nodes[m, START], nodes[m, STOP]):
                out[rows[i]] = m


# ---- using trees -------------------------------------------------------------------------------------------------------------


@compiled
def apply(
    lo: int,
    hi: int,
    codes: Array,
    first: int,
    feature: Array,
    cut: Array,
    missing_left: Array,
    left: Array,
    right: Array,
    out: Array,
) -> None:
    for i in range(lo, hi):
        node = first
        while node >= 0:
            code = codes[feature[node], i]
            goes_left = code <= cut[node] and (code != MISSING_CODE or missing_left[node])
            node = left[node] if goes_left else right[node]
        out[i] = ~node


@compiled
def predict(
    lo: int,
    hi: int,
    codes: Array,
    node_offset: Array,
    leaf_offset: Array,
    feature: Array,
    cut: Array,
    missing_left: Array,
    left: Array,
    right: Array,
    values: Array,
    first: int,
    stop: int,
    scores: Array,
) -> None:
    """Walk a block of rows through all trees: the rows' codes and scores and one tree at a time fit into the nearest cache."""
    n_features = codes.shape[0]
    block = max(1, min(256, 32768 // max(n_features, 1)))
    own = np.empty((block, n_features), np.uint8)
    for begin in range(lo, hi, block):
        n = min(hi, begin + block) - begin
        for f in range(n_features):
            for i in range(n):
                own[i, f] = codes[f, begin + i]
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
def add_scores(lo: int, hi: int, scores: Array, group: Array, values: Array) -> None:
    for i in range(lo, hi):
        g = group[i]
        for k in range(scores.shape[1]):
            scores[i, k] += values[g, k]


@compiled
def class_errors(lo: int, hi: int, scores: Array, target: Array, units: Array) -> int:
    wrong = np.int64(0)
    for i in range(lo, hi):
        own = scores[i, target[i]]
        n_above = 0
        for k in range(target[i]):  # a tie is lost to a lower class
            n_above += scores[i, k] >= own
        for k in range(target[i] + 1, scores.shape[1]):
            n_above += scores[i, k] > own
        wrong += units[i] * (n_above > 0)
    return wrong


@compiled
def sign_errors(lo: int, hi: int, scores: Array, target: Array, units: Array) -> int:
    wrong = np.int64(0)
    for i in range(lo, hi):
        for k in range(scores.shape[1]):
            if (scores[i, k] > 0.0) != (target[i, k] > 0):
                wrong += units[i]
    return wrong

"""Compiled loops of the CPU backend that search histograms for a node's best cut: a sweep for every criterion.

They work on a range of features, without the GIL, so that threads can share them.
"""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, compiled
from gpuboost.backends.cpu.loops.histograms import add_row, fill_skipped_bin
from gpuboost.backends.cpu.simd import LANES, move_row, sweep_row
from gpuboost.backends.frontier import BASELINE, CUT, FEATURE, KEY, MISSING_LEFT, SLOT
from gpuboost.backends.statistics import Stats
from gpuboost.binning import MISSING_CODE

Best = tuple[Int, Int, Int, Int]
"""(score, feature, cut, missing_left); feature -1 is the constant classifier. Scores are integers, or the bits of floats."""

EDGE, GINI, NEWTON, REBEL = 0, 1, 2, 3
"""Stand for the criteria in the arguments of compiled functions."""


def criterion_number(stats: Stats) -> int:
    """Return what stands for the statistics' criterion in compiled functions."""
    return {"edge": EDGE, "gini": GINI, "newton": NEWTON, "rebel": REBEL}[stats.criterion]


@compiled
def sweep(
    f: int,
    bin_offsets: Array,
    has_missing: Array,
    histogram: Array,
    start: Array,
    edges: Array,
    n_classes: int,
    min_count: int,
    best: Best,
    lanes: tuple[int, ...],
) -> Best:
    """Return the best of ``best`` and all cuts of feature f. ``start`` are the channel totals, ``edges`` is scratch."""
    n_channels = histogram.shape[1]
    first, n_bins = bin_offsets[f], bin_offsets[f + 1] - bin_offsets[f]
    score, feature, chosen, side = best
    flat = histogram.reshape(-1)
    edges[:] = start
    if not has_missing[f]:  # missing-left and missing-right are the same; left comes first
        for cut in range(1, n_bins - 1):
            at = (first + cut) * n_channels
            found = np.int64(0)
            if len(lanes) > 0:
                found = sweep_row(edges, flat, np.uint64(at), lanes)
            else:
                for c in range(n_channels):
                    edge = edges[c] - 2 * flat[at + c]
                    edges[c] = edge
                    found += abs(edge)
            if min_count > 0:
                unbalance = abs(np.int64(edges[n_classes]))  # of the counts: the smaller side has half of the rest
                found = found - unbalance if start[n_classes] - unbalance >= 2 * min_count else np.int64(-1)
            if found > score:
                score, feature, chosen, side = found, f, cut, 1
        return score, feature, chosen, side
    for cut in range(1, n_bins):
        left, right = np.int64(0), np.int64(0)
        for c in range(n_channels):
            edge = edges[c] - 2 * histogram[first + cut, c]
            edges[c] = edge
            if c < n_classes:
                right += abs(edge)
                left += abs(edge - 2 * histogram[first + MISSING_CODE, c])
        if min_count > 0:
            right_unbalance = abs(np.int64(edges[n_classes]))
            left_unbalance = abs(np.int64(edges[n_classes]) - 2 * histogram[first + MISSING_CODE, n_classes])
            right = right if start[n_classes] - right_unbalance >= 2 * min_count else np.int64(-1)
            left = left if start[n_classes] - left_unbalance >= 2 * min_count else np.int64(-1)
        if left > score:
            score, feature, chosen, side = left, f, cut, 1
        if right > score:
            score, feature, chosen, side = right, f, cut, 0
    return score, feature, chosen, side


@compiled
def purity(sums: Array, n_classes: int) -> float:
    """Return the sum of the squares over the sum, see `gpuboost.backends.base.Backend.find_splits`."""
    squares, total = 0.0, np.int64(0)
    for c in range(n_classes):
        s = np.float64(sums[c])
        squares += s * s
        total += sums[c]
    return squares / np.float64(total) if total > 0 else 0.0


@compiled
def gini(left: Array, start: Array, n_classes: int, whole: float) -> float:
    """Return what it adds to the purity ``whole`` of a node with the sums ``start`` to have ``left`` apart."""
    left_squares, right_squares = 0.0, 0.0
    left_total, right_total = np.int64(0), np.int64(0)
    for c in range(n_classes):
        a, b = np.int64(left[c]), np.int64(start[c]) - np.int64(left[c])
        x, y = np.float64(a), np.float64(b)
        left_squares += x * x
        right_squares += y * y
        left_total += a
        right_total += b
    one = left_squares / np.float64(left_total) if left_total > 0 else 0.0
    other = right_squares / np.float64(right_total) if right_total > 0 else 0.0
    return one + other - whole


@compiled
def rounding(start: Array, n_classes: int) -> float:
    """Return more than what rounding can do to the difference of two scores of a node, or to 256 additions to a score.

    A purity is right to n_classes + 2 units in the last place (2**-53) of the node's weight, so a score is to 2 n_classes + 7.
    """
    weight = np.int64(0)
    for c in range(n_classes):
        weight += np.int64(start[c])
    return (n_classes + 128) * 2.0**-50 * np.float64(weight)


@compiled
def move(left: Array, i: int, histogram: Array, j: int, n_channels: int) -> Int:
    """Add row j of ``histogram`` to row i of ``left``, both flat with ``n_channels`` entries a row. Return its sum."""
    if n_channels >= LANES:
        at, source = np.uint64(i * n_channels), np.uint64(j * n_channels)
        return np.int64(move_row(left, at, histogram, source, np.uint64(n_channels // LANES)))
    moved = np.int64(0)
    for c in range(n_channels):
        left[i * n_channels + c] += histogram[j * n_channels + c]
        moved += histogram[j * n_channels + c]
    return moved


@compiled
def sweep_gini(
    f: int,
    bin_offsets: Array,
    has_missing: Array,
    histogram: Array,
    start: Array,
    n_classes: int,
    min_count: int,
    whole: float,
    best: Best,
) -> Best:
    """As `sweep`, for the criterion "gini"; ``whole`` is the node's purity.

    To move a mass m to the other side changes the score by at most 2 m, since no derivative of a purity is beyond 1. So
    the scores of the next cuts are bounded, and one is worked out only where its bound is above the best.
    """
    n_channels = histogram.shape[1]
    first, n_bins = bin_offsets[f], bin_offsets[f + 1] - bin_offsets[f]
    score, feature, chosen, side = best
    most = np.int64(score).view(np.float64)
    flat, n_sides = histogram.reshape(-1), 2 if has_missing[f] else 1
    both = np.zeros((2, n_channels), np.int32)  # of the cuts with the missing values on the left and on the right
    flat_both, bounds = both.reshape(-1), np.full(2, np.inf)
    add_row(flat_both, 0, flat, first + MISSING_CODE, n_channels, ())
    slack = rounding(start, n_classes)
    for cut in range(1, n_bins + n_sides - 2):
        moved = move(flat_both, 0, flat, first + cut, n_channels)
        if n_sides == 2:
            add_row(flat_both, 1, flat, first + cut, n_channels, ())
        for s in range(n_sides):
            bounds[s] += 2.0 * np.float64(moved)
            if bounds[s] <= most:
                continue
            if min_count > 0:
                count = np.int64(both[s, n_classes])
                if min(count, np.int64(start[n_classes]) - count) < min_count:
                    continue
            found = gini(both[s], start, n_classes, whole)
            bounds[s] = found + slack
            if found > most:
                most, feature, chosen, side = found, f, cut, 1 - s
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def newton_gain(gradient: int, curvature: int) -> float:
    g = np.float64(gradient)
    return g * g / np.float64(curvature) if curvature != 0 else 0.0


@compiled
def sweep_newton(
    f: int,
    bin_offsets: Array,
    has_missing: Array,
    histogram: Array,
    start: Array,
    n_classes: int,
    min_count: int,
    whole: float,
    best: Best,
) -> Best:
    """As `sweep`, for the criterion "newton"; ``whole`` is the node's gain.

    A cut after an empty bin is worth what the cut before the bin is, which comes first.
    """
    first, n_bins = bin_offsets[f], bin_offsets[f + 1] - bin_offsets[f]
    score, feature, chosen, side = best
    most = np.int64(score).view(np.float64)
    all_g, all_h = np.int64(start[0]), np.int64(start[1])
    all_n = np.int64(start[n_classes]) if min_count > 0 else 0
    missing_g, missing_h = np.int64(histogram[first, 0]), np.int64(histogram[first, 1])
    missing_n = np.int64(histogram[first, n_classes]) if min_count > 0 else 0
    last = n_bins if has_missing[f] else n_bins - 1
    right_g, right_h, right_n = np.int64(0), np.int64(0), np.int64(0)  # on the left with the missing values on the right
    for cut in range(1, last):
        h = histogram[first + cut]
        if cut > 1 and h[0] == 0 and h[1] == 0 and (min_count == 0 or h[n_classes] == 0):
            continue
        right_g += h[0]
        right_h += h[1]
        if min_count > 0:
            right_n += h[n_classes]
        for missing_left in range(1, -1 if has_missing[f] else 0, -1):
            a, b, n = right_g, right_h, right_n
            if missing_left:
                a, b, n = a + missing_g, b + missing_h, n + missing_n
            if b <= 0 or b >= all_h or (min_count > 0 and min(n, all_n - n) < min_count):
                continue
            x, y = np.float64(a), np.float64(all_g - a)
            found = x * x / np.float64(b) + y * y / np.float64(all_h - b) - whole
            if found > most:
                most, feature, chosen, side = found, f, cut, missing_left
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def exponential_loss(edges: Array, sum_abs: Array, roots: Array) -> float:
    """Return the loss of the best coefficients, see `gpuboost.backends.base.Backend.find_splits`. ``roots`` is scratch.

    Without the sum, which has to be taken in order, the loop over the classes is vector code.
    """
    for c in range(len(roots)):
        edge = np.int64(edges[c])
        roots[c] = np.sqrt(np.float64(sum_abs[c] + edge) * np.float64(sum_abs[c] - edge))
    loss = 0.0
    for c in range(len(roots)):
        loss += roots[c]
    return loss


@compiled
def sweep_rebel(
    f: int,
    bin_offsets: Array,
    has_missing: Array,
    histogram: Array,
    start: Array,
    n_classes: int,
    min_count: int,
    sum_abs: Array,
    roots: Array,
    best: Best,
) -> Best:
    """As `sweep`, for the criterion "rebel"; ``sum_abs`` are the root's sums of abs(quantised), ``roots`` is scratch."""
    n_channels = histogram.shape[1]
    first, n_bins = bin_offsets[f], bin_offsets[f + 1] - bin_offsets[f]
    score, feature, chosen, side = best
    most, whole = np.int64(score).view(np.float64), exponential_loss(start, sum_abs, roots)
    both = np.zeros((2, n_channels), np.int32)  # edges of the cuts with the missing values on the right and on the left
    for c in range(n_channels):
        both[0, c] = start[c]
        both[1, c] = start[c] - 2 * histogram[first + MISSING_CODE, c]
    for cut in range(1, n_bins if has_missing[f] else n_bins - 1):
        for c in range(n_channels):
            h = 2 * histogram[first + cut, c]
            both[0, c] -= h
            both[1, c] -= h
        for missing_left in range(1, -1 if has_missing[f] else 0, -1):
            edges = both[missing_left]
            if min_count > 0 and start[n_classes] - abs(np.int64(edges[n_classes])) < 2 * min_count:
                continue
            found = whole - exponential_loss(edges, sum_abs, roots)
            if found > most:
                most, feature, chosen, side = found, f, cut, missing_left
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def finish_histogram(
    lo: int,
    hi: int,
    usable: Array,
    bin_offsets: Array,
    has_missing: Array,
    skipped: Array,
    total: Array,
    other_total: Array,
    sum_abs: Array,
    n_classes: int,
    min_count: int,
    criterion: int,
    parts: Array,
    child: Array,
    other: Array,
    lanes: tuple[int, ...],
) -> tuple[Best, Best]:
    """Finish the histograms of the usable features lo..hi-1 and sweep them while they are in the cache.

    ``child`` is the node whose rows were counted. ``other`` holds its parent's histogram and gets its sibling's; for a root it
    is empty. ``sum_abs`` are the root's sums of abs(quantised), for the criterion "rebel".
    """
    n_channels = child.shape[1]
    edges, starts = np.zeros(n_channels, np.int32), np.zeros((2, n_channels), np.int32)
    start, other_start = starts[0], starts[1]
    score, other_score = np.int64(0), np.int64(0)
    for c in range(len(total)):
        start[c], other_start[c] = total[c], other_total[c]
        if c < n_classes and criterion == EDGE:
            score += abs(total[c])
            other_score += abs(other_total[c])
    best, other_best = (score, -1, 0, 0), (other_score, -1, 0, 0)
    whole, other_whole = 0.0, 0.0
    if criterion == GINI:
        whole, other_whole = purity(start, n_classes), purity(other_start, n_classes)
    elif criterion == NEWTON:
        whole, other_whole = newton_gain(start[0], start[1]), newton_gain(other_start[0], other_start[1])
    roots = np.empty(len(sum_abs), np.float64)
    for u in range(lo, hi):
        f = usable[u]
        fill_skipped_bin(f, bin_offsets, skipped, total, parts, child, other, edges, lanes)
        if criterion == REBEL:
            best = sweep_rebel(f, bin_offsets, has_missing, child, start, n_classes, min_count, sum_abs, roots, best)
            continue
        if criterion == GINI:
            best = sweep_gini(f, bin_offsets, has_missing, child, start, n_classes, min_count, whole, best)
            if len(other):
                other_best = sweep_gini(
                    f, bin_offsets, has_missing, other, other_start, n_classes, min_count, other_whole, other_best
                )
            continue
        if criterion == NEWTON:
            best = sweep_newton(f, bin_offsets, has_missing, child, start, n_classes, min_count, whole, best)
            if len(other):
                other_best = sweep_newton(
                    f, bin_offsets, has_missing, other, other_start, n_classes, min_count, other_whole, other_best
                )
            continue
        best = sweep(f, bin_offsets, has_missing, child, start, edges, n_classes, min_count, best, lanes)
        if len(other):
            other_best = sweep(f, bin_offsets, has_missing, other, other_start, edges, n_classes, min_count, other_best, lanes)
    return best, other_best


@compiled
def store_split(
    best: Best,
    bin_offsets: Array,
    histogram: Array,
    node: Array,
    total: Array,
    edges: Array,
) -> None:
    """Write the best classifier into the node's row of the node table, and queue the node."""
    score, feature, cut, missing_left = best
    node[FEATURE], node[CUT], node[MISSING_LEFT] = feature, cut, missing_left
    node[KEY] = score - node[BASELINE]
    edges[:] = total
    if feature >= 0:
        first = bin_offsets[feature]
        for b in range(first + 1 - missing_left, first + cut + 1):
            for c in range(len(edges)):
                edges[c] -= 2 * np.int64(histogram[b, c])


@compiled
def evaluate_siblings(
    usable: Array,
    bin_offsets: Array,
    has_missing: Array,
    skipped: Array,
    nodes: Array,
    totals: Array,
    edges: Array,
    histograms: Array,
    sum_abs: Array,
    n_classes: int,
    min_count: int,
    criterion: int,
    small: int,
    large: int,
    lanes: tuple[int, ...],
) -> None:
    """Best classifiers of two siblings, or of the root if ``large`` is -1. The rows of ``small`` have been counted."""
    child = histograms[nodes[small, SLOT]]
    other = histograms[nodes[large, SLOT]] if large >= 0 else child[:0]
    best, other_best = finish_histogram(
        0,
        len(usable),
        usable,
        bin_offsets,
        has_missing,
        skipped,
        totals[small],
        totals[large],
        sum_abs,
        n_classes,
        min_count,
        criterion,
        histograms[:0],
        child,
        other,
        lanes,
    )
    store_split(best, bin_offsets, child, nodes[small], totals[small], edges[small])
    if large >= 0:
        store_split(other_best, bin_offsets, other, nodes[large], totals[large], edges[large])

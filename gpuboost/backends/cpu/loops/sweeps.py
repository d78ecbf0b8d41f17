"""Compiled loops of the CPU backend that search a feature's histogram for a node's best cut: a sweep for every criterion."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpuboost.backends import criteria
from gpuboost.backends.cpu.jit import Array, Float, Int, Lanes, compiled, copy, inlined
from gpuboost.backends.cpu.loops import logarithm  # noqa: F401  (makes `minus_log2` known to the compiler)
from gpuboost.backends.cpu.loops.arguments import Bins, Columns, Node, Rule, SweepScratch
from gpuboost.backends.cpu.loops.histograms import add_row
from gpuboost.backends.cpu.simd import LANES, move_row, sweep_row
from gpuboost.backends.criteria import EDGE, ENTROPY, GINI, NEWTON, REBEL
from gpuboost.binning import MISSING_CODE

purity = compiled(criteria.purity)
gini = compiled(criteria.gini)
newton_gain = compiled(criteria.newton_gain)
newton = compiled(criteria.newton)
exponential_loss = compiled(criteria.exponential_loss)
weighted_entropy = compiled(criteria.weighted_entropy)
entropy = compiled(criteria.entropy)

Best = Any
"""A tuple (score, feature, cut, missing_left). Feature -1 is the constant classifier; scores are integers or bits of floats."""


@compiled
def constant_score(start: Array, rule: Rule) -> Int:
    """Return the score of the constant classifier of a node with these channel sums."""
    score = np.int64(0)
    if rule.criterion == EDGE:
        for c in range(rule.n_classes):
            score += abs(np.int64(start[c]))
    return score


@compiled
def worth(start: Array, sum_abs: Array, rule: Rule) -> Float:
    """Return what the scores of a node's cuts are compared with; 0 for the criterion "edge"."""
    if rule.criterion == GINI:
        return purity(start, rule.n_classes)
    if rule.criterion == NEWTON:
        return newton_gain(start[0], start[1])
    if rule.criterion == REBEL:
        return exponential_loss(start, sum_abs, np.empty(len(sum_abs), np.float64))
    if rule.criterion == ENTROPY:
        return weighted_entropy(start, rule.n_classes)
    return 0.0


@compiled
def sweep_edge(bins: Bins, histogram: Array, node: Node, rule: Rule, edges: Array, best: Best, lanes: Lanes) -> Best:
    """Return the best of ``best`` and all cuts of a feature. ``edges`` is scratch."""
    start, n_classes, min_count = node.start, rule.n_classes, rule.min_count
    n_channels = histogram.shape[1]
    f, first, n_bins, has_missing = bins
    score, feature, chosen, side = best
    flat = histogram.reshape(-1)
    copy(edges, start)
    if not has_missing:  # missing-left and missing-right are the same; left comes first
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
def sweep_gini(bins: Bins, histogram: Array, node: Node, rule: Rule, best: Best) -> Best:
    """As `sweep_edge`, for the criterion "gini".

    To move a mass m to the other side changes the score by at most 2 m, since no derivative of a purity is beyond 1. So
    the scores of the next cuts are bounded, and one is worked out only where its bound is above the best.
    """
    start, n_classes, min_count = node.start, rule.n_classes, rule.min_count
    n_channels, whole = histogram.shape[1], node.whole
    f, first, n_bins, has_missing = bins
    score, feature, chosen, side = best
    most = np.int64(score).view(np.float64)
    flat, n_sides = histogram.reshape(-1), 2 if has_missing else 1
    both = np.zeros((2, n_channels), histogram.dtype)  # of the cuts with the missing values on the left and on the right
    flat_both, bounds = both.reshape(-1), np.empty(2, np.float64)
    bounds[0], bounds[1] = np.inf, np.inf
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
def sweep_newton(bins: Bins, histogram: Array, node: Node, rule: Rule, best: Best) -> Best:
    """As `sweep_edge`, for the criterion "newton".

    A cut after an empty bin is worth what the cut before the bin is, which comes first.
    """
    start, n_classes, min_count = node.start, rule.n_classes, rule.min_count
    f, first, n_bins, has_missing = bins
    score, feature, chosen, side = best
    most = np.int64(score).view(np.float64)
    all_g, all_h = np.int64(start[0]), np.int64(start[1])
    all_n = np.int64(start[n_classes]) if min_count > 0 else 0
    missing_g, missing_h = np.int64(histogram[first, 0]), np.int64(histogram[first, 1])
    missing_n = np.int64(histogram[first, n_classes]) if min_count > 0 else 0
    last = n_bins if has_missing else n_bins - 1
    right_g, right_h, right_n = np.int64(0), np.int64(0), np.int64(0)  # on the left with the missing values on the right
    for cut in range(1, last):
        h = histogram[first + cut]
        if cut > 1 and h[0] == 0 and h[1] == 0 and (min_count == 0 or h[n_classes] == 0):
            continue
        right_g += h[0]
        right_h += h[1]
        if min_count > 0:
            right_n += h[n_classes]
        for missing_left in range(1, -1 if has_missing else 0, -1):
            a, b, n = right_g, right_h, right_n
            if missing_left:
                a, b, n = a + missing_g, b + missing_h, n + missing_n
            if b <= 0 or b >= all_h or (min_count > 0 and min(n, all_n - n) < min_count):
                continue
            found = newton(a, b, all_g, all_h, node.whole)
            if found > most:
                most, feature, chosen, side = found, f, cut, missing_left
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def sweep_rebel(bins: Bins, histogram: Array, node: Node, rule: Rule, roots: Array, best: Best) -> Best:
    """As `sweep_edge`, for the criterion "rebel". ``roots`` is scratch."""
    start, n_classes, min_count = node.start, rule.n_classes, rule.min_count
    n_channels = histogram.shape[1]
    f, first, n_bins, has_missing = bins
    score, feature, chosen, side = best
    most = np.int64(score).view(np.float64)
    both = np.zeros((2, n_channels), histogram.dtype)  # edges of the cuts with the missing values on the right and on the left
    for c in range(n_channels):
        both[0, c] = start[c]
        both[1, c] = start[c] - 2 * histogram[first + MISSING_CODE, c]
    for cut in range(1, n_bins if has_missing else n_bins - 1):
        for c in range(n_channels):
            h = 2 * histogram[first + cut, c]
            both[0, c] -= h
            both[1, c] -= h
        for missing_left in range(1, -1 if has_missing else 0, -1):
            edges = both[missing_left]
            if min_count > 0 and start[n_classes] - abs(np.int64(edges[n_classes])) < 2 * min_count:
                continue
            found = node.whole - exponential_loss(edges, node.sum_abs, roots)
            if found > most:
                most, feature, chosen, side = found, f, cut, missing_left
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def sweep_entropy(bins: Bins, histogram: Array, node: Node, rule: Rule, best: Best) -> Best:
    """As `sweep_edge`, for the criterion "entropy". A cut after an empty bin is worth what the cut before the bin is."""
    start, n_classes, min_count = node.start, rule.n_classes, rule.min_count
    f, first, n_bins, has_missing = bins
    n_channels, n_sides = histogram.shape[1], 2 if has_missing else 1
    score, feature, chosen, side = best
    most = np.int64(score).view(np.float64)
    flat, both = histogram.reshape(-1), np.zeros((2, n_channels), histogram.dtype)
    flat_both = both.reshape(-1)  # left sums of the cuts with the missing values on the left and on the right
    add_row(flat_both, 0, flat, first + MISSING_CODE, n_channels, ())
    for cut in range(1, n_bins + n_sides - 2):
        moved = move(flat_both, 0, flat, first + cut, n_channels)
        if n_sides == 2:
            add_row(flat_both, 1, flat, first + cut, n_channels, ())
        if moved == 0 and cut > 1:
            continue
        for s in range(n_sides):
            count = np.int64(both[s, n_classes]) if min_count > 0 else 0
            if min_count > 0 and min(count, np.int64(start[n_classes]) - count) < min_count:
                continue
            found = entropy(both[s], start, n_classes, node.whole)
            if found > most:
                most, feature, chosen, side = found, f, cut, 1 - s
    return np.float64(most).view(np.int64), feature, chosen, side


@inlined
def sweep(
    f: int, columns: Columns, histogram: Array, node: Node, rule: Rule, scratch: SweepScratch, best: Best, lanes: Lanes
) -> Best:
    """Return the best of ``best`` and all cuts of feature f by the rule's criterion."""
    first = columns.bin_offsets[f]
    bins = Bins(f, first, columns.bin_offsets[f + 1] - first, columns.has_missing[f])
    if rule.criterion == EDGE:
        return sweep_edge(bins, histogram, node, rule, scratch.edges, best, lanes)
    if rule.criterion == GINI:
        return sweep_gini(bins, histogram, node, rule, best)
    if rule.criterion == NEWTON:
        return sweep_newton(bins, histogram, node, rule, best)
    if rule.criterion == REBEL:
        return sweep_rebel(bins, histogram, node, rule, scratch.roots, best)
    return sweep_entropy(bins, histogram, node, rule, best)

"""Compiled loops of the CPU backend that turn histograms into the best splits of nodes.

They work on a range of features, without the GIL, so that threads can share them.
"""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Lanes, compiled, copy, inlined
from gpuboost.backends.cpu.loops.arguments import Columns, GrowingTree, Node, Rule, Siblings, SweepScratch
from gpuboost.backends.cpu.loops.histograms import fill_skipped_bin
from gpuboost.backends.cpu.loops.sweeps import Best, constant_score, sweep, worth
from gpuboost.backends.frontier import BASELINE, CUT, FEATURE, KEY, MISSING_LEFT, SLOT


@compiled
def padded_sums(total: Array, histogram: Array) -> Array:
    """Return channel sums in the width and the type of a histogram's rows, padded with zeros."""
    sums = np.zeros(histogram.shape[1], histogram.dtype)
    copy(sums, total)
    return sums


@compiled
def finish_histograms(
    lo: int, hi: int, columns: Columns, pair: Siblings, sum_abs: Array, rule: Rule, parts: Array, lanes: Lanes
) -> tuple[Best, Best]:
    """Finish the histograms of the usable features lo..hi-1 and sweep them while they are in the cache.

    ``sum_abs`` are the root's sums of abs(quantised), for the criterion "rebel".
    """
    start, other_start = padded_sums(pair.total, pair.child), padded_sums(pair.other_total, pair.child)
    node = Node(start, sum_abs, worth(start, sum_abs, rule))
    other = Node(other_start, sum_abs, worth(other_start, sum_abs, rule))
    none, first = np.int64(-1), np.int64(0)  # as of a split: literals would compile the sweeps once more
    best = (constant_score(start, rule), none, first, first)
    other_best = (constant_score(other_start, rule), none, first, first)
    scratch = SweepScratch(np.zeros(len(start), start.dtype), np.empty(len(sum_abs), np.float64))
    for u in range(lo, hi):
        f = columns.usable[u]
        fill_skipped_bin(f, columns, pair, parts, scratch.edges, lanes)
        best = sweep(f, columns, pair.child, node, rule, scratch, best, lanes)
        if len(pair.other):
            other_best = sweep(f, columns, pair.other, other, rule, scratch, other_best, lanes)
    return best, other_best


@compiled
def store_split(best: Best, bin_offsets: Array, histogram: Array, node: Array, total: Array, edges: Array) -> None:
    """Write the best classifier into the node's row of the node table, and queue the node."""
    score, feature, cut, missing_left = best
    node[FEATURE], node[CUT], node[MISSING_LEFT] = feature, cut, missing_left
    node[KEY] = score - node[BASELINE]
    copy(edges, total)
    if feature >= 0:
        first = bin_offsets[feature]
        for b in range(first + 1 - missing_left, first + cut + 1):
            for c in range(len(edges)):
                edges[c] -= 2 * np.int64(histogram[b, c])


@inlined
def evaluate_siblings(
    columns: Columns, tree: GrowingTree, histograms: Array, rule: Rule, small: int, large: int, lanes: Lanes
) -> None:
    """Best classifiers of two siblings, or of the root if ``large`` is -1. The rows of ``small`` have been counted."""
    nodes, totals, edges = tree.nodes, tree.totals, tree.edges
    child = histograms[nodes[small, SLOT]]
    other = histograms[nodes[large, SLOT]] if large >= 0 else child[:0]
    pair = Siblings(totals[small], totals[large], child, other)
    lo, hi, none = np.int64(0), len(columns.usable), histograms[:0]
    best, other_best = finish_histograms(lo, hi, columns, pair, tree.sum_abs, rule, none, lanes)
    store_split(best, columns.bin_offsets, child, nodes[small], totals[small], edges[small])
    if large >= 0:
        store_split(other_best, columns.bin_offsets, other, nodes[large], totals[large], edges[large])

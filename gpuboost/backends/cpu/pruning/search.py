"""Compiled loops that search features for a node's best cut by the occupied bins alone, for exact pruning.

A block of features is summed and searched at a time, in the second-level cache and from sums that are 0 before and after: few
rows cost what they occupy, not what there are bins. See `gpuboost.backends.cpu.pruning.bounds`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, Lanes, compiled, inlined
from gpuboost.backends.cpu.loops.arguments import Columns, Node, Rule
from gpuboost.backends.cpu.loops.histograms import AHEAD, add_row, differing
from gpuboost.backends.cpu.loops.sweeps import Best, constant_score, exponential_loss, gini, move, rounding, worth
from gpuboost.backends.cpu.one_hot import CLASS, WEIGHT
from gpuboost.backends.cpu.simd import lowest_bit, prefetch, sweep_row
from gpuboost.backends.criteria import GINI, REBEL
from gpuboost.binning import MISSING_CODE


class Memory(NamedTuple):
    """Scratch arrays. What is said to be 0 is so between calls.

    Attributes
    ----------
    histograms : ndarray of int32, shape (n_slots, n_bins_total, C)
    sums : ndarray of int32, shape (1 or n_blocks, bins of a block, C)
        0. Bins of one block of features, or of every block.
    occupied : ndarray of uint64, shape (n_blocks * width, 4)
        0. A bit for each bin of a feature that rows have been added to.
    bounds, scores : ndarray of int64, shapes (2, n_blocks * width) and (n_blocks * width,)
    found : ndarray of int64, shape (n_blocks, 4 + C)
        The best cut of each block, as `gpuboost.backends.cpu.loops.sweeps.Best`, and its edges.
    chosen : ndarray of uint64, shape (n_blocks,)
        The bits of some features.
    light : ndarray of int64, shape (2,)
        The masses of two siblings' light rows.
    counts : ndarray of int64, shape (4,)
    """

    histograms: Array
    sums: Array
    occupied: Array
    bounds: Array
    scores: Array
    found: Array
    chosen: Array
    light: Array
    counts: Array


class BlockSearch(NamedTuple):
    """What is searched, and where the scores go.

    Attributes
    ----------
    chosen : ndarray of uint64, shape (n_blocks,)
        The bits of the features that are searched.
    rows : ndarray of int32
        What to add, to the sums in ``histogram`` unless that is empty.
    histogram : ndarray of int32, shape (n_bins_total, C)
    start : ndarray of int32, shape (C,)
        Channel sums of the rows and of those in the histogram.
    sum_abs : ndarray of int64
        The root's sums of abs(quantised) over such rows, for the criterion "rebel".
    light : int
        The mass of the rows that are not there.
    scores : ndarray of int64
        Gets the best score of each chosen feature, or one that is too low to matter.
    """

    chosen: Array
    rows: Array
    histogram: Array
    start: Array
    sum_abs: Array
    light: Int
    scores: Array


@inlined
def fill(
    block: int,
    mask: int,
    columns: Columns,
    rows: Array,
    quantised: Array,
    one_hot: bool,
    sums: Array,
    occupied: Array,
    lanes: Lanes,
) -> Int:
    """Add up ``quantised`` over ``rows`` by bin of the block's features in ``mask``, without their skipped bins.

    Returns how many additions that were. See `gpuboost.backends.cpu.loops.histograms.histogram`.
    """
    n_rows, width = columns.blocks.shape[1:]
    n_columns, n_channels, first = quantised.shape[1], sums.shape[1], block * width
    base = columns.bin_offsets[first]
    flat_blocks, flat_q, flat, bins = columns.blocks.reshape(-1), quantised.reshape(-1), sums.reshape(-1), occupied.reshape(-1)
    one, n_added = np.uint64(1), np.int64(0)
    label, weight = np.uint64(0), np.int32(0)
    for i in range(len(rows)):
        row, later = np.int64(rows[i]), np.int64(rows[min(i + AHEAD, len(rows) - 1)])
        prefetch(flat_blocks, np.uint64((block * n_rows + later) * width))
        prefetch(flat_q, np.uint64(later * n_columns))
        if one_hot:
            label, weight = np.uint64(flat_q[row * n_columns + CLASS]), flat_q[row * n_columns + WEIGHT]
        at = (block * n_rows + row) * width
        bits = differing(flat_blocks, at, columns.skipped, first, width) & mask
        while bits != 0:
            n = np.int64(lowest_bit(bits))
            bits &= bits - one
            f, code = np.uint64(first + n), np.uint64(flat_blocks[np.uint64(at + n)])
            bins[np.uint64(4) * f + (code >> np.uint64(6))] |= one << (code & np.uint64(63))
            place = columns.bin_offsets[f] - base + np.int64(code)
            if one_hot:
                flat[np.uint64(place * n_channels) + label] += weight
            else:
                add_row(flat, place, flat_q, row, n_channels, lanes)
            n_added += 1
    return n_added


@compiled
def copy_sums(f: int, base: int, columns: Columns, histogram: Array, sums: Array, occupied: Array) -> None:
    """Copy the feature's sums from a histogram, whose rows need not be added again. Mark its bins as occupied."""
    n_channels = sums.shape[1]
    flat, source = sums.reshape(-1), histogram.reshape(-1)
    first, n_bins = columns.bin_offsets[f], columns.bin_offsets[f + 1] - columns.bin_offsets[f]
    skip = columns.skipped[f]
    for b in range(n_bins):
        if b != skip:
            occupied[f, b >> 6] |= np.uint64(1) << np.uint64(b & 63)
            for c in range(n_channels):
                flat[(first - base + b) * n_channels + c] = source[(first + b) * n_channels + c]


@compiled
def list_bins(f: int, skip: int, occupied: Array, bins: Array) -> Int:
    """Write the feature's bins that have to be looked at to ``bins``, in order; return their number.

    After an empty bin a cut is worth what it was before, and the first one wins. So these are the occupied and the skipped bin,
    and the first, if any values are missing.
    """
    one = np.uint64(1)
    occupied[f, skip >> 6] |= one << np.uint64(skip & 63)
    if occupied[f, 0] & one:
        occupied[f, 0] |= one << one
    n = 0
    for word in range(4):
        bits = occupied[f, word]
        occupied[f, word] = 0
        while bits != 0:
            bins[n] = 64 * word + np.int64(lowest_bit(bits))
            bits &= bits - one
            n += 1
    return n


@inlined
def fill_skipped_bin(at: int, bins: Array, skip: int, sums: Array, start: Array, work: Array, lanes: Lanes) -> None:
    """Give the skipped bin what all others leave."""
    n_channels = len(start)
    flat, others = sums.reshape(-1), work.reshape(-1)
    for c in range(n_channels):
        others[c] = 0
    for i in range(len(bins)):
        add_row(others, 0, flat, at + bins[i], n_channels, lanes)
    for c in range(n_channels):
        flat[(at + skip) * n_channels + c] = start[c] - others[c]


@compiled
def search_edge(f: int, at: int, bins: Array, sums: Array, start: Array, work: Array, best: Best, lanes: Lanes) -> Best:
    """As `gpuboost.backends.cpu.loops.sweeps.sweep_edge`, over the listed bins.

    The feature's sums begin in row ``at`` of ``sums``.
    """
    n_channels = len(start)
    score, feature, chosen, side = best
    flat, edges, missing = sums.reshape(-1), work[0], work[1]
    for c in range(n_channels):
        edges[c] = start[c]
        missing[c] = 2 * flat[at * n_channels + c]
    first = 1 if bins[0] == MISSING_CODE else 0
    for i in range(first, len(bins)):
        place = (at + bins[i]) * n_channels
        right, left = np.int64(0), np.int64(0)
        if first == 0 and len(lanes) > 0:
            right = sweep_row(edges, flat, np.uint64(place), lanes)
        else:
            for c in range(n_channels):
                edge = edges[c] - 2 * flat[place + c]
                edges[c] = edge
                right += abs(edge)
        if first == 1:
            for c in range(n_channels):
                left += abs(edges[c] - missing[c])
            if left > score:
                score, feature, chosen, side = left, f, bins[i], 1
        if right > score:
            score, feature, chosen, side = right, f, bins[i], 1 - first
    return score, feature, chosen, side


@compiled
def search_gini(f: int, at: int, bins: Array, sums: Array, node: Node, n_classes: int, work: Array, best: Best) -> Best:
    """As `gpuboost.backends.cpu.loops.sweeps.sweep_gini`, over the listed bins."""
    start, whole, n_channels = node.start, node.whole, len(node.start)
    score, feature, chosen, side = best
    most = np.int64(score).view(np.float64)
    flat, both, slack = sums.reshape(-1), work.reshape(-1), rounding(start, n_classes)
    n_sides = 2 if bins[0] == MISSING_CODE else 1
    for c in range(n_channels):
        both[c] = flat[at * n_channels + c] if n_sides == 2 else 0
        both[n_channels + c] = 0
    left_bound, right_bound = np.inf, np.inf
    for i in range(n_sides - 1, len(bins)):
        moved = 2.0 * np.float64(move(both, 0, flat, at + bins[i], n_channels))
        left_bound += moved
        if left_bound > most:
            found = gini(work[0], start, n_classes, whole)
            left_bound = found + slack
            if found > most:
                most, feature, chosen, side = found, f, bins[i], 1
        if n_sides == 2:
            add_row(both, 1, flat, at + bins[i], n_channels, ())
            right_bound += moved
            if right_bound > most:
                found = gini(work[1], start, n_classes, whole)
                right_bound = found + slack
                if found > most:
                    most, feature, chosen, side = found, f, bins[i], 0
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def search_rebel(f: int, at: int, bins: Array, sums: Array, node: Node, work: Array, best: Best) -> Best:
    """As `gpuboost.backends.cpu.loops.sweeps.sweep_rebel`, over the listed bins."""
    start, sum_abs, n_channels = node.start, node.sum_abs, len(node.start)
    score, feature, chosen, side = best
    most, roots, flat = np.int64(score).view(np.float64), np.empty(len(sum_abs), np.float64), sums.reshape(-1)
    n_sides = 2 if bins[0] == MISSING_CODE else 1
    for c in range(n_channels):
        work[0, c] = start[c] - (2 * flat[at * n_channels + c] if n_sides == 2 else 0)
        work[1, c] = start[c]
    for i in range(n_sides - 1, len(bins)):
        for s in range(n_sides):
            for c in range(n_channels):
                work[s, c] -= 2 * flat[(at + bins[i]) * n_channels + c]
            found = node.whole - exponential_loss(work[s], sum_abs, roots)
            if found > most:
                most, feature, chosen, side = found, f, bins[i], 1 - s
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def at_least(best: Best, constant: Int, criterion: int, light: int) -> Best:
    """Return what a feature has to beat on the heavy rows to matter, after ``best`` has been found on them.

    The light rows cannot take more than their mass from the purities of a cut, nor add more to those of another.
    """
    score = constant
    if criterion == GINI:
        score = np.float64(max(np.int64(best[0]).view(np.float64) - 2.0 * light, 0.0)).view(np.int64)
    return score, np.int64(-1), np.int64(0), np.int64(0)


@compiled
def write_edges(best: Best, at: int, sums: Array, start: Array, edges: Array) -> None:
    """Write the edges of a cut of the feature whose sums begin in row ``at``."""
    cut, missing_left = best[2], best[3]
    for c in range(len(start)):
        left = np.int64(0)
        for b in range(1 - missing_left, cut + 1):
            left += np.int64(sums[at + b, c])
        edges[c] = np.int64(start[c]) - 2 * left


@compiled
def clear(at: int, bins: Array, sums: Array) -> None:
    n_channels = sums.shape[1]
    flat = sums.reshape(-1)
    for i in range(len(bins)):
        place = np.uint64((at + bins[i]) * n_channels)
        for c in range(n_channels):
            flat[place + np.uint64(c)] = 0


@inlined
def search_feature(
    f: int, at: int, bins: Array, sums: Array, node: Node, rule: Rule, work: Array, best: Best, lanes: Lanes
) -> Best:
    """Return the best of ``best`` and the cuts after the listed bins of feature f, whose sums begin in row ``at``."""
    if rule.criterion == GINI:
        return search_gini(f, at, bins, sums, node, rule.n_classes, work, best)
    if rule.criterion == REBEL:
        return search_rebel(f, at, bins, sums, node, work, best)
    return search_edge(f, at, bins, sums, node.start, work, best, lanes)


@compiled
def search_blocks(
    lo: int, hi: int, columns: Columns, quantised: Array, task: BlockSearch, memory: Memory, rule: Rule, lanes: Lanes
) -> Int:
    """Sum and search the chosen features of the blocks lo..hi-1. Return the number of (row, feature) pairs that were added.

    ``memory.found`` gets the best cut of each block with its edges; its score is -1 if no cut beats the constant classifier.
    """
    width, start, chosen, occupied, found = columns.blocks.shape[2], task.start, task.chosen, memory.occupied, memory.found
    work, bins = np.zeros((2, len(start)), np.int32), np.empty(256, np.int64)
    constant, node = constant_score(start, rule), Node(start, task.sum_abs, worth(start, task.sum_abs, rule))
    top = (constant, np.int64(-1), np.int64(0), np.int64(0))
    n_added = np.int64(0)
    for block in range(lo, hi):
        best = (np.int64(-1), np.int64(-1), np.int64(0), np.int64(0))
        own = memory.sums[block % len(memory.sums)]
        base = columns.bin_offsets[min(block * width, len(columns.bin_offsets) - 1)]
        if len(task.histogram):
            bits = chosen[block]
            while bits != 0:
                f = block * width + np.int64(lowest_bit(bits))
                bits &= bits - np.uint64(1)
                copy_sums(f, base, columns, task.histogram, own, occupied)
        if chosen[block]:
            n_added += fill(block, chosen[block], columns, task.rows, quantised, rule.one_hot, own, occupied, lanes)
        bits = chosen[block]
        while bits != 0:
            f = block * width + np.int64(lowest_bit(bits))
            bits &= bits - np.uint64(1)
            at, skip = columns.bin_offsets[f] - base, np.int64(columns.skipped[f])
            listed = bins[: list_bins(f, skip, occupied, bins)]
            fill_skipped_bin(at, listed, skip, own, start, work, lanes)
            least = at_least(top, constant, rule.criterion, task.light)
            now = search_feature(f, at, listed, own, node, rule, work, least, lanes)
            task.scores[f] = now[0]
            if now[1] >= 0 and now[0] > best[0]:
                best = now
                write_edges(best, at, own, start, found[block, 4:])
            if now[0] > top[0]:
                top = now
            clear(at, listed, own)
        found[block, 0], found[block, 1], found[block, 2], found[block, 3] = best
    return n_added

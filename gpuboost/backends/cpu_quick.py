"""Compiled loops of exact pruning: the same trees from fewer additions (QuickBoost, chapter 3 of Appel's thesis).

The mass of a row is the sum of abs(q) over the classes. A root's rows are divided into heavy rows, which hold nearly all of its
mass, light rows, and rows without mass, which are never counted. Partitions keep this order within every node.

What a feature can reach on all rows of a node is bounded by what it reaches on the heavy ones (the thesis' proposition 3.2 and
appendix 7.2): no cut of more rows loses less than the best cut of some of them. With m for the heavy rows, W - W_m for the mass
of the light ones, and for the best score of a feature, its empty side included,

    "edge":   score <= score_m + (W - W_m),
    "gini":   score <= score_m + purity_m - purity + (W - W_m), the purities being those of the whole node,
    "rebel":  score <= score_m - loss_m + loss, the losses being those of the constant classifier.

So the light rows are counted for those features only whose bound is not below the best score that has been found. The two ways
to the sums of the heavy rows are those of all features at once: for many rows the histograms of `gpuboost.backends.cpu_growth`,
with the larger sibling by subtraction; for few rows, block by block of features in the second-level cache, visiting only bins
that hold any of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuboost.backends import cpu_growth
from gpuboost.backends.base import BASELINE, CUT, FEATURE, KEY, LEFT, MISSING_LEFT, SLOT, START, STOP
from gpuboost.backends.cpu_growth import AHEAD, EDGE, GINI, REBEL, Best, add_row, differing, gini, move, purity, rounding
from gpuboost.backends.cpu_one_hot import CLASS, WEIGHT
from gpuboost.backends.jit import Array, Float, Int, compiled
from gpuboost.backends.simd import lowest_bit, prefetch, sweep_row
from gpuboost.binning import MISSING_CODE

N_BUCKETS = 256
"""Masses are sorted into buckets by their exponent and the two bits behind it."""

HEAVY, LIGHT = 0, 1
"""Columns of ``stops``, where these rows of a node end."""

ADDED_HEAVY, ADDED_LIGHT, VISITED_LIGHT, LIGHT_ROWS = range(4)
"""Entries of ``counts``: (row, feature) pairs that were added for bounds, and to finish features; (row, block) pairs that were
looked at for the latter; the light rows of all nodes."""


class Rule(NamedTuple):
    """What the statistics are; see `gpuboost.backends.base.Stats`."""

    criterion: int
    n_classes: int
    one_hot: bool


class Columns(NamedTuple):
    """The codes of a `gpuboost.backends.cpu_backend.CpuMatrix`, the features that may be cut, and their bits in each block."""

    blocks: Array
    masks: Array
    usable: Array
    bin_offsets: Array
    has_missing: Array
    skipped: Array


class Growth(NamedTuple):
    """One tree while it grows.

    Attributes
    ----------
    rows, q, nodes, totals, edges : ndarray
        The tree's part of a `gpuboost.backends.base.Frontier`.
    mass : ndarray of int64, shape (n_rows,)
    level : ndarray of uint8, shape (n_rows,)
        0 for heavy rows, 1 for light rows, 2 for rows without mass.
    stops : ndarray of int64, shape (M, 2)
    heavy : ndarray of int32, shape (M, C)
        Channel sums of a node's heavy rows.
    class_mass : ndarray of int64, shape (n_classes,)
        The root's sums of abs(q), for the criterion "rebel".
    """

    rows: Array
    q: Array
    nodes: Array
    totals: Array
    edges: Array
    mass: Array
    level: Array
    stops: Array
    heavy: Array
    class_mass: Array


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
        The best cut of each block, as `Best`, and its edges.
    chosen : ndarray of uint64, shape (n_blocks,)
        The bits of some features.
    counts : ndarray of int64, shape (4,)
    """

    histograms: Array
    sums: Array
    occupied: Array
    bounds: Array
    scores: Array
    found: Array
    chosen: Array
    counts: Array


# ---- heavy and light rows ----------------------------------------------------------------------------------------------------


@compiled
def bucket(mass: int) -> Int:
    """Return 0 for no mass, else 1 + the place of ``mass`` among the quarters of all powers of two."""
    return np.uint64(1 + (np.float64(mass).view(np.int64) >> 50) - (1023 << 2)) if mass > 0 else np.uint64(0)


@compiled
def weigh(rows: Array, q: Array, rule: Rule, mass: Array, numbers: Array, sums: Array) -> None:
    """Work out the mass of ``rows``; add to the number and to the mass of the rows in every bucket."""
    for i in range(len(rows)):
        row = np.int64(rows[i])
        m = np.int64(0)
        if rule.one_hot:
            m += q[row, WEIGHT]
        else:
            for c in range(rule.n_classes):
                m += abs(np.int64(q[row, c]))
        mass[row] = m
        b = bucket(m)
        numbers[b] += 1
        sums[b] += m


@compiled
def least_heavy(numbers: Array, sums: Array, halves: float, levels: float, survivors: float) -> Int:
    """Return the least bucket of heavy rows, for which the fewest additions are expected.

    A tree counts the heavy rows ``halves`` times, and for the features that need them the light rows ``levels`` times. These
    are the share ``survivors`` times that of the mass of the light rows.
    """
    total = max(sums.sum(), 1)
    n_heavy, n_light, light = numbers[1:].sum(), np.int64(0), np.int64(0)
    least, fewest = 1, np.inf
    for b in range(1, N_BUCKETS):
        needed = min(survivors * np.float64(light) / np.float64(total), 1.0)
        expected = halves * n_heavy + levels * needed * n_light
        if expected < fewest:
            least, fewest = b, expected
        n_heavy -= numbers[b]
        n_light += numbers[b]
        light += sums[b]
    return least


@compiled
def sort_rows(
    rows: Array, q: Array, rule: Rule, halves: float, levels: float, survivors: float, mass: Array, level: Array, out: Array
) -> tuple[Int, Int]:
    """Write ``rows`` to ``out``: heavy ones, light ones, and those without mass, in their order within each of them.

    Returns the mass of the light rows, and that of all.
    """
    numbers, sums = np.zeros(N_BUCKETS, np.int64), np.zeros(N_BUCKETS, np.int64)
    weigh(rows, q, rule, mass, numbers, sums)
    least = least_heavy(numbers, sums, halves, levels, survivors)
    level_of, at = np.empty(N_BUCKETS, np.uint8), np.zeros(4, np.int64)
    for b in range(N_BUCKETS):
        level_of[b] = 0 if b >= least else 1 if b > 0 else 2
        at[level_of[b] + 1] += numbers[b]
    at[2] += at[1]
    for i in range(len(rows)):
        row = rows[i]
        own = level_of[bucket(mass[row])]
        level[row] = own
        out[at[own]] = row
        at[own] += 1
    return sums[:least].sum(), sums.sum()


@compiled
def first_from(level: Array, rows: Array, start: int, stop: int, least: int) -> Int:
    """Return the first of the places start..stop-1 whose row has at least this level, or stop."""
    while start < stop:
        middle = (start + stop) // 2
        if level[rows[middle]] >= least:
            stop = middle
        else:
            start = middle + 1
    return start


@compiled
def mass_of(growth: Growth, start: int, stop: int) -> Int:
    total = np.int64(0)
    for i in range(start, stop):
        total += growth.mass[np.uint64(growth.rows[i])]
    return total


# ---- few rows ----------------------------------------------------------------------------------------------------------------


@compiled
def fill(
    block: int,
    mask: int,
    columns: Columns,
    rows: Array,
    q: Array,
    one_hot: bool,
    sums: Array,
    occupied: Array,
    lanes: tuple[int, ...],
) -> Int:
    """Add up ``q`` over ``rows`` by bin of the block's features in ``mask``, without their skipped bins; return how often.

    See `gpuboost.backends.cpu_growth.histogram`.
    """
    n_rows, width = columns.blocks.shape[1:]
    n_columns, n_channels, first = q.shape[1], sums.shape[1], block * width
    base = columns.bin_offsets[first]
    flat_blocks, flat_q, flat, bins = columns.blocks.reshape(-1), q.reshape(-1), sums.reshape(-1), occupied.reshape(-1)
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
def take(f: int, base: int, columns: Columns, histogram: Array, sums: Array, occupied: Array) -> None:
    """Take over the feature's sums from a histogram, in place of rows that are in it already."""
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


@compiled
def search_edge(
    f: int, at: int, bins: Array, sums: Array, start: Array, work: Array, best: Best, lanes: tuple[int, ...]
) -> Best:
    """As `gpuboost.backends.cpu_growth.sweep`, over the listed bins. The feature's sums begin in row ``at`` of ``sums``."""
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
def search_gini(
    f: int, at: int, bins: Array, sums: Array, start: Array, n_classes: int, whole: float, work: Array, best: Best
) -> Best:
    """As `gpuboost.backends.cpu_growth.sweep_gini`, over the listed bins."""
    n_channels = len(start)
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
def search_rebel(
    f: int, at: int, bins: Array, sums: Array, start: Array, mass: Array, whole: float, work: Array, best: Best
) -> Best:
    """As `gpuboost.backends.cpu_growth.sweep_rebel`, over the listed bins."""
    n_channels = len(start)
    score, feature, chosen, side = best
    most, roots, flat = np.int64(score).view(np.float64), np.empty(len(mass), np.float64), sums.reshape(-1)
    n_sides = 2 if bins[0] == MISSING_CODE else 1
    for c in range(n_channels):
        work[0, c] = start[c] - (2 * flat[at * n_channels + c] if n_sides == 2 else 0)
        work[1, c] = start[c]
    for i in range(n_sides - 1, len(bins)):
        for s in range(n_sides):
            for c in range(n_channels):
                work[s, c] -= 2 * flat[(at + bins[i]) * n_channels + c]
            found = whole - cpu_growth.exponential_loss(work[s], mass, roots)
            if found > most:
                most, feature, chosen, side = found, f, bins[i], 1 - s
    return np.float64(most).view(np.int64), feature, chosen, side


# ---- features ----------------------------------------------------------------------------------------------------------------


@compiled
def constant_score(start: Array, criterion: int) -> Int:
    score = np.int64(0)
    if criterion == EDGE:
        for c in range(len(start)):
            score += abs(np.int64(start[c]))
    return score


@compiled
def worth(start: Array, criterion: int, n_classes: int, mass: Array) -> Float:
    """Return what a cut's worth is compared with: the purity or the loss of all rows."""
    if criterion == GINI:
        return purity(start, n_classes)
    if criterion == REBEL:
        return cpu_growth.exponential_loss(start, mass, np.empty(len(mass), np.float64))
    return 0.0


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
def search_blocks(
    lo: int,
    hi: int,
    chosen: Array,
    columns: Columns,
    rows: Array,
    q: Array,
    histogram: Array,
    start: Array,
    rule: Rule,
    mass: Array,
    light: int,
    sums: Array,
    occupied: Array,
    scores: Array,
    found: Array,
    lanes: tuple[int, ...],
) -> Int:
    """Sum and search the chosen features of the blocks lo..hi-1. Return the number of (row, feature) pairs that were added.

    Parameters
    ----------
    rows : ndarray of int32
        What to add, to the sums in ``histogram`` unless that is empty.
    start : ndarray of int32, shape (C,)
        Channel sums of the rows and of those in the histogram.
    light : int
        The mass of the rows that are not there.
    scores : ndarray of int64
        Gets the best score of each chosen feature, or one that is too low to matter.
    found : ndarray of int64
        Gets the best cut of each block with its edges; its score is -1 if no cut beats the constant classifier.
    """
    n_channels, width, criterion, n_classes = len(start), columns.blocks.shape[2], rule.criterion, rule.n_classes
    work, bins = np.zeros((2, n_channels), np.int32), np.empty(256, np.int64)
    constant, whole = constant_score(start, criterion), worth(start, criterion, n_classes, mass)
    top = (constant, np.int64(-1), np.int64(0), np.int64(0))
    n_added = np.int64(0)
    for block in range(lo, hi):
        best = (np.int64(-1), np.int64(-1), np.int64(0), np.int64(0))
        own, base = sums[block % len(sums)], columns.bin_offsets[min(block * width, len(columns.bin_offsets) - 1)]
        if len(histogram):
            bits = chosen[block]
            while bits != 0:
                f = block * width + np.int64(lowest_bit(bits))
                bits &= bits - np.uint64(1)
                take(f, base, columns, histogram, own, occupied)
        if chosen[block]:
            n_added += fill(block, chosen[block], columns, rows, q, rule.one_hot, own, occupied, lanes)
        bits = chosen[block]
        while bits != 0:
            f = block * width + np.int64(lowest_bit(bits))
            bits &= bits - np.uint64(1)
            at = columns.bin_offsets[f] - base
            listed = bins[: list_bins(f, np.int64(columns.skipped[f]), occupied, bins)]
            complete(at, listed, np.int64(columns.skipped[f]), own, start, work, lanes)
            now = at_least(top, constant, criterion, light)
            if criterion == GINI:
                now = search_gini(f, at, listed, own, start, n_classes, whole, work, now)
            elif criterion == REBEL:
                now = search_rebel(f, at, listed, own, start, mass, whole, work, now)
            else:
                now = search_edge(f, at, listed, own, start, work, now, lanes)
            scores[f] = now[0]
            if now[1] >= 0 and now[0] > best[0]:
                best = now
                write_edges(best, at, own, start, found[block, 4:])
            if now[0] > top[0]:
                top = now
            clear(at, listed, own)
        found[block, 0], found[block, 1], found[block, 2], found[block, 3] = best
    return n_added


@compiled
def complete(at: int, bins: Array, skip: int, sums: Array, start: Array, work: Array, lanes: tuple[int, ...]) -> None:
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


@compiled
def sweep(
    f: int,
    columns: Columns,
    histogram: Array,
    start: Array,
    criterion: int,
    n_classes: int,
    mass: Array,
    whole: float,
    work: Array,
    best: Best,
    lanes: tuple[int, ...],
) -> Any:
    offsets, has_missing = columns.bin_offsets, columns.has_missing
    if criterion == GINI:
        return cpu_growth.sweep_gini(f, offsets, has_missing, histogram, start, n_classes, 0, whole, best)
    if criterion == REBEL:
        roots = np.empty(len(mass), np.float64)
        return cpu_growth.sweep_rebel(f, offsets, has_missing, histogram, start, n_classes, 0, mass, roots, best)
    return cpu_growth.sweep(f, offsets, has_missing, histogram, start, work[0], n_classes, 0, best, lanes)


@compiled
def sweep_pair(
    lo: int,
    hi: int,
    columns: Columns,
    start: Array,
    other_start: Array,
    rule: Rule,
    mass: Array,
    light: int,
    other_light: int,
    parts: Array,
    child: Array,
    other: Array,
    scores: Array,
    lanes: tuple[int, ...],
) -> tuple[Best, Best]:
    """Finish and sweep the histograms of two siblings' heavy rows, as `gpuboost.backends.cpu_growth.finish`.

    ``scores`` (2, n_features) gets the best of each feature, or a score that is too low to matter.
    """
    work, criterion, n_classes = np.zeros((2, child.shape[1]), np.int32), rule.criterion, rule.n_classes
    constant, other_constant = constant_score(start, criterion), constant_score(other_start, criterion)
    best, other_best = (
        (constant, np.int64(-1), np.int64(0), np.int64(0)),
        (other_constant, np.int64(-1), np.int64(0), np.int64(0)),
    )
    whole, other_whole = worth(start, criterion, n_classes, mass), worth(other_start, criterion, n_classes, mass)
    for u in range(lo, hi):
        f = columns.usable[u]
        cpu_growth.complete(f, columns.bin_offsets, columns.skipped, start, parts, child, other, work[0], lanes)
        now = at_least(best, constant, criterion, light)
        now = sweep(f, columns, child, start, criterion, n_classes, mass, whole, work, now, lanes)
        scores[0, f] = now[0]
        best = now if now[1] >= 0 and now[0] > best[0] else best
        if len(other):
            now = at_least(other_best, other_constant, criterion, other_light)
            now = sweep(f, columns, other, other_start, criterion, n_classes, mass, other_whole, work, now, lanes)
            scores[1, f] = now[0]
            other_best = now if now[1] >= 0 and now[0] > other_best[0] else other_best
    return best, other_best


# ---- nodes -------------------------------------------------------------------------------------------------------------------


@compiled
def beats(score: int, f: int, best: Best) -> Int:
    """Whether a cut of feature f with this score is better than ``best``: ties go to the lowest feature."""
    return score > best[0] or (score == best[0] and f < best[1])


@compiled
def to_bounds(scores: Array, columns: Columns, heavy: Array, total: Array, rule: Rule, masses: Array, light: int) -> None:
    """Turn the best scores on the heavy rows into bounds of the scores on all rows.

    ``masses`` (2, n_classes) are the sums of abs(q) over the heavy rows and over all rows, for the criterion "rebel".
    """
    criterion, n_classes = rule.criterion, rule.n_classes
    more, slack = 0.0, rounding(total, n_classes)
    if criterion == GINI:
        more = worth(heavy, criterion, n_classes, masses[0]) - worth(total, criterion, n_classes, masses[1]) + light
    elif criterion == REBEL:
        more = worth(total, criterion, n_classes, masses[1]) - worth(heavy, criterion, n_classes, masses[0])
        slack = rounding(masses[1], n_classes)
    for f in columns.usable:
        if criterion == EDGE:
            scores[f] += light
        else:
            scores[f] = np.float64(max(np.int64(scores[f]).view(np.float64) + more + slack, 0.0)).view(np.int64)


@compiled
def choose(bounds: Array, columns: Columns, best: Best, most: int, chosen: Array) -> bool:
    """Choose features that may beat ``best``: the ``most`` with the highest bounds, or all. Their bounds become -1.

    Returns whether there are any.
    """
    width, one = columns.blocks.shape[2], np.uint64(1)
    chosen[:] = 0
    n = 0
    while n < most:
        top = np.int64(-1)
        for f in columns.usable:
            if bounds[f] < 0 or not beats(bounds[f], f, best):
                continue
            if most >= len(columns.usable):
                chosen[f // width] |= one << np.uint64(f % width)
                bounds[f] = -1
                n += 1
            elif top < 0 or bounds[f] > bounds[top]:
                top = f
        if top < 0:
            break
        chosen[top // width] |= one << np.uint64(top % width)
        bounds[top] = -1
        n += 1
    return n > 0


BATCHES = (1, 8, 2**62)
"""How many features are finished at a time: the most promising one, a few, and all that are left to be finished."""


@compiled
def prepare(growth: Growth, one_hot: bool, small: int, large: int, parent: int, lanes: tuple[int, ...]) -> tuple[Int, Int]:
    """Find the heavy rows of two siblings, or of the root; return the one with fewer of them, and the other.

    The other one inherits the parent's slot.
    """
    rows, nodes, stops, heavy = growth.rows, growth.nodes, growth.stops, growth.heavy
    for m in (small, large):
        if m >= 0:
            stops[m, HEAVY] = first_from(growth.level, rows, nodes[m, START], nodes[m, STOP], 1)
            stops[m, LIGHT] = first_from(growth.level, rows, stops[m, HEAVY], nodes[m, STOP], 2)
    if large >= 0 and stops[large, HEAVY] - nodes[large, START] < stops[small, HEAVY] - nodes[small, START]:
        nodes[small, SLOT], nodes[large, SLOT] = nodes[large, SLOT], nodes[small, SLOT]
        small, large = large, small
    flat_heavy, flat_q, n_channels = heavy.reshape(-1), growth.q.reshape(-1), heavy.shape[1]
    heavy[small] = 0
    for i in range(nodes[small, START], stops[small, HEAVY]):
        row = np.int64(rows[i])
        if one_hot:
            heavy[small, growth.q[row, CLASS]] += growth.q[row, WEIGHT]
        else:
            add_row(flat_heavy, small, flat_q, row, n_channels, lanes)
    if large >= 0:
        heavy[large] = heavy[parent] - heavy[small]
    return small, large


@compiled
def class_masses(growth: Growth, criterion: int) -> Array:
    """Return the sums of abs(q) over the root's heavy rows and over all its rows, for the criterion "rebel"."""
    masses = np.zeros((2, len(growth.class_mass)), np.int64)
    masses[1] = growth.class_mass
    if criterion == REBEL:
        for i in range(growth.nodes[0, START], growth.stops[0, HEAVY]):
            for c in range(masses.shape[1]):
                masses[0, c] += abs(np.int64(growth.q[growth.rows[i], c]))
    return masses


@compiled
def best_found(found: Array, best: Best, edges: Array) -> Best:
    """Return the better one of ``best`` and what the blocks have found; its edges are written to ``edges``."""
    for b in range(len(found)):
        if found[b, 0] >= 0 and beats(found[b, 0], found[b, 1], best):
            best = (found[b, 0], found[b, 1], found[b, 2], found[b, 3])
            for c in range(len(edges)):
                edges[c] = found[b, 4 + c]
    return best


@compiled
def queue(best: Best, node: Array) -> None:
    """Write the best classifier into the node's row of the node table."""
    node[FEATURE], node[CUT], node[MISSING_LEFT] = best[1], best[2], best[3]
    node[KEY] = best[0] - node[BASELINE]


@compiled
def expand(
    columns: Columns,
    growth: Growth,
    memory: Memory,
    rule: Rule,
    few: int,
    small: int,
    large: int,
    parent: int,
    lanes: tuple[int, ...],
) -> None:
    """Find the best classifiers of two siblings (or of the root, if ``large`` is -1) on one thread.

    Up to ``few`` heavy rows of both together are summed block by block.
    """
    rows, nodes, stops, q = growth.rows, growth.nodes, growth.stops, growth.q
    n_blocks, none = len(columns.blocks), memory.histograms[0][:0]
    small, large = prepare(growth, rule.one_hot, small, large, parent, lanes)
    masses = class_masses(growth, rule.criterion)
    pair = (small, large)
    light, n_heavy = np.zeros(2, np.int64), np.int64(0)
    for s in range(2):
        if pair[s] >= 0:
            light[s] = mass_of(growth, stops[pair[s], HEAVY], stops[pair[s], LIGHT])
            n_heavy += stops[pair[s], HEAVY] - nodes[pair[s], START]
    bests = ((np.int64(0), np.int64(0), np.int64(0), np.int64(0)), (np.int64(0), np.int64(0), np.int64(0), np.int64(0)))
    if n_heavy > few:
        slot = nodes[small, SLOT]
        child = memory.histograms[slot]
        other = memory.histograms[nodes[large, SLOT]] if large >= 0 else none
        own = rows[nodes[small, START] : stops[small, HEAVY]]
        counting = (columns.blocks, columns.masks, columns.skipped, columns.bin_offsets, own, q)
        sums = memory.histograms[slot : slot + 1]
        if rule.one_hot:
            memory.counts[ADDED_HEAVY] += cpu_growth.histogram_of_classes(0, n_blocks, *counting, sums, rule.n_classes)
        else:
            memory.counts[ADDED_HEAVY] += cpu_growth.histogram(0, n_blocks, *counting, sums, lanes)
        bests = sweep_pair(
            0,
            len(columns.usable),
            columns,
            growth.heavy[small],
            growth.heavy[large],
            rule,
            masses[0],
            light[0],
            light[1],
            memory.histograms[:0],
            child,
            other,
            memory.bounds,
            lanes,
        )
    for s in range(2):
        if pair[s] >= 0:
            m = pair[s]
            histogram = memory.histograms[nodes[m, SLOT]] if n_heavy > few else none
            if light[s] == 0 and n_heavy > few:
                cpu_growth.settle(bests[s], columns.bin_offsets, histogram, nodes[m], growth.totals[m], growth.edges[m])
            else:
                finish(m, columns, growth, memory, histogram, memory.bounds[s], rule, masses, light[s], lanes)


@compiled
def finish(
    m: int,
    columns: Columns,
    growth: Growth,
    memory: Memory,
    histogram: Array,
    bounds: Array,
    rule: Rule,
    masses: Array,
    light: int,
    lanes: tuple[int, ...],
) -> None:
    """Find the best classifier of node m. ``bounds`` are the scores on its heavy rows, if there is a histogram of them."""
    nodes, stops, edges = growth.nodes, growth.stops, growth.edges[m]
    first, heavy_stop, light_stop = nodes[m, START], stops[m, HEAVY], stops[m, LIGHT]
    n_blocks, heavy, criterion = len(columns.blocks), growth.heavy[m], rule.criterion
    total = np.zeros_like(heavy)
    for c in range(rule.n_classes):
        total[c] = growth.totals[m, c]
        edges[c] = total[c]
    best = (constant_score(total, criterion), np.int64(-1), np.int64(0), np.int64(0))
    hopeless = len(histogram) == 0 and light > mass_of(growth, first, heavy_stop)
    if len(histogram) == 0 and not hopeless:
        memory.counts[ADDED_HEAVY] += search_blocks(
            0,
            n_blocks,
            columns.masks,
            columns,
            growth.rows[first:heavy_stop],
            growth.q,
            histogram,
            heavy,
            rule,
            masses[0],
            light,
            memory.sums,
            memory.occupied,
            bounds,
            memory.found,
            lanes,
        )
        if light == 0:
            queue(best_found(memory.found, best, edges), nodes[m])
            return
    if hopeless:
        bounds[:] = np.iinfo(np.int64).max
    else:
        to_bounds(bounds, columns, heavy, total, rule, masses, light)
    memory.counts[LIGHT_ROWS] += light_stop - heavy_stop
    start = heavy_stop if len(histogram) else first
    for most in BATCHES:
        if choose(bounds, columns, best, len(columns.usable) if hopeless else most, memory.chosen):
            memory.counts[VISITED_LIGHT] += (light_stop - start) * np.count_nonzero(memory.chosen)
            memory.counts[ADDED_LIGHT] += search_blocks(
                0,
                n_blocks,
                memory.chosen,
                columns,
                growth.rows[start:light_stop],
                growth.q,
                histogram,
                total,
                rule,
                masses[1],
                0,
                memory.sums,
                memory.occupied,
                memory.scores,
                memory.found,
                lanes,
            )
            best = best_found(memory.found, best, edges)
    queue(best, nodes[m])


@compiled
def grow(
    lo: int,
    hi: int,
    columns: Columns,
    memory: Memory,
    rows: Array,
    q: Array,
    nodes: Array,
    totals: Array,
    edges: Array,
    current: Array,
    buffer: Array,
    mass: Array,
    level: Array,
    stops: Array,
    heavy: Array,
    class_mass: Array,
    rule: Rule,
    n_voting: int,
    few: int,
    lanes: tuple[int, ...],
) -> None:
    """Grow the trees lo..hi-1, one after another, as `gpuboost.backends.cpu_growth.grow`."""
    n_cuts = nodes.shape[1] // 2
    for t in range(lo, hi):
        own = t if len(q) > 1 else 0
        growth = Growth(
            rows[t], q[own], nodes[t], totals[t], edges[t], mass[own], level[own], stops[t], heavy[t], class_mass[t]
        )
        expand(columns, growth, memory, rule, few, 0, -1, -1, lanes)
        for s in range(n_cuts):
            if not cpu_growth.select(s, nodes[t : t + 1], current[t : t + 1], len(memory.histograms)):
                break
            parent = current[t]
            if nodes[t, parent, LEFT] == 0:
                continue
            cpu_growth.partition(columns.blocks, rows[t], buffer, nodes[t], totals[t], edges[t], n_voting, parent)
            if s + 1 < n_cuts:
                small, large = cpu_growth.order_children(nodes[t], parent)
                expand(columns, growth, memory, rule, few, small, large, parent, lanes)

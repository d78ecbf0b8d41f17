"""Compiled loops of the CPU backend that grow trees: histograms, sweeps, the queue, and the division of rows.

Histograms and sweeps work on a range of features or pieces, without the GIL, so that threads can share them. The class axis is
innermost and contiguous, so that one (row, feature) pair is a short vector addition; statistics are padded to whole vectors of
four classes for it. The limit of a histogram is its additions, rows x features x classes in int32, or, where it outgrows the
second-level cache, one cache line in and out for each (row, feature) pair that is not skipped.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import BASELINE, CLOSED, CUT, FEATURE, GAIN, KEY, LEFT, MISSING_LEFT, SLOT, START, STOP, Stats
from gpuboost.backends.cpu_one_hot import CLASS, COUNT, WEIGHT
from gpuboost.backends.jit import Array, Int, compiled
from gpuboost.backends.simd import (
    LANES,
    add_vectors,
    differing_16,
    differing_32,
    differing_64,
    lowest_bit,
    move_row,
    prefetch,
    sweep_row,
)
from gpuboost.binning import MISSING_CODE

UNROLLED = 4
"""Up to this many vectors a row of statistics is added by code made for its width."""

AHEAD = 16
"""A node's rows lie anywhere: memory is asked for each of them this many rows before it is added."""

# ---- histograms --------------------------------------------------------------------------------------------------------------


@compiled
def add_row(out: Array, i: int, q: Array, j: int, n_channels: int, lanes: tuple[int, ...]) -> None:
    """Add row j of ``q`` to row i of ``out``, both flat with ``n_channels`` entries a row.

    The length of ``lanes`` is known to the compiler, which adds up to `UNROLLED` vectors a row at once.
    """
    width = np.uint64(n_channels)
    target, source = np.uint64(i) * width, np.uint64(j) * width
    if len(lanes) > 0:
        add_vectors(out, target, q, source, lanes)
    elif n_channels >= LANES:
        for g in range(0, n_channels, LANES):
            add_vectors(out, target + np.uint64(g), q, source + np.uint64(g), (0,))
    else:
        for c in range(n_channels):
            out[target + np.uint64(c)] += q[source + np.uint64(c)]


@compiled
def differing(a: Array, i: int, b: Array, j: int, width: int) -> Int:
    """Return the bits n < width for which ``a[i + n] != b[j + n]``."""
    if width == 64:
        return differing_64(a, np.uint64(i), b, np.uint64(j))
    if width == 32:
        return differing_32(a, np.uint64(i), b, np.uint64(j))
    return differing_16(a, np.uint64(i), b, np.uint64(j))


@compiled
def histogram(
    lo: int,
    hi: int,
    blocks: Array,
    masks: Array,
    skipped: Array,
    bin_offsets: Array,
    rows: Array,
    q: Array,
    out: Array,
    lanes: tuple[int, ...],
) -> Int:
    """Add up ``q`` by bin over ``rows``, leaving out every feature's most frequent bin. Return the number of additions.

    A piece of work is a block of features and a chunk of rows; ``out`` (n_chunks, n_bins_total, C) has room for every chunk and
    is overwritten. A row's codes of one block are compared with the skipped codes at once, and only the features that differ
    are visited, so that sparse data cost what their non-zeros cost. The block's mask has the bits of the features that matter.
    """
    n_blocks, n_rows, width = blocks.shape
    n_chunks, n_channels = out.shape[0], q.shape[1]
    flat_blocks, flat_q = blocks.reshape(-1), q.reshape(-1)
    one, n_added = np.uint64(1), np.int64(0)
    for piece in range(lo, hi):
        block, chunk = piece % n_blocks, piece // n_blocks
        first = block * width
        begin, end = bin_offsets[first], bin_offsets[min(first + width, len(bin_offsets) - 1)]
        out[chunk, begin:end] = 0
        flat_out = out[chunk].reshape(-1)
        start, stop = len(rows) * chunk // n_chunks, len(rows) * (chunk + 1) // n_chunks
        for i in range(start, stop):
            row, later = np.int64(rows[i]), np.int64(rows[min(i + AHEAD, stop - 1)])
            prefetch(flat_blocks, np.uint64((block * n_rows + later) * width))
            prefetch(flat_q, np.uint64(later * n_channels))
            at = (block * n_rows + row) * width
            bits = differing(flat_blocks, at, skipped, first, width) & masks[block]
            while bits != 0:
                n = np.int64(lowest_bit(bits))
                bits &= bits - one
                add_row(flat_out, bin_offsets[first + n] + flat_blocks[at + n], flat_q, row, n_channels, lanes)
                n_added += 1
    return n_added


TOGETHER = 8
"""The roots of so many trees are counted in one pass over the rows."""

VECTORS = (0,) * TOGETHER
"""The lanes of `TOGETHER` rows of four channels."""

INTERLEAVED = 256
"""So many rows of these trees' statistics lie side by side in the nearest cache."""


@compiled
def root_histograms(
    lo: int,
    hi: int,
    blocks: Array,
    masks: Array,
    skipped: Array,
    bin_offsets: Array,
    q: Array,
    out: Array,
    lanes: tuple[int, ...],
) -> None:
    """As `histogram`, over all rows for each of the trees lo..hi-1: ``out`` (n_bins_total, TOGETHER, C) is overwritten.

    A row's codes are looked at once, and what is added is one long vector. ``lanes`` are those of one tree.
    """
    n_blocks, n_rows, width = blocks.shape
    n_channels, one = q.shape[2], np.uint64(1)
    own = np.empty((INTERLEAVED, TOGETHER, n_channels), np.int32)
    flat_blocks, flat_q, flat_own, flat_out = blocks.reshape(-1), q.reshape(-1), own.reshape(-1), out.reshape(-1)
    out[:] = 0
    for block in range(n_blocks):
        first = block * width
        for begin in range(0, n_rows, INTERLEAVED):
            n = min(INTERLEAVED, n_rows - begin)
            own[:] = 0
            for t in range(lo, hi):
                for i in range(n):
                    add_row(flat_own, TOGETHER * i + t - lo, flat_q, t * n_rows + begin + i, n_channels, lanes)
            for i in range(n):
                at = (block * n_rows + begin + i) * width
                bits = differing(flat_blocks, at, skipped, first, width) & masks[block]
                while bits != 0:
                    f = np.int64(lowest_bit(bits))
                    bits &= bits - one
                    row = bin_offsets[first + f] + flat_blocks[at + f]
                    add_row(flat_out, row, flat_own, i, TOGETHER * n_channels, VECTORS)


@compiled
def hold_all(roots: Array, n_rows: int) -> bool:
    """Return whether the table rows of roots, shape (n_trees, 10), own all rows."""
    return (roots[:, STOP] - roots[:, START] == n_rows).all()  # type: ignore[no-any-return]


@compiled
def histogram_of_classes(
    lo: int,
    hi: int,
    blocks: Array,
    masks: Array,
    skipped: Array,
    bin_offsets: Array,
    rows: Array,
    q: Array,
    out: Array,
    n_classes: int,
) -> Int:
    """As `histogram`, for statistics with one class a row, see `gpuboost.backends.cpu_one_hot`."""
    n_blocks, n_rows, width = blocks.shape
    n_chunks, n_channels = out.shape[0], np.uint64(out.shape[2])
    n_columns, has_counts = q.shape[1], q.shape[1] > COUNT
    flat_blocks, flat_q = blocks.reshape(-1), q.reshape(-1)
    one, n_added = np.uint64(1), np.int64(0)
    for piece in range(lo, hi):
        block, chunk = piece % n_blocks, piece // n_blocks
        first = block * width
        begin, end = bin_offsets[first], bin_offsets[min(first + width, len(bin_offsets) - 1)]
        out[chunk, begin:end] = 0
        flat_out = out[chunk].reshape(-1)
        start, stop = len(rows) * chunk // n_chunks, len(rows) * (chunk + 1) // n_chunks
        for i in range(start, stop):
            row, later = np.int64(rows[i]), np.int64(rows[min(i + AHEAD, stop - 1)])
            prefetch(flat_blocks, np.uint64((block * n_rows + later) * width))
            prefetch(flat_q, np.uint64(later * n_columns))
            own = row * n_columns
            label, weight = np.uint64(flat_q[own + CLASS]), flat_q[own + WEIGHT]
            at = (block * n_rows + row) * width
            bits = differing(flat_blocks, at, skipped, first, width) & masks[block]
            while bits != 0:
                n = np.int64(lowest_bit(bits))
                bits &= bits - one
                cell = np.uint64(bin_offsets[first + n] + flat_blocks[at + n]) * n_channels
                flat_out[cell + label] += weight
                if has_counts:
                    flat_out[cell + np.uint64(n_classes)] += flat_q[own + COUNT]
                n_added += 1
    return n_added


@compiled
def complete(
    f: int,
    bin_offsets: Array,
    skipped: Array,
    total: Array,
    parts: Array,
    child: Array,
    parent: Array,
    sums: Array,
    lanes: tuple[int, ...],
) -> None:
    """Finish feature f's histogram. ``sums`` is scratch for one row.

    Adds up the chunks; gives the skipped bin the node's total minus all other bins (exact, because these are integers); and
    turns the parent's histogram, if there is one, into that of the sibling.
    """
    n_channels = child.shape[1]
    begin, end = bin_offsets[f] * n_channels, bin_offsets[f + 1] * n_channels
    own = child.reshape(-1)[begin:end]
    if len(parts):
        own[:] = 0
        for part in range(len(parts)):
            more = parts[part].reshape(-1)[begin:end]
            for i in range(len(own)):
                own[i] += more[i]
    sums[:] = 0
    for b in range(bin_offsets[f + 1] - bin_offsets[f]):
        add_row(sums, 0, own, b, n_channels, lanes)
    rest = own[n_channels * np.int64(skipped[f]) :]
    for c in range(len(total)):
        rest[c] = total[c] - sums[c]
    if len(parent):
        other = parent.reshape(-1)[begin:end]
        for i in range(len(own)):
            other[i] -= own[i]


# ---- sweeps ------------------------------------------------------------------------------------------------------------------

Best = tuple[Int, Int, Int, Int]
"""(score, feature, cut, missing_left); feature -1 is the constant classifier. Scores are integers, or the bits of floats."""

EDGE, GINI, NEWTON, REBEL = 0, 1, 2, 3
"""Stand for the criteria in the arguments of compiled functions."""


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
    """Return the sum of the squares over the sum, see `gpuboost.backends.base.Backend.expand`."""
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
def exponential_loss(edges: Array, mass: Array, roots: Array) -> float:
    """Return the loss of the best coefficients, see `gpuboost.backends.base.Backend.expand`. ``roots`` is scratch.

    Without the sum, which has to be taken in order, the loop over the classes is vector code.
    """
    for c in range(len(roots)):
        edge = np.int64(edges[c])
        roots[c] = np.sqrt(np.float64(mass[c] + edge) * np.float64(mass[c] - edge))
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
    mass: Array,
    roots: Array,
    best: Best,
) -> Best:
    """As `sweep`, for the criterion "rebel"; ``mass`` are the root's sums of abs(q), ``roots`` is scratch."""
    n_channels = histogram.shape[1]
    first, n_bins = bin_offsets[f], bin_offsets[f + 1] - bin_offsets[f]
    score, feature, chosen, side = best
    most, whole = np.int64(score).view(np.float64), exponential_loss(start, mass, roots)
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
            found = whole - exponential_loss(edges, mass, roots)
            if found > most:
                most, feature, chosen, side = found, f, cut, missing_left
    return np.float64(most).view(np.int64), feature, chosen, side


@compiled
def finish(
    lo: int,
    hi: int,
    usable: Array,
    bin_offsets: Array,
    has_missing: Array,
    skipped: Array,
    total: Array,
    other_total: Array,
    mass: Array,
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
    is empty. ``mass`` are the root's sums of abs(q), for the criterion "rebel".
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
    roots = np.empty(len(mass), np.float64)
    for u in range(lo, hi):
        f = usable[u]
        complete(f, bin_offsets, skipped, total, parts, child, other, edges, lanes)
        if criterion == REBEL:
            best = sweep_rebel(f, bin_offsets, has_missing, child, start, n_classes, min_count, mass, roots, best)
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
def settle(
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


# ---- growing -----------------------------------------------------------------------------------------------------------------


@compiled
def free_slot(nodes: Array, n_nodes: int, parent: int, n_slots: int) -> Int:
    """Return a histogram slot for the new node below ``parent``, which leaves its own slot to the other child.

    There are just enough slots (see `slots_needed`) for the nodes that can still be cut: if none is free, more nodes are queued
    than cuts remain, and the last of the queue gives up its place, since it would never be cut.
    """
    taken = np.zeros(n_slots, np.bool_)
    taken[nodes[parent, SLOT]] = True
    last = -1
    for m in range(n_nodes):
        if nodes[m, KEY] != CLOSED:
            taken[nodes[m, SLOT]] = True
            if last < 0 or nodes[m, KEY] <= nodes[last, KEY]:
                last = m
    for slot in range(n_slots):
        if not taken[slot]:
            return slot
    nodes[last, KEY] = CLOSED
    return nodes[last, SLOT]


@compiled
def select(step: Int, nodes: Array, current: Array, n_slots: int) -> bool:
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
            child = 2 * step + 1
            if node[FEATURE] >= 0:
                node[LEFT] = child
                if child + 2 < nodes.shape[1]:  # the children of the last cut need no histograms
                    nodes[t, child, SLOT] = free_slot(nodes[t], child, best, n_slots)
                    nodes[t, child + 1, SLOT] = node[SLOT]
    return found


@compiled
def divide(blocks: Array, rows: Array, buffer: Array, start: Int, stop: Int, node: Array) -> Int:
    """Put the rows of ``rows[start:stop]`` that the node's cut sends to the left before the others; return where those begin.

    They keep their order on both sides, which keeps later reads sequential.
    """
    width = blocks.shape[2]
    block, place = blocks[node[FEATURE] // width], node[FEATURE] % width
    # Left iff low <= code <= cut, where low admits or refuses the missing code 0: one comparison, modulo 256.
    low = np.uint8(1 - node[MISSING_LEFT])
    span = np.uint8(node[CUT] - (1 - node[MISSING_LEFT]))
    n_left: Int = 0
    n_right: Int = 0
    for i in range(start, stop):
        row = rows[i]
        goes_left = np.uint8(block[row, place] - low) <= span
        rows[start + n_left] = row
        buffer[n_right] = row
        n_left += goes_left
        n_right += not goes_left
    middle = start + n_left
    rows[middle:stop] = buffer[:n_right]
    return middle


@compiled
def partition(
    blocks: Array, rows: Array, buffer: Array, nodes: Array, totals: Array, edges: Array, n_voting: int, m: int
) -> None:
    """Divide node m of one tree."""
    node = nodes[m]
    start, stop, child = node[START], node[STOP], node[LEFT]
    middle = divide(blocks, rows, buffer, start, stop, node)
    nodes[child, START], nodes[child, STOP] = start, middle
    nodes[child + 1, START], nodes[child + 1, STOP] = middle, stop
    for c in range(totals.shape[1]):
        vote = 1 if edges[m, c] > 0 else -1  # eq. 13
        totals[child, c] = (totals[m, c] - edges[m, c]) // 2
        totals[child + 1, c] = (totals[m, c] + edges[m, c]) // 2
        if c < n_voting:
            nodes[child, BASELINE] -= vote * totals[child, c]
            nodes[child + 1, BASELINE] += vote * totals[child + 1, c]


@compiled
def judge(
    usable: Array,
    bin_offsets: Array,
    has_missing: Array,
    skipped: Array,
    nodes: Array,
    totals: Array,
    edges: Array,
    histograms: Array,
    mass: Array,
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
    best, other_best = finish(
        0,
        len(usable),
        usable,
        bin_offsets,
        has_missing,
        skipped,
        totals[small],
        totals[large],
        mass,
        n_classes,
        min_count,
        criterion,
        histograms[:0],
        child,
        other,
        lanes,
    )
    settle(best, bin_offsets, child, nodes[small], totals[small], edges[small])
    if large >= 0:
        settle(other_best, bin_offsets, other, nodes[large], totals[large], edges[large])


@compiled
def expand(
    blocks: Array,
    masks: Array,
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
    mass: Array,
    n_classes: int,
    min_count: int,
    criterion: int,
    one_hot: bool,
    small: int,
    large: int,
    lanes: tuple[int, ...],
) -> None:
    """Histograms and best classifiers of two siblings (or of the root, if ``large`` is -1) in one call, on one thread."""
    own = rows[nodes[small, START] : nodes[small, STOP]]
    sums = histograms[nodes[small, SLOT] : nodes[small, SLOT] + 1]
    if one_hot:
        histogram_of_classes(0, len(blocks), blocks, masks, skipped, bin_offsets, own, q, sums, n_classes)
    else:
        histogram(0, len(blocks), blocks, masks, skipped, bin_offsets, own, q, sums, lanes)
    found = (nodes, totals, edges, histograms, mass, n_classes, min_count, criterion)
    judge(usable, bin_offsets, has_missing, skipped, *found, small, large, lanes)


@compiled
def order_children(nodes: Array, current: int) -> tuple[Int, Int]:
    """Return the child of the current node that has fewer rows, and the other, which inherits the histogram's slot."""
    left, right = nodes[current, LEFT], nodes[current, LEFT] + 1
    middle = (nodes[left, START] + nodes[right, STOP]) // 2
    small, large = (left, right) if nodes[left, STOP] <= middle else (right, left)
    if nodes[large, SLOT] != nodes[current, SLOT]:
        nodes[small, SLOT], nodes[large, SLOT] = nodes[large, SLOT], nodes[small, SLOT]
    return small, large


@compiled
def grow(
    lo: int,
    hi: int,
    blocks: Array,
    masks: Array,
    usable: Array,
    bin_offsets: Array,
    has_missing: Array,
    skipped: Array,
    rows: Array,
    q: Array,
    nodes: Array,
    totals: Array,
    edges: Array,
    current: Array,
    histograms: Array,
    buffer: Array,
    mass: Array,
    n_classes: int,
    n_voting: int,
    min_count: int,
    criterion: int,
    one_hot: bool,
    lanes: tuple[int, ...],
) -> None:
    """Grow the trees lo..hi-1, one after another, in the same memory for histograms."""
    n_cuts = nodes.shape[1] // 2
    # Roots with statistics of their own that hold all rows are counted in one pass.
    together = len(q) > 1 and q.shape[2] == LANES and hold_all(nodes[lo:hi, 0], q.shape[1])
    roots = np.empty((bin_offsets[-1] if together else 0, TOGETHER, q.shape[2]), np.int32)
    shared = (blocks, masks, usable, bin_offsets, has_missing, skipped)
    for t in range(lo, hi):
        held = rows[t if len(rows) > 1 else 0]
        own = (held, q[t if len(q) > 1 else 0], nodes[t], totals[t], edges[t], histograms, mass[t])
        if together:
            place = (t - lo) % TOGETHER
            if place == 0:
                root_histograms(t, min(t + TOGETHER, hi), blocks, masks, skipped, bin_offsets, q, roots, lanes)
            histograms[nodes[t, 0, SLOT]] = roots[:, place]
            judge(*shared[2:], *own[2:], n_classes, min_count, criterion, 0, -1, lanes)
        else:
            expand(*shared, *own, n_classes, min_count, criterion, one_hot, 0, -1, lanes)
        for s in range(n_cuts):
            if not select(s, nodes[t : t + 1], current[t : t + 1], len(histograms)):
                break
            if nodes[t, current[t], LEFT] == 0:
                continue
            partition(blocks, held, buffer, nodes[t], totals[t], edges[t], n_voting, current[t])
            if s + 1 < n_cuts:
                small, large = order_children(nodes[t], current[t])
                expand(*shared, *own, n_classes, min_count, criterion, one_hot, small, large, lanes)


@compiled
def node_of_rows(rows: Array, nodes: Array, out: Array) -> None:
    for m in range(len(nodes)):
        if nodes[m, LEFT] == 0:
            for i in range(nodes[m, START], nodes[m, STOP]):
                out[rows[i]] = m


@compiled
def place_weightless(lo: int, hi: int, q: Array, blocks: Array, nodes: Array, out: Array) -> None:
    """Write the leaf of the rows without weight, which a growth on one class a row leaves out: the same divisions once more."""
    rows, buffer = np.empty(hi - lo, np.int32), np.empty(hi - lo, np.int32)
    n: Int = 0
    for i in range(lo, hi):
        rows[n] = i
        n += q[i, WEIGHT] == 0
    bounds = np.zeros((len(nodes), 2), np.int64)
    bounds[0, 1] = n
    for m in range(len(nodes)):
        start, stop, child = bounds[m, 0], bounds[m, 1], nodes[m, LEFT]
        if child > 0:
            middle = divide(blocks, rows, buffer, start, stop, nodes[m])
            bounds[child, 0], bounds[child, 1] = start, middle
            bounds[child + 1, 0], bounds[child + 1, 1] = middle, stop
        else:
            for i in range(start, stop):
                out[rows[i]] = m


# ---- what the loops are told -------------------------------------------------------------------------------------------------

T = TypeVar("T", bound=np.generic)


def of_tree(q: NDArray[T], t: int) -> NDArray[T]:
    """Return the statistics or rows of tree t: its own, or those that all trees of a batch share."""
    own: NDArray[T] = q[t] if len(q) > 1 else q[0]
    return own


def criterion_number(stats: Stats) -> int:
    """Return what stands for the statistics' criterion in compiled functions."""
    return {"edge": EDGE, "gini": GINI, "newton": NEWTON, "rebel": REBEL}[stats.criterion]


def slots_needed(max_leaves: int) -> int:
    """Return how many histograms a tree keeps at a time.

    When s cuts have been made and R can still follow, a node that is not among the first R of the queue will never be cut. So
    besides the two new nodes only min(s, R) others need a histogram: half of the leaves in the worst case.
    """
    return max([1, *(2 + min(s, max_leaves - 2 - s) for s in range(max_leaves - 2))])


def unrolled(width: int) -> tuple[int, ...]:
    """Return a tuple whose length tells the compiler the number of vectors in a row; empty if it should not unroll."""
    n_vectors = width // LANES
    return (0,) * n_vectors if n_vectors <= UNROLLED else ()

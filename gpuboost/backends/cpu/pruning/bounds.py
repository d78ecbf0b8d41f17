"""Compiled loops of exact pruning: the same trees from fewer additions (QuickBoost, chapter 3 of Appel's thesis).

The mass of a row is the sum of abs(quantised) over the classes. A root's rows are divided into heavy rows, which hold nearly
all of its mass, light rows, and rows without mass, which are never counted. Partitions keep this order within every node.

What a feature can reach on all rows of a node is bounded by what it reaches on the heavy ones (the thesis' proposition 3.2 and
appendix 7.2): no cut of more rows loses less than the best cut of some of them. With m for the heavy rows, W - W_m for the mass
of the light ones, and for the best score of a feature, its empty side included,

    "edge":   score <= score_m + (W - W_m),
    "gini":   score <= score_m + purity_m - purity + (W - W_m), the purities being those of the whole node,
    "rebel":  score <= score_m - loss_m + loss, the losses being those of the constant classifier.

So the light rows are counted for those features only whose bound is not below the best score that has been found. The two ways
to the sums of the heavy rows are those of all features at once: for many rows `cpu.loops.histograms`, with the
larger sibling by subtraction; for few rows, block by block of features in the second-level cache, visiting only bins that hold
any of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, compiled
from gpuboost.backends.cpu.loops import growth as growth_loops
from gpuboost.backends.cpu.loops import histograms as histogram_loops
from gpuboost.backends.cpu.loops import sweeps as sweep_loops
from gpuboost.backends.cpu.loops.histograms import add_row
from gpuboost.backends.cpu.loops.sweeps import EDGE, GINI, REBEL, Best, rounding
from gpuboost.backends.cpu.one_hot import CLASS, WEIGHT
from gpuboost.backends.cpu.pruning.heavy import Rule, first_from
from gpuboost.backends.cpu.pruning.search import Columns, at_least, constant_score, search_blocks, worth
from gpuboost.backends.frontier import BASELINE, CUT, FEATURE, KEY, LEFT, MISSING_LEFT, SLOT, START, STOP

HEAVY, LIGHT = 0, 1
"""Columns of ``stops``, where these rows of a node end."""

ADDED_HEAVY, ADDED_LIGHT, VISITED_LIGHT, LIGHT_ROWS = range(4)
"""Entries of ``counts``: (row, feature) pairs that were added for bounds, and to finish features; (row, block) pairs that were
looked at for the latter; the light rows of all nodes."""

BATCHES = (1, 8, 2**62)
"""How many features are finished at a time: the most promising one, a few, and all that are left to be finished."""


class Growth(NamedTuple):
    """One tree while it grows.

    Attributes
    ----------
    rows, quantised, nodes, totals, edges : ndarray
        The tree's part of a `gpuboost.backends.frontier.Frontier`.
    sum_abs : ndarray of int64, shape (n_rows,)
    level : ndarray of uint8, shape (n_rows,)
        0 for heavy rows, 1 for light rows, 2 for rows without mass.
    stops : ndarray of int64, shape (M, 2)
    heavy : ndarray of int32, shape (M, C)
        Channel sums of a node's heavy rows.
    class_mass : ndarray of int64, shape (n_classes,)
        The root's sums of abs(quantised), for the criterion "rebel".
    """

    rows: Array
    quantised: Array
    nodes: Array
    totals: Array
    edges: Array
    sum_abs: Array
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


@compiled
def mass_of(growth: Growth, start: int, stop: int) -> Int:
    total = np.int64(0)
    for i in range(start, stop):
        total += growth.sum_abs[np.uint64(growth.rows[i])]
    return total


@compiled
def sweep(
    f: int,
    columns: Columns,
    histogram: Array,
    start: Array,
    rule: Rule,
    sum_abs: Array,
    whole: float,
    work: Array,
    best: Best,
    lanes: tuple[int, ...],
) -> Any:
    offsets, has_missing = columns.bin_offsets, columns.has_missing
    if rule.criterion == GINI:
        return sweep_loops.sweep_gini(f, offsets, has_missing, histogram, start, rule.n_classes, 0, whole, best)
    if rule.criterion == REBEL:
        roots = np.empty(len(sum_abs), np.float64)
        return sweep_loops.sweep_rebel(f, offsets, has_missing, histogram, start, rule.n_classes, 0, sum_abs, roots, best)
    return sweep_loops.sweep(f, offsets, has_missing, histogram, start, work[0], rule.n_classes, 0, best, lanes)


@compiled
def sweep_pair(
    lo: int,
    hi: int,
    columns: Columns,
    start: Array,
    other_start: Array,
    rule: Rule,
    sum_abs: Array,
    light: int,
    other_light: int,
    parts: Array,
    child: Array,
    other: Array,
    scores: Array,
    lanes: tuple[int, ...],
) -> tuple[Best, Best]:
    """Finish and sweep the histograms of two siblings' heavy rows, as `gpuboost.backends.cpu.loops.sweeps.finish`.

    ``scores`` (2, n_features) gets the best of each feature, or a score that is too low to matter.
    """
    work, criterion = np.zeros((2, child.shape[1]), np.int32), rule.criterion
    constant, other_constant = constant_score(start, criterion), constant_score(other_start, criterion)
    best, other_best = (
        (constant, np.int64(-1), np.int64(0), np.int64(0)),
        (other_constant, np.int64(-1), np.int64(0), np.int64(0)),
    )
    whole, other_whole = worth(start, rule, sum_abs), worth(other_start, rule, sum_abs)
    for u in range(lo, hi):
        f = columns.usable[u]
        histogram_loops.fill_skipped_bin(f, columns.bin_offsets, columns.skipped, start, parts, child, other, work[0], lanes)
        now = at_least(best, constant, criterion, light)
        now = sweep(f, columns, child, start, rule, sum_abs, whole, work, now, lanes)
        scores[0, f] = now[0]
        best = now if now[1] >= 0 and now[0] > best[0] else best
        if len(other):
            now = at_least(other_best, other_constant, criterion, other_light)
            now = sweep(f, columns, other, other_start, rule, sum_abs, other_whole, work, now, lanes)
            scores[1, f] = now[0]
            other_best = now if now[1] >= 0 and now[0] > other_best[0] else other_best
    return best, other_best


@compiled
def beats(score: int, f: int, best: Best) -> Int:
    """Whether a cut of feature f with this score is better than ``best``: ties go to the lowest feature."""
    return score > best[0] or (score == best[0] and f < best[1])


@compiled
def to_bounds(scores: Array, columns: Columns, heavy: Array, total: Array, rule: Rule, masses: Array, light: int) -> None:
    """Turn the best scores on the heavy rows into bounds of the scores on all rows.

    ``masses`` (2, n_classes) are the sums of abs(quantised) over the heavy rows and over all rows, for the criterion "rebel".
    """
    of_heavy, of_all = worth(heavy, rule, masses[0]), worth(total, rule, masses[1])
    more, slack = of_heavy - of_all + light, rounding(total, rule.n_classes)
    if rule.criterion == REBEL:
        more, slack = of_all - of_heavy, rounding(masses[1], rule.n_classes)
    for f in columns.usable:
        if rule.criterion == EDGE:
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
    flat_heavy, flat_q, n_channels = heavy.reshape(-1), growth.quantised.reshape(-1), heavy.shape[1]
    heavy[small] = 0
    for i in range(nodes[small, START], stops[small, HEAVY]):
        row = np.int64(rows[i])
        if one_hot:
            heavy[small, growth.quantised[row, CLASS]] += growth.quantised[row, WEIGHT]
        else:
            add_row(flat_heavy, small, flat_q, row, n_channels, lanes)
    if large >= 0:
        heavy[large] = heavy[parent] - heavy[small]
    return small, large


@compiled
def class_masses(growth: Growth, criterion: int) -> Array:
    """Return the sums of abs(quantised) over the root's heavy rows and over all its rows, for the criterion "rebel"."""
    masses = np.zeros((2, len(growth.class_mass)), np.int64)
    masses[1] = growth.class_mass
    if criterion == REBEL:
        for i in range(growth.nodes[0, START], growth.stops[0, HEAVY]):
            for c in range(masses.shape[1]):
                masses[0, c] += abs(np.int64(growth.quantised[growth.rows[i], c]))
    return masses


@compiled
def find_splits(
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
    rows, nodes, stops, quantised = growth.rows, growth.nodes, growth.stops, growth.quantised
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
        counting = (columns.blocks, columns.masks, columns.skipped, columns.bin_offsets, own, quantised)
        sums = memory.histograms[slot : slot + 1]
        if rule.one_hot:
            memory.counts[ADDED_HEAVY] += histogram_loops.histogram_of_classes(0, n_blocks, *counting, sums, rule.n_classes)
        else:
            memory.counts[ADDED_HEAVY] += histogram_loops.histogram(0, n_blocks, *counting, sums, lanes)
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
                sweep_loops.store_split(bests[s], columns.bin_offsets, histogram, nodes[m], growth.totals[m], growth.edges[m])
            else:
                finish_histogram(m, columns, growth, memory, histogram, memory.bounds[s], rule, masses, light[s], lanes)


@compiled
def finish_histogram(
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
            growth.quantised,
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
                growth.quantised,
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
    quantised: Array,
    nodes: Array,
    totals: Array,
    edges: Array,
    current: Array,
    buffer: Array,
    sum_abs: Array,
    level: Array,
    stops: Array,
    heavy: Array,
    class_mass: Array,
    rule: Rule,
    n_voting: int,
    few: int,
    lanes: tuple[int, ...],
) -> None:
    """Grow the trees lo..hi-1, one after another, as `gpuboost.backends.cpu.loops.growth.grow`."""
    n_cuts = nodes.shape[1] // 2
    for t in range(lo, hi):
        own, held = t if len(quantised) > 1 else 0, rows[t if len(rows) > 1 else 0]
        growth = Growth(
            held, quantised[own], nodes[t], totals[t], edges[t], sum_abs[own], level[own], stops[t], heavy[t], class_mass[t]
        )
        find_splits(columns, growth, memory, rule, few, 0, -1, -1, lanes)
        for s in range(n_cuts):
            if not growth_loops.pop_best_leaf(s, nodes[t : t + 1], current[t : t + 1], len(memory.histograms)):
                break
            parent = current[t]
            if nodes[t, parent, LEFT] == 0:
                continue
            growth_loops.partition(columns.blocks, held, buffer, nodes[t], totals[t], edges[t], n_voting, parent)
            if s + 1 < n_cuts:
                small, large = growth_loops.order_children(nodes[t], parent)
                find_splits(columns, growth, memory, rule, few, small, large, parent, lanes)

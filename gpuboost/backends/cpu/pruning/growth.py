"""Compiled loops of exact pruning, the growth: trees from heavy rows, and from light rows where bounds ask for them.

See `gpuboost.backends.cpu.pruning.bounds` for the bounds.
"""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, Lanes, compiled, copy, inlined
from gpuboost.backends.cpu.loops.arguments import Columns, GrowingTree, Node, Rule, Siblings, SweepScratch, Trees
from gpuboost.backends.cpu.loops.growth import order_children, partition, pop_best_leaf, tree_of
from gpuboost.backends.cpu.loops.histograms import add_row, fill_skipped_bin, histogram, histogram_of_classes
from gpuboost.backends.cpu.loops.splits import store_split
from gpuboost.backends.cpu.loops.sweeps import Best, constant_score, sweep, worth
from gpuboost.backends.cpu.one_hot import CLASS, WEIGHT
from gpuboost.backends.cpu.pruning.bounds import best_found, choose, queue, to_bounds
from gpuboost.backends.cpu.pruning.heavy import RowSplit, first_from
from gpuboost.backends.cpu.pruning.search import BlockSearch, Memory, at_least, search_blocks
from gpuboost.backends.criteria import REBEL
from gpuboost.backends.frontier import LEFT, SLOT, START, STOP

HEAVY, LIGHT = 0, 1
"""Columns of ``stops``, where these rows of a node end."""

ADDED_HEAVY, ADDED_LIGHT, VISITED_LIGHT, LIGHT_ROWS = range(4)
"""Entries of ``counts``: (row, feature) pairs that were added for bounds, and to finish features; (row, block) pairs that were
looked at for the latter; the light rows of all nodes."""

BATCHES = (1, 8, 2**62)
"""How many features are finished at a time: the most promising one, a few, and all that are left to be finished."""


@compiled
def mass_of(tree: GrowingTree, split: RowSplit, start: int, stop: int) -> Int:
    total = np.int64(0)
    for i in range(start, stop):
        total += split.mass[np.uint64(tree.rows[i])]
    return total


@compiled
def sweep_pair(
    lo: int, hi: int, columns: Columns, pair: Siblings, sum_abs: Array, rule: Rule, memory: Memory, parts: Array, lanes: Lanes
) -> tuple[Best, Best]:
    """Finish and sweep the histograms of two siblings' heavy rows, see `gpuboost.backends.cpu.loops.splits`.

    ``memory.light`` are the masses of their light rows, ``sum_abs`` are of the root's heavy rows. ``memory.bounds`` gets the
    best score of each feature, or one that is too low to matter.
    """
    light, scores = memory.light, memory.bounds
    start, other_start, criterion = pair.total, pair.other_total, rule.criterion
    scratch = SweepScratch(np.zeros(pair.child.shape[1], np.int32), np.empty(len(sum_abs), np.float64))
    constant, other_constant = constant_score(start, rule), constant_score(other_start, rule)
    best = (constant, np.int64(-1), np.int64(0), np.int64(0))
    other_best = (other_constant, np.int64(-1), np.int64(0), np.int64(0))
    node = Node(start, sum_abs, worth(start, sum_abs, rule))
    other = Node(other_start, sum_abs, worth(other_start, sum_abs, rule))
    for u in range(lo, hi):
        f = columns.usable[u]
        fill_skipped_bin(f, columns, pair, parts, scratch.edges, lanes)
        now = sweep(f, columns, pair.child, node, rule, scratch, at_least(best, constant, criterion, light[0]), lanes)
        scores[0, f] = now[0]
        best = now if now[1] >= 0 and now[0] > best[0] else best
        if len(pair.other):
            least = at_least(other_best, other_constant, criterion, light[1])
            now = sweep(f, columns, pair.other, other, rule, scratch, least, lanes)
            scores[1, f] = now[0]
            other_best = now if now[1] >= 0 and now[0] > other_best[0] else other_best
    return best, other_best


@inlined
def prepare(
    tree: GrowingTree, split: RowSplit, one_hot: bool, small: int, large: int, parent: int, lanes: Lanes
) -> tuple[Int, Int]:
    """Find the heavy rows of two siblings, or of the root; return the one with fewer of them, and the other.

    The other one inherits the parent's slot.
    """
    rows, nodes, quantised, stops, heavy = tree.rows, tree.nodes, tree.quantised, split.stops, split.heavy
    for m in (small, large):
        if m >= 0:
            stops[m, HEAVY] = first_from(split.level, rows, nodes[m, START], nodes[m, STOP], 1)
            stops[m, LIGHT] = first_from(split.level, rows, stops[m, HEAVY], nodes[m, STOP], 2)
    if large >= 0 and stops[large, HEAVY] - nodes[large, START] < stops[small, HEAVY] - nodes[small, START]:
        nodes[small, SLOT], nodes[large, SLOT] = nodes[large, SLOT], nodes[small, SLOT]
        small, large = large, small
    flat_heavy, flat_q, n_channels = heavy.reshape(-1), quantised.reshape(-1), heavy.shape[1]
    heavy[small] = 0
    for i in range(nodes[small, START], stops[small, HEAVY]):
        row = np.int64(rows[i])
        if one_hot:
            heavy[small, quantised[row, CLASS]] += quantised[row, WEIGHT]
        else:
            add_row(flat_heavy, small, flat_q, row, n_channels, lanes)
    if large >= 0:
        for c in range(n_channels):
            heavy[large, c] = heavy[parent, c] - heavy[small, c]
    return small, large


@compiled
def class_masses(tree: GrowingTree, split: RowSplit, rule: Rule) -> Array:
    """Return the sums of abs(quantised) over the root's heavy rows and over all its rows, for the criterion "rebel"."""
    masses = np.zeros((2, len(tree.sum_abs)), np.int64)
    copy(masses[1], tree.sum_abs)
    if rule.criterion == REBEL:
        for i in range(tree.nodes[0, START], split.stops[0, HEAVY]):
            for c in range(masses.shape[1]):
                masses[0, c] += abs(np.int64(tree.quantised[tree.rows[i], c]))
    return masses


@inlined
def sweep_heavy(
    columns: Columns,
    tree: GrowingTree,
    split: RowSplit,
    memory: Memory,
    rule: Rule,
    pair: tuple[Int, Int],
    sum_abs: Array,
    lanes: Lanes,
) -> tuple[Best, Best]:
    """Count the heavy rows of the first of two siblings; return the best cuts of both on their heavy rows."""
    (small, large), nodes, n_blocks = pair, tree.nodes, len(columns.blocks)
    slot = nodes[small, SLOT]
    child, sums = memory.histograms[slot], memory.histograms[slot : slot + 1]
    other = memory.histograms[nodes[large, SLOT]] if large >= 0 else child[:0]
    rows = tree.rows[nodes[small, START] : split.stops[small, HEAVY]]
    if rule.one_hot:
        n_added = histogram_of_classes(np.int64(0), n_blocks, columns, rows, tree.quantised, sums, rule.n_classes)
    else:
        n_added = histogram(np.int64(0), n_blocks, columns, rows, tree.quantised, sums, lanes)
    memory.counts[ADDED_HEAVY] += n_added
    siblings = Siblings(split.heavy[small], split.heavy[large], child, other)
    lo, hi, none = np.int64(0), len(columns.usable), memory.histograms[:0]
    bests: tuple[Best, Best] = sweep_pair(lo, hi, columns, siblings, sum_abs, rule, memory, none, lanes)
    return bests


@inlined
def find_splits(
    columns: Columns,
    tree: GrowingTree,
    split: RowSplit,
    memory: Memory,
    rule: Rule,
    few: int,
    small: int,
    large: int,
    parent: int,
    lanes: Lanes,
) -> None:
    """Find the best classifiers of two siblings (or of the root, if ``large`` is -1) on one thread.

    Up to ``few`` heavy rows of both together are summed block by block.
    """
    nodes, stops = tree.nodes, split.stops
    pair = prepare(tree, split, rule.one_hot, small, large, parent, lanes)
    masses = class_masses(tree, split, rule)
    light, n_heavy = memory.light, np.int64(0)
    light[:] = 0
    for s in range(2):
        if pair[s] >= 0:
            light[s] = mass_of(tree, split, stops[pair[s], HEAVY], stops[pair[s], LIGHT])
            n_heavy += stops[pair[s], HEAVY] - nodes[pair[s], START]
    bests = ((np.int64(0), np.int64(0), np.int64(0), np.int64(0)), (np.int64(0), np.int64(0), np.int64(0), np.int64(0)))
    if n_heavy > few:
        bests = sweep_heavy(columns, tree, split, memory, rule, pair, masses[0], lanes)
    for s in range(2):
        m = pair[s]
        if m < 0:
            continue
        histogram = memory.histograms[nodes[m, SLOT]] if n_heavy > few else memory.histograms[0][:0]
        if light[s] == 0 and n_heavy > few:
            store_split(bests[s], columns.bin_offsets, histogram, nodes[m], tree.totals[m], tree.edges[m])
        else:
            finish_node(m, columns, tree, split, memory, histogram, rule, masses, s, lanes)


@inlined
def finish_node(
    m: int,
    columns: Columns,
    tree: GrowingTree,
    split: RowSplit,
    memory: Memory,
    histogram: Array,
    rule: Rule,
    masses: Array,
    s: int,
    lanes: Lanes,
) -> None:
    """Find the best classifier of node m, the s-th sibling.

    ``memory.light[s]`` is the mass of its light rows. If there is a histogram of its heavy rows, ``memory.bounds[s]`` are the
    scores on them.
    """
    nodes, edges, n_blocks, heavy = tree.nodes, tree.edges[m], len(columns.blocks), split.heavy[m]
    first, heavy_stop, light_stop = nodes[m, START], split.stops[m, HEAVY], split.stops[m, LIGHT]
    light, bounds = memory.light[s], memory.bounds[s]
    total = np.zeros(len(heavy), np.int32)
    for c in range(rule.n_classes):
        total[c] = tree.totals[m, c]
        edges[c] = total[c]
    best = (constant_score(total, rule), np.int64(-1), np.int64(0), np.int64(0))
    hopeless = len(histogram) == 0 and light > mass_of(tree, split, first, heavy_stop)
    if len(histogram) == 0 and not hopeless:
        task = BlockSearch(columns.masks, tree.rows[first:heavy_stop], histogram, heavy, masses[0], light, bounds)
        memory.counts[ADDED_HEAVY] += search_blocks(np.int64(0), n_blocks, columns, tree.quantised, task, memory, rule, lanes)
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
            rows = tree.rows[start:light_stop]
            memory.counts[VISITED_LIGHT] += len(rows) * np.count_nonzero(memory.chosen)
            task = BlockSearch(memory.chosen, rows, histogram, total, masses[1], np.int64(0), memory.scores)
            memory.counts[ADDED_LIGHT] += search_blocks(
                np.int64(0), n_blocks, columns, tree.quantised, task, memory, rule, lanes
            )
            best = best_found(memory.found, best, edges)
    queue(best, nodes[m])


@compiled
def grow(
    lo: int,
    hi: int,
    columns: Columns,
    trees: Trees,
    splits: RowSplit,
    memory: Memory,
    buffer: Array,
    rule: Rule,
    few: int,
    lanes: Lanes,
) -> None:
    """Grow the trees lo..hi-1, one after another, as `gpuboost.backends.cpu.loops.growth.grow`."""
    n_cuts = trees.nodes.shape[1] // 2
    for t in range(lo, hi):
        own, tree, current = t if len(splits.mass) > 1 else 0, tree_of(trees, t), trees.current[t : t + 1]
        split = RowSplit(splits.mass[own], splits.level[own], splits.stops[t], splits.heavy[t])
        small, large, parent = np.int64(0), np.int64(-1), np.int64(-1)
        for s in range(n_cuts):
            if parent < 0 or tree.nodes[parent, LEFT] != 0:  # the root, or a node that has been cut
                find_splits(columns, tree, split, memory, rule, few, small, large, parent, lanes)
            if not pop_best_leaf(s, trees.nodes[t : t + 1], current, len(memory.histograms)):
                break
            parent = current[0]
            if tree.nodes[parent, LEFT] == 0:
                continue
            partition(columns, tree, buffer, rule, parent)
            small, large = order_children(tree.nodes, parent)

"""Compiled loops of the CPU backend that grow trees: the queue of the nodes, the division of rows, whole trees.

They use `gpuboost.backends.cpu.loops.histograms` and `gpuboost.backends.cpu.loops.splits`.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cpu.jit import Array, Int, Lanes, compiled, copy, inlined
from gpuboost.backends.cpu.loops.arguments import Columns, GrowingTree, Rule, Trees
from gpuboost.backends.cpu.loops.histograms import AHEAD, TOGETHER, histogram, histogram_of_classes, root_histograms
from gpuboost.backends.cpu.loops.splits import evaluate_siblings
from gpuboost.backends.cpu.one_hot import WEIGHT
from gpuboost.backends.cpu.simd import LANES, prefetch
from gpuboost.backends.frontier import BASELINE, CLOSED, CUT, FEATURE, GAIN, KEY, LEFT, MISSING_LEFT, SLOT, START, STOP

T = TypeVar("T", bound=np.generic)


def of_tree(quantised: NDArray[T], t: int) -> NDArray[T]:
    """Return the statistics or rows of tree t: its own, or those that all trees of a batch share."""
    own: NDArray[T] = quantised[t] if len(quantised) > 1 else quantised[0]
    return own


def slots_needed(max_leaves: int) -> int:
    """Return how many histograms a tree keeps at a time.

    When s cuts have been made and R can still follow, a node that is not among the first R of the queue will never be cut. So
    besides the two new nodes only min(s, R) others need a histogram, where s + R + 2 leaves are the most.
    """
    return 1 + max_leaves // 2 if max_leaves > 2 else 1


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
def pop_best_leaf(step: Int, nodes: Array, current: Array, n_slots: int) -> bool:
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
    _, n_rows, width = blocks.shape
    codes, first = blocks.reshape(-1), node[FEATURE] // width * n_rows * width + node[FEATURE] % width
    # Left iff low <= code <= cut, where low admits or refuses the missing code 0: one comparison, modulo 256.
    low = np.uint8(1 - node[MISSING_LEFT])
    span = np.uint8(node[CUT] - (1 - node[MISSING_LEFT]))
    n_left: Int = 0
    n_right: Int = 0
    for i in range(start, stop):
        row = rows[i]
        prefetch(codes, np.uint64(first + np.int64(rows[min(i + AHEAD, stop - 1)]) * width))
        goes_left = np.uint8(codes[np.uint64(first + np.int64(row) * width)] - low) <= span
        rows[start + n_left] = row
        buffer[n_right] = row
        n_left += goes_left
        n_right += not goes_left
    middle = start + n_left
    copy(rows[middle:stop], buffer[:n_right])
    return middle


@compiled
def partition(columns: Columns, tree: GrowingTree, buffer: Array, rule: Rule, m: int) -> None:
    """Divide node m between its children."""
    nodes, totals, edges = tree.nodes, tree.totals, tree.edges
    node = nodes[m]
    start, stop, child = node[START], node[STOP], node[LEFT]
    middle = divide(columns.blocks, tree.rows, buffer, start, stop, node)
    nodes[child, START], nodes[child, STOP] = start, middle
    nodes[child + 1, START], nodes[child + 1, STOP] = middle, stop
    for c in range(totals.shape[1]):
        vote = 1 if edges[m, c] > 0 else -1  # eq. 13
        totals[child, c] = (totals[m, c] - edges[m, c]) // 2
        totals[child + 1, c] = (totals[m, c] + edges[m, c]) // 2
        if c < rule.n_voting:
            nodes[child, BASELINE] -= vote * totals[child, c]
            nodes[child + 1, BASELINE] += vote * totals[child + 1, c]


@inlined
def count(columns: Columns, tree: GrowingTree, histograms: Array, rule: Rule, node: int, lanes: Lanes) -> None:
    """Sum the histograms of a node's rows."""
    rows = tree.rows[tree.nodes[node, START] : tree.nodes[node, STOP]]
    sums = histograms[tree.nodes[node, SLOT] : tree.nodes[node, SLOT] + 1]
    if rule.one_hot:
        histogram_of_classes(np.int64(0), len(columns.blocks), columns, rows, tree.quantised, sums, rule.n_classes)
    else:
        histogram(np.int64(0), len(columns.blocks), columns, rows, tree.quantised, sums, lanes)


@compiled
def find_splits(
    columns: Columns, tree: GrowingTree, histograms: Array, rule: Rule, small: int, large: int, lanes: Lanes
) -> None:
    """Histograms and best classifiers of two siblings (or of the root, if ``large`` is -1) in one call, on one thread."""
    count(columns, tree, histograms, rule, small, lanes)
    evaluate_siblings(columns, tree, histograms, rule, small, large, lanes)


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
def hold_all(roots: Array, n_rows: int) -> bool:
    """Return whether the table rows of roots, shape (n_trees, 10), own all rows."""
    n_partial = 0
    for t in range(len(roots)):
        n_partial += roots[t, STOP] - roots[t, START] != n_rows
    return n_partial == 0


@compiled
def tree_of(trees: Trees, t: int) -> GrowingTree:
    """Return tree t of a batch."""
    rows, quantised = trees.rows[t if len(trees.rows) > 1 else 0], trees.quantised[t if len(trees.quantised) > 1 else 0]
    return GrowingTree(rows, quantised, trees.nodes[t], trees.totals[t], trees.edges[t], trees.sum_abs[t])


@compiled
def grow(lo: int, hi: int, columns: Columns, trees: Trees, histograms: Array, buffer: Array, rule: Rule, lanes: Lanes) -> None:
    """Grow the trees lo..hi-1, one after another, in the same memory for histograms."""
    n_cuts, quantised = trees.nodes.shape[1] // 2, trees.quantised
    # Roots with statistics of their own that hold all rows are counted in one pass.
    together = len(quantised) > 1 and quantised.shape[2] == LANES and hold_all(trees.nodes[lo:hi, 0], quantised.shape[1])
    roots = np.empty((columns.bin_offsets[-1] if together else 0, TOGETHER, quantised.shape[2]), histograms.dtype)
    for t in range(lo, hi):
        tree, current = tree_of(trees, t), trees.current[t : t + 1]
        small, large = np.int64(0), np.int64(-1)  # the root; of the type of other nodes
        for s in range(n_cuts):
            if s == 0 or tree.nodes[current[0], LEFT] != 0:  # there are nodes that nobody has looked at
                if s == 0 and together:
                    place = (t - lo) % TOGETHER
                    if place == 0:
                        root_histograms(t, min(t + TOGETHER, hi), columns, quantised, roots, lanes)
                    histograms[tree.nodes[0, SLOT]] = roots[:, place]
                else:
                    count(columns, tree, histograms, rule, small, lanes)
                evaluate_siblings(columns, tree, histograms, rule, small, large, lanes)
            if not pop_best_leaf(s, trees.nodes[t : t + 1], current, len(histograms)):
                break
            if tree.nodes[current[0], LEFT] != 0:
                partition(columns, tree, buffer, rule, current[0])
                small, large = order_children(tree.nodes, current[0])


@compiled
def node_of_rows(rows: Array, nodes: Array, out: Array) -> None:
    for m in range(len(nodes)):
        if nodes[m, LEFT] == 0:
            for i in range(nodes[m, START], nodes[m, STOP]):
                out[rows[i]] = m


@compiled
def place_weightless(lo: int, hi: int, quantised: Array, blocks: Array, nodes: Array, out: Array) -> None:
    """Write the leaf of the rows without weight, which a growth on one class a row leaves out: the same divisions once more."""
    rows, buffer = np.empty(hi - lo, np.int32), np.empty(hi - lo, np.int32)
    n: Int = 0
    for i in range(lo, hi):
        rows[n] = i
        n += quantised[i, WEIGHT] == 0
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

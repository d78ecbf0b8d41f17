"""Compiled loops of the CPU backend that let rows pass through trees which grow by passes, see `gpuboost.backends.cpu.passes`.

A chunk of rows is divided into pieces, which threads share. All row numbers are those within the chunk.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpuboost.backends.cpu.jit import Array, Lanes, compiled
from gpuboost.backends.cpu.loops.arguments import Columns
from gpuboost.backends.cpu.loops.histograms import add_rows, add_rows_of_classes


class Cuts(NamedTuple):
    """What happens to the rows of each node in a pass. A node that is not divided is its own left child, where all rows go.

    So no row takes a branch that cannot be foreseen.

    Attributes
    ----------
    left : ndarray of int32, shape (n_nodes,)
        The left child of a node.
    to_right : int
        The right child's number less that of the left one.
    block, column : ndarray of int32, shape (n_nodes,)
        Where the codes of the feature that a node is cut by lie.
    low, span : ndarray of uint8, shape (n_nodes,)
        A row goes left iff ``code - low <= span``, modulo 256; see `gpuboost.backends.cpu.loops.growth.divide`.
    place : ndarray of int32, shape (n_nodes,)
        The place of a node among those whose rows are counted, from 1, else 0.
    """

    left: Array
    to_right: int
    block: Array
    column: Array
    low: Array
    span: Array
    place: Array


class Routed(NamedTuple):
    """The rows of a chunk by the nodes that are counted, as `route` leaves them.

    Attributes
    ----------
    rows : ndarray of int32, shape (1 + n_counted, n_rows)
        Only the parts that are listed are written to.
    bounds : ndarray of int64, shape (n_pieces + 1,)
    ends : ndarray of int64, shape (n_pieces, 1 + n_counted)
    """

    rows: Array
    bounds: Array
    ends: Array


@compiled
def route(lo: int, hi: int, bounds: Array, blocks: Array, cuts: Cuts, node_of_row: Array, rows: Array, ends: Array) -> None:
    """Send the rows of the pieces lo..hi-1 to the children of the nodes that are divided, and list them by the nodes counted.

    Piece p has the rows ``bounds[p]:bounds[p + 1]``. Those in the counted node at place k become
    ``rows[k, bounds[p]:ends[p, k]]``, in order; place 0 has those that are not counted. A row whose node is -1 is in no tree.
    """
    n_places = ends.shape[1]
    cursor = np.empty(n_places, np.int64)
    for piece in range(lo, hi):
        cursor[:] = bounds[piece]
        for i in range(np.uint64(bounds[piece]), np.uint64(bounds[piece + 1])):
            place = np.uint64(0)
            if node_of_row[i] >= 0:
                node = np.uint64(node_of_row[i])
                code = blocks[np.uint64(cuts.block[node]), i, np.uint64(cuts.column[node])]
                goes_right = np.uint8(code - cuts.low[node]) > cuts.span[node]
                child = np.uint64(cuts.left[node]) + np.uint64(goes_right) * np.uint64(cuts.to_right)
                node_of_row[i] = child
                place = np.uint64(cuts.place[child])
            rows[place, np.uint64(cursor[place])] = i
            cursor[place] += 1
        for k in range(n_places):
            ends[piece, k] = cursor[k]


@compiled
def count(
    lo: int, hi: int, columns: Columns, routed: Routed, quantised: Array, targets: Array, out: Array, lanes: Lanes
) -> None:
    """Add the rows that `route` has sorted to the histograms of their nodes.

    A piece of work is a block of features, a counted node, and one of its parts, to which some pieces of the chunk belong.
    ``out[targets[k, part]]`` (n_bins_total, C) is a histogram of the node at place k + 1.
    """
    rows, bounds, ends = routed.rows, routed.bounds, routed.ends
    n_blocks, (n_counted, n_parts), n_pieces = len(columns.blocks), targets.shape, len(ends)
    for work in range(lo, hi):
        block, place, part = work % n_blocks, work // n_blocks % n_counted, work // (n_blocks * n_counted)
        histogram = out[targets[place, part]]
        for piece in range(n_pieces * part // n_parts, n_pieces * (part + 1) // n_parts):
            add_rows(histogram, block, columns, rows[place + 1, bounds[piece] : ends[piece, place + 1]], quantised, lanes)


@compiled
def count_classes(
    lo: int, hi: int, columns: Columns, routed: Routed, quantised: Array, targets: Array, out: Array, n_classes: int
) -> None:
    """As `count`, for statistics with one class a row."""
    rows, bounds, ends = routed.rows, routed.bounds, routed.ends
    n_blocks, (n_counted, n_parts), n_pieces = len(columns.blocks), targets.shape, len(ends)
    for work in range(lo, hi):
        block, place, part = work % n_blocks, work // n_blocks % n_counted, work // (n_blocks * n_counted)
        histogram = out[targets[place, part]]
        for piece in range(n_pieces * part // n_parts, n_pieces * (part + 1) // n_parts):
            own = rows[place + 1, bounds[piece] : ends[piece, place + 1]]
            add_rows_of_classes(histogram, block, columns, own, quantised, n_classes)

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
    """What happens to the rows of each node in a pass.

    Attributes
    ----------
    left : ndarray of int32, shape (n_nodes,)
        The left child of a node that is divided, else -1.
    to_right : int
        The right child's number less that of the left one.
    block, column : ndarray of int32, shape (n_nodes,)
        Where the codes of the feature that a node is cut by lie.
    low, span : ndarray of uint8, shape (n_nodes,)
        A row goes left iff ``code - low <= span``, modulo 256; see `gpuboost.backends.cpu.loops.growth.divide`.
    place : ndarray of int32, shape (n_nodes,)
        The place of a node among those whose rows are counted, else -1.
    """

    left: Array
    to_right: int
    block: Array
    column: Array
    low: Array
    span: Array
    place: Array


@compiled
def route(lo: int, hi: int, bounds: Array, blocks: Array, cuts: Cuts, node_of_row: Array, rows: Array, ends: Array) -> None:
    """Send the rows of the pieces lo..hi-1 to the children of the nodes that are divided, and sort them by the nodes counted.

    Piece p has the rows ``bounds[p]:bounds[p + 1]``. Those in the counted node at place k become
    ``rows[ends[p, k]:ends[p, k + 1]]``, in order. A row whose node is -1 is in no tree.
    """
    n_counted = ends.shape[1] - 1
    cursor = np.empty(n_counted, np.int64)
    for piece in range(lo, hi):
        cursor[:] = 0
        for i in range(bounds[piece], bounds[piece + 1]):
            node = np.int64(node_of_row[i])
            if node >= 0:
                left = cuts.left[node]
                if left >= 0:
                    code = blocks[cuts.block[node], i, cuts.column[node]]
                    goes_left = np.uint8(code - cuts.low[node]) <= cuts.span[node]
                    node = np.int64(left if goes_left else left + cuts.to_right)
                    node_of_row[i] = node
                place = cuts.place[node]
                if place >= 0:
                    cursor[place] += 1
        end = bounds[piece]
        for place in range(n_counted):
            ends[piece, place] = end
            end += cursor[place]
            cursor[place] = ends[piece, place]
        ends[piece, n_counted] = end
        for i in range(bounds[piece], bounds[piece + 1]):
            node = np.int64(node_of_row[i])
            if node >= 0:
                place = cuts.place[node]
                if place >= 0:
                    rows[cursor[place]] = i
                    cursor[place] += 1


@compiled
def count(
    lo: int, hi: int, columns: Columns, rows: Array, ends: Array, quantised: Array, targets: Array, out: Array, lanes: Lanes
) -> None:
    """Add the rows that `route` has sorted to the histograms of their nodes.

    A piece of work is a block of features, a counted node, and one of its parts, to which some pieces of the chunk belong.
    ``out[targets[k, part]]`` (n_bins_total, C) is a histogram of the node at place k.
    """
    n_blocks, (n_counted, n_parts), n_pieces = len(columns.blocks), targets.shape, len(ends)
    for work in range(lo, hi):
        block, place, part = work % n_blocks, work // n_blocks % n_counted, work // (n_blocks * n_counted)
        histogram = out[targets[place, part]]
        for piece in range(n_pieces * part // n_parts, n_pieces * (part + 1) // n_parts):
            add_rows(histogram, block, columns, rows[ends[piece, place] : ends[piece, place + 1]], quantised, lanes)


@compiled
def count_classes(
    lo: int, hi: int, columns: Columns, rows: Array, ends: Array, quantised: Array, targets: Array, out: Array, n_classes: int
) -> None:
    """As `count`, for statistics with one class a row."""
    n_blocks, (n_counted, n_parts), n_pieces = len(columns.blocks), targets.shape, len(ends)
    for work in range(lo, hi):
        block, place, part = work % n_blocks, work // n_blocks % n_counted, work // (n_blocks * n_counted)
        histogram = out[targets[place, part]]
        for piece in range(n_pieces * part // n_parts, n_pieces * (part + 1) // n_parts):
            own = rows[ends[piece, place] : ends[piece, place + 1]]
            add_rows_of_classes(histogram, block, columns, own, quantised, n_classes)

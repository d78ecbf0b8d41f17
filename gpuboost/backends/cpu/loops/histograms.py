"""Compiled loops of the CPU backend that add up rows to histograms.

They work on a range of pieces, without the GIL, so that threads can share them. The class axis is innermost and contiguous, so
that one (row, feature) pair is a short vector addition; statistics are padded to whole vectors of four classes for it. The
limit of a histogram is its additions, rows x features x classes in int32, or, where it outgrows the second-level cache, one
cache line in and out for each (row, feature) pair that is not skipped.
"""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, Lanes, compiled, inlined
from gpuboost.backends.cpu.loops.arguments import Columns, Siblings
from gpuboost.backends.cpu.one_hot import CLASS, COUNT, WEIGHT
from gpuboost.backends.cpu.simd import LANES, add_vectors, differing_16, differing_32, differing_64, lowest_bit, prefetch

UNROLLED = 4
"""Up to this many vectors a row of statistics is added by code made for its width."""

AHEAD = 16
"""A node's rows lie anywhere: memory is asked for each of them this many rows before it is added."""


def unrolled(width: int) -> Lanes:
    """Return a tuple whose length tells the compiler the number of vectors in a row; empty if it should not unroll."""
    n_vectors = width // LANES
    return (0,) * n_vectors if n_vectors <= UNROLLED else ()


@compiled
def add_row(out: Array, i: int, quantised: Array, j: int, n_channels: int, lanes: Lanes) -> None:
    """Add row j of ``quantised`` to row i of ``out``, both flat with ``n_channels`` entries a row.

    The length of ``lanes`` is known to the compiler, which adds up to `UNROLLED` vectors a row at once.
    """
    width = np.uint64(n_channels)
    target, source = np.uint64(i) * width, np.uint64(j) * width
    if len(lanes) > 0:
        add_vectors(out, target, quantised, source, lanes)
    elif n_channels >= LANES:
        for g in range(0, n_channels, LANES):
            add_vectors(out, target + np.uint64(g), quantised, source + np.uint64(g), (0,))
    else:
        for c in range(n_channels):
            out[target + np.uint64(c)] += quantised[source + np.uint64(c)]


@compiled
def differing(a: Array, i: int, b: Array, j: int, width: int) -> Int:
    """Return the bits n < width for which ``a[i + n] != b[j + n]``."""
    if width == 64:
        return differing_64(a, np.uint64(i), b, np.uint64(j))
    if width == 32:
        return differing_32(a, np.uint64(i), b, np.uint64(j))
    return differing_16(a, np.uint64(i), b, np.uint64(j))


@compiled
def histogram(lo: int, hi: int, columns: Columns, rows: Array, quantised: Array, out: Array, lanes: Lanes) -> Int:
    """Add up ``quantised`` by bin over ``rows``, leaving out every feature's most frequent bin. Return the number of additions.

    A piece of work is a block of features and a chunk of rows; ``out`` (n_chunks, n_bins_total, C) has room for every chunk and
    is overwritten.
    """
    n_chunks, n_added = out.shape[0], np.int64(0)
    for piece in range(lo, hi):
        block, chunk = piece % len(columns.blocks), piece // len(columns.blocks)
        clear_block(out[chunk], block, columns)
        start, stop = len(rows) * chunk // n_chunks, len(rows) * (chunk + 1) // n_chunks
        n_added += add_rows(out[chunk], block, columns, rows[start:stop], quantised, lanes)
    return n_added


@compiled
def clear_block(out: Array, block: int, columns: Columns) -> None:
    """Write zeros to the bins of a block of features."""
    first, last = block * columns.blocks.shape[2], len(columns.bin_offsets) - 1
    out[columns.bin_offsets[first] : columns.bin_offsets[min(first + columns.blocks.shape[2], last)]] = 0


@compiled
def add_rows(out: Array, block: int, columns: Columns, rows: Array, quantised: Array, lanes: Lanes) -> Int:
    """Add ``rows`` to the bins of a block of features in ``out`` (n_bins_total, C). Return the number of additions.

    A row's codes of one block are compared with the skipped codes at once, and only the features that differ are visited, so
    that sparse data cost what their non-zeros cost. The block's mask has the bits of the features that matter.
    """
    blocks, skipped, bin_offsets = columns.blocks, columns.skipped, columns.bin_offsets
    _, n_rows, width = blocks.shape
    n_channels, first, mask = quantised.shape[1], block * width, columns.masks[block]
    flat_blocks, flat_q, flat_out = blocks.reshape(-1), quantised.reshape(-1), out.reshape(-1)
    one, n_added = np.uint64(1), np.int64(0)
    for i in range(len(rows)):
        row, later = np.int64(rows[i]), np.int64(rows[min(i + AHEAD, len(rows) - 1)])
        prefetch(flat_blocks, np.uint64((block * n_rows + later) * width))
        prefetch(flat_q, np.uint64(later * n_channels))
        at = (block * n_rows + row) * width
        bits = differing(flat_blocks, at, skipped, first, width) & mask
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
def root_histograms(lo: int, hi: int, columns: Columns, quantised: Array, out: Array, lanes: Lanes) -> None:
    """As `histogram`, over all rows for each of the trees lo..hi-1: ``out`` (n_bins_total, TOGETHER, C) is overwritten.

    A row's codes are looked at once, and what is added is one long vector. ``lanes`` are those of one tree.
    """
    blocks, masks, skipped, bin_offsets = columns.blocks, columns.masks, columns.skipped, columns.bin_offsets
    n_blocks, n_rows, width = blocks.shape
    n_channels, one = quantised.shape[2], np.uint64(1)
    own = np.empty((INTERLEAVED, TOGETHER, n_channels), np.int32)
    flat_blocks, flat_q, flat_own, flat_out = blocks.reshape(-1), quantised.reshape(-1), own.reshape(-1), out.reshape(-1)
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
def histogram_of_classes(lo: int, hi: int, columns: Columns, rows: Array, quantised: Array, out: Array, n_classes: int) -> Int:
    """As `histogram`, for statistics with one class a row, see `gpuboost.backends.cpu.one_hot`."""
    n_chunks, n_added = out.shape[0], np.int64(0)
    for piece in range(lo, hi):
        block, chunk = piece % len(columns.blocks), piece // len(columns.blocks)
        clear_block(out[chunk], block, columns)
        start, stop = len(rows) * chunk // n_chunks, len(rows) * (chunk + 1) // n_chunks
        n_added += add_rows_of_classes(out[chunk], block, columns, rows[start:stop], quantised, n_classes)
    return n_added


@inlined
def add_rows_of_classes(out: Array, block: int, columns: Columns, rows: Array, quantised: Array, n_classes: int) -> Int:
    """As `add_rows`, for statistics with one class a row."""
    blocks, skipped, bin_offsets = columns.blocks, columns.skipped, columns.bin_offsets
    _, n_rows, width = blocks.shape
    n_channels, first, mask = np.uint64(out.shape[1]), block * width, columns.masks[block]
    n_columns, has_counts = quantised.shape[1], quantised.shape[1] > COUNT
    flat_blocks, flat_q, flat_out = blocks.reshape(-1), quantised.reshape(-1), out.reshape(-1)
    one, n_added = np.uint64(1), np.int64(0)
    for i in range(len(rows)):
        row, later = np.int64(rows[i]), np.int64(rows[min(i + AHEAD, len(rows) - 1)])
        prefetch(flat_blocks, np.uint64((block * n_rows + later) * width))
        prefetch(flat_q, np.uint64(later * n_columns))
        own = row * n_columns
        label, weight = np.uint64(flat_q[own + CLASS]), flat_q[own + WEIGHT]
        at = (block * n_rows + row) * width
        bits = differing(flat_blocks, at, skipped, first, width) & mask
        while bits != 0:
            n = np.int64(lowest_bit(bits))
            bits &= bits - one
            cell = np.uint64(bin_offsets[first + n] + flat_blocks[at + n]) * n_channels
            flat_out[cell + label] += weight
            if has_counts:
                flat_out[cell + np.uint64(n_classes)] += flat_q[own + COUNT]
            n_added += 1
    return n_added


@inlined
def fill_skipped_bin(f: int, columns: Columns, pair: Siblings, parts: Array, sums: Array, lanes: Lanes) -> None:
    """Finish feature f's histograms. ``sums`` is scratch for one row.

    Adds up the chunks; gives the skipped bin the node's total minus all other bins (exact, because these are integers); and
    turns the parent's histogram, if there is one, into that of the sibling.
    """
    bin_offsets, total, child, parent = columns.bin_offsets, pair.total, pair.child, pair.other
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
    rest = own[n_channels * np.int64(columns.skipped[f]) :]
    for c in range(len(total)):
        rest[c] = total[c] - sums[c]
    if len(parent):
        other = parent.reshape(-1)[begin:end]
        for i in range(len(own)):
            other[i] -= own[i]

"""The compiled loop of the CPU backend that lets rows leave an ensemble early."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, Int, compiled, inlined
from gpuboost.backends.cpu.loops.rows import EnsembleArrays
from gpuboost.binning import MISSING_CODE


@inlined
def leaf_of(codes: Array, trees: EnsembleArrays, t: int) -> Int:
    """Return the leaf of tree t, among those of all trees, that a row of codes arrives in."""
    base = trees.node_offset[t]
    node = 0 if trees.node_offset[t + 1] > base else -1
    while node >= 0:
        at = base + node
        code = codes[trees.feature[at]]
        goes_left = code <= trees.cut[at] and (code != MISSING_CODE or trees.missing_left[at])
        node = trees.left[at] if goes_left else trees.right[at]
    return trees.leaf_offset[t] + ~node


@inlined
def leaves(scores: Array, margins: Array) -> bool:
    """Whether the first largest score exceeds every other one by more than its margin (n_classes or 1, n_classes or 1)."""
    a = 0
    for k in range(1, len(scores)):
        a = k if scores[k] > scores[a] else a
    for_leader = margins[a if margins.shape[0] > 1 else 0]
    for k in range(len(scores)):
        if k != a and not scores[a] - scores[k] > for_leader[k if len(for_leader) > 1 else 0]:
            return False
    return True


@compiled
def predict_until(
    lo: int, hi: int, blocks: Array, trees: EnsembleArrays, stops: Array, margins: Array, scores: Array, left_at: Array
) -> None:
    """Walk a few rows at a time, as `predict` does, through the trees of a checkpoint after another, and drop those that leave.

    Limit: the trees that are used; a row costs ``n_classes`` comparisons at a checkpoint.
    """
    n_blocks, width = blocks.shape[0], blocks.shape[2]
    own = np.empty((max(1, 32768 // (n_blocks * width)), n_blocks * width), np.uint8)
    inside = np.empty(len(own), np.int64)
    last = len(stops) - 1
    for begin in range(lo, hi, len(own)):
        n_inside = min(hi - begin, len(own))
        for i in range(n_inside):
            inside[i] = i
            for b in range(n_blocks):
                own[i, b * width : (b + 1) * width] = blocks[b, begin + i]
        first = 0
        for checkpoint in range(len(stops)):
            for t in range(first, stops[checkpoint]):
                for j in range(n_inside):
                    i = inside[j]
                    leaf = leaf_of(own[i], trees, t)
                    for k in range(scores.shape[1]):
                        scores[begin + i, k] += trees.values[leaf, k]
            first = stops[checkpoint]
            needed = margins[checkpoint if margins.shape[0] > 1 else 0]
            n_left = 0
            for j in range(n_inside):
                i = inside[j]
                if checkpoint == last or leaves(scores[begin + i], needed):
                    left_at[begin + i] = checkpoint
                else:
                    inside[n_left] = i
                    n_left += 1
            n_inside = n_left
            if n_inside == 0:
                break

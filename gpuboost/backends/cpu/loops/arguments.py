"""What the compiled loops that grow trees take together: named tuples, which numba passes field by field.

Arrays that are said to be of all trees have the trees as first axis, of length 1 where all trees share them.
"""

from __future__ import annotations

from typing import NamedTuple

from gpuboost.backends.cpu.jit import Array, Float, Int


class Columns(NamedTuple):
    """The codes of a `gpuboost.backends.cpu.matrix.CpuMatrix`, the features that may be cut, and their bits in each block."""

    blocks: Array
    masks: Array
    usable: Array
    bin_offsets: Array
    has_missing: Array
    skipped: Array


class Rule(NamedTuple):
    """What the statistics are and what trees are cut by; see `gpuboost.backends.statistics.Stats`."""

    criterion: int
    n_classes: int
    n_voting: int
    min_count: int
    one_hot: bool


class Trees(NamedTuple):
    """A batch of trees, see `gpuboost.backends.frontier.Frontier`; ``sum_abs`` are the roots' sums of abs(quantised)."""

    rows: Array
    quantised: Array
    nodes: Array
    totals: Array
    edges: Array
    current: Array
    sum_abs: Array


class GrowingTree(NamedTuple):
    """One of `Trees`."""

    rows: Array
    quantised: Array
    nodes: Array
    totals: Array
    edges: Array
    sum_abs: Array


class Siblings(NamedTuple):
    """Two siblings: the one whose rows are counted, and the other, which inherits its parent's histogram; or a root alone.

    Attributes
    ----------
    total, other_total : ndarray of int
        Channel sums.
    child, other : ndarray of int32 or int64, shape (n_bins_total, C)
        Histograms; ``other`` holds the parent's before its sibling's is subtracted. For a root it is empty.
    """

    total: Array
    other_total: Array
    child: Array
    other: Array


class Bins(NamedTuple):
    """The bins of a feature in a histogram: where they begin, and how many they are."""

    feature: Int
    first: Int
    n: Int
    has_missing: Int


class Node(NamedTuple):
    """A node as cuts are compared with it: its channel sums, its root's ``sum_abs``, and its purity, gain, loss or entropy."""

    start: Array
    sum_abs: Array
    whole: Float


class SweepScratch(NamedTuple):
    """Memory for a row of edges, of the type of the histograms, and for one number a class in float64."""

    edges: Array
    roots: Array

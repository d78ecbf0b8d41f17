"""Trees while they grow: what a growth starts from, and the table of its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.statistics import Device, Stats

START, STOP, FEATURE, CUT, MISSING_LEFT, LEFT, BASELINE, KEY, GAIN, SLOT = range(10)
"""Columns of a frontier's node table, see `Frontier`."""

CLOSED = -1
"""The key of a node that is not in the queue."""


@dataclass(frozen=True, eq=False)
class GrowthScope:
    """The rows and features that trees are grown from; by default one root that holds all rows and may be split by any feature.

    Attributes
    ----------
    sample_indices : device array of int32, shape (n,), optional
        Row numbers. Without them a tree holds all rows.
    bounds : ndarray of int64, shape (n_trees + 1,), optional
        Tree t of the batch starts from ``sample_indices[bounds[t]:bounds[t + 1]]``, with statistics of its own, or all trees
        with those of one: then no row is there twice, else none twice in a tree. Without bounds every tree of the statistics'
        batch starts from all of ``sample_indices``, none of them twice.
    feature_mask : ndarray of bool, shape (n_features,), optional
        The features that may be split by. Without it, all of them.
    pruning : bool
        Whether a backend may skip additions that exact bounds show to be unnecessary. The trees are the same. The CPU backend
        does so where it pays; a GPU computes all histograms, which are cheap there.
    """

    sample_indices: Device | None = None
    bounds: NDArray[np.int64] | None = None
    feature_mask: NDArray[np.bool_] | None = None
    pruning: bool = False

    def __post_init__(self) -> None:
        if self.bounds is not None and self.sample_indices is None:
            raise ValueError("bounds divide rows, and there are none")

    @property
    def is_whole(self) -> bool:
        """Whether there is one root that holds all rows and may be split by any feature."""
        return self.sample_indices is None and self.feature_mask is None


WHOLE = GrowthScope()
"""All rows and all features."""


@dataclass
class Frontier:
    """Trees while they grow: a table of nodes with the best split of each, and the rows sorted by node.

    With J = ``max_leaves``, a tree has at most M = 2J - 1 nodes. Node 0 is the root; the node that is popped at step s gets the
    children 2s + 1 (left) and 2s + 2 (right), in every tree of the batch.

    Attributes
    ----------
    rows : device array of int32, shape (T, n_rows)
        Row numbers; node m owns ``rows[t, start:stop]``. A root owns ``rows[t, bounds[t]:bounds[t + 1]]`` of its `GrowthScope`;
        trees that start from stretches of rows may share them, shape (1, n). With ``stats.one_hot`` rows that add to no sum may
        be left out; `node_of_rows` knows them.
    nodes : device array of int64, shape (T, M, 10)
        A node's columns are

        START, STOP : its rows;
        FEATURE : the feature of the best split, -1 if the constant classifier is best;
        CUT, MISSING_LEFT : codes ``1 .. cut`` go left, and so does the missing code if missing-left is 1;
        LEFT : the left child of a node that was split, else 0 (the right child is the next node);
        BASELINE : the edge that the parent's votes give on the node's rows, 0 for a root and for criteria without votes;
        KEY : the gain of splitting the node, `CLOSED` if it is not in the queue. An integer for the
        criterion "edge"; else the bits of a float64 that is not negative, which have the order of the numbers (`as_float`);
        GAIN : the key that it had when it was popped, else 0;
        SLOT : a backend's own.
    totals : device array of int64, shape (T, M, C)
        Channel sums P of a node, C = ``stats.n_channels``.
    edges : device array of int64, shape (T, M, C)
        Class-wise edges of the node's best classifier: ``P - 2L`` of its split, or P if the constant classifier is best.
    current : device array of int64, shape (T,)
        The node that the last `pop_best_leaf` chose, -1 if none.
    step : int
        Number of `pop_best_leaf` calls so far.
    work : object
        A backend's own.
    """

    data: Device
    stats: Stats
    rows: Device
    nodes: Device
    totals: Device
    edges: Device
    current: Device
    step: int = 0
    work: Any = field(default_factory=dict)


def as_float(bits: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the keys or gains of a criterion other than "edge" as the numbers that they are the bits of."""
    return bits.view(np.float64)


def new_nodes(bounds: NDArray[np.int64], max_leaves: int) -> NDArray[np.int64]:
    """Return the node table of roots that own ``bounds``, shape (n_trees, 2): the columns START and STOP."""
    nodes = np.zeros((len(bounds), 2 * max_leaves - 1, SLOT + 1), np.int64)
    nodes[:, :, FEATURE] = -1
    nodes[:, :, KEY] = CLOSED
    nodes[:, 0, [START, STOP]] = bounds
    return nodes


def root_bounds(stats: Stats, scope: GrowthScope, n_rows: int) -> NDArray[np.int64]:
    """Return where the rows of every root begin and end, shape (n_trees, 2); ``n_rows`` rows are there."""
    n_sets = len(stats.quantised)
    if scope.bounds is None:
        return np.tile(np.array([0, n_rows], np.int64), (n_sets, 1))
    if n_sets not in (1, len(scope.bounds) - 1):
        raise ValueError(f"the bounds are of {len(scope.bounds) - 1} trees, the statistics of {n_sets}")
    return np.column_stack([scope.bounds[:-1], scope.bounds[1:]])

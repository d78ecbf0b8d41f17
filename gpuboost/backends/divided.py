"""What a growth asks of a backend that holds a part of the rows: `find_splits` in halves, between which workers meet.

Every worker counts its rows, the histograms are added up, each worker judges some of the features, and the best splits of all
are settled on everywhere. `gpuboost.backends.sharded` is the only caller.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import CUT, FEATURE, KEY, LEFT, MISSING_LEFT, Frontier
from gpuboost.peers.base import Peers

SPLIT = [FEATURE, CUT, MISSING_LEFT, KEY]
"""The columns of a node table that say what the best split is."""


@dataclass(frozen=True)
class Division:
    """Which features each worker judges, in a growth.

    Attributes
    ----------
    features : ndarray of int64, shape (size + 1,)
        Worker r judges the features ``features[r] .. features[r + 1] - 1``.
    bins : ndarray of int64, shape (size + 1,)
        Their bins.
    """

    features: IntArray
    bins: IntArray

    @classmethod
    def of(cls, bin_offsets: IntArray, n_workers: int) -> Division:
        """Give every worker about the same number of bins, in whole features."""
        targets = bin_offsets[-1] * np.arange(n_workers + 1) // n_workers
        features = np.searchsorted(bin_offsets, targets)
        features[0], features[-1] = 0, len(bin_offsets) - 1
        return cls(features, bin_offsets[features])

    def features_of(self, rank: int) -> tuple[int, int]:
        """Return the first feature of a worker, and the first that is not its own any more."""
        return int(self.features[rank]), int(self.features[rank + 1])


class DividedGrowth(Backend):
    """A backend that has the halves. What is here already is for tables that lie on the host; a device overrides it."""

    def link(self, peers: Peers) -> None:
        """Link this worker's device with those of the others, if they can be: all workers call it, before anything else."""

    @abstractmethod
    def bin_offsets(self, frontier: Frontier) -> IntArray:
        """Return the bins before each feature in what `count` returns, shape (n_features + 1,)."""

    @abstractmethod
    def roots(self, frontier: Frontier) -> tuple[IntArray, IntArray | None]:
        """Return the roots' totals (T, C), and for the criterion "rebel" their sums of abs(quantised) (T, n_classes).

        They are of the rows that are here where a growth does not start from all rows, or has statistics of several trees
        without totals; else they may be what the statistics say.
        """

    @abstractmethod
    def set_roots(self, frontier: Frontier, totals: IntArray, sum_abs: IntArray | None) -> None:
        """Write what `roots` returns, for all rows of a training."""

    @abstractmethod
    def count(self, frontier: Frontier, chosen: IntArray) -> NDArray[Any]:
        """Return the histograms of node ``chosen[t]`` of every tree t, but where that is -1, over the rows that are here.

        Integers, shape (n_bins, n chosen, C). A bin that `judge` recovers from a node's total may be left out, as 0.
        """

    @abstractmethod
    def judge(self, frontier: Frontier, chosen: IntArray, sums: NDArray[Any], features: tuple[int, int]) -> None:
        """Find the best classifiers of the nodes ``chosen`` and of their siblings, as `find_splits` does, in few features.

        ``sums`` are those of `count` of all workers, for the bins of the features ``features[0] .. features[1] - 1``. A
        sibling's histogram is that of the parent, which an earlier call has been given, minus these.
        """

    def find_own_splits(self, frontier: Frontier, chosen: IntArray, division: Division, peers: Peers, what: str) -> None:
        """Count the nodes ``chosen``, add their histograms up over all workers, and judge this worker's features."""
        sums = peers.reduce_scatter(self.count(frontier, chosen), division.bins, what)
        self.judge(frontier, chosen, sums, division.features_of(peers.rank))

    def tables(self, frontier: Frontier) -> tuple[IntArray, IntArray, IntArray]:
        """Return host copies or views of ``nodes``, ``edges`` and ``current``."""
        return frontier.nodes, frontier.edges, frontier.current

    def set_splits(self, frontier: Frontier, nodes: Sequence[int], splits: IntArray, edges: IntArray) -> None:
        """Write the best splits of nodes: `SPLIT` (T, len(nodes), 4), and the edges (T, len(nodes), C)."""
        trees = range(len(splits))
        frontier.nodes[np.ix_(trees, nodes, SPLIT)] = splits
        frontier.edges[np.ix_(trees, nodes)] = edges


def left_children(nodes: IntArray, current: IntArray) -> IntArray:
    """Return the left child of the current node of every tree, shape (T,); -1 where there is none."""
    left = nodes[np.arange(len(nodes)), np.maximum(current, 0), LEFT]
    children: IntArray = np.where((current >= 0) & (left > 0), left, -1)
    return children

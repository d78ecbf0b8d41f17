"""What a growth asks of a backend that holds a part of the rows: `find_splits` in halves, between which workers meet.

Every worker counts its rows, the histograms are added up, each worker judges some of the features, and the best splits of all
are settled on everywhere. `gpuboost.backends.sharded` and `gpuboost.backends.sharded_growth` are the only callers.
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

AT_ONCE = 3
"""So many nodes of a tree are divided before the workers meet: with 20 leaves they meet 9 times in place of 19, and count 1 %
more rows. With 4 it would be 8 times and 2 %."""


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

    def bins_of(self, rank: int) -> tuple[int, int]:
        """Return the first bin of a worker, and the first that is not its own any more."""
        return int(self.bins[rank]), int(self.bins[rank + 1])


class DividedGrowth(Backend):
    """A backend that has the halves. What is here already is for tables that lie on the host; a device overrides it."""

    def link(self, peers: Peers) -> None:
        """Link this worker's device with those of the others, if they can be: all workers call it, before anything else."""

    def prepare_shares(self, frontier: Frontier, division: Division, peers: Peers) -> None:
        """Prepare a growth for `share`; all workers call it when its first node is about to be counted."""

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

    def divide(self, frontier: Frontier, parents: IntArray) -> None:
        """Divide node ``parents[t]`` of every tree t, but where that is -1, as `pop_best_leaf` and `partition` do."""
        trees = np.flatnonzero(parents >= 0)
        frontier.nodes[trees, parents[trees], LEFT] = 2 * frontier.step + 1
        frontier.current[:] = parents
        frontier.step += 1
        self.partition(frontier)

    @abstractmethod
    def count(self, frontier: Frontier, chosen: IntArray) -> NDArray[Any]:
        """Return the histograms of node ``chosen[t]`` of every tree t, but where that is -1, over the rows that are here.

        They are roots, or children of the nodes that were divided last. Integers, shape (n_bins, n chosen, C), which a device
        that overrides `share` may keep in a form of its own. A bin that `judge` recovers from a node's total may be left out,
        as 0.
        """

    def share(self, counted: Sequence[Any], division: Division, peers: Peers, what: str) -> list[Any]:
        """Return the sums of what `count` has returned over all workers, of each the bins of this worker's features."""
        sums = np.concatenate(counted, axis=1)
        n_counted, rows = sums.shape[1], sums.reshape(-1, sums.shape[2])
        rows = peers.reduce_scatter(rows, division.bins * n_counted, what)
        own = rows.reshape(-1, n_counted, sums.shape[2])
        return np.split(own, np.cumsum([one.shape[1] for one in counted])[:-1], axis=1)

    @abstractmethod
    def judge(
        self, frontier: Frontier, parents: IntArray, chosen: IntArray, sums: NDArray[Any], features: tuple[int, int]
    ) -> None:
        """Find the best classifiers of the nodes ``chosen`` and of their siblings, as `find_splits` does, in few features.

        ``sums`` are those of `share`, for the bins of the features ``features[0] .. features[1] - 1``. A
        sibling's histogram is that of the parent, which an earlier call has been given, minus these. Roots have no parent, -1,
        and no sibling.
        """

    def set_splits(self, frontier: Frontier, nodes: slice, splits: IntArray, edges: IntArray) -> None:
        """Write the best splits of nodes: `SPLIT` (T, n, 4), and the edges (T, n, C)."""
        frontier.nodes[:, nodes, SPLIT] = splits
        frontier.edges[:, nodes] = edges

    def set_nodes(self, frontier: Frontier, nodes: IntArray, totals: IntArray, edges: IntArray) -> None:
        """Write all of a node table, for `node_of_rows` and for those who read it."""
        frontier.nodes[:], frontier.totals[:], frontier.edges[:] = nodes, totals, edges


def sibling(node: int) -> int:
    """Return the other child of a node's parent: left children have odd numbers."""
    return node + 1 if node % 2 else node - 1

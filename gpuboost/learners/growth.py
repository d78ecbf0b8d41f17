"""Best-first growth of a batch of trees in lockstep (figure 2 of Kegl 2014), on any backend."""

from __future__ import annotations

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, Frontier, GrowthScope
from gpuboost.backends.statistics import Device, Stats


def grow(backend: Backend, data: Device, stats: Stats, max_leaf_nodes: int, scope: GrowthScope = WHOLE) -> Frontier:
    """Grow one tree for each root of ``scope``, or for each entry of the statistics' batch axis.

    Every step cuts, in every tree, the leaf whose cut raises the tree's edge the most. The loop never looks at the data, so a
    device can run it without waiting for the host.

    Parameters
    ----------
    backend : Backend
    data : device matrix
        From ``backend.load``.
    stats : Stats
        The integers to grow from.
    max_leaf_nodes : int
        The number of inner nodes plus one, at least 2.
    scope : GrowthScope

    Returns
    -------
    Frontier
        The grown trees; valid until the backend grows the next ones.
    """
    frontier = backend.start_growth(data, stats, max_leaf_nodes, scope)

    def steps() -> None:
        backend.find_splits(frontier, (0,))
        for step in range(max_leaf_nodes - 1):
            if not backend.pop_best_leaf(frontier):
                break
            backend.partition(frontier)
            if step < max_leaf_nodes - 2:  # the children of the last cut are never cut themselves
                backend.find_splits(frontier, (2 * step + 1, 2 * step + 2))

    backend.run(frontier, steps)
    return frontier

"""When a training ends by itself, for new and for continued models: see `gpuboost.boosters.base.Booster.is_last_round`."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.base import Backend
from gpuboost.backends.statistics import Stats
from gpuboost.learners.grown_tree import GrownTree


def is_perfect(grown: GrownTree, backend: Backend, stats: Stats) -> bool:
    """Whether the values of a tree have the right signs for all that has a weight; ``stats`` are those before its round.

    Its edge is then the total weight, and a booster of signs has nothing left to learn.
    """
    sums, _ = grown.leaf_sums(backend, stats)
    return int(np.where(grown.tree.values > 0, sums, -sums).sum()) == stats.total

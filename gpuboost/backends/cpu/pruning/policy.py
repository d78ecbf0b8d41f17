"""When and how the CPU backend prunes exactly; the loops are in `gpuboost.backends.cpu.pruning.bounds`.

The trees are the same with and without, so it is the clock that decides: both ways are timed, the faster one is taken, and the
other is tried again from time to time. Pruning pays where few rows hold nearly all of the mass, which they come to do as
boosting goes on, and where histograms have more bins than most nodes have rows.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

from gpuboost.backends.cpu.pruning.pruned_search import PrunedSearch
from gpuboost.backends.cpu.pruning.tuner import PruningTuner
from gpuboost.backends.cpu.resources import CpuResources
from gpuboost.backends.criteria import CRITERIA
from gpuboost.backends.frontier import Frontier


class Pruning:
    """Chooses between the full and the pruned search, growth by growth.

    Attributes
    ----------
    always : bool
        Whether to prune whatever it costs.
    """

    def __init__(self, resources: CpuResources) -> None:
        self.resources = resources
        self.always = False
        self.tuners: dict[Any, PruningTuner] = {}

    def begin(self, frontier: Frontier, max_leaves: int) -> None:
        """Decide whether to prune a growth, and if so, give it a `PrunedSearch`."""
        stats, work, data = frontier.stats, frontier.work, frontier.data
        if not CRITERIA[stats.criterion].has_bound or stats.min_count > 0 or stats.wide or len(work.columns.usable) == 0:
            return
        since = perf_counter()
        kind = (data.blocks.shape, stats.criterion, stats.one_hot, stats.n_classes, max_leaves, len(frontier.nodes))
        if kind not in self.tuners:
            levels = float((max_leaves - 1).bit_length())
            self.tuners[kind] = PruningTuner((1 + levels) / 2, levels)
        tuner = self.tuners[kind]
        work.tuning = tuner, since
        if self.always or tuner.choose():
            work.search = PrunedSearch(self.resources, frontier, (tuner.halves, tuner.levels, tuner.survivors))

    def end(self, frontier: Frontier) -> None:
        """Learn from a growth."""
        if frontier.work.tuning is None:
            return
        (tuner, since), search = frontier.work.tuning, frontier.work.search
        pruned = isinstance(search, PrunedSearch)
        tuner.seconds[pruned].append(perf_counter() - since)
        if pruned:
            tuner.learn(frontier.nodes, search.share_needed(frontier), search.light_share)

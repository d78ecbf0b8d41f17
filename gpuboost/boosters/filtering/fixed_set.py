"""What FilterBoost is compared with: boosting on a set that is held in memory, whole or resampled (section 4 of the paper)."""

from __future__ import annotations

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.label_weights import WEIGHT_BITS, LabelWeights, in_units, margins_to_others
from gpuboost.binning import BinMapper
from gpuboost.boosters.filtering.draw import Chunk, Draw, Part, sum_of_columns
from gpuboost.boosters.filtering.edges import TargetError
from gpuboost.boosters.filtering.examples import Numerators, Step, StreamEnd
from gpuboost.exactmath import exp
from gpuboost.fixedpoint import split_weights
from gpuboost.tree import Tree


class FixedSet:
    """A batch booster's examples: every round sees all rows, and may train on some that are drawn by their weights.

    With logistic weights this is AdaBoost-LOG (Collins, Schapire and Singer 2002), with those of MadaBoost its batch version,
    and with exponential ones AdaBoost (AdaBoost.M2 with more than two classes).

    Parameters
    ----------
    rows : Step
        The whole set; all weights are positive.
    backend, mapper, n_classes, weighting, seed
        As of `gpuboost.boosters.filtering.examples.Examples`; the weighting may also be "exponential".
    """

    def __init__(
        self, rows: Step, backend: Backend, mapper: BinMapper, n_classes: int, *, weighting: str = "logistic", seed: int = 0
    ) -> None:
        self.backend, self.mapper, self.n_classes, self.weighting, self.seed = backend, mapper, n_classes, weighting, seed
        scores = backend.put(np.zeros((len(rows.target), n_classes)))
        self.chunk = Chunk(rows.X, rows.target, rows.weight, backend.encode(mapper, rows.X), scores, 0, 0)
        self.trees: list[Tree] = []
        self.place = 0, 0

    def accepted(self, n: int, numerators: Numerators, target: TargetError | None = None, n_complete: int = 0) -> Draw:
        """Draw ``n`` rows by their weights, with replacement."""
        part = self._whole()
        frequency, scale = split_weights(self.chunk.weight)
        weights = np.rint(numerators(part.q, self.chunk.target) * scale).astype(np.int64)
        spare = 62 - (WEIGHT_BITS + self.n_classes.bit_length() + int(frequency.sum(dtype=np.int64)).bit_length())
        bounds = np.cumsum((weights >> max(0, -spare)) * frequency)
        if bounds[-1] == 0:
            raise StreamEnd("no row of the set has a weight: nothing is left to learn")
        numbers = np.random.default_rng([self.seed, len(self.trees)]).integers(0, int(bounds[-1]), n)
        chosen = np.searchsorted(bounds, numbers, side="right")
        part.choose(chosen, part.end, complete=True)
        return Draw([part])

    def all(self, n: int) -> Draw:
        """Return all rows."""
        part = self._whole()
        part.choose(np.arange(part.end), part.end, complete=True)
        return Draw([part])

    def add(self, tree: Tree) -> None:
        """Add a finished tree to the model."""
        self.trees.append(tree)
        self._catch_up()

    def _catch_up(self) -> None:
        chunk = self.chunk
        for tree in self.trees[chunk.n_trees :]:
            self.backend.add_scores(chunk.scores, chunk.leaf_index(self.backend, tree), tree.values)
            chunk.weights = None  # another model weighs the rows differently
        chunk.n_trees = len(self.trees)

    def _whole(self) -> Part:
        self._catch_up()
        if self.chunk.weights is None:
            self.chunk.weights = self._weigh()
        return Part(self.chunk, 0, self.chunk.weights)

    def _weigh(self) -> LabelWeights:
        scores, target = self.chunk.scores, self.chunk.target
        if self.weighting != "exponential":
            return self.backend.weigh_labels(scores, target, self.weighting, 0, len(target))
        q = exponential(self.backend.get(scores), target)
        return self.backend.weigh_labels(scores, target, "logistic", 0, len(target))._replace(q=q, total=sum_of_columns(q))


def exponential(scores: Floats, target: IntArray) -> IntArray:
    """Return ``exp(-margin)`` as label weights, in a unit in which the largest is ``2**32``."""
    margins, others = margins_to_others(scores, target)
    q = np.zeros(scores.shape, np.int64)
    np.put_along_axis(q, others, in_units(exp(margins.min() - margins)), axis=1)
    return q

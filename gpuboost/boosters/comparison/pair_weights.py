"""The row state of the ranking loss: a weight for each pair of a row's class and another one."""

from __future__ import annotations

from typing import SupportsFloat

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.backends.statistics import Counts, Device, Stats
from gpuboost.boosters.base import Problem
from gpuboost.boosters.exponential import ExponentialWeights


class PairWeights(ExponentialWeights):
    """The weights ``D(i, l) = exp((f_l - f_y) / 2)`` of the pairs of a row's class y and every other class l.

    They are products ``exp(-f_y / 2) exp(f_l / 2)`` (section 6 of Schapire and Singer 1999), and the factors are those of an
    `ExponentialWeights` with half the scores. The statistics are of the signed weights that the score of each class has in
    ``sum_l D(i, l) (f_y - f_l)``: for y all of the row's pairs, for another class its own pair. So an edge is
    ``sum_il D(i, l) (h_y - h_l)``, and the total weight is twice that of the pairs.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem, np.where(problem.signs > 0, problem.weight_scale[:, None], 1.0))

    @property
    def log2_unit(self) -> int:
        return 2 * self.scale

    def multiply(self, leaf_index: Device, values: Floats) -> None:
        super().multiply(leaf_index, values / 2)

    def pairs(self) -> Floats:
        """Return the weights of the pairs, on the host, in units of ``2**log2_unit``; shape (n_rows, n_classes).

        Entry l of a row is ``D(i, l)``, entry y the sum of the others in the order of the classes: one rounding for a product
        and each sum, the same everywhere.
        """
        own, factors = self.backend.get(self.signs) > 0, self.backend.get(self.state)
        weights: Floats = np.where(own, 0.0, factors[own][:, None] * factors)
        weights[own] = np.add.accumulate(weights, axis=1)[:, -1]
        return weights

    def _quantised(self, state: Device, maximum: SupportsFloat, counts: Counts | None = None) -> Stats:
        weights = self.pairs()
        largest = self.backend.peers.max(np.array([weights.max(initial=0.0)]), "largest weight of pairs")
        return super()._quantised(self.backend.put(weights), float(largest[0]), counts)

    def row_statistics(self, counts: Counts | None = None) -> Stats:
        return self._of_rows(self.pairs() / 2, counts)  # a row's pairs stand in it twice

    def projection(self, coefficients: Floats, counts: Counts | None = None) -> Stats:
        """Return ``sum_l D(i, l) (coefficients_y - coefficients_l)`` in fixed point: statistics of one channel."""
        state, signs, maximum = self.backend.project(self.backend.put(self.pairs()), self.signs, coefficients)
        return self.backend.statistics(state, signs, self.frequency_weight, self.n_rows, maximum, counts)

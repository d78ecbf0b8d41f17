"""The row state of the exponential loss: ``w[i, l] = w0[i, l] exp(-f_l(x_i) y_il)``, kept multiplicatively."""

from __future__ import annotations

from collections.abc import Sequence
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from gpuboost import fixedpoint
from gpuboost.backends.statistics import Counts, Device, Stats
from gpuboost.boosters.base import Problem
from gpuboost.exactmath import exp
from gpuboost.learners.grown_tree import GrownTree

BOTH_SIGNS = np.array([[1.0], [-1.0]])

MAX_STEP = 64.0
"""One round moves no score by more than this. Coefficients come near it only with a learning rate above 4."""


class ExponentialWeights:
    """Weights over rows and classes that are multiplied by ``exp(-h_l(x_i) y_il)`` every round.

    A weak learner takes few values, so the host computes the factors (with `gpuboost.exactmath`) and the device looks them up.
    Powers of two keep the largest weight near 1: they are exact and travel in the same factors, so nothing is ever divided by a
    sum. A weight does not fall below 2**-900 of that, so that no row is lost for good.

    Parameters
    ----------
    problem : Problem
        Its signs are ``y``. Sums are of the weights times its frequency weights.
    initial : ndarray of float64, shape (n_rows, n_classes)
        ``w0``, in any unit; not negative. The problem's ``weight_scale`` must be a factor of it.
    one_hot : bool
        Whether every row has one positive weight, that of its class.
    capped : bool
        Whether the statistics are of ``min(w, w0)`` (MadaBoost, Domingo and Watanabe 2000). The loss is that of ``w``.
    """

    def __init__(self, problem: Problem, initial: NDArray[np.float64], *, one_hot: bool = False, capped: bool = False) -> None:
        self.backend = backend = problem.backend
        self.state: Device = backend.put_one_hot(initial) if one_hot else backend.put(initial)
        self.signs: Device = backend.put(problem.signs)
        self.frequency_weight: Device = backend.put(problem.frequency_weight)
        self.n_rows = problem.n_rows
        self.maximum: SupportsFloat = backend.maximum(self.state)
        self.scale = 0  # the true weights are the state times 2**scale
        self.limit: Device = backend.put(initial.copy()) if capped else None
        self.initial_total: float | None = None
        self.loss()

    def multiply(self, leaf_index: Device, values: NDArray[np.float64]) -> None:
        """Multiply the weights by ``exp(-values[leaf_index[i], l] * y_il)`` (line 6 of figure 1 of Kegl 2014)."""
        down = fixedpoint.exponent(float(self.maximum))
        multipliers = np.ldexp(exp(values[:, np.newaxis] * BOTH_SIGNS), -down)
        self.maximum = self.backend.reweight(self.state, self.signs, leaf_index, multipliers)
        self.scale += down

    def update(self, trees: Sequence[GrownTree]) -> None:
        for grown in trees:
            self.multiply(grown.leaf_index, grown.values)

    def statistics(self, counts: Counts | None = None) -> Stats:
        """Return the signed weights ``w_il y_il`` in fixed point, with the rows' counts if given."""
        if self.limit is None:
            return self._quantised(self.state, self.maximum, counts)
        # One of both factors is 1, so that nothing becomes 0. A state is 2**-900 at least or 0: beyond 2**1000 it is larger.
        up, down = (float(np.ldexp(1.0, min(max(shift, 0), 1000))) for shift in (self.scale, -self.scale))
        return self._quantised(*self.backend.minimum(self.state, self.limit, up, down), counts)

    @property
    def log2_unit(self) -> int:
        """What is quantised, times 2 to the power of this, are the true weights."""
        return self.scale

    def _quantised(self, state: Device, maximum: SupportsFloat, counts: Counts | None = None) -> Stats:
        return self.backend.statistics(state, self.signs, self.frequency_weight, self.n_rows, maximum, counts)

    def row_statistics(self, counts: Counts | None = None) -> Stats:
        """Return the whole weight of each row, in the column of its class, in fixed point. Rows have one label each."""
        return self._of_rows(self.backend.get(self.state), counts)

    def _of_rows(self, weights: NDArray[np.float64], counts: Counts | None) -> Stats:
        """Add up the rows of ``weights`` (n_rows, n_classes) on the host, in the order of the classes."""
        whole = np.where(self.backend.get(self.signs) > 0, np.add.accumulate(weights, axis=1)[:, -1:], 0.0)
        largest = self.backend.peers.max(np.array([whole.max(initial=0.0)]), "largest weight of a row")
        state = self.backend.put_one_hot(whole)
        return self.backend.statistics(state, self.signs, self.frequency_weight, self.n_rows, float(largest[0]), counts)

    def projection(self, coefficients: NDArray[np.float64], counts: Counts | None = None) -> Stats:
        """Return ``sum_l w_il y_il coefficients_l`` in fixed point: statistics of one channel."""
        state, signs, maximum = self.backend.project(self.state, self.signs, coefficients)
        return self.backend.statistics(state, signs, self.frequency_weight, self.n_rows, maximum, counts)

    def loss(self, stats: Stats | None = None) -> float:
        """Return ``sum_il w_il exp(-f_l(x_i) y_il)`` (eq. 4 of Kegl 2014), as a share of its first value; 0 if that is 0.

        ``stats`` are this state's current statistics, if the caller has them already. Confident mistakes on rows that were not
        trained on can take the loss beyond float64: it is infinite then.
        """
        if stats is None or self.limit is not None:
            stats = self._quantised(self.state, self.maximum)
        with np.errstate(over="ignore"):
            total = float(np.ldexp(float(stats.total), self.log2_unit - stats.shift))
        if self.initial_total is None:
            self.initial_total = total
        return total / self.initial_total if self.initial_total else 0.0

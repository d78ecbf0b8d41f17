"""The row state of the multinomial log-loss: class probabilities that are kept multiplicatively."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.statistics import Counts, Device, Shifts, SoftmaxRows, SoftmaxSteps, SoftmaxSummary, Stats
from gpuboost.boosters.base import Problem
from gpuboost.exactmath import exp
from gpuboost.fixedpoint import final_shift, first_shift, is_wide
from gpuboost.learners.grown_tree import GrownTree

Pairs = NDArray[np.int64]
LOSS_BITS = 32
"""A row's loss is rounded to ``2**-LOSS_BITS`` bits, coarser where there are so many rows that sums might overflow."""


class Probabilities:
    """The probabilities ``p_ik = exp(F_ik) / sum_j exp(F_ij)`` of a set of rows (eq. 1 of Li 2010); 1 / K at first.

    A tree takes few values, so the host computes their exponentials (with `gpuboost.exactmath`) and the device multiplies.
    """

    def __init__(self, problem: Problem) -> None:
        self.backend = backend = problem.backend
        self.rows = SoftmaxRows(
            p=backend.put(np.full((len(problem.target), problem.n_classes), 1.0 / problem.n_classes)),
            target=backend.put(problem.target),
            frequency_weight=backend.put(problem.frequency_weight),
            weight_scale=backend.put(problem.weight_scale),
        )
        self._summary: SoftmaxSummary | None = None
        self.n_rows = problem.n_rows
        self.loss_shift = min(LOSS_BITS, 52 - self.n_rows.bit_length())  # a loss is below 2**10 bits
        self.first_units = int(self.backend.present_losses(self.rows, self.loss_shift).sum())

    def update(self, trees: Sequence[GrownTree]) -> None:
        """Add a round's trees. A tree moves one class and its base class in opposite ways, or classes for themselves."""
        moves = [(grown, *pair) for grown in trees for pair in pairs_of(grown.tree.values)]
        if not moves:
            return
        steps = np.zeros((len(moves), max(len(grown.values) for grown in trees)))
        for t, (grown, _, k) in enumerate(moves):
            steps[t, : len(grown.values)] = grown.values[:, k]
        pairs = np.array([(base, k) for _, base, k in moves], np.int64)
        leaf_indices = self.backend.stack([grown.leaf_index for grown, *_ in moves])
        self.add_trees(SoftmaxSteps(leaf_indices, pairs, multipliers(steps)), range(len(moves)))

    def add_trees(self, steps: SoftmaxSteps, trees: Sequence[int]) -> None:
        """Add some trees of a batch."""
        self.backend.softmax_update(self.rows.p, steps, trees)
        self._summary = None

    def summary(self) -> SoftmaxSummary:
        """Return what a round asks of the rows as they are now."""
        if self._summary is None:
            self._summary = self.backend.softmax_summary(self.rows, self.loss_shift)
        return self._summary

    def statistics(self, pairs: Pairs, counts: Counts, weights: Device | None) -> tuple[Stats, Shifts]:
        """Return the statistics of a tree for each of ``pairs``, and the shifts of gradients and curvatures.

        A gradient of two classes is the difference of theirs in units, so its rounding is up to one unit a row; the curvature
        of two classes is at most twice the sum of theirs, since ``p_b p_k <= p_k (1 - p_k)``. Where c is what the row's class
        misses, a gradient is at most c, a curvature of one class, ``p (1 - p)``, too, and one of two classes at most ``4 c``.
        """
        shifts = self.shifts()
        return self.backend.softmax_statistics(self.rows, pairs, shifts, counts, weights), shifts

    def shifts(self) -> Shifts:
        """Return the shifts of `statistics`, which are the same for all pairs."""
        largest, gradient, curvature, _ = self.summary()
        first = first_shift(largest)
        return Shifts(
            gradient=final_shift(first, most_of_two(gradient), self.n_rows, parts=2),
            curvature=final_shift(first, 2 * most_of_two(curvature), self.n_rows, parts=4),
            wide=is_wide(self.n_rows),
        )

    def losses(self, steps: SoftmaxSteps, candidates: Sequence[Sequence[int]]) -> list[float]:
        """Return the loss after each of several `update`, as a share of the first."""
        units = self.backend.softmax_losses(self.rows, steps, candidates, self.loss_shift)
        return [self.share(int(of_class.sum())) for of_class in units]

    def loss(self) -> float:
        """Return the log-loss (eq. 3 of Li 2010) as a share of the first, ``ln K`` a row."""
        known = self._summary
        losses = self.backend.present_losses(self.rows, self.loss_shift) if known is None else known.losses
        return self.share(int(losses.sum()))

    def share(self, units: int) -> float:
        return units / self.first_units if self.first_units else 0.0


def pairs_of(values: NDArray[np.float64]) -> list[tuple[int, int]]:
    """Return the (base class or -1, class) that a tree's values, shape (n_leaves, n_classes), move."""
    moved = np.flatnonzero(values.any(axis=0)).tolist()
    if len(moved) == 2 and bool((values[:, moved[0]] == -values[:, moved[1]]).all()):
        return [(moved[0], moved[1])]
    return [(-1, k) for k in moved]


def multipliers(steps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return what the probabilities are multiplied by if the class's score gets a step, and the base class's score loses it."""
    return exp(np.stack([steps, -steps], axis=-1))


def most_of_two(sums: NDArray[np.int64]) -> int:
    """Return the largest sum of two entries."""
    return int(np.sort(sums)[-2:].sum())

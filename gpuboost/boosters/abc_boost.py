"""MART, robust LogitBoost, ABC-MART and ABC-LogitBoost (Li 2009, 2010), with gaps (Li 2010, "Fast ABC-Boost")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.statistics import Counts, SoftmaxSteps
from gpuboost.boosters.base import Booster, Metric, Problem, Round
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.boosters.softmax import Pairs, Probabilities, multipliers
from gpuboost.learners.newton_trees import grow_newton_trees

LARGEST_STEP = 50.0
"""A leaf's Newton step is not larger, before it is multiplied by the learning rate."""
LARGEST_MOVE = 80.0
"""One round moves no score by more than this."""
FITTED = 2.0**-40
"""The training ends when every row's own class is this near to a probability of 1."""


@dataclass(frozen=True)
class ABCBoost(Booster[Probabilities]):
    """The loops of both algorithms of Li (2010): a regression tree for each class in every round.

    Attributes
    ----------
    loss : {"logit", "mart"}
        "logit" cuts by the gain of a Newton step, "mart" by that of least squares. The leaves' values are the same.
    base_class : {"search"}, int or None
        A class whose score is minus the sum of the others (ABC-Boost): the one that lowers the loss the most, or always the
        same. None: no such class (MART and robust LogitBoost).
    gap : int
        The base class is looked for in every ``gap``-th round only.
    n_candidates : int or None
        Only so many classes are candidates, those whose rows have the largest loss. None: all.
    max_leaf_nodes : int
    min_samples_leaf : int
        The rows, counted with their integer weights, that both sides of a cut must have of those that the tree is grown from.
    learning_rate : float
    sampling : Sampling
        What the trees are grown from. It decides their cuts; the Newton steps of their leaves are of all rows, and so are the
        losses that a search compares.
    first_base : int
        The base class before the first round: that of the last round of the model that is continued.
    """

    loss: Literal["logit", "mart"]
    base_class: Literal["search"] | int | None
    gap: int
    n_candidates: int | None
    max_leaf_nodes: int
    min_samples_leaf: int
    learning_rate: float
    sampling: Sampling = NO_SAMPLING
    first_base: int = 0

    def row_state(self, problem: Problem) -> Probabilities:
        return Probabilities(problem)

    def rounds(self, problem: Problem, state: Probabilities, n_rounds: int) -> Iterator[Round]:
        backend, data, n_classes = problem.backend, problem.data, problem.n_classes
        counts = Counts(backend.put(problem.frequency_weight), self.min_samples_leaf)
        weights = backend.put(problem.row_counts) if self.loss == "mart" else None
        base, t = self.first_base if self.base_class == "search" else self.base_class, n_rounds
        while state.summary().largest_miss >= FITTED:
            candidates = self.candidates(state) if self.base_class == "search" and t % self.gap == 0 else []
            pairs = class_pairs(n_classes, candidates or ([] if base is None else [base]))
            stats, (g_shift, h_shift, _) = state.statistics(pairs, counts, weights)
            scope = self.sampling.draw(t, problem, stats)
            grown = grow_newton_trees(backend, data, stats, self.max_leaf_nodes, scope)
            steps = self.steps(grown.gradient, grown.curvature, h_shift - g_shift, n_classes, has_base=pairs[0, 0] >= 0)
            batch = SoftmaxSteps(grown.leaf_indices, pairs, multipliers(steps))
            metrics: dict[str, Metric] = {"candidate_losses": []}
            chosen: Sequence[int] = range(len(pairs))
            if candidates:
                selections = [np.flatnonzero((pairs == b).any(axis=1)).tolist() for b in candidates]
                losses = state.losses(batch, selections)
                best = int(np.argmin(losses))  # the lowest class of equals
                base, chosen = candidates[best], selections[best]
                metrics["candidate_losses"] = losses
            unit = np.ldexp(1.0, (0 if weights is not None else h_shift) - 2 * g_shift) / state.n_rows
            trees = [grown.tree(i, tree_values(pairs[i], steps[i], n_classes), float(unit)) for i in chosen]
            state.add_trees(batch, chosen)
            state.summary()  # for the loss now, and for the next round
            metrics["base_class"] = float("nan") if base is None else base
            yield Round(trees, state.loss(), metrics)
            t += 1

    def steps(self, gradient: IntArray, curvature: IntArray, shift: int, n_classes: int, *, has_base: bool) -> Floats:
        """Return what the rows with each index add to the score of its tree's class, shape (n_trees, n_indices).

        It is ``nu sum(g) / sum(h)`` (line 7 of algorithm 2), times (K - 1) / K without a base class (line 6 of algorithm 1).
        """
        factor = 1.0 if has_base else (n_classes - 1) / n_classes
        return newton_steps(gradient, curvature, shift, self.learning_rate, n_classes, factor)

    def candidates(self, state: Probabilities) -> list[int]:
        """Return the classes that may become the base class, ascending."""
        return sorted(np.argsort(-state.summary().losses, kind="stable")[: self.n_candidates].tolist())


def newton_steps(
    gradient: IntArray, curvature: IntArray, shift: int, learning_rate: float, n_classes: int, factor: float = 1.0
) -> Floats:
    """Return ``learning_rate factor sum(g) / sum(h) 2**shift``, 0 without curvature, within the limits of a step and a move."""
    newton = np.ldexp(np.where(curvature > 0, gradient / np.maximum(curvature, 1), 0.0), shift)
    newton = np.clip(factor * newton, -LARGEST_STEP, LARGEST_STEP)
    limit = LARGEST_MOVE / n_classes
    steps: Floats = np.clip(learning_rate * newton, -limit, limit)
    return steps


def class_pairs(n_classes: int, bases: Sequence[int]) -> Pairs:
    """Return the base class (or -1) and the class of every tree, shape (n_trees, 2).

    The tree of class k with the base b is that of class b with the base k: its gradients have the other sign, its curvatures
    and so its cuts are the same, and it moves both classes in the same way. So a search among all K classes grows K (K - 1) / 2
    trees, and the pairs are in ascending order. Two classes have one tree, with or without a base class.
    """
    if not bases and n_classes != 2:
        return np.array([(-1, k) for k in range(n_classes)], np.int64)
    wanted = set(bases or [0])
    return np.array([(j, k) for j in range(n_classes) for k in range(j + 1, n_classes) if wanted & {j, k}], np.int64)


def tree_values(pair: IntArray, steps: Floats, n_classes: int) -> Floats:
    """Return what the rows with each index add to the scores, shape (n_indices, n_classes)."""
    base, k = pair.tolist()
    values = np.zeros((len(steps), n_classes))
    values[:, k] = steps
    if base >= 0:
        values[:, base] = -steps
    return values

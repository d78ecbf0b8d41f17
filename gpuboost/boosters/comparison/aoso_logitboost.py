"""AOSO-LogitBoost: adaptive one-vs-one LogitBoost (Sun, Reid and Zhou 2012).

P. Sun, M. Reid and J. Zhou, "AOSO-LogitBoost: adaptive one-vs-one LogitBoost for multi-class problem", ICML 2012.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.frontier import GAIN, GrowthScope, as_float
from gpuboost.backends.statistics import Counts, Stats
from gpuboost.boosters.abc_boost import FITTED, newton_steps
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.boosters.comparison.class_pairs import NodePairs, PairSelection, complements
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.boosters.softmax import Probabilities
from gpuboost.learners.grown_tree import GrownTree, to_tree
from gpuboost.learners.pair_tree import PairTree


@dataclass(frozen=True)
class AOSOLogitBoost(Booster[Probabilities]):
    """A round is one tree. Each of its leaves takes a Newton step of the scores of two classes, chosen for the leaf.

    A node is split by the gain of Newton steps of the two classes chosen for the node.

    Attributes
    ----------
    max_leaf_nodes : int
    min_samples_leaf : int
        The rows, counted with their integer weights, that both sides of a cut must have of those that the tree is grown from.
    learning_rate : float
    sampling : Sampling
        What the trees are grown from; ``weight_trim`` is of ``1 - p`` of the rows' classes. The leaves' pairs and steps are of
        all rows.
    """

    max_leaf_nodes: int
    min_samples_leaf: int
    learning_rate: float
    sampling: Sampling = NO_SAMPLING

    def row_state(self, problem: Problem) -> Probabilities:
        return Probabilities(problem)

    def rounds(self, problem: Problem, state: Probabilities, n_rounds: int) -> Iterator[Round]:
        backend, data, n_here = problem.backend, problem.data, len(problem.target)
        counts = Counts(backend.put(problem.frequency_weight), self.min_samples_leaf)
        learner, n_classes = PairTree(self.max_leaf_nodes), problem.n_classes
        for t in itertools.count(n_rounds):
            if state.summary().largest_miss < FITTED:
                return
            shifts = state.shifts()
            selection = PairSelection(backend, state.rows, shifts)
            scope = self.scope(t, problem, state, counts)
            rows = np.arange(n_here) if scope.sample_indices is None else backend.get(scope.sample_indices)

            def statistics(pairs: IntArray, state: Probabilities = state) -> Stats:
                return state.statistics(pairs, counts, None)[0]

            def choose(members: Sequence[IntArray], selection: PairSelection = selection) -> IntArray:
                return selection(members).pairs

            nodes = learner(backend, data, rows, replace(scope, sample_indices=None), choose, statistics)
            unit = np.ldexp(1.0, shifts.curvature - 2 * shifts.gradient) / state.n_rows
            gain = as_float(np.ascontiguousarray(nodes[:, GAIN])) * float(unit)
            tree, _ = to_tree(nodes, np.zeros((len(nodes), n_classes)), gain, 1)
            leaf_index = backend.apply(tree, data)
            order, bounds = backend.rows_by_leaf(leaf_index, tree.n_leaves)
            found = selection(np.split(backend.get(order), bounds[1:-1]))
            values = self.values(found, shifts.curvature - shifts.gradient, n_classes)
            added = GrownTree(replace(tree, values=values), leaf_index)
            state.update([added])
            state.summary()  # for the loss now, and for the next round
            yield Round([added], state.loss(), {})

    def scope(self, t: int, problem: Problem, state: Probabilities, counts: Counts) -> GrowthScope:
        """Return what the tree of round t is grown from."""
        backend = problem.backend
        if self.sampling.weight_trim >= 1.0:
            stats, _ = state.statistics(np.array([[-1, 0]], np.int64), counts, None)
        else:
            own = np.take_along_axis(complements(backend.get(state.rows.p)), problem.target[:, None], axis=1)
            miss, signs = backend.put(own * problem.weight_scale[:, None]), backend.put(np.ones(own.shape, np.int8))
            largest = state.summary().largest_miss
            stats = backend.statistics(miss, signs, state.rows.frequency_weight, state.n_rows, largest)
        return self.sampling.draw(t, problem, stats)

    def values(self, found: NodePairs, shift: int, n_classes: int) -> Floats:
        """Return what the leaves add to the scores: the step of the pair's second class, and the opposite of its first."""
        steps = newton_steps(found.gradient, found.curvature, shift, self.learning_rate, n_classes)
        leaves, values = np.arange(len(steps)), np.zeros((len(steps), n_classes))
        values[leaves, found.pairs[:, 1]] = steps
        values[leaves, found.pairs[:, 0]] = -steps
        return values

"""From drawn rows to a weak hypothesis: votes for every class (.M2), or for one of two colours (.OC)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.label_weights import WEIGHT_BITS
from gpuboost.backends.statistics import Stats
from gpuboost.binning import BinMapper
from gpuboost.boosters.base import Problem
from gpuboost.boosters.colouring import Colouring, Colourings
from gpuboost.boosters.filtering.draw import Rows, sum_of_columns, sum_of_other_colour
from gpuboost.fixedpoint import check_size
from gpuboost.learners.base import VotingTree
from gpuboost.learners.class_tree import ClassTree
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.learners.hamming_tree import HammingTree

Criterion = Literal["edge", "gini", "entropy"]


class WeakLearner(Protocol):
    """How a round's tree is found."""

    def colouring(self, t: int) -> Colouring | None:
        """Return the colours -1 and +1 of the classes in round t, counted from 1; None if classes vote for themselves."""

    def numerators(self, q: IntArray, target: IntArray, colouring: Colouring | None) -> IntArray:
        """Return ``n_classes - 1`` times the probability with which a row is accepted for training, in units."""

    def fit(self, backend: Backend, mapper: BinMapper, rows: Rows, colouring: Colouring | None) -> VotingTree:
        """Grow a tree on weighted rows; its leaves vote -1 or +1 for every class."""


@dataclass(frozen=True)
class ClassVotes:
    """Trees with a vote for every class in every leaf. With two classes the trees of algorithm 1.

    Attributes
    ----------
    max_leaf_nodes : int
    criterion : {"edge", "gini", "entropy"}
        What splits are chosen by: the edge of the votes (Hamming trees), or how pure the leaves are, whatever they vote.
    """

    max_leaf_nodes: int
    criterion: Criterion = "edge"

    def colouring(self, t: int) -> None:
        return None

    def numerators(self, q: IntArray, target: IntArray, colouring: Colouring | None) -> IntArray:
        return all_labels(q, target)

    def fit(self, backend: Backend, mapper: BinMapper, rows: Rows, colouring: Colouring | None) -> VotingTree:
        return voting_tree(backend, mapper, rows, rows.target, rows.q, self)


@dataclass(frozen=True)
class ColourVotes:
    """Binary trees for a colouring of the classes (algorithm 7).

    Attributes
    ----------
    max_leaf_nodes : int
    n_classes : int
    seed : int
        Of the random colourings, half of the classes each.
    given : sequence of ndarray of int8, optional
        The colourings of the rounds, in turns, in place of random ones.
    criterion : {"edge", "gini", "entropy"}
        As in `ClassVotes`.
    """

    max_leaf_nodes: int
    n_classes: int
    seed: int
    given: tuple[Colouring, ...] = ()
    criterion: Criterion = "edge"

    def colouring(self, t: int) -> Colouring:
        return Colourings(self.n_classes, self.seed, self.given).of_round(t)

    def numerators(self, q: IntArray, target: IntArray, colouring: Colouring | None) -> IntArray:
        assert colouring is not None  # algorithm 9: only labels of the other colour count
        return sum_of_other_colour(q, target, colouring)

    def fit(self, backend: Backend, mapper: BinMapper, rows: Rows, colouring: Colouring | None) -> VotingTree:
        assert colouring is not None
        weak = voting_tree(backend, mapper, rows, *rows.recoloured(colouring), self)
        return weak.with_values(weak.tree.values[:, 1:] * colouring[None, :])


def all_labels(q: IntArray, target: IntArray) -> IntArray:
    """The numerators of `Filter`: ``p'``."""
    return sum_of_columns(q)


def voting_tree(
    backend: Backend, mapper: BinMapper, rows: Rows, target: IntArray, q: IntArray, how: ClassVotes | ColourVotes
) -> VotingTree:
    """Grow a tree on rows that weigh ``sum q`` for their own class and, for the edge of votes, ``q`` for the others."""
    frequency, scale = rows.weights
    n_classes, n_rows = q.shape[1], int(frequency.sum(dtype=np.int64))
    check_size(n_rows, n_classes)
    data = rows.encoded(backend, mapper)
    problem = Problem(backend, data, target.astype(np.int32), n_classes, frequency, scale)
    own = np.arange(n_classes)[None, :] == target[:, None]
    q_of_others = q if how.criterion == "edge" else 0
    state: Floats = np.ldexp(np.where(own, sum_of_columns(q)[:, None], q_of_others), -WEIGHT_BITS) * scale[:, None]
    signs = problem.signs if how.criterion == "edge" else np.ones_like(problem.signs)
    largest = float(state.max())
    stats = backend.statistics(backend.put(state), backend.put(signs), backend.put(frequency), n_rows, largest)
    if how.criterion == "edge":
        return HammingTree(how.max_leaf_nodes)(backend, data, stats)
    return voted(ClassTree(how.max_leaf_nodes, how.criterion)(backend, data, stats), backend, stats)


def voted(grown: GrownTree, backend: Backend, stats: Stats) -> VotingTree:
    """Let every leaf vote for the classes that have more than half of its weight."""
    sums = grown.leaf_sums(backend, stats)[0]
    edges = 2 * sums - sums.sum(axis=1, keepdims=True)  # no more than a leaf's weight, which is below 2**62
    tree = grown.with_values(np.where(edges > 0, 1.0, -1.0)).tree
    # The leaves' edges for one class are the whole weight at most; those for all classes may need more than 64 bits.
    edge = sum(abs(edges).sum(axis=0).tolist())
    return VotingTree(tree, grown.leaf_index, grown.leaf_of_index, grown.sums, edge=edge)

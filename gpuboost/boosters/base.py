"""What a booster is given and what it yields."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from gpuboost import fixedpoint
from gpuboost.backends.base import Backend
from gpuboost.backends.statistics import Device
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.peers.base import agree
from gpuboost.peers.rows import RowOrder
from gpuboost.tree import Tree, constant_tree

Metric: TypeAlias = float | list[float]


@dataclass(frozen=True)
class Problem:
    """A set of labelled rows, encoded and ready on its device.

    Attributes
    ----------
    backend : Backend
    data : device matrix
        The binned features, from ``backend.load``.
    target : ndarray
        Class numbers, int32 (n_rows,); of a multi-label problem whether a row has a label, bool (n_rows, n_classes).
    n_classes : int
    frequency_weight : ndarray of int32, shape (n_rows,)
        Integer row weights, see `gpuboost.fixedpoint.split_weights`.
    weight_scale : ndarray of float64, shape (n_rows,)
        Real row weights in (0, 1]; all 1 where the integer weights say everything.
    order : RowOrder, optional
        Where the rows stand among those of all workers; without it all rows are here.
    """

    backend: Backend
    data: Device
    target: NDArray[Any]
    n_classes: int
    frequency_weight: NDArray[np.int32]
    weight_scale: NDArray[np.float64]
    order: RowOrder | None = None

    @property
    def single_label(self) -> bool:
        """Whether every row has exactly one label."""
        return self.target.ndim == 1

    @cached_property
    def signs(self) -> NDArray[np.int8]:
        """+1 where a row has the label, else -1; shape (n_rows, n_classes)."""
        signs = np.full((len(self.target), self.n_classes), -1, np.int8)
        signs[(np.arange(len(self.target)), self.target) if self.single_label else self.target] = 1
        return signs

    @property
    def integer_weights(self) -> NDArray[np.int64]:
        """The row weights as integers, for counting errors, see `gpuboost.fixedpoint.integer_weights`."""
        n_labels, peers = 1 if self.single_label else self.n_classes, self.backend.peers
        return fixedpoint.integer_weights(self.frequency_weight, self.weight_scale, n_labels, peers)

    @property
    def n_rows(self) -> int:
        """The rows of all workers, counted with their integer weights."""
        peers, own = self.backend.peers, self.frequency_weight.sum(dtype=np.int64, keepdims=True)
        n_rows = int(peers.sum(own, "number of rows")[0])
        agree(peers, "number of rows", n_rows)
        return n_rows

    @property
    def row_counts(self) -> NDArray[np.int32]:
        """The row weights as integers whose sum is that of a channel at most, see `gpuboost.fixedpoint.row_counts`."""
        return fixedpoint.row_counts(self.frequency_weight, self.weight_scale, self.backend.peers)

    @property
    def row_order(self) -> RowOrder:
        """Where the rows stand among those of all workers."""
        return self.order or RowOrder.alone(len(self.target))

    def apply(self, tree: Tree) -> GrownTree:
        """Let the rows go through a tree."""
        return GrownTree(tree, self.backend.apply(tree, self.data))

    def constant(self, scores: NDArray[np.float64]) -> GrownTree:
        """Return what adds the same ``scores``, shape (n_classes,), to every row."""
        return self.apply(constant_tree(scores))


@dataclass(frozen=True)
class Round:
    """One boosting round.

    Attributes
    ----------
    trees : sequence of GrownTree
        The trees of the round, with coefficients in the leaf values; most boosters have one a round.
    loss : float
        The training loss after the round, as a share of the loss of the empty model.
    metrics : dict of float, or of list of float
        What else belongs into the history, such as the weak learner's "edge" in [0, 1]; the same names in every round.
    """

    trees: Sequence[GrownTree]
    loss: float
    metrics: dict[str, Metric]


class RowState(Protocol):
    """What a booster keeps of the rows of a set: enough to know its loss."""

    def update(self, trees: Sequence[GrownTree]) -> None:
        """Add the trees of a round."""

    def loss(self) -> float:
        """Return the loss as a share of the loss of the empty model. Made of integer sums: the same on every backend."""


State = TypeVar("State", bound=RowState)


class Booster(ABC, Generic[State]):
    """A boosting algorithm: the paper's loop, as a generator of rounds.

    To continue a model, the controller makes the `row_state` of the training set, asks `is_last_round` of the model's last
    round, updates the state by all rounds, and goes on with `rounds`. So a continued training is one long training.

    Attributes
    ----------
    ended : str
        Why the rounds have ended, where it is not that the weak learner finds nothing more.
    """

    ended: str = ""

    @abstractmethod
    def row_state(self, problem: Problem) -> State:
        """Return the state of a set before the first round."""

    @abstractmethod
    def rounds(self, problem: Problem, state: State, n_rounds: int) -> Iterator[Round]:
        """Yield the rounds that follow the first ``n_rounds``, until the algorithm ends by itself.

        ``state`` is that of ``problem`` after ``n_rounds`` rounds; every round that is yielded has updated it.
        """

    def is_last_round(self, problem: Problem, state: State, trees: Sequence[GrownTree], t: int) -> bool:
        """Whether the training ends after round ``t``, counted from 0, as `rounds` would end there.

        ``state`` is that before the round. It is only asked of the last round of a model that is continued. A booster that sees
        the end in the state after the round, before the next one, need not say it here.
        """
        return False

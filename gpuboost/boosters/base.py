"""What a booster is given and what it yields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.statistics import Device
from gpuboost.tree import Tree

Metric: TypeAlias = float | list[float]


@dataclass(frozen=True)
class Problem:
    """A set of labelled rows, encoded and ready on its device.

    Attributes
    ----------
    backend : Backend
    data : device matrix
        The binned features, from ``backend.load``.
    signs : ndarray of int8, shape (n_rows, n_classes)
        +1 where a row has the label, else -1.
    frequency_weight : ndarray of int32, shape (n_rows,)
        Integer row weights, see `gpuboost.fixedpoint.split_weights`.
    weight_scale : ndarray of float64, shape (n_rows,)
        Real row weights in (0, 1]; all 1 where the repeats say everything.
    single_label : bool
        Whether every row has exactly one label.
    """

    backend: Backend
    data: Device
    signs: NDArray[np.int8]
    frequency_weight: NDArray[np.int32]
    weight_scale: NDArray[np.float64]
    single_label: bool

    def outputs(self, tree: Tree) -> tuple[Device, NDArray[np.float64]]:
        """Return where each row arrives in a tree, and what that adds to the scores: see `Part`."""
        return self.backend.apply(tree, self.data), tree.values


@dataclass(frozen=True)
class Part:
    """A tree that a round adds to the model, and what it has done to a set of rows.

    Attributes
    ----------
    tree : Tree
        With coefficients in the leaf values.
    leaf_index : device array of int, shape (n_rows,)
        Where each row has arrived.
    values : ndarray of float64, shape (n_groups, n_classes)
        What the tree adds to the scores of the rows of a group.
    """

    tree: Tree
    leaf_index: Device
    values: NDArray[np.float64]


def apply(tree: Tree, problem: Problem) -> Part:
    """Let the rows of a set go through a tree."""
    return Part(tree, *problem.outputs(tree))


@dataclass(frozen=True)
class Round:
    """One boosting round.

    Attributes
    ----------
    trees : sequence of Part
        The trees of the round; most boosters have one a round.
    loss : float
        The training loss after the round, as a share of the loss of the empty model.
    metrics : dict of float, or of list of float
        What else belongs into the history, such as the weak learner's "edge" in [0, 1]; the same names in every round.
    """

    parts: Sequence[Part]
    loss: float
    metrics: dict[str, Metric]


class RowState(Protocol):
    """What a booster keeps of the rows of a set: enough to know its loss."""

    def update(self, parts: Sequence[Part]) -> None:
        """Take in a round."""
        ...

    def loss(self) -> float:
        """Return the loss as a share of the loss of the empty model. Made of integer sums: the same on every backend."""
        ...


class Booster(Protocol):
    """A boosting algorithm: the paper's loop, as a generator of rounds."""

    def row_state(self, problem: Problem) -> RowState:
        """Return the state of a set before the first round."""
        ...

    def rounds(self, problem: Problem, initial_rounds: Sequence[Sequence[Tree]]) -> Iterator[Round]:
        """Yield the rounds that follow those of ``initial_rounds`` (empty for a new model), until the algorithm ends by itself.

        ``initial_rounds`` has the trees of every round.
        """
        ...

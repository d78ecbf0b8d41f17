"""What a booster is given and what it yields."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend, Device
from gpuboost.tree import Tree


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
    repeat : ndarray of int32, shape (n_rows,)
        Integer row weights, see `gpuboost.fixedpoint.split_weights`.
    factor : ndarray of float64, shape (n_rows,)
        Real row weights in (0, 1]; all 1 where the repeats say everything.
    single_label : bool
        Whether every row has exactly one label.
    """

    backend: Backend
    data: Device
    signs: NDArray[np.int8]
    repeat: NDArray[np.int32]
    factor: NDArray[np.float64]
    single_label: bool

    def outputs(self, tree: Tree) -> tuple[Device, NDArray[np.float64]]:
        """Return where each row arrives in a tree, and what that adds to the scores: see `Round`."""
        return self.backend.apply(tree, self.data), tree.values


@dataclass(frozen=True)
class Round:
    """One boosting round.

    Attributes
    ----------
    tree : Tree
        What the round adds to the model, with coefficients in the leaf values.
    edge : float
        The weak learner's edge in [0, 1].
    loss : float
        The training loss after the round, as a share of the loss of the empty model.
    group : device array of int, shape (n_rows,)
        Where each training row has arrived.
    values : ndarray of float64, shape (n_groups, n_classes)
        What the round adds to the scores of the rows of a group.
    """

    tree: Tree
    edge: float
    loss: float
    group: Device
    values: NDArray[np.float64]


class RowState(Protocol):
    """What a booster keeps of the rows of a set: enough to know its loss."""

    def update(self, group: Device, values: NDArray[np.float64]) -> None:
        """Take in a round: the scores of the rows of group g have changed by ``values[g]``, shape (n_groups, n_classes)."""
        ...

    def loss(self) -> float:
        """Return the loss as a share of the loss of the empty model. Made of integer sums: the same on every backend."""
        ...


class Booster(Protocol):
    """A boosting algorithm: the paper's loop, as a generator of rounds."""

    def row_state(self, problem: Problem) -> RowState:
        """Return the state of a set before the first round."""
        ...

    def rounds(self, problem: Problem, trees: Sequence[Tree]) -> Iterator[Round]:
        """Yield the rounds that follow ``trees`` (empty for a new model), until the algorithm ends by itself."""
        ...

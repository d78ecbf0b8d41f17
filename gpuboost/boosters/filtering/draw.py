"""What was drawn from a stream in one go: rows, what they weigh, and where they arrive in a tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.label_weights import WEIGHT_BITS, LabelWeights
from gpuboost.backends.statistics import Device
from gpuboost.binning import BinMapper
from gpuboost.fixedpoint import split_weights
from gpuboost.tree import Tree

ONE = 1 << WEIGHT_BITS


@dataclass
class Chunk:
    """Consecutive rows on the device, with their scores under the first ``n_trees`` trees.

    Attributes
    ----------
    X : ndarray, shape (n_rows, n_features)
    target : ndarray of int64, shape (n_rows,)
    weight : ndarray of float64, shape (n_rows,)
    data : device matrix
    scores : device array of float64, shape (n_rows, n_classes)
    pass_number, first_row : int
        Where the rows stand in the stream.
    n_trees : int
    """

    X: NDArray[Any]
    target: IntArray
    weight: Floats
    data: Device
    scores: Device
    pass_number: int
    first_row: int
    n_trees: int = 0
    comes_again: bool = False
    weights: LabelWeights | None = None
    arrival: tuple[NDArray[Any], Device] | None = None

    def leaf_index(self, backend: Backend, tree: Tree) -> Device:
        """Return the leaf of every row. That of the last tree asked for is kept; its values may still change."""
        if self.arrival is None or self.arrival[0] is not tree.feature:
            self.arrival = tree.feature, backend.apply(tree, self.data)
        return self.arrival[1]


class Part:
    """Rows ``begin .. end - 1`` of a chunk.

    Attributes
    ----------
    q : ndarray of int64, shape (n_rows, n_classes)
        Their label weights; without those of rows that were not chosen if they are not ``complete``.
    chosen : ndarray of int
        The rows that were chosen, counted from ``begin``.
    exists : ndarray of bool, shape (n_rows,)
        Whether a row has a weight: others do not exist.
    label_weight, loss, wrong : ndarray, shape (n_rows,)
        See `gpuboost.backends.label_weights.LabelWeights`.
    """

    def __init__(self, chunk: Chunk, begin: int, weights: LabelWeights) -> None:
        self.chunk, self.begin, self.end, self.complete = chunk, begin, begin + len(weights.q), True
        self.q, self.label_weight, self.loss, self.wrong = weights
        self.exists = chunk.weight[begin : self.end] > 0
        self.chosen = np.zeros(0, np.intp)

    @property
    def target(self) -> IntArray:
        return self.chunk.target[self.begin : self.end]

    @property
    def weight(self) -> Floats:
        return self.chunk.weight[self.begin : self.end]

    def choose(self, chosen: NDArray[np.intp], n_rows: int, *, complete: bool) -> None:
        """Choose rows among the first ``n_rows``, which are kept; unless ``complete``, the others lose their label weights."""
        self.end, self.chosen, self.complete = self.begin + n_rows, chosen, complete
        self.exists, self.label_weight = self.exists[:n_rows], self.label_weight[:n_rows]
        self.loss, self.wrong = self.loss[:n_rows], self.wrong[:n_rows]
        self.q = self.q[:n_rows] if complete else self.q[chosen]


class LeafSums(NamedTuple):
    """Sums over the rows of each leaf, for every class, int64 (n_leaves, n_classes), in a unit of their own.

    Attributes
    ----------
    positive, negative : ndarray
        The label weights of the rows that have the class, and of those that have another one.
    curvature : ndarray, optional
        The sums of ``q (1 - q)``, over both.
    """

    positive: IntArray
    negative: IntArray
    curvature: IntArray | None = None


@dataclass
class Rows:
    """Rows out of a draw.

    Attributes
    ----------
    parts : sequence of Part
    index : sequence of ndarray
        Which of each part's rows these are.
    q : ndarray of int64, shape (n_rows, n_classes)
    """

    parts: Sequence[Part]
    index: Sequence[NDArray[np.intp]]
    q: IntArray

    def gather(self, name: str) -> NDArray[Any]:
        """Return an array of the chunks, at these rows."""
        arrays = [getattr(part.chunk, name)[part.begin : part.end] for part in self.parts]
        return joined([taken(array, index) for array, index in zip(arrays, self.index, strict=True)])

    @cached_property
    def target(self) -> IntArray:
        return self.gather("target")

    def encoded(self, backend: Backend, mapper: BinMapper) -> Device:
        """Return the rows on the device."""
        whole = len(self.parts) == 1 and np.array_equal(
            self.parts[0].begin + self.index[0], np.arange(len(self.parts[0].chunk.X))
        )
        return self.parts[0].chunk.data if whole else backend.encode(mapper, self.gather("X"))

    @cached_property
    def weights(self) -> tuple[NDArray[np.int32], Floats]:
        """The rows' integer and real weights, see `gpuboost.fixedpoint.split_weights`."""
        return split_weights(self.gather("weight"))

    def leaf_index(self, backend: Backend, tree: Tree) -> NDArray[Any]:
        """Return the leaf in which each row arrives, on the host."""
        pieces = []
        for part, index in zip(self.parts, self.index, strict=True):
            leaf_index = backend.get(part.chunk.leaf_index(backend, tree))
            pieces.append(taken(leaf_index[part.begin : part.end], index))
        return joined(pieces)

    def normalised(self, colouring: NDArray[np.int8] | None = None) -> Rows:
        """Return the rows with label weights that sum to 1 in each: what a row that passed the filter weighs.

        With a colouring it is the filter by which only labels of the other colour count: the others get no weight.
        """
        q = self.q if colouring is None else of_other_colour(self.q, self.target, colouring)
        total = sum_of_columns(q)
        return Rows(self.parts, self.index, np.rint(np.ldexp(q / total[:, None], WEIGHT_BITS)).astype(np.int64))

    def recoloured(self, colouring: NDArray[np.int8]) -> tuple[IntArray, IntArray]:
        """Return binary classes, and the weights of the wrong one: of the labels of the other colour."""
        return in_colours(self.q, self.target, colouring)

    def leaf_sums(
        self, leaf_index: NDArray[Any], n_leaves: int, colouring: NDArray[np.int8] | None = None, *, curved: bool = False
    ) -> LeafSums:
        """Sum the label weights by leaf, with a colouring those of its two colours; the curvatures, too, if asked for."""
        frequency, scale = self.weights
        # Sums below 2**53 are exact in float64, in any order.
        largest = int(frequency.sum(dtype=np.int64)) * max(self.q.shape[1] - 1, 1)
        drop = max(0, largest.bit_length() + WEIGHT_BITS - 53)

        def by_leaf(numbers: IntArray) -> tuple[IntArray, IntArray]:
            """Sum numbers of wrong labels by leaf and label, and those of a row by its leaf and class."""
            numbers = np.rint(numbers * scale[:, None]).astype(np.int64) if (scale != 1.0).any() else numbers
            target, numbers = (self.target, numbers) if colouring is None else in_colours(numbers, self.target, colouring)
            columns = ((numbers.T >> drop) * frequency).astype(np.float64, order="C")
            labels = np.stack([np.bincount(leaf_index, column, n_leaves) for column in columns], axis=1)
            own = leaf_index.astype(np.int64) * len(columns) + target
            classes = np.bincount(own, columns.sum(axis=0), labels.size).reshape(labels.shape)
            return labels.astype(np.int64), classes.astype(np.int64)

        negative, positive = by_leaf(self.q)
        if not curved:
            return LeafSums(positive, negative)
        # A pair of labels curves by its own weight, also where a colouring adds up those of several pairs.
        of_labels, of_classes = by_leaf((self.q >> 1) * ((ONE - self.q) >> 1) >> WEIGHT_BITS - 2)
        return LeafSums(positive, negative, of_labels + of_classes)


@dataclass
class Draw:
    """Consecutive rows of a stream, some of them chosen.

    Attributes
    ----------
    parts : list of Part
    n_consumed : int
        Rows that were read, those of weight 0 included.
    """

    parts: list[Part]

    @property
    def n_consumed(self) -> int:
        return sum(part.end - part.begin for part in self.parts)

    @cached_property
    def chosen(self) -> Rows:
        """The rows that were chosen."""
        parts = [part for part in self.parts if len(part.chosen)]
        q = [taken(part.q, part.chosen) if part.complete else part.q for part in parts]
        return Rows(parts, [part.chosen for part in parts], joined(q))

    @property
    def all(self) -> Rows:
        """All rows that exist and have kept their label weights."""
        parts = [part for part in self.parts if part.complete]
        index = [np.flatnonzero(part.exists) for part in parts]
        return Rows(parts, index, joined([taken(part.q, i) for part, i in zip(parts, index, strict=True)]))


def taken(array: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    """Return ``array[index]``, which is not copied where that is all of it in order."""
    return array if len(index) == len(array) and np.array_equal(index, np.arange(len(array))) else array[index]


def joined(pieces: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return pieces as one; a single one is not copied."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def sum_of_columns(table: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of each row, of its first entry and the others in their order: with few columns faster than ``sum``."""
    total = np.zeros(len(table), table.dtype)
    for column in table.T:
        total += column
    return total


def of_other_colour(q: IntArray, target: IntArray, colouring: NDArray[np.int8]) -> IntArray:
    """Return label weights without those of the labels that have the colour of the row's own."""
    others: IntArray = np.where(colouring[None, :] != colouring[target][:, None], q, 0)
    return others


def sum_of_other_colour(numbers: IntArray, target: IntArray, colouring: NDArray[np.int8]) -> IntArray:
    """Return the sum of each row's numbers of the labels that have the other colour than its own."""
    of_plus = sum_of_columns(numbers[:, colouring > 0])
    sums: IntArray = np.where(colouring[target] > 0, sum_of_columns(numbers) - of_plus, of_plus)
    return sums


def in_colours(numbers: IntArray, target: IntArray, colouring: NDArray[np.int8]) -> tuple[IntArray, IntArray]:
    """Return binary classes, and for the wrong one the sum of a row's numbers of the labels of the other colour."""
    colour = (colouring[target] > 0).astype(np.int64)
    sums = np.zeros((len(target), 2), np.int64)
    sums[np.arange(len(target)), 1 - colour] = sum_of_other_colour(numbers, target, colouring)
    return colour, sums

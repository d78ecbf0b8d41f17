"""Similarities: classifiers that compare a row with one or two training points, and the ensemble of a model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray


@dataclass(frozen=True)
class TrainingPoints:
    """Training rows that a model keeps.

    Attributes
    ----------
    levels : ndarray of uint8, shape (n_points, n_features)
        See `gpuboost.similarities.scale`.
    rows : ndarray of int64, shape (n_points,)
        Their numbers in the matrix that the model was trained on.
    classes : ndarray of int32, shape (n_points,)
        The numbers of their classes.
    """

    levels: NDArray[np.uint8]
    rows: IntArray
    classes: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, numbers: Sequence[int] | IntArray) -> TrainingPoints:
        """Return some of the points."""
        chosen = np.asarray(numbers, np.int64)
        return TrainingPoints(self.levels[chosen], self.rows[chosen], self.classes[chosen])


@dataclass(frozen=True)
class Similarity:
    """A localized similarity (section 5.4): a classifier f of rows in {-1, +1}, and what it adds to the scores.

    Attributes
    ----------
    points : TrainingPoints
        Two: f is +1 where a row is at least as near to the first as to the second. One: +1 where its squared distance to it is
        at most ``radius``. None: +1 everywhere.
    radius : int
        A squared distance, in squared levels; 0 unless there is one point.
    values : ndarray of float64, shape (2, n_classes)
        What is added where f is -1, and where it is +1; one is minus the other.
    """

    points: TrainingPoints
    radius: int
    values: Floats

    @property
    def n_leaves(self) -> int:
        """Numbers of values, as of a tree."""
        return len(self.values)


@dataclass(frozen=True)
class Similarities:
    """The similarities of a model, one a round, in flat host arrays.

    Attributes
    ----------
    levels, rows, classes : ndarray
        The points that are used, as in `TrainingPoints`, each once, in the order in which they come up.
    first, second : ndarray of int32, shape (n_rounds,)
        The points of each round; -1 for none.
    radius : ndarray of int64, shape (n_rounds,)
    coefficients : ndarray of float64, shape (n_rounds, n_classes)
        The vectors a: round t adds ``f_t(x) a_t``.
    """

    levels: NDArray[np.uint8]
    rows: IntArray
    classes: NDArray[np.int32]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    radius: IntArray
    coefficients: Floats

    @classmethod
    def from_rounds(cls, rounds: Sequence[Sequence[Similarity]], n_classes: int, n_features: int) -> Similarities:
        """Put the similarities of all rounds together; none is a model that scores 0 everywhere."""
        similarities = [similarity for one in rounds for similarity in one]
        numbers: dict[tuple[int, bytes], int] = {}
        used = np.full((len(similarities), 2), -1, np.int32)
        kept: list[TrainingPoints] = []
        for t, similarity in enumerate(similarities):
            for i, row in enumerate(similarity.points.rows.tolist()):
                key = row, similarity.points.levels[i].tobytes()  # a model may be continued with another training set
                if key not in numbers:
                    numbers[key] = len(kept)
                    kept.append(similarity.points.take([i]))
                used[t, i] = numbers[key]
        return cls(
            levels=np.concatenate([np.zeros((0, n_features), np.uint8), *(one.levels for one in kept)]),
            rows=np.concatenate([np.zeros(0, np.int64), *(one.rows for one in kept)]),
            classes=np.concatenate([np.zeros(0, np.int32), *(one.classes for one in kept)]),
            first=np.ascontiguousarray(used[:, 0]),
            second=np.ascontiguousarray(used[:, 1]),
            radius=np.array([similarity.radius for similarity in similarities], np.int64),
            coefficients=np.concatenate([np.zeros((0, n_classes)), *(similarity.values[1:] for similarity in similarities)]),
        )

    @property
    def points(self) -> TrainingPoints:
        """The points that are used."""
        return TrainingPoints(self.levels, self.rows, self.classes)

    @property
    def n_rounds(self) -> int:
        return len(self.first)

    @property
    def n_points(self) -> int:
        return len(self.rows)

    @property
    def n_classes(self) -> int:
        return int(self.coefficients.shape[1])

    def similarity(self, t: int) -> Similarity:
        """Return that of round t."""
        numbers = [number for number in (int(self.first[t]), int(self.second[t])) if number >= 0]
        return Similarity(
            self.points.take(numbers), int(self.radius[t]), np.stack([-self.coefficients[t], self.coefficients[t]])
        )

    def rounds(self) -> list[list[Similarity]]:
        """Return the similarities of all rounds."""
        return [[self.similarity(t)] for t in range(self.n_rounds)]

    def part(self, first: int, stop: int) -> Similarities:
        """Return the rounds ``first .. stop - 1``, with the points that they use."""
        used = np.stack([self.first[first:stop], self.second[first:stop]])
        kept = np.unique(used[used >= 0])
        renamed = np.where(used >= 0, np.searchsorted(kept, used), -1).astype(np.int32)
        points = self.points.take(kept.astype(np.int64))
        own = (self.radius[first:stop], self.coefficients[first:stop])
        return Similarities(points.levels, points.rows, points.classes, renamed[0], renamed[1], *own)

    def digest(self) -> str:
        """Return the SHA-256 of all arrays: equal digests are equal models, byte for byte."""
        sha = hashlib.sha256()
        for field in fields(self):
            array = getattr(self, field.name)
            sha.update(f"{field.name} {array.dtype.str} {array.shape};".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()

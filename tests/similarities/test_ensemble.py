"""The arrays of similarities: there and back, parts of them, and digests."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from gpuboost.similarities.ensemble import Similarities, Similarity, TrainingPoints

LEVELS = np.array([[1, 2], [3, 4], [5, 6]], np.uint8)
POINTS = TrainingPoints(LEVELS, np.array([40, 10, 20]), np.array([1, 0, 1], np.int32))


def similarity(numbers: list[int], radius: int, *coefficients: float) -> Similarity:
    a = np.array(coefficients)
    return Similarity(POINTS.take(numbers), radius, np.stack([-a, a]))


ROUNDS = [[similarity([], 0, 0.5, -0.5)], [similarity([2, 0], 0, 1.0, 2.0)], [similarity([0], 9, 3.0, 4.0)]]


def test_points_are_kept_once_in_the_order_of_their_use() -> None:
    model = Similarities.from_rounds(ROUNDS, 2, 2)
    assert model.levels.tolist() == [[5, 6], [1, 2]]
    assert model.rows.tolist() == [20, 40]
    assert model.classes.tolist() == [1, 1]
    assert (model.first.tolist(), model.second.tolist(), model.radius.tolist()) == ([-1, 0, 1], [-1, 1, -1], [0, 0, 9])
    assert model.coefficients.tolist() == [[0.5, -0.5], [1, 2], [3, 4]]
    assert (model.n_rounds, model.n_points, model.n_classes, len(model.points)) == (3, 2, 2, 2)


def test_there_and_back() -> None:
    model = Similarities.from_rounds(ROUNDS, 2, 2)
    assert Similarities.from_rounds(model.rounds(), 2, 2).digest() == model.digest()
    assert model.similarity(1).values.tolist() == [[-1, -2], [1, 2]]
    assert model.similarity(1).n_leaves == 2
    empty = Similarities.from_rounds([], 3, 4)
    assert (empty.n_rounds, empty.levels.shape, empty.coefficients.shape) == (0, (0, 4), (0, 3))
    assert empty.rounds() == []


def test_a_part_has_its_own_points() -> None:
    model = Similarities.from_rounds(ROUNDS, 2, 2)
    part = model.part(2, 3)
    assert (part.levels.tolist(), part.first.tolist(), part.second.tolist(), part.radius.tolist()) == ([[1, 2]], [0], [-1], [9])
    assert model.part(0, 1).n_points == 0
    assert model.part(0, 3).n_rounds == 3
    assert model.part(1, 1).n_rounds == 0


def test_a_row_of_another_training_set_is_another_point() -> None:
    moved = TrainingPoints(LEVELS + np.uint8(1), POINTS.rows, POINTS.classes)
    more = Similarity(moved.take([0]), 0, np.array([[-1.0, -1.0], [1.0, 1.0]]))
    assert Similarities.from_rounds([*ROUNDS, [more]], 2, 2).n_points == 3


def test_every_array_is_in_the_digest() -> None:
    model = Similarities.from_rounds(ROUNDS, 2, 2)
    digests = {model.digest()}
    for field in fields(model):
        changed = {f.name: getattr(model, f.name) for f in fields(model)}
        changed[field.name] = changed[field.name] + np.asarray(1).astype(changed[field.name].dtype)
        digests.add(Similarities(**changed).digest())
    assert len(digests) == 1 + len(fields(model))

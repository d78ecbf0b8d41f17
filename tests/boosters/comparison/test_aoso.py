"""AOSO-LogitBoost: a round by hand, a tree grown in floating point beside it, LogitBoost for two classes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.reference.softmax import complements as one_by_one
from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.boosters.comparison.aoso_logitboost import AOSOLogitBoost
from gpuboost.boosters.comparison.class_pairs import complements
from gpuboost.boosters.sampling import Sampling
from tests.problems import Data, blobs, digest, fit, scores, sign_matrix

Floats = NDArray[np.float64]


def test_round_by_hand(backend: Backend) -> None:
    # Classes 0 0 1 2 in a row, all p 1/3. Gradients of all rows (2/3, -1/3, -1/3): the pair of the root is 0 and 1, the lower
    # of equals. Rows have g = 1, 1, -1, 0 and h = 2/3: the cut after the second gains 4 / (4/3) + 1 / (4/3) - 1 / (8/3), most
    # of all. On the left the pair is 0 and 1, with the step 2 / (4/3). On the right gradients are (-2/3, 1/3, 1/3): 1 is the
    # first, and gains with 0 alone, 1 / (4/3).
    data = Data(np.arange(4.0)[:, None], sign_matrix([0, 0, 1, 2], 3))
    tree = fit(AOSOLogitBoost(2, 1, 0.1), data, backend, 1).trees[0]
    assert tree.cut.tolist() == [2]
    assert tree.values == pytest.approx(np.array([[0.15, -0.15, 0], [-0.075, 0.075, 0]]), rel=1e-7)
    assert tree.gain == pytest.approx(np.array([(3.75 - 0.375) / 4]), rel=1e-7)


def softmax(f: Floats) -> Floats:
    p = np.exp(f - f.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


class Naive:
    """Best-first growth of one tree from the definitions, in floating point."""

    def __init__(self, data: Data, f: Floats) -> None:
        self.X, p = data.X, softmax(f)
        self.r, self.p = (data.signs > 0) - p, p

    def pair(self, rows: NDArray[np.bool_]) -> tuple[int, int, float, float]:
        g, p = self.r[rows].sum(axis=0), self.p[rows]
        first = int(g.argmax())
        h = (p[:, [first]] * (1 - p[:, [first]]) + p * (1 - p) + 2 * p[:, [first]] * p).sum(axis=0)
        gains = (g[first] - g) ** 2 / h
        gains[first] = -1
        second = int(gains.argmax())
        return first, second, g[first] - g[second], h[second]

    def split(self, rows: NDArray[np.bool_]) -> tuple[float, int, NDArray[np.bool_]]:
        a, b, *_ = self.pair(rows)
        g = self.r[:, a] - self.r[:, b]
        h = self.p[:, a] * (1 - self.p[:, a]) + self.p[:, b] * (1 - self.p[:, b]) + 2 * self.p[:, a] * self.p[:, b]

        def gain(side: NDArray[np.bool_]) -> float:
            return float(g[side].sum() ** 2 / h[side].sum())

        cuts = [
            (gain(rows & left) + gain(rows & ~left) - gain(rows), j, rows & left)
            for j in range(self.X.shape[1])
            for left in (self.X[:, j] < value for value in np.unique(self.X[rows, j])[1:])
        ]
        return max(cuts, key=lambda cut: cut[0]) if cuts else (0.0, 0, rows)

    def grow(self, max_leaves: int, rate: float) -> Floats:
        leaves = [np.ones(len(self.X), bool)]
        while len(leaves) < max_leaves:
            found = [self.split(rows) for rows in leaves]
            best = max(range(len(leaves)), key=lambda i: found[i][0])
            left = found[best][2]
            leaves[best : best + 1] = [left, leaves[best] & ~left]
        values = np.zeros_like(self.p)
        for rows in leaves:
            first, second, g, h = self.pair(rows)
            values[rows, first], values[rows, second] = rate * g / h, -rate * g / h
        return values


def test_trees_beside_those_of_the_definitions(backend: Backend) -> None:
    data = blobs(60, 3, 4, 3)
    trees = fit(AOSOLogitBoost(5, 1, 0.5), data, backend, 4).trees
    f = np.zeros((60, 4))
    for tree in trees:
        added = Naive(data, f).grow(5, 0.5)
        assert scores([tree], data, backend, data.mapper()) == pytest.approx(added, abs=1e-6)
        f = f + added


@pytest.mark.parametrize("weighted", [False, True])
def test_with_two_classes_it_is_logitboost(candidate: Backend, weighted: bool) -> None:
    data = blobs(80, 3, 2, 0)
    if weighted:
        data = Data(data.X, data.signs, np.random.default_rng(1).random(80) + 0.1)
    boosters = AOSOLogitBoost(6, 2, 0.3), ABCBoost("logit", None, 1, None, 6, 2, 0.3)
    one, other = (fit(booster, data, candidate, 5) for booster in boosters)
    assert digest(one.trees, 2) == digest(other.trees, 2)
    assert one.history["train_loss"] == other.history["train_loss"]


def test_a_leaf_moves_two_classes_and_the_loss_falls() -> None:
    training = fit(AOSOLogitBoost(6, 2, 0.2), blobs(120, 4, 6, 1), NumpyBackend(), 12)
    pairs = set()
    for tree in training.trees:
        assert ((tree.values != 0).sum(axis=1) == 2).all()
        assert tree.values.sum(axis=1).tolist() == [0.0] * tree.n_leaves
        pairs |= {tuple(np.flatnonzero(row)) for row in tree.values}
    assert len(pairs) > 6  # more than a base class of a tree would make
    assert (np.diff([1.0, *training.history["train_loss"]]) < 0).all()


def test_leaves_are_of_all_rows_where_a_part_was_grown_from() -> None:
    data, backend = blobs(90, 4, 3, 2), NumpyBackend()
    sampling = Sampling(weight_trim=0.9, max_features=0.5, subsample=0.6, seed=4)
    trees = fit(AOSOLogitBoost(4, 2, 0.5, sampling), data, backend, 4).trees
    f = np.zeros((90, 3))
    for tree in trees:
        leaf, naive = backend.apply(tree, data.on(backend, data.mapper()).data), Naive(data, f)
        for n in range(tree.n_leaves):
            first, second, g, h = naive.pair(leaf == n)
            expected = np.zeros(3)
            expected[[first, second]] = 0.5 * g / h, -0.5 * g / h
            assert tree.values[n] == pytest.approx(expected, abs=1e-6)
        f = f + tree.values[leaf]


def test_the_training_ends_where_all_is_fitted() -> None:
    data = Data(np.arange(4.0)[:, None], sign_matrix([0, 0, 1, 2], 3))
    training = fit(AOSOLogitBoost(4, 1, 1.0), data, NumpyBackend(), 300)
    assert len(training.trees) < 300
    assert training.reason == "the weak learner has nothing left to learn"


def test_complements_are_those_of_the_reference() -> None:
    p = np.random.default_rng(0).dirichlet(np.full(5, 0.1), 200)
    p[0] = [1 - 2**-40, 2.0**-42, 2.0**-42, 2.0**-42, 2.0**-42]
    assert complements(p).tobytes() == one_by_one(p).tobytes()

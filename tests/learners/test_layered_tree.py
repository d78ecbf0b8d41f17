"""Trees of binary classifiers that are grown layer by layer: brute force, identities, and layers worked by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import LEFT
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Stats
from gpuboost.learners import layered_tree
from gpuboost.learners.layered_tree import LayeredTree, SignTree, constant, stump, with_layer
from gpuboost.tree import constant_tree
from tests.problems import coded, stats_of

Signs = NDArray[np.int64]
Cut = tuple[int, int, bool]


@dataclass(frozen=True)
class Naive:
    """The procedure of section 4.4 in float64 over the rows of a problem with integer weights q, signed by the label."""

    codes: NDArray[np.int64]
    quantised: NDArray[np.int64]

    def stumps(self) -> list[Signs]:
        """What every cut says of every row; +1 everywhere comes first."""
        n_features, n_rows = self.codes.shape
        found = [np.ones(n_rows, np.int64)]
        for f, cut, missing_left in itertools.product(range(n_features), range(1, 8), (True, False)):
            column = self.codes[f]
            found.append(np.where((column <= cut) & ((column > 0) | missing_left), -1, 1))
        return found

    def sides(self, f: Signs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        agrees = f[:, None] * self.quantised
        return np.where(agrees > 0, agrees, 0).sum(axis=0), np.where(agrees < 0, -agrees, 0).sum(axis=0)

    def best_loss(self, f: Signs) -> float:
        """Eq. 4.10."""
        right, wrong = self.sides(f)
        return sum(2 * math.sqrt(int(r) * int(w)) for r, w in zip(right, wrong, strict=True))

    def smoothed_coefficients(self, f: Signs) -> NDArray[np.float64]:
        right, wrong = self.sides(f)
        more = np.maximum((right + wrong) // layered_tree.SMOOTHING, 1)
        return 0.5 * np.log((right + more) / (wrong + more))

    def loss(self, f: Signs, a: NDArray[np.float64]) -> float:
        right, wrong = self.sides(f)
        return float((right * np.exp(-a) + wrong * np.exp(a)).sum())

    def tree(self, depth: int) -> Signs:
        best = min(self.stumps(), key=self.best_loss)  # the first of equals
        leaf = (best > 0).astype(int)
        for _ in range(depth - 1):
            a = self.smoothed_coefficients(best)
            r = (self.quantised * np.sinh(a)).sum(axis=1)
            deeper, leaves = best.copy(), 2 * leaf
            for which in np.unique(leaf):
                inside = leaf == which
                f = max(self.stumps(), key=lambda f: abs(float((f * r)[inside].sum())))  # the first of equals
                deeper[inside] = (f * np.sign((f * r)[inside].sum()))[inside]
                leaves[inside] += f[inside] > 0
            if self.loss(deeper, self.smoothed_coefficients(deeper)) >= self.loss(best, a):
                break
            best, leaf = deeper, leaves
        return best


def random_problem(seed: int, n_rows: int, n_features: int, n_classes: int) -> Naive:
    """Large weights at random, so that nothing ties but what has to; signs by a chessboard of two columns, mostly."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 8, (n_features, n_rows))
    board = np.where((codes[0] > 3) ^ (codes[-1] > 2 + seed % 3), 1, -1)[:, None] * rng.choice([-1, 1], n_classes)
    return Naive(codes, rng.integers(1, 10**6, board.shape) * board * rng.choice([-1, 1], board.shape, p=[0.2, 0.8]))


def grow(naive: Naive, backend: Backend, depth: int) -> tuple[SignTree, Signs]:
    """The learner's tree, and what it says of every row."""
    data, stats = backend.load(coded(naive.codes, [8] * len(naive.codes))), stats_of(backend, naive.quantised)
    state, signs = (
        backend.put(abs(naive.quantised).astype(float)),
        backend.put(np.where(naive.quantised < 0, -1, 1).astype(np.int8)),
    )
    frequency_weight = backend.put(np.ones(len(naive.quantised), np.int32))

    def project(coefficients: NDArray[np.float64]) -> Stats:
        r, sides, maximum = backend.project(state, signs, coefficients)
        return backend.statistics(r, sides, frequency_weight, len(naive.quantised), maximum)

    grown = LayeredTree(depth)(backend, data, stats, project)
    return grown, grown.tree.values[:, 0][np.array(backend.get(grown.leaf_index))].astype(np.int64)


@pytest.mark.parametrize("seed", range(20))
def test_stump_is_the_best_of_all(backend: Backend, seed: int) -> None:
    naive = random_problem(seed, 20, 3, 1 + seed % 4)
    grown, f = grow(naive, backend, 1)
    best = min(map(naive.best_loss, naive.stumps()))
    assert naive.best_loss(f) == pytest.approx(best, rel=1e-12)
    right, wrong = naive.sides(f)
    assert (grown.right.tolist(), grown.wrong.tolist()) == (right.tolist(), wrong.tolist())
    assert grown.coefficients == pytest.approx(naive.smoothed_coefficients(f), abs=1e-14)
    assert grown.loss == pytest.approx(naive.loss(f, grown.coefficients), rel=1e-12)
    whole = naive.best_loss(np.ones_like(f))
    assert grown.tree.gain.sum() == pytest.approx((whole - best) / abs(naive.quantised).sum(), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("seed", range(12))
def test_layers_are_the_best_of_all(backend: Backend, seed: int, depth: int) -> None:
    naive = random_problem(100 + seed, 60, 3, 1 + seed % 4)
    grown, f = grow(naive, backend, depth)
    expected = naive.tree(depth)
    assert f.tolist() == expected.tolist()
    assert grown.loss == pytest.approx(naive.loss(expected, naive.smoothed_coefficients(expected)), rel=1e-12)
    assert grown.tree.n_leaves <= 2**depth


def test_some_of_these_trees_are_deep() -> None:
    leaves = [grow(random_problem(100 + seed, 60, 3, 1 + seed % 4), NumpyBackend(), 4)[0].tree.n_leaves for seed in range(12)]
    assert max(leaves) > 8
    assert sum(n > 4 for n in leaves) >= 8


def test_a_layer_by_hand(backend: Backend) -> None:
    # One class; x = 1 2 3 4 (rows 0 .. 3), y = + + - +, weights 4 3 2 8.
    # Sums P = 13, T = 17. Cuts: L = 4, 7, 5: |13 - 8|, |13 - 14|, |13 - 10| = 5, 1, 3, and 13 without: the constant wins.
    # With weights 4 3 9 8: P = 6, T = 24; |6 - 8|, |6 - 14|, |6 + 4| = 2, 8, 10: the cut after x = 3 (left -1, right +1):
    # E = 10, right 17, wrong 7, a > 0, so r = q sinh a has the signs of q. The left leaf (4, 3, -9) has P = -2 and is cut after
    # x = 2 with |-2 - 14| = 16: +1, +1, -1. The right leaf is left whole. Everything is right then.
    naive = Naive(np.array([[1, 2, 3, 4]]), np.array([[4], [3], [-9], [8]]))
    grown, f = grow(naive, backend, 1)
    assert (f.tolist(), grown.right.tolist(), grown.wrong.tolist()) == ([-1, -1, -1, 1], [17], [7])
    assert grown.tree.gain.tolist() == pytest.approx([(math.sqrt(24**2 - 6**2) - math.sqrt(24**2 - 10**2)) / 24])
    grown, f = grow(naive, backend, 2)
    assert f.tolist() == [1, 1, -1, 1]
    assert grown.tree.cut.tolist() == [3, 2]
    assert (grown.tree.left.tolist(), grown.tree.right.tolist()) == ([1, ~0], [~2, ~1])
    assert (grown.right.tolist(), grown.wrong.tolist()) == ([24], [0])
    assert grown.coefficients.tolist() == pytest.approx([0.5 * math.log(25 / 1)])  # one unit is the least that is added
    # The layer wins 16 - 2 in units of sinh a, a = ln(18 / 8) / 2 after smoothing.
    sinh = (math.sqrt(18 / 8) - math.sqrt(8 / 18)) / 2
    assert grown.tree.gain[1] == pytest.approx((16 - 2) * sinh / 24, rel=1e-6)
    assert grow(naive, backend, 4)[0].tree.n_leaves == 3  # nothing is left to win


def test_the_worst_layer_repeats_the_last(backend: Backend) -> None:
    # A column of two values: after one cut there is nothing to cut, and the tree of depth 4 is a stump.
    naive = Naive(np.array([[1, 1, 2, 2]]), np.array([[3], [-1], [-4], [1]]))
    grown, f = grow(naive, backend, 4)
    assert (grown.tree.n_leaves, abs(f).tolist()) == (2, [1, 1, 1, 1])
    assert grown.coefficients.tolist() == pytest.approx([0.5 * math.log(3 / 8)])  # wrong on 7 + 1, right on 2 + 1


def test_constant_classifier(backend: Backend) -> None:
    data, stats = backend.load(coded([[1, 2, 3]])), stats_of(backend, [[3, -1], [-1, -2], [2, -4]])
    grown = constant(backend, data, stats)
    assert (grown.right.tolist(), grown.wrong.tolist()) == ([5, 0], [1, 7])
    even = stats_of(backend, [[2, 1], [-2, 1], [0, -2]])  # no cut wins anything: classes are even on both sides
    assert stump(backend, backend.load(coded([[1, 1, 1]])), even).n_leaves == 1


@pytest.mark.parametrize("seed", range(10))
def test_the_loss_with_coefficients_held_fixed(seed: int) -> None:
    # sum w exp(-y f a) = sum w cosh a - sum f r for f in {-1, +1}, with the r of `project`.
    naive = random_problem(seed, 40, 2, 3)
    rng = np.random.default_rng(seed)
    f, a = rng.choice([-1, 1], 40), rng.normal(size=3)
    backend = NumpyBackend()
    signs = np.where(naive.quantised < 0, -1, 1).astype(np.int8)
    r, sides, _ = backend.project(abs(naive.quantised).astype(float), signs, np.sinh(a))
    direct = float((abs(naive.quantised) * np.exp(-signs * f[:, None] * a)).sum())
    assert float((abs(naive.quantised) * np.cosh(a)).sum() - (f * (r * sides)[:, 0]).sum()) == pytest.approx(direct, rel=1e-12)


sides = st.lists(st.tuples(st.integers(0, 2**30 - 1), st.integers(0, 2**30 - 1)), min_size=1, max_size=4)


@given(sides)
@settings(deadline=None, max_examples=200)
def test_smoothed_coefficients_lie_between_zero_and_the_best(weights: list[tuple[int, int]]) -> None:
    right, wrong = np.array(weights, np.int64).T
    grown = SignTree(constant_tree(np.ones(1)), None, right=right, wrong=wrong)
    a = grown.coefficients
    more, less = grown.exponentials()
    assert np.isfinite(a).all()
    assert abs(a).max() <= 0.5 * math.log(2 * layered_tree.SMOOTHING + 1) or (right + wrong).min() < layered_tree.SMOOTHING
    assert more == pytest.approx(np.exp(a), rel=1e-12)
    assert less == pytest.approx(np.exp(-a), rel=1e-12)
    with np.errstate(divide="ignore", invalid="ignore"):
        best = 0.5 * np.log(right / wrong)
    inside = np.where(best > 0, (a >= 0) & (a <= best), (a <= 0) & (a >= best))
    assert (inside | (right == wrong)).all()
    assert (a[right == wrong] == 0).all()
    # So no class loses: up to rounding.
    assert grown.loss <= (right + wrong).sum() * (1 + 1e-15)
    # Turning a class round turns its coefficient round, to the last bit.
    assert replace(grown, right=wrong, wrong=right).coefficients.tobytes() == (0.0 - a).tobytes()


def test_layers_are_joined_below_their_leaves() -> None:
    # A tree of three leaves, of which the first and the last are cut.
    roots = np.zeros((3, 10), np.int64)
    roots[[0, 2], LEFT] = 1
    roots[:, 2:5] = [[5, 6, 1], [-1, 0, 0], [7, 8, 0]]
    old = with_layer(constant_tree(np.ones(1)), np.array([[0, 0, 3, 4, 0, 1, 0, 0, 0, 0]]), np.array([1.0]), np.array([0.5]))
    assert (old.feature.tolist(), old.left.tolist(), old.right.tolist()) == ([3], [~0], [~1])
    assert (old.values.tolist(), old.gain.tolist()) == ([[-1.0], [1.0]], [0.5])
    second = np.array([[0, 0, 2, 9, 1, 1, 0, 0, 0, 0], [0, 0, -1, 0, 0, 0, 0, 0, 0, 0]])
    middle = with_layer(old, second, np.array([-1.0, 1.0]), np.array([0.25, 0.0]))
    assert (middle.left.tolist(), middle.right.tolist()) == ([1, ~0], [~2, ~1])
    assert middle.values[:, 0].tolist() == [1.0, -1.0, 1.0]
    new = with_layer(middle, roots, np.array([1.0, -1.0, -1.0]), np.array([0.1, 0.0, 0.2]))
    assert new.feature.tolist() == [3, 2, 5, 7]
    assert new.cut.tolist() == [4, 9, 6, 8]
    assert new.missing_left.tolist() == [False, True, True, False]
    assert new.left.tolist() == [1, 2, ~0, ~3]
    assert new.right.tolist() == [3, ~2, ~1, ~4]
    assert new.values[:, 0].tolist() == [-1.0, 1.0, -1.0, 1.0, -1.0]
    assert new.gain.tolist() == [0.5, 0.25, 0.1, 0.2]

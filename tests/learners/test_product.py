from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Stats
from gpuboost.learners.base import VotingTree
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import MAX_FACTORS, Stump, StumpProduct, cell_signs, complete_tree
from tests.oracles import Limit, product
from tests.problems import coded, cpu_backend, stats_of, votes_of_rows

BACKENDS: tuple[Backend, ...] = (NumpyBackend(), cpu_backend())
untimed = settings(deadline=None)

# The four corners of a square; class 0 is where both features agree, class 1 where they differ.
XOR_CODES = [[1, 1, 2, 2], [1, 2, 1, 2]]
XOR_Q = [[1, -1], [-1, 1], [-1, 1], [1, -1]]


@st.composite
def small_problems(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    n_rows, n_features, n_channels = draw(st.integers(1, 10)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = rng.integers(draw(st.integers(0, 1)), draw(st.integers(2, 5)), (n_features, n_rows))
    quantised = rng.integers(-4, 5, (n_rows, n_channels))
    quantised[0, 0] = quantised[0, 0] or 1  # the total weight is positive
    return codes.astype(np.uint8), quantised


def fit(backend: Backend, codes: ArrayLike, quantised: ArrayLike, n_factors: int, limit: Limit | None = None) -> VotingTree:
    stats = stats_of(backend, quantised) if limit is None else stats_of(backend, quantised, limit.counts, limit.minimum)
    return StumpProduct(n_factors)(backend, backend.load(coded(codes)), stats)


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    """Counts for as many rows as a small problem may have."""
    counts = np.random.default_rng(draw(st.integers(0, 2**32))).integers(0, 6, 10)
    return Limit(counts.tolist(), draw(st.integers(1, 12)))


@untimed
@given(small_problems(), st.integers(1, 3), st.none() | limits())
def test_product_against_the_naive_one(problem: tuple[NDArray[Any], NDArray[Any]], n_factors: int, limit: Limit | None) -> None:
    codes, quantised = problem
    if limit is not None:
        limit = Limit(limit.counts[: len(quantised)], limit.minimum)
    votes, edges = product(codes.tolist(), quantised.tolist(), coded(codes).n_bins.tolist(), n_factors, limit)
    for backend in BACKENDS:
        weak = fit(backend, codes, quantised, n_factors, limit)
        assert weak.edge == max(edges, default=0)
        got = votes_of_rows(backend, weak)
        assert got.tolist() == [list(votes[i]) for i in range(len(quantised))]
        if edges:
            assert int((got * quantised).sum()) == weak.edge  # sum over rows and classes of w y h
        applied = backend.get(backend.apply(weak.tree, backend.load(coded(codes))))
        assert weak.tree.values[applied].tolist() == got.tolist()


@untimed
@given(small_problems())
def test_product_of_one_is_a_stump(problem: tuple[NDArray[Any], NDArray[Any]]) -> None:
    codes, quantised = problem
    for backend in BACKENDS:
        one = fit(backend, codes, quantised, 1)
        stump = HammingTree(2)(backend, backend.load(coded(codes)), stats_of(backend, quantised))
        assert one.edge == stump.edge
        if stump.edge:
            for name in ("feature", "cut", "missing_left", "left", "right", "values", "gain"):
                assert getattr(one.tree, name).tolist() == getattr(stump.tree, name).tolist(), name


class Spy(NumpyBackend):
    """Notes the edge of every stump that a product looks at."""

    def __init__(self) -> None:
        self.flipped: list[Stats] = []

    def flip(self, stats: Stats, leaf_index: Any, signs: NDArray[np.int8]) -> Stats:
        self.flipped.append(super().flip(stats, leaf_index, signs))
        return self.flipped[-1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_factors", [2, 3, 5])
def test_every_factor_is_at_least_as_good_as_the_one_before(n_factors: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, quantised = rng.integers(1, 6, (4, 40)).astype(np.uint8), rng.integers(-5, 6, (40, 3))
    spy = Spy()
    weak = fit(spy, codes, quantised, n_factors)
    data = coded(codes)
    # The best stump on labels multiplied by the other factors may keep the old factor, so its edge cannot be lower.
    edges = [HammingTree(2)(NumpyBackend(), data, stats).edge for stats in spy.flipped]
    assert edges == sorted(edges)
    assert edges[-1] == weak.edge
    assert len(edges) % n_factors == 0
    assert edges[-n_factors - 1 :] == [weak.edge] * min(len(edges), n_factors + 1)  # the last cycle gained nothing
    # Labels are only ever multiplied by +-1.
    assert all(np.array_equal(abs(stats.quantised), abs(spy.flipped[0].quantised)) for stats in spy.flipped)


def test_xor_needs_two_factors(backend: Backend) -> None:
    # Row 0 weighs 2, the others 1: P = (1, -1). The left half of either feature has L = (2 - 1, -2 + 1) = (1, -1), so a
    # cut has the edges (-1, 1), no more than the constant classifier: factor 0 is (+, -). Times that, the labels of
    # both classes are (2, -1, -1, 1), and again no cut beats the constant classifier. The edge stays at 2 of 10.
    quantised = [[2, -2], [-1, 1], [-1, 1], [1, -1]]
    assert fit(backend, XOR_CODES, quantised, 2).edge == 2
    # Rows 0 and 1 weigh 3 and 2: P = (1, -1). Feature 0 has L = (3 - 2, ...) = (1, -1), edges (-1, 1); feature 1 has
    # L = (3 - 1, ...) = (2, -2), edges (-3, 3). So factor 0 is feature 1 with votes (-, +) and the edge 6. Times that, the
    # labels of both classes are (3, 2, -1, -1): P = 3, and feature 0 has L = 5, edges 3 - 10 = -7: 14, all of the weight.
    quantised = [[3, -3], [-2, 2], [-1, 1], [1, -1]]
    weak = fit(backend, XOR_CODES, quantised, 2)
    assert weak.edge == 14 == int(np.abs(quantised).sum())
    assert votes_of_rows(backend, weak).tolist() == np.sign(quantised).tolist()
    stump = HammingTree(2)(backend, backend.load(coded(XOR_CODES)), stats_of(backend, quantised))
    assert stump.edge == 6


@pytest.mark.parametrize("seed", range(3))
def test_xor_like_data(backend: Backend, seed: int) -> None:
    # Random points of the square: the classes are balanced within every half only up to chance, so a stump has
    # an edge near 0, and enough to start on; the product of the two right stumps has an edge of 1.
    rng = np.random.default_rng(seed)
    X = rng.integers(1, 9, (2, 400))
    same = (X[0] > 4) == (X[1] > 4)
    quantised = np.where(same[:, None], [1, -1], [-1, 1])
    stump, two = fit(backend, X, quantised, 1), fit(backend, X, quantised, 2)
    assert stump.edge / (2 * 400) < 0.25
    assert two.edge == 2 * 400
    assert sorted(two.tree.feature[:2].tolist()) == [0, 1]
    assert set(two.tree.cut.tolist()) == {4}


def test_no_edge_at_all(backend: Backend) -> None:
    assert fit(backend, XOR_CODES, XOR_Q, 1).edge == 0
    assert fit(backend, XOR_CODES, XOR_Q, 3).edge == 0


# ---- a product as a tree -----------------------------------------------------------------------------------------------------


def stump(feature: int, cut: int, missing_left: bool, votes: list[int]) -> Stump:
    return Stump(feature, cut, missing_left, np.array(votes, np.int8))


def test_cell_signs_by_hand() -> None:
    # phi is -1 where the factor's bit is set.
    stumps = [stump(0, 1, True, [1, -1]), stump(1, 1, True, [-1, -1])]
    assert cell_signs(stumps, [0, 1], 2, 2).tolist() == [[-1, 1], [1, -1], [1, -1], [-1, 1]]
    assert cell_signs(stumps[1:], [1], 2, 2).tolist() == [[-1, -1], [-1, -1], [1, 1], [1, 1]]
    assert cell_signs([], [], 1, 3).tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize("n_factors", [1, 2, 3, 4, MAX_FACTORS])
def test_complete_tree_sends_rows_to_their_cells(backend: Backend, n_factors: int) -> None:
    rng = np.random.default_rng(n_factors)
    n_classes, n_rows = 3, 200
    codes = rng.integers(0, 6, (4, n_rows)).astype(np.uint8)
    stumps = [
        stump(int(rng.integers(4)), int(rng.integers(1, 6)), bool(rng.integers(2)), rng.choice([-1, 1], n_classes).tolist())
        for _ in range(n_factors)
    ]
    if n_factors > 2:
        stumps[1] = stump(-1, 0, False, [1, -1, 1])  # a constant factor asks nothing
    expected = np.ones((n_rows, n_classes))
    cell = np.zeros(n_rows, np.int32)
    for j, f in enumerate(stumps):
        code = codes[f.feature]
        left = np.where(code == 0, f.missing_left, code <= f.cut) & (f.feature >= 0)
        cell |= left.astype(np.int32) << j
        expected *= f.votes * np.where(left, -1, 1)[:, None]
    signs = cell_signs(stumps, list(range(n_factors)), n_factors, n_classes)
    assert signs[cell].tolist() == expected.tolist()
    weak = complete_tree(stumps, signs.astype(np.float64), 60, cell, 100)
    assert weak.tree.values[weak.leaf_of_index[cell]].tolist() == expected.tolist()
    leaf = backend.get(backend.apply(weak.tree, backend.load(coded(codes))))
    assert leaf.tolist() == weak.leaf_of_index[cell].tolist()
    depth = n_factors - (n_factors > 2)
    assert weak.tree.n_leaves == 2**depth
    assert weak.tree.gain.sum() == pytest.approx(60 / 100, rel=1e-14)


def test_product_of_constants_is_one_leaf() -> None:
    stumps = [stump(-1, 0, False, [1, -1]), stump(-1, 0, False, [-1, -1])]
    weak = complete_tree(stumps, cell_signs(stumps, [0, 1], 2, 2).astype(np.float64), 5, np.zeros(3, np.int32), 9)
    assert weak.tree.n_leaves == 1
    assert weak.tree.first == ~0
    assert weak.tree.values.tolist() == [[-1, 1]]
    assert weak.leaf_of_index.tolist() == [0, 0, 0, 0]

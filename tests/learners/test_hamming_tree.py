from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.learners.base import VotingTree
from gpuboost.learners.hamming_tree import HammingTree
from tests.oracles import Limit, best_stump, hamming_tree
from tests.problems import coded, cpu_backend, stats_of, votes_of_rows

BACKENDS: tuple[Backend, ...] = (NumpyBackend(), cpu_backend())
untimed = settings(deadline=None)


@st.composite
def small_problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Codes (F, N), often missing, constant or tied, and small integers q (N, C), often zero."""
    n_rows, n_features, n_channels = draw(st.integers(1, 12)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    codes = rng.integers(draw(st.integers(0, 1)), draw(st.integers(2, 6)), (n_features, n_rows))
    largest = draw(st.sampled_from([1, 2, 5]))
    return codes.astype(np.uint8), rng.integers(-largest, largest + 1, (n_rows, n_channels))


def grow(
    backend: Backend, codes: ArrayLike, quantised: ArrayLike, max_leaf_nodes: int, limit: Limit | None = None
) -> VotingTree:
    stats = stats_of(backend, quantised) if limit is None else stats_of(backend, quantised, limit.counts, limit.minimum)
    return HammingTree(max_leaf_nodes)(backend, backend.load(coded(codes)), stats)


def bins_of(codes: ArrayLike) -> list[int]:
    return coded(codes).n_bins.tolist()


def cut_of(weak: VotingTree) -> tuple[int, int, bool] | None:
    """The root's cut, or None for the constant classifier."""
    tree = weak.tree
    return (int(tree.feature[0]), int(tree.cut[0]), bool(tree.missing_left[0])) if len(tree.feature) else None


# ---- stumps by hand ----------------------------------------------------------------------------------------------------------


def test_stump_by_hand(backend: Backend) -> None:
    # Class sums P = (2, -1, -1). Left sums and edges P - 2 L:
    #   cut 1: (2, -1, -1) -> (-2, 1, 1), edge 4     cut 2: (4, -2, -2) -> (-6, 3, 3), edge 12
    #   cut 3: (3, 0, -3) -> (-4, -1, 5), edge 10    constant: 4
    weak = grow(backend, [[1, 2, 3, 4]], [[2, -1, -1], [2, -1, -1], [-1, 2, -1], [-1, -1, 2]], 2)
    assert weak.edge == 12
    assert cut_of(weak) == (0, 2, True)
    assert weak.tree.values.tolist() == [[1, -1, -1], [-1, 1, 1]]
    assert votes_of_rows(backend, weak).tolist() == [[1, -1, -1], [1, -1, -1], [-1, 1, 1], [-1, 1, 1]]
    assert weak.tree.gain.tolist() == [12 / 16]


@pytest.mark.parametrize(
    ("codes", "quantised", "edge", "cut"),
    [
        # Feature 0 gives |1 - 2| + |1 - 0| = 2 at best, as much as the constant classifier.
        pytest.param([[1, 2]], [[1, 0], [0, 1]], 2, None, id="constant before a cut"),
        pytest.param([[1, 1], [1, 2], [1, 2]], [[-1], [1]], 2, (1, 1, True), id="lowest feature"),
        # Row 1 weighs nothing: cuts 1 and 2 have the edge 2.
        pytest.param([[1, 2, 3]], [[-1], [0], [1]], 2, (0, 1, True), id="lowest cut"),
        # The missing row weighs nothing on either side.
        pytest.param([[1, 0, 2]], [[-1], [0], [1]], 2, (0, 1, True), id="missing left"),
        pytest.param([[1, 0, 2]], [[-1], [1], [1]], 3, (0, 1, False), id="missing right"),
        pytest.param([[1, 0, 2]], [[-1], [-1], [1]], 3, (0, 1, True), id="missing with the left"),
        # Missing against present: the present values 1 and 2 all go left, the missing right.
        pytest.param([[1, 0, 2]], [[-1], [1], [-1]], 3, (0, 2, False), id="missing against present"),
        pytest.param([[1, 0, 1]], [[-1], [1], [-1]], 3, (0, 1, False), id="missing against one value"),
        # A later feature must be strictly better.
        pytest.param([[1, 2, 2], [2, 1, 1]], [[-1], [1], [1]], 3, (0, 1, True), id="mirrored feature"),
        pytest.param([[1, 2, 2], [1, 1, 2]], [[-1], [-1], [1]], 3, (1, 1, True), id="better feature"),
        pytest.param([[0, 0, 0]], [[-1], [1], [1]], 1, None, id="nothing but missing"),
        pytest.param([[1, 1, 1]], [[-1], [1], [1]], 1, None, id="nothing to cut"),
    ],
)
def test_tie_rules(backend: Backend, codes: list[list[int]], quantised: list[list[int]], edge: int, cut: tuple | None) -> None:
    weak = grow(backend, codes, quantised, 2)
    assert weak.edge == edge
    assert cut_of(weak) == cut


def test_constant_classifier_votes_with_the_class_sums(backend: Backend) -> None:
    weak = grow(backend, [[1, 1]], [[3, -2, 1], [1, -1, -1]], 4)  # P = (4, -3, 0): an edge of 0 votes -1 (eq. 13)
    assert weak.edge == 7
    assert weak.tree.n_leaves == 1
    assert weak.tree.values.tolist() == [[1, -1, -1]]
    assert weak.tree.gain.tolist() == []
    assert votes_of_rows(backend, weak).tolist() == [[1, -1, -1]] * 2


def test_nothing_to_gain(backend: Backend) -> None:
    weak = grow(backend, [[1, 1, 1, 1]], [[3, -2], [-3, 2], [1, 1], [-1, -1]], 4)
    assert weak.edge == 0
    assert weak.tree.n_leaves == 1


@pytest.mark.parametrize(
    ("codes", "counts", "edge", "cut"),
    [
        # Rows A B C D with q = -2, 1, 1, 1: cut 1 leaves A alone, |1 + 4| = 5; cut 2 has L = -1, 3; cut 3 has L = 0, 1.
        pytest.param([[1, 2, 3, 4]], [2, 1, 1, 1], 5, (0, 1, True), id="two of five are enough"),
        pytest.param([[1, 2, 3, 4]], [1, 1, 1, 1], 3, (0, 2, True), id="one of four is not"),
        pytest.param([[1, 2, 3, 4]], [0, 1, 1, 1], 1, None, id="a row that counts nothing fills no side"),
        pytest.param([[1, 2, 3, 4]], [9, 0, 1, 0], 1, None, id="nor does it on the right"),
        # Cut 1 with D on the left: L = -1 again, and only then has the left side enough.
        pytest.param([[1, 2, 3, 0]], [1, 1, 1, 1], 3, (0, 1, True), id="missing fills the left"),
        # A alone is missing: against the others 5, but it is not enough; cut 1 with A on the left has L = -1, cut 2 L = 0.
        pytest.param([[0, 1, 2, 3]], [1, 1, 1, 1], 3, (0, 1, True), id="missing is too little by itself"),
        pytest.param([[0, 1, 2, 3]], [2, 1, 1, 1], 5, (0, 3, False), id="missing is enough by itself"),
        # A alone on the left of cut 1: B C D are enough on the right, B and C are not.
        pytest.param([[1, 2, 2, 0]], [2, 1, 0, 1], 5, (0, 1, False), id="missing fills the right"),
        # The first feature has A and B on the left, 3; the second one has A alone.
        pytest.param([[1, 1, 2, 2], [2, 1, 1, 1]], [2, 0, 1, 1], 5, (1, 1, True), id="another feature"),
    ],
)
def test_both_sides_of_a_cut_count_two(
    backend: Backend, codes: list[list[int]], counts: list[int], edge: int, cut: tuple | None
) -> None:
    weak = grow(backend, codes, [[-2], [1], [1], [1]], 2, Limit(counts, 2))
    assert weak.edge == edge
    assert cut_of(weak) == cut


# ---- trees by hand -----------------------------------------------------------------------------------------------------------


def test_tree_of_three_cuts_by_hand(backend: Backend) -> None:
    codes = [[1, 2, 3, 4, 5], [1, 2, 1, 1, 2]]
    quantised = [[-1, -1], [3, 1], [1, -2], [1, 1], [-2, -1]]  # rows A B C D E; the total weight is 14
    # Root, P = (2, -2), constant 4. Feature 0: cut 1 (4, 0), 2 (-2, -2), 3 (-4, 2), 4 (-6, 0); feature 1: (0, 2).
    #   The edge 6 is met first by cut 3; votes (-, +).
    # Left A B C, P = (3, -2): the votes (+, -) of above give 5. Constant 5; feature 0: cut 1 (5, 0), 2 (-1, -2);
    #   feature 1: (3, 4), edge 7, key 2; votes (+, +): A C get (-, -), B gets (+, +).
    # Right D E, P = (-1, 0): the votes (-, +) give 1. Constant 1; both features (-3, -2), edge 5, key 4, and feature 0
    #   comes first, with cut 4; votes (-, -): D gets (+, +), E gets (-, -).
    # The right one is cut before the left one. Edges: 6 + 4 + 2 = 12 = A 2 + B 4 + C 1 + D 2 + E 3.
    edges = {2: 6, 3: 10, 4: 12, 5: 12, 9: 12}
    votes = {
        2: [[1, -1]] * 3 + [[-1, 1]] * 2,
        3: [[1, -1]] * 3 + [[1, 1], [-1, -1]],
        4: [[-1, -1], [1, 1], [-1, -1], [1, 1], [-1, -1]],
    }
    for max_leaf_nodes, edge in edges.items():
        weak = grow(backend, codes, quantised, max_leaf_nodes)
        assert weak.edge == edge
        assert weak.tree.n_leaves == min(max_leaf_nodes, 4)
        assert votes_of_rows(backend, weak).tolist() == votes[min(max_leaf_nodes, 4)]
    tree = weak.tree
    left, right = int(tree.left[0]), int(tree.right[0])
    assert [(int(tree.feature[n]), int(tree.cut[n])) for n in (0, left, right)] == [(0, 3), (1, 1), (0, 4)]
    assert [float(tree.gain[n]) for n in (0, left, right)] == [6 / 14, 2 / 14, 4 / 14]
    assert tree.missing_left.all()  # no row is missing; the first side tried wins
    leaves = [int(child[n]) for n in (left, right) for child in (tree.left, tree.right)]
    assert [tree.values[~leaf].tolist() for leaf in leaves] == [[-1, -1], [1, 1], [1, 1], [-1, -1]]


def test_leaf_that_is_popped_for_its_constant_classifier(backend: Backend) -> None:
    quantised = [[3, -2], [2, 2], [-1, 2], [-1, -4]]  # the total weight is 17
    # Root, P = (3, -2), constant 5: cut 1 (-3, 2), 2 (-7, -2), 3 (-5, -6): edge 11, votes (-, -).
    # Right, row 4: the votes (-, -) have the edge 5, nothing is better: key 0.
    # Left, rows 1 2 3, P = (4, 2): the votes (+, +) give 6. Constant 6; cut 1 (-2, 6), 2 (-6, 2): edge 8 by the lower cut,
    #   key 2, votes (-, +).
    #   Left, row 1: (+, -) has the edge 5: key 0.
    #   Right, rows 2 3, P = (1, 4): (-, +) gives 3. Cut 2 (-3, 0); constant (1, 4), edge 5, key 2: it votes (+, +), and
    #   counts as an inner node.
    # Edges: 11 + 2 + 2 = 15 = 5 + 4 + 1 + 5.
    edges = {2: 11, 3: 13, 4: 15, 8: 15}
    for max_leaf_nodes, edge in edges.items():
        weak = grow(backend, [[1, 2, 3, 4]], quantised, max_leaf_nodes)
        assert weak.edge == edge
        assert weak.tree.n_leaves == min(max_leaf_nodes, 3)
    assert votes_of_rows(backend, weak).tolist() == [[1, -1], [1, 1], [1, 1], [-1, -1]]
    assert weak.tree.cut.tolist() == [3, 1]
    assert weak.tree.gain.tolist() == [11 / 17, 2 / 17]  # the constant's share belongs to no cut


# ---- against the naive twins -------------------------------------------------------------------------------------------------


@untimed
@given(small_problems())
def test_stump_against_all_cuts(problem: tuple[np.ndarray, np.ndarray]) -> None:
    codes, quantised = problem
    best = best_stump(codes.tolist(), quantised.tolist(), range(len(quantised)), bins_of(codes))
    expected = [[v * best.phi(codes.tolist(), i) for v in best.votes] for i in range(len(quantised))]
    for backend in BACKENDS:
        weak = grow(backend, codes, quantised, 2)
        assert weak.edge == best.score
        if best.score:
            assert cut_of(weak) == ((best.feature, best.cut, best.missing_left) if best.feature >= 0 else None)
            assert votes_of_rows(backend, weak).tolist() == expected


@untimed
@given(small_problems(), st.integers(1, 7))
def test_tree_against_figure_2(problem: tuple[np.ndarray, np.ndarray], n_inner: int) -> None:
    codes, quantised = problem
    expected = hamming_tree(codes.tolist(), quantised.tolist(), bins_of(codes), n_inner)
    for backend in BACKENDS:
        weak = grow(backend, codes, quantised, n_inner + 1)
        assert weak.edge == sum(expected.gains) == expected.edge(quantised.tolist())
        tree = weak.tree
        cuts = zip(tree.feature.tolist(), tree.cut.tolist(), tree.missing_left.tolist(), strict=True)
        assert sorted(cuts) == sorted(expected.cuts)
        assert tree.n_leaves == len(expected.cuts) + 1
        votes = votes_of_rows(backend, weak)
        assert votes.tolist() == [list(expected.votes[i]) for i in range(len(quantised))]
        # The finished tree sends the rows where the growing one left them.
        applied = backend.get(backend.apply(tree, backend.load(coded(codes))))
        assert tree.values[applied].tolist() == votes.tolist()


@untimed
@given(small_problems(), st.integers(1, 5), st.integers(1, 12), st.integers(0, 2**32))
def test_tree_with_a_smallest_leaf_against_figure_2(
    problem: tuple[np.ndarray, np.ndarray], n_inner: int, minimum: int, seed: int
) -> None:
    codes, quantised = problem
    counts = np.random.default_rng(seed).integers(0, 6, len(quantised))
    limit = Limit(counts.tolist(), minimum)
    expected = hamming_tree(codes.tolist(), quantised.tolist(), bins_of(codes), n_inner, limit)
    for backend in BACKENDS:
        weak = grow(backend, codes, quantised, n_inner + 1, limit)
        assert weak.edge == sum(expected.gains)
        tree = weak.tree
        cuts = zip(tree.feature.tolist(), tree.cut.tolist(), tree.missing_left.tolist(), strict=True)
        assert sorted(cuts) == sorted(expected.cuts)
        assert votes_of_rows(backend, weak).tolist() == [list(expected.votes[i]) for i in range(len(quantised))]
        if tree.n_leaves > 1:
            leaf = weak.leaf_of_index[backend.get(weak.leaf_index)]
            assert np.bincount(leaf, counts, tree.n_leaves).min() >= minimum


@untimed
@given(small_problems(), st.integers(1, 5), st.integers(0, 2**32))
def test_tree_in_fractions(problem: tuple[np.ndarray, np.ndarray], n_inner: int, seed: int) -> None:
    # Weights of 20 bits are quantised without rounding, so the edge of figure 2 in fractions is met exactly.
    codes, quantised = problem
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 2**20, quantised.shape) / 2.0**20
    state[0, 0] = 1.0
    signs = np.where(quantised < 0, -1, 1).astype(np.int8)
    frequency_weight = rng.integers(1, 4, len(quantised)).astype(np.int32)
    exact = [
        [int(r) * int(s) * Fraction(w) for w, s in zip(*row, strict=True)]
        for r, row in zip(frequency_weight, zip(state.tolist(), signs, strict=True), strict=True)
    ]
    expected = hamming_tree(codes.tolist(), exact, bins_of(codes), n_inner)
    for backend in BACKENDS:
        on_device = [backend.put(a) for a in (state, signs, frequency_weight)]
        stats = backend.statistics(*on_device, int(frequency_weight.sum()), float(state.max()))
        weak = HammingTree(n_inner + 1)(backend, backend.load(coded(codes)), stats)
        assert Fraction(weak.edge, 2**stats.shift) == expected.edge(exact)
        assert votes_of_rows(backend, weak).tolist() == [list(expected.votes[i]) for i in range(len(quantised))]


@pytest.mark.parametrize("seed", range(4))
def test_larger_tree_against_figure_2(backend: Backend, seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, quantised = rng.integers(seed % 2, 9, (3, 60)).astype(np.uint8), rng.integers(-9, 10, (60, 5))
    expected = hamming_tree(codes.tolist(), quantised.tolist(), bins_of(codes), 12)
    weak = grow(backend, codes, quantised, 13)
    assert weak.edge == expected.edge(quantised.tolist())
    assert votes_of_rows(backend, weak).tolist() == [list(expected.votes[i]) for i in range(60)]
    assert float(weak.tree.gain.sum()) <= weak.edge / np.abs(quantised).sum() + 1e-15

"""Every backend against the NumPy backend: the same integers and the same float64 bits, by primitives and in whole fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import (
    BASELINE,
    CLOSED,
    CUT,
    FEATURE,
    GAIN,
    KEY,
    LEFT,
    MISSING_LEFT,
    SLOT,
    START,
    STOP,
    Frontier,
)
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Counts, Stats
from gpuboost.binning import BinMapper, BinnedMatrix
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.rebel import Rebel
from gpuboost.boosters.samme import SAMME
from gpuboost.ensemble import Ensemble
from gpuboost.fixedpoint import MAX_REPEAT, NARROW_ROWS, STATE_FLOOR
from gpuboost.learners.base import Learner
from gpuboost.learners.growth import grow
from gpuboost.learners.hamming_tree import HammingTree, voting_tree
from gpuboost.learners.product import StumpProduct
from gpuboost.training import Training
from gpuboost.tree import Tree
from tests.candidates import EMULATED, Once, Opener, candidates, thinned
from tests.problems import Data, blobs, coded, cpu_backend, digest, fit, scores, sign_matrix, stats_of

REFERENCE = NumpyBackend()

pytestmark = pytest.mark.usefixtures("share_all_loops")


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit (apart from the integer type)."""
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype.kind != b.dtype.kind or a.shape != b.shape:
        return False
    return a.tobytes() == b.tobytes() if a.dtype.kind == "f" else bool((a == b).all())


# ---- row state and statistics ------------------------------------------------------------------------------------------------

SHAPES = [(1, 1), (1, 3), (2, 2), (7, 3), (100, 4), (513, 5), (64, 16), (33, 17), (300, 30)]


@dataclass(frozen=True)
class Rows:
    """A row state with zeros, and values down to the floor."""

    state: NDArray[np.float64]
    signs: NDArray[np.int8]
    frequency_weight: NDArray[np.int32]
    leaf_index: NDArray[np.int32]
    n_leaves: int
    counts: NDArray[np.int32]

    @classmethod
    def random(cls, n_rows: int, n_channels: int, seed: int = 0) -> Rows:
        rng = np.random.default_rng([n_rows, n_channels, seed])
        state = rng.random((n_rows, n_channels)) * 10.0 ** -rng.choice([0, 3, 12, 250], (n_rows, n_channels))
        state[rng.random(state.shape) < 0.1] = 0.0
        state[rng.random(state.shape) < 0.05] = STATE_FLOOR
        state[rng.integers(n_rows), rng.integers(n_channels)] = 1.5
        signs = rng.choice(np.array([-1, 1], np.int8), state.shape)
        frequency_weight = rng.integers(1, min(MAX_REPEAT, NARROW_ROWS // n_rows) + 1, n_rows).astype(np.int32)
        n_leaves = int(rng.integers(1, 12))
        leaf_index = rng.integers(0, n_leaves, n_rows).astype(np.int32)
        counts = rng.integers(0, (2**30 - 1) // n_rows + 1, n_rows) * rng.integers(0, 2, n_rows)
        return cls(state, signs, frequency_weight, leaf_index, n_leaves, counts.astype(np.int32))

    def limit(self, backend: Backend, fraction: float) -> Counts | None:
        """The counts with a share of their sum as the minimum."""
        minimum = max(1, int(fraction * self.counts.sum()))
        return Counts(backend.put(self.counts), minimum) if fraction else None

    def statistics(self, backend: Backend, fraction: float = 0.0) -> Stats:
        on_device = [backend.put(a) for a in (self.state, self.signs, self.frequency_weight)]
        n_rows, maximum = int(self.frequency_weight.sum()), float(self.state.max())
        return backend.statistics(*on_device, n_rows, maximum, self.limit(backend, fraction))


def assert_same_stats(backend: Backend, stats: Stats, expected: Stats) -> None:
    quantised = backend.get(stats.quantised)
    assert quantised.dtype == np.int32
    assert same(quantised[..., : stats.n_channels], REFERENCE.get(expected.quantised))
    assert not quantised[..., stats.n_channels :].any()  # padding
    assert stats.shift == expected.shift
    assert same(stats.sum, expected.sum)
    assert same(stats.sum_abs, expected.sum_abs)
    assert stats.min_count == expected.min_count


@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize("shape", SHAPES)
def test_statistics(candidate: Backend, shape: tuple[int, int], fraction: float) -> None:
    rows = Rows.random(*shape)
    state, signs, frequency_weight = (candidate.put(a) for a in (rows.state, rows.signs, rows.frequency_weight))
    assert candidate.maximum(state) == REFERENCE.maximum(rows.state) == 1.5
    for shift in (0, 17, 30):
        sums = candidate.channel_sums(state, frequency_weight, shift)
        assert same(sums, REFERENCE.channel_sums(rows.state, rows.frequency_weight, shift))
    expected = rows.statistics(REFERENCE, fraction)
    assert_same_stats(candidate, rows.statistics(candidate, fraction), expected)
    quantised = candidate.quantise(state, signs, frequency_weight, expected.shift, rows.limit(candidate, fraction))
    assert_same_stats(candidate, quantised, expected)
    assert same(candidate.get(state), rows.state)  # none of them writes


@pytest.mark.parametrize("half", [0.5, 1.5, 2.5, 0.49999999999999994, 1e9 + 0.5])
def test_halves_are_rounded_to_even(candidate: Backend, half: float) -> None:
    # rint: 0.5 -> 0, 1.5 -> 2, 2.5 -> 2, and just below a half -> 0.
    state, frequency_weight = candidate.put(np.array([[half]])), candidate.put(np.array([1], np.int32))
    assert candidate.channel_sums(state, frequency_weight, 0).tolist() == [round(half)]
    stats = candidate.quantise(state, candidate.put(np.array([[-1]], np.int8)), frequency_weight, 0)
    assert candidate.get(stats.quantised)[0, 0, 0] == -round(half)


def test_counts_are_the_last_channel_by_hand(candidate: Backend) -> None:
    limit = Counts(candidate.put(np.array([7, 0, 2**30 - 8], np.int32)), 5)
    state, signs = candidate.put(np.array([[3.0], [2.0], [1.0]])), candidate.put(np.array([[1], [-1], [-1]], np.int8))
    stats = candidate.quantise(state, signs, candidate.put(np.array([1, 2, 3], np.int32)), 0, limit)
    assert candidate.get(stats.quantised)[0, :, :2].tolist() == [[3, 7], [-4, 0], [-3, 2**30 - 8]]  # whatever the repeats are
    assert (stats.n_channels, stats.n_classes, stats.min_count) == (2, 1, 5)
    assert (stats.sum.tolist(), stats.sum_abs.tolist(), stats.total) == ([-4, 2**30 - 1], [10], 10)
    leaf_index = candidate.put(np.array([1, 0, 1], np.int32))
    flipped = candidate.flip(stats, leaf_index, np.array([[1], [-1]], np.int8))
    assert candidate.get(flipped.quantised)[0, :, :2].tolist() == [[-3, 7], [-4, 0], [3, 2**30 - 8]]  # counts have no sign
    assert (flipped.sum.tolist(), flipped.sum_abs.tolist(), flipped.min_count) == ([-4, 2**30 - 1], [10], 5)
    sums, sum_abs = candidate.leaf_sums(stats, leaf_index, 3)
    assert (sums.tolist(), sum_abs.tolist()) == ([[-4], [0], [0]], [[4], [6], [0]])


@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize("shape", SHAPES)
def test_flip_and_group_sums(candidate: Backend, shape: tuple[int, int], fraction: float) -> None:
    rows = Rows.random(*shape)
    table = np.random.default_rng(1).choice(np.array([-1, 1], np.int8), (rows.n_leaves, shape[1]))
    stats, expected = (rows.statistics(backend, fraction) for backend in (candidate, REFERENCE))
    leaf_index = candidate.put(rows.leaf_index)
    flipped, expected_flipped = candidate.flip(stats, leaf_index, table), REFERENCE.flip(expected, rows.leaf_index, table)
    assert_same_stats(candidate, flipped, expected_flipped)
    assert_same_stats(candidate, stats, expected)  # the original is left alone
    for mine, theirs in ((stats, expected), (flipped, expected_flipped)):
        n_leaves = rows.n_leaves + 2  # two without rows
        sums = zip(
            candidate.leaf_sums(mine, leaf_index, n_leaves), REFERENCE.leaf_sums(theirs, rows.leaf_index, n_leaves), strict=True
        )
        assert all(same(one, other) for one, other in sums)


@pytest.mark.parametrize("shape", SHAPES)
def test_reweight(candidate: Backend, shape: tuple[int, int]) -> None:
    rows = Rows.random(*shape)
    table = np.exp(np.random.default_rng(2).normal(scale=20.0, size=(rows.n_leaves, 2, shape[1])))
    state, expected = candidate.put(rows.state), REFERENCE.put(rows.state)
    signs, leaf_index = candidate.put(rows.signs), candidate.put(rows.leaf_index)
    for _ in range(3):
        maximum = candidate.reweight(state, signs, leaf_index, table)
        assert float(maximum) == REFERENCE.reweight(expected, rows.signs, rows.leaf_index, table) == expected.max()
        assert same(candidate.get(state), expected)
    assert ((expected == 0) == (rows.state == 0)).all()
    assert expected[expected > 0].min() >= STATE_FLOOR


def test_reweight_by_hand(candidate: Backend) -> None:
    state = candidate.put(np.array([[1.0, 2.0], [0.0, STATE_FLOOR], [8.0, 0.5]]))
    signs = candidate.put(np.array([[1, -1], [1, -1], [-1, 1]], np.int8))
    leaf_index = candidate.put(np.array([1, 0, 1], np.int32))
    table = np.array([[[2.0, 0.5], [4.0, 8.0]], [[0.25, 3.0], [5.0, 16.0]]])  # (group, sign, class)
    # Row 0, group 1: signs (+, -): 1 * 5, 2 * 3. Row 1, group 0: 0 stays 0, the floor stays (times 1/2).
    # Row 2, group 1: signs (-, +): 8 * 1/4, 0.5 * 16.
    assert float(candidate.reweight(state, signs, leaf_index, table)) == 8.0
    assert candidate.get(state).tolist() == [[5.0, 6.0], [0.0, STATE_FLOOR], [2.0, 8.0]]


@pytest.mark.parametrize("shape", SHAPES)
def test_project(candidate: Backend, shape: tuple[int, int]) -> None:
    rows = Rows.random(*shape)
    rng = np.random.default_rng(3)
    for scale in (1.0, 1e-3, 1e-260):  # the last leaves only some sums above the floor
        coefficients = rng.normal(size=shape[1]) * scale
        coefficients[rng.random(shape[1]) < 0.2] = 0.0
        state, signs, maximum = candidate.project(candidate.put(rows.state), candidate.put(rows.signs), coefficients)
        expected, expected_signs, largest = REFERENCE.project(rows.state, rows.signs, coefficients)
        assert same(candidate.get(state), expected)
        assert same(candidate.get(signs), expected_signs)
        assert candidate.get(signs).dtype == np.int8
        assert float(maximum) == largest == expected.max()


def test_project_by_hand(candidate: Backend) -> None:
    # Sums that depend on the order and on the rounding: (1 + 2**-53) - 1 is 0 if each step is rounded, and 2**-53 if fused.
    tiny = 2.0**-53
    state = np.array([[1.0, tiny, 1.0], [0.5, 2.0, 0.0], [STATE_FLOOR, 0.0, 0.0], [0.1, 0.1, 0.0]])
    signs = np.array([[1, 1, -1], [-1, 1, 1], [1, 1, 1], [1, -1, 1]], np.int8)
    for coefficients, expected in (
        ([1.0, 1.0, 1.0], [0.0, 1.5, STATE_FLOOR, 0.0]),
        ([3.0, -1.0, 2.0], [1.0, -3.5, 3 * STATE_FLOOR, 0.1 * 3.0 + 0.1]),
        ([0.5, 0.1, 0.0], [0.5, -0.25 + 0.2, 0.0, 0.05 - 0.1 * 0.1]),  # half the floor is nothing
    ):
        got, got_signs, maximum = candidate.project(candidate.put(state), candidate.put(signs), np.array(coefficients))
        assert candidate.get(got)[:, 0].tolist() == [abs(r) for r in expected]
        assert candidate.get(got_signs)[:, 0].tolist() == [-1 if r < 0 else 1 for r in expected]
        assert float(maximum) == max(abs(r) for r in expected)


# ---- growing trees -----------------------------------------------------------------------------------------------------------


def random_codes(n_rows: int, n_features: int, seed: int) -> BinnedMatrix:
    """Codes of every kind: many and few bins, one heavy bin, missing values, constant and empty features."""
    rng = np.random.default_rng([n_rows, n_features, seed])
    kinds = [
        lambda: rng.integers(1, 256, n_rows),
        lambda: rng.integers(0, 256, n_rows),
        lambda: rng.integers(1, 5, n_rows),
        lambda: rng.integers(0, 3, n_rows),
        lambda: np.where(rng.random(n_rows) < 0.9, 2, rng.integers(1, 9, n_rows)),
        lambda: np.where(rng.random(n_rows) < 0.9, 0, rng.integers(0, 9, n_rows)),
        lambda: rng.integers(0, 2, n_rows),  # a constant, or missing
        lambda: np.full(n_rows, 1),
        lambda: np.zeros(n_rows),
    ]
    codes = np.array([kinds[int(rng.integers(len(kinds)))]() for _ in range(n_features)], np.uint8)
    matrix = coded(codes)
    spare = rng.integers(0, 3, n_features).astype(np.int32)  # bins that no row is in
    return replace(matrix, n_bins=np.minimum(matrix.n_bins + spare, 256).astype(np.int32))


def watched_growth(backend: Backend, data: Any, stats: Stats, max_leaves: int) -> tuple[Frontier, list[list[dict[str, Any]]]]:
    """Grow a batch as `gpuboost.learners.growth.grow` does. After every step, note what the contract fixes."""
    steps: list[list[dict[str, Any]]] = []
    frontier = backend.start_growth(data, stats, max_leaves)

    def look() -> None:
        nodes, rows = np.array(backend.get(frontier.nodes)), backend.get(frontier.rows)
        current = backend.get(frontier.current)
        totals, edges = np.array(backend.get(frontier.totals)), np.array(backend.get(frontier.edges))
        steps.append(
            [
                {
                    "nodes": nodes[t][:, [START, STOP, FEATURE, CUT, MISSING_LEFT, LEFT, BASELINE, GAIN]],
                    "key": nodes[t, :, KEY],
                    "totals": totals[t],
                    "edges": edges[t],
                    "current": int(current[t]),
                    "rows": [sorted(rows[t, scope:stop].tolist()) for scope, stop in nodes[t][:, [START, STOP]]],
                }
                for t in range(len(nodes))
            ]
        )

    look()
    backend.find_splits(frontier, (0,))
    look()
    for step in range(max_leaves - 1):
        if not backend.pop_best_leaf(frontier) or (backend.get(frontier.current) < 0).all():
            break  # a device may say that there is more where there is not
        backend.partition(frontier)
        look()
        if step < max_leaves - 2:
            backend.find_splits(frontier, (2 * step + 1, 2 * step + 2))
            look()
    return frontier, steps


def assert_same_growth(mine: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> None:
    for one, other in zip(mine, theirs, strict=True):
        assert one["current"] == other["current"]
        assert one["rows"] == other["rows"]
        for name in ("nodes", "totals", "edges"):
            assert same(one[name], other[name]), name
        # A backend may close a node early that will never be cut; if it is wrong, a later step shows it.
        queued = one["key"] != CLOSED
        assert same(one["key"][queued], other["key"][queued])


def assert_grows_alike(
    candidate: Backend, once: Once, data: Any, stats: Stats, matrix: BinnedMatrix, expected_stats: Stats, max_leaves: int
) -> Frontier:
    """Compare every step of a growth with the reference's, whose frontier is returned."""
    frontier, mine = watched_growth(candidate, data, stats, max_leaves)
    expected, theirs = once(watched_growth, REFERENCE, matrix, expected_stats, max_leaves)
    for one, other in zip(mine, theirs, strict=True):
        assert_same_growth(one, other)
    assert same(candidate.get(candidate.node_of_rows(frontier)), REFERENCE.node_of_rows(expected))
    return expected


def assert_same_trees(
    candidate: Backend, once: Once, matrix: BinnedMatrix, stats: Callable[[Backend], Stats], max_leaves: int
) -> Frontier:
    """As `assert_grows_alike`, from a matrix and what gives a backend its statistics."""
    data = candidate.load(matrix)
    return assert_grows_alike(candidate, once, data, stats(candidate), matrix, stats(REFERENCE), max_leaves)


@pytest.mark.parametrize("max_leaves", [2, 3, 8, 20])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_channels"),
    [(1, 1, 1), (2, 1, 2), (30, 3, 3), (400, 5, 2), (150, 17, 5), (257, 3, 16), (40, 33, 17), (60, 65, 4), (90, 4, 30)],
)
def test_growth(candidate: Backend, once: Once, n_rows: int, n_features: int, n_channels: int, max_leaves: int) -> None:
    matrix, rows = random_codes(n_rows, n_features, 0), Rows.random(n_rows, n_channels, 1)
    assert_same_trees(candidate, once, matrix, rows.statistics, max_leaves)


@pytest.mark.parametrize(("n_rows", "n_features"), [(1, 1), (300, 5), (2000, 40), (90, 65)])
def test_bits_of_cells(candidate: Backend, n_rows: int, n_features: int) -> None:
    matrix, rng = random_codes(n_rows, n_features, 14), np.random.default_rng(15)
    data = candidate.load(matrix)
    cell, expected = candidate.put(np.full(n_rows, 5, np.int32)), np.full(n_rows, 5, np.int32)
    for _ in range(12):
        feature, cut, missing_left, bit = rng.integers([-1, 1, 0, 0], [n_features, 5, 2, 8]).tolist()
        candidate.set_bit(cell, bit, data, feature, cut, bool(missing_left))
        REFERENCE.set_bit(expected, bit, matrix, feature, cut, bool(missing_left))
        assert same(candidate.get(cell), expected)


def test_bits_of_cells_by_hand(candidate: Backend) -> None:
    data = candidate.load(coded([[0, 1, 2, 3], [1, 1, 1, 1]]))
    cell = candidate.put(np.array([0, 3, 0, 3], np.int32))
    candidate.set_bit(cell, 1, data, 0, 2, False)
    assert candidate.get(cell).tolist() == [0, 3, 2, 1]
    candidate.set_bit(cell, 0, data, 0, 1, True)
    assert candidate.get(cell).tolist() == [1, 3, 2, 0]
    candidate.set_bit(cell, 1, data, -1, 0, True)
    assert candidate.get(cell).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize(("n_rows", "n_channels"), SHAPES)
def test_row_mass(candidate: Backend, n_rows: int, n_channels: int, fraction: float) -> None:
    rows = Rows.random(n_rows, n_channels, 16)
    sum_abs, expected = candidate.row_weights(rows.statistics(candidate, fraction)), rows.statistics(REFERENCE, fraction)
    assert sum_abs.dtype == np.int64
    assert sum_abs.tolist() == [[sum(abs(v) for v in row[:n_channels]) for row in expected.quantised[0].tolist()]]


def test_usable_features(candidate: Backend) -> None:
    matrix = coded([[1, 1, 1], [1, 2, 1], [0, 0, 0], [0, 1, 1]], n_bins=[2, 3, 2, 2])
    assert np.asarray(candidate.usable(candidate.load(matrix))).tolist() == matrix.usable.tolist() == [False, True, False, True]


# The counts are one channel more, which may start another vector, or be one too many for the unrolled loops.
@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 5, 7, 8, 11, 12, 15, 16, 17, 20])
@pytest.mark.parametrize("fraction", [1e-9, 0.02, 0.1, 0.3])
def test_growth_with_a_smallest_leaf(candidate: Backend, once: Once, n_classes: int, fraction: float) -> None:
    matrix, rows = random_codes(80, 6, n_classes), Rows.random(80, n_classes, 2)
    grown = assert_same_trees(candidate, once, matrix, lambda backend: rows.statistics(backend, fraction), 9)
    nodes, counts = grown.nodes[0], grown.totals[0, :, n_classes]
    children = nodes[nodes[:, LEFT] > 0, LEFT]
    assert len(children) > 0 or fraction > 0.2
    assert (counts[[children, children + 1]] >= int(fraction * rows.counts.sum())).all()


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 7, 8, 11, 12, 15, 16, 17])
@pytest.mark.parametrize("missing", [False, True])
def test_counts_near_the_limit(candidate: Backend, n_classes: int, missing: bool) -> None:
    # As below, and counts that add up to 2**30 - 1, one of them a single unit: that is enough for a minimum of 1, not of 2.
    # The scores of the classes are beyond 32 bits, so the counts must neither add to them nor overflow with them.
    quantised = np.full((2, n_classes), 2**29 - 1)
    quantised[0] *= -1
    for counts in ([1, 2**30 - 2], [2**30 - 2, 1]):
        for minimum, gain in ((1, 2 * n_classes * (2**29 - 1)), (2, 0)):
            stats = stats_of(candidate, quantised, counts, minimum)
            frontier = grow(candidate, candidate.load(coded([[0, 1] if missing else [1, 2]])), stats, 2)
            assert int(candidate.get(frontier.nodes)[0, 0, GAIN]) == gain


@pytest.mark.parametrize("n_channels", [1, 2, 3, 4, 5, 8, 9, 12, 13, 16, 17, 20, 30])
def test_sums_near_the_limit(candidate: Backend, n_channels: int) -> None:
    # Two rows that a cut tells apart, with 2**29 - 1 units in every channel: the channel sums of abs(q) are at the limit of
    # the shift rule, and the score 2 C (2**29 - 1) is beyond int32 from three channels on, beyond uint32 from five.
    quantised = np.full((2, n_channels), 2**29 - 1)
    quantised[0] *= -1
    stats = stats_of(candidate, quantised)
    frontier = grow(candidate, candidate.load(coded([[1, 2]])), stats, 2)
    nodes = candidate.get(frontier.nodes)[0]
    assert nodes[0, [FEATURE, CUT, MISSING_LEFT, LEFT]].tolist() == [0, 1, 1, 1]
    assert int(nodes[0, GAIN]) == 2 * n_channels * (2**29 - 1) == stats.total
    assert candidate.get(frontier.edges)[0, 0].tolist() == [2 * (2**29 - 1)] * n_channels


@pytest.mark.parametrize("max_leaves", [2, 5, 12])
def test_batch_grows_each_tree_as_if_alone(candidate: Backend, max_leaves: int) -> None:
    assert_grows_batch(candidate, max_leaves)


@pytest.mark.parametrize("max_leaves", [2, 5, 12])
def test_reference_grows_each_tree_of_a_batch_as_if_alone(max_leaves: int) -> None:
    assert_grows_batch(REFERENCE, max_leaves)


def assert_grows_batch(backend: Backend, max_leaves: int) -> None:
    # The three trees end at different steps: the second has nothing to gain at all, the third one cut.
    matrix = random_codes(120, 6, 3)
    codes = matrix.codes.copy()
    codes[0] = 1 + np.arange(120) // 60
    matrix = coded(codes)
    data = backend.load(matrix)
    rng = np.random.default_rng(3)
    single = np.where(codes[0][:, None] == 1, 5, -5) * np.ones((120, 3), np.int64)
    alone = [
        stats_of(backend, quantised) for quantised in (rng.integers(-50, 51, (120, 3)), np.zeros((120, 3), np.int64), single)
    ]
    quantised = np.concatenate([backend.get(stats.quantised) for stats in alone])
    batch = Stats(backend.put(quantised), 0, sum(s.sum for s in alone), sum(s.sum_abs for s in alone))

    def grown(stats: Stats) -> tuple[list[dict[str, Any]], NDArray[Any]]:
        frontier, steps = watched_growth(backend, data, stats, max_leaves)
        return steps[-1], np.array(backend.get(backend.node_of_rows(frontier)))

    together, nodes_of_rows = grown(batch)
    assert len(together) == 3
    for t, stats in enumerate(alone):
        (one,), node_of_rows = grown(stats)
        one["current"] = together[t]["current"]  # a tree that is done has no current node while others grow
        assert_same_growth([together[t]], [one])
        assert same(nodes_of_rows[t], node_of_rows[0])
    assert [int((tree["nodes"][:, -1] > 0).sum()) for tree in together] == [max_leaves - 1, 0, 1]  # popped nodes


@pytest.mark.slow
@pytest.mark.parametrize(("n_trees", "n_channels"), [(10, 3), (8, 4), (3, 2), (2, 5)])
def test_roots_of_a_batch(candidate: Backend, once: Once, n_trees: int, n_channels: int) -> None:
    matrix, rng = random_codes(300, 70, 3), np.random.default_rng(4)  # more than one block of rows, of features and of trees
    quantised = rng.integers(-50, 51, (n_trees, 300, n_channels))

    def nodes(backend: Backend) -> NDArray[np.int64]:
        alone = [stats_of(backend, of_tree) for of_tree in quantised]
        together = np.concatenate([backend.get(stats.quantised) for stats in alone])
        batch = Stats(backend.put(together), 0, sum(s.sum for s in alone), sum(s.sum_abs for s in alone))
        frontier = grow(backend, backend.load(matrix), batch, 3)
        return np.array(backend.get(frontier.nodes))[:, :, :SLOT]

    expected = once(nodes, REFERENCE)
    assert same(nodes(candidate), expected)
    assert (expected[:, 0, LEFT] > 0).all()


def class_weights(matrix: BinnedMatrix, n_classes: int) -> Rows:
    """One weight a row, in the column of its class: small weights, zeros, and so exact ties."""
    n_rows = matrix.codes.shape[1]
    rows, rng = Rows.random(n_rows, n_classes, 1), np.random.default_rng([n_rows, n_classes, 7])
    labels = (matrix.codes[0].astype(int) // 3 + rng.integers(0, 2, n_rows)) % n_classes
    weight = rng.choice([0.0, 0.25, 1.0, 1.5, STATE_FLOOR], n_rows)
    weight[0] = 1.5
    state = np.where(labels[:, None] == np.arange(n_classes), weight[:, None], 0.0)
    return replace(rows, state=state, signs=np.where(state > 0, 1, -1).astype(np.int8))


@pytest.mark.parametrize("max_leaves", [2, 9])
@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_channels"),
    [(1, 1, 1), (2, 1, 2), (30, 3, 3), (300, 2, 2), (90, 17, 5), (40, 3, 16), (40, 5, 17), (30, 4, 33)],
)
def test_growth_by_gini(
    candidate: Backend, once: Once, n_rows: int, n_features: int, n_channels: int, fraction: float, max_leaves: int
) -> None:
    matrix = random_codes(n_rows, n_features, 0)
    rows = class_weights(matrix, n_channels)

    def stats(backend: Backend) -> Stats:
        return replace(rows.statistics(backend, fraction), criterion="gini")

    assert_same_trees(candidate, once, matrix, stats, max_leaves)


@pytest.mark.parametrize("max_leaves", [2, 9])
@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize(("n_rows", "n_features", "n_channels"), [(1, 1, 1), (300, 2, 2), (90, 17, 5), (30, 4, 33)])
def test_growth_by_entropy(
    candidate: Backend, once: Once, n_rows: int, n_features: int, n_channels: int, fraction: float, max_leaves: int
) -> None:
    matrix = random_codes(n_rows, n_features, 0)
    rows = class_weights(matrix, n_channels)

    def stats(backend: Backend) -> Stats:
        return replace(rows.statistics(backend, fraction), criterion="entropy")

    expected = assert_same_trees(candidate, once, matrix, stats, max_leaves)
    assert n_rows < 3 or (expected.nodes[0, :, LEFT] > 0).any()


def by_rebel(stats: Stats) -> Stats:
    return replace(stats, criterion="rebel")


@pytest.mark.parametrize("fraction", [0.0, 0.1])
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_channels"),
    [(1, 1, 1), (2, 1, 2), (30, 3, 3), (300, 5, 2), (90, 17, 5), (257, 3, 16), (40, 5, 17), (30, 4, 33), (3000, 4, 7)],
)
def test_stumps_by_rebel(
    candidate: Backend, once: Once, n_rows: int, n_features: int, n_channels: int, fraction: float
) -> None:
    for seed in range(4):
        matrix, rows = random_codes(n_rows, n_features, seed), Rows.random(n_rows, n_channels, seed)
        if seed == 0:  # few weights and few values: exact ties
            state = np.random.default_rng(0).choice([0.0, 0.5, 1.0], rows.state.shape)
            state[0] = 1.5
            rows = replace(rows, state=state)
        data, stats = candidate.load(matrix), by_rebel(rows.statistics(candidate, fraction))
        expected = assert_grows_alike(candidate, once, data, stats, matrix, by_rebel(rows.statistics(REFERENCE, fraction)), 2)
        again, _ = candidate.read_nodes(grow(candidate, data, stats, 2))
        assert same(again[0, 0, :BASELINE], expected.nodes[0, 0, :BASELINE])
        other = by_rebel(replace(rows, signs=-rows.signs[::-1]).statistics(candidate, fraction))  # what was recorded, anew
        replayed, _ = candidate.read_nodes(grow(candidate, data, other, 2))
        flipped = by_rebel(replace(rows, signs=-rows.signs[::-1]).statistics(REFERENCE, fraction))
        assert same(replayed[0, 0, :SLOT], once(grow, REFERENCE, matrix, flipped, 2).nodes[0, 0, :SLOT])


@pytest.mark.parametrize("n_channels", [1, 2, 3, 4, 5, 16, 30])
def test_rebel_near_the_limit(candidate: Backend, n_channels: int) -> None:
    # As `test_sums_near_the_limit`: T = 2**30 - 2 and |D| = T for the cut, 0 without one. All of the loss is won.
    quantised = np.full((2, n_channels), 2**29 - 1)
    quantised[0] *= -1
    frontier = grow(candidate, candidate.load(coded([[1, 2]])), by_rebel(stats_of(candidate, quantised)), 2)
    nodes = candidate.get(frontier.nodes)[0]
    assert nodes[0, [FEATURE, CUT, MISSING_LEFT, LEFT]].tolist() == [0, 1, 1, 1]
    assert nodes[:1, GAIN].view(np.float64).tolist() == [float(n_channels * (2**30 - 2))]
    assert candidate.get(frontier.edges)[0, 0].tolist() == [2**30 - 2] * n_channels


def test_statistics_are_not_shared(candidate: Backend) -> None:
    # Sets of equal size, or of equal padded size, on one backend must not write into each other's statistics.
    kept = []
    for n_channels in (4, 3, 4, 2, 3):
        rows = Rows.random(50, n_channels, len(kept))
        kept.append((rows.statistics(candidate), rows.statistics(REFERENCE)))
    for stats, expected in kept:
        assert_same_stats(candidate, stats, expected)


# ---- using trees -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(1, 1, 1), (300, 5, 3), (77, 70, 6), (1000, 20, 10)])
def test_apply_and_predict(candidate: Backend, n_rows: int, n_features: int, n_classes: int) -> None:
    matrix, other = random_codes(n_rows, n_features, 5), random_codes(n_rows, n_features, 6)
    trees = []
    rng = np.random.default_rng(5)
    for max_leaves in (2, 3, 6, 11, 2):
        stats = Rows.random(n_rows, n_classes, max_leaves).statistics(REFERENCE)
        frontier = grow(REFERENCE, matrix, stats, max_leaves)
        tree = voting_tree(frontier.nodes[0], frontier.edges[0], REFERENCE.node_of_rows(frontier)[0], stats.total).tree
        trees.append(replace(tree, values=rng.normal(size=tree.values.shape)))
    trees[1].values[:, 0] = 0.0  # of a class that the tree does not move
    ensemble = Ensemble.from_trees(trees, n_classes)
    for codes in (matrix, other):
        data = candidate.load(codes)
        summed = candidate.put(np.zeros((n_rows, n_classes)))
        expected = np.zeros((n_rows, n_classes))
        for tree in trees:
            leaf = candidate.apply(tree, data)
            assert same(candidate.get(leaf), REFERENCE.apply(tree, codes))
            candidate.add_scores(summed, leaf, tree.values)
            REFERENCE.add_scores(expected, REFERENCE.apply(tree, codes), tree.values)
            assert same(candidate.get(summed), expected)
        at_once = candidate.put(np.zeros((n_rows, n_classes)))
        candidate.add_trees(at_once, [candidate.apply(tree, data) for tree in trees], [tree.values for tree in trees])
        assert same(candidate.get(at_once), expected)
        predicted = candidate.put(np.zeros((n_rows, n_classes)))
        candidate.predict(ensemble, data, predicted, 0, 2)
        candidate.predict(ensemble, data, predicted, 2, 5)
        assert same(candidate.get(predicted), expected)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 30])
@pytest.mark.parametrize("n_rows", [1, 250])
def test_error(candidate: Backend, n_rows: int, n_classes: int) -> None:
    rng = np.random.default_rng([n_rows, n_classes])
    f = rng.integers(-2, 3, (n_rows, n_classes)).astype(np.float64)  # ties, zeros and -0.0
    f[f == 2] = -0.0
    units = rng.integers(1, 2**40, n_rows)
    labels = rng.integers(0, n_classes, n_rows).astype(np.int32)
    signs = rng.choice(np.array([-1, 1], np.int8), (n_rows, n_classes))
    for target in (labels, signs):
        got = int(candidate.error(candidate.put(f), candidate.put(target), candidate.put(units)))
        assert got == REFERENCE.error(f, target, units)


def test_error_by_hand(candidate: Backend) -> None:
    f = candidate.put(np.array([[0.0, 0.0], [1.0, 2.0], [-0.0, 0.0], [3.0, -1.0]]))
    units = candidate.put(np.array([1, 10, 100, 1000]))
    # The first largest scores are at 0, 1, 0, 0.
    assert int(candidate.error(f, candidate.put(np.array([0, 1, 1, 0], np.int32)), units)) == 100
    # Predicted signs: (-, -), (+, +), (-, -), (+, -). Wrong: 0 of the first, 1 of the second, 1 of the third, 2 of the last.
    signs = np.array([[-1, -1], [-1, 1], [1, -1], [-1, 1]], np.int8)
    assert int(candidate.error(f, candidate.put(signs), units)) == 10 + 100 + 2 * 1000


@pytest.mark.parametrize("n_classes", [1, 2, 3, 30, 33, 79])  # 79 * 79 counts do not fit into a block's shared memory
@pytest.mark.parametrize("n_rows", [1, 250])
def test_confusion(candidate: Backend, n_rows: int, n_classes: int) -> None:
    rng = np.random.default_rng([n_rows, n_classes])
    f = rng.integers(-2, 3, (n_rows, n_classes)).astype(np.float64)  # ties, zeros and -0.0
    f[f == 2] = rng.choice([-0.0, 1.0])
    units = rng.integers(1, 2**50, n_rows)
    for dtype in (np.int32, np.int64):
        labels = rng.integers(0, n_classes, n_rows).astype(dtype)
        got = candidate.confusion(candidate.put(f), candidate.put(labels), candidate.put(units))
        assert got.dtype == np.int64
        assert got.tolist() == REFERENCE.confusion(f, labels, units).tolist()
        assert got.sum() - np.trace(got) == REFERENCE.error(f, labels, units)


def test_confusion_by_hand(candidate: Backend) -> None:
    f = candidate.put(np.array([[0.0, 0.0, -1.0], [1.0, 2.0, 2.0], [-np.inf] * 3, [3.0, -1.0, 4.0], [3.0, -1.0, 4.0]]))
    units = candidate.put(np.array([1, 10, 100, 2**60, 2**61]))
    # The first largest scores are at 0, 1, 0, 2, 2.
    labels = candidate.put(np.array([0, 2, 1, 0, 0], np.int32))
    assert candidate.confusion(f, labels, units).tolist() == [[1, 0, 3 * 2**60], [100, 0, 0], [0, 10, 0]]


# ---- whole fits --------------------------------------------------------------------------------------------------------------


def column(kind: str, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
    match kind:
        case "normal":
            return rng.normal(size=n)
        case "sparse":
            return np.where(rng.random(n) < 0.85, 0.0, rng.normal(size=n))
        case "integers":
            return rng.integers(0, 4, n).astype(float)
        case "some missing":
            return np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
        case "mostly missing":
            return np.where(rng.random(n) < 0.8, np.nan, rng.integers(0, 3, n))
        case "zero or missing":
            return np.where(rng.random(n) < 0.5, np.nan, 0.0)
        case "constant":
            return np.full(n, 7.0)
        case "infinite":
            return rng.choice([-np.inf, -1.0, 1.0, np.inf], n)
        case _:
            return np.full(n, np.nan)


KINDS = [
    "normal",
    "sparse",
    "integers",
    "some missing",
    "mostly missing",
    "zero or missing",
    "constant",
    "infinite",
    "all missing",
]
SIZES = [(1, 2), (2, 1), (3, 3), (17, 2), (40, 40), (60, 5), (150, 20), (150, 70), (400, 9), (1000, 9), (2500, 4), (5000, 3)]
CLASSES = [2, 3, 4, 5, 7, 10, 16, 30, 1]
LEARNERS: list[Learner] = [
    *(HammingTree(n) for n in (2, 3, 5, 9)),
    *(StumpProduct(n) for n in (1, 2, 3)),
]


@dataclass(frozen=True)
class Case:
    """A whole fit. Options go round with different periods, so that the cases mix them all."""

    number: int
    fraction: float = 0.0
    n_classes: int | None = None

    @property
    def turn(self) -> int:
        """A counter that meets other sizes every time the sizes have gone round."""
        return self.number + self.number // len(SIZES)

    @property
    def booster(self) -> AdaBoostMH:
        return AdaBoostMH(
            LEARNERS[self.number % len(LEARNERS)],
            "uniform" if self.multi_label or self.turn % 4 == 3 else "single-label",
            "real" if self.turn % 3 == 1 else "discrete",
            (1.0, 0.3, 1.0, 3.0, 1.0)[self.number % 5],
            self.fraction,
        )

    @property
    def multi_label(self) -> bool:
        return self.turn % 4 == 2

    @property
    def n_rounds(self) -> int:
        # About as much work for the NumPy backend in every case: it is a Python loop over cuts.
        data = self.data(0)
        n_nodes = 2 * getattr(self.booster.learner, "max_leaf_nodes", 2 * getattr(self.booster.learner, "n_factors", 1))
        return int(np.clip(60_000 // (n_nodes * int(data.mapper().n_bins.sum())), 2, 8))

    def data(self, part: int) -> Data:
        """The training set (0), or a validation set of the same size (1)."""
        i = self.number
        rng = np.random.default_rng([i, part])
        n_rows, n_features = SIZES[i % len(SIZES)]
        n_classes = self.n_classes or CLASSES[i % len(CLASSES)]
        kinds = ["integers"] if i % 11 == 10 else KINDS[self.turn % 3 :]  # integers alone: ties everywhere
        X = np.stack([column(kinds[f % len(kinds)], n_rows, rng) for f in range(n_features)], axis=1)
        signal = np.nan_to_num(X, posinf=3, neginf=-3).cumsum(axis=1)
        if self.multi_label or n_classes == 1:
            noise = rng.normal(size=(n_rows, n_classes))
            signs = np.where(signal[:, np.arange(n_classes) % n_features] + noise > 0, 1, -1).astype(np.int8)
        else:
            labels = (signal[:, -1] + rng.normal(scale=0.7, size=n_rows)).round().astype(int) % n_classes
            signs = sign_matrix(labels, n_classes)
        weights = (None, rng.integers(1, 6, n_rows) / 3.0, rng.uniform(0.01, 1.0, n_rows))[i % 7 % 3]
        return Data(X, signs, weights, max_bins=(255, 60, 16, 5)[self.turn % 4])

    def fit(self, backend: Backend) -> Training:
        return fit(self.booster, self.data(0), backend, self.n_rounds, evaluation=self.data(1))


def fit_candidates(number: int, device: str | None) -> dict[str, Opener]:
    """The backends for a case: of the variants of the emulated device, which is slow, one in turn."""
    found = candidates(device)
    variants = [name for name in found if name in EMULATED]
    return {name: opened for name, opened in found.items() if name not in variants or name == variants[number % len(variants)]}


def outcome(case: Case, backend: Backend) -> tuple[str, dict[str, list[float]], list[bytes], str]:
    training, data = case.fit(backend), case.data(0)
    mapper = data.mapper()
    predictions = [scores(training.trees, case.data(part), backend, mapper).tobytes() for part in (0, 1)]
    history = {key: values for key, values in training.history.items() if key != "seconds"}
    return digest(training.trees, data.n_classes), history, predictions, training.reason


BREADTH = 4.236
"""By default one fit in so many is made, see `tests.candidates.thinned`; with it all sizes and learners."""

# Trees with a smallest leaf, of 17 to 1000 rows: the counts are one channel more, of all numbers of classes up to 17.
NUMBERS = [i for i in range(72) if 3 <= i % len(SIZES) <= 9]
BOUND = [Case(i, (0.3, 0.15, 0.05, 0.5)[i % 4], 1 + i * 5 % 17) for i in NUMBERS]


@pytest.mark.parametrize(
    "case",
    thinned([*(Case(i) for i in range(72)), *BOUND], 16, BREADTH),
    ids=lambda case: f"{case.number}-{case.fraction}-{case.n_classes}",
)
def test_fit(case: Case, request: pytest.FixtureRequest) -> None:
    expected = outcome(case, REFERENCE)
    for name, opened in fit_candidates(case.number, request.config.getoption("--device")).items():
        with opened() as backend:
            assert outcome(case, backend) == expected, name


def test_cases_cover_the_options() -> None:
    """That the periods above do mix: every learner with every variant and rate, and most fits do something."""
    cases = [Case(i) for i in range(72)]
    assert len({(str(c.booster.learner), c.booster.variant) for c in cases}) == 2 * len(LEARNERS)
    assert len({(c.booster.initial_weights, c.multi_label) for c in cases}) == 3
    assert {c.booster.learning_rate for c in cases} == {0.3, 1.0, 3.0}
    assert {c.data(0).n_classes for c in cases} == set(CLASSES)
    assert {c.data(0).X.shape for c in cases} == set(SIZES)
    assert {c.n_classes for c in BOUND} == set(range(1, 18))
    assert {(str(c.booster.learner), c.multi_label) for c in BOUND} == {(str(a), b) for a in LEARNERS for b in (False, True)}
    assert {(c.booster.variant, c.data(0).weights is None) for c in BOUND} == {
        (variant, unweighted) for variant in ("discrete", "real") for unweighted in (False, True)
    }


@pytest.mark.slow
def test_the_smallest_leaf_matters_in_the_cases() -> None:
    with cpu_backend() as backend:
        trees = [[replace(c, fraction=f).fit(backend).trees for f in (c.fraction, 0.0)] for c in BOUND]
    differ = [digest(a, c.data(0).n_classes) != digest(b, c.data(0).n_classes) for c, (a, b) in zip(BOUND, trees, strict=True)]
    grown = [any(tree.n_leaves > 1 for tree in bound) for bound, _ in trees]
    assert sum(differ) > len(BOUND) / 2
    assert sum(grown) > len(BOUND) / 2


@pytest.mark.parametrize("number", thinned(range(0, 72, 5), 5, BREADTH))
def test_order_of_rows_does_not_matter(candidate: Backend, number: int) -> None:
    case = Case(number)
    data = case.data(0)
    order = np.random.default_rng(number).permutation(len(data.X))
    one, other = (fit(case.booster, d, candidate, case.n_rounds) for d in (data, data.subset(order)))
    assert digest(one.trees, data.n_classes) == digest(other.trees, data.n_classes)
    assert {k: v for k, v in one.history.items() if k != "seconds"} == {
        k: v for k, v in other.history.items() if k != "seconds"
    }


CLASS_TREE_BOOSTERS = [
    SAMME(5),
    SAMME(2, 0.5, variant="real"),
    SAMME(9, 1.0, 0.05, variant="real"),
    Gamble(6, 1.0),
    Gamble(15, 0.3, 0.1),
]


SINGLE_LABEL = [i for i in range(72) if not Case(i).multi_label and Case(i).data(0).n_classes > 1]


@pytest.mark.parametrize("number", thinned(SINGLE_LABEL, 16, BREADTH))
def test_fit_of_class_trees(number: int, request: pytest.FixtureRequest) -> None:
    assert_fits_alike(number, CLASS_TREE_BOOSTERS[number % len(CLASS_TREE_BOOSTERS)], request)


@pytest.mark.parametrize("number", thinned(SINGLE_LABEL, 16, BREADTH))
def test_fit_of_rebel(number: int, request: pytest.FixtureRequest) -> None:
    # Some costs are 0; of some sets, all those of a class.
    rng, n_classes = np.random.default_rng(number), Case(number).data(0).n_classes
    costs = rng.choice([0.0, 0.5, 1.0, 3.0, 20.0], (n_classes, n_classes)) * (1 - np.eye(n_classes))
    costs[0, 1] = 1.0
    if number % 4 == 2:
        costs[-1] = 0.0
    depth, rate, fraction = 1 + number % 4, (1.0, 0.5)[number % 3 == 0], (0.0, 0.0, 0.05)[number % 3]
    assert_fits_alike(number, Rebel(depth, None if number % 2 else costs, rate, fraction), request)


def assert_fits_alike(number: int, booster: Booster, request: pytest.FixtureRequest) -> None:
    case = Case(number)

    def result(backend: Backend) -> tuple[str, dict[str, list[float]], str]:
        training = fit(booster, case.data(0), backend, min(case.n_rounds, 3), evaluation=case.data(1))
        history = {key: values for key, values in training.history.items() if key != "seconds"}
        return digest(training.trees, case.data(0).n_classes), history, training.reason

    expected = result(REFERENCE)
    for name, opened in fit_candidates(number, request.config.getoption("--device")).items():
        with opened() as backend:
            assert result(backend) == expected, name


def test_small_and_large_float32(candidate: Backend) -> None:
    # Both zeros, denormal numbers from the least to the largest, the least normal ones, 1, the largest, infinity; and NaN.
    bits = [0, 1, 2, 3, 2**22, 2**23 - 1, 2**23, 2**23 + 1, 127 << 23, (255 << 23) - 1, 255 << 23]
    magnitudes = np.array(bits, np.uint32)
    X = np.append(np.concatenate([magnitudes, magnitudes | 1 << 31]).view(np.float32), np.nan)[:, None].astype(np.float32)
    mapper = BinMapper.fit(X)
    assert mapper.n_bins.tolist() == [22]  # of 21 values, as the zeros are equal, and of NaN
    codes, data = mapper.transform(X).codes[0], candidate.encode(mapper, X)
    for cut in range(1, 21):
        stump = {"feature": np.zeros(1, np.int32), "cut": np.array([cut], np.uint8), "missing_left": np.zeros(1, np.bool_)}
        children = {"left": np.array([~0], np.int32), "right": np.array([~1], np.int32)}
        tree = Tree(**stump, **children, values=np.zeros((2, 1)), gain=np.zeros(1))
        assert np.array_equal(candidate.get(candidate.apply(tree, data)), (codes > cut) | (codes == 0))


@pytest.mark.parametrize("n_rows", [1, 511, 512, 513, 1200])
def test_many_rows_are_binned_as_few(n_rows: int, candidate: Backend) -> None:
    # Columns with 0 to 254 cuts; the codes come out by a tree for each.
    rng = np.random.default_rng(n_rows)
    X = np.column_stack([rng.integers(0, n, n_rows).astype(np.float64) for n in (1, 2, 3, 17, 254, 400)])
    X[rng.random(X.shape) < 0.05] = np.nan
    mapper = BinMapper.fit(X)
    expected = mapper.transform(X).codes
    assert np.array_equal(mapper.transform(X, bin_block=candidate.bin_block).codes, expected)


MANY = [(40, 2, 4), (40, 2, 3), (40, 3, 3), (30, 3, 3), (40, 2, 5), (40, 2, 4)]  # (n_rows, n_features, n_classes)


def test_one_backend_serves_many_fits(candidate: Backend) -> None:
    # What a backend keeps between rounds must not leak into another problem, in whatever order they come.
    booster = AdaBoostMH(HammingTree(4), "single-label")
    sets = [blobs(n_rows, n_features, n_classes, seed) for seed in (0, 1) for n_rows, n_features, n_classes in MANY]
    expected = [digest(fit(booster, data, REFERENCE, 2).trees, data.n_classes) for data in sets]
    for _ in range(2):
        assert [digest(fit(booster, data, candidate, 2).trees, data.n_classes) for data in sets] == expected

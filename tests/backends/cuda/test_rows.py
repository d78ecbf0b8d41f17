"""The kernels over rows and their host code, where the conformance tests do not reach: odd grids, limits, tiles, transfers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost import fixedpoint
from gpuboost.backends.cuda import matrix as matrix_module
from gpuboost.backends.cuda import rows as rows_module
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.launch import launch
from gpuboost.backends.cuda.matrix import CudaMatrix
from gpuboost.backends.cuda.rows import PAIRS, Pending, best_block, flat_trees, node_records, slabs
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Counts, Stats
from gpuboost.binning import BinnedMatrix
from gpuboost.ensemble import Ensemble
from gpuboost.fixedpoint import MAX_ROWS, STATE_FLOOR
from gpuboost.tree import Tree, constant_tree
from tests.candidates import CUDA, emulated
from tests.problems import coded

REFERENCE = NumpyBackend()
LAUNCHES = [(1, 256), (1, 96), (7, 32), (40, 128)]
"""Grids and blocks: one block for everything, blocks that no row is left for, and threads beyond the channels."""


@pytest.fixture(params=["forward", "reverse", "random"])
def cuda(request: pytest.FixtureRequest) -> Iterator[CudaBackend]:
    """The backend on emulated threads in three orders, or on the card."""
    on_card = request.config.getoption("--device") == "cuda"
    with CUDA["cuda"]() if on_card else emulated(request.param, seed=4) as backend:
        assert isinstance(backend, CudaBackend)
        yield backend


def random_rows(n_rows: int, n_classes: int, seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """A state with zeros and halves, signs, repeats, and groups 0 .. 4."""
    rng = np.random.default_rng([n_rows, n_classes, seed])
    state = rng.integers(0, 64, (n_rows, n_classes)) / 8.0
    signs = rng.choice(np.array([-1, 1], np.int8), state.shape)
    return state, signs, rng.integers(1, 9, n_rows).astype(np.int32), rng.integers(0, 5, n_rows).astype(np.int32)


def rint(x: float, shift: int) -> int:
    """``x * 2**shift`` rounded half to even; Python rounds fractions exactly."""
    return round(Fraction(x) * Fraction(2) ** shift)


def zeros(cuda: CudaBackend, *shape: int, dtype: Any = np.int64) -> Any:
    return cuda.put(np.zeros(shape, dtype))


# ---- sums and maxima ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [1, 10, 33, 300])
@pytest.mark.parametrize("n_rows", [1, 57])
def test_statistics_on_any_grid(cuda: CudaBackend, n_rows: int, n_classes: int) -> None:
    state, signs, frequency_weight, leaf_index = random_rows(n_rows, n_classes)
    counts, table = np.arange(n_rows, dtype=np.int32), random_rows(5, n_classes, 1)[1]
    units = np.array([[int(n) * rint(x, 1) for x in row] for n, row in zip(frequency_weight, state, strict=True)])
    quantised = np.column_stack([units * signs, counts])
    flipped = np.column_stack([units * signs * table[leaf_index], counts])
    on_device = [cuda.put(a) for a in (state, signs, frequency_weight)]
    for blocks, block in LAUNCHES:
        of_channels, sums, sum_abs, flipped_sums = (
            zeros(cuda, n) for n in (n_classes, n_classes + 1, n_classes, n_classes + 1)
        )
        out, flipped_out = (cuda.gpu.empty(quantised.shape, np.int32) for _ in range(2))

        def run(name: str, *arguments: Any, blocks: int = blocks, block: int = block) -> None:
            launch(cuda.gpu, name, (blocks,), arguments, block=block)

        run("channel_sums", on_device[0], on_device[2], None, of_channels, n_rows, n_classes, 1)
        assert cuda.get(of_channels).tolist() == units.sum(axis=0).tolist()
        sizes = {"n_rows": n_rows, "n_classes": n_classes, "n_channels": n_classes + 1, "shift": 1}
        run("quantise", *on_device, cuda.put(counts), None, out, sums, sum_abs, sizes)
        assert cuda.get(out).tolist() == quantised.tolist()
        assert cuda.get(sums).tolist() == quantised.sum(axis=0).tolist()
        assert cuda.get(sum_abs).tolist() == units.sum(axis=0).tolist()
        run("flip", out, cuda.put(leaf_index), cuda.put(table), flipped_out, flipped_sums, n_rows, n_classes, n_classes + 1)
        assert cuda.get(flipped_out).tolist() == flipped.tolist()
        assert cuda.get(flipped_sums).tolist() == flipped.sum(axis=0).tolist()


def test_channel_sums_near_the_limit(cuda: CudaBackend) -> None:
    # The most that the first shift can give: 2**31 - 1 repeats of a value that rounds to 2**31.
    state = cuda.put(np.array([[np.nextafter(1.0, 0.0), 0.5]] * 2))
    frequency_weight = cuda.put(np.array([2**30, 2**30 - 1], np.int32))
    assert cuda.channel_sums(state, frequency_weight, 31).tolist() == [2**31 * (2**31 - 1), 2**30 * (2**31 - 1)]


def test_statistics_near_the_limit(cuda: CudaBackend) -> None:
    # Two rows of 2**29 - 1 units and one of 1: the channel's sum is 2**30 - 1 with either sign, and group sums stay in int32.
    state = np.array([[2.0**29 - 1] * 2, [2.0**29 - 1] * 2, [1.0] * 2])
    signs, leaf_index = np.array([[1, -1]] * 3, np.int8), cuda.put(np.zeros(3, np.int32))
    stats = cuda.quantise(cuda.put(state), cuda.put(signs), cuda.put(np.ones(3, np.int32)), 0)
    assert stats.sum.tolist() == [2**30 - 1, 1 - 2**30]
    assert stats.sum_abs.tolist() == [2**30 - 1] * 2
    sums, sum_abs = cuda.leaf_sums(stats, leaf_index, 2)
    assert sums.tolist() == [[2**30 - 1, 1 - 2**30], [0, 0]]
    assert sum_abs.tolist() == [[2**30 - 1] * 2, [0, 0]]


@pytest.mark.parametrize("shape", [(1, 1), (1, 33), (257, 1), (61, 70)])
def test_maximum_is_found_wherever_it_is(cuda: CudaBackend, shape: tuple[int, int]) -> None:
    n = shape[0] * shape[1]
    for place, value in ((0, 1.5), (n // 2, 5e-324), (n - 1, 2.0**900)):
        state = np.zeros(n)
        state[place] = value
        assert cuda.maximum(cuda.put(state.reshape(shape))) == value
        for blocks, block in LAUNCHES:
            largest = zeros(cuda, 1, dtype=np.uint64)
            launch(cuda.gpu, "maximum", (blocks,), (cuda.put(state.reshape(shape)), largest, n), block=block)
            assert cuda.get(largest).view(np.float64).tolist() == [value]
    assert cuda.maximum(cuda.put(np.full(shape, -0.0))) == 0.0  # whose bits are those of a large integer


# ---- the shift rule ----------------------------------------------------------------------------------------------------------


def chosen_shift(cuda: CudaBackend, maximum: float, sums: list[int], n_rows: int) -> int:
    chosen = zeros(cuda, 2)
    bits = np.array([maximum]).view(np.uint64)
    limits = (len(sums), n_rows, fixedpoint.most_dropped(n_rows))
    launch(cuda.gpu, "choose_shift", (1,), (cuda.put(bits), cuda.put(np.array(sums)), chosen, *limits), block=32)
    shift, copy = cuda.get(chosen).tolist()
    assert copy == bits[0]
    return int(shift)


maxima = st.one_of(st.just(0.0), st.floats(STATE_FLOOR, 2.0**900), st.integers(-900, 900).map(lambda e: 2.0**e))
many = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.slow
@many
@given(maxima, st.integers(0, 2**62), st.integers(1, MAX_ROWS), st.integers(1, 70), st.data())
def test_shift_rule(cuda: CudaBackend, maximum: float, largest: int, n_rows: int, n_classes: int, data: st.DataObject) -> None:
    sums = [largest // 2] * n_classes
    sums[data.draw(st.integers(0, n_classes - 1))] = largest
    expected = fixedpoint.final_shift(fixedpoint.first_shift(maximum), largest, n_rows)
    assert chosen_shift(cuda, maximum, sums, n_rows) == expected


@pytest.mark.slow
@many
@given(st.integers(0, 60), st.integers(1, 2**28))
@example(0, 1)
@example(12, 2**22 + 1)
@example(13, 2**22 + 1)
@example(31, 2**22)
def test_shift_rule_where_it_turns(cuda: CudaBackend, drop: int, n_rows: int) -> None:
    # (S + R/2) / 2**d + R/2 <= 2**30 - 1 holds for S up to (2**d (2**31 - 2 - R) - R) / 2, which grows with d by 1 at least.
    last = (2**drop * (2**31 - 2 - n_rows) - n_rows) // 2
    most = 13 if n_rows > 2**22 else 64
    assume(0 <= last < 2**62)
    assert chosen_shift(cuda, 1.0, [last], n_rows) == 30 - min(drop, most)  # 30 is the first shift of 1
    assert chosen_shift(cuda, 1.0, [last + 1], n_rows) == 30 - min(drop + 1, most)


@pytest.mark.parametrize("with_counts", [False, True])
def test_statistics_wait_once(cuda: CudaBackend, monkeypatch: pytest.MonkeyPatch, with_counts: bool) -> None:
    state, signs, frequency_weight, leaf_index = random_rows(40, 3)
    on_device = [cuda.put(a) for a in (state, signs, frequency_weight)]
    on_device_group, counts = cuda.put(leaf_index), np.arange(40, dtype=np.int32)
    limit = Counts(cuda.put(counts), 7) if with_counts else None
    table = np.full((5, 2, 3), 0.3)
    waits: list[int] = []
    monkeypatch.setattr(cuda.gpu, "get", lambda array, get=cuda.gpu.get: (waits.append(array.nbytes), get(array))[1])

    maximum = cuda.reweight(*on_device[:2], on_device_group, table)
    assert waits == []
    stats = cuda.statistics(*on_device, int(frequency_weight.sum()), maximum, limit)
    n_channels = 3 + with_counts
    assert waits == [8 * (1 + 2 + 3 + n_channels + 3)]  # with the maximum
    assert float(maximum) == state.max() * 0.3  # it came with the statistics
    assert len(waits) == 1

    expected_state = state.copy()
    largest = REFERENCE.reweight(expected_state, signs, leaf_index, table)
    expected_limit = Counts(counts, 7) if with_counts else None
    expected = REFERENCE.statistics(
        expected_state, signs, frequency_weight, int(frequency_weight.sum()), largest, expected_limit
    )
    assert stats.shift == expected.shift
    assert (stats.sum.tolist(), stats.sum_abs.tolist()) == (expected.sum.tolist(), expected.sum_abs.tolist())
    assert cuda.get(stats.quantised).tolist() == expected.quantised.tolist()


def test_a_pending_maximum_is_waited_for_once(cuda: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    state = cuda.put(np.array([[3.0], [0.25]]))
    signs, leaf_index = cuda.put(np.ones((2, 1), np.int8)), cuda.put(np.array([1, 0], np.int32))
    maximum = cuda.reweight(state, signs, leaf_index, np.array([[[9.0], [20.0]], [[9.0], [0.5]]]))
    assert isinstance(maximum, Pending)
    assert float(maximum) == 5.0  # 0.25 * 20
    monkeypatch.setattr(cuda.gpu, "get", None)
    assert float(maximum) == 5.0


def test_too_many_rows_are_refused(cuda: CudaBackend) -> None:
    state, signs, frequency_weight, _ = (cuda.put(a) for a in random_rows(3, 2))
    with pytest.raises(ValueError, match=f"at most {MAX_ROWS} rows"):
        cuda.statistics(state, signs, frequency_weight, MAX_ROWS + 1, 1.0)


def test_a_wrong_shift_is_noticed(cuda: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    state, signs, frequency_weight, _ = (cuda.put(a) for a in random_rows(3, 2))
    monkeypatch.setattr(rows_module.fixedpoint, "final_shift", lambda *_: 99)
    with pytest.raises(RuntimeError, match=r"the device chose the shift 2\d, but the shift rule gives 99"):
        cuda.statistics(state, signs, frequency_weight, 12, 7.875)


# ---- groups ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n_rows", "n_leaves", "n_classes"),
    [(1, 1, 1), (100, 39, 10), (30, 100, 200), (20, 5, 300), (40, 13_000, 2)],  # the last three in tiles of classes or leaves
)
def test_leaf_sums_in_tiles(cuda: CudaBackend, n_rows: int, n_leaves: int, n_classes: int) -> None:
    rng = np.random.default_rng(n_leaves)
    quantised = rng.integers(-1000, 1001, (1, n_rows, n_classes + 1)).astype(np.int32)
    leaf_index = rng.integers(0, n_leaves, n_rows)
    leaf_index[-1] = n_leaves - 1
    stats = Stats(
        cuda.put(quantised), 0, quantised[0].sum(axis=0), abs(quantised[0, :, :-1]).sum(axis=0), 1
    )  # the last channel: counts
    sums, sum_abs = cuda.leaf_sums(stats, cuda.put(leaf_index), n_leaves)  # int64 will do
    for g in (0, int(leaf_index[0]), n_leaves - 1):
        assert sums[g].tolist() == quantised[0, leaf_index == g, :-1].sum(axis=0).tolist()
        assert sum_abs[g].tolist() == abs(quantised[0, leaf_index == g, :-1]).sum(axis=0).tolist()
    assert sums.shape == sum_abs.shape == (n_leaves, n_classes)
    assert int(sum_abs.sum()) == int(abs(quantised[:, :, :-1]).sum())


@pytest.mark.parametrize("n_classes", [1, 10, 33, 300])
def test_reweight_on_any_grid(cuda: CudaBackend, n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    state, signs, _, leaf_index = random_rows(57, n_classes)
    state *= 10.0 ** -rng.choice([0.0, 260.0, 270.0], state.shape)  # some fall to the floor
    table = np.exp(rng.normal(scale=5.0, size=(5, 2, n_classes)))

    def product(i: int, k: int) -> float:
        exact = Fraction(state[i, k]) * Fraction(table[leaf_index[i], int(signs[i, k] > 0), k])  # a float of it is rounded once
        return max(float(exact), STATE_FLOOR) if state[i, k] else 0.0

    expected = [[product(i, k) for k in range(n_classes)] for i in range(57)]
    assert STATE_FLOOR in [x for row in expected for x in row] or n_classes == 1
    for blocks, block in LAUNCHES:
        on_device, maximum = cuda.put(state), zeros(cuda, 1, dtype=np.uint64)
        arguments = (on_device, cuda.put(signs), cuda.put(leaf_index), cuda.put(table), maximum, 57, n_classes, STATE_FLOOR)
        launch(cuda.gpu, "reweight", (blocks,), arguments, block=block)
        assert cuda.get(on_device).tolist() == expected
        assert cuda.get(maximum).view(np.float64).tolist() == [max(max(row) for row in expected)]


# ---- errors ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [1, 2, 31, 32, 33, 70])
@pytest.mark.parametrize("n_rows", [1, 67])
def test_errors_by_brute_force(cuda: CudaBackend, n_rows: int, n_classes: int) -> None:
    rng = np.random.default_rng([n_rows, n_classes])
    scores = rng.choice([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf], (n_rows, n_classes))
    scores[rng.random(scores.shape) < 0.7] = 2.0  # ties
    labels = rng.integers(0, n_classes, n_rows).astype(np.int32)
    right = scores.argmax(axis=1)
    labels[::2] = right[::2]
    signs = rng.choice(np.array([-1, 1], np.int8), scores.shape)
    units = rng.integers(1, 2**50, n_rows)

    wrong_rows = [row.tolist().index(max(row)) != label for row, label in zip(scores, labels, strict=True)]
    wrong_signs = [sum((x > 0) != (s > 0) for x, s in zip(*rows, strict=True)) for rows in zip(scores, signs, strict=True)]
    on_device = cuda.put(scores)
    for target, wrong in ((labels, wrong_rows), (labels.astype(np.int64), wrong_rows), (signs, wrong_signs)):
        expected = sum(int(u) * int(n) for u, n in zip(units, wrong, strict=True))
        assert int(cuda.error(on_device, cuda.put(target), cuda.put(units))) == expected


@pytest.mark.parametrize("n_classes", [1, 2, 31, 32, 33, 78, 79])
@pytest.mark.parametrize("n_rows", [1, 67])
def test_confusion_by_brute_force(cuda: CudaBackend, n_rows: int, n_classes: int) -> None:
    rng = np.random.default_rng([n_rows, n_classes])
    scores = rng.choice([-np.inf, -1.0, -0.0, 0.0, 2.0, np.inf], (n_rows, n_classes))
    scores[rng.random(scores.shape) < 0.7] = 2.0  # ties
    scores[0] = -np.inf
    labels = rng.integers(0, n_classes, n_rows).astype(np.int32)
    units = rng.integers(1, 2**50, n_rows)
    expected = np.zeros((n_classes, n_classes), np.int64)
    for row, label, unit in zip(scores.tolist(), labels, units, strict=True):
        expected[label, row.index(max(row))] += unit
    for _ in range(2):  # the second time where the first left its counts
        found = cuda.confusion(cuda.put(scores), cuda.put(labels), cuda.put(units))
        assert found.tolist() == expected.tolist()


def test_error_of_a_heavy_row(cuda: CudaBackend) -> None:
    units = cuda.put(np.array([2**62, 2**61]))
    scores = cuda.put(np.array([[0.0, 1.0], [1.0, 0.0]]))
    assert int(cuda.error(scores, cuda.put(np.array([0, 1], np.int32)), units)) == 2**62 + 2**61


# ---- trees -------------------------------------------------------------------------------------------------------------------


def chain(depth: int, n_classes: int, seed: int) -> Tree:
    """Node d asks feature d: code 1 or 2 goes left to leaf d, other codes go on; missing codes go on at odd nodes."""
    n = np.arange(depth, dtype=np.int32)
    values = np.random.default_rng(seed).normal(size=(depth + 1, n_classes))
    right = np.where(n < depth - 1, n + 1, ~depth).astype(np.int32)
    return Tree(n, np.full(depth, 2, np.uint8), n % 2 == 0, ~n, right, values, np.zeros(depth))


def leaf_of_chain(codes: NDArray[Any], depth: int) -> list[int]:
    """For every row the first node whose question it leaves to the left, or the last leaf."""
    stops = [[code in (1, 2) or (code == 0 and d % 2 == 0) for d, code in enumerate(row[:depth])] for row in codes.T.tolist()]
    return [[*row, True].index(True) for row in stops]


@pytest.mark.parametrize(("n_rows", "depth"), [(1, 1), (33, 16), (300, 40)])
def test_walks(cuda: CudaBackend, n_rows: int, depth: int) -> None:
    codes = np.random.default_rng(depth).choice(
        np.array([0, 1, 2, 3, 255], np.uint8), (depth, n_rows), p=[0.05, 0.02, 0.02, 0.5, 0.41]
    )
    data, tree = cuda.load(coded(codes)), chain(depth, 2, 0)
    assert cuda.get(cuda.apply(tree, data)).tolist() == leaf_of_chain(codes, depth)
    assert cuda.get(cuda.apply(constant_tree(np.zeros(2)), data)).tolist() == [0] * n_rows


def test_trees_are_added_in_order(cuda: CudaBackend) -> None:
    # ((0 + 1e16) + 1) - 1e16 is 0 and (1e16 - 1e16) + 1 is 1: only the order of the trees decides.
    data = cuda.load(coded(np.ones((1, 70), np.uint8)))
    for order, expected in (([1e16, 1.0, -1e16], 0.0), ([1e16, -1e16, 1.0], 1.0)):
        trees = [constant_tree(np.array([x, -x])) for x in order]
        scores = zeros(cuda, 70, 2, dtype=np.float64)
        cuda.predict(Ensemble.from_trees(trees, 2), data, scores, 0, 3)
        assert cuda.get(scores).tolist() == [[expected, -expected]] * 70


@pytest.mark.parametrize("n_classes", [1, 3, 33])
def test_predict_in_any_tiles(cuda: CudaBackend, monkeypatch: pytest.MonkeyPatch, n_classes: int) -> None:
    codes = np.random.default_rng(1).choice(np.array([0, 1, 2, 3], np.uint8), (9, 130), p=[0.1, 0.05, 0.05, 0.8])
    depths = [3, 0, 9, 1, 0, 5]
    trees = [chain(d, n_classes, i) if d else constant_tree(np.full(n_classes, 0.1)) for i, d in enumerate(depths)]
    ensemble, data = Ensemble.from_trees(trees, n_classes), cuda.load(coded(codes))
    expected = np.full((130, n_classes), 0.3)
    for d, tree in zip(depths[1:], trees[1:], strict=True):
        expected += tree.values[leaf_of_chain(codes, d)]

    for slab_bytes in (1, 200, 1 << 20):  # one tree a slab, a few, all
        monkeypatch.setattr(rows_module, "SLAB_BYTES", slab_bytes)
        scores = cuda.put(np.full((130, n_classes), 0.3))
        cuda.predict(ensemble, data, scores, 1, 6)
        assert cuda.get(scores).tobytes() == expected.tobytes()
    nodes, roots = (cuda.put(a) for a in flat_trees(ensemble, 1, 6))
    values = cuda.put(ensemble.values[ensemble.leaf_offset[1] :])
    for rows, batch in ((1, PAIRS), (64, 2), (700, 1), (50, 40)):
        for blocks, block in LAUNCHES:
            scores = cuda.put(np.full((130, n_classes), 0.3))
            arguments = (nodes, roots, values, data.codes, scores, 130, 5, n_classes, rows, batch)
            launch(cuda.gpu, "predict", (blocks,), arguments, block=block)
            assert cuda.get(scores).tobytes() == expected.tobytes()


def test_few_trees_for_the_device_by_hand() -> None:
    one = chain(2, 1, 0)  # nodes 0, 1; leaves 0, 1, 2
    ensemble = Ensemble.from_trees([constant_tree(np.zeros(1)), one, constant_tree(np.zeros(1)), one], 1)
    assert node_records(one).tolist() == [[0, 258, ~0, 1], [1, 2, ~1, ~2]]  # cut 2, and 256 for missing-left
    nodes, roots = flat_trees(ensemble, 1, 4)
    assert nodes.tolist() == [[0, 258, ~0, 1], [1, 2, ~1, ~2], [0, 258, ~4, 3], [1, 2, ~5, ~6]]
    assert roots.tolist() == [0, ~3, 2]
    assert nodes.dtype == roots.dtype == np.int32


def test_slabs_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    # A tree of two inner nodes and three leaves of one class takes 2 * 16 + 3 * 8 = 56 bytes, a single leaf 8.
    trees = [constant_tree(np.zeros(1)), *[chain(2, 1, 0)] * 3, constant_tree(np.zeros(1))]
    ensemble = Ensemble.from_trees(trees, 1)
    for room, expected in (
        (1, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
        (64, [(0, 2), (2, 3), (3, 5)]),
        (112, [(0, 2), (2, 4), (4, 5)]),
        (1000, [(0, 5)]),
    ):
        monkeypatch.setattr(rows_module, "SLAB_BYTES", room)
        assert slabs(ensemble, 0, 5) == expected
    assert slabs(ensemble, 2, 2) == []


@pytest.mark.parametrize("n_classes", [1, 10, 33, 300])
def test_add_trees_on_any_grid(cuda: CudaBackend, n_classes: int) -> None:
    scores, _, _, leaf_index = random_rows(57, n_classes)
    values = np.random.default_rng(0).normal(size=(5 + 3, n_classes))  # of two trees
    other_index = leaf_index[::-1] % 3
    expected = (scores + values[leaf_index]) + values[5 + other_index]
    indices = [cuda.put(np.ascontiguousarray(index, np.int32)) for index in (leaf_index, other_index)]
    addresses = np.array([cuda.gpu.address(index) for index in indices])
    for blocks, block in LAUNCHES:
        on_device = cuda.put(scores)
        trees = (cuda.put(addresses), cuda.put(np.array([0, 5], np.int32)), cuda.put(values))
        launch(cuda.gpu, "add_trees", (blocks,), (on_device, *trees, 57, n_classes, 2), block=block)
        assert cuda.get(on_device).tobytes() == expected.tobytes()


# ---- codes -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_features", "n_rows"), [(1, 1), (15, 31), (16, 257), (17, 300), (50, 70)])
def test_codes_by_blocks(cuda: CudaBackend, monkeypatch: pytest.MonkeyPatch, n_features: int, n_rows: int) -> None:
    codes = np.random.default_rng(n_features).integers(0, 256, (n_features, n_rows)).astype(np.uint8)
    n_blocks = -(-n_features // 16)
    padded = np.zeros((16 * n_blocks, n_rows), np.uint8)
    padded[:n_features] = codes
    for slab_bytes in (1, 32 * n_rows, 1 << 20):  # one block a slab, two, all
        monkeypatch.setattr(matrix_module, "SLAB_BYTES", slab_bytes)
        data = CudaMatrix.load(cuda.gpu, coded(codes))
        packed = cuda.get(data.codes)
        assert packed.shape == (n_blocks, n_rows, 16)
        assert packed.transpose(0, 2, 1).reshape(-1, n_rows).tolist() == padded.tolist()
    for grid in ((1, 1), (3, 2)):
        packed, counts = cuda.gpu.empty(data.codes.shape, np.uint8), zeros(cuda, 16 * n_blocks, 256, dtype=np.int32)
        launch(cuda.gpu, "pack", grid, (cuda.put(codes), packed, n_rows, n_features))
        assert cuda.get(packed).tolist() == cuda.get(data.codes).tolist()
        launch(cuda.gpu, "count_codes", grid, (packed, counts, n_rows, n_blocks))
        assert cuda.get(counts).tolist() == [np.bincount(column, minlength=256).tolist() for column in padded]


def test_what_the_codes_tell(cuda: CudaBackend) -> None:
    codes = np.array(
        [
            [7, 3, 3, 7, 255],  # 3 and 7 are equally frequent
            [0, 0, 0, 1, 2],
            [1, 1, 1, 1, 1],  # constant here, but its cuts were fitted on others
            [1, 1, 1, 1, 1],  # constant
            [0, 0, 0, 0, 0],  # missing here, missing and one value where it was fitted
            [0, 1, 1, 1, 1],  # missing or the only value
            [0, 1, 1, 1, 1],  # the same, but the rows that the cuts were fitted on had no missing values
        ],
        np.uint8,
    )
    n_bins = np.array([256, 3, 9, 2, 2, 2, 2], np.int32)
    matrix = BinnedMatrix(codes, n_bins, np.array([False, True, True, False, True, True, False]))
    data = CudaMatrix.load(cuda.gpu, matrix)
    assert data.skipped.tolist() == [3, 0, 1, 1, 0, 1, 1] + [0] * 9
    assert data.has_missing.tolist() == [False, True, False, False, True, True, True]
    assert data.usable.tolist() == matrix.usable.tolist() == [True, True, True, False, False, True, False]
    assert (data.n_rows, data.n_features) == (5, 7)


# ---- the shape of launches ---------------------------------------------------------------------------------------------------


def test_blocks_are_busy() -> None:
    assert best_block(1) == best_block(2) == best_block(256) == best_block(512) == 256
    assert best_block(10) == 160  # 16 rows of 10; of 256 threads 6 would idle
    assert best_block(33) == 256  # 7 rows of 33 are 231 of 256, 4 rows 132 of 160
    assert best_block(130) == 160
    assert best_block(320) == 160


def test_no_rows_launch_nothing(cuda: CudaBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda.gpu, "launch", None)
    matrix = BinnedMatrix(np.zeros((3, 0), np.uint8), np.array([2, 3, 2], np.int32), np.array([True, False, False]))
    data, tree = cuda.load(matrix), chain(3, 2, 0)
    assert data.usable.tolist() == matrix.usable.tolist() == [False, True, False]
    assert data.skipped.tolist() == [0] * 16
    leaf_index = cuda.apply(tree, data)
    assert leaf_index.shape == (0,)
    scores = zeros(cuda, 0, 2, dtype=np.float64)
    cuda.add_scores(scores, leaf_index, tree.values)
    cuda.predict(Ensemble.from_trees([tree], 2), data, scores, 0, 1)
    assert int(cuda.error(scores, leaf_index, zeros(cuda, 0))) == 0

"""Errors planted in the kernels: the suite must notice every one, in some order of threads or under some sanitizer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import growth as cuda_growth
from gpuboost.backends.cuda import rectangles
from gpuboost.backends.cuda import rows as cuda_rows
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.gpu import Limits
from gpuboost.backends.cuda.launch import launch
from gpuboost.backends.frontier import Frontier, GrowthScope
from gpuboost.backends.label_weights import label_weights
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Counts, Shifts, SoftmaxRows, SoftmaxSteps, Stats
from gpuboost.fixedpoint import STATE_FLOOR
from gpuboost.learners.growth import grow
from gpuboost.rectangles import rectangle_sums
from gpuboost.similarities.ensemble import Similarities, Similarity, TrainingPoints
from tests.backends.cuda.test_nccl import N_ROWS, grown, grown_together
from tests.backends.test_early_exit import in_one_block, on_reference
from tests.backends.test_early_exit import problem as exit_problem
from tests.backends.test_early_exit import rules as exit_rules
from tests.backends.test_softmax import random_rows
from tests.candidates import LEAST, SMALL, tight_plan
from tests.cuda_on_cpu import forked, mutants, sanitized
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.mutants import Mutant
from tests.cuda_on_cpu.requirement import require
from tests.features.images import COLOUR, all_features, pixels
from tests.problems import coded, stats_of

REFERENCE = NumpyBackend()
ONE_PROCESSOR = Limits(n_multiprocessors=1, shared_per_block=227 * 1024, shared_per_multiprocessor=1024 * 1024)


def growth(gpu: EmulatedGpu) -> None:
    """A batch of two trees: several blocks, ties between features, missing values on either side, counts."""
    gpu.limits = ONE_PROCESSOR  # few blocks, so that they take several stretches of rows
    rng = np.random.default_rng(0)
    n_rows, n_classes = 2600, 4  # five channels with the counts: 30 of 32 lanes add
    codes = rng.integers(1, 6, (7, n_rows))
    codes[1] = codes[0]
    codes[2] = np.where(rng.random(n_rows) < 0.3, 0, codes[2])
    codes[4] = np.where(rng.random(n_rows) < 0.7, 0, rng.integers(1, 40, n_rows))
    codes[5] = np.where(rng.random(n_rows) < 0.8, 2, codes[5])
    matrix = coded(codes)
    signal = (codes[0] > 2).astype(int) + (codes[4] == 0) - 1
    quantised = [rng.integers(-9, 10, (n_rows, n_classes)) + 6 * signal[:, None] * (k + 1) for k in range(2)]
    counts = rng.integers(0, 3, n_rows)

    def batch(backend: Backend) -> Stats:
        alone = [stats_of(backend, one, counts, 30) for one in quantised]
        both = np.concatenate([backend.get(stats.quantised) for stats in alone])
        sums, sum_abs = (np.asarray(sum(getattr(s, name) for s in alone)) for name in ("sum", "sum_abs"))
        return Stats(backend.put(both), 0, sums, sum_abs, 30)

    same_growth(gpu, matrix, batch, 12)


def together(gpu: EmulatedGpu) -> None:
    """Two workers with linked devices grow the tree of one process."""
    expected = grown(REFERENCE, np.arange(N_ROWS))
    for nodes in grown_together(lambda rank: linked_like(gpu), 2):
        assert (nodes == expected).all()


def linked_like(gpu: EmulatedGpu) -> EmulatedGpu:
    """A device with the same kernels that can be linked."""
    return EmulatedGpu(gpu._order, gpu._seed, limits=gpu.limits, source=gpu._source, linked=True)


def ties(gpu: EmulatedGpu) -> None:
    """Nothing but ties: between nodes, features, cuts, both sides for missing values, and the constant classifier."""
    codes = np.array(
        [[1, 1, 2, 2, 0, 0, 1, 2] * 4, [2, 2, 1, 1, 0, 0, 2, 1] * 4, [1, 2, 1, 2, 1, 2, 1, 2] * 4, [1] * 16 + [3] * 16]
    )
    quantised = np.array([[2, -2], [2, -2], [-2, 2], [-2, 2], [0, 0], [0, 0], [1, 1], [1, 1]] * 4)
    same_growth(gpu, coded(codes), lambda backend: stats_of(backend, quantised), 8)
    # Two halves with the same cut inside: their nodes tie. A third class that the first cut leaves even has an edge of 0.
    half, inside = np.repeat([1, 2], 8), np.tile([1, 2], 8)
    twins = np.stack([np.where(half == 1, 9, -9), np.where(half == inside, 10, -10)], axis=1)
    same_growth(gpu, coded([half, inside]), lambda backend: stats_of(backend, twins), 4)
    same_growth(gpu, coded([half, inside]), lambda backend: stats_of(backend, twins), 2)  # no memory behind the last bin
    even = np.column_stack([twins, np.ones(16, int)])
    same_growth(gpu, coded([half, inside]), lambda backend: stats_of(backend, even), 4)


def gini(gpu: EmulatedGpu) -> None:
    """A class tree: weights by class, some of them 0, so that a side may have rows and no weight."""
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 7, (5, 400))
    labels = (codes[0] // 2 + rng.integers(0, 2, 400)) % 3
    quantised = np.where(labels[:, None] == np.arange(3), (rng.integers(0, 4, 400) * (codes[1] > 1))[:, None], 0)
    same_growth(gpu, coded(codes), lambda backend: replace(stats_of(backend, quantised), criterion="gini"), 7)


def entropy(gpu: EmulatedGpu) -> None:
    """As `gini`: classes without weight, missing values on either side."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 7, (5, 400))
    labels = (codes[0] // 2 + rng.integers(0, 2, 400)) % 3
    quantised = np.where(labels[:, None] == np.arange(3), (rng.integers(0, 4, 400) * (codes[1] > 1))[:, None], 0)
    same_growth(gpu, coded(codes), lambda backend: replace(stats_of(backend, quantised), criterion="entropy"), 7)


def rebel(gpu: EmulatedGpu) -> None:
    """Two stumps side by side by what the best coefficients win, with missing values and counts, and one by ties."""
    gpu.limits = ONE_PROCESSOR
    rng = np.random.default_rng(4)
    n_rows = 900
    codes = rng.integers(0, 7, (5, n_rows))
    codes[1] = 1 + codes[0]  # the same cuts, but that missing values are apart
    quantised = [rng.integers(-40, 41, (n_rows, 3)) + 30 * (codes[2 * k] > 3)[:, None] * [1, -1, 0] for k in range(2)]
    counts = rng.integers(0, 3, n_rows)

    def batch(backend: Backend) -> Stats:
        alone = [stats_of(backend, one, counts, 200) for one in quantised]
        both = np.concatenate([backend.get(stats.quantised)[..., :4] for stats in alone])
        sums, sum_abs = (np.asarray(sum(getattr(s, name) for s in alone)) for name in ("sum", "sum_abs"))
        return Stats(backend.put(both), 0, sums, sum_abs, 200, "rebel")

    same_growth(gpu, coded(codes), batch, 2)
    nothing = np.tile([[3, -3]], (8, 1))  # no cut wins anything
    same_growth(
        gpu, coded([[1, 1, 1, 1, 2, 2, 2, 2]]), lambda backend: replace(stats_of(backend, nothing), criterion="rebel"), 2
    )


def project(gpu: EmulatedGpu) -> None:
    """Sums that depend on the order of the channels, of several rows for each thread; some below the floor."""
    gpu.limits = ONE_PROCESSOR
    rng = np.random.default_rng(5)
    state = rng.random((5000, 4)) * 10.0 ** -rng.choice([0, 3, 16, 270], (5000, 4))
    signs = rng.choice(np.array([-1, 1], np.int8), state.shape)
    coefficients = np.array([0.3, -1.7, 1e-3, 0.9])

    def results(backend: Backend) -> list[object]:
        magnitude, side, maximum = backend.project(backend.put(state), backend.put(signs), coefficients)
        return [backend.get(magnitude), backend.get(side), float(maximum)]

    for mine, theirs in zip(results(CudaBackend(gpu)), results(REFERENCE), strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()


def softmax(gpu: EmulatedGpu) -> None:
    """Probabilities of all kinds: derivatives and Newton trees, a step, and the losses of three candidates."""
    gpu.limits = ONE_PROCESSOR
    p, target, frequency_weight, weight_scale = random_rows(5000, 4, 9)
    pairs = np.array([(0, 2), (-1, 1), (1, 3)])
    rng = np.random.default_rng(9)
    codes, weights = rng.integers(0, 6, (3, 5000)), rng.integers(1, 9, 5000).astype(np.int32)
    codes[1] = 1 + target + (rng.random(5000) < 0.3)
    codes[2, :3] = 7  # rows with a gradient and no curvature
    leaf_indices = rng.integers(0, 5, (3, 5000)).astype(np.int32)
    multipliers = np.exp(rng.normal(size=(3, 5, 2)))
    p[:3] = [1.0, STATE_FLOOR, STATE_FLOOR, STATE_FLOOR]  # losses that are near the limit
    target[:3], weight_scale[:3] = 1, 1.0

    def results(backend: Backend) -> list[object]:
        own = (np.zeros_like(target), frequency_weight, np.ones_like(weight_scale))
        rows = SoftmaxRows(*(backend.put(a) for a in (p, target, frequency_weight, weight_scale)))
        counts = Counts(backend.put(weights), 2)
        stats = backend.softmax_statistics(rows, pairs, Shifts(11, 12), counts, backend.put(weights))
        plain = backend.softmax_statistics(rows, pairs, Shifts(11, 12), counts)
        found: list[object] = [backend.largest_miss(rows), *backend.softmax_sums(rows, 30), plain.sum, plain.sum_abs]
        found += [np.array(backend.get(plain.quantised))[:, :, :3], stats.sum, stats.sum_abs, backend.row_weights(plain)]
        for given in (None, backend.put(weights)):
            stats = backend.softmax_statistics(rows, pairs, Shifts(11, 12), counts, given)
            frontier = grow(backend, backend.load(coded(codes)), stats, 4)
            nodes = np.array(backend.read_nodes(frontier)[0])
            found += [np.ascontiguousarray(nodes[:, :, 2:6]), nodes[:, :, 8].copy()]
        fitted = SoftmaxRows(
            backend.put(np.array([[1.0 - 2.0**-53, 3e-18, 4e-18, 1e-18]])), *(backend.put(a[3:4]) for a in own)
        )
        found += backend.softmax_sums(fitted, 80)
        steps = SoftmaxSteps(backend.put(leaf_indices), pairs, multipliers)
        found.append(backend.softmax_losses(rows, steps, [[], [1], [2, 0]], 32))
        found += backend.softmax_summary(rows, 32)
        backend.softmax_update(rows.p, steps, [2, 0, 1])
        return [*found, backend.get(rows.p)]

    for mine, theirs in zip(results(CudaBackend(gpu)), results(REFERENCE), strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()


def labels(gpu: EmulatedGpu) -> None:
    """Margins of all sizes, ties, and a first row that is not 0."""
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(900, 3)) * 10.0 ** rng.integers(-2, 4, (900, 1))
    scores[:50], target = rng.integers(0, 2, (50, 3)), rng.integers(0, 3, 900)
    backend = CudaBackend(gpu)
    for weighting in ("logistic", "madaboost"):
        found = backend.weigh_labels(backend.put(scores), target, weighting, 5, 900)
        for mine, theirs in zip(found, label_weights(scores[5:], target[5:], weighting), strict=True):
            assert mine.tobytes() == theirs.tobytes()


def haar(gpu: EmulatedGpu) -> None:
    """Colour images of bytes and of integers up to the largest, more of them than blocks."""
    for dtype in (np.uint8, np.int32):
        images, features = pixels(COLOUR, 7, dtype), all_features(COLOUR)
        rows = np.arange(7)[::-1]
        with mock.patch.object(rectangles, "MOST_BLOCKS", 3):
            found = CudaBackend(gpu).rectangle_sums(images, rows, features)
        assert (found == rectangle_sums(images, rows, features)).all()


def exits(gpu: EmulatedGpu) -> None:
    """Rows that leave early, late and all at once, from trees in one piece and in many, in blocks of a tile and of all."""
    matrix, ensemble = exit_problem(517, 5, 3, 1)
    backend = CudaBackend(gpu)
    data = backend.load(matrix)
    for slab, how in ((2**20, launch), (400, launch), (2**20, in_one_block)):
        with mock.patch.multiple(cuda_rows, SLAB_BYTES=slab, launch=how):
            for rule in exit_rules(ensemble).values():
                scores = backend.put(np.zeros((517, 3)))
                left_at = backend.get(backend.predict_until(ensemble, data, scores, rule))
                expected_scores, expected = on_reference(matrix, ensemble, rule)
                assert left_at.tolist() == expected.tolist()
                assert backend.get(scores).tobytes() == expected_scores.tobytes()


def wide(gpu: EmulatedGpu) -> None:
    """Features in many launches and 40 channels, so that both are tiled."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 9, (9, 300))
    quantised = rng.integers(-50, 51, (300, 40))
    with mock.patch.object(cuda_growth, "plan_growth", tight_plan):
        same_growth(gpu, coded(codes), lambda backend: stats_of(backend, quantised), 6)


def parts(gpu: EmulatedGpu) -> None:
    """Two, then one of a word's four features in shared memory at a time."""
    rng = np.random.default_rng(8)
    codes = rng.integers(0, 200, (8, 700))
    codes[1:] %= np.array([[5], [9], [3], [1], [1], [7], [6]])  # two in the middle are constant, and do not count
    codes[[1, 3]] *= rng.random((2, 700)) < 0.4
    quantised = rng.integers(-9, 10, (700, 2)) + 5 * (codes[1] > 2)[:, None] - 4 * (codes[6:] > 3).T
    for groups, limits in ((2, SMALL), (1, LEAST)):
        of_group = 4 * 32 * 200
        assert groups * of_group <= limits.shared_per_block < 2 * groups * of_group
        gpu.limits = limits
        same_growth(gpu, coded(codes), lambda backend: stats_of(backend, quantised), 6)


def same_growth(gpu: EmulatedGpu, matrix: object, batch: Callable[[Backend], Stats], max_leaves: int) -> None:
    backend = CudaBackend(gpu)
    data = backend.load(matrix)  # type: ignore[arg-type]
    expected = grow(REFERENCE, matrix, batch(REFERENCE), max_leaves)
    for _ in range(2):  # the second time what has been recorded is queued again
        frontier = grow(backend, data, batch(backend), max_leaves)
        nodes, edges = backend.read_nodes(frontier)
        assert (nodes[:, :, :7] == expected.nodes[:, :, :7]).all()
        assert (nodes[:, :, 8] == expected.nodes[:, :, 8]).all()  # gains
        assert (edges == expected.edges).all()
        assert (backend.get(frontier.totals) == expected.totals).all()
        assert (backend.get(backend.node_of_rows(frontier)) == REFERENCE.node_of_rows(expected)).all()


def starts(gpu: EmulatedGpu) -> None:
    """Three stretches of some rows, the second empty, and some features; then others, from the same recording."""
    gpu.limits = ONE_PROCESSOR
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 5, (9, 900))
    quantised = rng.integers(-9, 10, (900, 3)) + 5 * (codes[0] > 2)[:, None]
    matrix, backend = coded(codes), CudaBackend(gpu)
    data, stats, expected_stats = backend.load(matrix), stats_of(backend, quantised), stats_of(REFERENCE, quantised)
    for size in (700, 300):
        chosen = rng.permutation(900)[:size].astype(np.int32)
        features, bounds = rng.permutation(9) < 6, np.array([0, 200, 200, size])
        expected = grow(REFERENCE, matrix, expected_stats, 4, GrowthScope(chosen, bounds, features))
        frontier = grow(backend, data, stats, 4, GrowthScope(backend.put(chosen), bounds, features))
        nodes, edges = backend.read_nodes(frontier)
        assert (nodes[:, :, :7] == expected.nodes[:, :, :7]).all()
        assert (nodes[:, :, 8] == expected.nodes[:, :, 8]).all()  # gains
        assert (edges == expected.edges).all()
        assert (backend.get(frontier.totals) == expected.totals).all()


def own_starts(gpu: EmulatedGpu) -> None:
    """Three Newton trees: from the same rows, and each from rows of its own."""
    gpu.limits = ONE_PROCESSOR
    rng = np.random.default_rng(5)
    quantised = rng.integers(1, 30, (3, 700, 3))
    quantised[:, :, 0] -= 15
    matrix, backend = coded(rng.integers(0, 5, (5, 700))), CudaBackend(gpu)
    sums, rows = quantised.sum(axis=(0, 1)), rng.permutation(700).astype(np.int32)

    def grown(backend: Backend, bounds: NDArray[np.int64] | None) -> Frontier:
        stats = Stats(backend.put(quantised.astype(np.int32)), 0, sums, sums[:2], 40, "newton")
        own = np.concatenate([rows[:600], rows[:200], rows]) if bounds is not None else rows[:300]
        return grow(backend, backend.load(matrix), stats, 4, GrowthScope(backend.put(own), bounds))

    for bounds in (None, np.array([0, 600, 800, 1500])):
        frontier, expected = grown(backend, bounds), grown(REFERENCE, bounds)
        nodes, edges = backend.read_nodes(frontier)
        assert (nodes[:, :, :7] == expected.nodes[:, :, :7]).all()
        assert (nodes[:, :, 8] == expected.nodes[:, :, 8]).all()  # gains
        assert (edges == expected.edges).all()
        assert (backend.get(frontier.totals) == expected.totals).all()


def rows(gpu: EmulatedGpu) -> None:
    """Statistics, reweighting and sums of 700 rows in several blocks."""
    gpu.limits = ONE_PROCESSOR
    rng = np.random.default_rng(2)
    n_rows, n_classes = 700, 3
    state = rng.random((n_rows, n_classes)) * 10.0 ** -rng.choice([0, 3, 250], (n_rows, n_classes))
    state[::7, 1] = 0.0
    signs = rng.choice(np.array([-1, 1], np.int8), state.shape)
    frequency_weight = rng.integers(1, 5, n_rows).astype(np.int32)
    leaf_index = rng.integers(0, 4, n_rows).astype(np.int32)
    counts = rng.integers(0, 9, n_rows).astype(np.int32)
    table = np.exp(rng.normal(scale=30.0, size=(4, 2, n_classes)))
    labels, units = rng.integers(0, n_classes, n_rows).astype(np.int32), rng.integers(1, 2**40, n_rows)
    scores = rng.integers(-1, 2, state.shape).astype(float)

    def results(backend: Backend) -> list[object]:
        held, s, r, g = (backend.put(a) for a in (state, signs, frequency_weight, leaf_index))
        stats = backend.statistics(
            held, s, r, int(frequency_weight.sum()), backend.maximum(held), Counts(backend.put(counts), 3)
        )
        flipped = backend.flip(stats, g, np.sign(table[:, 0] - 1 + 1e-9).astype(np.int8))
        sums = backend.leaf_sums(stats, g, 4)
        largest = float(backend.reweight(held, s, g, table))
        found = [*sums, flipped.sum, stats.sum, stats.sum_abs, largest, stats.shift]
        cell, data = backend.put(leaf_index), backend.load(coded([leaf_index, np.arange(n_rows) % 3]))
        for feature, cut, missing_left in ((1, 1, False), (0, 2, True), (-1, 3, True)):
            backend.set_bit(cell, 1, data, feature, cut, missing_left)
            found += [backend.get(cell).copy()]
        found += [
            backend.row_weights(stats),
            backend.get(stats.quantised)[..., :4],
            backend.get(flipped.quantised)[..., :4],
            backend.get(held),
        ]
        f = backend.put(scores)
        found += [int(backend.error(f, backend.put(target), backend.put(units))) for target in (labels, signs)]
        found.append(backend.confusion(f, backend.put(labels), backend.put(units)))
        backend.add_trees(f, [g, cell], [table[:, 0], table[:, 1]])
        return [*found, backend.get(f)]

    for mine, theirs in zip(results(CudaBackend(gpu)), results(REFERENCE), strict=True):
        assert np.asarray(mine).tobytes() == np.asarray(theirs).tobytes()


def many(gpu: EmulatedGpu) -> None:
    """Channels, counts and leaves whose sums are beyond int32; with carries between their halves."""
    gpu.limits = ONE_PROCESSOR
    rng = np.random.default_rng(11)
    codes, leaf_index = rng.integers(0, 6, (5, 900)), rng.integers(0, 3, 900).astype(np.int32)
    first, left, right = np.where(codes[:3] > 2, 1, -1)  # the second cuts are by other features than the first
    signal = 2 * first + 3 * np.where(first > 0, right, left)
    quantised = rng.integers(-(2**28), 2**28 + 1, (900, 3)) + 2**27 * signal[:, None] + 2**26
    counts = rng.integers(0, 2**30, 900)

    def batch(backend: Backend) -> Stats:
        return replace(stats_of(backend, quantised, counts, 2**37 + 1), wide=True)

    same_growth(gpu, coded(codes), batch, 6)
    backend = CudaBackend(gpu)
    sums = zip(backend.leaf_sums(batch(backend), backend.put(leaf_index), 3), leaf_sums_of(quantised, leaf_index), strict=True)
    assert all(mine.tolist() == theirs.tolist() for mine, theirs in sums)


def points(gpu: EmulatedGpu) -> None:
    """Distances over several blocks of features, equally near rows, rows that are dropped at the border, and three classes."""
    gpu.limits = ONE_PROCESSOR
    rng = np.random.default_rng(12)
    levels = rng.choice(np.array([0, 1, 130, 255], np.uint8), (2600, 19))
    levels[:9, 1:], levels[:9, 0] = 0, [100, 107, 108, 110, 111, 114, 115, 116, 95]
    levels[9:, 0] = 200
    levels[2000:] = levels[1200:1800]
    sides = np.where(np.arange(2600) < 1, 1, rng.choice(np.array([-1, -1, 1], np.int8), 2600)).astype(np.int8)[:, None]
    sides[1:9] = -1
    weights = rng.integers(1, 5, 2600).astype(np.int32)
    quantised = rng.integers(-(2**15), 2**15, (2600, 3)) * weights[:, None]

    kept = TrainingPoints(levels[:4], np.arange(4), np.zeros(4, np.int32))
    says = [Similarity(kept.take(some), radius, rng.normal(size=(2, 3))) for some, radius in (([0, 3], 0), ([1], 49), ([], 0))]
    similarities = Similarities.from_rounds([[one] for one in says], 3, 19)

    def results(backend: Backend) -> list[object]:
        rows, own_sides = backend.load_points(levels), backend.put(sides)
        to_anchor = backend.squared_distances(rows, levels[0])
        found = [backend.get(to_anchor), backend.get(backend.ring_index(to_anchor, np.array([0, 49, 100, 300_000])))]
        found += [backend.get(backend.nearer_index(to_anchor, 100)), backend.get(backend.nearer_index(to_anchor, 0))]
        others, nearest = backend.opposite_rows(to_anchor, own_sides, 1)
        for candidate in (3, nearest, 2599):
            to_candidate, apart = backend.squared_distances(rows, levels[candidate]), backend.get(to_anchor)[candidate]
            found.append(backend.get(backend.nearer_index(to_anchor, to_candidate)))
            found += [backend.drop_similar(others, to_anchor, to_candidate, int(apart)), backend.get(others).copy()]
        scores = backend.put(np.zeros((2600, 3)))
        backend.add_similarities(similarities, rows, scores, 0, 3)
        found.append(backend.get(scores))
        return [*found, nearest, backend.class_products(stats_of(backend, quantised), backend.put(weights))]

    for mine, theirs in zip(results(CudaBackend(gpu)), results(REFERENCE), strict=True):
        assert np.asarray(mine).tolist() == np.asarray(theirs).tolist()


def leaf_sums_of(quantised: NDArray[np.int64], leaf_index: NDArray[np.int32]) -> list[NDArray[np.int64]]:
    return [np.array([q[leaf_index == g].sum(axis=0) for g in range(3)]) for q in (quantised, abs(quantised))]


SWEEPS = {gini: "sweep_gini", rebel: "sweep_rebel", entropy: "sweep_entropy", softmax: "sweep_newton", many: "sweep_edge_wide"}
"""What a case launches of the five kernels of ``sweep.cu``, which take long to compile, if not `sweep_edge`."""


def planted(case: Callable[[EmulatedGpu], None], file: str, original: str, replacement: str) -> Mutant:
    launched = (SWEEPS.get(case, "sweep_edge"),) if file.startswith("sweep") else ()
    if file == "histogram":
        launched = ("histogram_wide" if case is many else "histogram",)
    return Mutant(file, original, replacement, case, kernels=launched)


MUTANTS = {
    # ---- points
    "a feature of a word is left out": planted(points, "points", "shift < 32; shift += 8", "shift < 24; shift += 8"),
    "one block of features": planted(points, "points", "b < n_blocks; ++b", "b < 1; ++b"),
    "rows of other blocks": planted(points, "points", "[(i64)b * n_rows + i]", "[i]"),
    "levels have signs": planted(points, "points", "(one >> shift & 255)", "(i8)(one >> shift & 255)"),
    "a radius is outside of its ring": planted(points, "points", "+ half - 1] < distances", "+ half - 1] <= distances"),
    "a tie goes to the second point": planted(points, "points", "distances[i] <= (limits", "distances[i] < (limits"),
    "the anchor's equals are others": planted(points, "points", "!= side && distances[i] > 0", "!= side"),
    "the same side": planted(points, "points", "is_other = sides[i] != side", "is_other = sides[i] == side"),
    "the highest of equally near rows": planted(
        points, "points", "~((u64)distance << 32 | (u64)row)", "~((u64)distance << 32 | (u64)(u32)~(u32)row)"
    ),
    "the nearest by a plain store": planted(points, "points", "atomicMax(nearest, value)", "*nearest = value"),
    "a row at the border stays": planted(points, "points", "(to_anchor - to_other) >= 4", "(to_anchor - to_other) > 4"),
    "a square in 32 bits": planted(points, "points", "+ fourfold * fourfold) rows", "+ (int)fourfold * (int)fourfold) rows"),
    "rows that are out come back": planted(points, "points", "if (rows[i] == 0) continue;", ""),
    "a weight counts twice": planted(points, "points", " / frequency_weight[i])", ")"),
    "products of a class with itself": planted(
        points, "points", "* quantised[i * n_channels + m]", "* quantised[i * n_channels + k]"
    ),
    "the second point is not looked at": planted(points, "points", "if (second >= 0) limit", "if (second > 99) limit"),
    "nothing is near without points": planted(points, "points", "int nearest = 0, limit = 0;", "int nearest = 1, limit = 0;"),
    "products in 32 bits": planted(
        points,
        "points",
        "(i64)(quantised[i * n_channels + k] / frequency_weight[i]) *",
        "(quantised[i * n_channels + k] / frequency_weight[i]) *",
    ),
    # ---- init_roots
    "every stretch begins at the first row": planted(starts, "init_roots", "start = bounds ? bounds[tree] : 0", "start = 0"),
    "other rows than were asked for": planted(starts, "init_roots", "started ? started[i] : (int)i", "(int)i"),
    "the sums of other rows": planted(
        starts, "init_roots", "quantised[(i64)rows[i] * n_channels + c]", "quantised[i * n_channels + c]"
    ),
    "the sums of all rows": planted(starts, "init_roots", "start + at.first_row()", "at.first_row()"),
    "the roots of the other tree, of rows of its own": planted(
        own_starts,
        "init_roots",
        "quantised += (i64)tree * quantised_stride * n_channels;",
        "quantised += (i64)tree * stride * n_channels;",
    ),
    "the roots of the other tree": planted(growth, "init_roots", "quantised += (i64)tree * quantised_stride * n_channels;", ""),
    "every feature is chosen": planted(starts, "init_roots", "chosen[f] ? own.n : 0", "own.n"),
    "the roots' histograms are not cleared": planted(growth, "init_roots", "i < sizes.n_cells; i += step", "i < 0; i += step"),
    "one tree's histogram is cleared": planted(
        growth, "init_roots", "histogram[tree * sizes.n_cells + i] = 0;", "histogram[i] = 0;"
    ),
    # ---- histogram
    "shared memory is not cleared": planted(
        growth, "histogram", "i < n_vectors; i += blockDim.x) ((int4*)cells)[i] = make_int4(0, 0, 0, 0);", "i < 0;) ;"
    ),
    "four cells too many are cleared": planted(growth, "histogram", "i < n_vectors;", "i <= n_vectors;"),
    "three of four cells are cleared": planted(
        growth, "histogram", "sizes.bins_stride * 32 / 4;", "sizes.bins_stride * 24 / 4;"
    ),
    "no barrier after clearing": planted(
        growth, "histogram", "channel_tile, sizes);\n    __syncthreads();", "channel_tile, sizes);"
    ),
    "no barrier before the flush": planted(
        growth, "histogram", "    __syncthreads();\n    if (lane.counted", "    if (lane.counted"
    ),
    "plain addition in shared memory": planted(
        growth,
        "histogram",
        "atomicAdd(bins[__byte_perm(codes[b], 0, 0x4440 + g)].cells[g], value[b]);",
        "*bins[__byte_perm(codes[b], 0, 0x4440 + g)].cells[g] += value[b];",
    ),
    "plain addition in global memory": planted(
        growth,
        "histogram",
        "int* sum, int count) { atomicAdd(sum, count); }",
        "int* sum, int count) { *sum += count; }",
    ),
    "idle threads leave early": planted(
        growth,
        "histogram",
        "    if (lane.counted != 0) add_turns",
        "    if (lane.counted == 0) return;\n    add_turns",
    ),
    "one batch too many": planted(growth, "histogram", "i < n_batches;)", "i <= n_batches;)"),
    "one batch too many is fetched": planted(growth, "histogram", "if (i < n_batches) next", "if (i <= n_batches) next"),
    "a batch is fetched before the last one is taken": planted(
        growth, "histogram", "const Batch now = next;", "const Batch& now = next;"
    ),
    "batches are not aligned": planted(growth, "histogram", "(int)(0 - (u64)rows / sizeof(int) & BATCH - 1)", "0"),
    "the rows behind whole batches are lost": planted(growth, "histogram", "i < n - n_batches * BATCH;", "i < before;"),
    "the rows before whole batches are taken from them": planted(
        growth, "histogram", "i < before ? i : i + n_batches", "i + n_batches"
    ),
    "all slots take the rows that are left": planted(
        growth, "histogram", "int i = lane.slot; i < n - n_batches", "int i = 0; i < n - n_batches"
    ),
    "half of the codes are skipped": planted(
        growth, "histogram", "(differs & 255u << 8 * g) != 0", "(differs & 1u << 8 * g) != 0"
    ),
    "a word's codes from its other end": planted(growth, "histogram", "0x4440 + g", "0x4440 + GROUPS - 1 - g"),
    "the first features of a word, instead of the next": planted(
        parts, "histogram", "GROUPS == 4 ? 0 : lane.shift", "0 * lane.shift"
    ),
    "the skipped codes of a word's first features": planted(parts, "histogram", "skipped[w] >> shift", "skipped[w]"),
    "a word's first features count, instead of the next": planted(
        parts, "histogram", "counted >> shift & ~0u", "counted & ~0u"
    ),
    "only the last feature's bins are emptied": planted(growth, "histogram", "n_bins = max(n_bins, own.n);", "n_bins = own.n;"),
    "a feature's cells are emptied into all of its word": planted(
        growth, "histogram", "cells[bin].cells[g][0]", "cells[bin].cells[0][0]"
    ),
    "the lanes left over add too": planted(
        growth, "histogram", "row_of_lane >= rows_at_once ||", "row_of_lane > rows_at_once ||"
    ),
    "rows of the other tree": planted(
        growth, "histogram", "rows += (i64)tree * sizes.stride + r[START] + begin;", "rows += r[START] + begin;"
    ),
    "the other tree's statistics, for rows of its own": planted(
        own_starts,
        "histogram",
        "quantised += (i64)tree * sizes.quantised_stride * n_channels;",
        "quantised += (i64)tree * sizes.stride * n_channels;",
    ),
    "the other tree's statistics": planted(
        growth, "histogram", "quantised += (i64)tree * sizes.quantised_stride * n_channels;", ""
    ),
    "features of few bins do not count": planted(
        growth, "histogram", "bins_of(bins, 4 * w + j).n > 0", "bins_of(bins, 4 * w + j).n > 6"
    ),
    "a tile's bins start at 0": planted(wide, "histogram", "own.offset - first_bin", "own.offset"),
    "channels of the first tile only": planted(
        wide, "histogram", "channel_tile * channels_per_tile + place", "0 * channels_per_tile + place"
    ),
    # ---- siblings
    "siblings are added": planted(growth, "sweep", "other[i] -= own[i]", "other[i] += own[i]"),
    "subtracted before the bin is there": planted(
        growth, "sweep", "- sum_of(sums, n_channels, c);\n    __syncthreads();", "- sum_of(sums, n_channels, c);"
    ),
    "swept before the parent's is subtracted": planted(
        growth, "sweep", "other[i] -= own[i];\n    __syncthreads();", "other[i] -= own[i];"
    ),
    "no barrier before the rest is known": planted(
        growth, "sweep", "n_channels, c, sum);\n    }\n    __syncthreads();", "n_channels, c, sum);\n    }"
    ),
    "warps overwrite each other's sums": planted(growth, "sweep", "add_to_sum(sums, n_channels, c, sum);", "sums[c] += sum;"),
    "the skipped bin of the larger sibling alone": planted(
        growth, "sweep", "first != ROOT ? SMALLER : first;", "first != ROOT ? LARGER : first;"
    ),
    "the right child's bins in the left one's slot": planted(wide, "sweep", ": member == RIGHT_CHILD;", ": 0;"),
    "only the left child's skipped bin": planted(
        wide, "sweep", "|| first == ROOT ? counted : RIGHT_CHILD)", "|| first == ROOT ? counted : LEFT_CHILD)"
    ),
    # ---- the last block
    "the first block chooses": planted(growth, "sweep", "== (int)gridDim.x - 1;", "== 0;"),
    "every block chooses": planted(growth, "sweep", "if (!shared.is_last) return;", ""),
    "tickets are left as they are": planted(growth, "sweep", "if (threadIdx.x == 0) tickets[tree] = 0;", ""),
    "one ticket for all trees": planted(growth, "sweep", "atomicAdd(&tickets[tree], 1)", "atomicAdd(&tickets[0], 1)"),
    "the other child's features": planted(growth, "sweep", "of_features + m * n_features, found", "of_features, found"),
    "the trees share what was found": planted(growth, "sweep", "+ (i64)2 * tree * n_features;", "+ 0;"),
    "the children share the best so far": planted(wide, "sweep", "found + 2 * (2 * tree + m)", "found + 2 * (2 * tree)"),
    # ---- sweep
    "the highest of equal places": planted(ties, "sweep", "b.place < a.place", "b.place > a.place"),
    "the constant classifier loses ties": planted(
        ties, "sweep", "best.score > shared.score_to_beat ?", "best.score >= shared.score_to_beat ?"
    ),
    "no barrier after the warps' sums": planted(
        growth,
        "sweep",
        "of_warp[warp * n_channels + c] = sum;\n    }\n    __syncthreads();",
        "of_warp[warp * n_channels + c] = sum;\n    }",
    ),
    "warps do not go on from those before": planted(growth, "sweep", "            before += sum;\n", ""),
    "no barrier behind the sums before a warp": planted(
        growth, "sweep", "before += sum;\n        }\n    }\n    __syncthreads();", "before += sum;\n        }\n    }"
    ),
    "too small for eight warps": planted(growth, "sweep", "Best of_warp[N_WARPS];", "Best of_warp[3];"),
    "a shuffle in a branch": planted(
        growth,
        "sweep",
        "const Sum before = __shfl_up_sync(FULL_WARP, left, d);\n        if (lane >= d) left += before;",
        "if (lane >= d) left += __shfl_up_sync(FULL_WARP, left, d);",
    ),
    "missing values always go left": planted(growth, "sweep", "right_allowed = missing;", "right_allowed = false;"),
    "the smallest leaf does not matter": planted(
        growth, "sweep", "left_allowed = with_missing >= min_count &&", "left_allowed = true ||"
    ),
    "bins behind the last": planted(ties, "sweep", "is_cut = bin >= 1 && bin < n_bins", "is_cut = bin >= 1 && bin <= n_bins"),
    "edges by plain additions": planted(
        growth, "sweep", "add_to_sum(left, n_channels, i % n_channels, h[i]);", "left[i % n_channels] += h[i];"
    ),
    "a later launch forgets the earlier": planted(wide, "sweep", "score = *best_so_far;", "score = 0;"),
    # ---- criteria
    "the right side's purity is the left's": planted(
        gini, "sweep", "purity(right_squares, right_sum) -", "purity(left_squares, left_sum) -"
    ),
    "squares of a wrong side": planted(gini, "sweep", "const Sum right = total - left;", "const Sum right = left - total;"),
    "the classes share a sum of absolute values": planted(
        rebel, "sweep", "const i64 t = *sum_abs++;", "const i64 t = *sum_abs;"
    ),
    "the sum of absolute values of the other tree": planted(
        rebel, "sweep", "sum_abs + (i64)blockIdx.y * sizes.n_classes", "sum_abs"
    ),
    "the left side for the edge": planted(rebel, "sweep", "loss(t, total - 2 * left)", "loss(t, total - left)"),
    "the loss, not what is won of it": planted(rebel, "sweep", "gain = whole - cut;", "gain = cut;"),
    "a root in single precision": planted(rebel, "sweep", "return __dsqrt_rn(", "return __fsqrt_rn((float)"),
    "the whole's weight for the right side": planted(
        entropy, "sweep", "bits(total - left, whole_weight - left_weight)", "bits(total - left, whole_weight)"
    ),
    "missing values have no weight": planted(
        entropy,
        "sweep",
        "missing_left.weigh(total, left + h[MISSING_CODE * n_channels + c]);",
        "missing_left.weigh(total, left);",
    ),
    "votes where there are none": planted(gini, "partition", "if (c < n_classes) {", "if (c < n_channels) {"),
    # ---- pop_best_leaf
    "the highest of equal nodes": planted(ties, "pop_best_leaf", "node < best)", "node > best)"),
    "most lanes are not asked": planted(ties, "pop_best_leaf", "for (int d = 16; d; d >>= 1)", "for (int d = 1; d; d >>= 1)"),
    "the key is closed too early": planted(growth, "pop_best_leaf", "    __syncwarp();", ""),
    # ---- partition
    "missing values are the smallest": planted(
        growth, "partition", "code == MISSING_CODE ? missing_left : code <= cut", "code <= cut"
    ),
    "blocks overwrite each other's rows": planted(
        growth, "partition", "first_left = atomicAdd(&cursors[0], n_left);", "first_left = cursors[0]; cursors[0] += n_left;"
    ),
    "no barrier before the places are reserved": planted(
        growth,
        "partition",
        "__popc(right & below);\n        __syncthreads();",
        "__popc(right & below);",
    ),
    "cursors are left as they are": planted(growth, "partition", "cursors[2 * tree] = cursors[2 * tree + 1] = 0;", ""),
    "both children in one histogram": planted(
        growth, "partition", "r[SLOT] = left_is_smaller ? node[SLOT] : sizes.slot;", "r[SLOT] = sizes.slot;"
    ),
    "the smaller child counts into an old histogram": planted(
        growth, "partition", "histogram[tree * sizes.n_cells + i] = 0;", ""
    ),
    "the first tree's histogram is cleared for all": planted(
        growth, "partition", "histogram[tree * sizes.n_cells + i] = 0;", "histogram[i] = 0;"
    ),
    "the cursor is cleared too early": planted(growth, "partition", "    __syncwarp();", ""),
    "a zero edge votes for": planted(ties, "partition", "votes_for_right = edge > 0", "votes_for_right = edge >= 0"),
    # ---- the roots' sum_abs
    "the sum of absolute values has a sign": planted(
        rebel, "init_roots", "weight += value < 0 ? -value : value;", "weight += value;"
    ),
    "the counts have a sum of absolute values": planted(rebel, "init_roots", "c < n_classes ? weight : 0", "weight"),
    "one sum of absolute values for all trees": planted(rebel, "init_roots", "sum_abs + (i64)tree * n_classes);", "sum_abs);"),
    # ---- project
    "the last channel first": planted(
        project,
        "project",
        "const double product = state[i * n_classes + c] * coefficients[c];",
        "const double product = state[i * n_classes + n_classes - 1 - c] * coefficients[n_classes - 1 - c];",
    ),
    "one row a thread": planted(project, "project", "i += (i64)gridDim.x * blockDim.x", "i += n_rows"),
    "nothing is too small": planted(project, "project", "size = size >= lowest ? size : 0.0;", ""),
    "signs are forgotten": planted(project, "project", "> 0 ? product : -product", "> 1 ? -product : product"),
    # ---- label weights
    "the rows before the first": planted(labels, "label_weights", "(sizes.first_row + i)", "i"),
    "a tie is won": planted(labels, "label_weights", "|| (margin == 0.0 && k < y)", ""),
    "the own class has a weight": planted(labels, "label_weights", "weights[k] = 0;\n                continue;", ""),
    "the weight of the other side": planted(
        labels, "label_weights", "margin > 0.0 ? smaller : 1.0", "margin < 0.0 ? smaller : 1.0"
    ),
    "every weight is logistic": planted(labels, "label_weights", "sizes.madaboost ?", "false ?"),
    "the loss of a weight of 1": planted(labels, "label_weights", "(right > 0.5 ? right : 0.5)", "right"),
    "the last loss alone": planted(labels, "label_weights", "loss += __double2ll_rn", "loss = __double2ll_rn"),
    "an exponential without its square": planted(labels, "label_weights", "tail + r * r * series", "tail"),
    "an exponential's series is one short": planted(
        labels, "label_weights", "i < N_EXP_COEFFICIENTS", "i < N_EXP_COEFFICIENTS - 1"
    ),
    "the exponential's least argument": planted(labels, "label_weights", "x < -800.0 ? -800.0 : x", "x"),
    # ---- haar
    "the border is what was there": planted(haar, "haar", "at[0] = 0;", ""),
    "the border is a pixel": planted(haar, "haar", "if (x > 0) sum", "sum"),
    "the first channel alone": planted(haar, "haar", "* n_channels + channel, sizes.n_bytes", "* n_channels, sizes.n_bytes"),
    "pixels are bytes": planted(haar, "haar", "n_bytes == 1 ?", "true ?"),
    "lines of the first channel alone": planted(haar, "haar", "line < n_channels * (height + 1)", "line < height + 1"),
    "the first image alone": planted(haar, "haar", "const i64 image = i *", "const i64 image = 0 *"),
    "no barrier before the lines": planted(
        haar, "haar", "        __syncthreads();\n        for (int line", "        for (int line"
    ),
    "no barrier before the features": planted(
        haar, "haar", "        __syncthreads();\n        for (int f", "        for (int f"
    ),
    "no barrier before the next image": planted(haar, "haar", "__syncthreads();  // the next", "// the next"),
    "the last corner is left out": planted(haar, "haar", "j < offset[f + 1];", "j < offset[f + 1] - 1;"),
    # ---- predict_until
    "a row leaves by a tie": planted(exits, "predict", "row[leader] - row[k] > needed", "row[leader] - row[k] >= needed"),
    "the margins of the first checkpoint": planted(exits, "predict", "* sizes.checkpoint_stride;", "* 0;"),
    "the margins of a piece's first checkpoint": planted(exits, "predict", "(i64)(sizes.first_checkpoint + c) *", "(i64)c *"),
    "the margins of another leader": planted(exits, "predict", "(i64)leader * leader_stride", "(i64)leader * other_stride"),
    "rows leave with a piece of the trees": planted(exits, "predict", "all = sizes.ends && c ==", "all = c =="),
    "rows that have left come back": planted(
        exits, "predict", "if (left_at[base + r] < 0) inside[n_inside++] = r;", "inside[n_inside++] = r;"
    ),
    "checkpoints count from each piece": planted(exits, "predict", "= sizes.first_checkpoint + c;", "= c;"),
    "rows that stay are not moved up": planted(exits, "predict", "inside[kept++] = inside[j];", "kept++;"),
    "no barrier before scores are compared": planted(
        exits, "predict", "__syncthreads();  // before the next batch's leaves, and before the scores are compared", ""
    ),
    "no barrier before the next tile's list": planted(exits, "predict", "__syncthreads();  // before the next tile's list", ""),
    # ---- softmax
    "the shift of the largest miss is ignored": planted(softmax, "softmax", "largest ? first_shift(*largest) : shift", "shift"),
    "a candidate without trees has one": planted(
        softmax,
        "softmax",
        "stop = candidates ? candidates[candidate + 1] : 0;",
        "stop = candidates ? candidates[candidate + 1] : 1;",
    ),
    "1 - p of a p near 1": planted(softmax, "softmax", "if (p[k] <= 0.5) return 1.0 - p[k];", "return 1.0 - p[k];"),
    "the class is among the others": planted(softmax, "softmax", "if (j != k) others", "others"),
    "every class is the row's": planted(softmax, "softmax", "g = k == target[i] ? missing : own[k];", "g = missing;"),
    "gradients have one sign": planted(
        softmax, "softmax", "(k == target[i] ? missing : -own[k])", "(k == target[i] ? missing : own[k])"
    ),
    "the base class is forgotten": planted(
        softmax, "softmax", "g -= __double2ll_rn(f * (base == target[i] ? missing_base : -own[base]) * gradient_scale);", ""
    ),
    "the curvature without the product": planted(softmax, "softmax", " + 2.0 * (own[base] * own[k])", ""),
    "rows are not repeated": planted(softmax, "softmax", "        g *= frequency_weight[i];\n", ""),
    "the base class goes the same way": planted(softmax, "softmax", "own[base] *= multiplier[1]", "own[base] *= multiplier[0]"),
    "probabilities sink below the floor": planted(
        softmax, "softmax", "own[k] = share > lowest ? share : lowest;", "own[k] = share;"
    ),
    "losses without a floor": planted(
        softmax, "softmax", "share > lowest ? share : lowest, sizes.coefficients", "share, sizes.coefficients"
    ),
    "a mantissa on the other side": planted(softmax, "softmax", "m < 0x1.6a09e667f3bcdp-1", "m < 0.5"),
    "a series is one short": planted(softmax, "softmax", "i < N_COEFFICIENTS", "i < N_COEFFICIENTS - 1"),
    "losses are added by hand": planted(
        softmax,
        "softmax",
        "if (loss) atomicAdd((u64*)&losses[(i64)candidate * n_classes + k], loss);",
        "losses[(i64)candidate * n_classes + k] += loss;",
    ),
    "no barrier before the losses": planted(softmax, "softmax", "of_class[k] = 0;\n    __syncthreads();", "of_class[k] = 0;"),
    "half of the losses' memory is cleared": planted(softmax, "softmax", "k < 2 * n_classes;", "k < n_classes;"),
    "a carry is lost": planted(softmax, "softmax", "(u32)(value >> 32) + (sum < low)", "(u32)(value >> 32)"),
    "a carry into every sum": planted(softmax, "softmax", "(sum < low)", "(sum >= low)"),
    "upper halves by plain additions": planted(
        softmax, "softmax", "if (high != 0) atomicAdd(&halves[n + e], high);", "halves[n + e] += high;"
    ),
    "an upper half is the next sum's lower one": planted(
        softmax, "softmax", "(u64)halves[n + e] << 32", "(u64)halves[e + 1] << 32"
    ),
    "a side without curvature": planted(softmax, "sweep", "if (left_h <= 0 || left_h >= all_h) return -1;", ""),
    "the gain of the left alone": planted(
        softmax, "sweep", "gain(left_g, left_h) + gain(all_g - left_g, all_h - left_h)", "gain(left_g, left_h)"
    ),
    # ---- rows
    "no barrier in the sums of a channel": planted(
        rows, "quantise", "of_thread[threadIdx.x] = value;\n    __syncthreads();", "of_thread[threadIdx.x] = value;"
    ),
    "a block's sum by plain addition": planted(
        rows, "quantise", "atomicAdd((u64*)&total[channel], (u64)sum);", "total[channel] += sum;"
    ),
    "no barrier in the maximum": planted(
        rows, "reweight", "of_warp[threadIdx.x / 32] = value;\n    __syncthreads();", "of_warp[threadIdx.x / 32] = value;"
    ),
    "weights sink below the floor": planted(rows, "reweight", "product = product > lowest ? product : lowest;", ""),
    "ties go to the highest class": planted(
        rows, "reduce", "k < label ? score >= own : score > own", "k < label ? score > own : score >= own"
    ),
    "rows without a cut go left": planted(rows, "predict", "feature < 0 ? 256 :", "feature < 0 ? 1 :"),
    "a missing value always sets its bit": planted(
        rows, "predict", "code == MISSING_CODE ? missing_left != 0 : code <= cut", "code <= cut"
    ),
    "the first tree alone": planted(
        rows, "predict", "t < n_trees; ++t)\n                score", "t < 1; ++t)\n                score"
    ),
    "all trees have the values of the first": planted(rows, "predict", "(i64)(first[t] + (", "(i64)(first[0] + ("),
    "all trees have the leaves of the first": planted(
        rows, "predict", "((const int*)leaf_indices[t])[i]", "((const int*)leaf_indices[0])[i]"
    ),
    "other bits are lost": planted(rows, "predict", "others = cell[i] & ~(1 << bit)", "others = 0"),
    "the sum of absolute values of all channels": planted(softmax, "reduce", "int c = first_class;", "int c = 0;"),
    "a row's sum of absolute values has signs": planted(rows, "reduce", "sum += value < 0 ? -value : value;", "sum += value;"),
    "the count is part of a row's sum of absolute values": planted(
        rows,
        "reduce",
        "c < n_classes; ++c) {\n            const int value = quantised[i",
        "c < n_channels; ++c) {\n            const int value = quantised[i",
    ),
    "the predicted class is the last of equals": planted(
        rows, "reduce", "other == best && k < predicted", "other == best && k > predicted"
    ),
    "counts are not cleared": planted(rows, "reduce", "counts_of_block[e] = 0;", ";"),
    "no barrier after clearing the counts": planted(
        rows, "reduce", "counts_of_block[e] = 0;\n    __syncthreads();", "counts_of_block[e] = 0;"
    ),
    "no barrier before the counts are added": planted(
        rows, "reduce", "if (!in_shared) return;\n    __syncthreads();", "if (!in_shared) return;"
    ),
    "counts by plain additions": planted(
        rows,
        "reduce",
        "const u32 low = (u32)value, sum = atomicAdd(&halves[e], low) + low;",
        "const u32 low = (u32)value, sum = halves[e] += low;",
    ),
    "counts of small units only": planted(rows, "reduce", "if (high != 0) atomicAdd(&halves[n + e], high);", ""),
    "wrong predictions of the first rows only": planted(
        rows, "reduce", "add_to_channel(Pairs(1), 0, sum, wrong);", "if (threadIdx.x == 0) atomicAdd((u64*)wrong, (u64)sum);"
    ),
    "sums lose their sign": planted(
        rows,
        "reduce",
        "(u64)(i64)sum_of(cells, n_cells, e));",
        "(u64)(u32)sum_of(cells, n_cells, e));",
    ),
    # ---- siblings
    "the sibling loses its place": planted(together, "siblings", "*of_parent = other;", ""),
    "the counted child is not kept": planted(together, "siblings", "kept[slot * stride + first + i] = own;", ""),
    "children change sides": planted(together, "siblings", "children[(1 - side) *", "children[side *"),
    # ---- sums beyond int32
    "the lower bits without the last": planted(many, "histogram", ": value & 0xffff;", ": value & 0xfffe;"),
    "the upper bits without a sign": planted(many, "histogram", "? value >> 16", "? (int)((u32)value >> 16)"),
    "all bits are lower ones": planted(many, "histogram", "counter % 2 != 0;", "false;"),
    "the upper bits are worth too little": planted(many, "histogram", "(i64)count * 65536", "(i64)count * 65535"),
    "bins of half the size": planted(
        many, "histogram", "at(of_feature[g], bin, sizeof(Sum) / sizeof(int) * lane", "at(of_feature[g], bin, lane"
    ),
    "plain addition to 64 bits": planted(
        many, "histogram", "atomicAdd((u64*)sum, (u64)(lane.is_upper", "*(u64*)sum += ((u64)(lane.is_upper"
    ),
    "the skipped bin in 32 bits": planted(many, "sweep_wide", "= (Sum)totals[c] -", "= (int)totals[c] -"),
    "totals in 32 bits": planted(many, "sweep_wide", "const Sum total = (Sum)totals[c],", "const Sum total = (int)totals[c],"),
    "the smallest leaf in 32 bits": planted(many, "sweep_wide", "= (Sum)sizes.min_count;", "= (int)sizes.min_count;"),
    "edges in 32 bits": planted(many, "sweep_wide", "magnitude(i64 edge)", "magnitude(i64 edge, int)"),
    "lower halves of sums only": planted(
        many, "sweep_wide", "(i64)sum_of_halves((const u32*)sums, n, e)", "(i64)((const u32*)sums)[e]"
    ),
    "carries are lost": planted(many, "sweep_wide", "(value >> 32) + (sum < low)", "(value >> 32)"),
    "sums of leaves are added by hand": planted(
        many, "reduce", "add_to_halves((u32*)sums, n, e, (u64)value);", "sums[e] += value; (void)n;"
    ),
}


EXPECTED = {
    **dict.fromkeys(["one batch too many is fetched"], "asan"),
    **dict.fromkeys(
        [
            "plain addition in shared memory",
            "plain addition in global memory",
            "subtracted before the bin is there",
            "warps overwrite each other's sums",
            "the first block chooses",
            "every block chooses",
            "edges by plain additions",
            "the key is closed too early",
            "blocks overwrite each other's rows",
            "the cursor is cleared too early",
            "losses are added by hand",
            "upper halves by plain additions",
            "plain addition to 64 bits",
            "sums of leaves are added by hand",
            "a block's sum by plain addition",
            "counts by plain additions",
        ],
        "tsan",
    ),
}
"""What only a sanitizer catches: the other modes are tried if it does not."""


BY_DEFAULT = {
    # ---- sweep_wide and siblings
    "carries are lost",
    "the sibling loses its place",
    # ---- init_roots
    "every stretch begins at the first row",
    "the roots of the other tree, of rows of its own",
    "the roots' histograms are not cleared",
    "the sum of absolute values has a sign",
    # ---- histogram
    "shared memory is not cleared",
    "no barrier before the flush",
    "plain addition in global memory",
    "idle threads leave early",
    "one batch too many is fetched",
    "batches are not aligned",
    "the skipped codes of a word's first features",
    "the other tree's statistics, for rows of its own",
    "a tile's bins start at 0",
    # ---- sweep
    "siblings are added",
    "warps overwrite each other's sums",
    "tickets are left as they are",
    "the highest of equal places",
    "too small for eight warps",
    "a shuffle in a branch",
    "squares of a wrong side",
    "a root in single precision",
    "missing values have no weight",
    "a side without curvature",
    # ---- pop_best_leaf and partition
    "the highest of equal nodes",
    "the key is closed too early",
    "missing values are the smallest",
    "blocks overwrite each other's rows",
    "votes where there are none",
    # ---- haar, project, label_weights, predict_until and softmax
    "the first channel alone",
    "no barrier before the features",
    "the last channel first",
    "a tie is won",
    "an exponential's series is one short",
    "rows leave with a piece of the trees",
    "no barrier before scores are compared",
    "the class is among the others",
    "a carry is lost",
    "no barrier before the losses",
    # ---- quantise, reweight, predict and reduce
    "no barrier in the sums of a channel",
    "a block's sum by plain addition",
    "no barrier in the maximum",
    "weights sink below the floor",
    "rows without a cut go left",
    "other bits are lost",
    "a tie goes to the second point",
    "the nearest by a plain store",
    "products in 32 bits",
    "counts are not cleared",
    "counts by plain additions",
    "the predicted class is the last of equals",
}
"""Of every file and kind of error; the others are for the nights."""
CASES = {mutant.case.__name__: mutant.case for mutant in MUTANTS.values()}
QUICK_CASES = {"": tuple(CASES), "asan": tuple(CASES), "tsan": ("rows", "ties")}
"""Those that are run by default without an error, by mode; with all threads watched, most take seconds."""


def run(name: str) -> None:
    MUTANTS[name].run()


def run_unchanged(name: str) -> None:
    for order in ("forward", "reverse", "random"):
        CASES[name](EmulatedGpu(order, seed=1))


@pytest.fixture(scope="module")
def failures(request: pytest.FixtureRequest) -> dict[str, dict[str, str | None]]:
    """Of all mutants that are asked for."""
    return mutants.failures(f"{__name__}:run", mutants.asked_for(request, "test_mutant_is_caught"), EXPECTED)


@pytest.mark.slow
@pytest.mark.parametrize("mode", mutants.MODES)
def test_no_mode_objects_to_the_kernels(mode: str) -> None:
    require(sanitized.unavailable(mode))
    cases = QUICK_CASES[mode]
    assert forked.outcomes(mode, f"{__name__}:run_unchanged", cases) == dict.fromkeys(cases)


@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", [mode for mode in mutants.MODES if set(QUICK_CASES[mode]) < CASES.keys()])
def test_no_mode_objects_to_the_other_cases_either(mode: str) -> None:
    require(sanitized.unavailable(mode))
    cases = sorted(CASES.keys() - QUICK_CASES[mode])
    assert forked.outcomes(mode, f"{__name__}:run_unchanged", cases) == dict.fromkeys(cases)


@pytest.mark.slow
@pytest.mark.parametrize("name", mutants.named(MUTANTS, BY_DEFAULT))
def test_mutant_is_caught(name: str, failures: dict[str, dict[str, str | None]]) -> None:
    for mode in mutants.MODES:
        require(sanitized.unavailable(mode))
    found = {mode: failure for mode, failure in failures[name].items() if failure}
    assert found
    assert not any(word in failure for failure in found.values() for word in ("CompileError", "KeyError", " times in "))


def test_what_is_said_of_mutants_is_of_mutants_that_exist() -> None:
    assert EXPECTED.keys() | BY_DEFAULT <= MUTANTS.keys()


def test_errors_in_every_file_are_planted_by_default() -> None:
    assert {MUTANTS[name].file for name in BY_DEFAULT} == {mutant.file for mutant in MUTANTS.values()}
    assert {MUTANTS[name].case for name in BY_DEFAULT} == {mutant.case for mutant in MUTANTS.values()}
    assert {EXPECTED.get(name) for name in BY_DEFAULT} == {None, *EXPECTED.values()}

"""The primitives of softmax boosters: every backend against the reference, and the reference against what it stands for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import GAIN, LEFT, as_float
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.reference.softmax import complements
from gpuboost.backends.statistics import Counts, Shifts, SoftmaxRows, SoftmaxSteps, Stats
from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.ensemble import Ensemble
from gpuboost.fixedpoint import STATE_FLOOR
from gpuboost.learners.growth import grow
from tests.backends.test_conformance import (
    Case,
    assert_same_stats,
    assert_same_trees,
    fit_candidates,
    random_codes,
    same,
)
from tests.candidates import Once, thinned
from tests.problems import coded, fit

REFERENCE = NumpyBackend()
SHAPES = [(1, 2), (2, 3), (7, 4), (100, 3), (513, 5), (300, 11), (2000, 2)]


def random_rows(n_rows: int, n_classes: int, seed: int = 0) -> tuple[NDArray[np.float64], ...]:
    """Probabilities, targets, repeats and factors: fresh ones, rows that are nearly certain (right and wrong), tiny entries."""
    rng = np.random.default_rng([n_rows, n_classes, seed])
    scores = rng.normal(size=(n_rows, n_classes)) * rng.choice([0.0, 1.0, 30.0, 200.0], (n_rows, 1))
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = np.maximum(p / p.sum(axis=1, keepdims=True), STATE_FLOOR)
    weight_scale = rng.choice([1.0, 0.3, 1e-9], n_rows)
    weight_scale[rng.integers(n_rows)] = 1.0
    frequency_weight = rng.integers(1, 40, n_rows).astype(np.int32)
    return p, rng.integers(0, n_classes, n_rows).astype(np.int32), frequency_weight, weight_scale


def on(backend: Backend, arrays: tuple[NDArray[np.float64], ...]) -> SoftmaxRows:
    return SoftmaxRows(*(backend.put(a) for a in arrays))


def pairs_of(n_classes: int, seed: int) -> NDArray[np.int64]:
    """Some pairs of classes, some classes without a base."""
    every = [(b, k) for b in range(-1, n_classes) for k in range(n_classes) if b != k]
    rng = np.random.default_rng(seed)
    return np.array([every[i] for i in rng.permutation(len(every))[:9]], np.int64)


# ---- conformance -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_derivatives(candidate: Backend, shape: tuple[int, int], weighted: bool) -> None:
    arrays, pairs = random_rows(*shape), pairs_of(shape[1], 1)
    rows, expected = on(candidate, arrays), on(REFERENCE, arrays)
    assert candidate.largest_miss(rows) == REFERENCE.largest_miss(expected)
    for shift in (0, 17, 40):
        sums, theirs = candidate.softmax_sums(rows, shift), REFERENCE.softmax_sums(expected, shift)
        assert all(same(one, other) for one, other in zip(sums, theirs, strict=True))
    rng = np.random.default_rng(2)
    counts, weights = (rng.integers(0, 2**20 // shape[0] + 1, shape[0]).astype(np.int32) for _ in range(2))

    def statistics(backend: Backend, rows: SoftmaxRows) -> Stats:
        given = backend.put(weights) if weighted else None
        return backend.softmax_statistics(rows, pairs, Shifts(13, 15), Counts(backend.put(counts), 3), given)

    stats = statistics(candidate, rows)
    assert_same_stats(candidate, stats, statistics(REFERENCE, expected))
    assert (stats.criterion, stats.n_channels, stats.n_classes) == ("newton", 3 + weighted, 2 + weighted)
    assert same(candidate.get(rows.p), arrays[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_losses_of_candidates(candidate: Backend, shape: tuple[int, int]) -> None:
    arrays, pairs = random_rows(*shape), pairs_of(shape[1], 3)
    rng = np.random.default_rng(4)
    leaf_indices = rng.integers(0, 7, (len(pairs), shape[0])).astype(np.int32)
    multipliers = np.exp(rng.normal(scale=3.0, size=(len(pairs), 7, 2)))
    candidates = [[], [0], list(range(len(pairs))), list(range(len(pairs)))[::2]]
    rows, expected = on(candidate, arrays), on(REFERENCE, arrays)
    found = candidate.softmax_losses(rows, SoftmaxSteps(candidate.put(leaf_indices), pairs, multipliers), candidates, 32)
    assert found.shape == (4, shape[1])
    steps = SoftmaxSteps(leaf_indices, pairs, multipliers)
    assert same(found, REFERENCE.softmax_losses(expected, steps, candidates, 32))
    assert same(candidate.get(rows.p), arrays[0])


@pytest.mark.parametrize("shape", SHAPES)
def test_step(candidate: Backend, shape: tuple[int, int]) -> None:
    p, pairs = random_rows(*shape)[0], pairs_of(shape[1], 5)
    rng = np.random.default_rng(5)
    leaf_indices = rng.integers(0, 6, (len(pairs), shape[0])).astype(np.int32)
    multipliers = np.exp(rng.normal(scale=20.0, size=(len(pairs), 6, 2)))
    stacked = candidate.stack([candidate.put(leaf_index) for leaf_index in leaf_indices])
    assert same(candidate.get(stacked), leaf_indices)
    for trees in ([], [1], list(range(len(pairs)))[::-1]):
        mine, theirs = candidate.put(p), REFERENCE.put(p)
        candidate.softmax_update(mine, SoftmaxSteps(stacked, pairs, multipliers), trees)
        REFERENCE.softmax_update(theirs, SoftmaxSteps(leaf_indices, pairs, multipliers), trees)
        assert same(candidate.get(mine), theirs)
        assert np.abs(theirs.sum(axis=1) - 1).max() < 1e-15 * shape[1]


def test_step_by_hand(backend: Backend) -> None:
    # (1/2, 1/4, 1/4): class 1 times 4, base class 0 times 1/2; then class 2 times 3 without a base: (1/4, 1, 3/4) / 2.
    p = backend.put(np.array([[0.5, 0.25, 0.25]]))
    leaf_indices, pairs = backend.put(np.array([[1], [0]], np.int32)), np.array([(0, 1), (-1, 2)])
    multipliers = np.array([[[9.0, 9.0], [4.0, 0.5]], [[3.0, 9.0], [9.0, 9.0]]])
    backend.softmax_update(p, SoftmaxSteps(leaf_indices, pairs, multipliers), [0, 1])
    assert backend.get(p).tolist() == [[0.125, 0.5, 0.375]]


@pytest.mark.parametrize("max_leaves", [2, 3, 8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_rows", "n_features", "n_trees"), [(1, 1, 1), (30, 3, 2), (400, 5, 3), (150, 9, 1), (60, 17, 4)])
def test_growth_by_newton(
    candidate: Backend, once: Once, n_rows: int, n_features: int, n_trees: int, weighted: bool, max_leaves: int
) -> None:
    matrix, arrays = random_codes(n_rows, n_features, 0), random_rows(n_rows, 4, 6)
    arrays = (*arrays[:3], np.ones(n_rows))
    pairs = pairs_of(4, 7)[:n_trees]
    frequency_weight = arrays[2].astype(np.int32)

    def stats(backend: Backend) -> Stats:
        given = backend.put(frequency_weight) if weighted else None
        counts = Counts(backend.put(frequency_weight), 1 + n_rows // 4)
        return backend.softmax_statistics(on(backend, arrays), pairs, Shifts(12, 12), counts, given)

    expected = assert_same_trees(candidate, once, matrix, stats, max_leaves)
    whole = grow(candidate, candidate.load(matrix), stats(candidate), max_leaves)  # as learners do it
    assert same(np.array(candidate.read_nodes(whole)[0])[:, :, :7][..., [2, 3, 4, 5]], expected.nodes[:, :, [2, 3, 4, 5]])
    assert same(np.array(candidate.read_totals(whole)[1]), expected.totals)


CASES = [i for i in range(72) if not Case(i).multi_label and Case(i).data(0).n_classes > 1]


@pytest.mark.slow
@pytest.mark.parametrize("number", thinned(CASES[::4], 4))
def test_whole_fits(number: int, request: pytest.FixtureRequest) -> None:
    case = Case(number)
    n_classes = case.data(0).n_classes
    booster = ABCBoost(
        loss="mart" if number % 2 else "logit",
        base_class=("search", None, "search", n_classes - 1)[number % 4],
        gap=(1, 2)[number % 3 == 0],
        n_candidates=2 if number % 5 == 0 or n_classes > 6 else None,
        max_leaf_nodes=2 + number % 6,
        min_samples_leaf=1 + 4 * (number % 2),
        learning_rate=(0.1, 1.0)[number % 7 == 0],
    )

    def result(backend: Backend) -> tuple[str, dict[str, str], str]:
        n_rounds = 1 if n_classes > 6 else 3
        training = fit(booster, case.data(0), backend, n_rounds, evaluation=case.data(1))
        history = {key: repr(values) for key, values in training.history.items() if key != "seconds"}
        return Ensemble.from_rounds(training.rounds, n_classes).digest(), history, training.reason

    expected = result(REFERENCE)
    for name, opened in fit_candidates(number, request.config.getoption("--device")).items():
        with opened() as backend:
            assert result(backend) == expected, name


# ---- what they stand for -----------------------------------------------------------------------------------------------------


def log_loss(scores: NDArray[np.float64], label: int) -> float:
    return float(np.log(np.exp(scores - scores[label]).sum()))


@pytest.mark.parametrize("label", range(4))
@pytest.mark.parametrize("base", range(4))
def test_derivatives_of_the_constrained_loss(base: int, label: int) -> None:
    # Eqs. 10 and 11 of Li (2010): derivatives of the loss along a direction that keeps the sum of the scores at 0, where class
    # k rises and the base class falls. The gradient here is minus the loss's.
    scores = np.array([0.3, -0.5, 0.4, -0.2])
    p = np.exp(scores) / np.exp(scores).sum()
    rows = SoftmaxRows(p[None], np.array([label], np.int32), np.array([1], np.int32), np.array([1.0]))
    others = [k for k in range(4) if k != base]
    pairs, step = np.array([(base, k) for k in others]), 1e-4
    stats = REFERENCE.softmax_statistics(rows, pairs, Shifts(26, 26), Counts(np.array([1], np.int32), 1))
    for t, k in enumerate(others):
        way = np.eye(4)[k] - np.eye(4)[base]
        low, middle, high = (log_loss(scores + d * way, label) for d in (-step, 0.0, step))
        assert stats.quantised[t, 0, 0] * 2.0**-26 == pytest.approx((low - high) / (2 * step), abs=1e-7)
        assert stats.quantised[t, 0, 1] * 2.0**-26 == pytest.approx((low - 2 * middle + high) / step**2, abs=1e-6)


def test_determinant_does_not_depend_on_the_base_class() -> None:
    # Section 2.2 of Li (2010): with three classes the determinant of the constrained Hessian is 9 p_0 p_1 p_2, whatever the
    # base class; our curvatures are its diagonal.
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    rows = SoftmaxRows(np.array([p], float), np.array([0], np.int32), np.array([1], np.int32), np.array([1.0]))
    for base in range(3):
        one, two = (k for k in range(3) if k != base)
        stats = REFERENCE.softmax_statistics(
            rows, np.array([(base, one), (base, two)]), Shifts(20, 28), Counts(np.array([1], np.int32), 1)
        )
        diagonal = [int(stats.quantised[t, 0, 1]) * 2.0**-28 for t in (0, 1)]
        corner = p[base] - p[base] ** 2 + p[base] * p[one] + p[base] * p[two] - p[one] * p[two]
        assert diagonal[0] * diagonal[1] - float(corner) ** 2 == pytest.approx(9 / 36, abs=1e-7)


def test_a_pair_and_its_reverse_are_the_same_tree() -> None:
    arrays = random_rows(200, 5, 8)
    counts = Counts(np.ones(200, np.int32), 5)
    stats = REFERENCE.softmax_statistics(on(REFERENCE, arrays), np.array([(1, 3), (3, 1)]), Shifts(15, 15), counts)
    assert same(stats.quantised[0, :, 0], -stats.quantised[1, :, 0])
    assert same(stats.quantised[0, :, 1:], stats.quantised[1, :, 1:])


def test_complements_are_accurate() -> None:
    p = np.array([[1.0 - 2.0**-53, 3e-18, 4e-18], [0.25, 0.25, 0.5], [STATE_FLOOR, 1.0, 1e-300]])
    assert complements(p)[0, 0] == 7e-18
    assert complements(p)[1].tolist() == [0.75, 0.75, 0.5]
    assert complements(p)[2, 1] == STATE_FLOOR + 1e-300


def test_losses_by_hand() -> None:
    # Row 0: p = (1/2, 1/4, 1/4), class 1: 2 bits. A tree that doubles class 1 and halves class 0: (1/4, 1/2, 1/4): 1 bit.
    # Row 1: class 2 with p = 1/8; its group multiplies by 1: 3 bits, three times, by 1/2: 4.5 bits.
    p = np.array([[0.5, 0.25, 0.25], [0.5, 0.375, 0.125]])
    rows = SoftmaxRows(p, np.array([1, 2], np.int32), np.array([1, 3], np.int32), np.array([1.0, 0.5]))
    leaf_indices, multipliers = np.array([[0, 1]], np.int32), np.array([[[2.0, 0.5], [1.0, 1.0]]])
    steps = SoftmaxSteps(leaf_indices, np.array([(0, 1)]), multipliers)
    found = REFERENCE.softmax_losses(rows, steps, [[], [0]], 4)
    assert found.tolist() == [[0, 32, 72], [0, 16, 72]]


def test_newton_gain_by_hand(backend: Backend) -> None:
    # (g, h) of four rows: (4, 2), (2, 1), (-3, 3), (1, 0). Whole: 4 * 4 / 6. After the second row: 36/3 + 4/3 - 16/6 = 32/3;
    # after the first: 16/2 + 0/4 - 16/6; the last row cannot be alone, it has no curvature.
    quantised = np.array([[[4, 2, 1], [2, 1, 1], [-3, 3, 1], [1, 0, 1]]], np.int32)
    width = 4 if backend.device == "cpu" else 3
    padded = np.zeros((1, 4, width), np.int32)
    padded[:, :, :3] = quantised
    stats = Stats(backend.put(padded), 0, quantised[0].sum(axis=0, dtype=np.int64), np.array([10, 6]), 1, "newton")
    frontier = grow(backend, backend.load(coded([[1, 2, 3, 4]])), stats, 2)
    assert as_float(np.ascontiguousarray(frontier.nodes[:, 0, GAIN]))[0] == pytest.approx(32 / 3, rel=1e-15)
    assert frontier.nodes[0, 0, [3, LEFT]].tolist() == [2, 1]
    stats.min_count = 3
    assert grow(backend, backend.load(coded([[1, 2, 3, 4]])), stats, 2).nodes[0, 0, LEFT] == 0


def test_probabilities_near_the_floor_give_a_finite_loss() -> None:
    p = np.array([[1.0, STATE_FLOOR]])
    rows = SoftmaxRows(p, np.array([1], np.int32), np.array([1], np.int32), np.array([1.0]))
    nothing = SoftmaxSteps(np.zeros((1, 1), np.int32), np.array([(-1, 0)]), np.ones((1, 1, 2)))
    assert REFERENCE.softmax_losses(rows, nothing, [[]], 32)[0, 1] == 900 << 32
    assert math.isfinite(REFERENCE.largest_miss(rows))

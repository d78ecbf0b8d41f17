"""The smallest leaf: a share of the sample weights that both sides of every cut must have."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.adaboost_mh import AdaBoostMH, leaf_counts
from gpuboost.fixedpoint import row_counts
from gpuboost.learners.base import Learner
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct
from tests.oracles import Limit, best_stump
from tests.problems import Data, blobs, cpu_backend, digest, fit, sign_matrix

BACKENDS: tuple[Backend, ...] = (NumpyBackend(), cpu_backend())
STUMP = HammingTree(2)
LEARNERS: list[Learner] = [STUMP, HammingTree(6), StumpProduct(2)]


def booster(learner: Learner, fraction: float, variant: Any = "discrete") -> AdaBoostMH:
    return AdaBoostMH(learner, "single-label", variant, min_weight_fraction_leaf=fraction)


def line(labels: list[int], weights: list[float] | None = None) -> Data:
    """Rows at 1, 2, 3, ... on one feature, of two classes."""
    X = np.arange(1.0, len(labels) + 1.0)[:, None]
    return Data(X, sign_matrix(labels, 2), None if weights is None else np.array(weights))


def test_counts_and_minimum_by_hand(backend: Backend) -> None:
    problem = line([0, 1, 1], [0.5, 1.0, 0.5]).on(backend)  # repeats 1, 2, 1: 2**27 units each, 2**29 in all
    assert leaf_counts(problem, 0.0) is None
    for fraction, minimum in [(0.25, 2**27), (0.5, 2**28), (0.3, math.ceil(0.3 * 2**29)), (2.0**-29, 1), (1e-300, 1)]:
        counts = leaf_counts(problem, fraction)
        assert counts is not None
        assert backend.get(counts.of_row).tolist() == [2**27, 2**28, 2**27]
        assert counts.minimum == minimum


@pytest.mark.parametrize(
    ("fraction", "weights", "cut"),
    [
        # Class 0 has the signs - + + + - -; class 1 mirrors them. P = 0, and the edges at the cuts 1 to 5 are 2, 0, 2, 4, 2.
        (0.0, None, 4),
        (0.25, None, 4),  # two of six rows are more than a quarter
        (0.34, None, 3),  # but less than 0.34
        (0.5, None, 3),
        # P = -1, and the edges are 1, 1, 3, 5, 3. Cut 4 has 3 of 7 on the right, cut 3 has 3 of 7 on the left.
        (0.42, [1, 1, 1, 1, 1, 2], 4),
        (0.43, [1, 1, 1, 1, 1, 2], None),  # the constant classifier
        # P = -2, and the edges are 2, 0, 2, 4, 2. Cut 4 has 3 of 8 on the right; cut 3 does not beat the constant classifier.
        (0.375, [2, 1, 1, 1, 1, 2], 4),
        (0.38, [2, 1, 1, 1, 1, 2], None),
    ],
)
def test_stump_by_hand(backend: Backend, fraction: float, weights: list[float] | None, cut: int | None) -> None:
    (tree,) = fit(booster(STUMP, fraction), line([1, 0, 0, 0, 1, 1], weights), backend, 1).trees
    assert tree.cut.tolist() == ([] if cut is None else [cut])


@settings(deadline=None)
@given(st.integers(1, 10), st.integers(2, 3), st.integers(1, 8), st.integers(0, 2**32))
def test_first_cut_is_the_best_that_is_allowed(n_rows: int, n_classes: int, sixteenths: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.choice([np.nan, 0.0, 1.0, 2.0], (n_rows, 2))
    labels, weights = rng.integers(0, n_classes, n_rows), rng.integers(1, 4, n_rows)
    weights[0] = 1  # the unit, so that the rest are repeats
    data = Data(X, sign_matrix(labels, n_classes), weights.astype(float))
    matrix = data.mapper().transform(X)
    # Weights of 1/2 and 1 / (2 (K - 1)) are exact in fixed point, and so are shares of sixteenths.
    quantised = [
        [int(w) * (Fraction(1) if own else Fraction(-1, n_classes - 1)) for own in row]
        for w, row in zip(weights, data.signs > 0, strict=True)
    ]
    limit = Limit(weights.tolist(), Fraction(sixteenths, 16) * int(weights.sum()))
    best = best_stump(matrix.codes.tolist(), quantised, range(n_rows), matrix.n_bins.tolist(), limit)
    for backend in BACKENDS:
        trees = fit(booster(STUMP, sixteenths / 16), data, backend, 1).trees
        if best.score == 0:
            assert trees == []
            continue
        (tree,) = trees
        cuts = list(zip(tree.feature.tolist(), tree.cut.tolist(), tree.missing_left.tolist(), strict=True))
        assert cuts == ([] if best.feature < 0 else [(best.feature, best.cut, best.missing_left)])


def noisy(weights: str) -> Data:
    """60 rows of three classes, a fifth of the values missing."""
    data, rng = blobs(60, 3, 3, seed=20, noise=2.0), np.random.default_rng(20)
    X = np.where(rng.random(data.X.shape) < 0.2, np.nan, data.X)
    given = {"equal": None, "integer": rng.integers(1, 5, 60).astype(float), "real": rng.uniform(0.01, 1.0, 60)}
    return replace(data, X=X, weights=given[weights])


def sizes_of_leaves(data: Data, trees: list[Any], backend: Backend) -> list[NDArray[np.float64]]:
    """The rows' counts, summed over the leaves of each tree."""
    problem = data.on(backend)
    counts = row_counts(*data.split())
    return [np.bincount(backend.get(backend.apply(tree, problem.data)), counts, tree.n_leaves) for tree in trees]


@pytest.mark.parametrize("weights", [pytest.param("equal", marks=pytest.mark.slow), "integer", "real"])
@pytest.mark.parametrize("variant", ["discrete", pytest.param("real", marks=pytest.mark.slow)])
def test_every_leaf_has_its_share(backend: Backend, variant: Any, weights: str) -> None:
    # Of the sample weights, whatever has become of the boosting weights: in all twelve rounds.
    data = noisy(weights)
    free = fit(booster(HammingTree(6), 0.0, variant), data, backend, 12).trees
    for fraction in (1 / 16, 1 / 8, 1 / 4, 1 / 2):
        bound = fit(booster(HammingTree(6), fraction, variant), data, backend, 12).trees
        smallest = fraction * int(row_counts(*data.split()).sum())
        assert min(size.min() for size in sizes_of_leaves(data, free, backend)) < smallest
        assert min(size.min() for size in sizes_of_leaves(data, bound, backend)) >= smallest
        assert fraction == 1 / 2 or max(tree.n_leaves for tree in bound) > 2  # there is room for that


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["equal", "integer", "real"])
@pytest.mark.parametrize("fraction", [1 / 16, 1 / 4])
def test_every_stump_of_a_product_has_its_share(backend: Backend, fraction: float, weights: str) -> None:
    data = noisy(weights)
    counts = row_counts(*data.split())
    codes = data.mapper().transform(data.X).codes

    def smallest_side(f: float) -> int:
        trees = fit(booster(StumpProduct(2), f), data, backend, 12).trees
        stumps = [stump for tree in trees for stump in zip(tree.feature, tree.cut, tree.missing_left, strict=True)]
        left = [counts[(codes[j] <= cut) & ((codes[j] > 0) | missing)].sum() for j, cut, missing in stumps]
        return min(min(side, counts.sum() - side) for side in left)

    assert smallest_side(0.0) < fraction * int(counts.sum()) <= smallest_side(fraction)


@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_half_of_an_odd_number_of_rows_is_out_of_reach(backend: Backend, learner: Learner, variant: Any) -> None:
    data = line([0, 0, 0, 1, 1])
    for tree in fit(booster(learner, 0.5, variant), data, backend, 5).trees:
        assert tree.n_leaves == 1
    # Round 1 by hand: six of ten weights are right, so the odds of class 0 are 3 : 2 in both variants (alpha = 1/2 ln(6/4)).
    (tree,) = fit(booster(learner, 0.5, variant), data, backend, 1).trees
    assert tree.values == pytest.approx(np.array([[0.5 * math.log(1.5), -0.5 * math.log(1.5)]]), rel=1e-8)


@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("learner", LEARNERS)
def test_the_smallest_fraction_changes_nothing(backend: Backend, learner: Learner, variant: Any) -> None:
    # One unit on either side, which every row has: what the counts travel with must not show.
    data = noisy("integer")
    plain, counted = (fit(booster(learner, f, variant), data, backend, 10) for f in (0.0, 1e-300))
    assert digest(plain.trees, 3) == digest(counted.trees, 3)
    assert plain.history | {"seconds": []} == counted.history | {"seconds": []}

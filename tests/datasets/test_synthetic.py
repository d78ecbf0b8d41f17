from __future__ import annotations

import hashlib
from fractions import Fraction
from math import comb, erfc, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from mpmath import erfinv, mp, mpf

from gpuboost.datasets import make_majority, make_twonorm
from gpuboost.datasets.normal import normal_deviates
from gpuboost.streams import ExampleReader, Source

BOTH = [make_majority, make_twonorm]


def within(count: float, n: int, p: float) -> bool:
    """Whether a count is within five standard deviations of its expectation."""
    return abs(count - n * p) < 5 * sqrt(n * p * (1 - p))


@pytest.mark.parametrize("make", BOTH)
def test_a_row_depends_on_the_seed_and_its_number_only(make: Any) -> None:
    X, y = make(10_000, random_state=5)
    stream = make(random_state=5)
    assert isinstance(stream, Source)
    for first, n in ((0, 1), (4095, 3), (4096, 4096), (9_000, 1000)):
        for part, whole in zip(stream.rows(first, n), (X, y), strict=True):
            assert np.array_equal(part, whole[first : first + n])
    batch = next(stream.batches(777))
    assert np.array_equal(batch.X[:100], X[777:877])
    assert not np.array_equal(make(100, random_state=6)[0], X[:100])
    assert not np.array_equal(make(100)[0], make(100)[0])
    next(stream.batches(10**15))  # at once


@pytest.mark.parametrize("make", BOTH)
def test_it_is_read_without_end(make: Any) -> None:
    X, y = make(1000, random_state=1)
    with ExampleReader(make(random_state=1), 300, recycle=True, max_examples=700, start=(0, 250)) as reader:
        taken = list(reader)
    assert [(step.pass_number, step.first_row, len(step.y)) for step in taken] == [
        (0, 250, 50),
        (0, 300, 300),
        (0, 600, 300),
        (0, 900, 50),
    ]
    assert np.array_equal(np.concatenate([step.X for step in taken]), X[250:950])
    assert np.array_equal(np.concatenate([step.y for step in taken]), y[250:950])


def test_a_seed_gives_these_rows() -> None:
    digests = [
        hashlib.sha256(b"".join(part.tobytes() for part in make(5000, random_state=0))).hexdigest()[:16] for make in BOTH
    ]
    assert digests == ["8e977ae535222db9", "49893a1560cad524"]


def test_majority_is_a_noisy_vote_of_40_of_100() -> None:
    n = 100_000
    X, y = make_majority(n, random_state=2)
    assert X.shape == (n, 100)
    assert X.dtype == np.uint8
    assert set(np.unique(X)) == {0, 1}
    assert all(within(count, n, 0.5) for count in X.sum(axis=0, dtype=int))
    votes = X[:, :40].sum(axis=1, dtype=int)
    wrong = (votes > 20) != y
    assert within(wrong.sum(), n, 0.1)
    assert within(wrong[votes == 20].sum(), int((votes == 20).sum()), 0.1)  # a tie is 0
    ones = Fraction(sum(comb(40, k) for k in range(21, 41)), 2**40)
    assert within(y.sum(), n, 0.8 * float(ones) + 0.1)
    correlation = np.corrcoef(X[:, ::9].T)
    assert np.abs(correlation - np.eye(len(correlation))).max() < 5 / sqrt(n)


def test_majority_without_noise_by_hand() -> None:
    X, y = make_majority(500, n_features=3, n_voters=3, noise=0, random_state=0)
    assert y.tolist() == [int(row.sum() >= 2) for row in X.astype(int)]
    assert np.array_equal(make_majority(500, n_features=3, n_voters=3, noise=1, random_state=0)[1], 1 - y)


def test_twonorm_has_the_error_that_it_should() -> None:
    n = 100_000
    X, y = make_twonorm(n, random_state=3)
    assert X.shape == (n, 20)
    assert within(y.sum(), n, 0.5)
    centred = X - np.where(y == 1, 1, -1)[:, None] * 2 / sqrt(20)
    assert np.abs(centred.mean(axis=0)).max() < 5 / sqrt(n)
    assert np.abs(np.cov(centred.T) - np.eye(20)).max() < 5 * sqrt(2 / n)
    assert within(((X.sum(axis=1) > 0) != y).sum(), n, erfc(2 / sqrt(2)) / 2)  # the best rule: beyond two deviations
    ordered = np.sort(centred[:, 7])
    cdf = np.array([NormalDist().cdf(x) for x in ordered[::100]])
    assert np.abs(cdf - np.arange(0, n, 100) / n).max() < 2 / sqrt(n)  # Kolmogorov and Smirnov


def test_normal_deviates_are_quantiles() -> None:
    rng = np.random.default_rng(0)
    words = np.array([0, 1 << 12, 2**63, 2**64 - 1, *rng.integers(0, 2**64, 200, np.uint64)], np.uint64)
    words = np.concatenate([words, rng.integers(0, 2**64, 200, np.uint64) >> rng.integers(0, 52, 200).astype(np.uint64)])
    mp.prec = 200
    for word, x in zip(words.tolist(), normal_deviates(words).tolist(), strict=True):
        p = (mpf(word >> 12) + mpf(1) / 2) / mpf(2) ** 52
        expected = mp.sqrt(2) * erfinv(2 * p - 1)
        assert abs(x - expected) <= 2e-15 * abs(expected)
    mirrored = normal_deviates(~words)
    assert np.array_equal(mirrored, -normal_deviates(words))


def test_parameters() -> None:
    for options in ({"n_rows": 0}, {"n_rows": 2.5}, {"random_state": -1}, {"random_state": 1.5}):
        for make in BOTH:
            with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
                make(**options)
    with pytest.raises(ValueError, match="n_voters must be from 1 to n_features = 100, got 101"):
        make_majority(n_voters=101)
    with pytest.raises(ValueError, match="noise must be a number from 0 to 1"):
        make_majority(noise=2)
    with pytest.raises(ValueError, match="n_features must be"):
        make_twonorm(n_features=0)

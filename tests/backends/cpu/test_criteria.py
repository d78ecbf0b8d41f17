"""Criteria against exact arithmetic, and the criterion "entropy" from the score to the tree."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.criteria import CRITERIA
from gpuboost.backends.frontier import CUT, FEATURE, GAIN, LEFT, MISSING_LEFT, GrowthScope
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.learners.growth import grow
from tests.backends.test_conformance import class_weights, random_codes, same
from tests.problems import coded, cpu_backend, stats_of

REFERENCE = NumpyBackend()


@pytest.fixture(params=[1, 2], ids=lambda n: f"{n}-threads")
def cpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A CPU backend that shares every loop."""
    monkeypatch.setattr(Team, "WORTH_SHARING", 4)
    with cpu_backend(request.param) as backend:
        yield backend


def test_every_criterion_has_its_own_number() -> None:
    assert sorted(traits.number for traits in CRITERIA.values()) == list(range(len(CRITERIA)))


def bits(sums: list[int]) -> Decimal:
    """The weighted entropy to 50 digits."""
    weight = Decimal(sum(sums))
    return sum((s * (weight / s).ln() / Decimal(2).ln() for s in map(Decimal, sums) if s), Decimal(0))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**29), st.integers(0, 2**29)), min_size=1, max_size=30))
def test_entropy_to_fifty_digits(sums: list[tuple[int, int]]) -> None:
    left, total = [a for a, _ in sums], [a + b for a, b in sums]
    with localcontext() as context:
        context.prec = 50
        expected = bits(total) - bits(left) - bits([p - a for a, p in zip(left, total, strict=True)])
        # -log2 has an error of 2**-49 times the larger of 1 and its value, see `exactmath`; so has a product, and a sum of 30.
        tolerance = 2.0**-44 * (float(bits(total)) + sum(total))
        assert abs(CRITERIA["entropy"].score(left, total, []) - float(expected)) <= tolerance


def test_entropy_by_hand() -> None:
    # 4 of each of two classes are 8 bits; (4, 1) and (0, 3) are 5 log2 5 - 8 bits and none.
    score = CRITERIA["entropy"].score
    assert score([4, 1], [4, 4], []) == pytest.approx(8 - (5 * math.log2(5) - 8), rel=1e-14)
    assert score([4, 0], [4, 4], []) == 8.0
    assert score([2, 2], [4, 4], []) == 0.0
    assert score([0, 0], [4, 4], []) == 0.0


def best_by_hand(codes: NDArray[np.uint8], quantised: NDArray[np.int64]) -> float:
    """The best score of a cut of the root, from the rows."""
    scores = [0.0]
    total = quantised.sum(axis=0).tolist()
    for code, missing_left in itertools.product(codes, (True, False)):
        for cut in range(1, int(code.max()) + 1):
            left = (code <= cut) & ((code > 0) | missing_left)
            one, other = quantised[left].sum(axis=0).tolist(), quantised[~left].sum(axis=0).tolist()
            scores.append(float(bits(total) - bits(one) - bits(other)))
    return max(scores)


@pytest.mark.parametrize("seed", range(8))
def test_the_best_cut_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes, quantised = rng.integers(seed % 2, 6, (3, 30)).astype(np.uint8), rng.integers(0, 9, (30, 3))
    for backend in (REFERENCE, cpu_backend(1)):
        with backend:
            stats = replace(stats_of(backend, quantised), criterion="entropy")
            frontier = grow(backend, backend.load(coded(codes)), stats, 2)
            gain = frontier.nodes[:1, 0, GAIN].view(np.float64)[0]
            assert gain == pytest.approx(best_by_hand(codes, quantised), rel=1e-12)
            f, cut, missing_left = frontier.nodes[0, 0, [FEATURE, CUT, MISSING_LEFT]].tolist()
            left = (codes[f] <= cut) & ((codes[f] > 0) | (missing_left > 0))
            sides = [quantised[side].sum(axis=0).tolist() for side in (left, ~left)]
            whole = float(bits(quantised.sum(axis=0).tolist()))
            assert whole - sum(float(bits(side)) for side in sides) == pytest.approx(gain, rel=1e-12)


def test_growth_by_entropy_is_not_pruned(cpu: Backend) -> None:
    """There is no bound: it grows as without pruning, see `test_growth_by_entropy` of the conformance suite."""
    matrix = random_codes(60, 9, 0)
    rows = class_weights(matrix, 5)
    stats = replace(rows.statistics(cpu), criterion="entropy")
    data = cpu.load(matrix)
    frontiers = [grow(cpu, data, stats, 9, GrowthScope(pruning=pruning)) for pruning in (False, True)]
    assert (frontiers[0].nodes[0, :, LEFT] > 0).any()
    assert same(*(frontier.nodes[:, :, FEATURE:GAIN] for frontier in frontiers))

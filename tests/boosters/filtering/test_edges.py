"""Estimates of edges, and the rule that proves a target error."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pytest

from gpuboost.boosters.filtering import edges
from gpuboost.boosters.filtering.edges import (
    EmpiricalBernstein,
    MeanEstimate,
    NonmonotonicSampling,
    TargetError,
    coefficient,
    share_of_round,
)
from tests.candidates import thinned

N_TRIALS = 2000
TAU, DELTA = 0.3, 0.1


def in_two_points(mean: float, sigma: float, rng: Any, n: int) -> Any:
    return mean + sigma * (2.0 * rng.integers(0, 2, n) - 1.0)


def in_three_points(mean: float, sigma: float, rng: Any, n: int) -> Any:
    """Mostly 0, else 1/2 of the sign of the mean: an edge of votes that mostly abstain."""
    share = 2 * abs(mean)
    assert sigma == pytest.approx(0.5 * math.sqrt(share * (1 - share)))
    return np.where(rng.random(n) < share, math.copysign(0.5, mean), 0.0)


CASES = {  # the numbers lie in -1/2 .. 1/2
    "coins": (0.2, math.sqrt(0.25 - 0.04), lambda m, s, rng, n: 0.5 - 1.0 * (rng.random(n) > 0.5 + m)),
    "negative coins": (-0.25, math.sqrt(0.25 - 0.0625), lambda m, s, rng, n: 0.5 - 1.0 * (rng.random(n) > 0.5 + m)),
    "little variance": (0.1, 0.02, in_two_points),
    "no variance": (-0.05, 0.0, in_two_points),
    "mostly abstaining": (0.15, 0.5 * math.sqrt(0.3 * 0.7), in_three_points),
}


def used(estimate: MeanEstimate, draw: Callable[[int], Any]) -> int:
    """Feed an estimate as a booster does; return how many numbers it took."""
    count = 0
    while True:
        numbers = draw(max(1024, count // 2))
        needed = estimate.add(numbers)
        count += len(numbers) if needed is None else needed
        if needed is not None:
            return count


@pytest.mark.parametrize("case", thinned(CASES, 3))
def test_bernstein_keeps_its_promise(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "log", cache(edges.log))  # the trials take the same ones
    mean, sigma, make = CASES[case]
    rng = np.random.default_rng(list(CASES).index(case))
    good, taken = 0, []
    for _ in range(N_TRIALS):
        estimate = EmpiricalBernstein(TAU, DELTA)
        taken.append(used(estimate, lambda n: make(mean, sigma, rng, n)))
        good += abs(estimate.mean - mean) <= TAU * abs(mean)
    assert good >= (1 - DELTA) * N_TRIALS
    # The bound of section 2.2, whose constant holds what the geometric checks and the union bound cost.
    shape = max(sigma**2 / (TAU * mean) ** 2, 1 / (TAU * abs(mean)))
    assert max(taken) <= 50 * shape * (math.log(1 / DELTA) + math.log(math.log(1 / (TAU * abs(mean)))))


@pytest.mark.parametrize("case", ["coins", "little variance"])
def test_nonmonotonic_sampling_keeps_its_promise_too(case: str) -> None:
    mean, sigma, make = CASES[case]
    rng = np.random.default_rng(5)
    bound = 2 * (1 + 2 * TAU) ** 2 / (TAU * mean) ** 2 * math.log(1 / (TAU * abs(mean) * DELTA))
    good = 0
    for _ in range(N_TRIALS // 20):
        estimate = NonmonotonicSampling(TAU, DELTA)
        assert used(estimate, lambda n: make(mean, sigma, rng, n)) <= bound
        good += abs(estimate.mean - mean) <= TAU * abs(mean)
    assert good >= (1 - DELTA) * N_TRIALS / 20


def test_bernstein_needs_fewer_numbers_where_they_vary_little() -> None:
    for mean, sigma in ((0.1, 0.02), (0.05, 0.0), (0.05, 0.03)):
        taken = []
        for kind in (EmpiricalBernstein, NonmonotonicSampling):
            rng = np.random.default_rng(7)
            taken.append(used(kind(0.1, DELTA), partial(in_two_points, mean, sigma, rng)))
        assert taken[0] < taken[1] / 3


def test_a_check_by_hand() -> None:
    # Checks at n = 2, 3, 5, 8, 12, 18, ... With p = 1.1: d_k = delta / 11 / k^1.1 and x = n_k / n_(k-1) ln(3 / d_k).
    numbers = np.array([0.5, -0.5, 0.5, 0.5, 0.5])
    estimate = EmpiricalBernstein(0.2, 0.1)
    bounds = []
    for number in numbers:
        assert estimate.add(np.array([number])) is None
        bounds.append((estimate.lower, estimate.upper))
    expected = [(0.0, math.inf)]
    for k, (n, grown) in enumerate([(2, 2 / 1), (3, 3 / 2), (5, 5 / 3)], start=1):
        x = grown * math.log(3 / (0.1 * 0.1 / (1.1 * k**1.1)))
        mean = sum(numbers[:n]) / n
        sigma = math.sqrt(sum((one - mean) ** 2 for one in numbers[:n]) / n)
        width = sigma * math.sqrt(2 * x / n) + 3 * x / n
        low, high = expected[-1]
        expected.append((max(low, abs(mean) - width), min(high, abs(mean) + width)))
    assert bounds == [pytest.approx(expected[i], rel=1e-12) for i in (0, 1, 2, 2, 3)]
    assert (estimate.n_checks, estimate.last_check, estimate.next_check) == (3, 5, 8)
    # The estimate lies between the bounds such that both ends are within tau of it: 1/2 ((1 + tau) LB + (1 - tau) UB).
    assert estimate.mean == pytest.approx((1.2 * expected[3][0] + 0.8 * expected[3][1]) / 2)


def test_shares_of_delta_sum_to_delta_at_most() -> None:
    k = np.arange(1, 10**6)
    assert (edges.POWER - 1) / edges.POWER * (1 / k**edges.POWER).sum() + k[-1] ** -0.1 / edges.POWER <= 1 + 1e-6
    assert sum(share_of_round(0.3, t) for t in range(1, 10**5)) == pytest.approx(0.1, rel=1e-4)  # 3 ways to fail


def test_the_estimate_does_not_depend_on_how_numbers_arrive() -> None:
    rng = np.random.default_rng(3)
    numbers = rng.random(6000) - 0.3
    for kind in (EmpiricalBernstein, NonmonotonicSampling):
        found = set()
        for size in (7, 1000, 6000):
            estimate = kind(TAU, DELTA)
            start = 0
            while (needed := estimate.add(numbers[start : start + size])) is None:
                start += size
            found.add((estimate.mean, start + needed))
        assert len(found) == 1


def test_the_cost_of_checks_is_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = []

    def concatenate(pieces: Any) -> Any:
        copied.append(sum(map(len, pieces)))
        return np.hstack(pieces)

    monkeypatch.setattr(edges.np, "concatenate", concatenate)
    estimate = EmpiricalBernstein(0.01, 0.01)
    rng = np.random.default_rng(0)
    for _ in range(3000):
        assert estimate.add(rng.random(20) - 0.5) is None
    # n_k grow by a half: 1 + 2/3 + 4/9 + ... = 3 times what there is.
    assert sum(copied) <= 3 * 60_000 + 20 * len(copied)


# ---- the target error --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 5])
def test_a_target_error_is_rarely_proven_that_is_not_reached(n_classes: int) -> None:
    # An error just above epsilon, in the worst case of theorems 2 and 8: half of p' = E[sum q']. A filter accepts p' / (K - 1).
    epsilon, delta, n_calls = 0.1, 0.2, 60
    p = 1.02 * epsilon / 2 / (n_classes - 1)
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(N_TRIALS):
        accepted = np.cumsum(rng.geometric(p, n_calls)) - 1
        wrong += TargetError(epsilon, delta, n_classes).is_proven(accepted, int(accepted[-1]) + 1)
    # Exactly: a call that needs L rejections is ended by them with probability (1 - p)^L.
    limits = TargetError(epsilon, delta, n_classes).limits(np.arange(1, n_calls + 1))
    exact = 1 - float(np.prod(1 - (1 - p) ** limits.astype(float)))
    assert exact <= delta
    assert wrong <= delta * N_TRIALS
    assert wrong / N_TRIALS == pytest.approx(exact, abs=4 * math.sqrt(exact / N_TRIALS))


def test_the_limits_of_calls() -> None:
    # ceil(2 / 0.1 ln(r (r + 1) / 0.05)): 20 ln 40 = 73.8, 20 ln 120 = 95.8, 20 ln 240 = 109.6; with three classes twice that.
    assert TargetError(0.1, 0.05, 2).limits(np.array([1, 2, 3])).tolist() == [74, 96, 110]
    assert TargetError(0.1, 0.05, 3).limits(np.array([1, 2])).tolist() == [148, 192]


def test_as_many_rejections_as_the_limit_prove_it() -> None:
    # Also if the row after them passes the filter, which would not have been drawn any more.
    for n_rejected, proven in ((73, False), (74, True)):
        assert TargetError(0.1, 0.05, 2).is_proven(np.array([n_rejected]), n_rejected + 1) is proven
        assert TargetError(0.1, 0.05, 2).is_proven(np.array([], int), n_rejected) is proven
        second = TargetError(0.1, 0.05, 2)
        assert not second.is_proven(np.array([0]), 1)
        assert second.is_proven(np.array([], int), n_rejected + 22) is proven


def test_the_proof_does_not_depend_on_how_rows_are_cut() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(12):
        passed = rng.random(200) < 0.03
        passed[:3] = True
        places = []
        for sizes in ([200], [1], [37], [1, 60, 90]):
            target, start, proven = TargetError(0.1, 0.4, 2), 0, None
            for i in range(200):
                if start >= 200 or proven is not None:
                    break
                end = min(start + sizes[i % len(sizes)], 200)
                if target.is_proven(np.flatnonzero(passed[start:end]), end - start):
                    proven = end
                start = end
            places.append((proven is not None, None if proven else (target.calls, target.rejections)))
        assert len(set(places)) == 1
        found.append(places[0][0])
    assert 1 < sum(found) < 11


def test_coefficients_by_hand() -> None:
    assert coefficient(0.25) == pytest.approx(0.5 * math.log(3))
    assert coefficient(-0.25) == pytest.approx(-0.5 * math.log(3))
    assert coefficient(0.0) == 0.0

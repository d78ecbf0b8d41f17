from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost import AdaBoostMHClassifier
from gpuboost.stopping import Patience, SmoothedError

# Multiples of 1/64: sums of them are exact, so that ties are ties in every way of adding.
errors_in_64ths = st.lists(st.integers(0, 64), min_size=1, max_size=150).map(lambda counts: [c / 64 for c in counts])
untimed = settings(deadline=None)


def naive_patience(errors: list[float]) -> int:
    best = 1
    for t, error in enumerate(errors, start=1):
        if error < errors[best - 1]:
            best = t
    return best


def naive_smoothed(errors: list[float], t: int) -> Fraction:
    """Eq. 15 for one T, with the number of terms as the divisor; rounds count from 1."""
    window = range(max(1, t * 8 // 10), t + 1)
    return sum((Fraction(errors[s - 1]) for s in window), Fraction(0)) / len(window)


def naive_best_smoothed(errors: list[float], min_rounds: int) -> int:
    candidates = [t for t in range(1, len(errors) + 1) if t > min_rounds] or list(range(1, len(errors) + 1))
    return min(candidates, key=lambda t: (naive_smoothed(errors, t), t))


@untimed
@given(errors_in_64ths, st.integers(1, 20))
def test_patience_against_a_loop(errors: list[float], patience: int) -> None:
    rule = Patience(patience)
    assert rule.best(errors) == naive_patience(errors)
    assert rule.should_stop(errors) == (len(errors) - naive_patience(errors) >= patience)


def test_patience_by_hand() -> None:
    rule = Patience(2)
    errors = [0.5, 0.25, 0.25, 0.375, 0.125]
    # The tie at round 3 is no improvement, so round 4 is the second one without any.
    assert [rule.best(errors[:t]) for t in range(1, 6)] == [1, 2, 2, 2, 5]
    assert [rule.should_stop(errors[:t]) for t in range(1, 6)] == [False, False, False, True, False]


@untimed
@given(errors_in_64ths, st.integers(0, 60))
def test_smoothed_error_against_eq_15(errors: list[float], min_rounds: int) -> None:
    rule = SmoothedError(min_rounds=min_rounds)
    assert rule.smoothed(errors).tolist() == [float(naive_smoothed(errors, t)) for t in range(1, len(errors) + 1)]
    assert rule.best(errors) == naive_best_smoothed(errors, min_rounds)
    assert not rule.should_stop(errors)  # without a patience all rounds are run


def test_smoothed_error_by_hand() -> None:
    # Windows: T=1: 1..1, T=2: 1..2, T=3: 2..3, T=4: 3..4, T=5: 4..5, T=6: 4..6, T=10: 8..10.
    errors = [0.5, 0.25, 0.75, 0.25, 0.0, 0.5]
    assert SmoothedError().smoothed(errors).tolist() == [0.5, 0.375, 0.5, 0.5, 0.125, 0.25]
    assert SmoothedError().smoothed([0.0] * 7 + [0.75, 0.75, 0.75])[-1] == 0.75
    # None of six rounds is beyond 50, so all are candidates; with min_rounds 5 only the last one is.
    assert SmoothedError().best(errors) == 5
    assert SmoothedError(min_rounds=5).best(errors) == 6


@untimed
@given(errors_in_64ths, st.integers(1, 20), st.integers(0, 60))
def test_smoothed_patience_against_a_loop(errors: list[float], patience: int, min_rounds: int) -> None:
    rule = SmoothedError(patience, min_rounds)
    enough = len(errors) > min_rounds + patience
    stalled = len(errors) - naive_best_smoothed(errors, min_rounds) >= patience
    assert rule.should_stop(errors) == (enough and stalled)


@pytest.mark.parametrize("n_rounds", [1, 49, 50])
def test_smoothed_error_of_short_runs(n_rounds: int) -> None:
    falling = np.linspace(1.0, 0.5, n_rounds).tolist()
    assert SmoothedError().best(falling) == n_rounds


def test_smoothed_error_skips_an_early_dip() -> None:
    errors = [0.0] * 50 + [0.5] * 50
    # The windows of T = 51 .. 62 still reach back to round 50 or before; T = 51 has the most zeros: 40 .. 50 of 40 .. 51.
    assert SmoothedError().best(errors) == 51
    assert SmoothedError().smoothed(errors)[50] == 0.5 / 12


def test_the_fewest_rounds_are_those_of_the_documentation() -> None:
    rule = SmoothedError()
    rising = list(range(60))  # the earliest candidate is the best
    assert (rule.best(rising[:50]), rule.best(rising[:51]), rule.best(rising)) == (1, 51, 51)
    assert (rule.first_candidate(50), rule.first_candidate(51)) == (1, 51)
    said = " ".join((AdaBoostMHClassifier.__doc__ or "").split())
    assert "never fewer than 51 where more than 50 rounds are run" in said

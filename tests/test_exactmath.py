from __future__ import annotations

import hashlib
import math
import warnings
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.exactmath import exp, log, log_sigmoid, sigmoid

# Bounds in ulp: those that the docstrings derive. Beside them the largest error seen on 10**5 random points.
MAX_ULP = {
    exp: 1.0,  # 0.64, and 0.75 where the result is subnormal
    log: 1.0,  # 0.85
    sigmoid: 3.5,  # 1.97
    log_sigmoid: 5.0,  # 1.76
}
TRUE: dict[Any, Callable[[mpmath.mpf], mpmath.mpf]] = {
    exp: mpmath.exp,
    log: mpmath.log,
    sigmoid: lambda x: 1 / (1 + mpmath.exp(-x)),
    log_sigmoid: lambda x: -mpmath.log1p(mpmath.exp(-x)),
}
LOG_MAX = 709.7827128933840  # exp overflows above
LOG_MIN = -745.1332191019411  # exp is at least half of the smallest subnormal number


def max_ulp(function: Any, points: NDArray[np.float64]) -> float:
    """Return the largest error over the points, in units of the float64 spacing at the true value."""
    worst = 0.0
    with mpmath.workprec(200):
        for x, value in zip(points.tolist(), function(points).tolist(), strict=True):
            truth = TRUE[function](mpmath.mpf(x))
            ulp = float(np.spacing(abs(float(truth))))
            worst = max(worst, float(abs(mpmath.mpf(value) - truth) / mpmath.mpf(ulp)))
    return worst


def random_points(low: float, high: float, n: int = 2000) -> NDArray[np.float64]:
    return np.random.default_rng(0).uniform(low, high, n)


@pytest.mark.parametrize(
    ("function", "points"),
    [
        (exp, np.linspace(LOG_MIN, LOG_MAX, 4001)),
        (exp, random_points(-1.0, 1.0)),
        (exp, random_points(-1e-8, 1e-8)),
        (exp, random_points(LOG_MIN, -708.0)),
        # Where the multiple of ln 2 changes, the reduced argument is largest.
        (exp, (np.arange(-1000, 1000) + 0.5) * math.log(2.0)),
        # Multiples of ln 2 cancel the most in the reduction.
        (exp, np.arange(-1020, 1020) * math.log(2.0)),
        (log, np.ldexp(random_points(1.0, 2.0), np.arange(2000) - 1000)),
        (log, random_points(0.5, 2.0)),
        (log, 1.0 + random_points(-1e-6, 1e-6)),
        # The worst places of the derivation: just inside the limits of the mantissa.
        (log, random_points(0.7, 0.70710679)),
        (log, random_points(1.38, 1.41421357)),
        (log, np.arange(1, 2001) * 5e-324),
        (sigmoid, random_points(-3.0, 3.0)),
        (sigmoid, random_points(-745.0, 745.0)),
        (log_sigmoid, random_points(-3.0, 3.0)),
        # 1 + exp(-x) rounds to 1 beyond 36.7, where a plain log(1 + exp(-x)) has lost everything.
        (log_sigmoid, random_points(30.0, 40.0)),
        (log_sigmoid, random_points(-745.0, 745.0)),
    ],
)
def test_error_is_within_the_derived_bound(function: Any, points: NDArray[np.float64]) -> None:
    assert max_ulp(function, points) < MAX_ULP[function]


@given(st.floats(LOG_MIN, LOG_MAX))
def test_exp_error_anywhere(x: float) -> None:
    assert max_ulp(exp, np.array([x])) < MAX_ULP[exp]


@given(st.floats(5e-324, allow_infinity=False))
def test_log_error_anywhere(x: float) -> None:
    assert max_ulp(log, np.array([x])) < MAX_ULP[log]


@given(st.floats(-745.0, 745.0))
def test_sigmoid_errors_anywhere(x: float) -> None:
    assert max_ulp(sigmoid, np.array([x])) < MAX_ULP[sigmoid]
    assert max_ulp(log_sigmoid, np.array([x])) < MAX_ULP[log_sigmoid]


# From this implementation, each within the tested error bound. Those with a star are not the float64 nearest
# to the true value: they show that a machine does the same sequence of IEEE operations, not something better.
FROZEN = [
    (exp, "0x1.0000000000000p+0", "0x1.5bf0a8b145769p+1"),
    (exp, "-0x1.0000000000000p+0", "0x1.78b56362cef38p-2"),
    (exp, "0x1.0000000000000p-1", "0x1.a61298e1e069cp+0"),
    (exp, "0x1.5e00000000000p+9", "0x1.d945df4f8ec8ep+1009"),
    (exp, "-0x1.7200000000000p+9", "0x0.0000000000055p-1022"),
    (exp, "0x1.2afeec1ad8784p+3", "0x1.650d69dcc7b8fp+13"),  # *
    (exp, "-0x1.2f0cc58185336p+4", "0x1.9893b8052a3c9p-28"),  # *
    (exp, "-0x1.041abae11dbeap+4", "0x1.75f91dd0aa5fdp-24"),  # *
    (log, "0x1.0000000000000p+1", "0x1.62e42fefa39efp-1"),
    (log, "0x1.4000000000000p+3", "0x1.26bb1bbb55516p+1"),
    (log, "0x1.999999999999ap-4", "-0x1.26bb1bbb55515p+1"),
    (log, "0x1.7e43c8800759cp+996", "0x1.5963447f87fb5p+9"),
    (log, "0x0.0000000000001p-1022", "-0x1.74385446d71c3p+9"),
    (log, "0x1.48d915c4c8ee8p+0", "0x1.006d9e1f75930p-2"),  # *
    (log, "0x1.1cde50ecc4652p+0", "0x1.b5a84be22a73ep-4"),  # *
    (log, "0x1.59672d34e7f8fp-1", "-0x1.930f33960f3b2p-2"),  # *
    (sigmoid, "0x1.0000000000000p+0", "0x1.764d4f5d5a2bdp-1"),
    (sigmoid, "-0x1.e000000000000p+4", "0x1.a56e0c2ac7cc0p-44"),
    (sigmoid, "-0x1.f5faf3ddbd6e8p+2", "0x1.9b365449e76c8p-12"),  # *
    (log_sigmoid, "0x1.0000000000000p+0", "-0x1.40c7abfbec125p-2"),
    (log_sigmoid, "-0x1.0000000000000p+0", "-0x1.5031eafefb049p+0"),
    (log_sigmoid, "0x1.4000000000000p+5", "-0x1.39792499b1a24p-58"),
    (log_sigmoid, "0x1.1307df8fcddc0p+2", "-0x1.bac9652a6bc6bp-7"),  # *
]


@pytest.mark.parametrize(("function", "x", "value"), FROZEN)
def test_bits_are_the_same_everywhere(function: Any, x: str, value: str) -> None:
    assert function(float.fromhex(x)).hex() == value


def test_bits_of_many_values_are_the_same_everywhere() -> None:
    def digest(values: NDArray[np.float64]) -> str:
        return hashlib.sha256(values.astype("<f8").tobytes()).hexdigest()

    assert digest(exp(np.arange(-(2**17), 2**17) / 2.0**8)) == (
        "372c5bb1a04d7a4c4cac659b5ed0b88012a4705d920e0ffabb6eb3c1d36ef3e0"
    )
    assert digest(log(np.arange(1, 2**18) / 2.0**9)) == ("5a6a55161f7fb7cdb7a0fe18c18ccafba408137b942aae0b6bbc60ed6d539170")


@pytest.mark.parametrize(
    ("function", "x", "value"),
    [
        (exp, 0.0, 1.0),
        (exp, -0.0, 1.0),
        (exp, 5e-324, 1.0),
        (exp, np.inf, np.inf),
        (exp, 1e308, np.inf),
        (exp, np.nextafter(LOG_MAX, np.inf), np.inf),
        (exp, -np.inf, 0.0),
        (exp, -1e308, 0.0),
        (exp, np.nextafter(LOG_MIN, -np.inf), 0.0),
        (exp, LOG_MIN, 5e-324),
        (exp, np.nan, np.nan),
        (log, 1.0, 0.0),
        (log, 0.0, -np.inf),
        (log, -0.0, -np.inf),
        (log, -5e-324, np.nan),
        (log, -1.0, np.nan),
        (log, -np.inf, np.nan),
        (log, np.inf, np.inf),
        (log, np.nan, np.nan),
        (sigmoid, 0.0, 0.5),
        (sigmoid, np.inf, 1.0),
        (sigmoid, 800.0, 1.0),
        (sigmoid, -np.inf, 0.0),
        (sigmoid, -800.0, 0.0),
        (sigmoid, np.nan, np.nan),
        (log_sigmoid, np.inf, 0.0),
        (log_sigmoid, 800.0, 0.0),
        (log_sigmoid, -800.0, -800.0),
        (log_sigmoid, -1e308, -1e308),
        (log_sigmoid, -np.inf, -np.inf),
        (log_sigmoid, np.nan, np.nan),
    ],
)
def test_special_values_come_without_warnings(function: Any, x: float, value: float) -> None:
    with warnings.catch_warnings(), np.errstate(all="warn"):
        warnings.simplefilter("error")
        assert np.array_equal(function(x), value, equal_nan=True)
        assert np.array_equal(function(np.full(3, x)), np.full(3, value), equal_nan=True)


def test_exp_is_finite_up_to_the_largest_float() -> None:
    assert 1.797e308 < exp(LOG_MAX) < np.inf


@given(st.integers(-1074, 1023))
def test_log_of_a_power_of_two(k: int) -> None:
    """ln(2**k) = k ln 2, here as the exact product k * high plus the small rest."""
    high, low = 0x162E42FEFA38 / 2**45, float.fromhex("0x1.ef35793c76730p-45")
    assert log(math.ldexp(1.0, k)) == k * high + k * low


def test_monotone_where_the_error_bound_says_so() -> None:
    """Errors below 1 ulp keep the order of arguments whose true images are more than 2 ulp apart."""
    x = np.sort(random_points(-700.0, 700.0, 100_000))
    x = x[np.concatenate([[True], np.diff(x) > 1e-12])]
    assert (np.diff(exp(x)) > 0).all()
    assert (np.diff(log(np.unique(np.abs(x)))) >= 0).all()


@pytest.mark.parametrize("at", [1e-3, 0.3465735902799726, 0.5, 1.0, 1.0397207708399179, 10.0, 300.0])
def test_neighbours_stay_in_order(at: float) -> None:
    """Neither function steps back between adjacent float64, also where the reduction switches."""
    start = np.float64(at).view(np.int64) - 5000
    neighbours = np.arange(start, start + 10_000).view(np.float64)
    assert (np.diff(exp(neighbours)) >= 0).all()
    assert (np.diff(exp(-neighbours)) <= 0).all()
    assert (np.diff(log(neighbours)) >= 0).all()
    assert (np.diff(log(neighbours * math.sqrt(2.0))) >= 0).all()


@given(st.floats(-700.0, 700.0))
def test_sigmoids_are_consistent(x: float) -> None:
    assert sigmoid(x) + sigmoid(-x) == pytest.approx(1.0, rel=1e-15)
    assert log_sigmoid(x) - log_sigmoid(-x) == pytest.approx(x, rel=1e-14, abs=2e-15)
    assert exp(log_sigmoid(x)) == pytest.approx(sigmoid(x), rel=1e-12)


@pytest.mark.parametrize("function", [exp, log, sigmoid, log_sigmoid])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0), (4, 5), pytest.param((2, 65, 70), marks=pytest.mark.slow)])
def test_shapes_strides_and_dtypes(function: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).uniform(0.1, 5.0, shape)
    # Whatever stands beside a value, it gets the same bits: here as scalars and inside of long arrays.
    one_by_one = np.array([function(float(value)) for value in x.ravel()])
    x.flags.writeable = False
    for given_x in (x, np.array(x, order="F"), x.astype(">f8"), x.tolist()):
        result = function(given_x)
        assert isinstance(result, np.float64 if shape == () else np.ndarray)
        assert (result.shape, result.dtype) == (shape, np.float64)
        assert result.tobytes() == one_by_one.tobytes()


def test_narrow_types_are_widened_first() -> None:
    assert exp(np.float32(0.1)) == exp(float(np.float32(0.1)))
    assert exp(3) == exp(3.0)
    np.testing.assert_array_equal(log(np.array([1, 2, 255], np.uint8)), log([1.0, 2.0, 255.0]))

"""Elementary functions that give the same bits on every machine.

`np.exp`, `math.exp` and their kin are chosen by the CPU at run time and differ in the last bit between
processors. The functions here use only operations that IEEE 754 defines to the last bit (+, -, *, /,
comparisons) and exact ones (rounding to an integer, taking a float apart into mantissa and exponent, powers
of two), each as a separate elementwise NumPy call, so that nothing can be fused or reordered. All of them
take scalars or arrays of any shape, compute in float64, return the same shape (an `np.float64` for a scalar)
and emit no floating-point warnings.

Notation of the error bounds: u = 2**-53 is the unit roundoff; a value in [2**e, 2**(e+1)) has an ulp of
2**(e+1) u.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats

__all__ = ["exp", "log", "log_sigmoid", "minus_log2", "sigmoid"]


_BLOCK = 8192  # elements: the dozen temporaries of a block stay in a core's second-level cache

# ln 2 = LN2_HIGH + LN2_LOW to about 2**-98. The high part has 42 bits, so that its product with an exponent
# (11 bits) is exact.
LN2_HIGH = float.fromhex("0x1.62e42fefa38p-1")
LN2_LOW = float.fromhex("0x1.ef35793c76730p-45")
LN2_INVERSE = float.fromhex("0x1.71547652b82fep+0")
SQRT_HALF = float.fromhex("0x1.6a09e667f3bcdp-1")

# Highest power first, of (exp(r) - 1 - r) / r**2 up to 1/13! and of (ln(1 + f) - 2 s) / s**3 up to 2/21.
EXP_COEFFICIENTS = [1 / math.factorial(i) for i in range(13, 1, -1)]
LOG_COEFFICIENTS = [2 / i for i in range(21, 1, -2)]


class Elementwise(Protocol):
    """A function of one real variable, applied to each element."""

    @overload
    def __call__(self, x: float, /) -> np.float64: ...
    @overload
    def __call__(self, x: NDArray[Any] | Sequence[Any], /) -> Floats: ...


def _elementwise(function: Callable[[Floats], Floats]) -> Elementwise:
    """Apply a function of 1-d arrays to an array of any shape, in blocks that fit a CPU's caches."""

    @functools.wraps(function)
    def wrapper(x: Any, /) -> Any:
        values = np.asarray(x, dtype=np.float64)
        flat = values.reshape(-1)
        result = np.empty(flat.shape)
        with np.errstate(all="ignore"):
            for start in range(0, flat.size, _BLOCK):
                block = slice(start, start + _BLOCK)
                result[block] = function(flat[block])
        return result.reshape(values.shape)[()]  # [()] turns a 0-d array into a scalar

    return wrapper


def _horner(coefficients: Sequence[float], x: Floats) -> Floats:
    """Evaluate a polynomial whose coefficients come highest power first."""
    value = np.full_like(x, coefficients[0])
    for coefficient in coefficients[1:]:
        value *= x
        value += coefficient
    return value


@_elementwise
def exp(x: Floats, /) -> Floats:
    """Exponential function, to less than 1 ulp.

    Parameters
    ----------
    x : float or array_like of float
        Exponents.

    Returns
    -------
    np.float64 or ndarray of float64
        exp(x), inf above 709.78, gradually down to 0 below -708.4, and nan for nan. exp(0) is exactly 1.

    Notes
    -----
    Cody and Waite (1980): x = k ln 2 + r with integer k and abs(r) <= ln(2)/2, so exp(x) = 2**k exp(r). The
    difference x - k * LN2_HIGH is exact, and the rounding error of r = (x - k * LN2_HIGH) - k * LN2_LOW is
    kept in `tail`. Then

        exp(r + tail) ~ 1 + r + (tail + r**2 q(r)),    q(r) = 1/2! + r/3! + ... + r**11/13!

    and 1 + r is split into its rounded value and the rounding error. What is left are, in units of u and for
    r > 0 (r < 0): the rounding of r**2 q(r), which is at most 0.068 (0.054) and has a relative error of 3.6
    u, 0.25 (0.20); the two sums of that size 0.14 (0.11); the dropped tail * (exp(r) - 1) 0.11 (0.08); the
    rest of the series, r**14/14!, 0.04. That is 0.54 u (0.43 u) for a result in [1, 1.42) ([0.7, 1)), or 0.27
    (0.43) ulp, and the last sum rounds by 0.5 ulp: below 0.93 ulp. The scaling by 2**k is exact except where
    the result is subnormal, which costs one more rounding (below 1 ulp).
    """
    inside = np.minimum(np.maximum(x, -800.0), 800.0)  # far enough out for 0 and inf; np.clip takes longer on few numbers
    k = np.where(np.isnan(x), 0.0, np.rint(inside * LN2_INVERSE))
    high = inside - k * LN2_HIGH
    low = k * LN2_LOW
    r = high - low
    tail = (high - r) - low
    rounded = 1.0 + r
    error = r - (rounded - 1.0)
    value: Floats = rounded + (error + (tail + r * r * _horner(EXP_COEFFICIENTS, r)))
    # Two factors, because 2**k itself can overflow or underflow; the first product is always exact.
    exponent = k.astype(np.int32)
    half = exponent // 2
    value *= np.ldexp(1.0, half)
    value *= np.ldexp(1.0, exponent - half)
    return value


@_elementwise
def log(x: Floats, /) -> Floats:
    """Natural logarithm, to less than 1 ulp.

    Parameters
    ----------
    x : float or array_like of float
        Arguments.

    Returns
    -------
    np.float64 or ndarray of float64
        ln(x); -inf for 0, inf for inf, nan for negative numbers and nan. log(1) is exactly 0.

    Notes
    -----
    x = 2**k (1 + f) with integer k and 1 + f in [sqrt(1/2), sqrt(2)), and with s = f / (2 + f), abs(s) <
    0.1716,

        ln(1 + f) = 2 artanh(s) = 2 s + s R(s),    R(s) = 2 s**2/3 + 2 s**4/5 + ... + 2 s**20/21 + ...

    Since 2 s = f - f**2/2 + s f**2/2, this is f - (h - s (h + R)) with h = f**2/2: f is exact and the rest is
    small. The sum k * LN2_HIGH + f is split into its rounded value and the rounding error, and everything
    small is added before it.

    The worst case is f near 0.414 and a result near 0.35 (k = 0 or -1), where an ulp is u/2. In units of u: h
    rounds by 0.0625; R, at most 0.02 with a relative error of 8 u, gives 0.028 after the multiplication by s;
    the sum h + R 0.022; s, with a relative error of 2 u, 0.037; the product and the sum with k * LN2_LOW
    0.016 each; the subtraction of h 0.0625; the series after s**21 0.002. That is 0.246 u or 0.49 ulp, and
    the last sum rounds by 0.5 ulp: below 1 ulp.
    """
    regular = (x > 0.0) & (x < np.inf)
    mantissa, exponent = np.frexp(np.where(regular, x, 1.0))
    small = mantissa < SQRT_HALF
    k = exponent - small.astype(np.float64)
    f = np.where(small, 2.0 * mantissa, mantissa) - 1.0
    s = f / (2.0 + f)
    s_squared = s * s
    h = 0.5 * (f * f)
    high = k * LN2_HIGH
    rounded = high + f
    error = f - (rounded - high)
    series = s * (h + s_squared * _horner(LOG_COEFFICIENTS, s_squared))
    value: Floats = rounded + (((error + k * LN2_LOW) + series) - h)
    value[~regular] = np.nan
    value[x == 0.0] = -np.inf
    value[x == np.inf] = np.inf
    return value


@_elementwise
def sigmoid(x: Floats, /) -> Floats:
    """Logistic function 1 / (1 + exp(-x)), to less than 3.5 ulp.

    Parameters
    ----------
    x : float or array_like of float
        Log odds.

    Returns
    -------
    np.float64 or ndarray of float64
        Probabilities in [0, 1]; nan for nan.

    Notes
    -----
    With y = exp(-abs(x)), which cannot overflow, it is 1 / (1 + y) for x >= 0 and y / (1 + y) for x < 0. The
    relative error is that of y (1.9 u) and of 1 + y (u), and the quotient rounds by 0.5 ulp: 3.4 ulp.
    """
    y = exp(-np.abs(x))
    return np.where(x < 0.0, y, 1.0) / (1.0 + y)


@_elementwise
def log_sigmoid(x: Floats, /) -> Floats:
    """Logarithm of the logistic function, -ln(1 + exp(-x)), to less than 5 ulp.

    Parameters
    ----------
    x : float or array_like of float
        Log odds.

    Returns
    -------
    np.float64 or ndarray of float64
        Log probabilities, at most 0; nan for nan. The relative accuracy holds for large x too, where the
        result is about -exp(-x).

    Notes
    -----
    With y = exp(-abs(x)) it is min(x, 0) - ln(1 + y), a sum of two numbers of one sign. The rounding error of
    v = 1 + y is known exactly, c = y - (v - 1), and ln(1 + y) = ln(v) + c / v up to c**2/2, at most y u/2.
    The relative error is that of y (1.9 u), of ln(v) (2 u) and the neglected term (u/2), then the two sums
    round: 4.9 ulp for x >= 0; for x < 0 the result is larger and the bound smaller.
    """
    y = exp(-np.abs(x))
    v = 1.0 + y
    return np.minimum(x, 0.0) - (log(v) + (y - (v - 1.0)) / v)


LOG2_COEFFICIENTS = tuple(2 / (i * (LN2_HIGH + LN2_LOW)) for i in range(21, 0, -2))
"""Of 2 artanh(s) / (s ln 2) in powers of s**2, highest first. `gpuboost.backends` repeats them in compiled code."""


@_elementwise
def minus_log2(x: Floats, /) -> Floats:
    """Minus the binary logarithm of a probability, in few operations that compiled code repeats one by one.

    Parameters
    ----------
    x : float or array_like of float
        In (0, 1], not subnormal.

    Returns
    -------
    np.float64 or ndarray of float64
        -log2(x), with an error below 2**-49 times the larger of 1 and the result. Exactly 0 for 1.

    Notes
    -----
    With x = 2**e m and m in [sqrt(1/2), sqrt(2)), and s = (m - 1) / (m + 1), abs(s) < 0.1716, it is

        -e - s P(s**2),    P(z) = (2 + 2 z/3 + 2 z**2/5 + ... + 2 z**10/21) / ln 2,

    and the rest of the series is below 2**-56.
    """
    mantissa, exponent = np.frexp(x)
    small = mantissa < SQRT_HALF
    m = np.where(small, 2.0 * mantissa, mantissa)
    e = exponent - small.astype(np.float64)
    s = (m - 1.0) / (m + 1.0)
    value: Floats = -e - s * _horner(LOG2_COEFFICIENTS, s * s)
    return value + 0.0  # no negative zero

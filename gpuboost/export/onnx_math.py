"""`gpuboost.exactmath` and `gpuboost.links` in ONNX operators.

Every operator here is one that IEEE 754 defines to the last bit, or exact. So a runtime that computes float64 as float64, one
node after the other, gets the very bits that NumPy gets. The operators Exp and Log would not: every runtime has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpuboost.exactmath import EXP_COEFFICIENTS, LN2_HIGH, LN2_INVERSE, LN2_LOW, LOG_COEFFICIENTS, SQRT_HALF
from gpuboost.export.onnx_graph import Tensor, columns, where
from gpuboost.links import SMALLEST, ClassSigmoids, Link, Softmax

LARGEST_HALF = 600
"""Beyond what half of an exponent in `exp` can be."""

ONE_STEP = 2.0**-53 * (1 + 2.0**-52)
"""``p + p * ONE_STEP`` is the float64 after p: the summand is more than half a unit in the last place, and at most one."""


def log_probabilities(link: Link, scores: Tensor) -> Tensor:
    """`Link.log_probabilities`."""
    if isinstance(link, Softmax):
        return scores / float(link.divisor)
    if isinstance(link, ClassSigmoids):
        return log_sigmoid(scores * np.array([link.scales]) - np.array([link.offsets]))
    return log_sigmoid(link.scale * scores - link.offset)


def normalised(log_p: Tensor, predicted: Tensor, n_classes: int) -> Tensor:
    """`gpuboost.links.normalised`; ``predicted`` has the shape (n_rows, 1)."""
    node = log_p.graph.node
    axis = np.array([1])
    p = exp(node("Min", log_p - node("GatherElements", log_p, predicted, axis=1), 0.0))
    total = node("Gather", node("CumSum", p, np.array(1)), np.array([n_classes - 1]), axis=1)  # added in class order
    p = node("Max", p / total, SMALLEST)
    first = node("ArgMax", p, axis=1, keepdims=1)
    largest = node("ReduceMax", p, axis, keepdims=1)
    wrong = node("And", node("Equal", predicted, columns(n_classes)), node("Not", node("Equal", first, predicted)))
    return where(wrong, largest + largest * ONE_STEP, p)


def independent(log_p: Tensor, predicted: Tensor) -> Tensor:
    """`gpuboost.links.independent`."""
    node = log_p.graph.node
    p = node("Clip", exp(log_p), SMALLEST, 1.0)
    return where(predicted, node("Max", p, float(np.nextafter(0.5, 1.0))), node("Min", p, 0.5))


def exp(x: Tensor) -> Tensor:
    """`gpuboost.exactmath.exp` of numbers."""
    node = x.graph.node
    inside = node("Clip", x, -800.0, 800.0)
    k = node("Round", inside * LN2_INVERSE)  # half to even, as np.rint
    high = inside - k * LN2_HIGH
    low = k * LN2_LOW
    r = high - low
    tail = (high - r) - low
    rounded = 1.0 + r
    error = r - (rounded - 1.0)
    value = rounded + (error + (tail + r * r * _horner(EXP_COEFFICIENTS, r)))
    half = node("Floor", k * 0.5)
    return value * _power_of_two(half) * _power_of_two(k - half)


def log_sigmoid(x: Tensor) -> Tensor:
    """`gpuboost.exactmath.log_sigmoid` of numbers."""
    y = exp(-abs(x))
    v = 1.0 + y
    return x.graph.node("Min", x, 0.0) - (_log_from_1_to_2(v) + (y - (v - 1.0)) / v)


def _log_from_1_to_2(x: Tensor) -> Tensor:
    """`gpuboost.exactmath.log` of numbers from 1 to 2."""
    upper = x.graph.node("GreaterOrEqual", x, 2.0 * SQRT_HALF)
    k = upper.cast(np.float64)
    f = where(upper, 0.5 * x, x) - 1.0
    s = f / (2.0 + f)
    s_squared = s * s
    h = 0.5 * (f * f)
    high = k * LN2_HIGH
    rounded = high + f
    error = f - (rounded - high)
    series = s * (h + s_squared * _horner(LOG_COEFFICIENTS, s_squared))
    return rounded + (((error + k * LN2_LOW) + series) - h)


def _horner(coefficients: Sequence[float], x: Tensor) -> Tensor:
    value = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value


def _power_of_two(exponent: Tensor) -> Tensor:
    """Return the power from a table: those that a runtime computes need not be exact."""
    table = np.ldexp(1.0, np.arange(-LARGEST_HALF, LARGEST_HALF + 1))
    return exponent.graph.node("Gather", table, (exponent + float(LARGEST_HALF)).cast(np.int64))

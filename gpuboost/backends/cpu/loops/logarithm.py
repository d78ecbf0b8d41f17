"""The compiled twin of `gpuboost.exactmath.minus_log2`, which compiled loops call by either name."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import overload

from gpuboost import exactmath
from gpuboost.backends.cpu.jit import Float, compiled
from gpuboost.exactmath import LOG2_COEFFICIENTS, SQRT_HALF

MANTISSA = np.int64(2**52 - 1)
HALF = np.int64(1022 << 52)
"""The bits of 1/2."""


@compiled
def minus_log2(x: float) -> Float:
    """The twin of `gpuboost.exactmath.minus_log2`, operation by operation; the mantissa and the exponent by their bits."""
    bits = np.float64(x).view(np.int64)
    mantissa = np.int64(bits & MANTISSA | HALF).view(np.float64)
    is_small = mantissa < SQRT_HALF
    m = 2.0 * mantissa if is_small else mantissa
    e = np.float64(np.int32((bits >> 52) - 1022)) - (1.0 if is_small else 0.0)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    series = LOG2_COEFFICIENTS[0]
    for coefficient in LOG2_COEFFICIENTS[1:]:
        series *= z
        series += coefficient
    return -e - s * series


@overload(exactmath.minus_log2)
def _minus_log2(x: float) -> Any:
    return loop.py_func


loop: Any = minus_log2

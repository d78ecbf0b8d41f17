"""Keys: uint64 that sort like the float64 that they stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats

Keys = NDArray[np.uint64]

LOWEST, HIGHEST = np.uint64(0), ~np.uint64(0)
"""Below and above the keys of all numbers: they would stand for NaN."""

_SIGN = np.uint64(1 << 63)


def to_keys(values: Floats) -> Keys:
    """The keys of numbers. -0.0 has the key of 0.0; there is no NaN."""
    bits = (values + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def to_values(keys: Keys) -> Floats:
    """The numbers that `to_keys` made keys of."""
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)

"""Orders that a seed decides, the same with every version of NumPy and on every machine."""

from __future__ import annotations

import numpy as np

from gpuboost.array_types import IntArray


def permutation(n: int, *key: int) -> IntArray:
    """Return 0 .. n - 1 in an order that depends on n and the key only.

    The raw words of a bit generator are fixed (NEP 19), those of `numpy.random.Generator.permutation` are not.
    """
    words = np.random.Philox(np.random.SeedSequence(key)).random_raw(n)
    return np.argsort(words, kind="stable").astype(np.int64, copy=False)

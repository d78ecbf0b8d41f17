"""The random numbers that rows are accepted by."""

from __future__ import annotations

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.backends.label_weights import WEIGHT_BITS


def uniforms(seed: int, pass_number: int, first_row: int, n_rows: int) -> IntArray:
    """Return the random number of each of ``n_rows`` consecutive rows, in ``0 .. 2**32 - 1``.

    It is the high half of one number of Philox, whose key is the seed and the pass, and whose counter is the row. So it depends
    on neither the blocks in which a source is read nor on what was drawn before.
    """
    generator = np.random.Philox(key=np.array([seed & (2**64 - 1), pass_number], np.uint64))
    generator.advance(first_row // 4)  # a step of the counter makes four numbers
    skipped = first_row % 4
    numbers = np.asarray(generator.random_raw(skipped + n_rows), np.uint64)[skipped:]
    return (numbers >> np.uint64(64 - WEIGHT_BITS)).astype(np.int64)

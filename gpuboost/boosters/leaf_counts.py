"""The smallest leaf that is allowed, by the sample weights."""

from __future__ import annotations

import math

import numpy as np

from gpuboost.backends.base import Counts
from gpuboost.boosters.base import Problem
from gpuboost.fixedpoint import row_counts


def leaf_counts(problem: Problem, fraction: float) -> Counts | None:
    """Return the rows' sample weights with the share that a leaf must have; None if any leaf will do."""
    if fraction == 0:
        return None
    counts = row_counts(problem.repeat, problem.factor)
    minimum = max(1, math.ceil(fraction * int(counts.sum(dtype=np.int64))))
    return Counts(problem.backend.put(counts), minimum)

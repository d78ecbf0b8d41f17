"""The smallest leaf that is allowed, by the sample weights."""

from __future__ import annotations

import math

import numpy as np

from gpuboost.backends.statistics import Counts
from gpuboost.boosters.base import Problem
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.fixedpoint import row_counts


def leaf_counts(problem: Problem, fraction: float, sampling: Sampling = NO_SAMPLING) -> Counts | None:
    """Return the rows' sample weights with the share that a leaf must have; None if any leaf will do.

    It is a share of the rows that are drawn each round, if some are. Rows that weight trimming leaves out do not count, so
    that the leaves have their share without them.
    """
    if fraction == 0:
        return None
    counts = row_counts(problem.frequency_weight, problem.weight_scale)
    minimum = max(1, math.ceil(fraction * sampling.subsample * int(counts.sum(dtype=np.int64))))
    return Counts(problem.backend.put(counts), minimum)

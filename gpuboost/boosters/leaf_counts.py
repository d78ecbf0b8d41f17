"""The smallest leaf that is allowed, by the sample weights."""

from __future__ import annotations

import math

import numpy as np

from gpuboost.backends.statistics import Counts
from gpuboost.boosters.base import Problem
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.peers.base import agree


def leaf_counts(problem: Problem, fraction: float, sampling: Sampling = NO_SAMPLING) -> Counts | None:
    """Return the rows' sample weights with the share that a leaf must have; None if any leaf will do.

    It is a share of the rows that are drawn each round, if some are. Rows that weight trimming leaves out do not count, so
    that the leaves have their share without them.
    """
    if fraction == 0:
        return None
    backend, counts = problem.backend, problem.row_counts
    total = int(backend.peers.sum(counts.sum(dtype=np.int64, keepdims=True), "sum of the rows' counts")[0])
    minimum = max(1, math.ceil(fraction * sampling.subsample * total))
    agree(backend.peers, "smallest leaf", minimum)
    return Counts(backend.put(counts), minimum)

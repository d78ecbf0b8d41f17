"""Boosting on a backend that the measurement has opened itself, below the estimators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import usable_threads
from gpuboost.binning import BinMapper
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Problem
from gpuboost.boosters.sampling import NO_SAMPLING, Sampling
from gpuboost.learners.base import Learner
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.progress import Progress
from gpuboost.training import Training, train

LEAVES = 20


def fit_bins(X: NDArray[Any]) -> BinMapper:
    return BinMapper.fit(X, n_threads=usable_threads(None))


def problem_on(backend: Backend, mapper: BinMapper, X: NDArray[Any], y: NDArray[Any]) -> Problem:
    """Return a problem with the classes 0, 1, ... and rows that weigh the same."""
    target, n_classes, ones = y.astype(np.int32), int(y.max()) + 1, np.ones(len(y))
    return Problem(backend, backend.encode(mapper, X), target, n_classes, ones.astype(np.int32), ones)


def boost(
    problem: Problem,
    rounds: int,
    learner: Learner | None = None,
    callbacks: Sequence[Callable[[Progress], Any]] = (),
    sampling: Sampling = NO_SAMPLING,
) -> Training:
    """Run AdaBoost.MH with the estimator's defaults."""
    booster = AdaBoostMH(learner or HammingTree(LEAVES), "single-label", "real", sampling=sampling)
    return train(booster, problem, n_rounds=rounds, callbacks=callbacks)

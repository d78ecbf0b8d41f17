"""Streams of given rows and random numbers, and the boosters that draw from them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from gpuboost.array_types import IntArray
from gpuboost.backends.base import Backend
from gpuboost.binning import BinMapper
from gpuboost.boosters.filtering import examples as module
from gpuboost.boosters.filtering.examples import Examples, Step
from gpuboost.boosters.filtering.filterboost import FilterBoost, Schedule
from gpuboost.boosters.filtering.weak_learners import ClassVotes
from gpuboost.training import Training, train

UNIT = 2.0**32


def steps(X: Any, y: Any, weight: Any = None, n_rows: int = 1 << 14, n_passes: int | None = None) -> Iterator[Step]:
    """The rows again and again, cut at multiples of ``n_rows``."""
    X, y = np.asarray(X, np.float64), np.asarray(y, np.int64)
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, np.float64)
    for one in itertools.count() if n_passes is None else range(n_passes):
        for start in range(0, len(y), n_rows):
            rows = slice(start, start + n_rows)
            yield Step(X[rows], y[rows], weight[rows], one, start)


def mapper(X: Any, max_bins: int = 255) -> BinMapper:
    X = np.asarray(X, np.float64)
    return BinMapper.fit(X, max_bins=max_bins, integer_weights=np.ones(len(X), np.int64))


def examples(X: Any, y: Any, backend: Backend, weight: Any = None, n_rows: int = 1 << 14, **options: Any) -> Examples:
    n_passes = options.pop("n_passes", None)
    return Examples(steps(X, y, weight, n_rows, n_passes), backend, mapper(X), int(max(y)) + 1, **options)


def booster(source: Any, n_train: Any, n_estimate: Any, *, leaves: int = 2, learner: Any = None, **options: Any) -> FilterBoost:
    """By the paper: votes, which numbers of rows that do not grow."""
    learner = learner or ClassVotes(leaves)
    return FilterBoost(source, learner, Schedule(n_train, False), Schedule(n_estimate, False), **options)


def run(one: FilterBoost, n_rounds: int) -> Training:
    return train(one, None, n_rounds=n_rounds)


def give(monkeypatch: pytest.MonkeyPatch, numbers: Sequence[Sequence[float]]) -> None:
    """Let the rows of each pass be accepted by these numbers in 0 .. 1."""

    def uniforms(seed: int, pass_number: int, first_row: int, n_rows: int) -> IntArray:
        return (np.array(numbers[pass_number][first_row : first_row + n_rows]) * UNIT).astype(np.int64)

    monkeypatch.setattr(module, "uniforms", uniforms)


Digest = Callable[[Training], str]

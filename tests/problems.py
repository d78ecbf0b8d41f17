"""Labelled sets for the tests of the engine, and short ways to train on them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.backend import CpuBackend
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.statistics import Counts, Stats
from gpuboost.binning import MISSING_CODE, BinMapper, BinnedMatrix
from gpuboost.boosters.base import Booster, Problem, Round
from gpuboost.ensemble import Ensemble
from gpuboost.fixedpoint import integer_weights, split_weights
from gpuboost.learners.base import VotingTree
from gpuboost.training import Training, train
from gpuboost.tree import Tree


def cpu_backend(n_threads: int = 1) -> CpuBackend:
    """A CPU backend with that many threads, however few CPUs the machine has."""
    backend = CpuBackend(1)
    backend.team = Team(n_threads)
    return backend


def sign_matrix(labels: ArrayLike, n_classes: int) -> NDArray[np.int8]:
    return np.where(np.arange(n_classes) == np.asarray(labels)[:, None], 1, -1).astype(np.int8)


def coded(codes: ArrayLike, n_bins: Sequence[int] | None = None) -> BinnedMatrix:
    """A binned matrix from its codes, shape (n_features, n_rows)."""
    codes = np.asarray(codes, np.uint8)
    bins = codes.max(axis=1).astype(np.int32) + 1 if n_bins is None else np.asarray(n_bins, np.int32)
    return BinnedMatrix(codes, np.maximum(bins, 2).astype(np.int32), (codes == MISSING_CODE).any(axis=1))


@dataclass(frozen=True)
class Data:
    """A labelled set that has not met a backend yet."""

    X: NDArray[Any]
    signs: NDArray[np.int8]
    weights: NDArray[np.float64] | None = None
    max_bins: int = 255

    @property
    def n_classes(self) -> int:
        return self.signs.shape[1]

    def subset(self, rows: Any) -> Data:
        weights = None if self.weights is None else self.weights[rows]
        return Data(self.X[rows], self.signs[rows], weights, self.max_bins)

    def split(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        return split_weights(np.ones(len(self.X)) if self.weights is None else self.weights)

    def mapper(self) -> BinMapper:
        return BinMapper.fit(self.X, max_bins=self.max_bins, integer_weights=integer_weights(*self.split()))

    def on(self, backend: Backend, mapper: BinMapper | None = None) -> Problem:
        """The problem on a backend."""
        data = backend.encode(mapper or self.mapper(), self.X)
        single_label = bool(((self.signs > 0).sum(axis=1) == 1).all())
        target = self.signs.argmax(axis=1).astype(np.int32) if single_label else self.signs > 0
        return Problem(backend, data, target, self.n_classes, *self.split())


def fit(
    booster: Booster[Any], data: Data, backend: Backend, n_rounds: int, evaluation: Data | None = None, **options: Any
) -> Training:
    mapper = data.mapper()
    watched = None if evaluation is None else {"valid": evaluation.on(backend, mapper)}
    return train(booster, data.on(backend, mapper), n_rounds=n_rounds, evaluation=watched, **options)


def rounds_of(booster: Booster[Any], problem: Problem, initial_rounds: Sequence[Sequence[Tree]] = ()) -> Iterator[Round]:
    """The rounds that follow those of a model."""
    state = booster.row_state(problem)
    for trees in initial_rounds:
        state.update([problem.apply(tree) for tree in trees])
    return booster.rounds(problem, state, len(initial_rounds))


def digest(trees: Sequence[Tree], n_classes: int) -> str:
    return Ensemble.from_trees(trees, n_classes).digest()


def scores(trees: Sequence[Tree], data: Data, backend: Backend, mapper: BinMapper) -> NDArray[np.float64]:
    """The scores of all trees, by the backend's `predict`."""
    out = backend.put(np.zeros(data.signs.shape))
    ensemble = Ensemble.from_trees(trees, data.n_classes)
    backend.predict(ensemble, data.on(backend, mapper).data, out, 0, ensemble.n_trees)
    return backend.get(out)


def blobs(n_rows: int, n_features: int, n_classes: int, seed: int, noise: float = 1.0) -> Data:
    """Normal clouds around random centres: learnable, not separable, without ties."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, n_classes, n_rows)
    X = rng.normal(size=(n_classes, n_features))[labels] + noise * rng.normal(size=(n_rows, n_features))
    return Data(X, sign_matrix(labels, n_classes))


def stats_of(backend: Backend, quantised: ArrayLike, counts: ArrayLike | None = None, min_count: int = 0) -> Stats:
    """Statistics with exactly these integers, shape (n_rows, n_classes), in units of 1, and perhaps with counts of the rows."""
    quantised = np.asarray(quantised, np.int64)
    signs = np.where(quantised < 0, -1, 1).astype(np.int8)
    state = backend.put(np.abs(quantised).astype(np.float64))
    limit = None if counts is None else Counts(backend.put(np.asarray(counts, np.int32)), min_count)
    return backend.quantise(state, backend.put(signs), backend.put(np.ones(len(quantised), np.int32)), 0, limit)


def votes_of_rows(backend: Backend, weak: VotingTree) -> NDArray[np.float64]:
    """What the classifier says of every training row, shape (n_rows, n_classes)."""
    return weak.values[backend.get(weak.leaf_index)]

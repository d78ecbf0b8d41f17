"""Similarities as a model: the training points that are kept, and the scale of the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Problem
from gpuboost.boosters.localized_similarities import SimilarityProblem
from gpuboost.devices import open_backend
from gpuboost.fixedpoint import NARROW_ROWS, row_counts
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.learners.similarity_search import LoadedPoints
from gpuboost.peers.base import ALONE, Peers
from gpuboost.similarities.ensemble import Similarities, TrainingPoints
from gpuboost.similarities.scale import FeatureScale, Scaling


@dataclass(frozen=True, eq=False)
class SimilarityModel:
    """Similarities, and the scale on which their distances are taken: an `gpuboost.estimators.model.Model`."""

    without_trees: ClassVar[str] = "a {kind} compares rows with training points: it has no {attribute}, but points_"
    scaling: ClassVar[Scaling] = "standard"

    scale: FeatureScale
    ensemble: Similarities

    @staticmethod
    def open(device: str | int, n_jobs: int | None, peers: Peers = ALONE) -> Backend:
        if peers.size > 1:
            raise ValueError(
                "LocalizedSimilaritiesClassifier trains on one worker: the nearest of all rows is looked for again and again; "
                "give it all rows at one place, or train trees, such as RebelClassifier"
            )
        return open_backend(device, n_jobs)

    @classmethod
    def blank(cls, sample: Sample, max_bins: int, n_jobs: int | None, n_classes: int) -> Self:
        weights = np.zeros(sample.X.shape[0], np.int64)
        weights[sample.rows] = row_counts(*sample.split_weights())
        scale = FeatureScale.fit(host_matrix(sample.X), weights, max_bins, cls.scaling)
        return cls(scale, Similarities.from_rounds([], n_classes, scale.n_features))

    def problem(self, backend: Backend, sample: Sample, encoder: LabelEncoder) -> tuple[Problem, bool]:
        levels = self.scale.transform(host_matrix(sample.X), sample.rows)
        order = order_of_points(levels, sample.target)
        levels, sample = levels[order], replace(sample, order=None).subset(order)
        labels = sample.labels(encoder)
        if labels[2].sum(dtype=np.int64) > NARROW_ROWS:
            raise ValueError(
                f"LocalizedSimilaritiesClassifier takes up to {NARROW_ROWS} rows (counted with integer weights), got "
                f"{labels[2].sum(dtype=np.int64)}"
            )
        points = TrainingPoints(levels, sample.rows.astype(np.int64), sample.target.astype(np.int32))
        data = LoadedPoints(backend.load_points(levels), points)
        return SimilarityProblem(backend, data, *labels), len(data.first_rows) > 1 and len(encoder.classes) > 1

    def with_rounds(self, rounds: Sequence[Sequence[Any]], n_classes: int) -> Self:
        return replace(self, ensemble=Similarities.from_rounds(rounds, n_classes, self.scale.n_features))

    def rounds(self) -> list[Any]:
        return self.ensemble.rounds()

    def encode(self, backend: Backend, matrix: Any) -> Device:
        return backend.load_points(self.scale.transform(host_matrix(matrix)))

    def add_scores(self, backend: Backend, data: Device, scores: Device, first: int, stop: int) -> None:
        backend.add_similarities(self.ensemble, data, scores, first, stop)

    def answers(self, backend: Backend, data: Device) -> NDArray[np.bool_]:
        """Return whether the similarity of each round says +1 of loaded rows, shape (n_rounds, n_rows)."""
        found = np.empty((self.ensemble.n_rounds, data.n_rows), bool)
        for t in range(len(found)):
            found[t] = backend.get(backend.apply_similarity(self.ensemble.similarity(t), data)) > 0
        return found

    def check_can_be_saved(self) -> None:
        """Similarities always can."""


class CommonScaleModel(SimilarityModel):
    """With one unit for all features."""

    scaling: ClassVar[Scaling] = "common"


MODELS: dict[Scaling, type[SimilarityModel]] = {"standard": SimilarityModel, "common": CommonScaleModel}


def host_matrix(X: Any) -> NDArray[Any]:
    """Return a matrix of any kind that `fit` takes as one array on the host."""
    matrix: NDArray[Any] = to_host(X)[:]
    return matrix


def order_of_points(levels: NDArray[np.uint8], target: NDArray[Any]) -> IntArray:
    """Return the rows in the order of their levels, then of their classes, then of their numbers.

    So a model depends on no order but that of equal rows, and equal points follow one another.
    """
    classes = target.astype(">u4")[:, None].view(np.uint8)
    keys = np.ascontiguousarray(np.hstack([levels, classes]))
    return np.argsort(keys.view(np.dtype((np.void, keys.shape[1])))[:, 0], kind="stable")

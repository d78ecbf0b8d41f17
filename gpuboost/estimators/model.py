"""What a fitted model consists of: trees over binned columns, unless a classifier says otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import usable_threads
from gpuboost.backends.statistics import Device
from gpuboost.binning import BinMapper
from gpuboost.boosters.base import Problem
from gpuboost.devices import open_backend
from gpuboost.ensemble import Ensemble
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample


class TreeModel:
    """The part of a classifier that knows what its rounds have made."""

    device: str | int
    n_jobs: int | None
    max_bins: int
    classes_: NDArray[Any]
    n_features_in_: int
    bin_mapper_: BinMapper
    ensemble_: Ensemble

    def _open(self) -> Backend:
        """Open the backend for training and prediction."""
        return open_backend(self.device, self.n_jobs)

    def _prepare(self, sample: Sample) -> None:
        """Learn from a training set what `_problem` and `_encode` need to know of the columns."""
        self.bin_mapper_ = sample.fit_bins(self.max_bins, usable_threads(self.n_jobs))

    def _problem(self, backend: Backend, sample: Sample, encoder: LabelEncoder) -> tuple[Problem, bool]:
        """Load a labelled sample. Return it, and whether there is anything that tells classes apart."""
        problem, usable = sample.problem(backend, self.bin_mapper_, encoder)
        return problem, usable and len(encoder.classes) > 1

    def _keep(self, rounds: list[Any]) -> None:
        """Take in what the rounds have made."""
        self.ensemble_ = Ensemble.from_rounds(rounds, len(self.classes_))

    def _rounds(self) -> list[Any]:
        """Return what the rounds have made."""
        return self.ensemble_.rounds()

    def _encode(self, backend: Backend, matrix: Any) -> Device:
        """Load rows that are to be scored."""
        return backend.encode(self.bin_mapper_, matrix)

    def _add_scores(self, backend: Backend, data: Device, scores: Device, first: int, stop: int) -> None:
        """Add to the scores of loaded rows what the rounds ``first .. stop - 1`` say."""
        first, stop = self.ensemble_.round_offset[[first, stop]].tolist()
        backend.predict(self.ensemble_, data, scores, first, stop)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Each feature's share of the edge that all cuts have won, shape (n_features,); zeros if there is no cut."""
        check_is_fitted(self)
        gains = self.ensemble_.feature_gains(self.n_features_in_)
        return gains / (gains.sum() or 1.0)

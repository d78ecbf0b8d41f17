"""What the rounds of a training make: trees over binned columns, or what an estimator has instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import usable_threads
from gpuboost.backends.statistics import Device
from gpuboost.binning import BinMapper
from gpuboost.boosters.base import Problem
from gpuboost.devices import open_backend
from gpuboost.ensemble import Ensemble
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.peers.base import ALONE, Peers


class Model(Protocol):
    """What an estimator holds of its rounds, and how rows are scored by them. It is never changed, only replaced.

    Attributes
    ----------
    without_trees : str
        What is said to who asks for trees, with places for the ``{kind}`` of the classifier and the ``{attribute}``.
    """

    without_trees: ClassVar[str]

    @staticmethod
    def open(device: str | int, n_jobs: int | None, peers: Peers = ALONE) -> Backend:
        """Open the backend for training and prediction, for one of several workers if there are peers."""

    @classmethod
    def blank(cls, sample: Sample, max_bins: int, n_jobs: int | None, n_classes: int) -> Self:
        """Return a model without rounds, with what it needs of the columns of a training set."""

    def problem(self, backend: Backend, sample: Sample, encoder: LabelEncoder) -> tuple[Problem, bool]:
        """Load a labelled sample. Return it, and whether any column separates the classes."""

    def with_rounds(self, rounds: Sequence[Sequence[Any]], n_classes: int) -> Self:
        """Return the model that has these rounds instead of its own."""

    def rounds(self) -> list[Any]:
        """Return the rounds, for a training that continues them."""

    def encode(self, backend: Backend, matrix: Any) -> Device:
        """Load rows that are to be scored."""

    def add_scores(self, backend: Backend, data: Device, scores: Device, first: int, stop: int) -> None:
        """Add the values of the rounds ``first .. stop - 1`` to the scores of loaded rows."""

    def check_can_be_saved(self) -> None:
        """Raise a TypeError if a model file cannot hold it."""


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Trees, and the cuts of the columns that they are grown on."""

    without_trees: ClassVar[str] = ""

    bin_mapper: BinMapper
    ensemble: Ensemble

    @staticmethod
    def open(device: str | int, n_jobs: int | None, peers: Peers = ALONE) -> Backend:
        return open_backend(device, n_jobs, peers)

    @classmethod
    def blank(cls, sample: Sample, max_bins: int, n_jobs: int | None, n_classes: int) -> Self:
        return cls(sample.fit_bins(max_bins, usable_threads(n_jobs)), Ensemble.from_rounds([], n_classes))

    def problem(self, backend: Backend, sample: Sample, encoder: LabelEncoder) -> tuple[Problem, bool]:
        problem, usable = sample.problem(backend, self.bin_mapper, encoder)
        return problem, usable and len(encoder.classes) > 1

    def with_rounds(self, rounds: Sequence[Sequence[Any]], n_classes: int) -> Self:
        return replace(self, ensemble=Ensemble.from_rounds(rounds, n_classes))

    def rounds(self) -> list[Any]:
        return self.ensemble.rounds()

    def encode(self, backend: Backend, matrix: Any) -> Device:
        return backend.encode_to_score(self.bin_mapper, matrix)

    def add_scores(self, backend: Backend, data: Device, scores: Device, first: int, stop: int) -> None:
        first, stop = self.ensemble.round_offset[[first, stop]].tolist()
        backend.predict(self.ensemble, data, scores, first, stop)

    def check_can_be_saved(self) -> None:
        """Trees always can."""

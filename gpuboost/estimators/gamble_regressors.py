"""scikit-learn's regressors as the weak learners of GAMBLE: what they must offer, how they are fitted, the model of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from gpuboost.array_types import Floats
from gpuboost.backends.base import Backend
from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Problem
from gpuboost.boosters.gamble_regressors import RegressionProblem, RegressionStep
from gpuboost.devices import open_backend
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.peers.base import ALONE, Peers


@dataclass(frozen=True)
class FittedRegressors:
    """One regressor of all targets, or one regressor a target.

    Attributes
    ----------
    regressors : list of regressors
    n_targets : int
    """

    regressors: list[Any]
    n_targets: int

    def predict(self, X: Floats) -> Floats:
        """Return the predictions, shape (n_rows, n_targets).

        Raises
        ------
        ValueError
            If they are not of that shape, or not finite.
        """
        parts = [np.asarray(one.predict(X), np.float64) for one in self.regressors]
        values: Floats = np.column_stack(parts)
        if values.shape != (len(X), self.n_targets):
            shapes = ", ".join(str(part.shape) for part in parts)
            raise ValueError(f"{self.regressors[0]!r} predicts {self.n_targets} targets of {len(X)} rows in the shape {shapes}")
        if not np.isfinite(values).all():
            raise ValueError(f"{self.regressors[0]!r} predicts NaN or infinity")
        return values


@dataclass(frozen=True)
class RegressorTemplate:
    """A regressor that is cloned for every fit.

    Attributes
    ----------
    regressor : regressor
    weights : str
        The parameter of its ``fit`` that takes the weights of the rows.
    """

    regressor: Any
    weights: str

    @classmethod
    def of(cls, regressor: Any) -> RegressorTemplate:
        """Check a regressor.

        Raises
        ------
        TypeError
            If it is no regressor.
        ValueError
            If it does not take weights.
        """
        needed = ("fit", "predict", "get_params", "set_params", "__sklearn_tags__")
        if isinstance(regressor, type) or not all(hasattr(regressor, name) for name in needed) or not is_regressor(regressor):
            raise TypeError(
                f"regressor must be a scikit-learn regressor, such as Ridge(), or a pair of them, got {regressor!r:.200}"
            )
        weights = weight_parameter(regressor)
        if weights is None:
            raise ValueError(
                "regressor must be one whose fit takes sample_weight (of a pipeline, whose last step does), "
                f"got {regressor!r:.200}"
            )
        return cls(regressor, weights)

    def fit(self, X: Floats, targets: Floats, weights: Floats, seed: Sequence[int]) -> FittedRegressors:
        """Fit clones to the columns of ``targets``, all with the random states that follow from ``seed``."""
        seeds, tags, n_targets = self.random_states(seed), get_tags(self.regressor).target_tags, targets.shape[1]
        together = tags.multi_output and (n_targets > 1 or not tags.single_output)
        fitted = [
            clone(self.regressor).set_params(**seeds).fit(X, target, **{self.weights: weights})
            for target in ([targets] if together else targets.T)
        ]
        return FittedRegressors(fitted, n_targets)

    def random_states(self, seed: Sequence[int]) -> dict[str, int]:
        """Return a value for every ``random_state`` of the regressor and of what it consists of."""
        rng = np.random.default_rng(seed)
        names = sorted(name for name in self.regressor.get_params() if name.split("__")[-1] == "random_state")
        return {name: int(rng.integers(2**31 - 1)) for name in names}


def regressor_pair(regressor: Any) -> tuple[RegressorTemplate, RegressorTemplate]:
    """Check the ``regressor`` of `gpuboost.GambleClassifier`: one for both regressions of a round, or one for each."""
    pair = regressor if isinstance(regressor, (tuple, list)) else (regressor, regressor)
    if len(pair) != 2:
        raise ValueError(f"regressor must be a scikit-learn regressor or a pair of them, got {len(pair)}")
    g, h = (RegressorTemplate.of(one) for one in pair)
    return g, h


def takes_missing(regressor: Any) -> bool:
    """Return whether a ``regressor`` of `gpuboost.GambleClassifier` takes NaN, as far as its scikit-learn tags say."""
    pair = regressor if isinstance(regressor, (tuple, list)) else (regressor,)
    return all(hasattr(one, "__sklearn_tags__") and get_tags(one).input_tags.allow_nan for one in pair)


def weight_parameter(regressor: Any) -> str | None:
    """Return the name of the parameter of ``fit`` that takes the weights of the rows; for a pipeline, that of its last step."""
    if isinstance(regressor, Pipeline):
        name, last = regressor.steps[-1]
        inner = weight_parameter(last)
        return inner and f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(regressor, "sample_weight") else None


@dataclass(frozen=True, eq=False)
class RegressorModel:
    """Regressors instead of trees: an `gpuboost.estimators.model.Model` of one `RegressionStep` a round."""

    without_trees: ClassVar[str] = "a {kind} that boosts a regressor has no {attribute}, but estimators_"

    steps: list[RegressionStep] = field(default_factory=list)

    @staticmethod
    def open(device: str | int, n_jobs: int | None, peers: Peers = ALONE) -> Backend:
        if peers.size > 1:
            raise ValueError("regressor must be None to train on several workers: a regressor needs all rows at one place")
        return open_backend("numpy")

    @classmethod
    def blank(cls, sample: Sample, max_bins: int, n_jobs: int | None, n_classes: int) -> Self:
        return cls()

    def problem(self, backend: Backend, sample: Sample, encoder: LabelEncoder) -> tuple[Problem, bool]:
        data = self.encode(backend, sample.X[sample.rows])
        return RegressionProblem(backend, data, *sample.labels(encoder)), True

    def with_rounds(self, rounds: Sequence[Sequence[Any]], n_classes: int) -> Self:
        return type(self)([step for (step,) in rounds])

    def rounds(self) -> list[Any]:
        return [[step] for step in self.steps]

    def encode(self, backend: Backend, matrix: Any) -> Device:
        return np.asarray(matrix, np.float64)

    def add_scores(self, backend: Backend, data: Device, scores: Device, first: int, stop: int) -> None:
        for step in self.steps[first:stop]:
            scores += step.values(data)

    def check_can_be_saved(self) -> None:
        raise TypeError(
            "a GambleClassifier that boosts a regressor cannot be saved: its regressors are scikit-learn's, and only pickle or "
            "joblib keep them"
        )

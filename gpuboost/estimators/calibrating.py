"""Probabilities that can be believed: how an estimator calibrates itself, during `fit` and on rows of the caller's."""

from __future__ import annotations

import copy
import time
from typing import Any, Literal, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from gpuboost.array_types import Floats
from gpuboost.backends.base import Backend
from gpuboost.calibration import DOUBLINGS, HeldOut, fit_class_sigmoids, fit_temperature
from gpuboost.errors import is_interrupt
from gpuboost.estimators.model import TreeModel
from gpuboost.estimators.predictor import to_backend
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.parameters import check_choice
from gpuboost.inputs.samples import Sample, check_divisible, evaluation_sample, folds, row_digests, split_off
from gpuboost.links import Tempered
from gpuboost.messages import warn

N_FOLDS = 5
N_REMEMBERED = 64
"""Rows of the training set that a model in memory is known to have been trained on."""
REMEMBERED_BYTES = 16 << 20
INTERRUPTED = "interrupted while calibrating; the model has all of its trees, and probabilities without a temperature"
TRAINED_ON = (
    "most rows of the training set are in X: on them a model is far surer than on others, and what is fitted to them does not "
    "hold; pass rows that it was not trained on"
)


class Calibrating:
    """The part of a classifier that says how sure it is."""

    classes_: Any
    multi_label_: bool
    n_estimators_: int
    _model: Any
    _seed: int
    _trained_on: tuple[int, frozenset[bytes]]
    """The number of training rows, and digests of some of them; not in a model file."""

    def calibrate(
        self, X: Any, y: Any, sample_weight: Any = None, method: Literal["temperature", "per-class"] = "temperature"
    ) -> Self:
        """Fit the probabilities of the fitted model to rows that it was not trained on.

        Labels, scores and trees stay as they are. A later `fit` begins without it.

        Parameters
        ----------
        X : array-like, data frame or device array, shape (n_rows, n_features)
            Rows that the model was not trained on: on the others it is far too sure. A warning says so if most of the training
            set is among them, as far as this process has trained the model.
        y : array-like, shape (n_rows,) or (n_rows, n_classes)
            Labels, all of them classes of the model.
        sample_weight : array-like, shape (n_rows,), optional
            Not negative.
        method : {"temperature", "per-class"}, default "temperature"
            "temperature" divides all scores by one number, ``temperature_``. "per-class" gives every class a sigmoid of its
            own, ``class_sigmoids_``, as Platt scaling does. It needs many rows of each class, and probabilities above that of
            the predicted class are lowered to it.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the rows or labels are not usable, or the model has no probabilities. It stays as it was.
        """
        check_is_fitted(self)
        check_choice("method", method, ("temperature", "per-class"))
        link = self._link_to_calibrate("calibrate")
        model: Any = self
        matrix = model._matrix(X, reset=False)
        encoder = LabelEncoder(self.classes_, self.multi_label_)
        with self._model.open(model.device, model.n_jobs) as backend:
            sample = evaluation_sample(to_backend(backend, matrix), y, sample_weight, encoder, "the rows to calibrate on")
            if not len(sample.rows):
                raise ValueError("calibrate needs rows with a weight, got none")
            held = _held_out(model, backend, sample, encoder)
        self._warn_of_training_rows(sample.X)
        of_temperature = method == "temperature"
        found = fit_temperature(held, link) if of_temperature else fit_class_sigmoids(held, link)
        self._forget("temperature_", "class_sigmoids_")  # now that nothing can fail
        setattr(self, "temperature_" if of_temperature else "class_sigmoids_", found)
        return self

    def _link_to_calibrate(self, asked_by: str) -> Tempered:
        """Return the link of the algorithm; raise a ValueError if the model has no probabilities that a link makes."""
        model: Any = self
        link = model._link(len(self.classes_))
        if link is None:
            raise ValueError(f"{asked_by} needs a model with probabilities, which this {type(self).__name__} has not")
        tempered: Tempered = link
        return tempered

    def _check_can_calibrate(self, sample: Sample, encoder: LabelEncoder) -> None:
        """Raise a ValueError if a model of ``sample`` could not get the temperature that ``calibration`` asks for."""
        model: Any = self
        self._link_to_calibrate(f"calibration={model.calibration!r}")
        if len(encoder.classes) > 1 and not model.early_stopping:
            check_divisible(sample)

    def _remember_rows(self, sample: Sample) -> None:
        """Note what the training set is known by, unless that would have to be copied from a device."""
        if not isinstance(sample.X, np.ndarray):
            return
        n_rows = min(N_REMEMBERED, max(1, REMEMBERED_BYTES // (8 * sample.X.shape[1])))
        low = int(sample.rows[0]) if len(sample.rows) else 0
        rows = sample.rows[:n_rows][sample.rows[:n_rows] < low + n_rows] - low
        self._trained_on = len(sample.rows), frozenset(row_digests(sample.X[low : low + n_rows][rows]))

    def _warn_of_training_rows(self, X: Any) -> None:
        """Warn if most rows of the training set are among those of X, as far as they are remembered."""
        n_rows, remembered = vars(self).get("_trained_on", (0, frozenset()))
        if not remembered or 2 * X.shape[0] < n_rows:
            return
        step = max(1, REMEMBERED_BYTES // (8 * X.shape[1]))
        found: set[bytes] = set()
        for first in range(0, X.shape[0], step):
            found |= remembered & row_digests(to_host(X[first : first + step]))
        if 2 * len(found) > len(remembered):
            warn(TRAINED_ON)

    def _check_calibration(self) -> None:
        """Raise a ValueError if a temperature or sigmoids, from a file, are wrong."""
        fitted = vars(self)
        temperature = fitted.get("temperature_", 1.0)
        if not (isinstance(temperature, float) and 2.0**-DOUBLINGS <= temperature <= 2.0**DOUBLINGS):
            raise ValueError(f"temperature_ is {temperature!r:.60}")
        if "class_sigmoids_" not in fitted:
            return
        numbers = fitted["class_sigmoids_"]
        if not (isinstance(numbers, np.ndarray) and numbers.shape == (2, len(self.classes_)) and numbers.dtype == np.float64):
            raise ValueError("class_sigmoids_ are not a scale and an offset of every class")
        if "temperature_" in fitted or not np.isfinite(numbers).all() or (numbers[0] < 0).any():
            raise ValueError("class_sigmoids_ are not numbers that calibrate could have found")

    def _is_calibrated(self) -> bool:
        return "temperature_" in vars(self) or "class_sigmoids_" in vars(self)

    def _forget(self, *names: str) -> None:
        """Delete fitted attributes that are there."""
        for name in names:
            vars(self).pop(name, None)

    def _calibrate_in_fit(
        self, backend: Backend, sample: Sample, evaluation: dict[str, Sample], encoder: LabelEncoder
    ) -> list[str]:
        """Give a model that has just been trained on ``sample`` its temperature; return what the user should be warned of.

        The rows are those that early stopping looked at, if it did. Else models are trained, with as many rounds, without the
        rows that they then score: one without the hold-out, or one for each fold. The trees of the model are of all rows.
        """
        model: Any = self
        link = self._link_to_calibrate(f"calibration={model.calibration!r}")
        if len(encoder.classes) == 1:
            return []
        try:
            if model.calibration == "holdout" and model.early_stopping:
                parts = [_held_out(self, backend, next(iter(evaluation.values())), encoder)]
            elif model.calibration == "holdout":
                parts = [_scored_by_another(self, backend, *split_off(sample, model.validation_fraction, self._seed), encoder)]
            else:
                parts = [_scored_by_another(self, backend, *fold, encoder) for fold in folds(sample, N_FOLDS, self._seed)]
        except (KeyboardInterrupt, SystemError) as error:
            if not is_interrupt(error) or backend.peers.size > 1:
                raise
            return [INTERRUPTED]
        scores, target, weights = (np.concatenate([part[i] for part in parts]) for i in range(3))
        self.temperature_ = fit_temperature(HeldOut(scores, target, weights, sample.peers), link)
        return []


def _held_out(model: Any, backend: Backend, sample: Sample, encoder: LabelEncoder) -> HeldOut:
    """Return the scores that a model gives to rows with labels."""
    own = model._model
    if isinstance(own, TreeModel):  # also of rows on a device, and of a code file
        data = own.problem(backend, sample, encoder)[0].data
    else:
        data = own.encode(backend, sample.X[sample.rows])
    scores = backend.put(np.zeros((len(sample.target), len(encoder.classes))))
    own.add_scores(backend, data, scores, 0, model.n_estimators_)
    host: Floats = backend.get(scores)
    return HeldOut(host, sample.target, sample.weights, sample.peers)


def _scored_by_another(model: Any, backend: Backend, rest: Sample, held: Sample, encoder: LabelEncoder) -> HeldOut:
    """Train another model with the parameters of ``model`` and as many rounds on ``rest``; let it score ``held``."""
    other = copy.copy(model)
    for name, value in {"early_stopping": False, "callbacks": None, "verbose": 0}.items():
        setattr(other, name, value)
    other.n_estimators = model.n_estimators_
    booster = other._make_booster(encoder, rest, None)
    training, _ = other._train(backend, booster, rest, {}, encoder, None, None, time.perf_counter())
    if training.reason == "interrupted":
        raise KeyboardInterrupt
    return _held_out(other._store(training, backend), backend, held, encoder)

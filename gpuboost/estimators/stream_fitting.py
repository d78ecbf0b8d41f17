"""How an estimator is trained on a stream: cuts and classes from its first rows, then the booster, from where it stopped."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gpuboost.array_types import Floats
from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.threads import usable_threads
from gpuboost.binning import BinMapper
from gpuboost.boosters.filtering.examples import OUT_OF_ROWS, Examples, Oracle
from gpuboost.boosters.filtering.examples import Step as Labelled
from gpuboost.boosters.filtering.fixed_set import FixedSet
from gpuboost.ensemble import Ensemble
from gpuboost.errors import StreamError
from gpuboost.estimators.model import TreeModel
from gpuboost.fixedpoint import integer_weights, split_weights
from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.columns import compare_names, record_names
from gpuboost.inputs.label_encoder import LabelEncoder, class_array, label_array, shown
from gpuboost.inputs.label_values import joined_labels
from gpuboost.inputs.parameters import check_callables, draw_seed, evaluation_tuples
from gpuboost.inputs.samples import Sample, training_sample
from gpuboost.inputs.weights import class_weights, to_unit_scale
from gpuboost.streams import ArraySource, ExampleReader, Source, Step
from gpuboost.training import train

TOO_FEW_ROWS = (
    "lower examples_per_round, or give a source that can be read again, such as a function that returns the generator"
)
STEP_ROWS = 16384
"""Rows that are encoded and scored together. The model does not depend on it."""


class StreamFit:
    """A fit of an estimator that draws its rows from a stream.

    Parameters
    ----------
    estimator : FilterBoostClassifier
        A copy of the caller's, which gets the fitted attributes.
    """

    def __init__(self, estimator: Any) -> None:
        estimator._check_parameters()
        self.started, self.recycle, self.is_stream = time.perf_counter(), True, False
        self.reader: ExampleReader | None = None
        self.estimator = estimator
        self.previous: Any = estimator._to_continue()
        if self.previous is None:
            estimator._seed = draw_seed(estimator.random_state)
        estimator._forget("_trained_on", *estimator._optional_fitted)
        estimator._seed_matters = True

    def from_arrays(self, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> list[str]:
        """Train on arrays, in an order that the seed decides; return what the user should be warned of."""
        estimator, previous = self.estimator, self.previous
        matrix = to_host(estimator._matrix(X, reset=previous is None))
        sample, encoder = training_sample(matrix, y, sample_weight, estimator.class_weight)
        estimator._check_labels(encoder)
        self._set_classes(encoder)
        with estimator._model_kind.open(estimator.device, estimator.n_jobs) as backend:
            sample, evaluation = estimator._evaluation(backend, sample, eval_set, encoder)
            self._check_calibration(evaluation)
            estimator._remember_rows(sample)
            if estimator.draw in ("resample", "all"):
                return self._train_on_set(backend, sample, evaluation, encoder)
            rows = sample.X if len(sample.rows) == len(sample.X) else sample.X[sample.rows]
            source = ArraySource(rows, sample.target, _unequal(sample.weights), shuffle=estimator._seed % 2**32)
            with self._reader(source) as reader:
                steps = (_unchanged(step) for step in reader)
                return self._train(backend, steps, evaluation, encoder)

    def from_source(self, source: Source, classes: Any, eval_set: Any) -> list[str]:
        """Train on a source; return what the user should be warned of."""
        estimator, previous = self.estimator, self.previous
        self.is_stream = True
        if estimator.early_stopping and not evaluation_tuples(eval_set):
            raise ValueError("early_stopping needs an eval_set: no rows of a stream can be held out")
        if estimator.class_weight == "balanced":
            raise ValueError(
                'class_weight="balanced" needs the shares of all classes, which a stream does not tell; use a dict'
            )
        with (
            estimator._model_kind.open(estimator.device, estimator.n_jobs) as backend,
            self._reader(source) as reader,
        ):
            head, steps = _first_rows(reader, 1 if previous else estimator.n_bin_rows)
            if previous is None:
                record_names(estimator, reader.feature_names, head[0].X.shape[1])
            elif head:  # else the stream has ended where the model has
                compare_names(estimator, reader.feature_names, head[0].X.shape[1])
            encoder = self._classes_of(head, classes)
            self._set_classes(encoder)
            _, evaluation = estimator._evaluation(backend, None, eval_set, encoder)
            self._check_calibration(evaluation)
            multipliers = _class_multipliers(estimator.class_weight, encoder)
            return self._train(backend, (_labelled(step, encoder, multipliers) for step in steps), evaluation, encoder)

    def _check_calibration(self, evaluation: dict[str, Sample]) -> None:
        """Refuse a calibration that would have to train again on other rows of the stream."""
        asked = self.estimator.calibration
        if asked == "cv" or (asked and not (evaluation and self.estimator.early_stopping)):
            raise ValueError(
                f"calibration={asked!r} would train FilterBoostClassifier more than once: use early_stopping with "
                'calibration="holdout", which then takes the rows that early stopping looks at, or the method calibrate'
            )

    def _reader(self, source: Source) -> ExampleReader:
        """Return a reader that begins where the model that is continued has stopped."""
        estimator, previous = self.estimator, self.previous
        place, left = (0, 0), estimator.max_examples
        if previous is not None:
            history, last = previous.history_, previous.n_estimators_ - 1
            place = int(history["pass"][last]), int(history["row"][last])
            left = None if left is None else max(0, left - int(sum(history["draws"][: last + 1])))
            if source.n_rows is not None and place[1] > source.n_rows:
                raise ValueError(
                    f"warm_start=True goes on with row {place[1]} of pass {place[0]}, where the model has stopped, but there "
                    f"are {source.n_rows} rows: continue on the rows that it was trained on"
                )
        self.recycle = source.repeatable if isinstance(estimator.recycle, str) else bool(estimator.recycle)
        self.reader = ExampleReader(source, STEP_ROWS, self.recycle, left, start=place)
        return self.reader

    def _classes_of(self, head: list[Step], classes: Any) -> LabelEncoder:
        """Return the classes: those given, those of the model that is continued, or those of the first rows."""
        if classes is not None:
            return LabelEncoder.fit(class_array(classes), "classes")
        if self.previous is not None:
            return LabelEncoder(self.previous.classes_, False)
        n_rows = self.estimator.n_bin_rows
        y = joined_labels([step.y for step in head])[:n_rows]
        if head[0].weight is not None:
            y = y[np.concatenate([step.weight for step in head])[:n_rows] > 0]
        return LabelEncoder.fit(label_array(y, len(y)))

    def _set_classes(self, encoder: LabelEncoder) -> None:
        if len(encoder.classes) < 2:
            kind = type(self.estimator).__name__
            received = f"1 class: {shown(encoder.classes)}" if len(encoder.classes) else "no row with a weight above 0"
            raise ValueError(
                f"{kind} needs rows of at least two classes, got {received}"
                + ("; name all of them by classes if the stream begins so" if self.is_stream else "")
            )
        self.estimator.classes_, self.estimator.multi_label_ = encoder.classes, False
        if self.previous is not None:
            self.estimator._check_continuation(self.previous, encoder)

    def _train(
        self, backend: Backend, steps: Iterator[Labelled], evaluation: dict[str, Sample], encoder: LabelEncoder
    ) -> list[str]:
        """Train on a stream."""
        estimator, n_classes = self.estimator, len(encoder.classes)
        if self.previous is None:
            head, steps = _first_rows(steps, estimator.n_bin_rows)
            self._set_cuts(_cuts(head, estimator.n_bin_rows, estimator.max_bins, usable_threads(estimator.n_jobs)), n_classes)
        examples = Examples(
            steps,
            backend,
            estimator._model.bin_mapper,
            n_classes,
            weighting=estimator.weighting,
            seed=estimator._seed,
            kept_bytes=int(estimator.kept_bytes) if self.recycle else 0,
        )
        return self._boost(backend, examples, evaluation, encoder)

    def _train_on_set(
        self, backend: Backend, sample: Sample, evaluation: dict[str, Sample], encoder: LabelEncoder
    ) -> list[str]:
        """Train on a whole set in memory."""
        estimator, n_classes = self.estimator, len(encoder.classes)
        if self.previous is None:
            self._set_cuts(sample.fit_bins(estimator.max_bins, usable_threads(estimator.n_jobs)), n_classes)
        weight = _unequal(sample.weights)
        weight = np.broadcast_to(1.0, len(sample.target)) if weight is None else weight
        rows = Labelled(sample.X[sample.rows], sample.target, weight, 0, 0)
        mapper = estimator._model.bin_mapper
        examples = FixedSet(rows, backend, mapper, n_classes, weighting=estimator.weighting, seed=estimator._seed)
        return self._boost(backend, examples, evaluation, encoder)

    def _set_cuts(self, mapper: BinMapper, n_classes: int) -> None:
        self.estimator._model = TreeModel(mapper, Ensemble.from_rounds([], n_classes))

    def _boost(self, backend: Backend, examples: Oracle, evaluation: dict[str, Sample], encoder: LabelEncoder) -> list[str]:
        """Run the booster; return what the user should be warned of."""
        estimator, previous, model = self.estimator, self.previous, self.estimator._model
        rounds = previous._model.rounds() if previous else []
        examples.trees = [tree for trees in rounds for tree in trees]
        training = train(
            estimator._booster(examples, len(encoder.classes), self.recycle),
            None,
            n_rounds=estimator.n_estimators,
            initial_rounds=rounds,
            history=estimator._history_so_far(list(evaluation), ("error",), previous),
            evaluation={name: model.problem(backend, one, encoder)[0] for name, one in evaluation.items()},
            stopping=estimator._stopping(),
            callbacks=check_callables("callbacks", estimator.callbacks),
            verbose=int(estimator.verbose),
            started=self.started,
            model_of=lambda so_far: copy.copy(estimator)._store(so_far, backend),
        )
        if training.reason == OUT_OF_ROWS and self.reader is not None:
            training.reason = self.reader.ended or OUT_OF_ROWS
        if not training.rounds:
            hint = "" if self.recycle or "has ended" not in training.reason else f"; {TOO_FEW_ROWS}"
            raise StreamError(f"there is no model, as there is no round: {training.reason}{hint}")
        estimator._store(training, backend)
        kept = f"{len(training.rounds)} rounds; the model keeps them"
        if training.reason == "interrupted":
            return [f"interrupted after {kept}"]
        if estimator.calibration is not None:
            estimator._calibrate_in_fit(backend, next(iter(evaluation.values())), evaluation, encoder)
        return [f"{training.reason}, after {kept}"] if training.reason.startswith("the source failed") else []


def _first_rows(steps: Iterable[Any], n_rows: int) -> tuple[list[Any], Iterator[Any]]:
    """Return steps with the first ``n_rows`` rows, or the whole first pass, and all steps, these included."""
    left = iter(steps)
    head: list[Any] = []
    while n_rows > 0 and (step := next(left, None)):
        if head and step.pass_number > head[0].pass_number:
            left = itertools.chain([step], left)
            break
        head.append(step)
        n_rows -= len(step.X)
    return head, itertools.chain(head, left)


def _cuts(head: list[Labelled], n_rows: int, max_bins: int, n_threads: int) -> BinMapper:
    """Choose the cuts: weighted quantiles of the first rows."""
    X = np.concatenate([step.X for step in head])[:n_rows]
    weight = np.concatenate([step.weight for step in head])[:n_rows]
    units = np.zeros(len(X), np.int64)
    exists = weight > 0
    units[exists] = integer_weights(*split_weights(weight[exists]))
    return BinMapper.fit(X, max_bins=max_bins, integer_weights=units, n_threads=n_threads)


def _unequal(weights: Floats) -> Floats | None:
    """Return weights of up to 1; None if all are the same."""
    return None if (weights == weights[0]).all() else to_unit_scale(weights)


def _unchanged(step: Step) -> Labelled:
    weight = np.broadcast_to(1.0, len(step.X)) if step.weight is None else step.weight
    return Labelled(step.X, step.y, weight, step.pass_number, step.first_row)


def _labelled(step: Step, encoder: LabelEncoder, multipliers: Floats | None) -> Labelled:
    """Turn labels into class numbers; a `StreamError` if one is none of the classes."""
    weight = np.broadcast_to(1.0, len(step.X)) if step.weight is None else step.weight
    (exists,) = weight.nonzero()
    target = np.zeros(len(weight), np.int64)
    target[exists] = found = encoder.encode(step.y[exists], unknown_ok=True)
    if (found < 0).any():
        first = int(exists[found < 0][0])
        raise StreamError(
            f"row {step.first_row + first} of pass {step.pass_number} has the label {step.y[first : first + 1].tolist()[0]!r}, "
            f"which is none of the classes {shown(encoder.classes)}; name all of them by classes"
        )
    if multipliers is not None:
        weight = weight * multipliers[target]
    return Labelled(step.X, target, weight, step.pass_number, step.first_row)


def _class_multipliers(class_weight: Any, encoder: LabelEncoder) -> Floats | None:
    """Return the weight of each class; None if all weigh the same."""
    if class_weight is None:
        return None
    return to_unit_scale(class_weights(class_weight, encoder, np.zeros(0, np.int64), np.zeros(0)))

"""What all boosting classifiers share: everything but the algorithm."""

from __future__ import annotations

import copy
import os
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.boosters.base import Booster, Metric
from gpuboost.boosters.prior import PriorBooster
from gpuboost.code_files.code_file import CodeFile
from gpuboost.codes.decoding import MarginLoss
from gpuboost.costs.matrix import check_cost_matrix
from gpuboost.costs.metrics import refuse_many_labels
from gpuboost.estimators.calibrating import Calibrating
from gpuboost.estimators.exiting import Exiting
from gpuboost.estimators.file_fitting import evaluation_entries, stored_sample, watched_sample
from gpuboost.estimators.parameters import TrainingParameters
from gpuboost.estimators.predictor import take_over, to_backend
from gpuboost.export.methods import Exports
from gpuboost.inputs.label_encoder import LabelEncoder, shown
from gpuboost.inputs.label_values import label_keys
from gpuboost.inputs.parameters import check_callables, check_integer, draw_seed, shared_seed
from gpuboost.inputs.samples import Sample, evaluation_sample, split_off, training_sample
from gpuboost.messages import warn
from gpuboost.peers.base import ALONE, agree
from gpuboost.peers.rows import RowOrder
from gpuboost.persistence.model_file import save
from gpuboost.plotting.accessor import PlotAccessor
from gpuboost.progress import History
from gpuboost.training import Training, train

NO_COLUMN = "no column of X tells rows apart: the model predicts the shares of the classes"


class BoostingClassifier(TrainingParameters, Calibrating, Exiting, Exports, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of the boosting classifiers.

    A subclass declares its own parameters, makes the booster, and defines the link from scores to probabilities.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        The sorted labels of the rows with non-zero weight, in the dtype of y; column numbers for a multi-label y.
    multi_label_ : bool
        Whether y was an indicator matrix.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the columns, if X was a data frame with names.
    ensemble_ : gpuboost.ensemble.Ensemble
        The trees.
    bin_mapper_ : gpuboost.binning.BinMapper
        The cuts of every feature.
    history_ : dict of list of float
        One entry for each round that was run, see `gpuboost.training.Training`.
    n_estimators_ : int
        Rounds of the model: predictions use all of them.
    stop_reason_ : str
        Why the training ended.
    device_ : str
        Where the model was trained.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Each feature's share of the gain of all cuts.
    temperature_ : float
        What the scores are divided by for `predict_proba`; only after ``calibration`` or `calibrate`.
    class_sigmoids_ : ndarray of float64, shape (2, n_classes)
        Scale and offset of each class; only after ``calibrate(..., method="per-class")``.
    exit_lead_, exit_every_, exit_bound_ : float, int, float
        Only after `fit_early_exit`, which explains them.
    n_averaged_ : int
        The number of models that `gpuboost.average` has joined, where it has.
    """

    plot = PlotAccessor()
    """Pictures of the model and its training, see `gpuboost.plotting.Plots`."""

    _metrics: ClassVar[Mapping[str, Metric]] = MappingProxyType({"edge": 0.0})
    """The metrics of the booster's rounds, and their values in the history of a model that is a constant."""
    _margin_loss: ClassVar[MarginLoss | None] = None
    """The loss of the margin that two classes are trained by, where there is one. `OutputCodeClassifier` decodes by it."""
    _own_fitted: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes that only this classifier has."""
    _absent: ClassVar[tuple[str, ...]] = ()
    """Fitted attributes of its bases that it does not have."""

    # ---- what a subclass defines -------------------------------------------------------------------------------------------

    def _check_own_parameters(self) -> None:
        """Raise a ValueError or TypeError if a parameter of the subclass is wrong."""

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> Booster[Any]:
        """Return the algorithm to run on ``sample``. ``previous`` is the model that is continued, if one is."""
        raise TypeError(f"{type(self).__name__} must define _make_booster or override _fit")

    @abstractmethod
    def _prior_scores(self, positive: IntArray, total: int) -> Floats:
        """Return the scores (n_classes,) whose probabilities are ``positive / total``."""

    def _check_own_fitted(self) -> None:
        """Raise a ValueError or TypeError if a fitted attribute of the subclass, from a file, is wrong."""

    def _check_optional_fitted(self) -> None:
        """Raise a ValueError if a fitted attribute that only some models have, from a file, is wrong."""
        self._check_calibration()
        self._check_early_exit()
        if "n_averaged_" in vars(self):
            check_integer("n_averaged_", self.n_averaged_, 1)

    # ---- training ----------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train the classifier.

        Parameters
        ----------
        X : array-like, data frame, device array or ComputedMatrix, shape (n_rows, n_features); or CodeFile
            Numbers of any real dtype. NaN (in data frames also None and NA) is missing, infinities are ordinary values.
            Arrays of CuPy, PyTorch, JAX, Numba and others that lie on a CUDA device are encoded there, if the training runs on
            one; to choose the cuts, some of their columns at a time are copied to the host. All arrays that `fit` takes may be
            on a device. The columns of a `gpuboost.features.ComputedMatrix` are computed some at a time, in predictions, too.
            A `gpuboost.CodeFile` has labels and weights, too.
        y : array-like, shape (n_rows,) or (n_rows, n_classes)
            Labels of any type that can be ordered, or a 0/1 matrix of at least two columns for a multi-label problem.
        sample_weight : array-like, shape (n_rows,), optional
            Not negative. A row of weight 2 is the same as two rows; a row of weight 0 does not exist.
        eval_set : tuple or list of tuples, optional
            ``(X, y)``, ``(X, y, sample_weight)``, or a `CodeFile` with the cuts of the one that is trained on: sets whose error
            and loss are recorded after every round, as "valid", "valid_1", "valid_2", ... Early stopping looks at the first.
            They are unweighted unless they bring weights.

        Returns
        -------
        self
            If it is interrupted (Ctrl-C) after the first round, the model of the rounds so far.

        Raises
        ------
        ValueError, TypeError
            If a parameter or the data are not usable. An earlier fit of this estimator is left as it was.
        DeviceUnavailableError
            If ``device`` cannot be used; a DeviceLostError if it stops working. An earlier fit is left as it was then, too.
        """
        return self._fitted_by(lambda fitted: fitted._fit(X, y, sample_weight, eval_set))

    def _fitted_by(self, fit: Callable[[Self], list[str]]) -> Self:
        """Let ``fit`` train a copy of the estimator, and take over what it has made. A fit that fails changes nothing."""
        fitted = copy.copy(self)
        remarks = fit(fitted)
        take_over(self, fitted)
        for remark in remarks:
            warn(remark)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any, order: RowOrder | None = None) -> list[str]:
        """Train this copy of the estimator; return what the user should be warned of.

        With an ``order`` the arguments are a part of the rows: its workers, which all call this, make one model together.
        """
        started = time.perf_counter()
        self._check_parameters()
        previous = self._to_continue()
        self._forget("_trained_on", *self._optional_fitted)
        peers = order.peers if order else ALONE
        with self._model_kind.open(self.device, self.n_jobs, peers) as backend:
            if isinstance(X, CodeFile):
                sample, encoder = stored_sample(self, X, y, sample_weight, eval_set, order, reset=previous is None)
            else:
                matrix = to_backend(backend, self._matrix(X, reset=previous is None, may_be_empty=peers.size > 1))
                sample, encoder = training_sample(matrix, y, sample_weight, self.class_weight, order)
            self.classes_, self.multi_label_ = encoder.classes, encoder.multi_label
            if previous is None:
                self._seed = shared_seed(draw_seed(self.random_state), peers)
            else:
                self._check_continuation(previous, encoder)
            sample, evaluation = self._evaluation(backend, sample, eval_set, encoder)
            self._seed_matters = self._draws(eval_set) or (previous is not None and previous._seed_matters)
            costs = self._checked_costs(encoder)
            booster = self._make_booster(encoder, sample, previous)
            if self.calibration is not None:
                self._check_can_calibrate(sample, encoder)  # before anything takes time
            training, usable = self._train(backend, booster, sample, evaluation, encoder, costs, previous, started)
            if order is None and not isinstance(X, CodeFile):
                self._remember_rows(sample)
            self._store(training, backend)
            remarks = [] if usable or len(encoder.classes) == 1 else [NO_COLUMN]
            if self.calibration is not None and usable and training.reason != "interrupted":
                remarks += self._calibrate_in_fit(backend, sample, evaluation, encoder)
        if costs is not None and len(costs) > 1 and not costs.any(axis=1).all():
            free = encoder.classes[~costs.any(axis=1)]
            remarks.append(f"missing the classes {shown(free)} costs nothing: their rows of the cost matrix are zero")
        if training.reason == "interrupted":
            remarks.append(f"interrupted after {self.n_estimators_} rounds; the model keeps them")
        return remarks

    def _store(self, training: Training, backend: Backend) -> Self:
        """Set the fitted attributes to what a training has made."""
        self._model = self._model.with_rounds(training.rounds, len(self.classes_))
        self.history_ = training.history
        self.n_estimators_ = len(training.rounds)
        self.stop_reason_ = training.reason
        self.device_ = backend.device
        return self

    def _train(
        self,
        backend: Backend,
        booster: Booster[Any],
        sample: Sample,
        evaluation: dict[str, Sample],
        encoder: LabelEncoder,
        costs: Floats | None,
        previous: Self | None,
        started: float,
    ) -> tuple[Training, bool]:
        """Load the data and run the booster. Return also whether there is something to learn from."""
        if previous is None:
            self._model = self._model_kind.blank(sample, self.max_bins, self.n_jobs, len(encoder.classes))
        problem, usable = self._model.problem(backend, sample, encoder)
        if not usable:
            own = np.append(problem.integer_weights @ (problem.signs > 0), problem.integer_weights.sum())
            *positive, total = backend.peers.sum(own, "weights of the classes").tolist()
            scores = self._prior_scores(np.array(positive), total)
            agree(backend.peers, "scores of a constant model", scores)
            booster = PriorBooster(booster, scores, self._metrics)
        names = list(evaluation)
        watched = {name: self._model.problem(backend, one, encoder)[0] for name, one in evaluation.items()}
        for one in (sample, *evaluation.values()) if self.calibration is None else ():  # it looks at the rows again
            one.release()
        training = train(
            booster,
            problem,
            n_rounds=self.n_estimators,
            initial_rounds=previous._model.rounds() if previous else (),
            history=self._history_so_far(names, ("error",) if costs is None else ("error", "cost"), previous),
            evaluation=watched,
            costs=costs,
            stopping=self._stopping(),
            callbacks=check_callables("callbacks", self.callbacks),
            verbose=int(self.verbose),
            started=started,
            model_of=lambda so_far: copy.copy(self)._store(so_far, backend),
        )
        return training, usable

    def _evaluation(
        self, backend: Backend, sample: Sample, eval_set: Any, encoder: LabelEncoder
    ) -> tuple[Sample, dict[str, Sample]]:
        """Return the training set and the evaluation sets by name: the caller's, or a hold-out of the training set."""
        sets = evaluation_entries(eval_set)
        evaluation: dict[str, Sample] = {}
        for i, entry in enumerate(sets):
            name, set_name = f"eval_set[{i}]" if isinstance(eval_set, list) else "eval_set", f"valid_{i}" if i else "valid"
            if isinstance(entry, CodeFile):
                evaluation[set_name] = watched_sample(self, entry, encoder, name)
                continue
            X, y, sample_weight = entry
            may_be_empty = backend.peers.size > 1
            matrix = to_backend(backend, self._matrix(X, reset=False, name=f"X of {name}", may_be_empty=may_be_empty))
            evaluation[set_name] = evaluation_sample(matrix, y, sample_weight, encoder, name, backend.peers)
        if sets or not self.early_stopping:
            return sample, evaluation
        sample, held_out = split_off(sample, self.validation_fraction, self._seed)
        return sample, {"valid": held_out}

    def _draws(self, eval_set: Any) -> bool:
        """Whether training draws anything at random, or has a seed to draw with."""
        holds_out = bool(self.early_stopping) and not evaluation_entries(eval_set)
        holds_out |= self.calibration == "cv" or (self.calibration == "holdout" and not self.early_stopping)
        takes_parts = any(getattr(self, name, 1.0) != 1.0 for name in ("subsample", "max_features"))
        return self.random_state is not None or holds_out or takes_parts

    def _checked_costs(self, encoder: LabelEncoder) -> Floats | None:
        """Return the cost matrix to train by in the order of the classes, if there is one."""
        costs = self._costs()
        if costs is None:
            return None
        refuse_many_labels(encoder.multi_label)
        return check_cost_matrix(costs, encoder.classes)

    # ---- checks ------------------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_own_parameters()

    def _to_continue(self) -> Self | None:
        """Return the model that a fit is to continue, if it is; a ValueError if it cannot be."""
        if not (self.warm_start and self.__sklearn_is_fitted__()):
            return None
        if "n_averaged_" in vars(self):
            raise ValueError("warm_start=True cannot continue an average of models: continue each of them, and average again")
        return copy.copy(self)

    def _check_continuation(self, previous: Self, encoder: LabelEncoder) -> None:
        """Refuse to continue a model that this training set and these parameters do not fit."""
        old, new = previous.classes_, encoder.classes
        if encoder.multi_label != previous.multi_label_ or label_keys(old) != label_keys(new):
            raise ValueError(f"warm_start=True continues a model with the classes {shown(old)}, but y has {shown(new)}")
        if self.n_estimators < previous.n_estimators_:
            raise ValueError(
                f"warm_start=True needs n_estimators of at least the {previous.n_estimators_} rounds that the model has, "
                f"got {self.n_estimators}"
            )

    def _history_so_far(self, names: list[str], mistakes: tuple[str, ...], previous: Self | None) -> History:
        """Return one list for each quantity that will be recorded; NaN for earlier rounds that did not record it.

        ``mistakes`` are what is recorded of them; early stopping looks at the last.
        """
        if self.early_stopping and previous and f"{names[0]}_{mistakes[-1]}" not in previous.history_:
            missing = "evaluation set" if f"{names[0]}_error" not in previous.history_ else "cost matrix"
            raise ValueError(f"warm_start=True with early stopping needs the {missing} to be there from the first fit on")
        keys = [
            "train_loss",
            *self._metrics,
            *(f"{name}_{what}" for name in names for what in ("loss", *mistakes)),
            *(f"train_{what}" for what in mistakes),
            "seconds",
        ]
        if previous is None:
            return {key: [] for key in keys}
        return {key: previous.history_.get(key, [float("nan")] * previous.n_estimators_) for key in keys}

    # ---- files ---------------------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, which `gpuboost.load` reads.

        The file holds the trees, the cuts, the labels with their types, the names of the columns, the parameters, the seed that
        was drawn if anything was, and the history: all that it takes to predict and to go on with ``warm_start=True``. It holds
        nothing of the machine: no ``device``, ``n_jobs``, ``verbose``, ``warm_start``, ``callbacks``, ``device_`` and
        ``history_["seconds"]``. So equal models are equal files, byte for byte, on whatever device they were trained. It is a
        file of safetensors, and nothing in it can be run.

        Parameters
        ----------
        path : str or path
            Written whole or not at all, see `persistence.atomic_write`. By convention it ends in ".safetensors".

        Raises
        ------
        NotFittedError
            If the classifier has not been fitted.
        TypeError
            If something cannot be kept: regressors of scikit-learn; a class that is not of this package; labels, column names
            or values in a parameter that are neither of Python's own types (also Decimal, Fraction, bytes, dates and times) nor
            NumPy's. What a parameter holds comes back as it was, but for two: a generator in ``random_state`` as the seed that
            was drawn from it, and a DataFrame in ``cost_matrix`` as the dict of dicts with its labels and costs.
        ValueError
            If a parameter was changed since to what `fit` would refuse, or the labels and names are too large for a header.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import gpuboost
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> gpuboost.fit(X, y, n_estimators=20).save("iris.safetensors")
        >>> gpuboost.load("iris.safetensors").predict(X[:2])
        array([0, 0])
        """
        save(self, path)

    # ---- scikit-learn's protocol --------------------------------------------------------------------------------------------

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_estimators_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.classifier_tags.multi_label = True
        return tags


class SingleLabelClassifier(BoostingClassifier):
    """Base class of classifiers whose loss needs exactly one label a row."""

    def _check_labels(self, encoder: LabelEncoder) -> None:
        """Raise a ValueError for a multi-label problem."""
        if encoder.multi_label:
            raise ValueError(
                f"{type(self).__name__} needs one label a row, but y is an indicator matrix; AdaBoostMHClassifier takes it"
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = False
        return tags

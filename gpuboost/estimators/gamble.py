"""The estimator of GAMBLE (`gpuboost.boosters.gamble`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np

from gpuboost.backends.base import Backend
from gpuboost.backends.statistics import Device
from gpuboost.boosters.base import Booster, Problem
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.gamble_regressors import GambleRegressors, RegressionProblem, RegressionStep
from gpuboost.devices import open_backend
from gpuboost.estimators.class_trees import ClassTreeClassifier
from gpuboost.estimators.gamble_regressors import RegressorTemplate, regressor_pair, takes_missing
from gpuboost.estimators.sampling import sampling_of
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.progress import Progress

TREES_ONLY = ("ensemble_", "bin_mapper_", "feature_importances_")


class GambleClassifier(ClassTreeClassifier):
    """GAMBLE: gentle adaptive multi-class boosting learning (Huang, Ertekin, Song, Zha and Giles 2007).

    With class trees, algorithm 2 of the paper; or with regressors of scikit-learn, its algorithm 1.

    Parameters
    ----------
    n_estimators : int, default 500
        Rounds of boosting, the number of trees.
    regressor : regressor or pair of regressors, default None
        What to boost instead of class trees (None): anything with scikit-learn's interface whose ``fit`` takes
        ``sample_weight``, or a pipeline whose last step does. See the notes.
    max_leaf_nodes : int, default 15
        Leaves of a tree, at least 2.
    min_weight_fraction_leaf : float, default 0.0
        The share of the sample weights (times the class weights) that each side of a cut must have, 0 to 0.5.
    weight_trim, max_features, subsample, pruning
        See `AdaBoostMHClassifier`.
    learning_rate : float, "auto" or "line-search", default "auto"
        Multiplies the step, which is the values of the leaves. 1 is the paper's algorithm; its full step overshoots as the
        number of classes K grows. "auto" is min(1, 2 / K), which suits few rounds and wrong labels. "line-search" takes in
        every round what lowers the training loss most of 1, 1/2, 1/4, ..., and mostly errs less after some hundred rounds: see
        the notes.
    max_bins : int, default 255
        Bins of a feature's values, 2 to 255. A feature with no more distinct values is cut between any two of them.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes by label, by which the sample weights are multiplied; see `AdaBoostMHClassifier`.
    early_stopping, validation_fraction, n_iter_no_change, random_state
        See `AdaBoostMHClassifier`.
    device : str or int, default "auto"
        "auto", "cpu", "numpy" (a slow reference), "cuda", "cuda:1" or the number of a CUDA device.
    n_jobs, verbose, warm_start, callbacks
        See `AdaBoostMHClassifier`.

    Attributes
    ----------
    classes_, n_features_in_, ensemble_, history_, n_estimators_, stop_reason_, device_, feature_importances_
        See `AdaBoostMHClassifier`. The ensemble's values are the papers' F; "edge" of the history is a tree's weighted accuracy
        above chance, 1 for a tree that errs nowhere and 0 for one that guesses.
    learning_rate_ : float
        What ``learning_rate`` has become; 1 for "line-search", which starts from there.
    estimators_ : list of gpuboost.boosters.gamble_regressors.RegressionStep
        Only with ``regressor``, in the place of ``ensemble_``, ``bin_mapper_`` and ``feature_importances_``. The regressors of
        round t are ``estimators_[t].g.regressors`` and ``estimators_[t].h.regressors``: lists of one, or of one a class.

    Notes
    -----
    Errors in three-fold cross-validation with 300 trees and a ``learning_rate`` of 1, "auto" and "line-search": pendigits
    1.8, 2.6 and 2.0 %, vowel (11 classes) 7.2, 13.6 and 6.9 %, soybean (19) 9.6, 12.9 and 9.8 %, letter (26) 26.0, 19.2 and
    18.5 %; with every tenth label drawn at random, on parts of pendigits 15.8, 14.5 and 14.6 %, of letter 40.0, 28.7 and
    30.7 %. After 30 trees "auto" is ahead on letter and on both noisy sets. More rounds do not close the gap: small steps keep
    the weights of the rows alike (an effective tenth of the rows of pendigits with "auto", a hundredth with the others), so the
    trees are alike, too.

    With ``regressor``, two regressions a round are fitted to the weighted rows: g to their coding y, 1 for the row's class and
    -1 / (K - 1) for the others, and h to its square. A pair of regressors is (g, h). They are cloned for every fit, and every
    ``random_state`` in them is set to a number that follows from the classifier's ``random_state`` and the round, the same for
    g and h. The weights have the mean 1. Regressors of one output are fitted once a class, those of several (by their
    scikit-learn tags) once. For two classes h is 1 and g has one output; with ``learning_rate=0.5`` that is Gentle AdaBoost. g
    and h are clipped to the range of what they estimate: unlike trees, most regressors leave it, and the step ``K g / h``
    explodes.

    The regressors get X as an array of float64, NaN included, which some take and some refuse. ``max_leaf_nodes``,
    ``min_weight_fraction_leaf``, ``max_bins``, ``device`` and ``n_jobs`` mean nothing then; a regressor has its own. Nor can
    ``weight_trim``, ``max_features`` and ``subsample`` be used. The model is not promised to be the same bit for bit
    everywhere: that is up to the regressors.

    References
    ----------
    J. Huang, S. Ertekin, Y. Song, H. Zha and C. L. Giles (2007), Efficient multiclass boosting classification with active
    learning, SDM.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import GambleClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> GambleClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    _regressors: tuple[RegressorTemplate, RegressorTemplate] | None = None
    """What the model is made of, or about to be: None for trees."""

    def __init__(
        self,
        *,
        n_estimators: int = 500,
        regressor: Any = None,
        max_leaf_nodes: int = 15,
        min_weight_fraction_leaf: float = 0.0,
        weight_trim: float | None = None,
        max_features: float = 1.0,
        subsample: float = 1.0,
        pruning: bool = False,
        learning_rate: float | Literal["auto", "line-search"] = "auto",
        max_bins: int = 255,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        early_stopping: bool | Literal["smoothed", "patience"] = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int | None = None,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
        device: str | int = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        callbacks: Sequence[Callable[[Progress], Any]] | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.regressor = regressor
        self.max_leaf_nodes = max_leaf_nodes
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.weight_trim = weight_trim
        self.max_features = max_features
        self.subsample = subsample
        self.pruning = pruning
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.warm_start = warm_start
        self.callbacks = callbacks

    _own_fitted = ("learning_rate_",)

    def _check_own_fitted(self) -> None:
        parameters.check_learning_rate(self.learning_rate_, "learning_rate_")

    def _check_own_parameters(self) -> None:
        parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_fraction("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.5)
        sampling = sampling_of(self)
        if self.regressor is not None and not sampling.takes_all:
            given = ", ".join(f"{name}={getattr(self, name)!r}" for name in ("weight_trim", "max_features", "subsample"))
            raise ValueError(f"only class trees, regressor=None, are grown from a part of the rows or features, got {given}")
        if isinstance(self.learning_rate, str):
            parameters.check_choice("learning_rate", self.learning_rate, ("auto", "line-search"))
        else:
            parameters.check_learning_rate(self.learning_rate)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> Booster[Any]:
        self._check_labels(encoder)
        if previous is not None and hasattr(previous, "estimators_") == (self.regressor is None):
            kind = "regressors" if self.regressor is None else "trees"
            raise ValueError(f"warm_start=True continues a model of {kind}, got regressor={self.regressor!r:.200}")
        rates = {"auto": min(1.0, 2.0 / len(encoder.classes)), "line-search": 1.0}
        rate = rates[self.learning_rate] if isinstance(self.learning_rate, str) else float(self.learning_rate)
        self.learning_rate_ = rate
        line_search = self.learning_rate == "line-search"
        if self._regressors is not None:
            return GambleRegressors(*self._regressors, rate, self._seed, line_search)
        return Gamble(
            max_leaf_nodes=int(self.max_leaf_nodes),
            learning_rate=rate,
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=sampling_of(self, self._seed),
            line_search=line_search,
        )

    # ---- regressors instead of trees -----------------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> list[str]:
        self._regressors = None if self.regressor is None else regressor_pair(self.regressor)
        return super()._fit(X, y, sample_weight, eval_set)

    def _open(self) -> Backend:
        return super()._open() if self._regressors is None else open_backend("numpy")

    def _prepare(self, sample: Sample) -> None:
        if self._regressors is None:
            super()._prepare(sample)

    def _problem(self, backend: Backend, sample: Sample, encoder: LabelEncoder) -> tuple[Problem, bool]:
        if self._regressors is None:
            return super()._problem(backend, sample, encoder)
        data = self._encode(backend, sample.X[sample.rows])
        return RegressionProblem(backend, data, *sample.labels(encoder)), True

    def _keep(self, rounds: list[Any]) -> None:
        if self._regressors is None:
            self.__dict__.pop("estimators_", None)
            super()._keep(rounds)
        else:
            for name in ("ensemble_", "bin_mapper_"):
                self.__dict__.pop(name, None)
            self.estimators_: list[RegressionStep] = [step for (step,) in rounds]

    def _rounds(self) -> list[Any]:
        return super()._rounds() if self._regressors is None else [[step] for step in self.estimators_]

    def _encode(self, backend: Backend, matrix: Any) -> Device:
        return super()._encode(backend, matrix) if self._regressors is None else matrix.astype(np.float64, copy=False)

    def _add_scores(self, backend: Backend, data: Device, scores: Device, first: int, stop: int) -> None:
        if self._regressors is None:
            super()._add_scores(backend, data, scores, first, stop)
        else:
            for step in self.estimators_[first:stop]:
                scores += step.values(data)

    def __getattr__(self, name: str) -> Any:
        if name in TREES_ONLY and "estimators_" in vars(self):
            raise AttributeError(f"a GambleClassifier that boosts a regressor has no {name}, but estimators_")
        return super().__getattribute__(name)

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        if self.regressor is not None:
            tags.input_tags.allow_nan = takes_missing(self.regressor)
        return tags

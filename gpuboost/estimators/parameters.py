"""The parameters that estimators share: declared, documented and checked once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, dataclass_transform

import numpy as np

from gpuboost.boosters.sampling import Sampling
from gpuboost.estimators.docstrings import with_inherited_entries
from gpuboost.inputs.parameters import (
    check_between,
    check_bool,
    check_callables,
    check_choice,
    check_class_weight,
    check_fraction,
    check_integer,
    check_share,
)
from gpuboost.progress import Progress
from gpuboost.stopping import Patience, SmoothedError, Stopping

DEFAULT_PATIENCE = 50


@dataclass_transform(kw_only_default=True, eq_default=False)
class Parameters:
    """Base class of what declares parameters: annotated class attributes with their defaults, as in a dataclass.

    A subclass needs no ``__init__``: it takes the parameters of the class and of its bases by keyword. What a class annotates
    that is no parameter must be a ``ClassVar``.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        dataclass(kw_only=True, eq=False, repr=False, match_args=False)(cls)
        cls.__doc__ = with_inherited_entries(cls)

    def _check_parameters(self) -> None:
        """Raise a ValueError or TypeError if a parameter is wrong."""


class TrainingParameters(Parameters):
    """What every estimator has.

    Parameters
    ----------
    n_estimators : int, default 500
        Rounds of boosting.
    max_bins : int, default 255
        Bins of a feature's values, 2 to 255. A feature with no more distinct values is cut between any two of them.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes by label (1 for labels that are not in the dict), by which the sample weights are multiplied.
        "balanced" gives all classes the same total weight. It does not act on an ``eval_set``, but on the rows held out.
    early_stopping : bool, "smoothed" or "patience", default False
        "smoothed" (also True) keeps the number of rounds with the lowest mean validation error over the last fifth of them (eq.
        15 of the AdaBoost.MH paper), and never fewer than 51 where more than 50 rounds are run. "patience" keeps the first one
        with the lowest validation error: the rule, with ``n_iter_no_change``, for a model that overfits within a few rounds.
    calibration : {"holdout", "cv"} or None, default None
        How `predict_proba` gets a temperature, by which the scores are divided: after many rounds a model is far surer than it
        is right. "holdout" fits it to the rows that early stopping looks at; without early stopping it trains a second model
        without ``validation_fraction`` of the rows, which takes as long as the first, for its scores of these. "cv" trains five
        more, each without a fifth of the rows. The trees are those of the model without calibration, and so are all labels.
        The method `calibrate` fits it to rows of your own.
    validation_fraction : float, default 0.1
        The share of the rows that early stopping and calibration hold out, class by class, if there is no ``eval_set``.
    n_iter_no_change : int or None, default None
        Early stopping ends the training after that many rounds without a lower (smoothed) error. None: never for "smoothed", as
        in the paper; 50 for "patience".
    random_state : int, Generator, RandomState or None, default None
        Seed of all that is random: the hold-out set, and what is drawn in a round, which depends on it and on the number of the
        round only.
    device : str or int, default "auto"
        "auto", "cpu", "numpy" (a slow reference), "cuda", "cuda:1" or the number of a CUDA device.
    n_jobs : int or None, default None
        Threads; None and -1 are all CPUs that the process may use.
    verbose : int, default 0
        1 shows a progress bar, n > 1 prints a line every n rounds.
    warm_start : bool, default False
        Whether `fit` adds rounds to the fitted model until there are ``n_estimators``; with the same data the result is that of
        one long training.
    callbacks : sequence of callables, optional
        Called after every round with a `gpuboost.progress.Progress`; a true return value ends the training.
    """

    n_estimators: int = 500
    max_bins: int = 255
    class_weight: dict[Any, float] | Literal["balanced"] | None = None
    early_stopping: bool | Literal["smoothed", "patience"] = False
    calibration: Literal["holdout", "cv"] | None = None
    validation_fraction: float = 0.1
    n_iter_no_change: int | None = None
    random_state: int | np.random.Generator | np.random.RandomState | None = None
    device: str | int = "auto"
    n_jobs: int | None = None
    verbose: int = 0
    warm_start: bool = False
    callbacks: Sequence[Callable[[Progress], Any]] | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_estimators", self.n_estimators, 1)
        check_integer("max_bins", self.max_bins, 2, 255)
        check_class_weight(self.class_weight)
        check_between("validation_fraction", self.validation_fraction, 1)
        if self.calibration is not None:
            check_choice("calibration", self.calibration, ("holdout", "cv"))
        if isinstance(self.early_stopping, str):
            check_choice("early_stopping", self.early_stopping, ("smoothed", "patience"))
        else:
            check_bool("early_stopping", self.early_stopping)
        if self.n_iter_no_change is not None:
            check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        if self.n_jobs is not None:
            check_integer("n_jobs", self.n_jobs, -(2**31))
        if not isinstance(self.random_state, (type(None), np.random.Generator, np.random.RandomState)):
            check_integer("random_state", self.random_state, 0)
        check_integer("verbose", int(self.verbose) if isinstance(self.verbose, bool) else self.verbose, 0)
        check_bool("warm_start", self.warm_start)
        check_callables("callbacks", self.callbacks)

    def _stopping(self) -> Stopping | None:
        """Return the early-stopping rule."""
        if not self.early_stopping:
            return None
        if isinstance(self.early_stopping, str) and self.early_stopping == "patience":
            return Patience(self.n_iter_no_change or DEFAULT_PATIENCE)
        return SmoothedError(self.n_iter_no_change)


class SamplingParameters(Parameters):
    """Which part of the rows and features a round's trees are grown from.

    Parameters
    ----------
    weight_trim : float or None, default None
        Each round's tree is grown from the heaviest rows only, those that hold this share of the boosting weights, such as
        0.99: fewer and fewer rows (weight trimming). This, ``max_features`` and ``subsample`` make training faster where there
        are many rows or features, sometimes at a cost in accuracy; on a few thousand rows with some tens of features they save
        next to nothing. Only the cuts (and the votes) of a tree are found on a part of the data; its coefficients or leaf
        values, the edge and the loss are those of all rows. None: all rows.
    max_features : float, default 1.0
        The share of the features, at least one, that each round's tree may cut, drawn at random (LazyBoost).
    subsample : float, default 1.0
        The share of the rows, at least one, that each round's tree is grown from, drawn at random whatever their weights
        (stochastic boosting). With ``weight_trim``, from the heaviest of those drawn.
    """

    weight_trim: float | None = None
    max_features: float = 1.0
    subsample: float = 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._sampling()

    def _sampling(self, seed: int = 0) -> Sampling:
        """Return what a booster is to draw; raise a ValueError or TypeError if a parameter is wrong."""
        return Sampling(
            weight_trim=check_share("weight_trim", self.weight_trim, none_is_one=True),
            max_features=check_share("max_features", self.max_features),
            subsample=check_share("subsample", self.subsample),
            pruning=False,
            seed=seed,
        )


class GrowthParameters(SamplingParameters):
    """How a round's one tree is grown: sampling, and what goes with trees whose leaves have a least weight.

    Parameters
    ----------
    min_weight_fraction_leaf : float, default 0.0
        The share of the sample weights that each side of a cut must have, 0 to 0.5. Those are the weights passed to `fit`
        (times the class weights), not those that boosting works with. It keeps rows of small weight from getting leaves of
        their own. It is a share of the rows that ``subsample`` draws, and rows that ``weight_trim`` leaves out do not count.
    pruning : bool, default False
        Leave out additions that exact bounds show to be unnecessary (QuickBoost). The model is the same, byte for byte. It pays
        with hundreds of features, once few rows hold nearly all of the boosting weights. Only the CPU backend prunes: it times
        both ways and takes the faster one, and so loses next to nothing where it does not pay. With
        ``min_weight_fraction_leaf`` nothing is pruned.
    """

    min_weight_fraction_leaf: float = 0.0
    pruning: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_fraction("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.5)

    def _sampling(self, seed: int = 0) -> Sampling:
        return replace(super()._sampling(seed), pruning=check_bool("pruning", self.pruning))

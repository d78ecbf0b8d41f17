"""The estimator of SAMME (`gpuboost.boosters.samme`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np

from gpuboost.boosters.samme import SAMME
from gpuboost.estimators.class_trees import ClassTreeClassifier
from gpuboost.estimators.sampling import sampling_of
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.progress import Progress


class SAMMEClassifier(ClassTreeClassifier):
    """Multi-class AdaBoost with classification trees: SAMME and SAMME.R (Zhu, Zou, Rosset and Hastie 2009).

    Parameters
    ----------
    n_estimators : int, default 500
        Rounds of boosting, the number of trees.
    variant : {"discrete", "real"}, default "discrete"
        "discrete" is SAMME, in which a tree votes for one class; "real" is SAMME.R, in which it gives the classes' log
        probabilities.
    max_leaf_nodes : int, default 15
        Leaves of a tree, at least 2.
    min_weight_fraction_leaf : float, default 0.0
        The share of the sample weights (times the class weights) that each side of a cut must have, 0 to 0.5.
    weight_trim, max_features, subsample, pruning
        See `AdaBoostMHClassifier`.
    learning_rate : float, default 1.0
        Multiplies what a tree adds; 1 is the paper's algorithm.
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

    References
    ----------
    J. Zhu, H. Zou, S. Rosset and T. Hastie (2009), Multi-class AdaBoost, Statistics and Its Interface 2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import SAMMEClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> SAMMEClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        *,
        n_estimators: int = 500,
        variant: Literal["discrete", "real"] = "discrete",
        max_leaf_nodes: int = 15,
        min_weight_fraction_leaf: float = 0.0,
        weight_trim: float | None = None,
        max_features: float = 1.0,
        subsample: float = 1.0,
        pruning: bool = False,
        learning_rate: float = 1.0,
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
        self.variant = variant
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

    def _check_own_parameters(self) -> None:
        parameters.check_choice("variant", self.variant, ("discrete", "real"))
        parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_fraction("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.5)
        sampling_of(self)
        parameters.check_learning_rate(self.learning_rate)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> SAMME:
        self._check_labels(encoder)
        return SAMME(
            max_leaf_nodes=int(self.max_leaf_nodes),
            learning_rate=float(self.learning_rate),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=sampling_of(self, self._seed),
            variant=self.variant,
        )

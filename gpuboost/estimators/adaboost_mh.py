"""The estimator of AdaBoost.MH (`gpuboost.boosters.adaboost_mh`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.exponential import MAX_STEP
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.estimators.sampling import sampling_of
from gpuboost.exactmath import log
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample
from gpuboost.learners.base import Learner
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import MAX_FACTORS, StumpProduct
from gpuboost.links import Link, Sigmoid
from gpuboost.progress import Progress


class AdaBoostMHClassifier(BoostingClassifier):
    """AdaBoost.MH with multi-class Hamming trees, stumps or products of stumps (Kegl 2014).

    The algorithm boosts one vector-valued classifier a round, which votes for or against every class, and whose cuts are shared
    by all classes. The same data and parameters give the same model on every backend and with any number of threads.

    Parameters
    ----------
    n_estimators : int, default 1000
        Rounds of boosting, the number of trees.
    learner : {"tree", "stump", "product"}, default "tree"
        The weak learner: Hamming trees (section 3 of the paper), decision stumps, or products of decision stumps (Kegl and
        Busa-Fekete 2009).
    max_leaf_nodes : int or "auto", default "auto"
        Leaves of a Hamming tree, at least 2: the paper's number of inner nodes plus one. "auto" is 20, or with less than
        2000 distinct rows one for every 100 of them, but no less than there are classes (up to 20) and than 4: small sets want
        small trees.
    n_factors : int, default 3
        Stumps of a product, 1 to 8.
    min_weight_fraction_leaf : float, default 0.0
        The share of the sample weights that each side of a cut must have, 0 to 0.5. Those are the weights passed to `fit`
        (times the class weights), not those that boosting works with. It keeps rows of small weight
        from getting leaves of their own. It is a share of the rows that ``subsample`` draws, and rows that ``weight_trim``
        leaves out do not count.
    weight_trim : float or None, default None
        Each round's tree is grown from the heaviest rows only, those that hold this share of the boosting weights, such as
        0.99: fewer and fewer rows (weight trimming). This and the next two parameters make training faster where there are many
        rows or features, sometimes at a cost in accuracy; on a few thousand rows with some tens of features they save next to
        nothing. Only the cuts (and the votes) of a tree are found on a part of the data; its coefficients or leaf values, the
        edge and the loss are those of all rows. None: all rows.
    max_features : float, default 1.0
        The share of the features, at least one, that each round's tree may cut, drawn at random (LazyBoost).
    subsample : float, default 1.0
        The share of the rows, at least one, that each round's tree is grown from, drawn at random whatever their weights
        (stochastic boosting). With ``weight_trim``, from the heaviest of those drawn.
    pruning : bool, default False
        Leave out additions that exact bounds show to be unnecessary (QuickBoost). The model is the same, byte for byte. It pays
        with hundreds of features, once few rows hold nearly all of the boosting weights. Only the CPU backend prunes: it times
        both ways and takes the faster one, and so loses next to nothing where it does not pay. With
        ``min_weight_fraction_leaf`` nothing is pruned.
    variant : {"real", "discrete"}, default "real"
        "discrete" gives each round one coefficient (eq. 12), "real" one to every leaf and class (section 2.3). The latter needs
        fewer rounds; the former, with which the paper's experiments were made, suffers less from wrong labels.
    learning_rate : float, default 1.0
        Multiplies the coefficients; 1 is the paper's algorithm.
    initial_weights : {"auto", "single-label", "uniform"}, default "auto"
        How the weight of a row is divided among the classes: half of it to the row's own class (eq. 3), or equally. "auto" is
        "single-label" for a y of labels and "uniform" for an indicator matrix.
    max_bins : int, default 255
        Bins of a feature's values, 2 to 255. A feature with no more distinct values is cut between any two of them.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes by label (1 for labels that are not in the dict), by which the sample weights are multiplied.
        "balanced" gives all classes the same total weight. It does not act on an ``eval_set``, but on the rows held out.
    early_stopping : bool, "smoothed" or "patience", default False
        "smoothed" (also True) keeps the number of trees with the lowest mean validation error over the last fifth of the rounds
        (eq. 15), and never fewer than 51 where more than 50 rounds are run. "patience" keeps the first one with the lowest
        validation error: the rule, with ``n_iter_no_change``, for a model that overfits within a few rounds.
    validation_fraction : float, default 0.1
        The share of the rows that early stopping holds out, class by class, if there is no ``eval_set``.
    n_iter_no_change : int or None, default None
        Early stopping ends the training after that many rounds without a lower (smoothed) error. None: never for "smoothed", as
        in the paper; 50 for "patience".
    random_state : int, Generator, RandomState or None, default None
        Seed of all that is random: the hold-out set, and the draws of ``max_features`` and ``subsample``, which depend
        on it and on the number of the round only.
    device : str or int, default "auto"
        "auto", "cpu", "numpy" (a slow reference), "cuda", "cuda:1" or the number of a CUDA device.
    n_jobs : int or None, default None
        Threads; None and -1 are all CPUs that the process may use.
    verbose : int, default 0
        1 shows a progress bar, n > 1 prints a line every n rounds.
    warm_start : bool, default False
        Whether `fit` adds trees to the fitted model until there are ``n_estimators``; with the same data the result is that of
        one long training.
    callbacks : sequence of callables, optional
        Called after every round with a `gpuboost.progress.Progress`; a true return value ends the training.

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
        Number of trees in the model: predictions use all of them.
    stop_reason_ : str
        Why the training ended.
    device_ : str
        Where the model was trained.
    initial_weights_ : {"single-label", "uniform"}
        What ``initial_weights`` has become.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Each feature's share of the edge that all cuts have won.

    References
    ----------
    B. Kegl (2014), The return of AdaBoost.MH: multi-class Hamming trees, ICLR.

    B. Kegl and R. Busa-Fekete (2009), Boosting products of base classifiers, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import AdaBoostMHClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = AdaBoostMHClassifier(n_estimators=20, max_leaf_nodes=4).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    """

    def __init__(
        self,
        *,
        n_estimators: int = 1000,
        learner: Literal["tree", "stump", "product"] = "tree",
        max_leaf_nodes: int | Literal["auto"] = "auto",
        n_factors: int = 3,
        min_weight_fraction_leaf: float = 0.0,
        weight_trim: float | None = None,
        max_features: float = 1.0,
        subsample: float = 1.0,
        pruning: bool = False,
        variant: Literal["real", "discrete"] = "real",
        learning_rate: float = 1.0,
        initial_weights: Literal["auto", "single-label", "uniform"] = "auto",
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
        self.learner = learner
        self.max_leaf_nodes = max_leaf_nodes
        self.n_factors = n_factors
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.weight_trim = weight_trim
        self.max_features = max_features
        self.subsample = subsample
        self.pruning = pruning
        self.variant = variant
        self.learning_rate = learning_rate
        self.initial_weights = initial_weights
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

    _own_fitted = ("initial_weights_",)

    def _check_own_fitted(self) -> None:
        parameters.check_choice("initial_weights_", self.initial_weights_, ("single-label", "uniform"))

    def _check_own_parameters(self) -> None:
        parameters.check_choice("learner", self.learner, ("tree", "stump", "product"))
        if isinstance(self.max_leaf_nodes, str):
            if self.max_leaf_nodes != "auto":
                raise ValueError(f'max_leaf_nodes must be an integer of at least 2 or "auto", got {self.max_leaf_nodes!r}')
        else:
            parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_integer("n_factors", self.n_factors, 1, MAX_FACTORS)
        parameters.check_fraction("min_weight_fraction_leaf", self.min_weight_fraction_leaf, 0.5)
        sampling_of(self)
        parameters.check_choice("variant", self.variant, ("discrete", "real"))
        parameters.check_learning_rate(self.learning_rate)
        parameters.check_choice("initial_weights", self.initial_weights, ("auto", "single-label", "uniform"))

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> AdaBoostMH:
        if encoder.multi_label and self.initial_weights == "single-label":
            raise ValueError(
                'initial_weights="single-label" needs one label a row, but y is an indicator matrix; use "uniform" or "auto"'
            )
        if self.initial_weights == "auto":
            self.initial_weights_ = "uniform" if encoder.multi_label else "single-label"
        else:
            self.initial_weights_ = self.initial_weights
        if previous is not None and previous.initial_weights_ != self.initial_weights_:
            raise ValueError(
                f"warm_start=True continues a model with initial_weights={previous.initial_weights_!r}, "
                f"got {self.initial_weights_!r}"
            )
        learner: Learner
        if self.learner == "product":
            learner = StumpProduct(self.n_factors)
        else:
            learner = HammingTree(self._leaves(len(encoder.classes), sample) if self.learner == "tree" else 2)
        return AdaBoostMH(
            learner,
            self.initial_weights_,  # type: ignore[arg-type]
            self.variant,
            float(self.learning_rate),
            float(self.min_weight_fraction_leaf),
            sampling_of(self, self._seed),
        )

    def _leaves(self, n_classes: int, sample: Sample) -> int:
        """Return the number of leaves that ``max_leaf_nodes`` stands for."""
        if isinstance(self.max_leaf_nodes, str):
            return min(20, max(4, n_classes, sample.n_distinct(2000) // 100))
        return int(self.max_leaf_nodes)

    def _offset(self, n_classes: int) -> float:
        """Return the log of the odds against a class that its initial weights have levelled."""
        return float(log(max(n_classes - 1, 1))) if self.initial_weights_ == "single-label" else 0.0

    def _link(self, n_classes: int) -> Link:
        # A class is a binary problem of its own, whose exponential loss is lowest at half the log odds: those of its share
        # p : 1 - p of the rows if both sides weigh the same, or p : (1 - p) / (K - 1) with the weights of eq. 3.
        return Sigmoid(2.0, self._offset(n_classes))

    def _prior_scores(self, positive: NDArray[np.int64], total: int) -> NDArray[np.float64]:
        scores = 0.5 * (log(positive) - log(total - positive) + self._offset(len(positive)))
        return np.clip(scores, -MAX_STEP, MAX_STEP)

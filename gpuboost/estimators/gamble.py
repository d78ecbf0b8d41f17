"""The estimator of GAMBLE (`gpuboost.boosters.gamble`)."""

from __future__ import annotations

from typing import Any, Literal, Self

from gpuboost.boosters.base import Booster
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.gamble_regressors import GambleRegressors, RegressionStep
from gpuboost.estimators.class_trees import ClassTreeClassifier
from gpuboost.estimators.gamble_regressors import RegressorModel, regressor_pair, takes_missing
from gpuboost.estimators.model import Model, TreeModel
from gpuboost.estimators.parameters import GrowthParameters
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample


class GambleClassifier(GrowthParameters, ClassTreeClassifier):
    """GAMBLE: gentle adaptive multi-class boosting learning (Huang, Ertekin, Song, Zha and Giles 2007).

    With class trees, algorithm 2 of the paper; or with regressors of scikit-learn, its algorithm 1.

    Parameters
    ----------
    regressor : regressor or pair of regressors, default None
        What to boost instead of class trees (None): anything with scikit-learn's interface whose ``fit`` takes
        ``sample_weight``, or a pipeline whose last step does. See the notes.
    max_leaf_nodes : int, default 15
        Leaves of a tree, at least 2.
    learning_rate : float, "auto" or "line-search", default "auto"
        Multiplies the step, which is the values of the leaves. 1 is the paper's algorithm; its full step overshoots as the
        number of classes K grows. "auto" is min(1, 2 / K), which suits few rounds and wrong labels. "line-search" takes in
        every round what lowers the training loss most of 1, 1/2, 1/4, ..., and mostly errs less after some hundred rounds: see
        the notes.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. "edge" is a tree's weighted accuracy above chance, 1 for a tree that errs nowhere and
        0 for one that guesses. The values of ``ensemble_`` are the paper's F.
    learning_rate_ : float
        What ``learning_rate`` has become; 1 for "line-search", which starts from there.
    estimators_ : list of gpuboost.boosters.gamble_regressors.RegressionStep
        Only with ``regressor``, in the place of ``ensemble_``, ``bin_mapper_`` and ``feature_importances_``. The regressors of
        round t are ``estimators_[t].g.regressors`` and ``estimators_[t].h.regressors``: lists of one, or of one a class.

    See Also
    --------
    SAMMEClassifier : The same loss, with votes instead of Newton steps.
    ActiveLearner : The paper's active learning.

    Notes
    -----
    Small steps keep the weights of the rows alike, and so the trees. After some hundred rounds "line-search" errs less than
    "auto" where labels are right (300 trees, three-fold cross-validation: vowel 6.9 and 13.6 %, pendigits 2.0 and 2.6 %), but
    not where every tenth is drawn at random (letter 30.7 and 28.7 %).

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

    regressor: Any = None
    max_leaf_nodes: int = 15
    learning_rate: float | Literal["auto", "line-search"] = "auto"

    _own_fitted = ("learning_rate_",)

    def _check_own_fitted(self) -> None:
        parameters.check_learning_rate(self.learning_rate_, "learning_rate_")

    def _check_own_parameters(self) -> None:
        parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        if self.regressor is not None:
            regressor_pair(self.regressor)
        if self.regressor is not None and not self._sampling().takes_all:
            given = ", ".join(f"{name}={getattr(self, name)!r}" for name in ("weight_trim", "max_features", "subsample"))
            raise ValueError(f"only class trees, regressor=None, are grown from a part of the rows or features, got {given}")
        if isinstance(self.learning_rate, str):
            parameters.check_choice("learning_rate", self.learning_rate, ("auto", "line-search"))
        else:
            parameters.check_learning_rate(self.learning_rate)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> Booster[Any]:
        self._check_labels(encoder)
        rates = {"auto": min(1.0, 2.0 / len(encoder.classes)), "line-search": 1.0}
        rate = rates[self.learning_rate] if isinstance(self.learning_rate, str) else float(self.learning_rate)
        self.learning_rate_ = rate
        line_search = self.learning_rate == "line-search"
        if self.regressor is not None:
            return GambleRegressors(*regressor_pair(self.regressor), rate, self._seed, line_search)
        return Gamble(
            max_leaf_nodes=int(self.max_leaf_nodes),
            learning_rate=rate,
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            line_search=line_search,
            sampling=self._sampling(self._seed),
        )

    @property
    def _model_kind(self) -> type[Model]:
        return TreeModel if self.regressor is None else RegressorModel

    def _check_continuation(self, previous: Self, encoder: LabelEncoder) -> None:
        super()._check_continuation(previous, encoder)
        if not isinstance(previous._model, self._model_kind):
            kind = "regressors" if self.regressor is None else "trees"
            raise ValueError(f"warm_start=True continues a model of {kind}, got regressor={self.regressor!r:.200}")

    @property
    def estimators_(self) -> list[RegressionStep]:
        """The regressors of all rounds."""
        model = vars(self).get("_model")
        if not isinstance(model, RegressorModel):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'estimators_'")
        return model.steps

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        if self.regressor is not None:
            tags.input_tags.allow_nan = takes_missing(self.regressor)
        return tags

"""The estimator of REBEL (`gpuboost.boosters.rebel`)."""

from __future__ import annotations

from typing import Self

from gpuboost.boosters.rebel import Rebel
from gpuboost.estimators.cost_sensitive import CostSensitiveClassifier
from gpuboost.estimators.parameters import GrowthParameters
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample

MAX_DEPTH = 6
"""The paper's trees have up to four layers."""


class RebelClassifier(GrowthParameters, CostSensitiveClassifier):
    """REBEL: cost-sensitive multi-class boosting (Appel, Burgos-Artizzu and Perona 2016).

    A round adds ``f(x) a``: a shallow tree f that says -1 or +1, shared by all classes, times a vector a. The scores of a row
    bound what it costs to predict the class of the largest one.

    Parameters
    ----------
    max_depth : int, default 2
        Layers of a tree, 1 to 6. A tree has up to ``2**max_depth`` leaves.
    learning_rate : float, default 1.0
        Multiplies the vectors, but that of the constant classifier, which is the first round unless it is zero; 1 is the
        paper's algorithm.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. "edge" is the share of the weight that a tree is right about with the signs of its
        vector, less the share that it is wrong about. The values of ``ensemble_`` are the paper's H.
    feature_importances_ : ndarray of float64, shape (n_features,)
        Each feature's share of the loss that all cuts have saved.

    See Also
    --------
    gpuboost.min_cost_labels : The two-step way: decisions by costs from any classifier's probabilities.
    AdaBoostMHClassifier : The same loss without costs, with larger trees.

    Notes
    -----
    For equal costs, and for two classes with any costs, the class of the largest score is that of least expected cost once the
    loss is as low as it can be. For unequal costs and more classes it is the paper's surrogate, and not always the same class:
    with the true distribution known, it is another one in 11 % of random problems with three classes, 28 % with five and 51 %
    with ten, which costs 4, 10 and 17 % more. So training with costs is much better than to ignore them (a quarter less on
    synthetic problems), but the two-step way tends to be cheaper still: train without ``cost_matrix``, and call
    ``predict(X, cost_matrix=costs)``. That takes good probabilities: with log odds four times too large it is the other way
    round.

    The probabilities of a model without costs are those of each class against the others, ``1 / (1 + exp(-2 H_k))``, divided by
    their sum. With unequal costs the scores mix probabilities and costs, and there is no `predict_proba`.

    References
    ----------
    R. Appel, X. Burgos-Artizzu and P. Perona (2016), Improved multi-class cost-sensitive boosting via estimation of the
    minimum-risk class, arXiv:1607.03547. It is chapter 4 of Appel's thesis, whose equations the code cites.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import RebelClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> costs = [[0, 1, 1], [1, 0, 1], [10, 10, 0]]
    >>> model = RebelClassifier(cost_matrix=costs, n_estimators=20).fit(X, y)
    >>> model.predict(X[:2])
    array([0, 0])
    >>> model.expected_cost(X, y)
    0.0
    """

    max_depth: int = 2
    learning_rate: float = 1.0

    def _check_own_parameters(self) -> None:
        parameters.check_integer("max_depth", self.max_depth, 1, MAX_DEPTH)
        parameters.check_learning_rate(self.learning_rate)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> Rebel:
        self._check_costs_of(previous)
        return Rebel(
            max_depth=int(self.max_depth),
            costs=self.cost_matrix_,
            learning_rate=float(self.learning_rate),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=self._sampling(self._seed),
        )

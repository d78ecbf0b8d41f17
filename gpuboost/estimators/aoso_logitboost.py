"""The estimator of AOSO-LogitBoost (`gpuboost.boosters.comparison.aoso_logitboost`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

from gpuboost.boosters.base import Metric
from gpuboost.boosters.comparison.aoso_logitboost import AOSOLogitBoost
from gpuboost.estimators.abc_boost import SoftmaxClassifier
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample


class AOSOLogitBoostClassifier(SoftmaxClassifier):
    """AOSO-LogitBoost: adaptive one-vs-one LogitBoost (Sun, Reid and Zhou 2012).

    A round is one tree. Every node has a pair of classes of its own: it is split by the gain of a Newton step that moves the
    scores of the two in opposite ways, and a leaf takes that step.

    Parameters
    ----------
    n_estimators : int, default 1000
        Rounds of boosting, the number of trees.
    weight_trim : float or None, default None
        Each tree is grown from the heaviest rows only, those that hold this share of ``1 - p``, p being the probability of the
        row's class, such as 0.99 (weight trimming). None: all rows.

    See Also
    --------
    LogitBoostClassifier : A tree for each class in every round.
    ABCBoostClassifier : A base class for all trees of a round.

    Notes
    -----
    The first class of a node is that of the largest gradient, the second the one with which the step gains the most. The choice
    is made on the host, from exact sums. With two classes the model is that of `LogitBoostClassifier`.

    References
    ----------
    P. Sun, M. Reid and J. Zhou (2012), AOSO-LogitBoost: adaptive one-vs-one LogitBoost for multi-class problem, ICML.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import AOSOLogitBoostClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AOSOLogitBoostClassifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    n_estimators: int = 1000

    _metrics: ClassVar[Mapping[str, Metric]] = MappingProxyType({})

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> Any:
        self._check_labels(encoder)
        return AOSOLogitBoost(
            max_leaf_nodes=int(self.max_leaf_nodes),
            min_samples_leaf=int(self.min_samples_leaf),
            learning_rate=float(self.learning_rate),
            sampling=self._sampling(self._seed),
        )

"""The estimator of AdaBoost.M1 (`gpuboost.boosters.comparison.adaboost_m1`)."""

from __future__ import annotations

from typing import Self

from gpuboost.boosters.comparison.adaboost_m1 import AdaBoostM1
from gpuboost.estimators.class_trees import ClassTreeClassifier
from gpuboost.estimators.parameters import GrowthParameters
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample


class AdaBoostM1Classifier(GrowthParameters, ClassTreeClassifier):
    """AdaBoost.M1 with classification trees (Freund and Schapire 1997).

    The training ends where a tree errs on half of the weight, however many classes there are.

    Parameters
    ----------
    max_leaf_nodes : int, default 15
        Leaves of a tree, at least 2. Many classes need many leaves, or no tree is right on more than half of the weight.
    learning_rate : float, default 1.0
        Multiplies what a tree adds; 1 is the paper's algorithm.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. "edge" is a tree's weighted accuracy above chance, 1 for a tree that errs nowhere and
        0 for one that guesses.

    See Also
    --------
    SAMMEClassifier : The same with a coefficient that is positive for whatever is better than chance.

    References
    ----------
    Y. Freund and R. Schapire (1997), A decision-theoretic generalization of on-line learning and an application to boosting,
    Journal of Computer and System Sciences 55.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gpuboost import AdaBoostM1Classifier
    >>> X, y = load_iris(return_X_y=True)
    >>> AdaBoostM1Classifier(n_estimators=20).fit(X, y).predict(X[:2])
    array([0, 0])
    """

    max_leaf_nodes: int = 15
    learning_rate: float = 1.0

    def _check_own_parameters(self) -> None:
        parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_learning_rate(self.learning_rate)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> AdaBoostM1:
        self._check_labels(encoder)
        return AdaBoostM1(
            max_leaf_nodes=int(self.max_leaf_nodes),
            learning_rate=float(self.learning_rate),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=self._sampling(self._seed),
        )

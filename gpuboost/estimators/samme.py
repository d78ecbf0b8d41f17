"""The estimator of SAMME (`gpuboost.boosters.samme`)."""

from __future__ import annotations

from typing import Literal, Self

from gpuboost.boosters.samme import SAMME
from gpuboost.estimators.class_trees import ClassTreeClassifier
from gpuboost.estimators.parameters import GrowthParameters
from gpuboost.inputs import parameters
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample


class SAMMEClassifier(GrowthParameters, ClassTreeClassifier):
    """Multi-class AdaBoost with classification trees: SAMME and SAMME.R (Zhu, Zou, Rosset and Hastie 2009).

    Parameters
    ----------
    variant : {"discrete", "real"}, default "discrete"
        "discrete" is SAMME, in which a tree votes for one class; "real" is SAMME.R, in which it gives the classes' log
        probabilities.
    max_leaf_nodes : int, default 15
        Leaves of a tree, at least 2.
    learning_rate : float, default 1.0
        Multiplies what a tree adds; 1 is the paper's algorithm.

    Attributes
    ----------
    history_ : dict of list of float
        See `gpuboost.training.Training`. "edge" is a tree's weighted accuracy above chance, 1 for a tree that errs nowhere and
        0 for one that guesses. The values of ``ensemble_`` are the paper's F.

    See Also
    --------
    GambleClassifier : Newton steps on the same loss.
    AdaBoostMHClassifier : Trees that vote for or against every class.

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

    variant: Literal["discrete", "real"] = "discrete"
    max_leaf_nodes: int = 15
    learning_rate: float = 1.0

    def _check_own_parameters(self) -> None:
        parameters.check_choice("variant", self.variant, ("discrete", "real"))
        parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_learning_rate(self.learning_rate)

    def _make_booster(self, encoder: LabelEncoder, sample: Sample, previous: Self | None) -> SAMME:
        self._check_labels(encoder)
        return SAMME(
            max_leaf_nodes=int(self.max_leaf_nodes),
            variant=self.variant,
            learning_rate=float(self.learning_rate),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            sampling=self._sampling(self._seed),
        )

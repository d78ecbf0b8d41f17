"""The weak learners of boosters of votes, and the parameters that choose them."""

from __future__ import annotations

from typing import ClassVar, Literal

from gpuboost.estimators.parameters import GrowthParameters
from gpuboost.inputs import parameters
from gpuboost.inputs.samples import Sample
from gpuboost.learners.base import Learner
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import MAX_FACTORS, StumpProduct
from gpuboost.learners.single_label_tree import SingleLabelTree


class VotingParameters(GrowthParameters):
    """What boosters of votes have: which learner, and what its votes are multiplied by.

    Parameters
    ----------
    learner : {"tree", "stump", "product"}, default "tree"
        The weak learner: Hamming trees (section 3 of Kegl 2014), decision stumps, or products of decision stumps (Kegl and
        Busa-Fekete 2009).
    max_leaf_nodes : int or "auto", default "auto"
        Leaves of a tree, at least 2: Kegl's number of inner nodes plus one. "auto" is 20, or with less than 2000 distinct rows
        one for every 100 of them, but no less than there are classes (up to 20) and than 4: small sets need small trees.
    n_factors : int, default 3
        Stumps of a product, 1 to 8.
    learning_rate : float, default 1.0
        Multiplies the coefficients; 1 is the paper's algorithm.
    """

    learner: str = "tree"
    max_leaf_nodes: int | Literal["auto"] = "auto"
    n_factors: int = 3
    variant: str = "discrete"
    learning_rate: float = 1.0

    _learners: ClassVar[tuple[str, ...]] = ("tree", "stump", "product")
    _variants: ClassVar[tuple[str, ...]] = ("discrete", "real")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        parameters.check_choice("learner", self.learner, self._learners)
        if isinstance(self.max_leaf_nodes, str):
            if self.max_leaf_nodes != "auto":
                raise ValueError(f'max_leaf_nodes must be an integer of at least 2 or "auto", got {self.max_leaf_nodes!r}')
        else:
            parameters.check_integer("max_leaf_nodes", self.max_leaf_nodes, 2)
        parameters.check_integer("n_factors", self.n_factors, 1, MAX_FACTORS)
        parameters.check_choice("variant", self.variant, self._variants)
        if self.learner == "single-label" and self.variant != "discrete":
            raise ValueError(
                f'learner="single-label" needs variant="discrete", got {self.variant!r}: '
                "with a coefficient for every leaf and class a leaf does not vote for one class"
            )
        parameters.check_learning_rate(self.learning_rate)

    def _learner(self, n_classes: int, sample: Sample) -> Learner | SingleLabelTree:
        """Return the weak learner."""
        if self.learner == "product":
            return StumpProduct(int(self.n_factors))
        if self.learner == "stump":
            return HammingTree(2)
        n_leaves = self._leaves(n_classes, sample)
        return SingleLabelTree(n_leaves) if self.learner == "single-label" else HammingTree(n_leaves)

    def _leaves(self, n_classes: int, sample: Sample) -> int:
        """Return the number of leaves that ``max_leaf_nodes`` stands for."""
        if isinstance(self.max_leaf_nodes, str):
            return min(20, max(4, n_classes, sample.n_distinct(2000) // 100))
        return int(self.max_leaf_nodes)

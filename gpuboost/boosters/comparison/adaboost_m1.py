"""AdaBoost.M1 (Freund and Schapire 1997).

Y. Freund and R. Schapire, "A decision-theoretic generalization of on-line learning and an application to boosting", Journal of
Computer and System Sciences 55, 1997.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuboost.boosters.class_trees import ClassSums, ClassTreeBooster, Values, correct_weight
from gpuboost.boosters.samme import votes
from gpuboost.exactmath import log


@dataclass(frozen=True)
class AdaBoostM1(ClassTreeBooster):
    """Figure 2 of the paper: a classifier of K classes votes with ``ln(1 / beta)``, ``beta = err / (1 - err)``.

    The training ends at an error of 1/2, however many classes there are: all that SAMME (Zhu et al. 2009) does otherwise is to
    add ``ln(K - 1)`` to the coefficient. Votes are written as SAMME's, so that ``softmax(F / (K - 1))`` is that of the votes.
    """

    @property
    def ends_when_perfect(self) -> bool:
        return True

    def leaf_values(self, sums: ClassSums) -> Values | None:
        total, right = int(sums.sum()), correct_weight(sums)
        if 2 * right <= total:
            return None
        right = min(right, total - 1)  # keeps the coefficient of a perfect tree finite
        return votes(sums, float(log(right / (total - right))))

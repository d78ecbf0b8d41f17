"""AdaBoost.MR (Schapire and Singer 1999), of which AdaBoost.M2 and AdaBoost.MM are special cases.

R. Schapire and Y. Singer, "Improved boosting algorithms using confidence-rated predictions", Machine Learning 37, 1999.
Y. Freund and R. Schapire, "A decision-theoretic generalization of on-line learning and an application to boosting", Journal of
Computer and System Sciences 55, 1997. I. Mukherjee and R. Schapire, "A theory of multiclass boosting", JMLR 14, 2013.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpuboost.boosters.adaboost_mh import AdaBoostMH, InitialWeights
from gpuboost.boosters.base import Problem
from gpuboost.boosters.comparison.pair_weights import PairWeights


@dataclass(frozen=True)
class AdaBoostMR(AdaBoostMH):
    """The loop of AdaBoost.MH on the weights of pairs: figure 4 of the paper for one label a row.

    The loss is ``sum_i sum_{l != y} exp((f_l - f_y) / 2)``. With votes h in {-1, +1}^K a round's edge is
    ``r = 1/2 sum_il D(i, l) (h_y - h_l)`` and its coefficient ``1/2 ln((1 + r) / (1 - r))`` (section 6). The real variant takes
    the values that minimise the bound ``exp((a + b) / 2) <= (exp(a) + exp(b)) / 2`` of a leaf's loss.

    - AdaBoost.M2 (figure 3 of Freund and Schapire 1997) with confidences ``(1 + h) / 2``: its pseudo-loss is ``(1 - r) / 2``,
      so weights and predictions are the same; confidences between 0 and 1 have no lower pseudo-loss than the best votes.
    - AdaBoost.MM (figure 5 of Mukherjee and Schapire 2013) with `gpuboost.learners.single_label_tree.SingleLabelTree`: its
      cost matrix is ``exp(f_l - f_y)`` where a vote adds ``alpha / 2 (1 + h_l)`` to a score. Its scores are half of those here.

    Attributes
    ----------
    initial_weights
        Not used: all pairs weigh the same.
    """

    initial_weights: InitialWeights = "uniform"

    def row_state(self, problem: Problem) -> PairWeights:
        return PairWeights(problem)

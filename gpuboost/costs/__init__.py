"""What mistakes cost: cost matrices (`matrix`), and what estimators and scorers make of them (`metrics`)."""

from gpuboost.costs.matrix import check_cost_matrix

__all__ = ["check_cost_matrix"]

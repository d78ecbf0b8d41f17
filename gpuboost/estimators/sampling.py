"""The parameters that say from what part of the rows and features a round's tree is grown."""

from __future__ import annotations

from typing import Any

from gpuboost.boosters.sampling import Sampling
from gpuboost.inputs.parameters import check_bool, check_share


def sampling_of(estimator: Any, seed: int = 0) -> Sampling:
    """Return what ``weight_trim``, ``feature_fraction``, ``row_fraction`` and ``quick`` say, or raise if one is wrong."""
    return Sampling(
        weight_trim=check_share("weight_trim", estimator.weight_trim, none_is_one=True),
        feature_fraction=check_share("feature_fraction", estimator.feature_fraction),
        row_fraction=check_share("row_fraction", estimator.row_fraction),
        quick=check_bool("quick", getattr(estimator, "quick", False)),
        seed=seed,
    )

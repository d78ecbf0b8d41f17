"""The parameters that say from what part of the rows and features a round's tree is grown."""

from __future__ import annotations

from typing import Any

from gpuboost.boosters.sampling import Sampling
from gpuboost.inputs.parameters import check_bool, check_share


def sampling_of(estimator: Any, seed: int = 0) -> Sampling:
    """Return what ``weight_trim``, ``max_features``, ``subsample`` and ``pruning`` say, or raise if one is wrong."""
    return Sampling(
        weight_trim=check_share("weight_trim", estimator.weight_trim, none_is_one=True),
        max_features=check_share("max_features", estimator.max_features),
        subsample=check_share("subsample", estimator.subsample),
        pruning=check_bool("pruning", getattr(estimator, "pruning", False)),
        seed=seed,
    )

"""From the name of an algorithm to its estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuboost.messages import did_you_mean
from gpuboost.registry import ALGORITHMS, estimator_class


def new_estimator(algorithm: str, device: str | int, parameters: Mapping[str, Any]) -> Any:
    """Return the estimator of an algorithm with these parameters.

    Raises
    ------
    ValueError
        If there is no such algorithm, or it has no such parameter.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(
            f"algorithm must be one of {sorted(ALGORITHMS)}, got {algorithm!r}{did_you_mean(str(algorithm), ALGORITHMS)}"
        )
    estimator = estimator_class(ALGORITHMS[algorithm].estimator)
    known = estimator().get_params()
    unknown = sorted(set(parameters) - set(known))
    if unknown:
        hint = did_you_mean(unknown[0], known)
        raise ValueError(f"{estimator.__name__} has no parameter {unknown[0]!r}{hint}; it has {sorted(known)}")
    model = estimator(**parameters)
    model.device = device  # an estimator that does not declare it has it, too
    return model

"""Features of images, and matrices whose columns are computed when they are read.

`HaarFeatures` makes columns of images; `compact` leaves those out of a fitted pipeline that its model does not use.
`ComputedMatrix` is what an estimator takes in place of an array whose values would not fit in memory.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gpuboost.binning.computed import ComputedMatrix

if TYPE_CHECKING:
    from gpuboost.features.haar import HaarFeatures
    from gpuboost.features.used_columns import compact

__all__ = ["ComputedMatrix", "HaarFeatures", "compact"]


def __getattr__(name: str) -> Any:
    """Load what needs scikit-learn when it is asked for."""
    if name == "HaarFeatures":
        return importlib.import_module("gpuboost.features.haar").HaarFeatures
    if name == "compact":
        return importlib.import_module("gpuboost.features.used_columns").compact
    raise AttributeError(f"module 'gpuboost.features' has no attribute {name!r}")

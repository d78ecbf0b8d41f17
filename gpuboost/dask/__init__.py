"""Training on the workers of a Dask cluster: the model is the one that one process would make of all rows, byte for byte.

>>> import gpuboost.dask  # doctest: +SKIP
>>> model = gpuboost.dask.fit(client, X, y, n_estimators=300)  # doctest: +SKIP
>>> labels = gpuboost.dask.predict(client, model, X_new)  # doctest: +SKIP

It needs the packages dask and distributed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gpuboost.extras import load

load("distributed", "gpuboost.dask")

if TYPE_CHECKING:
    from gpuboost.dask.classifier import DaskClassifier
    from gpuboost.dask.fitting import fit
    from gpuboost.dask.prediction import predict, predict_proba

__all__ = ["DaskClassifier", "fit", "predict", "predict_proba"]

MODULES = {
    "DaskClassifier": "gpuboost.dask.classifier",
    "fit": "gpuboost.dask.fitting",
    "predict": "gpuboost.dask.prediction",
    "predict_proba": "gpuboost.dask.prediction",
}


def __getattr__(name: str) -> Any:
    """Load what is asked for: workers need none of it."""
    if name in MODULES:
        return getattr(importlib.import_module(MODULES[name]), name)
    raise AttributeError(f"module 'gpuboost.dask' has no attribute {name!r}")

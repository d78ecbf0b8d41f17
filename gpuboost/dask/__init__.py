"""Training on the workers of a Dask cluster: the model is the one that one process would make of all rows, byte for byte.

>>> import gpuboost.dask  # doctest: +SKIP
>>> model = gpuboost.dask.fit(client, X, y, n_estimators=300)  # doctest: +SKIP
>>> labels = gpuboost.dask.predict(client, model, X_new)  # doctest: +SKIP

It needs ``pip install gpuboost-ml[dask]``.
"""

from __future__ import annotations

from gpuboost.extras import load

load("distributed", "gpuboost.dask")

from gpuboost.dask.classifier import DaskClassifier  # noqa: E402  (after the message of what is missing)
from gpuboost.dask.fitting import fit  # noqa: E402
from gpuboost.dask.prediction import predict, predict_proba  # noqa: E402

__all__ = ["DaskClassifier", "fit", "predict", "predict_proba"]

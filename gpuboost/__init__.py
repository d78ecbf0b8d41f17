"""gpuboost: multi-class boosting, one model bit for bit on every backend.

>>> import gpuboost
>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> model = gpuboost.fit(X, y, n_estimators=20)
>>> model.predict(X[:2])
array([0, 0])
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from gpuboost.by_name import new_estimator
from gpuboost.errors import (
    CodeFileError,
    DeviceLostError,
    DeviceMemoryError,
    DeviceUnavailableError,
    ModelFormatError,
    StreamError,
)
from gpuboost.registry import ALGORITHMS, COMPOSITES, __version__, estimator_modules

if TYPE_CHECKING:
    from gpuboost.active.learner import ActiveLearner
    from gpuboost.code_files import CodeFile
    from gpuboost.costs.metrics import cost_scorer, mean_cost, min_cost_labels
    from gpuboost.estimators import (
        ABCBoostClassifier,
        AdaBoostECCClassifier,
        AdaBoostM1Classifier,
        AdaBoostMHClassifier,
        AdaBoostMRClassifier,
        AOSOLogitBoostClassifier,
        BoostingClassifier,
        FilterBoostClassifier,
        GambleClassifier,
        LocalizedSimilaritiesClassifier,
        LogitBoostClassifier,
        MartClassifier,
        OneVsAllClassifier,
        OutputCodeClassifier,
        RebelClassifier,
        SAMMEClassifier,
    )
    from gpuboost.estimators.averaging import average
    from gpuboost.persistence.checkpoint import Checkpoint

__all__ = [
    "ALGORITHMS",
    "ABCBoostClassifier",
    "AOSOLogitBoostClassifier",
    "ActiveLearner",
    "AdaBoostECCClassifier",
    "AdaBoostM1Classifier",
    "AdaBoostMHClassifier",
    "AdaBoostMRClassifier",
    "Checkpoint",
    "CodeFile",
    "CodeFileError",
    "DeviceLostError",
    "DeviceMemoryError",
    "DeviceUnavailableError",
    "FilterBoostClassifier",
    "GambleClassifier",
    "LocalizedSimilaritiesClassifier",
    "LogitBoostClassifier",
    "MartClassifier",
    "ModelFormatError",
    "OneVsAllClassifier",
    "OutputCodeClassifier",
    "RebelClassifier",
    "SAMMEClassifier",
    "StreamError",
    "__version__",
    "average",
    "cost_scorer",
    "fit",
    "load",
    "mean_cost",
    "min_cost_labels",
]

MODULES = (
    "boosters",
    "codes",
    "costs",
    "dask",
    "datasets",
    "ensemble",
    "estimators",
    "export",
    "features",
    "learners",
    "plotting",
    "similarities",
    "stopping",
    "streams",
    "training",
)
"""The modules that are loaded when they are asked for, as in ``gpuboost.datasets.make_poker_hands``."""

OTHERS = {
    "ActiveLearner": "gpuboost.active.learner",
    "Checkpoint": "gpuboost.persistence.checkpoint",
    "CodeFile": "gpuboost.code_files",
    "average": "gpuboost.estimators.averaging",
    **dict.fromkeys(("cost_scorer", "mean_cost", "min_cost_labels"), "gpuboost.costs.metrics"),
}
"""The modules of the names that are loaded when they are asked for, but for the estimators."""


def __getattr__(name: str) -> Any:
    """Load an estimator, and scikit-learn with it, or a module when it is asked for: the import stays light."""
    if name in MODULES:
        return importlib.import_module(f"gpuboost.{name}")
    module = (estimator_modules() | COMPOSITES | OTHERS).get(name)
    if module is not None:
        return getattr(importlib.import_module(module), name)
    raise AttributeError(f"module 'gpuboost' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names, those that are loaded when they are asked for included."""
    return sorted([*__all__, *MODULES])


def fit(
    X: Any,
    y: Any = None,
    *,
    algorithm: str = "adaboost-mh",
    device: str | int = "auto",
    sample_weight: Any = None,
    eval_set: Any = None,
    **params: Any,
) -> BoostingClassifier:
    """Train a classifier in one call.

    Parameters
    ----------
    X : array-like or data frame, shape (n_rows, n_features); or CodeFile
        Numbers; NaN is missing. A `CodeFile` has labels and weights, too.
    y : array-like, shape (n_rows,) or (n_rows, n_classes)
        Labels of any type, or a 0/1 matrix for multi-label problems.
    algorithm : str, default "adaboost-mh"
        One of ``gpuboost.ALGORITHMS``.
    device : str or int, default "auto"
        "auto", "cpu", "numpy", "cuda", "cuda:1" or a CUDA device number.
    sample_weight : array-like, shape (n_rows,), optional
    eval_set : tuple or list of tuples, optional
        ``(X, y)``, ``(X, y, sample_weight)`` or a `CodeFile`, watched during training.
    **params
        Parameters of the estimator, for instance ``n_estimators=500``, or ``calibration="holdout"`` for probabilities that can
        be believed: without it a model of many rounds is far surer than it is right.

    Returns
    -------
    BoostingClassifier
        The fitted estimator of the algorithm.

    Raises
    ------
    ValueError
        If the algorithm, a parameter or the data are not usable; raised before the training starts.
    DeviceUnavailableError
        If the device was asked for and cannot be used.
    """
    model = new_estimator(algorithm, device, params)
    fitted: BoostingClassifier = model.fit(X, y, sample_weight=sample_weight, eval_set=eval_set)
    return fitted


def load(path: str | os.PathLike[str], device: str | int = "auto", n_jobs: int | None = None) -> BoostingClassifier:
    """Load a classifier that its method ``save`` has written.

    Its predictions, probabilities, labels and all else are those of the classifier that was saved, bit for bit. Nothing in a
    file is ever run, and what comes of it is checked, so files of strangers are safe to load.

    Parameters
    ----------
    path : str or path
    device : str or int, default "auto"
        Where to predict, and train on: see `fit`.
    n_jobs : int or None, default None
        Threads; None and -1 are all CPUs that the process may use.

    Returns
    -------
    BoostingClassifier
        A fitted estimator of the class that was saved. Its other parameters are those of the one saved, but for ``verbose``,
        ``warm_start`` and ``callbacks``, which have their defaults. It has no ``device_``, and no "seconds" in ``history_``.

    Raises
    ------
    ModelFormatError
        If the file is damaged, no model file, of a newer version of the format, or says what cannot be.
    OSError
        If it is not there (FileNotFoundError) or may not be read (PermissionError).
    """
    from gpuboost.persistence import model_file

    model: BoostingClassifier = model_file.load(path, device, n_jobs)
    return model

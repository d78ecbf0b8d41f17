"""The problem that the tests of this folder share: 120 rows of three columns; three classes, cuts of the first column."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import gpuboost
from gpuboost import AdaBoostMHClassifier

X = np.random.default_rng(0).normal(size=(120, 3))
Y = np.digitize(X[:, 0], [-0.4, 0.4])
NOISY = np.where(np.random.default_rng(1).random(120) < 0.2, 1, Y)  # no weak learner is perfect on these
FRAME = pd.DataFrame(X, columns=list("abc"))
METHODS = [stage + method for stage in ("", "staged_") for method in ("predict", "predict_proba", "decision_function")]
VARIANTS = [
    {"max_leaf_nodes": 4},
    {"learner": "stump"},
    {"learner": "product", "n_factors": 2},
    {"max_leaf_nodes": 4, "variant": "discrete"},
]
SMALLEST_LEAF = {"max_leaf_nodes": 4, "min_weight_fraction_leaf": 0.2}
ROOT = Path(gpuboost.__file__).resolve().parent.parent


def make(n_estimators: int = 8, **params: Any) -> AdaBoostMHClassifier:
    return AdaBoostMHClassifier(n_estimators=n_estimators, **{"max_leaf_nodes": 4, "n_jobs": 1, **params})


def digest(model: AdaBoostMHClassifier) -> str:
    return model.ensemble_.digest()


def by_class(labels: Any) -> list[Any]:
    """The label of every row, from the labels of the three classes."""
    return [labels[k] for k in Y]


def run_python(code: str, **environment: str) -> str:
    """What a fresh process prints; it must not complain."""
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout.strip()

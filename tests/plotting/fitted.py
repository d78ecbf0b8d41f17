"""Small models to draw."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import gpuboost

NAMES = ["width", "length", "noise"]
KINDS = np.array(["daisy", "$rose$ & co", "_tulip"])
COSTS = pd.DataFrame([[0, 1, 5], [2, 0, 1], [10, 1, 0]], index=KINDS, columns=KINDS)


def flowers(n_rows: int = 60, seed: int = 0) -> tuple[pd.DataFrame, NDArray[Any]]:
    """Three kinds that overlap; some widths are missing."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n_rows)
    X = np.column_stack([kinds * 2 + rng.normal(size=n_rows), rng.normal(size=n_rows) - kinds, rng.integers(0, 5, n_rows)])
    X[rng.random(n_rows) < 0.2, 0] = np.nan
    return pd.DataFrame(X, columns=NAMES), KINDS[kinds]


@cache
def model(algorithm: str = "adaboost-mh", stopping: Any = False, **params: Any) -> Any:
    """Return a model of few rounds, watched on two sets."""
    params = {"n_estimators": 8, "max_leaf_nodes": 4, **params}
    X, y = flowers()
    return gpuboost.fit(
        X,
        y,
        algorithm=algorithm,
        device="numpy",
        eval_set=[flowers(40, 1), flowers(20, 2)],
        early_stopping=stopping,
        random_state=0,
        **params,
    )

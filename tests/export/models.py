"""Fitted models of every kind that is exported, and rows that are hard on them."""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost import (
    ABCBoostClassifier,
    AdaBoostMHClassifier,
    FilterBoostClassifier,
    GambleClassifier,
    MartClassifier,
    RebelClassifier,
    SAMMEClassifier,
)

RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(400, 6)), 2) + 1e-9 * RNG.normal(size=(400, 6))  # cuts that float32 cannot tell apart
X[:, 3] = RNG.integers(2**24, 2**24 + 9, 400)
X[:, 4] = RNG.choice([-np.inf, -1.7e308, 0.0, 1.0, 1.7e308, np.inf], 400)
X[:, 5] = 1.0  # tells missing from present only
X[RNG.random(X.shape) < 0.15] = np.nan
NUMBERS = (X[:, 3] > 2**24 + 4) * 1 + 2 * (np.isnan(X[:, 5]) | (X[:, 0] > 0.5)) ^ (RNG.random(400) < 0.1)
NAMES = np.array(["ant", "bee", "cat", "döner"])[NUMBERS]
MANY = np.stack([NUMBERS > 0, X[:, 4] > 0, np.isnan(X[:, 1])], axis=1).astype(np.int64)
COSTS = [[0, 1, 2, 9], [1, 0, 1, 1], [5, 1, 0, 1], [1, 1, 1, 0]]

KINDS: dict[str, tuple[Any, Any]] = {
    "adaboost.mh": (AdaBoostMHClassifier(n_estimators=25), NAMES),
    "products": (AdaBoostMHClassifier(n_estimators=15, learner="product", variant="discrete"), NAMES),
    "multi-label": (AdaBoostMHClassifier(n_estimators=15), MANY),
    "two classes": (AdaBoostMHClassifier(n_estimators=15, learner="stump"), NUMBERS > 1),
    "samme": (SAMMEClassifier(n_estimators=25, max_leaf_nodes=6), NUMBERS.astype(np.uint8)),
    "gamble": (GambleClassifier(n_estimators=15), NAMES.astype(object)),
    "rebel": (RebelClassifier(n_estimators=15, max_depth=3), NUMBERS),
    "costs": (RebelClassifier(n_estimators=15, cost_matrix=COSTS), NUMBERS),
    "abc": (ABCBoostClassifier(n_estimators=8), NUMBERS / 2),
    "filterboost": (FilterBoostClassifier(n_estimators=15, examples_per_round=200, random_state=0), NAMES),
    "mart": (MartClassifier(n_estimators=8), NAMES),
    "one class": (MartClassifier(n_estimators=8), ["only"] * 400),
    "temperature": (AdaBoostMHClassifier(n_estimators=15, calibration="holdout", random_state=0), NAMES),
    "mart, temperature": (MartClassifier(n_estimators=4, calibration="holdout", random_state=0), NAMES),
    "multi-label, temperature": (AdaBoostMHClassifier(n_estimators=9, calibration="holdout", random_state=0), MANY),
    "sigmoids": (AdaBoostMHClassifier(n_estimators=15, random_state=0), NAMES),
    "priors": (AdaBoostMHClassifier(), NAMES),
}


@cache
def model(kind: str) -> Any:
    estimator, y = KINDS[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that nothing can be learnt of one class, or from constant columns
        fitted = estimator.set_params(device="cpu", n_jobs=1).fit(np.ones_like(X) if kind == "priors" else X, y)
        return fitted.calibrate(X, y, method="per-class") if kind == "sigmoids" else fitted


def rows(fitted: Any, n: int) -> NDArray[np.float64]:
    """Random rows, and for every cut one at it, next below and next above; with NaN, infinities and -0.0 among them."""
    rng = np.random.default_rng(1)
    mapper = fitted.bin_mapper_
    Z = X[rng.integers(0, len(X), (n + 3 * len(mapper.cut_values), 6)), np.arange(6)]
    feature = np.repeat(np.arange(6), mapper.n_cuts)
    for i, toward in enumerate((None, -np.inf, np.inf)):
        values = mapper.cut_values if toward is None else np.nextafter(mapper.cut_values, toward)
        Z[np.arange(len(values)) * 3 + i, feature] = values
    odd = rng.random(Z[-n:].shape) < 0.1
    Z[-n:][odd] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 2.0**24 + 1, 2.0**53, 5e-324], int(odd.sum()))
    return Z


def scores(fitted: Any, Z: NDArray[Any]) -> NDArray[np.float64]:
    """The scores of all classes, also for two."""
    parts: NDArray[np.float64] = fitted._scores_by_blocks(Z, lambda block: block.copy())
    return parts

"""Small fitted models of every kind, for tests of what is done with models."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpuboost

RNG = np.random.default_rng(3)
X = RNG.normal(size=(90, 4))
Y = np.digitize(X[:, 0] + 0.7 * RNG.normal(size=90), [-0.4, 0.4])
X[RNG.random(X.shape) < 0.1] = np.nan
LABELS = np.array(["ham", "eggs", "späm"])[Y]
MANY = np.stack([Y == 0, Y > 0, X[:, 1] > 0], axis=1).astype(int)
COSTS = {"eggs": {"ham": 1, "späm": 2.5}, "ham": {"eggs": 1, "späm": 1}, "späm": {"eggs": 5, "ham": 3}}

KINDS: dict[str, dict[str, Any]] = {
    "abc-boost": {"algorithm": "abc-boost", "max_leaf_nodes": 3, "gap": 2},
    "abc-boost, fixed base": {"algorithm": "abc-boost", "max_leaf_nodes": 3, "base_class": "ham"},
    "adaboost-mh": {"algorithm": "adaboost-mh", "max_leaf_nodes": 4},
    "adaboost-mh, product": {
        "algorithm": "adaboost-mh",
        "learner": "product",
        "variant": "discrete",
        "class_weight": {"ham": 2},
    },
    "filterboost": {"algorithm": "filterboost", "max_leaf_nodes": 3, "examples_per_round": 40, "random_state": 5},
    "gamble": {"algorithm": "gamble", "max_leaf_nodes": 4, "learning_rate": "line-search"},
    "gamble, sampled": {"algorithm": "gamble", "max_leaf_nodes": 4, "subsample": 0.7, "random_state": 5},
    "localized-similarities": {"algorithm": "localized-similarities", "max_bins": 64, "random_state": 5},
    "logitboost": {"algorithm": "logitboost", "max_leaf_nodes": 3, "class_weight": "balanced"},
    "mart": {"algorithm": "mart", "max_leaf_nodes": 3},
    "rebel": {"algorithm": "rebel"},
    "rebel, costs": {"algorithm": "rebel", "cost_matrix": COSTS},
    "samme": {"algorithm": "samme", "max_leaf_nodes": 3},
}
"""Parameters by name: every estimator, and what only some of them keep."""


def fit(kind: str, y: Any = LABELS, **params: Any) -> Any:
    eval_set = params.pop("eval_set", None)
    return gpuboost.fit(X, y, eval_set=eval_set, **{"device": "cpu", "n_jobs": 1, "n_estimators": 6, **KINDS[kind], **params})

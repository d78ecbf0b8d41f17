"""Estimators on several workers, each with a part of the rows, make the model file of one process."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.peers.base import Peers
from gpuboost.peers.rows import RowOrder
from gpuboost.peers.threads import run_workers

RNG = np.random.default_rng(7)
N = 150
X = np.column_stack([RNG.normal(size=(N, 3)), RNG.integers(0, 4, (N, 2)), np.zeros(N)])
Y = (X[:, 0] + X[:, 3] > 1).astype(int) + (X[:, 1] > 0.8)
NAN = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
REAL, INTEGER = RNG.random(N) + 0.01, RNG.integers(0, 5, N).astype(float)
MANY = np.column_stack([Y == 0, Y == 1, X[:, 1] > 0]).astype(int)
EVAL_X, EVAL_Y = RNG.normal(size=(40, 6)), RNG.integers(0, 3, 40)
DIVISIONS: dict[str, Sequence[int]] = {
    "2": (75, 75),
    "3, one empty": (90, 0, 60),
    "5": (135, 3, 3, 3, 6),
    "8": (19,) * 7 + (17,),
}
FEW: dict[str, Any] = {"n_estimators": 5, "random_state": 1, "max_bins": 16}
SAMPLED: dict[str, Any] = {"subsample": 0.6, "max_features": 0.5, "weight_trim": 0.9}

Case = tuple[Any, dict[str, Any]]
CASES: dict[str, Case] = {
    "adaboost-mh": (gpuboost.AdaBoostMHClassifier(**FEW), {}),
    "discrete": (gpuboost.AdaBoostMHClassifier(variant="discrete", **FEW), {"X": NAN}),
    "product": (gpuboost.AdaBoostMHClassifier(learner="product", **FEW), {"sample_weight": INTEGER}),
    "many labels": (gpuboost.AdaBoostMHClassifier(**FEW), {"y": MANY}),
    "many labels, held out": (gpuboost.AdaBoostMHClassifier(early_stopping=True, **FEW), {"y": MANY}),
    "text": (gpuboost.AdaBoostMHClassifier(**FEW), {"y": np.array(["b", "a", "long label"], object)[Y]}),
    "sampled": (gpuboost.AdaBoostMHClassifier(**FEW, **SAMPLED), {"sample_weight": REAL}),
    "real weights": (gpuboost.AdaBoostMHClassifier(min_weight_fraction_leaf=0.05, **FEW), {"sample_weight": REAL, "X": NAN}),
    "balanced": (gpuboost.AdaBoostMHClassifier(class_weight="balanced", **FEW), {"sample_weight": REAL}),
    "class weights": (gpuboost.SAMMEClassifier(class_weight={0: 2.0, 1: 0.0}, **FEW), {}),
    "held out": (gpuboost.AdaBoostMHClassifier(early_stopping="patience", validation_fraction=0.3, **FEW), {"X": NAN}),
    "watched": (gpuboost.AdaBoostMHClassifier(early_stopping=True, **FEW), {"eval_set": (EVAL_X, EVAL_Y, EVAL_X[:, 0] ** 2)}),
    "samme": (gpuboost.SAMMEClassifier(variant="real", **FEW, **SAMPLED), {}),
    "gamble": (gpuboost.GambleClassifier(learning_rate="line-search", **FEW), {"sample_weight": INTEGER}),
    "rebel": (gpuboost.RebelClassifier(cost_matrix=[[0, 1, 2], [1, 0, 1], [5, 1, 0]], **FEW), {"sample_weight": REAL}),
    "rebel sampled": (gpuboost.RebelClassifier(max_depth=3, **FEW, **SAMPLED), {}),
    "mart": (gpuboost.MartClassifier(**FEW), {"sample_weight": REAL, "X": NAN}),
    "logitboost": (gpuboost.LogitBoostClassifier(**FEW, **SAMPLED), {}),
    "abc-mart": (gpuboost.ABCBoostClassifier(loss="mart", **FEW), {"sample_weight": INTEGER}),
    "abc-logitboost": (gpuboost.ABCBoostClassifier(gap=2, n_candidates=2, early_stopping=True, **FEW), {}),
    "two classes": (gpuboost.LogitBoostClassifier(**FEW), {"y": Y > 0}),
    "nothing to learn": (gpuboost.AdaBoostMHClassifier(**FEW), {"X": np.zeros((N, 2)), "sample_weight": REAL}),
    "one class": (gpuboost.AdaBoostMHClassifier(**FEW), {"y": np.zeros(N, int)}),
    "seed drawn": (gpuboost.AdaBoostMHClassifier(n_estimators=2, max_bins=16), {}),
}


def fit_divided(estimator: Any, sizes: Sequence[int], device: str, **data: Any) -> list[Any]:
    arguments = {"X": X, "y": Y, "sample_weight": None, "eval_set": None} | data
    bounds = np.cumsum([0, *sizes])
    at = np.linspace(0, len(EVAL_X), len(sizes) + 1).astype(int)

    def work(peers: Peers) -> Any:
        rows = slice(bounds[peers.rank], bounds[peers.rank + 1])
        own = {name: None if value is None else value[rows] for name, value in arguments.items() if name != "eval_set"}
        if arguments["eval_set"] is not None:
            watched = slice(at[peers.rank], at[peers.rank + 1])
            own["eval_set"] = tuple(one[watched] for one in arguments["eval_set"])
        order = RowOrder.of(np.array([peers.rank]), np.array([sizes[peers.rank]]), peers)
        fitted = copy.deepcopy(estimator).set_params(device=device)
        own.setdefault("eval_set", None)
        return fitted._fitted_by(lambda one: one._fit(**own, order=order))

    return run_workers(len(sizes), work)


def file_of(model: Any, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize("device", ["numpy", "cpu"])
@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:no column of X")
def test_model_files_are_equal(name: str, division: str, device: str, tmp_path: Path) -> None:
    estimator, data = CASES[name]
    arguments = {"X": X, "y": Y} | data
    alone = copy.deepcopy(estimator).set_params(device="cpu").fit(**arguments)
    for fitted in fit_divided(estimator, DIVISIONS[division], device, **data):
        assert file_of(fitted, tmp_path) == file_of(alone, tmp_path)

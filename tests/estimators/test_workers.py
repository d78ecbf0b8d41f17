"""Estimators on several workers, each with a part of the rows, make the model file of one process."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.peers.base import Peers
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
    arguments = {"X": X, "y": Y} | data
    watched = arguments.pop("eval_set", None)
    bounds, at = np.cumsum([0, *sizes]), np.linspace(0, len(EVAL_X), len(sizes) + 1).astype(int)

    def work(peers: Peers) -> Any:
        rows, watched_rows = (slice(*ends[peers.rank : peers.rank + 2]) for ends in (bounds, at))
        own = {name: value[rows] for name, value in arguments.items()}
        eval_set = None if watched is None else tuple(one[watched_rows] for one in watched)
        part = Part(**own, eval_set=eval_set, keys=np.array([peers.rank]), sizes=np.array([sizes[peers.rank]]))
        return fit_part(copy.deepcopy(estimator).set_params(device=device), part, peers)

    return run_workers(len(sizes), work)


def file_of(model: Any, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize(
    ("name", "division", "device"),
    [
        pytest.param(*case, marks=[] if i % 3 == 0 else pytest.mark.exhaustive)  # all meet all in turn
        for i, case in enumerate(itertools.product(CASES, DIVISIONS, ["numpy", "cpu"]))
    ],
)
@pytest.mark.filterwarnings("ignore:no column of X")
def test_model_files_are_equal(name: str, division: str, device: str, tmp_path: Path) -> None:
    estimator, data = CASES[name]
    arguments = {"X": X, "y": Y} | data
    alone = copy.deepcopy(estimator).set_params(device="cpu").fit(**arguments)
    for fitted in fit_divided(estimator, DIVISIONS[division], device, **data):
        assert file_of(fitted, tmp_path) == file_of(alone, tmp_path)


def test_stretches_of_rows_anywhere(tmp_path: Path) -> None:
    """A worker has partitions here and there, and the order of all rows is that of the partitions."""
    estimator = gpuboost.AdaBoostMHClassifier(early_stopping=True, **FEW, **SAMPLED)
    alone = copy.deepcopy(estimator).set_params(device="cpu").fit(X, Y, REAL)
    partitions = np.array_split(np.arange(N), 7)

    def work(peers: Peers) -> Any:
        keys = np.array([[4, 0], [6, 1, 2], [5, 3]][peers.rank])
        rows = np.concatenate([partitions[key] for key in keys])
        sizes = np.array([len(partitions[key]) for key in keys])
        return fit_part(estimator, Part(X[rows], Y[rows], keys, sizes, REAL[rows]), peers)

    for fitted in run_workers(3, work):
        assert file_of(fitted, tmp_path) == file_of(alone, tmp_path)


def test_a_training_goes_on_with_another_number_of_workers(tmp_path: Path) -> None:
    whole = gpuboost.AdaBoostMHClassifier(**FEW, **SAMPLED).fit(X, Y)
    (first,) = {file_of(one, tmp_path) for one in fit_divided(whole, (60, 90), "cpu")} - {b""}
    assert first == file_of(whole, tmp_path)
    begun = fit_divided(gpuboost.AdaBoostMHClassifier(**{**FEW, **SAMPLED, "n_estimators": 2}), (60, 90), "cpu")[0]
    resumed = begun.set_params(n_estimators=5, warm_start=True)
    for fitted in fit_divided(resumed, (40, 50, 60), "cpu"):
        assert file_of(fitted.set_params(warm_start=False), tmp_path) == first


REFUSED: dict[str, tuple[Any, list[dict[str, Any]], type[Exception], str]] = {
    "columns": (
        gpuboost.SAMMEClassifier(),
        [{}, {"X": X[:75, :5]}],
        ValueError,
        "same columns, but worker 0 has 6, worker 1 5",
    ),
    "weights": (gpuboost.SAMMEClassifier(), [{"sample_weight": REAL[:75]}, {}], ValueError, "same sample_weight"),
    "labels": (gpuboost.SAMMEClassifier(), [{}, {"y": np.array(["a"] * 75)}], TypeError, "labels of y"),
    "objects": (gpuboost.SAMMEClassifier(), [{}, {"y": np.array([None, *[1.5] * 74])}], ValueError, "missing value in y"),
    "a stream": (gpuboost.FilterBoostClassifier(), [{}, {}], ValueError, "reads one stream"),
    "regressors": (gpuboost.GambleClassifier(regressor=object()), [{}, {}], TypeError, "regressor"),
    "no estimator": (object(), [{}, {}], TypeError, "object cannot train on several workers"),
    "no weight": (gpuboost.SAMMEClassifier(), [{"sample_weight": 0 * REAL[:75]}] * 2, ValueError, "zero in every row"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    estimator, parts, kind, message = REFUSED[name]

    def work(peers: Peers) -> Any:
        own = {"X": X[:75], "y": Y[:75], "keys": np.array([peers.rank]), "sizes": np.array([75])} | parts[peers.rank]
        return fit_part(estimator, Part(**own), peers)

    with pytest.raises(kind, match=message):
        run_workers(2, work)


def test_the_first_worker_alone_reports(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[int] = []

    def stop(progress: Any) -> bool:
        seen.append(len(seen))
        return len(seen) == 3

    models = fit_divided(gpuboost.SAMMEClassifier(**FEW, callbacks=[stop], verbose=1), (75, 75), "numpy")
    assert [model.n_estimators_ for model in models] == [3, 3]
    assert [model.stop_reason_ for model in models] == ["a callback asked to stop"] * 2
    assert len(seen) == 3
    assert capsys.readouterr().err.count("stop") <= 1

"""Checkpoints: a training that was broken off anywhere ends as if it had not been."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import gpuboost
from gpuboost import Checkpoint, GambleClassifier
from gpuboost.persistence import model_file
from tests.candidates import thinned
from tests.models import KINDS, LABELS, MANY, X, fit
from tests.traps.problem import ROOT

STOPPING: dict[str, dict[str, Any]] = {
    "none": {},
    "patience": {"early_stopping": "patience", "n_iter_no_change": 3, "n_estimators": 40},
    "smoothed": {"early_stopping": "smoothed"},
}


class KeepAll:
    """Keeps the model of every round, as a checkpoint would."""

    def __init__(self) -> None:
        self.models: list[bytearray] = []

    def __call__(self, progress: Any) -> None:
        self.models.append(model_file.to_bytes(progress.model()))


@pytest.mark.parametrize(("kind", "stopping", "held_out"), thinned(itertools.product(KINDS, STOPPING, [False, True]), 5, 2.236))
def test_going_on_from_any_round(kind: str, stopping: str, held_out: bool, tmp_path: Path) -> None:
    eval_set = None if held_out else (X[::3], LABELS[::3])
    keep, params = KeepAll(), {"random_state": 2, **STOPPING[stopping]}
    whole = fit(kind, eval_set=eval_set, callbacks=[keep], **params)
    expected = model_file.to_bytes(whole)
    n_run = len(whole.history_["train_loss"])
    assert len(keep.models) == n_run
    for k in sorted({1, 2, n_run // 2, n_run - 1, n_run} - {0}):  # the last: broken off between the round and the end
        (tmp_path / "checkpoint").write_bytes(keep.models[k - 1])
        model = gpuboost.load(tmp_path / "checkpoint", device="cpu", n_jobs=1)
        assert model.n_estimators_ == k
        model.set_params(warm_start=True).fit(X, LABELS, eval_set=eval_set)
        assert model_file.to_bytes(model) == expected


def test_a_training_that_stopped_early_is_not_gone_on_with(tmp_path: Path) -> None:
    keep = KeepAll()
    whole = fit("adaboost-mh", eval_set=(X[:30], LABELS[::-1][:30]), callbacks=[keep], **STOPPING["patience"])
    assert whole.stop_reason_ == "early stopping"
    (tmp_path / "checkpoint").write_bytes(keep.models[-1])
    model = gpuboost.load(tmp_path / "checkpoint", device="cpu", n_jobs=1).set_params(warm_start=True)
    model.fit(X, LABELS, eval_set=(X[:30], LABELS[::-1][:30]))
    assert model.stop_reason_ == "early stopping"
    assert model.n_estimators_ == whole.n_estimators_ < len(model.history_["edge"]) == len(keep.models)


def test_multi_label_and_weights(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).random(len(X))
    keep = Checkpoint(tmp_path / "checkpoint", every=2)
    params: dict[str, Any] = {"n_estimators": 5, "device": "cpu", "sample_weight": weights}
    whole = gpuboost.fit(X, MANY, callbacks=[keep], **params)
    model = gpuboost.load(tmp_path / "checkpoint", device="cpu", n_jobs=1).set_params(warm_start=True)
    assert model.n_estimators_ == 4
    assert model_file.to_bytes(model.fit(X, MANY, weights)) == model_file.to_bytes(whole)


def test_a_checkpoint_is_the_model_of_its_round(tmp_path: Path) -> None:
    seen = []

    def look(progress: Any) -> None:
        model = progress.model()
        seen.append((progress.n_rounds, model.n_estimators_, model.stop_reason_, model.decision_function(X)))

    model = fit("gamble", callbacks=[look, Checkpoint(tmp_path / "checkpoint", every=4, extra={"data": "mine"})])
    for (n, n_model, reason, scores), stage in zip(seen, model.staged_decision_function(X), strict=True):
        assert n == n_model
        assert reason == "not finished"
        assert scores.tobytes() == stage.tobytes()
    found = model_file.describe(tmp_path / "checkpoint")
    assert (found["n_rounds"], found["extra"]) == (4, {"data": "mine"})
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_a_folder_that_goes_does_not_end_the_training(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "checkpoint"

    def remove(progress: Any) -> None:
        if progress.n_rounds == 3:
            shutil.rmtree(folder)
        if progress.n_rounds == 5:
            folder.mkdir()

    message = f"cannot write the checkpoint of round 4: .*{re.escape(str(path))}.*the training goes on"
    with pytest.warns(RuntimeWarning, match=message):
        model = fit("mart", callbacks=[remove, Checkpoint(path, every=2)])
    assert model.n_estimators_ == 6
    assert gpuboost.load(path).ensemble_.digest() == model.ensemble_.digest()


def test_what_cannot_be_saved_shows_after_the_first_round(tmp_path: Path) -> None:
    rounds: list[int] = []
    callbacks = [lambda progress: rounds.append(progress.n_rounds), Checkpoint(tmp_path / "checkpoint")]
    model = GambleClassifier(regressor=Ridge(), n_estimators=9, callbacks=callbacks)
    with pytest.raises(TypeError, match="boosts a regressor cannot be saved"):
        model.fit(np.nan_to_num(X), LABELS)
    assert rounds == [1]


def test_wrong_parameters(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every must be an integer of at least 1, got 0"):
        Checkpoint(tmp_path / "checkpoint", every=0)
    with pytest.raises(TypeError, match="every must be an integer of at least 1"):
        Checkpoint(tmp_path / "checkpoint", every=1.5)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match="the folder of the checkpoint"):
        Checkpoint(tmp_path / "missing" / "checkpoint")


CODE = """
import sys, gpuboost
from tests.models import fit
keep = gpuboost.Checkpoint(sys.argv[1], every=1)
fit("adaboost-mh", n_estimators=60, early_stopping=True, random_state=1, device="numpy", callbacks=[keep])
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="kills as POSIX does")
def test_kill_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    process = subprocess.Popen([sys.executable, "-c", CODE, str(path)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    while not path.exists() and process.poll() is None:
        time.sleep(0.001)
    time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    model = gpuboost.load(path, device="cpu", n_jobs=1)
    whole = fit("adaboost-mh", n_estimators=60, early_stopping=True, random_state=1)
    assert model_file.to_bytes(model.set_params(warm_start=True).fit(X, LABELS)) == model_file.to_bytes(whole)

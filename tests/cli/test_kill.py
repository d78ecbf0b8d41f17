"""A training that is killed at any moment and resumed writes the bytes of one that nobody broke off."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from tests.cli.tables import flowers, run, told, write

N_KILLS = 2
"""For the nights there are four times as many."""
TRAININGS = [
    ("--algorithm", "adaboost-mh", "--set", "n_estimators=30", "--set", "max_leaf_nodes=4", "--set", "subsample=0.7"),
    ("--algorithm", "abc-boost", "--set", "n_estimators=12", "--set", "max_leaf_nodes=3", "--set", "early_stopping=true"),
    ("--algorithm", "gamble", "--set", "n_estimators=20", "--set", "max_leaf_nodes=4", "--set", "max_features=0.5"),
    ("--algorithm", "filterboost", "--stream", "--set", "n_estimators=30", "--set", "examples_per_round=50"),
]


@pytest.mark.parametrize(
    "n_kills", [pytest.param(N_KILLS, marks=pytest.mark.slow), pytest.param(4 * N_KILLS, marks=pytest.mark.exhaustive)]
)
def test_killed_and_resumed(tmp_path: Path, pytestconfig: pytest.Config, n_kills: int) -> None:
    names, rows = flowers(60)
    data, whole, model = write(tmp_path / "t.csv", names, rows), tmp_path / "whole", tmp_path / "model"
    checkpoint = tmp_path / "model.checkpoint"
    done = []
    for kill in range(pytestconfig.getoption("--kills") or n_kills):
        random = Random(kill)
        training = ("fit", str(data), "--target", "kind", "--device", "numpy", *TRAININGS[kill % len(TRAININGS)])
        begun = time.monotonic()
        run(*training, "--out", whole)
        takes = time.monotonic() - begun
        for path in (model, checkpoint):
            path.unlink(missing_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "gpuboost", *training, "--out", str(model), "--checkpoint", "1", "--quiet"],
            cwd=Path(__file__).parents[2],
        )
        while not checkpoint.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(random.uniform(0, takes))
        process.kill()
        process.wait()
        if model.exists() and not checkpoint.exists():  # it was done before
            assert model.read_bytes() == whole.read_bytes()
            continue
        assert not model.exists() or model.read_bytes() == whole.read_bytes()
        model.unlink(missing_ok=True)
        done.append(told(*training, "--out", model, "--resume")["resumed_from"])
        assert model.read_bytes() == whole.read_bytes()
        assert not checkpoint.exists()
    assert max(done) > 0
    print(f"resumed from the rounds {done}")

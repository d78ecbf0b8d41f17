"""``benchmarks/bench_filter.py``: its parts run on tiny problems, and its arithmetic is right."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("bench_filter")


def part(name: str) -> Any:
    return importlib.import_module(f"filtering.{name}")


def test_made_rows_depend_on_their_number_only(bench: Any) -> None:
    source = part("problems").ForestRows(20_000, 7)
    X, y = source.rows(20_000)
    assert X.shape == (20_000, 54)
    assert set(y) == set(range(7))
    assert (X[:, 10:].sum(axis=1) == 2).all()
    late = list(source.batches(9_000))
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in late]), X[9_000:])
    np.testing.assert_array_equal(np.concatenate([batch.y for batch in late]), y[9_000:])


def test_folds_cover_all_rows_once(bench: Any) -> None:
    X, y = np.arange(103)[:, None], np.zeros(103)
    folds = [part("problems").fold(X, y, run) for run in range(10)]
    assert sorted(np.concatenate([split.X_test[:, 0] for split in folds])) == list(range(103))
    assert all(len(split.X) + len(split.X_test) == 103 for split in folds)


def test_scores_of_probabilities(bench: Any) -> None:
    found = part("runs").scores_of(np.array([[0.8, 0.2], [0.4, 0.6]]), np.array([0, 0]))
    assert found["error"] == 0.5
    assert found["log_loss"] == pytest.approx(-(np.log(0.8) + np.log(0.4)) / 2)
    assert found["rmse"] == pytest.approx(np.sqrt((0.2**2 + 0.6**2) / 2))


@pytest.mark.parametrize("booster", ["AdaBoost", "AdaBoost-LOG"])
def test_a_curve_ends_with_the_probabilities_of_the_model(bench: Any, booster: str) -> None:
    runs, few = part("runs"), part("problems").drawn(part("problems").make_majority, 200, 0)
    few = few._replace(X_test=few.X_test[:300], y_test=few.y_test[:300])
    model, _ = runs.trained(few, **(runs.PAPER | runs.BOOSTERS[booster]), max_leaf_nodes=4, random_state=0, n_estimators=4)
    curve = runs.curve_of(model, few)
    assert [point["round"] for point in curve] == [1, 2, 3, 4]
    for name, value in runs.scores_of(model.predict_proba(few.X_test), few.y_test).items():
        assert curve[-1][name] == pytest.approx(value, rel=1e-12)


def test_the_paper_on_few_rows(bench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Runs are kept, and claims that lack runs say so."""
    few = part("problems").drawn(part("problems").make_majority, 400, 0)
    few = few._replace(X_test=few.X_test[:500], y_test=few.y_test[:500])
    monkeypatch.setattr(bench, "split_of", lambda name, run, data_dir: few)
    call = ["paper", "--sets", "majority", "--learners", "stumps", "--runs", "1", "--rounds", "3", "--no-figures",
            "--boosters", "FilterBoost;MadaBoost;AdaBoost", "--out", str(tmp_path), "--stem", "x"]  # fmt: skip
    bench.main(call)
    before = (tmp_path / "x.json").read_bytes()
    bench.main(call)
    assert (tmp_path / "x.json").read_bytes() == before
    lines = (tmp_path / "x.md").read_text().splitlines()
    (similar,) = (line for line in lines if "about the same on Majority" in line)
    assert "seen" in similar
    (missing,) = (line for line in lines if "a bit better than AdaBoost's on Adult" in line)
    assert "| - | no runs of ('adult', 'stumps', 'FilterBoost') |" in missing


def run_of(booster: str, error: float) -> dict[str, Any]:
    point = {"round": 1, "seconds": 1.0, "draws": 1.0, "error": error, "log_loss": error, "rmse": error}
    return {"set": "twonorm", "learner": "stumps", "booster": booster, "curve": [point]}


@pytest.mark.parametrize(("error", "seen"), [(0.11, True), (0.09, False), (0.2, False)])
def test_a_claim_is_judged_by_means(bench: Any, error: float, seen: bool) -> None:
    runs = [run_of("FilterBoost", error - 0.01), run_of("FilterBoost", error + 0.01), run_of("AdaBoost", 0.1)]
    found = part("claims").findings(runs)["4.4, stumps: a bit worse on Twonorm"]
    assert found.seen is seen
    assert f"{100 * error:.2f} ± 1.41 %" in found.numbers  # one above and one below: sqrt(2)


def test_a_target_is_met_by_the_mean(bench: Any) -> None:
    target = part("targets").Target(lambda seed, data_dir: {}, {"error": 0.1})
    assert part("targets").is_met(target, [{"error": 0.05, "seed": 0}, {"error": 0.15, "seed": 1}])
    assert not part("targets").is_met(target, [{"error": 0.05, "seed": 0}, {"error": 0.16, "seed": 1}])


def test_rates(bench: Any) -> None:
    (found,) = part("rate").rates(3000, (2,), 1)
    assert found["trees"] == 2
    assert found["ratio"] == pytest.approx(found["filter"] / found["predict"])


def test_a_job_of_memory(bench: Any) -> None:
    found = part("memory").main({"kind": "generated", "rows": 20_000, "examples_per_round": 2000})
    assert 0 < found["drawn"] <= 20_000
    assert found["peak_bytes"] > 1 << 20


@pytest.mark.parametrize("way", ["filterboost", "adaboost-mh", "sgd"])
def test_a_job_of_instead(bench: Any, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    instead = part("instead")
    monkeypatch.setattr(instead, "N_TEST", 1000)
    monkeypatch.setattr(instead, "LEAVES", 4)
    job = {"set": "generated2", "rows": 9000, "sample": 1000, "seconds": 0.05, "examples_per_round": 500, "data_dir": None}
    job["clock"] = "wall"
    found = instead.main(job | {"way": way})
    assert found["took"] >= 0.05
    assert 0 <= found["error"] < 0.5

"""``gpuboost fit`` and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.cli.commands.fit import OTHER_KINDS, chosen
from gpuboost.cli.options import ending
from gpuboost.cli.outputs import SUFFIXES
from gpuboost.cli.progress import ProgressReport
from gpuboost.cli.settings import value_of
from tests.cli.tables import NUMPY, QUICK, flowers, refused, run, told, write

ROOT = Path(__file__).parents[2]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    names, rows = flowers()
    return write(tmp_path / "t.csv", names, rows)


def test_the_model_is_that_of_python(data: Path, tmp_path: Path) -> None:
    facts = told("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK)
    _, rows = flowers()
    y = np.array([row[-1] for row in rows])
    model = gpuboost.fit([row[:-1] for row in rows], y, n_estimators=4, device="numpy", random_state=0)
    loaded = gpuboost.load(tmp_path / "m", device="numpy")
    assert facts["digest"] == loaded.ensemble_.digest() == model.ensemble_.digest()
    assert loaded.classes_.tolist() == ["daisy", "rose, red", "tulip"]
    assert loaded.feature_names_in_.tolist() == ["width", "length", "noise"]
    expected = {"algorithm": "adaboost-mh", "rows": 60, "features": 3, "classes": 3, "rounds": 4, "resumed_from": 0}
    assert expected.items() <= facts.items()
    assert facts["train_error"] == model.history_["train_error"][-1]


@pytest.mark.slow
def test_all_kinds_of_files_make_one_model(data: Path, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.read_csv(data)
    table.to_parquet(tmp_path / "t.parquet")
    table.to_feather(tmp_path / "t.feather")
    table.to_csv(tmp_path / "t.tsv", sep="\t", index=False)
    table.to_csv(tmp_path / "t.csv.gz", index=False)
    table.drop(columns="noise").to_csv(tmp_path / "less.csv", index=False)
    X, y = table.drop(columns="kind").to_numpy(), table["kind"].to_numpy(dtype=str)
    np.savez(tmp_path / "t.npz", X=X, y=y)
    digests = {
        told("fit", tmp_path / name, "--target", target, "--out", tmp_path / "m", *QUICK)["digest"]
        for name, target in [
            ("t.csv", "kind"),
            ("t.parquet", "kind"),
            ("t.feather", "3"),
            ("t.tsv", "-1"),
            ("t.csv.gz", "kind"),
            ("t.npz", "y"),
        ]
    }
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", y)
    digests.add(told("fit", tmp_path / "x.npy", "--target-file", tmp_path / "y.npy", "--out", tmp_path / "m", *QUICK)["digest"])
    from_stdin = run("fit", "-", "--target", "kind", "--out", tmp_path / "m", *QUICK, "--json", stdin=data.read_bytes())
    digests.add(json.loads(from_stdin.stdout)["digest"])
    assert len(digests) == 1
    one, other = (
        told("fit", tmp_path / name, "--target", "kind", "--out", tmp_path / "m", *QUICK, *more)["digest"]
        for name, more in (("less.csv", ()), ("t.csv", ("--drop", "noise")))
    )
    assert one == other


def test_weights_and_validation(data: Path, tmp_path: Path) -> None:
    names, rows = flowers()
    weighted = [[*row, i % 3] for i, row in enumerate(rows)]
    heavy = write(tmp_path / "w.csv", [*names, "w"], weighted)
    twice = write(tmp_path / "two.csv", names, [row for i, row in enumerate(rows) for _ in range(i % 3)])
    valid = write(tmp_path / "v.csv", names[::-1], [row[::-1] for row in flowers(20, seed=1)[1]])
    one = told("fit", heavy, "--target", "kind", "--weight", "w", "--valid", valid, "--out", tmp_path / "m", *QUICK)
    two = told("fit", twice, "--target", "kind", "--valid", valid, "--out", tmp_path / "m", *QUICK)
    assert (one["digest"], one["valid_error"]) == (two["digest"], two["valid_error"])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500", 500),
        ("0.5", 0.5),
        ("true", True),
        ("True", True),
        ("null", None),
        ("None", None),
        ("product", "product"),
        ("[1", "[1"),
    ],
)
def test_values_of_settings(text: str, value: Any) -> None:
    assert (type(value_of(text)), value_of(text)) == (type(value), value)


def test_settings_reach_the_estimator(data: Path, tmp_path: Path) -> None:
    weights = '{"daisy": 2, "tulip": 3}'
    more = (
        "--algorithm",
        "abc-boost",
        "--set",
        "base_class=tulip",
        "--set",
        f"class_weight={weights}",
        "--set",
        "max-leaf-nodes=4",
    )
    run("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK, *more)
    model: Any = gpuboost.load(tmp_path / "m")
    assert isinstance(model, gpuboost.ABCBoostClassifier)
    assert (model.base_class, model.max_leaf_nodes, model.n_estimators) == ("tulip", 4, 4)
    assert model.class_weight == {"daisy": 2, "tulip": 3}


def test_class_weights_of_numbers(tmp_path: Path) -> None:
    names, rows = flowers()
    data = write(tmp_path / "t.csv", names, [[*row[:-1], len(row[-1])] for row in rows])
    run("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK, "--set", 'class_weight={"9": 2.5}')
    model: Any = gpuboost.load(tmp_path / "m")
    assert model.classes_.tolist() == [5, 9]
    assert model.class_weight == {9: 2.5}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            ("--set", "n_estimator=3"),
            "has no parameter n_estimator (did you mean n_estimators?); it has calibration",
        ),
        (("--set", "n_estimators"), "expected name=value"),
        (("--set", "device=cpu"), "device cannot be set here; use --device"),
        (("--set", "n_estimators=3", "--set", "n_estimators=4"), "n_estimators is set twice"),
        (("--set", "n_estimators=0"), "--set: n_estimators must be an integer of at least 1, got 0"),
        (("--set", "learner=trees"), "learner must be one of"),
        (("--set", "random_state=-1"), "random_state must be an integer of at least 0, got -1"),
        (("--set", "class_weight=balance"), 'class_weight must be None, "balanced" or a dict'),
        (
            ("--algorithm", "adaboost"),
            "--algorithm adaboost: there is no such algorithm (did you mean adaboost-mh?)",
        ),
        (("--cost-matrix", "c.csv"), "adaboost-mh does not train by costs; use --algorithm rebel"),
        (("--checkpoint", "0"), "--checkpoint"),
    ],
)
def test_wrong_usage(data: Path, tmp_path: Path, more: tuple[str, ...], message: str) -> None:
    assert message in refused("fit", data, "--target", "kind", "--out", tmp_path / "m", *NUMPY, *more, status=2)
    assert not (tmp_path / "m").exists()


def test_the_target_must_be_named(data: Path, tmp_path: Path) -> None:
    message = refused("fit", data, "--out", tmp_path / "m", *NUMPY, status=2)
    assert "needs --target COL, the column of the labels: one of width, length, noise, kind" in message


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--drop", "hight"), "has no column 'hight' (--drop)"),
        (("--target", "knd"), "has no column 'knd' (--target); did you mean 'kind'?"),
        (("--target", "width", "--drop", "kind"), "Unknown label type: continuous"),
        (("--weight", "length"), "must hold weights, numbers that are not negative, got -"),
        (("--weight", "kind", "--target", "noise"), "column 'kind' holds text such as 'tulip' in row 1, not numbers"),
        (("--out", "missing/m"), "there is no folder"),
        (("--out", "m.csv"), "has the suffix of another kind of file"),
        (("--device", "cuda:99"), "cuda"),
        (("--drop", "width", "--drop", "length", "--drop", "noise"), "has no columns to learn from"),
    ],
)
def test_refusals(data: Path, tmp_path: Path, more: tuple[str, ...], message: str) -> None:
    assert message in refused("fit", data, "--target", "kind", "--out", tmp_path / "m", *NUMPY, *more)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_refused_labels(data: Path, tmp_path: Path) -> None:
    names, rows = flowers()
    fit = ("fit", "--target", "kind", "--out", tmp_path / "m", *NUMPY)
    one = write(tmp_path / "one.csv", names, [row for row in rows if row[-1] == "daisy"])
    assert "has the one class 'daisy'; there must be two or more" in refused(*fit, one)
    valid = write(tmp_path / "v.csv", names, [*rows[:3], [1, 2, 3, "oak"]])
    message = refused(*fit, data, "--valid", valid)
    assert "v.csv: the target has labels that the training data lack in 1 rows, first 'oak' in row 4" in message
    lacking = write(tmp_path / "l.csv", names[1:], [row[1:] for row in rows])
    assert "l.csv lacks the column 'width', which the model was trained on" in refused(*fit, data, "--valid", lacking)


def test_a_folder_that_may_not_be_written_to(data: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    assert "may not be written to" in refused("fit", data, "--target", "kind", "--out", folder / "m", *NUMPY)


def test_errors_as_json_and_with_traceback(data: Path, tmp_path: Path) -> None:
    fit = ("fit", data, "--target", "kind", "--out", tmp_path / "m", *NUMPY)
    usage = run(*fit, "--json", "--set", "n_estimators=0", status=2)
    message = "--set: n_estimators must be an integer of at least 1, got 0"
    assert json.loads(usage.stdout) == {"error": message, "exit_status": 2}
    fit = (*fit, "--out", tmp_path / "missing" / "m")
    result = run(*fit, "--json", status=1)
    facts = json.loads(result.stdout)
    assert facts["exit_status"] == 1
    assert facts["error"].startswith(f"--out {tmp_path / 'missing' / 'm'}: there is no folder")
    from click.testing import CliRunner

    from gpuboost.cli import main

    assert isinstance(CliRunner().invoke(main, [*map(str, fit), "--debug"]).exception, FileNotFoundError)


def test_an_error_of_a_device_keeps_its_lines(data: Path, tmp_path: Path) -> None:
    result = run("fit", data, "--target", "kind", "--out", tmp_path / "m", "--device", "cuda:99", status=1)
    first, *others = result.stderr.splitlines()
    assert first.startswith('Error: device="cuda:99" cannot be used: ')
    assert any(line.startswith("  Found: ") for line in others)


@pytest.mark.slow
def test_early_stopping_says_what_it_kept(data: Path, tmp_path: Path) -> None:
    fit = (
        "fit",
        data,
        "--target",
        "kind",
        "--out",
        tmp_path / "m",
        *NUMPY,
        "--set",
        "n_estimators=60",
        "--set",
        "random_state=1",
    )
    text = run(*fit, "--set", "early_stopping=true").stdout  # 50 rounds are no candidates
    model: Any = gpuboost.load(tmp_path / "m")
    kept, n_run = model.n_estimators_, len(model.history_["train_loss"])
    assert kept < n_run == 60
    how = f"(early stopping kept {kept} of 60; n_estimators reached)"
    assert how in text
    assert f"rounds:        {kept} {how}, " in run("inspect", tmp_path / "m").stdout
    assert ending("early stopping", 3, 8) == "early stopping kept 3 of 8"
    assert ending("n_estimators reached", 8, 8) == "n_estimators reached"


def test_quiet_and_progress(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = ("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK)
    assert run(*fit, "--quiet").output == ""
    result = run(*fit)
    assert "60 rows, 3 features, 3 classes: 4 rounds in" in result.stdout
    first, last = result.stderr.splitlines()
    assert first.startswith("round 1 of 4  train error")
    assert last.startswith("round 4 of 4  train error")
    assert "left" not in last
    monkeypatch.setattr("gpuboost.cli.progress.SECONDS", 0.0)
    lines = run(*fit).stderr.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"round {i} of 4" for i in (1, 2, 3, 4)]
    assert "left" in lines[1]


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    report = ProgressReport(10, done=3)

    class At:
        n_rounds, history = 10, {"train_error": [0.25]}

    report(At())
    report.close()
    assert "100%" in capsys.readouterr().err


# ---- checkpoints -------------------------------------------------------------------------------------------------------------


class Stop:
    """A callback that is interrupted after a round, as by Ctrl-C."""

    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, progress: Any) -> None:
        if progress.n_rounds == self.after:
            raise KeyboardInterrupt

    def close(self) -> None:
        pass


def interrupt_after(monkeypatch: pytest.MonkeyPatch, rounds: int) -> None:
    monkeypatch.setattr("gpuboost.cli.progress.ProgressReport", lambda *_: Stop(rounds))


@pytest.mark.slow
def test_ctrl_c_and_resume(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, checkpoint = tmp_path / "m", tmp_path / "m.checkpoint"
    fit = ("fit", data, "--target", "kind", "--out", model, *NUMPY, "--set", "n_estimators=8")
    run(*fit, "--out", tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupt_after(patch, 7)
        result = run(*fit, status=130)
        assert "Interrupted: nothing was written (--checkpoint N would keep" in result.stderr
        assert not model.exists()
        result = run(*fit, "--checkpoint", "3", status=130)
        assert f"Interrupted: {checkpoint} is kept; the same command with --resume goes on from it" in result.stderr
    assert gpuboost.load(checkpoint).n_estimators_ == 6
    assert not model.exists()
    for more, difference in [
        (("--set", "max_leaf_nodes=3"), "max_leaf_nodes was 'auto', and is 3"),
        (("--set", "n_estimators=9"), "n_estimators was 8, and is 9"),
        (("--algorithm", "samme"), "algorithm was adaboost-mh, and is samme"),
        (("--drop", "noise"), "what is no feature was ['kind'], and is ['noise', 'kind']"),
        (("--missing", "?"), "missing was [], and is ['?']"),
    ]:
        other = tuple(
            item
            for item in fit
            if more[0] != "--set" or "n_estimators=9" not in more or item not in ("--set", "n_estimators=8")
        )
        message = refused(*other, *more, "--resume")
        assert f"{checkpoint} is of another run: {difference}" in message or more[0] == "--algorithm"
        assert "repeat the command of that run, or delete the checkpoint" in message
    facts = told(*fit, "--resume")
    assert facts["resumed_from"] == 6
    assert model.read_bytes() == (tmp_path / "whole").read_bytes()
    assert not checkpoint.exists()
    result = run(*fit, "--resume")
    assert "is the finished model of this very run: there is nothing to do" in result.stdout
    result = run(*fit, "--resume", "--missing", "?")
    assert "there is nothing to do" not in result.stdout
    assert model.read_bytes() != (tmp_path / "whole").read_bytes()
    run(*fit, "--missing", "?", "--missing", "-", "--out", tmp_path / "one")
    run(*fit, "--missing", "-", "--missing", "?", "--missing", "?", "--out", tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    result = run(*fit, "--resume", "--drop", "noise")
    assert f"There is no checkpoint {checkpoint}: starting from the beginning" in result.stderr
    assert model.read_bytes() != (tmp_path / "whole").read_bytes()


def test_other_data_are_no_resumption(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit = ("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK)
    with monkeypatch.context() as patch:
        interrupt_after(patch, 3)
        run(*fit, "--checkpoint", "2", status=130)
    data.write_text(data.read_text().replace("tulip", "tulpe", 1))
    assert "is of another run: the data are not the same" in refused(*fit, "--resume")
    assert "will be replaced (--resume would go on from it)" in run(*fit, "--checkpoint", "2").stderr
    (tmp_path / "m").unlink()
    (tmp_path / "m.checkpoint").write_bytes(b"no model")
    assert "m.checkpoint" in refused(*fit, "--resume")


@pytest.mark.slow
@pytest.mark.parametrize(
    "signal_sent", ["SIGINT", *(pytest.param(s, marks=pytest.mark.exhaustive) for s in ("SIGTERM", "SIGHUP"))]
)
def test_ctrl_c_of_a_process(data: Path, tmp_path: Path, signal_sent: str) -> None:
    """A real signal, in a real training: exit status 130, one line, and the checkpoint. SIGTERM ends a container, SIGHUP
    comes when a terminal is closed."""
    checkpoint = tmp_path / "m.checkpoint"
    command = [sys.executable, "-m", "gpuboost", "fit", str(data), "--target", "kind", "--out", str(tmp_path / "m"), *NUMPY]
    number = getattr(signal, signal_sent)
    process = subprocess.Popen(
        [*command, "--checkpoint", "1"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # also where nohup has the tests run
    )
    while not checkpoint.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, stderr = process.communicate()
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == f"Interrupted: {checkpoint} is kept; the same command with --resume goes on from it"
    assert "Traceback" not in stderr
    assert "the model keeps them" not in stderr  # no model is written
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.checkpoint", "t.csv"]


def test_every_suffix_of_tables_is_refused_for_models() -> None:
    assert set(SUFFIXES) - {".csv.gz"} <= set(OTHER_KINDS)


def test_every_cost_decides_a_run() -> None:
    """NumPy's text of a large matrix leaves most of it out."""
    costs = 1.0 - np.eye(40)
    texts = set()
    for odd in (1.0, 1.0 + 2.0**-52, 2.0):
        costs[20, 3] = odd
        model = gpuboost.RebelClassifier(cost_matrix=costs)
        texts.add(chosen("rebel", model, SimpleNamespace(target="y"), None)["cost_matrix"])  # type: ignore[arg-type]
    assert len(texts) == 3

"""What is refused before anything takes time, and what is said of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost
import gpuboost.persistence.checkpoint
from gpuboost.cli.outputs import check_output
from gpuboost.cli.reading import array_files
from gpuboost.cli.reading.columns import labels, numbers
from gpuboost.export.onnx import onnx_labels
from tests.cli.tables import NUMPY, QUICK, flowers, refused, run, told, write

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "t.csv", *flowers())


@pytest.fixture
def model(data: Path, tmp_path: Path) -> Path:
    run("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK)
    return tmp_path / "m"


def test_inputs_are_not_overwritten(model: Path, data: Path, tmp_path: Path) -> None:
    before = data.read_bytes()
    link, text = tmp_path / "link.csv", tmp_path / "t.txt"
    link.symlink_to(data)
    os.link(data, text)
    np.save(tmp_path / "c.npy", 1 - np.eye(3))
    for out in (data, link, tmp_path / "." / "t.csv"):
        assert "would overwrite" in run("predict", model, data, "--out", out, *NUMPY, status=2).stderr
    costs = ("--cost-matrix", tmp_path / "c.npy")
    assert "c.npy" in run("predict", model, data, *costs, "--out", tmp_path / "c.npy", *NUMPY, status=2).stderr
    (tmp_path / "m.csv").write_bytes(model.read_bytes())
    assert "m.csv" in run("predict", tmp_path / "m.csv", data, "--out", tmp_path / "m.csv", *NUMPY, status=2).stderr
    fit = ("fit", data, "--target", "kind", *QUICK)
    assert "would overwrite" in run(*fit, "--out", text, status=2).stderr
    other = tmp_path / "v.txt"
    other.write_bytes(before)
    for option in ("--valid", "--target-file", "--cost-matrix"):
        assert "would overwrite" in run(*fit, option, other, "--out", other, status=2).stderr
    assert data.read_bytes() == other.read_bytes() == before


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("", "--out is empty"),
        ("/dev/null", "is a device or a pipe"),
        ("x" * 300, "cannot be written: File name too long"),
        pytest.param(
            "/proc/x", "cannot be written|may not be", marks=pytest.mark.skipif(not Path("/proc/self").exists(), reason="")
        ),
    ],
)
def test_places_where_no_file_can_be(out: str, message: str) -> None:
    with pytest.raises((OSError, ValueError), match=message):
        check_output(out, ())


def test_place_of_the_checkpoint(data: Path, tmp_path: Path) -> None:
    (tmp_path / "m.checkpoint").mkdir()
    fit = ("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK)
    for option in (("--checkpoint", "2"), ("--resume",)):
        assert "the checkpoint" in (message := refused(*fit, *option))
        assert "is a folder" in message
    run(*fit)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.checkpoint", "t.csv"]


def test_failed_checkpoints_are_told(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: Any) -> None:
        raise OSError(28, "No space left on device", "m.checkpoint")

    monkeypatch.setattr(gpuboost.persistence.checkpoint, "save", no_space)
    result = run("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK, "--checkpoint", "2", "--quiet")
    warned = [line for line in result.stderr.splitlines() if line.startswith("Warning: cannot write the checkpoint of round")]
    assert [line.split(":")[1].split()[-1] for line in warned] == ["2", "4"]


@pytest.mark.parametrize("words", [("fit", "--json"), ("predict", "a", "b", "--nope", "--json"), ("trian", "--json")])
def test_wrong_usage_is_an_object_too(words: tuple[str, ...]) -> None:
    result = run(*words, status=2)
    assert json.loads(result.stdout)["exit_status"] == 2
    assert result.stdout.count("\n") == 1
    assert "Error: " in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words", [("inspect", "m", "--json"), ("inspect", "m"), ("predict", "m", "t.csv", "--out", "-", *NUMPY)]
)
def test_a_full_standard_output(model: Path, words: tuple[str, ...]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "gpuboost", *words], stdout=full, stderr=subprocess.PIPE, text=True, cwd=model.parent,
            env=environment, check=False,
        )  # fmt: skip
    assert (result.returncode, result.stderr) == (1, "Error: No space left on device\n")


@pytest.mark.parametrize("name", ["gpu", "CPU", "cuda:", "cuda:x", "-1", "\N{ARABIC-INDIC DIGIT ONE}", ""])
def test_devices_that_nobody_has_are_wrong_usage(name: str) -> None:
    for words in (["demo"], ["bench"], ["predict", "m", "t.csv", "--out", "p.csv"]):
        told = run(*words, "--device", name, status=2).stderr
        assert f"Invalid value for '--device': {name!r} is unknown; expected auto, cpu, numpy, cuda" in told


def test_large_labels_stay_apart(tmp_path: Path) -> None:
    texts = ["9223372036854775808", "9223372036854775809", "1"]
    assert labels(pa.chunked_array([texts]), "y", from_text=True).tolist() == texts
    small = labels(pa.chunked_array([["9223372036854775807", "-5"]]), "y", from_text=True)
    assert (small.dtype, small.tolist()) == (np.int64, [2**63 - 1, -5])
    decimals = pa.chunked_array([pa.array(list(map(int, texts)), pa.decimal128(38, 0))])
    assert labels(decimals, "y", from_text=False).tolist() == texts
    rows = [[i % 3, texts[i % 3]] for i in range(30)]
    data = write(tmp_path / "l.csv", ["x", "y"], rows)
    assert told("fit", data, "--target", "y", "--out", tmp_path / "m", *QUICK)["classes"] == 3
    facts = told("evaluate", tmp_path / "m", data, *NUMPY)
    assert sorted(one["class"] for one in facts["classes"]) == sorted(texts)
    assert facts["error"] == 0


def test_evaluation_of_unknown_labels_and_quiet(model: Path, data: Path, tmp_path: Path) -> None:
    names, rows = flowers(10)
    odd = write(tmp_path / "odd.csv", names, [[*row[:3], "oak"] for row in rows])
    assert "has labels that the training data lack in 10 rows, first 'oak'" in refused("evaluate", model, odd, *NUMPY)
    first = run("evaluate", model, data, *NUMPY).stdout.splitlines()[0]
    assert run("evaluate", model, data, *NUMPY, "--quiet").stdout == first + "\n"


def test_target_files_of_no_rows(data: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "y.npy", np.array(3))
    fit = ("fit", data, "--drop", "kind", "--target-file", tmp_path / "y.npy", "--out", tmp_path / "m", *QUICK)
    assert "must hold one label a row, shape (60,), got the shape ()" in refused(*fit)


def test_libsvm_of_huge_indices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.libsvm"
    path.write_text("1 999999999:0.5\n2 1:1\n")
    assert "indices up to 999999999" in refused("fit", path, "--out", tmp_path / "m", *QUICK)
    path.write_text("1 2:0.5\n2 1:1\n")
    monkeypatch.setattr(array_files, "LARGEST_LIBSVM", 2 * 3 * 8)
    assert array_files.read_libsvm(str(path))[0].tolist() == [[0, 0, 0.5], [0, 1, 0]]
    monkeypatch.setattr(array_files, "LARGEST_LIBSVM", 2 * 3 * 8 - 1)
    with pytest.raises(ValueError, match="2 rows and indices up to 2"):
        array_files.read_libsvm(str(path))


@pytest.mark.parametrize(
    ("text", "hinted"), [("1,5", True), ("1.234.567", True), ("-1 234,5", True), ("12.05.2020", False), ("red", False)]
)
def test_numbers_of_other_countries(text: str, hinted: bool) -> None:
    with pytest.raises(ValueError, match="holds text") as caught:
        numbers(pa.chunked_array([["7", text]]), "x")
    assert ("numbers need a point for decimals" in str(caught.value)) is hinted


def test_windows_1252(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("price,y\n5 €,a\n".encode("cp1252"))
    assert "iconv -f CP1252" in refused("fit", tmp_path / "t.csv", "--target", "y", "--out", tmp_path / "m", *QUICK)


def test_names_of_columns_are_not_warned_of(model: Path, tmp_path: Path) -> None:
    rows = write(tmp_path / "n.csv", None, [row[:3] for row in flowers(5)[1]])
    result = run("predict", model, rows, "--no-header", "--out", tmp_path / "p.csv", *NUMPY)
    assert "feature names" not in result.stderr
    assert "has no column names; the columns" in result.stderr


def test_leaf_numbers() -> None:
    with pytest.raises(ValueError, match="max_leaf_nodes must be an integer of at least 2 or \"auto\", got 'nope'"):
        gpuboost.fit([[0.0], [1.0]], [0, 1], max_leaf_nodes="nope", device="numpy")


def test_half_of_a_character_has_no_onnx() -> None:
    with pytest.raises(ValueError, match="must be valid Unicode to be exported to ONNX"):
        onnx_labels(np.array(["a", "\ud800"]))


def test_doubtful_targets_are_told(tmp_path: Path) -> None:
    names, rows = flowers(60)
    strange = [[*row[:-1], "NA" if i < 3 else row[-1]] for i, row in enumerate(rows)]
    told = run("fit", write(tmp_path / "n.csv", names, strange), "--target", "kind", "--out", tmp_path / "m", *QUICK).stderr
    assert "'NA' is one of the classes; if it stands for a missing label, leave these rows out" in told
    numbered = write(tmp_path / "i.csv", ["id", *names[:-1]], [[f"r{i}", *row[:-1]] for i, row in enumerate(rows)])
    told = run("fit", numbered, "--target", "id", "--out", tmp_path / "m", *QUICK).stderr
    assert "there are 60 classes for 60 rows: is the target right?" in told
    assert (
        "Note"
        not in run("fit", write(tmp_path / "t.csv", names, rows), "--target", "kind", "--out", tmp_path / "m", *QUICK).stderr
    )


@pytest.mark.parametrize("what", ["--target", "--weight"])
def test_a_column_has_one_use(data: Path, tmp_path: Path, what: str) -> None:
    words = ["fit", data, "--target", "kind", "--out", tmp_path / "m", "--drop", "noise", "--drop", "kind", *QUICK]
    if what == "--weight":
        words[-len(QUICK) - 1] = "width"
        words += ["--weight", "noise"]
    column = "kind" if what == "--target" else "noise"
    assert f"{what} {column!r} and --drop name the same column" in refused(*words)


@pytest.mark.slow
def test_a_better_round_is_told(tmp_path: Path) -> None:
    # The labels of the validation set are random: its error is lowest in some round, and not in the last.
    names, rows = flowers(80)
    rng = np.random.default_rng(1)
    mixed = [[*row[:-1], label] for row, label in zip(rows, rng.permutation([row[-1] for row in rows]), strict=True)]
    data, valid = write(tmp_path / "t.csv", names, rows), write(tmp_path / "v.csv", names, mixed)
    words = ("fit", data, "--target", "kind", "--valid", valid, "--out", tmp_path / "m", "--device", "numpy")
    told = run(*words, "--set", "n_estimators=30").stdout
    history = gpuboost.load(tmp_path / "m").history_["valid_error"]
    best = int(np.argmin(history))
    assert history[best] < history[-1]
    assert f"(lowest {100 * history[best]:.2f} % in round {best + 1}; see --set early_stopping=patience)" in told
    assert "(lowest" not in run(*words, "--set", "n_estimators=30", "--set", "early_stopping=patience").stdout


def test_labels_that_a_picture_does_not_know(model: Path, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    words = ("plot", model, "confusion", "--data", data, "--out", tmp_path / "c.png", "--device", "numpy")
    assert "has labels that the training data lack in 60 rows" in refused(*words, "--target", "noise")
    names, rows = flowers(60)
    rows[0][-1] = "weed"
    write(data, names, rows)
    assert "1 rows have labels that the model does not know; they count as errors: weed" in run(*words).stderr
    numbered = [[*row[:2], 2 * (row[0] > 1), 0] for row in rows]
    data = write(tmp_path / "i.csv", names, numbered)
    run("fit", data, "--target", "noise", "--out", tmp_path / "n", *QUICK)
    write(data, names, [[*numbered[0][:2], 7, 0], *numbered[1:]])
    words = ("plot", tmp_path / "n", "confusion", "--data", data, "--out", tmp_path / "c.png", "--device", "numpy")
    told = run(*words, status=1).stderr
    assert "has labels that the training data lack in 1 rows, first 7" in told
    assert "Warning" not in told

"""``gpuboost plot``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gpuboost
from gpuboost.plotting import KINDS
from tests.cli.tables import QUICK, flowers, refused, run, write

pytest.importorskip("matplotlib")

NEEDS = {
    "confusion": [],
    "costs": ["--cost-matrix", "costs.csv"],
    "reliability": [],
    "decision-map": ["--columns", "width", "1", "--at", "noise=2"],
}
LABELS = ["daisy", "rose, red", "tulip"]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model, its data and costs."""
    monkeypatch.chdir(tmp_path)
    write(Path("flowers.csv"), *flowers())
    write(Path("costs.csv"), ["", *LABELS], [[true, *(0 if true == k else 2 for k in LABELS)] for true in LABELS])
    run("fit", "flowers.csv", "--target", "kind", "--algorithm", "abc-boost", "--out", "model", *QUICK)
    return tmp_path


@pytest.fixture
def filtered(files: Path) -> None:
    """A model of FilterBoost."""
    run("fit", "flowers.csv", "--target", "kind", "--algorithm", "filterboost", "--out", "filtered", *QUICK)


@pytest.mark.slow
def test_every_kind(files: Path, filtered: None) -> None:
    for kind in KINDS:
        options = ["--data", "flowers.csv", *NEEDS[kind]] if kind in NEEDS else []
        run("plot", "filtered" if kind == "stream" else "model", kind, "--out", "picture.svg", *options)
        assert b"</svg>" in Path("picture.svg").read_bytes()
        Path("picture.svg").unlink()


@pytest.mark.slow
def test_formats_and_equal_bytes(files: Path) -> None:
    for suffix, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        pictures = []
        for _ in range(2):
            run("plot", "model", "tree", "--tree", 1, "--out", f"tree.{suffix}", "--dpi", 30)
            pictures.append(Path(f"tree.{suffix}").read_bytes())
        assert pictures[0].startswith(start)
        assert pictures[0] == pictures[1]


@pytest.mark.slow
def test_histories(files: Path, filtered: None) -> None:
    for kind in (name for name, one in KINDS.items() if one.from_history):
        model = "filtered" if kind == "stream" else "model"
        Path("history.json").write_text(json.dumps(gpuboost.load(model).history_), encoding="utf-8")
        Path("facts.json").write_text(run("inspect", model, "--json").stdout, encoding="utf-8")
        for source in ("history.json", "facts.json"):
            run("plot", source, kind, "--out", f"{source}.svg")
        assert Path("history.json.svg").read_bytes() == Path("facts.json.svg").read_bytes()
    assert "no 'bound': only boosters that draw" in refused("plot", "model", "stream", "--out", "a.png")
    assert "importances needs a model file" in refused("plot", "history.json", "importances", "--out", "a.png")


@pytest.mark.parametrize("text", ["", "[1", "[]", "{}", '{"a": 1}', '{"train_loss": [1], "edge": []}', '"x"', "[" * 99999])
def test_odd_histories(files: Path, text: str) -> None:
    Path("odd.json").write_text(text, encoding="utf-8")
    assert "odd.json" in refused("plot", "odd.json", "learning-curves", "--out", "a.png")
    assert not Path("a.png").exists()


def test_wrong_usage(files: Path) -> None:
    for arguments, words in (
        (["tree", "--top", 3], "tree has no option --top"),
        (["tree", "--data", "flowers.csv"], "tree has no option --data"),
        (["confusion"], "confusion needs labelled rows"),
        (["decision-map", "--data", "flowers.csv", "--at", "noise"], "COL=VALUE"),
        (["decision-map", "--data", "flowers.csv", "--at", "noise=x"], "COL=VALUE"),
    ):
        assert words in refused("plot", "model", *arguments, "--out", "a.png", status=2)
    assert "must end in one of .png, .svg, .pdf" in refused("plot", "model", "tree", "--out", "a.gif")
    assert "choose two" in refused("plot", "model", "decision-map", "--data", "flowers.csv", "--out", "a.png")
    assert "from 0 to" in refused("plot", "model", "tree", "--tree", 999, "--out", "a.png")
    assert not Path("a.png").exists()


def test_no_figure_stays_open(files: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    before = pyplot.get_fignums()
    run("plot", "model", "importances", "--out", "picture.svg")
    assert pyplot.get_fignums() == before

"""``gpuboost fit --stream``: files piece by piece, and the model of Python."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.cli import training_streams
from gpuboost.cli.progress import ProgressReport
from gpuboost.cli.reading.file_streams import FileStream
from gpuboost.cli.reading.tables import Reading
from gpuboost.errors import StreamError
from gpuboost.estimators import stream_fitting
from gpuboost.streams import DatasetSource
from tests.candidates import thinned
from tests.cli.tables import NUMPY, flowers, read, refused, run, told, write

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

SETTINGS: dict[str, Any] = {"n_estimators": 5, "examples_per_round": 60, "n_bin_rows": 150}


def sets(**settings: Any) -> list[str]:
    """Return options for the settings, some of them changed."""
    return [word for name, value in {**SETTINGS, **settings}.items() for word in ("--set", f"{name}={value}")]


def streamed(**settings: Any) -> tuple[str, ...]:
    return ("--stream", "--algorithm", "filterboost", "--target", "kind", *NUMPY, *sets(**settings))


STREAM = streamed()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with three files of 60 weighted rows in the folder d, and a validation set."""
    monkeypatch.chdir(tmp_path)
    Path("d").mkdir()
    for i in range(3):
        names, rows = flowers(seed=i)
        write(Path(f"d/{i}.csv"), [*names, "w"], [[*row, j % 4] for j, row in enumerate(rows)])
    write(Path("valid.csv"), *flowers(seed=3))
    return tmp_path


def tables() -> Any:
    return pd.concat([pd.read_csv(path) for path in sorted(Path("d").iterdir())], ignore_index=True)


def of_python(data: Any = "d", weight: str | None = "w", shuffle: int | None = None, **settings: Any) -> Any:
    """Train on the same files in Python."""
    settings = {**SETTINGS, "device": "numpy", "random_state": 0, **settings}
    source = DatasetSource(data, "kind", weight, ["width", "length", "noise"], shuffle)
    classes = np.array(["daisy", "rose, red", "tulip"])  # pyarrow's text is of the dtype object, that of the command line not
    return gpuboost.FilterBoostClassifier(**settings).fit_stream(source, classes)


def as_parquet() -> None:
    for path in Path("d").iterdir():
        pd.read_csv(path).to_parquet(path.with_suffix(".parquet"), row_group_size=25)
        path.unlink()


def as_feather() -> None:
    for path in Path("d").iterdir():
        pd.read_csv(path).to_feather(path.with_suffix(".feather"), chunksize=25)
        path.unlink()


# ---- the model ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [None, 3])
@pytest.mark.parametrize("change", thinned([as_parquet, lambda: None, as_feather], 3))
def test_the_model_is_that_of_python(change: Any, shuffle: int | None) -> None:
    change()
    more = () if shuffle is None else ("--shuffle", shuffle)
    facts = told("fit", "d", "--weight", "w", "--out", "m", *STREAM, *more)
    model = of_python(shuffle=shuffle)
    assert facts["digest"] == model.ensemble_.digest()
    loaded = gpuboost.load("m", device="numpy")
    model.save("python")
    again = gpuboost.load("python", device="numpy")
    loaded.save("plain")  # without the record of the command
    assert Path("plain").read_bytes() == Path("python").read_bytes()
    assert loaded.classes_.dtype == again.classes_.dtype
    history = {name: values for name, values in model.history_.items() if name != "seconds"}
    assert history == {name: values for name, values in loaded.history_.items() if name != "seconds"}
    assert loaded.feature_names_in_.tolist() == ["width", "length", "noise"]
    drawn = int(sum(model.history_["draws"]))
    expected = {"rows_drawn": drawn, "passes": int(model.history_["pass"][-1]) + 1, "features": 3, "classes": 3, "rounds": 5}
    assert expected.items() <= facts.items()
    assert facts["rows"] == (180 if change is as_parquet else None)  # other kinds say it at their end


def test_files_are_read_in_the_order_given() -> None:
    files = ["d/2.csv", "d/0.csv"]
    one = told("fit", *files, "--weight", "w", "--out", "m", *STREAM)["digest"]
    assert one == of_python(files).ensemble_.digest()
    assert one != told("fit", *files[::-1], "--weight", "w", "--out", "m", *STREAM)["digest"]


def test_numbers_name_columns_and_dropped_ones_are_no_features() -> None:
    facts = told("fit", "d", "--weight", "-1", "--drop", "2", "--out", "m", *STREAM, "--target", "3")
    settings = {**SETTINGS, "device": "numpy", "random_state": 0}
    model = gpuboost.FilterBoostClassifier(**settings).fit_stream(DatasetSource("d", "kind", "w", ["width", "length"]))
    assert facts["digest"] == model.ensemble_.digest()
    record = told("inspect", "m")
    assert (record["target"], record["feature_names"]) == ("kind", ["width", "length"])
    run("predict", "m", "valid.csv", "--out", "p.csv", *NUMPY)
    frame = pd.read_csv("valid.csv")
    assert [row[0] for row in read(Path("p.csv"))[1:]] == model.predict(frame[["width", "length"]]).tolist()


def test_the_validation_set_is_that_of_evaluate() -> None:
    facts = told("fit", "d", "--drop", "w", "--valid", "valid.csv", "--out", "m", *STREAM)
    told_error = told("evaluate", "m", "valid.csv", *NUMPY)["error"]
    assert facts["valid_error"] == told_error
    frame = pd.read_csv("valid.csv")
    model = gpuboost.FilterBoostClassifier(**SETTINGS, device="numpy", random_state=0)
    model.fit_stream(
        DatasetSource("d", "kind", columns=["width", "length", "noise"]),
        eval_set=(frame[["width", "length", "noise"]], frame["kind"]),
    )
    assert model.history_["valid_error"][-1] == told_error


def test_without_stream_it_trains_as_the_others_do() -> None:
    facts = told("fit", "valid.csv", "--target", "kind", "--algorithm", "filterboost", "--out", "m", *NUMPY, *sets())
    _, rows = flowers(seed=3)
    model = gpuboost.FilterBoostClassifier(**SETTINGS, device="numpy", random_state=0)
    model.fit([row[:-1] for row in rows], np.array([row[-1] for row in rows]))
    assert facts["digest"] == model.ensemble_.digest()
    assert facts["rows"] == 60


@pytest.mark.parametrize(
    ("texts", "classes"),
    [
        (["1", "2", "3"], [1, 2, 3]),
        (["007", "1", "2"], ["007", "1", "2"]),
        (["NA", "x", "y"], ["NA", "x", "y"]),
        pytest.param(["True", "False"], [False, True], marks=pytest.mark.slow),
    ],
)
def test_labels_of_text_files_are_those_of_a_table_in_memory(texts: list[str], classes: list[Any]) -> None:
    _, rows = flowers(50)
    write(Path("t.csv"), ["a", "kind"], [[row[0], texts[i % len(texts)]] for i, row in enumerate(rows)])
    fit = ("--target", "kind", "--algorithm", "filterboost", *NUMPY, *sets())
    found = []
    for more in ((), ("--stream",)):
        run("fit", "t.csv", "--out", "m", *fit, *more)
        found.append(gpuboost.load("m", device="numpy").classes_)
    assert found[0].tolist() == found[1].tolist() == classes
    assert found[0].dtype == found[1].dtype


def test_missing_values_are_those_of_a_table_in_memory() -> None:
    _, rows = flowers(50)
    holes = {3: "?", 4: "<NA>", 5: "", 6: "NULL"}
    write(Path("t.csv"), ["a", "b", "kind"], [[row[0], holes.get(i, row[1]), row[3]] for i, row in enumerate(rows)], ";")
    stream = FileStream(["t.csv"], Reading(missing=("?",)), "kind", None, (), None)
    stream.find_classes(100, ())
    (batch,) = stream.batches()
    table = Reading(missing=("?",)).read("t.csv")
    np.testing.assert_array_equal(batch.X.to_pandas().to_numpy(), table.features([0, 1]).to_pandas().to_numpy())
    assert batch.y.tolist() == table.labels("kind").tolist()
    run("fit", "t.csv", "--missing", "?", "--out", "m", *STREAM)
    run("evaluate", "m", "t.csv", *NUMPY)
    assert "'b' holds text such as '?' in row 4, not numbers" in (said := refused("fit", "t.csv", "--out", "m", *STREAM))
    assert "--drop 'b'" in said
    assert "--missing TEXT" in said


# ---- what goes on ------------------------------------------------------------------------------------------------------------


def killed(monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    """Interrupt the next training after so many rounds."""

    def call(self: ProgressReport, progress: Any) -> None:
        if progress.n_rounds == after:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressReport, "__call__", call)


@pytest.mark.parametrize("change", thinned([lambda: None, as_parquet], 2))
def test_a_training_that_was_interrupted_goes_on_in_mid_stream(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    change()
    fit = ("fit", "d", "--weight", "w", "--valid", "valid.csv", *STREAM, "--checkpoint", 2)
    whole = told(*fit, "--out", "whole")
    with monkeypatch.context() as patch:
        killed(patch, 5)
        said = run(*fit, "--out", "m", status=130).stderr
    assert "m.checkpoint is kept; the same command with --resume goes on from it" in said
    assert not Path("m").exists()
    begun = gpuboost.load("m.checkpoint", device="numpy")
    assert begun.n_estimators_ == 4
    assert begun.history_["row"][-1] % 60 != 0  # in the middle of a file
    resumed = told(*fit, "--out", "m", "--resume")
    assert resumed["resumed_from"] == 4
    assert Path("m").read_bytes() == Path("whole").read_bytes()
    assert {**resumed, "model": "", "seconds": 0, "resumed_from": 0} == {**whole, "model": "", "seconds": 0}
    assert told(*fit, "--out", "m", "--resume")["finished_before"]


def test_another_run_is_not_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = ("fit", "d", "--weight", "w", *STREAM, "--checkpoint", 1, "--out", "m")
    with monkeypatch.context() as patch:
        killed(patch, 3)
        run(*fit, status=130)
    for more, words in (
        (("--shuffle", 1), "shuffle was None, and is 1"),
        (("--class", "tulip", "--class", "daisy", "--class", "rose, red"), "class was [], and is ['tulip', "),
        (("--set", "tau=0.1"), "tau was 0.2, and is 0.1"),
    ):
        assert words in refused(*fit, "--resume", *more)
    content = Path("d/1.csv").read_bytes()
    Path("d/1.csv").write_bytes(content.replace(b"tulip", b"daisy", 1))  # of the same size
    assert "the data are not the same" in refused(*fit, "--resume")
    Path("d/1.csv").write_bytes(content)
    Path("d").rename("elsewhere")
    run("fit", "elsewhere", *fit[2:], "--resume")
    assert gpuboost.load("m", device="numpy").ensemble_.digest() == of_python("elsewhere").ensemble_.digest()


def test_large_files_are_known_by_pieces(tmp_path: Path) -> None:
    path = tmp_path / "large"
    size = 100 * training_streams.LOOK
    path.write_bytes(bytes(size))
    before = training_streams.fingerprint(str(path))
    assert before[:2] == ("large", size)
    seen = 0
    for place in (0, size - 1, size // 2):
        with path.open("r+b") as file:
            file.seek(place)
            file.write(b"x")
        seen += training_streams.fingerprint(str(path)) != before
        before = training_streams.fingerprint(str(path))
    assert seen >= 2  # the two ends at least


def test_a_label_that_comes_late_and_names_for_it() -> None:
    frame = tables()
    frame.loc[170, "kind"] = "weed"
    frame.to_csv("d/0.csv", index=False)
    fit = ("fit", "d/0.csv", "--weight", "w", "--out", "m", *streamed(examples_per_round=200))
    said = refused(*fit, "--checkpoint", 1)
    assert "row 170 has the label 'weed' in 'kind', which is none of the classes 'daisy', 'rose, red', 'tulip'" in said
    assert "name all of them by --class; nothing was written" in said
    named = [word for label in ("weed", "tulip", "daisy", "rose, red") for word in ("--class", label)]
    assert told(*fit, *named)["classes"] == 4
    assert gpuboost.load("m", device="numpy").classes_.tolist() == ["daisy", "rose, red", "tulip", "weed"]
    frame.loc[170, "w"] = 0  # no row
    frame.to_csv("d/0.csv", index=False)
    assert told(*fit)["classes"] == 3


def test_labels_are_named_in_the_type_of_the_files() -> None:
    frame = tables()
    frame["kind"] = frame["kind"].map({"daisy": 1, "rose, red": 2, "tulip": 3})
    frame.to_parquet("t.parquet")
    named = [word for label in ("3", "1", "2", "4") for word in ("--class", label)]
    run("fit", "t.parquet", "--weight", "w", "--out", "m", *STREAM, *named)
    assert gpuboost.load("m", device="numpy").classes_.tolist() == [1, 2, 3, 4]
    said = run("fit", "t.parquet", "--weight", "w", "--out", "m", *STREAM, "--class", "rose", status=2).stderr
    assert "--class: the target is of the type int64" in said


# ---- what is refused, or fails -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-",), "Error: the standard input cannot be read again"),
        (("pipe",), "Error: pipe cannot be read again"),
        (("t.npz",), "Error: t.npz is of no kind that is read piece by piece: .parquet"),
        (("d", "--target-file", "y.npy"), "--stream and --target-file: labels must be a column of the files"),
        (("d", "--no-header"), "--stream and --no-header: files of CSV must have a row of names"),
        (("d", "--cost-matrix", "c.csv"), "--stream and --cost-matrix: filterboost does not train by costs"),
        (("d", "--set", "draw=all"), "--set draw=all holds all rows in memory"),
        (("d", "--set", "early_stopping=patience"), "--set early_stopping needs --valid with --stream"),
        (("d", "--set", "class_weight=balanced"), "--set class_weight=balanced needs all labels"),
        (("d", "--out", "d/m"), "--out d/m lies in the folder d, of which all files are read"),
        (("d/0.csv", "--out", "d/0.csv", "--out", "d/0.csv.txt.x", "--shuffle", "-1"), "-1 is not in the range x>=0"),
    ],
)
def test_wrong_usage_is_refused_before_anything_is_read(
    arguments: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DatasetSource, "batches", None)
    os.mkfifo("pipe")
    np.savez("t.npz", X=np.zeros((3, 2)), y=np.arange(3))
    said = run("fit", *STREAM, *(() if "--out" in arguments else ("--out", "m")), *arguments, status=2).stderr
    assert words in said
    assert not Path("m").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("d",), "the folder d cannot be read as one table: use --stream --algorithm filterboost, or gpuboost encode"),
        (("d/0.csv", "d/1.csv"), "2 files cannot be read as one table"),
        (("d/0.csv", "--class", "x"), "--class is for --stream"),
        (("d/0.csv", "--shuffle", "0"), "--shuffle is for --stream"),
    ],
)
def test_what_is_for_streams_alone(arguments: tuple[str, ...], words: str) -> None:
    assert words in run("fit", *arguments, "--target", "kind", "--out", "m", status=2).stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("none",), "none: No such file or directory"),
        (("d", "--target", "kinds"), "has no column 'kinds' (--target); did you mean 'kind'?"),
        (("d", "--weight", "v"), "has no column 'v' (--weight)"),
        (("d", "--drop", "nois"), "did you mean 'noise'?"),
        (("d", "--weight", "kind"), "'kind' and --target name the same column"),
        (("d", "--valid", "other.csv"), "other.csv: the target has labels that the training data lack"),
    ],
)
def test_wrong_columns_and_labels(arguments: tuple[str, ...], words: str) -> None:
    write(Path("other.csv"), ["width", "length", "noise", "kind", "w"], [[1, 2, 3, "thistle", 1]])
    said = refused("fit", *STREAM, "--out", "m", *arguments)
    assert words in said.replace("'weight'", "--weight")


def test_other_algorithms_and_a_single_label_are_named() -> None:
    said = run("fit", "d", "--target", "kind", "--stream", "--algorithm", "samme", "--out", "m", status=2).stderr
    assert "--stream: samme does not read streams; use --algorithm filterboost, or gpuboost encode" in said
    said = refused("fit", "d", "--out", "m", *streamed(n_bin_rows=1))
    assert "the first 1 rows of d/0.csv have one label alone" in said
    assert "--class" in said
    assert "--shuffle 0" in said


def test_csv_and_other_kinds_are_not_mixed() -> None:
    tables().to_parquet("t.parquet")
    said = run("fit", "d/0.csv", "t.parquet", "--out", "m", *STREAM, status=2).stderr
    assert "d/0.csv has labels without types, and t.parquet with; give CSV alone or none" in said


def test_a_file_that_changes_in_the_middle_is_one_message_and_its_checkpoint_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_fitting, "STEP_ROWS", 16)
    frame = pd.read_csv("d/2.csv")
    frame["width"] = "wide"
    frame.to_csv("d/2.csv", index=False)
    fit = ("fit", "d", "--weight", "w", *streamed(examples_per_round=20, n_bin_rows=60), "--out", "m")
    said = refused(*fit, "--checkpoint", 1)
    assert "the source has failed in pass 0, row 120: " in said
    assert "2.csv: column 'width' has the type string, not numbers" in said
    assert said.endswith("; m.checkpoint is kept; the same command with --resume goes on from it")
    assert gpuboost.load("m.checkpoint", device="numpy").n_estimators_ >= 1
    Path("d/2.csv").write_text("width,length,noise,kind,w,extra\n1,2,3,tulip,1,0\n", encoding="utf-8")
    assert "pass 0, row 120: d/2.csv has the column 'extra', unlike the first file" in refused(*fit)


def test_missing_labels_are_named_by_their_row() -> None:
    frame = pd.read_csv("d/1.csv")
    frame.loc[7, "kind"] = None
    frame.to_csv("d/1.csv", index=False)
    assert "missing labels: 'kind' has none in row 67, counted from 0" in refused("fit", "d", "--out", "m", *STREAM)


def test_rounds_before_a_failure_are_a_model_without_recycling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_fitting, "STEP_ROWS", 16)
    Path("d/2.csv").write_text("width,length\n1,2\n", encoding="utf-8")
    settings = streamed(recycle="false", examples_per_round=10, n_estimators=50, n_bin_rows=60)
    result = run("fit", "d", "--weight", "w", "--out", "m", *settings)
    assert "Warning: the source failed: " in result.stderr
    assert gpuboost.load("m", device="numpy").n_estimators_ < 50


# ---- what is shown -----------------------------------------------------------------------------------------------------------


def test_progress_shows_the_filter(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock: Iterator[float] = iter([10.0, 12.0])
    monkeypatch.setattr("gpuboost.progress.time.perf_counter", lambda: next(clock))
    report = ProgressReport(3)
    history: dict[str, list[float]] = {name: [] for name in ("train_error", "draws", "acceptance", "bound")}
    for n, row in enumerate([(0.5, 900.0, 0.5, 1.0), (0.25, 100.0, 0.4, 0.8), (0.125, 300.0, 0.05, 0.1)], start=1):
        for name, value in zip(history, row, strict=True):
            history[name].append(value)
        report(SimpleNamespace(n_rounds=n, history=history))
    first, last = capsys.readouterr().err.splitlines()
    assert first.startswith("round 1 of 3  train error 50.00 %  bound 100.00%  acceptance 50.00%  0 s")
    assert last.startswith("round 3 of 3  train error 12.50 %  bound 10.00%  acceptance 5.00%  rows/s 200  ")  # 400 in 2 s


def test_inspect_and_the_last_line_tell_the_rows() -> None:
    said = run("fit", "d", "--weight", "w", "--out", "m", *STREAM).stdout
    history = gpuboost.load("m", device="numpy").history_
    drawn, passes = int(sum(history["draws"])), int(history["pass"][-1]) + 1
    assert said.startswith(f"{drawn} rows drawn in {passes} passes, 3 features, 3 classes: 5 rounds in ")
    shown = run("inspect", "m").stdout
    assert f"rows drawn:    {drawn}, up to row {int(history['row'][-1])} of pass {passes}" in shown
    assert "data digest:   of parts of 3 files: " in shown


def test_memory_holds_a_piece_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    as_parquet()
    stream = FileStream(["d"], Reading(), "kind", "w", (), None)
    stream.find_classes(10, ())
    assert [len(batch.y) for batch in stream.batches()] == [25, 25, 10] * 3
    assert [len(batch.y) for batch in stream.batches(70)][-3:] == [25, 25, 10]
    stream.classes = np.array(["tulip"])
    with pytest.raises(
        StreamError, match=r"row \d has the label '(daisy|rose, red)' in 'kind', which is none of the classes 'tulip'"
    ):
        list(stream.batches())

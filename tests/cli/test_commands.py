"""``gpuboost predict``, ``evaluate``, ``inspect``, ``bench`` and ``algorithms``, and what all commands share."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import gpuboost
from gpuboost.cli.reading.labels import class_numbers
from tests.cli.tables import NUMPY, QUICK, flowers, read, refused, run, told, write

bench_module = importlib.import_module("gpuboost.cli.commands.bench")  # the package has the command of that name
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    run("fit", write(folder / "t.csv", *flowers()), "--target", "kind", "--out", folder / "m", *QUICK)
    return folder / "m"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "new.csv", *flowers(30, seed=1))


def expected(model: Path) -> tuple[Any, list[str], np.ndarray[Any, Any]]:
    """The estimator, and the labels and probabilities that it gives the new rows."""
    estimator: Any = gpuboost.load(model, device="numpy")
    X = pa.table([[row[i] for row in flowers(30, seed=1)[1]] for i in range(3)], names=["width", "length", "noise"])
    return estimator, estimator.predict(X).tolist(), estimator.predict_proba(X)


# ---- predict -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.parquet", "p.feather", "p.npz"])
def test_predictions_in_files(model: Path, data: Path, tmp_path: Path, name: str) -> None:
    estimator, labels, proba = expected(model)
    out = tmp_path / name
    assert told("predict", model, data, "--out", out, "--proba", *NUMPY) == {"out": str(out), "rows": 30}
    if name == "p.npz":
        with np.load(out) as arrays:
            assert arrays["prediction"].tolist() == labels
            assert arrays["classes"].tolist() == estimator.classes_.tolist()
            np.testing.assert_array_equal(arrays["proba"], proba)
        return
    from pyarrow import csv

    if name.endswith((".parquet", ".feather")):
        table = parquet.read_table(out) if name.endswith(".parquet") else feather.read_table(out)
    else:
        table = csv.read_csv(out, parse_options=csv.ParseOptions(delimiter="\t" if name == "p.tsv" else ","))
    assert table.column_names == ["prediction", "p_daisy", "p_rose, red", "p_tulip"]
    assert table["prediction"].to_pylist() == labels
    np.testing.assert_array_equal(np.stack([table.column(k).to_numpy() for k in (1, 2, 3)], axis=1), proba)


def test_predictions_as_arrays_and_on_the_standard_output(model: Path, data: Path, tmp_path: Path) -> None:
    _, labels, proba = expected(model)
    run("predict", model, data, "--out", tmp_path / "p.npy", *NUMPY)
    assert np.load(tmp_path / "p.npy").tolist() == labels
    run("predict", model, data, "--out", tmp_path / "p.npy", "--proba", *NUMPY)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), proba)
    run("predict", model, data, "--out", tmp_path / "p.csv", *NUMPY)
    printed = run("predict", model, "-", "--out", "-", *NUMPY, stdin=data.read_bytes())
    assert printed.stdout == (tmp_path / "p.csv").read_text()
    assert [row[0] for row in read(tmp_path / "p.csv")] == ["prediction", *labels]


def test_rows_that_leave_early(model: Path, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    estimator, labels, _ = expected(model)
    facts = told("predict", model, data, "--out", out, "--early-exit", "exact", *NUMPY)
    assert facts == {"out": str(out), "rows": 30, "mean_rounds": 4.0, "rounds": 4}  # four rounds have one checkpoint
    assert [row[0] for row in read(out)[1:]] == labels
    assert "needs a lead to leave with" in refused("predict", model, data, "--out", out, "--early-exit", *NUMPY)
    usage = refused("predict", model, data, "--out", out, "--early-exit", "exact", "--proba", *NUMPY, status=2)
    assert "--proba needs all trees" in usage
    names, rows = flowers(200, seed=3)
    estimator.set_params(n_estimators=40).fit(
        pa.table([[row[i] for row in rows] for i in range(3)], names[:3]), [r[3] for r in rows]
    )
    names, rows = flowers(200, seed=4)
    new = pa.table([[row[i] for row in rows] for i in range(3)], names[:3])
    estimator.fit_early_exit(new, allowed=0.02).save(tmp_path / "early")
    path = write(tmp_path / "early.csv", names, rows)
    printed = run("predict", tmp_path / "early", path, "--out", out, "--early-exit", *NUMPY).stdout
    assert f"by {estimator.predict_rounds(new).mean():.1f} of 40 rounds on average" in printed
    assert [row[0] for row in read(out)[1:]] == estimator.predict(new, early_exit=True).tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_columns_that_are_kept(model: Path, tmp_path: Path, suffix: str) -> None:
    names, rows = flowers(30, seed=1)
    numbers = [f"{i:03d}" if i % 7 else "" for i in range(30)]  # texts that look like numbers, and none in every seventh row
    data, out = (
        write(tmp_path / "n.csv", ["id", *names], [[n, *row] for n, row in zip(numbers, rows, strict=True)]),
        tmp_path / "p.csv",
    )
    run("predict", model, data, "--out", out, "--keep", "id", "--keep", names[0], *NUMPY)
    header, *found = read(out)
    assert header == ["id", names[0], "prediction"]
    assert [row[0] for row in found] == numbers
    assert [float(row[1]) for row in found] == [float(row[0]) for row in rows]
    run("predict", model, data, "--out", tmp_path / "plain.csv", *NUMPY)
    assert [row[2:] for row in found] == read(tmp_path / "plain.csv")[1:]
    if suffix == "parquet":
        table = pa.table(
            {"id": pa.array([1, None, *range(28)]), **{name: [row[i] for row in rows] for i, name in enumerate(names)}}
        )
        parquet.write_table(table, tmp_path / "n.parquet")
        run("predict", model, tmp_path / "n.parquet", "--out", tmp_path / "p.parquet", "--keep", "id", *NUMPY)
        assert parquet.read_table(tmp_path / "p.parquet").column("id").to_pylist() == [1, None, *range(28)]


def test_kept_columns_keep_their_types(model: Path, tmp_path: Path) -> None:
    names, rows = flowers(3, seed=1)
    kept = {
        "large": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "exact": pa.array([1606780800123456789, None, 0], pa.timestamp("ns")),
        "late": pa.array([2**58] * 3, pa.timestamp("ms")),
        "single": pa.array([0.1, None, 2], pa.float32()),
        "pairs": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "coded": pa.array(["x", "y", None]).dictionary_encode(),
    }
    table = pa.table({**kept, **{name: [row[i] for row in rows] for i, name in enumerate(names)}})
    parquet.write_table(table, tmp_path / "n.parquet")
    words = [word for name in kept for word in ("--keep", name)]
    run("predict", model, tmp_path / "n.parquet", "--out", tmp_path / "p.parquet", *words, *NUMPY)
    found = parquet.read_table(tmp_path / "p.parquet")
    assert [found.column(name).type for name in kept] == [column.type for column in kept.values()]
    assert all(found.column(name).equals(pa.chunked_array([column])) for name, column in kept.items())
    run("predict", model, tmp_path / "n.parquet", "--out", tmp_path / "p.csv", *words, *NUMPY)
    first, second, third = read(tmp_path / "p.csv")[1:]
    assert first[:2] == ["18446744073709551615", "2020-12-01 00:00:00.123456789"]
    assert (first[3], second[3], third[5]) == ("0.1", "", "")


def test_columns_that_cannot_be_kept(model: Path, data: Path, tmp_path: Path) -> None:
    assert "has no column 'ID' (--keep)" in refused("predict", model, data, "--out", tmp_path / "p.csv", "--keep", "ID", *NUMPY)
    names, rows = flowers(3)
    same = write(tmp_path / "same.csv", ["prediction", *names], [[1, *row] for row in rows])
    words = ("predict", model, same, "--out", tmp_path / "p.csv", "--keep", "prediction", *NUMPY)
    assert "--keep 'prediction' is also the name of a column of predictions" in refused(*words)
    assert not (tmp_path / "p.csv").exists()
    assert "--keep needs a table" in run("predict", model, data, "--out", tmp_path / "p.npy", "--keep", "0", status=2).stderr


def test_columns_in_any_order(model: Path, data: Path, tmp_path: Path) -> None:
    names, rows = flowers(30, seed=1)
    order = [2, 0, 1]
    other = write(
        tmp_path / "o.csv", ["more", *(names[i] for i in order)], [["text", *(row[i] for i in order)] for row in rows]
    )
    run("predict", model, data, "--out", tmp_path / "a.csv", *NUMPY)
    result = run("predict", model, other, "--out", tmp_path / "b.csv", *NUMPY)
    assert read(tmp_path / "a.csv") == read(tmp_path / "b.csv")
    assert "o.csv has columns that the model does not know; they are ignored: 'more'" in result.stderr
    bare = write(tmp_path / "bare.csv", None, [row[:3] for row in rows])
    result = run("predict", model, bare, "--out", tmp_path / "c.csv", "--no-header", *NUMPY)
    assert read(tmp_path / "c.csv") == read(tmp_path / "a.csv")
    assert "has no column names; the columns of" in result.stderr
    less = write(tmp_path / "less.csv", names[1:], [row[1:] for row in rows])
    assert "lacks the column 'width'" in refused("predict", model, less, "--out", tmp_path / "d.csv", *NUMPY)
    assert not (tmp_path / "d.csv").exists()


def test_a_missing_text_is_remembered(tmp_path: Path) -> None:
    names, rows = flowers()
    rows = [[("?" if i % 7 == 0 else row[0]), *row[1:]] for i, row in enumerate(rows)]
    data, model = write(tmp_path / "t.csv", names, rows), tmp_path / "m"
    assert "--missing TEXT" in refused("fit", data, "--target", "kind", "--out", model, *QUICK)
    run("fit", data, "--target", "kind", "--out", model, "--missing", "?", *QUICK)
    assert told("evaluate", model, data, *NUMPY)["rows"] == 60


@pytest.mark.slow
@pytest.mark.parametrize(
    "labels", [[1, 2, 3], ["1.5", "2.0", "3.5"], [True, False, True], ["x", "007", "NA"], ["ü", "a\nb", 'q"']]
)
def test_labels_come_back_as_they_were_written(tmp_path: Path, labels: list[Any]) -> None:
    names, rows = flowers()
    kinds = sorted({row[-1] for row in rows})
    data = write(tmp_path / "t.csv", names, [[*row[:-1], labels[kinds.index(row[-1])]] for row in rows])
    run("fit", data, "--target", "kind", "--out", tmp_path / "m", *NUMPY, "--set", "n_estimators=30")
    run("predict", tmp_path / "m", data, "--out", tmp_path / "p.csv", *NUMPY)
    assert [row[0] for row in read(tmp_path / "p.csv")[1:]] == [row[-1] for row in read(data)[1:]]
    assert told("evaluate", tmp_path / "m", data, *NUMPY)["error"] == 0


def test_labels_of_parquet_keep_their_type(tmp_path: Path) -> None:
    _, rows = flowers()
    day = pa.array([19000 + len(row[-1]) for row in rows], pa.date32())
    table = pa.table([[row[0] for row in rows], [row[1] for row in rows], day], names=["a", "b", "day"])
    parquet.write_table(table, tmp_path / "t.parquet")
    run("fit", tmp_path / "t.parquet", "--target", "day", "--out", tmp_path / "m", *NUMPY, "--set", "n_estimators=40")
    run("predict", tmp_path / "m", tmp_path / "t.parquet", "--out", tmp_path / "p.parquet", *NUMPY)
    assert parquet.read_table(tmp_path / "p.parquet")["prediction"].cast(pa.date32()).to_pylist() == table["day"].to_pylist()


@pytest.mark.parametrize(
    ("out", "message"), [("p.txt", "must end in one of .csv"), ("no/p.csv", "there is no folder"), (".", "must end in one of")]
)
def test_refused_outputs(model: Path, data: Path, out: str, message: str) -> None:
    assert message in refused("predict", model, data, "--out", out, *NUMPY)


def test_models_that_are_none(data: Path, tmp_path: Path) -> None:
    assert "new.csv" in refused("predict", data, data, "--out", tmp_path / "p.csv", *NUMPY)
    assert "gone: No such file or directory" in refused("inspect", tmp_path / "gone")
    assert "gone.csv: No such file" in refused("fit", tmp_path / "gone.csv", "--target", "y", "--out", tmp_path / "m", *NUMPY)


def test_models_of_python_have_no_record(data: Path, tmp_path: Path) -> None:
    _, rows = flowers()
    y = [row[-1] for row in rows]
    gpuboost.fit([row[:-1] for row in rows], y, n_estimators=4, device="numpy").save(tmp_path / "m")
    _, rows = flowers(30, seed=1)
    np.savez(tmp_path / "t.npz", X=[row[:-1] for row in rows], y=[row[-1] for row in rows])
    facts = told("evaluate", tmp_path / "m", data, "--target", "kind", *NUMPY)
    assert told("evaluate", tmp_path / "m", tmp_path / "t.npz", *NUMPY)["confusion"] == facts["confusion"]
    assert "has 4 columns, but the model was trained on 3" in refused(
        "predict", tmp_path / "m", data, "--out", tmp_path / "p.csv"
    )


# ---- evaluate ----------------------------------------------------------------------------------------------------------------


def test_evaluation(model: Path, data: Path) -> None:
    _, labels, proba = expected(model)
    true = [row[-1] for row in flowers(30, seed=1)[1]]
    classes = ["daisy", "rose, red", "tulip"]
    facts = told("evaluate", model, data, *NUMPY)
    assert facts["rows"] == 30
    assert facts["error"] == pytest.approx(sum(a != b for a, b in zip(true, labels, strict=True)) / 30)
    logs = [math.log(p[classes.index(label)]) for p, label in zip(proba.tolist(), true, strict=True)]
    assert facts["log_loss"] == pytest.approx(-sum(logs) / 30)
    pairs = list(zip(true, labels, strict=True))
    assert facts["confusion"] == [[pairs.count((a, b)) for b in classes] for a in classes]
    tulips = facts["classes"][2]
    assert tulips == {
        "class": "tulip",
        "rows": true.count("tulip"),
        "predicted": labels.count("tulip"),
        "recall": pytest.approx(pairs.count(("tulip", "tulip")) / true.count("tulip")),
        "precision": pytest.approx(pairs.count(("tulip", "tulip")) / labels.count("tulip")),
    }
    text = run("evaluate", model, data, *NUMPY).stdout
    assert text.startswith(f"30 rows: error {100 * facts['error']:.2f} %, log-loss {facts['log_loss']:.4f}\n")
    assert "true \\ predicted  daisy  rose, red  tulip" in text


def test_evaluation_with_weights_and_unknown_labels(model: Path, tmp_path: Path) -> None:
    names, rows = flowers(30, seed=1)
    rows = [[*row, i % 2] for i, row in enumerate(rows)]
    rows[1][3] = "oak"
    odd = write(tmp_path / "odd.csv", names, [row[:4] for row in rows if row[4]])
    both = write(tmp_path / "both.csv", [*names, "w"], rows)
    one, two = told("evaluate", model, odd, *NUMPY), told("evaluate", model, both, "--weight", "w", *NUMPY)
    for name in ("error", "log_loss", "confusion", "unknown_labels"):
        assert one[name] == two[name]
    assert one["unknown_labels"] == ["oak"]
    assert one["error"] >= 1 / 15
    for more in ((), ("--quiet",)):
        result = run("evaluate", model, odd, *NUMPY, *more)
        assert "Warning: 1 rows have labels that the model does not know; they count as errors: oak" in result.stderr


COSTS = {"daisy": {"rose, red": 1, "tulip": 1}, "rose, red": {"daisy": 50, "tulip": 50}, "tulip": {"daisy": 1, "rose, red": 1}}


def cost_file(folder: Path, kind: str) -> Path:
    path, classes = folder / f"costs.{kind}", list(COSTS)
    matrix = [[COSTS[a].get(b, 0) for b in classes] for a in classes]
    if kind == "npy":
        np.save(path, matrix)
    elif kind == "json":
        path.write_text(json.dumps(COSTS))
    else:
        order = [2, 0, 1]
        write(path, ["", *(classes[i] for i in order)], [[classes[i], *(matrix[i][j] for j in order)] for i in order])
    return path


@pytest.mark.parametrize("kind", ["csv", "json", "npy"])
def test_costs(model: Path, data: Path, tmp_path: Path, kind: str) -> None:
    estimator, labels, proba = expected(model)
    true = [row[-1] for row in flowers(30, seed=1)[1]]
    careful = gpuboost.min_cost_labels(proba, COSTS, estimator.classes_).tolist()
    costs = cost_file(tmp_path, kind)
    run("predict", model, data, "--out", tmp_path / "p.csv", "--cost-matrix", costs, *NUMPY)
    assert [row[0] for row in read(tmp_path / "p.csv")[1:]] == careful
    facts = told("evaluate", model, data, "--cost-matrix", costs, *NUMPY)
    assert facts["mean_cost"] == pytest.approx(gpuboost.mean_cost(true, labels, COSTS))
    assert facts["least_expected_cost"] == pytest.approx(gpuboost.mean_cost(true, careful, COSTS))
    assert "mean cost" in run("evaluate", model, data, "--cost-matrix", costs, *NUMPY).stdout


def test_training_by_costs(tmp_path: Path, data: Path) -> None:
    costs = cost_file(tmp_path, "csv")
    facts = told(
        "fit", data, "--target", "kind", "--algorithm", "rebel", "--cost-matrix", costs, "--out", tmp_path / "m", *QUICK
    )
    assert facts["train_cost"] >= 0
    found = told("evaluate", tmp_path / "m", data, *NUMPY)
    assert found["mean_cost"] == pytest.approx(facts["train_cost"])
    assert "log_loss" not in found
    message = refused("predict", tmp_path / "m", data, "--proba", "--out", tmp_path / "p.csv", *NUMPY)
    assert "was trained by costs: it has no probabilities" in message


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"daisy": {"tulip": -1}}', r"no row for the true class"),
        ("[[0, 1], [1, 0]]", r"the shape \(3, 3\), got the shape \(2, 2\)"),
        ("{", r"is no JSON"),
        ("3", r"must hold an object"),
    ],
)
def test_wrong_costs(model: Path, data: Path, tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "c.json").write_text(content)
    assert re.search(message, refused("evaluate", model, data, "--cost-matrix", tmp_path / "c.json", *NUMPY))


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        ([2, 1, 7], [1, 2], [1, 0, -1]),
        (["2", "1", "x"], [1, 2], [1, 0, -1]),
        ([2.0, 1.5], [1, 2], [1, -1]),
        ([2, 1], ["1", "2"], [1, 0]),
        (["true", "False"], [False, True], [1, 0]),
        ([True, False], ["False", "True", "no"], [1, 0]),
        ([True, False], ["false", "no", "true"], [2, 0]),
        ([True, False], ["FALSE", "True", "true"], [1, 0]),
        ([True, False], ["False", "TRUE", "true"], [-1, 0]),  # one of two, but which?
        (["True", "FALSE"], ["false", "true"], [-1, -1]),  # both are text
        (["a"], ["A"], [-1]),
    ],
)
def test_labels_are_compared_by_value_or_by_text(labels: list[Any], classes: list[Any], numbers: list[int]) -> None:
    assert class_numbers(np.array(labels), classes).tolist() == numbers


# ---- the others --------------------------------------------------------------------------------------------------------------


def test_inspection(model: Path) -> None:
    facts = told("inspect", model)
    loaded: Any = gpuboost.load(model)
    assert facts["digest"] == loaded.ensemble_.digest()
    assert facts["sha256"] == hashlib.sha256(model.read_bytes()).hexdigest()  # as sha256sum says
    assert facts["classes"] == loaded.classes_.tolist()
    assert (facts["estimator"], facts["n_rounds"], facts["target"]) == ("AdaBoostMHClassifier", 4, "kind")
    text = run("inspect", model).stdout
    for line in (f"sha256:        {facts['sha256']}", "features:      3: 'width', 'length', 'noise'", "target:        kind"):
        assert line in text.splitlines()


def test_fit_tells_the_sha256_of_the_file(data: Path, tmp_path: Path) -> None:
    fit = ("fit", data, "--target", "kind", "--out", tmp_path / "m", *QUICK)
    sha256 = told(*fit)["sha256"]
    assert sha256 == hashlib.sha256((tmp_path / "m").read_bytes()).hexdigest()
    assert f"m: sha256 {sha256}\n" in run(*fit).stdout


def test_algorithms_are_all_there() -> None:
    facts = told("algorithms")
    assert {name: fact["estimator"] for name, fact in facts.items()} == {
        name: algorithm.estimator for name, algorithm in gpuboost.ALGORITHMS.items()
    }
    assert all(one["paper"] and one["use"] for one in facts.values())
    assert run("algorithms").stdout.count("\n") == len(gpuboost.ALGORITHMS) + 1


@pytest.mark.slow
def test_bench(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ("--rounds", "2", "--device", "numpy", "--device", "numpy", "--jobs", "1", "--algorithm", "samme")
    generated = ("--rows", "80", "--features", "4", "--classes", "3")
    facts = told("bench", *generated, *few)
    assert facts["agree"] is True
    assert [(one["algorithm"], one["device"]) for one in facts["runs"]] == [("samme", "numpy")] * 2
    assert len({one["digest"] for one in facts["runs"]}) == 1
    digests = iter("ab")
    one_run = bench_module.one_run
    monkeypatch.setattr(bench_module, "one_run", lambda *arguments: one_run(*arguments) | {"digest": next(digests)})
    assert "the devices disagree on samme" in refused("bench", *generated, *few)
    monkeypatch.undo()
    text = run("bench", data, "--target", "kind", "--rounds", "2", "--device", "numpy", "--algorithm", "mart").stdout
    assert text.splitlines()[0].split() == ["algorithm", "device", "test", "error", "rounds/s", "digest", "same", "model"]


def in_a_process(*arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT, check=False, **how)


def test_help_loads_little() -> None:
    """``--help`` answers at once: it loads no estimator, no reader and no NumPy loop."""
    code = (
        "import sys\nfrom gpuboost.cli import main\ntry:\n    main(['fit', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted(sys.modules.keys() & {'pyarrow', 'sklearn', 'numba', 'tqdm', 'pandas', 'gpuboost.estimators'}))"
    )
    result = in_a_process("-c", code)
    assert result.stdout.splitlines()[-1] == "[]"
    assert "--checkpoint N" in result.stdout


def test_a_command_ends_without_a_last_collection() -> None:
    """To look for garbage among all that numba and scikit-learn have loaded takes longer than many commands."""
    code = (
        "import gc\nfrom gpuboost.cli import main\nclass Loop:\n    def __init__(self):\n        self.me = self\n"
        "    def __del__(self):\n        print('collected')\ngc.disable()\nLoop()\nmain(['--version'])"
    )
    result = in_a_process("-c", code)
    assert result.stdout.splitlines() == [f"gpuboost, version {gpuboost.__version__}"]


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "inspect", "algorithms", "bench", "demo", "doctor"])
def test_every_command_has_help(command: str) -> None:
    assert "--debug" in run(command, "--help").stdout


def test_wrong_words() -> None:
    assert "No such command" in run("trian", status=2).stderr
    assert "Missing argument" in run("fit", status=2).stderr
    assert f"version {gpuboost.__version__}" in run("--version").stdout


@pytest.mark.slow
def test_a_reader_that_goes_is_no_error(model: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "new.csv", *flowers(20_000))
    command = f"{sys.executable} -m gpuboost predict {model} {data} --out - --device numpy | head -n 1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=ROOT, check=True)
    assert (result.stdout, result.stderr) == ("prediction\n", "")

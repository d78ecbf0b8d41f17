"""``benchmarks/gpu_check.sh``: a dry run of everything on the emulated device; steps that fail or are killed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import conformance, counts, data, kernel_table, machine, training
from benchmarks.gpu.step import Skip, Step, write_whole
from benchmarks.gpu.watched import Growth, Seen
from gpuboost.backends.cuda import kernels, plan
from gpuboost.backends.frontier import LEFT, START, STOP
from gpuboost.tree import Tree
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.requirement import require

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "gpu_check.sh"
STEPS = ["facts", "conformance", "training", "micro", "kernels", "sanitizer"]
BASH = shutil.which("bash") and shutil.which("timeout")

needs_bash = pytest.mark.skipif(not BASH, reason="the script needs bash and timeout")


def script(folder: Path, *arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": python}
    command = [str(SCRIPT), str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)


def parsed(folder: Path) -> dict[str, Any]:
    """Every JSON file, which must be whole, by name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}


def statuses(folder: Path) -> dict[str, str]:
    steps = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["steps"]
    return {name: step["status"] for name, step in steps.items()}


def emulated() -> None:
    require(emulator.unavailable())
    if emulator.sanitizer():
        pytest.skip("a dry run does not look for what sanitizers find")


@pytest.fixture
def step(tmp_path: Path) -> Step:
    return Step("step", tmp_path, 100.0, None, dry_run=True)


# ---- a dry run ---------------------------------------------------------------------------------------------------------------


@needs_bash
def test_bash_can_read_it() -> None:
    done = subprocess.run(["bash", "-n", str(SCRIPT)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(scope="module")
def dry_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    if not BASH:
        pytest.skip("the script needs bash and timeout")
    emulated()
    folder = tmp_path_factory.mktemp("dry")
    return folder, script(folder, "--dry-run")


def test_every_step_of_a_dry_run_has_a_status(dry_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, done = dry_run
    assert done.returncode == 0, done.stdout + done.stderr
    assert statuses(folder) == {**dict.fromkeys(STEPS, "ok"), "sanitizer": "skipped"}
    assert done.stdout == (folder / "summary.txt").read_text(encoding="utf-8")
    assert set(parsed(folder)) == {*STEPS, "summary"}
    assert all((folder / f"{name}.log").stat().st_size > 0 for name in STEPS)


def test_what_a_dry_run_finds(dry_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = dry_run
    found = parsed(folder)
    outcomes = found["conformance"]["outcomes"]
    assert outcomes["passed"] == outcomes["collected"] > 10
    for name in ("mnist", "covtype"):
        trained = found["training"][f"{name} both"]
        assert trained["same"]
        assert trained["rounds"] == 8
        assert len(set(trained["digests"].values())) == 1
        assert set(trained["digests"]) == {"emulated", "cpu"}
        assert trained["bytes_lost"] == 0
        assert 0 < found["training"][f"{name} profile"]["device_seconds"] < 60
    micro = found["micro"]
    assert [one["ways"] for one in micro["atomics"]] == [1, 2, 4, 32, 2, 4, 32]
    assert "skipped" in micro["copy"]
    assert "no graphs" in micro["growth"]["graph_skipped"]
    assert micro["growth"]["same_bytes"]
    assert found["sanitizer"]["alone"]["status"] == "ok"
    assert not any(part["problems"] for name, part in found.items() if name != "summary")


def test_a_dry_run_times_all_kernels(dry_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = dry_run
    found = parsed(folder)["kernels"]
    tables = [part for part in found.values() if isinstance(part, dict) and "rows" in part]
    assert len(tables) == 4
    for table in tables:
        rows = table["rows"]
        others = {"sweep_gini", "sweep_newton", "sweep_rebel", "sweep_entropy", "project"}  # the table is of Hamming trees
        others |= {name for name, kernel in kernels.KERNELS.items() if kernel.file == "softmax"}
        others |= {"confusion"}  # nothing has costs; errors reads the same bytes
        assert {row["kernel"] for row in rows} == {*kernels.KERNELS, "(zero)", "(put)"} - others
        assert {row["node"] for row in rows if row["kernel"] == "histogram"} >= {"root"}
        assert table["variants"]
        assert table["growth"]["busy"] <= table["growth"]["span"]
        assert sum(table["growth"]["shares"].values()) == pytest.approx(1)


# ---- steps that do not end well ----------------------------------------------------------------------------------------------


@needs_bash
def test_a_file_that_cannot_be_read_fails_its_step_alone(tmp_path: Path) -> None:
    emulated()
    (tmp_path / "mnist.npz").write_bytes(b"no archive")
    done = script(tmp_path / "out", "--dry-run", "--data-dir", str(tmp_path), "--steps", "training,micro,facts")
    assert done.returncode == 1
    assert statuses(tmp_path / "out") == {"training": "failed", "micro": "failed", "facts": "ok"}
    found = parsed(tmp_path / "out")
    assert len(found["training"]["problems"]) == 1
    assert [problem.partition(":")[0] for problem in found["micro"]["problems"]] == ["growth"]
    assert len(found["micro"]["atomics"]) == 7  # what came before is there
    assert "PROBLEM" in done.stdout


@pytest.fixture
def stub(tmp_path: Path) -> Any:
    """Make a Python that behaves as told in the step micro, finds nothing in facts, and is Python otherwise."""

    def make(behaviour: str) -> str:
        path = tmp_path / "python"
        cases = [f"*gpu.micro*) {behaviour} ;;", "*gpu.facts*) exit 0 ;;", f'*) exec "{sys.executable}" "$@" ;;']
        path.write_text("\n".join(["#!/bin/sh", 'case "$*" in', *cases, "esac", ""]))
        path.chmod(0o755)
        return str(path)

    return make


@needs_bash
@pytest.mark.parametrize(
    ("behaviour", "status", "code"),
    [
        ("echo last words; exit 1", "failed", 1),
        ("echo last words; kill -SEGV $$", "failed", 1),
        ("exit 77", "skipped", 0),
        ("exec sleep 60", "out of time", 0),
    ],
)
def test_other_steps_follow(tmp_path: Path, stub: Any, behaviour: str, status: str, code: int) -> None:
    # micro has 35 of 80 parts of 7 - 3 s: one second.
    done = script(tmp_path / "out", "--steps", "micro,facts", "--seconds", "7", python=stub(behaviour))
    assert statuses(tmp_path / "out") == {"micro": status, "facts": "ok"}
    assert done.returncode == code
    assert ("last words" in done.stdout) == (status == "failed")


@needs_bash
def test_no_time_at_all(tmp_path: Path) -> None:
    done = script(tmp_path, "--seconds", "0")
    assert statuses(tmp_path) == dict.fromkeys(STEPS, "out of time")
    assert done.returncode == 0


@needs_bash
@pytest.mark.parametrize(
    "arguments", [[], ["out", "--steps", "micro,nothing"], ["out", "--seconds", "soon"], ["out", "--fast"]]
)
def test_wrong_arguments(tmp_path: Path, arguments: list[str]) -> None:
    done = subprocess.run([str(SCRIPT), *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert "gpu_check.sh" in done.stderr
    assert not list(tmp_path.iterdir())


# ---- killed ------------------------------------------------------------------------------------------------------------------


def session(leader: int) -> list[int]:
    """The processes of a session, which the leader has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[3]) == leader:
            found.append(int(path.parent.name))
    return found


def kill_session(process: subprocess.Popen[Any]) -> None:
    for pid in session(process.pid):
        os.kill(pid, signal.SIGKILL)
    process.wait(timeout=60)


@needs_bash
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("how", ["terminated", "killed"])
def test_what_was_found_survives(tmp_path: Path, how: str) -> None:
    emulated()
    command = [str(SCRIPT), str(tmp_path), "--dry-run", "--steps", "micro,training,facts"]
    environment = {**os.environ, "PYTHON": sys.executable}
    process = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while "warm-up" not in parsed(tmp_path).get("training", {}):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.01)
        if how == "terminated":
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 143
            assert session(process.pid) == []
    finally:
        kill_session(process)
    assert set(parsed(tmp_path)) == {"micro", "training", "summary"}
    of_training = "out of time" if how == "terminated" else "not reached"
    assert statuses(tmp_path) == {"micro": "ok", "training": of_training, "facts": "not reached"}


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "found.json"
    write_whole(path, "first")
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))
    with pytest.raises(OSError, match="killed"):
        write_whole(path, "second")
    assert path.read_text() == "first"


# ---- a step ------------------------------------------------------------------------------------------------------------------


def broken(error: Exception) -> None:
    raise error


def test_a_step_goes_on_after_a_measurement_that_fails(step: Step) -> None:
    assert step.attempt("one", broken, Skip("no card")) is None
    assert step.attempt("two", broken, ValueError("what")) is None
    assert step.attempt("three", lambda n: {"n": np.int64(n)}, 3) == {"n": 3}
    found = json.loads((step.folder / "step.json").read_text())
    assert found == {"lines": [], "problems": ["two: ValueError: what"], "one": {"skipped": "no card"}, "three": {"n": 3}}


def test_a_step_begins_nothing_when_its_time_is_up(tmp_path: Path) -> None:
    late = Step("late", tmp_path, 0.0, None, dry_run=False)
    assert late.attempt("one", broken, AssertionError()) is None
    assert late.found["one"] == {"skipped": "no time left"}
    assert late.found["problems"] == []


def test_shares_of_the_time(step: Step) -> None:
    assert 99 < step.left() <= 100
    assert step.left(0.25) == 25
    step.deadline -= 90
    assert 9 < step.left(0.25) <= 10


def test_another_step_may_have_found_nothing(step: Step) -> None:
    assert step.earlier("missing") == {}
    assert kernel_table.ceilings_of(step) == {}
    atomics = [{"ways": 2, "adds_per_second": 1.0}, {"ways": 1, "adds_per_second": 7.0}]
    (step.folder / "micro.json").write_text(json.dumps({"atomics": atomics, "copy": {"skipped": "no"}}))
    assert kernel_table.ceilings_of(step) == {"adds": 7.0}


# ---- training ----------------------------------------------------------------------------------------------------------------


def model(*values: float) -> Any:
    """A model of trees without a cut, one for each value."""
    trees = [
        Tree(
            *(np.zeros(0, dtype) for dtype in (np.int32, np.uint8, np.bool_, np.int32, np.int32)),
            values=np.array([[value, 0.0]]),
            gain=np.zeros(0),
        )
        for value in values
    ]
    history = {key: [1.0] * len(values) for key in training.EXACT}
    ensemble = SimpleNamespace(trees=lambda: trees, n_classes=2)
    return SimpleNamespace(ensemble_=ensemble, n_estimators_=len(values), history_=history)


def test_models_are_compared_over_the_rounds_that_both_have(step: Step) -> None:
    one = SimpleNamespace(name="set")
    same = training.compare(step, one, {"card": model(1.0, 2.0, 3.0), "cpu": model(1.0, 2.0)})
    assert (same["rounds"], same["same"], step.found["problems"]) == (2, True, [])
    other = training.compare(step, one, {"card": model(1.0, 2.0, 3.0), "cpu": model(1.0, np.nextafter(2.0, 3.0), 3.0)})
    assert not other["same"]
    assert step.found["problems"] == ["set: card and cpu train different models, first in tree 1"]


def test_a_history_that_differs_is_a_difference(step: Step) -> None:
    first, second = model(1.0, 2.0), model(1.0, 2.0)
    second.history_["edge"] = [1.0, 0.5]
    assert not training.compare(step, SimpleNamespace(name="set"), {"card": first, "cpu": second})["same"]


# ---- kernels -----------------------------------------------------------------------------------------------------------------


def seen(name: str, **arguments: int) -> Seen:
    return Seen(name, arguments, SimpleNamespace(seconds=1.0))  # type: ignore[arg-type]


def test_which_node_a_launch_is_for() -> None:
    # Step 0 cuts the 100 rows of the root into 70 and 30, step 1 finds nothing to cut.
    nodes = np.zeros((5, 10), np.int64)
    nodes[0, [START, STOP, LEFT]] = [0, 100, 1]
    nodes[1, [START, STOP]], nodes[2, [START, STOP]] = [0, 70], [70, 100]
    queued = [
        (seen("init_roots"), None),
        (seen("histogram", member=0), 100),
        (seen("sweep_edge", first_member=0), 100),
        (seen("pop_best_leaf"), None),
        (seen("partition_rows"), 100),
        (seen("histogram", member=1), 30),
        (seen("histogram", member=3), 70),
        (seen("histogram", member=4), 30),
        (seen("sweep_edge", first_member=3), 30),
        (seen("pop_best_leaf"), None),
        (seen("partition_rows"), 0),
        (seen("node_of_rows"), None),
    ]
    launches = [seen("before"), *(one for one, _ in queued), seen("behind")]
    found = list(kernel_table.growth_rows(Growth(1, 1 + len(queued), nodes), launches, 100))
    assert [rows for _, rows in found] == [rows for _, rows in queued]
    facts = kernel_table.Facts(100, 5, 1.0)
    assert [facts.node(n) for n in (None, 100, 99, 25, 6, 5, 0)] == ["", "root", "other", "mid", "mid", "other", "other"]


def test_bytes_and_additions_by_hand() -> None:
    # 10 rows of 3 words and 2 channels: 12 bytes of codes, 4 of the row's number, 8 of statistics; 7 bins of 2 channels.
    a = {"n_words": 3, "n_channels": 2, "bins_in_tile": 7, "member": 1, "first_member": 3, "kept": 1}
    work = counts.Work(a, rows=10, features=9, kept=0.5)
    assert counts.bytes_of("histogram", work) == 10 * (12 + 4 + 8) + 7 * 2 * 4
    assert counts.adds_of("histogram", work) == 0.5 * 10 * 9 * 2
    assert counts.bytes_of("sweep_edge", work) == 3 * 56  # the smaller child's read, the larger one's read and written
    assert counts.adds_of("sweep_edge", work) == 0
    # Headers: reweight reads and writes a float64 and reads a sign for each pair, MNIST's 60000 x 10 in 10.4 MB.
    pairs = counts.Work({"n_rows": 60_000, "n_classes": 10, "n_channels": 10}, 60_000, 717, 0.2)
    assert counts.bytes_of("reweight", pairs) == pytest.approx(10.4e6, rel=0.01)
    assert counts.bytes_of("quantise", pairs) == pytest.approx(5.6e6 + 2.4e6, rel=0.01)
    assert counts.bytes_of("leaf_sums", pairs) == pytest.approx(2.6e6, rel=0.02)


def test_all_kernels_are_counted() -> None:
    assert set(counts.BYTES) == {*kernels.KERNELS, "(zero)", "(put)"}
    assert set(counts.ADDS) <= set(kernels.KERNELS)


def test_the_source_has_what_the_variants_change() -> None:
    assert kernels.source("histogram").count(f"MIN_ROWS = {plan.MIN_ROWS}") == 1


@pytest.mark.parametrize("architecture", [75, 90])
def test_the_micro_benchmarks_compile(architecture: int) -> None:
    from tests.test_kernels_compile import resources

    registered, text = machine.micro_kernels()
    found = resources(text, "micro", architecture)
    assert {kernel.name for kernel in found} == set(registered)
    assert all(kernel.spilled == kernel.stack == 0 for kernel in found)
    unrolled = re.search(r"UNROLLED = (\d+)", text)
    assert unrolled is not None
    assert int(unrolled[1]) == 8


def test_cupy_has_what_a_card_is_measured_with() -> None:
    cupy = pytest.importorskip("cupy")
    for name in ("Event", "Stream", "get_elapsed_time", "get_current_stream", "MemoryPool"):
        assert hasattr(cupy.cuda, name)
    assert hasattr(cupy.cuda.runtime, "memGetInfo")
    assert hasattr(cupy.cuda.MemoryPool, "total_bytes")
    assert hasattr(cupy.cuda.MemoryPointer, "copy_from_device_async")
    assert {"begin_capture", "end_capture", "synchronize"} <= set(dir(cupy.cuda.Stream))
    assert hasattr(cupy.cuda.graph.Graph, "launch")


# ---- data and order ----------------------------------------------------------------------------------------------------------


def test_made_data_have_the_shapes_of_the_real() -> None:
    X, y = data.made_mnist(3000)
    assert (X.shape, X.dtype, sorted(set(y.tolist()))) == ((3000, 784), np.uint8, list(range(10)))
    assert 0.7 < (X == 0).mean() < 0.9
    assert (X == 0).all(axis=0).sum() >= 64
    X, y = data.made_covtype(3000)
    assert (X.shape, X.dtype, sorted(set(y.tolist()))) == ((3000, 54), np.int16, list(range(7)))
    assert (X[:, 10:14].sum(axis=1) == 1).all()
    assert (X[:, 14:].sum(axis=1) == 1).all()


@pytest.mark.parametrize("n_classes", [2, 26, 100])
def test_any_number_of_classes(n_classes: int) -> None:
    X, _ = data.made_covtype(1000)
    sizes = np.bincount(data.with_classes(X, n_classes))
    assert len(sizes) == n_classes
    assert sizes.max() - sizes.min() <= 1


def test_files_are_read(tmp_path: Path) -> None:
    X, y = np.arange(80, dtype=np.int16).reshape(20, 4), np.arange(20, dtype=np.uint8) % 3
    np.savez(tmp_path / "mnist.npz", X_train=X[:15], y_train=y[:15], X_test=X[15:], y_test=y[15:])
    mask = np.arange(20) % 4 == 1
    np.savez(tmp_path / "covtype.npz", X=X, y=y, abc_train_mask=np.packbits(mask))
    step = Step("step", tmp_path, 10.0, tmp_path, dry_run=False)
    mnist, covtype = (data.load(step, name) for name in ("mnist", "covtype"))
    assert (mnist.origin, mnist.X.tolist(), mnist.y_test.tolist()) == ("file", X[:15].tolist(), y[15:].tolist())
    assert (covtype.X.tolist(), covtype.y_test.tolist()) == (X[mask].tolist(), y[~mask].tolist())
    assert data.whole(mnist)[0].shape == (15, 4)
    assert data.whole(covtype)[0].shape == (20, 4)


def test_tests_of_all_kinds_come_first(step: Step) -> None:
    items: list[Any] = list(range(17))
    conformance.InTime(step).pytest_collection_modifyitems(items)
    assert items == [0, 7, 14, 1, 8, 15, 2, 9, 16, 3, 10, 4, 11, 5, 12, 6, 13]


def test_the_suite_stops_in_time(step: Step) -> None:
    item = SimpleNamespace(session=SimpleNamespace(shouldstop=False))
    watcher = conformance.InTime(step)
    for left, expected in ((50.0, False), (3.0, "the time is up")):
        step.deadline = time.perf_counter() + left
        protocol = watcher.pytest_runtest_protocol(item)  # type: ignore[arg-type]
        assert list(protocol) == [None]
        assert item.session.shouldstop == expected

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
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.gpu import (
    adoption,
    conformance,
    counts,
    data,
    kernel_table,
    machine,
    model_beside,
    preflight,
    rounds_of_shapes,
    training,
)
from benchmarks.gpu import step as step_module
from benchmarks.gpu.step import HOPELESS, LOST, CardLost, Skip, Step, is_lost, write_whole
from benchmarks.gpu.watched import Growth, Seen
from gpuboost.backends.cuda import kernels, plan
from gpuboost.backends.frontier import LEFT, START, STOP
from gpuboost.tree import Tree
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.requirement import require

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "benchmarks" / "gpu_check.sh"
STEPS = ["facts", "conformance", "training", "adoption", "graphs", "queued", "micro", "kernels", "sanitizer", "model"]
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
    assert statuses(folder) == {**dict.fromkeys(["preflight", *STEPS], "ok"), "adoption": "skipped", "sanitizer": "skipped"}
    assert done.stdout == (folder / "summary.txt").read_text(encoding="utf-8")
    assert set(parsed(folder)) == {"preflight", *STEPS, "summary"}
    assert all((folder / f"{name}.log").stat().st_size > 0 for name in STEPS)


def test_what_a_dry_run_finds(dry_run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = dry_run
    found = parsed(folder)
    outcomes = found["conformance"]["outcomes"]
    assert outcomes["passed"] == outcomes["collected"] > 10
    for name in ("mnist", "covtype"):
        trained = found["training"][f"{name} cpu"]
        assert trained["same"]
        assert trained["rounds"] == 8
        assert len(set(trained["digests"].values())) == 1
        assert set(trained["digests"]) == {"emulated", "cpu"}
        assert found["training"][f"{name} card"]["bytes_lost"] == 0
        assert found["training"][f"{name} prediction"]["trees"] == 8
        assert found["training"][f"{name} prediction"]["rows_per_second"] > 0
        assert 0 < found["training"][f"{name} profile"]["device_seconds"] < 60
    micro = found["micro"]
    assert [one["ways"] for one in micro["atomics"]] == [1, 2, 4, 32, 2, 4, 32]
    assert "skipped" in micro["copy"]
    assert micro["growth"]["is_captured"]
    assert {"direct", "recorded", "graph"} <= micro["growth"].keys()
    assert micro["growth"]["same_bytes"]
    assert found["adoption"]["skipped"] == "the emulated device has no streams"
    for shape in rounds_of_shapes.SHAPES[3:5]:
        graphs, queued = (found[name][shape.title] for name in ("graphs", "queued"))
        assert graphs["digest"] == queued["digest"]
        assert graphs["rounds"] == rounds_of_shapes.COMPARED
        assert 0 < graphs["round_seconds"] < 60
        assert queued["launches"] - graphs["launches"] > shape.tiny  # a growth is one launch
        assert graphs["waits"] == queued["waits"] >= 2
        assert graphs["peak_bytes"] > 0
        assert found["model"]["measured"][shape.title].keys() == {"graphs", "queued"}
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
        others |= {"weigh_labels", "rectangle_sums"}  # nothing is drawn, and no columns are computed
        others |= {
            name for name, kernel in kernels.KERNELS.items() if kernel.file in ("points", "siblings")
        }  # one worker has trees
        others |= {name for name in kernels.KERNELS if name.endswith("_wide")}  # no set has so many rows
        others |= {"confusion"}  # nothing has costs; errors reads the same bytes
        assert {row["kernel"] for row in rows} == {*kernels.KERNELS, "(put)"} - others  # kernels leave zeros behind themselves
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
    assert statuses(tmp_path / "out") == {"preflight": "ok", "training": "failed", "micro": "failed", "facts": "ok"}
    found = parsed(tmp_path / "out")
    lines = "\n".join(found["preflight"]["lines"])
    assert "mnist.npz cannot be had: " in lines
    assert f"missing: {tmp_path / 'covtype.npz'}: data of that shape are made" in lines
    assert len(found["training"]["problems"]) == 1
    assert [problem.partition(":")[0] for problem in found["micro"]["problems"]] == ["growth"]
    assert len(found["micro"]["atomics"]) == 7  # what came before is there
    assert "PROBLEM" in done.stdout


@pytest.fixture
def stub(tmp_path: Path) -> Any:
    """Make a Python that behaves as told in the step micro, finds nothing in facts, and is Python otherwise."""

    def make(behaviour: str, preflight: str = "exit 0") -> str:
        path = tmp_path / "python"
        cases = [
            f"*gpu.micro*) {behaviour} ;;",
            f"*gpu.preflight*) {preflight} ;;",
            "*gpu.facts*) exit 0 ;;",
            f'*) exec "{sys.executable}" "$@" ;;',
        ]
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
        ("echo last words; exit 76", "card lost", 1),
        ("exec sleep 60", "out of time", 0),
    ],
)
def test_other_steps_follow(tmp_path: Path, stub: Any, behaviour: str, status: str, code: int) -> None:
    # micro has a half of 5 - 3 s.
    done = script(tmp_path / "out", "--steps", "micro,facts", "--seconds", "5", python=stub(behaviour))
    assert statuses(tmp_path / "out") == {"preflight": "ok", "micro": status, "facts": "ok"}
    assert done.returncode == code
    assert ("last words" in done.stdout) == (code == 1)


@needs_bash
def test_a_step_that_is_killed_in_its_time_has_failed(tmp_path: Path, stub: Any) -> None:
    done = script(tmp_path / "out", "--steps", "micro,facts", "--seconds", "60", python=stub("echo last words; kill -KILL $$"))
    assert statuses(tmp_path / "out") == {"preflight": "ok", "micro": "killed", "facts": "ok"}
    assert done.returncode == 1
    assert "last words" in done.stdout


@needs_bash
@pytest.mark.parametrize(
    ("behaviour", "status", "others", "code"),
    [
        (f"exit {HOPELESS}", "cannot run", "not reached", 3),
        ("kill -SEGV $$", "failed", "ok", 1),
        ("exit 1", "failed", "ok", 1),
    ],
)
def test_only_a_preflight_that_says_so_ends_the_run(
    tmp_path: Path, stub: Any, behaviour: str, status: str, others: str, code: int
) -> None:
    done = script(tmp_path / "out", "--steps", "micro,facts", python=stub("exit 0", behaviour))
    assert statuses(tmp_path / "out") == {"preflight": status, "micro": others, "facts": others}
    assert done.returncode == code
    assert done.stdout.splitlines()[-1] == f"preflight: {status}; micro: {others}; facts: {others}"


@needs_bash
def test_growths_are_graphs_in_one_step_and_queued_in_another(tmp_path: Path) -> None:
    python = tmp_path / "python"
    says = 'echo "graphs=$GPUBOOST_CUDA_GRAPHS"'
    python.write_text(f'#!/bin/sh\ncase "$*" in *benchmarks.gpu.*) {says} ;; *) exec "{sys.executable}" "$@" ;; esac\n')
    python.chmod(0o755)
    script(tmp_path / "out", "--steps", "graphs,queued,micro", python=str(python))
    said = {name: (tmp_path / "out" / f"{name}.log").read_text().strip() for name in ("graphs", "queued", "micro")}
    assert said == {"graphs": "graphs=1", "queued": "graphs=0", "micro": "graphs="}


@needs_bash
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = script(tmp_path / "file" / "out")
    assert done.returncode == 3
    assert "nothing can be measured" in done.stderr


@needs_bash
def test_no_time_at_all(tmp_path: Path, stub: Any) -> None:
    done = script(tmp_path / "out", "--seconds", "0", python=stub("exit 0"))
    assert statuses(tmp_path / "out") == {"preflight": "ok", **dict.fromkeys(STEPS, "out of time")}
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
def test_what_was_found_survives(tmp_path: Path, stub: Any, how: str) -> None:
    emulated()
    found = tmp_path / "out"
    command = [str(SCRIPT), str(found), "--dry-run", "--steps", "micro,training,facts"]
    environment = {**os.environ, "PYTHON": stub(f'exec "{sys.executable}" "$@"')}
    process = subprocess.Popen(command, env=environment, start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 120
        while "warm-up" not in parsed(found).get("training", {}):
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.01)
        if how == "terminated":
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=60) == 143
            assert session(process.pid) == []
    finally:
        kill_session(process)
    assert set(parsed(found)) == {"micro", "training", "summary"}
    of_training = "out of time" if how == "terminated" else "not reached"
    assert statuses(found) == {"preflight": "ok", "micro": "ok", "training": of_training, "facts": "not reached"}


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


class CudaError(RuntimeError):
    """An error as CuPy raises it."""

    def __init__(self, status: int) -> None:
        super().__init__("cudaError")
        self.status = status


def test_a_lost_card_is_known_by_what_cuda_says() -> None:
    out_of_memory, illegal_address = CudaError(2), CudaError(700)
    wrapped = RuntimeError("a fit failed")
    wrapped.__cause__ = illegal_address
    assert [is_lost(error) for error in (None, ValueError(), out_of_memory, illegal_address, wrapped)] == [False] * 3 + [
        True
    ] * 2


def test_nothing_is_tried_with_a_lost_card(step: Step) -> None:
    assert step.attempt("one", broken, CudaError(2)) is None
    with pytest.raises(CardLost, match="two: CudaError"):
        step.attempt("two", broken, CudaError(719))
    assert step.found["problems"] == ["one: CudaError: cudaError"]


def test_a_step_says_that_the_card_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["step", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        step_module.run("one", lambda step: step.attempt("fit", step.attempt, "round", broken, CudaError(700)))
    assert ended.value.code == LOST
    assert parsed(tmp_path)["one"]["problems"] == ["the card is lost: round: CudaError: cudaError"]


def test_the_suite_stops_with_the_card(step: Step) -> None:
    watcher, item = conformance.InTime(step), SimpleNamespace(session=SimpleNamespace(shouldstop=False))
    for status, expected in ((2, False), (700, "the card is lost")):
        call = SimpleNamespace(excinfo=SimpleNamespace(value=CudaError(status)))
        watcher.pytest_runtest_makereport(item, call)  # type: ignore[arg-type]
        assert item.session.shouldstop == expected


# ---- the preflight -----------------------------------------------------------------------------------------------------------


def fake_cupy(monkeypatch: pytest.MonkeyPatch, compiles: bool) -> None:
    def module(**_: Any) -> Any:
        if not compiles:
            raise RuntimeError("no libnvrtc")
        return SimpleNamespace(get_function=str)

    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(RawModule=module))


@pytest.mark.parametrize(
    ("matching", "compiles", "runs", "says"),
    [
        (9, True, True, None),
        (9, False, True, "NVRTC: only fatbins run, without the micro-benchmarks' kernels (no libnvrtc)"),
        (8, True, True, None),
        (8, False, False, "NVRTC: only fatbins run, without the micro-benchmarks' kernels (no libnvrtc)"),
    ],
)
def test_kernels_from_fatbins_or_nvrtc(
    monkeypatch: pytest.MonkeyPatch, matching: int, compiles: bool, runs: bool, says: str | None
) -> None:
    from gpuboost.backends.cuda import fatbin

    fake_cupy(monkeypatch, compiles)
    monkeypatch.setattr(fatbin, "matching", lambda: (matching, 9))
    problem = preflight.compiled_kernels()
    assert (problem is None) == runs
    assert runs or "1 of 9 files have no fatbin" in str(problem)
    assert preflight.compiler() == says


def only(monkeypatch: pytest.MonkeyPatch, step: Step, fatal: tuple[str, ...] = (), **checks: Any) -> list[str]:
    """Run the preflight with some of its checks replaced, the other slow ones finding nothing; return its lines."""
    quiet = ("driver", "usable_card", "compiled_kernels", "compiler", "warm_card", "warm_loops", "kept_loops", "one_step_needs")
    for name in quiet:
        monkeypatch.setattr(preflight, name, checks.get(name, lambda *_: None))
    monkeypatch.setattr(preflight, "imports", lambda name: f"{name}: no module" if name in fatal else None)
    preflight.main(step)
    return step.found["lines"][1:]


@pytest.mark.parametrize("absent", [(), ("cupy",), ("numba", "click"), ("driver",), ("usable_card",), ("compiled_kernels",)])
def test_a_line_for_all_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, absent: tuple[str, ...]) -> None:
    step = Step("preflight", tmp_path, 10.0, None, dry_run=False)
    checks = {"one_step_needs": lambda name: f"{name}: a step less" if name == "torch" else None}
    checks |= {name: lambda name=name: name for name in absent if hasattr(preflight, name)}
    if not absent:
        assert only(monkeypatch, step, **checks) == ["missing: torch: a step less"]
        return
    with pytest.raises(SystemExit) as ended:
        only(monkeypatch, step, absent, **checks)
    assert ended.value.code == HOPELESS
    lines = [f"missing: {name}" if hasattr(preflight, name) else f"missing: {name}: no module" for name in absent]
    assert step.found["problems"] == [*lines, "nothing can be measured here"]
    assert step.found["lines"][1:] == ["missing: torch: a step less"]


def test_what_slows_the_steps_does_not_end_them(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise OSError("no space")

    lines = only(monkeypatch, step, warm_loops=fails, kept_loops=lambda: "a folder")
    assert lines == ["the CPU's loops cannot be had: OSError: no space", "missing: a folder"]
    assert step.found["problems"] == []


def test_data_files_are_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "covtype.npz", X=np.zeros(3))
    assert preflight.data_file(tmp_path, "covtype.npz", ("X",)) is None
    assert preflight.data_file(tmp_path, "covtype.npz", ("X", "y")) == f"{tmp_path / 'covtype.npz'}: it has no y"
    assert preflight.data_file(tmp_path, "mnist.npz", ("X",)) == f"{tmp_path / 'mnist.npz'}: data of that shape are made"
    content = (tmp_path / "covtype.npz").read_bytes()
    (tmp_path / "covtype.npz").write_bytes(content[: len(content) // 2])
    with pytest.raises(Exception, match="zip"):
        preflight.data_file(tmp_path, "covtype.npz", ("X",))


def test_little_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert preflight.disk(tmp_path) is None
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 20))
    assert preflight.disk(tmp_path) == f"space: 5 MiB are free in {tmp_path}"


def wheel(folder: Path, name: str) -> None:
    """Write a wheel of one module."""
    info = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": "answer = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD")))


def test_wheels_are_installed_without_an_index(step: Step, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pip")
    shipped, target = tmp_path / "wheels", tmp_path / "site"
    shipped.mkdir()
    monkeypatch.setenv("PIP_TARGET", str(target))
    found = preflight.Preflight(step)
    preflight.install(found, shipped)
    wheel(shipped, "shipped_by_test")
    (shipped / "broken-1.0-py3-none-any.whl").write_bytes(b"no archive")
    preflight.install(found, shipped)
    assert (target / "shipped_by_test.py").read_text() == "answer = 42\n"
    first, second = step.found["lines"]
    assert first == f"missing: wheels in {shipped}"
    assert second.startswith("missing: broken-1.0-py3-none-any.whl: ERROR: ")
    assert found.fatal == []


# ---- the device --------------------------------------------------------------------------------------------------------------


def test_an_empty_pair_of_events_is_taken_off() -> None:
    event = SimpleNamespace(record=lambda: None, synchronize=lambda: None)
    measured = iter([2.5, 2.5, 0.4])
    cuda = SimpleNamespace(Event=lambda: event, get_elapsed_time=lambda *_: next(measured))
    assert machine.EventStopwatch(cuda, 0.0).seconds == 2.5e-3
    assert machine.EventStopwatch(cuda, 5e-4).seconds == pytest.approx(2e-3)
    assert machine.EventStopwatch(cuda, 5e-4).seconds == machine.SHORTEST


def test_a_card_without_nvrtc_has_no_micro_kernels() -> None:
    card = object.__new__(machine.Card)
    card.not_compiled = "only fatbins run here"
    card.backlog()
    with pytest.raises(Skip, match="only fatbins"):
        card.kernels  # noqa: B018
    with pytest.raises(Skip, match="only fatbins"):
        card.define(kernels.KERNELS["histogram"], "")


def test_an_array_that_is_read_too_early(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adoption, "open_machine", lambda _: SimpleNamespace(device="cpu"))
    monkeypatch.setattr(adoption, "from_cupy", lambda _, one, fit: fit(one.X))
    monkeypatch.setattr(adoption, "from_torch", lambda _, one, fit: fit(np.zeros_like(one.X)))
    adoption.main(step)
    assert step.found["CuPy"]["digest"] == step.found["host"]["digest"] != step.found["PyTorch"]["digest"]
    assert step.found["problems"] == ["an array of PyTorch on a side stream is read before it is written"]


def test_graphs_that_train_other_trees(step: Step) -> None:
    shape = rounds_of_shapes.SHAPES[0]
    found = {"launches": 25.0, "waits": 2.0, "peak_bytes": 3 << 20, "round_seconds": 2e-3, "digest": "a"}
    rounds_of_shapes.show(step, shape, found, {})
    rounds_of_shapes.show(step, shape, found, {**found, "round_seconds": 1e-3})
    alone = "MNIST, 8 inner nodes: 2.00 ms/round, 25 launches, 2.0 waits, peak 3 MiB"
    assert step.found["lines"] == [alone, f"{alone}; with graphs 1.00 ms"]
    assert step.found["problems"] == []
    rounds_of_shapes.show(step, shape, found, {**found, "digest": "b"})
    assert step.found["problems"] == ["MNIST, 8 inner nodes: other trees with graphs than without"]


def test_the_model_beside_what_was_measured(step: Step, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (("graphs", 1e-3), ("queued", 2e-3)):
        found = {"lines": [], "one": {"round_seconds": seconds}, "late": {"skipped": "no time left"}}
        (step.folder / f"{name}.json").write_text(json.dumps(found))
    static = SimpleNamespace(model_rows=lambda: [{"problem": "one", "H100": 0.9}, {"problem": "two", "H100": 1.2}])
    monkeypatch.setattr(model_beside.importlib, "import_module", lambda _: static)
    model_beside.main(step)
    measured = "measured graphs 1.00, queued 2.00"
    assert step.found["lines"] == [
        f"one, ms: model H100 0.90; {measured}",
        "two, ms: model H100 1.20; measured nothing",
    ]


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
    assert {"copy_from_device_async", "memset"} <= set(dir(cupy.cuda.MemoryPointer))
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

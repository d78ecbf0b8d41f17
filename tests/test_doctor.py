"""``python -m gpuboost doctor``: facts, verdicts and exit status, on imagined machines and on this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpuboost import DeviceUnavailableError, __version__, devices, doctor
from gpuboost.__main__ import main as command_line
from gpuboost.backends.cuda import fatbin, kernels
from gpuboost.cli import main
from tests import fake_cupy
from tests.fake_machine import Machine


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Machine]:
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "new" / "cache"))
    monkeypatch.delenv(fatbin.VARIABLE, raising=False)
    machine = Machine(monkeypatch)
    yield machine
    monkeypatch.undo()
    Machine(monkeypatch)  # forgets what was found
    monkeypatch.undo()


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["doctor", *arguments])
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def report() -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(run("--json").stdout)
    return facts


def test_where_cuda_works(machine: Machine, tmp_path: Path) -> None:
    machine.usable(2)
    facts = report()
    assert facts["CPU"] == {"usable": True, "digest": doctor.digest("numpy")}
    assert facts["CUDA"] == facts["CPU"]
    assert facts["gpuboost"] == __version__
    assert facts["NVIDIA driver"] == "supports CUDA 13.0"
    assert facts["CuPy"] == "cupy-cuda13x 14.2.0"
    assert (facts["CUDA run-time"], facts["NVRTC"], facts["CUDA devices"]) == ("13.0", "13.0", "2")
    assert facts["device files"] == "/dev/nvidia0, /dev/nvidia1"
    assert facts["kernel cache"] == f"{tmp_path / 'new' / 'cache'}, writable"
    assert [device["name"] for device in facts["devices"]] == ["cuda:0", "cuda:1"]
    assert facts["devices"][1] == {
        "name": "cuda:1",
        "model": "Imagined 1",
        "compute capability": "9.0",
        "free bytes": 1 << 24,
        "total bytes": 1 << 24,
        "multiprocessors": 132,
        "shared bytes per block": 227 << 10,
        "shared bytes per multiprocessor": 228 << 10,
    }
    result = run()
    assert result.exit_code == 0
    assert result.output.splitlines()[-1].startswith("CUDA: usable")
    line = "Imagined 0, compute capability 9.0, 0.0 of 0.0 GiB free, 132 multiprocessors with 228 KiB of shared memory, "
    assert line + "of which a block can have 227" in result.output


def test_where_there_is_nothing(machine: Machine) -> None:
    result = run()
    assert result.exit_code == 1
    cpu, cuda, advice = result.output.splitlines()[-3:]
    assert cpu.startswith("CPU: usable")
    assert cuda.startswith("CUDA: not usable: no NVIDIA driver was found")
    assert 'pip install "cupy-cuda13x>=14" "cuda-toolkit[nvrtc,cudart]==13.*"' in advice
    assert "CuPy                  none" in result.output
    facts = report()
    assert facts["devices"] == []
    assert "NVRTC" not in facts


def test_two_wheels_of_cupy(machine: Machine) -> None:
    machine.usable()
    machine.cupy("cupy-cuda12x", "cupy-cuda13x")
    result = run()
    assert result.exit_code == 1
    assert "cupy-cuda12x 14.2.0, cupy-cuda13x 14.2.0" in result.output
    assert "To do: Remove them all and install one: pip uninstall -y cupy-cuda12x cupy-cuda13x" in result.output


def test_no_driver_but_cupy(machine: Machine) -> None:
    machine.cupy("cupy-cuda13x").query = fake_cupy.CUDARuntimeError(35, "cudaErrorInsufficientDriver")
    facts = report()
    assert (facts["NVRTC"], facts["CUDA devices"]) == ("13.0", "none (cudaErrorInsufficientDriver)")
    assert facts["CUDA"]["problem"].startswith("no NVIDIA driver was found")


def test_cupy_that_cannot_be_imported(machine: Machine) -> None:
    machine.usable()
    machine.monkeypatch.setitem(sys.modules, "cupy", None)
    facts = report()
    assert "NVRTC" not in facts
    assert facts["CUDA"]["problem"].startswith("CuPy cannot be imported")


@pytest.fixture
def without_click(machine: Machine) -> Machine:
    for name in [name for name in sys.modules if name.startswith(("click.", "gpuboost.cli"))]:
        machine.monkeypatch.delitem(sys.modules, name)
    machine.monkeypatch.setitem(sys.modules, "click", None)
    return machine


def test_without_click_the_doctor_works(without_click: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    without_click.usable()
    without_click.monkeypatch.setattr(sys, "argv", ["gpuboost", "doctor", "--json"])
    with pytest.raises(SystemExit) as ended:
        command_line()
    facts = json.loads(capsys.readouterr().out)
    assert facts["missing packages"] == "click (pip install click)"
    assert facts["CPU"] == facts["CUDA"] == {"usable": True, "digest": doctor.digest("numpy")}
    assert ended.value.code == 0


@pytest.mark.parametrize("words", [[], ["fit", "data.csv"], ["--help"]])
def test_without_click_other_commands_say_so(without_click: Machine, words: list[str]) -> None:
    without_click.monkeypatch.setattr(sys, "argv", ["gpuboost", *words])
    with pytest.raises(SystemExit) as ended:
        command_line()
    assert "the command line needs the package click, which is not installed" in str(ended.value.code)
    assert "pip install click" in str(ended.value.code)


def test_an_error_in_the_command_line_is_not_taken_for_a_missing_package(machine: Machine) -> None:
    machine.monkeypatch.setitem(sys.modules, "gpuboost.cli", None)
    with pytest.raises(ModuleNotFoundError, match=r"gpuboost\.cli"):
        command_line()


def test_with_nothing_but_python() -> None:
    modules = sorted(doctor.NEEDED.values())
    block = f"import sys; sys.modules.update(dict.fromkeys({modules})); import runpy; "
    for words in (["doctor"], ["demo"]):
        run_it = f"sys.argv = {['gpuboost', *words]}; runpy.run_module('gpuboost', run_name='__main__')"
        result = subprocess.run([sys.executable, "-c", block + run_it], capture_output=True, text=True, check=False)
        assert result.returncode == 1
        assert "Traceback" not in result.stderr
        if words == ["doctor"]:
            assert f"missing packages      {', '.join(doctor.NEEDED)} (pip install {' '.join(doctor.NEEDED)})" in result.stdout
            assert "CPU: not usable: ModuleNotFoundError: " in result.stdout
            assert "CUDA: not usable: " in result.stdout
        else:
            assert result.stderr.startswith("Error: the command line needs the package ")


def test_kernels_compiled_ahead_on_a_machine_that_cannot_compile(machine: Machine, tmp_path: Path) -> None:
    machine.without_nvrtc()
    facts = report()
    assert (facts["NVRTC"], facts["CUDA"]["usable"]) == ("none (CuPy failed to load libnvrtc.so.13)", False)
    assert "CuPy cannot compile" in facts["CUDA"]["problem"]
    machine.fatbins(tmp_path)
    facts = report()
    assert (facts["NVRTC"], facts["CUDA"]["usable"]) == ("none (CuPy failed to load libnvrtc.so.13)", True)
    n_files = len({kernel.file for kernel in kernels.KERNELS.values()})
    assert facts["kernels"].startswith(f"{n_files} of {n_files} files are compiled ahead, for sm_90")


def test_another_model_on_cuda(machine: Machine) -> None:
    machine.usable()
    right = doctor.digest
    machine.monkeypatch.setattr(doctor, "digest", lambda device: right(device)[::-1] if device == "cuda" else right(device))
    result = run()
    assert result.exit_code == 1
    assert "CUDA trains another model" in result.output


def test_a_kernel_with_a_wrong_result(machine: Machine) -> None:
    machine.usable().kernels["init_roots"] = lambda rows, *rest: rows.data.bytes(rows.nbytes).fill(0)
    assert "wrong result" in report()["CUDA"]["problem"]


def test_a_kernel_that_fails(machine: Machine) -> None:
    def fail(*arguments: Any) -> None:
        raise fake_cupy.CUDARuntimeError(700, "cudaErrorIllegalAddress: an illegal memory access was encountered")

    machine.usable().kernels["init_roots"] = fail
    facts = report()
    assert "cudaErrorIllegalAddress" in facts["CUDA"]["problem"]
    assert facts["CPU"]["usable"]


def test_a_device_without_memory(machine: Machine) -> None:
    machine.usable().memory = 100
    facts = report()
    assert facts["CUDA"]["problem"].startswith("cuda:0 has no room")
    assert facts["CUDA"]["advice"] == ""


def test_a_second_device_out_of_order(machine: Machine) -> None:
    def properties(index: int) -> dict[str, bytes]:
        if index:
            raise fake_cupy.CUDARuntimeError(46, "cudaErrorDevicesUnavailable")
        return {"name": b"good"}

    machine.usable(2)
    machine.monkeypatch.setattr(sys.modules["cupy"].cuda.runtime, "getDeviceProperties", properties)
    result = run()
    assert result.exit_code == 0
    assert "cannot be asked: cudaErrorDevicesUnavailable" in result.output


def test_a_cpu_out_of_order(machine: Machine) -> None:
    def digest(device: str) -> str:
        raise RuntimeError("no LLVM")

    machine.monkeypatch.setattr(doctor, "digest", digest)
    result = run()
    assert result.exit_code == 1
    assert "CPU: not usable: RuntimeError: no LLVM" in result.output


def test_a_check_that_fails_itself(machine: Machine) -> None:
    def problem(index: int | None) -> None:
        raise KeyError("surprise")

    machine.monkeypatch.setattr(devices, "device_problem", problem)
    assert "the check failed (KeyError: 'surprise')" in run().output


def test_a_kernel_cache_that_cannot_be_written(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    machine.monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert "not writable" in report()["kernel cache"]
    assert "set CUPY_CACHE_DIR" in report()["kernel cache"]


def test_kernels_compiled_ahead(machine: Machine, tmp_path: Path) -> None:
    n_files = len({kernel.file for kernel in kernels.KERNELS.values()})
    assert report()["kernels"].startswith(f"{n_files} files, compiled at first use")
    machine.monkeypatch.setenv(fatbin.VARIABLE, str(tmp_path))
    (tmp_path / "init_roots.fatbin").write_bytes(b"code")
    entry = {"source": fatbin.fingerprint("init_roots"), "fatbin": fatbin.checksum(tmp_path / "init_roots.fatbin")}
    (tmp_path / fatbin.MANIFEST).write_text(json.dumps({"architectures": [80, 90], "files": {"init_roots": entry}}))
    assert report()["kernels"] == f"1 of {n_files} files are compiled ahead, for sm_80 sm_90, in {tmp_path}"


@pytest.mark.slow
def test_this_machine() -> None:
    """Whatever is here: a verdict, no traceback, and the exit status of the verdict."""
    root = Path(__file__).resolve().parent.parent
    result = subprocess.run(
        [sys.executable, "-m", "gpuboost", "doctor", "--json"],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "Traceback" not in result.stderr
    facts = json.loads(result.stdout)
    assert facts["CPU"]["usable"]
    assert result.returncode == (0 if facts["CUDA"]["usable"] else 1)


def test_the_command_line_takes_a_devices_number_and_refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    monkeypatch.setattr("gpuboost.demo.run", lambda **options: started.append(options["device"]))
    opened = []

    def refuse(index: int | None) -> Any:
        opened.append(index)
        raise DeviceUnavailableError("there is no such card")

    monkeypatch.setitem(devices.OPENERS, "cuda", refuse)
    done = CliRunner().invoke(main, ["demo", "--device", "7"])
    assert (done.exit_code, opened, started) == (1, [7], [])
    assert "there is no such card" in done.output
    assert CliRunner().invoke(main, ["demo", "--device", "cpu"]).exit_code == 0
    assert started == ["cpu"]

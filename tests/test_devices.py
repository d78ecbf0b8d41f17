"""From ``device`` to a backend: what is chosen, and what is said where CUDA cannot be used."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuboost import DeviceLostError, DeviceUnavailableError, devices
from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import availability, fatbin
from gpuboost.backends.cuda.kernels import KERNELS
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.devices import open_backend
from tests import fake_cupy
from tests.fake_machine import Machine

ROOT = Path(__file__).resolve().parent.parent
INSTALL_12, INSTALL_13 = (f'pip install "cupy-cuda{major}x>=14" "cuda-toolkit[nvrtc,cudart]=={major}.*"' for major in (12, 13))
INSTALL_NVRTC = 'pip install "cuda-toolkit[nvrtc,cudart]==13.*"'


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    monkeypatch.delenv(fatbin.VARIABLE, raising=False)
    machine = Machine(monkeypatch)
    yield machine
    monkeypatch.undo()
    Machine(monkeypatch)  # forgets what was found
    monkeypatch.undo()


def refusal(device: str | int) -> str:
    with pytest.raises(DeviceUnavailableError) as caught:
        open_backend(device)
    return str(caught.value)


def auto() -> tuple[str, list[str]]:
    """Return the device that "auto" is, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with open_backend("auto", 1) as backend:
            return backend.device, [str(w.message) for w in caught]


# ---- where CUDA works --------------------------------------------------------------------------------------------------------


def test_cuda_devices(machine: Machine) -> None:
    cuda = machine.usable(3)
    cuda.current = 2
    chosen = [open_backend(device).device for device in ("cuda", "cuda:0", "cuda:1", 1, np.int64(0), "auto")]
    assert chosen == ["cuda:2", "cuda:0", "cuda:1", "cuda:1", "cuda:0", "cuda:2"]
    assert auto() == ("cuda:2", [])
    assert cuda.current == 2


def test_the_cpu_is_chosen_without_a_question(machine: Machine) -> None:
    machine.usable()
    assert [open_backend(device, 1).device for device in ("cpu", "numpy")] == ["cpu", "numpy"]
    assert machine.questions == 0


@pytest.mark.parametrize("device", ["gpu", "cuda:", "cuda:-1", "cuda:x", "CUDA", "cpu:0", "", -1, True, None, 1.0, b"cuda"])
def test_unknown_devices(machine: Machine, device: Any) -> None:
    with pytest.raises(ValueError, match='expected "auto", "cpu", "numpy", "cuda"'):
        open_backend(device)


def test_backends_can_be_added(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def opener(index: int | None) -> Backend:
        backend = NumpyBackend()
        backend.device = f"other {index}"
        return backend

    monkeypatch.setitem(devices.OPENERS, "other", opener)
    assert [open_backend(name).device for name in ("other", "other:3")] == ["other None", "other 3"]
    with pytest.raises(ValueError, match="device='mistake' is unknown") as caught:
        open_backend("mistake")
    assert "other" not in str(caught.value)


# ---- where it does not -------------------------------------------------------------------------------------------------------


def no_driver_no_cupy(machine: Machine) -> None:
    pass


def no_driver(machine: Machine) -> None:
    machine.cupy("cupy-cuda13x")


def broken_library(machine: Machine) -> None:
    machine.driver = OSError("libcuda.so.1: invalid ELF header")


def library_of_something_else(machine: Machine) -> None:
    machine.driver = 0


def library_that_is_a_stub(machine: Machine) -> None:
    machine.driver = -34
    machine.files(["/dev/nvidia0"])


def no_cupy_and_driver_12(machine: Machine) -> None:
    machine.driver = 12040


def no_cupy_and_driver_13(machine: Machine) -> None:
    machine.driver = 13000


def two_wheels(machine: Machine) -> None:
    machine.driver = 12080
    machine.cupy("cupy-cuda12x", "cupy_cuda13x")


def driver_11(machine: Machine) -> None:
    machine.driver = 11040
    machine.cupy("cupy-cuda12x")


def wheel_of_a_newer_cuda(machine: Machine) -> None:
    machine.driver = 12040
    machine.cupy("cupy-cuda13x")


def run_time_of_a_newer_cuda(machine: Machine) -> None:
    machine.driver = 12040
    machine.cupy("cupy", runtime=13000)


def no_device(machine: Machine) -> None:
    machine.driver = 13000
    machine.cupy("cupy-cuda13x").query = fake_cupy.CUDARuntimeError(100, "cudaErrorNoDevice")


def hidden_devices(machine: Machine) -> None:
    no_device(machine)
    machine.monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def wrongly_named_devices(machine: Machine) -> None:
    no_device(machine)
    machine.monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")


def driver_out_of_order(machine: Machine) -> None:
    machine.driver = 13000
    machine.cupy("cupy-cuda13x").query = fake_cupy.CUDARuntimeError(999, "cudaErrorUnknown: unknown error")


def forked_by_somebody_else(machine: Machine) -> None:
    machine.driver = 13000
    machine.cupy("cupy-cuda13x").query = fake_cupy.CUDARuntimeError(3, "cudaErrorInitializationError")


def no_nvrtc(machine: Machine) -> None:
    machine.without_nvrtc()


def no_nvrtc_for_cupy_13(machine: Machine) -> None:
    machine.without_nvrtc()
    machine.distributions = [("cupy-cuda13x", "13.6.0")]


def device_out_of_order(machine: Machine) -> None:
    machine.usable().load = failing(fake_cupy.CUDARuntimeError(46, "cudaErrorDevicesUnavailable"))


def failing(error: Exception) -> Any:
    def load(module: Any) -> None:
        raise error

    return load


def import_fails(machine: Machine, error: Exception) -> None:
    machine.driver = 13000
    machine.cupy("cupy-cuda13x")

    def import_cupy() -> Any:
        raise error

    machine.monkeypatch.setattr(availability, "import_cupy", import_cupy)


def cupy_is_broken(machine: Machine) -> None:
    import_fails(machine, ImportError("\n=====\nFailed to import CuPy.\n\nOriginal error:\n  ImportError: libfoo.so\n====\n"))


def cupy_left_a_folder(machine: Machine) -> None:
    import_fails(machine, AttributeError("module 'cupy' has no attribute 'cuda'"))


def cupy_cannot_write(machine: Machine) -> None:
    import_fails(machine, PermissionError(13, "Permission denied", "/.cupy"))


TROUBLES: list[tuple[Callable[[Machine], None], list[str], bool]] = [
    (no_driver_no_cupy, ["no NVIDIA driver", "No such file", "--gpus all", INSTALL_13, "no CuPy"], False),
    (no_driver, ["no NVIDIA driver", "--gpus all", "cupy-cuda13x 14.2.0"], True),
    (broken_library, ["no NVIDIA driver", "invalid ELF header", INSTALL_13], False),
    (library_of_something_else, ["no NVIDIA driver", "cuDriverGetVersion", INSTALL_13], False),
    (library_that_is_a_stub, ["no NVIDIA driver", "error 34", INSTALL_13], True),
    (no_cupy_and_driver_12, ["CuPy is not installed", INSTALL_12, "the driver supports CUDA 12.4", "no CuPy"], True),
    (no_cupy_and_driver_13, ["CuPy is not installed", INSTALL_13, "the driver supports CUDA 13.0"], True),
    (two_wheels, ["cupy-cuda12x and cupy-cuda13x", "pip uninstall -y cupy-cuda12x cupy-cuda13x && " + INSTALL_12], True),
    (driver_11, ["supports only CUDA 11.4", "12.0 or newer", "Update the driver"], True),
    (wheel_of_a_newer_cuda, ["supports only CUDA 12.4", "needs CUDA 13", "uninstall -y cupy-cuda13x && " + INSTALL_12], True),
    (run_time_of_a_newer_cuda, ["supports only CUDA 12.4", "run-time of CUDA 13.0", "-y cupy && " + INSTALL_12], True),
    (no_device, ["sees no GPU", "--gpus all", "cupy-cuda13x", "CUDA run-time 13.0", "NVRTC 13.0"], True),
    (hidden_devices, ["CUDA_VISIBLE_DEVICES='' leaves no device", "Unset it"], False),
    (wrongly_named_devices, ["CUDA_VISIBLE_DEVICES='7' leaves no device"], True),
    (driver_out_of_order, ["unknown error", "nvidia-smi"], True),
    (forked_by_somebody_else, ["forked", "spawn", 'device="cpu"'], True),
    (no_nvrtc, ["cuda:0: CuPy cannot compile", "libnvrtc", INSTALL_NVRTC, "NVRTC none (CuPy failed", "CUDA devices 1"], True),
    (no_nvrtc_for_cupy_13, ["cannot compile", "libnvrtc", f'pip install "cupy-cuda13x>=14" {INSTALL_NVRTC[12:]}'], True),
    (device_out_of_order, ["cuda:0 does not work", "cudaErrorDevicesUnavailable", "nvidia-smi"], True),
    (cupy_is_broken, ["CuPy cannot be imported (ImportError: libfoo.so)", "-y cupy-cuda13x && " + INSTALL_13], True),
    (cupy_left_a_folder, ["CuPy cannot be imported", "-y cupy-cuda13x && " + INSTALL_13], True),
    (cupy_cannot_write, ["CuPy cannot be imported", "Permission denied", "CUPY_CACHE_DIR"], True),
]


@pytest.mark.parametrize(("prepare", "said", "expected"), TROUBLES, ids=[prepare.__name__ for prepare, _, _ in TROUBLES])
def test_problem(machine: Machine, caplog: pytest.LogCaptureFixture, prepare: Any, said: list[str], expected: bool) -> None:
    """An explicit wish is refused with everything that was found; "auto" is the CPU, and says so once."""
    prepare(machine)
    caplog.set_level(logging.INFO, "gpuboost")
    for device in ("cuda", 0):
        message = refusal(device)
        assert [part for part in said if part not in message] == []
        assert message.startswith('device="cuda')
        assert 'device="cpu" trains the same model' in message
    (first, warned), again = auto(), auto()
    assert (first, again) == ("cpu", ("cpu", []))
    notes = [record.getMessage() for record in caplog.records]
    assert (len(warned), len(notes)) == ((1, 0) if expected else (0, 1))
    (sentence,) = warned + notes
    assert sentence.startswith('device="auto" trains on the CPU: ')
    assert said[0] in sentence
    assert "\n" not in sentence


def test_what_is_missing_is_said_once_and_the_remedy_names_it(machine: Machine) -> None:
    said = refusal(0)
    assert said.count("libcuda") == said.count("No such file") == 1
    assert "To do: Install the NVIDIA driver" in said


def test_an_old_cupy_is_refused_by_its_version(machine: Machine) -> None:
    machine.usable()
    machine.distributions = [("cupy-cuda12x", "12.3.0")]
    said = refusal("cuda")
    assert "cupy-cuda12x 12.3.0 is too old: 13 or newer is needed" in said
    assert "pip install -U cupy-cuda12x" in said


@pytest.mark.parametrize("version", ["13.6.0", "14.2.0", "of unknown version"])
def test_a_cupy_that_compiles_will_do(machine: Machine, version: str) -> None:
    machine.usable()
    machine.distributions = [("cupy-cuda12x", version)]
    assert open_backend("cuda").device == "cuda:0"


@pytest.mark.parametrize("version", ["13.6.0", "14.2.0"])
def test_kernels_compiled_ahead_need_no_compiler(machine: Machine, version: str, tmp_path: Path) -> None:
    cuda = machine.without_nvrtc()
    machine.distributions = [("cupy-cuda13x", version)]
    assert "CuPy cannot compile" in refusal("cuda")
    machine.fatbins(tmp_path)
    gpu = open_backend("cuda").gpu  # type: ignore[attr-defined]
    for kernel in KERNELS.values():
        gpu.load(kernel)
    assert {Path(module.path).parent for module in cuda.modules if module.path} == {tmp_path}
    assert [module for module in cuda.modules[1:] if not module.path] == []  # the first is of the refusal


@pytest.mark.parametrize(
    "error", [ValueError("numpy.dtype size changed"), RuntimeError(""), SyntaxError("invalid syntax")], ids=repr
)
def test_a_cupy_that_fails_to_load_in_any_way_is_to_be_installed_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    machine.usable()

    def fail() -> Any:
        raise error

    monkeypatch.setattr(availability, "import_cupy", fail)
    said = refusal("cuda")
    assert f"CuPy cannot be imported ({str(error) or type(error).__name__})" in said
    assert "pip uninstall -y cupy-cuda13x" in said
    assert auto()[0] == "cpu"


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_cuda_that_fails_between_two_questions(machine: Machine, monkeypatch: pytest.MonkeyPatch, device: str) -> None:
    machine.usable()
    assert availability.common_problem() is None

    def fail() -> int:
        raise RuntimeError("cudaErrorUnknown: unknown error")

    monkeypatch.setattr(availability, "current_device", fail)
    monkeypatch.setattr(devices, "kernel_problem", lambda index: fail())
    assert "CUDA does not start (cudaErrorUnknown: unknown error)" in refusal(device)
    assert auto()[0] == "cpu"


def test_a_warning_is_the_callers(machine: Machine) -> None:
    no_driver(machine)
    with pytest.warns(UserWarning, match="trains on the CPU") as caught:
        open_backend("auto", 1)
    assert caught[0].filename == __file__


def test_the_number_of_devices(machine: Machine) -> None:
    machine.usable(2)
    message = refusal("cuda:2")
    assert "there is no device cuda:2, only cuda:0 to cuda:1 exist" in message
    assert "CUDA devices 2" in message
    assert "only cuda:0 to cuda:1 exist" in refusal(10**30)
    assert open_backend("cuda:1").device == "cuda:1"


def test_one_device(machine: Machine) -> None:
    machine.usable()
    assert "there is no device cuda:1, only cuda:0 exists" in refusal(1)


def test_failures_are_remembered(machine: Machine) -> None:
    no_device(machine)
    before = refusal("cuda")
    machine.usable()
    assert refusal("cuda").splitlines()[0] == before.splitlines()[0]
    assert auto()[0] == "cpu"


def test_a_broken_device_leaves_the_others(machine: Machine) -> None:
    cuda = machine.usable(2)

    def load(module: Any) -> None:
        if cuda.current == 0:
            raise fake_cupy.CUDARuntimeError(2, "out of memory")

    cuda.load = load
    assert "cuda:0 does not work" in refusal(0)
    assert open_backend(1).device == "cuda:1"


def test_a_device_that_is_lost_is_refused_from_then_on(machine: Machine) -> None:
    cuda = machine.usable(2)
    gpu = open_backend("cuda").gpu  # type: ignore[attr-defined]
    cuda.lost[0] = fake_cupy.CUDARuntimeError(719, "cudaErrorLaunchFailure: unspecified launch failure")
    with pytest.raises(DeviceLostError):
        gpu.put(np.zeros(3))
    for device in ("cuda", "cuda:0"):
        said = refusal(device)
        assert "cuda:0 has stopped working in this process (cudaErrorLaunchFailure: unspecified launch failure)" in said
        assert "To do: Start another process" in said
    device, [warned] = auto()
    assert device == "cpu"
    assert "cuda:0 has stopped working in this process" in warned
    assert open_backend(1).device == "cuda:1"


def test_a_device_that_was_full_is_tried_again(machine: Machine) -> None:
    cuda = machine.usable()
    full = fake_cupy.CUDADriverError(2, "CUDA_ERROR_OUT_OF_MEMORY: out of memory")

    def load(module: Any) -> None:
        raise full

    cuda.load = load
    assert "cuda:0 has no room for the kernel" in refusal(0)
    cuda.load = lambda module: None
    assert open_backend(0).device == "cuda:0"


def test_a_cupy_without_metadata_counts(machine: Machine) -> None:
    machine.driver = 11040
    machine.cupy()
    assert "cupy of unknown version" in refusal("cuda")


# ---- forks -------------------------------------------------------------------------------------------------------------------

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that forks")


def in_a_fork(question: Callable[[], object]) -> str:
    """Return what a forked child answers."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = str(question())
        except BaseException as error:
            answer = repr(error)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answers:
        text = answers.read()
    os.waitpid(child, 0)
    return text


@pytest.mark.slow
@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.parametrize("who", ["gpuboost", "CuPy"])
def test_a_fork_of_a_process_that_uses_cuda(machine: Machine, who: str) -> None:
    cuda = machine.usable()
    if who == "gpuboost":
        assert open_backend("cuda").device == "cuda:0"
    else:
        cuda.device_count()
    assert "was forked" in in_a_fork(lambda: refusal("cuda"))
    assert "spawn" in in_a_fork(lambda: refusal(0))
    assert in_a_fork(lambda: in_a_fork(lambda: refusal(0))) == in_a_fork(lambda: refusal(0))
    device, warned = eval(in_a_fork(auto))
    assert device == "cpu"
    assert len(warned) == 1
    assert "was forked" in warned[0]
    assert open_backend("cuda").device == "cuda:0"  # the parent goes on


@needs_fork
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_before_cuda_is_used(machine: Machine) -> None:
    machine.usable()
    assert in_a_fork(lambda: open_backend("cuda").device) == "cuda:0"
    no_driver(machine)
    assert in_a_fork(lambda: open_backend("cpu", 1).device) == "cpu"


# ---- this machine ------------------------------------------------------------------------------------------------------------


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )


REFUSED = """
from gpuboost import DeviceUnavailableError
from gpuboost.devices import open_backend
try:
    open_backend("cuda")
except DeviceUnavailableError as error:
    print(error)
"""


@pytest.fixture
def cupy_alone() -> None:
    """The real CuPy, on a machine without a driver."""
    names = ("cupy", "cupy-cuda12x", "cupy-cuda13x")

    def installed(name: str) -> bool:
        try:
            return bool(version(name))
        except PackageNotFoundError:
            return False

    if sum(map(installed, names)) != 1 or availability.driver.__wrapped__()[0] is not None:
        pytest.skip("needs one CuPy and no driver")


def test_the_real_cupy_without_a_driver(cupy_alone: None) -> None:
    result = run_python(REFUSED)
    assert "no NVIDIA driver was found" in result.stdout
    assert "cupy" in result.stdout
    assert result.stderr == ""


PRETEND_A_DRIVER = "from gpuboost.backends.cuda import availability\navailability.driver = lambda: (99000, '')\n"


def test_what_the_real_cupy_says_without_a_driver(cupy_alone: None) -> None:
    result = run_python(PRETEND_A_DRIVER + REFUSED)
    assert "CUDA does not start (cudaErrorInsufficientDriver" in result.stdout
    assert "CUDA devices none (cudaErrorInsufficientDriver" in result.stdout
    assert result.stderr == ""


def test_the_real_cupy_that_cannot_write(cupy_alone: None, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    result = run_python(PRETEND_A_DRIVER + REFUSED, CUPY_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert "CuPy cannot be imported" in result.stdout
    assert "set CUPY_CACHE_DIR" in result.stdout


@pytest.mark.slow
def test_the_cpu_needs_no_cupy() -> None:
    code = """
import sys, gpuboost, numpy as np
X = np.arange(20.0)[:, None]
model = gpuboost.fit(X, X[:, 0] > 9, n_estimators=2, device="cpu")
model.predict(X)
print(model.device_, "cupy" in sys.modules, "gpuboost.backends.cuda.cupy_gpu" in sys.modules)
"""
    result = run_python(code)
    assert (result.stdout, result.stderr) == ("cpu False False\n", "")


WITHOUT_CUPY = """
from gpuboost.backends.cuda import availability
availability.cupy_distributions = dict
availability.device_files = list
import gpuboost, numpy as np
X = np.arange(20.0)[:, None]
print(gpuboost.fit(X, X[:, 0] > 9, n_estimators=2).device_)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the library has another name")
def test_a_text_in_the_place_of_the_drivers_library(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_text("this is not a library")
    result = run_python(WITHOUT_CUPY + REFUSED, LD_LIBRARY_PATH=str(tmp_path))
    assert result.stdout.startswith("cpu\n")
    assert "no NVIDIA driver was found" in result.stdout
    assert str(tmp_path) in result.stdout
    assert result.stderr == ""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="compiles a library")
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int cuDriverGetVersion(int *v) { *v = 11040; return 0; }", "supports only CUDA 11.4"),
        ("int cuDriverGetVersion(int *v) { return 34; }", "answers with error 34"),
        ("int something_else;", "cuDriverGetVersion"),
    ],
)
def test_stubs_of_the_drivers_library(tmp_path: Path, source: str, message: str) -> None:
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-x", "c", "-o", tmp_path / "libcuda.so.1", "-"], input=source, text=True, check=True
    )
    assert message in run_python(REFUSED, LD_LIBRARY_PATH=str(tmp_path)).stdout

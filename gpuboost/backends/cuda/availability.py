"""What of CUDA this machine has, and what keeps it from being used: `problem`.

Nothing here runs before CUDA is asked for, except the note that `before_fork` takes. What is found of the installation, and
that a device works, is remembered for the process.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OLDEST_CUDA = 12000
"""The oldest CUDA version, as CUDA counts them, for which there is a CuPy that we support."""
OLDEST_CUPY = 13
"""The oldest CuPy for NumPy 2."""
CUPY_FOR_PIP = 14
"""The oldest CuPy that finds the parts of the CUDA toolkit where pip puts them. An earlier one needs an installed toolkit, or
kernels that were compiled ahead."""

INITIALIZATION_ERROR, NO_DEVICE = 3, 100
"""Statuses of the CUDA run-time."""


@dataclass(frozen=True)
class DeviceProblem:
    """Why CUDA cannot be used.

    Attributes
    ----------
    reason : str
        Half a sentence, such as "CuPy is not installed".
    advice : str
        The one thing to do, or "" if the reason says it.
    """

    reason: str
    advice: str


# ---- what there is -----------------------------------------------------------------------------------------------------------


@functools.cache
def driver() -> tuple[int | None, str]:
    """Return the newest CUDA version that the NVIDIA driver supports, such as 12040, or None and why there is none.

    It asks the driver's library, which needs neither CuPy nor a device, and does not initialise CUDA.
    """
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    version = ctypes.c_int()
    try:
        status = ctypes.CDLL(name).cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError) as error:  # no library; not a library; a library of something else
        return None, str(error)
    return (version.value, "") if status == 0 < version.value else (None, f"{name} answers with error {status}")


@functools.cache
def cupy_distributions() -> dict[str, str]:
    """Return the versions of all installed distributions of CuPy by name. More than one overwrite each other's files."""
    try:
        if "cupy" not in sys.modules and importlib.util.find_spec("cupy") is None:
            return {}
    except ValueError:  # a module without a specification
        pass
    versions: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()
        if re.fullmatch(r"cupy|cupy-(cuda|rocm)-?[\dx-]*", name):
            versions.setdefault(name, distribution.version)
    return dict(sorted(versions.items())) or {"cupy": "of unknown version"}


def device_files() -> list[str]:
    """Return the files under /dev through which a driver offers GPUs."""
    return sorted(str(path) for path in Path("/dev").glob("nvidia[0-9]*"))


def hidden() -> bool:
    """Whether the user hides all GPUs."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "all").strip() in ("", "-1", "none", "NoDevFiles")


def gpu_expected() -> bool:
    """Whether a user may expect a GPU to be used here: signs of a card, or CuPy, and no wish to hide them."""
    return not hidden() and bool(driver()[0] or device_files() or cupy_distributions())


def dotted(version: int | None) -> str:
    """Return CUDA's number of a version, such as 12040, as "12.4"."""
    return "none" if version is None else f"{version // 1000}.{version % 1000 // 10}"


def toolkit(major: int) -> str:
    """Return the requirement of the parts of the CUDA toolkit that CuPy needs to compile kernels."""
    return f'"cuda-toolkit[nvrtc,cudart]=={major}.*"'


def install() -> str:
    """Return the command that installs what the driver can use. It needs no index or checkout that has this package."""
    version = driver()[0]
    major = 12 if version is not None and version < 13000 else 13
    return f'pip install "cupy-cuda{major}x>={CUPY_FOR_PIP}" {toolkit(major)}'


def install_compiler(major: int) -> str:
    """Return the command that installs what the CuPy that is here, for this CUDA, compiles kernels with."""
    outdated = [f'"{name}>={CUPY_FOR_PIP}"' for name, number in cupy_distributions().items() if is_before(number, CUPY_FOR_PIP)]
    return " ".join(["pip install", *outdated, toolkit(major)])


def is_before(version: str, major: int) -> bool:
    """Whether a version is known, and is one before ``major``."""
    number = re.match(r"\d+", version)
    return number is not None and int(number[0]) < major


@functools.cache
def import_cupy() -> Any:
    """Return the module ``cupy``. It may warn of what it does not find, which is ours to report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import cupy
    return cupy


def findings() -> str:
    """Return what was found, in one sentence. Why there is no driver is for `problem` to say."""
    version, _ = driver()
    wheels = ", ".join(f"{name} {number}" for name, number in cupy_distributions().items())
    parts = [
        f"the driver supports CUDA {dotted(version)}" if version else "no driver",
        wheels or "no CuPy",
        *(f"{title} {fact}" for title, fact in library_versions().items()),
    ]
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        parts.append(f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']!r}")
    return "; ".join(parts)


def library_versions() -> dict[str, str]:
    """Return the versions of the CUDA run-time and of NVRTC, and the number of devices, if `problem` has loaded CuPy."""
    cuda = getattr(sys.modules.get("cupy"), "cuda", None)
    if cuda is None or forked():
        return {}
    return {
        "CUDA run-time": attempt(lambda: dotted(cuda.runtime.runtimeGetVersion())),
        "NVRTC": attempt(lambda: ".".join(map(str, cuda.nvrtc.getVersion()))),
        "CUDA devices": attempt(lambda: cuda.runtime.getDeviceCount()),
    }


def attempt(question: Callable[[], Any]) -> str:
    """Return the answer as text, or "none" with the first line of the error."""
    try:
        return str(question())
    except Exception as error:
        return f"none ({(str(error).strip() or type(error).__name__).splitlines()[0]})"


# ---- what is wrong -----------------------------------------------------------------------------------------------------------


def current_device() -> int:
    """Return the CUDA device that is current in this thread. CUDA must be usable."""
    return int(import_cupy().cuda.runtime.getDevice())


@functools.cache
def common_problem() -> DeviceProblem | None:
    """Return what keeps every device from being used: first what needs no CUDA call, then the devices."""
    return installation_problem() or driver_problem()


def installation_problem() -> DeviceProblem | None:
    """Return what is wrong with the driver or the distributions of CuPy."""
    version, remark = driver()
    wheels = cupy_distributions()
    if len(wheels) > 1:
        return DeviceProblem(
            f"{len(wheels)} distributions of CuPy are installed, {' and '.join(wheels)}, which overwrite each other's files",
            f"Remove them all and install one: pip uninstall -y {' '.join(wheels)} && {install()}",
        )
    if version is None:
        then = "" if wheels else f". Then {install()} (for drivers older than 580, 12 in place of 13)"
        return DeviceProblem(
            f"no NVIDIA driver was found ({remark})",
            f"Install the NVIDIA driver (nvidia.com/drivers), or start a container with: docker run --gpus all{then}",
        )
    if version < OLDEST_CUDA:
        return DeviceProblem(
            f"the NVIDIA driver supports only CUDA {dotted(version)}, and {dotted(OLDEST_CUDA)} or newer is needed",
            "Update the driver to 525 or newer",
        )
    if not wheels:
        return DeviceProblem("CuPy is not installed", install())
    ((wheel, number),) = wheels.items()
    if is_before(number, OLDEST_CUPY):
        return DeviceProblem(f"{wheel} {number} is too old: {OLDEST_CUPY} or newer is needed", f"Run: pip install -U {wheel}")
    built_for = re.search(r"cuda(\d\d)x", wheel)
    if built_for and int(built_for[1]) > version // 1000:
        return older_driver(f"{wheel} needs CUDA {built_for[1]}")
    return None


def older_driver(need: str) -> DeviceProblem:
    """Return the problem of a driver that is older than what is installed."""
    (wheel,) = cupy_distributions()
    return DeviceProblem(
        f"{need}, but the NVIDIA driver supports only CUDA {dotted(driver()[0])}",
        f"Update the driver, or run: pip uninstall -y {wheel} && {install()}",
    )


def driver_problem() -> DeviceProblem | None:
    """Return what is wrong when CuPy asks for the devices."""
    try:
        cupy = import_cupy()
    except OSError as error:
        return DeviceProblem(
            f"CuPy cannot be imported ({error})",
            "If it cannot write to its folder for compiled kernels, set CUPY_CACHE_DIR to one that can be written",
        )
    except Exception as error:  # among them the ValueError of a wheel for another NumPy
        return broken_cupy(error)
    try:
        runtime = cupy.cuda.runtime
        needs = runtime.runtimeGetVersion()
        if needs // 1000 > (driver()[0] or 0) // 1000:
            return older_driver(f"CuPy uses the run-time of CUDA {dotted(needs)}")
        if runtime.getDeviceCount() == 0:
            return no_device()
    except AttributeError as error:
        return broken_cupy(error)
    except Exception as error:
        return query_problem(error)
    return None


def broken_cupy(error: Exception) -> DeviceProblem:
    """Return the problem of a CuPy that cannot be imported, or lacks what every CuPy has."""
    last = "".join(str(error).strip(" =\n").splitlines()[-1:]).strip()  # CuPy frames the reason and puts it last
    again = f"Install it again: pip uninstall -y {' '.join(cupy_distributions()) or 'cupy'} && {install()}"
    return DeviceProblem(f"CuPy cannot be imported ({last or type(error).__name__})", again)


def query_problem(error: Exception) -> DeviceProblem:
    """Return what an error of the first CUDA call means."""
    status = getattr(error, "status", None)
    if status == INITIALIZATION_ERROR:
        return DeviceProblem(
            f"CUDA does not start ({error}), as in a process that was forked from one that had used CUDA", USE_SPAWN
        )
    if status == NO_DEVICE:
        return no_device()
    return DeviceProblem(f"CUDA does not start ({error})", "See whether nvidia-smi works; a newer driver or a restart may help")


def no_device() -> DeviceProblem:
    """Return the problem of a driver without devices."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        value = os.environ["CUDA_VISIBLE_DEVICES"]
        return DeviceProblem(f"CUDA_VISIBLE_DEVICES={value!r} leaves no device", "Unset it, or set it to the number of a GPU")
    return DeviceProblem(
        "the NVIDIA driver sees no GPU", "See whether nvidia-smi lists one; start a container with: docker run --gpus all"
    )


# ---- forks -------------------------------------------------------------------------------------------------------------------

USE_SPAWN = (
    'Start worker processes by "spawn" or "forkserver" (multiprocessing.set_start_method), or with joblib, whose default does; '
    'or use device="cpu" in them'
)

initialised_in: int | None = None
"""The process that had initialised CUDA before it forked, seen from the process itself and from its children."""


def before_fork() -> None:
    """Note whether this process has initialised CUDA: through us, or by its own use of CuPy."""
    global initialised_in
    cupy = sys.modules.get("cupy")
    if initialised_in is None and cupy is not None:
        try:
            cupy.cuda.driver.ctxGetCurrent()  # an error before CUDA is initialised; it does not initialise CUDA
        except Exception:
            return
        initialised_in = os.getpid()


def forked() -> bool:
    """Whether an ancestor of this process had initialised CUDA when it forked."""
    return initialised_in not in (None, os.getpid())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork)

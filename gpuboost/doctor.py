"""What ``python -m gpuboost doctor`` tells: the facts about CPU and CUDA, and a verdict on each after a tiny training."""

from __future__ import annotations

import json
import os
import platform
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpuboost.backends.cuda import availability
from gpuboost.backends.cuda.availability import DeviceProblem, attempt, dotted
from gpuboost.errors import DeviceMemoryError, DeviceUnavailableError
from gpuboost.registry import __version__

Report = dict[str, Any]
"""Facts by title: text, numbers, or dictionaries of them."""

NEEDED = {
    "numpy": "numpy",
    "numba": "numba",
    "scikit-learn": "sklearn",
    "click": "click",
    "joblib": "joblib",
    "tqdm": "tqdm",
    "pyarrow": "pyarrow",
}
"""The distributions that gpuboost needs, and their modules. The doctor gets along without each of them."""

REINSTALL = "Install gpuboost-ml again; if that does not help, please report it with this output"


def examine() -> Report:
    """Return all facts and the verdicts. It raises nothing, whatever is broken."""
    report: Report = {
        "gpuboost": __version__,
        "python": f"{platform.python_version()} on {platform.system()} {platform.machine()}",
        "numpy": attempt(lambda: version("numpy")),
        "numba": attempt(lambda: version("numba")),
        "missing packages": missing(),
        "CPU threads": attempt(threads),
        "NVIDIA driver": driver(),
        "device files": ", ".join(availability.device_files()) or "none",
        "CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES", "not set"),
        "CuPy": attempt(cupy),
    }
    problem = cuda_problem()
    report |= libraries()
    report["devices"] = [] if problem else devices()
    report["kernel cache"] = attempt(kernel_cache)
    report["kernels"] = attempt(prebuilt)
    report["CPU"] = verdict(lambda: digest("cpu"))
    if problem is not None:
        report["CUDA"] = {"usable": False, "problem": problem.reason, "advice": problem.advice}
    else:
        report["CUDA"] = verdict(lambda: cuda_digest(report["CPU"]))
    return report


# ---- facts -------------------------------------------------------------------------------------------------------------------


def missing() -> str:
    """Return which of the packages that gpuboost needs are not installed, and how to get them."""
    names = [name for name, module in NEEDED.items() if find_spec(module) is None]
    return f"{', '.join(names)} (pip install {' '.join(names)})" if names else "none"


def threads() -> int:
    """Return how many threads a training on the CPU has."""
    from gpuboost.backends.cpu.threads import usable_threads

    return usable_threads(None)


def driver() -> str:
    """Return what the NVIDIA driver supports."""
    number, remark = availability.driver()
    return f"supports CUDA {dotted(number)}" if number else f"none ({remark})"


def cupy() -> str:
    """Return the installed distributions of CuPy."""
    return ", ".join(f"{name} {number}" for name, number in availability.cupy_distributions().items()) or "none"


def libraries() -> dict[str, str]:
    """Return the versions of what CuPy finds, also where there is no driver; none if CuPy cannot be imported."""
    if len(availability.cupy_distributions()) != 1:
        return {}
    try:
        availability.import_cupy()
    except Exception:  # the verdict says why
        return {}
    return availability.library_versions()


def devices() -> list[Report]:
    """Return what CUDA says of its devices."""
    found = []
    for index in range(int(availability.library_versions()["CUDA devices"])):
        try:
            found.append(device_facts(index))
        except Exception as error:  # another device may be broken, or full
            found.append({"name": f"cuda:{index}", "problem": str(error)})
    return found


def device_facts(index: int) -> Report:
    """Return what CUDA says of a device."""
    cuda = availability.import_cupy().cuda
    device = cuda.Device(index)
    free, total = device.mem_info
    capability = device.compute_capability
    return {
        "name": f"cuda:{index}",
        "model": cuda.runtime.getDeviceProperties(index)["name"].decode(),
        "compute capability": f"{capability[:-1]}.{capability[-1]}",
        "free bytes": free,
        "total bytes": total,
        "multiprocessors": device.attributes["MultiProcessorCount"],
        "shared bytes per block": device.attributes["MaxSharedMemoryPerBlockOptin"],
        "shared bytes per multiprocessor": device.attributes["MaxSharedMemoryPerMultiprocessor"],
    }


def kernel_cache() -> str:
    """Return where CuPy keeps compiled kernels, and whether it can."""
    folder = Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")
    place = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=place):
            return f"{folder}, writable"
    except OSError as error:
        return f"{folder}, not writable ({error.strerror}); set CUPY_CACHE_DIR to a folder that is"


def prebuilt() -> str:
    """Return whether the kernels have been compiled ahead."""
    from gpuboost.backends.cuda import fatbin

    matching, n_files = fatbin.matching()
    content = fatbin.manifest()
    if not content:
        return f"{n_files} files, compiled at first use (no fatbins in {fatbin.folder()})"
    targets = " ".join(f"sm_{number}" for number in content.get("architectures", []))
    return f"{matching} of {n_files} files are compiled ahead, for {targets}, in {fatbin.folder()}"


# ---- verdicts ----------------------------------------------------------------------------------------------------------------


def cuda_problem() -> DeviceProblem | None:
    """Return why CUDA cannot be used; it loads CuPy, if it comes as far."""
    try:
        from gpuboost.devices import device_problem

        return device_problem(None)
    except Exception as error:
        return DeviceProblem(f"the check failed ({type(error).__name__}: {error})", REINSTALL)


def verdict(train: Callable[[], str]) -> Report:
    """Return whether a training works, and its digest or what is wrong."""
    try:
        return {"usable": True, "digest": train()}
    except (DeviceUnavailableError, DeviceMemoryError) as error:  # these say what to do
        return {"usable": False, "problem": str(error), "advice": ""}
    except Exception as error:
        return {"usable": False, "problem": f"{type(error).__name__}: {error}", "advice": REINSTALL}


def digest(device: str) -> str:
    """Train on a tiny table with ties, missing values and three classes, and return the model's digest."""
    import numpy as np

    from gpuboost.registry import estimator_class

    rng = np.random.default_rng(0)
    X = rng.integers(0, 8, (300, 20)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.digitize(np.nan_to_num(X[:, 0]) + rng.normal(size=300), [2, 5])
    model = estimator_class("AdaBoostMHClassifier")(n_estimators=5, max_leaf_nodes=6, random_state=0, device=device)
    return str(model.fit(X, y).ensemble_.digest())


def cuda_digest(cpu: Report) -> str:
    """Return the digest of the model from the current CUDA device, after one kernel, compared with the CPU's."""
    run_kernel()
    found = digest("cuda")
    if cpu["usable"] and found != cpu["digest"]:
        raise RuntimeError(f"CUDA trains another model, {found}, than the CPU, {cpu['digest']}: a bug, please report it")
    return found


def run_kernel() -> None:
    """Run the kernel that numbers the rows, and look at its result."""
    import numpy as np

    from gpuboost.backends.cuda.cupy_gpu import CupyGpu
    from gpuboost.backends.cuda.launch import launch

    gpu = CupyGpu(availability.current_device())
    n_rows, max_nodes, n_channels = 1000, 3, 2
    try:
        rows = gpu.empty((1, n_rows), np.int32)
        table = gpu.empty((1, max_nodes, 10 + 2 * n_channels), np.int64)
        current, histogram = gpu.empty((1,), np.int64), gpu.empty((1,), np.int32)
        sizes = {"n_started": n_rows, "n_cells": 1, "stride": n_rows, "max_nodes": max_nodes, "n_channels": n_channels}
        launch(gpu, "init_roots", (4, 1), (rows, table, current, None, None, histogram, sizes))
        if not np.array_equal(gpu.get(rows)[0], np.arange(n_rows)):
            raise RuntimeError("a kernel ran and gave a wrong result; the device or its driver is at fault")
    finally:
        gpu.close()


# ---- output ------------------------------------------------------------------------------------------------------------------


def lines(report: Report) -> list[str]:
    """Return a report for people."""
    text = []
    for title, fact in report.items():
        if isinstance(fact, list):
            text += [f"{device['name']:22}{describe(device)}" for device in fact]
        elif not isinstance(fact, dict):
            text.append(f"{title:22}{fact}")
    for title in ("CPU", "CUDA"):
        fact = report[title]
        if fact["usable"]:
            text.append(f"{title}: usable (a tiny model has the digest {fact['digest'][:16]})")
        else:
            text.append(f"{title}: not usable: {fact['problem']}")
            text += [f"  To do: {fact['advice']}"] if fact["advice"] else []
    return text


def describe(device: Report) -> str:
    """Return a device's facts in a line."""
    if "problem" in device:
        return f"cannot be asked: {device['problem']}"
    free, total = device["free bytes"] / 2**30, device["total bytes"] / 2**30
    a_block, in_all = device["shared bytes per block"] // 1024, device["shared bytes per multiprocessor"] // 1024
    return (
        f"{device['model']}, compute capability {device['compute capability']}, {free:.1f} of {total:.1f} GiB free, "
        f"{device['multiprocessors']} multiprocessors with {in_all} KiB of shared memory, of which a block can have {a_block}"
    )


def main(*, as_json: bool) -> int:
    """Print the report; return 0 if CUDA can be used, else 1."""
    report = examine()
    print(json.dumps(report, indent=2) if as_json else "\n".join(lines(report)), flush=True)
    return 0 if report["CUDA"]["usable"] else 1

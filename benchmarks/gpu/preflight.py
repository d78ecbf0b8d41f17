"""The step preflight: what is missing, a line for each; it stops the run only where nothing could be measured.

It needs nothing but Python's own library to say so, and warms what is slow the first time, before the clock starts.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.gpu.step import HOPELESS, Step, run

NEEDED = ("numpy", "numba", "sklearn", "click", "joblib", "tqdm")
DISTRIBUTIONS = {"sklearn": "scikit-learn"}
FOR_A_STEP = {
    "pytest": "the step conformance fails",
    "torch": "no tensors of PyTorch are adopted",
    "nvidia-smi": "the card's state is not known",
    "compute-sanitizer": "the step sanitizer is skipped",
}
"""Modules and programs that one step needs, and what comes of it if there is none."""
DISK_BYTES = 1 << 30


class Preflight:
    """What is found on the way.

    Attributes
    ----------
    fatal : list of str
        Why nothing can be measured.
    """

    def __init__(self, step: Step) -> None:
        self.step, self.fatal = step, list[str]()

    def check(self, what: str, check: Callable[[], str | None], *, fatal: bool = False) -> None:
        """Note what a check says is missing, or the error with which it ends."""
        begun = time.perf_counter()
        try:
            missing = check()
            line = missing and f"missing: {missing}"
        except Exception as error:
            traceback.print_exc()
            line = f"{what} cannot be had: {type(error).__name__}: {error}"
        print(f"{what}: {time.perf_counter() - begun:.1f} s", flush=True)
        if line is None:
            return
        line = " ".join(line.split())[:300]
        if fatal:
            self.fatal.append(line)
            self.step.problem(line)
        else:
            self.step.say(line)


# ---- what is shipped ---------------------------------------------------------------------------------------------------------


def pip(folder: Path, *arguments: str) -> str | None:
    """Install from a folder; return pip's last word if it fails."""
    command = [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", str(folder), "--disable-pip-version-check"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="\n", flush=True)
    return (
        None if done.returncode == 0 else (done.stderr.strip().splitlines() or [f"pip ends with status {done.returncode}"])[-1]
    )


def install(found: Preflight, folder: Path) -> None:
    """Install the wheels of a folder: all at once, or if that fails one by one, so that one does not keep out the others."""
    wheels = sorted(map(str, folder.glob("*.whl")))
    if not wheels:
        found.check("wheels", lambda: f"wheels in {folder}")
    elif pip(folder, *wheels) is not None:
        for wheel in wheels:
            problem = pip(folder, "--no-deps", wheel)
            if problem is not None:
                found.check("wheels", lambda wheel=wheel, problem=problem: f"{Path(wheel).name}: {problem}")  # type: ignore[misc]
    importlib.invalidate_caches()


# ---- checks: each returns what is missing ------------------------------------------------------------------------------------


def imports(name: str) -> str | None:
    try:
        importlib.import_module(name)
    except ImportError as error:
        return f"{name}: {error}"
    return None


def driver() -> str | None:
    from gpuboost.backends.cuda import availability

    version, remark = availability.driver()
    return None if version else f"an NVIDIA driver: {remark}"


def usable_card() -> str | None:
    """Return why CUDA cannot be used, as the library itself says it."""
    from gpuboost.devices import device_problem

    problem = device_problem(None)
    return None if problem is None else f"a usable card: {problem.reason}. {problem.advice}"


def compiled_kernels() -> str | None:
    """Return which kernels can neither be loaded nor compiled."""
    from gpuboost.backends.cuda import fatbin, kernels

    matching, n_files = fatbin.matching()
    if matching == n_files:
        return None
    try:
        import cupy

        code = 'extern "C" __global__ void nothing() {}'
        cupy.RawModule(code=code, options=kernels.OPTIONS).get_function("nothing")
    except Exception as error:
        return f"kernels: {n_files - matching} of {n_files} files have no fatbin in {fatbin.folder()}, and NVRTC fails: {error}"
    return None


def compiler() -> str | None:
    """Return that only fatbins can be run, if it is so."""
    import cupy

    try:
        cupy.RawModule(code='extern "C" __global__ void nothing() {}').get_function("nothing")
    except Exception as error:
        return f"NVRTC: only fatbins run, without the micro-benchmarks' kernels ({error})"
    return None


def warm_loops() -> str | None:
    """Compile the loops of the CPU backend that the trainings run."""
    import numpy as np

    import gpuboost
    from gpuboost.doctor import digest

    digest("cpu")  # as the step facts asks for it
    X, y = np.arange(120.0).reshape(40, 3) % 7, np.arange(40) % 3
    gpuboost.fit(X, y, device="cpu", n_estimators=2)
    for dtype in (np.uint8, np.int16):
        gpuboost.fit(X.astype(dtype), y, device="cpu", n_estimators=2, max_leaf_nodes=3, eval_set=(X.astype(dtype), y))
    return None


def warm_card() -> str | None:
    """Compile the kernels of two trainings, which CuPy keeps on disk; return that the CPU trains other models, if it is so."""
    import numpy as np

    import gpuboost

    X, y = np.arange(1200.0).reshape(400, 3) % 7, np.arange(400) % 3
    for algorithm in ("adaboost-mh", "abc-boost"):
        models = [gpuboost.fit(X, y, algorithm=algorithm, device=device, n_estimators=3) for device in ("cuda", "cpu")]
        if len({model.ensemble_.digest() for model in models}) > 1:
            return f"equality: {algorithm} trains other models on the card than on the CPU"
    return None


def kept_loops() -> str | None:
    """Return that compiled loops are not kept, if it is so."""
    from gpuboost.backends.cpu.jit import copy

    folder = getattr(getattr(copy, "_cache", None), "cache_path", None)
    if folder and os.access(folder, os.W_OK):
        return None
    return "a folder for compiled loops: every step compiles them; set NUMBA_CACHE_DIR"


def data_file(folder: Path, name: str, arrays: tuple[str, ...]) -> str | None:
    """Read a data file whole; return what it lacks."""
    import numpy as np

    path = folder / name
    if not path.exists():
        return f"{path}: data of that shape are made"
    with np.load(path) as z:
        lacking = [key for key in arrays if key not in z]
        if not lacking:
            for key in arrays:
                len(z[key])
    return f"{path}: it has no {', '.join(lacking)}" if lacking else None


def disk(folder: Path) -> str | None:
    """Write a megabyte; return that little is left, if it is so."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    free = shutil.disk_usage(folder).free
    return None if free >= DISK_BYTES else f"space: {free >> 20} MiB are free in {folder}"


def one_step_needs(name: str) -> str | None:
    there = shutil.which(name) if "-" in name else importlib.util.find_spec(name)
    return None if there else f"{name}: {FOR_A_STEP[name]}"


# ---- all ---------------------------------------------------------------------------------------------------------------------


def installed(name: str) -> str | None:
    try:
        return version(DISTRIBUTIONS.get(name, name))
    except PackageNotFoundError:
        return None


def on_card(found: Preflight) -> None:
    """Check what a card needs, as far as it can be known."""
    found.check("driver", driver, fatal=True)
    found.check("CuPy", lambda: imports("cupy"), fatal=True)
    if not found.fatal:
        found.check("card", usable_card, fatal=True)
    if not found.fatal:
        found.check("kernels", compiled_kernels, fatal=True)
    if not found.fatal:
        found.check("compiler", compiler)
        found.check("trainings on the card", warm_card)


def main(step: Step) -> None:
    found = Preflight(step)
    if step.wheels is not None:
        install(found, step.wheels)
    versions: dict[str, Any] = {name: installed(name) for name in (*NEEDED, *FOR_A_STEP)}
    numbers = ", ".join(f"{name} {number}" for name, number in versions.items() if number)
    step.say(f"Python {sys.version.split()[0]}, {numbers}")
    for name in NEEDED:
        found.check(name, lambda name=name: imports(name), fatal=True)  # type: ignore[misc]
    found.check("disk", lambda: disk(step.folder), fatal=True)
    if not found.fatal and not step.dry_run:
        on_card(found)
    for name in FOR_A_STEP:
        found.check(name, lambda name=name: one_step_needs(name))  # type: ignore[misc]
    if step.data_dir is not None and "numpy" in sys.modules:
        folder = step.data_dir
        found.check("mnist.npz", lambda: data_file(folder, "mnist.npz", ("X_train", "y_train", "X_test", "y_test")))
        found.check("covtype.npz", lambda: data_file(folder, "covtype.npz", ("X", "y")))
    if found.fatal:
        step.problem("nothing can be measured here")
        sys.exit(HOPELESS)
    found.check("the CPU's loops", warm_loops)
    found.check("the CPU's loops on disk", kept_loops)


if __name__ == "__main__":
    run("preflight", main)

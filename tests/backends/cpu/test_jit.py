"""Compiled loops are kept for the next process, and not beyond their sources."""

from __future__ import annotations

import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import gpuboost
from gpuboost.backends.cpu import loops, pruning

LOOP_MODULES = [f"{package.__name__}.{m.name}" for package in (loops, pruning) for m in pkgutil.iter_modules(package.__path__)]

IMPORTED = """
import importlib, sys

def loaded():
    return {name for name in sys.modules if name.partition(".")[0] == "gpuboost"}

for module in sys.argv[1:]:
    for name in loaded():  # as in a new process, which would import NumPy and numba again
        del sys.modules[name]
    importlib.import_module(module.rpartition(".")[0])  # a package, which runs what it runs for every module
    before = loaded()
    importlib.import_module(module)
    packages = {name for name in loaded() if hasattr(sys.modules[name], "__path__")}  # they only hold documentation
    found = loaded() - before - packages
    from gpuboost.backends.cpu.jit import imported
    print(len(found), ",".join(sorted(found - imported(module))) or "nothing")
"""


@pytest.fixture(scope="module")
def missing() -> dict[str, tuple[int, str]]:
    """How many modules a module of loops loads, and which of them are not hashed, by its name."""
    words = run(IMPORTED, *LOOP_MODULES)
    return {module: (int(n), names) for module, n, names in zip(LOOP_MODULES, words[::2], words[1::2], strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("module", LOOP_MODULES)
def test_all_that_a_module_imports_is_hashed(module: str, missing: dict[str, tuple[int, str]]) -> None:
    """What the process has loaded for a module of loops is what its loops are kept with."""
    n_found, not_hashed = missing[module]
    assert n_found >= 3  # itself, and how loops are compiled
    assert not_hashed == "nothing"


TWINS = """
from gpuboost import exactmath
from gpuboost.backends.cpu.loops.logarithm import minus_log2
print(float(exactmath.minus_log2(0.3)).hex(), float(minus_log2(0.3)).hex())
"""


@pytest.mark.slow
def test_a_loop_is_compiled_anew_when_a_constant_of_another_module_changes(tmp_path: Path) -> None:
    package = tmp_path / "gpuboost"
    shutil.copytree(Path(gpuboost.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))

    def host_and_loop() -> list[str]:
        return run(TWINS, folder=tmp_path / "loops", path=tmp_path)

    host, loop = host_and_loop()
    source = package / "exactmath.py"
    constant = "LOG2_COEFFICIENTS = tuple(2 / "
    assert source.read_text().count(constant) == 1
    source.write_text(source.read_text().replace(constant, "LOG2_COEFFICIENTS = tuple(2.125 / "))
    changed_host, changed_loop = host_and_loop()
    assert host == loop != changed_host == changed_loop


LOOP = """
import numpy as np
from gpuboost.backends.cpu.loops.sweeps import purity
purity(np.array([3, 1], np.int32), 2)
print(sum(purity.stats.cache_hits.values()), sum(purity.stats.cache_misses.values()))
"""


def run(program: str, *arguments: str, folder: Path | None = None, path: Path | None = None) -> list[str]:
    """Return the words that a program prints, with its cache in a folder, and the package of another path if one is given."""
    path = path or Path(gpuboost.__file__).parents[1]
    environment = {"PYTHONPATH": str(path)}
    if folder is not None:
        environment["NUMBA_CACHE_DIR"] = str(folder)
    command = [sys.executable, "-c", program, *arguments]
    result = subprocess.run(command, cwd=path, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


def count(folder: Path, program: str) -> list[str]:
    """Return how many loops a program has loaded from a folder and how many it has compiled."""
    return run(program, folder=folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a process has filled."""
    path = tmp_path_factory.mktemp("loops")
    assert count(path, LOOP) == ["0", "1"]
    return path


@pytest.mark.slow
def test_a_second_process_compiles_nothing(folder: Path) -> None:
    assert count(folder, LOOP) == ["1", "0"]


READ_ONLY = """
import tempfile
from numba.core import caching
def refuse(*arguments, **named):
    raise PermissionError("read-only")
tempfile.TemporaryFile = caching.IndexDataCacheFile.save = refuse
"""


@pytest.mark.slow
def test_a_folder_that_can_only_be_read_is_read(folder: Path) -> None:
    """As in a container image: numba itself passes over a folder that it cannot write to."""
    assert count(folder, READ_ONLY + LOOP) == ["1", "0"]
    assert count(folder, READ_ONLY + LOOP.replace("np.int32", "np.int64")) == ["0", "1"]

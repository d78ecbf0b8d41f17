"""Compiled loops are kept for the next process, and not beyond their sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpuboost
from gpuboost.backends.cpu import jit
from gpuboost.backends.cpu.loops import sweeps as sweep_loops


def test_a_change_of_any_source_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: Any = sweep_loops.purity
    codegen = loop.targetctx.codegen()
    keys = [loop._cache._index_key((), codegen)]
    monkeypatch.setattr(jit, "SOURCES", "others")
    keys += [loop._cache._index_key((), codegen)]
    assert keys[0] != keys[1]
    assert keys[0][0] == keys[1][0]


LOOP = """
import numpy as np
from gpuboost.backends.cpu.loops.sweeps import purity
purity(np.array([3, 1], np.int32), 2)
print(sum(purity.stats.cache_hits.values()), sum(purity.stats.cache_misses.values()))
"""


def count(folder: Path, program: str) -> list[str]:
    """Run a program with its cache in a folder, and return how many loops it has loaded from there and how many compiled."""
    environment = {"NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": str(Path(gpuboost.__file__).parents[1])}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a process has filled."""
    path = tmp_path_factory.mktemp("loops")
    assert count(path, LOOP) == ["0", "1"]
    return path


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

"""Compiled loops are kept for the next process, and not beyond their sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpuboost
from gpuboost.backends import cpu_growth, jit


def test_a_change_of_any_source_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop: Any = cpu_growth.purity
    codegen = loop.targetctx.codegen()
    keys = [loop._cache._index_key((), codegen)]
    monkeypatch.setattr(jit, "SOURCES", "others")
    keys += [loop._cache._index_key((), codegen)]
    assert keys[0] != keys[1]
    assert keys[0][0] == keys[1][0]


LOOP = """
import numpy as np
from gpuboost.backends.cpu_growth import purity
purity(np.array([3, 1], np.int32), 2)
print(sum(purity.stats.cache_hits.values()), sum(purity.stats.cache_misses.values()))
"""


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    environment = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(Path(gpuboost.__file__).parents[1])}
    results = [subprocess.run([sys.executable, "-c", LOOP], env=environment, capture_output=True, text=True) for _ in range(2)]
    assert [result.stdout.split() for result in results] == [["0", "1"], ["1", "0"]], results[0].stderr

"""The section "Rows that do not fit in memory" of the README: its code runs, small, and both ways make one model."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost
from tests.cli.tables import NUMPY, told

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

README = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("### Rows that do not fit in memory")[2].partition("\n##")[0]


def test_the_section_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows").mkdir()
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, 300)
    X = rng.normal(size=(300, 2)) + label[:, None]
    for i in range(3):
        part = slice(100 * i, 100 * i + 100)
        parquet.write_table(pa.table({"a": X[part, 0], "b": X[part, 1], "label": label[part]}), f"rows/{i}.parquet")
    (block,) = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    fast = 'n_estimators=3, device="numpy", random_state=0'
    small = block.replace("n_estimators=300, examples_per_round=30_000", fast).replace("n_estimators=300", fast)
    assert small.count(fast) == 2
    file, stream = small.split("\n\n")
    names: dict[str, Any] = {"gpuboost": gpuboost, "X_valid": pa.table({"a": X[:50, 0], "b": X[:50, 1]}), "y_valid": label[:50]}
    exec(file, names)
    whole = gpuboost.fit(X, label, n_estimators=3, device="numpy", random_state=0)
    assert names["model"].ensemble_.digest() == whole.ensemble_.digest()
    encode, fit = (re.search(rf"`gpuboost ({start} .*?)`", SECTION) for start in ("encode rows/", "fit rows.codes"))
    assert encode is not None
    assert fit is not None
    told(*shlex.split(encode[1]))
    settings = ("--set", "n_estimators=3", "--set", "random_state=0")
    assert told(*shlex.split(fit[1]), *NUMPY, *settings)["digest"] == whole.ensemble_.digest()
    exec(stream, names)
    command = re.search(r"`gpuboost (fit rows/ .*?)`", SECTION)
    assert command is not None
    assert told(*shlex.split(command[1]), *NUMPY, "--set", "n_estimators=3")["digest"] == names["model"].ensemble_.digest()

"""Those who wait are told of the first loop that is compiled, and only if one is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpuboost


@pytest.mark.slow
def test_the_first_command_says_that_it_compiles(tmp_path: Path) -> None:
    data, model = tmp_path / "d.csv", tmp_path / "m"
    data.write_text("x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(20)))
    X, y = np.arange(20.0)[:, None], np.array(["a", "b"] * 10)
    gpuboost.fit(X, y, device="numpy", n_estimators=1).save(model)
    command = [sys.executable, "-m", "gpuboost", "evaluate", model, data, "--target", "y", "--device", "cpu", "--jobs", "1"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "loops")}
    told = [subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stderr for _ in range(2)]
    assert [text.count("Compiling the loops for this CPU") for text in told] == [1, 0]

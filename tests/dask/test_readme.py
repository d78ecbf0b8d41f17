"""The section "Many machines" of the README: its programs run as a user would paste them, on a few rows and rounds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("distributed")
pytest.importorskip("dask.dataframe")
pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as parquet

import gpuboost

ROOT = Path(__file__).resolve().parents[2]
SECTION = (ROOT / "README.md").read_text(encoding="utf-8").partition("### Many machines")[2].partition("\n## ")[0]
ON_CPUS, ON_GPUS = re.findall(r"^```python\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
N_ESTIMATORS = 3


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the folder "rows" of three files, as the programs expect."""
    rng = np.random.default_rng(0)
    label = np.array(["no", "yes", "perhaps"])[rng.integers(0, 3, 300)]
    X = rng.normal(size=(300, 2)) + (label == "yes")[:, None] - (label == "no")[:, None]
    (tmp_path / "rows").mkdir()
    for i in range(3):
        part = slice(100 * i, 100 * i + 100)
        table = pa.table({"a": X[part, 0], "b": X[part, 1], "label": label[part]})
        parquet.write_table(table, tmp_path / "rows" / f"{i}.parquet", row_group_size=40)
    return tmp_path


def few_rounds(program: str, device: str) -> str:
    assert program.count("n_estimators=300") == 1
    program = program.replace('device="cuda", ', "").replace(
        "n_estimators=300", f'n_estimators={N_ESTIMATORS}, device="{device}"'
    )
    return program.replace("(n_workers=", '(dashboard_address=":0", n_workers=')  # the usual port may be taken


def run(program: str, folder: Path) -> str:
    """Run a program in a process of its own; return what it prints."""
    (folder / "train.py").write_text(program, encoding="utf-8")
    path = os.pathsep.join([str(ROOT), str(folder)])
    done = subprocess.run(
        [sys.executable, "train.py"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_model(folder: Path, **parameters: object) -> None:
    """The file has the model of one process on all rows."""
    table = pa.concat_tables([parquet.read_table(folder / "rows" / f"{i}.parquet") for i in range(3)])
    y = table.column("label").to_numpy(zero_copy_only=False)
    X = table.drop_columns("label")
    whole = gpuboost.fit(X, y, n_estimators=N_ESTIMATORS, device="numpy", **parameters)
    model = gpuboost.load(folder / "model.safetensors")
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    assert model.ensemble_.digest() == whole.ensemble_.digest()


@pytest.mark.slow
@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.exhaustive)])
def test_the_program_for_cpus_runs(folder: Path, device: str) -> None:
    program = few_rounds(ON_CPUS, device).replace("n_estimators=", "random_state=0, n_estimators=")
    printed = run(program, folder)
    check_model(folder, early_stopping="patience", random_state=0)
    table = pa.concat_tables([parquet.read_table(folder / "rows" / f"{i}.parquet") for i in range(3)])
    predicted = gpuboost.load(folder / "model.safetensors").predict(table.drop_columns("label"))
    wrong = np.mean(predicted != table.column("label").to_numpy(zero_copy_only=False))
    assert printed == f"wrong on the rows themselves: {wrong}\n"


def test_the_program_for_gpus_says_that_it_has_not_run_on_them() -> None:
    before = SECTION[: SECTION.index(ON_GPUS)].splitlines()[-3:]
    assert any("**Not yet run on cards:**" in line for line in before)
    assert 'device="cuda"' in ON_GPUS


@pytest.mark.exhaustive
def test_the_program_for_gpus_runs_on_cpus(folder: Path) -> None:
    """In place of dask-cuda, which may be missing, stands a module that has Dask's own cluster under its name."""
    (folder / "dask_cuda.py").write_text("from distributed import LocalCluster as LocalCUDACluster\n", encoding="utf-8")
    program = few_rounds(ON_GPUS, "numpy").replace(
        "LocalCUDACluster()", 'LocalCUDACluster(dashboard_address=":0", n_workers=2)'
    )
    run(program, folder)
    check_model(folder)

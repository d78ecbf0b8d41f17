"""``kernels/build.py``, with a compiler that only writes down what it is asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuboost.backends.cuda import fatbin, kernels

SCRIPT = kernels.source_folder() / "build.py"
FILES = sorted(path.stem for path in kernels.source_folder().glob("*.cu"))

COMPILER = f"""#!{sys.executable}
import os, sys
from pathlib import Path
if sys.argv[1] == "--version":
    print("Cuda compilation tools, release 13.0, V13.0.88")
    sys.exit()
source = Path(sys.argv[-1])
if source.stem == os.environ.get("FAIL"):
    sys.exit(f"{{source.name}}(7): error: expected a declaration")
Path(sys.argv[sys.argv.index("-o") + 1]).write_text("\\n".join(sys.argv[1:-3]) + source.read_text())
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the imagined compiler is a script")


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    compiler = tmp_path / "nvcc"
    compiler.write_text(COMPILER)
    compiler.chmod(0o755)
    monkeypatch.setenv("NVCC", str(compiler))
    monkeypatch.setenv("PYTHONPATH", str(Path(kernels.__file__).parents[3]))
    monkeypatch.setenv(fatbin.VARIABLE, str(tmp_path / "out"))
    return tmp_path / "out"


def build(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_every_file_is_compiled_as_at_run_time(target: Path) -> None:
    result = build(target)
    assert result.returncode == 0, result.stderr
    assert f"{len(FILES)} fatbins" in result.stdout
    assert sorted(path.name for path in target.iterdir()) == sorted([*(f"{file}.fatbin" for file in FILES), fatbin.MANIFEST])
    for file in FILES:
        assert fatbin.find(file) == target / f"{file}.fatbin"
        command, _, text = (target / f"{file}.fatbin").read_text().partition("code=compute_120")
        assert text == kernels.source(file)
        options = command.split("\n")
        assert options[0] == "-fatbin"
        assert set(kernels.OPTIONS) <= set(options)
        codes = [f"-gencode=arch=compute_{a},code=sm_{a}" for a in (75, 80, 86, 89, 90, 100, 120)]
        assert options[-8:] == [*codes, "-gencode=arch=compute_120,"]
    assert json.loads((target / fatbin.MANIFEST).read_text())["nvcc"] == "13.0"
    assert fatbin.matching()[0] == fatbin.matching()[1]


@pytest.mark.slow
def test_a_file_that_does_not_compile(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIL", FILES[-1])
    result = build(target)
    assert result.returncode == 1
    assert f"{FILES[-1]}.cu(7): error: expected a declaration" in result.stderr
    assert "nothing was written" in result.stderr
    assert list(target.iterdir()) == []


@pytest.mark.slow
def test_a_failure_leaves_an_older_build(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(target)
    before = {path.name: path.read_bytes() for path in target.iterdir()}
    monkeypatch.setenv("FAIL", FILES[-1])
    assert build(target).returncode == 1
    assert {path.name: path.read_bytes() for path in target.iterdir()} == before


def test_no_compiler(target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVCC")
    monkeypatch.setenv("PATH", str(target))
    monkeypatch.setenv("CUDA_PATH", str(target))
    result = build(target)
    assert result.returncode == 1
    assert "nvcc was not found" in result.stderr
    assert "Install the CUDA toolkit" in result.stderr
    assert not target.exists()


@pytest.mark.parametrize("arguments", [(), ("-h",), ("a", "b")])
def test_usage(arguments: tuple[str, ...]) -> None:
    result = build(*arguments)
    assert result.returncode == 1
    assert "usage:" in result.stderr

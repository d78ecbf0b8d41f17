"""Whatever a table is: fit ends in a model that can predict it, or in one line that says why not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner, Result

from gpuboost.cli import main
from gpuboost.cli.reading.tables import Reading
from tests.cli.reading.odd_files import odd_file

N_FILES = 100


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def check_failure(result: Result) -> None:
    """One line says what is wrong, and it is not our fault."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 1
    assert result.stdout == ""
    errors = [line for line in result.stderr.splitlines() if not line.startswith(("Note: ", "Warning: "))]
    assert len(errors) == 1
    assert errors[0].startswith("Error: ")
    assert "unexpected" not in errors[0]


@pytest.mark.slow
def test_odd_files(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    n_files = pytestconfig.getoption("--odd-files") or N_FILES
    trained = 0
    for seed in range(n_files):
        random = Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        path, model, out = odd_file(random, folder), folder / "model", folder / "out.csv"
        target = random.choice(["y"] * 6 + ["-1", "a"])
        settings = ("--set", "n_estimators=2", "--device", "numpy", "--quiet")
        result = run("fit", str(path), "--target", target, "--out", str(model), *settings)
        if result.exit_code == 0:
            trained += 1
            assert model.exists()
            if seed % 4 == 0:
                told = run("predict", str(model), str(path), "--out", str(out), "--device", "numpy")
                assert told.exit_code == 0, told.stderr
                assert f"for {Reading().read(str(path)).n_rows} rows" in told.stdout
        else:
            check_failure(result)
        assert {file.name for file in folder.iterdir()} <= {path.name, *(["model", "out.csv"] if result.exit_code == 0 else [])}
    assert 0.05 * n_files < trained < 0.8 * n_files  # both ends are met

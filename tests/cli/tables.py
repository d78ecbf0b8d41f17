"""Small tables for the tests of the command line, and short ways to run it."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner, Result

from gpuboost.cli import main

QUICK = ("--device", "numpy", "--set", "n_estimators=4")
NUMPY = ("--device", "numpy")


def run(*arguments: object, status: int = 0, stdin: bytes | None = None) -> Result:
    """Run a command, and check its exit status."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == status, result.output
    assert "Traceback" not in result.output
    return result


def told(*arguments: object) -> dict[str, Any]:
    """Return the object that a command prints with ``--json``."""
    result = run(*arguments, "--json")
    assert result.stdout.count("\n") == 1
    facts: dict[str, Any] = json.loads(result.stdout)
    return facts


def refused(*arguments: object, status: int = 1) -> str:
    """Return the one line that says why a command fails."""
    lines = [line for line in run(*arguments, status=status).stderr.splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1
    return lines[0]


def flowers(n_rows: int = 60, seed: int = 0) -> tuple[list[str], list[list[Any]]]:
    """Names and rows of a table: two numbers that tell three kinds apart, an integer that does not, and the kind."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n_rows)
    wide, long = (np.round(kinds * step + rng.normal(size=n_rows), 3) for step in (2, -3))
    named = [["daisy", "rose, red", "tulip"][k] for k in kinds]
    noise = rng.integers(0, 5, n_rows)
    return ["width", "length", "noise", "kind"], [
        list(row) for row in zip(wide.tolist(), long.tolist(), noise.tolist(), named, strict=True)
    ]


def write(
    path: Path, names: Sequence[str] | None, rows: Iterable[Sequence[Any]], separator: str = ",", end: str = "\n"
) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=separator, lineterminator=end)
        writer.writerows([*([names] if names else []), *rows])
    return path


def read(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))

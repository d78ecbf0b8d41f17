"""Standard streams that are closed, full, or of an encoding of long ago; and signals at any moment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.tables import NUMPY, QUICK, flowers, run, write

ROOT = Path(__file__).parents[2]
LATIN = {"PYTHONIOENCODING": "latin-1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and its table, whose labels are Japanese."""
    folder = tmp_path_factory.mktemp("flowers")
    names, rows = flowers()
    data = write(folder / "t.csv", names, [[*row[:-1], row[-1].replace("tulip", "日本")] for row in rows])
    run("fit", data, "--target", "kind", "--out", folder / "m", *QUICK)
    return folder


def shell(folder: Path, words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a command with what a shell can do to its streams."""
    return subprocess.run(
        f"{sys.executable} -m gpuboost {words}",
        shell=True,
        capture_output=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("predict m t.csv --device numpy --out - >&-", "the standard output is closed: nothing can be written to -"),
        ("predict m - --device numpy --out p.csv <&-", "the standard input is closed: there is nothing to read from -"),
        ("--version > /dev/full", "No space left on device"),
        ("--help > /dev/full", "No space left on device"),
        ("fit --help > /dev/full", "No space left on device"),
    ],
)
def test_streams_that_are_closed_or_full(folder: Path, words: str, message: str) -> None:
    if "/dev/full" in words and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    result = shell(folder, words)
    assert (result.returncode, result.stdout, result.stderr.decode()) == (1, b"", f"Error: {message}\n")


@pytest.mark.slow
def test_nobody_listens_to_remarks(folder: Path) -> None:
    result = shell(folder, f"fit t.csv --target kind --out quiet {' '.join(QUICK)} --json 2>&-")
    assert (result.returncode, json.loads(result.stdout)["rounds"]) == (0, 4)


@pytest.mark.slow
def test_predictions_are_utf_8_everywhere(folder: Path) -> None:
    result = shell(folder, "predict m t.csv --device numpy --out -", **LATIN)
    run("predict", folder / "m", folder / "t.csv", "--out", folder / "p.csv", *NUMPY)
    assert (result.returncode, result.stderr) == (0, b"")
    assert result.stdout == (folder / "p.csv").read_bytes()
    assert "日本".encode() in result.stdout


@pytest.mark.slow
def test_a_terminal_that_lacks_characters(folder: Path) -> None:
    words = f"fit t.csv --target kind --out 'ü日.st' {' '.join(QUICK)}"
    result = shell(folder, f"{words} --json", **LATIN)
    assert (result.returncode, json.loads(result.stdout)["model"]) == (0, "ü日.st")
    result = shell(folder, words, **LATIN)
    assert result.returncode == 0
    assert "\nü\\u65e5.st: sha256 " in result.stdout.decode("latin-1")
    text = shell(folder, "inspect m", **LATIN)
    assert (text.returncode, b"'\\u65e5\\u672c'" in text.stdout) == (0, True)
    assert json.loads(shell(folder, "inspect m --json", **LATIN).stdout)["classes"] == ["daisy", "rose, red", "日本"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signals_while_the_data_are_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(pipe := tmp_path / "t.csv")
    number = getattr(signal, name)
    words = ["fit", str(pipe), "--target", "y", "--out", str(tmp_path / "m"), "--json", *QUICK]
    process = subprocess.Popen(
        [sys.executable, "-m", "gpuboost", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # also where nohup has the tests run
    )
    writer = None
    while writer is None and process.poll() is None:
        try:
            writer = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            continue
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=300)
    assert writer is not None
    os.close(writer)
    assert (process.returncode, stderr) == (130, "Interrupted.\n")
    assert json.loads(stdout) == {"error": "Interrupted.", "exit_status": 130}


@pytest.mark.parametrize(
    "meanwhile",
    [
        "exec('signal.raise_signal(signal.SIGINT)')",  # as the makers of named tuples and data classes do
        "Deaf()",  # what no exception gets out of
    ],
)
def test_signals_while_modules_are_imported(meanwhile: str) -> None:
    code = (
        "import signal, sys, time\nfrom gpuboost.cli.interrupts import interrupt_on\nclass Deaf:\n    def __del__(self):\n"
        f"        signal.raise_signal(signal.SIGINT)\ninterrupt_on('SIGINT')\ntry:\n    {meanwhile}\n    while True:\n"
        "        time.sleep(0.01)\n"
        "except KeyboardInterrupt:\n    sys.exit(130)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        cwd=ROOT,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert (result.returncode, result.stderr) == (130, b"")

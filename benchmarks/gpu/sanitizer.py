"""The step sanitizer: compute-sanitizer's tools over a small fit."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.gpu.step import Skip, Step, run

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND_ERRORS = 99
OUT_OF_TIME = (124, 137)
REFUSED = ("Device not supported", "Unable to find injection library", "not supported on this")
"""What compute-sanitizer says where it cannot work at all."""


def check(step: Step, name: str, command: list[str], seconds: float) -> dict[str, Any]:
    """Run a command with its own log. An error, or an exit status other than 0, is a problem."""
    log, begun = step.folder / f"sanitizer-{name}.log", time.perf_counter()
    limited = ["timeout", "--kill-after=2", f"{max(seconds, 0.1):.1f}", *command]  # it ends the command's children, too
    with log.open("w", encoding="utf-8") as file:
        status = subprocess.run(limited, stdout=file, stderr=subprocess.STDOUT, check=False, cwd=ROOT).returncode
    if status in OUT_OF_TIME:
        return {"status": "out of time", "seconds": time.perf_counter() - begun}
    text = log.read_text(encoding="utf-8", errors="replace")
    refused = next((line.strip() for line in text.splitlines() if any(phrase in line for phrase in REFUSED)), None)
    if refused:
        raise Skip(refused)
    last = (text.strip().splitlines() or [""])[-1]
    if status != 0:
        step.problem(f"{name} ends with status {status}: {last}")
    return {"status": "ok" if status == 0 else "failed", "seconds": time.perf_counter() - begun, "says": last}


def main(step: Step) -> None:
    small = [sys.executable, "-m", "benchmarks.gpu.small_fit", *step.choose([], ["--dry-run"])]
    results = {"alone": step.attempt("alone", check, step, "alone", small, step.left())}
    if step.dry_run:
        raise Skip("compute-sanitizer needs a card")
    if shutil.which("compute-sanitizer") is None:
        raise Skip("there is no compute-sanitizer")
    for i, tool in enumerate(TOOLS):
        command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FOUND_ERRORS), *small]
        seconds = step.left() / (len(TOOLS) - i) if i else step.left(0.4)
        results[tool] = step.attempt(tool, check, step, tool, command, seconds)
    statuses = {name: one["status"] if one else "skipped" for name, one in results.items()}
    step.say("compute-sanitizer: " + ", ".join(f"{name} {status}" for name, status in statuses.items()))
    if all(results[tool] is None for tool in TOOLS) and not step.found["problems"]:
        raise Skip(step.found[TOOLS[0]]["skipped"])


if __name__ == "__main__":
    run("sanitizer", main)

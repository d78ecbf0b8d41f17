"""Run Python under a sanitizer that watches the emulated kernels.

A sanitizer must be in a process from its start, so that everything here starts a new one. What it finds ends that process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from tests.cuda_on_cpu import emulator

ROOT = Path(__file__).resolve().parents[2]
SANITIZERS = ("asan", "tsan")
"""Addresses and undefined behaviour; races."""

LIBRARIES = {"asan": ("libasan.so", "libstdc++.so"), "tsan": ("libtsan.so",)}
SETTINGS = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"},
    # The history reaches back far enough to tell both sides of a race.
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1 history_size=7 die_after_fork=0"},
}


@cache
def library(name: str) -> str | None:
    """Return the path of a library of the compiler."""
    path = emulator.compiler(f"-print-file-name={name}").strip()
    return path if Path(path).is_absolute() else None


def environment(mode: str) -> dict[str, str]:
    """Return the environment for a process that emulates kernels in that mode; "" is without a sanitizer."""
    variables = {**os.environ, "GPUBOOST_EMULATOR_SANITIZE": mode, "OPENBLAS_NUM_THREADS": "1"}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    if mode:
        variables |= SETTINGS[mode]
        variables["LD_PRELOAD"] = ":".join(filter(None, map(library, LIBRARIES[mode])))
    return variables


@cache
def prefix(mode: str) -> tuple[str, ...]:
    """Return what must stand before a command: the thread sanitizer may not get along with randomised addresses."""
    fixed_addresses = ("setarch", "x86_64", "-R")
    if mode == "tsan" and probe(mode, ()) is not None and shutil.which("setarch") and probe(mode, fixed_addresses) is None:
        return fixed_addresses
    return ()


def probe(mode: str, before: tuple[str, ...]) -> str | None:
    """Return why a sanitized process does not work, or None."""
    program = "from tests.cuda_on_cpu import emulator; emulator.runtime()"
    done = subprocess.run(
        [*before, sys.executable, "-c", program], env=environment(mode), cwd=ROOT, capture_output=True, text=True, check=False
    )
    return None if done.returncode == 0 else reason(done.stderr) or f"exit status {done.returncode}"


@cache
def unavailable(mode: str) -> str | None:
    """Return why a mode cannot be used here, or None."""
    if emulator.unavailable() or not mode:
        return emulator.unavailable()
    missing = [name for name in LIBRARIES[mode] if library(name) is None]
    if missing:
        return f"{emulator.CXX} has no {', '.join(missing)}"
    failure = probe(mode, prefix(mode))
    return failure and f"the {mode} sanitizer does not work here: {failure}"


def run(mode: str, *arguments: str, extra: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run ``python *arguments`` in a mode, from the root of the project; standard error goes to the output."""
    return subprocess.run(
        [*prefix(mode), sys.executable, *arguments],
        env=environment(mode) | dict(extra or {}),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )


def run_pytest(mode: str, *selection: str) -> subprocess.CompletedProcess[str]:
    """Run a selection of tests in a mode. Skipped ones fail: they were meant to run.

    Parameters
    ----------
    mode : {"asan", "tsan"}
    *selection : str
        Arguments of pytest, such as a path and ``-k``.
    """
    # pytest must leave the file descriptors alone, and signals too, or the sanitizer's report would be lost.
    options = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:faulthandler", "--capture=sys")
    return run(mode, "-m", "pytest", *options, *selection, extra={"REQUIRE_EMULATOR": "1"})


def reason(output: str) -> str:
    """Return why a process failed: what the sanitizer found and the lines of kernels that it names, or the last line."""
    if report := re.search(r"^SUMMARY: (\w+: [\w-]+(?: race)?)", output, re.MULTILINE):
        places = dict.fromkeys(re.findall(r"\b\w+\.cuh?:\d+", output))
        return ", ".join([report[1], *places])
    if report := re.search(r"^.*runtime error: .*$", output, re.MULTILINE):
        return report[0]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else ""

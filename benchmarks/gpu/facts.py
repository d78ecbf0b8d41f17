"""The step facts: what the machine is, as found. Nothing is changed."""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.gpu.step import Skip, Step, run, write_whole

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("numpy", "numba", "scikit-learn", "pytest", "cupy-cuda13x", "cupy-cuda12x")
TOOLS = ("nvidia-smi", "nvcc", "compute-sanitizer", "ncu")
ASKED = (
    "name,driver_version,memory.total,memory.used,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,temperature.gpu,power.draw,"
    "power.limit,persistence_mode,compute_mode"
)


def output(*command: str) -> str:
    """Return what a program prints, if there is such a program and it succeeds."""
    if shutil.which(command[0]) is None:
        raise Skip(f"there is no {command[0]}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise Skip(f"{command[0]} ends with status {done.returncode}: {done.stderr.strip()[:200]}")
    return done.stdout.strip()


def nvidia_smi(step: Step) -> dict[str, str]:
    """Return the card's state, and keep all that nvidia-smi says."""
    write_whole(step.folder / "nvidia-smi.txt", output("nvidia-smi", "-q") + "\n")
    values = output("nvidia-smi", f"--query-gpu={ASKED}", "--format=csv,noheader").splitlines()[0].split(",")
    return dict(zip(ASKED.split(","), (value.strip() for value in values), strict=True))


def sources() -> str:
    """Return a fingerprint of the package and its kernels, for trees without git."""
    files = sorted([*ROOT.glob("gpuboost/**/*.py"), *ROOT.glob("kernels/*.cu*")])
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:16]


def installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def machine() -> dict[str, Any]:
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: number for name in PACKAGES if (number := installed(name))},
        "tools": {name: shutil.which(name) for name in TOOLS},
        "sources": sources(),
    }


def doctor(step: Step) -> dict[str, Any]:
    """Return what the doctor says; a card that cannot be used is a problem, if one is asked for."""
    command = [sys.executable, "-m", "gpuboost", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=max(step.left(), 1.0), check=False, cwd=ROOT)
    report: dict[str, Any] = json.loads(done.stdout)
    if not report["CUDA"]["usable"] and not step.dry_run:
        step.problem(f"CUDA cannot be used: {report['CUDA']['problem']}")
    return report


def main(step: Step) -> None:
    found = step.attempt("machine", machine)
    card = step.attempt("card", nvidia_smi, step)
    commit = step.attempt("commit", output, "git", "rev-parse", "HEAD")
    name = f"{card['name']}, driver {card['driver_version']}, SM {card['clocks.sm']}" if card else "no card"
    step.say(f"{found['date']}  {name}  commit {(commit or 'unknown')[:12]}  sources {found['sources']}")
    report = step.attempt("doctor", doctor, step)
    if report:
        verdicts = {what: "usable" if report[what]["usable"] else "not usable" for what in ("CPU", "CUDA")}
        step.say("doctor: " + ", ".join(f"{what} {verdict}" for what, verdict in verdicts.items()))


if __name__ == "__main__":
    run("facts", main)

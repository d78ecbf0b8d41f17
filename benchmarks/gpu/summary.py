"""Put together what the steps have found: ``summary.json`` with everything, ``summary.txt`` for reading.

    python benchmarks/gpu/summary.py DIR STEP STATUS SECONDS LIMIT      after a step
    python benchmarks/gpu/summary.py DIR --steps STEP...                before the first

It needs nothing but Python's own library.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

NOT_REACHED = "not reached"
LOG_LINES = 30
WITH_LOG = ("failed", "killed", "card lost", "out of time")
"""Where the log's end may say why."""


def read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def log_end(folder: Path, step: str) -> list[str]:
    """Return the last lines of a step's log."""
    try:
        return (folder / f"{step}.log").read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    except OSError:
        return []


def text_of(steps: dict[str, dict[str, Any]]) -> str:
    """Return the short table."""
    lines = []
    for name, step in steps.items():
        found = step.get("found", {})
        remark = found.get("skipped", "")
        seconds = "" if step["seconds"] is None else f"{step['seconds']:.0f} of {step['limit']:.0f} s"
        lines.append(f"{name:12} {step['status']:12} {seconds:>12}  {remark}".rstrip())
        lines += [f"    {line}" for line in found.get("lines", [])]
        lines += [f"    PROBLEM: {line}" for line in found.get("problems", [])]
        if step["status"] in WITH_LOG and not found.get("problems"):
            lines += [f"    | {line}" for line in step.get("log", [])]
    lines.append("; ".join(f"{name}: {step['status']}" for name, step in steps.items()))
    return "\n".join(lines) + "\n"


def main(folder: Path, *arguments: str) -> None:
    steps: dict[str, dict[str, Any]] = read(folder / "summary.json").get("steps", {})
    if arguments[0] == "--steps":
        steps = {name: {"status": NOT_REACHED, "seconds": None, "limit": None} for name in arguments[1:]}
    else:
        name, status, seconds, limit = arguments
        steps[name] = {
            "status": status,
            "seconds": float(seconds),
            "limit": float(limit),
            "found": read(folder / f"{name}.json"),
        }
        if status in WITH_LOG:
            steps[name]["log"] = log_end(folder, name)
    write(folder / "summary.json", json.dumps({"steps": steps}, indent=1) + "\n")
    write(folder / "summary.txt", text_of(steps))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

"""What the steps of ``gpu_check.sh`` share: their arguments, the time that is left, and the JSON file that each writes."""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")

SKIPPED, LOST, HOPELESS = 77, 76, 75
"""Exit statuses of a step that has nothing to do here, of one whose card is lost, and of a preflight that ends the run."""

STATUSES = frozenset({4, 46, 100, 101, 214, 220, 226, 700, 702, 709, 710, *range(714, 720), 727, 802, 805, 806, 807, 999})
"""CUDA's error numbers after which every call of the process fails: the card has gone, or a kernel has crashed."""


class Skip(Exception):
    """Something cannot be measured on this machine; the message says why."""


class CardLost(Exception):
    """The card, or this process's hold of it, is lost: what is tried next would only fail."""


def is_lost(error: BaseException | None) -> bool:
    """Return whether an error, or what has caused it, says that the card is lost."""
    while error is not None:
        if getattr(error, "status", None) in STATUSES or type(error).__name__ in ("DeviceLostError", "CardLost"):
            return True
        error = error.__cause__ or error.__context__
    return False


def write_whole(path: Path, text: str) -> None:
    """Write a file such that readers, whatever happens, see all of it or the one before."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)


def plain(value: Any) -> Any:
    """Turn NumPy's numbers into Python's for JSON."""
    return value.item() if hasattr(value, "item") else str(value)


class Step:
    """One step: what it was told, and what it has found so far.

    Every finding is on disk as soon as it is made, so a step that is killed leaves what it had.

    Parameters
    ----------
    name : str
        It writes ``<folder>/<name>.json``.
    folder : Path
    seconds : float
        When to be done.
    data_dir : Path or None
    dry_run : bool
        Run on the emulated device, with tiny shapes.
    """

    def __init__(self, name: str, folder: Path, seconds: float, data_dir: Path | None, dry_run: bool) -> None:
        self.name, self.folder, self.data_dir, self.dry_run = name, folder, data_dir, dry_run
        self.seconds = seconds
        self.deadline = time.perf_counter() + seconds
        self.wheels: Path | None = None
        self.found: dict[str, Any] = {"lines": [], "problems": []}
        self._save()

    def _save(self) -> None:
        write_whole(self.folder / f"{self.name}.json", json.dumps(self.found, indent=1, default=plain) + "\n")

    def choose(self, full: T, tiny: T) -> T:
        """Return a size for a card, or the one for a dry run."""
        return tiny if self.dry_run else full

    def left(self, share: float = 1.0) -> float:
        """Return the seconds that are left, but no more than a share of what the step had."""
        return max(0.0, min(self.deadline - time.perf_counter(), share * self.seconds))

    def earlier(self, name: str) -> dict[str, Any]:
        """Return what another step has found, nothing if it did not run."""
        try:
            found: dict[str, Any] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found

    def note(self, key: str, value: Any) -> None:
        """Keep a finding."""
        self.found[key] = value
        self._save()

    def say(self, line: str) -> None:
        """Keep a line for the short table, and print it."""
        print(line, flush=True)
        self.found["lines"].append(line)
        self._save()

    def problem(self, text: str) -> None:
        """Keep what makes the step a failed one; it goes on."""
        print(f"PROBLEM: {text}", flush=True)
        self.found["problems"].append(text)
        self._save()

    def attempt(self, key: str, measure: Callable[..., Any], *arguments: Any) -> Any:
        """Keep what ``measure`` returns, or why it returned nothing, and go on; None if there is no time left."""
        if self.left() == 0.0:
            self.note(key, {"skipped": "no time left"})
            return None
        begun = time.perf_counter()
        try:
            value = measure(*arguments)
        except Skip as reason:
            print(f"{key}: skipped: {reason}", flush=True)
            self.note(key, {"skipped": str(reason)})
            return None
        except CardLost:
            raise
        except Exception as error:
            traceback.print_exc()
            if is_lost(error):
                raise CardLost(f"{key}: {type(error).__name__}: {error}"[:400]) from error
            self.problem(f"{key}: {type(error).__name__}: {error}"[:400])
            return None
        print(f"{key}: {time.perf_counter() - begun:.1f} s", flush=True)
        self.note(key, value)
        return value


def run(name: str, main: Callable[[Step], None]) -> NoReturn:
    """Run a step as a program: ``python -m benchmarks.gpu.<module> DIR --seconds N [--data-dir D] [--dry-run]``."""
    parser = argparse.ArgumentParser(description=f"The step {name} of benchmarks/gpu_check.sh.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    step = Step(name, args.folder, args.seconds, args.data_dir, args.dry_run)
    step.wheels = args.wheels
    faulthandler.dump_traceback_later(max(args.seconds, 0.1))  # where a step hangs, its log says
    try:
        main(step)
    except Skip as reason:
        step.note("skipped", str(reason))
        print(f"skipped: {reason}")
        sys.exit(SKIPPED)
    except Exception as error:
        traceback.print_exc()
        if is_lost(error):
            step.problem(f"the card is lost: {error}"[:400])
            sys.exit(LOST)
        step.problem(f"{type(error).__name__}: {error}"[:400])
    finally:
        faulthandler.cancel_dump_traceback_later()
    sys.exit(1 if step.found["problems"] else 0)

"""Speed, memory and error of gpuboost on CPUs beside LightGBM, XGBoost and scikit-learn, in one run.

    python benchmarks/bench_cpu.py --data-dir DIR --sets pendigits,letter --threads 1,2 --repeats 3
    python benchmarks/bench_cpu.py --data-dir DIR --sets none --mnist-round

benchmarks/README.md says what is measured and how. This process stays small (it imports no array library),
because on Linux the peak memory of a child process starts at what its parent holds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import re
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

from _tables import Record, fit_table, memory_table, round_table, select, spread, target_table

HERE = Path(__file__).resolve().parent
LIBRARIES = ["lightgbm", "gpuboost", "xgboost", "histgb"]
LEAVES, ROUND_LEAVES = 20, 9


def run_child(job: Record, threads: int = 1) -> Record | None:
    """Run one job of _measure.py in a fresh process; None, and a line on stderr, where it fails."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(HERE.parent))))
    done = subprocess.run(
        [sys.executable, str(HERE / "_measure.py"), json.dumps(job)],
        env=os.environ | limits | {"PYTHONPATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        print(f"failed: {json.dumps(job)}: {reason}", file=sys.stderr)
        return None
    result: Record = json.loads(done.stdout.splitlines()[-1])
    return result


def probe() -> dict[str, str]:
    """Find the versions of the libraries that can be imported; print a line for each that cannot."""
    versions = {}
    for library in LIBRARIES:
        found = run_child({"kind": "probe", "library": library})
        if found is None:
            print(f"skipped: {library} cannot be imported here")
        else:
            versions[library] = found["version"]
    return versions


def rotated(items: list[str], by: int) -> list[str]:
    """Start the list ``by`` places later, so that nobody always runs first."""
    by %= max(len(items), 1)
    return items[by:] + items[:by]


def rounds_to(curve: list[float], target: float) -> tuple[int | None, int | None]:
    """Find the first round whose error is at most ``target``, and that from which it stays so, or None."""
    good = [error <= target for error in curve]
    first = good.index(True) + 1 if True in good else None
    stays = len(good) - good[::-1].index(False) + 1 if False in good else first
    return first, stays if stays is not None and stays <= len(good) else None


class Run:
    """The options, the libraries found, and what has been measured so far."""

    def __init__(self, options: argparse.Namespace, libraries: list[str]) -> None:
        self.options = options
        self.libraries = libraries
        self.records: list[Record] = []
        self.targets: list[Record] = []

    def fit(self, key: Record, library: str, label: str, rounds: int, leaves: int) -> None:
        """Measure one fit and keep it under ``key`` (set, threads, repeat) and ``label``."""
        key = key | {"label": label, "rounds": rounds, "leaves": leaves}
        job = key | {"kind": "fit", "library": library, "data_dir": self.options.data_dir, "variant": self.options.variant}
        result = run_child(job, key["threads"])
        if result is not None:
            self.records.append(key | result)
            print(f"{key}: {result['seconds']:.2f} s, error {result['test_error']:.4f}", file=sys.stderr)

    def error_curve(self, set_name: str) -> list[float]:
        """Find the test error of gpuboost after each round, in one fit that is not timed."""
        o = self.options
        job = {"kind": "curve", "set": set_name, "rounds": o.search_rounds, "leaves": LEAVES,
               "threads": max(o.threads), "data_dir": o.data_dir, "variant": o.variant}  # fmt: skip
        result = run_child(job, max(o.threads))
        return [] if result is None else list(result["test_errors"])

    def target(self, set_name: str, threads: int, curve: list[float]) -> Record | None:
        """Find, once LightGBM has run, the error it ended with and the rounds gpuboost needs for it."""
        known = select(self.targets, set=set_name, threads=threads)
        boosted = select(self.records, set=set_name, threads=threads, label="lightgbm")
        if not known and boosted and curve:
            error = boosted[0]["test_error"]
            first, stays = rounds_to(curve, error)
            known = [{"set": set_name, "threads": threads, "target": error, "first": first, "stays": stays}]
            self.targets += known
        return known[0] if known else None

    def compare_on(self, set_name: str) -> None:
        """Do the whole fits, and those of gpuboost to LightGBM's error, the repeats interleaved."""
        both = {"lightgbm", "gpuboost"} <= set(self.libraries)
        curve = self.error_curve(set_name) if both else []
        for repeat in range(self.options.repeats):
            for threads in self.options.threads:
                key = {"set": set_name, "threads": threads, "repeat": repeat}
                for library in rotated(self.libraries, repeat):
                    self.fit(key, library, library, self.options.rounds, LEAVES)
                target = self.target(set_name, threads, curve)
                if target and target["first"] is not None:
                    self.fit(key, "gpuboost", "gpuboost to target", target["first"], LEAVES)

    def measure_round(self, set_name: str) -> None:
        """Do the short and long fits, interleaved, whose difference is the time of some rounds."""
        libraries = [library for library in self.libraries if library in ("lightgbm", "gpuboost")]
        for repeat in range(self.options.repeats):
            for threads in self.options.threads:
                key = {"set": set_name, "threads": threads, "repeat": repeat}
                for library in rotated(libraries, repeat):
                    for rounds in self.options.round_rounds:
                        self.fit(key, library, f"round of {library}", rounds, ROUND_LEAVES)


def cpu_model() -> str:
    """Name the processor."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def machine_facts(gpuboost_version: str) -> dict[str, str]:
    """Collect what somebody needs to judge the numbers."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    commit = subprocess.run(
        ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    facts = {
        "date": time.strftime("%Y-%m-%d %H:%M %Z"), "cpu": cpu_model(), "cores": str(cores),
        "load at start": f"{os.getloadavg()[0]:.2f}", "system": platform.platform(),
        "python": platform.python_version(),
        "gpuboost": f"{gpuboost_version} ({commit.stdout.strip() or 'no commit'})",
    }  # fmt: skip
    for package in ("numpy", "numba", "scikit-learn", "lightgbm", "xgboost"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = "absent"
    return facts


def report(run: Run, facts: dict[str, str], add_rate: float | None) -> str:
    """Put all tables in one Markdown text."""
    parts = ["# gpuboost on CPUs", "\n".join(f"- {name}: {value}" for name, value in facts.items())]
    parts += ["Medians over the repeats, with [lowest, highest]; ratios are taken inside a repeat."]
    others = [r["cpu_seconds_of_others"] / r["seconds"] for r in run.records]
    if others:
        parts += [f"Cores that other processes kept busy during the fits: {spread(others)}."]
    if run.options.sets:
        parts += [f"## Whole fits, {LEAVES} leaves", fit_table(run.records, run.libraries)]
    if run.targets:
        table = target_table(run.records, run.targets, run.options.search_rounds)
        parts += ["## Time to the test error of LightGBM", table]
    if add_rate is not None:
        rounds = [r for r in run.records if r["label"].startswith("round of ")]
        parts += [f"## One round, {ROUND_LEAVES} leaves", round_table(rounds, add_rate)]
        parts += ["## Memory of gpuboost in the same fits", memory_table(rounds)]
    return "\n\n".join(parts) + "\n"


def write(out: Path, text: str, content: Record, cpu: str, quick: bool) -> None:
    """Write the report as .md and everything measured as .json, named by date and processor."""
    out.mkdir(parents=True, exist_ok=True)
    slug = re.sub(r"[^a-z0-9]+", "-", cpu.lower().replace("(r)", "")).strip("-")
    name = f"bench_cpu_{time.strftime('%Y%m%d-%H%M')}_{slug}" + ("_quick" if quick else "")
    (out / f"{name}.md").write_text(text)
    (out / f"{name}.json").write_text(json.dumps(content, indent=1, default=str) + "\n")


def numbers(text: str) -> list[int]:
    """Read positive integers between commas."""
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise ValueError(text)
    return found


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line; --quick replaces the numbers of rounds and repeats."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    add = parser.add_argument
    add("--data-dir", help="directory of NAME.npz files; without it scikit-learn's digits are used")
    add("--sets", default="pendigits,satimage,letter,mnist", help="names, or 'none'")
    add("--threads", type=numbers, default=[1, 2])
    add("--repeats", type=int, default=3)
    add("--variant", choices=["real", "discrete"], default="real", help="of gpuboost's AdaBoost.MH")
    add("--rounds", type=int, default=300, help="rounds of every library")
    add("--search-rounds", type=int, default=1000, help="rounds in which gpuboost may reach the target")
    add("--mnist-round", action="store_true", help="also the time of one round on mnist.npz")
    add("--round-rounds", type=numbers, default=[5, 15], help="rounds of the short and of the long fit")
    add("--out", type=Path, default=HERE / "results")
    add("--quick", action="store_true", help="few rounds, one repeat: does it run at all?")
    options = parser.parse_args(arguments)
    if len(options.round_rounds) != 2 or options.round_rounds[0] >= options.round_rounds[1]:
        parser.error("--round-rounds takes two increasing numbers, as in 5,15")
    if min(options.repeats, options.rounds, options.search_rounds) < 1:
        parser.error("--repeats, --rounds and --search-rounds take numbers from 1")
    options.sets = [] if options.sets == "none" else options.sets.split(",")
    if options.data_dir is None:
        options.sets = ["digits"] if options.sets else []
    else:
        wanted = options.sets + ["mnist"] * options.mnist_round
        missing = [f"{name}.npz" for name in wanted if not (Path(options.data_dir) / f"{name}.npz").is_file()]
        if missing:
            parser.error(f"no {', '.join(missing)} in {options.data_dir}")
    if options.quick:
        options.rounds, options.search_rounds, options.repeats, options.round_rounds = 10, 30, 1, [1, 3]
    return options


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    options = parse(arguments)
    versions = probe()
    facts = machine_facts(versions.get("gpuboost", "absent"))
    run = Run(options, list(versions))
    for set_name in options.sets:
        run.compare_on(set_name)
    add_rate = None
    if options.mnist_round:
        add_rate = (run_child({"kind": "add_rate"}) or {"adds_per_second": math.nan})["adds_per_second"]
        run.measure_round("mnist" if options.data_dir else "digits")
    text = report(run, facts, add_rate)
    print(text)
    content = {"facts": facts, "options": vars(options), "adds_per_second": add_rate, "targets": run.targets,
               "records": run.records}  # fmt: skip
    write(options.out, text, content, facts["cpu"], options.quick)


if __name__ == "__main__":
    main()

"""``gpuboost bench``."""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

from gpuboost.cli import options
from gpuboost.cli.program import Command

WARM_UP_ROWS, WARM_UP_ROUNDS = 200, 2


@click.command(cls=Command)
@click.argument("data", required=False)
@click.option("--target", metavar="COL", help="The column of the labels in DATA.")
@click.option("--drop", multiple=True, metavar="COL", help="A column of DATA to leave out; repeatable.")
@click.option("--algorithm", "algorithms", multiple=True, metavar="NAME", help="Repeatable; all of them if not given.")
@click.option(
    "--device",
    "devices",
    type=options.DEVICE,
    multiple=True,
    metavar="D",
    help="Repeatable; the CPU, and CUDA if it works, if not given.",
)
@click.option("--rounds", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--rows", type=click.IntRange(min=40), default=4000, show_default=True, help="Rows of the generated table.")
@click.option("--features", type=click.IntRange(min=4), default=20, show_default=True, help="Columns of it.")
@click.option("--classes", type=click.IntRange(min=2, max=16), default=5, show_default=True, help="Its classes.")
@options.jobs_option
@options.no_header_option
@options.missing_option
@options.json_option
@options.quiet_option
def bench(
    data: str | None,
    target: str | None,
    drop: tuple[str, ...],
    algorithms: tuple[str, ...],
    devices: tuple[str | int, ...],
    rounds: int,
    rows: int,
    features: int,
    classes: int,
    jobs: int | None,
    no_header: bool,
    missing: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Train with every algorithm on every device: errors, rounds a second, and whether the devices agree bit for bit.

    Three quarters of the rows of DATA, or of a generated table, are trained on, the others tested. A short training before each
    is not counted: it compiles.
    """
    from gpuboost.cli.reading.tables import Reading
    from gpuboost.cli.settings import check_algorithm
    from gpuboost.cli.training_sets import read_sets
    from gpuboost.devices import open_backend
    from gpuboost.registry import ALGORITHMS

    printer = options.Printer(as_json, quiet)
    printer.note_compiling()
    for name in algorithms:
        check_algorithm(name)
    used = devices or usable_devices()
    for device in used:
        open_backend(device, jobs).close()
    if data is None:
        X, y = generated(rows, features, classes)
    else:
        sets = read_sets(Reading(not no_header, missing, printer.note), data, target, None, None, None, drop)
        X, y = sets.X, sets.y
    runs = []
    for algorithm in algorithms or ALGORITHMS:
        for device in used:
            printer.note(f"{algorithm} on {device} ...")
            runs.append(one_run(X, y, algorithm, device, rounds, jobs))
    digests: dict[str, set[str]] = {}
    for run in runs:
        digests.setdefault(run["algorithm"], set()).add(run["digest"])
    disagreeing = [name for name, found in digests.items() if len(found) > 1]
    facts = {"rows": len(y), "rounds": rounds, "runs": runs, "agree": not disagreeing}
    printer.result(facts, report(runs))
    if disagreeing:
        raise RuntimeError(f"the devices disagree on {', '.join(disagreeing)}: this is a bug, please report it")


def usable_devices() -> tuple[str | int, ...]:
    """Return the CPU, and CUDA if it works."""
    from gpuboost.doctor import cuda_problem

    return ("cpu", "cuda") if cuda_problem() is None else ("cpu",)


def generated(n_rows: int, n_features: int, n_classes: int) -> tuple[Any, Any]:
    """Return clouds of points around two centres for each class; one row in fifty has a label by chance."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(2 * n_classes, n_features))
    cloud = rng.integers(0, 2 * n_classes, n_rows)
    X = centres[cloud] + 1.5 * rng.normal(size=(n_rows, n_features))
    y = np.where(rng.random(n_rows) < 0.02, rng.integers(0, n_classes, n_rows), cloud % n_classes)
    y[:n_classes] = np.arange(n_classes)
    return X, y


def one_run(X: Any, y: Any, algorithm: str, device: str | int, rounds: int, jobs: int | None) -> dict[str, Any]:
    """Train and test once."""
    from gpuboost.cli.settings import set_all
    from gpuboost.registry import ALGORITHMS, estimator_class

    order = np.random.default_rng(0).permutation(len(y))
    n_train = len(y) - len(y) // 4
    take = X.take if hasattr(X, "column_names") else X.__getitem__
    train, test = order[:n_train], order[n_train:]
    model = estimator_class(ALGORITHMS[algorithm].estimator)()
    set_all(model, device=device, n_jobs=jobs, random_state=0, n_estimators=WARM_UP_ROUNDS)
    model.fit(take(train[:WARM_UP_ROWS]), y[train[:WARM_UP_ROWS]])
    set_all(model, n_estimators=rounds)
    X_train = take(train)
    begun = time.perf_counter()
    model.fit(X_train, y[train])
    seconds = time.perf_counter() - begun
    return {
        "algorithm": algorithm,
        "device": str(model.device_),
        "error": float(np.mean(model.predict(take(test)) != y[test])),
        "rounds_per_second": model.n_estimators_ / seconds,
        "seconds": seconds,
        "digest": model.ensemble_.digest(),
    }


def report(runs: list[dict[str, Any]]) -> str:
    """Return the runs as a table."""
    first = {run["algorithm"]: run["digest"] for run in reversed(runs)}
    rows = [["algorithm", "device", "test error", "rounds/s", "digest", "same model"]]
    for run in runs:
        speed, error = f"{run['rounds_per_second']:.1f}", f"{100 * run['error']:.2f} %"
        same = "yes" if run["digest"] == first[run["algorithm"]] else "NO"
        rows.append([run["algorithm"], run["device"], error, speed, run["digest"][:16], same])
    return options.grid(rows, left=2)

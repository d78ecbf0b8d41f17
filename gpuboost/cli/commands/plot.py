"""``gpuboost plot``."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from gpuboost.cli import options
from gpuboost.cli.program import Command
from gpuboost.plotting import KINDS

SUFFIXES = (".png", ".svg", ".pdf")

OPTIONS = {
    "what": "--what",
    "smoothed": "--smoothed",
    "sample_weight": "--weight",
    "cost_matrix": "--cost-matrix",
    "min_cost": "--min-cost",
    "n_bins": "--bins",
    "top": "--top",
    "number": "--tree",
    "max_leaves": "--max-leaves",
    "columns": "--columns",
    "at": "--at",
}
"""The arguments of the methods of `gpuboost.plotting.Plots`, and the options that set them."""

SUMMARY = "\b\n" + "\n".join(f"{name:18}{kind.summary}" for name, kind in KINDS.items())


@click.command(cls=Command, epilog=SUMMARY)
@click.argument("source", metavar="MODEL|HISTORY")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.option("--out", required=True, metavar="FILE", help=f"Where to write the picture: {', '.join(SUFFIXES)}.")
@click.option("--data", metavar="DATA", help="Labelled rows, for confusion, costs, reliability and decision-map.")
@click.option("--target", metavar="COL", help="The column of the labels; that of the training if not given.")
@click.option("--target-file", metavar="FILE", help="The labels, if they are in a .npy file of their own.")
@click.option("--weight", metavar="COL", help="A column of row weights.")
@options.cost_option
@click.option("--min-cost", is_flag=True, help="costs: draw the predictions of least expected cost.")
@click.option("--bins", "n_bins", type=click.IntRange(min=1), metavar="N", help="reliability: how many bins.")
@click.option("--what", metavar="NAME", help="learning-curves: loss, error, cost or edge alone.")
@click.option("--smoothed", is_flag=True, help="learning-curves: the smoothed error (eq. 15 of Kégl 2014) and its best round.")
@click.option("--tree", "number", type=int, metavar="N", help="tree: its number, from 0.")
@click.option("--max-leaves", type=int, metavar="N", help="tree: how many leaves are drawn at most.")
@click.option("--top", type=int, metavar="N", help="importances: how many columns are drawn at most.")
@click.option("--columns", nargs=2, metavar="X Y", help="decision-map: the two columns.")
@click.option("--at", multiple=True, metavar="COL=VALUE", help="decision-map: where another column is fixed.")
@click.option("--dpi", type=click.IntRange(10, 1200), default=150, show_default=True, help="Dots per inch of a .png.")
@options.device_option
@options.jobs_option
@options.no_header_option
@options.missing_option
@options.quiet_option
def plot(
    source: str,
    kind: str,
    out: str,
    data: str | None,
    target: str | None,
    target_file: str | None,
    weight: str | None,
    cost_matrix: str | None,
    columns: tuple[str, str] | None,
    at: tuple[str, ...],
    dpi: int,
    device: str | int,
    jobs: int | None,
    no_header: bool,
    missing: tuple[str, ...],
    quiet: bool,
    **given: Any,
) -> None:
    """Draw a picture of KIND of a MODEL, or of a training HISTORY.

    A history is JSON: the dict model.history_ of Python, or what gpuboost inspect --json prints. Needs matplotlib
    (pip install matplotlib).
    """
    from gpuboost.cli.outputs import check_output

    check_output(out, SUFFIXES, (source, data, target_file, cost_matrix))
    chosen = {name: value for name, value in given.items() if value is not None and value is not False}
    texts = {"sample_weight": weight, "cost_matrix": cost_matrix, "columns": columns, "at": at}
    chosen |= {name: value for name, value in texts.items() if value}
    check_options(kind, chosen, data)
    use_files_only()
    rows: tuple[Any, ...] = ()
    if source.lower().endswith(".json"):
        plots = of_history(source, kind)
    else:
        from gpuboost.cli.models import open_model

        printer = options.Printer(quiet=quiet)
        fitted = open_model(source, device, jobs)
        plots = plots_of(fitted.estimator, source)
        if data is not None:
            table, X = fitted.rows(
                data, header=not no_header, missing=missing, note=printer.note, target=target or fitted.target
            )
            rows = (X, labels(table, target or fitted.target, target_file, fitted, printer.warn))
            if weight is not None:
                chosen["sample_weight"] = table.weights(weight)
        arguments(chosen, fitted)
    drawn = getattr(plots, KINDS[kind].method)(*rows, **chosen)
    write(drawn if hasattr(drawn, "savefig") else drawn.get_figure(), out, dpi)


def use_files_only() -> None:
    """Choose matplotlib's backend for files: this process has no window to show anything in."""
    from gpuboost.plotting.figure import MISSING

    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(MISSING) from error
    matplotlib.use("agg")


def check_options(kind: str, chosen: dict[str, Any], data: str | None) -> None:
    """Raise a usage error if an option does not go with the kind of picture, or the data are missing."""
    from gpuboost.plotting import Plots

    known = inspect.signature(getattr(Plots, KINDS[kind].method)).parameters
    unfit = [OPTIONS[name] for name in chosen if name not in known]
    if data is not None and not KINDS[kind].needs_data:
        unfit.append("--data")
    if unfit:
        raise click.UsageError(f"{kind} has no option {unfit[0]}")
    if data is None and KINDS[kind].needs_data:
        raise click.UsageError(f"{kind} needs labelled rows: --data DATA")


def plots_of(estimator: Any, path: str) -> Any:
    """Return what draws a model; a usage error if nothing does."""
    if not hasattr(estimator, "plot"):
        raise click.UsageError(f"{path} is an {type(estimator).__name__}, of which there are no pictures")
    return estimator.plot


def of_history(path: str, kind: str) -> Any:
    """Return what draws a history from a JSON file."""
    from gpuboost.plotting import HistoryPlots

    if not KINDS[kind].from_history:
        able = ", ".join(name for name, one in KINDS.items() if one.from_history)
        raise ValueError(f"{path} is a history, from which only {able} can be drawn; {kind} needs a model file")
    with open(path, "rb") as file:
        content = file.read()
    try:
        history = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no JSON: {error}") from error
    if isinstance(history, dict) and isinstance(history.get("history"), dict):
        history = history["history"]
    try:
        return HistoryPlots(history)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} holds no history: {error}") from error


def labels(table: Any, target: str | None, target_file: str | None, fitted: Any, warn: Callable[[str], None]) -> Any:
    """Return the labels of a table as those of the model; texts that are no class stay what they are, if classes are texts."""
    from gpuboost.cli.reading.labels import class_numbers, known_numbers, refuse_unknown
    from gpuboost.cli.reading.targets import read_labels

    y = read_labels(table, target, target_file)
    where = f"{table.path}: the target"
    if all(isinstance(label, str) for label in fitted.classes):
        numbers = known_numbers(y, fitted.classes, where, warn)
        return fitted.estimator.classes_[numbers] if (numbers >= 0).all() else y
    numbers = class_numbers(y, fitted.classes)
    refuse_unknown(y, numbers, fitted.classes, where)
    return fitted.estimator.classes_[numbers]


def arguments(chosen: dict[str, Any], fitted: Any) -> None:
    """Turn the texts of options into what the method takes."""
    from gpuboost.cli.reading.cost_files import read_costs
    from gpuboost.plotting.labels import column_names

    names = column_names(fitted.estimator)
    if "cost_matrix" in chosen:
        chosen["cost_matrix"] = read_costs(chosen["cost_matrix"], fitted.classes)
    if "columns" in chosen:
        chosen["columns"] = [column(text, names) for text in chosen["columns"]]
    if "at" in chosen:
        chosen["at"] = dict(fixed(text, names) for text in chosen["at"])


def column(text: str, names: Sequence[Any]) -> str | int:
    """Return the name or the number of a column."""
    return int(text) if text.isdecimal() and text not in names else text


def fixed(text: str, names: Sequence[Any]) -> tuple[str | int, float]:
    """Return the column and the value of an option ``--at``."""
    name, equals, value = text.rpartition("=")
    try:
        if equals:
            return column(name, names), float(value)
    except ValueError:
        pass
    raise click.UsageError(f"--at must be COL=VALUE with a number, got {text!r}")


def write(figure: Any, path: str, dpi: int) -> None:
    """Write a picture whole, and the same one the same way: without the time, and with fixed names inside."""
    import matplotlib
    from matplotlib import pyplot

    from gpuboost.persistence.atomic_write import write_whole

    suffix = path.lower().rpartition(".")[2]
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(suffix, {})
    try:
        with matplotlib.rc_context({"svg.hashsalt": "gpuboost"}):
            write_whole(path, lambda file: figure.savefig(file, format=suffix, dpi=dpi, bbox_inches="tight", metadata=metadata))
    finally:
        pyplot.close(figure)  # callers in one process draw many

"""``gpuboost predict``."""

from __future__ import annotations

from typing import Any

import click

from gpuboost.cli import options
from gpuboost.cli.program import Command


@click.command(cls=Command)
@click.argument("model")
@click.argument("data")
@click.option("--out", required=True, metavar="FILE", help="CSV, .csv.gz, TSV, Parquet, Feather, .npy, .npz; - prints CSV.")
@click.option("--proba", is_flag=True, help="Write the probabilities of the classes, too.")
@click.option(
    "--keep",
    multiple=True,
    metavar="COL",
    help="Put a column of DATA, such as an identifier, before the predictions. May be given several times.",
)
@click.option(
    "--early-exit",
    is_flag=False,
    flag_value="calibrated",
    type=click.Choice(["calibrated", "exact"]),
    metavar="[exact]",
    help="Leave out the trees that a row does not need: by the lead that fit_early_exit of Python has put into MODEL, or those "
    "that cannot change the label.",
)
@options.cost_option
@options.device_option
@options.jobs_option
@options.no_header_option
@options.missing_option
@options.json_option
@options.quiet_option
def predict(
    model: str,
    data: str,
    out: str,
    proba: bool,
    keep: tuple[str, ...],
    early_exit: str | None,
    cost_matrix: str | None,
    device: str | int,
    jobs: int | None,
    no_header: bool,
    missing: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Predict the labels of the rows of DATA by MODEL.

    Columns are found by their names, in any order; others are ignored. With a cost matrix the labels are those of least
    expected cost. With --early-exit the mean number of rounds is printed; a few labels may change, with --early-exit exact
    none.
    """
    from gpuboost.cli.models import open_model
    from gpuboost.cli.outputs import SUFFIXES, check_output, standard_output, write_predictions
    from gpuboost.cli.reading.cost_files import read_costs

    if out == "-" and as_json:
        raise click.UsageError("--out - and --json both write to the standard output; give a file")
    if out == "-":
        standard_output()
    else:
        check_output(out, SUFFIXES, (model, data, cost_matrix))
    if early_exit and (proba or cost_matrix):
        option = "--proba" if proba else "--cost-matrix"
        raise click.UsageError(f"{option} needs all trees: leave out --early-exit")
    if keep and out.lower().endswith((".npy", ".npz")):
        raise click.UsageError(f"--keep needs a table to put columns into, and {out} is none; give a .csv or .parquet")
    printer = options.Printer(as_json, quiet)
    printer.note_compiling()
    fitted = open_model(model, device, jobs)
    costs = read_costs(cost_matrix, fitted.classes) if cost_matrix else None
    table, X = fitted.rows(data, header=not no_header, missing=missing, note=printer.note)
    if (proba or cost_matrix) and not hasattr(fitted.estimator, "predict_proba"):
        reason = "was trained by costs" if hasattr(fitted.estimator, "cost_matrix") else "decodes binary models"
        raise ValueError(f"{model} {reason}: it has no probabilities (--proba), and no others to decide by (--cost-matrix)")
    kept = dict(table.copied(key) for key in keep)
    facts: dict[str, Any] = {}
    if early_exit:
        if not hasattr(fitted.estimator, "fit_early_exit"):
            raise ValueError(f"{model} is an {type(fitted.estimator).__name__}, whose boosters do not leave out trees")
        labels, rounds = fitted.estimator._labels_and_rounds(X, early_exit if early_exit == "exact" else True)
        facts = {"mean_rounds": float(rounds.mean()), "rounds": fitted.estimator.n_estimators_}
    else:
        labels = fitted.estimator.predict(X) if costs is None else fitted.estimator.predict(X, cost_matrix=costs)
    probabilities = fitted.estimator.predict_proba(X) if proba else None
    write_predictions(out, labels, probabilities, fitted.estimator.classes_, kept)
    if out != "-":
        used = f", by {facts['mean_rounds']:.1f} of {facts['rounds']} rounds on average" if facts else ""
        printer.result({"out": out, "rows": len(labels), **facts}, f"{out}: predictions for {len(labels)} rows{used}")

"""``gpuboost evaluate``."""

from __future__ import annotations

from typing import Any

import click
import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.cli import options
from gpuboost.cli.program import Command

LARGEST_MATRIX = 20
"""The confusion matrix is printed for up to so many classes."""


@click.command(cls=Command)
@click.argument("model")
@click.argument("data")
@click.option("--target", metavar="COL", help="The column of the labels; that of the training if not given.")
@click.option("--target-file", metavar="FILE", help="The labels, if they are in a .npy file of their own.")
@click.option("--weight", metavar="COL", help="A column of row weights.")
@options.cost_option
@options.device_option
@options.jobs_option
@options.no_header_option
@options.missing_option
@options.json_option
@click.option("--quiet", is_flag=True, help="Print the first line of the result alone, and warnings and errors.")
def evaluate(
    model: str,
    data: str,
    target: str | None,
    target_file: str | None,
    weight: str | None,
    cost_matrix: str | None,
    device: str | int,
    jobs: int | None,
    no_header: bool,
    missing: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Compare MODEL with the labels of DATA: error, log-loss, a table of the classes, the confusion matrix, and costs."""
    from gpuboost.cli.models import open_model
    from gpuboost.cli.reading.cost_files import read_costs
    from gpuboost.cli.reading.labels import class_numbers, known_numbers
    from gpuboost.cli.reading.targets import read_labels

    printer = options.Printer(as_json, quiet)
    printer.note_compiling()
    fitted = open_model(model, device, jobs)
    estimator = fitted.estimator
    if estimator.multi_label_:
        raise ValueError(f"{model} is a multi-label model; evaluate knows one label a row: use model.score in Python")
    given = read_costs(cost_matrix, fitted.classes) if cost_matrix else None
    table, X = fitted.rows(data, header=not no_header, missing=missing, note=printer.note, target=target)
    y = read_labels(table, target or fitted.target, target_file)
    true = known_numbers(y, fitted.classes, f"{table.path}: the target", printer.warn)
    weights = np.ones(len(y)) if weight is None else table.weights(weight)
    if not weights.any():
        raise ValueError(f"{table.path}: all weights in {weight!r} are zero")
    proba = estimator.predict_proba(X) if hasattr(estimator, "predict_proba") else None
    predicted = class_numbers(estimator.predict(X), fitted.classes) if proba is None else proba.argmax(axis=1)
    error = float(np.average(true != predicted, weights=weights))
    facts: dict[str, Any] = {"model": model, "data": data, "rows": len(y), "error": error}
    if proba is not None:
        facts["log_loss"] = log_loss(true, proba, weights)
    facts["classes"] = class_table(true, predicted, weights, fitted.classes)
    facts["confusion"] = confusion(true, predicted, weights, len(fitted.classes))
    if given is not None or estimator._costs() is not None:
        facts |= costs_of(estimator, given, true, predicted, proba, weights)
    if (unknown := true < 0).any():
        facts["unknown_labels"] = sorted({str(label) for label in y[unknown].tolist()})
    text = report(facts)
    options.Printer(as_json).result(facts, text.partition("\n")[0] if quiet else text)


def log_loss(true: IntArray, proba: Floats, weights: Floats) -> float:
    """Return the weighted mean of -log p(true class) over the rows that are of a class; NaN if there are none."""
    known = (true >= 0) & (weights > 0)
    logs = -np.log(proba[known, true[known]])
    return float(np.average(logs, weights=weights[known])) if known.any() else float("nan")


def confusion(true: IntArray, predicted: IntArray, weights: Floats, n_classes: int) -> Floats:
    """Return the weight of each pair of a true class (rows) and a predicted one (columns)."""
    known = true >= 0
    cells = true[known] * n_classes + predicted[known]
    return np.bincount(cells, weights[known], n_classes**2).reshape(n_classes, n_classes).astype(np.float64)


def class_table(true: IntArray, predicted: IntArray, weights: Floats, classes: list[Any]) -> list[dict[str, Any]]:
    """Return for each class how many rows it has, and the shares that are found (recall) and that are right (precision)."""
    rows = []
    for k, label in enumerate(classes):
        is_k, said_k = true == k, predicted == k
        right = float(weights[is_k & said_k].sum())
        totals = weights[is_k].sum(), weights[said_k].sum()
        recall, precision = (right / float(total) if total else float("nan") for total in totals)
        rows.append(
            {"class": label, "rows": int(is_k.sum()), "predicted": int(said_k.sum()), "recall": recall, "precision": precision}
        )
    return rows


def costs_of(
    estimator: Any, given: Any, true: IntArray, predicted: IntArray, proba: Floats | None, weights: Floats
) -> dict[str, float]:
    """Return the mean cost of the predictions, and of the labels of least expected cost; rows of no class are left out."""
    from gpuboost.costs.matrix import average_cost, check_cost_matrix, least_cost

    costs = check_cost_matrix(estimator._costs() if given is None else given, estimator.classes_)
    decisions = {"mean_cost": predicted}
    if proba is not None:
        decisions["least_expected_cost"] = least_cost(proba, costs)
    counts = {name: confusion(true, chosen, weights, len(costs)) for name, chosen in decisions.items()}
    return {name: average_cost(count, costs) if count.any() else float("nan") for name, count in counts.items()}


def percent(share: float) -> str:
    """Return a share as text; a dash if there is nothing that it would be a share of."""
    return "-" if share != share else f"{100 * share:.2f} %"


def report(facts: dict[str, Any]) -> str:
    """Return the facts as text."""
    text = [f"{facts['rows']} rows: error {percent(facts['error'])}"]
    if "log_loss" in facts:
        text[0] += f", log-loss {facts['log_loss']:.4f}"
    if "mean_cost" in facts:
        text.append(f"mean cost {facts['mean_cost']:.4g}")
    if "least_expected_cost" in facts:
        text[-1] += f"; with the labels of least expected cost (predict --cost-matrix) {facts['least_expected_cost']:.4g}"
    rows = [
        [str(one["class"]), str(one["rows"]), str(one["predicted"]), percent(one["recall"]), percent(one["precision"])]
        for one in facts["classes"]
    ]
    text += ["", options.grid([["class", "rows", "predicted", "recall", "precision"], *rows])]
    labels = [row[0] for row in rows]
    if len(labels) <= LARGEST_MATRIX:
        counts = [[f"{count:g}" for count in row] for row in facts["confusion"].tolist()]
        matrix = [["true \\ predicted", *labels], *([label, *row] for label, row in zip(labels, counts, strict=True))]
        text += ["", options.grid(matrix)]
    return "\n".join(text)

"""``gpuboost inspect``."""

from __future__ import annotations

from typing import Any

import click

from gpuboost.cli import options
from gpuboost.cli.program import Command

N_SHOWN = 10


@click.command(cls=Command)
@click.argument("model")
@options.json_option
def inspect(model: str, as_json: bool) -> None:
    """Say what is in a model file: sizes, parameters, classes, columns, history, and the checksums that show equal models."""
    from gpuboost.cli.run_record import read_record
    from gpuboost.persistence.model_file import describe

    facts = describe(model)
    record = read_record(facts.pop("extra"))
    if record is not None:
        facts["target"] = record.target
        facts["training_data"] = record.data
    options.Printer(as_json).result(facts, report(facts))


def report(facts: dict[str, Any]) -> str:
    """Return the facts as text."""
    from gpuboost.inputs.label_values import python_labels

    how = options.ending(facts["stop_reason"], facts["n_rounds"], facts["n_rounds_run"])
    lines = {
        "model": f"{facts['estimator']}, {facts['n_bytes']} bytes by gpuboost {facts['gpuboost']} (format {facts['format']})",
        "rounds": f"{facts['n_rounds']} ({how}), {size(facts)}",
        "classes": listed(python_labels(facts["classes"])) + (", multi-label" if facts["multi_label"] else ""),
        "features": listed(facts["feature_names"], facts["n_features"]),
    }
    if facts.get("target") is not None:
        lines["target"] = facts["target"]
    lines["parameters"] = ", ".join(f"{name}={value!r:.60}" for name, value in facts["parameters"].items())
    if facts["importances"] is not None:
        lines["important"] = important(facts)
    for name, values in facts["history"].items():
        if name.endswith(("_error", "_loss", "_cost")) and values:
            best = min(values)
            lowest = f"{best:.4g} lowest (round {values.index(best) + 1})"
            lines[name.replace("_", " ")] = f"{values[0]:.4g} first, {values[-1]:.4g} last, {lowest}"
    if facts["history"].get("draws"):
        drawn, place, passes = (facts["history"][name] for name in ("draws", "row", "pass"))
        lines["rows drawn"] = f"{sum(drawn):.0f}, up to row {place[-1]:.0f} of pass {passes[-1] + 1:.0f}"
    lines["digest"], lines["sha256"] = facts["digest"], facts["sha256"]
    if "training_data" in facts:
        lines["data digest"] = facts["training_data"]
    return "\n".join(f"{name + ':':15}{text}" for name, text in lines.items())


def size(facts: dict[str, Any]) -> str:
    """Return what the rounds consist of."""
    if "n_points" in facts:
        return f"{facts['n_points']} training points"
    return f"{facts['n_trees']} trees, {facts['n_leaves']} leaves"


def listed(items: list[Any] | None, count: int | None = None) -> str:
    """Return the number of items and the first of them."""
    if items is None:
        return f"{count}, without names"
    return f"{len(items)}: {', '.join(map(repr, items[:N_SHOWN]))}{', ...' if len(items) > N_SHOWN else ''}"


def important(facts: dict[str, Any]) -> str:
    """Return the columns with the largest shares of the gain."""
    shares = facts["importances"]
    names = facts["feature_names"] or [f"column {i}" for i in range(len(shares))]
    first = [i for i in (-shares).argsort(kind="stable")[:5].tolist() if shares[i] > 0]
    return ", ".join(f"{names[i]} {100 * shares[i]:.1f} %" for i in first) or "no column is used"

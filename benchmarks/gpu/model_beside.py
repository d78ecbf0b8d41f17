"""The step model: the times of a round that `benchmarks.gpu.static` expects beside those that the other steps have measured."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from benchmarks.gpu.step import Skip, Step, run

MEASURED = ("graphs", "queued")


def measured(step: Step) -> dict[str, dict[str, float]]:
    """Return the milliseconds of a round by training and step."""
    found: dict[str, dict[str, float]] = {}
    for name in MEASURED:
        for title, one in step.earlier(name).items():
            if isinstance(one, dict) and "round_seconds" in one:
                found.setdefault(title, {})[name] = 1e3 * one["round_seconds"]
    return found


def expected() -> Iterable[Mapping[str, Any]]:
    """Return the model's rows: a training's name as "problem", and a time in milliseconds for each card."""
    try:
        model = importlib.import_module("benchmarks.gpu.static")
    except ImportError as error:
        raise Skip(f"there is no model: {error}") from error
    rows: Iterable[Mapping[str, Any]] = model.model_rows()
    return rows


def shown(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.2f}" if isinstance(value, float) else f"{name} {value}" for name, value in values.items())


def main(step: Step) -> None:
    times = measured(step)
    try:
        rows = list(expected())
    except Skip as reason:
        rows = []
        step.say(str(reason))
    step.note("model", rows)
    step.note("measured", times)
    seen = set()
    for row in rows:
        title = str(row.get("problem", ""))
        seen.add(title)
        model = shown({name: value for name, value in row.items() if name != "problem"})
        step.say(f"{title}, ms: model {model}; measured {shown(times.get(title, {})) or 'nothing'}")
    for title in times.keys() - seen:
        step.say(f"{title}, ms: model nothing; measured {shown(times[title])}")


if __name__ == "__main__":
    run("model", main)

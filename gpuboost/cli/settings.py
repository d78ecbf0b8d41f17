"""``--set name=value``: parameters of the estimator."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any

import click

from gpuboost.hints import did_you_mean

ELSEWHERE = {
    "device": "--device",
    "n_jobs": "--jobs",
    "verbose": "--quiet",
    "warm_start": "--resume",
    "callbacks": "--checkpoint",
    "cost_matrix": "--cost-matrix",
    "regressor": "Python: it is an object",
}
"""Parameters that cannot be set here, and where they can."""


def parse(settings: Sequence[str], algorithm: str) -> dict[str, Any]:
    """Return the parameters that are set, by name.

    A value is JSON (``500``, ``true``, ``{"rare": 10}``), or what Python writes (``True``, ``None``); all else is text.
    Whether it is right the estimator says, now or, if that is up to the data, when it is trained.

    Raises
    ------
    click.UsageError
        If a setting has no ``=``, or a value that the estimator refuses, or names a parameter that the estimator does not have,
        or has twice, or that has an option.
    """
    import gpuboost

    estimator = getattr(gpuboost, gpuboost.ALGORITHMS[algorithm])
    known = sorted(set(estimator().get_params()) - set(ELSEWHERE))
    chosen: dict[str, Any] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise click.UsageError(f"--set {setting}: expected name=value, such as n_estimators=500")
        if name in ELSEWHERE:
            raise click.UsageError(f"--set {setting}: {name} cannot be set here; use {ELSEWHERE[name]}")
        if name not in known:
            hint = did_you_mean(name, known)
            raise click.UsageError(
                f"--set {setting}: {estimator.__name__} has no parameter {name}{hint}; it has {', '.join(known)}"
            )
        if name in chosen:
            raise click.UsageError(f"--set {setting}: {name} is set twice")
        chosen[name] = value_of(text.strip())
    try:
        estimator(**chosen)._check_parameters()
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"--set: {error}") from error
    return chosen


def value_of(text: str) -> Any:
    """Return the value that a text stands for."""
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return text


def set_all(estimator: Any, **values: Any) -> None:
    """Set parameters, also those that an estimator has without declaring them: `BoostingClassifier` knows their defaults."""
    for name, value in values.items():
        setattr(estimator, name, value)


def by_label(values: dict[Any, Any], classes: Sequence[Any]) -> dict[Any, Any]:
    """Return a dictionary of JSON, whose keys are text, with the classes that they are the text of as keys."""
    class_of = {str(label): label for label in classes}
    return {class_of.get(str(key), key): value for key, value in values.items()}

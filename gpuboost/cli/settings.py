"""``--set name=value``: parameters of the estimator."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import click

from gpuboost.cli.reading.labels import finder
from gpuboost.messages import did_you_mean

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

LABELS = ("base_class",)
"""Parameters that are a label: they stay text until the labels are known, see `label_of`."""


def parse(settings: Sequence[str], algorithm: str) -> dict[str, Any]:
    """Return the parameters that are set, by name.

    A value is JSON (``500``, ``true``, ``{"rare": 10}``), or what Python writes (``True``, ``None``); all else is text, and so
    are all `LABELS`.
    Whether it is right the estimator says, now or, if that is up to the data, when it is trained.

    Raises
    ------
    click.UsageError
        If a setting has no ``=``, or a value that the estimator refuses, or names a parameter that the estimator does not have,
        or has twice, or that has an option.
    """
    from gpuboost.registry import ALGORITHMS, estimator_class

    estimator = estimator_class(ALGORITHMS[algorithm].estimator)
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
        try:
            chosen[name] = text.strip() if name in LABELS else value_of(text.strip())
        except RepeatedKeyError as error:
            raise click.UsageError(f"--set {setting}: {error}") from error
    try:
        estimator(**chosen)._check_parameters()
    except (TypeError, ValueError) as error:
        raise click.UsageError(f"--set: {error}") from error
    return chosen


def value_of(text: str) -> Any:
    """Return the value that a text stands for."""
    try:
        return json.loads(text, object_pairs_hook=unique)
    except RepeatedKeyError:
        raise
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return text


def label_of(text: str, classes: Sequence[Any]) -> Any:
    """Return the class that a text stands for: the one that is written so before one of the value; else the value."""
    value = value_of(text)
    if value is None or value == "search":
        return value
    find = finder(classes)
    found = [k for one in (text, value) if isinstance(one, (str, int, float)) and (k := find(one)) >= 0]
    return classes[found[0]] if found else value


class RepeatedKeyError(ValueError):
    """A key stands twice in an object of JSON."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, of which the parser itself would keep the last of equal keys."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        key = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise RepeatedKeyError(f"the key {key!r} stands twice in an object of JSON; give it once")
    return entries


def set_all(estimator: Any, **values: Any) -> None:
    """Set parameters, also those that an estimator has without declaring them: `BoostingClassifier` knows their defaults."""
    for name, value in values.items():
        setattr(estimator, name, value)


def check_algorithm(name: str) -> None:
    """Raise a UsageError for an algorithm that there is not."""
    from gpuboost.registry import ALGORITHMS

    if name not in ALGORITHMS:
        hint = did_you_mean(name, ALGORITHMS)
        raise click.UsageError(f"--algorithm {name}: there is no such algorithm{hint}; known are {', '.join(ALGORITHMS)}")

"""Cost matrices from files."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from gpuboost.cli.reading.array_files import read_npy
from gpuboost.cli.reading.labels import by_label
from gpuboost.cli.reading.text_files import read_text
from gpuboost.cli.reading.whole_files import read_file
from gpuboost.cli.settings import RepeatedKeyError, unique


def read_costs(path: str, classes: Sequence[Any]) -> Any:
    """Return what mistakes cost, in a form that estimators take.

    Parameters
    ----------
    path : str
        ``.npy``: a matrix in the order of the classes; ``.json``: that, or an object ``{true: {predicted: cost}}``; else CSV:
        the first row has the predicted labels, the first column the true ones.
    classes : sequence
        The labels. Those of a file are text, and stand for the labels that are written so.

    Raises
    ------
    ValueError
        If the file cannot be read so. Whether the costs are right the estimator says.
    """
    if path.lower().endswith(".npy"):
        return read_npy(path)
    content = read_file(path)
    if path.lower().endswith(".json"):
        try:
            table = json.loads(content, object_pairs_hook=unique)
        except RepeatedKeyError as error:
            raise ValueError(f"{path}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is no JSON: {error}") from error
        if isinstance(table, list):
            return table
        if not isinstance(table, dict) or not all(isinstance(row, dict) for row in table.values()):
            raise ValueError(f"{path} must hold an object {{true: {{predicted: cost}}}} or a matrix")
        costs = table
    else:
        costs = _read_csv(path, content)
    return by_label({true: by_label(row, classes) for true, row in costs.items()}, classes)


def _read_csv(path: str, content: bytes) -> dict[str, dict[str, Any]]:
    text = read_text(path, content, separator=None, header=True, missing=())
    try:
        first, *rows = csv.reader(io.StringIO(text.data.decode(), newline=""), delimiter=text.separator)
    except csv.Error as error:
        raise ValueError(f"{path} cannot be read as a table of separated values: {error}") from error
    if repeated := [label for label, count in Counter(first[1:]).items() if count > 1]:
        raise ValueError(f"{path} has the label {repeated[0]!r} again in its first row, which has each predicted label once")
    costs: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(rows, start=2):
        if len(row) != len(first) or row[0] in costs:
            problem = f"the label {row[0]!r} again" if len(row) == len(first) else f"{len(row)} values, not {len(first)},"
            raise ValueError(
                f"{path} has {problem} in row {number}; a row is a true label, then the costs of the predicted ones"
            )
        costs[row[0]] = {label: _number(cost) for label, cost in zip(first[1:], row[1:], strict=True)}
    return costs


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text

"""The training set and the validation set of a command, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.cli.run_record import digest


@dataclass(frozen=True)
class Sets:
    """What a model is trained on.

    Attributes
    ----------
    X, y, weights
        As an estimator takes them.
    valid : tuple or None
        X and y of the validation set.
    classes : list
        The labels.
    layout : Layout
    target : str or None
        The target's column, where it has a name.
    """

    X: Any
    y: Any
    weights: Any
    valid: tuple[Any, Any] | None
    classes: list[Any]
    layout: Any
    target: str | None

    def digest(self) -> str:
        """Return the digest of all data."""
        return digest(self.X, self.y, self.weights, *(self.valid or ()))

    def options(self) -> dict[str, str]:
        """Return what decides the order of the rows, as text."""
        return {}

    def train(self, estimator: Any) -> None:
        """Train an estimator."""
        estimator.fit(self.X, self.y, sample_weight=self.weights, eval_set=self.valid)

    def rows_of(self, model: Any) -> tuple[dict[str, Any], str]:
        """Return the rows that a model was trained on, as facts and as text."""
        return {"rows": len(self.y)}, f"{len(self.y)} rows"


def read_sets(
    reading: Any,
    data: str,
    target: str | None,
    target_file: str | None,
    valid: str | None,
    weight: str | None,
    drop: tuple[str, ...],
) -> Sets:
    """Read and check the training set and the validation set."""
    from gpuboost.cli.reading.layout import Layout, training_columns
    from gpuboost.cli.reading.targets import read_labels, target_key
    from gpuboost.inputs.label_values import python_labels

    table = reading.read(data)
    y = read_labels(table, target, target_file)
    key = target if target_file else target_key(table, target)
    features = training_columns(table, key, weight, drop)
    weights = None if weight is None else table.weights(weight)
    X = table.features(features)
    classes = sorted(set(python_labels(y if weights is None else y[weights > 0])))
    if len(classes) < 2:
        only = f"the one class {classes[0]!r}" if classes else "no row of positive weight"
        raise ValueError(f"{table.path} has {only}; there must be two or more to tell apart: is the target right?")
    for remark in doubts(classes, len(y)):
        reading.note(f"Note: {table.path}: {remark}")
    others = [table.names[i] for i in range(table.n_columns) if i not in features] if table.names else []
    names = [table.names[i] for i in features] if table.names else None
    layout = Layout(names, features, table.n_columns, others)
    watched = None
    if valid is not None:
        watched = read_valid(reading, valid, "test" if valid == data else "train", layout, key, np.array(classes, y.dtype))
    return Sets(X, y, weights, watched, classes, layout, key)


def read_valid(
    reading: Any, path: str, part: Any, layout: Any, target: str | None, classes: NDArray[Any]
) -> tuple[Any, NDArray[Any]]:
    """Read the validation set: the columns of a layout, and labels that are classes."""
    from gpuboost.cli.reading.labels import class_numbers, refuse_unknown
    from gpuboost.cli.reading.layout import libsvm_width
    from gpuboost.cli.reading.tables import kind_of
    from gpuboost.cli.reading.targets import read_labels
    from gpuboost.inputs.label_values import python_labels

    table = reading.read(path, part)
    table = libsvm_width(table, layout.n_columns) if kind_of(path) == "libsvm" else table
    labels, known = read_labels(table, target, None), python_labels(classes)
    numbers = class_numbers(labels, known)
    refuse_unknown(labels, numbers, known, f"{table.path}: the target")
    return table.features(layout.find(table, reading.note)), classes[numbers]


def doubts(classes: list[Any], n_rows: int) -> list[str]:
    """Return what speaks against labels being what they are taken for."""
    from gpuboost.cli.reading.text_files import MISSING

    remarks = []
    if len(classes) > max(n_rows / 2, 20):
        remarks.append(f"there are {len(classes)} classes for {n_rows} rows: is the target right?")
    if blank := [label for label in classes if label in MISSING]:
        remarks.append(f"{blank[0]!r} is one of the classes; if it stands for a missing label, leave these rows out")
    return remarks

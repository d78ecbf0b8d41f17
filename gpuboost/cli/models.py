"""Models from files, and the rows that they are asked about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpuboost.cli.reading.layout import Layout, libsvm_width
from gpuboost.cli.reading.tables import Reading, Table, kind_of
from gpuboost.cli.run_record import read_record
from gpuboost.inputs.label_values import python_labels


@dataclass(frozen=True)
class Model:
    """A model with what it knows of tables.

    Attributes
    ----------
    estimator : BoostingClassifier
    layout : Layout
        Its columns.
    target : str or None
        The column of the labels that it was trained on.
    missing : tuple of str
        Texts that stood for missing values.
    """

    estimator: Any
    layout: Layout
    target: str | None
    missing: tuple[str, ...]

    @property
    def classes(self) -> list[Any]:
        """The labels."""
        return python_labels(self.estimator.classes_)

    def rows(
        self, path: str, *, header: bool, missing: tuple[str, ...], note: Callable[[str], None], target: str | None = None
    ) -> tuple[Table, Any]:
        """Read a table; return it, and the features that the model asks for. ``target`` is a column that is none."""
        table = Reading(header, tuple(dict.fromkeys((*self.missing, *missing))), note).read(path, "test")
        if kind_of(path) == "libsvm":
            table = libsvm_width(table, self.layout.n_columns)
        return table, table.features(self.layout.find(table, note, target))


def open_model(path: str, device: str | int, jobs: int | None) -> Model:
    """Load a model from a file.

    Raises
    ------
    ModelFormatError
        If the file is none.
    DeviceUnavailableError
        If the device cannot be used.
    """
    from gpuboost.persistence.model_file import describe, load

    estimator = load(path, device=device, n_jobs=jobs)
    record = read_record(describe(path).get("extra", {}))
    if record is not None:
        return Model(estimator, record.layout, record.target, tuple(record.missing))
    names = list(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None
    n_features = estimator.n_features_in_
    return Model(estimator, Layout(names, list(range(n_features)), n_features, []), None, ())

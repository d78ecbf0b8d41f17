"""Code files that a command trains on: what is refused before anything is read, and what a run is known by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click

from gpuboost.cli.run_record import digest


@dataclass(frozen=True)
class CodeSets:
    """What a model is trained on: a code file, and a validation set. It has what `Sets` has.

    Attributes
    ----------
    file : CodeFile
    valid : CodeFile, tuple or None
    classes : list
    """

    file: Any
    valid: Any
    classes: list[Any]

    @cached_property
    def layout(self) -> Any:
        """The columns of the file. What else its table had, it does not say."""
        return layout_of(self.file)

    @property
    def target(self) -> str | None:
        """The target's column, if the file says which that was."""
        name: str | None = self.file.target
        return name

    def digest(self) -> str:
        """Return the checksum of the file, and that of the validation set or its digest."""
        watched = self.valid.sha256 if hasattr(self.valid, "sha256") else digest(*(self.valid or ()))
        return f"code file {self.file.sha256} and {watched}"

    def options(self) -> dict[str, str]:
        """Return what decides the order of the rows, as text."""
        return {}

    def train(self, estimator: Any) -> None:
        """Train an estimator."""
        estimator.fit(self.file, eval_set=self.valid)

    def rows_of(self, model: Any) -> tuple[dict[str, Any], str]:
        """Return the rows that a model was trained on, as facts and as text."""
        return {"rows": self.file.n_rows}, f"{self.file.n_rows} rows"


def layout_of(file: Any) -> Any:
    """Return the columns of a code file."""
    from gpuboost.cli.reading.layout import Layout

    names = None if file.feature_names is None else [str(name) for name in file.feature_names]
    return Layout(names, list(range(file.n_features)), file.n_features, [] if file.target is None else [file.target])


def is_code_file(data: Sequence[str]) -> bool:
    """Whether what is to be read is one code file."""
    from gpuboost.code_files.container import is_code_file

    return len(data) == 1 and is_code_file(data[0])


def check_code_file(data: str, others: Mapping[str, Any]) -> None:
    """Raise a usage error if an option has no meaning for a code file.

    Parameters
    ----------
    data : str
        The file.
    others : mapping
        Options by their names, those that are not given as None, False or empty.
    """
    reasons = {
        "--stream": "it is read piece by piece anyway",
        "--target-file": "it has labels of its own",
        "--weight": "it has the weights that it was written with",
        "--drop": "it has the columns that it was written with",
        "--class": "it has all labels",
        "--shuffle": "its rows keep their order; give --shuffle to gpuboost encode",
    }
    for name, reason in reasons.items():
        if others[name] not in (None, False, ()):
            raise click.UsageError(f"{name} has no meaning for the code file {data}: {reason}")


def read_code_file(reading: Any, data: str, valid: str | None, target: str | None, parameters: dict[str, Any]) -> CodeSets:
    """Open a code file, and read the validation set, a code file with the same cuts or a table.

    ``parameters`` of the estimator get the file's ``max_bins``, if they do not have it.
    """
    from gpuboost.cli.training_sets import read_valid
    from gpuboost.code_files import CodeFile
    from gpuboost.inputs.label_values import python_labels

    file = CodeFile(data)
    classes = python_labels(file.classes)
    if len(classes) < 2:
        raise ValueError(f"{data} has the one class {classes[0]!r}; there must be two or more to tell apart")
    parameters.setdefault("max_bins", file.max_bins)
    has_table = valid is not None and not is_code_file([valid])  # of which --target may name a column
    is_other = target not in (None, file.target) and not (target or "").lstrip("-").isdigit()
    if is_other and file.target is not None and not has_table:
        raise click.UsageError(f"--target {target}: the labels of {data} are those of its column {file.target!r}")
    watched: Any = None
    if valid is not None and is_code_file([valid]):
        watched = CodeFile(valid)
        if watched.bin_mapper.digest() != file.bin_mapper.digest():
            raise ValueError(f"--valid {valid} has other cuts than {data}; write it by gpuboost encode --cuts-of {data}")
    elif valid is not None:
        watched = read_valid(reading, valid, "train", layout_of(file), target or file.target, file.classes)
    return CodeSets(file, watched, classes)

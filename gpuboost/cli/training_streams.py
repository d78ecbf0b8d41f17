"""Files that a command trains on as a stream: what is refused before anything is read, and what a run is known by."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from gpuboost.cli.run_record import digest
from gpuboost.cli.training_sets import doubts, read_valid

N_LOOKS, LOOK = 64, 1 << 16
"""How often, and at how many bytes, a file is looked at to know it again."""


@dataclass(frozen=True)
class StreamSets:
    """What a model is trained on: a stream, and a validation set in memory. It has what `Sets` has, and more.

    Attributes
    ----------
    stream : FileStream
    named : tuple of str
        The labels that were named.
    shuffle : int or None
    """

    stream: Any
    valid: tuple[Any, Any] | None
    classes: list[Any]
    named: tuple[str, ...] = ()
    shuffle: int | None = None

    @property
    def layout(self) -> Any:
        """The columns of the first file."""
        return self.stream.layout

    @property
    def target(self) -> str:
        """The target's column."""
        return str(self.stream.target)

    def digest(self) -> str:
        """Return a fingerprint of the files, which is not made of all of their bytes, and the digest of the validation set."""
        parts = [*map(fingerprint, self.stream.files), digest(*(self.valid or ()))]
        return f"of parts of {len(self.stream.files)} files: {hashlib.sha256(repr(parts).encode()).hexdigest()}"

    def options(self) -> dict[str, str]:
        """Return what decides the order of the rows, and the classes, as text."""
        return {"stream": "True", "shuffle": str(self.shuffle), "class": str(list(self.named))}

    def train(self, estimator: Any) -> None:
        """Train an estimator."""
        estimator.fit_stream(self.stream, classes=self.stream.classes, eval_set=self.valid)

    def rows_of(self, model: Any) -> tuple[dict[str, Any], str]:
        """Return the rows that a model was trained on, as facts and as text."""
        history = model.history_
        drawn, passes = int(sum(history["draws"])), int(history["pass"][-1]) + 1
        facts = {"rows": self.stream.n_rows, "rows_drawn": drawn, "passes": passes}
        return facts, f"{drawn} rows drawn in {passes} pass{'es' if passes > 1 else ''}"


def check_stream(
    stream: bool, data: Sequence[str], algorithm: str, parameters: Mapping[str, Any], others: Mapping[str, Any]
) -> None:
    """Raise a usage error if options do not go together, before anything is read.

    Parameters
    ----------
    stream : bool
        Whether the data are read as a stream.
    data : sequence of str
    algorithm : str
    parameters : mapping
        Those of the estimator that are set.
    others : mapping
        Other options by their names, those that are not given as None, False or empty.
    """
    from gpuboost.registry import ALGORITHMS, estimator_class

    able = [name for name in ALGORITHMS if hasattr(estimator_class(ALGORITHMS[name].estimator), "fit_stream")]
    if not stream:
        if len(data) > 1 or os.path.isdir(data[0]):
            what = f"{len(data)} files" if len(data) > 1 else f"the folder {data[0]}"
            raise click.UsageError(
                f"{what} can be read as a stream alone: --stream --algorithm {able[0]}; or let gpuboost encode make one code "
                "file of it, for any booster of trees"
            )
        for name in ("--class", "--shuffle"):
            if others[name] not in (None, ()):
                raise click.UsageError(f"{name} is for --stream")
        return
    if algorithm not in able:
        raise click.UsageError(f"--stream: {algorithm} needs all rows in memory; use --algorithm {' or '.join(able)}")
    reasons = {
        "--target-file": "labels must be a column of the files, see --target",
        "--no-header": "files of CSV must have a row of names each",
        "--cost-matrix": f"{algorithm} does not train by costs; give it to predict, which decides by costs",
    }
    for name, reason in reasons.items():
        if others[name]:
            raise click.UsageError(f"--stream and {name}: {reason}")
    if parameters.get("draw") in ("resample", "all"):
        raise click.UsageError(f"--set draw={parameters['draw']} holds all rows in memory: leave out --stream")
    if parameters.get("early_stopping") and not others["--valid"]:
        raise click.UsageError("--set early_stopping needs --valid with --stream: no rows of a stream are held out")
    if parameters.get("class_weight") == "balanced":
        raise click.UsageError("--set class_weight=balanced needs all labels beforehand, and a stream has more to come")


def check_place(path: str, data: Sequence[str]) -> None:
    """Raise a usage error if a file would be written into a folder of which all files are read."""
    for folder in data:
        if os.path.isdir(folder):
            inside = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
            if not inside.startswith(os.pardir) and not os.path.isabs(inside):
                raise click.UsageError(f"--out {path} lies in the folder {folder}, of which all files are read; choose another")


def read_stream(
    reading: Any,
    data: Sequence[str],
    valid: str | None,
    parameters: Mapping[str, Any],
    *,
    target: str | None,
    weight: str | None,
    drop: Sequence[str],
    named: tuple[str, ...],
    shuffle: int | None,
) -> StreamSets:
    """Look at the first rows of files, for the columns and the labels; read and check the validation set."""
    from gpuboost.cli.reading.file_streams import FileStream
    from gpuboost.estimators.filterboost import FilterBoostClassifier
    from gpuboost.inputs.label_values import python_labels

    stream = FileStream(data, reading, target, weight, drop, shuffle)
    settings = {**FilterBoostClassifier().get_params(), **parameters}
    n_rows = stream.find_classes(min(settings["n_bin_rows"], settings["max_examples"] or settings["n_bin_rows"]), named)
    classes = python_labels(stream.classes)
    if len(classes) < 2:
        hint = "name all labels by --class, or shuffle the files (--shuffle 0) if they lie sorted by label"
        raise ValueError(f"the first {n_rows} rows of {stream.path} have one label alone, {classes!r:.60}; {hint}")
    for remark in doubts(classes, n_rows):
        reading.note(f"Note: {stream.path}: {remark}")
    watched = None if valid is None else read_valid(reading, valid, "train", stream.layout, stream.target, stream.classes)
    return StreamSets(stream, watched, classes, named, shuffle)


def fingerprint(path: str) -> tuple[str, int, str]:
    """Return the name and the size of a file, and a digest of pieces of it: of its two ends, and many in between."""
    size, total = os.path.getsize(path), hashlib.sha256()
    with open(path, "rb") as file:
        for i in range(N_LOOKS):
            file.seek(max(0, size - LOOK) * i // (N_LOOKS - 1))
            total.update(file.read(LOOK))
            if size <= LOOK:
                break
    return os.path.basename(path), size, total.hexdigest()

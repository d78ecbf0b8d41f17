"""``gpuboost fit``."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

from gpuboost.cli import options
from gpuboost.cli.interrupts import interrupt_on
from gpuboost.cli.program import Command, Interrupted
from gpuboost.cli.run_record import RunRecord, read_record
from gpuboost.cli.settings import check_algorithm
from gpuboost.cli.training_code_files import CodeSets, check_code_file, is_code_file, read_code_file
from gpuboost.cli.training_sets import Sets, read_sets
from gpuboost.cli.training_streams import StreamSets, check_place, check_stream, read_stream

OTHER_KINDS = (".csv", ".tsv", ".gz", ".parquet", ".feather", ".npy", ".npz", ".json", ".pkl", ".joblib", ".onnx")
"""Suffixes that would mislead about what a model file is."""

DEFAULT_EVERY = 50


@click.command(cls=Command)
@click.argument("data", nargs=-1, required=True)
@click.option("--target", metavar="COL", help="The column of the labels: its name, or its number from 0 (-1 is the last one).")
@click.option("--target-file", metavar="FILE", help="The labels, if they are in a .npy file of their own.")
@click.option("--algorithm", default="adaboost-mh", show_default=True, metavar="NAME", help="See gpuboost algorithms.")
@click.option(
    "--out", required=True, metavar="MODEL", help="The model file to write; one that is there is replaced at the end."
)
@click.option("--valid", metavar="DATA", help="A table to watch while training; early stopping looks at it.")
@click.option("--weight", metavar="COL", help="A column of row weights for training.")
@click.option("--drop", multiple=True, metavar="COL", help="A column to leave out; repeatable.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="A parameter of the estimator, such as n_estimators=500."
)
@options.cost_option
@click.option("--stream", is_flag=True, help="Read DATA, files or folders, piece by piece: for more rows than memory holds.")
@click.option(
    "--class", "named", multiple=True, metavar="LABEL", help="With --stream: a label; all, if the first rows lack some."
)
@click.option("--shuffle", type=click.IntRange(min=0), metavar="SEED", help="With --stream: another order of the rows.")
@click.option("--checkpoint", type=click.IntRange(min=1), metavar="N", help="Write MODEL.checkpoint every N rounds.")
@click.option("--resume", is_flag=True, help=f"Go on from MODEL.checkpoint; every {DEFAULT_EVERY} rounds if not said.")
@options.device_option
@options.jobs_option
@options.no_header_option
@options.missing_option
@options.json_option
@options.quiet_option
def fit(
    data: tuple[str, ...],
    target: str | None,
    target_file: str | None,
    algorithm: str,
    out: str,
    valid: str | None,
    weight: str | None,
    drop: tuple[str, ...],
    settings: tuple[str, ...],
    cost_matrix: str | None,
    stream: bool,
    named: tuple[str, ...],
    shuffle: int | None,
    checkpoint: int | None,
    resume: bool,
    device: str | int,
    jobs: int | None,
    no_header: bool,
    missing: tuple[str, ...],
    as_json: bool,
    quiet: bool,
) -> None:
    """Train a classifier on the table DATA and write it to a model file.

    All columns but the target, the weight and those that are dropped are features, and must hold numbers. The same command
    writes the same bytes on every device, with any number of threads, and after any number of interruptions (random_state is 0
    unless set).

    A .npz file has a matrix X and labels y, or one array a column. Of one with X_train, y_train, X_test and y_test, fit takes
    the training rows, and predict and evaluate take the others.

    With --stream (and --algorithm filterboost) DATA may be many Parquet, Feather or CSV files, or folders of them. The labels
    are those of the first n_bin_rows rows, and rows that lie sorted by label must be shuffled.

    DATA may be a code file, which gpuboost encode has written of rows that need not fit in memory; so may DATA of --valid.
    """
    from gpuboost.cli.reading.tables import Reading
    from gpuboost.cli.settings import parse, set_all
    from gpuboost.devices import open_backend

    interrupt_on("SIGTERM", "SIGHUP")  # what ends a container, and a terminal that is closed
    printer = options.Printer(as_json, quiet)
    printer.note_compiling()
    check_algorithm(algorithm)
    parameters = parse(settings, algorithm)
    others = {"--target-file": target_file, "--no-header": no_header, "--cost-matrix": cost_matrix, "--valid": valid}
    more = {"--class": named, "--shuffle": shuffle, "--weight": weight, "--drop": drop}
    check_kind(stream, data, algorithm, parameters, {**others, **more})
    check_outputs(out, bool(checkpoint or resume), (*data, target_file, valid, cost_matrix))
    if target_file and valid:
        raise click.UsageError("--valid needs its own labels: with --target-file, put X and y into .npz files instead")
    open_backend(device, jobs).close()  # before anything takes time
    reading = Reading(not no_header, missing, printer.note)
    columns: dict[str, Any] = {"target": target, "weight": weight, "drop": drop}
    sets: Sets | StreamSets | CodeSets
    if is_code_file(data):
        sets = read_code_file(reading, data[0], valid, target, parameters)
    elif stream:
        sets = read_stream(reading, data, valid, parameters, **columns, named=named, shuffle=shuffle)
    else:
        sets = read_sets(reading, data[0], target_file=target_file, valid=valid, **columns)
    estimator = make_estimator(algorithm, parameters, cost_matrix, sets.classes)
    set_all(estimator, device=device, n_jobs=jobs, random_state=parameters.get("random_state", 0))
    record = record_of(sets, missing, chosen(algorithm, estimator, sets, weight))
    if resume and finished(out, record):
        text = f"{out} is the finished model of this very run: there is nothing to do"
        printer.result({"model": out, "finished_before": True}, text)
        return
    every = checkpoint or (DEFAULT_EVERY if resume else None)
    run = Run(estimator, sets, record, out, every, printer)
    run.start(resume)
    printer.result(*run.train())


def check_kind(stream: bool, data: Sequence[str], algorithm: str, parameters: dict[str, Any], others: dict[str, Any]) -> None:
    """Raise a usage error if options do not go together with what is to be read."""
    if is_code_file(data):
        check_code_file(data[0], {**others, "--stream": stream})
    else:
        check_stream(stream, data, algorithm, parameters, others)


def check_outputs(out: str, has_checkpoint: bool, read: Sequence[str | None]) -> None:
    """Raise an error if the model or its checkpoint cannot be written, or would take the place of what is read."""
    from gpuboost.cli.outputs import check_output

    if out.lower().endswith(OTHER_KINDS):
        raise ValueError(f"--out {out} has the suffix of another kind of file; choose for instance .safetensors")
    check_place(out, [path for path in read if path is not None])
    check_output(out, (), read)
    if has_checkpoint:
        check_output(checkpoint_of(out), (), read, what="the checkpoint")


def checkpoint_of(out: str) -> str:
    """Return the checkpoint of a model file."""
    return f"{out}.checkpoint"


# ---- data --------------------------------------------------------------------------------------------------------------------


def make_estimator(algorithm: str, parameters: dict[str, Any], cost_matrix: str | None, classes: list[Any]) -> Any:
    """Return the estimator; parameters that speak of classes get the labels for the texts."""
    from gpuboost.cli.reading.cost_files import read_costs
    from gpuboost.cli.reading.labels import by_label
    from gpuboost.cli.settings import label_of
    from gpuboost.registry import ALGORITHMS, estimator_class

    kind = estimator_class(ALGORITHMS[algorithm].estimator)
    parameters = dict(parameters)
    if isinstance(parameters.get("class_weight"), dict):
        parameters["class_weight"] = by_label(parameters["class_weight"], classes)
    if "base_class" in parameters:
        parameters["base_class"] = label_of(parameters["base_class"], classes)
    if cost_matrix is not None:
        if "cost_matrix" not in kind().get_params():
            raise click.UsageError(
                f"--cost-matrix: {algorithm} does not train by costs; use --algorithm rebel, or train without and give "
                "--cost-matrix to predict, which decides by costs (often cheaper)"
            )
        parameters["cost_matrix"] = read_costs(cost_matrix, classes)
    return kind(**parameters)


def chosen(algorithm: str, estimator: Any, sets: Sets | StreamSets | CodeSets, weight: str | None) -> dict[str, str]:
    """Return what decides the model beside the data, as text."""
    from gpuboost.persistence.model_file import OF_THE_MACHINE

    values = {name: value for name, value in sorted(estimator.get_params().items()) if name not in OF_THE_MACHINE}
    # NumPy abbreviates large matrices, and their numbers.
    parameters = {name: repr(value.tolist() if isinstance(value, np.ndarray) else value) for name, value in values.items()}
    return {"algorithm": algorithm, "target": str(sets.target), "weight": str(weight), **parameters}


def record_of(sets: Sets | StreamSets | CodeSets, missing: tuple[str, ...], options_chosen: dict[str, str]) -> RunRecord:
    """Return what a run is known by."""
    return RunRecord(sets.target, sorted(set(missing)), sets.layout, {**options_chosen, **sets.options()}, sets.digest())


# ---- training ----------------------------------------------------------------------------------------------------------------


def finished(out: str, record: RunRecord) -> bool:
    """Whether a model file is there already, made by the same run."""
    from gpuboost.errors import ModelFormatError
    from gpuboost.persistence.model_file import describe

    try:
        earlier = read_record(describe(out)["extra"])
    except (OSError, ModelFormatError):
        return False
    return earlier is not None and record.difference(earlier) == ""


@dataclass
class Run:
    """A training, perhaps the continuation of one.

    Attributes
    ----------
    estimator : BoostingClassifier
    sets : Sets, StreamSets or CodeSets
    record : RunRecord
    out : str
        The model file.
    every : int or None
        Rounds between two checkpoints.
    printer : Printer
    done : int
        Rounds that a checkpoint has brought.
    """

    estimator: Any
    sets: Sets | StreamSets | CodeSets
    record: RunRecord
    out: str
    every: int | None
    printer: options.Printer
    done: int = 0

    @property
    def checkpoint(self) -> str:
        """The file of the checkpoint."""
        return checkpoint_of(self.out)

    def start(self, resume: bool) -> None:
        """Load the checkpoint if the run is to go on, or say that there is none.

        Raises
        ------
        ValueError
            If it is of another run, or cannot be read.
        """
        from gpuboost.cli.settings import set_all
        from gpuboost.persistence.model_file import describe, load

        if not os.path.exists(self.checkpoint):
            if resume:
                self.printer.note(f"There is no checkpoint {self.checkpoint}: starting from the beginning")
            return
        if not resume:
            if self.every:
                self.printer.note(f"Note: {self.checkpoint} of an earlier run will be replaced (--resume would go on from it)")
            return
        earlier = read_record(describe(self.checkpoint)["extra"])
        difference = self.record.difference(earlier) if earlier else "gpuboost fit did not write it"
        if difference:
            raise ValueError(
                f"--resume: {self.checkpoint} is of another run: {difference}; repeat the command of that run, or delete the "
                "checkpoint to start from the beginning"
            )
        model = load(self.checkpoint, device=self.estimator.device, n_jobs=self.estimator.n_jobs)
        set_all(model, warm_start=True, n_estimators=self.estimator.n_estimators)
        self.estimator = model
        self.done = int(model.n_estimators_)
        self.printer.note(f"Going on from round {self.done} of {self.checkpoint}")

    def train(self) -> tuple[dict[str, Any], str]:
        """Train and save; return the facts, and what to print."""
        from gpuboost.cli.progress import ProgressReport
        from gpuboost.cli.settings import set_all
        from gpuboost.errors import StreamError
        from gpuboost.persistence.checkpoint import Checkpoint

        report = None if self.printer.quiet else ProgressReport(self.estimator.n_estimators, self.done)
        callbacks: list[Any] = [] if report is None else [report]
        if self.every:
            callbacks.append(Checkpoint(self.checkpoint, every=self.every, extra=self.record.extra()))
        set_all(self.estimator, callbacks=callbacks)
        begun = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "interrupted after")  # `Interrupted` says it
                self.sets.train(self.estimator)
        except StreamError as error:
            raise StreamError(f"{error}; {self.left()}") from error
        except KeyboardInterrupt:
            raise Interrupted(self.left()) from None
        finally:
            if report is not None:
                report.close()
        if self.estimator.stop_reason_ == "interrupted":
            raise Interrupted(self.left())
        return self.save(time.perf_counter() - begun)

    def left(self) -> str:
        """Return what an interrupt leaves."""
        if self.every and os.path.exists(self.checkpoint):
            return f"{self.checkpoint} is kept; the same command with --resume goes on from it"
        hint = "" if self.every else " (--checkpoint N would keep the work of every N rounds)"
        return f"nothing was written{hint}"

    def save(self, seconds: float) -> tuple[dict[str, Any], str]:
        """Write the model; return the facts, and what to print."""
        from gpuboost.persistence.model_file import describe, save

        model = self.estimator
        save(model, self.out, self.record.extra())
        if self.every and os.path.exists(self.checkpoint):
            os.unlink(self.checkpoint)
        written = describe(self.out)
        last = {k: v[model.n_estimators_ - 1] for k, v in model.history_.items() if k.endswith(("_error", "_cost"))}
        rows, rows_text = self.sets.rows_of(model)
        facts = {
            "model": self.out,
            "algorithm": self.record.options["algorithm"],
            **rows,
            "features": int(model.n_features_in_),
            "classes": len(model.classes_),
            "rounds": int(model.n_estimators_),
            "rounds_run": written["n_rounds_run"],
            "resumed_from": self.done,
            "stop_reason": model.stop_reason_,
            **last,
            "device": str(model.device_),
            "seconds": seconds,
            "digest": written["digest"],
            "sha256": written["sha256"],
        }
        how = options.ending(model.stop_reason_, facts["rounds"], facts["rounds_run"])
        errors = "".join(f", {name.replace('_', ' ')} {100 * last[name]:.2f} %" for name in last if name.endswith("_error"))
        watched = model.history_.get("valid_error", [])
        if watched and not model.early_stopping and min(watched) < watched[-1]:
            best = min(range(len(watched)), key=watched.__getitem__)
            errors += f" (lowest {100 * watched[best]:.2f} % in round {best + 1}; see --set early_stopping=patience)"
        return facts, (
            f"{rows_text}, {facts['features']} features, {facts['classes']} classes: {facts['rounds']} rounds in "
            f"{seconds:.1f} s on {facts['device']} ({how}){errors}\n{self.out}: sha256 {written['sha256']}"
        )

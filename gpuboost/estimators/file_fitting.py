"""How an estimator begins a training on a code file in place of X, y and sample_weight."""

from __future__ import annotations

from typing import Any

from gpuboost.code_files.code_file import CodeFile
from gpuboost.estimators.model import TreeModel
from gpuboost.inputs.columns import compare_names, record_names
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.parameters import evaluation_tuples
from gpuboost.inputs.samples import Sample
from gpuboost.peers.rows import RowOrder


def stored_sample(
    estimator: Any,
    file: CodeFile,
    y: Any,
    sample_weight: Any,
    eval_set: Any,
    order: RowOrder | None,
    *,
    reset: bool,
) -> tuple[Sample, LabelEncoder]:
    """Return the rows of a code file and their classes; record or compare its columns.

    Raises
    ------
    TypeError
        If the estimator needs values.
    ValueError
        If there are labels or weights beside those of the file, or a parameter asks for other cuts than it has.
    CodeFileError
        If the file is damaged.
    """
    if order is not None:
        raise ValueError("a CodeFile is trained on by one worker: give each a part of the rows in memory")
    check_takes_codes(estimator)
    for name, given in (("y", y), ("sample_weight", sample_weight)):
        if given is not None:
            raise ValueError(f"{name} must be None beside a CodeFile, which has labels and weights of its own")
    if estimator.class_weight is not None:
        raise ValueError(
            f"class_weight must be None beside a CodeFile, whose cuts depend on weights, got {estimator.class_weight!r:.80}; "
            "write the file with weights that it is a factor of"
        )
    if estimator.early_stopping and not evaluation_entries(eval_set):
        raise ValueError("early_stopping on a CodeFile needs an eval_set: its cuts were chosen on all of its rows")
    if estimator.calibration == "cv" or (estimator.calibration and not estimator.early_stopping):
        raise ValueError(
            f"calibration={estimator.calibration!r} on a CodeFile would hold out rows that its cuts were chosen on: use "
            'calibration="holdout" with early_stopping and an eval_set, or the method calibrate'
        )
    if reset:
        record_names(estimator, file.feature_names, file.n_features)
    else:
        compare_names(estimator, file.feature_names, file.n_features)
    return file.sample()


def check_takes_codes(estimator: Any) -> None:
    """Raise a TypeError if an estimator needs values."""
    if estimator._model_kind is not TreeModel:
        kind = type(estimator).__name__
        raise TypeError(f"a {kind} that boosts no trees needs values, which a code file does not have")


def evaluation_entries(eval_set: Any) -> list[CodeFile | tuple[Any, Any, Any]]:
    """Return the files, and the (X, y, sample_weight) triples, of an ``eval_set``."""
    entries = [] if eval_set is None else eval_set if isinstance(eval_set, list) else [eval_set]
    return [one if isinstance(one, CodeFile) else evaluation_tuples([one])[0] for one in entries]


def watched_sample(estimator: Any, file: CodeFile, encoder: LabelEncoder, name: str) -> Sample:
    """Return the rows of a code file that a training watches.

    Raises
    ------
    TypeError
        If the estimator needs values.
    ValueError
        If the columns, or the labels, are not those of the training.
    CodeFileError
        If the file is damaged.
    """
    check_takes_codes(estimator)
    compare_names(estimator, file.feature_names, file.n_features)
    return file.watched_sample(encoder, name)

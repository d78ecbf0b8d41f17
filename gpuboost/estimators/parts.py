"""Training on several workers, each of which has a part of the rows."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuboost.array_types import IntArray
from gpuboost.errors import WorkersPartedError
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.inputs.containers import Blocks, frame_names, joined
from gpuboost.peers.base import Peers
from gpuboost.peers.local_rows import LocalRows
from gpuboost.peers.rows import RowOrder
from gpuboost.persistence.model_file import to_bytes


@dataclass(frozen=True)
class Part:
    """The rows of a training set, and of its evaluation sets, that one worker has.

    Attributes
    ----------
    X, y, sample_weight
        As for `BoostingClassifier.fit`, but there may be no rows; X may be `Blocks`, which are used up.
    eval_set : tuple or list of tuples, optional
        As for `BoostingClassifier.fit`: the worker's rows of every set, all workers' in the same order.
    keys : ndarray of int64, shape (n_stretches,)
        The rows are stretches, which follow one another among all rows by their keys, such as the numbers of partitions.
    sizes : ndarray of int64, shape (n_stretches,)
        Rows of each stretch.
    """

    X: Any
    y: Any
    keys: IntArray
    sizes: IntArray
    sample_weight: Any = None
    eval_set: Any = None


def fit_part(estimator: BoostingClassifier, part: Part, peers: Peers) -> BoostingClassifier:
    """Train a copy of ``estimator`` together with the other workers, who all must call this; return it.

    The model is the one that `fit` makes of all rows in their order, byte for byte. The first worker calls the callbacks and
    shows the progress.

    Raises
    ------
    TypeError
        If the estimator cannot train so.
    ValueError
        If the parts do not fit together, or what `fit` refuses.
    WorkersPartedError
        If the workers have made different models, which is a bug.
    WorkerLostError
        If another worker has failed.
    """
    if not isinstance(estimator, BoostingClassifier):
        raise TypeError(f"{type(estimator).__name__} cannot train on several workers; the boosting classifiers of gpuboost can")
    check_parts(part, peers)
    fitted = copy.copy(estimator)
    if peers.rank > 0:
        fitted.set_params(callbacks=None, verbose=0)
    order = RowOrder.of(np.asarray(part.keys, np.int64), np.asarray(part.sizes, np.int64), peers)
    fitted._fitted_by(lambda one: one._fit(part.X, part.y, part.sample_weight, part.eval_set, order))
    digests = peers.gather(fitted.ensemble_.digest().encode(), "digest of the model")
    if len(set(digests)) > 1:
        other = next(rank for rank, digest in enumerate(digests) if digest != digests[0])
        raise WorkersPartedError(f"worker 0 and worker {other} have made different models; this is a bug, please report it")
    return fitted


def fit_worker(estimator: Any, local: LocalRows, peers: Peers) -> bytes:
    """Train on the rows of several workers, who all must call this, and return the model's file, the same on all workers.

    See `fit_part`.
    """
    return bytes(to_bytes(fit_part(estimator, part_of(local), peers)))


def part_of(local: LocalRows) -> Part:
    """Return blocks of rows as one part, and leave their features to it.

    A worker has rows of the training set, but perhaps none of an evaluation set.
    """
    y, weight = joined(local.y), local.sample_weight and joined(local.sample_weight)
    sizes = np.array([len(block) for block in local.X])
    X = Blocks(local.X)  # never joined, as that would take the memory of all of them once more
    sets: list[tuple[Any, ...]] = []
    for own in local.evaluation:
        given = own.sample_weight is not None
        if own.X:
            sets.append((Blocks(own.X), joined(own.y), *([joined(own.sample_weight or [])] if given else [])))
        else:
            sets.append((X.head, y[:0], *([np.zeros(0)] if given else [])))
    return Part(X, y, np.array(local.first_rows), sizes, weight, sets or None)


def check_parts(part: Part, peers: Peers) -> None:
    """Refuse parts of which some have other columns, weights or evaluation sets than others."""
    n_sets = len(part.eval_set) if isinstance(part.eval_set, list) else int(part.eval_set is not None)
    head = part.X.head if isinstance(part.X, Blocks) else part.X
    own = {
        "columns": head.shape[1],
        "names of the columns": frame_names(head),
        "sample_weight": "given" if part.sample_weight is not None else "absent",
        "number of evaluation sets": n_sets,
    }
    told: Sequence[dict[str, Any]] = [json.loads(one) for one in peers.gather(json.dumps(own, default=str).encode(), "parts")]
    for what, first in told[0].items():
        for rank, other in enumerate(told):
            if other[what] != first:
                raise ValueError(
                    f"all workers must have the same {what}, but worker 0 has {first}, worker {rank} {other[what]}"
                )

"""What a worker does with its rows, whatever engine has started it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpuboost.peers.base import Peers


@dataclass(frozen=True)
class LocalRows:
    """The rows of a set that one worker holds, in blocks.

    Attributes
    ----------
    X, y : list
        The features and labels of every block, as `gpuboost.fit` takes them. There may be no block.
    sample_weight : list or None
        The weights of every block; None if there are none on any worker.
    first_rows : list of int
        The number of the first row of every block among the rows of all workers, ascending. Blocks are not empty, so no other
        block of the set has the same number, here or elsewhere.
    evaluation : list of LocalRows
        The evaluation sets: as many on all workers.
    """

    X: list[Any]
    y: list[Any]
    sample_weight: list[Any] | None
    first_rows: list[int]
    evaluation: list[LocalRows] = field(default_factory=list)


def fit_worker(estimator: Any, local: LocalRows, peers: Peers) -> bytes:
    """Train an estimator on the rows of several workers, who all must call this, and return the model's file.

    Parameters
    ----------
    estimator : BoostingClassifier
        Not fitted, with the same parameters on all workers, but for ``n_jobs``, and ``callbacks``, which only rank 0 has.
    local : LocalRows
    peers : Peers

    Returns
    -------
    bytes
        The same on all workers.
    """
    from gpuboost.persistence.model_file import to_bytes

    if peers.size > 1 or len(local.X) != 1:
        raise NotImplementedError("training on several workers, or on rows in several blocks")
    weight = None if local.sample_weight is None else local.sample_weight[0]
    sets = [(one.X[0], one.y[0], *(one.sample_weight or [])[:1]) for one in local.evaluation]
    return bytes(to_bytes(estimator.fit(local.X[0], local.y[0], weight, sets or None)))

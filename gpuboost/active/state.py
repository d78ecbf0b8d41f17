"""All that changes in an active learner: what is labelled, and the committees that were trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from gpuboost.active.utility import Rows
from gpuboost.array_types import Floats


@dataclass(frozen=True)
class Trial:
    """A committee and what it was trained on.

    Attributes
    ----------
    committee : classifier
    n_rows : int
        How many labelled rows there were.
    record : dict of float
        What the history says of it.
    """

    committee: Any
    n_rows: int
    record: dict[str, float]


@dataclass(frozen=True)
class State:
    """All that changes in an `ActiveLearner`: it is replaced at once, so that an interrupt finds the old or the new one.

    Attributes
    ----------
    rows : ndarray of intp
        The labelled rows, in the order in which they were taught.
    labels : ndarray
        Their labels.
    weights : ndarray of float64
        Their weights.
    weighted : bool
        Whether anybody gave weights.
    discarded : ndarray of intp
        The rows that nobody can label.
    records : tuple of dict
        What the history says of each trial.
    refused : int
        The number of labelled rows on which the estimator last refused to be trained; 0 if it never did.
    latest, best : Trial, optional
        The last one, and the first with the lowest error on the first evaluation set (the last one if there is no set).
    """

    rows: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    labels: NDArray[Any] = field(default_factory=lambda: np.empty(0, object))
    weights: Floats = field(default_factory=lambda: np.empty(0))
    weighted: bool = False
    discarded: Rows = field(default_factory=lambda: np.empty(0, np.intp))
    records: tuple[dict[str, float], ...] = ()
    refused: int = 0
    latest: Trial | None = None
    best: Trial | None = None


def fitted(trial: Trial | None) -> Trial:
    """Return the trial if there is one."""
    if trial is None:
        raise NotFittedError("This ActiveLearner is not fitted yet: teach it labels of at least two classes first.")
    return trial

"""How much a row is worth a label, and the scores of a committee (section 4 of the GAMBLE paper)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpuboost.array_types import Floats

Rows = NDArray[np.intp]
Oracle = Callable[[Rows], Any]


def margins(scores: ArrayLike) -> Floats:
    """Return how far the best class of each row is ahead of the second.

    Parameters
    ----------
    scores : array-like, shape (n_rows, n_classes) or (n_rows,)
        What ``decision_function`` returns: for two classes perhaps only the difference of their scores.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        Not negative; 0 where the committee is undecided, and everywhere if it knows of one class only.

    Raises
    ------
    ValueError
        If ``scores`` has not one or two dimensions.
    """
    values = np.asarray(scores, np.float64)
    if values.ndim not in (1, 2):
        raise ValueError(f"scores must have the shape (n_rows, n_classes) or (n_rows,), got {values.shape}")
    if values.ndim == 1:
        return np.abs(values)
    if values.shape[1] < 2:
        return np.zeros(len(values))
    second, top = np.partition(values, -2, axis=1)[:, -2:].T
    ahead: Floats = top - second
    return ahead


def utility(scores: ArrayLike) -> Floats:
    """Return the utility of a label for each row, ``1 / (F_top - F_second)`` (step 2c of algorithm 3).

    Parameters
    ----------
    scores : array-like, shape (n_rows, n_classes) or (n_rows,)
        See `margins`.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        Positive; infinite where the two best classes tie.
    """
    with np.errstate(divide="ignore", over="ignore"):
        useful: Floats = 1.0 / margins(scores)
    return useful


def seeded(estimator: Any, seed: int) -> Any:
    """Set the random states of an estimator, and of those within it, that are None."""
    names = [name for name, value in sorted(estimator.get_params().items()) if value is None and name.endswith("random_state")]
    seeds = np.random.SeedSequence(seed).generate_state(len(names))
    return estimator.set_params(**{name: int(one) for name, one in zip(names, seeds, strict=True)})


def scores_of(committee: Any, X: Any) -> Floats:
    """Return the scores of the classes, or their probabilities where there are no scores."""
    score = committee.decision_function if hasattr(committee, "decision_function") else committee.predict_proba
    scores = np.asarray(score(X), np.float64)
    n_classes = len(committee.classes_)
    if scores.shape[1:] != (n_classes,) and (scores.ndim, n_classes) != (1, 2):
        raise ValueError(f"estimator must give a score for each of the {n_classes} classes, got scores of shape {scores.shape}")
    return scores

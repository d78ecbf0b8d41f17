"""A booster's link turns the scores at which its loss is lowest into the shares of the classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

import gpuboost
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.inputs.samples import training_sample
from gpuboost.learners.grown_tree import GrownTree
from gpuboost.links import Sigmoid, independent, normalised
from gpuboost.tree import constant_tree
from tests.candidates import thinned

Floats = NDArray[np.float64]

COUNTS = {2: (3, 7), 3: (1, 2, 5), 5: (2, 9, 1, 4, 4)}
MULTI_LABEL = np.array([[1, 0, 1], [0, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, 1]])
CASES: dict[str, Any] = {
    **{name: getattr(gpuboost, entry.estimator)() for name, entry in gpuboost.ALGORITHMS.items()},
    "adaboost-mh, discrete": gpuboost.AdaBoostMHClassifier(variant="discrete"),
    "adaboost-mh, uniform": gpuboost.AdaBoostMHClassifier(initial_weights="uniform"),
    "adaboost-mh, single-label": gpuboost.AdaBoostMHClassifier(learner="single-label", variant="discrete"),
    "adaboost-mr, single-label": gpuboost.AdaBoostMRClassifier(learner="single-label"),
    "adaboost-ecc, oc": gpuboost.AdaBoostECCClassifier(variant="oc", random_state=0),
    "filterboost": gpuboost.FilterBoostClassifier(n_estimators=2),  # the data choose nothing in its loss
    "abc-boost, mart": gpuboost.ABCBoostClassifier(loss="mart"),
    "samme, discrete": gpuboost.SAMMEClassifier(variant="discrete"),
    "gamble, regressors": gpuboost.GambleClassifier(regressor=LinearRegression()),
}


def loss_of(model: Any, labels: NDArray[Any]) -> tuple[Callable[[Floats], float], Any]:
    """The loss of scores that are the same for every row, as the row state of the model's booster computes it; its link."""
    X = np.arange(float(len(labels)))[:, None]
    backend = NumpyBackend()
    model = model.fit(X, labels)  # so that what is chosen by the data is chosen
    sample, encoder = training_sample(X, labels, None, None)
    if isinstance(model, gpuboost.FilterBoostClassifier):  # its rows are a stream's
        booster: Any = model._booster(None, len(encoder.classes), True)
    else:
        booster = model._make_booster(encoder, sample, None)
    problem, _ = model._model.problem(backend, sample, encoder)

    def loss(scores: Floats) -> float:
        state = booster.row_state(problem)
        state.update([GrownTree(constant_tree(scores), np.zeros(len(labels), np.int32))])
        return float(state.loss())

    return loss, model._link(len(encoder.classes))


def lowest(loss: Callable[[Floats], float], directions: Floats) -> Floats:
    """Find the minimum of a convex loss by Newton's method along ``directions``, one after another, by central differences."""
    scores, h = np.zeros(directions.shape[1]), 0.01
    for _ in range(25):
        for direction in directions:
            below, here, above = (loss(scores + t * h * direction) for t in (-1, 0, 1))
            scores = scores + h * np.clip((below - above) / (2 * (below - 2 * here + above)), -50, 50) * direction
    return scores


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n_classes", thinned(COUNTS, len(COUNTS)))
def test_the_loss_is_lowest_where_the_link_gives_the_shares(name: str, n_classes: int) -> None:
    counts = np.array(COUNTS[n_classes])
    loss, link = loss_of(CASES[name].set_params(device="numpy", n_estimators=1), np.repeat(np.arange(n_classes), counts))
    one = np.eye(n_classes)
    scores = lowest(loss, one if isinstance(link, Sigmoid) else one - 1 / n_classes)[None]
    p = normalised(link.log_probabilities(scores), scores.argmax(axis=1))[0]
    assert p == pytest.approx(counts / counts.sum(), abs=1e-4)


def test_every_class_of_several_labels_has_its_own_share() -> None:
    rows = np.repeat(MULTI_LABEL, 2, axis=0)
    loss, link = loss_of(gpuboost.AdaBoostMHClassifier(device="numpy", n_estimators=1), rows)
    scores = lowest(loss, np.eye(3))[None]
    assert independent(link.log_probabilities(scores), scores > 0)[0] == pytest.approx(rows.mean(axis=0), abs=1e-4)

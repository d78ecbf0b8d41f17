"""Each of the decisions that a worker could take by its own rows alone is taken so: an error says within a second where.

The list is that of all that looks at rows on the host. `test_careless_workers` leaves out every exchange of some trainings;
here each decision has a training in which it matters, and the words of its error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost import fixedpoint
from gpuboost.errors import WorkersPartedError
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.peers.base import ALONE, Peers
from gpuboost.peers.threads import run_workers
from tests.estimators.test_careless_workers import Careless

RNG = np.random.default_rng(3)
X = np.where(RNG.random((60, 4)) < 0.1, np.nan, RNG.normal(size=(60, 4)).round(1))
Y = np.arange(60) % 3
Y[44:49] = 0  # the second worker has one class
REAL = RNG.random(60) * 0.4 + 0.05
REAL[3] = 0.9
MULTIPLES = np.ones(60)
MULTIPLES[50] = 1.5  # the third worker alone has weights that are no multiples
OF_EQUAL_ONES = REAL.copy()
OF_EQUAL_ONES[44:49] = 0.9  # as no weight is larger, they are whole numbers to the second worker
FEW: dict[str, Any] = {"n_estimators": 2, "random_state": 1, "max_bins": 8, "device": "numpy"}


def mh(**parameters: Any) -> Any:
    return gpuboost.AdaBoostMHClassifier(**({"max_leaf_nodes": 3} | FEW | parameters))


@dataclass(frozen=True)
class Decision:
    """A decision, and a training in which it is taken by each worker alone.

    Attributes
    ----------
    forgotten : str
        A pattern of the exchanges that are left out.
    message : str
        A pattern of the error's words.
    estimator : BoostingClassifier
    X, y, weight : ndarray
    bounds : tuple of int
        Which rows the workers have.
    kind : type
        Of the error.
    planted : callable, optional
        Puts the wrong decision in place, where that is no exchange left out.
    """

    forgotten: str
    message: str
    estimator: Any = field(default_factory=mh)
    X: Any = field(default_factory=X.copy)
    y: Any = field(default_factory=Y.copy)
    weight: Any = None
    bounds: tuple[int, ...] = (0, 44, 49, 60)
    kind: type[Exception] = WorkersPartedError
    planted: Callable[[pytest.MonkeyPatch], None] | None = None


def empty_is_none(patch: pytest.MonkeyPatch) -> None:
    """Who has no rows takes their weights for not given, and does not ask."""
    right = fixedpoint.split_weights

    def split_weights(weights: Any, peers: Peers = ALONE) -> Any:
        return right(weights, ALONE if len(weights) == 0 else peers)

    patch.setattr("gpuboost.inputs.samples.split_weights", split_weights)


def stop_now(progress: Any) -> bool:
    return True


DECISIONS = {
    "1 the number of rows of the loss": Decision("number of rows", "number of rows, decided as"),
    "1 the number of rows of probabilities": Decision(
        "number of rows", "number of rows, decided as", gpuboost.MartClassifier(max_leaf_nodes=3, **FEW)
    ),
    "2 no more leaves than rows": Decision("code counts", "how many rows there are, decided as", mh(max_leaf_nodes=50)),
    "3 the unit of the rows' weights": Decision(
        "row weights and number of rows", "unit of the rows' counts, decided as", mh(min_weight_fraction_leaf=0.1), weight=REAL
    ),
    "4 the largest and the smallest weight": Decision(
        "largest and smallest weight", "largest and smallest weight, decided as", weight=REAL
    ),
    "4 whether weights are repetitions": Decision(
        "whether weights are multiples", "whether weights are multiples, decided as", weight=MULTIPLES
    ),
    "5 whether all weights are 1": Decision(
        "whether weights are real", "whether weights are real, decided as", weight=OF_EQUAL_ONES
    ),
    "6 the scale of the weights": Decision("largest weight", "scale of the weights, decided as", weight=REAL),
    "7 the smallest leaf": Decision("sum of the rows' counts", "smallest leaf, decided as", mh(min_weight_fraction_leaf=0.1)),
    "8 the weight of a watched set": Decision("weight of a set", "weight of a set, decided as"),
    "9 the scores of a constant model": Decision(
        "weights of the classes", "scores of a constant model, decided as", X=np.ones((60, 4))
    ),
    "10 which rows are drawn": Decision("values by digit", "values by digit at .* are needed", mh(subsample=0.6)),
    "11 the weight that the heaviest rows have": Decision(
        "weights of the rows drawn", "weight that the rows must have, decided as", mh(weight_trim=0.9), weight=REAL
    ),
    "12 whether any row is left out": Decision(
        "rows left out", "rows left out, decided as", mh(weight_trim=0.9), weight=OF_EQUAL_ONES
    ),
    "13 the classes": Decision("labels of y", "classes of y, decided as"),
    "14 the number of distinct rows": Decision(
        "distinct rows", "number of distinct rows, decided as", gpuboost.AdaBoostMHClassifier(**FEW)
    ),
    "15 balanced weights": Decision(
        "exact sums", "weights of the classes, decided as", mh(class_weight="balanced"), y=np.arange(60) % 3
    ),
    "16 which rows are held out": Decision("rows by class", "rows to hold out, decided as", mh(early_stopping=True)),
    "17 the seed": Decision("seed", "seed, decided as", mh(random_state=None, subsample=0.5)),
    "18 the end that a callback asks for": Decision(
        "who asks to stop", "its end|digest of the model", mh(callbacks=[stop_now])
    ),
    "19 whether any row has a weight": Decision(
        "rows with a weight",
        "leave no row with a weight",
        mh(class_weight={0: 0.0}),
        kind=ValueError,
    ),
    "20 what an empty array means": Decision("", "largest and smallest weight", bounds=(0, 44, 44, 60), planted=empty_is_none),
}


class Forgetful(Careless):
    """Leaves out the calls whose names match a pattern."""

    def _meet(self, op: str, own: Any, arguments: tuple[Any, ...], mine: Any) -> Any:
        result = getattr(self.peers, op)(*arguments)  # so that the others, who leave it out as well, are not waited for
        is_forgotten = self.forgotten and re.match(rf"{self.forgotten}(?!.*decided as)", arguments[-1])
        return mine if is_forgotten else result


def train(decision: Decision, forgotten: str) -> Any:
    def work(peers: Peers) -> Any:
        rows = slice(*decision.bounds[peers.rank : peers.rank + 2])
        weight = None if decision.weight is None else decision.weight[rows]
        part = Part(decision.X[rows], decision.y[rows], np.array([peers.rank]), np.array([rows.stop - rows.start]), weight)
        return fit_part(decision.estimator, part, Forgetful(peers, forgotten, set(), []))

    return run_workers(3, work, timeout=5)


def test_all_twenty_are_there() -> None:
    assert {int(name.split()[0]) for name in DECISIONS} == set(range(1, 21))


@pytest.mark.filterwarnings("ignore:no column of X tells rows apart")
@pytest.mark.parametrize("name", DECISIONS)
def test_a_local_decision_is_named_within_a_second(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    decision = DECISIONS[name]
    assert len({model.ensemble_.digest() for model in train(decision, "")}) == 1  # without it all is well
    if decision.planted is not None:
        decision.planted(monkeypatch)
    began = time.perf_counter()
    with pytest.raises(decision.kind, match=decision.message) as raised:
        train(decision, decision.forgotten)
    assert time.perf_counter() - began < 1
    assert "raised by worker" in raised.value.__notes__[0]

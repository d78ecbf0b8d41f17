"""A decision that every worker takes by its own rows alone ends in an error that names where they have parted.

Every exchange of a training is left out in turn, as a programmer could have forgotten it.
"""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost.errors import WorkersPartedError
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.peers.base import Peers
from gpuboost.peers.threads import run_workers

RNG = np.random.default_rng(3)
X = np.where(RNG.random((60, 4)) < 0.1, np.nan, RNG.normal(size=(60, 4)).round(1))
Y = (X[:, 0] > 0).astype(int) + (np.nan_to_num(X[:, 1]) > 0.5)
W = RNG.random(60) + 0.01
BOUNDS = (0, 44, 49, 60)
FEW: dict[str, Any] = {"n_estimators": 2, "random_state": 1, "max_bins": 8, "device": "numpy"}
SAMPLED: dict[str, Any] = {"subsample": 0.6, "max_features": 0.5, "weight_trim": 0.9}
ESTIMATORS: dict[str, Any] = {
    "adaboost-mh": gpuboost.AdaBoostMHClassifier(
        max_leaf_nodes=4, min_weight_fraction_leaf=0.1, class_weight="balanced", early_stopping=True, **FEW
    ),
    "adaboost-mh, auto": gpuboost.AdaBoostMHClassifier(**FEW),
    "products": gpuboost.AdaBoostMHClassifier(learner="product", variant="discrete", **FEW),
    "samme, sampled": gpuboost.SAMMEClassifier(max_leaf_nodes=3, **FEW, **SAMPLED),
    "rebel": gpuboost.RebelClassifier(max_depth=2, **FEW),
    "abc-mart": gpuboost.ABCBoostClassifier(loss="mart", max_leaf_nodes=3, **FEW),
}
NAME = re.compile(r"\[.*?\]|-?\b[0-9a-f]*\d[0-9a-f.e+-]*\b|\b[0-9a-f]{8}\b")
"""What changes from call to call in the name of one."""


class Careless:
    """Leaves out the calls of one name. Notes the names of all calls, and whether those left out would have mattered."""

    def __init__(self, peers: Peers, forgotten: str, names: set[str], mattered: list[str]) -> None:
        self.peers, self.forgotten, self.names, self.mattered = peers, forgotten, names, mattered
        self.rank, self.size = peers.rank, peers.size

    def _meet(self, op: str, own: Any, arguments: tuple[Any, ...], mine: Any) -> Any:
        name = NAME.sub("#", arguments[-1])
        self.names.add(name)
        result = getattr(self.peers, op)(*arguments)  # so that the others, who leave it out as well, are not waited for
        if name != self.forgotten:
            return result
        if not np.array_equal(result, mine):
            self.mattered.append(name)
        return mine

    def sum(self, array: Any, what: str) -> Any:
        return self._meet("sum", array, (array, what), array)

    def max(self, array: Any, what: str) -> Any:
        return self._meet("max", array, (array, what), array)

    def gather(self, data: bytes, what: str) -> Any:
        return self._meet("gather", data, (data, what), [data] * self.size)

    def reduce_scatter(self, array: Any, bounds: Any, what: str) -> Any:
        own = array[bounds[self.rank] : bounds[self.rank + 1]]
        return self._meet("reduce_scatter", array, (array, bounds, what), own)


def train(name: str, forgotten: str = "") -> tuple[set[str], list[str], list[Any]]:
    names: set[str] = set()
    mattered: list[str] = []

    def work(peers: Peers) -> Any:
        rows = slice(*BOUNDS[peers.rank : peers.rank + 2])
        keys, sizes = np.array([peers.rank]), np.array([rows.stop - rows.start])
        part = Part(X[rows], Y[rows], keys, sizes, sample_weight=W[rows])
        return fit_part(ESTIMATORS[name], part, Careless(peers, forgotten, names, mattered))

    try:
        return names, mattered, run_workers(3, work, timeout=5)
    except Exception as error:
        return names, mattered, [error]


PRIMITIVES = re.compile(
    r"sums of statistics|channel sums|leaf sums|totals of roots|histograms|best splits|rows of children|values by digit"
    r"|maximum|largest miss|derivatives|losses|weight of wrong predictions|code counts|cuts of the columns|parts|digest"
    r"|.*, decided as|who asks"
)
"""Exchanges that are the sum of a primitive, and no decision of the host: that they are right, equal models say."""


@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_decision_is_taken_alone(name: str) -> None:
    names, _, models = train(name)
    right, decisions = models[0].ensemble_.digest(), sorted(one for one in names if not PRIMITIVES.match(one))
    assert len(decisions) > 9
    noticed = 0
    for forgotten in decisions:
        started = time.perf_counter()
        _, mattered, (found, *_) = train(name, forgotten)
        assert time.perf_counter() - started < 1
        if isinstance(found, Exception):
            noticed += 1
            assert isinstance(found, (WorkersPartedError, ZeroDivisionError, RuntimeWarning)), found
        else:
            assert not mattered or found.ensemble_.digest() == right, forgotten
    assert noticed > 4

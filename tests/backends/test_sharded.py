"""Rows that are divided among workers give the models of one process."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpuboost.backends.divided import DividedGrowth, Division
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.sharded import ShardedBackend
from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster
from gpuboost.boosters.comparison.adaboost_mr import AdaBoostMR
from gpuboost.boosters.comparison.aoso_logitboost import AOSOLogitBoost
from gpuboost.boosters.comparison.one_vs_all import OneVsAll
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.rebel import Rebel
from gpuboost.boosters.samme import SAMME
from gpuboost.boosters.sampling import Sampling
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct
from gpuboost.learners.single_label_tree import SingleLabelTree
from gpuboost.peers.base import Peers
from gpuboost.peers.rows import RowOrder
from gpuboost.peers.threads import run_workers
from gpuboost.training import Training, train
from tests.candidates import emulated
from tests.problems import Data, blobs, cpu_backend, digest, fit

SAMPLED = Sampling(weight_trim=0.9, max_features=0.6, subsample=0.7, seed=3)
BOOSTERS: dict[str, Booster[Any]] = {
    "adaboost-mh": AdaBoostMH(HammingTree(5), "single-label"),
    "adaboost-mh real, sampled": AdaBoostMH(HammingTree(4), "single-label", "real", sampling=SAMPLED),
    "products": AdaBoostMH(StumpProduct(2), "single-label", min_weight_fraction_leaf=0.05),
    "samme": SAMME(max_leaf_nodes=5),
    "samme sampled": SAMME(max_leaf_nodes=4, variant="real", sampling=SAMPLED, min_weight_fraction_leaf=0.05),
    "gamble": Gamble(max_leaf_nodes=4, line_search=True),
    "rebel": Rebel(max_depth=3),
    "rebel sampled": Rebel(max_depth=2, sampling=replace(SAMPLED, weight_trim=0.8)),
    "mart": ABCBoost("mart", None, 1, None, 4, 2, 0.1, sampling=SAMPLED),
    "abc-logitboost": ABCBoost("logit", "search", 2, None, 4, 1, 0.1),
    "one-vs-all": OneVsAll(AdaBoostMH(HammingTree(3), "uniform")),
    "adaboost-mm": AdaBoostMR(SingleLabelTree(5), sampling=SAMPLED),
    "aoso-logitboost": AOSOLogitBoost(4, 2, 0.3, SAMPLED),
}
DATA = {
    "plain": blobs(n_rows=90, n_features=5, n_classes=3, seed=0),
    "weighted": replace(
        blobs(n_rows=70, n_features=4, n_classes=3, seed=1), weights=np.random.default_rng(5).integers(1, 4, 70).astype(float)
    ),
    "real": replace(blobs(n_rows=70, n_features=4, n_classes=2, seed=2), weights=np.random.default_rng(6).random(70) + 0.1),
}
LOCAL: dict[str, Callable[[], DividedGrowth]] = {
    "numpy": NumpyBackend,
    "cpu": cpu_backend,
    "emulated": lambda: emulated("forward"),
    "linked": lambda: emulated("forward", linked=True),
}
DIVISIONS = {
    "one": [90],
    "even": [45, 45],
    "uneven": [81, 6, 3],
    "empty": [30, 0, 20, 0, 40],
}


def stretches(sizes: Sequence[int], n_rows: int) -> list[np.ndarray]:
    ends = np.cumsum([0, *sizes]) * n_rows // sum(sizes)
    return [np.arange(first, stop) for first, stop in itertools.pairwise(ends)]


def fit_divided(
    booster: Booster[Any], data: Data, open_local: Callable[[], DividedGrowth], sizes: Sequence[int]
) -> list[Training]:
    mapper, parts = data.mapper(), stretches(sizes, len(data.X))
    frequency_weight, weight_scale = data.split()

    def work(peers: Peers) -> Training:
        rows = parts[peers.rank]
        with open_local() as local, ShardedBackend(local, peers) as backend:
            local.link(peers)
            problem = data.subset(rows).on(backend, mapper)
            order = RowOrder.of(np.array([peers.rank]), np.array([len(rows)]), peers)
            own = {"frequency_weight": frequency_weight[rows], "weight_scale": weight_scale[rows]}
            return train(booster, replace(problem, order=order, **own), n_rounds=6)

    return run_workers(len(sizes), work)


EVERY = {"numpy": 2, "cpu": 2, "emulated": 8, "linked": 6}
CASES = [
    pytest.param(name, data, division, local, marks=[] if (i + j) % EVERY[local] == 0 else pytest.mark.exhaustive)
    for j, local in enumerate(LOCAL)
    for i, (name, data, division) in enumerate(itertools.product(BOOSTERS, DATA, DIVISIONS))
]
"""Every booster meets every set, every division and every backend, but not all of them at once."""


@pytest.mark.parametrize(("name", "data", "division", "local"), CASES)
def test_divided_rows_make_the_same_model(name: str, data: str, division: str, local: str, once: Callable[..., Any]) -> None:
    alone = once(fit, BOOSTERS[name], DATA[data], NumpyBackend(), 6)
    for training in fit_divided(BOOSTERS[name], DATA[data], LOCAL[local], DIVISIONS[division]):
        assert digest(training.trees, DATA[data].n_classes) == digest(alone.trees, DATA[data].n_classes)
        for what in alone.history.keys() - {"seconds"}:
            assert str(training.history[what]) == str(alone.history[what])  # NaN is NaN


class Metered:
    """Notes how often the workers meet in a growth, and how many entries the histograms have that go out."""

    def __init__(self, peers: Peers) -> None:
        self.peers, self.rank, self.size = peers, peers.rank, peers.size
        self.sent: list[int] = []
        self.n_gathered = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.peers, name)

    def reduce_scatter(self, array: Any, bounds: Any, what: str) -> Any:
        self.sent.append(array.size)
        return self.peers.reduce_scatter(array, bounds, what)

    def gather(self, data: bytes, what: str) -> list[bytes]:
        self.n_gathered += what.startswith("best splits")
        return self.peers.gather(data, what)


@pytest.mark.parametrize("local", LOCAL)
@pytest.mark.parametrize(
    ("max_leaves", "n_nodes"),
    [
        (2, [1]),  # its children are leaves
        (3, [1, 1]),
        (8, [1, 1, 2, 3]),  # all levels but that of the leaves: it has four nodes, and the children of one are not looked at
    ],
)
def test_the_workers_meet_for_a_few_nodes_at_a_time(max_leaves: int, n_nodes: list[int], local: str) -> None:
    """Eight classes by three features of two values: a tree is divided level by level, and its leaves are pure."""
    bits = np.arange(64)[:, None] >> np.arange(3) & 1
    signs = np.where(bits @ [1, 2, 4] == np.arange(8)[:, None], 1, -1).T.astype(np.int8)
    data = Data(bits.astype(float), signs)
    mapper = data.mapper()

    def work(peers: Peers) -> Metered:
        metered = Metered(peers)
        with ShardedBackend(LOCAL[local](), metered) as backend:
            problem = data.subset(np.arange(64)[peers.rank :: 2]).on(backend, mapper)
            train(SAMME(max_leaf_nodes=max_leaves), problem, n_rounds=1)
        return metered

    for metered in run_workers(2, work):
        assert metered.sent == [n * mapper.n_bins.sum() * 8 for n in n_nodes]
        assert metered.n_gathered == len(n_nodes)


def test_a_division_has_whole_features_and_even_bins() -> None:
    division = Division.of(np.array([0, 10, 12, 14, 30, 40]), 3)
    assert division.features.tolist() == [0, 3, 4, 5]
    assert division.bins.tolist() == [0, 14, 30, 40]
    assert Division.of(np.array([0, 9]), 3).bins.tolist() == [0, 9, 9, 9]

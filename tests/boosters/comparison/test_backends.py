"""Every comparison booster makes the same model on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster
from gpuboost.boosters.colouring import Colourings
from gpuboost.boosters.comparison.adaboost_ecc import AdaBoostECC
from gpuboost.boosters.comparison.adaboost_m1 import AdaBoostM1
from gpuboost.boosters.comparison.adaboost_mr import AdaBoostMR
from gpuboost.boosters.comparison.aoso_logitboost import AOSOLogitBoost
from gpuboost.boosters.comparison.one_vs_all import OneVsAll
from gpuboost.boosters.comparison.pair_weights import PairWeights
from gpuboost.boosters.sampling import Sampling
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct
from gpuboost.learners.single_label_tree import SingleLabelTree
from gpuboost.training import Training
from tests.candidates import Once
from tests.problems import Data, blobs, digest, fit, sign_matrix

SAMPLED = Sampling(weight_trim=0.9, max_features=0.6, subsample=0.7, seed=3)
BOOSTERS: dict[str, Booster[Any]] = {
    "one-vs-all": OneVsAll(AdaBoostMH(HammingTree(4), "uniform", sampling=SAMPLED)),
    "m1": AdaBoostM1(8),
    "mh, single-label": AdaBoostMH(SingleLabelTree(8), "single-label", min_weight_fraction_leaf=0.05),
    "mr": AdaBoostMR(StumpProduct(2), variant="real"),
    "mm": AdaBoostMR(SingleLabelTree(5), sampling=SAMPLED),
    "ecc": AdaBoostECC(HammingTree(5), variant="real", colourings=Colourings(3, 0), min_weight_fraction_leaf=0.05),
    "oc": AdaBoostECC(HammingTree(4), colourings=Colourings(3, 0), kind="oc", sampling=SAMPLED),
    "aoso": AOSOLogitBoost(5, 2, 0.3),
    "aoso, sampled": AOSOLogitBoost(4, 2, 0.3, SAMPLED),
}
DATA = blobs(80, 4, 3, 1)


def trained(booster: Booster[Any], backend: Backend) -> tuple[str, list[float]]:
    training: Training = fit(booster, DATA, backend, 4)
    assert training.rounds
    return digest([tree for trees in training.rounds for tree in trees], 3), training.history["train_loss"]


@pytest.mark.parametrize("name", BOOSTERS)
def test_every_backend_makes_the_same_model(candidate: Backend, name: str, once: Once) -> None:
    assert trained(BOOSTERS[name], candidate) == once(trained, BOOSTERS[name], NumpyBackend())


def test_pair_weights_by_hand(candidate: Backend) -> None:
    data = Data(np.zeros((2, 1)), sign_matrix([1, 0], 3), np.array([1.0, 2.0]))
    weights = PairWeights(data.on(candidate))
    assert weights.pairs().tolist() == [[1, 2, 1], [2, 1, 1]]
    weights.multiply(candidate.put(np.array([0, 1], np.int32)), 2 * np.log([[2.0, 4.0, 8.0], [0.5, 4.0, 1.0]]))
    # Factors exp(-f_y / 2) and exp(f_l / 2): (2, 1/4, 8) and (2, 4, 1).
    expected = np.array([[0.5, 2.5, 2.0], [10.0, 8.0, 2.0]])
    assert np.ldexp(weights.pairs(), weights.log2_unit) == pytest.approx(expected, rel=1e-12)
    stats = weights.statistics()
    units = candidate.get(stats.quantised)[0, :, :3] * 2.0 ** (weights.log2_unit - stats.shift)
    assert units == pytest.approx(np.array([[-1, 1, -1], [2, -2, -2]]) * expected, rel=1e-7)  # the second row stands twice
    assert weights.loss(stats) == pytest.approx((5 + 2 * 20) / (4 + 2 * 4))
    of_rows = weights.row_statistics()
    sums = np.asarray(of_rows.sum) * 2.0 ** (weights.log2_unit - of_rows.shift)
    assert sums == pytest.approx([20, 2.5, 0], rel=1e-7)

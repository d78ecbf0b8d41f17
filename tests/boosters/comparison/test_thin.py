"""One-vs-all, AdaBoost.M1 and trees that vote for one class: by hand, beside what they are made of, and to their ends."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.comparison.adaboost_m1 import AdaBoostM1
from gpuboost.boosters.comparison.one_vs_all import OneVsAll
from gpuboost.boosters.samme import SAMME
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.single_label_tree import SingleLabelTree
from tests.problems import Data, blobs, digest, fit, scores, sign_matrix

LINE = Data(np.arange(4.0)[:, None], sign_matrix([0, 0, 1, 2], 3))


def one_vs_all(leaves: int, **options: object) -> OneVsAll:
    return OneVsAll(AdaBoostMH(HammingTree(leaves), "uniform", **options))  # type: ignore[arg-type]


# ---- one-vs-all --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["discrete", "real"])
def test_one_vs_all_is_a_binary_booster_for_each_class(backend: Backend, variant: str) -> None:
    data = Data(*(lambda d: (d.X, d.signs))(blobs(70, 3, 3, 0)), np.random.default_rng(0).random(70) + 0.1)
    booster = one_vs_all(4, variant=variant)
    rounds = fit(booster, data, backend, 6).rounds
    for k in range(3):
        alone = fit(booster.binary, Data(data.X, data.signs[:, [k]], data.weights), backend, 6).trees
        for trees, other in zip(rounds, alone, strict=True):
            mine = trees[k]
            assert (mine.feature.tobytes(), mine.cut.tobytes()) == (other.feature.tobytes(), other.cut.tobytes())
            assert mine.values[:, [k]].tobytes() == other.values.tobytes()
            assert np.delete(mine.values, k, axis=1).any() == False  # noqa: E712


def test_the_loss_of_one_vs_all_is_the_mean_of_the_losses() -> None:
    data, backend = blobs(70, 3, 3, 0), NumpyBackend()
    training = fit(one_vs_all(4), data, backend, 4)
    f = scores([tree for trees in training.rounds for tree in trees], data, backend, data.mapper())
    assert training.history["train_loss"][-1] == pytest.approx(np.exp(-f * data.signs).mean(), rel=1e-7)


def test_a_class_that_is_told_apart_gets_no_more_trees() -> None:
    # A stump tells class 0 from the others at once; class 1 takes more.
    backend = NumpyBackend()
    training = fit(one_vs_all(2), LINE, backend, 4)
    assert [len(trees) for trees in training.rounds] == [3, 1, 1, 1]  # class 2 is told apart as well
    assert all(trees[0].values[:, 1].any() for trees in training.rounds[1:])
    half = fit(one_vs_all(2), LINE, backend, 2)
    continued = fit(one_vs_all(2), LINE, backend, 4, initial_rounds=half.rounds, history=half.history)
    assert digest([t for one in continued.rounds for t in one], 3) == digest([t for one in training.rounds for t in one], 3)
    ended = fit(one_vs_all(4), LINE, backend, 9)
    assert len(ended.rounds) < 9
    assert ended.history["train_error"][-1] == 0
    assert ended.reason == "the weak learner has nothing left to learn"
    more = fit(one_vs_all(4), LINE, backend, 9, initial_rounds=ended.rounds, history=ended.history)
    assert len(more.rounds) == len(ended.rounds)


def test_too_large_a_learning_rate_ends_it() -> None:
    training = fit(one_vs_all(3, learning_rate=50.0), blobs(60, 2, 3, 0, noise=3.0), NumpyBackend(), 5)
    assert len(training.rounds) == 1


# ---- AdaBoost.M1 -------------------------------------------------------------------------------------------------------------


def test_m1_round_by_hand(backend: Backend) -> None:
    # The stump leaves 0 0 | 1 2 and is right on 3 of 4: beta = 1/3, a vote counts ln 3, and the row that is missed weighs three
    # times as much as the others, half of the whole (figure 2 of the paper).
    training = fit(AdaBoostM1(2), LINE, backend, 2)
    c = 4 / 3 * math.log(3)
    values = training.trees[0].values
    assert values == pytest.approx(np.array([[c, -c / 2, -c / 2], [-c / 2, c, -c / 2]]), rel=1e-8)
    own = scores(training.trees[:1], LINE, backend, LINE.mapper())[LINE.signs > 0]
    weights = np.exp(-own / 2)
    assert weights / weights.sum() == pytest.approx(np.array([1, 1, 1, 3]) / 6, rel=1e-8)
    assert training.history["train_error"][0] == 0.25


def test_m1_with_two_classes_is_samme() -> None:
    data, backend = blobs(60, 3, 2, 1), NumpyBackend()
    one, other = (fit(booster, data, backend, 6).trees for booster in (AdaBoostM1(4), SAMME(4)))
    assert digest(one, 2) == digest(other, 2)


def test_m1_ends_where_half_of_the_weight_is_missed() -> None:
    # Five classes, a row each: a stump is right on two of five rows, better than chance but not than one half.
    data = Data(np.arange(5.0)[:, None], sign_matrix([0, 1, 2, 3, 4], 5))
    assert fit(AdaBoostM1(2), data, NumpyBackend(), 3).trees == []
    assert len(fit(SAMME(2), data, NumpyBackend(), 3).trees) == 3
    perfect = fit(AdaBoostM1(5), data, NumpyBackend(), 3)
    assert (len(perfect.trees), perfect.history["train_error"]) == (1, [0.0])


# ---- votes for one class -----------------------------------------------------------------------------------------------------


def test_single_label_round_by_hand(backend: Backend) -> None:
    # Weights of eq. 3 in quarters, 16 in all: signed sums (4, -2, -2) on the left and (-2, 1, 1) on the right of 0 0 | 1 2.
    # The left leaf votes for 0 (edge 8), the right one for 1 (2 + 1 - 1 = 2): gamma = 10 / 16, alpha = 1/2 ln(26 / 6).
    training = fit(AdaBoostMH(SingleLabelTree(2), "single-label"), LINE, backend, 1)
    a = 0.5 * math.log(26 / 6)
    assert training.trees[0].values == pytest.approx(np.array([[a, -a, -a], [-a, a, -a]]), rel=1e-8)
    assert training.history["edge"] == [10 / 16]
    assert training.history["train_loss"] == pytest.approx([math.sqrt(1 - (10 / 16) ** 2)], rel=1e-8)


def test_a_leaf_votes_for_the_class_with_the_largest_edge() -> None:
    data, backend = blobs(80, 3, 4, 2), NumpyBackend()
    booster = AdaBoostMH(SingleLabelTree(5), "single-label")
    trees = fit(booster, data, backend, 3).trees
    w, mapper = np.where(data.signs > 0, 3.0, 1.0), data.mapper()
    for tree in trees:
        leaf = backend.apply(tree, data.on(backend, mapper).data)
        edges = np.stack([(w * data.signs)[leaf == n].sum(axis=0) for n in range(tree.n_leaves)])
        votes = np.sign(tree.values)
        assert (votes.sum(axis=1) == -2).all()
        assert (votes.argmax(axis=1) == edges.argmax(axis=1)).all()
        gamma = (votes * edges).sum() / w.sum()
        assert abs(tree.values) == pytest.approx(np.full_like(votes, 0.5 * math.log((1 + gamma) / (1 - gamma))), rel=1e-6)
        w = w * np.exp(-tree.values[leaf] * data.signs)


def test_single_label_trees_can_be_no_better_than_chance() -> None:
    # Two rows that nothing tells apart, of three classes each: whatever class a leaf votes for, it is wrong more often.
    data = Data(np.zeros((3, 1)), sign_matrix([0, 1, 2], 3))
    weak = fit(AdaBoostMH(SingleLabelTree(2), "single-label"), data, NumpyBackend(), 3)
    assert weak.trees == []

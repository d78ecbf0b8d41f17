"""AdaBoost.MR, .M2, .MM, .OC and .ECC: a round by hand, the papers' own formulas, and identities."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.colouring import Colourings
from gpuboost.boosters.comparison.adaboost_ecc import AdaBoostECC
from gpuboost.boosters.comparison.adaboost_mr import AdaBoostMR
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.single_label_tree import SingleLabelTree
from tests.problems import Data, blobs, digest, fit, rounds_of, scores, sign_matrix

Floats = NDArray[np.float64]
ONE_VS_REST = tuple(np.where(np.arange(4) == k, 1, -1).astype(np.int8) for k in range(4))
DATA = blobs(80, 3, 4, 0, noise=1.5)
LABELS = DATA.signs.argmax(axis=1)
ROWS = np.arange(80)


def ecc(kind: str, leaves: int = 4, given: tuple[NDArray[np.int8], ...] = (), n_classes: int = 4) -> AdaBoostECC:
    variant = "discrete" if kind == "oc" else "real"
    return AdaBoostECC(HammingTree(leaves), variant=variant, colourings=Colourings(n_classes, 1, given), kind=kind)  # type: ignore[arg-type]


def values_of_rounds(booster: AdaBoostMH, data: Data, n_rounds: int) -> list[Floats]:
    """What every row gets from every round's tree, shape (n_rows, n_classes)."""
    backend, mapper = NumpyBackend(), data.mapper()
    trees = fit(booster, data, backend, n_rounds).trees
    return [scores([tree], data, backend, mapper) for tree in trees]


def pair_weights(f: Floats, labels: NDArray[np.int64]) -> Floats:
    """``D(i, l) = exp((f_l - f_y) / 2)`` over the wrong labels, of the sum 1."""
    weights: Floats = np.exp((f - f[np.arange(len(f)), labels][:, None]) / 2)
    weights[np.arange(len(f)), labels] = 0.0
    return weights / weights.sum()


def rounds_with_weights(booster: AdaBoostMH, n_rounds: int) -> Iterator[tuple[Floats, Floats, Floats]]:
    """The scores and the pairs' weights before every round, and what it adds."""
    f = np.zeros((80, 4))
    for added in values_of_rounds(booster, DATA, n_rounds):
        yield f, pair_weights(f, LABELS), added
        f = f + added


# ---- by hand -----------------------------------------------------------------------------------------------------------------


def test_round_by_hand(backend: Backend) -> None:
    # Classes 0 0 1 2 in a row, eight pairs of weight 1. Signed weights of the scores: (2, -1, -1) twice, (-1, 2, -1) and
    # (-1, -1, 2). The cut after the second row has class-wise edges (-6, 3, 3) of 16: r = 3/4, alpha = 1/2 ln 7. All pairs are
    # ordered right but those of the classes 1 and 2, which the right leaf does not tell apart: six become 1 / sqrt(7).
    data = Data(np.arange(4.0)[:, None], sign_matrix([0, 0, 1, 2], 3))
    training = fit(AdaBoostMR(HammingTree(2)), data, backend, 1)
    a = 0.5 * math.log(7)
    assert training.trees[0].values == pytest.approx(np.array([[a, -a, -a], [-a, a, a]]), rel=1e-8)
    assert training.history["edge"] == [3 / 4]
    assert training.history["train_loss"] == pytest.approx([(6 / math.sqrt(7) + 2) / 8], rel=1e-8)


@pytest.mark.parametrize(
    "booster", [AdaBoostMR(HammingTree(4)), AdaBoostMR(SingleLabelTree(4)), ecc("ecc"), ecc("oc"), ecc("leaf")], ids=str
)
def test_the_loss_is_that_of_the_scores_and_falls(booster: AdaBoostMR) -> None:
    weights = np.random.default_rng(0).random(80) + 0.5
    data = Data(DATA.X, DATA.signs, weights)
    backend = NumpyBackend()
    training = fit(booster, data, backend, 5)
    f = scores(training.trees, data, backend, data.mapper())
    pairs = np.exp((f - f[ROWS, LABELS][:, None]) / 2) * weights[:, None]
    pairs[ROWS, LABELS] = 0.0
    assert training.history["train_loss"][-1] == pytest.approx(pairs.sum() / (3 * weights.sum()), rel=1e-6)
    assert (np.diff([1.0, *training.history["train_loss"]]) < 0).all()


# ---- the papers' own formulas ------------------------------------------------------------------------------------------------


def test_adaboost_m2() -> None:
    """Freund and Schapire (1997), figure 3, with the confidences 0 and 1 of the trees: the same coefficients and weights."""
    w = np.ones((80, 4))
    w[ROWS, LABELS] = 0.0
    for _, weights, added in rounds_with_weights(AdaBoostMR(HammingTree(4)), 6):
        assert w / w.sum() == pytest.approx(weights, rel=1e-6)
        h = (added > 0).astype(float)
        own = h[ROWS, LABELS][:, None]
        pseudo_loss = 0.5 * (w / w.sum() * (1 - own + h)).sum()
        beta = pseudo_loss / (1 - pseudo_loss)
        assert abs(added) == pytest.approx(np.full((80, 4), 0.5 * math.log(1 / beta)), rel=1e-6)
        w = w * beta ** (0.5 * (1 + own - h))


def test_a_stump_has_the_least_pseudo_loss() -> None:
    _, weights, added = next(rounds_with_weights(AdaBoostMR(HammingTree(2)), 1))

    def pseudo_loss(h: Floats) -> float:
        return float(0.5 * (weights * (1 - h[ROWS, LABELS][:, None] + h)).sum())

    cuts = [DATA.X[:, [j]] >= value for j in range(3) for value in DATA.X[:, j]]
    votes = [np.array(v) for v in product((0.0, 1.0), repeat=4)]
    least = min(pseudo_loss(np.where(right, v, 1 - v)) for right in cuts for v in votes)
    assert pseudo_loss((added > 0).astype(float)) == pytest.approx(least, rel=1e-9)


def test_adaboost_mm() -> None:
    """Mukherjee and Schapire (2013), figure 5: f of a round's class grows by alpha, with the edge of the cost matrix."""
    f = np.zeros((80, 4))
    for _, _, added in rounds_with_weights(AdaBoostMR(SingleLabelTree(5)), 6):
        h = added.argmax(axis=1)
        assert ((added > 0).sum(axis=1) == 1).all()
        costs = np.exp(f - f[ROWS, LABELS][:, None])
        costs[ROWS, LABELS] = 0.0
        costs[ROWS, LABELS] = -costs.sum(axis=1)
        edge = -costs[ROWS, h].sum() / -costs[ROWS, LABELS].sum()
        alpha = 0.5 * math.log((1 + edge) / (1 - edge))
        assert abs(added) == pytest.approx(np.full((80, 4), alpha), rel=1e-6)
        f[ROWS, h] += alpha


@pytest.mark.parametrize("given", [(), ONE_VS_REST], ids=["random", "one-vs-rest"])
def test_adaboost_oc(given: tuple[NDArray[np.int8], ...]) -> None:
    """Schapire (1997), figure 2: h~(x) are the labels whose colour the tree names, alpha is that of their pseudo-loss."""
    booster = ecc("oc", given=given)
    for t, (_, weights, added) in enumerate(rounds_with_weights(booster, 6)):
        colours = booster.colourings.of_round(t + 1)
        named = added > 0
        assert (named == (np.sign(added[:, 0] * colours[0])[:, None] == colours)).all()
        pseudo_loss = 0.5 * (weights * (1.0 - named[ROWS, LABELS][:, None] + named)).sum()
        alpha = 0.5 * math.log((1 - pseudo_loss) / pseudo_loss)
        assert abs(added) == pytest.approx(np.full((80, 4), alpha), rel=1e-6)


def test_adaboost_ecc() -> None:
    """Guruswami and Sahai (1999): a coefficient for the rows that the tree calls +1, another for those that it calls -1."""
    booster = ecc("ecc")
    for t, (_, weights, added) in enumerate(rounds_with_weights(booster, 6)):
        colours = booster.colourings.of_round(t + 1)
        g = added[:, 0] * colours[0]
        assert added == pytest.approx(g[:, None] * colours, rel=1e-12)
        of_row = (weights * (colours[LABELS][:, None] != colours)).sum(axis=1)
        assert len(np.unique(g)) == 2  # whatever number of leaves
        for value in np.unique(g):
            here = g == value
            right, wrong = (of_row[here & (colours[LABELS] == side)].sum() for side in (1, -1))
            smoothing = of_row.sum() / 512  # two parts in 1024, divided as the whole is
            share = of_row[colours[LABELS] == 1].sum() / of_row.sum()
            expected = 0.5 * math.log((right + smoothing * share) / (wrong + smoothing * (1 - share)))
            assert value == pytest.approx(expected, rel=1e-5)


# ---- identities --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("booster", [AdaBoostMR(HammingTree(4)), ecc("oc", n_classes=2)], ids=["mr", "oc"])
def test_with_two_classes_they_are_adaboost(booster: AdaBoostMR) -> None:
    """Of which each score is half of the margin."""
    data, backend = blobs(60, 3, 2, 1), NumpyBackend()
    one = fit(booster, data, backend, 5)
    other = fit(AdaBoostMH(HammingTree(4), "single-label"), data, backend, 5)
    assert one.history["train_loss"] == pytest.approx(other.history["train_loss"], rel=1e-7)
    for mine, theirs in zip(one.trees, other.trees, strict=True):
        assert (mine.feature.tolist(), mine.cut.tolist()) == (theirs.feature.tolist(), theirs.cut.tolist())
        assert mine.values == pytest.approx(theirs.values, rel=1e-6)
    f = scores(one.trees, data, backend, data.mapper())
    assert f[:, 0] == pytest.approx(-f[:, 1])


def test_random_colourings_halve_the_classes() -> None:
    colourings = Colourings(7, 3)
    drawn = [tuple(colourings.of_round(t)) for t in range(1, 30)]
    assert {sum(colour < 0 for colour in one) for one in drawn} == {3}
    assert len(set(drawn)) > 10


def test_a_colouring_without_an_edge_does_not_end_the_training() -> None:
    # Rows of class 0 have two pairs of two colours, the others one: 2 - 1 - 1 on both sides. The second colouring has an edge.
    data = Data(np.array([0.0, 0, 0, 1, 1, 1])[:, None], sign_matrix([0, 1, 1, 0, 2, 2], 3))
    colourings = (np.array([1, -1, -1], np.int8), np.array([-1, -1, 1], np.int8))
    for kind in ("oc", "ecc"):
        history = fit(ecc(kind, 2, colourings, 3), data, NumpyBackend(), 4).history
        assert (history["edge"][0], history["train_loss"][0]) == (0, pytest.approx(1))
        assert history["edge"][1] > 0.3
        assert len(history["edge"]) == 4
    alike = Data(data.X, sign_matrix([0, 1, 2, 0, 1, 2], 3))  # no votes at all have an edge
    assert fit(ecc("oc", 2, colourings, 3), alike, NumpyBackend(), 4).trees == []


@pytest.mark.parametrize("booster", [AdaBoostMR(SingleLabelTree(3)), ecc("ecc", 3), ecc("oc", 3)], ids=str)
def test_a_continued_training_is_one_long_training(booster: AdaBoostMR) -> None:
    backend = NumpyBackend()
    long, half = fit(booster, DATA, backend, 6), fit(booster, DATA, backend, 3)
    problem = DATA.on(backend, DATA.mapper())
    continued = [round.trees[0].tree for round, _ in zip(rounds_of(booster, problem, half.rounds), range(3), strict=False)]
    assert digest(continued, 4) == digest(long.trees[3:], 4)

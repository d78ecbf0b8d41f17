from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, GrowthScope
from gpuboost.boosters import adaboost_mh
from gpuboost.boosters.adaboost_mh import AdaBoostMH, initial_weights, pseudo_weights
from gpuboost.boosters.exponential import MAX_STEP, ExponentialWeights
from gpuboost.fixedpoint import STATE_FLOOR
from gpuboost.learners.base import Learner, VotingTree
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct
from gpuboost.training import Training
from gpuboost.tree import Tree
from tests.candidates import thinned
from tests.problems import Data, blobs, cpu_backend, digest, fit, rounds_of, scores, sign_matrix, votes_of_rows

STUMP = HammingTree(2)
LEARNERS: list[Learner] = [STUMP, HammingTree(5), StumpProduct(2)]


def single_label(learner: Learner, **options: Any) -> AdaBoostMH:
    return AdaBoostMH(learner, "single-label", **options)


def line(labels: list[int], n_classes: int, weights: list[float] | None = None) -> Data:
    """Rows at 1, 2, 3, ... on one feature."""
    X = np.arange(1.0, len(labels) + 1.0)[:, None]
    return Data(X, sign_matrix(labels, n_classes), None if weights is None else np.array(weights))


def weights_after(trees: list[Tree], booster: AdaBoostMH, data: Data, backend: Backend) -> NDArray[np.float64]:
    """The true weights, not normalised: those of the row state, with its power of two."""
    problem = data.on(backend)
    weights = booster.row_state(problem)
    for tree in trees:
        weights.multiply(backend.apply(tree, problem.data), tree.values)
    return np.ldexp(backend.get(weights.state), weights.scale)


def rounding(data: Data, total: float = 2.0**29) -> float:
    """A bound for the effect of fixed point on a sum of all weights, as a share of it.

    Every weight is off by at most half a unit a repeat, and the total has at least 2**29 units: the largest channel alone has
    between 2**29 - R and 2**30 of them.
    """
    return float(data.split()[0].sum()) * data.n_classes / total


# ---- two rounds by hand ------------------------------------------------------------------------------------------------------


def test_two_rounds_by_hand(backend: Backend) -> None:
    data = line([0, 0, 1, 2], 3)
    booster = single_label(STUMP)
    # Weights in quarters (eq. 3): 2 for the label, 1 for the others; 16 in total. Signed sums P = (2, -1, -1).
    #   cut 1: L = (2, -1, -1), P - 2L = (-2, 1, 1): 4     cut 2: L = (4, -2, -2), P - 2L = (-6, 3, 3): 12
    #   cut 3: L = (3, 0, -3), P - 2L = (-4, -1, 5): 10    constant: 4
    # Cut 2 with votes (-, +, +): gamma = 12/16, alpha = 1/2 ln((7/4) / (1/4)) = 1/2 ln 7.
    # Wrong are class 2 of row 3 and class 1 of row 4. In quarters, times 1/sqrt(7), the weights become
    #   (2, 1, 1), (2, 1, 1), (1, 2, 7), (1, 7, 2), 28 in total: 28 / (16 sqrt(7)) = sqrt(7)/4 = sqrt(1 - gamma^2).
    # Round 2: signed sums P = (2, -7, -7), constant: 16.
    #   cut 1: L = (2, -1, -1), P - 2L = (-2, -5, -5): 12   cut 2: L = (4, -2, -2), P - 2L = (-6, -3, -3): 12,
    #   where the votes of round 1 have 6 - 3 - 3 = 0       cut 3: L = (3, 0, -9), P - 2L = (-4, -7, 11): 22
    # Cut 3 with votes (-, -, +): gamma = 22/28 = 11/14, alpha = 1/2 ln((25/14) / (3/14)) = 1/2 ln(25/3),
    # and the loss falls by sqrt(1 - (11/14)^2) = sqrt(75)/14. Right: rows 1 and 2 in all classes; row 3 (+, +, -) in class 1
    # and 2, not 0; row 4 (-, -, +) in all.
    result = fit(booster, data, backend, 2)
    one, two = result.trees
    assert (one.cut.tolist(), two.cut.tolist()) == ([2], [3])
    a, b = 0.5 * math.log(7), 0.5 * math.log(25 / 3)
    assert one.values == pytest.approx(np.array([[a, -a, -a], [-a, a, a]]), rel=1e-8)
    assert two.values == pytest.approx(np.array([[b, b, -b], [-b, -b, b]]), rel=1e-8)
    assert result.history["edge"] == pytest.approx([3 / 4, 11 / 14], rel=1e-8)
    assert result.history["edge"][0] == 3 / 4  # quarters are exact in fixed point
    losses = [math.sqrt(7) / 4, math.sqrt(7) / 4 * math.sqrt(75) / 14]
    assert result.history["train_loss"] == pytest.approx(losses, rel=1e-8)
    after_one = np.array([[2, 1, 1], [2, 1, 1], [1, 2, 7], [1, 7, 2]]) / 4 / math.sqrt(7)
    assert weights_after([one], booster, data, backend) == pytest.approx(after_one, rel=1e-8)
    up, down = math.sqrt(25 / 3), math.sqrt(3 / 25)
    multipliers = np.array([[down, up, down], [down, up, down], [up, down, down], [down, down, down]])
    assert weights_after([one, two], booster, data, backend) == pytest.approx(after_one * multipliers, rel=1e-8)
    # Scores: row 3 (-a + b, a + b, a - b), row 4 (-a - b, a - b, a + b). Here a = 0.97 and b = 1.06.
    # Rows 1 and 2 get (a + b, -a + b, -a - b), so all four are right after round 2; after round 1 row 4 ties and is wrong.
    assert result.history["train_error"] == [1 / 4, 0.0]


def test_multi_label_round_by_hand(backend: Backend) -> None:
    # q: (1, 1), (-1, 1), (-1, -1). P = (-1, 1), constant: 2. Cut 1: (-3, -1), edge 4; cut 2: L = (0, 2), (-1, -3), edge 4.
    # Cut 1 with votes (-, -): gamma = 4/6, alpha = 1/2 ln((5/3) / (1/3)) = 1/2 ln 5. Wrong is class 1 of row 2 alone:
    # the weights are 1/sqrt(5) but for that sqrt(5), 10/sqrt(5) in total, and 10/(6 sqrt(5)) = sqrt(5)/3 = sqrt(1 - 4/9).
    data = Data(np.array([[1.0], [2.0], [3.0]]), np.array([[1, 1], [-1, 1], [-1, -1]], np.int8))
    result = fit(AdaBoostMH(STUMP, "uniform"), data, backend, 1)
    a = 0.5 * math.log(5)
    assert result.trees[0].cut.tolist() == [1]
    assert result.trees[0].values == pytest.approx(np.array([[a, a], [-a, -a]]), rel=1e-8)
    assert result.history["train_loss"] == pytest.approx([math.sqrt(5) / 3], rel=1e-8)
    assert result.history["train_error"] == [1 / 6]  # Hamming error: one of six signs
    expected = np.array([[1, 1], [1, 5], [1, 1]]) / math.sqrt(5)
    assert weights_after(result.trees, AdaBoostMH(STUMP, "uniform"), data, backend) == pytest.approx(expected, rel=1e-8)


def test_real_leaf_values_by_hand(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaboost_mh, "SMOOTHING", 4)
    # Round 1 of the first example: cut 2, with these sums of weights for and against a class, in quarters:
    #   left: (4, 0), (0, 2), (0, 2)    right: (0, 2), (2, 1), (2, 1)    whole: (4, 2), (2, 3), (2, 3)
    # epsilon = total / (SMOOTHING K) = 16/12; 8/3 is divided like the whole: (16/9, 8/9), (16/15, 8/5), (16/15, 8/5). e^2h is
    #   left: (52/9) / (8/9), (16/15) / (18/5)    right: (16/9) / (26/9), (46/15) / (13/5)
    result = fit(single_label(STUMP, variant="real"), line([0, 0, 1, 2], 3), backend, 1)
    odds = np.array([[13 / 2, 8 / 27, 8 / 27], [8 / 13, 46 / 39, 46 / 39]])
    assert result.trees[0].values == pytest.approx(0.5 * np.log(odds), rel=1e-8)


def test_pseudo_weights_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaboost_mh, "SMOOTHING", 3)
    # Four classes, a third, 48 units: epsilon = 48 // 12 = 4, and 8 units are divided
    #   9 : 3, the same; 1 : 11, as 8/12 -> 0 (but at least 1) and 88/12 -> 7; 0 : 12; and 24 : 0 of a class that all rows have.
    right, wrong = pseudo_weights(np.array([9, 1, 0, 12]), np.array([3, 11, 12, 0]))
    assert (right.tolist(), wrong.tolist()) == ([6, 1, 1, 8], [2, 7, 8, 1])
    # Less than a unit for each (row, class): epsilon = 0.
    right, wrong = pseudo_weights(np.array([3, 0]), np.array([2, 0]))
    assert (right.tolist(), wrong.tolist()) == ([1, 1], [1, 1])
    monkeypatch.setattr(adaboost_mh, "SMOOTHING", 1)
    # Sums at the limit of the shift rule, of up to 2**22 rows and of more: 2 epsilon times a sum does not overflow.
    for largest in (2**30 - 1, 2**49):
        right, wrong = pseudo_weights(np.array([largest]), np.array([0]))
        assert (right.tolist(), wrong.tolist()) == ([2 * largest], [1])
        assert right.dtype == wrong.dtype == np.int64


def test_initial_weights() -> None:
    signs = sign_matrix([0, 2], 3)
    assert initial_weights(signs, "single-label").tolist() == [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]  # eq. 3, times n
    assert initial_weights(signs, "uniform").tolist() == [[1.0] * 3] * 2
    assert initial_weights(signs[:, :1], "single-label").tolist() == [[0.5], [0.5]]


def test_initial_state_has_the_sample_weights(backend: Backend) -> None:
    data = line([0, 1, 1], 2, [1.0, 2.5, 0.5])  # 2.5 is a multiple of 0.5, so are all: repeats 2, 5, 1
    state = single_label(STUMP).row_state(data.on(backend))
    assert backend.get(state.state).tolist() == [[0.5, 0.5]] * 3
    assert backend.get(state.frequency_weight).tolist() == [2, 5, 1]
    data = line([0, 1, 1], 2, [1.0, 2.5, 0.75])
    state = single_label(STUMP).row_state(data.on(backend))
    assert backend.get(state.state).tolist() == [[0.2, 0.2], [0.5, 0.5], [0.15, 0.15]]
    assert backend.get(state.frequency_weight).tolist() == [1, 1, 1]


# ---- identities --------------------------------------------------------------------------------------------------------------


def binary_adaboost(X: NDArray[np.float64], y: NDArray[np.int64], n_rounds: int) -> list[tuple[int, float, float]]:
    """The algorithm of Freund and Schapire (1997) with stumps: (feature, threshold, signed alpha) of every round."""
    w = np.full(len(y), 1 / len(y))
    model = []
    for _ in range(n_rounds):
        best = (abs(float(w @ y)), -1, -math.inf, float(w @ y))
        for f in range(X.shape[1]):
            values = np.unique(X[:, f])
            for threshold in (values[1:] + values[:-1]) / 2:
                edge = float((w * y * np.where(X[:, f] >= threshold, 1, -1)).sum())
                if abs(edge) > best[0] + 1e-12:  # equal but for rounding: the first one, as in ours
                    best = (abs(edge), f, float(threshold), edge)
        _, f, threshold, edge = best
        alpha = 0.5 * math.log((1 + edge) / (1 - edge))
        w *= np.exp(-alpha * y * np.where(X[:, f] >= threshold, 1, -1))
        w /= w.sum()
        model.append((f, threshold, alpha))
    return model


def test_two_classes_are_binary_adaboost(backend: Backend) -> None:
    data = blobs(120, 3, 2, seed=5, noise=2.0)
    y = data.signs[:, 1].astype(np.int64)
    expected = binary_adaboost(data.X, y, 30)
    mapper = data.mapper()
    result = fit(single_label(STUMP), data, backend, 30)
    for tree, (feature, threshold, alpha) in zip(result.trees, expected, strict=True):
        assert int(tree.feature[0]) == feature
        assert float(mapper.cuts(feature)[tree.cut[0] - 1]) == pytest.approx(threshold, rel=1e-12)
        assert tree.values == pytest.approx(np.array([[alpha, -alpha], [-alpha, alpha]]), abs=1e-6)
    f = sum(alpha * np.where(data.X[:, feature] >= threshold, 1, -1) for feature, threshold, alpha in expected)
    ours = scores(result.trees, data, backend, mapper)
    assert ours[:, 1] == pytest.approx(f, abs=1e-5)
    assert (ours.argmax(axis=1) == (f > 0)).all()


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("fraction", [0.0, 0.15])
def test_weight_two_is_a_row_twice(backend: Backend, learner: Learner, variant: Any, fraction: float) -> None:
    data = blobs(60, 3, 3, seed=1)
    frequency_weight = np.random.default_rng(1).integers(1, 4, 60)
    weighted = Data(
        data.X, data.signs, frequency_weight * 0.1, max_bins=12
    )  # the unit does not matter, the quantiles see weights
    repeated = replace(data, max_bins=12).subset(np.repeat(np.arange(60), frequency_weight))
    booster = single_label(learner, variant=variant, min_weight_fraction_leaf=fraction)
    one, other = (fit(booster, d, backend, 10, evaluation=d) for d in (weighted, repeated))
    assert digest(one.trees, 3) == digest(other.trees, 3)
    assert all(one.history[key] == other.history[key] for key in one.history if key != "seconds")


@pytest.mark.parametrize("power", [-40, 40])
def test_unit_of_the_weights_does_not_matter(backend: Backend, power: int) -> None:
    data = blobs(60, 3, 3, seed=2)
    weights = np.random.default_rng(2).uniform(0.5, 2.0, 60)
    one, other = (fit(single_label(STUMP), replace(data, weights=w), backend, 10) for w in (weights, np.ldexp(weights, power)))
    assert digest(one.trees, 3) == digest(other.trees, 3)


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("variant", ["discrete", "real"])
def test_permuted_classes_permute_the_model(backend: Backend, learner: Learner, variant: Any) -> None:
    data, order = blobs(90, 3, 4, seed=3), [2, 0, 3, 1]
    booster = single_label(learner, variant=variant)
    one, other = fit(booster, data, backend, 10), fit(booster, replace(data, signs=data.signs[:, order]), backend, 10)
    permuted = [replace(tree, values=np.ascontiguousarray(tree.values[:, order])) for tree in one.trees]
    assert digest(permuted, 4) == digest(other.trees, 4)
    assert one.history["train_loss"] == other.history["train_loss"]


@pytest.mark.parametrize("power", [-30, 30])
def test_scaled_features_are_the_same_features(backend: Backend, power: int) -> None:
    data = blobs(60, 3, 3, seed=4)
    one, other = (fit(single_label(STUMP), replace(data, X=X), backend, 10) for X in (data.X, np.ldexp(data.X, power)))
    assert digest(one.trees, 3) == digest(other.trees, 3)


class Recorder:
    """A learner that keeps what it returned and the statistics it was given."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner
        self.calls: list[tuple[VotingTree, NDArray[np.int64], NDArray[np.float64]]] = []

    def __call__(self, backend: Backend, data: Any, stats: Any, scope: GrowthScope = WHOLE) -> VotingTree:
        weak = self.learner(backend, data, stats, scope)
        quantised = backend.get(stats.quantised)[0, :, : stats.n_channels].astype(np.int64)
        self.calls.append((weak, quantised, votes_of_rows(backend, weak)))
        return weak


@pytest.mark.parametrize("learner", LEARNERS)
def test_last_classifier_has_no_edge_on_the_new_weights(backend: Backend, learner: Learner) -> None:
    # With the exact alpha, W+ e^-alpha = W- e^alpha. Both sums are off by at most R K / 2 units before the round, and so
    # is the new total after it.
    recorder = Recorder(learner)
    data = blobs(80, 3, 3, seed=6, noise=2.0)
    fit(single_label(recorder), data, backend, 12)
    n_units = 80 * 3
    for (weak, quantised, votes), (_, after, _) in pairwise(recorder.calls):
        total = int(np.abs(quantised).sum())
        right, wrong = (total + weak.edge) / 2, (total - weak.edge) / 2
        allowed = n_units / 4 * (1 / right + 1 / wrong) + n_units / np.abs(after).sum()
        assert allowed < 1e-5
        assert abs((votes * after).sum()) / np.abs(after).sum() <= allowed


@pytest.mark.parametrize("learner", LEARNERS)
def test_edge_is_a_sum_over_rows_and_classes(backend: Backend, learner: Learner) -> None:
    recorder = Recorder(learner)
    result = fit(single_label(recorder), blobs(80, 3, 3, seed=6, noise=2.0), backend, 12)
    for (weak, quantised, votes), edge in zip(recorder.calls, result.history["edge"], strict=True):
        assert int((votes * quantised).sum()) == weak.edge
        assert edge == weak.edge / int(np.abs(quantised).sum())


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
def test_loss_is_the_product_of_the_energies(backend: Backend, learner: Learner) -> None:
    # Z = W+ e^-alpha + W- e^alpha = sqrt(1 - gamma^2) (section 2.4). If W+ and W- are off by d, Z is by at most
    # d (e^alpha + e^-alpha) = 2 d / sqrt(1 - gamma^2), which is 2 d / (1 - gamma^2) of it.
    data = blobs(100, 3, 3, seed=7, noise=1.5)
    history = fit(single_label(learner), data, backend, 25).history
    product, allowed, unit = 1.0, 2 * rounding(data), rounding(data)
    for edge, loss in zip(history["edge"], history["train_loss"], strict=True):
        product *= math.sqrt(1 - edge**2)
        allowed += 2 * unit / (1 - edge**2)
        assert allowed < 1e-3
        assert loss == pytest.approx(product, rel=allowed)


@pytest.mark.slow
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("scheme", ["single-label", "uniform"])
def test_loss_never_rises(backend: Backend, learner: Learner, variant: Any, scheme: Any) -> None:
    data = replace(blobs(80, 4, 4, seed=8, noise=3.0), max_bins=12)
    losses = [1.0, *fit(AdaBoostMH(learner, scheme, variant), data, backend, 60).history["train_loss"]]
    assert len(losses) == 61
    assert all(after <= before * (1 + 2 * rounding(data)) for before, after in pairwise(losses))
    assert losses[-1] < 0.9


@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("scheme", ["single-label", "uniform"])
@pytest.mark.parametrize("learning_rate", thinned([0.3, 1.0, 1.5], 3))
def test_loss_from_the_scores(backend: Backend, variant: Any, scheme: Any, learning_rate: float) -> None:
    # Eq. 4: the mean of w0 exp(-f y), here as a share of its value for f = 0.
    data = blobs(70, 3, 3, seed=9)
    data = replace(data, weights=np.random.default_rng(9).uniform(0.2, 1.0, 70))
    booster = AdaBoostMH(HammingTree(4), scheme, variant, learning_rate)
    result = fit(booster, data, backend, 15)
    w0 = initial_weights(data.signs, scheme) * data.split()[1][:, None]
    f = scores(result.trees, data, backend, data.mapper())
    expected = (w0 * np.exp(-f * data.signs)).sum() / w0.sum()
    assert result.history["train_loss"][-1] == pytest.approx(expected, rel=2 * rounding(data) + 1e-12)
    assert weights_after(result.trees, booster, data, backend) == pytest.approx(w0 * np.exp(-f * data.signs), rel=1e-12)


@pytest.mark.parametrize("learner", LEARNERS)
def test_real_leaf_values_from_integer_sums(backend: Backend, learner: Learner) -> None:
    recorder = Recorder(learner)
    data = blobs(80, 3, 3, seed=10)
    data = replace(data, weights=np.random.default_rng(10).integers(1, 4, 80).astype(float))
    result = fit(single_label(recorder, variant="real"), data, backend, 8)
    for tree, (weak, quantised, _) in zip(result.trees, recorder.calls, strict=True):
        epsilon = int(np.abs(quantised).sum()) // (adaboost_mh.SMOOTHING * 3)
        leaf = backend.get(backend.apply(weak.tree, data.on(backend).data))
        for n, c in np.ndindex(*tree.values.shape):
            (plus, minus), (all_plus, all_minus) = (
                (int(units[units > 0].sum()), int(-units[units < 0].sum()))
                for units in (quantised[leaf == n, c], quantised[:, c])
            )
            plus += max(1, 2 * epsilon * all_plus // (all_plus + all_minus))
            minus += max(1, 2 * epsilon * all_minus // (all_plus + all_minus))
            assert tree.values[n, c] == pytest.approx(0.5 * math.log(plus / minus), rel=1e-14, abs=1e-16)
    assert min(len(tree.values) for tree in result.trees) > 1


@pytest.mark.parametrize("variant", ["discrete", "real"])
def test_learning_rate_multiplies_the_values(backend: Backend, variant: Any) -> None:
    data = blobs(50, 3, 3, seed=11)
    one = fit(single_label(STUMP, variant=variant), data, backend, 1).trees[0]
    for rate in (0.1, 0.3, 3.0):
        other = fit(single_label(STUMP, variant=variant, learning_rate=rate), data, backend, 1).trees[0]
        assert other.values.tolist() == (rate * one.values).tolist()
    other = fit(single_label(STUMP, variant=variant, learning_rate=1e6), data, backend, 1).trees[0]
    assert other.values.tolist() == (MAX_STEP * np.sign(one.values)).tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_twice_the_coefficient_leaves_the_loss_as_it_is(backend: Backend, learner: Learner) -> None:
    # e^(2 alpha) = (1 + gamma) / (1 - gamma): Z = (1 + gamma)/2 e^(-2 alpha) + (1 - gamma)/2 e^(2 alpha) = 1.
    data = blobs(80, 3, 3, seed=17, noise=2.0)
    history = fit(single_label(learner, learning_rate=2.0), data, backend, 4).history
    allowed = sum(2 * rounding(data) / (1 - edge) for edge in history["edge"])
    assert allowed < 1e-4
    assert history["train_loss"] == pytest.approx([1.0] * 4, rel=allowed)


@pytest.mark.parametrize("learner", LEARNERS)
def test_steps_that_raise_the_loss_end_the_training(backend: Backend, learner: Learner) -> None:
    # Three times the coefficient: Z = (1 + gamma)/2 r^-3 + (1 - gamma)/2 r^3 with r = e^alpha; above 1, so one round is all.
    data = blobs(80, 3, 3, seed=17, noise=2.0)
    booster = single_label(learner, learning_rate=3.0)
    result = fit(booster, data, backend, 10)
    (edge,) = result.history["edge"]
    r = math.sqrt((1 + edge) / (1 - edge))
    energy = (1 + edge) / 2 / r**3 + (1 - edge) / 2 * r**3
    assert energy > 1
    assert result.history["train_loss"] == pytest.approx([energy], rel=1e-5)
    assert len(result.trees) == 1
    assert len(fit(booster, data, backend, 10, initial_rounds=result.rounds, history=result.history).trees) == 1


@pytest.mark.parametrize("learning_rate", [2.1, 2.5, 3.0, 6.0])
@pytest.mark.parametrize("learner", LEARNERS)
def test_long_steps_never_raise_the_loss_after_the_first_round(
    backend: Backend, learner: Learner, learning_rate: float
) -> None:
    data = replace(blobs(60, 3, 3, seed=18, noise=0.3), max_bins=16)
    booster = single_label(learner, variant="real", learning_rate=learning_rate)
    long = fit(booster, data, backend, 30)
    losses = long.history["train_loss"]
    assert all(after <= before for before, after in pairwise(losses))
    assert len(losses) == 1 or losses[0] <= 1.0
    for k in {1, len(long.trees)}:
        more = fit(booster, data, backend, 30, initial_rounds=long.rounds[:k], history=long.history)
        assert digest(more.trees, 3) == digest(long.trees, 3)


# ---- ends --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
def test_perfect_learner_is_kept_and_ends_the_training(backend: Backend, learner: Learner) -> None:
    result = fit(single_label(learner), line([0, 0, 1], 2), backend, 10)
    # Weights 1/2 with repeats 1 are 2**s units each, 6 of them in 2**30 - 1 a channel: 3 * 2**28 <= 2**30 - 1 a channel.
    total = 6 * 2**28
    assert len(result.trees) == 1
    assert result.reason == "the weak learner has nothing left to learn"
    assert result.history["edge"] == [1.0]
    assert result.history["train_error"] == [0.0]
    alpha = 0.5 * math.log((total + (total - 1)) / 1)
    assert np.unique(result.trees[0].values) == pytest.approx([-alpha, alpha], rel=1e-14)
    assert result.history["train_loss"] == pytest.approx([math.exp(-alpha)], rel=1e-8)


def test_perfect_learner_of_the_real_variant_is_not_the_end(backend: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaboost_mh, "SMOOTHING", 10)
    # In halves, nine weights for class 0 and one against it; epsilon = 20 / (10 * 2) = 1, divided as 9/5 and 1/5.
    #   left: (9 + 9/5) / (1/5) = 54    right: (9/5) / (1 + 1/5) = 3/2: more for class 0 than against it
    # The weights become 9 / sqrt(54) = sqrt(3/2) on the left and sqrt(3/2) on the right: epsilon is 1/5 of that on either side.
    #   left: (1 + 1/5) / (1/5) = 6     right: 1/6, and 3/2 * 1/6 = 1/4 is against class 0
    data, booster = line([0] * 9 + [1], 2), single_label(STUMP, variant="real")
    result = fit(booster, data, backend, 2)
    assert result.history["edge"] == [1.0, 1.0]
    assert result.history["train_error"] == [0.1, 0.0]
    assert result.history["train_loss"][0] == pytest.approx(4 * math.sqrt(3 / 2) / 20, rel=1e-8)
    for tree, odds in zip(result.trees, ([54, 3 / 2], [6, 1 / 6]), strict=True):
        assert tree.cut.tolist() == [9]
        assert tree.values == pytest.approx(np.outer(0.5 * np.log(odds), [1, -1]), rel=1e-7)


def test_perfect_constant_learner(backend: Backend) -> None:
    result = fit(single_label(HammingTree(8)), line([1], 3), backend, 10)
    assert len(result.trees) == 1
    assert result.trees[0].n_leaves == 1
    assert np.sign(result.trees[0].values).tolist() == [[-1, 1, -1]]
    assert np.isfinite(result.trees[0].values).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("learner", LEARNERS)
def test_zero_edge_adds_nothing(backend: Backend, learner: Learner, n_classes: int) -> None:
    # One row of each class at the same place: every class-wise edge is 1/2 - (K - 1) / (2 (K - 1)) = 0.
    data = Data(np.ones((n_classes, 1)), sign_matrix(range(n_classes), n_classes))
    result = fit(single_label(learner), data, backend, 10)
    assert result.trees == []
    assert result.history == {}
    assert result.reason == "the weak learner has nothing left to learn"


def test_xor_gives_a_stump_no_edge(backend: Backend) -> None:
    data = Data(np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]]), sign_matrix([0, 1, 1, 0], 2))
    assert fit(single_label(STUMP), data, backend, 10).trees == []


def test_weights_stop_at_the_floor_and_come_back(backend: Backend) -> None:
    problem = line([0, 1], 2).on(backend)
    weights = ExponentialWeights(problem, np.array([[1.0, 0.0], [1.0, 1.0]]))
    leaf_index = backend.put(np.array([0, 1], np.int32))
    right = np.array([[64.0, 0.0], [0.0, 0.0]])  # row 0, class 0 is right by 64 every time: e^-640 is 2^-923
    for _ in range(10):
        weights.multiply(leaf_index, right)
    state = backend.get(weights.state)
    assert state[0].tolist() == [STATE_FLOOR, 0.0]  # and a weight of 0 stays 0
    assert weights.loss() == pytest.approx(2 / 3, rel=1e-8)
    # The first update halved the state (a maximum of 1 has the exponent 1), so the floor is 2^-899 of the initial weight.
    for _ in range(11):  # wrong by 64 every time: 2^-899 e^704 = e^80.9
        weights.multiply(leaf_index, -right)
    expected = (math.exp(11 * 64 - 899 * math.log(2)) + 2) / 3
    assert weights.loss() == pytest.approx(expected, rel=1e-8)
    assert backend.get(weights.state)[0, 1] == 0.0


def test_the_largest_weight_stays_near_one(backend: Backend) -> None:
    rng = np.random.default_rng(0)
    problem = line([0, 1, 0, 1, 0], 2).on(backend)
    initial = rng.uniform(0.1, 1.0, (5, 2))
    weights = ExponentialWeights(problem, initial)
    f = np.zeros((5, 2))
    for _ in range(300):
        leaf_index, values = rng.integers(0, 3, 5).astype(np.int32), rng.normal(scale=2.0, size=(3, 2))
        weights.multiply(backend.put(leaf_index), values)
        f += values[leaf_index]
        state = backend.get(weights.state)
        assert 0.5 * math.exp(-abs(values).max()) <= state.max() == weights.maximum <= math.exp(abs(values).max())
        exact = initial * np.exp(-f * problem.signs)
        # Only what has never been near the floor is exact; with these steps nothing is.
        assert np.ldexp(state, weights.scale) == pytest.approx(exact, rel=1e-11)


@pytest.mark.slow
def test_long_run_on_separable_data() -> None:
    # The easy rows' weights fall to the floor; everything stays finite.
    backend, booster = cpu_backend(), single_label(STUMP, variant="real")
    data = blobs(30, 2, 3, seed=1, noise=0.3)
    result = fit(booster, data, backend, 4000)
    problem = data.on(backend)
    weights = booster.row_state(problem)
    for tree in result.trees:
        weights.multiply(backend.apply(tree, problem.data), tree.values)
    assert len(result.trees) == 4000
    assert backend.get(weights.state).min() == STATE_FLOOR
    assert 0.1 < weights.maximum < 10.0
    assert all(np.isfinite(tree.values).all() for tree in result.trees)
    assert np.isfinite(scores(result.trees, data, backend, data.mapper())).all()
    assert result.history["train_error"][-1] == 0.0
    assert 0.0 <= result.history["train_loss"][-1] < 1e-200
    assert all(0.0 < edge <= 1.0 for edge in result.history["edge"])


# ---- continuing --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("fraction", [0.0, 0.15])
def test_rounds_continue_a_model_exactly(backend: Backend, learner: Learner, variant: Any, fraction: float) -> None:
    data = blobs(60, 3, 3, seed=12)
    data = replace(data, weights=np.random.default_rng(12).uniform(0.1, 1.0, 60))
    booster = single_label(learner, variant=variant, learning_rate=0.7, min_weight_fraction_leaf=fraction)
    problem = data.on(backend)

    def update(n: int, before: list[Tree]) -> tuple[list[Tree], list[tuple[float, float]]]:
        loop = rounds_of(booster, problem, [[tree] for tree in before])
        steps = [step for step, _ in zip(loop, range(n), strict=False)]
        return [step.trees[0].tree for step in steps], [(step.metrics["edge"], step.loss) for step in steps]

    trees, numbers = update(12, [])
    for k in (1, 5, 11):
        more, more_numbers = update(12 - k, trees[:k])
        assert digest(more, 3) == digest(trees[k:], 3)
        assert more_numbers == numbers[k:]


@pytest.mark.parametrize("variant", ["discrete", "real"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_continuing_a_model_without_errors(backend: Backend, n_classes: int, variant: Any) -> None:
    # With two classes the stump is perfect, which ends both trainings of the discrete variant. With a class 2 that has no rows
    # its vote is right on one side only: the edge is 15/18.
    data, booster = line([0, 0, 1], n_classes), single_label(STUMP, variant=variant)
    long = fit(booster, data, backend, 5)
    assert long.history["edge"][0] == pytest.approx(1 if n_classes == 2 else 5 / 6, rel=1e-8)
    assert len(long.trees) == (1 if n_classes == 2 and variant == "discrete" else 5)
    for k in range(1, len(long.trees) + 1):
        more = fit(booster, data, backend, 5, initial_rounds=long.rounds[:k], history=long.history)
        assert digest(more.trees, n_classes) == digest(long.trees, n_classes)


@pytest.mark.parametrize("learner", LEARNERS)
def test_rounds_say_what_they_add(backend: Backend, learner: Learner) -> None:
    # The indices and values of a round are what its tree gives the training rows, also after later rounds.
    data = blobs(60, 3, 3, seed=13)
    problem = data.on(backend)
    rounds = [step for step, _ in zip(rounds_of(single_label(learner), problem), range(6), strict=False)]
    total = np.zeros((60, 3))
    trees = [grown for step in rounds for grown in step.trees]
    assert len(trees) == len(rounds)
    for grown in trees:
        expected = grown.tree.values[backend.get(backend.apply(grown.tree, problem.data))]
        assert grown.values[backend.get(grown.leaf_index)].tolist() == expected.tolist()
        total += expected
    assert scores([grown.tree for grown in trees], data, backend, data.mapper()).tolist() == total.tolist()


def test_two_trainings_on_one_backend_do_not_meet(backend: Backend) -> None:
    # Two problems of the same size, and one with another number of classes, take turns.
    sets = [blobs(40, 2, 3, seed=14), blobs(40, 2, 3, seed=15), blobs(40, 2, 4, seed=16)]
    booster = single_label(HammingTree(4))
    alone: list[Training] = [fit(booster, data, backend, 5) for data in sets]
    trees: list[list[Tree]] = [[], [], []]
    loops = [rounds_of(booster, data.on(backend)) for data in sets]
    for _ in range(5):
        for grown, loop in zip(trees, loops, strict=True):
            grown.append(next(loop).trees[0].tree)
    for data, one, grown in zip(sets, alone, trees, strict=True):
        assert digest(one.trees, data.n_classes) == digest(grown, data.n_classes)

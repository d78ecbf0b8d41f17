"""Edges and leaf values: by hand, and what the paper proves of them."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.filtering.draw import ONE, LeafSums, Rows
from gpuboost.boosters.filtering.examples import Step
from gpuboost.boosters.filtering.fixed_set import FixedSet
from gpuboost.boosters.filtering.leaf_values import (
    LARGEST_NEWTON_STEP,
    confidence_values,
    newton_values,
    of_colours,
    pseudo_edge,
)
from gpuboost.boosters.filtering.weak_learners import ClassVotes, ColourVotes, all_labels
from tests.boosters.filtering.given import booster, examples, mapper, run
from tests.candidates import thinned
from tests.problems import blobs

HALF, FOURTH = ONE // 2, ONE // 4


def rows_of(q: Any, target: Any, weight: Any = None) -> Rows:
    n = len(target)
    chunk = SimpleNamespace(target=np.array(target), weight=np.ones(n) if weight is None else np.array(weight, np.float64))
    part: Any = SimpleNamespace(chunk=chunk, begin=0, end=n)
    return Rows([part], [np.arange(n)], np.array(q, np.int64))


def shares(sums: LeafSums) -> list[Any]:
    """The sums in units of the smallest bit that they keep."""
    total = [sums.positive, sums.negative] + ([] if sums.curvature is None else [sums.curvature])
    return [one.tolist() for one in total]


# Three classes, two leaves: rows 0 and 1 in leaf 0, rows 2 and 3 in leaf 1.
Q = [[0, HALF, FOURTH], [FOURTH, 0, FOURTH], [HALF, HALF, 0], [0, FOURTH, ONE - FOURTH]]
TARGET = [0, 1, 2, 0]
LEAVES = np.array([0, 0, 1, 1])


def test_leaf_sums_by_hand() -> None:
    sums = rows_of(Q, TARGET).leaf_sums(LEAVES, 2, curved=True)
    # Leaf 0: class 0 has row 0 (1/2 + 1/4), and 1/4 of row 1 against it; ... Curvatures: 1/2 gives 1/4, 1/4 and 3/4 give 3/16.
    assert (sums.positive / ONE).tolist() == [[0.75, 0.5, 0.0], [1.0, 0.0, 1.0]]
    assert (sums.negative / ONE).tolist() == [[0.25, 0.5, 0.5], [0.5, 0.75, 0.75]]
    assert sums.curvature is not None
    own = np.array([[0.25 + 0.1875, 0.375, 0.0], [0.375, 0.0, 0.5]])
    against = np.array([[0.1875, 0.25, 0.375], [0.25, 0.25 + 0.1875, 0.1875]])
    np.testing.assert_allclose(sums.curvature / ONE, own + against, atol=1e-8)


def test_leaf_sums_of_colours_by_hand() -> None:
    # Class 1 alone is +. Row 0: 1/2 against +; row 1: 1/2 for +; row 2: 1/2 against; row 3: 1/4 against.
    sums = rows_of(Q, TARGET).leaf_sums(LEAVES, 2, np.array([-1, 1, -1], np.int8))
    assert (sums.positive / ONE).tolist() == [[0.5, 0.5], [0.75, 0.0]]
    assert (sums.negative / ONE).tolist() == [[0.5, 0.5], [0.0, 0.75]]


def test_curvatures_of_colours_are_those_of_pairs_of_labels() -> None:
    # Row 0: the pair with label 1 has q = 1/2 and curves by 1/4; row 1: two pairs of 1/4, 2 * 3/16, and not 1/2 (1 - 1/2);
    # row 2: 1/4; row 3: 3/16. A pair has a label of either colour.
    sums = rows_of(Q, TARGET).leaf_sums(LEAVES, 2, np.array([-1, 1, -1], np.int8), curved=True)
    assert sums.curvature is not None
    np.testing.assert_allclose(sums.curvature / ONE, [[0.625, 0.625], [0.4375, 0.4375]], atol=1e-8)
    # The first round of nine classes: every q is 1/2, and a row's weights of the other colour add up to 2, whose q (1 - q) is
    # negative. All of the four rows are +: the step is sum q / sum q (1 - q) = (4 * 4 / 2) / (4 * 4 / 4) = 2.
    q = np.full((4, 9), HALF)
    q[:, 8] = 0
    colouring = np.array([-1, 1, -1, 1, -1, 1, -1, 1, 1], np.int8)
    sums = rows_of(q, [8] * 4).leaf_sums(np.zeros(4, np.intp), 1, colouring, curved=True)
    np.testing.assert_allclose(newton_values(sums, 1.0), [[-1.0, 1.0]], atol=1e-8)


@pytest.mark.parametrize("coloured", [False, True])
def test_newton_steps_of_weighted_rows_by_brute_force(coloured: bool) -> None:
    rng = np.random.default_rng(4)
    n, k = 300, 6
    target, leaves, weight = rng.integers(0, k, n), rng.integers(0, 3, n), rng.uniform(0.05, 1.0, n)
    q = rng.integers(0, ONE, (n, k)) * (np.arange(k) != target[:, None])
    colouring = np.array([1, -1, -1, 1, -1, 1], np.int8) if coloured else np.arange(k)
    gradient, curvature = np.zeros((3, k)), np.zeros((3, k))
    for i in range(n):
        for label in range(k):
            share = q[i, label] / ONE
            if colouring[label] == colouring[target[i]]:
                continue  # the row's own label, or no step moves the pair
            for one, sign in ((target[i], 1), (label, -1)):
                gradient[leaves[i], one] += sign * weight[i] * share
                curvature[leaves[i], one] += weight[i] * share * (1 - share)
    if coloured:  # the labels of a colour move together
        of = np.equal.outer(colouring, np.array([-1, 1]))
        gradient, curvature = gradient @ of, curvature @ of
    sums = rows_of(q, target, weight).leaf_sums(leaves, 3, colouring if coloured else None, curved=True)
    np.testing.assert_allclose(newton_values(sums, 1.0), np.clip(gradient / curvature, -4, 4) / 2, rtol=1e-6)


@pytest.mark.parametrize("colouring", [None, np.array([1, -1, -1], np.int8)])
def test_weight_two_is_the_row_twice(colouring: Any) -> None:
    twice = [0, 1, 1, 2, 3, 3]
    weighted = rows_of(Q, TARGET, [0.5, 1.0, 0.5, 1.0]).leaf_sums(LEAVES, 2, colouring, curved=True)
    repeated = rows_of([Q[i] for i in twice], [TARGET[i] for i in twice]).leaf_sums(LEAVES[twice], 2, colouring, curved=True)
    assert shares(weighted) == shares(repeated)
    real = rows_of(Q, TARGET, [0.5, 1.0, 0.75001, 1.0]).leaf_sums(LEAVES, 2, colouring)
    assert real.positive.sum() * 2 == pytest.approx(repeated.positive.sum(), rel=0.2)


def test_sums_of_many_rows_are_exact() -> None:
    # 2**53 is passed: bits are dropped, of every row alike.
    n = 1 << 21
    rows = rows_of([[0, ONE - 1]], [0])
    many = Rows(rows.parts, [np.zeros(n, np.intp)], np.broadcast_to(np.array([0, ONE - 1]), (n, 2)))
    sums = many.leaf_sums(np.zeros(n, np.int64), 1)
    assert sums.positive[0, 0] == sums.negative[0, 1] == n * ((ONE - 1) >> 1)


def test_leaf_values_by_hand() -> None:
    sums = LeafSums(np.array([[30, 10], [0, 60]]), np.array([[10, 30], [60, 0]]), np.array([[8, 8], [3, 3]]))
    # W+ of a label as a share of all weight, over its leaves and labels: 30 / 100. 1/4, since scores of two labels differ.
    s = 0.01
    expected = [[math.log((0.3 + s) / (0.1 + s)), math.log((0.1 + s) / (0.3 + s))]]
    expected += [[math.log(s / (0.6 + s)), math.log((0.6 + s) / s)]]
    np.testing.assert_allclose(confidence_values(sums, s), np.array(expected) / 4, rtol=1e-12)
    # sum y q / sum q (1 - q), cut at 4; the margin of two classes moves by the rate times that.
    np.testing.assert_allclose(newton_values(sums, 0.5), 0.25 * np.array([[20 / 8, -20 / 8], [-4.0, 4.0]]))
    assert LARGEST_NEWTON_STEP == 4.0
    nothing = LeafSums(*(np.zeros((1, 2), np.int64) for _ in range(3)))
    assert newton_values(nothing, 1.0).tolist() == [[0.0, 0.0]]
    assert of_colours(np.array([[-1.0, 2.0]]), np.array([1, -1, 1], np.int8)).tolist() == [[2.0, -1.0, 2.0]]


def test_rows_that_passed_the_filter_weigh_the_same() -> None:
    rows = rows_of(Q, TARGET).normalised()
    assert (abs(rows.q.sum(axis=1) - ONE) <= 2).all()
    assert rows.q[0].tolist() == pytest.approx([0, 2 * ONE / 3, ONE / 3], abs=1)
    # FilterWL has chosen them by the labels of the other colour, so that these alone count (algorithm 9), once.
    colouring = np.array([-1, 1, 1], np.int8)
    kept = [0, 1, 3]  # row 2 is as well
    coloured = rows_of([Q[i] for i in kept], [TARGET[i] for i in kept]).normalised(colouring)
    target, q = coloured.recoloured(colouring)
    assert target.tolist() == [0, 1, 0]
    assert (abs(q.sum(axis=1) - ONE) <= 2).all()


# ---- what the paper proves ---------------------------------------------------------------------------------------------------

DATA = blobs(200, 4, 4, seed=3, noise=2.0)
CLASSES = DATA.signs.argmax(axis=1)
ONE_VS_REST = [np.where(np.arange(4) == k, 1, -1).astype(np.int8) for k in range(4)]


def test_lemma_11() -> None:
    # The pseudo-edge of the votes is the edge of the binary tree times U, exactly, in integers.
    backend = NumpyBackend()
    source = examples(DATA.X, CLASSES, backend)
    learner = ColourVotes(4, 4, 0, tuple(ONE_VS_REST))
    one = booster(source, 100, 100, learner=learner)
    for t in range(1, 9):
        colouring = learner.colouring(t)
        assert colouring is ONE_VS_REST[(t - 1) % 4]
        weak = learner.fit(backend, source.mapper, source.all(200).chosen, colouring)
        rows = source.all(250).chosen
        leaf_index = rows.leaf_index(backend, weak.tree)
        votes = weak.tree.values[leaf_index]
        np.testing.assert_array_equal(votes, votes[:, :1] * colouring[0] * colouring[None, :])
        h = (votes * colouring)[:, 0].astype(np.int64)  # what the binary tree says
        p = rows.q.sum(axis=1)
        of_other = np.where(colouring[None, :] != colouring[rows.target][:, None], rows.q, 0).sum(axis=1)
        U = int(of_other.sum()) / int(p.sum())
        edge = int((of_other * h * colouring[rows.target]).sum()) / int(of_other.sum()) / 2
        assert pseudo_edge(weak.tree.values, rows.leaf_sums(leaf_index, weak.tree.n_leaves)) == pytest.approx(
            edge * U, rel=1e-12
        )
        one.one_round(t)


def loss_and_bound(history: Any) -> tuple[Any, Any]:
    """How much the loss falls from round to round, in nats of a pair, and how much by lemma 3."""
    edge, p = np.array(history["edge"][:-1]), np.array(history["acceptance"][:-1])
    return -np.diff(history["train_loss"]) * math.log(2), p * (1 - 2 * np.sqrt(0.25 - edge**2))


def whole_set(n_classes: int, weighting: str = "logistic", X: Any = DATA.X, seed: int = 0) -> FixedSet:
    rows = Step(X, CLASSES % n_classes, np.ones(len(X)), 0, 0)
    return FixedSet(rows, NumpyBackend(), mapper(X), n_classes, weighting=weighting, seed=seed)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", thinned(["stump", "tree", "colours"], 3))
def test_lemma_3(n_classes: int, kind: str) -> None:
    # With exact edges the loss falls by at least p (1 - 2 sqrt(1/4 - gamma^2)): AdaBoost-LOG. It holds of pairs of labels, too.
    learner = ColourVotes(4, n_classes, 0) if kind == "colours" else ClassVotes(2 if kind == "stump" else 6)
    result = run(booster(whole_set(n_classes), 1, 1, learner=learner, filtering=False), 15)
    falls, least = loss_and_bound(result.history)
    assert (least > 1e-5).any()
    assert (falls >= least - 1e-6).all()
    assert all(
        error <= bound + 1e-9 for error, bound in zip(result.history["train_error"], result.history["bound"], strict=True)
    )


@pytest.mark.parametrize("leaf_values", thinned(["paper", "fresh"], 2))
def test_confidences_never_raise_the_loss_of_the_set_they_are_from(leaf_values: str) -> None:
    # ln((1 - q) + q e^-f) <= q (e^-f - 1): by leaf at most 2 sqrt(W+ W-) - W+ - W-, and f is nearer to 0 by the smoothing.
    # With two classes only: with more, a margin is the difference of two leaf values that were chosen apart.
    result = run(booster(whole_set(2), 1, 1, leaves=6, filtering=False, leaf_values=leaf_values), 15)
    falls, _ = loss_and_bound(result.history)
    assert (falls > -1e-6).all()
    assert falls[0] > 0.01


@pytest.mark.parametrize("seed", thinned([0, 1], 2))
def test_exponential_weights_are_discrete_adaboost(seed: int) -> None:
    # Two classes: alpha h is the difference of scores here, and each of the two scores in AdaBoost.MH.
    from gpuboost import AdaBoostMHClassifier

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=300) > 0) * 1
    model = AdaBoostMHClassifier(n_estimators=20, learner="stump", variant="discrete", device="numpy").fit(X, y)
    rows = Step(X, y, np.ones(300), 0, 0)
    source = FixedSet(rows, NumpyBackend(), mapper(X), 2, weighting="exponential")
    result = run(booster(source, 1, 1, filtering=False), 20)
    for t, tree in enumerate(result.trees):
        other = model.ensemble_.tree(t)
        assert (tree.feature.tolist(), tree.cut.tolist()) == (other.feature.tolist(), other.cut.tolist())
        np.testing.assert_allclose(2 * tree.values, other.values, rtol=1e-5)
    np.testing.assert_allclose(2 * np.array(result.history["edge"]), model.history_["edge"], rtol=1e-5)


def test_resampled_rows_come_by_their_weights() -> None:
    # Drawn with replacement, by q and the weights of the rows: frequencies within 5 standard deviations.
    n_draws = 40_000
    rng = np.random.default_rng(0)
    X, y, weight = rng.normal(size=(12, 2)), np.arange(12) % 2, rng.integers(1, 5, 12).astype(np.float64)
    source = FixedSet(Step(X, y, weight, 0, 0), NumpyBackend(), mapper(X), 2, seed=3)
    for _ in range(3):
        draw = source.accepted(n_draws, all_labels)
        counts = np.bincount(draw.chosen.index[0], minlength=12)
        p = draw.parts[0].q.sum(axis=1) * weight
        p = p / p.sum()
        assert (abs(counts - n_draws * p) < 5 * np.sqrt(n_draws * p)).all()
        booster(source, 50, 1).one_round(1)


def test_a_coloured_round_does_not_prove_what_it_has_not_seen() -> None:
    # Class 0 is known, 1 and 2 are not told apart: nearly no row passes FilterWL of 0 against the rest, but half of 2/3 of the
    # rows Filter. So the error is 1/3 and must not be found to be below 0.05.
    from gpuboost.tree import Tree

    X = np.arange(300.0)[:, None] % 3
    y = np.arange(300) % 3
    source = examples(X, y, NumpyBackend())
    far = np.array([[40.0, -40.0, -40.0], [-40.0, 40.0, 40.0]])
    none, first = np.zeros(1, bool), np.zeros(1, np.int32)
    source.trees.append(Tree(first, np.array([1], np.uint8), none, ~first, ~(first + 1), far, np.zeros(1)))
    one = booster(source, 5, 30, learner=ColourVotes(2, 3, 0, (ONE_VS_REST[0][:3],)), epsilon=0.05)
    result = run(one, 3)
    assert "target_error" not in result.reason

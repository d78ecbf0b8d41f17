"""Rules of early exit: by hand, and against what they promise."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from gpuboost.backends.early_exit import ExitRule
from gpuboost.early_exit import (
    BLOCK_CELLS,
    calibrated_rule,
    checkpoints,
    exact_rule,
    exit_lead,
    largest_gains,
    lead_of,
    needs,
    rounds_of,
)
from gpuboost.ensemble import Ensemble
from gpuboost.tree import Tree, constant_tree


def stump(*leaves: list[float]) -> Tree:
    """A tree that sends code 1 to its first leaf, and others to the second."""
    one = np.array([1])
    return Tree(
        one.astype(np.int32) - 1,
        one.astype(np.uint8),
        one > 1,
        ~np.array([0], np.int32),
        ~np.array([1], np.int32),
        np.array(leaves),
        0.0 * one,
    )


def test_checkpoints() -> None:
    assert checkpoints(25, 10).tolist() == [10, 20, 25]
    assert checkpoints(20, 10).tolist() == [10, 20]
    assert checkpoints(3, 10).tolist() == [3]
    assert rounds_of(np.array([0, 2, 1], np.int32), 25, 10).tolist() == [10, 25, 20]


def test_gains_by_hand() -> None:
    values = np.array([[1.0, 0.0, -1.0], [-2.0, 3.0, 0.5]])
    # What b wins on a: in the second leaf class 1 has 3 + 2 on class 0, ...
    assert largest_gains(values).tolist() == [[0.0, 5.0, 2.5], [1.0, 0.0, -1.0], [2.0, 2.5, 0.0]]


def test_gains_in_blocks_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(7, 5))
    whole = largest_gains(values)
    monkeypatch.setattr("gpuboost.early_exit.BLOCK_CELLS", 40)
    assert BLOCK_CELLS > 40
    assert_array_equal(largest_gains(values), whole)


def test_the_exact_rule_by_hand() -> None:
    ensemble = Ensemble.from_trees(
        [constant_tree(np.array([0.0, 8.0])), stump([1.0, 0.0], [0.0, 2.0]), stump([4.0, 1.0], [0.0, 0.0])], 2
    )
    rule = exact_rule(ensemble, 1)
    assert rule.trees.tolist() == [1, 2, 3]
    slack = 8 * 4 * 2.0**-53 * (8 + 2 + 4)
    # Class 0 wins at most 1 and 3 on class 1; class 1 wins 2 and 0 on class 0.
    expected = np.array([[[0, 2 + 0], [1 + 3, 0]], [[0, 0], [3, 0]], [[0, 0], [0, 0]]]) + slack
    assert rule.margins == pytest.approx(expected, rel=1e-15)
    assert rule.leaves(np.array([[0.0, 4.0], [0.0, 5.0], [3.0, 0.0]]), 0).tolist() == [
        False,
        True,
        True,
    ]  # 4 is just not enough
    assert rule.leaves(np.array([[0.0, 0.0]]), 2).tolist() == [True]


def test_rounds_of_several_trees() -> None:
    tree = constant_tree(np.array([1.0, 0.0]))
    ensemble = Ensemble.from_rounds([[tree] * 3, [tree], [tree] * 2], 2)
    assert exact_rule(ensemble, 2).trees.tolist() == [4, 6]
    assert calibrated_rule(ensemble, 1, 0.5).trees.tolist() == [3, 4, 6]


def test_what_rounding_can_do_is_less_than_the_slack() -> None:
    """Scores in float64 against those in fractions, for trees whose values span many magnitudes."""
    rng = np.random.default_rng(1)
    trees = [stump(*(rng.normal(size=(2, 3)) * 10.0 ** rng.integers(-9, 9)).tolist()) for _ in range(60)]
    ensemble = Ensemble.from_trees(trees, 3)
    ranges = np.zeros((3, 3))
    for tree in reversed(trees):
        ranges = ranges + largest_gains(tree.values)
    slack = exact_rule(ensemble, 10).margins[-1, 0, 0]
    for leaf in (0, 1):
        scores, exact = np.zeros(3), [Fraction(0)] * 3
        for tree in trees:
            scores = scores + tree.values[leaf]
            exact = [a + Fraction(b) for a, b in zip(exact, tree.values[leaf].tolist(), strict=True)]
        assert max(abs(float(Fraction(s) - e)) for s, e in zip(scores.tolist(), exact, strict=True)) < slack / 4
    exact_ranges = [
        [sum(max(Fraction(v[b]) - Fraction(v[a]) for v in t.values.tolist()) for t in trees) for b in range(3)]
        for a in range(3)
    ]
    worst = max(abs(float(Fraction(ranges[a, b]) - exact_ranges[a][b])) for a in range(3) for b in range(3))
    assert worst < slack / 4


@pytest.mark.parametrize("seed", range(40))
def test_no_score_that_leaves_by_the_exact_rule_has_another_label(seed: int) -> None:
    """Integer scores, so that ties are many; every way through the trees is tried."""
    rng = np.random.default_rng(seed)
    n_classes, n_trees = int(rng.integers(2, 5)), 8
    trees = [stump(*rng.integers(-2, 3, (2, n_classes)).astype(float).tolist()) for _ in range(n_trees)]
    rule = exact_rule(Ensemble.from_trees(trees, n_classes), 2)
    ways = (np.arange(2**n_trees)[:, None] >> np.arange(n_trees)) & 1
    stages = np.cumsum([tree.values[ways[:, t]] for t, tree in enumerate(trees)], axis=0)
    n_left = 0
    for checkpoint, stop in enumerate(rule.trees.tolist()):
        leaves = rule.leaves(stages[stop - 1], checkpoint)
        assert_array_equal(stages[stop - 1][leaves].argmax(axis=1), stages[-1][leaves].argmax(axis=1))
        n_left += int(leaves.sum()) if stop < n_trees else 0
    assert n_left > 0


def test_margins_are_broadcast() -> None:
    scores = np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 2.5]])
    trees = np.array([1, 2])
    one = ExitRule(trees, np.full((1, 1, 1), 2.0))
    assert one.leaves(scores, 0).tolist() == [False, False, True]  # more than 2, not 2
    assert_array_equal(ExitRule(trees, np.full((2, 3, 3), 2.0)).leaves(scores, 0), one.leaves(scores, 0))
    of_leader = ExitRule(trees, np.array([[[1.5], [0.0], [2.5]]]))
    assert of_leader.leaves(scores, 0).tolist() == [True, False, False]


def test_needs_by_hand() -> None:
    stages = np.array(
        [
            [[3.0, 0.0, 1.0], [0.0, 5.0, 5.0], [1.0, 0.0, 0.0]],
            [[0.0, 1.0, 0.0], [0.0, 6.0, 5.0], [2.0, 0.0, 0.0]],
            [[0.0, 2.0, 0.0], [0.0, 6.0, 7.0], [9.0, 0.0, 8.0]],
        ]
    )
    # Row 0 led by 2 for a wrong class; row 1 by 0 and by 1; row 2 was right all the time.
    assert needs(stages).tolist() == [2.0, 1.0, 0.0]
    assert lead_of(stages[:, 1]).tolist() == [0.0, 1.0, 1.0]


def test_the_constant_and_its_bound() -> None:
    needed = np.array([0.0, 3.0, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert exit_lead(needed, 0.0) == (3.0, 0.1)
    assert exit_lead(needed, 0.1) == (2.0, 0.2)
    assert exit_lead(needed, 0.35) == (0.0, 0.4)
    assert exit_lead(needed, 0.999) == (0.0, 0.9)


def test_the_bound_holds_for_exchangeable_rows() -> None:
    """Averaged over many divisions of drawn needs, the share of the other half that is above the constant keeps the bound."""
    rng = np.random.default_rng(2)
    for allowed in (0.0, 0.01, 0.1):
        shares, bound = [], 0.0
        for _ in range(400):
            needed = rng.exponential(size=400) * (rng.random(400) < 0.3)
            lead, bound = exit_lead(needed[:200], allowed)
            shares.append(np.mean(needed[200:] > lead))
        assert np.mean(shares) <= bound + 3 * np.std(shares) / 20
        assert np.mean(shares) >= bound - 0.006  # and gives nothing away: needs are distinct but for zeros


def test_stages_of_one_checkpoint() -> None:
    assert [*pairwise([0, *checkpoints(5, 10)])] == [(0, 5)]
    assert needs(np.array([[[1.0, 2.0]]])).tolist() == [0.0]

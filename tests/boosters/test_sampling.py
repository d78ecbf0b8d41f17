"""Trees grown from a part of the rows and features, with coefficients and losses of all rows."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import WHOLE, Frontier, GrowthScope
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Stats
from gpuboost.boosters.abc_boost import ABCBoost
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.base import Booster, Problem
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.leaf_counts import leaf_counts
from gpuboost.boosters.rebel import Rebel
from gpuboost.boosters.samme import SAMME
from gpuboost.boosters.sampling import FEATURES, NO_SAMPLING, ROWS, Sampling, part_of
from gpuboost.learners.base import Learner
from gpuboost.learners.class_tree import ClassTree
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.newton_trees import grow_newton_trees
from gpuboost.learners.product import StumpProduct
from gpuboost.peers.rows import RowOrder
from tests.backends.test_growth_scope import newton_batch, random_lists
from tests.problems import Data, blobs, coded, cpu_backend, digest, fit, sign_matrix, stats_of, votes_of_rows

REFERENCE = NumpyBackend()
OPTIONS = {
    "trim": {"weight_trim": 0.8},
    "features": {"max_features": 0.4},
    "rows": {"subsample": 0.3},
    "all": {"weight_trim": 0.9, "max_features": 0.6, "subsample": 0.5},
}
BOOSTERS: dict[str, Booster] = {
    "tree discrete": AdaBoostMH(HammingTree(5), "single-label"),
    "tree real": AdaBoostMH(HammingTree(4), "single-label", "real", min_weight_fraction_leaf=0.05),
    "stump": AdaBoostMH(HammingTree(2), "uniform", "real"),
    "product": AdaBoostMH(StumpProduct(2), "single-label"),
    "samme": SAMME(5),
    "samme real": SAMME(5, variant="real", min_weight_fraction_leaf=0.05),
    "gamble": Gamble(5, 0.5),
    "rebel": Rebel(1),
    "logit": ABCBoost("logit", None, 1, None, 4, 3, 0.3),
    "abc mart": ABCBoost("mart", "search", 1, None, 4, 3, 0.3),
    "rebel deep": Rebel(3, np.array([[0.0, 3.0, 4.0], [1.0, 0.0, 2.0], [1.0, 1.0, 0.0]]), min_weight_fraction_leaf=0.05),
}
NEWTON = {"logit": BOOSTERS["logit"], "abc mart": BOOSTERS["abc mart"]}
DATA = replace(blobs(60, 6, 3, 0), max_bins=8)
N_ROUNDS = 6


def bare(data: Any, backend: Backend = REFERENCE) -> Problem:
    """A problem of which only the rows matter."""
    n_rows = data.n_rows
    return Problem(backend, data, np.zeros(n_rows, np.int32), 1, np.ones(n_rows, np.int32), np.ones(n_rows))


def largest(values: NDArray[Any], n: int) -> NDArray[np.intp]:
    """Where the n largest values are, of equal ones the first."""
    return np.sort(np.lexsort((np.arange(len(values)), ~values.astype(np.uint64)))[:n])


def heaviest(values: NDArray[Any], share: float) -> NDArray[np.intp]:
    """Where the fewest values are that hold at least a share of their sum, of equal ones the first."""
    falling = np.sort(values)[::-1]
    return largest(values, 1 + int((np.cumsum(falling) < math.ceil(share * int(values.sum()))).sum()))


def random(seed: int, t: int, n: int) -> NDArray[np.uint64]:
    """What the rows of a round are drawn by."""
    return RowOrder.alone(n).random([seed, t, ROWS])


def sampled(name: str, **how: Any) -> Booster:
    return replace(BOOSTERS[name], sampling=Sampling(**{"seed": 3, **how}))  # type: ignore[type-var]


# ---- what is taken -----------------------------------------------------------------------------------------------------------


def test_parts_by_hand() -> None:
    assert [part_of(10, share) for share in (0.01, 0.14, 0.15, 0.25, 0.5, 0.94, 0.96)] == [1, 1, 2, 3, 5, 9, 10]
    assert part_of(1, 0.01) == 1


def test_draws_do_not_depend_on_the_release_of_numpy() -> None:
    # The raw output of PCG64, seeded by SeedSequence([7, 2, 0]); both are documented not to change.
    expected = [5127646655721812508, 8211625751441680169, 17224433401432668140]
    assert RowOrder.alone(3).random([7, 2, ROWS]).tolist() == expected


def test_draws_depend_on_the_seed_and_the_round_only() -> None:
    def draws(seed: int, t: int, what: int) -> bytes:
        return RowOrder.alone(20).random([seed, t, what]).tobytes()

    seeds = (0, 1, 2**31, 2**64 + 1, 2**127)
    all_draws = {draws(seed, t, what) for seed in seeds for t in (0, 1, 1000) for what in (ROWS, FEATURES)}
    assert len(all_draws) == 5 * 3 * 2
    assert draws(2**127, 4, ROWS) == draws(2**127, 4, ROWS)


def test_draws_are_even() -> None:
    # 400 rounds of 5 of 20: a row is drawn 100 times, give or take sqrt(400 * 1/4 * 3/4) = 8.7; 5 of these are 43.
    sampling, stats = Sampling(subsample=0.25, max_features=0.25, seed=1), stats_of(REFERENCE, np.ones((20, 1)))
    data = coded(np.tile([1, 2] * 10, (20, 1)))
    rows, features = np.zeros(20, int), np.zeros(20, int)
    for t in range(400):
        scope = sampling.draw(t, bare(data), stats)
        assert len(scope.sample_indices) == 5 == int(scope.feature_mask.sum())
        rows[scope.sample_indices] += 1
        features += scope.feature_mask
    assert abs(rows - 100).max() < 43
    assert abs(features - 100).max() < 43


def test_what_is_everything() -> None:
    data, stats = coded([[1, 2, 1, 2], [1, 1, 1, 1]]), stats_of(REFERENCE, [[4], [-4], [4], [-4]])
    assert NO_SAMPLING.draw(0, bare(data), stats) is WHOLE
    # 90 % of four equal weights are four rows, 90 % of four rows too, and a part of one feature is that feature.
    assert Sampling(0.9, 0.5, 0.9).draw(0, bare(data), stats) is WHOLE
    assert Sampling(1.0, 1.0, 1.0, seed=5).takes_all
    assert not Sampling(weight_trim=0.999).takes_all


def test_features_that_cannot_be_cut_are_not_drawn() -> None:
    data, stats = coded(np.array([[1, 2], [1, 1], [2, 1], [1, 1], [1, 1]])), stats_of(REFERENCE, [[1], [-1]])
    for t in range(10):
        features = Sampling(max_features=0.5, seed=t).draw(t, bare(data), stats).feature_mask
        assert features.sum() == 1
        assert features[[0, 2]].any()


def test_trimming_within_the_rows_drawn(candidate: Backend) -> None:
    quantised = np.random.default_rng(0).integers(-50, 51, (40, 3))
    data, stats = candidate.load(coded(np.tile([1, 2], (1, 20)))), stats_of(candidate, quantised)
    sum_abs = abs(quantised).sum(axis=1)
    for t in range(5):
        drawn = Sampling(subsample=0.5, seed=9).draw(t, bare(data, candidate), stats)
        both = Sampling(weight_trim=0.6, subsample=0.5, seed=9).draw(t, bare(data, candidate), stats)
        rows, kept = (np.array(candidate.get(scope.sample_indices)) for scope in (drawn, both))
        assert kept.dtype == np.int32
        assert kept.tolist() == rows[heaviest(sum_abs[rows], 0.6)].tolist()


def test_the_smallest_leaf_is_a_share_of_the_rows_drawn() -> None:
    problem = DATA.on(REFERENCE)
    whole, half = (leaf_counts(problem, 0.1, Sampling(weight_trim=0.5, subsample=share)) for share in (1.0, 0.5))
    assert whole is not None
    assert half is not None
    total = int(whole.of_row.sum())
    assert (whole.minimum, half.minimum) == (-(-total // 10), -(-total // 20))


# ---- learners ----------------------------------------------------------------------------------------------------------------


def test_a_classifier_that_is_wrong_on_all_rows_votes_the_other_way(candidate: Backend) -> None:
    # Of rows 0 and 1 the stump says + on the left and - on the right. All rows: 1 - 5 on the left, -1 + 3 on the right, so its
    # edge is -4 - 2; turned round it is 6.
    data, stats = candidate.load(coded([[1, 2, 1, 2]])), stats_of(candidate, [[1], [-1], [-5], [3]])
    scope = GrowthScope(candidate.put(np.array([0, 1], np.int32)))
    for learner in (HammingTree(2), StumpProduct(1)):
        weak = learner(candidate, data, stats, scope)
        assert (weak.edge, weak.tree.values.tolist()) == (6, [[-1.0], [1.0]])
        assert votes_of_rows(candidate, weak).tolist() == [[-1], [1], [-1], [1]]


@pytest.mark.parametrize("learner", [HammingTree(2), HammingTree(6), StumpProduct(1), StumpProduct(3)], ids=str)
@pytest.mark.parametrize("size", [1, 9, 40])
def test_cuts_of_some_rows_with_the_edge_of_all(candidate: Backend, learner: Learner, size: int) -> None:
    rng = np.random.default_rng(size)
    codes, quantised = rng.integers(0, 5, (4, 80)).astype(np.uint8), rng.integers(-9, 10, (80, 3))
    rows = rng.permutation(80)[:size].astype(np.int32)
    data, stats = candidate.load(coded(codes, [5] * 4)), stats_of(candidate, quantised)
    weak = learner(candidate, data, stats, GrowthScope(candidate.put(rows)))
    alone = learner(REFERENCE, coded(codes[:, rows], [5] * 4), stats_of(REFERENCE, quantised[rows]))
    for name in ("feature", "cut", "missing_left", "left", "right"):
        assert getattr(weak.tree, name).tolist() == getattr(alone.tree, name).tolist()
    leaf = REFERENCE.apply(alone.tree, coded(codes))
    edge = int((alone.tree.values[leaf] * quantised).sum())
    turned = -1 if edge < 0 else 1
    assert (weak.edge, weak.tree.values.tolist()) == (abs(edge), (turned * alone.tree.values).tolist())
    assert votes_of_rows(candidate, weak).tolist() == (turned * alone.tree.values)[leaf].tolist()


def test_a_class_tree_of_some_rows_with_the_sums_of_all(candidate: Backend) -> None:
    rng = np.random.default_rng(2)
    codes, labels = rng.integers(0, 5, (4, 80)).astype(np.uint8), rng.integers(0, 3, 80)
    quantised = np.where(labels[:, None] == np.arange(3), rng.integers(0, 9, (80, 1)), 0)
    rows = rng.permutation(80)[:30].astype(np.int32)
    data, stats = candidate.load(coded(codes)), replace(stats_of(candidate, quantised), criterion="gini")
    grown = ClassTree(5)(candidate, data, stats, GrowthScope(candidate.put(rows)))
    of_rows = replace(stats_of(REFERENCE, quantised[rows]), criterion="gini")
    alone = ClassTree(5)(REFERENCE, coded(codes[:, rows], [5] * 4), of_rows)
    assert grown.tree.n_leaves == 5
    for name in ("feature", "cut", "missing_left", "left", "right"):
        assert getattr(grown.tree, name).tolist() == getattr(alone.tree, name).tolist()
    leaf = REFERENCE.apply(alone.tree, coded(codes))
    assert candidate.get(grown.leaf_index).tolist() == leaf.tolist()
    assert grown.sums[0].tolist() == [quantised[leaf == j].sum(axis=0).tolist() for j in range(5)]


@pytest.mark.parametrize("shared", [True, False])
def test_newton_trees_of_some_rows_with_the_sums_of_all(candidate: Backend, shared: bool) -> None:
    codes = np.random.default_rng(2).integers(0, 5, (4, 80)).astype(np.uint8)
    batch, lists = newton_batch(80, 3, False), random_lists(80, 3, 3)[0 if shared else 1]
    bounds = None if shared else np.cumsum([0, *map(len, lists)])
    scope = GrowthScope(candidate.put(np.concatenate(lists).astype(np.int32)), bounds)
    grown = grow_newton_trees(candidate, candidate.load(coded(codes)), batch(candidate), 4, scope)
    leaf_indices, stats = candidate.get(grown.leaf_indices), batch(REFERENCE)
    for t in range(3):
        rows = lists[0 if shared else t]
        of_rows = replace(
            stats, quantised=stats.quantised[t : t + 1, rows], sum=stats.quantised[t, rows].sum(axis=0, dtype=np.int64)
        )
        lone = grow_newton_trees(REFERENCE, coded(codes[:, rows], [5] * 4), of_rows, 4)
        expected = lone.tree(0, np.arange(7.0)[:, None], 1.0).tree
        leaf = REFERENCE.apply(expected, coded(codes))
        assert leaf_indices[t].tolist() == leaf.tolist()
        values = np.arange(10.0, 10 + grown.gradient.shape[1])[:, None]
        tree = grown.tree(t, values, 1.0).tree
        for name in ("feature", "cut", "missing_left", "left", "right", "gain"):
            assert getattr(tree, name).tolist() == getattr(expected, name).tolist()
        assert tree.values.tolist() == values[: expected.n_leaves].tolist()
        for channel, sums in ((0, grown.gradient), (1, grown.curvature)):
            by_hand = [int(stats.quantised[t, leaf == j, channel].sum()) for j in range(expected.n_leaves)]
            assert sums[t, : expected.n_leaves].tolist() == by_hand
    assert 3 * 4 >= sum(len(grown.tree(t, values, 1.0).tree.values) for t in range(3)) > 6


# ---- whole trainings ---------------------------------------------------------------------------------------------------------


@cache
def reference(name: str, options: str) -> tuple[str, dict[str, str]]:
    training = fit(sampled(name, **OPTIONS[options]), DATA, REFERENCE, N_ROUNDS)
    return digest(training.trees, 3), without_seconds(training.history)


def without_seconds(history: dict[str, Any]) -> dict[str, str]:
    """As text, in which nan is nan."""
    return {key: repr(values) for key, values in history.items() if key != "seconds"}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", BOOSTERS)
def test_the_same_model_on_every_backend(candidate: Backend, name: str, options: str) -> None:
    training = fit(sampled(name, **OPTIONS[options]), DATA, candidate, N_ROUNDS)
    expected, history = reference(name, options)
    assert digest(training.trees, 3) == expected
    assert without_seconds(training.history) == history
    assert len(training.rounds) == N_ROUNDS


@pytest.mark.parametrize("name", BOOSTERS)
def test_shares_of_one_are_the_plain_algorithm(name: str) -> None:
    plain = fit(BOOSTERS[name], DATA, REFERENCE, N_ROUNDS)
    assert digest(fit(sampled(name), DATA, REFERENCE, N_ROUNDS).trees, 3) == digest(plain.trees, 3)
    different = {reference(name, options)[0] for options in OPTIONS} | {digest(plain.trees, 3)}
    assert len(different) == 1 + len(OPTIONS)  # and every option makes another model


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", BOOSTERS)
def test_a_continued_training_is_one_long_training(name: str, options: str) -> None:
    booster = sampled(name, **OPTIONS[options])
    first = fit(booster, DATA, REFERENCE, 2)
    both = fit(booster, DATA, REFERENCE, N_ROUNDS, initial_rounds=first.rounds, history=first.history)
    expected, history = reference(name, options)
    assert digest(both.trees, 3) == expected
    assert without_seconds(both.history) == history


class Watching(NumpyBackend):
    """Notes what trees are grown from."""

    def __init__(self) -> None:
        self.starts: list[tuple[GrowthScope, NDArray[np.int64]]] = []

    def start_growth(self, data: Any, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        self.starts.append((scope, self.row_weights(stats)[0]))
        return super().start_growth(data, stats, max_leaves, scope)


class Batches(NumpyBackend):
    """Notes what batches are grown from, and their statistics."""

    def __init__(self) -> None:
        self.starts: list[tuple[GrowthScope, NDArray[np.int32]]] = []

    def start_growth(self, data: Any, stats: Stats, max_leaves: int, scope: GrowthScope = WHOLE) -> Frontier:
        self.starts.append((scope, stats.quantised))
        return super().start_growth(data, stats, max_leaves, scope)


@pytest.mark.parametrize("name", ["tree discrete", "tree real", "stump", "samme", "samme real", "gamble"])
def test_what_the_trees_are_grown_from(name: str) -> None:
    backend = Watching()
    training = fit(sampled(name, weight_trim=0.8, max_features=0.5), DATA, backend, N_ROUNDS)
    sizes = []
    for tree, (scope, sum_abs) in zip(training.trees, backend.starts, strict=True):
        assert scope.feature_mask is not None
        assert scope.feature_mask.sum() == 3
        assert scope.feature_mask[tree.feature].all()
        kept = np.zeros(60, bool) if scope.sample_indices is not None else np.ones(60, bool)
        kept[scope.sample_indices if scope.sample_indices is not None else slice(0)] = True
        assert sum_abs[kept].sum() >= 0.8 * sum_abs.sum()
        assert sum_abs[kept].min() >= sum_abs[~kept].max(initial=0)
        assert sum_abs[kept].sum() - sum_abs[kept].min() < 0.8 * sum_abs.sum()
        sizes.append(int(kept.sum()))
    assert sizes[-1] < sizes[0] <= 48 + 1  # of equal weights 80 % are 48 rows


@pytest.mark.parametrize("name", NEWTON)
def test_what_the_trees_of_a_batch_are_grown_from(name: str) -> None:
    sampling = Sampling(0.8, 0.5, 0.5, seed=3)
    backend = Batches()
    fit(replace(NEWTON[name], sampling=sampling), DATA, backend, N_ROUNDS)  # type: ignore[type-var]
    assert len(backend.starts) == N_ROUNDS
    for t, (scope, quantised) in enumerate(backend.starts):
        assert scope.feature_mask is not None
        assert scope.feature_mask.sum() == 3
        drawn = largest(random(sampling.seed, t, 60), 30)
        assert scope.bounds is not None
        assert len(scope.bounds) == len(quantised) + 1 == 4  # a tree for each class, or for each pair of classes
        for k, (first, stop) in enumerate(itertools.pairwise(scope.bounds)):
            curvature = quantised[k, :, -2].astype(np.int64)  # the last channel are the counts
            assert scope.sample_indices[first:stop].tolist() == drawn[heaviest(curvature[drawn], 0.8)].tolist()
    assert len({tuple(np.diff(scope.bounds)) for scope, _ in backend.starts if scope.bounds is not None}) > 1
    alone = Batches()
    fit(replace(NEWTON[name], sampling=replace(sampling, weight_trim=1.0)), DATA, alone, 2)  # type: ignore[type-var]
    for t, (scope, _) in enumerate(alone.starts):  # all trees share what is drawn
        assert scope.bounds is None
        assert scope.sample_indices.tolist() == largest(random(sampling.seed, t, 60), 30).tolist()


def test_what_the_layers_are_grown_from() -> None:
    backend, sampling = Watching(), Sampling(0.9, 0.5, 0.5, seed=3)
    training = fit(replace(BOOSTERS["rebel deep"], sampling=sampling), DATA, backend, 5)  # type: ignore[type-var]
    codes = DATA.on(REFERENCE).data.codes
    firsts = [i for i, (scope, _) in enumerate(backend.starts) if scope.bounds is None]
    assert training.trees[0].n_leaves == 1  # the constant classifier is of all rows
    assert len(firsts) == 4
    for t, first, stop in zip(range(1, 5), firsts, [*firsts[1:], len(backend.starts)], strict=True):
        tree, (scope, sum_abs) = training.trees[t], backend.starts[first]
        drawn = largest(random(sampling.seed, t, 60), 30)
        assert scope.sample_indices.tolist() == drawn[heaviest(sum_abs[drawn], 0.9)].tolist()
        assert scope.feature_mask is not None
        assert scope.feature_mask.sum() == 3
        assert scope.feature_mask[tree.feature].all()
        assert stop - first > 1
        for deeper, _ in backend.starts[first + 1 : stop]:
            assert sorted(deeper.sample_indices.tolist()) == scope.sample_indices.tolist()
            assert (deeper.feature_mask == scope.feature_mask).all()
        second = backend.starts[first + 1][0]
        assert second.bounds is not None
        goes_left = (codes[tree.feature[0], second.sample_indices] <= tree.cut[0]).tolist()
        assert goes_left == [True] * second.bounds[1] + [False] * (len(goes_left) - second.bounds[1])


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", ["tree discrete", "tree real", "stump", "product", "samme", "rebel", "rebel deep"])
def test_the_loss_does_not_rise(name: str, options: str) -> None:
    with cpu_backend() as backend:
        losses = [1.0, *fit(sampled(name, **OPTIONS[options]), DATA, backend, 25).history["train_loss"]]
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(losses))
    assert losses[-1] < 0.6


def toy(seed: int) -> tuple[Data, list[int]]:
    """Feature 0 says nothing, feature 1 everything; and which of the two each round draws."""
    data = Data(np.array([[1, 1], [2, 1], [1, 2], [2, 2]] * 3), sign_matrix([0, 0, 1, 1] * 3, 2))
    problem: Problem = data.on(REFERENCE)
    sampling, stats = Sampling(max_features=0.5, seed=seed), stats_of(REFERENCE, np.ones((12, 2)))
    drawn = [sampling.draw(t, problem, stats).feature_mask for t in range(10)]
    return data, [int(np.flatnonzero(features)[0]) for features in drawn if features is not None]


@pytest.mark.parametrize(
    "booster",
    [AdaBoostMH(HammingTree(2), "single-label"), AdaBoostMH(StumpProduct(2), "single-label"), SAMME(2), Rebel(2)],
    ids=str,
)
def test_a_part_that_says_nothing_adds_zeros_and_does_not_end_the_training(booster: Any) -> None:
    seed = next(seed for seed in range(100) if toy(seed)[1][:4] == [0, 0, 1, 0])
    data, _ = toy(seed)
    training = fit(replace(booster, sampling=Sampling(max_features=0.5, seed=seed)), data, REFERENCE, 9)
    assert training.history["edge"] == [0.0, 0.0, 1.0]  # the learner that errs nowhere is the last one, as ever
    assert [bool(tree.values.any()) for tree in training.trees] == [False, False, True]
    assert training.history["train_loss"][:2] == [1.0, 1.0]
    assert training.reason == "the weak learner has nothing left to learn"
    assert [tree.feature.tolist() for tree in training.trees][2] == [1]


def test_a_tree_that_is_right_on_its_rows_only_is_not_the_last() -> None:
    # Two of 60 rows: the stump errs on neither, or has one leaf.
    for name in ("tree discrete", "samme", "gamble"):
        training = fit(sampled(name, subsample=0.04), DATA, REFERENCE, 12)
        assert len(training.trees) == 12
        assert max(training.history["edge"]) < 1.0


def test_rounds_from_a_part_learn() -> None:
    train, test = blobs(600, 8, 4, 5).subset(slice(0, 400)), blobs(600, 8, 4, 5).subset(slice(400, 600))
    errors = {}
    with cpu_backend() as backend:
        for name, how in {"plain": {}, **OPTIONS}.items():
            booster = AdaBoostMH(HammingTree(5), "single-label", "real", sampling=Sampling(seed=1, **how))
            errors[name] = fit(booster, train, backend, 40, test).history["valid_error"][-1]
    assert errors["plain"] < 0.2
    assert max(errors.values()) < errors["plain"] + 0.06

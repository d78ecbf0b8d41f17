"""Exact pruning: the trees are those of the plain search, whatever is pruned."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.cpu.backend import CpuBackend
from gpuboost.backends.cpu.loops import sweeps as sweep_loops
from gpuboost.backends.cpu.loops.arguments import Columns, Rule
from gpuboost.backends.cpu.pruning import heavy, pruned_search
from gpuboost.backends.cpu.pruning.bounds import to_bounds
from gpuboost.backends.cpu.pruning.growth import ADDED_HEAVY, ADDED_LIGHT
from gpuboost.backends.cpu.pruning.pruned_search import PrunedSearch
from gpuboost.backends.cpu.pruning.tuner import FIRST_WAIT, LAST_WAIT, PruningTuner
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.criteria import EDGE, GINI, REBEL
from gpuboost.backends.frontier import FEATURE, GAIN, LEFT, START, STOP, Frontier, GrowthScope
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.backends.statistics import Stats
from gpuboost.binning import BinnedMatrix
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.boosters.gamble import Gamble
from gpuboost.boosters.rebel import Rebel
from gpuboost.boosters.samme import SAMME
from gpuboost.boosters.sampling import Sampling
from gpuboost.learners.growth import grow
from gpuboost.learners.hamming_tree import HammingTree
from gpuboost.learners.product import StumpProduct
from tests.backends.test_conformance import Case, Rows, random_codes
from tests.problems import coded, cpu_backend, digest, fit, stats_of

REFERENCE = NumpyBackend()
CRITERIA = ["edge", "gini", "rebel"]


@pytest.fixture(params=[1, 2, 4], ids=lambda n: f"{n}-threads")
def pruning(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A CPU backend that always prunes, and shares every loop."""
    monkeypatch.setattr(Team, "WORTH_SHARING", 4)
    with always_pruning(request.param) as backend:
        yield backend


def always_pruning(n_threads: int = 1) -> CpuBackend:
    backend = cpu_backend(n_threads)
    backend.pruning.always = True
    return backend


def statistics(problem: Rows, backend: Backend, criterion: Any) -> Stats:
    signs = np.ones_like(problem.signs) if criterion == "gini" else problem.signs
    return replace(replace(problem, signs=signs).statistics(backend), criterion=criterion)


def assert_same_trees(frontier: Frontier, expected: Frontier) -> None:
    made = expected.nodes[:, :, LEFT] > 0
    assert (frontier.nodes[:, :, LEFT] > 0).tolist() == made.tolist()
    assert frontier.nodes[made][:, FEATURE:GAIN].tolist() == expected.nodes[made][:, FEATURE:GAIN].tolist()
    assert frontier.nodes[:, :, GAIN].tolist() == expected.nodes[:, :, GAIN].tolist()
    assert frontier.edges[made].tolist() == expected.edges[made].tolist()


def grow_both(
    backend: CpuBackend, matrix: BinnedMatrix, mine: Stats, theirs: Stats, max_leaves: int, start: GrowthScope | None = None
) -> Frontier:
    """Grow on the backend, which must give the reference's trees, several times: what it has learned must not matter."""
    start = start or GrowthScope()
    expected = grow(REFERENCE, matrix, theirs, max_leaves, start)
    data = backend.load(matrix)
    for few in (0, 4, 10**9):  # histograms for all nodes, for some, for none
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(pruned_search, "FEW", few)
            frontier = grow(backend, data, mine, max_leaves, replace(start, pruning=True))
            assert isinstance(frontier.work.search, PrunedSearch) == bool(matrix.usable.any())
            assert_same_trees(frontier, expected)
    if start.sample_indices is None:
        assert np.array_equal(backend.node_of_rows(frontier), REFERENCE.node_of_rows(expected))
    return frontier


# ---- the same trees ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize(
    ("n_rows", "n_features", "n_classes", "max_leaves"),
    [
        (1, 1, 1, 2),
        (2, 1, 2, 3),
        (40, 3, 3, 9),
        (400, 17, 2, 5),
        pytest.param(300, 5, 5, 12, marks=pytest.mark.exhaustive),  # loops of another width: they take long to compile
        (200, 70, 4, 6),
        pytest.param(90, 4, 30, 9, marks=pytest.mark.slow),
        (3000, 6, 3, 4),
        pytest.param(257, 3, 16, 5, marks=pytest.mark.exhaustive),
        pytest.param(60, 130, 17, 4, marks=pytest.mark.slow),
    ],
)
def test_random_problems(
    pruning: CpuBackend, n_rows: int, n_features: int, n_classes: int, max_leaves: int, criterion: Any
) -> None:
    matrix, problem = random_codes(n_rows, n_features, 20), Rows.random(n_rows, n_classes, 21)
    mine, theirs = (statistics(problem, backend, criterion) for backend in (pruning, REFERENCE))
    grow_both(pruning, matrix, mine, theirs, 2 if criterion == "rebel" else max_leaves)


@pytest.mark.parametrize(("n_rows", "n_features", "n_classes"), [(2, 1, 2), (300, 5, 3), (200, 70, 4), (90, 4, 30)])
def test_one_class_a_row(pruning: CpuBackend, n_rows: int, n_features: int, n_classes: int) -> None:
    matrix, problem = random_codes(n_rows, n_features, 22), Rows.random(n_rows, n_classes, 23)
    label = (matrix.codes[0] // 5 + np.arange(n_rows) % 2) % n_classes
    weight = np.maximum(problem.state[:, :1], 1e-200)
    weight[0] = 1.5
    problem = replace(problem, state=np.where(label[:, None] == np.arange(n_classes), weight, 0.0))
    sums = (pruning.put(problem.signs), problem.frequency_weight, int(problem.frequency_weight.sum()), 1.5)
    mine = replace(pruning.statistics(pruning.put_one_hot(problem.state), *sums), criterion="gini")
    problem = replace(problem, signs=np.ones_like(problem.signs))
    assert mine.one_hot
    grow_both(pruning, matrix, mine, statistics(problem, REFERENCE, "gini"), 8)


@st.composite
def tied_problems(draw: st.DrawFn) -> tuple[BinnedMatrix, NDArray[np.int64], str, int]:
    """Few codes, features and rows that stand twice, small weights and some heavy ones: ties everywhere."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, n_features, n_classes = draw(st.integers(1, 60)), draw(st.integers(1, 20)), draw(st.integers(1, 5))
    codes = rng.integers(0, draw(st.integers(2, 6)), (n_features, n_rows))
    codes[rng.integers(n_features, size=n_features // 2)] = codes[0]
    quantised = rng.integers(-2, 3, (n_rows, n_classes))
    quantised[rng.random(n_rows) < 0.2] *= draw(st.sampled_from([1, 3, 100, 10**6]))
    again = rng.integers(0, n_rows, n_rows)
    criterion = draw(st.sampled_from(CRITERIA))
    quantised = abs(quantised) if criterion == "gini" else quantised
    return coded(codes[:, again]), quantised[again], criterion, 2 if criterion == "rebel" else draw(st.integers(2, 9))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(tied_problems())
def test_ties_everywhere(problem: tuple[BinnedMatrix, NDArray[np.int64], Any, int]) -> None:
    matrix, quantised, criterion, max_leaves = problem
    with always_pruning() as backend:
        mine, theirs = (replace(stats_of(b, quantised), criterion=criterion) for b in (backend, REFERENCE))
        grow_both(backend, matrix, mine, theirs, max_leaves)


@pytest.mark.parametrize("seed", range(6))
def test_some_rows_and_features(pruning: CpuBackend, seed: int) -> None:
    matrix, problem = random_codes(500, 20, seed), Rows.random(500, 3, seed)
    rng = np.random.default_rng(seed)
    rows, features = rng.permutation(500)[:300].astype(np.int32), rng.random(20) < 0.7
    bounds = (None, np.array([0, 120, 300]), np.array([0, 0, 7, 7, 300]))[seed % 3]
    mine, theirs = problem.statistics(pruning), problem.statistics(REFERENCE)
    grow_both(pruning, matrix, mine, theirs, 6, GrowthScope(rows, bounds, features))


def test_a_batch_of_trees(pruning: CpuBackend) -> None:
    matrix, problems = random_codes(300, 9, 3), [Rows.random(300, 3, seed) for seed in range(3)]
    mine, theirs = ([p.statistics(b) for p in problems] for b in (pruning, REFERENCE))
    both = []
    for alone in (mine, theirs):
        quantised = np.concatenate([stats.quantised for stats in alone])
        both.append(Stats(quantised, 0, sum(s.sum for s in alone), sum(s.sum_abs for s in alone)))
    grow_both(pruning, matrix, both[0], both[1], 6)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_with_a_smallest_leaf_nothing_is_pruned(pruning: CpuBackend, criterion: Any) -> None:
    matrix, problem = random_codes(80, 6, 4), Rows.random(80, 3, 2)
    problem = replace(problem, signs=np.ones_like(problem.signs))
    max_leaves = 2 if criterion == "rebel" else 9
    mine, theirs = (replace(problem.statistics(b, 0.1), criterion=criterion) for b in (pruning, REFERENCE))
    frontier = grow(pruning, pruning.load(matrix), mine, max_leaves, GrowthScope(pruning=True))
    assert not isinstance(frontier.work.search, PrunedSearch)
    assert_same_trees(frontier, grow(REFERENCE, matrix, theirs, max_leaves))


def boosters(quick: bool) -> dict[str, Any]:
    sampling, some = Sampling(pruning=quick), Sampling(0.9, 0.6, 0.8, quick, 5)
    return {
        "tree": AdaBoostMH(HammingTree(5), "single-label", sampling=sampling),
        "stump": AdaBoostMH(HammingTree(2), "uniform", "real", sampling=sampling),
        "product": AdaBoostMH(StumpProduct(3), "single-label", sampling=sampling),
        "tree, sampled": AdaBoostMH(HammingTree(6), "single-label", sampling=some),
        "samme": SAMME(6, sampling=sampling),
        "samme, real, sampled": SAMME(5, variant="real", learning_rate=0.5, sampling=some),
        "gamble": Gamble(9, 1.0, sampling=sampling),
        "gamble, sampled": Gamble(6, 0.5, sampling=some),
        "rebel": Rebel(3, sampling=sampling),
        "rebel, sampled": Rebel(2, sampling=some),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", boosters(True))
@pytest.mark.parametrize("number", [6, 8, 31, 43])  # 150 x 20 with 2 classes, 400 x 9 with 10, 150 x 70, 150 x 70
def test_whole_fits(name: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = Case(number, n_classes=4).data(0)
    if (data.signs > 0).sum(axis=1).tolist() != [1] * len(data.signs):
        data = replace(data, signs=np.where(np.arange(4) == data.signs.argmax(axis=1)[:, None], 1, -1).astype(np.int8))

    def digest_of(quick: bool, backend: Backend) -> str:
        with backend:
            return digest(fit(boosters(quick)[name], data, backend, 8).trees, 4)

    expected = digest_of(False, cpu_backend(1))
    assert digest_of(True, cpu_backend(1)) == expected  # the clock chooses
    monkeypatch.setattr(Team, "WORTH_SHARING", 4)
    for n_threads in (1, 2):
        assert digest_of(True, always_pruning(n_threads)) == expected
    assert digest_of(True, NumpyBackend()) == expected


# ---- the bounds --------------------------------------------------------------------------------------------------------------


def purity_by_hand(sums: NDArray[np.int64]) -> Fraction:
    return Fraction(int((sums * sums).sum()), int(sums.sum())) if sums.any() else Fraction(0)


def score_by_hand(quantised: NDArray[np.int64], left: NDArray[np.bool_], criterion: str) -> Fraction | float:
    """What a cut of these rows is worth, apart from what is the same for all cuts: for "rebel" the negative loss."""
    p, s = quantised.sum(axis=0), quantised[left].sum(axis=0)
    if criterion == "edge":
        return Fraction(int(abs(p - 2 * s).sum()))
    if criterion == "gini":
        return purity_by_hand(s) + purity_by_hand(p - s)
    return -sum(math.sqrt(int(m) ** 2 - int(d) ** 2) for m, d in zip(abs(quantised).sum(axis=0), p - 2 * s, strict=True))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(CRITERIA))
def test_no_cut_of_more_rows_is_beyond_the_bound(seed: int, criterion: str) -> None:
    """By brute force: for every subset of the heaviest rows, over all cuts with either side for the missing values."""
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    codes, quantised = rng.integers(0, 5, n_rows), rng.integers(-9, 10, (n_rows, n_classes)) * rng.integers(1, 30, (n_rows, 1))
    quantised = abs(quantised) if criterion == "gini" else quantised
    order = np.argsort(-abs(quantised).sum(axis=1), kind="stable")
    codes, quantised = codes[order], quantised[order]
    cuts = [(codes >= low) & (codes <= high) for low, high in itertools.product((0, 1), range(5))]
    cuts.append(np.zeros(n_rows, bool))  # the empty side
    full = max(score_by_hand(quantised, left, criterion) for left in cuts)
    for m in range(n_rows + 1):
        best = max(score_by_hand(quantised[:m], left[:m], criterion) for left in cuts)
        light = int(abs(quantised[m:]).sum())
        assert full <= best + (0 if criterion == "rebel" else light) + (1e-9 if criterion == "rebel" else 0)
        if criterion == "gini":  # what `search.at_least` relies on: the light rows do not take more than their mass
            assert full >= best - light


def test_bounds_as_the_loops_have_them() -> None:
    """Worked by hand: heavy rows with the sums (6, 2), light rows of mass 1 + 1, and one feature each with score s."""
    columns = Columns(*(np.zeros((1, 1, 16), np.uint8), np.ones(1, np.uint64), np.arange(2)), *[np.zeros(3, np.int64)] * 3)
    of_heavy, total, none = np.array([6, 2], np.int32), np.array([7, 3], np.int32), np.zeros((2, 0), np.int64)
    edge, gini = (Rule(c, 2, 0, 0, False) for c in (EDGE, GINI))
    scores = np.array([8, 10], np.int64)
    to_bounds(scores, columns, of_heavy, total, edge, none, 2)
    assert scores.tolist() == [10, 12]
    scores = np.array([0.5, 2.0]).view(np.int64)
    to_bounds(scores, columns, of_heavy, total, gini, none, 2)
    # purity_m = (36 + 4) / 8 = 5, purity = (49 + 9) / 10 = 5.8: the bounds are s + 5 - 5.8 + 2, and a trace more.
    assert scores.view(np.float64) == pytest.approx([1.7, 3.2], abs=1e-10)
    assert (scores.view(np.float64) > [1.7, 3.2]).all()
    # s+ s- of the heavy rows: (4, 1) and (3, 3) units; with the light ones: (5, 1) and (3, 4). loss = 2 sqrt(s+ s-).
    masses, rebel = np.array([[5, 6], [6, 7]]), Rule(REBEL, 2, 0, 0, False)
    scores = np.array([0.0, 1.0]).view(np.int64)
    to_bounds(scores, columns, np.array([3, 0], np.int32), np.array([4, -1], np.int32), rebel, masses, 2)
    more = 2 * (math.sqrt(5) + math.sqrt(12)) - 2 * (2 + 3)
    assert scores.view(np.float64) == pytest.approx([more, 1 + more], abs=1e-9)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_moving_rows_changes_a_gini_score_by_twice_their_mass_at_most(seed: int) -> None:
    """What `sweeps.sweep_gini` skips cuts by, in exact arithmetic; and that its float64 scores are as near as it says."""
    rng = np.random.default_rng(seed)
    left, right, moved = rng.integers(0, 10 ** rng.integers(1, 8), (3, int(rng.integers(1, 40))))
    scores = [purity_by_hand(a) + purity_by_hand(b) for a, b in ((left, right + moved), (left + moved, right))]
    assert abs(scores[1] - scores[0]) <= 2 * int(moved.sum())
    start, k = (left + right + moved).astype(np.int32), len(left)
    whole = sweep_loops.purity(start, k)
    for sums, score in zip((left, left + moved), scores, strict=True):
        found = sweep_loops.gini(sums.astype(np.int32), start, k, whole)
        exact = score - purity_by_hand(start.astype(np.int64))
        assert abs(Fraction(found) - exact) * 2 <= Fraction(sweep_loops.rounding(start, k))


# ---- what is pruned ----------------------------------------------------------------------------------------------------------


def test_features_are_dropped_by_hand() -> None:
    """Rows 0 and 1 have 100 units each with opposite signs, eight others one unit each.

    Feature 0 tells the two apart, so its edge on the heavy rows is 200, and its bound 208. Features 1 and 2 do not (they are
    constant on the two): their edge on the heavy rows is 0, and their bound 8. Feature 0 is finished with all light rows and
    has at least 192, which the others cannot reach: no light row is added for them.
    """
    codes = np.ones((3, 10), np.uint8)
    codes[0, 1:5] = 2  # rows 1 to 4
    codes[1, 5:] = 2
    codes[2, 2::2] = 2
    quantised = np.ones((10, 1), np.int64)
    quantised[0], quantised[1] = -100, 100
    with always_pruning() as backend:
        matrix = coded(codes)
        frontier = grow_both(backend, matrix, stats_of(backend, quantised), stats_of(REFERENCE, quantised), 2)
        search = frontier.work.search
        assert search.split.level[0].tolist() == [0, 0, *[1] * 8]
        # Code 1 is the most frequent one of features 0 and 2, and of feature 1 (the first of equals); it is never counted.
        assert search.counts[ADDED_HEAVY] == 1  # row 1 in feature 0
        assert search.counts[ADDED_LIGHT] == 4  # rows 1 to 4 in feature 0: few heavy rows are counted again
        assert frontier.nodes[0, 0, [FEATURE, 3]].tolist() == [0, 1]
        assert int(frontier.nodes[0, 0, GAIN]) == 95 + 103  # left -100 + 5, right 100 + 3


def test_a_lower_feature_with_an_equal_bound_is_finished_by_hand() -> None:
    """The two heavy rows are told apart by feature 1 alone, the light ones by feature 0 alone: an edge of 6 either way.

    Feature 1 looks best on the heavy rows and is finished first, with 6. The bound of feature 0 is 0 + 6: it cannot have more,
    but it would win a tie, so it is finished, too.
    """
    codes = np.array([[1, 1, 1, 1, 1, 2, 2, 2], [1, 2, 1, 1, 1, 1, 1, 1]], np.uint8)
    quantised = np.array([[-3], [3], [-1], [-1], [-1], [1], [1], [1]])
    # Feature 0: left -3 + 3 - 3 = -3, right 3: edge 6. Feature 1: left -3 + 0 = -3, right 3: edge 6.
    with always_pruning() as backend:
        frontier = grow_both(backend, coded(codes), stats_of(backend, quantised), stats_of(REFERENCE, quantised), 2)
        assert frontier.nodes[0, 0, [FEATURE, GAIN]].tolist() == [0, 6]


def looked_at(frontier: Frontier) -> int:
    """The rows of all nodes whose best cut was looked for."""
    n_rows = frontier.nodes[:, :, STOP] - frontier.nodes[:, :, START]
    return int(n_rows[:, 0].sum() + n_rows[:, 1:-2].sum())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("criterion", ["edge", "gini"])
def test_additions_are_at_most_twice_those_of_every_row_in_every_node(seed: int, criterion: Any) -> None:
    matrix, problem = random_codes(400, 25, seed), Rows.random(400, 3, seed)
    with always_pruning() as backend:
        stats, data = statistics(problem, backend, criterion), backend.load(matrix)
        for few in (0, 4, 10**9):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(pruned_search, "FEW", few)
                frontier = grow(backend, data, stats, 8, GrowthScope(pruning=True))
            counts = frontier.work.search.counts
            assert counts[ADDED_HEAVY] <= looked_at(frontier) * len(data.usable)
            assert counts[ADDED_LIGHT] <= looked_at(frontier) * len(data.usable)


def test_it_prunes() -> None:
    # A few rows hold nearly all of the weight, and one feature of 40 tells them apart: the other rows are not counted for
    # the others.
    rng = np.random.default_rng(30)
    codes = rng.integers(1, 30, (40, 4000))
    quantised = rng.choice([-1, 1], (4000, 2))
    quantised[:100] = np.where(codes[7, :100] > 15, 30_000, -30_000)[:, None]
    with always_pruning() as backend:
        frontier = grow_both(backend, coded(codes), stats_of(backend, quantised), stats_of(REFERENCE, quantised), 2)
        assert frontier.nodes[0, 0, FEATURE] == 7
        counts = frontier.work.search.counts
        assert counts[ADDED_HEAVY] <= 100 * 40
        assert counts[ADDED_LIGHT] <= 4000  # those of feature 7


# ---- heavy rows --------------------------------------------------------------------------------------------------------------


def test_buckets_are_quarters_of_powers_of_two() -> None:
    masses = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 2**40, 5 * 2**38, 2**62 - 1]
    # 1 = 1 * 2**0 is in bucket 1, 2 in 5, 3 = 1.5 * 2 in 7, 4..7 in 9..12, 8 and 9 in 13, 10 and 11 in 14, 12 in 15.
    expected = [1, 5, 7, 9, 10, 11, 12, 13, 13, 14, 14, 15, 161, 162, 249]
    assert [int(heavy.bucket(m)) for m in (0, *masses)] == [0, *expected]
    assert max(expected) < heavy.N_BUCKETS


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.floats(1.0, 1000.0))
def test_rows_are_sorted_by_mass(seed: int, survivors: float) -> None:
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(1, 200)), int(rng.integers(1, 6))
    quantised = (rng.integers(-9, 10, (n_rows, n_classes)) * 4 ** rng.integers(0, 12, (n_rows, 1))).astype(np.int32)
    rows = rng.permutation(n_rows)[: rng.integers(1, n_rows + 1)].astype(np.int32)
    mass, level, out = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.uint8), np.zeros_like(rows)
    rule = Rule(EDGE, n_classes, n_classes, 0, False)
    light, total = heavy.sort_rows(rows, quantised, rule, (2.0, 4.0, survivors), mass, level, out)
    expected = abs(quantised.astype(np.int64)).sum(axis=1)
    assert (mass[rows] == expected[rows]).all()
    assert out.tolist() == [*sorted(rows.tolist(), key=lambda row: (level[row], rows.tolist().index(row)))]
    assert all(expected[a] > expected[b] for a, b in itertools.product(rows, rows) if level[a] < level[b])
    assert ((level[rows] == 2) == (expected[rows] == 0)).all()
    assert (light, total) == (expected[rows][level[rows] == 1].sum(), expected[rows].sum())


# ---- the clock ---------------------------------------------------------------------------------------------------------------


def clocked(tuner: PruningTuner, plain: float, pruned: float, n: int) -> list[bool]:
    """Let n growths take these times; return which of them were pruned."""
    chosen = []
    for _ in range(n):
        prunes = tuner.choose()
        tuner.seconds[prunes].append(pruned if prunes else plain)
        chosen.append(prunes)
    return chosen


def test_the_faster_way_is_taken_and_the_other_tried_more_and_more_seldom() -> None:
    tuner = PruningTuner(2.0, 4.0)
    assert clocked(tuner, 1.0, 2.0, 4) == [True, False, True, False]
    chosen = clocked(tuner, 1.0, 2.0, 300)
    tries = np.flatnonzero(chosen)
    waits = np.diff(tries)
    assert tries[0] == FIRST_WAIT - 1
    assert waits[:4].tolist() == [16, 32, 64, 64]
    assert waits.max() == LAST_WAIT
    # Pruning comes to pay: it is noticed at the next try, and plain growths are tried from time to time.
    late = clocked(tuner, 1.0, 0.5, 300)
    first = late.index(True)
    assert first < LAST_WAIT
    assert 300 - first - sum(late[first:]) < 12


def test_one_slow_growth_is_no_reason() -> None:
    tuner = PruningTuner(2.0, 4.0)
    clocked(tuner, 2.0, 1.0, 4)
    tuner.seconds[1].append(100.0)  # the process was not running
    assert clocked(tuner, 2.0, 1.0, 5) == [True] * 5

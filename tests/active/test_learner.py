"""Active learning: what is asked for, what is refused, and what an interrupt leaves."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import gpuboost
from gpuboost import (
    ABCBoostClassifier,
    ActiveLearner,
    AdaBoostMHClassifier,
    GambleClassifier,
    RebelClassifier,
    SAMMEClassifier,
)
from gpuboost.active.pools import row_keys
from gpuboost.active.utility import margins, utility
from tests.problems import blobs

INF = float("inf")

CLOUDS = blobs(150, 3, 3, seed=5)
X, Y = CLOUDS.X, CLOUDS.signs.argmax(axis=1)
NAMES = np.array(["ant", "bee", "cat"])


class Scores(ClassifierMixin, BaseEstimator):
    """A committee whose scores are the columns of X: the selection can be worked out by hand."""

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        self.classes_ = np.arange(X.shape[1])
        self.seen_ = X.copy(), y.copy()
        return self

    def decision_function(self, X: NDArray[Any]) -> NDArray[Any]:
        return X

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        return X.argmax(axis=1)


class Interrupted(Scores):
    """Its trainings end with an interrupt, or another error, as long as there is one in the list."""

    def __init__(self, errors: list[BaseException] | None = None) -> None:
        self.errors = errors

    def fit(self, X: NDArray[Any], y: NDArray[Any]) -> Self:
        if ERRORS:
            raise ERRORS.pop()
        return super().fit(X, y)


ERRORS: list[BaseException] = []


def gamble(**params: Any) -> GambleClassifier:
    return GambleClassifier(**{"n_estimators": 5, "max_leaf_nodes": 4, "device": "cpu", "n_jobs": 1, **params})


def clouds(estimator: Any = None, **params: Any) -> ActiveLearner:
    """A learner on the clouds, with small trainings."""
    return ActiveLearner(X, gamble() if estimator is None else estimator, **{"random_state": 0, "n_initial": 9, **params})


def chosen(learner: ActiveLearner, labels: NDArray[Any], n_rows: int) -> list[int]:
    return learner.run(labels, max_rows=n_rows).rows_.tolist()


# ---- utility ---------------------------------------------------------------------------------------------------------------


def test_utility_by_hand() -> None:
    scores = [[3.0, -1.0, 1.0], [0.5, 0.25, -0.75], [2.0, 2.0, -4.0], [-1.0, -4.0, 5.0]]
    assert margins(scores).tolist() == [2.0, 0.25, 0.0, 6.0]
    assert utility(scores).tolist() == [0.5, 4.0, INF, 1 / 6]


def test_two_classes_have_the_difference_of_their_scores() -> None:
    assert utility([2.0, -4.0, 0.0]).tolist() == [0.5, 0.25, INF]
    assert utility([[1.0, 3.0], [1.0, -3.0]]).tolist() == [0.5, 0.25]


def test_one_class_says_nothing() -> None:
    assert margins(np.array([[3.0], [4.0]])).tolist() == [0.0, 0.0]
    assert utility(np.array([[3.0], [4.0]])).tolist() == [INF, INF]


def test_utility_of_the_smallest_margin() -> None:
    assert utility([5e-324]).tolist() == [INF]  # 1 / 5e-324 is beyond the largest number; no warning


@pytest.mark.parametrize("shape", [(), (2, 2, 2)])
def test_scores_of_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="scores must have the shape"):
        margins(np.zeros(shape))


@given(st.lists(st.lists(st.integers(-9, 9), min_size=3, max_size=3), min_size=1, max_size=5))
def test_margin_is_that_of_sorted_scores(scores: list[list[int]]) -> None:
    ordered = [sorted(row) for row in scores]
    assert margins(scores).tolist() == [float(row[2] - row[1]) for row in ordered]


# ---- selection -------------------------------------------------------------------------------------------------------------

# Margins of the rows: 4, 1, 0, 3, 2, 5
POOL = np.array([[5.0, 1.0, 0.0], [1.0, 2.0, 0.0], [1.0, -1.0, 1.0], [-3.0, -9.0, 0.0], [8.0, 8.5, 6.0], [0.0, 0.0, 5.0]])
POOL[4] = [8.0, 10.0, 6.0]


def test_selection_by_hand() -> None:
    learner = ActiveLearner(POOL, Scores(), batch_size=2, random_state=3).teach([5], [2])
    assert learner.query().tolist() == [2, 1]
    assert learner.teach([2, 1], [0, 1]).query(5).tolist() == [4, 3, 0]
    assert learner.run([0, 1, 0, 2, 1, 2]).rows_.tolist() == [5, 2, 1, 4, 3, 0]
    assert learner.labels_.tolist() == [2, 0, 1, 1, 2, 0]
    assert learner.query().tolist() == []


def test_committee_is_trained_on_what_is_known_in_the_order_of_the_pool() -> None:
    learner = ActiveLearner(POOL, Scores(), random_state=0).teach([5, 1], [7, 8]).teach([3], [9])
    rows, labels = learner.committee_.seen_
    assert_array_equal(rows, POOL[[1, 3, 5]])
    assert labels.tolist() == [8, 9, 7]


def test_initial_rows_are_random_and_seeded() -> None:
    first = clouds().query()
    assert len(set(first.tolist())) == 9
    assert first.tolist() != sorted(first.tolist())
    assert_array_equal(clouds().query(), first)
    assert_array_equal(clouds(strategy="random").query(), first)  # both strategies start from the same rows
    assert clouds(random_state=1).query().tolist() != first.tolist()


def test_ties_are_broken_at_random() -> None:
    """Where all rows have the same utility, every row is as likely: not the first ones of a pool sorted by class."""
    pool = np.column_stack([np.arange(40.0), np.arange(40.0)])
    first = [ActiveLearner(pool, Scores(), random_state=seed).teach([0], [0]).query(1)[0] for seed in range(40)]
    assert len(set(first)) > 20  # 25.5 expected, and fewer than 21 in 1 of 50 tries: the seeds are fixed
    assert np.mean(first) > 13  # rows 1, 2, 3, ... would give 20.5 less a fluctuation of 1.8


def test_queries_are_prefixes_of_larger_ones() -> None:
    learner = clouds().run(Y, max_rows=20)
    assert_array_equal(learner.query(4), learner.query(12)[:4])


def test_query_changes_nothing() -> None:
    learner = clouds().run(Y, max_rows=20)
    assert_array_equal(learner.query(7), learner.query(7))
    learner.query(30)
    assert learner.rows_.tolist() == chosen(clouds(), Y, 20)
    assert len(learner.pool_) == 130


# ---- three ways to the same rows -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"strategy": "random"}, {"max_candidates": 0.3}, {"max_candidates": 25}])
def test_ask_and_tell_oracle_and_simulation_agree(params: dict[str, Any]) -> None:
    told = clouds(**params)
    while len(rows := told.query()) and len(told.rows_) < 49:
        told.teach(rows, NAMES[Y[rows]])
    asked: list[list[int]] = []

    def oracle(rows: NDArray[np.intp]) -> list[str]:
        asked.append(rows.tolist())
        return NAMES[Y[rows]].tolist()

    by_oracle = clouds(**params).run(oracle, max_rows=49)
    simulated = clouds(**params).run(NAMES[Y], max_rows=49)
    assert told.rows_.tolist() == by_oracle.rows_.tolist() == simulated.rows_.tolist()
    assert [len(rows) for rows in asked] == [9, 10, 10, 10, 10]
    assert [row for rows in asked for row in rows] == simulated.rows_.tolist()
    digests = {learner.committee_.ensemble_.digest() for learner in (told, by_oracle, simulated)}
    assert len(digests) == 1


def test_batch_taught_in_parts_in_any_order() -> None:
    whole, parts = clouds(), clouds()
    for _ in range(3):
        rows = whole.query()
        whole.teach(rows, Y[rows])
        for row in rows[::-1].tolist():
            parts.teach([row], [Y[row]])
    assert_array_equal(parts.query(), whole.query())
    assert parts.committee_.ensemble_.digest() == whole.committee_.ensemble_.digest()


@pytest.mark.parametrize("estimator", [GambleClassifier, AdaBoostMHClassifier, SAMMEClassifier])
def test_devices_choose_the_same_rows(estimator: type) -> None:
    cpu, reference = (
        chosen(clouds(estimator(n_estimators=4, max_leaf_nodes=4, device=device, n_jobs=1)), Y, 40)
        for device in ("cpu", "numpy")
    )
    assert cpu == reference


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        SVC(),
        RandomForestClassifier(n_estimators=5),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
)
def test_committees_of_scikit_learn(estimator: Any) -> None:
    """A forest, whose seed comes from ours, has no scores but probabilities."""
    assert chosen(clouds(estimator), NAMES[Y], 30) == chosen(clouds(estimator), NAMES[Y], 30)
    learner = clouds(estimator).run(NAMES[Y], max_rows=30)
    assert learner.score(X, NAMES[Y]) > 0.6
    assert set(learner.predict(X)) == set(NAMES)
    assert learner.predict_proba(X).shape == (150, 3) if hasattr(estimator, "predict_proba") else True


def test_seeds_reach_the_estimator() -> None:
    """A hold-out set within the estimator is drawn with our seed, unless it has its own."""

    def digest(seed: int, own: int | None = None) -> str:
        estimator = gamble(early_stopping="patience", n_iter_no_change=2, random_state=own)
        learner = clouds(estimator, random_state=seed).teach(np.arange(60), Y[:60])
        return str(learner.committee_.ensemble_.digest())

    assert digest(0) == digest(0)
    assert len({digest(seed) for seed in range(4)}) > 1
    assert len({digest(seed, own=1) for seed in range(4)}) == 1


def test_generators_as_random_state() -> None:
    assert chosen(clouds(random_state=np.random.default_rng(4)), Y, 29) == chosen(
        clouds(random_state=np.random.default_rng(4)), Y, 29
    )


# ---- pools -----------------------------------------------------------------------------------------------------------------


def test_copies_of_a_row_are_not_in_one_batch() -> None:
    pool = np.repeat(POOL, 10, axis=0)  # the rows 20-29 have the margin 0, the rows 10-19 the margin 1
    learner = ActiveLearner(pool, Scores(), random_state=0).teach([50, 0], [2, 0])
    assert (learner.query(3) // 10).tolist() == [2, 1, 4]
    assert (learner.query(6) // 10).tolist() == [2, 1, 4, 3, 0, 5]
    assert (learner.query(8) // 10).tolist() == [2, 1, 4, 3, 0, 5, 2, 2]  # there are only six different ones
    assert sorted(learner.query(99).tolist()) == learner.pool_.tolist()


def test_pool_of_one_row_over_and_over() -> None:
    learner = ActiveLearner(np.zeros((30, 2)), Scores(), n_initial=4, batch_size=7, random_state=0).run(np.arange(30) % 2)
    assert sorted(learner.rows_.tolist()) == list(range(30))


def test_random_rows_may_be_copies() -> None:
    """The baseline is a plain random sample."""
    learner = ActiveLearner(np.repeat(POOL, 10, axis=0), Scores(), strategy="random", random_state=0)
    assert len(set((learner.query(6) // 10).tolist())) < 6


def test_keys_of_rows() -> None:
    same = np.array([[0.0, np.nan], [-0.0, -np.nan]])
    assert len(set(row_keys(same))) == 1
    assert len(set(row_keys(np.array([[1, 2], [2, 1], [1, 2]])))) == 2
    frame = pd.DataFrame({"a": ["x", None, "x", None], "b": [1.0, 2.0, 1.0, 2.0]})
    assert len(set(row_keys(frame))) == 2
    assert len(set(row_keys(csr_matrix([[0, 1], [0, 1], [1, 0]])))) == 2


@pytest.mark.parametrize("n_left", [1, 5])
def test_batches_larger_than_the_pool(n_left: int) -> None:
    learner = clouds().teach(np.arange(150 - n_left), Y[: 150 - n_left])
    assert sorted(learner.query(50).tolist()) == list(range(150 - n_left, 150))
    assert sorted(ActiveLearner(X[:4], n_initial=20).query().tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize(("limit", "n_scored"), [(2, 2), (0.5, 2), (0.6, 3), (1.0, 4), (1, 1), (99, 4), (None, 4), (0.01, 1)])
def test_only_candidates_are_scored(monkeypatch: pytest.MonkeyPatch, limit: Any, n_scored: int) -> None:
    sizes = []
    monkeypatch.setattr(Scores, "decision_function", lambda self, X: sizes.append(len(X)) or X)
    learner = ActiveLearner(POOL, Scores(), max_candidates=limit, random_state=0).teach([0, 5], [0, 2])
    learner.query(1)
    assert sizes == [n_scored]


def test_candidates_are_random_and_a_batch_is_full() -> None:
    learners = [ActiveLearner(POOL, Scores(), max_candidates=1, random_state=seed).teach([0], [0]) for seed in range(20)]
    assert {int(learner.query(1)[0]) for learner in learners} == {1, 2, 3, 4, 5}
    assert [len(learner.query(3)) for learner in learners] == [3] * 20


FRAME = pd.DataFrame(X, columns=list("abc"))


@pytest.mark.parametrize(
    "pool",
    [
        FRAME,
        FRAME.set_index(np.arange(150)[::-1]),
        pl.from_pandas(FRAME),
        pa.Table.from_pandas(FRAME),
        X.tolist(),
        X.astype(object),
    ],
    ids=["pandas", "pandas with an index", "polars", "pyarrow", "list", "objects"],
)
def test_rows_of_frames_are_positions(pool: Any) -> None:
    learner = ActiveLearner(pool, gamble(), n_initial=9, random_state=0)
    assert chosen(learner, pd.Series(NAMES[Y], index=np.arange(150)[::-1]), 29) == chosen(clouds(), Y, 29)
    assert set(learner.predict(pool)) <= set(NAMES)


def test_columns_of_a_frame_are_known() -> None:
    learner = ActiveLearner(FRAME, gamble(), random_state=0).run(Y, max_rows=30)
    assert learner.model_.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        learner.predict(FRAME[["b", "a", "c"]])


def test_text_columns_with_a_pipeline() -> None:
    frame = pd.DataFrame({"colour": np.array(["red", "green", "blue", None])[np.arange(40) % 4], "size": np.arange(40.0)})
    estimator = make_pipeline(
        make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["colour"]), remainder="passthrough"), gamble()
    )
    learner = ActiveLearner(frame, estimator, n_initial=5, random_state=0).run(np.arange(40) // 20, max_rows=25)
    assert len(learner.rows_) == 25


def test_sparse_pool() -> None:
    dense, sparse = (ActiveLearner(pool, LogisticRegression(), random_state=0) for pool in (X, csr_matrix(X)))
    assert chosen(sparse, Y, 40) == chosen(dense, Y, 40)


def test_the_pool_is_not_written_to() -> None:
    pool = X.copy()
    pool.setflags(write=False)
    assert chosen(ActiveLearner(pool, gamble(), n_initial=9, random_state=0), Y, 29) == chosen(clouds(), Y, 29)


# ---- labels ----------------------------------------------------------------------------------------------------------------


def test_one_class_so_far() -> None:
    rows = np.flatnonzero(Y == 1)
    learner = clouds().teach(rows[:5], NAMES[Y[rows[:5]]])
    assert set(learner.predict(X)) == {"bee"}
    assert len(set(learner.query(10).tolist()) - set(rows[:5].tolist())) == 10
    assert learner.query(10).tolist() != sorted(learner.query(10).tolist())  # at random, all being undecided


def test_one_class_with_an_estimator_that_needs_two() -> None:
    learner = clouds(LogisticRegression(), eval_set=(X, Y)).teach([0, 1], [1, 1])
    with pytest.raises(NotFittedError, match="not fitted yet: teach it labels of at least two classes"):
        learner.predict(X)
    assert learner.history_ == {"n_rows": [], "valid_error": [], "seconds": []}
    learner.teach(learner.query(3), [1, 1, 2])
    assert learner.history_["n_rows"] == [5]
    assert learner.predict(X).shape == (150,)


def test_wrong_parameters_of_the_estimator() -> None:
    with pytest.raises(ValueError, match="n_estimators must be an integer of at least 1, got 0"):
        clouds(gamble(n_estimators=0))
    for estimator in (SVC(decision_function_shape="ovo"), make_pipeline(StandardScaler(), SVC(decision_function_shape="ovo"))):
        with pytest.raises(ValueError, match='decision_function_shape of the estimator must be "ovr"'):
            clouds(estimator)
    with pytest.raises(ValueError, match="'C' parameter"):
        clouds(LogisticRegression(C=-1)).teach([0, 1], [1, 2])


def test_classes_that_appear_later() -> None:
    order = np.argsort(Y, kind="stable")
    learner = clouds(eval_set=(X, NAMES[Y]))
    known = []
    for rows in np.array_split(order[40:], 4):
        known.append(learner.teach(rows, NAMES[Y[rows]]).committee_.classes_.tolist())
        learner.query()
    assert known[0] != known[-1] == NAMES.tolist()
    assert learner.history_["valid_error"][-1] < learner.history_["valid_error"][0]


@pytest.mark.parametrize(
    ("parts", "classes"),
    [
        ([["a", "bb"], ["ccc"]], ["a", "bb", "ccc"]),  # text of other lengths
        ([[True, False], [2]], [0, 1, 2]),
        ([np.array([1, 2], np.uint8), np.array([3], np.int64)], [1, 2, 3]),
        ([np.array(["a", "b"], object), ["c"]], ["a", "b", "c"]),
        ([pd.Series(["a", "b"], dtype="category"), pd.Series(["c"], dtype="string")], ["a", "b", "c"]),
        ([[b"a", b"b"], [b"c"]], [b"a", b"b", b"c"]),
    ],
)
def test_labels_of_several_kinds(parts: list[Any], classes: list[Any]) -> None:
    learner = clouds().teach([0, 1], parts[0]).teach([2], parts[1])
    assert learner.committee_.classes_.tolist() == classes


@pytest.mark.parametrize("parts", [[[1, 2], ["1"]], [["1", "2"], [1]], [["a", "b"], [b"a"]]])
def test_numbers_and_text_are_not_the_same_labels(parts: list[Any]) -> None:
    learner = clouds().teach([0, 1], parts[0])
    with pytest.raises(TypeError, match="must be of one type that can be ordered"):
        learner.teach([2], parts[1])
    assert learner.rows_.tolist() == [0, 1]
    assert learner.labels_.tolist() == parts[0]


def test_sample_weights() -> None:
    rows, weights = np.arange(40), np.random.default_rng(0).integers(1, 4, 40)
    learner = clouds().teach(rows[:15], Y[:15]).teach(rows[15:], Y[15:40], weights[15:])
    alone = gamble().fit(X[:40], Y[:40], sample_weight=np.concatenate([np.ones(15), weights[15:]]))
    assert learner.committee_.ensemble_.digest() == alone.ensemble_.digest()
    reverse = clouds().teach(rows[15:], Y[15:40], weights[15:]).teach(rows[:15], Y[:15])
    assert reverse.committee_.ensemble_.digest() == alone.ensemble_.digest()
    scaled = clouds().teach(rows[:15], Y[:15], 8.0).teach(rows[15:], Y[15:40], 8.0 * weights[15:])
    assert scaled.committee_.ensemble_.digest() == alone.ensemble_.digest()


# ---- history, hold-out set, stopping ---------------------------------------------------------------------------------------


def test_history_by_hand() -> None:
    """`Scores` predicts the largest column, whatever it was taught: 2 of 4 wrong, or 3 of 8 by weight."""
    held_out = (POOL[:4], [0, 1, 1, 1], [4, 1, 2, 1])
    learner = ActiveLearner(POOL, Scores(), n_initial=2, batch_size=3, eval_set=[held_out[:2], held_out], random_state=0)
    history = learner.run(np.zeros(6, int)).history_
    assert history["n_rows"] == [2, 5, 6]
    assert history["valid_error"] == [0.5] * 3
    assert history["valid_1_error"] == [0.375] * 3
    assert len(history["seconds"]) == 3
    assert learner.model_ is not learner.committee_  # of equals the first


def test_model_is_the_best_on_the_hold_out_set() -> None:
    held_out = (X[100:], NAMES[Y[100:]])
    learner = ActiveLearner(X[:100], gamble(), n_initial=10, batch_size=5, eval_set=held_out, random_state=1).run(
        NAMES[Y[:100]]
    )
    errors = learner.history_["valid_error"]
    best = int(np.argmin(errors))
    assert best < len(errors) - 1, "a case in which the last is not the best"
    assert 1 - learner.score(*held_out) == pytest.approx(errors[best])
    known = np.sort(learner.rows_[: learner.history_["n_rows"][best]])
    alone = gamble(random_state=0).fit(X[known], NAMES[Y[known]])
    assert learner.model_.ensemble_.digest() == alone.ensemble_.digest()
    assert_array_equal(learner.predict(X), alone.predict(X))
    assert learner.committee_.ensemble_.digest() == gamble().fit(X[:100], NAMES[Y[:100]]).ensemble_.digest()


def test_the_model_is_the_committee_without_a_hold_out_set() -> None:
    learner = clouds().run(Y, max_rows=30)
    assert learner.model_ is learner.committee_


@pytest.mark.slow
@pytest.mark.parametrize("patience", [1, 2, 4])
def test_run_stops_by_the_hold_out_error(patience: int) -> None:
    def run(n_iter_no_change: int | None) -> ActiveLearner:
        return clouds(batch_size=5, eval_set=(X[::3], Y[::3]), n_iter_no_change=n_iter_no_change).run(Y)

    errors = run(None).history_["valid_error"]
    since = [t - int(np.argmin(errors[: t + 1])) for t in range(len(errors))]  # trials since the best one
    stop = since.index(patience)
    assert stop < len(errors) - 1
    stopped = run(patience)
    assert stopped.history_["valid_error"] == errors[: stop + 1]
    n_rows = len(stopped.rows_)
    assert len(stopped.run(Y).rows_) == n_rows  # it has stopped
    assert len(stopped.query()) == 5  # but can be asked


def test_run_ends_at_max_rows() -> None:
    learner = clouds().run(Y, max_rows=25)
    assert learner.history_["n_rows"] == [9, 19, 25]
    assert learner.run(Y, max_rows=25).history_["n_rows"] == [9, 19, 25]
    assert learner.run(Y, max_rows=999).history_["n_rows"][-1] == 150
    assert len(clouds().run(Y, max_rows=4).rows_) == 4


def test_run_goes_on_from_labels_that_are_there() -> None:
    learner = clouds().teach([3, 4, 5], Y[3:6]).run(Y, max_rows=23)
    assert learner.history_["n_rows"] == [3, 13, 23]


def test_random_labels_only_of_chosen_rows_are_looked_at() -> None:
    learner = clouds()
    labels = Y.copy()
    labels[np.setdiff1d(np.arange(150), chosen(clouds(), Y, 30))] = 77
    assert chosen(learner, labels, 30) == chosen(clouds(), Y, 30)


# ---- rows that nobody can label --------------------------------------------------------------------------------------------


def test_discarded_rows_are_not_offered() -> None:
    learner = ActiveLearner(POOL, Scores(), batch_size=2, random_state=0).teach([5], [2]).discard([2])
    assert learner.query().tolist() == [1, 4]
    assert learner.pool_.tolist() == [0, 1, 3, 4]
    assert sorted(learner.run(np.zeros(6, int)).rows_.tolist()) == [0, 1, 3, 4, 5]
    with pytest.raises(ValueError, match="row 2 has been discarded"):
        learner.teach([2], [0])
    with pytest.raises(ValueError, match="row 5 has a label already"):
        learner.discard([5])


def test_everything_discarded() -> None:
    learner = ActiveLearner(POOL, Scores(), random_state=0).discard(np.arange(6))
    assert learner.query().tolist() == []
    assert learner.run(np.zeros(6, int)).rows_.tolist() == []


# ---- what is refused -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"strategy": "entropy"}, ValueError, 'strategy must be one of "margin", "random", got \'entropy\''),
        ({"strategy": None}, TypeError, "strategy"),
        ({"n_initial": 0}, ValueError, "n_initial must be an integer of at least 1, got 0"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer of at least 1, got 2.5"),
        ({"max_candidates": 0}, ValueError, "max_candidates must be an integer of at least 1, got 0"),
        ({"max_candidates": 1.5}, ValueError, "max_candidates must be above 0 and at most 1.0 if it is a float"),
        ({"max_candidates": 0.0}, ValueError, "max_candidates"),
        ({"max_candidates": np.nan}, ValueError, "max_candidates"),
        ({"max_candidates": "all"}, TypeError, "max_candidates must be None, an integer or a float, got 'all'"),
        ({"max_candidates": True}, TypeError, "max_candidates must be an integer"),
        ({"eval_set": (X, Y[:9])}, ValueError, r"y of eval_set\[0\] must have one entry for each of the 150 rows of X, got 9"),
        ({"eval_set": (X, CLOUDS.signs > 0)}, ValueError, r"y of eval_set\[0\] must be one label a row"),
        (
            {"eval_set": [(X, Y), (X, Y, -np.ones(150))]},
            ValueError,
            r"sample_weight of eval_set\[1\] must be finite and not neg",
        ),
        ({"eval_set": X}, ValueError, "eval_set must be"),
        ({"eval_set": (X[:, :2], Y)}, ValueError, r"X of eval_set\[0\] must have the 3 columns of X, got 2"),
        ({"eval_set": (X[:0], [])}, ValueError, r"X of eval_set\[0\] must have at least one row and one column"),
        ({"n_iter_no_change": 5}, ValueError, "n_iter_no_change=5 needs an eval_set"),
        ({"n_iter_no_change": 0, "eval_set": (X, Y)}, ValueError, "n_iter_no_change must be an integer of at least 1, got 0"),
        ({"random_state": -1}, ValueError, "random_state must be an integer of at least 0, got -1"),
        ({"estimator": GambleClassifier}, TypeError, r"estimator must be an instance such as GambleClassifier\(\)"),
        ({"estimator": StandardScaler()}, TypeError, "estimator must be a classifier with fit, predict"),
        ({"estimator": 7}, TypeError, "estimator must be a classifier .* got 7"),
    ],
)
def test_wrong_parameters(params: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        clouds(**params)


@pytest.mark.parametrize("pool", [np.zeros(4), np.zeros((0, 3)), np.zeros((3, 0)), 5, []])
def test_wrong_pools(pool: Any) -> None:
    with pytest.raises(ValueError, match="X must have at least one row and one column, shape"):
        ActiveLearner(pool)


@pytest.mark.parametrize(
    ("indices", "labels", "error", "message"),
    [
        ([], [], ValueError, r"indices must be a list of at least one row, got shape \(0,\)"),
        (3, [1], ValueError, r"indices must be a list of at least one row, got shape \(\)"),
        ([[3]], [1], ValueError, "indices must be a list"),
        ([3.0], [1], TypeError, "indices must be integers, positions of rows in the pool, got dtype float64"),
        ([True, False], [1, 1], TypeError, "indices must be integers"),
        (["3"], [1], TypeError, "indices must be integers"),
        ([3, 150], [1, 1], ValueError, "indices must be from 0 to 149, the rows of the pool, got 150"),
        ([-1], [1], ValueError, "indices must be from 0 to 149, the rows of the pool, got -1"),
        ([2**63], [1], ValueError, "indices must be from 0 to 149"),
        ([7, 8, 7], [1, 1, 1], ValueError, "indices must not repeat a row, got 7 2 times"),
        ([7, 2], [1, 1], ValueError, "indices must be of rows that are in the pool, but row 2 has a label already"),
        ([7, 8], [1], ValueError, "labels must have one entry for each of the 2 rows in indices, got 1"),
        ([7], [1, 2], ValueError, "labels must have one entry for each of the 1 rows in indices, got 2"),
        ([7], 1, TypeError, "labels must be a list of one label for each row in indices, got 1"),
        ([7], np.array(1), TypeError, "labels must be a list of one label"),
        ([7], None, TypeError, "labels must be a list of one label"),
        ([7, 8], [1, None], ValueError, "missing value in labels"),
        ([7, 8], [[1, 0], [0, 1]], ValueError, r"labels must be one label a row, got shape \(2, 2\)"),
        ([7, 8], [0.25, 0.5], ValueError, "Unknown label type"),
    ],
)
def test_bad_calls_change_nothing(indices: Any, labels: Any, error: type[Exception], message: str) -> None:
    learner = clouds().teach([2, 1, 0], [0.0, 1.0, 0.0])
    before, expected = vars(learner).copy(), learner.query(5)
    with pytest.raises(error, match=message):
        learner.teach(indices, labels)
    assert vars(learner) == before
    assert_array_equal(learner.query(5), expected)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2, 3], "one entry for each of the 2 rows"),
        ([-1, 1], "not negative"),
        ([0, 0], "zero in every row"),
        ("a", "numbers"),
    ],
)
def test_bad_weights_change_nothing(weights: Any, message: str) -> None:
    learner = clouds().teach([0, 1], [0, 1])
    with pytest.raises(ValueError, match=message):
        learner.teach([2, 3], [0, 1], weights)
    assert learner.rows_.tolist() == [0, 1]


def test_estimator_without_weights() -> None:
    with pytest.raises(TypeError, match="sample_weight"):
        ActiveLearner(POOL, Scores(), random_state=0).teach([0, 1], [0, 1], [1, 2])


@pytest.mark.parametrize("n", [0, -3, 2.0, True, "all"])
def test_wrong_numbers_of_rows(n: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="n must be an integer of at least 1, got"):
        clouds().query(n)
    with pytest.raises((ValueError, TypeError), match="max_rows must be an integer of at least 1, got"):
        clouds().run(Y, max_rows=n)


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        (Y[:9], "oracle must have one entry for each of the 150 rows of X, got 9"),
        (CLOUDS.signs > 0, r"oracle must be one label a row, got shape \(150, 3\)"),
    ],
)
def test_wrong_oracles(oracle: Any, message: str) -> None:
    learner = clouds()
    with pytest.raises(ValueError, match=message):
        learner.run(oracle)
    assert len(learner.rows_) == 0


def test_committee_with_other_scores_than_one_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scores, "decision_function", lambda self, X: X[:, :2])
    with pytest.raises(ValueError, match=r"a score for each of the 3 classes, got scores of shape \(5, 2\)"):
        ActiveLearner(POOL, Scores(), random_state=0).teach([0], [0]).query()


def test_nothing_is_fitted_at_first() -> None:
    learner = clouds()
    for call in (lambda: learner.predict(X), lambda: learner.predict_proba(X), lambda: learner.committee_):
        with pytest.raises(NotFittedError, match="not fitted yet"):
            call()
    assert repr(learner).endswith("0 of 150 rows labelled)")


# ---- interrupts and errors of others ---------------------------------------------------------------------------------------


@pytest.fixture
def errors() -> Any:
    yield ERRORS
    ERRORS.clear()


def from_numba() -> SystemError:
    """What an interrupt between numba's calls looks like."""
    error = SystemError("returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    return error


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, from_numba])
def test_interrupt_of_the_training_keeps_the_labels(
    errors: list[BaseException], interrupt: Callable[[], BaseException]
) -> None:
    learner = ActiveLearner(POOL, Interrupted(), random_state=0, eval_set=(POOL, np.zeros(6))).teach([5], [2])
    errors.append(interrupt())
    with pytest.raises(KeyboardInterrupt):
        learner.teach([0, 3], [0, 1])
    assert learner.rows_.tolist() == [5, 0, 3]
    assert learner.labels_.tolist() == [2, 0, 1]
    assert learner.history_["n_rows"] == [1]
    errors.append(interrupt())
    with pytest.raises(KeyboardInterrupt):
        learner.query()  # trains first
    assert learner.query().tolist() == [2, 1, 4]
    assert learner.history_["n_rows"] == [1, 3]
    assert len(learner.committee_.seen_[0]) == 3


def test_interrupt_that_the_estimator_takes_in(errors: list[BaseException]) -> None:
    """GAMBLE makes a model of the rounds so far out of an interrupt. The learner wants a whole one, and to stop."""
    stops = [False] * 2 + [True]

    def callback(progress: Any) -> None:
        if progress.n_rounds == 3 and stops and stops.pop(0):
            raise KeyboardInterrupt

    learner = clouds(gamble(callbacks=[callback]))
    learner.estimator.callbacks = [callback]
    with pytest.raises(KeyboardInterrupt, match="the labels are kept"):
        learner.run(Y, max_rows=59)
    assert len(learner.rows_) == 29
    assert learner.history_["n_rows"] == [9, 19]
    assert learner.run(Y, max_rows=59).rows_.tolist() == chosen(clouds(), Y, 59)
    assert learner.history_["n_rows"] == [9, 19, 29, 39, 49, 59]
    assert learner.committee_.n_estimators_ == 5


@pytest.mark.parametrize("error", [MemoryError("too much"), SystemError("not an interrupt")])
def test_other_errors_of_the_training_keep_the_labels(errors: list[BaseException], error: Exception) -> None:
    learner = ActiveLearner(POOL, Interrupted(), random_state=0).teach([5], [2])
    errors.append(error)
    with pytest.raises(type(error)) as caught:
        learner.teach([0, 3], [0, 1])
    assert caught.value.__notes__ == ["The 3 labels taught so far are kept; the committee is trained when it is needed next."]
    assert learner.query().tolist() == [2, 1, 4]
    assert learner.history_["n_rows"] == [1, 3]


REFUSALS = {
    "class_weight": (gamble(class_weight={2: 5.0}), "class_weight has the key 2, which is no class of y"),
    "base_class": (ABCBoostClassifier(n_estimators=2, base_class=2, device="cpu"), "base_class must be"),
    "costs": (
        RebelClassifier(n_estimators=2, cost_matrix=1 - np.eye(3), device="cpu"),
        "cost_matrix must have a row for every",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "message"), REFUSALS.values(), ids=REFUSALS)
def test_labels_are_kept_that_the_estimator_refuses(estimator: Any, message: str) -> None:
    """Until there are rows of all classes no committee can be trained, but nobody is asked for the same rows again."""
    asked: list[int] = []

    def oracle(rows: NDArray[np.intp]) -> NDArray[Any]:
        asked.extend(rows.tolist())
        return np.where(len(asked) < 30, Y[rows] % 2, Y[rows])  # no label 2 in the first two batches

    learner = clouds(estimator, n_initial=9, batch_size=20)
    for n_rows in (9, 29):
        with pytest.raises(ValueError, match=f"{message}.*in training on the {n_rows} labels taught so far; they are kept"):
            learner.run(oracle, max_rows=49)
        assert learner.rows_.tolist() == asked
        assert learner.history_["n_rows"] == []
        assert_array_equal(learner.query(), copy.deepcopy(learner).query())
        with pytest.raises(ValueError, match=message):
            _ = learner.committee_
    learner = pickle.loads(pickle.dumps(learner)).run(oracle, max_rows=49)
    assert learner.rows_.tolist() == asked
    assert len(set(asked)) == 49
    assert learner.history_["n_rows"] == [49]
    assert learner.committee_.classes_.tolist() == [0, 1, 2]


def test_early_stopping_with_one_row_a_class() -> None:
    learner = clouds(gamble(early_stopping=True))
    with pytest.raises(ValueError, match=r"every class has only one.*they are kept"):
        learner.teach([0], Y[:1])
    assert learner.teach(np.arange(1, 40), Y[1:40]).history_["n_rows"] == [40]


def test_refusal_of_a_later_batch_leaves_the_last_committee() -> None:
    learner = clouds(gamble(class_weight={1: 2.0})).teach([0, 1], [0, 1])
    first = learner.committee_
    learner.estimator.set_params(class_weight={7: 2.0})
    with pytest.raises(ValueError, match="class_weight has the key 7"):
        learner.teach([2], [0])
    ahead = margins(first.decision_function(X[learner.query(20)]))
    assert (np.diff(ahead) >= 0).all()  # it is the last committee that is asked
    learner.estimator.set_params(class_weight=None)
    assert len(learner.model_.classes_) == 2
    assert learner.history_["n_rows"] == [2, 3]


def test_labels_of_another_type_than_those_of_the_evaluation_set() -> None:
    learner = clouds(eval_set=(X, NAMES[Y]))
    with pytest.raises(TypeError, match=r"labels in y of eval_set\[0\] and those taught must be of one type .*, got int, str"):
        learner.teach([0, 1], [0, 1])
    assert learner.labels_.tolist() == [0, 1]  # they may have been dear


def test_an_oracle_of_the_chosen_rows_only() -> None:
    rows = chosen(clouds(), Y, 29)
    unknown = np.setdiff1d(np.arange(150), rows)
    labels = Y.astype(float)
    labels[unknown] = np.nan
    words = NAMES[Y].astype(object)
    words[unknown] = None
    masked = np.ma.array(Y, mask=np.isnan(labels))
    for oracle in (labels, words, words.tolist(), masked, pd.Series(Y, dtype="Int64").mask(np.isnan(labels))):
        assert chosen(clouds(), oracle, 29) == rows
    with pytest.raises(ValueError, match="missing value in oracle"):
        clouds().run(labels, max_rows=39)


@pytest.mark.parametrize("first", [np.array([2**63], np.uint64), np.array([0.5, 0.5])])
def test_no_two_integers_become_one(first: NDArray[Any]) -> None:
    """In float64 all three would be 2**63, or two of them."""
    learner = clouds().teach(range(len(first)), first).teach([5, 6], [2**63 - 1, 2**63 - 2])
    assert learner.labels_.tolist() == [*first.tolist(), 2**63 - 1, 2**63 - 2]
    assert len(learner.committee_.classes_) == 3


def test_dates_of_several_units() -> None:
    days = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]")[Y]
    learner = clouds(eval_set=(X, days.astype("M8[ns]"))).teach(np.arange(40), days[:40])
    learner.teach(np.arange(40, 80), days[40:80].astype("M8[us]"))
    assert (
        learner.history_["valid_error"]
        == clouds(eval_set=(X, Y)).teach(np.arange(40), Y[:40]).teach(np.arange(40, 80), Y[40:80]).history_["valid_error"]
    )
    assert len(learner.committee_.classes_) == 3


@pytest.mark.parametrize("labels", ["abc", {0: 1, 1: 0, 2: 2}, {0, 1, 2}])
def test_labels_that_are_no_list(labels: Any) -> None:
    with pytest.raises(ValueError, match=f"labels must have the shape .*, got the {type(labels).__name__} "):
        clouds().teach([0, 1, 2], labels)


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ("red", TypeError, "oracle must return a list of one label for each row that it is given, 9 here, got 'red'"),
        (3, TypeError, "9 here, got 3"),
        (np.array(3), TypeError, r"9 here, got array\(3\)"),
        (["red"], ValueError, "oracle must return one label for each of the 9 rows that it is given, got 1"),
    ],
)
def test_wrong_answers_of_an_oracle(answer: Any, error: type[Exception], message: str) -> None:
    learner = clouds()
    with pytest.raises(error, match=message):
        learner.run(lambda rows: answer)
    assert len(learner.rows_) == 0


@pytest.mark.parametrize("error", [KeyboardInterrupt, ConnectionError])
def test_run_goes_on_after_a_failure_of_the_oracle(error: type[BaseException]) -> None:
    calls = []

    def oracle(rows: NDArray[np.intp]) -> NDArray[Any]:
        calls.append(rows)
        if len(calls) == 3:
            raise error
        return Y[rows]

    learner = clouds()
    with pytest.raises(error):
        learner.run(oracle, max_rows=49)
    assert len(learner.rows_) == 19
    assert learner.run(oracle, max_rows=49).rows_.tolist() == chosen(clouds(), Y, 49)
    assert_array_equal(calls[2], calls[3])  # it is asked the same again


def test_oracle_may_write_to_its_rows() -> None:
    def oracle(rows: NDArray[np.intp]) -> NDArray[Any]:
        labels = Y[rows]
        rows[:] = 0
        return labels

    assert clouds().run(oracle, max_rows=29).rows_.tolist() == chosen(clouds(), Y, 29)


# ---- copies ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_go_on_alike_and_apart(duplicate: Callable[[Any], Any]) -> None:
    learner = clouds(eval_set=(X, Y)).run(Y, max_rows=29)
    twin = duplicate(learner)
    assert twin.history_ == learner.history_
    assert_array_equal(twin.predict(X), learner.predict(X))
    twin.run(Y, max_rows=49)
    assert len(learner.rows_) == 29
    assert twin.rows_.tolist() == learner.run(Y, max_rows=49).rows_.tolist() == chosen(clouds(), Y, 49)


def test_what_is_shown_cannot_be_used_to_change_it() -> None:
    learner = clouds().run(Y, max_rows=29)
    expected = learner.query().tolist()
    learner.rows_[:] = 0
    learner.labels_[:] = 0
    learner.history_["n_rows"].clear()
    assert learner.query().tolist() == expected
    assert learner.history_["n_rows"] == [9, 19, 29]


def test_the_estimator_of_the_caller_is_left_alone() -> None:
    estimator = gamble()
    learner = clouds(estimator).run(Y, max_rows=19)
    assert not estimator.__sklearn_is_fitted__()
    assert estimator.random_state is None
    estimator.set_params(n_estimators=0)  # nor does a later change of it reach the learner
    assert learner.run(Y, max_rows=29).committee_.n_estimators_ == 5


def test_default_committee() -> None:
    assert isinstance(ActiveLearner(X).estimator, GambleClassifier)
    assert gpuboost.ActiveLearner is ActiveLearner

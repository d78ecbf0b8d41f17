"""Training through the estimator: parameters, evaluation sets, callbacks, interrupts, continuation."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.datasets import load_wine

import gpuboost
from gpuboost import AdaBoostMHClassifier
from gpuboost.boosters.adaboost_mh import AdaBoostMH
from gpuboost.estimators.base import draw_seed
from gpuboost.inputs.samples import Sample, split_off
from gpuboost.peers.rows import RowOrder
from gpuboost.progress import Progress
from tests.traps.problem import FRAME, NOISY, VARIANTS, X, Y, digest, make


def recorded(model: AdaBoostMHClassifier) -> dict[str, list[float]]:
    """The history without the clock."""
    return {key: values for key, values in model.history_.items() if key != "seconds"}


# ---- parameters ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"n_estimators": 0}, ValueError, "n_estimators must be an integer of at least 1, got 0"),
        ({"n_estimators": 2.0}, TypeError, "n_estimators must be an integer of at least 1, got 2.0"),
        ({"n_estimators": True}, TypeError, "n_estimators"),
        ({"learner": None}, TypeError, 'learner must be one of "tree", "stump", "product", "single-label", got None'),
        ({"max_leaf_nodes": 1}, ValueError, "max_leaf_nodes must be an integer of at least 2, got 1"),
        ({"max_leaf_nodes": "many"}, ValueError, "max_leaf_nodes must be an integer of at least 2 or \"auto\", got 'many'"),
        ({"min_weight_fraction_leaf": -0.1}, ValueError, "min_weight_fraction_leaf must be a number from 0 to 0.5, got -0.1"),
        ({"min_weight_fraction_leaf": 0.51}, ValueError, "min_weight_fraction_leaf must be a number from 0 to 0.5, got 0.51"),
        ({"min_weight_fraction_leaf": np.nan}, ValueError, "min_weight_fraction_leaf must be a number from 0 to 0.5, got nan"),
        ({"min_weight_fraction_leaf": True}, TypeError, "min_weight_fraction_leaf must be a number from 0 to 0.5, got True"),
        ({"min_weight_fraction_leaf": "0.1"}, TypeError, "min_weight_fraction_leaf must be a number from 0 to 0.5, got '0.1'"),
        ({"min_weight_fraction_leaf": None}, TypeError, "min_weight_fraction_leaf must be a number from 0 to 0.5, got None"),
        ({"n_factors": 9}, ValueError, "n_factors must be an integer from 1 to 8, got 9"),
        ({"variant": "exact"}, ValueError, "variant must be one of"),
        ({"learning_rate": 0.0}, ValueError, "learning_rate must be a number above 0, up to 1000000, got 0.0"),
        ({"learning_rate": 1e308}, ValueError, "learning_rate must be a number above 0, up to 1000000, got 1e[+]308"),
        ({"learning_rate": np.nan}, ValueError, "learning_rate"),
        ({"learning_rate": np.inf}, ValueError, "learning_rate"),
        ({"learning_rate": "1"}, TypeError, "learning_rate"),
        ({"initial_weights": "equal"}, ValueError, "initial_weights must be one of"),
        ({"max_bins": 256}, ValueError, "max_bins must be an integer from 2 to 255, got 256"),
        ({"early_stopping": "soon"}, ValueError, 'early_stopping must be one of "smoothed", "patience"'),
        ({"early_stopping": 1}, TypeError, "early_stopping must be True or False, got 1"),
        ({"validation_fraction": 1.0}, ValueError, r"validation_fraction must be a number between 0 and 1 \(both excluded\)"),
        ({"n_iter_no_change": 0}, ValueError, "n_iter_no_change must be an integer of at least 1, got 0"),
        ({"random_state": -1, "early_stopping": True}, ValueError, "random_state must be an integer of at least 0, got -1"),
        ({"n_jobs": 0}, ValueError, "n_jobs must not be 0"),
        ({"n_jobs": "all"}, TypeError, "n_jobs must be an integer"),
        ({"verbose": -1}, ValueError, "verbose must be an integer of at least 0, got -1"),
        ({"warm_start": 1}, TypeError, "warm_start must be True or False"),
        ({"callbacks": print}, TypeError, "callbacks must be None or a list of callables"),
        ({"callbacks": [1]}, TypeError, "callbacks must be None or a list of callables"),
    ],
)
def test_wrong_parameters_are_named(params: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make().set_params(**params).fit(X, Y)


def test_numpy_scalars_are_parameters() -> None:
    given = {
        "n_estimators": np.int64(3),
        "max_leaf_nodes": np.int32(4),
        "learning_rate": np.float32(0.5),
        "min_weight_fraction_leaf": np.float32(0.125),
        "warm_start": np.True_,
    }
    plain = make(3, learning_rate=0.5, min_weight_fraction_leaf=0.125)
    assert digest(make().set_params(**given).fit(X, NOISY)) == digest(plain.fit(X, NOISY))


def test_learners_are_what_they_are_called() -> None:
    stump = make(5, learner="stump", max_leaf_nodes=9).fit(X, NOISY)
    assert np.diff(stump.ensemble_.leaf_offset).max() == 2
    assert digest(make(5, max_leaf_nodes=2).fit(X, NOISY)) == digest(stump)
    assert np.diff(make(5, max_leaf_nodes=3).fit(X, NOISY).ensemble_.leaf_offset).max() == 3
    assert np.diff(make(5, learner="product", n_factors=3).fit(X, NOISY).ensemble_.leaf_offset).max() == 8


def rows_only(matrix: NDArray[Any], rows: NDArray[np.intp] | None = None) -> Sample:
    """A sample whose labels and weights do not matter."""
    rows = np.arange(len(matrix)) if rows is None else rows
    return Sample(matrix, rows, np.zeros(len(rows), np.int64), np.ones(len(rows)))


@pytest.mark.parametrize(
    ("n_classes", "n_distinct", "leaves"),
    [(2, 10, 4), (3, 399, 4), (3, 500, 5), (7, 500, 7), (3, 1999, 19), (3, 2000, 20), (3, 2500, 20), (50, 10, 20)],
)
def test_the_size_of_trees_that_follows_from_the_data(n_classes: int, n_distinct: int, leaves: int) -> None:
    sample = rows_only(np.arange(3 * n_distinct)[:, None] % n_distinct)  # every row stands three times
    assert AdaBoostMHClassifier()._leaves(n_classes, sample) == leaves
    assert AdaBoostMHClassifier(max_leaf_nodes=3)._leaves(n_classes, sample) == 3


@pytest.mark.parametrize(("n_rows", "leaves"), [(499, 4), (500, 5), (699, 6), (2100, 20)])
def test_models_have_trees_of_that_size(n_rows: int, leaves: int) -> None:
    data = np.random.default_rng(n_rows).normal(size=(n_rows, 3))
    labels = np.random.default_rng(0).integers(0, 3, n_rows)
    ensemble = AdaBoostMHClassifier(n_estimators=3, n_jobs=1).fit(data, labels).ensemble_
    assert np.diff(ensemble.leaf_offset).tolist() == [leaves] * 3  # noise: there is always something to gain


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30), st.integers(1, 12), st.randoms())
def test_distinct_rows_are_counted_up_to_enough(rows: list[tuple[int, int]], enough: int, random: Random) -> None:
    # In chunks of so many rows, some of which bring nothing new.
    expected = min(len(set(rows)), enough)
    for dtype in (np.float64, np.float32, np.int8, np.longdouble, ">f8"):
        assert rows_only(np.array(rows, dtype)).n_distinct(enough) == expected
    order = np.array(random.sample(range(len(rows)), len(rows)))
    assert rows_only(np.asfortranarray(rows), order).n_distinct(enough) == expected
    chosen = order[: len(rows) // 2 + 1]  # the others do not exist
    assert rows_only(np.array(rows), chosen).n_distinct(enough) == min(len({rows[i] for i in chosen}), enough)


def test_rows_are_distinct_by_value() -> None:
    zeros = np.array([[0.0], [-0.0]])
    missing = np.array([0x7FF8000000000000, 0xFFF8000000000000, 0x7FF8000000000001], np.uint64).view(np.float64)[:, None]
    assert np.isnan(missing).all()
    assert rows_only(np.r_[zeros, missing]).n_distinct(10) == 2
    assert rows_only(np.r_[zeros, missing].astype(np.float32)).n_distinct(10) == 2
    assert rows_only(np.array([[2**53], [2**53 + 1]])).n_distinct(10) == 1  # cuts are float64
    zeros = np.frombuffer(b"\x00" * 10 + b"\x01" * 6 + b"\x00" * 16, np.longdouble)  # of 10 bytes, with 6 that mean nothing
    if len(zeros) == 2:  # and not of 8 bytes, as on some machines
        assert rows_only(zeros[:, None]).n_distinct(10) == len(set(zeros.tolist()))
    huge = np.array([[np.longdouble(np.finfo(np.float64).max) * 4], [np.inf]], np.longdouble)
    assert rows_only(huge).n_distinct(10) == 1


NOISE = np.random.default_rng(10).normal(size=(1000, 4))
SUMS = np.digitize(NOISE.sum(axis=1) + np.random.default_rng(11).normal(size=1000), [-1, 1])


@pytest.mark.parametrize("n_rows", [400, 500, 999])
def test_by_default_the_unit_of_the_weights_does_not_matter(n_rows: int) -> None:
    data, labels = NOISE[:n_rows], SUMS[:n_rows]
    plain = AdaBoostMHClassifier(n_estimators=20).fit(data, labels)
    for weight in (np.ones(n_rows), np.full(n_rows, 2), np.full(n_rows, 0.1)):
        assert digest(AdaBoostMHClassifier(n_estimators=20).fit(data, labels, weight)) == digest(plain)


@pytest.mark.parametrize("n_rows", [400, 500, 999])
@pytest.mark.parametrize("params", [{}, {"min_weight_fraction_leaf": 0.05}], ids=str)
def test_by_default_integer_weights_are_repeated_rows(n_rows: int, params: dict[str, Any]) -> None:
    # 400 to 999 rows are 800 to 1998 repeated ones: the size of the trees follows from the former.
    data, labels = NOISE[:n_rows], SUMS[:n_rows]
    weight = 1 + np.random.default_rng(n_rows).permutation(np.arange(n_rows) % 3)
    weighted = AdaBoostMHClassifier(n_estimators=20, **params).fit(data, labels, weight)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(n_rows), weight))
    repeated = AdaBoostMHClassifier(n_estimators=20, **params).fit(data[rows], labels[rows])
    assert digest(weighted) == digest(repeated)
    assert np.diff(weighted.ensemble_.leaf_offset).max() == n_rows // 100


@pytest.mark.parametrize("n_rows", [400, 500, 999])
def test_by_default_rows_twice_are_the_rows_once(n_rows: int) -> None:
    data, labels = NOISE[:n_rows], SUMS[:n_rows]

    def of_rows(times: int, **params: Any) -> AdaBoostMHClassifier:
        return AdaBoostMHClassifier(**params).fit(np.tile(data, (times, 1)), np.tile(labels, times))

    # Round 1 of the discrete variant has sums of halves and quarters, which fixed point keeps exactly.
    assert digest(of_rows(1, n_estimators=1, variant="discrete")) == digest(of_rows(2, n_estimators=1, variant="discrete"))
    # Later weights are rounded to half as fine a unit if there are twice as many rows to add up, so bits may differ.
    once, twice = (of_rows(times, n_estimators=20) for times in (1, 2))
    for name in ("feature", "cut", "missing_left", "left", "right", "leaf_offset"):
        assert np.array_equal(getattr(once.ensemble_, name), getattr(twice.ensemble_, name))
    np.testing.assert_allclose(once.predict_proba(data), twice.predict_proba(data), rtol=0, atol=1e-6)


@pytest.mark.parametrize("n_rows", [400, 999])
def test_integer_weights_times_class_weights_are_repeated_rows(n_rows: int) -> None:
    # The products have no common unit, so they are no repeats: equal up to rounding.
    data, labels = NOISE[:n_rows], SUMS[:n_rows]
    weight = 1 + np.random.default_rng(n_rows).permutation(np.arange(n_rows) % 3)
    weighted, repeated = (
        AdaBoostMHClassifier(n_estimators=20, class_weight="balanced").fit(data[rows], labels[rows], given)
        for rows, given in ((np.arange(n_rows), weight), (np.repeat(np.arange(n_rows), weight), None))
    )
    np.testing.assert_allclose(weighted.predict_proba(data), repeated.predict_proba(data), rtol=0, atol=1e-6)


def test_fit_in_one_call() -> None:
    model = gpuboost.fit(X, NOISY, device="cpu", eval_set=(X, NOISY), n_estimators=3, max_leaf_nodes=4)
    assert digest(model) == digest(make(3).fit(X, NOISY))
    assert len(model.history_["valid_error"]) == 3
    with pytest.raises(ValueError, match="AdaBoostMHClassifier has no parameter 'n_trees'"):
        gpuboost.fit(X, Y, n_trees=3)
    with pytest.raises(ValueError, match=r"no parameter 'n_estimator' \(did you mean n_estimators\?\); it has \["):
        gpuboost.fit(X, Y, n_estimator=3)
    with pytest.raises(ValueError, match=r"algorithm must be one of .*, got 'adaboost' \(did you mean adaboost-mh\?\)$"):
        gpuboost.fit(X, Y, algorithm="adaboost")


# ---- evaluation sets and the hold-out --------------------------------------------------------------------------------------


def test_evaluation_sets_are_recorded_by_name() -> None:
    model = make(4).fit(X, NOISY, eval_set=[(X[:50], NOISY[:50]), (X, Y), (X, NOISY, np.arange(120))])
    assert set(model.history_) == {
        "train_loss",
        "train_error",
        "edge",
        "seconds",
        *(f"{name}_{what}" for name in ("valid", "valid_1", "valid_2") for what in ("loss", "error")),
    }
    assert {len(values) for values in model.history_.values()} == {4}
    stages = list(model.staged_predict(X))
    np.testing.assert_allclose(model.history_["valid_error"], [np.mean((p != NOISY)[:50]) for p in stages])
    np.testing.assert_allclose(model.history_["valid_1_error"], [np.mean(p != Y) for p in stages])
    weighted = [np.average(p != NOISY, weights=np.arange(120)) for p in stages]
    np.testing.assert_allclose(model.history_["valid_2_error"], weighted)


def test_the_loss_is_that_of_the_paper() -> None:
    """Eq. 4: the weighted sum of exp(-f_l(x) y_l), as a share of that of f = 0."""
    model = make(4).fit(X, NOISY, eval_set=(X[:50], NOISY[:50]))
    signs = np.where(NOISY[:, None] == np.arange(3), 1, -1)
    weights = np.where(signs > 0, 0.5, 0.25)
    losses = [weights * np.exp(-f * signs) for f in model.staged_decision_function(X)]
    np.testing.assert_allclose(model.history_["train_loss"], [loss.sum() / 120 for loss in losses], rtol=1e-6)
    np.testing.assert_allclose(model.history_["valid_loss"], [loss[:50].sum() / 50 for loss in losses], rtol=1e-6)


@pytest.mark.parametrize(
    "eval_set", [[X, Y], (X,), (X, Y, np.ones(120), 1), X, "valid", [(X, Y), X], [[X, Y]]], ids=lambda e: type(e).__name__
)
def test_evaluation_sets_of_the_wrong_form(eval_set: Any) -> None:
    with pytest.raises(ValueError, match=r"eval_set must be \(X, y\) or \(X, y, sample_weight\), or a list of such tuples"):
        make().fit(X, Y, eval_set=eval_set)


def test_evaluation_sets_with_wrong_data() -> None:
    with pytest.raises(ValueError, match="X has 2 features, but AdaBoostMHClassifier is expecting 3"):
        make().fit(X, Y, eval_set=(X[:, :2], Y))
    with pytest.raises(ValueError, match="y of eval_set must have one entry for each of the 119 rows of X, got 120"):
        make().fit(X, Y, eval_set=(X[1:], Y))
    with pytest.raises(ValueError, match=r"missing value in y of eval_set\[0\]"):
        make().fit(X, Y, eval_set=[(X, np.where(Y > 1, np.nan, Y))])
    with pytest.raises(ValueError, match="column 'b' of X of eval_set holds the text"):
        make().fit(FRAME, Y, eval_set=(FRAME.assign(b="?"), Y))
    with pytest.raises(ValueError, match="y of eval_set must be one label a row"):
        make().fit(X, Y, eval_set=(X, np.c_[Y > 0, Y > 1]))
    with pytest.raises(ValueError, match="y of eval_set must be an indicator matrix of 2 columns"):
        make().fit(X, np.c_[Y > 0, Y > 1], eval_set=(X, np.c_[Y > 0, Y > 1, Y > 0]))


def test_the_hold_out_is_drawn_class_by_class() -> None:
    target = np.repeat([0, 1, 2, 3], [50, 15, 4, 1])
    sample = Sample(np.zeros((70, 1)), np.arange(100, 170), target, np.arange(1.0, 71.0))
    rest, held = split_off(sample, 0.2, seed=3)
    assert np.bincount(held.target, minlength=4).tolist() == [10, 3, 1, 0]  # a single row stays
    assert np.bincount(rest.target, minlength=4).tolist() == [40, 12, 3, 1]
    assert sorted([*rest.rows, *held.rows]) == list(range(100, 170))
    for part in (rest, held):
        assert np.array_equal(part.target, target[part.rows - 100])
        assert np.array_equal(part.weights, part.rows - 99.0)
    again, other = split_off(sample, 0.2, seed=3)[1], split_off(sample, 0.2, seed=4)[1]
    assert np.array_equal(held.rows, again.rows)
    assert not np.array_equal(held.rows, other.rows)
    every_row = {row for seed in range(60) for row in split_off(sample, 0.2, seed)[1].rows}
    assert every_row == set(range(100, 169))  # all but the class of one row


def test_the_hold_out_has_the_largest_numbers_of_each_class(monkeypatch: pytest.MonkeyPatch) -> None:
    target = np.random.default_rng(1).integers(0, 3, 60)
    sample = Sample(np.zeros((60, 1)), np.arange(60), target, np.ones(60))

    def largest(numbers: NDArray[np.uint64]) -> list[int]:
        classes = [np.flatnonzero(target == k).tolist() for k in range(3)]
        falling = [sorted(rows, key=lambda i: (-int(numbers[i]), i)) for rows in classes]  # of equals the lowest row
        return sorted(row for rows in falling for row in rows[: int(0.3 * len(rows) + 0.5)])

    assert split_off(sample, 0.3, seed=5)[1].rows.tolist() == largest(np.random.PCG64([5, 0, 2]).random_raw(60))
    ties = np.arange(60, dtype=np.uint64) // 7 % 3
    monkeypatch.setattr(RowOrder, "random", lambda *_: ties)
    assert split_off(sample, 0.3, seed=5)[1].rows.tolist() == largest(ties)


@pytest.mark.parametrize(("fraction", "n_held"), [(0.001, 1), (0.5, 5), (0.999, 9)])
def test_the_hold_out_has_a_row_and_leaves_one(fraction: float, n_held: int) -> None:
    multi_label = np.ones((10, 3), bool)
    for target in (np.zeros(10, np.int64), multi_label):
        rest, held = split_off(Sample(np.zeros((10, 1)), np.arange(10), target, np.ones(10)), fraction, 0)
        assert (len(rest.rows), len(held.rows)) == (10 - n_held, n_held)


def test_nothing_to_hold_out() -> None:
    with pytest.raises(ValueError, match="every class has only one; pass an eval_set"):
        make(early_stopping=True).fit([[0.0], [1.0]], ["a", "b"])


def test_early_stopping_holds_out_and_is_repeatable() -> None:
    settings = {"early_stopping": "patience", "n_iter_no_change": 5, "learner": "stump", "validation_fraction": 0.25}
    one, same, other = (make(40, random_state=seed, **settings).fit(X, NOISY) for seed in (1, 1, 2))
    assert recorded(one) == recorded(same)
    assert digest(one) == digest(same)
    assert recorded(one) != recorded(other)
    assert one.n_estimators_ == int(np.argmin(one.history_["valid_error"])) + 1


def test_seeds() -> None:
    assert draw_seed(np.int64(7)) == 7
    assert draw_seed(np.random.default_rng(0)) == int(np.random.default_rng(0).integers(2**63))
    assert draw_seed(np.random.RandomState(0)) == np.random.RandomState(0).randint(2**31 - 1)
    assert draw_seed(None) != draw_seed(None)
    with pytest.raises(TypeError, match="random_state must be an integer"):
        draw_seed("lucky")


# ---- callbacks, progress, interrupts ---------------------------------------------------------------------------------------


def test_callbacks_see_every_round_and_may_stop() -> None:
    seen: list[tuple[int, int]] = []

    def stop_at_four(progress: Progress) -> bool:
        seen.append((progress.n_rounds, len(progress.history["train_error"])))
        return progress.n_rounds == 4

    model = make(callbacks=[lambda progress: None, stop_at_four]).fit(X, NOISY)
    assert seen == [(n, n) for n in range(1, 5)]
    assert model.n_estimators_ == 4
    assert model.stop_reason_ == "a callback asked to stop"
    assert digest(model) == digest(make(4).fit(X, NOISY))


def test_verbose_prints_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    make(6, verbose=3).fit(X, NOISY)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == ["round 3", "round 6"]
    make(2, verbose=True).fit(X, NOISY)
    assert "2/2" in capsys.readouterr().err


def interrupt_at(n: int) -> Any:
    def callback(progress: Progress) -> None:
        if progress.n_rounds == n:
            raise KeyboardInterrupt

    return callback


def test_an_interrupt_keeps_the_rounds_so_far() -> None:
    model = make(callbacks=[interrupt_at(3)])
    with pytest.warns(UserWarning, match="interrupted after 3 rounds; the model keeps them") as record:
        model.fit(X, NOISY, eval_set=(X, NOISY))
    assert record[0].filename == __file__
    plain = make(3).fit(X, NOISY, eval_set=(X, NOISY))
    assert digest(model) == digest(plain)
    assert recorded(model) == recorded(plain)
    assert model.stop_reason_ == "interrupted"


def fail(*arguments: Any) -> Iterator[Any]:
    raise KeyboardInterrupt


def test_a_fit_that_fails_leaves_the_old_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(progress: Progress) -> None:
        raise RuntimeError("boom")

    model = make(3).fit(FRAME, NOISY)
    before, learned = digest(model), dict(vars(model))
    failures = [
        (ValueError, {}, (X[:, :2], Y[1:])),
        (ValueError, {}, (X[:, :2], Y, np.zeros(120))),
        (ValueError, {}, (X[:, :2], Y, None, (X, Y))),
        (ValueError, {"learner": "oak"}, (X, Y)),
        (RuntimeError, {"callbacks": [explode]}, (X[:, :2], Y + 5)),
    ]
    for error, params, arguments in failures:
        model.set_params(**params)
        with pytest.raises(error):
            model.fit(*arguments)
        model.set_params(learner="tree", callbacks=None)
        assert vars(model) == learned
    with monkeypatch.context() as patch:
        patch.setattr(AdaBoostMH, "rounds", fail)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :2], Y)
    assert vars(model) == learned
    assert digest(model) == before
    assert np.array_equal(model.predict(FRAME), make(3).fit(X, NOISY).predict(X))


def test_a_second_fit_forgets_the_first() -> None:
    model = make(3).fit(FRAME, np.array(["a", "b", "c"])[Y], eval_set=(FRAME, np.array(["a", "b", "c"])[Y]))
    model.fit(X[:, :2], NOISY)
    plain = make(3).fit(X[:, :2], NOISY)
    assert vars(model).keys() == vars(plain).keys()
    assert digest(model) == digest(plain)
    assert recorded(model) == recorded(plain)
    assert model.n_features_in_ == 2


# ---- continuation ----------------------------------------------------------------------------------------------------------

CONTINUED = [
    *VARIANTS,
    {"learner": "stump", "early_stopping": True, "random_state": 3},
    {"learner": "stump", "early_stopping": "patience", "n_iter_no_change": 7, "random_state": 3},
    {"learner": "stump", "variant": "discrete", "learning_rate": 3.0},
    {"learner": "stump", "learning_rate": 2.5},
    {"min_weight_fraction_leaf": 0.15},
    {"min_weight_fraction_leaf": 0.15, "learner": "product", "variant": "discrete"},
]


@pytest.mark.parametrize("params", CONTINUED, ids=str)
@pytest.mark.parametrize("labels", [NOISY, Y], ids=["noisy", "perfect"])
def test_a_continued_training_is_one_long_training(labels: Any, params: dict[str, Any]) -> None:
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 120)
    evaluation = None if "early_stopping" in params else (X[:30], NOISY[:30])
    long = make(20, **params).fit(X, labels, weight, evaluation)
    model = make(1, warm_start=True, **params).fit(X, labels, weight, evaluation)
    for n in (2, 7, 7, 20):
        model = pickle.loads(pickle.dumps(model)).set_params(n_estimators=n).fit(X, labels, weight, evaluation)
    assert digest(model) == digest(long)
    assert recorded(model) == recorded(long)
    assert all(np.diff(model.history_["seconds"]) >= 0)


def test_a_continued_model_keeps_its_bins() -> None:
    model = make(2, warm_start=True).fit(X, NOISY)
    bins = model.bin_mapper_
    model.set_params(n_estimators=4, max_bins=3).fit(X[::2], NOISY[::2])
    assert model.bin_mapper_ is bins
    assert model.n_estimators_ == 4
    assert digest(make(2).fit(X, NOISY)) == model_of_first(model, 2)


def model_of_first(model: AdaBoostMHClassifier, n: int) -> str:
    ensemble = model.ensemble_
    return type(ensemble).from_trees(ensemble.trees()[:n], ensemble.n_classes).digest()


def test_a_new_evaluation_set_in_a_continued_training() -> None:
    model = make(2, warm_start=True).fit(X, NOISY)
    model.set_params(n_estimators=3).fit(X, NOISY, eval_set=(X, NOISY))
    assert np.isnan(model.history_["valid_error"][:2]).all()
    assert model.history_["valid_error"][2] == model.history_["train_error"][2]
    with pytest.raises(ValueError, match="needs the evaluation set to be there from the first fit on"):
        make(2, warm_start=True).fit(X, NOISY).set_params(early_stopping=True).fit(X, NOISY)


def test_what_cannot_be_continued() -> None:
    model = make(3, warm_start=True).fit(FRAME, NOISY)
    with pytest.raises(ValueError, match=r"a model with the classes \[0, 1, 2\], but y has \[0, 1\]"):
        model.fit(FRAME, np.minimum(NOISY, 1))
    with pytest.raises(ValueError, match="expected 'a', got 'c'"):
        model.fit(FRAME[list("cba")], NOISY)
    with pytest.raises(ValueError, match="n_estimators of at least the 3 rounds that the model has, got 2"):
        model.set_params(n_estimators=2).fit(FRAME, NOISY)
    with pytest.raises(ValueError, match="continues a model with initial_weights='single-label', got 'uniform'"):
        model.set_params(n_estimators=4, initial_weights="uniform").fit(FRAME, NOISY)
    assert model.n_estimators_ == 3


def test_without_warm_start_a_fit_starts_anew() -> None:
    model = make(3).fit(X, NOISY)
    assert digest(model.set_params(n_estimators=2).fit(X, NOISY)) == digest(make(2).fit(X, NOISY))


def test_a_model_of_no_rounds_has_an_empty_history() -> None:
    """Every row stands twice, with both labels: no weak learner has an edge."""
    model = make(warm_start=True, early_stopping=True).fit(np.r_[X, X], np.r_[Y > 0, Y <= 0], eval_set=(X, Y > 0))
    assert model.n_estimators_ == 0
    assert model.history_ == {key: [] for key in ("train_loss", "train_error", "edge", "seconds", "valid_loss", "valid_error")}
    assert list(model.staged_predict(X)) == []
    assert model.fit(np.r_[X, X], np.r_[Y > 0, Y <= 0], eval_set=(X, Y > 0)).n_estimators_ == 0


@pytest.mark.parametrize("learner", ["tree", "stump", "product"])
def test_pruning_gives_the_same_model(learner: str) -> None:
    wine, labels = load_wine(return_X_y=True)
    params: dict[str, Any] = {"n_estimators": 25, "learner": learner, "random_state": 0, "device": "cpu", "n_jobs": 1}
    for more in ({}, {"variant": "discrete"}, {"weight_trim": 0.9, "max_features": 0.5, "subsample": 0.8}):
        plain, quick = (AdaBoostMHClassifier(pruning=pruning, **params, **more).fit(wine, labels) for pruning in (False, True))
        assert plain.ensemble_.digest() == quick.ensemble_.digest()
    with pytest.raises(TypeError, match="pruning must be True or False, got 1"):
        AdaBoostMHClassifier(pruning=1).fit(wine, labels)

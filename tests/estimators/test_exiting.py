"""Early exit of estimators: labels that never change, labels that rarely do, the trap, and what is kept."""

from __future__ import annotations

import pickle
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import LinearRegression

import gpuboost
from gpuboost.early_exit import needs
from gpuboost.persistence.model_file import to_bytes
from gpuboost.tree import constant_tree


def clouds(n_rows: int, seed: int) -> tuple[Any, Any]:
    """Five classes that overlap in four columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 5, n_rows)
    centres = np.random.default_rng(9).normal(size=(5, 4))
    return (2 * centres[y] + rng.normal(size=(n_rows, 4))).round(1), np.array(["a", "b", "c", "d", "e"])[y]


@cache
def model(algorithm: str = "adaboost-mh", n_estimators: int = 64) -> Any:
    X, y = clouds(600, 0)
    return gpuboost.fit(X, y, algorithm=algorithm, n_estimators=n_estimators, device="cpu", n_jobs=1, random_state=0)


NEW = clouds(2000, 1)[0]


@pytest.mark.parametrize("algorithm", [name for name in gpuboost.ALGORITHMS if name != "localized-similarities"])
def test_exact_exit_never_changes_a_label(algorithm: str) -> None:
    fitted = model(algorithm, 24)
    strange = np.concatenate([NEW[:500], np.random.default_rng(2).normal(scale=9, size=(500, 4)), np.full((1, 4), np.nan)])
    assert_array_equal(fitted.predict(strange, early_exit="exact"), fitted.predict(strange))
    rounds = fitted.predict_rounds(strange, "exact")
    assert set(rounds.tolist()) <= {10, 20, fitted.n_estimators_}


def test_a_last_tree_that_decides_is_waited_for() -> None:
    """All scores are tied until the last tree, which lifts class 1; with less than the lead it is too late."""
    X, y = clouds(200, 0)
    fitted = gpuboost.fit(X, y, n_estimators=30, device="numpy")
    for lift, lead, label in ((1.0, 0.5, "b"), (1.0, 1.0, "a"), (0.5, 1.0, "a"), (1.0 + 2**-52, 1.0, "b")):
        first, last = np.zeros(5), np.zeros(5)
        first[0], last[1] = lead, lift
        trees = [constant_tree(one) for one in [first, *[np.zeros(5)] * 28, last]]
        fitted._model = fitted._model.with_rounds([[tree] for tree in trees], 5)
        assert set(fitted.predict(X, early_exit="exact").tolist()) == set(fitted.predict(X).tolist()) == {label}
        assert set(fitted.predict_rounds(X, "exact").tolist()) == {30 if lift >= lead else 10}


def test_rows_leave_with_the_scores_of_the_rounds_that_they_took() -> None:
    fitted = pickle.loads(pickle.dumps(model())).fit_early_exit(NEW[:1000], allowed=0.01)
    labels, rounds = fitted.predict(NEW, early_exit=True), fitted.predict_rounds(NEW)
    assert rounds.dtype == np.int64
    stages = np.array([*fitted.staged_decision_function(NEW)])
    top = np.sort(stages, axis=2)
    leads = top[:, :, -1] - top[:, :, -2]
    after = [10, 20, 30, 40, 50, 60, 64]
    for i in range(200):
        expected = next(r for r in after if r == 64 or leads[r - 1, i] > fitted.exit_lead_)
        assert rounds[i] == expected
        assert labels[i] == fitted.classes_[stages[expected - 1, i].argmax()]
    assert rounds.mean() < 40
    assert 0 < np.mean(labels != fitted.predict(NEW)) < 0.03
    assert fitted.exit_lead_ == np.sort(needs(stages[np.array(after) - 1][:, :1000]))[-11]  # k = 10 of 1001
    assert fitted.exit_bound_ == 11 / 1001


def test_nothing_allowed_changes_no_row_that_it_was_found_on() -> None:
    fitted = pickle.loads(pickle.dumps(model())).fit_early_exit(NEW[:300], allowed=0)
    assert_array_equal(fitted.predict(NEW[:300], early_exit=True), fitted.predict(NEW[:300]))
    assert (fitted.exit_every_, fitted.exit_bound_) == (10, 1 / 301)


def test_the_bound_holds_on_new_rows_and_fails_after_training_rows() -> None:
    """The trap: training rows have large leads early, so that they ask for too small a lead."""
    X, _ = clouds(600, 0)
    fitted = pickle.loads(pickle.dumps(model()))
    full = fitted.predict(NEW)
    shares, bound = [], 0.0
    for seed in range(30):
        order = np.random.default_rng(seed).permutation(len(NEW))
        fitted.fit_early_exit(NEW[order[:1000]], allowed=0.01)
        rest = order[1000:]
        shares.append(np.mean(fitted.predict(NEW[rest], early_exit=True) != full[rest]))
        bound = fitted.exit_bound_
    assert np.mean(shares) <= bound + 3 * np.std(shares) / 30**0.5
    with pytest.warns(UserWarning, match="most rows of the training set"):
        fitted.fit_early_exit(X, allowed=0.01)
    assert np.mean(fitted.predict(NEW, early_exit=True) != full) > 2 * fitted.exit_bound_


def test_two_classes() -> None:
    X, y = clouds(400, 0)
    fitted = gpuboost.fit(X, y == "a", n_estimators=40, device="cpu", n_jobs=1).fit_early_exit(NEW[:1000])
    assert fitted.predict(NEW, early_exit=True).dtype == np.bool_
    assert_array_equal(fitted.predict(NEW, early_exit="exact"), fitted.predict(NEW))
    assert fitted.predict_rounds(NEW).mean() < 35
    for of_numpy in (np.True_, np.False_):
        assert_array_equal(fitted.predict(NEW, early_exit=of_numpy), fitted.predict(NEW, early_exit=bool(of_numpy)))


def test_files_pickles_and_later_fits(tmp_path: Path) -> None:
    fitted = pickle.loads(pickle.dumps(model())).fit_early_exit(NEW[:500])
    fitted.save(tmp_path / "model")
    again = gpuboost.load(tmp_path / "model", device="numpy")
    for other in (again, pickle.loads(pickle.dumps(fitted))):
        assert_array_equal(other.predict_rounds(NEW[:400]), fitted.predict_rounds(NEW[:400]))
        assert_array_equal(other.predict(NEW[:400], early_exit=True), fitted.predict(NEW[:400], early_exit=True))
    assert to_bytes(again) == to_bytes(fitted)
    assert to_bytes(model()) != to_bytes(fitted)
    X, y = clouds(100, 0)
    assert not hasattr(again.set_params(n_estimators=3).fit(X, y), "exit_lead_")


def test_every_backend_and_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuboost.estimators import exiting

    fitted = pickle.loads(pickle.dumps(model())).fit_early_exit(NEW[:500], allowed=0.01)
    expected = fitted.predict(NEW, early_exit=True), fitted.predict_rounds(NEW), fitted.exit_lead_
    monkeypatch.setattr(exiting, "BLOCK_BYTES", 5000)
    monkeypatch.setattr(exiting, "STAGE_BYTES", 50_000)
    for settings in ({"n_jobs": 2}, {"device": "numpy"}):
        other = pickle.loads(pickle.dumps(fitted)).set_params(**settings).fit_early_exit(NEW[:500], allowed=0.01)
        assert other.exit_lead_ == expected[2]
        assert_array_equal(other.predict(NEW, early_exit=True), expected[0])
        assert_array_equal(other.predict_rounds(NEW), expected[1])


def test_refusals() -> None:
    X, y = clouds(100, 0)
    fitted = pickle.loads(pickle.dumps(model()))
    with pytest.raises(ValueError, match="needs a lead to leave with: call fit_early_exit"):
        fitted.predict(X, early_exit=True)
    for wrong in ("sure", 1, None):
        with pytest.raises(ValueError, match='early_exit must be False, True or "exact"'):
            fitted.predict(X, early_exit=wrong)
    with pytest.raises(ValueError, match='early_exit must be True or "exact", got False'):
        fitted.predict_rounds(X, early_exit=False)
    for wrong in (-0.1, 1.0, float("nan"), "much"):
        with pytest.raises((ValueError, TypeError)):
            fitted.fit_early_exit(X, allowed=wrong)
    with pytest.raises(ValueError, match="must be False with a cost_matrix"):
        fitted.predict(X, cost_matrix=1 - np.eye(5), early_exit="exact")
    assert not hasattr(fitted, "exit_lead_")
    many = gpuboost.fit(X, np.column_stack([y == "a", y == "b"]).astype(int), n_estimators=2, device="numpy")
    with pytest.raises(ValueError, match="one label a row, but the model is multi-label"):
        many.fit_early_exit(X)
    with pytest.raises(ValueError, match="at least two classes"):
        gpuboost.fit(X, ["a"] * 100, n_estimators=2, device="numpy").predict(X, early_exit="exact")
    regressors = gpuboost.GambleClassifier(regressor=LinearRegression(), n_estimators=2).fit(X, y)
    with pytest.raises(TypeError, match="needs a model of trees"):
        regressors.predict_rounds(X, "exact")


def test_forged_attributes_are_refused() -> None:
    fitted = pickle.loads(pickle.dumps(model())).fit_early_exit(NEW[:100])
    right = {name: getattr(fitted, name) for name in ("exit_lead_", "exit_every_", "exit_bound_")}
    for name, wrong in (
        ("exit_lead_", -1.0),
        ("exit_lead_", float("nan")),
        ("exit_every_", 0),
        ("exit_every_", 2.0),
        ("exit_bound_", 2.0),
    ):
        setattr(fitted, name, wrong)
        with pytest.raises(ValueError, match="its early exit is"):
            to_bytes(fitted)
        setattr(fitted, name, right[name])
    del fitted.exit_bound_
    with pytest.raises(ValueError, match="its early exit is"):
        to_bytes(fitted)


@pytest.mark.exhaustive
def test_a_million_rows_keep_their_labels() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model("adaboost-mh", 200)
    rng = np.random.default_rng(5)
    for _ in range(10):
        rows = (3 * rng.normal(size=(100_000, 4))).round(1)
        assert_array_equal(fitted.predict(rows, early_exit="exact"), fitted.predict(rows))

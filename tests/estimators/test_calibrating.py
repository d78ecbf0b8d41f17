"""Estimators with a temperature: whose rows it is fitted to, what stays as it was, and what is kept."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gpuboost
from gpuboost.calibration import HeldOut, fit_temperature, log_losses
from gpuboost.estimators.calibrating import INTERRUPTED, TRAINED_ON
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.inputs.containers import Blocks
from gpuboost.inputs.label_encoder import LabelEncoder
from gpuboost.inputs.samples import Sample, folds, split_off
from gpuboost.links import Sigmoid
from gpuboost.peers.threads import run_workers
from gpuboost.persistence.model_file import to_bytes

RNG = np.random.default_rng(3)
N = 300
X = RNG.normal(size=(N, 4)).round(2)
Y = np.where(RNG.random(N) < 0.2, RNG.integers(0, 3, N), 1 * (X[:, 0] > 0) + (X[:, 1] > 0.3))
NEW_X = RNG.normal(size=(400, 4)).round(2)
NEW_Y = np.where(RNG.random(400) < 0.2, RNG.integers(0, 3, 400), 1 * (NEW_X[:, 0] > 0) + (NEW_X[:, 1] > 0.3))
MANY = np.column_stack([X[:, 0] > 0, X[:, 1] + RNG.normal(size=N) > 0]).astype(int)
FEW: dict[str, Any] = {"n_estimators": 8, "max_leaf_nodes": 5, "max_bins": 8, "device": "numpy", "random_state": 4}


def fitted(**parameters: Any) -> Any:
    return gpuboost.fit(X, Y, **FEW | parameters)


def mean_log_loss(model: Any) -> float:
    return float(-np.log(model.predict_proba(NEW_X)[np.arange(400), NEW_Y]).mean())


@pytest.mark.parametrize("calibration", ["holdout", "cv"])
def test_trees_and_labels_stay_and_the_loss_falls(calibration: str) -> None:
    plain, calibrated = fitted(), fitted(calibration=calibration)
    assert calibrated.ensemble_.digest() == plain.ensemble_.digest()
    assert calibrated.temperature_ > 1
    assert_array_equal(calibrated.predict(NEW_X), plain.predict(NEW_X))
    assert_array_equal(calibrated.predict_proba(NEW_X).argmax(axis=1), plain.predict(NEW_X))
    assert mean_log_loss(calibrated) < 0.95 * mean_log_loss(plain)


def test_the_temperature_is_that_of_a_model_without_the_hold_out() -> None:
    calibrated = fitted(calibration="holdout", validation_fraction=0.25)
    rest, held = split_off(Sample(X, np.arange(N), Y, np.ones(N)), 0.25, 4)
    other = gpuboost.fit(X[rest.rows], Y[rest.rows], **FEW)
    rows = HeldOut(other.decision_function(X[held.rows]), Y[held.rows], np.ones(len(held.rows)))
    assert calibrated.temperature_ == fit_temperature(rows, other._link(3))
    assert calibrated._fitted_link(3) == Sigmoid(2.0 / calibrated.temperature_, other._link(3).offset)


def test_the_temperature_of_folds_is_of_all_rows_but_one_a_class() -> None:
    calibrated = fitted(calibration="cv")
    parts = folds(Sample(X, np.arange(N), Y, np.ones(N)), 5, 4)
    scores, rows = [], []
    for rest, held in parts:
        scores.append(gpuboost.fit(X[rest.rows], Y[rest.rows], **FEW).decision_function(X[held.rows]))
        rows.append(held.rows)
    every = np.concatenate(rows)
    assert len(set(every.tolist())) == len(every) == N - 3
    of_rows = HeldOut(np.concatenate(scores), Y[every], np.ones(len(every)))
    assert calibrated.temperature_ == fit_temperature(of_rows, calibrated._link(3))


def test_folds_of_classes_with_few_rows() -> None:
    target = np.array([0] * 11 + [1] * 3 + [2])
    parts = folds(Sample(np.zeros((15, 1)), np.arange(15), target, np.ones(15)), 5, 0)
    assert all(set(rest.target.tolist()) == {0, 1, 2} for rest, _ in parts)
    assert sorted(np.concatenate([held.target for _, held in parts]).tolist()) == [0] * 10 + [1] * 2
    assert all(sorted([*rest.rows, *held.rows]) == list(range(15)) for rest, held in parts)
    with pytest.raises(ValueError, match="every class has only one"):
        folds(Sample(np.zeros((3, 1)), np.arange(3), np.arange(3), np.ones(3)), 5, 0)


@pytest.mark.parametrize("given", [False, True])
def test_early_stopping_lends_its_rows(given: bool) -> None:
    """One training, not two: the rows that chose the rounds also choose the temperature."""
    stopped: dict[str, Any] = {"early_stopping": "patience", "n_iter_no_change": 4}
    sets = {"eval_set": [(NEW_X, NEW_Y)]} if given else {}
    seen: list[int] = []
    plain = fitted(**stopped, **sets)
    calibrated = fitted(**stopped, **sets, calibration="holdout", callbacks=[lambda p: seen.append(p.n_rounds)])
    assert calibrated.ensemble_.digest() == plain.ensemble_.digest()
    assert len(seen) == len(plain.history_["valid_error"])
    held = (NEW_X, NEW_Y)
    if not given:
        rows = split_off(Sample(X, np.arange(N), Y, np.ones(N)), 0.1, 4)[1].rows
        held = (X[rows], Y[rows])
    expected = fit_temperature(HeldOut(plain.decision_function(held[0]), held[1], np.ones(len(held[1]))), plain._link(3))
    assert calibrated.temperature_ == expected


def test_several_labels_a_row() -> None:
    calibrated = gpuboost.fit(X, MANY, calibration="holdout", **FEW)
    plain = gpuboost.fit(X, MANY, **FEW)
    assert calibrated.temperature_ > 1
    assert_array_equal(calibrated.predict_proba(NEW_X) > 0.5, plain.predict(NEW_X) > 0)
    held = HeldOut(plain.decision_function(NEW_X), plain.predict(NEW_X), np.ones(400))
    assert (
        log_losses(held, calibrated._fitted_link(2)) > log_losses(held, plain._link(2))
    ).all()  # less sure of its own labels


def test_continued_training_ends_with_the_temperature_of_one_long_training() -> None:
    long = fitted(calibration="holdout")
    short = fitted(n_estimators=3, calibration="holdout")
    assert short.temperature_ != long.temperature_
    short.set_params(warm_start=True, n_estimators=8).fit(X, Y)
    assert to_bytes(short) == to_bytes(long)


@pytest.mark.parametrize("algorithm", gpuboost.ALGORITHMS)
def test_every_algorithm_and_its_file(algorithm: str, tmp_path: Path) -> None:
    stopped = {"early_stopping": True} if algorithm == "filterboost" else {}
    model = gpuboost.fit(
        X, Y, algorithm=algorithm, calibration="holdout", n_estimators=2, max_bins=4, device="numpy", random_state=0, **stopped
    )
    model.save(tmp_path / "model")
    again = gpuboost.load(tmp_path / "model", device="numpy")
    assert again.temperature_ == model.temperature_
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict_proba(NEW_X), model.predict_proba(NEW_X))
    assert to_bytes(again) == to_bytes(model)
    assert model._fitted_link(3) == model._link(3).tempered(model.temperature_)


@pytest.mark.parametrize("calibration", ["holdout", "cv"])
def test_workers_find_the_same_bytes(calibration: str) -> None:
    estimator = gpuboost.AdaBoostMHClassifier(**FEW | {"n_estimators": 3}, calibration=calibration)
    bounds = [0, 130, 130, 300]

    def work(peers: Any) -> Any:
        rows = slice(bounds[peers.rank], bounds[peers.rank + 1])
        n = rows.stop - rows.start
        own = Blocks([X[rows]]) if n else X[rows]  # which are let go once they are encoded
        return to_bytes(fit_part(estimator, Part(own, Y[rows], np.array([rows.start]), np.array([n]), None, None), peers))

    alone = to_bytes(gpuboost.AdaBoostMHClassifier(**FEW | {"n_estimators": 3}, calibration=calibration).fit(X, Y))
    assert run_workers(3, work) == [alone] * 3


# ---- the method ---------------------------------------------------------------------------------------------------------


def test_the_method_and_a_later_fit() -> None:
    model = fitted()
    before, scores = mean_log_loss(model), model.decision_function(NEW_X)
    assert model.calibrate(NEW_X[::2], NEW_Y[::2]) is model
    assert mean_log_loss(model) < before
    assert_array_equal(model.decision_function(NEW_X), scores)
    first = model.temperature_
    assert model.calibrate(NEW_X[::2], NEW_Y[::2]).temperature_ == first  # of the scores, not of those at the last temperature
    assert not hasattr(model.fit(X, Y), "temperature_")


def test_sigmoids_take_the_place_of_a_temperature_and_keep_labels(tmp_path: Path) -> None:
    model = fitted(calibration="holdout").calibrate(NEW_X, NEW_Y, method="per-class")
    assert not hasattr(model, "temperature_")
    p = model.predict_proba(X)
    assert_array_equal(p.argmax(axis=1), model.predict(X))
    assert p.sum(axis=1) == pytest.approx(1.0)
    model.save(tmp_path / "model")
    assert_array_equal(gpuboost.load(tmp_path / "model").predict_proba(X), p)
    assert not hasattr(model.calibrate(NEW_X, NEW_Y), "class_sigmoids_")


def test_rows_of_weight_0_do_not_exist() -> None:
    model, weights = fitted(), (np.arange(400) % 2).astype(float)
    by_weight = model.calibrate(NEW_X, NEW_Y, sample_weight=weights).temperature_
    assert by_weight == model.calibrate(NEW_X[1::2], NEW_Y[1::2]).temperature_
    with pytest.raises(ValueError, match="weight"):
        model.calibrate(NEW_X, NEW_Y, sample_weight=0 * weights)


def test_training_rows_are_noticed(tmp_path: Path) -> None:
    model = fitted()
    with pytest.warns(UserWarning, match="most rows of the training set"):
        model.calibrate(X[::-1], Y[::-1])
    held_out = fitted(calibration="holdout").temperature_
    assert model.temperature_ < held_out  # what the warning is for
    model.save(tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.calibrate(NEW_X, NEW_Y)
        model.calibrate(X[:100], Y[:100])  # a third: who knows
        gpuboost.load(tmp_path / "model").calibrate(X, Y)  # files do not say
    assert TRAINED_ON.startswith("most rows")


def test_refusals() -> None:
    model = fitted()
    method: Any = "isotonic"
    with pytest.raises(ValueError, match="method must be"):
        model.calibrate(NEW_X, NEW_Y, method=method)
    with pytest.raises(ValueError, match="the rows to calibrate on"):
        model.calibrate(NEW_X, NEW_Y + 5)
    assert not hasattr(model, "temperature_")
    costs = [[0, 1, 2], [1, 0, 1], [3, 1, 0]]
    with pytest.raises(ValueError, match="calibration='holdout' needs a model with probabilities"):
        gpuboost.RebelClassifier(cost_matrix=costs, calibration="holdout", device="numpy").fit(X, Y)
    for wrong in ("sigmoid", True, 0.1):
        with pytest.raises((ValueError, TypeError), match="calibration must be"):
            fitted(calibration=wrong)
    with pytest.raises(ValueError, match="would train FilterBoostClassifier more than once"):
        fitted(algorithm="filterboost", calibration="holdout")
    with pytest.raises(ValueError, match="estimator must have calibration=None, got 'cv'"):
        gpuboost.OutputCodeClassifier(gpuboost.AdaBoostMHClassifier(calibration="cv")).fit(X, Y)


def test_a_code_file_needs_rows_of_its_own_to_calibrate_on(tmp_path: Path) -> None:
    file = gpuboost.CodeFile.write((X, Y), tmp_path / "codes")
    few = FEW | {"max_bins": 255}
    with pytest.raises(ValueError, match="would hold out rows that its cuts were chosen on"):
        gpuboost.fit(file, calibration="holdout", **few)
    watched = {"max_bins": 255, "early_stopping": "patience", "eval_set": (NEW_X, NEW_Y), "calibration": "holdout"}
    assert gpuboost.fit(file, **FEW | watched).temperature_ == fitted(**watched).temperature_


def test_an_interrupt_while_calibrating_keeps_the_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuboost.estimators import calibrating

    def broken_off(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrating, "_scored_by_another", broken_off)
    with pytest.warns(UserWarning, match=INTERRUPTED[:30]):
        model = fitted(calibration="holdout")
    assert model.n_estimators_ == 8
    assert not hasattr(model, "temperature_")


@pytest.mark.parametrize("function", ["fit_temperature", "fit_class_sigmoids"])
def test_an_interrupt_of_the_method_leaves_the_model_as_it_was(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuboost.estimators import calibrating

    def broken_off(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    model = fitted().calibrate(NEW_X, NEW_Y)
    before = to_bytes(model)
    monkeypatch.setattr(calibrating, function, broken_off)
    with pytest.raises(KeyboardInterrupt):
        model.calibrate(NEW_X[:50], NEW_Y[:50], method="temperature" if function == "fit_temperature" else "per-class")
    assert to_bytes(model) == before


@pytest.mark.parametrize("calibration", ["holdout", "cv"])
def test_rows_that_cannot_be_divided_are_refused_before_the_training(calibration: str) -> None:
    rounds: list[Any] = []
    with pytest.raises(ValueError, match="every class has only one"):
        gpuboost.fit(X[:3], [0, 1, 2], calibration=calibration, callbacks=[rounds.append], **FEW)
    assert not rounds


def test_a_constant_model_needs_no_temperature() -> None:
    with pytest.warns(UserWarning, match="no column of X"):
        model = gpuboost.fit(np.zeros((50, 2)), np.arange(50) % 2, calibration="holdout", **FEW)
    assert not hasattr(model, "temperature_")
    assert not hasattr(gpuboost.fit(X, np.zeros(N, int), calibration="cv", **FEW), "temperature_")


def test_forged_attributes_are_refused() -> None:
    model = fitted(calibration="holdout")
    encoder = LabelEncoder(model.classes_, False)
    assert len(encoder.classes) == 3
    for wrong in (0.0, float("nan"), "1", 1e9, 3):
        model.temperature_ = wrong
        with pytest.raises(ValueError, match="temperature_ is"):
            to_bytes(model)
    del model.temperature_
    for bad in (np.ones((2, 2)), np.ones((2, 3), np.float32), -np.ones((2, 3)), np.full((2, 3), np.inf)):
        model.class_sigmoids_ = bad
        with pytest.raises(ValueError, match="class_sigmoids_ are not"):
            to_bytes(model)

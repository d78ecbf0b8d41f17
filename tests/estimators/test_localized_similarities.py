"""LocalizedSimilaritiesClassifier: its points, what it says of them, its files, its parameters, and what it refuses."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

import gpuboost
from gpuboost import LocalizedSimilaritiesClassifier, OutputCodeClassifier
from gpuboost.estimators.parts import fit_worker
from gpuboost.peers.local_rows import LocalRows
from gpuboost.peers.threads import run_workers
from gpuboost.persistence.model_file import describe, to_bytes
from tests.traps.problem import NOISY, X, Y

NAMES = np.array(["north", "south", "west"])
COSTS = np.array([[0.0, 1.0, 4.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
RNG = np.random.default_rng(2)
ORDER = RNG.permutation(len(X))


def make(**params: Any) -> LocalizedSimilaritiesClassifier:
    return LocalizedSimilaritiesClassifier(**{"n_estimators": 8, "device": "cpu", "n_jobs": 1, "random_state": 0, **params})


def digest(model: LocalizedSimilaritiesClassifier) -> str:
    return model.ensemble_.digest()


# ---- points ------------------------------------------------------------------------------------------------------------------


def test_the_points_are_training_rows() -> None:
    labels = NAMES[NOISY]
    model = make(max_bins=64).fit(X, labels)
    rows = model.point_rows_
    assert len(rows) == len(set(rows.tolist())) == model.ensemble_.n_points > 3
    assert (model.point_labels_ == labels[rows]).all()
    assert (abs(model.points_ - X[rows]) <= model.feature_scale_.unit / 2 * (1 + 1e-12)).all()
    assert np.array_equal(model.feature_scale_.transform(X[rows]), model.ensemble_.levels)


def test_rows_without_weight_are_no_points() -> None:
    weights = np.where(np.arange(120) % 2, 1.0, 0.0)
    model = make(n_estimators=20).fit(X, NOISY, sample_weight=weights)
    assert (model.point_rows_ % 2 == 1).all()
    one, other = model.decision_function(X), make(n_estimators=20).fit(X[1::2], NOISY[1::2]).decision_function(X)
    assert np.array_equal(one, other)


def test_scores_by_hand() -> None:
    """Predictions are made of the model's own numbers: distances between levels, and signs."""
    model = make(n_estimators=15).fit(X, NOISY)
    levels, similarities = model.feature_scale_.transform(X).astype(int), model.ensemble_
    squares = ((levels[:, None] - similarities.levels.astype(int)) ** 2).sum(axis=2)
    scores = np.zeros((120, 3))
    for t in range(15):
        first, second = int(similarities.first[t]), int(similarities.second[t])
        limit = squares[:, second] if second >= 0 else similarities.radius[t]
        near = squares[:, first] <= limit if first >= 0 else np.ones(120, bool)
        scores += np.where(near, 1.0, -1.0)[:, None] * similarities.coefficients[t]
    assert np.array_equal(model.decision_function(X), scores)
    assert np.array_equal(list(model.staged_decision_function(X))[-1], scores)
    assert model.score(X, NOISY) == (scores.argmax(axis=1) == NOISY).mean()
    p = 1 / (1 + np.exp(-2 * scores))
    assert model.predict_proba(X) == pytest.approx(p / p.sum(axis=1, keepdims=True), rel=1e-12)


def test_the_order_of_the_rows_does_not_matter() -> None:
    one, other = make().fit(X, NOISY), make().fit(X[ORDER], NOISY[ORDER])
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    assert np.array_equal(one.point_rows_, ORDER[other.point_rows_])


def test_explanations_add_up() -> None:
    model = make(n_estimators=40).fit(X, NAMES[NOISY])
    found = model.explain(X)
    scores = model.decision_function(X)
    ranked = np.sort(scores, axis=1)
    assert found.lead == pytest.approx(ranked[:, -1] - ranked[:, -2], abs=1e-12)
    assert found.base + found.contributions.sum(axis=1) == pytest.approx(found.lead, abs=1e-9)
    assert (found.predicted == model.predict(X)).all()
    assert (found.predicted != found.next_label).all()
    assert np.array_equal(found.rows, model.point_rows_)
    strongest = found.strongest(7, 3)
    assert [abs(c) for _, _, c in strongest] == sorted(abs(found.contributions[7]))[::-1][:3]
    assert all(label == NAMES[NOISY[row]] for row, label, _ in strongest)


def test_an_explanation_by_hand() -> None:
    # Two rows of two classes: one round, the nearer of both, and all of the lead is that point's.
    model = make(n_estimators=5).fit([[0.0], [10.0]], ["a", "b"])
    found = model.explain([[1.0], [9.0]])
    assert found.predicted.tolist() == ["a", "b"]
    assert (found.labels[found.contributions.argmax(axis=1)] == found.predicted).all() or model.ensemble_.n_points == 1
    assert found.base.tolist() == [0, 0]
    assert found.contributions.sum(axis=1) == pytest.approx(found.lead)
    assert found.lead[0] > 0


# ---- data --------------------------------------------------------------------------------------------------------------------


def test_missing_values_are_means() -> None:
    holes = X.copy()
    holes[::7, 1] = np.nan
    model = make().fit(holes, NOISY)
    filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
    assert np.array_equal(model.decision_function(holes), model.decision_function(filled))
    assert np.isfinite(model.decision_function(np.full((1, 3), np.nan))).all()


def test_units_of_columns() -> None:
    moved = X * [1.0, 2.0**20, 2.0**-30]
    assert make().fit(X, NOISY).score(X, NOISY) == make().fit(moved, NOISY).score(moved, NOISY)
    common = make(scaling="common").fit(moved, NOISY)
    assert common.feature_scale_.top.tolist() == [0, 254, 0]
    assert (common.points_[:, 0] == common.points_[0, 0]).all()


def test_data_frames_and_texts() -> None:
    frame = pd.DataFrame(X, columns=list("abc"))
    model = make().fit(frame, NAMES[NOISY])
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert set(model.predict(frame)) <= set(NAMES)
    with pytest.raises(ValueError, match=r"feature names|columns"):
        model.predict(frame[["b", "a", "c"]].rename(columns={"b": "d"}))


def test_nothing_to_learn_from() -> None:
    labels = np.repeat([0, 1, 2], [20, 30, 50])
    with pytest.warns(UserWarning, match="no column"):
        model = make().fit(np.zeros((100, 1)), labels)
    assert model.predict_proba([[0.0]]) == pytest.approx(np.array([[0.2, 0.3, 0.5]]), rel=1e-9)
    assert model.ensemble_.n_points == 0
    assert model.points_.shape == (0, 1)
    with pytest.warns(UserWarning, match="no column"):
        costs = make(cost_matrix=[[0, 9, 9], [1, 0, 1], [1, 1, 0]]).fit(np.zeros((100, 1)), labels)
    assert costs.predict([[0.0]]).tolist() == [0]
    one = make().fit(X, np.zeros(120))
    assert one.predict(X[:2]).tolist() == [0, 0]
    assert one.explain(X[:2]).lead.shape == (2,)


# ---- training ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"cost_matrix": COSTS}, {"anchor": "best", "balls": False, "max_candidates": 4}])
def test_numpy_and_cpu_agree(params: dict[str, Any]) -> None:
    one, other = (make(device=device, **params).fit(X, NOISY) for device in ("numpy", "cpu"))
    assert digest(one) == digest(other)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))


def test_a_warm_start_is_one_long_training() -> None:
    model = make(n_estimators=3, warm_start=True).fit(X, NOISY)
    model.set_params(n_estimators=8).fit(X, NOISY)
    assert digest(model) == digest(make().fit(X, NOISY))
    with pytest.raises(ValueError, match="another cost_matrix"):
        model.set_params(cost_matrix=COSTS, n_estimators=9).fit(X, NOISY)
    with pytest.raises(ValueError, match='another scaling, got scaling="common"'):
        model.set_params(cost_matrix=None, scaling="common").fit(X, NOISY)
    assert digest(model) == digest(make().fit(X, NOISY))


def test_early_stopping_and_callbacks() -> None:
    model = make(n_estimators=60, early_stopping="patience", n_iter_no_change=10).fit(X, NOISY)
    assert model.n_estimators_ == int(np.argmin(model.history_["valid_error"])) + 1 == model.ensemble_.n_rounds
    stopped = make(callbacks=[lambda progress: progress.n_rounds == 3]).fit(X, NOISY)
    assert (stopped.n_estimators_, stopped.stop_reason_) == (3, "a callback asked to stop")
    watched = make().fit(X, NOISY, eval_set=(X, NOISY))
    assert watched.history_["valid_loss"] == pytest.approx(watched.history_["train_loss"], rel=1e-6)
    assert watched.history_["valid_error"] == watched.history_["train_error"]


def test_costly_mistakes_become_rare() -> None:
    costs = 1.0 - np.eye(3)
    costs[2] *= 20
    blind, costly = make().fit(X, NOISY), make(cost_matrix=costs).fit(X, NOISY)
    missed = [int((model.predict(X)[NOISY == 2] != 2).sum()) for model in (blind, costly)]
    assert missed[1] < missed[0]
    assert costly.expected_cost(X, NOISY) < blind.expected_cost(X, NOISY, costs)
    assert not hasattr(costly, "predict_proba")
    with pytest.raises(AttributeError, match="a LocalizedSimilaritiesClassifier that was trained with unequal costs"):
        costly.predict_proba(X)


def test_it_learns() -> None:
    iris = load_iris(return_X_y=True)
    model = make(n_estimators=80).fit(iris[0][::2], iris[1][::2])
    assert model.score(iris[0][1::2], iris[1][1::2]) > 0.92
    assert make(n_estimators=150).fit(X, NOISY).score(X, NOISY) == 1.0  # any labels of distinct rows, in time


# ---- files and tools ---------------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    model = make(cost_matrix={str(t): dict(zip(NAMES, row, strict=True)) for t, row in zip(NAMES, COSTS.tolist(), strict=True)})
    model.fit(X, NAMES[NOISY])
    model.save(tmp_path / "model")
    loaded = gpuboost.load(tmp_path / "model", device="cpu", n_jobs=1)
    assert digest(loaded) == digest(model)
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.point_labels_.tolist() == model.point_labels_.tolist()
    facts = describe(tmp_path / "model")
    assert (facts["n_points"], facts["n_rounds"], facts["importances"]) == (model.ensemble_.n_points, 8, None)
    assert facts["digest"] == digest(model)
    assert (tmp_path / "model").stat().st_size < 20_000
    loaded.set_params(n_estimators=11, warm_start=True).fit(X, NAMES[NOISY])
    assert digest(loaded) == digest(clone(model).set_params(n_estimators=11).fit(X, NAMES[NOISY]))


def test_no_training_set_in_a_file(tmp_path: Path) -> None:
    many, labels = np.repeat(X, 50, axis=0) + 0.01 * RNG.normal(size=(6000, 3)), np.repeat(NOISY, 50)
    make(n_estimators=5).fit(many, labels).save(tmp_path / "model")
    assert (tmp_path / "model").stat().st_size < 8000  # 6000 rows of three levels would be 18000


def test_pickles_and_output_codes(tmp_path: Path) -> None:
    model = make().fit(X, NOISY)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    coded = OutputCodeClassifier(make(n_estimators=4)).fit(X, NAMES[NOISY])
    coded.save(tmp_path / "codes")
    assert np.array_equal(gpuboost.load(tmp_path / "codes").predict(X), coded.predict(X))
    assert describe(tmp_path / "codes")["n_points"] > 0


def test_fit_knows_the_algorithm() -> None:
    model = gpuboost.fit(X, Y, algorithm="localized-similarities", device="cpu", n_estimators=3)
    assert isinstance(model, LocalizedSimilaritiesClassifier)


# ---- what is refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"anchor": "heaviest"}, ValueError, 'anchor must be one of "random", "best", got \'heaviest\''),
        ({"balls": 1}, TypeError, "balls must be True or False, got 1"),
        ({"max_candidates": 0}, ValueError, "max_candidates must be"),
        ({"scaling": "minmax"}, ValueError, 'scaling must be one of "standard", "common"'),
        ({"max_bins": 256}, ValueError, "max_bins"),
    ],
)
def test_parameters_that_are_wrong(params: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(**params).fit(X, NOISY)


def test_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="needs one label a row"):
        make().fit(X, np.c_[NOISY == 0, NOISY > 0])
    with pytest.raises(ValueError, match="at most 8321 features"):
        make().fit(np.zeros((2, 8322)), [0, 1])


def test_what_trees_have() -> None:
    model = make().fit(X, NOISY)
    for name in ("bin_mapper_", "feature_importances_"):
        with pytest.raises(AttributeError, match=f"compares rows with training points: it has no {name}, but points_"):
            getattr(model, name)
    for export in (model.to_onnx, model.to_treelite, model.to_dict, lambda: model.to_shap(X)):
        with pytest.raises(
            TypeError, match=r"only models of trees can be exported, but this Loc.* compares rows with training"
        ):
            export()
    for draw in (model.plot.tree, model.plot.importances):
        with pytest.raises(ValueError, match="compares rows with training points: it has no trees"):
            draw()


def test_attributes_before_the_fit() -> None:
    for name in ("ensemble_", "points_", "point_rows_", "point_labels_", "feature_scale_"):
        assert not hasattr(make(), name)


def test_workers_are_refused() -> None:
    def work(peers: Any) -> None:
        fit_worker(make(), LocalRows([X], [NOISY], None, [120 * peers.rank]), peers)

    with pytest.raises(ValueError, match="trains on one worker"):
        run_workers(2, work)


def test_one_worker_is_no_worker() -> None:
    def work(peers: Any) -> bytes:
        return fit_worker(make(), LocalRows([X[:50], X[50:]], [NOISY[:50], NOISY[50:]], None, [0, 50]), peers)

    assert run_workers(1, work) == [bytes(to_bytes(make().fit(X, NOISY)))]


def test_rows_cannot_leave_early_and_models_are_not_joined() -> None:
    model = make().fit(X, NOISY)
    for early in (lambda: model.fit_early_exit(X), lambda: model.predict(X, early_exit="exact")):
        with pytest.raises(TypeError, match=r"needs a model of trees: a Loc.* compares rows with training points"):
            early()
    with pytest.raises(TypeError, match=r"models\[0\] has no trees to join: a Loc.* compares rows with training points"):
        gpuboost.average([model, model])


def test_temperatures() -> None:
    model = make(n_estimators=40).fit(X[:80], NOISY[:80])
    labels, scores = model.predict(X), model.decision_function(X)
    before = log_loss(NOISY[80:], model.predict_proba(X[80:]))
    model.calibrate(X[80:], NOISY[80:])
    assert log_loss(NOISY[80:], model.predict_proba(X[80:])) < before
    assert (model.predict(X) == labels).all()
    assert np.array_equal(model.decision_function(X), scores)


def test_columns_that_are_computed() -> None:
    class Doubled(gpuboost.features.ComputedMatrix):
        dtype = np.dtype(np.float64)

        def __init__(self, rows: Any) -> None:
            self.rows = rows

        @property
        def shape(self) -> tuple[int, int]:
            return self.rows.shape

        def take(self, rows: Any) -> Any:
            return Doubled(self.rows[rows])

        def columns(self, first: int, stop: int) -> Any:
            return 2 * self.rows[:, first:stop]

    one, other = make().fit(2 * X, NOISY), make().fit(Doubled(X), NOISY)
    assert digest(one) == digest(other)
    assert np.array_equal(one.predict(2 * X), other.predict(Doubled(X)))


def test_a_map_has_rings_around_the_points() -> None:
    pytest.importorskip("matplotlib")
    model = make().fit(X[:, :2], NOISY)
    axes = model.plot.decision_map(X[:, :2], NOISY, n_points=20)
    (rings,) = [one for one in axes.collections if one.get_label() == "points that rows are compared with"]
    assert np.array_equal(np.asarray(rings.get_offsets()), model.points_)
    no_rings = make().fit(X, NOISY).plot.decision_map(X, NOISY, columns=(0, 1), n_points=20)
    assert all(one.get_label() != "points that rows are compared with" for one in no_rings.collections)

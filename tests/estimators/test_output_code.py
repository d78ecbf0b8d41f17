"""`OutputCodeClassifier`: what its boosters are trained on, how they decide together, and that it keeps what it says."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

import gpuboost
from gpuboost import (
    AdaBoostMHClassifier,
    FilterBoostClassifier,
    GambleClassifier,
    LogitBoostClassifier,
    MartClassifier,
    ModelFormatError,
    OutputCodeClassifier,
    RebelClassifier,
    SAMMEClassifier,
    StreamError,
)
from gpuboost.codes.decoding import decode
from gpuboost.codes.matrices import minimum_distance
from gpuboost.estimators.base import BoostingClassifier
from gpuboost.persistence.model_file import describe
from gpuboost.persistence.safetensors import pack, read
from tests.cli.tables import NUMPY, refused, run, told
from tests.models import LABELS, X, Y

HOST: dict[str, Any] = {"device": "cpu", "n_jobs": 1}
BOOSTERS = [
    AdaBoostMHClassifier(n_estimators=5, max_leaf_nodes=3, **HOST),
    SAMMEClassifier(n_estimators=5, max_leaf_nodes=3, **HOST),
    GambleClassifier(n_estimators=5, max_leaf_nodes=3, **HOST),
    RebelClassifier(n_estimators=5, **HOST),
    MartClassifier(n_estimators=5, max_leaf_nodes=3, **HOST),
    LogitBoostClassifier(n_estimators=5, max_leaf_nodes=3, **HOST),
]
BOOSTER = BOOSTERS[0]
FOUR = Y + (X[:, 1] > 0)
SIX = 2 * Y + (X[:, 1] > 0)
"""Labels of four and six classes."""


def fitted(code: Any = "all-pairs", booster: Any = BOOSTER, y: Any = LABELS, **params: Any) -> Any:
    return OutputCodeClassifier(booster, code=code, **params).fit(X, y)


@pytest.fixture(autouse=True)
def few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.codes.matrices.DRAWS", 100)


def digests(model: Any) -> list[str]:
    return [one.ensemble_.digest() for one in model.estimators_]


def test_a_column_is_the_booster_of_its_rows() -> None:
    model = fitted("all-pairs")
    assert model.classes_.tolist() == ["eggs", "ham", "späm"]
    for column, one in zip(model.code_matrix_.T, model.estimators_, strict=True):
        signs = column[np.searchsorted(model.classes_, LABELS)]
        alone = clone(BOOSTER).fit(X[signs != 0], signs[signs != 0])
        assert one.ensemble_.digest() == alone.ensemble_.digest()
        assert one.classes_.tolist() == [-1, 1]


def test_weights_pass_through() -> None:
    weights = np.arange(len(Y)) % 3
    model = OutputCodeClassifier(BOOSTER).fit(X, LABELS, sample_weight=weights)
    rows = np.repeat(np.arange(len(Y)), weights)
    assert digests(model) == digests(OutputCodeClassifier(BOOSTER).fit(X[rows], LABELS[rows]))
    # A row of weight 0 does not exist: nor does a class of such rows.
    without = OutputCodeClassifier(BOOSTER).fit(X, LABELS, sample_weight=(LABELS != "ham").astype(float))
    assert without.classes_.tolist() == ["eggs", "späm"]
    assert without.code_matrix_.tolist() == [[1], [-1]]


@pytest.mark.parametrize("booster", BOOSTERS, ids=lambda one: type(one).__name__)
def test_the_margins_are_those_of_the_loss(booster: Any) -> None:
    """At the prior the loss is lowest: its slope in the margin, summed over the rows, is 0."""
    y = np.array([1] * 3 + [-1] * 5)
    with pytest.warns(UserWarning, match="no column of X tells rows apart"):
        model = OutputCodeClassifier(booster, code=[[-1], [1]]).fit(np.zeros((8, 1)), y)
    margin = float(model._margins(np.zeros((1, 1)))[0, 0])
    slope = {"exponential": lambda z: -math.exp(-z), "logistic": lambda z: -1 / (1 + math.exp(z))}[booster._margin_loss]
    assert 3 * slope(margin) - 5 * slope(-margin) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("booster", BOOSTERS, ids=lambda one: type(one).__name__)
def test_two_classes_are_the_booster_alone(booster: Any) -> None:
    y = np.array(["no", "yes"])[(Y > 0).astype(int)]
    model, alone = fitted("dense", booster, y, random_state=0), clone(booster).fit(X, y)
    assert model.predict(X).tolist() == alone.predict(X).tolist()
    assert model.decision_function(X) == pytest.approx(alone.decision_function(X), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("booster", BOOSTERS[::5], ids=lambda one: type(one).__name__)
def test_one_against_all_is_the_largest_margin(booster: Any) -> None:
    model = fitted("one-vs-all", booster)
    margins = np.stack([one.decision_function(X) for one in model.estimators_], axis=1)
    assert np.array_equal(model.predict(X), model.classes_[margins.argmax(axis=1)])
    assert model.minimum_distance_ == 2


@pytest.mark.parametrize("code", ["all-pairs", "one-vs-all", "dense", "sparse", "exhaustive"])
def test_the_error_bound_holds(code: str) -> None:
    """Theorem 1 and corollary 2 of Allwein et al., with the loss of a zero as L(0)."""
    for booster, loss, at_zero in (
        (BOOSTER, lambda z: np.exp(-z), 1.0),
        (BOOSTERS[-1], lambda z: np.log1p(np.exp(-z)), math.log(2)),
    ):
        model = fitted(code, clone(booster).set_params(n_estimators=40), random_state=0)
        z = model.code_matrix_[np.searchsorted(model.classes_, LABELS)] * model._margins(X)
        n_columns = z.shape[1]
        bound = n_columns * loss(z).mean() / (model.minimum_distance_ * at_zero)
        assert 1 - model.score(X, LABELS) <= bound
        assert 1 - model.set_params(decoding="hamming").score(X, LABELS) <= 2 * bound
        assert bound < 1  # it says something
        assert model.minimum_distance_ == minimum_distance(model.code_matrix_)


def test_decoding_is_a_choice_of_the_prediction() -> None:
    model = fitted("sparse", random_state=0)
    margins = np.stack([0.5 * one.decision_function(X) for one in model.estimators_], axis=1)
    assert model.decision_function(X).tobytes() == decode(margins, model.code_matrix_, "exponential").tobytes()
    model.set_params(decoding="hamming")
    assert model.decision_function(X).tobytes() == decode(margins, model.code_matrix_, "hamming").tobytes()


@pytest.mark.parametrize("code", ["all-pairs", "dense"])
def test_bytes_are_equal_on_all_backends(code: str, tmp_path: Path) -> None:
    files = []
    for name, host in (("numpy", {"device": "numpy"}), ("cpu", HOST), ("threads", {"device": "cpu", "n_jobs": 2})):
        model = fitted(code, clone(BOOSTER).set_params(**host, subsample=0.8), FOUR, random_state=4)
        model.save(tmp_path / name)
        files.append(((tmp_path / name).read_bytes(), model.decision_function(X).tobytes()))
    assert files[0] == files[1] == files[2]


def test_blocks_do_not_change_a_score(monkeypatch: pytest.MonkeyPatch) -> None:
    model = fitted()
    scores = model.decision_function(X)
    monkeypatch.setattr("gpuboost.estimators.output_code.BLOCK_BYTES", 1000)
    assert model.decision_function(X).tobytes() == scores.tobytes()


# ---- parameters --------------------------------------------------------------------------------------------------------------


def test_random_states() -> None:
    booster = clone(BOOSTER).set_params(subsample=0.5)
    one, same, other = (fitted("dense", booster, SIX, random_state=seed) for seed in (1, 1, 2))
    assert np.array_equal(one.code_matrix_, same.code_matrix_)
    assert digests(one) == digests(same)
    assert not np.array_equal(one.code_matrix_, other.code_matrix_)
    assert len({column.random_state for column in one.estimators_}) == len(one.estimators_)
    own = fitted("all-pairs", clone(booster).set_params(random_state=3), random_state=1)
    assert {column.random_state for column in own.estimators_} == {3}
    assert {column.random_state for column in fitted().estimators_} == {None}


def test_it_is_a_classifier_of_scikit_learn() -> None:
    model = OutputCodeClassifier(clone(BOOSTER), code="dense", decoding="hamming", random_state=3)
    assert clone(model).get_params()["estimator__n_estimators"] == 5
    assert model.set_params(estimator__max_leaf_nodes=4).estimator.max_leaf_nodes == 4
    search = GridSearchCV(OutputCodeClassifier(clone(BOOSTER)), {"code": ["all-pairs", "one-vs-all"]}, cv=2).fit(X, LABELS)
    assert search.best_score_ > 0.5
    again = pickle.loads(pickle.dumps(fitted()))
    assert np.array_equal(again.predict(X), fitted().predict(X))
    assert not hasattr(model, "predict_proba")
    assert gpuboost.OutputCodeClassifier is gpuboost.estimators.OutputCodeClassifier is OutputCodeClassifier


def test_tables_and_missing_values() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = OutputCodeClassifier(BOOSTER).fit(frame, LABELS)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert np.array_equal(model.predict(frame), fitted().predict(X))
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[list("abdc")])


MATRIX = [[1, -1], [-1, 1]]
BAD: list[tuple[Any, Any, type[Exception], str]] = [
    ({"estimator": LogisticRegression()}, LABELS, TypeError, r"a classifier of gpuboost, .* got LogisticRegression\(\)"),
    ({"estimator": AdaBoostMHClassifier}, LABELS, TypeError, "a classifier of gpuboost, such as AdaBoostMHClassifier"),
    ({"estimator": OutputCodeClassifier(BOOSTER)}, LABELS, TypeError, "a classifier of gpuboost"),
    ({"decoding": "votes"}, LABELS, ValueError, 'decoding must be one of "loss", "hamming", got \'votes\''),
    ({"code": "pairs"}, LABELS, ValueError, "code must be one of"),
    ({"code": MATRIX}, LABELS, ValueError, r"a row for each of the 3 classes \['eggs', 'ham', 'späm'\]"),
    ({"random_state": -1}, LABELS, ValueError, "random_state must be an integer of at least 0, got -1"),
    ({}, np.eye(3, dtype=int)[Y], ValueError, "OutputCodeClassifier needs one label a row, but y is an indicator matrix"),
    ({}, np.full(len(Y), "ham"), ValueError, r"a y of at least two classes, got one class: \['ham'\]"),
    ({"estimator": clone(BOOSTER).set_params(max_bins=1)}, LABELS, ValueError, "max_bins must be"),
]


@pytest.mark.parametrize(("params", "y", "error", "message"), BAD)
def test_errors_leave_an_earlier_fit(params: dict[str, Any], y: Any, error: type[Exception], message: str) -> None:
    model = OutputCodeClassifier(BOOSTER).fit(X, LABELS)
    before = {name: value for name, value in vars(model).items() if name.endswith("_")}
    with pytest.raises(error, match=message):
        model.set_params(**params).fit(X, y)
    assert {name: value for name, value in vars(model).items() if name.endswith("_")} == before


def test_an_error_of_a_booster_names_the_column() -> None:
    with pytest.raises(ValueError, match="max_bins must be") as error:
        fitted(booster=clone(BOOSTER).set_params(max_bins=1))
    assert error.value.__notes__ == ["(in column 0 of the 3 columns of the code, whose labels are -1 and 1)"]


class WithoutLoss(AdaBoostMHClassifier):
    _margin_loss = None


def test_a_booster_that_names_no_loss_has_votes() -> None:
    assert BoostingClassifier._margin_loss is None
    booster = WithoutLoss(n_estimators=5, max_leaf_nodes=3, **HOST)
    with pytest.raises(TypeError, match=r'decoding="loss" needs a booster with a loss .* WithoutLoss .* decoding="hamming"'):
        fitted(booster=booster)
    votes = fitted(booster=booster, decoding="hamming")
    assert np.array_equal(votes.predict(X), fitted(decoding="hamming").predict(X))


@pytest.mark.parametrize("at", [0, 7])
def test_an_interrupt_leaves_an_earlier_fit(at: int) -> None:
    model = OutputCodeClassifier(clone(BOOSTER)).fit(X, LABELS)
    columns = model.estimators_
    seen = []

    def interrupt(progress: Any) -> None:
        seen.append(progress)
        if len(seen) > at:
            raise KeyboardInterrupt

    model.set_params(estimator__callbacks=[interrupt])
    with pytest.warns(UserWarning, match="interrupted after"), pytest.raises(KeyboardInterrupt, match=f"column {at // 5} of"):
        model.fit(X, LABELS)
    assert model.estimators_ is columns
    assert len(seen) == at + 1


# ---- files -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("booster", BOOSTERS, ids=lambda one: type(one).__name__)
def test_a_file_has_all_of_it(booster: Any, tmp_path: Path) -> None:
    path, second = tmp_path / "first", tmp_path / "second"
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = OutputCodeClassifier(booster, code=np.array([[1, 0], [-1, 1], [0, -1]])).fit(frame, LABELS)
    model.save(path)
    loaded = gpuboost.load(path, **HOST)
    loaded.save(second)
    assert path.read_bytes() == second.read_bytes()
    assert loaded.decision_function(frame).tobytes() == model.decision_function(frame).tobytes()
    assert loaded.predict(frame).tolist() == model.predict(frame).tolist()
    assert repr(loaded) == repr(model)
    assert loaded.code_matrix_.tobytes() == model.code_matrix_.tobytes()
    assert (loaded.minimum_distance_, loaded.estimators_[0].n_jobs) == (model.minimum_distance_, 1)
    facts = describe(path)
    assert facts["estimator"] == "OutputCodeClassifier"
    assert facts["n_trees"] == sum(one.ensemble_.n_trees for one in model.estimators_)
    shares = sum(one.feature_importances_ for one in model.estimators_)
    assert facts["importances"] == pytest.approx(shares / shares.sum())


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    model = fitted(booster=WithoutLoss(n_estimators=2, **HOST), decoding="hamming")
    with pytest.raises(TypeError, match=r"only the classifiers of gpuboost can be saved, not .*WithoutLoss"):
        model.save(tmp_path / "model")


def damaged(content: dict[str, Any], arrays: dict[str, Any], how: str) -> None:
    parts = content["parts"]
    if how == "no parts":
        del content["parts"]
    elif how == "a part too few":
        parts["contents"].pop()
        for name in [name for name in arrays if name.startswith("part 3/")]:
            del arrays[name]
    elif how == "arrays of no part":
        arrays["part 9/values/0"] = np.zeros(3)
    elif how == "another booster":
        parts["contents"][0]["estimator"] = "SAMMEClassifier"
    elif how == "itself as a part":
        parts["template"]["estimator"] = "OutputCodeClassifier"
    elif how == "a part of other labels":
        parts["contents"][0]["classes"]["labels"] = [0, 1]
    elif how == "another code":
        arrays[content["fitted"]["code_matrix_"]["array"]][0, 0] = -1
    elif how == "no list":
        content["parts"] = {"template": {}, "contents": 3}
    elif how == "an array too many":
        arrays["part 0/values/0"] = np.zeros(3)


@pytest.mark.parametrize(
    "how",
    [
        "no parts",
        "a part too few",
        "arrays of no part",
        "another booster",
        "itself as a part",
        "a part of other labels",
        "another code",
        "no list",
        "an array too many",
    ],
)
def test_a_file_that_says_what_cannot_be_is_refused(how: str, tmp_path: Path) -> None:
    fitted().save(tmp_path / "model")
    file = read(tmp_path / "model")
    content = {name: value for name, value in file.content.items() if name not in ("sha256", "format")}
    arrays = {name: array.copy() for name, array in file.arrays.items()}
    (tmp_path / "same").write_bytes(pack(content, arrays))
    assert gpuboost.load(tmp_path / "same").predict(X).tolist() == fitted().predict(X).tolist()
    damaged(content, arrays, how)
    (tmp_path / "damaged").write_bytes(pack(content, arrays))
    with pytest.raises(ModelFormatError):
        gpuboost.load(tmp_path / "damaged")


def test_the_command_line_takes_its_files(tmp_path: Path) -> None:
    model, table = tmp_path / "model", tmp_path / "table.csv"
    fitted().save(model)
    pd.DataFrame(X).assign(kind=LABELS).to_csv(table, index=False, header=False)
    pd.DataFrame(X).to_csv(tmp_path / "x.csv", index=False, header=False)
    facts = told("evaluate", model, table, "--no-header", "--target", "4", *NUMPY)
    assert facts["error"] == pytest.approx(1 - fitted().score(X, LABELS))
    run("predict", model, tmp_path / "x.csv", "--no-header", "--out", tmp_path / "p.csv", *NUMPY)
    assert (tmp_path / "p.csv").read_text("utf-8").split()[1:] == fitted().predict(X).tolist()
    assert "decodes binary models: it has no probabilities" in refused(
        "predict", model, tmp_path / "x.csv", "--no-header", "--proba", "--out", tmp_path / "q.csv", *NUMPY
    )
    assert told("inspect", model)["n_rounds"] == 15
    assert "of which there are no pictures" in refused("plot", model, "importances", "--out", tmp_path / "p.png", status=2)


class TestStreams:
    """A stream of rows, one booster a column after another."""

    X = np.random.default_rng(0).normal(size=(600, 3))
    y = np.digitize(X[:, 0], [-0.5, 0.5])

    def model(self) -> OutputCodeClassifier:
        booster = FilterBoostClassifier(n_estimators=4, examples_per_round=50, random_state=0, device="cpu", n_jobs=1)
        return OutputCodeClassifier(booster, code="all-pairs")

    def test_a_column_is_the_booster_of_its_own_rows_and_signs(self) -> None:
        coded = self.model().fit_stream((self.X, self.y), classes=[0, 1, 2])
        assert coded.code_matrix_[:, 1].tolist() == [1, 0, -1]  # of the classes 0 and 2
        signs, weight = np.array([1, 1, -1])[self.y], (self.y != 1).astype(float)
        alone = clone(coded.estimator).fit_stream((self.X, signs, weight), classes=[-1, 1])
        assert coded.estimators_[1].ensemble_.digest() == alone.ensemble_.digest()

    def test_rows_that_come_once_are_refused(self) -> None:
        with pytest.raises(ValueError, match="gives its rows once"):
            self.model().fit_stream(iter([(self.X, self.y)]), classes=[0, 1, 2])

    def test_a_booster_without_streams_is_refused(self) -> None:
        with pytest.raises(TypeError, match="estimator must have fit_stream"):
            OutputCodeClassifier(AdaBoostMHClassifier()).fit_stream((self.X, self.y), classes=[0, 1, 2])

    def test_a_label_that_is_none_of_the_classes(self) -> None:
        with pytest.raises(StreamError, match="none of the classes"):
            self.model().fit_stream((self.X, self.y), classes=[0, 1])


# ---- one booster of all columns: AdaBoost.MO ---------------------------------------------------------------------------------


def test_with_the_identity_code_adaboost_mo_is_adaboost_mh() -> None:
    model = fitted("one-vs-all", joint=True)
    alone = clone(BOOSTER).set_params(initial_weights="uniform").fit(X, LABELS)
    assert [one.ensemble_.digest() for one in model.estimators_] == [alone.ensemble_.digest()]
    assert (model.predict(X) == alone.predict(X)).all()


@pytest.mark.parametrize("decoding", ["loss", "hamming"])
def test_the_columns_of_adaboost_mo_are_decoded(decoding: str, tmp_path: Path) -> None:
    model = fitted("exhaustive", y=FOUR, joint=True, decoding=decoding)
    code, (one,) = model.code_matrix_, model.estimators_
    same = clone(BOOSTER).fit(X, (code[FOUR] > 0).astype(int))
    assert one.ensemble_.digest() == same.ensemble_.digest()
    margins = same.decision_function(X)
    scores = decode(margins, code, "exponential" if decoding == "loss" else "hamming")
    assert (model.predict(X) == scores.argmax(axis=1)).all()
    model.save(tmp_path / "mo")
    loaded = gpuboost.load(tmp_path / "mo", **HOST)
    assert loaded.joint is True
    assert (loaded.decision_function(X) == model.decision_function(X)).all()


def test_two_classes_are_one_column_whatever_is_joint() -> None:
    binary = LABELS == "ham"
    assert digests(fitted(y=binary, joint=True)) == digests(fitted(y=binary))


def test_what_cannot_be_joint() -> None:
    with pytest.raises(ValueError, match="joint=True needs a code without zeros"):
        fitted("all-pairs", joint=True)
    with pytest.raises(TypeError, match="joint=True needs a booster of several labels a row"):
        fitted("one-vs-all", MartClassifier(), joint=True)
    with pytest.raises(TypeError, match="joint must be"):
        fitted("one-vs-all", joint="yes")
    with pytest.raises(ValueError, match="joint=True needs all rows at once"):
        OutputCodeClassifier(BOOSTER, joint=True).fit_stream([(X, LABELS)], classes=["eggs", "ham", "späm"])
    with pytest.raises(ValueError, match="single-label") as caught:
        fitted("one-vs-all", clone(BOOSTER).set_params(initial_weights="single-label"), joint=True)
    assert "all 3 columns of the code" in "".join(caught.value.__notes__)

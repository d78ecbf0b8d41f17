"""FilterBoostClassifier: one stream is one model, however it is read, and faults lose nothing."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import gpuboost
from gpuboost import Checkpoint, FilterBoostClassifier
from gpuboost.backends.cpu.threads import Team
from gpuboost.boosters.filtering import examples as rows_module
from gpuboost.boosters.filtering import filterboost
from gpuboost.errors import StreamError
from gpuboost.estimators import stream_fitting
from gpuboost.streams import ArraySource, BatchSource
from tests.problems import blobs

DATA = blobs(1500, 4, 3, seed=2, noise=1.5)
X, Y = DATA.X, DATA.signs.argmax(axis=1)
LABELS = np.array(["ham", "eggs", "späm"])[Y]
QUICK: dict[str, Any] = {
    "n_estimators": 8,
    "max_leaf_nodes": 4,
    "examples_per_round": 150,
    "n_bin_rows": 400,
    "random_state": 3,
    "device": "numpy",
    "n_jobs": 1,
}


def classifier(**params: Any) -> FilterBoostClassifier:
    return FilterBoostClassifier(**{**QUICK, **params})


def stream(source: Any, classes: Any = None, **params: Any) -> FilterBoostClassifier:
    return classifier(**params).fit_stream(source, classes)


def content(model: FilterBoostClassifier) -> tuple[Any, ...]:
    """All that must not depend on the machine: the bytes of the file that the model would be saved to."""
    history = {key: values for key, values in model.history_.items() if key != "seconds"}
    return model.ensemble_.digest(), model.bin_mapper_.cut_values.tobytes(), repr(history), model.stop_reason_


def batches(X: Any, y: Any, n: int, weight: Any = None) -> list[Any]:
    parts = [slice(start, start + n) for start in range(0, len(y), n)]
    return [(X[rows], y[rows]) if weight is None else (X[rows], y[rows], weight[rows]) for rows in parts]


@pytest.fixture(scope="module")
def plain() -> tuple[Any, ...]:
    return content(stream((X, Y)))


# ---- one stream is one model -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 37, 1000, 65536])
def test_however_the_source_is_cut(n: int, plain: tuple[Any, ...]) -> None:
    assert content(stream(BatchSource(batches(X, Y, n)))) == plain


@pytest.mark.parametrize(("step_rows", "a_slice"), [(16, 4096), (61, 7), (1024, 4096), (1 << 20, 30), (1 << 20, 500)])
def test_however_rows_are_taken(step_rows: int, a_slice: int, plain: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_fitting, "STEP_ROWS", step_rows)
    monkeypatch.setattr(rows_module, "SLICE", a_slice)
    assert content(stream((X, Y))) == plain


def test_newton_steps_of_some_rows_do_not_depend_on_the_cuts_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filterboost, "MOST_COMPLETE", 333)
    found = set()
    for a_slice, step_rows in ((7, 61), (4096, 1 << 14), (500, 200)):
        monkeypatch.setattr(stream_fitting, "STEP_ROWS", step_rows)
        monkeypatch.setattr(rows_module, "SLICE", a_slice)
        found.add(content(stream((X, Y))))
    assert len(found) == 1


@pytest.mark.parametrize("kept_bytes", [0, 700 * 28, 10**9])
def test_whatever_is_kept(kept_bytes: int, plain: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_fitting, "STEP_ROWS", 700)
    assert content(stream((X, Y), kept_bytes=kept_bytes)) == plain


@pytest.mark.parametrize("n_jobs", [1, 2, 4])
def test_on_the_cpu(n_jobs: int, plain: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Team, "WORTH_SHARING", 4)
    assert content(stream((X, Y), device="cpu", n_jobs=n_jobs)) == plain


def test_on_the_emulated_device(plain: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuboost import devices
    from tests.candidates import EMULATED

    monkeypatch.setitem(devices.OPENERS, "place", lambda index: EMULATED["emulated-forward"]())
    assert content(stream((X, Y), device="place")) == plain


def test_passes_that_begin_again_are_a_longer_stream(plain: tuple[Any, ...]) -> None:
    # Rows keep their numbers in a pass, and a pass has its own: three copies are another stream.
    assert plain[2].count("'pass': [0.0, ") == 1
    assert content(stream((np.tile(X, (3, 1)), np.tile(Y, 3)))) != plain


def test_files_and_arrays(tmp_path: Path, plain: tuple[Any, ...]) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({**{f"x{j}": X[:, j] for j in range(4)}, "kind": Y})
    for start in (0, 500):
        parquet.write_table(
            table.slice(start, 500 if not start else None), tmp_path / f"{start:04}.parquet", row_group_size=130
        )
    model = classifier().fit_stream(tmp_path, target="kind")
    assert content(model) == plain
    assert model.feature_names_in_.tolist() == [f"x{j}" for j in range(4)]


def test_fit_is_a_stream_in_an_order_of_its_own() -> None:
    model = classifier().fit(X, LABELS)
    source = ArraySource(X, LABELS, shuffle=model._seed % 2**32)
    assert content(stream(source)) == content(model)
    assert model.classes_.tolist() == ["eggs", "ham", "späm"]


def test_weights_of_one_are_no_weights(plain: tuple[Any, ...]) -> None:
    assert content(stream((X, Y, np.ones(len(Y))))) == plain
    assert content(stream((X, Y, np.full(len(Y), 0.125)))) == plain
    assert content(classifier().fit(X, Y, np.full(len(Y), 3))) == content(classifier().fit(X, Y))


@pytest.mark.parametrize("leaf_values", ["newton", "vote"])
def test_rows_without_weight_do_not_exist(leaf_values: str) -> None:
    weight = np.ones(len(Y))
    weight[::3] = 0
    odd_X, odd_y = X.copy(), LABELS.copy()
    odd_X[::3], odd_y[::3] = 1e9, "none of the classes"
    # In a stream a row of weight 0 has a place, and no say: whatever stands in it.
    models = [content(stream((one, y, weight), leaf_values=leaf_values)) for one, y in ((X, LABELS), (odd_X, odd_y))]
    assert models[0] == models[1]
    # `fit` leaves it out.
    kept = weight > 0
    left_out = classifier(leaf_values=leaf_values).fit(odd_X, odd_y, weight)
    assert content(left_out) == content(classifier(leaf_values=leaf_values).fit(X[kept], LABELS[kept]))


def test_weights_have_a_say() -> None:
    # Where rows of class 0 weigh 20 times as much, more rows are predicted so.
    heavy = stream((X, Y, np.where(Y == 0, 20.0, 1.0)), n_estimators=20)
    assert (heavy.predict(X) == 0).sum() > (stream((X, Y), n_estimators=20).predict(X) == 0).sum() + 20
    classes = stream((X, Y), n_estimators=20, class_weight={0: 20})
    assert content(classes) == content(heavy)


# ---- a training that goes on -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [{}, {"multiclass": "oc", "leaf_values": "vote"}, {"draw": "weight", "leaf_values": "fresh"}, {"schedule": "constant"}],
)
def test_resumed_in_the_middle_of_the_stream(params: dict[str, Any], tmp_path: Path) -> None:
    whole = stream((X, LABELS), **params)
    stream((X, LABELS), n_estimators=5, callbacks=[Checkpoint(tmp_path / "c", every=3)], **params)
    resumed = gpuboost.load(tmp_path / "c", device="numpy")
    assert resumed.n_estimators_ == 3
    resumed.set_params(warm_start=True, n_estimators=8).fit_stream(BatchSource(batches(X, LABELS, 100)))
    assert content(resumed) == content(whole)
    for model, name in ((whole, "a"), (resumed, "b")):
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize(
    "params", [{}, {"draw": "all"}, {"draw": "resample", "weighting": "exponential", "leaf_values": "vote"}]
)
def test_a_fit_that_is_continued_is_one_long_fit(params: dict[str, Any]) -> None:
    model = classifier(n_estimators=3, **params).fit(X, Y)
    model = pickle.loads(pickle.dumps(model)).set_params(n_estimators=8, warm_start=True).fit(X, Y)
    assert content(model) == content(classifier(**params).fit(X, Y))


def test_a_stream_that_goes_on_where_a_generator_has_ended() -> None:
    # A source that gives its rows once is read up to the place again.
    def given() -> Iterator[Any]:
        yield from batches(X, LABELS, 100)

    first = stream(given(), n_estimators=2)
    assert (first.n_estimators_, first.stop_reason_) == (2, "n_estimators reached")
    first.set_params(n_estimators=50, warm_start=True).fit_stream(given())
    assert content(first) == content(stream(given(), n_estimators=50))
    assert first.stop_reason_ == "the source has ended after 1500 rows"
    assert sum(first.history_["draws"]) <= 1500


def test_max_examples() -> None:
    model = stream((X, Y), n_estimators=50, max_examples=2000)
    assert model.stop_reason_ == "max_examples rows have been read"
    assert 1000 < sum(model.history_["draws"]) <= 2000
    assert 1 <= model.n_estimators_ < 50
    before = content(model)
    assert content(model.set_params(warm_start=True).fit_stream((X, Y))) == before  # there is no room for another round
    assert content(model.set_params(max_examples=None, n_estimators=12).fit_stream((X, Y))) == content(
        stream((X, Y), n_estimators=12)
    )
    with pytest.raises(StreamError, match="there is no model, as there is no round: max_examples rows have been read"):
        stream((X, Y), max_examples=100)


def test_a_training_that_stops_with_the_last_row() -> None:
    # Each round takes 100 rows and 50: after ten of them nothing is left.
    params: dict[str, Any] = {"draw": "weight", "schedule": "constant", "examples_per_round": 100, "estimation_examples": 50}
    model = stream((X, Y), n_estimators=10, recycle=False, **params)
    assert (model.history_["pass"][-1], model.history_["row"][-1]) == (0, 1500)
    before = content(model)
    model.set_params(n_estimators=11, warm_start=True).fit_stream((X, Y))
    assert content(model)[:3] == before[:3]
    assert model.stop_reason_ == "the source has ended after 1500 rows"
    model.set_params(max_examples=1500, recycle=True).fit_stream((X, Y))
    assert content(model)[:3] == before[:3]
    model.set_params(max_examples=None, n_estimators=12).fit_stream((X, Y))
    assert content(model) == content(stream((X, Y), n_estimators=12, **params))


# ---- faults ------------------------------------------------------------------------------------------------------------------


def failing(at: int, error: BaseException) -> BatchSource:
    """The rows in batches of 100; row ``at`` is not reached."""

    def given() -> Iterator[Any]:
        for start in range(0, at, 100):
            yield X[start : min(start + 100, at)], LABELS[start : min(start + 100, at)]
        raise error

    return BatchSource(given)


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_fitting, "STEP_ROWS", 256)


@pytest.mark.usefixtures("small_steps")
def test_a_recycled_source_that_fails_takes_the_training_with_it() -> None:
    model = stream((X, LABELS))
    before = content(model)
    with pytest.raises(StreamError, match=r"pass 0, row 1234: OSError: the disk has gone") as caught:
        model.fit_stream(failing(1234, OSError("the disk has gone")))
    assert isinstance(caught.value.__cause__, OSError)
    assert content(model) == before
    with pytest.raises(StreamError, match="pass 4, row 1500: OSError: the disk has gone"):
        model.set_params(warm_start=True, n_estimators=100).fit_stream(failing(1500, OSError("the disk has gone")))
    assert content(model) == before


@pytest.mark.usefixtures("small_steps")
def test_a_source_that_is_read_once_and_fails_leaves_a_model() -> None:
    with pytest.warns(
        UserWarning, match=r"source failed: .* pass 0, row 1234: OSError: no more, after \d rounds; the model keeps"
    ):
        model = stream(failing(1234, OSError("no more")), recycle=False, n_estimators=50)
    assert "OSError: no more" in model.stop_reason_
    n_rounds = model.n_estimators_
    assert 2 <= n_rounds < 50
    assert content(model)[:3] == content(stream((X, LABELS), n_estimators=n_rounds, recycle=False))[:3]
    with pytest.raises(StreamError, match="pass 0, row 50: OSError: no more"):  # before there is a round
        stream(failing(50, OSError("no more")), recycle=False)


@pytest.mark.usefixtures("small_steps")
def test_a_label_that_was_not_announced() -> None:
    labels = LABELS.copy()
    labels[1300] = "spam"
    with pytest.raises(
        StreamError, match=r"row 1300 of pass 0 has the label 'spam', which is none of the classes .*by classes"
    ):
        stream((X, labels))
    with pytest.warns(UserWarning, match=r"row 1300 of pass 0 has the label 'spam'"):
        assert stream((X, labels), recycle=False, n_estimators=50).classes_.tolist() == ["eggs", "ham", "späm"]
    model = stream((X, labels), classes=["eggs", "ham", "spam", "späm"])
    assert model.classes_.tolist() == ["eggs", "ham", "spam", "späm"]
    labels[1300:1310] = "ham"
    assert content(stream((X, labels), classes=["späm", "eggs", "ham"])) == content(stream((X, labels)))


def test_classes_are_those_of_the_first_rows() -> None:
    labels = LABELS.copy()
    labels[700] = "tea"
    assert stream((X, labels), n_bin_rows=701).classes_.tolist() == ["eggs", "ham", "späm", "tea"]
    with pytest.raises(StreamError, match=r"row 700 of pass 0 has the label 'tea'"):
        stream((X, labels), n_bin_rows=700)


def test_cuts_are_those_of_a_pass_at_most() -> None:
    # Not of as many passes as make n_bin_rows, the last of them in part.
    A = np.arange(1000.0)[:, None]
    source = (A, (A[:, 0] > 300) * 1)
    cuts = [
        stream(source, n_estimators=1, max_bins=8, n_bin_rows=n).bin_mapper_.cut_values.tolist() for n in (1000, 1499, 10**7)
    ]
    assert cuts[0] == cuts[1] == cuts[2]
    assert cuts[0] == pytest.approx(np.arange(1, 8) * 125, abs=1)


def test_one_class_only() -> None:
    with pytest.raises(ValueError, match=r"at least two classes, got 1 class: .*; name all of them by classes"):
        stream((X, np.zeros(len(X), int)))
    with pytest.raises(ValueError, match="FilterBoostClassifier needs rows of at least two classes"):
        classifier().fit(X, ["ham"] * len(X))
    with pytest.raises(ValueError, match="at least two classes"):
        stream((X, Y), classes=[1])


def test_another_schema_in_the_middle(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "kind": LABELS}), tmp_path / "0.parquet")
    parquet.write_table(pa.table({"a": X[:, 0], "kind": LABELS}), tmp_path / "1.parquet")
    with pytest.raises((StreamError, ValueError), match=r"1\.parquet"):
        classifier(n_estimators=30).fit_stream(tmp_path, target="kind")
    wider = BatchSource([(X, LABELS), (X[:, :3], LABELS)])
    with pytest.raises(StreamError, match=r"batch 1 that begins with row 1500: .*3 columns, expected 4"):
        stream(wider, n_estimators=30)


@pytest.mark.parametrize("value", [0, -3, 2.5, "many", None, True])
def test_schedules_that_say_no_number(value: Any) -> None:
    model = stream((X, Y))
    before = content(model)
    for name in ("examples_per_round", "estimation_examples"):
        odd = clone(model).set_params(**{name: lambda t: 100 if t < 3 else value})
        with pytest.raises(ValueError, match=r"rows of round 3 must be an integer of at least 1, got "):
            odd.fit_stream((X, Y))
        model.set_params(**{name: lambda t: 100 if t < 3 else value})
        with pytest.raises(ValueError, match=r"round 3"):
            model.fit_stream((X, Y))
        model.set_params(**{name: 150})
    assert content(model) == before


def test_schedules() -> None:
    # ln(t + 1) times the number; what a callable says is taken as it is. Rounds draw what they train on and estimate by.
    params: dict[str, Any] = {"n_estimators": 3, "draw": "weight", "examples_per_round": 100, "estimation_examples": 7}
    expected = [round(100 * np.log(t + 1)) + round(7 * np.log(t + 1)) for t in (1, 2, 3)]
    assert stream((X, Y), **params).history_["draws"] == expected
    assert stream((X, Y), **params, schedule="constant").history_["draws"] == [107] * 3
    params |= {"examples_per_round": lambda t: np.int64(10 * t), "estimation_examples": lambda t: t}
    assert stream((X, Y), **params).history_["draws"] == [11, 22, 33]


def test_ctrl_c_keeps_the_rounds_so_far() -> None:
    def press(progress: Any) -> None:
        if progress.n_rounds == 4:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after 4 rounds; the model keeps them"):
        model = stream((X, Y), callbacks=[press])
    assert (model.n_estimators_, model.stop_reason_) == (4, "interrupted")
    model.set_params(warm_start=True, callbacks=None).fit_stream((X, Y))
    assert content(model)[:3] == content(stream((X, Y)))[:3]


@pytest.mark.usefixtures("small_steps")
@pytest.mark.parametrize("recycle", [True, False])
def test_ctrl_c_within_the_source(recycle: bool) -> None:
    with pytest.warns(UserWarning, match=r"interrupted after \d rounds"):
        model = stream(failing(1234, KeyboardInterrupt()), n_estimators=50, recycle=recycle)
    assert model.stop_reason_ == "interrupted"
    assert content(model)[:3] == content(stream((X, LABELS), n_estimators=model.n_estimators_))[:3]
    before = content(model)
    with pytest.raises(KeyboardInterrupt):
        model.fit_stream(failing(50, KeyboardInterrupt()))
    assert content(model) == before


def test_a_refit_that_fails_keeps_the_model() -> None:
    model = stream((X, LABELS))
    before = content(model)
    for source, classes, options in (
        (5, None, {}),
        ((X, LABELS), None, {"target": "kind"}),
        ((X, LABELS[:-1]), None, {}),
        ((X[:0], LABELS[:0]), None, {}),
        ((X, LABELS), ["eggs"], {}),
        (BatchSource([]), None, {}),
    ):
        with pytest.raises((ValueError, TypeError, StreamError)):
            model.fit_stream(source, classes, **options)
        assert content(model) == before
    with pytest.raises(ValueError, match="continues a model with the classes"):
        model.set_params(warm_start=True, n_estimators=9).fit_stream((X, Y), [0, 1, 2])
    with pytest.raises(ValueError, match=r"features|columns"):
        model.fit_stream((X[:, :2], LABELS))
    assert content(model) == before


KILLED = """
import sys, numpy as np, gpuboost
from tests.estimators.test_filterboost import LABELS, X, batches, classifier
from gpuboost.streams import BatchSource
model = classifier(n_estimators=400, callbacks=[gpuboost.Checkpoint(sys.argv[1], every=1)])
model.fit_stream(BatchSource(batches(X, LABELS, 90)))
"""


@pytest.mark.slow
def test_killed_and_resumed(tmp_path: Path) -> None:
    whole = stream((X, LABELS), n_estimators=30)
    rounds = []
    for wait in (0.0, 0.5):
        path = tmp_path / f"{wait}"
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)], cwd=Path(__file__).parents[2])
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(wait)
        process.kill()
        process.wait()
        model = gpuboost.load(path, device="numpy")
        rounds.append(model.n_estimators_)
        n = max(30, rounds[-1])
        model.set_params(n_estimators=n, warm_start=True).fit_stream((X, LABELS))
        expected = whole if n == 30 else stream((X, LABELS), n_estimators=n)
        assert content(model)[:3] == content(expected)[:3]
    assert max(rounds) > 1


# ---- files and tools ---------------------------------------------------------------------------------------------------------


def test_pickled_and_saved(tmp_path: Path) -> None:
    colourings = [[1, -1, 1], [1, 1, -1]]
    model = stream((X, LABELS), multiclass="oc", colourings=colourings, target_error=0.01, max_bins=16)
    for other in (pickle.loads(pickle.dumps(model)), _loaded(model, tmp_path)):
        assert content(other) == content(model)
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        other.set_params(n_estimators=11, warm_start=True).fit_stream((X, LABELS))
        long = clone(model).set_params(n_estimators=11).fit_stream((X, LABELS))
        assert content(other) == content(long)


def _loaded(model: Any, folder: Path) -> Any:
    model.save(folder / "model")
    return gpuboost.load(folder / "model", device="numpy")


def test_callables_cannot_be_saved(tmp_path: Path) -> None:
    model = stream((X, Y), examples_per_round=lambda t: 100)
    with pytest.raises(TypeError, match="examples_per_round"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_by_name() -> None:
    params = {key: value for key, value in QUICK.items() if key != "random_state"}
    model = gpuboost.fit(X, Y, algorithm="filterboost", random_state=3, **params)
    assert content(model) == content(classifier().fit(X, Y))
    assert model.score(X, Y) > 0.6


def test_probabilities_are_those_of_the_logistic_model() -> None:
    # With two classes sigma(F), F = s_1 - s_0 (section 2.1).
    model = stream((X, Y > 0), max_bins=16)
    F = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-F)), rtol=1e-12)
    for proba in (model.predict_proba(X), stream((X, Y)).predict_proba(X)):
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)


def test_two_classes_are_the_same_by_colours() -> None:
    # Every colouring of two classes is the one against the other.
    one, other = stream((X, Y > 0), leaf_values="vote"), stream((X, Y > 0), leaf_values="vote", multiclass="oc")
    assert content(one) == content(other)


def test_the_history_adds_up() -> None:
    model = stream((X, Y), n_estimators=12)
    history = {key: np.array(values) for key, values in model.history_.items()}
    assert {len(values) for values in history.values()} == {12}
    place = history["pass"] * len(Y) + history["row"]
    np.testing.assert_array_equal(place, np.cumsum(history["draws"]))
    np.testing.assert_allclose(history["bound"], 2 * 2 * history["acceptance"])  # two wrong labels
    assert history["train_loss"][0] == 1.0
    assert history["acceptance"][0] == 0.5
    assert (history["train_error"] <= history["bound"]).all()
    assert (abs(history["edge"]) <= 0.5).all()
    # Of the rows that a round draws to train on, the share p_t passes: within 5 standard deviations.
    n_train = np.array([round(150 * np.log(t + 1)) for t in range(1, 13)])
    expected = n_train / history["acceptance"] + n_train
    deviation = np.sqrt(n_train * (1 - history["acceptance"])) / history["acceptance"]
    assert (abs(history["draws"] - expected) <= 5 * deviation + 0.2 * expected).all()


def test_a_set_that_is_smaller_than_a_round() -> None:
    # Of 10 rows half pass at first: 100 passes give 500, not the 2079 that the default asks for.
    A, y = np.arange(10.0)[:, None], np.repeat([0, 1], 5)
    model = FilterBoostClassifier(n_estimators=10, random_state=0, device="numpy", learning_rate=1.0).fit(A, y)
    assert model.score(A, y) == 1.0
    assert model.history_["draws"][0] == 2000  # to train on, and to estimate
    weightless = stream((A, y, np.where(A[:, 0] < 2, 1.0, 0.0)), classes=[0, 1])
    assert weightless.predict(A[:2]).tolist() == [0, 0]


def test_a_target_error_that_is_reached_ends_the_training() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4000, 2))
    y = (A[:, 0] > 0) * 1

    def draw(n: int) -> tuple[Any, Any]:
        A = rng.normal(size=(n, 2))
        return A, (A[:, 0] > 0) * 1

    model = stream(draw, n_estimators=300, target_error=0.2, n_bin_rows=4000, max_examples=10**6, examples_per_round=100)
    assert model.stop_reason_ == "target_error=0.2 is reached, with the probability asked for"
    assert model.n_estimators_ < 300
    assert 1 - model.score(A, y) <= 0.2


def test_refusals() -> None:
    for params, message in (
        ({"edge_estimate": "nas"}, r'is for leaf_values="vote"'),
        ({"weighting": "exponential"}, r'needs draw="resample" or "all"'),
        ({"target_error": 0.1, "draw": "weight"}, r'target_error needs draw="filter"'),
        ({"recycle": "never"}, r"recycle must be"),
        ({"delta": 0}, r"delta must be"),
        ({"colourings": [[1, 1, 1]], "multiclass": "oc"}, r"both of them in every row"),
        ({"colourings": [[1, -1]], "multiclass": "oc"}, r"shape \(n_colourings, 3\)"),
        ({"early_stopping": True}, r"early_stopping needs an eval_set"),
        ({"class_weight": "balanced"}, r"which a stream does not tell"),
        ({"draw": "all"}, r"use fit"),
        ({"examples_per_round": 0}, r"examples_per_round"),
        ({"max_examples": 0}, r"max_examples"),
    ):
        with pytest.raises(ValueError, match=message):
            stream((X, Y), **params)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be recycled"):
        stream(iter(batches(X, Y, 100)), recycle=True)


# ---- memory ------------------------------------------------------------------------------------------------------------------

PEAK = """
import resource, sys, numpy as np
from gpuboost import FilterBoostClassifier
n_rows, n = int(sys.argv[1]), 20000

def given():
    for start in range(0, n_rows, n):
        rng = np.random.default_rng(start)
        X = rng.random((n, 20))
        yield X, (X[:, 0] + X[:, 1] > 1 + 0.3 * rng.normal(size=n)) * 1

model = FilterBoostClassifier(n_estimators=10**6, max_leaf_nodes=4, examples_per_round=8000, schedule="constant",
                              draw="weight", n_bin_rows=50000, device="cpu", n_jobs=1, random_state=0).fit_stream(given())
assert sum(model.history_["draws"]) > n_rows - 16000, model.stop_reason_
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss differs")
def test_memory_does_not_grow_with_the_rows() -> None:
    def peak(n_rows: int) -> int:
        done = subprocess.run([sys.executable, "-c", PEAK, str(n_rows)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return int(done.stdout)

    few, many = peak(400_000), peak(2_000_000)
    assert many <= 1.1 * few

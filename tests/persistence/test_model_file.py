"""Model files: everything comes back as it was, in the same bytes from every backend."""

from __future__ import annotations

import datetime
import json
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import safetensors
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

import gpuboost
from gpuboost import AdaBoostMHClassifier, GambleClassifier, RebelClassifier, devices
from gpuboost.backends.cpu.threads import Team
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.persistence import model_file
from gpuboost.persistence.values import decode, encode
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.models import COSTS, KINDS, LABELS, MANY, X, Y, fit
from tests.traps.problem import run_python

METHODS = ("predict", "predict_proba", "decision_function")


def through(model: Any, tmp_path: Path) -> Any:
    """The model after a round trip, which must not change the file."""
    first, second = tmp_path / "first", tmp_path / "second"
    model.save(first)
    loaded = gpuboost.load(first, device="cpu", n_jobs=1)
    loaded.save(second)
    assert first.read_bytes() == second.read_bytes()
    return loaded


def methods(model: Any) -> list[str]:
    return [prefix + name for prefix in ("", "staged_") for name in METHODS if hasattr(model, prefix + name)]


def answers(model: Any, method: str) -> list[Any]:
    found = getattr(model, method)(X)
    return [found] if isinstance(found, np.ndarray) else list(found)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_comes_back(kind: str, tmp_path: Path) -> None:
    model = fit(kind, eval_set=(X[:40], LABELS[:40]))
    loaded = through(model, tmp_path)
    assert type(loaded) is type(model)
    assert methods(loaded) == methods(model)
    for method in methods(model):
        for one, other in zip(answers(model, method), answers(loaded, method), strict=True):
            assert one.dtype == other.dtype
            assert one.tobytes() == other.tobytes()
    assert loaded.ensemble_.digest() == model.ensemble_.digest()
    importances = [getattr(one, "feature_importances_", np.zeros(0)).tobytes() for one in (model, loaded)]
    assert importances[0] == importances[1]
    assert loaded.score(X, LABELS) == model.score(X, LABELS)
    history = {name: values for name, values in model.history_.items() if name != "seconds"}
    assert repr(loaded.history_) == repr(history)  # names in their order, NaN included
    params = {**model.get_params(), "device": "cpu", "n_jobs": 1}
    assert loaded.get_params() == params
    for name in ("n_estimators_", "stop_reason_", "n_features_in_", "multi_label_", *model._own_fitted):
        assert repr(getattr(loaded, name)) == repr(getattr(model, name))
    ensemble = loaded.ensemble_
    assert (ensemble.values if hasattr(ensemble, "values") else ensemble.coefficients).flags.writeable


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["adaboost-mh", "rebel, costs"])
def test_a_fresh_process_predicts_the_same(kind: str, tmp_path: Path) -> None:
    fit(kind).save(tmp_path / "model")
    np.save(tmp_path / "X", X)
    code = (
        f"import numpy as np, gpuboost\nmodel = gpuboost.load({str(tmp_path / 'model')!r}, device='cpu', n_jobs=1)\n"
        f"X = np.load({str(tmp_path / 'X.npy')!r})\n"
        "print(model.decision_function(X).tobytes().hex(), ascii(model.predict(X).tolist()))"
    )
    model = fit(kind)
    assert run_python(code) == f"{model.decision_function(X).tobytes().hex()} {model.predict(X).tolist()!a}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_model_goes_on(kind: str, tmp_path: Path) -> None:
    whole = fit(kind, n_estimators=9)
    half = through(fit(kind, n_estimators=4), tmp_path)
    half.set_params(warm_start=True, n_estimators=9).fit(X, LABELS)
    assert model_file.to_bytes(half) == model_file.to_bytes(whole)
    assert len(half.history_["seconds"]) == 9
    assert all(seconds >= 0 for seconds in half.history_["seconds"][4:])


class Emulated:
    """Opens emulated devices for the estimators."""

    def open(self, index: int | None) -> CudaBackend:
        return CudaBackend(EmulatedGpu())


@pytest.mark.parametrize("kind", KINDS)
def test_every_backend_writes_the_same_file(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Team, "WORTH_SHARING", 4)
    monkeypatch.setitem(devices.OPENERS, "emulated", Emulated().open)
    places: list[dict[str, Any]] = [{"device": "cpu", "n_jobs": n} for n in (1, 2, 4)]
    places += [{"device": "emulated"}] if kind in ("abc-boost", "adaboost-mh", "rebel, costs") else []
    reference = model_file.to_bytes(fit(kind, n_estimators=3))
    for place in places:
        assert model_file.to_bytes(fit(kind, n_estimators=3, verbose=0, **place)) == reference, place


def test_seeds() -> None:
    # Where nothing was drawn, the seed is nobody's business; else the file has the one that was drawn.
    seeds = [
        json_of(fit("adaboost-mh", **o))["seed"]
        for o in ({}, {"random_state": 7}, {"eval_set": (X, LABELS), "early_stopping": True})
    ]
    assert seeds == [None, 7, None]
    model = fit("adaboost-mh", early_stopping=True)
    assert json_of(model)["seed"] == model._seed
    model = fit("adaboost-mh", random_state=np.random.default_rng(0), max_features=0.5)
    assert json_of(model)["seed"] == json_of(model)["parameters"]["random_state"] == model._seed


def json_of(model: Any) -> dict[str, Any]:
    packed = bytes(model_file.to_bytes(model))
    header = json.loads(packed[8 : 8 + int.from_bytes(packed[:8], "little")])
    content: dict[str, Any] = json.loads(header["__metadata__"]["gpuboost"])
    return content


def test_the_file_is_one_of_safetensors(tmp_path: Path) -> None:
    model = fit("abc-boost")
    model.save(tmp_path / "model")
    with safetensors.safe_open(tmp_path / "model", "numpy") as file:
        metadata = file.metadata()
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    assert arrays["ensemble/values"].tobytes() == model.ensemble_.values.tobytes()
    assert list(metadata) == ["gpuboost"]
    assert safetensors.numpy.save(arrays, metadata) == (tmp_path / "model").read_bytes()


def test_describe(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = AdaBoostMHClassifier(n_estimators=30, early_stopping="patience", device="cpu", n_jobs=1, random_state=0).fit(
        frame, LABELS
    )
    model_file.save(model, tmp_path / "model", {"data": "breakfast"})
    found = model_file.describe(tmp_path / "model")
    assert found["digest"] == model.ensemble_.digest()
    assert found["n_rounds"] == model.n_estimators_ < found["n_rounds_run"] == len(model.history_["edge"])
    assert found["feature_names"] == list("abcd")
    assert found["classes"].tolist() == ["eggs", "ham", "späm"]
    assert found["importances"].tobytes() == model.feature_importances_.tobytes()
    assert found["extra"] == {"data": "breakfast"}
    assert found["n_bytes"] == (tmp_path / "model").stat().st_size
    code = f"from gpuboost.persistence.model_file import describe\ndescribe({str(tmp_path / 'model')!r})\nimport sys\n"
    code += "print('sklearn' in sys.modules)"
    assert run_python(code) == "False"


def dated(unit: str) -> Any:
    return st.lists(st.integers(-1000, 1000), min_size=2, max_size=4, unique=True).map(lambda n: np.array(n, f"M8[{unit}]"))


def numbered(dtype: str) -> Any:
    info = np.iinfo(dtype)
    return st.lists(st.integers(int(info.min), int(info.max)), min_size=2, max_size=4, unique=True).map(
        lambda n: np.array(n, dtype)
    )


def few(labels: Any) -> Any:
    return st.lists(labels, min_size=2, max_size=4, unique=True)


WHOLE = st.integers(-100, 100)
ARRAYS = st.one_of(
    *(numbered(dtype) for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")),
    *(few(WHOLE).map(lambda n, d=d: np.array(n, d) / 8 * 8) for d in ("f2", "f4", "f8", "g")),
    *(dated(unit) for unit in ("Y", "D", "s", "25ms", "ns")),
    dated("s").map(lambda dates: dates - np.datetime64(0, "s")),
    st.just(np.array([True, False])),
    few(st.text(max_size=6).filter(lambda text: not text.endswith("\0"))).map(lambda texts: np.array(texts, "U9")),
    few(st.binary(max_size=6).filter(lambda text: not text.endswith(b"\0"))).map(np.array),
    few(st.text(st.characters(exclude_categories=()), max_size=6)).map(lambda texts: np.array(texts, object)),
    few(st.integers()).map(lambda n: np.array(n, object)),
    few(st.one_of(WHOLE, st.fractions(), st.floats(-9, 9), st.booleans())).map(lambda n: np.array(n, object)),
    few(st.decimals(allow_nan=False, allow_infinity=False)).map(lambda n: np.array(n, object)),
    few(st.dates()).map(lambda dates: np.array(dates, object)),
    few(st.datetimes(timezones=st.just(datetime.UTC)).map(lambda date: date.replace(fold=0))).map(
        lambda dates: np.array(dates, object)
    ),
    few(st.binary(max_size=5)).map(lambda texts: np.array(texts, object)),
    few(st.timedeltas()).map(lambda times: np.array(times, object)),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(labels=ARRAYS, kind=st.sampled_from(sorted({params["algorithm"] for params in KINDS.values()})))
def test_labels_keep_value_and_type(labels: Any, kind: str) -> None:
    y = labels[Y % len(labels)]
    if labels.dtype.kind == "O":
        y = np.fromiter((labels[k] for k in Y % len(labels)), object, len(Y))
    model = gpuboost.fit(X[:20], y[:20], algorithm=kind, n_estimators=1, device="cpu", n_jobs=1)
    content = model_file._content(model, {})
    loaded = model_file._restore(json.loads(json.dumps(content[0])), dict(content[1]), type(model))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert repr(loaded.classes_.tolist()) == repr(model.classes_.tolist())
    assert loaded.set_params(device="cpu", n_jobs=1).predict(X).tolist() == model.predict(X).tolist()


def test_text_of_variable_width() -> None:
    labels = LABELS.astype(np.dtypes.StringDType())
    model = fit("samme", labels)
    loaded = model_file._restore(*model_file._content(model, {}), type(model))
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.classes_.tolist() == ["eggs", "ham", "späm"]


def test_tuples_are_labels_too(tmp_path: Path) -> None:
    y = np.empty(len(Y), object)
    y[:] = [(int(k), "x") for k in Y]
    assert through(fit("mart", y), tmp_path).classes_.tolist() == [(0, "x"), (1, "x"), (2, "x")]


def test_multi_label(tmp_path: Path) -> None:
    model = gpuboost.fit(X, MANY, n_estimators=5, device="cpu", n_jobs=1)
    loaded = through(model, tmp_path)
    assert loaded.multi_label_ is True
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("names", [list("dcba"), [3, 2, 1, 0], [("a", 1), ("a", 2), ("b", 1), ("b", 2)], ["x", "ü", "", '"']])
def test_column_names(names: list[Any], tmp_path: Path) -> None:
    frame = pd.DataFrame(X)
    frame.columns = pd.MultiIndex.from_tuples(names) if isinstance(names[0], tuple) else names
    loaded = through(AdaBoostMHClassifier(n_estimators=2, device="cpu", n_jobs=1).fit(frame, LABELS), tmp_path)
    assert loaded._column_names == names
    assert hasattr(loaded, "feature_names_in_") == isinstance(names[0], str)
    loaded.predict(frame)
    with pytest.raises(ValueError, match="must be in the same order"):
        loaded.predict(frame[frame.columns[::-1]])


@pytest.mark.parametrize(
    "value",
    [
        {"ham": np.float32(0.1), "eggs": 2},
        {1: 2.0, 2.5: 3, (1, "a"): None, b"\xff": float("inf"), np.str_("x"): True, np.datetime64("2020-01-01"): [1, (2,)]},
        Decimal("1.10"),
        Fraction(1, 3),
        [-0.0, 5e-324, float("-inf"), 2**200, np.int8(3), np.longdouble("0.1"), np.bool_(True)],
        datetime.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=datetime.timezone(datetime.timedelta(hours=2))),
        datetime.timedelta(-1, 2, 3),
    ],
)
def test_values_of_parameters(value: Any) -> None:
    back = decode(json.loads(json.dumps(encode(value, "it", {}), allow_nan=False)), {})
    assert repr(back) == repr(value)
    assert pickle.dumps(back) == pickle.dumps(value)  # types, too


def test_cost_matrices(tmp_path: Path) -> None:
    labels = ["eggs", "ham", "späm"]
    table = np.array([[COSTS[a].get(b, 0) for b in labels] for a in labels], np.float32)
    frame = pd.DataFrame(table, labels, labels)
    for costs in (COSTS, table, table.astype(int), table.tolist(), frame):
        model = RebelClassifier(cost_matrix=costs, n_estimators=3, device="cpu", n_jobs=1).fit(X, LABELS)
        loaded = through(model, tmp_path)
        assert loaded.cost_matrix_.tobytes() == model.cost_matrix_.tobytes()
        back = loaded.cost_matrix
        if costs is frame:
            assert back == {a: {b: float(frame.loc[a, b]) for b in labels} for a in labels}
        elif isinstance(costs, np.ndarray):
            assert back.dtype == costs.dtype
            assert back.tobytes() == costs.tobytes()
        else:
            assert back == costs
        loaded.set_params(warm_start=True, n_estimators=5).fit(X, LABELS)


def test_degenerate_models(tmp_path: Path) -> None:
    for X_, y in ((np.arange(6.0)[:, None], ["one"] * 6), (np.arange(3.0)[:, None], [0, 1, 2])):
        model = AdaBoostMHClassifier(n_estimators=3, device="cpu", n_jobs=1).fit(X_, y)
        assert through(model, tmp_path).predict_proba(X_).tobytes() == model.predict_proba(X_).tobytes()
    for value in (1.0, np.nan):
        constant = np.full((4, 2), value)
        with pytest.warns(UserWarning, match="no column of X tells rows apart"):
            model = AdaBoostMHClassifier(n_estimators=3, device="cpu", n_jobs=1).fit(constant, [1, 2, 2, 2])
        assert through(model, tmp_path).predict_proba(constant).tobytes() == model.predict_proba(constant).tobytes()


class Enumerated(str):
    """A label of a type that nobody else knows."""


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path = tmp_path / "model"
    with pytest.raises(NotFittedError):
        AdaBoostMHClassifier().save(path)
    model = GambleClassifier(regressor=Ridge(), n_estimators=2).fit(np.nan_to_num(X), LABELS)
    with pytest.raises(TypeError, match="boosts a regressor cannot be saved"):
        model.save(path)
    for labels in (
        pd.Timestamp(2020, 1, 1, tz="UTC") + pd.to_timedelta(Y, "D"),
        np.array([Enumerated(text) for text in LABELS], object),
    ):
        with pytest.raises(TypeError, match=r"a class label .* is of the type .*, which a model file cannot hold"):
            fit("samme", np.array(labels, object)).save(path)
    with pytest.raises(TypeError, match="only the classifiers of gpuboost can be saved"):
        type("Mine", (AdaBoostMHClassifier,), {})(n_estimators=2, device="cpu", n_jobs=1).fit(X, LABELS).save(path)
    with pytest.raises(ValueError, match="cannot be saved, as it could not be loaded: n_estimators must be"):
        fit("mart").set_params(n_estimators=0).save(path)
    wide = fit("mart")
    wide.stop_reason_ = "," * 300_001
    with pytest.raises(ValueError, match="more than a model file may have"):
        wide.save(path)
    assert not path.exists()


def test_other_ways_to_keep_a_model_stay(tmp_path: Path) -> None:
    loaded = through(fit("abc-boost"), tmp_path)
    again = pickle.loads(pickle.dumps(loaded))
    assert again.predict_proba(X).tobytes() == loaded.predict_proba(X).tobytes()
    assert model_file.to_bytes(again) == model_file.to_bytes(loaded)
    assert clone(loaded).set_params(device="cpu", n_jobs=1).fit(X, LABELS).ensemble_.digest() == loaded.ensemble_.digest()

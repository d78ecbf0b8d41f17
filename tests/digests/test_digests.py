"""No model has changed: every training of the table gives the recorded bytes on every backend."""

from __future__ import annotations

import inspect
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpuboost
from gpuboost import devices
from tests.candidates import CPU, CUDA, EMULATED
from tests.digests.cases import CASES, CONTINUED, SAVED
from tests.digests.record import HERE, Digests, data_digests, digests, file_name, fit_arguments, train

RECORDED: dict[str, Any] = json.loads((HERE / "digests.json").read_text(encoding="utf-8"))
OPENERS = CPU | EMULATED | CUDA
FAST = "cpu-2"
PLACES = (FAST, "numpy", "emulated-forward", "cpu-1", "cpu-4")
OF_THE_MACHINE = {"device", "n_jobs", "verbose", "warm_start", "callbacks"}
SAVED_DIGESTS: dict[Path, dict[str, Digests]] = {
    folder: json.loads((folder / "digests.json").read_text(encoding="utf-8")) for folder in sorted(HERE.glob("models_*"))
}
MODELS = [(folder, name) for folder, found in SAVED_DIGESTS.items() for name in found]
HELD_OUT_OTHERWISE = {("models_0_1_0", "hold-out, patience")}
"""Their hold-outs were drawn by another rule: a training that goes on from them holds out other rows."""
ALIKE = [(folder, name) for folder, name in MODELS if (folder.name, name) not in HELD_OUT_OTHERWISE]
OLD_NAMES = (b"quick", b"row_fraction", b"feature_fraction")
"""Now pruning, subsample and max_features."""


def trainings(device: str | None) -> Iterator[Any]:
    """Every place with every case: by default few on the emulated device, and none with other numbers of threads."""
    for place, (i, name) in itertools.product(["cuda"] if device == "cuda" else PLACES, enumerate(CASES)):
        if place in ("cuda", FAST):
            marks: Any = ()
        elif place == "numpy" or (place == "emulated-forward" and i % 4 == 0):
            marks = pytest.mark.slow
        else:
            marks = pytest.mark.exhaustive
        yield pytest.param(place, name, marks=marks)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "place" in metafunc.fixturenames:
        metafunc.parametrize(("place", "name"), trainings(metafunc.config.getoption("--device")))


@pytest.fixture
def device(place: str, share_all_loops: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """What ``device`` must be to train in that place. The CPU backend prunes whenever it may."""

    def opened(index: int | None) -> Any:
        backend: Any = OPENERS[place]()
        if place in CPU:
            assert not backend.pruning.always
            backend.pruning.always = True
        return backend

    if place == "numpy":
        return "numpy"
    monkeypatch.setitem(devices.OPENERS, "place", opened)
    return "place"


def test_the_model_has_not_changed(name: str, device: str) -> None:
    assert digests(CASES[name], train(CASES[name], device)) == RECORDED["cases"][name]


# ---- the table ---------------------------------------------------------------------------------------------------------------


def test_the_data_have_not_changed() -> None:
    assert data_digests() == RECORDED["data"]


def test_every_case_is_recorded() -> None:
    assert RECORDED["cases"].keys() == CASES.keys()


@pytest.mark.parametrize("name", [name for name in CASES if name.endswith(CONTINUED)])
def test_a_continued_training_is_one_long_training(name: str) -> None:
    assert RECORDED["cases"][name] == RECORDED["cases"][name.removesuffix(CONTINUED)]


def test_no_other_two_cases_are_the_same() -> None:
    trees = [RECORDED["cases"][name]["trees"] for name in CASES if not name.endswith(CONTINUED)]
    assert len(set(trees)) == len(trees)


def test_every_algorithm_and_parameter_is_in_the_table() -> None:
    assert {case.algorithm for case in CASES.values()} == set(gpuboost.ALGORITHMS)
    signatures = [inspect.signature(getattr(gpuboost, name)).parameters for name in gpuboost.registry.estimator_modules()]
    known = {parameter for signature in signatures for parameter in signature}
    given = {parameter for case in CASES.values() for parameter in case.params}
    # n_estimators is in every case; models of regressors are not promised to be the same everywhere.
    assert given == known - OF_THE_MACHINE - {"n_estimators", "regressor"}


# ---- files of earlier versions -----------------------------------------------------------------------------------------------


models = pytest.mark.parametrize(("folder", "name"), MODELS, ids=[f"{folder.name}-{name}" for folder, name in MODELS])


@pytest.fixture
def loaded(folder: Path, name: str, recwarn: pytest.WarningsRecorder) -> Any:
    """The model of a file, which is loaded without a warning."""
    model = gpuboost.load(folder / file_name(name), device="cpu", n_jobs=1)
    assert [str(warning.message) for warning in recwarn] == []
    return model


@models
def test_a_loaded_model_predicts_the_same(folder: Path, name: str, loaded: Any) -> None:
    assert digests(CASES[name], loaded) == SAVED_DIGESTS[folder][name]


@pytest.mark.parametrize(("folder", "name"), ALIKE, ids=[f"{folder.name}-{name}" for folder, name in ALIKE])
@pytest.mark.filterwarnings("ignore:no column of X tells rows apart:UserWarning")
def test_a_loaded_model_is_continued_to_the_same_model(folder: Path, name: str, loaded: Any) -> None:
    X, y, options = fit_arguments(CASES[name])
    loaded.set_params(warm_start=True).fit(X, y, **options)
    assert digests(CASES[name], loaded) == RECORDED["cases"][name]


@models
def test_a_loaded_model_has_the_current_parameter_names(folder: Path, name: str, loaded: Any) -> None:
    params = {**CASES[name].params, "n_estimators": CASES[name].rounds}
    assert {parameter: loaded.get_params()[parameter] for parameter in params} == params
    assert loaded.get_params().keys() == type(loaded)().get_params().keys()


def test_files_of_version_0_1_0_hold_the_old_parameter_names() -> None:
    folder = HERE / "models_0_1_0"
    assert SAVED_DIGESTS[folder].keys() == SAVED.keys()
    for name in SAVED:
        content = (folder / file_name(name)).read_bytes()
        given = [old in content for old in OLD_NAMES]
        assert given == [CASES[name].algorithm not in ("mart", "logitboost", "abc-boost"), True, True]

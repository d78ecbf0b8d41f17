"""Trainings on code files make the model files of trainings in memory; files that are damaged are refused."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.linear_model import LinearRegression

import gpuboost
from gpuboost import CodeFile, CodeFileError
from gpuboost.binning import MAX_VALUE_BINS
from gpuboost.code_files import container
from gpuboost.code_files.container import Container, Tensor
from gpuboost.estimators.parts import Part, fit_part
from gpuboost.peers.threads import run_workers

RNG = np.random.default_rng(7)
N = 150
X = np.column_stack([RNG.normal(size=(N, 3)), RNG.integers(0, 4, (N, 2)), np.zeros(N)])
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X[:, 0]) + X[:, 3] > 1).astype(int) + (X[:, 1] > 0.8)
REAL, INTEGER = RNG.random(N) + 0.01, RNG.integers(0, 5, N).astype(float)
EVAL = RNG.normal(size=(40, 6)), RNG.integers(0, 3, 40)
FEW: dict[str, Any] = {"n_estimators": 5, "random_state": 1, "max_bins": 16}
SAMPLED: dict[str, Any] = {"subsample": 0.6, "max_features": 0.5, "weight_trim": 0.9}

CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "adaboost-mh": (gpuboost.AdaBoostMHClassifier(**FEW), {}),
    "auto leaves": (gpuboost.AdaBoostMHClassifier(**FEW), {"X": np.repeat(X[:30], 5, axis=0), "sample_weight": INTEGER}),
    "discrete": (gpuboost.AdaBoostMHClassifier(variant="discrete", **FEW), {"sample_weight": REAL}),
    "product": (gpuboost.AdaBoostMHClassifier(learner="product", **FEW), {"sample_weight": INTEGER}),
    "sampled": (gpuboost.AdaBoostMHClassifier(**FEW, **SAMPLED), {"sample_weight": REAL}),
    "smallest leaf": (gpuboost.AdaBoostMHClassifier(min_weight_fraction_leaf=0.05, pruning=True, **FEW), {}),
    "watched": (gpuboost.AdaBoostMHClassifier(early_stopping=True, **FEW), {"eval_set": EVAL}),
    "samme": (gpuboost.SAMMEClassifier(variant="real", **FEW, **SAMPLED), {"y": np.array(["b", "a", "c"], object)[Y]}),
    "gamble": (gpuboost.GambleClassifier(learning_rate="line-search", **FEW), {"sample_weight": INTEGER}),
    "rebel": (gpuboost.RebelClassifier(cost_matrix=[[0, 1, 2], [1, 0, 1], [5, 1, 0]], **FEW), {"sample_weight": REAL}),
    "rebel sampled": (gpuboost.RebelClassifier(max_depth=3, **FEW, **SAMPLED), {}),
    "mart": (gpuboost.MartClassifier(**FEW), {"sample_weight": REAL}),
    "logitboost": (gpuboost.LogitBoostClassifier(**FEW, **SAMPLED), {}),
    "abc-logitboost": (gpuboost.ABCBoostClassifier(gap=2, n_candidates=2, **FEW), {}),
    "two classes": (gpuboost.LogitBoostClassifier(**FEW), {"y": Y > 0}),
    "named columns": (gpuboost.MartClassifier(**FEW), {"X": pd.DataFrame(X, columns=list("abcdef"))}),
    "nothing to learn": (gpuboost.AdaBoostMHClassifier(**FEW), {"X": np.zeros((N, 2))}),
    "one class": (gpuboost.AdaBoostMHClassifier(**FEW), {"y": np.zeros(N, int)}),
}


def write(path: Path, X: Any = X, y: Any = Y, sample_weight: Any = None, max_bins: int = 16) -> CodeFile:
    return CodeFile.write((X, y) if sample_weight is None else (X, y, sample_weight), path, max_bins=max_bins)


def file_of(model: Any, folder: Path) -> bytes:
    model.save(folder / "model")
    return (folder / "model").read_bytes()


@pytest.mark.parametrize("device", ["cpu", "numpy"])
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:no column of X", "ignore:X does not have valid feature names")
def test_model_files_are_equal(name: str, device: str, tmp_path: Path) -> None:
    estimator, data = CASES[name]
    arguments = {"X": X, "y": Y} | data
    eval_set = arguments.pop("eval_set", None)
    alone = copy.deepcopy(estimator).set_params(device="cpu").fit(**arguments, eval_set=eval_set)
    fitted = copy.deepcopy(estimator).set_params(device=device).fit(write(tmp_path / "a", **arguments), eval_set=eval_set)
    assert file_of(fitted, tmp_path) == file_of(alone, tmp_path)
    assert fitted.predict(X[:, : fitted.n_features_in_]).tolist() == alone.predict(X[:, : fitted.n_features_in_]).tolist()


def test_the_function_fit(tmp_path: Path) -> None:
    model = gpuboost.fit(write(tmp_path / "a"), algorithm="mart", device="cpu", **FEW)
    alone = gpuboost.fit(X, Y, algorithm="mart", device="cpu", **FEW)
    assert file_of(model, tmp_path) == file_of(alone, tmp_path)


def test_a_training_goes_on(tmp_path: Path) -> None:
    """In memory or on a file, in any order."""
    file, whole = write(tmp_path / "a"), gpuboost.MartClassifier(**FEW).fit(X, Y)
    for first, second in (((file,), (file,)), ((file,), (X, Y)), ((X, Y), (file,))):
        model = gpuboost.MartClassifier(**{**FEW, "n_estimators": 2}).fit(*first)
        model.set_params(n_estimators=5, warm_start=True).fit(*second)
        assert file_of(model.set_params(warm_start=False), tmp_path) == file_of(whole, tmp_path)
    model.set_params(warm_start=True)
    with pytest.raises(ValueError, match="has other cuts than"):
        model.fit(write(tmp_path / "b", X + 1))
    with pytest.raises(ValueError, match="X has 5 features"):
        model.fit(write(tmp_path / "b", X[:, :5]))
    with pytest.raises(ValueError, match="continues a model with the classes"):
        model.fit(write(tmp_path / "b", y=Y + 1))


# ---- sets that are watched -------------------------------------------------------------------------------------------------


def test_a_watched_file_calibrates(tmp_path: Path) -> None:
    file = write(tmp_path / "a", max_bins=np.int64(16))
    watched = CodeFile.write((X[::2], Y[::2]), tmp_path / "b", cuts_of=file)
    settings = {**FEW, "device": "numpy", "calibration": "holdout", "early_stopping": True}
    alone = gpuboost.fit(X, Y, eval_set=(X[::2], Y[::2]), **settings)
    assert alone.temperature_ != 1
    assert gpuboost.fit(file, eval_set=watched, **settings).temperature_ == alone.temperature_


@pytest.mark.parametrize("stopping", [False, True])
def test_a_file_may_be_watched(stopping: bool, tmp_path: Path) -> None:
    """Its errors and losses, and the round to stop at, are those of the rows in memory; so is the model."""
    train, model = write(tmp_path / "a"), gpuboost.MartClassifier(**FEW, early_stopping=stopping)
    weight, some = RNG.random(40), RNG.integers(1, 3, 40)  # without class 0
    weighted, plain = (
        CodeFile.write(rows, tmp_path / name, cuts_of=train) for name, rows in (("b", (*EVAL, weight)), ("c", (EVAL[0], some)))
    )
    assert (plain.max_bins, plain.bin_mapper.digest()) == (16, train.bin_mapper.digest())
    in_memory = [(*EVAL, weight), (EVAL[0], some)]
    alone = copy.deepcopy(model).fit(X, Y, eval_set=in_memory)
    for data, eval_set in (((train,), [weighted, plain]), ((train,), [weighted, in_memory[1]]), ((X, Y), [weighted, plain])):
        fitted = copy.deepcopy(model).fit(*data, eval_set=eval_set)
        assert file_of(fitted, tmp_path) == file_of(alone, tmp_path)
        for name in ("valid_error", "valid_loss", "valid_1_error", "valid_1_loss"):
            assert fitted.history_[name] == alone.history_[name]
    assert copy.deepcopy(model).fit(train, eval_set=weighted).history_["valid_loss"] == alone.history_["valid_loss"]


WRONG: dict[str, tuple[Callable[[CodeFile, Path], Any], type[Exception], str]] = {
    "cuts of its own": (
        lambda file, path: gpuboost.fit(file, max_bins=16, eval_set=write(path, X + 1)),
        ValueError,
        "has other cuts than",
    ),
    "other labels": (
        lambda file, path: gpuboost.fit(file, max_bins=16, eval_set=CodeFile.write((X, Y + 1), path, cuts_of=file)),
        ValueError,
        "y of eval_set has the label 3, which is no class",
    ),
    "fewer columns": (
        lambda file, path: CodeFile.write((X[:, :5], Y), path, cuts_of=file),
        ValueError,
        "has 5 columns, .* has 6",
    ),
    "other names": (
        lambda file, path: CodeFile.write(
            (pd.DataFrame(X, columns=list("abcdxf")), Y),
            path,
            cuts_of=CodeFile.write((pd.DataFrame(X, columns=list("abcdef")), Y), path),
        ),
        ValueError,
        "column 4 of the source has the name 'x', but 'e' in",
    ),
    "a path": (
        lambda file, path: CodeFile.write((X, Y), path, cuts_of=file.path),
        TypeError,
        "cuts_of must be a CodeFile, got a str",
    ),
    "other bins": (
        lambda file, path: CodeFile.write((X, Y), path, max_bins=17, cuts_of=file),
        ValueError,
        "max_bins must be 16, .*, got 17",
    ),
    "regressors": (
        lambda file, path: gpuboost.GambleClassifier(regressor=LinearRegression()).fit(X, Y, eval_set=file),
        TypeError,
        "needs values",
    ),
    "a stream": (
        lambda file, path: gpuboost.FilterBoostClassifier(early_stopping=True).fit(X, Y, eval_set=file),
        (ValueError, TypeError),
        "CodeFile|cuts",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_be_watched(name: str, tmp_path: Path) -> None:
    call, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        call(write(tmp_path / "a"), tmp_path / "b")


# ---- what is refused -------------------------------------------------------------------------------------------------------


def fit_on_workers(file: CodeFile) -> None:
    def work(peers: Any) -> Any:
        return fit_part(gpuboost.MartClassifier(**FEW), Part(file, None, np.array([peers.rank]), np.array([N])), peers)

    run_workers(2, work)


COSTS = [[0, 0, 0], [1, 0, 1], [1, 1, 0]]
REFUSED: dict[str, tuple[Callable[[CodeFile], Any], type[Exception], str]] = {
    "labels": (lambda file: gpuboost.fit(file, Y), ValueError, "y must be None beside a CodeFile"),
    "weights": (lambda file: gpuboost.fit(file, sample_weight=REAL), ValueError, "sample_weight must be None"),
    "class weights": (lambda file: gpuboost.fit(file, class_weight={0: 2.0}), ValueError, "class_weight must be None"),
    "a hold-out": (lambda file: gpuboost.fit(file, early_stopping=True), ValueError, "needs an eval_set"),
    "bins": (lambda file: gpuboost.fit(file, max_bins=17), ValueError, "max_bins must be 16, .* got 17"),
    "rows that cost nothing": (
        lambda file: gpuboost.RebelClassifier(cost_matrix=COSTS, **FEW).fit(file),
        ValueError,
        "none can be left out",
    ),
    "a stream": (lambda file: gpuboost.FilterBoostClassifier().fit(file), TypeError, "has codes and no values"),
    "regressors": (
        lambda file: gpuboost.GambleClassifier(regressor=LinearRegression()).fit(file),
        TypeError,
        "needs values",
    ),
    "training points": (
        lambda file: gpuboost.LocalizedSimilaritiesClassifier(n_estimators=2).fit(file),
        TypeError,
        "needs values",
    ),
    "output codes": (
        lambda file: gpuboost.OutputCodeClassifier(gpuboost.MartClassifier()).fit(file, Y),
        TypeError,
        "has codes and no values",
    ),
    "workers": (fit_on_workers, ValueError, "by one worker"),
    "prediction": (lambda file: gpuboost.MartClassifier(**FEW).fit(file).predict(file), TypeError, "has codes and no values"),
    "another number of columns": (
        lambda file: gpuboost.MartClassifier(**FEW).fit(file).predict(X[:, :5]),
        ValueError,
        "X has 5 features, but MartClassifier is expecting 6",
    ),
    "no threads": (lambda file: gpuboost.fit(file, n_jobs=0), ValueError, "n_jobs must not be 0"),
    "no labels": (lambda file: gpuboost.fit(X), ValueError, "y"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call(write(tmp_path / "a"))


# ---- the file --------------------------------------------------------------------------------------------------------------


def test_what_a_file_says(tmp_path: Path) -> None:
    file = write(tmp_path / "a", sample_weight=INTEGER)
    assert (file.n_rows, file.n_features, file.classes.tolist(), file.shape) == (
        (INTEGER > 0).sum(),
        6,
        [0, 1, 2],
        ((INTEGER > 0).sum(), 6),
    )
    assert repr(file) == f"<CodeFile {str(tmp_path / 'a')!r}: {file.n_rows} rows, 6 features, 3 classes>"
    assert write(tmp_path / "b", max_bins=MAX_VALUE_BINS).max_bins == 255
    assert (file.target, file.sha256) == (None, file._container.sha256)
    pd.DataFrame(X, columns=list("abcdef")).assign(label=Y).to_parquet(tmp_path / "c.parquet")
    assert CodeFile.write(tmp_path / "c.parquet", tmp_path / "b", target="label").target == "label"


def test_the_safetensors_library_reads_it(tmp_path: Path) -> None:
    file = write(tmp_path / "a", sample_weight=REAL)
    sample, _ = file.sample()
    with safe_open(tmp_path / "a", "np") as opened:
        assert opened.get_tensor("target").tolist() == sample.target.tolist()
        assert opened.get_tensor("weights").tolist() == sample.weights.tolist()
        assert opened.get_tensor("cut_values").tolist() == file.bin_mapper.cut_values.tolist()
        codes = opened.get_tensor("codes")
    assert codes[0, :, :6].T.tolist() == file.matrix().features(0, 6).tolist()
    assert file._container.places["codes"][2] % container.PAGE == 0


def test_it_can_be_pickled_and_moved_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = pickle.loads(pickle.dumps(write(Path("a"))))
    monkeypatch.chdir("/")
    assert file.sample()[0].target.tolist() == Y.tolist()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "a"
    write(path, sample_weight=REAL)
    return path.read_bytes()


def train_on(path: Path) -> None:
    gpuboost.fit(CodeFile(path), algorithm="samme", device="cpu", **FEW)


@pytest.mark.parametrize("place", [0, 7, 20, 60, 90, 200, 700, 4095, 4096, 5000, 9000, -3000, -1000, -1])
def test_a_flipped_bit_is_found(place: int, whole: bytes, tmp_path: Path) -> None:
    damaged = bytearray(whole)
    damaged[place] ^= 4
    (tmp_path / "a").write_bytes(damaged)
    with pytest.raises(CodeFileError, match=r"cannot read .*a' as a code file: it .*; write it again"):
        train_on(tmp_path / "a")


@pytest.mark.parametrize("n_bytes", [0, 5, 60, 300, 4096, 5000, -1])
def test_a_file_that_is_cut_short(n_bytes: int, whole: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(whole[:n_bytes])
    with pytest.raises(CodeFileError, match=r"empty|cut short|beginning is damaged"):
        CodeFile(tmp_path / "a")


def test_foreign_files(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    gpuboost.fit(X, Y, algorithm="samme", **FEW).save(path)
    with pytest.raises(CodeFileError, match="no code file of gpuboost"):
        CodeFile(path)
    path.write_bytes(whole)
    with pytest.raises(gpuboost.ModelFormatError, match="no model file"):
        gpuboost.load(path)
    with pytest.raises(CodeFileError, match="is a folder"):
        CodeFile(tmp_path)
    with pytest.raises(FileNotFoundError):
        CodeFile(tmp_path / "b")
    path.write_bytes(whole.replace(b'\\"format\\":1', b'\\"format\\":2', 1))
    with pytest.raises(CodeFileError, match="newer gpuboost: its format is 2"):
        CodeFile(path)


def forged(whole: bytes, path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> None:
    """Write a file with other content and the right checksum."""
    path.write_bytes(whole)
    opened = Container.read(path)
    content = {name: value for name, value in opened.content.items() if name not in ("sha256", "format")}
    arrays = {name: opened.array(name, dtype.str, shape) for name, (dtype, shape, _) in opened.places.items()}
    change(content, arrays)
    with path.open("wb") as file:
        container.write(file, content, [Tensor.of(name, array) for name, array in arrays.items()])


def put(array: str, index: Any, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], None]:
    def change(content: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays[array][index] = value

    return change


FORGED: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "a code above its bins": put("codes", (0, 3, 1), 200),
    "a code of no feature": put("codes", (0, 3, 6), 1),
    "a count above its bins": put("code_counts", (1, 200), 1),
    "a count too many": put("code_counts", (1, 1), 0),
    "a class that is not there": put("target", 3, 3),
    "a negative class": put("target", 3, -1),
    "a weight of 0": put("weights", 3, 0.0),
    "a weight that is missing": put("weights", 3, np.nan),
    "cuts that fall": put("cut_values", 0, 1e9),
    "no target": lambda content, arrays: arrays.pop("target"),
    "no codes": lambda content, arrays: arrays.pop("codes"),
    "codes of another kind": lambda content, arrays: arrays.update(codes=arrays["codes"].astype(np.int8)),
    "codes without blocks": lambda content, arrays: arrays.update(codes=arrays["codes"][0]),
    "a width of 48": lambda content, arrays: arrays.update(codes=np.zeros((1, N, 48), np.uint8)),
    "fewer labels": lambda content, arrays: arrays.update(target=arrays["target"][:-1]),
    "no classes": lambda content, arrays: content.pop("classes"),
    "a target that is no text": lambda content, arrays: content.update(target=3),
    "other bins": lambda content, arrays: content.update(max_bins="many"),
    "weights that are not said": lambda content, arrays: content.update(weighted=1),
    "no distinct row": lambda content, arrays: content.update(n_distinct=0),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_file_that_holds_what_it_may_not(name: str, whole: bytes, tmp_path: Path) -> None:
    forged(whole, tmp_path / "a", FORGED[name])
    with pytest.raises(CodeFileError, match="was changed"):
        train_on(tmp_path / "a")


def test_a_file_that_is_written_again_as_it_was(whole: bytes, tmp_path: Path) -> None:
    forged(whole, tmp_path / "a", lambda content, arrays: None)
    assert (tmp_path / "a").read_bytes() == whole
    train_on(tmp_path / "a")


def test_a_file_that_is_replaced_meanwhile(whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(whole)
    file = CodeFile(path)
    write(path, X + 1)
    with pytest.raises(CodeFileError, match="was replaced or changed"):
        gpuboost.fit(file, algorithm="samme", **FEW)


def test_a_header_that_is_too_large() -> None:
    with pytest.raises(ValueError, match="a code file has room for"):
        container.write(io.BytesIO(), {"feature_names": ["a" * 9_000_000]}, [])


@pytest.mark.parametrize("path", ["rows.codes", Path("rows.codes")])
def test_a_path_in_place_of_rows_is_told_what_makes_a_set_of_it(path: Any) -> None:
    with pytest.raises(TypeError, match=r"X must hold rows, got the path 'rows\.codes'.*CodeFile\(path\) opens one"):
        gpuboost.fit(path, device="numpy")

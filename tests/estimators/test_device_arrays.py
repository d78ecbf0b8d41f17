"""Arrays on a device, and PyTorch tensors: the same models as from NumPy, and predictions in arrays of the caller's kind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost import AdaBoostMHClassifier, LocalizedSimilaritiesClassifier, devices, mean_cost, min_cost_labels
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.errors import DeviceUnavailableError
from gpuboost.estimators import predictor
from gpuboost.inputs import samples
from gpuboost.inputs.arrays import as_type_of, to_host
from tests.cuda_on_cpu import caller
from tests.cuda_on_cpu.caller import CupyArray, MinimalArray, NumbaArray, Tensor, on_device
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.traps import problem
from tests.traps.problem import METHODS, NOISY, X, digest

DTYPES = ["float16", "float32", "float64", "bool", "uint8", "int64"]
NAMES = np.array(["north", "south", "west"])


@pytest.fixture(autouse=True)
def emulated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let ``device="emulated"`` be the CUDA backend on the emulated device, and CuPy and PyTorch be imitated."""
    if request.node.get_closest_marker("usefixtures"):  # of the real libraries
        yield
        return
    monkeypatch.setitem(devices.OPENERS, "emulated", lambda index: CudaBackend(EmulatedGpu()))
    with caller.modules():
        yield


def make(n_estimators: int = 8, **params: Any) -> AdaBoostMHClassifier:
    return problem.make(n_estimators, **{"device": "cpu", **params})


def matrix(dtype: str) -> NDArray[Any]:
    """The problem's X in another dtype, with missing values where there are any."""
    if dtype == "bool":
        return X > 0
    numbers = (X.clip(-2, 2) * 50 + (100 if dtype == "uint8" else 0)).astype(dtype)
    if numbers.dtype.kind == "f":
        numbers[::7, 1] = np.nan
    return numbers


LAYOUTS: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "sliced": lambda x: np.repeat(np.repeat(x, 2, axis=0), 3, axis=1)[::2, ::3],
    "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "reversed rows of F": lambda x: np.asfortranarray(x[::-1])[::-1],
}
KINDS: dict[str, Callable[[NDArray[Any]], Any]] = {
    "cupy": on_device,
    "numba": lambda host: NumbaArray(on_device(host)),
    "minimal": lambda host: MinimalArray(on_device(host)),
    "torch": lambda host: Tensor(on_device(host)),
    "torch with gradients": lambda host: Tensor(on_device(host), requires_grad=True),
    "torch on the host": Tensor,
}


def traffic(x: Any) -> caller.Traffic:
    return x.traffic if isinstance(x, CupyArray) else x.array.traffic


def values(x: Any) -> NDArray[Any]:
    """What an array of any kind holds."""
    return x.memory if isinstance(x, CupyArray) else values(x.array) if isinstance(x, Tensor) else x


def outputs(model: AdaBoostMHClassifier, x: Any) -> dict[str, list[Any]]:
    """What all methods say of x; the staged ones several times."""
    return {name: list(out) if name.startswith("staged") else [out] for name in METHODS for out in [getattr(model, name)(x)]}


def agree(model: AdaBoostMHClassifier, x: Any, expected: dict[str, list[Any]], kind: type) -> None:
    for name, outs in outputs(model, x).items():
        for out, wanted in zip(outs, expected[name], strict=True):
            assert isinstance(out, kind), name
            assert values(out).dtype == wanted.dtype
            assert np.array_equal(values(out), wanted), name


# ---- the same model ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_and_layout_gives_the_model_and_the_predictions_of_numpy(dtype: str, layout: str) -> None:
    host = LAYOUTS[layout](matrix(dtype))
    reference = make(4).fit(host, NOISY)
    x = on_device(host)
    model = make(4, device="emulated").fit(x, NOISY)
    assert model.device_ == "emulated"
    assert digest(model) == digest(reference)
    assert model.n_features_in_ == 3
    before = traffic(x).total
    agree(model, x, outputs(reference, host), CupyArray)
    assert traffic(x).total == before  # no byte of X went to the host


@pytest.mark.parametrize("device", ["cpu", "emulated"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array(kind: str, device: str) -> None:
    host = matrix("float32")
    x = KINDS[kind](host)
    reference = make(4).fit(host, NOISY)
    model = make(4, device=device).fit(x, NOISY)
    assert digest(model) == digest(reference)
    result = {"cupy": CupyArray, "numba": np.ndarray, "minimal": np.ndarray}.get(kind, Tensor)
    agree(model, x, outputs(reference, host), result)
    if result is Tensor:
        assert model.predict(x).device == x.device
    assert model.score(x, NOISY) == reference.score(host, NOISY)


@pytest.mark.parametrize("kind", ["cupy", "torch"])
@pytest.mark.parametrize("early_stopping", ["smoothed", False])
def test_everything_on_the_device(kind: str, early_stopping: Any) -> None:
    """Rows of weight 0 do not exist, others are held out: the rows that are encoded are chosen ones."""
    weights = np.arange(120) % 4 / 2.0
    sets = [(X[:50], NOISY[:50]), (X[50:], NOISY[50:], weights[50:])]
    params = {"early_stopping": early_stopping, "random_state": 0, "max_leaf_nodes": "auto"}
    there = KINDS[kind]
    for arguments in ({}, {"eval_set": sets}):
        reference = make(6, **params).fit(X, NOISY, weights, **arguments)
        moved = {"eval_set": [tuple(map(there, one)) for one in sets]} if arguments else {}
        model = make(6, device="emulated", **params).fit(there(X), there(NOISY), there(weights), **moved)
        assert digest(model) == digest(reference)
        for name in reference.history_.keys() - {"seconds"}:
            assert model.history_[name] == reference.history_[name]
        assert model.score(there(X), there(NOISY), there(weights)) == reference.score(X, NOISY, weights)


def test_indicator_matrices_on_the_device() -> None:
    y = np.c_[NOISY == 0, NOISY > 0].astype(np.uint8)
    reference = make(4).fit(X, y)
    model = make(4, device="emulated").fit(on_device(X), on_device(y))
    assert digest(model) == digest(reference)
    agree(model, on_device(X), outputs(reference, X), CupyArray)


@pytest.mark.parametrize("kind", ["cupy", "torch", "torch on the host"])
def test_labels_that_are_no_numbers_stay_in_numpy(kind: str) -> None:
    for labels in (NAMES[NOISY], NAMES[NOISY].astype(object), NOISY.astype("M8[D]")):
        model = make(4).fit(KINDS[kind](X), labels)
        found = model.predict(KINDS[kind](X))
        assert isinstance(found, np.ndarray)
        assert np.array_equal(found, make(4).fit(X, labels).predict(X))
        assert not isinstance(model.predict_proba(KINDS[kind](X)), np.ndarray)


# ---- what is copied ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["cupy", "torch"])
def test_decisions_by_costs_on_the_device(kind: str) -> None:
    costs = [[0, 1, 5], [2, 0, 1], [1, 4, 0]]
    host = matrix("float32")
    model = make(4).fit(host, NOISY)
    expected = model.predict(host, costs)
    x = KINDS[kind](host)
    for found in (model.predict(x, costs), min_cost_labels(model.predict_proba(x), costs)):
        assert type(found) is (CupyArray if kind == "cupy" else Tensor)
        assert values(found).tolist() == expected.tolist()
    labels = KINDS[kind](NOISY)
    assert model.expected_cost(x, labels, costs, KINDS[kind](np.arange(120.0))) == model.expected_cost(
        host, NOISY, costs, np.arange(120.0)
    )
    assert mean_cost(labels, model.predict(x, costs), costs) == mean_cost(NOISY, expected, costs)


def test_to_choose_cuts_columns_come_to_the_host_once(monkeypatch: pytest.MonkeyPatch) -> None:
    host = np.random.default_rng(0).normal(size=(3000, 5))
    y = np.digitize(host[:, 2], [-0.5, 0.5])
    monkeypatch.setattr(samples, "BLOCK_BYTES", 2 * 3000 * 8)
    expected = digest(make(2, learner="stump").fit(host, y))
    x = on_device(host)
    model = make(2, learner="stump", device="emulated").fit(x, y)
    assert digest(model) == expected
    assert (traffic(x).total, traffic(x).largest) == (host.nbytes, 2 * 3000 * 8)
    model.set_params(warm_start=True, n_estimators=3).fit(x, y)
    assert traffic(x).total == host.nbytes  # the cuts are there
    monkeypatch.setattr(samples, "BLOCK_BYTES", 1)  # less than one column: then one, or as many as there are threads
    x = on_device(host)
    assert digest(make(2, learner="stump", device="emulated", n_jobs=1).fit(x, y)) == expected
    assert (traffic(x).total, traffic(x).largest) == (host.nbytes, 3000 * 8)


def test_to_count_distinct_rows_some_come_to_the_host() -> None:
    host = np.random.default_rng(0).normal(size=(5000, 2))
    y = np.digitize(host[:, 1], [0.0])
    x = on_device(host)
    model = make(1, max_leaf_nodes="auto", device="emulated").fit(x, y)
    assert digest(model) == digest(make(1, max_leaf_nodes="auto").fit(host, y))
    assert traffic(x).total == host.nbytes + 2000 * 2 * 8  # the first 2000 rows are all different


def test_a_backend_on_the_host_gets_one_copy() -> None:
    x = on_device(X)
    model = make(3, device="cpu", max_leaf_nodes="auto").fit(x, NOISY)
    assert traffic(x).total == X.nbytes
    model.predict(x)
    assert traffic(x).total == 2 * X.nbytes


def test_predictions_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    model = make(4, device="emulated").fit(X, NOISY)
    expected = model.predict_proba(X)
    monkeypatch.setattr(predictor, "BLOCK_BYTES", 7 * (3 + 8 * 3))  # 7 rows
    for name, kind in KINDS.items():
        x = kind(X)
        assert np.array_equal(values(model.predict_proba(x)), expected), name
        if name != "torch on the host":
            assert traffic(x).total == 0


# ---- errors ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (on_device(X[:, 0]), ValueError, r"Expected 2D array, got 1D array instead: X has the shape \(120,\)"),
        (on_device(X[None]), ValueError, r"Expected 2D array, got 3D array instead: X has the shape \(1, 120, 3\)"),
        (on_device(X[:0]), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required by AdaBoostMH"),
        (
            on_device(X[:, :0]),
            ValueError,
            r"0 feature\(s\) \(shape=\(120, 0\)\) while a minimum of 1 is required by AdaBoostMH",
        ),
        (on_device(X + 0j), ValueError, "Complex data not supported: X has dtype complex128"),
        (
            Tensor(on_device(X), dtype="bfloat16"),
            TypeError,
            "X has the dtype torch.bfloat16, which is none of NumPy's numbers; convert it, for instance to float32",
        ),
        (Tensor(X, dtype="bfloat16"), TypeError, "X has the dtype torch.bfloat16"),
        (Tensor(X, dtype="quint8"), TypeError, "X has the dtype torch.quint8"),
        (
            Tensor(on_device(X), layout="sparse_csr"),
            TypeError,
            r"X is sparse \(Tensor\), but dense data is required; use .to_dense\(\)",
        ),
        (Tensor(X, layout="sparse_coo"), TypeError, r"X is sparse \(Tensor\), but dense data is required; use .to_dense\(\)"),
    ],
)
def test_matrices_that_will_not_do(x: Any, error: type[Exception], message: str) -> None:
    for device in ("cpu", "emulated"):
        with pytest.raises(error, match=message):
            make(device=device).fit(x, NOISY)
        with pytest.raises(error, match=message.replace("X ", "X of eval_set ")):
            make(device=device).fit(X, NOISY, eval_set=(x, NOISY))


def test_the_number_of_columns_is_checked() -> None:
    model = make(2, device="emulated").fit(on_device(X), NOISY)
    for method in METHODS:
        with pytest.raises(ValueError, match="X has 2 features, but AdaBoostMHClassifier is expecting 3 features as input"):
            getattr(model, method)(on_device(X[:, :2]))


def of_package(package: str, name: str, **attributes: Any) -> Any:
    return type(name, (SimpleNamespace,), {"__module__": f"{package}.core"})(**attributes)


def test_other_things_that_live_on_a_device() -> None:
    frame = of_package("cudf", "DataFrame", shape=X.shape)
    series = of_package("cudf", "Series", shape=(120,), __cuda_array_interface__={})
    sparse = of_package("cupyx", "csr_matrix", shape=X.shape)
    with pytest.raises(TypeError, match=r"X is a DataFrame of cuDF, .* use .to_cupy\(\) or .to_pandas\(\)"):
        make().fit(frame, NOISY)
    with pytest.raises(TypeError, match=r"X is a Series of cuDF"):
        make().fit(series, NOISY)
    with pytest.raises(TypeError, match=r"y is a Series of cuDF, .* use .to_cupy\(\) or .to_pandas\(\)"):
        make().fit(X, series)
    with pytest.raises(TypeError, match=r"X is sparse \(csr_matrix\), but dense data is required; use .toarray\(\)"):
        make().fit(sparse, NOISY)


@pytest.mark.parametrize("device", ["cpu", "emulated"])
def test_labels_and_weights_that_will_not_do(device: str) -> None:
    halves = Tensor(on_device(NOISY.astype(float)), dtype="bfloat16")
    with pytest.raises(TypeError, match=r"y has the dtype torch\.bfloat16"):
        make(device=device).fit(on_device(X), halves)
    with pytest.raises(TypeError, match=r"sample_weight has the dtype torch\.bfloat16"):
        make(device=device).fit(on_device(X), NOISY, halves)
    with pytest.raises(ValueError, match="y must have one entry for each of the 120 rows of X, got 7"):
        make(device=device).fit(on_device(X), on_device(NOISY[:7]))
    with pytest.raises(ValueError, match="sample_weight must have one entry for each of the 120 rows of X, got 7"):
        make(device=device).fit(on_device(X), NOISY, on_device(np.ones(7)))
    with pytest.raises(ValueError, match="missing value in y"):
        make(device=device).fit(on_device(X), on_device(np.where(NOISY == 0, np.nan, NOISY)))


def test_the_byte_order_of_another_machine_is_refused() -> None:
    model = make(3, device="emulated").fit(X, NOISY)
    with pytest.raises(TypeError, match=r"X on the device has the byte order of another machine \(>f8\); convert it first"):
        model.predict(on_device(X.astype(">f8")))


def test_without_cupy_arrays_of_pytorch_reach_the_host_and_others_do_not() -> None:
    with pytest.MonkeyPatch.context() as patch:  # ends before the imitation of CuPy does
        patch.setitem(sys.modules, "cupy", None)
        model = make(3).fit(Tensor(on_device(X)), NOISY)
        assert digest(model) == digest(make(3).fit(X, NOISY))
        with pytest.raises(DeviceUnavailableError, match="the NumbaArray lies on a CUDA device, and reading it there needs"):
            model.predict(NumbaArray(on_device(X)))


# ---- to_host and like --------------------------------------------------------------------------------------------------------


def test_what_is_on_the_host_stays_as_it_is() -> None:
    for x in (X, X.tolist(), None, 1.5, "a", np.float32(1)):
        assert to_host(x) is x
        assert as_type_of(X, x) is X
    ones = Tensor(X, requires_grad=True)
    assert to_host(ones) is X  # no copy


@pytest.mark.parametrize("kind", KINDS)
def test_to_host_and_back(kind: str) -> None:
    x = KINDS[kind](X)
    assert isinstance(to_host(x), np.ndarray)
    assert np.array_equal(to_host(x), X)
    back = as_type_of(NOISY, x)
    assert values(back).dtype == NOISY.dtype
    assert np.array_equal(values(back), NOISY)


def test_results_are_on_the_device_of_x() -> None:
    assert as_type_of(NOISY, on_device(X, 1)).device.id == 1
    assert as_type_of(NOISY, on_device(X, 0)).device.id == 0
    assert as_type_of(NOISY, Tensor(on_device(X))).device == "cuda:0"
    assert as_type_of(NOISY, Tensor(X)).device == "cpu"


def test_subclasses_are_of_the_library_that_they_come_from() -> None:
    class Image(Tensor):
        __module__ = "elsewhere"

    assert isinstance(as_type_of(NOISY, Image(X)), Tensor)


def test_what_no_other_library_has_stays_in_numpy() -> None:
    for result in (NAMES, NAMES.astype(object), NOISY.astype("M8[D]"), X.astype(np.longdouble)):
        assert as_type_of(result, on_device(X)) is result
        assert as_type_of(result, Tensor(X)) is result


# ---- the real libraries ------------------------------------------------------------------------------------------------------


@pytest.fixture
def asked_for(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--device") != "cuda":
        pytest.skip("tests of CuPy and PyTorch themselves run with --device cuda")


@pytest.fixture
def card(asked_for: None) -> None:
    """A card; else the test is skipped."""
    from tests.candidates import cuda

    with cuda():
        pass


@pytest.fixture
def torch(asked_for: None) -> ModuleType:
    return pytest.importorskip("torch")  # type: ignore[no-any-return]


@pytest.mark.usefixtures("asked_for")
@pytest.mark.parametrize("dtype", DTYPES)
def test_pytorch_on_the_host(torch: Any, dtype: str) -> None:
    host = matrix(dtype)
    reference = make(4).fit(host, NOISY)
    for x in (torch.from_numpy(host), torch.from_numpy(np.asfortranarray(host))):
        x = x.requires_grad_() if x.is_floating_point() else x
        model = make(4).fit(x, torch.from_numpy(NOISY), torch.ones(120))
        assert digest(model) == digest(reference)
        for name, outs in outputs(model, x).items():
            assert all(isinstance(out, torch.Tensor) and out.device.type == "cpu" for out in outs)
            assert all(np.array_equal(a, b) for a, b in zip(outs, outputs(reference, host)[name], strict=True))
        assert model.score(x, torch.from_numpy(NOISY)) == reference.score(host, NOISY)
    with pytest.raises(TypeError, match=r"X has the dtype torch\.bfloat16"):
        model.predict(torch.from_numpy(X).to(torch.bfloat16))
    with pytest.raises(TypeError, match=r"X is sparse"):
        model.predict(torch.from_numpy(X).to_sparse())


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_cupy(dtype: str, layout: str) -> None:
    import cupy

    host = matrix(dtype)
    x = {
        "C": lambda x: x,
        "F": cupy.asfortranarray,
        "sliced": lambda x: cupy.run(cupy.run(x, 2, axis=0), 3, axis=1)[::2, ::3],
        "reversed": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
        "reversed rows of F": lambda x: cupy.asfortranarray(x[::-1])[::-1],
    }[layout](cupy.asarray(host))
    reference = make(4).fit(host, NOISY)
    cupy.cuda.get_current_stream().synchronize()
    with cupy.cuda.Stream(non_blocking=True):
        x = x.copy(order="K") if layout in "CF" else x  # on a stream that no other waits for
        model = make(4, device="cuda").fit(x, cupy.asarray(NOISY))
        assert digest(model) == digest(reference)
        for name, outs in outputs(model, x).items():
            assert all(isinstance(out, cupy.ndarray) for out in outs)
            assert all(np.array_equal(a.get(), b) for a, b in zip(outs, outputs(reference, host)[name], strict=True))


@pytest.mark.usefixtures("card")
@pytest.mark.parametrize("dtype", DTYPES)
def test_pytorch_on_the_card(torch: Any, dtype: str) -> None:
    host = matrix(dtype)
    reference = make(4).fit(host, NOISY)
    with torch.cuda.stream(torch.cuda.Stream()):  # whose work nobody has waited for
        wide = torch.from_numpy(np.repeat(host, 2, axis=1)).pin_memory().cuda(non_blocking=True)
        for x in (wide[:, ::2], wide[:, ::2].contiguous(), wide[:, ::2].T.contiguous().T):
            x = x.requires_grad_() if x.is_leaf and x.is_floating_point() else x
            model = make(4, device="cuda").fit(x, torch.from_numpy(NOISY).cuda())
            assert digest(model) == digest(reference)
            for name, outs in outputs(model, x).items():
                assert all(isinstance(out, torch.Tensor) and out.device == x.device for out in outs)
                assert all(np.array_equal(a.cpu(), b) for a, b in zip(outs, outputs(reference, host)[name], strict=True))
            assert digest(make(4).fit(x, NOISY)) == digest(reference)


@pytest.mark.usefixtures("card")
def test_numba_on_the_card() -> None:
    cuda = pytest.importorskip("numba.cuda")
    x = cuda.to_device(X)
    model = make(4, device="cuda").fit(x, NOISY)
    assert digest(model) == digest(make(4).fit(X, NOISY))
    assert np.array_equal(model.predict(x), model.predict(X))


@pytest.mark.parametrize("kind", ["cupy", "torch"])
@pytest.mark.parametrize("device", ["emulated", "cpu"])
def test_similarities_of_rows_on_a_device(kind: str, device: str) -> None:
    numbers, array = matrix("float32"), KINDS[kind]
    models = [
        LocalizedSimilaritiesClassifier(n_estimators=4, device=where, n_jobs=1, random_state=0).fit(rows, NOISY)
        for where, rows in (("numpy", numbers), (device, array(numbers)))
    ]
    assert models[0].ensemble_.digest() == models[1].ensemble_.digest()
    assert np.array_equal(values(models[1].decision_function(array(numbers))), models[0].decision_function(numbers))
    assert len(models[1].explain(array(numbers)).lead) == len(numbers)

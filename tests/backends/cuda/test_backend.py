"""The CUDA backend behind the estimators, on the emulated device: the same model, memory given back, and clear refusals."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpuboost
from gpuboost import devices
from gpuboost.backends.cuda import binning, plan
from gpuboost.backends.cuda import launch as launching
from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.gpu import Limits
from gpuboost.backends.cuda.growth import ASK_EVERY
from gpuboost.backends.cuda.kernels import KERNELS
from gpuboost.backends.cuda.launch import launch, prepare
from gpuboost.backends.frontier import GrowthScope
from gpuboost.errors import DeviceLostError, DeviceMemoryError
from tests.cuda_on_cpu.gpu import EmulatedGpu

SMALL_DEVICE = Limits(n_multiprocessors=2, shared_per_block=227 * 1024, shared_per_multiprocessor=1024 * 1024)
LARGE = 1 << 30

Fit = Callable[..., Any]


class Devices:
    """Opens emulated devices for the estimators, and remembers them."""

    def __init__(self) -> None:
        self.memory = LARGE
        self.opened: list[EmulatedGpu] = []

    def open(self, index: int | None) -> CudaBackend:
        self.opened.append(EmulatedGpu(memory=self.memory, limits=SMALL_DEVICE))
        return CudaBackend(self.opened[-1])

    def used(self) -> int:
        """Bytes that are still taken on any of them."""
        gc.collect()
        return sum(self.memory - gpu.free_bytes() for gpu in self.opened)


@pytest.fixture
def emulated(monkeypatch: pytest.MonkeyPatch) -> Devices:
    found = Devices()
    monkeypatch.setitem(devices.OPENERS, "emulated", found.open)
    return found


def problem(n_rows: int = 300, n_features: int = 6, n_classes: int = 4) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    y = rng.integers(0, n_classes, n_rows)
    X = rng.normal(size=(n_rows, n_features)) + y[:, None] * rng.normal(size=n_features)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.array(["w", "x", "y", "z"])[y]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"variant": "discrete", "learner": "product", "n_factors": 2},
        {"learner": "stump", "learning_rate": 0.5},
        {"early_stopping": True, "max_bins": 16},
        {"min_weight_fraction_leaf": 0.1, "class_weight": "balanced"},
        {"max_leaf_nodes": ASK_EVERY + 8, "n_estimators": 3},  # so many steps that the device is asked whether it is done
    ],
)
def test_the_same_model(emulated: Devices, options: dict[str, Any]) -> None:
    X, y = problem()
    one, other = (
        gpuboost.fit(X, y, **{"n_estimators": 8, "random_state": 0, **options, "device": d}) for d in ("cpu", "emulated")
    )
    assert other.device_ == "emulated"
    assert one.ensemble_.digest() == other.ensemble_.digest()
    assert {k: v for k, v in one.history_.items() if k != "seconds"} == {
        k: v for k, v in other.history_.items() if k != "seconds"
    }
    assert one.predict_proba(X).tobytes() == other.predict_proba(X).tobytes()
    assert (one.predict(X) == other.predict(X)).all()
    stages = zip(one.staged_decision_function(X), other.staged_decision_function(X), strict=True)
    assert all(a.tobytes() == b.tobytes() for a, b in stages)
    assert emulated.used() == 0


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?", ">f8", ">i2", "g"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_matrices_of_every_kind(emulated: Devices, dtype: str, order: str) -> None:
    rng = np.random.default_rng(3)
    X = np.asarray(rng.integers(0, 100, (90, 5)), order=order).astype(dtype)
    y = (X.astype(float).sum(axis=1) + rng.integers(0, 40, 90)) % 3 // 1
    weight = rng.integers(0, 3, 90)  # rows of weight 0 are left out
    one, other = (gpuboost.fit(X, y, n_estimators=4, device=device, sample_weight=weight) for device in ("cpu", "emulated"))
    assert one.ensemble_.digest() == other.ensemble_.digest()
    assert (one.predict(X) == other.predict(X)).all()


@pytest.mark.parametrize(
    ("algorithm", "options", "waits"),
    [
        ("adaboost-mh", {"variant": "discrete"}, 3),  # for the tree, the total weight and the error
        ("adaboost-mh", {"variant": "real"}, 4),  # and for the sums of its leaves
        ("samme", {}, 4),
        ("gamble", {}, 4),
    ],
)
def test_how_often_a_round_waits(
    emulated: Devices, monkeypatch: pytest.MonkeyPatch, algorithm: str, options: dict[str, Any], waits: int
) -> None:
    fetched: list[int] = []
    counts: list[int] = []
    get = EmulatedGpu.get
    monkeypatch.setattr(EmulatedGpu, "get", lambda gpu, array: fetched.append(array.nbytes) or get(gpu, array))
    X, y = problem()
    gpuboost.fit(
        X,
        y,
        algorithm=algorithm,
        n_estimators=5,
        max_leaf_nodes=5,
        device="emulated",
        callbacks=[lambda progress: counts.append(len(fetched))],
        **options,
    )
    assert np.diff(counts).tolist() == [waits] * 4


def test_memory_is_given_back_after_an_exception(emulated: Devices) -> None:
    X, y = problem()

    def fail(progress: Any) -> None:
        raise RuntimeError("from a callback")

    with pytest.raises(RuntimeError, match="from a callback"):
        gpuboost.fit(X, y, n_estimators=5, device="emulated", callbacks=[fail])
    assert emulated.used() == 0


def test_trees_beyond_a_launch_are_refused_before_it(emulated: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "MAX_TREES", 5)
    X, y = problem(n_classes=4)  # six pairs of classes
    options = {"algorithm": "abc-boost", "n_estimators": 2, "device": "emulated"}
    with monkeypatch.context() as patch:
        patch.setattr(launching, "MAX_GRID", (2**31 - 1, 5, 5))
        with pytest.raises(DeviceMemoryError, match="a round grows 6 trees together, but a launch has room for 5"):
            gpuboost.fit(X, y, **options)
    assert gpuboost.fit(X, y, n_candidates=1, **options).device_ == "emulated"


@pytest.mark.parametrize(("limit", "most"), [("MAX_COLUMNS", 5), ("MAX_ROWS", 299)])
def test_matrices_beyond_a_launch_are_refused_before_it(
    emulated: Devices, monkeypatch: pytest.MonkeyPatch, limit: str, most: int
) -> None:
    assert (binning.MAX_COLUMNS, binning.MAX_ROWS) == (1_048_560, 2_147_483_647)
    X, y = problem()
    model = gpuboost.fit(X, y, n_estimators=1, device="emulated")
    monkeypatch.setattr(binning, limit, most)
    for use in (model.predict, lambda X: model.fit(X, y)):
        with pytest.raises(DeviceMemoryError, match=f"X has 300 rows and 6 columns, but .*{most} .*device=.cpu") as caught:
            use(X)
        del caught
    assert emulated.used() == 0
    assert model.set_params(device="cpu").fit(X, y).device_ == "cpu"


def test_a_device_that_is_lost_in_the_middle(emulated: Devices, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    X, y = problem()
    model = gpuboost.AdaBoostMHClassifier(n_estimators=2, device="emulated").fit(X, y)
    before, get = model.ensemble_.digest(), EmulatedGpu.get

    def crash(gpu: EmulatedGpu, array: Any) -> Any:
        raise DeviceLostError("cuda:0 has stopped working (cudaErrorLaunchFailure).")

    def lose(progress: Any) -> None:
        if progress.n_rounds == 5:
            monkeypatch.setattr(EmulatedGpu, "get", crash)

    path = tmp_path / "model.checkpoint"
    model.set_params(n_estimators=8, callbacks=[gpuboost.Checkpoint(path, every=4), lose])
    with pytest.raises(DeviceLostError) as caught:
        model.fit(X, y)
    assert str(caught.value) == (
        "cuda:0 has stopped working (cudaErrorLaunchFailure). The 5 rounds of this training are lost, but for those that a "
        "gpuboost.Checkpoint among its callbacks has written to a file: "
        "load it and fit with warm_start=True to go on from there."
    )
    del caught  # whose frames hold arrays
    assert model.ensemble_.digest() == before  # the earlier fit
    assert emulated.used() == 0
    monkeypatch.setattr(EmulatedGpu, "get", get)
    resumed = gpuboost.load(path)
    assert resumed.n_estimators_ == 4
    resumed.set_params(warm_start=True, device="cpu").fit(X, y)
    whole = gpuboost.AdaBoostMHClassifier(n_estimators=8, device="cpu").fit(X, y)
    assert resumed.ensemble_.digest() == whole.ensemble_.digest()


def test_an_interrupt_keeps_the_rounds_so_far(emulated: Devices) -> None:
    X, y = problem()

    def interrupt(progress: Any) -> None:
        if progress.n_rounds == 3:
            raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="interrupted after 3 rounds"):
        model = gpuboost.fit(X, y, n_estimators=5, device="emulated", callbacks=[interrupt])
    assert model.ensemble_.digest() == gpuboost.fit(X, y, n_estimators=3, device="cpu").ensemble_.digest()
    assert emulated.used() == 0


@pytest.mark.slow
def test_the_same_model_with_less_and_less_memory(emulated: Devices) -> None:
    # From enough for everything down to too little for anything: the same model, or an error that says what to do.
    X, y = problem(n_features=17)
    expected = gpuboost.fit(X, y, n_estimators=2, device="cpu").ensemble_.digest()
    outcomes = []
    for kib in (4096, 1024, 512, 384, 320, 256, 192, 128, 64, 32, 8, 1):
        emulated.memory = kib << 10
        try:
            assert gpuboost.fit(X, y, n_estimators=2, device="emulated").ensemble_.digest() == expected
            outcomes.append(True)
        except DeviceMemoryError as error:
            outcomes.append("free" not in str(error))
        assert emulated.used() == 0
        emulated.opened.clear()
    assert outcomes == sorted(outcomes, reverse=True)
    assert outcomes[0]
    assert not outcomes[-1]


def test_a_refit_that_does_not_fit_leaves_the_old_model(emulated: Devices) -> None:
    X, y = problem()
    model = gpuboost.fit(X, y, n_estimators=2, device="emulated")
    before = model.ensemble_.digest()
    emulated.opened.clear()
    emulated.memory = 4096
    with pytest.raises(DeviceMemoryError):
        model.fit(X, y)
    assert model.ensemble_.digest() == before


def test_a_growth_is_checked_once_and_queued_again(emulated: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    from gpuboost.backends.cuda import growth

    prepared = []
    prepare = growth.prepare
    monkeypatch.setattr(
        growth, "prepare", lambda gpu, name, *rest, **how: prepared.append(name) or prepare(gpu, name, *rest, **how)
    )
    X, y = problem()
    gpuboost.fit(X, y, n_estimators=6, max_leaf_nodes=4, device="emulated")
    # Of the growth itself each kernel was checked for one tree only: a root and two expansions.
    assert prepared.count("histogram") == prepared.count("sweep_edge") == 3
    assert prepared.count("pop_best_leaf") == prepared.count("partition_rows") == 3
    assert prepared.count("init_roots") == prepared.count("root_totals") == 1
    assert prepared.count("node_of_rows") == 6


def test_other_rows_and_features_are_queued_again_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Growths of one tree from some rows and features, in turn with batches of three trees: two recordings, no new memory."""
    from gpuboost.backends.cuda import growth
    from gpuboost.learners.growth import grow
    from tests.problems import coded, stats_of

    prepared, allocated = [], []
    prepare, empty = growth.prepare, EmulatedGpu.empty
    monkeypatch.setattr(
        growth, "prepare", lambda gpu, name, *rest, **how: prepared.append(name) or prepare(gpu, name, *rest, **how)
    )
    rng = np.random.default_rng(0)
    data, quantised = coded(rng.integers(0, 9, (5, 200))), rng.integers(-9, 9, (200, 3))
    with CudaBackend(EmulatedGpu(limits=SMALL_DEVICE)) as backend:
        matrix, stats = backend.load(data), stats_of(backend, quantised)

        def batch(size: int) -> None:
            rows = backend.put(rng.permutation(200)[:size].astype(np.int32))
            grow(backend, matrix, stats, 4, GrowthScope(rows, None, rng.random(5) < 0.5))
            grow(backend, matrix, stats, 3, GrowthScope(rows, np.array([0, size // 3, size // 2, size])))

        batch(90)
        batch(90)  # the first may have moved to larger memory
        assert len(backend.recordings) == 2
        monkeypatch.setattr(EmulatedGpu, "empty", lambda gpu, *what: allocated.append(what) or empty(gpu, *what))
        prepared.clear()
        for size in (91, 13, 200):
            batch(size)
        assert len(backend.recordings) == 2
    assert sorted(set(prepared)) == ["choose_features", "init_roots", "root_totals"]
    assert allocated == []


def test_growths_on_another_matrix_are_forgotten() -> None:
    """Else a booster that draws new rows every round would keep all of them on the device."""
    from gpuboost.learners.growth import grow
    from tests.problems import coded, stats_of

    rng = np.random.default_rng(0)
    with CudaBackend(EmulatedGpu()) as backend:
        for _ in range(3):
            matrix, stats = backend.load(coded(rng.integers(0, 9, (5, 200)))), stats_of(backend, rng.integers(-9, 9, (200, 3)))
            for leaves in (3, 4):
                grow(backend, matrix, stats, leaves)
            assert {one.owner for one in backend.recordings.values()} == {matrix.columns}
            assert {one.recording.owner for one in backend.starts.values()} == {matrix.columns}


@pytest.mark.parametrize("round_", [0, 1])
def test_a_growth_that_is_interrupted_leaves_the_next_one_alone(round_: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the two kernels of a partition, in the round that records and in one that repeats."""
    from gpuboost.learners.growth import grow
    from tests.problems import coded, stats_of

    data, quantised = (
        coded(np.random.default_rng(0).integers(0, 9, (5, 200))),
        np.random.default_rng(1).integers(-9, 9, (200, 3)),
    )
    with CudaBackend(EmulatedGpu(limits=SMALL_DEVICE)) as backend:
        matrix, stats = backend.load(data), stats_of(backend, quantised)

        def result() -> bytes:
            return backend.read_nodes(grow(backend, matrix, stats, 4))[0].tobytes()

        expected = result()
        if round_ == 0:
            backend.recordings.clear()
        launch_ = backend.gpu.launch
        seen = []

        def interrupted(kernel: Any, *rest: Any) -> None:
            seen.append(kernel.name)
            if kernel.name == "partition_nodes":
                raise KeyboardInterrupt
            launch_(kernel, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(backend.gpu, "launch", interrupted)
            with pytest.raises(KeyboardInterrupt):
                grow(backend, matrix, stats, 4)
        assert seen[-2] == "partition_rows"
        assert backend.queued is None
        assert result() == expected


def test_launches_are_checked() -> None:
    gpu = EmulatedGpu()
    table, current = gpu.put(np.zeros((1, 3, 14), np.int64)), gpu.put(np.zeros(1, np.int64))
    good = (table, current, 3, 2, 0)
    launch(gpu, "pop_best_leaf", (0,), good, block=32)  # no blocks: nothing happens

    def refused(error: type[Exception], match: str, arguments: tuple[Any, ...] = good, grid: Any = (1,), **how: int) -> None:
        with pytest.raises(error, match=match):
            launch(gpu, "pop_best_leaf", grid, arguments, **{"block": 32, **how})

    refused(ValueError, r"pop_best_leaf takes 5 arguments, got 4", good[:4])
    refused(TypeError, r"pop_best_leaf\(table\) takes an array of dtype int64, got int32", (table.view(np.int32), *good[1:]))
    refused(TypeError, r"pop_best_leaf\(current\) takes an array of dtype int64, got None", (table, None, 3, 2, 0))
    refused(ValueError, r"pop_best_leaf\(table\) must be C-contiguous", (table[:, :, ::2], *good[1:]))
    refused(TypeError, r"pop_best_leaf\(max_nodes\) takes a number of dtype int32, got 2\.5", (table, current, 2.5, 2, 0))
    refused(TypeError, r"pop_best_leaf\(step\) takes a number of dtype int32, got True", (table, current, 3, 2, True))
    refused(OverflowError, "too large|out of bounds", (table, current, 2**31, 2, 0))
    refused(ValueError, r"a grid of \(1, 70000, 1\) is beyond", grid=(1, 70000))
    refused(ValueError, "a block of 48 threads is no multiple of 32 up to 256", block=48)
    refused(ValueError, "a block of 512 threads", block=512)
    refused(ValueError, "300000 bytes of shared memory, but a block has", shared_bytes=300_000)
    assert KERNELS["histogram"].max_block == 1024


def test_fields_of_structs_are_checked() -> None:
    gpu = EmulatedGpu()
    sizes = {"n_rows": 0, "n_classes": 1, "n_leaves": 1, "shift": 0, "lowest": 0.5, "coefficients": [0.25] * 11}
    double, int32 = gpu.put(np.zeros(4)), gpu.put(np.zeros(4, np.int32))
    arrays = (double, int32, int32, double, int32, int32, double, int32, gpu.put(np.zeros(4, np.int64)))
    (*_, struct) = prepare(gpu, "softmax_losses", (1,), (*arrays, sizes)).arguments
    assert struct.shape == ()
    assert struct.tobytes() == np.array([0, 1, 1, 0], np.int32).tobytes() + np.array([0.5] + [0.25] * 11).tobytes()

    def refused(error: type[Exception], match: str, changed: dict[str, Any]) -> None:
        with pytest.raises(error, match=match):
            prepare(gpu, "softmax_losses", (1,), (*arrays, changed))

    where = r"softmax_losses\(sizes\)"
    refused(TypeError, where + r"\.n_rows takes a number of dtype int32, got 2\.5", {**sizes, "n_rows": 2.5})
    refused(TypeError, where + r"\.shift takes a number of dtype int32, got None", {**sizes, "shift": None})
    refused(OverflowError, "too large|out of bounds", {**sizes, "shift": 2**31})
    refused(TypeError, where + r"\.coefficients takes 11 numbers, got 10", {**sizes, "coefficients": [0.25] * 10})
    refused(TypeError, where + " takes the fields n_rows, .*, coefficients, got n_rows$", {"n_rows": 1})
    refused(TypeError, where + " takes the fields .*, got .*, more$", {**sizes, "more": 1})

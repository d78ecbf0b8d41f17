"""`gpuboost.backends.cuda.cupy_gpu` on an imagined CuPy, and the folder of kernels that were compiled ahead."""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from gpuboost.backends.cuda import cupy_gpu, fatbin, kernels, loss
from gpuboost.backends.cuda.cupy_gpu import STAGING_BYTES, CupyGpu
from gpuboost.backends.cuda.device_arrays import as_cupy, span, to_numpy
from gpuboost.backends.cuda.gpu import Limits
from gpuboost.backends.cuda.kernels import Kernel, signature
from gpuboost.errors import DeviceLostError, DeviceMemoryError, DeviceUnavailableError
from tests import fake_cupy
from tests.fake_cupy import Array, Cuda, current_device

ONE = Kernel("one", "first", signature("x:i4*"), 256)
TWO = Kernel("two", "first", signature("x:i4*"), 256)
OTHER = Kernel("other", "second", signature("x:i4*"), 256)
CRASH = fake_cupy.CUDADriverError(700, "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Cuda]:
    """Two devices, the first of them current, and two files of kernels."""
    for file in ("first", "second"):
        (tmp_path / f"{file}.cu").write_text(f"// {file}\n")
    monkeypatch.setattr(kernels, "source_folder", lambda: tmp_path)
    monkeypatch.setattr(cupy_gpu, "FUNCTIONS", {})
    loss.LOST.clear()
    monkeypatch.delenv(fatbin.VARIABLE, raising=False)
    cuda = Cuda(2)
    monkeypatch.setitem(sys.modules, "cupy", cuda.module())
    with current_device(cuda, 0):
        yield cuda


@pytest.fixture
def gpu(cuda: Cuda) -> CupyGpu:
    return CupyGpu(1)


def launch(gpu: CupyGpu, kernel: Kernel, shared_bytes: int = 0) -> None:
    gpu.launch(kernel, (2, 1, 1), 64, (gpu.empty((1,), np.int32),), shared_bytes)


def test_name_for_peers(cuda: Cuda, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device is named by its UUID; NCCL is used where CuPy has it and nobody has said otherwise."""
    gpus = [CupyGpu(0), CupyGpu(1)]
    assert [gpu.name_for_peers() for gpu in gpus] == [("00" * 16, ""), ("01" * 16, "")]
    gpus[1].cupy.cuda.nccl = SimpleNamespace(available=True, get_version=lambda: 22304)
    assert gpus[1].name_for_peers() == ("01" * 16, "NCCL 22304")
    monkeypatch.setenv(cupy_gpu.NCCL, "0")
    assert gpus[1].name_for_peers() == ("01" * 16, "")


# ---- memory ------------------------------------------------------------------------------------------------------------------


def test_label_and_limits(gpu: CupyGpu) -> None:
    assert gpu.label == "cuda:1"
    assert gpu.limits == Limits(132, 227 << 10, 228 << 10)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (5,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("dtype", ["u1", "i4", "f8", "?"])
def test_round_trip(gpu: CupyGpu, shape: tuple[int, ...], dtype: str) -> None:
    host = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
    array = gpu.put(host)
    assert array.device.id == 1
    back = gpu.get(array)
    assert (back.dtype, back.shape) == (host.dtype, host.shape)
    assert np.array_equal(back, host)


def test_put_takes_any_layout(gpu: CupyGpu) -> None:
    host = np.arange(24).reshape(4, 6)
    for view in (host.T, host[::-1], host[:, ::2], np.asfortranarray(host)):
        array = gpu.put(view)
        assert array.flags.c_contiguous
        assert np.array_equal(gpu.get(array), view)


@pytest.mark.parametrize("n", [1, 1000, STAGING_BYTES // 8, STAGING_BYTES // 8 + 1])
def test_the_caller_may_change_the_source_at_once(gpu: CupyGpu, n: int) -> None:
    host = np.arange(n, dtype=np.int64)
    array = gpu.put(host)
    host[:] = -1
    assert np.array_equal(gpu.get(array), np.arange(n))


def test_staged_copies_do_not_overwrite_each_other(gpu: CupyGpu, cuda: Cuda) -> None:
    parts = [np.full(STAGING_BYTES // 3 + i, i, np.uint8) for i in range(8)]
    arrays = [gpu.put(part) for part in parts]
    assert cuda.n_synchronised == 3  # two fit at a time
    for array, part in zip(arrays, parts, strict=True):
        assert np.array_equal(gpu.get(array), part)


def test_small_arrays_do_not_wait(gpu: CupyGpu, cuda: Cuda) -> None:
    for i in range(100):
        gpu.put(np.full(10, i))
    assert cuda.n_synchronised == 0


@pytest.mark.parametrize(
    "cut", [np.s_[1:3], np.s_[:, 2], np.s_[::-1], np.s_[1, ::-2], np.s_[:, ::3, 1:], np.s_[2, 1, 3], np.s_[3:3]]
)
def test_get_takes_views(gpu: CupyGpu, cut: Any) -> None:
    host = np.arange(60).reshape(3, 4, 5)
    back = gpu.get(gpu.put(host)[cut])
    assert np.array_equal(back, host[cut])
    assert back.flags.c_contiguous
    assert back.flags.writeable


def test_get_is_a_copy(gpu: CupyGpu) -> None:
    array = gpu.put(np.arange(3))
    gpu.get(array)[:] = 7
    assert gpu.get(array).tolist() == [0, 1, 2]


def test_zero_touches_what_it_is_given_only(gpu: CupyGpu) -> None:
    array = gpu.put(np.arange(1, 13).reshape(3, 4))
    gpu.zero(array[1])
    gpu.zero(array[:0])
    assert gpu.get(array).tolist() == [[1, 2, 3, 4], [0, 0, 0, 0], [9, 10, 11, 12]]


def test_span() -> None:
    bytes_ = SimpleNamespace(shape=(3, 2), strides=(-16, 4), dtype=np.dtype("i4"), size=6)
    assert span(bytes_) == (-32, 8)  # rows 0, -16, -32; columns at 0 and 4, each 4 bytes
    assert span(np.zeros((0, 5))) == (0, 0)
    assert span(np.zeros((3, 5), "f8")) == (0, 120)


def test_memory_is_counted_and_given_back(gpu: CupyGpu, cuda: Cuda) -> None:
    before = gpu.free_bytes()
    kept, dropped = gpu.empty((1000,), np.uint8), gpu.empty((3000,), np.uint8)
    assert gpu.free_bytes() == before - 4000
    del dropped
    assert gpu.free_bytes() == before - 1000  # in the pool, where it can be had again
    assert cuda.allocated == [0, 4000]
    gpu.zero(kept)
    gpu.close()
    assert cuda.allocated == [0, 1000]
    assert not gpu.get(kept).any()
    del kept
    assert cuda.allocated == [0, 0]  # although it was closed before


def test_memory_is_given_back_after_an_exception(gpu: CupyGpu, cuda: Cuda) -> None:
    def work() -> None:
        arrays = [gpu.put(np.arange(100)), gpu.empty((7, 7), np.float64)]
        raise RuntimeError(str(len(arrays)))

    try:
        with pytest.raises(RuntimeError, match="2"):
            work()
    finally:
        gpu.close()
    assert cuda.allocated == [0, 0]
    assert gpu.get(gpu.put(np.arange(3))).tolist() == [0, 1, 2]  # it can still be used


def test_nothing_leaks_of_a_block_that_is_divided_when_it_is_closed(gpu: CupyGpu, cuda: Cuda) -> None:
    whole = gpu.empty((1000,), np.uint8)
    del whole
    kept, other = gpu.empty((300,), np.uint8), gpu.empty((200,), np.uint8)  # of the same block, as 500 bytes more
    assert cuda.allocated == [0, 1000]
    gpu.close()
    assert cuda.allocated == [0, 1000]  # the arrays are still there, such as in the frames of an exception
    del other
    assert not gpu.get(kept[:0]).any()
    del kept
    assert cuda.allocated == [0, 0]
    assert not cuda.leaked


def test_nothing_leaks_of_a_device_that_nobody_closes(cuda: Cuda) -> None:
    gpu = CupyGpu(1)
    whole = gpu.empty((1000,), np.uint8)
    del whole
    kept = gpu.empty((300,), np.uint8)  # of the same block
    del gpu
    assert cuda.allocated == [0, 1000]
    del kept
    assert cuda.allocated == [0, 0]
    assert not cuda.leaked


def test_unused_blocks_of_the_callers_pool_give_way(gpu: CupyGpu, cuda: Cuda) -> None:
    def cache(n_bytes: int) -> None:
        with gpu.device:
            cuda.callers_pool.malloc(n_bytes)

    cache(cuda.memory - 1000)
    assert cuda.allocated == [0, cuda.memory - 1000]
    array = gpu.empty((2000,), np.uint8)
    assert cuda.allocated == [0, 2000]
    cache(5000)
    assert gpu.free_bytes() == cuda.memory - 2000
    del array


def test_without_memory_to_lock_copies_wait(gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.pinnable = False
    host = np.arange(5)
    array = gpu.put(host)
    host[:] = -1
    assert cuda.n_synchronised == 1
    assert gpu.get(array).tolist() == [0, 1, 2, 3, 4]


def test_closing_waits_for_what_is_still_read_from_the_host(gpu: CupyGpu) -> None:
    array = gpu.put(np.arange(5))
    gpu.close()
    assert gpu.get(array).tolist() == [0, 1, 2, 3, 4]


def test_dropping_it_waits_for_what_is_still_read_from_the_host(cuda: Cuda) -> None:
    gpu, reader = CupyGpu(1), CupyGpu(1)
    array = gpu.put(np.arange(5))
    del gpu
    gc.collect()
    assert reader.get(array).tolist() == [0, 1, 2, 3, 4]


def test_the_limit_of_the_pool_counts(gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.limit = 5000
    array = gpu.empty((2000,), np.uint8)
    assert gpu.free_bytes() == 3000
    with pytest.raises(DeviceMemoryError):
        gpu.empty((3001,), np.uint8)
    del array


def test_no_room(gpu: CupyGpu) -> None:
    with pytest.raises(
        DeviceMemoryError, match=r"cuda:1 has no room for an array of 80,000,000 bytes: 16,777,216 of its 16,777,216"
    ):
        gpu.empty((10_000, 1_000), np.float64)
    with pytest.raises(MemoryError):
        gpu.put(np.zeros(1 << 25, np.uint8))


# ---- a caller's arrays -------------------------------------------------------------------------------------------------------


def adopted(gpu: CupyGpu, matrix: Any) -> Any:
    """Read an adopted matrix as the kernels do."""
    found = gpu.adopt(matrix)
    assert found is not None
    (row, column), size = found.strides, found.dtype.itemsize
    assert (found.values.dtype, found.values.device.id) == (np.uint8, 1)
    gpu.get(found.values)  # does what was queued
    memory, offset = found.values.data.mem.block.bytes, found.values.data.offset
    return np.ndarray(found.shape, found.dtype, memory, offset, (row * size, column * size))


def on_device(gpu: CupyGpu, host: Any, index: int) -> Array:
    with gpu.cupy.cuda.Device(index):
        array = Array(host.shape, host.dtype, gpu.cupy.cuda.MemoryPool().malloc(host.nbytes))
        array.data.copy_from_host_async(host.ctypes.data, host.nbytes)
        gpu.cupy.cuda.get_current_stream().synchronize()
    return array


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i8"])
def test_a_matrix_here_is_not_copied(gpu: CupyGpu, cuda: Cuda, dtype: str) -> None:
    host = np.arange(20).reshape(4, 5).astype(dtype)
    matrix = on_device(gpu, host, 1)
    before = list(cuda.allocated)
    assert np.array_equal(adopted(gpu, matrix), host)
    for cut in (np.s_[1:, ::2], np.s_[::-1], np.s_[:, ::-1]):
        assert np.array_equal(adopted(gpu, matrix[cut]), host[cut])
    assert np.array_equal(adopted(gpu, matrix.T), host.T)
    assert cuda.allocated == before


@pytest.mark.parametrize("cut", [np.s_[:], np.s_[1:, ::2], np.s_[::-1, ::-1]])
def test_a_matrix_on_another_device_is_copied(gpu: CupyGpu, cut: Any) -> None:
    host = np.arange(20.0).reshape(4, 5)
    assert np.array_equal(adopted(gpu, on_device(gpu, host, 0)[cut]), host[cut])


@pytest.mark.parametrize("index", [0, 1])
def test_halves_and_booleans(gpu: CupyGpu, index: int) -> None:
    halves = np.linspace(-2, 2, 12).reshape(3, 4).astype(np.float16)
    seen = adopted(gpu, on_device(gpu, halves, index))
    assert seen.dtype == np.float16
    assert np.array_equal(seen, halves)
    flags = np.arange(12).reshape(3, 4) % 3 == 0
    assert np.array_equal(adopted(gpu, on_device(gpu, flags, index)), flags)


def offering(matrix: Array, version: int) -> Any:
    """An array of a package that offers no more than the CUDA array interface of a version."""
    return SimpleNamespace(wrapped=matrix, __cuda_array_interface__={"version": version})


@pytest.mark.parametrize("kind", ["of CuPy", "with a version that names no stream"])
@pytest.mark.parametrize("read", ["adopted", "to the host", "to the host, by columns", "adopted from another device"])
def test_what_another_stream_makes_is_waited_for(gpu: CupyGpu, cuda: Cuda, kind: str, read: str) -> None:
    host = np.arange(20.0).reshape(4, 5)
    matrix = on_device(gpu, np.zeros_like(host), 0 if read == "adopted from another device" else 1)
    with fake_cupy.Stream(cuda):
        matrix.data.copy_from_host_async(host.ctypes.data, host.nbytes)
    there = matrix if kind == "of CuPy" else offering(matrix, 2)
    if read.startswith("adopted"):
        assert np.array_equal(adopted(gpu, there), host)
    elif read == "to the host":
        assert np.array_equal(to_numpy(as_cupy(there)), host)
    else:
        assert np.array_equal(to_numpy(as_cupy(there)[:, 1:3]), host[:, 1:3])


def test_where_the_stream_is_named_the_device_is_not_waited_for(gpu: CupyGpu, cuda: Cuda) -> None:
    matrix = on_device(gpu, np.arange(20.0).reshape(4, 5), 1)
    before = cuda.n_synchronised
    as_cupy(offering(matrix, 3))  # the real cupy.asarray waits for that stream
    as_cupy(SimpleNamespace(wrapped=matrix, __dlpack_device__=lambda: (2, 1), __dlpack__=None))  # the producer orders it
    assert cuda.n_synchronised == before


def test_elements_that_are_not_aligned(gpu: CupyGpu) -> None:
    bytes_ = on_device(gpu, np.zeros(25, np.uint8), 1)
    start = (1 - bytes_.data.ptr) % 4  # one beyond a multiple of 4
    with pytest.raises(ValueError, match="its elements are not aligned; copy it"):
        gpu.adopt(bytes_[start : start + 16].view(np.float32).reshape(2, 2))


def test_matrices_of_other_packages(gpu: CupyGpu) -> None:
    host = np.arange(6.0).reshape(2, 3)
    matrix = on_device(gpu, host, 1)
    assert np.array_equal(adopted(gpu, SimpleNamespace(wrapped=matrix, __cuda_array_interface__={})), host)
    assert np.array_equal(
        adopted(gpu, SimpleNamespace(wrapped=matrix, __dlpack_device__=lambda: (2, 1), __dlpack__=None)), host
    )
    assert gpu.adopt(SimpleNamespace(wrapped=matrix, __dlpack_device__=lambda: (1, 0))) is None
    assert gpu.adopt(host) is None


# ---- kernels -----------------------------------------------------------------------------------------------------------------


def test_a_launch_runs_on_its_device(gpu: CupyGpu, cuda: Cuda) -> None:
    launch(gpu, ONE, 128)
    assert cuda.launches == [(1, "one", (2, 1, 1), (64,), 128)]
    (module,) = cuda.modules
    assert (module.code, module.options) == ("// first\n", kernels.OPTIONS)


def test_two_devices_take_turns(cuda: Cuda) -> None:
    cuda.kernels["one"] = lambda x: x.data.bytes(4).view("i4").__iadd__(1)
    gpus = [CupyGpu(0), CupyGpu(1)]
    with current_device(cuda, 1):
        arrays = [gpu.put(np.array([10 * gpu.index], np.int32)) for gpu in gpus]
        for gpu, array in zip(gpus * 2, arrays * 2, strict=True):
            gpu.launch(ONE, (1, 1, 1), 32, (array,), 0)
        assert [launched[0] for launched in cuda.launches] == [0, 1, 0, 1]
        assert [array.device.id for array in arrays] == [0, 1]
        assert [gpu.get(array).tolist() for gpu, array in zip(gpus, arrays, strict=True)] == [[2], [12]]
        assert cuda.allocated == [4, 4]
        from_other = gpus[0].adopt(arrays[1].reshape(1, 1))
        assert from_other is not None
        assert gpus[0].get(from_other.values).view(np.int32).tolist() == [12]
        del from_other
        arrays.pop(0)
        gpus[0].close()
        assert cuda.allocated == [0, 4]
        assert gpus[1].get(arrays[0]).tolist() == [12]


def test_kernels_are_loaded_once_per_device(cuda: Cuda) -> None:
    for _ in range(3):
        gpu = CupyGpu(0)
        launch(gpu, ONE)
        launch(gpu, TWO)
        launch(gpu, OTHER)
        gpu.close()
    assert len(cuda.modules) == 3
    launch(CupyGpu(1), ONE)
    assert len(cuda.modules) == 4
    assert len(cuda.launches) == 10


def test_threads_load_a_kernel_once(cuda: Cuda) -> None:
    cuda.load = lambda module: time.sleep(0.01)  # others come meanwhile
    threads = [threading.Thread(target=lambda: CupyGpu(0).load(ONE)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(cuda.modules) == 1


# ---- graphs ------------------------------------------------------------------------------------------------------------------


def add_one(cuda: Cuda) -> None:
    cuda.kernels["one"] = lambda x: x.data.bytes(4).view(np.int32).__iadd__(1)


def test_what_is_captured_is_done_when_it_is_replayed(gpu: CupyGpu, cuda: Cuda) -> None:
    add_one(cuda)
    x = gpu.put(np.array([40], np.int32))
    stream = cuda.stream

    def twice() -> None:
        for _ in range(2):
            gpu.launch(ONE, (1, 1, 1), 32, (x,), 0)

    graph = gpu.capture(twice)
    assert cuda.stream is stream
    assert gpu.get(x).tolist() == [40]
    gpu.replay(graph)
    assert gpu.get(x).tolist() == [42]
    gpu.replay(gpu.capture(lambda: gpu.zero(x)))
    gpu.replay(graph)
    assert gpu.get(x).tolist() == [2]


@pytest.mark.parametrize("kind", [fake_cupy.CUDARuntimeError, fake_cupy.CUDADriverError])
def test_what_cannot_be_captured_is_said_and_left(
    gpu: CupyGpu, cuda: Cuda, caplog: pytest.LogCaptureFixture, kind: type[Exception]
) -> None:
    cuda.capture_error = kind(900, "operation not permitted when stream is capturing")
    stream = cuda.stream
    with caplog.at_level("INFO", "gpuboost"):
        assert gpu.capture(lambda: launch(gpu, ONE)) is None
    assert "cannot be captured" in caplog.text
    assert cuda.stream is stream


def test_an_interrupt_ends_a_capture(gpu: CupyGpu, cuda: Cuda) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gpu.capture(interrupted)
    assert cuda.captured is None


def test_graphs_can_be_turned_off(gpu: CupyGpu, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cupy_gpu.GRAPHS, "0")
    assert gpu.capture(lambda: pytest.fail("nothing may be queued")) is None


def test_more_shared_memory_is_asked_for_when_it_is_needed(gpu: CupyGpu) -> None:
    for shared_bytes in (48 << 10, 64 << 10, 64 << 10, 50 << 10, 96 << 10):
        launch(gpu, ONE, shared_bytes)
    assert gpu.load(ONE).call.allowed == [48 << 10, 64 << 10, 96 << 10]


def test_static_shared_memory_counts(gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.static_shared = 128
    for shared_bytes in ((48 << 10) - 128, (48 << 10) - 127):
        launch(gpu, ONE, shared_bytes)
    assert gpu.load(ONE).call.allowed == [(48 << 10) - 128, (48 << 10) - 127]


def test_no_room_for_a_kernel(gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.load = failing(fake_cupy.CUDADriverError(2, "CUDA_ERROR_OUT_OF_MEMORY: out of memory"))
    with pytest.raises(DeviceMemoryError, match=r"cuda:1 has no room for the kernel one .*CUDA_ERROR_OUT_OF_MEMORY"):
        launch(gpu, ONE)


def failing(error: Exception) -> Any:
    def load(module: fake_cupy.RawModule) -> None:
        raise error

    return load


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            fake_cupy.CompileException("nvrtc: error: invalid value for --gpu-architecture"),
            "NVRTC 13.0 does not compile for compute capability 90",
        ),
        (fake_cupy.CUDADriverError(209, "CUDA_ERROR_NO_BINARY_FOR_GPU"), "the driver refuses what NVRTC compiled .*Upgrade"),
        (PermissionError(13, "Permission denied"), "Set CUPY_CACHE_DIR"),
        (RuntimeError("CuPy failed to load libnvrtc.so.13"), r'pip install "cuda-toolkit\[nvrtc,cudart\]==13\.\*"'),
        (RuntimeError("Failed to find CUDA headers."), r"Failed to find CUDA headers.*pip install"),
        (ImportError("libnvrtc.so.13: cannot open shared object file"), "libnvrtc.*pip install"),
    ],
)
def test_kernels_that_cannot_be_compiled(gpu: CupyGpu, cuda: Cuda, error: Exception, message: str) -> None:
    cuda.load = failing(error)
    with pytest.raises(DeviceUnavailableError, match=message) as caught:
        launch(gpu, ONE)
    assert str(caught.value).startswith("cuda:1: ")
    assert caught.value.__cause__ is error
    cuda.load = lambda module: None
    launch(gpu, ONE)  # the failure is not kept


@pytest.mark.parametrize("error", [fake_cupy.CUDADriverError(304, "CUDA_ERROR_OPERATING_SYSTEM"), CRASH])
def test_other_errors_of_cuda_are_not_taken_for_the_compilers(gpu: CupyGpu, cuda: Cuda, error: Any) -> None:
    cuda.load = failing(error)
    for use in (gpu.load, lambda kernel: launch(gpu, kernel)):
        with pytest.raises(DeviceLostError if use != gpu.load and error is CRASH else type(error), match=str(error)):
            use(ONE)


# ---- a device that is lost ---------------------------------------------------------------------------------------------------


USES: dict[str, Any] = {
    "launch": lambda gpu, array: gpu.launch(ONE, (1, 1, 1), 32, (array,), 0),
    "replay": lambda gpu, array: gpu.replay(fake_cupy.Graph(gpu.cupy.cuda.get_current_stream().cuda, [])),
    "put": lambda gpu, array: gpu.put(np.zeros(3)),
    "put much": lambda gpu, array: gpu.put(np.zeros(STAGING_BYTES)),
    "get": lambda gpu, array: gpu.get(array),
    "zero": lambda gpu, array: gpu.zero(array),
    "empty": lambda gpu, array: gpu.empty((2 * STAGING_BYTES,), np.uint8),
    "adopt": lambda gpu, array: gpu.adopt(array.reshape(5, 2)),
    "free_bytes": lambda gpu, array: gpu.free_bytes(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("error", [CRASH, fake_cupy.CUDARuntimeError(999, "cudaErrorUnknown: unknown error")])
@pytest.mark.parametrize("can_be_made_current", [True, False])
def test_whatever_notices_that_a_device_is_lost_says_so(
    gpu: CupyGpu, cuda: Cuda, error: Any, use: str, can_be_made_current: bool
) -> None:
    array, spare = gpu.put(np.zeros(10)), gpu.empty((STAGING_BYTES,), np.uint8)
    del spare  # the pool has it for who puts
    gpu.load(ONE)
    cuda.lost[1], cuda.can_make_lost_current = error, can_be_made_current
    with pytest.raises(DeviceLostError, match=r"^cuda:1 has stopped working \(.*start another\. nvidia-smi") as caught:
        USES[use](gpu, array)
    assert str(error) in str(caught.value)
    assert isinstance(caught.value.__cause__, type(error))
    assert list(loss.LOST.items()) == [(1, str(error))]


def test_a_capture_notices_that_a_device_is_lost(gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.lost[1] = CRASH
    with pytest.raises(DeviceLostError):
        gpu.capture(lambda: None)


def test_a_crash_of_a_kernel_shows_when_its_result_is_fetched(gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.kernels["one"] = lambda x: cuda.lost.update({1: CRASH})
    array = gpu.put(np.zeros(3))
    launch(gpu, ONE)
    with pytest.raises(DeviceLostError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        gpu.get(array)


@pytest.mark.parametrize("noticed", ["by a use", "by close", "by nobody"])
def test_a_lost_device_goes_in_silence(cuda: Cuda, noticed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", said.append)
    gpu, other = CupyGpu(1), CupyGpu(0)
    arrays = [gpu.put(np.zeros(3)), gpu.empty((1000,), np.uint8)]
    arrays.pop()
    cuda.lost[1] = CRASH
    if noticed == "by a use":
        with pytest.raises(DeviceLostError):
            gpu.get(arrays[0])
    if noticed != "by nobody":
        gpu.close()
    arrays.clear()
    del gpu
    gc.collect()
    assert said == []
    assert cuda.freed_of_lost == []  # CuPy would print an error for each
    assert other.get(other.put(np.arange(3))).tolist() == [0, 1, 2]  # as well as before
    assert cuda.current == 0


def test_errors_that_leave_the_device_usable_stay_as_they_are(gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.lost[1] = wrong = fake_cupy.CUDADriverError(1, "CUDA_ERROR_INVALID_VALUE: invalid argument")
    with pytest.raises(fake_cupy.CUDADriverError, match=str(wrong)):
        launch(gpu, ONE)
    assert not loss.LOST


# ---- compiled ahead ----------------------------------------------------------------------------------------------------------


def write_fatbins(folder: Path, *files: str) -> None:
    folder.mkdir(exist_ok=True)
    for file in files:
        (folder / f"{file}.fatbin").write_bytes(f"machine code of {file}".encode())
    entries = {
        file: {"source": fatbin.fingerprint(file), "fatbin": fatbin.checksum(folder / f"{file}.fatbin")} for file in files
    }
    (folder / fatbin.MANIFEST).write_text(json.dumps({"files": entries}))


@pytest.fixture(params=["beside the sources", "named"])
def folder(request: pytest.FixtureRequest, cuda: Cuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a fatbin of the first file."""
    folder = tmp_path if request.param == "beside the sources" else tmp_path / "elsewhere"
    if request.param == "named":
        monkeypatch.setenv(fatbin.VARIABLE, str(folder))
    write_fatbins(folder, "first")
    return folder


def loaded_from(gpu: CupyGpu, cuda: Cuda, kernel: Kernel) -> str | None:
    """Load a kernel, and return the path that it came from, None if it was compiled."""
    gpu.load(kernel)
    return cuda.modules[-1].path


def test_a_matching_fatbin_is_loaded(folder: Path, gpu: CupyGpu, cuda: Cuda) -> None:
    cuda.nvrtc_version = RuntimeError("no NVRTC")
    assert loaded_from(gpu, cuda, ONE) == str(folder / "first.fatbin")
    assert loaded_from(gpu, cuda, OTHER) is None


def test_a_fatbin_of_other_sources_is_not_loaded(folder: Path, gpu: CupyGpu, cuda: Cuda) -> None:
    path = kernels.source_folder() / "first.cu"
    path.write_text(path.read_text() + " ")
    assert loaded_from(gpu, cuda, ONE) is None


def test_a_fatbin_of_another_header_is_not_loaded(folder: Path, gpu: CupyGpu, cuda: Cuda) -> None:
    (kernels.source_folder() / "common.cuh").write_text("#define N 1\n")
    (kernels.source_folder() / "first.cu").write_text('#include "common.cuh"\n')
    write_fatbins(folder, "first")
    assert fatbin.find("first") is not None
    (kernels.source_folder() / "common.cuh").write_text("#define N 2\n")
    assert loaded_from(gpu, cuda, ONE) is None


def test_a_fatbin_of_other_options_is_not_loaded(
    folder: Path, gpu: CupyGpu, cuda: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "OPTIONS", ("-std=c++17",))
    assert loaded_from(gpu, cuda, ONE) is None


@pytest.mark.parametrize("damage", ["truncated", "missing", "manifest is text", "manifest is a list"])
def test_a_damaged_fatbin_is_not_loaded(folder: Path, gpu: CupyGpu, cuda: Cuda, damage: str) -> None:
    if damage == "truncated":
        (folder / "first.fatbin").write_bytes(b"machine")
    elif damage == "missing":
        (folder / "first.fatbin").unlink()
    else:
        (folder / fatbin.MANIFEST).write_text("{" if "text" in damage else "[]")
    assert loaded_from(gpu, cuda, ONE) is None


def test_a_fatbin_without_the_devices_architecture(folder: Path, gpu: CupyGpu, cuda: Cuda) -> None:
    def load(module: fake_cupy.RawModule) -> None:
        if module.path:
            raise fake_cupy.CUDADriverError(209, "CUDA_ERROR_NO_BINARY_FOR_GPU")

    cuda.load = load
    assert loaded_from(gpu, cuda, ONE) is None
    launch(gpu, ONE)


def test_how_many_fatbins_match(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "KERNELS", {kernel.name: kernel for kernel in (ONE, TWO, OTHER)})
    assert fatbin.matching() == (1, 2)
    write_fatbins(folder, "first", "second")
    assert fatbin.matching() == (2, 2)

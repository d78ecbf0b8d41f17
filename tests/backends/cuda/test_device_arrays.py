"""How a caller's arrays become matrices of a device: `gpuboost.backends.cuda.device_arrays`, on the emulated one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from gpuboost.backends.cuda.backend import CudaBackend
from gpuboost.backends.cuda.device_arrays import as_cupy, lies_on_device, span, to_numpy
from gpuboost.backends.cuda.gpu import DeviceMatrix
from gpuboost.binning import BinMapper
from gpuboost.errors import DeviceMemoryError, DeviceUnavailableError
from tests.cuda_on_cpu import caller, emulator
from tests.cuda_on_cpu.caller import CupyArray, MinimalArray, NumbaArray, Tensor, on_device
from tests.cuda_on_cpu.gpu import EmulatedGpu

HOST = np.random.default_rng(3).integers(0, 2, (6, 5)) * np.arange(1, 6)
CUTS = [np.s_[:], np.s_[1:, ::2], np.s_[::-1], np.s_[:, ::-1], np.s_[::-2, ::-2], np.s_[2:3], np.s_[:, 1:2]]
NO_COPY = pytest.mark.skipif(emulator.sanitizer() == "asan", reason="the sanitizer sees copies")


class Gpu(EmulatedGpu):
    adopt = caller.adopt


@pytest.fixture(autouse=True)
def modules() -> Iterator[None]:
    with caller.modules():
        yield


@pytest.fixture
def gpu() -> Gpu:
    return Gpu()


def seen(found: DeviceMatrix | None) -> NDArray[Any]:
    """The matrix that a kernel reads."""
    assert found is not None
    assert (found.values.dtype, found.values.ndim) == (np.uint8, 1)
    (row, column), size = found.strides, found.dtype.itemsize
    layout = {"shape": found.shape, "typestr": found.dtype.str, "strides": (row * size, column * size), "version": 3}
    return np.asarray(SimpleNamespace(__array_interface__={**layout, "data": (found.values.address, False)}, owner=found))


@NO_COPY
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u2", "i8", "?"])
def test_a_matrix_here_is_not_copied(gpu: Gpu, dtype: str, cut: Any) -> None:
    matrix = on_device(HOST.astype(dtype))[cut]
    found = gpu.adopt(matrix)
    assert found is not None
    assert found.values.address == matrix.address
    assert np.array_equal(seen(found), HOST.astype(dtype)[cut])
    assert found.dtype == ("u1" if dtype == "?" else dtype)
    assert found.values.nbytes == span(matrix)[1]
    assert gpu.free_bytes() == gpu._memory


EVERY_HALF = np.arange(1 << 16).astype(np.uint16).view(np.float16)
EVERY_EXPONENT = (np.arange(1 << 9)[:, None] << 23 | [0, 1, 0x2ABCDE, 0x7FFFFF]).astype(np.uint32).view(np.float32).ravel()


@pytest.mark.parametrize("floats", [pytest.param(EVERY_HALF, marks=pytest.mark.slow), EVERY_EXPONENT], ids=["halves", "floats"])
def test_floats_of_every_size_have_the_codes_of_the_host(gpu: Gpu, floats: NDArray[Any]) -> None:
    numbers = np.unique(floats[~np.isnan(floats)].astype(np.float64))  # with subnormals and infinities
    for cuts in np.array_split(numbers, -(-len(numbers) // 250)):  # each number is a cut once: it and its neighbours differ
        mapper = BinMapper(cuts, np.array([0, len(cuts)]), np.array([True]))
        with CudaBackend(gpu) as backend:
            codes = gpu.get(backend.encode(mapper, on_device(floats[:, None])).codes)
        assert np.array_equal(codes[0, :, 0], mapper.transform(floats[:, None]).codes[0])


def test_elements_that_are_not_aligned(gpu: Gpu) -> None:
    records = np.zeros((6, 5), [("flag", "i1"), ("value", "f4")])
    with pytest.raises(
        ValueError, match=r"a device array of float32 at 0x\w+ has the strides \(25, 5\): its elements are not aligned"
    ):
        gpu.adopt(on_device(records["value"]))


def test_span() -> None:
    array = on_device(HOST.astype(np.int16))[::-1, ::2]  # rows begin at 0, -10 .. -50; columns at 0, 4, 8, each 2 bytes
    assert span(array) == (-50, 10)
    assert span(on_device(np.zeros((0, 5)))) == (0, 0)
    assert span(on_device(np.zeros((3, 5)))) == (0, 120)


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("dtype", ["f4", "f2", "?"])
def test_a_matrix_on_another_device_is_brought_here(gpu: Gpu, dtype: str, cut: Any) -> None:
    theirs = on_device(HOST.astype(dtype), 1)[cut]
    found = gpu.adopt(theirs)
    assert np.array_equal(seen(found), HOST.astype(dtype)[cut])
    assert found is not None
    assert gpu.free_bytes() < gpu._memory
    assert not np.may_share_memory(seen(found), theirs.memory)


def test_there_may_be_no_room() -> None:
    with pytest.raises(DeviceMemoryError):
        Gpu(memory=50).adopt(on_device(HOST.astype(np.float16), 1))


@pytest.mark.parametrize("of", [CupyArray, NumbaArray, MinimalArray, Tensor, "grad"])
def test_every_library(gpu: Gpu, of: Any) -> None:
    array = on_device(HOST.astype(np.float64))
    matrix = Tensor(array, requires_grad=True) if of == "grad" else array if of is CupyArray else of(array)
    assert lies_on_device(matrix)
    assert np.array_equal(seen(gpu.adopt(matrix)), HOST)
    assert array.traffic.total == 0


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("cut", [*CUTS, np.s_[:0], np.s_[:, 2], np.s_[3, ::-1], np.s_[2, 3], np.s_[2:4, 1:4]])
def test_every_layout_comes_to_the_host_without_a_kernel(order: Any, cut: Any) -> None:
    """The imitation of ``cupy.ndarray.get`` refuses what CuPy would compile a kernel for."""
    host = np.asarray(HOST.astype(np.float32), order=order)
    array = on_device(host)[cut]
    copy = to_numpy(array)
    assert copy.dtype == np.float32
    assert np.array_equal(copy, host[cut])
    assert not np.may_share_memory(copy, host)
    assert array.traffic.total <= host.nbytes


def test_what_is_broadcast_comes_to_the_host_once() -> None:
    host = np.broadcast_to(np.arange(3.0), (4, 3))
    array = on_device(host)
    assert np.array_equal(to_numpy(array), host)
    assert array.traffic.total == 24


@pytest.mark.parametrize("order", ["C", "F"])
def test_of_some_columns_only_these_come_to_the_host(order: Any) -> None:
    array = on_device(np.zeros((100, 7), order=order))
    assert to_numpy(array[:, 2:5]).shape == (100, 3)
    assert array.traffic.total == 100 * 3 * 8


def test_what_lies_on_a_device() -> None:
    assert lies_on_device(SimpleNamespace(__dlpack_device__=lambda: (2, 0)))
    assert lies_on_device(SimpleNamespace(__dlpack_device__=lambda: (13, 0)))  # managed memory
    assert lies_on_device(SimpleNamespace(__cuda_array_interface__={}))
    for kind in (1, 3, 10):  # the host, its page-locked memory, a device of another maker
        assert not lies_on_device(SimpleNamespace(__dlpack_device__=lambda kind=kind: (kind, 0)))
    for host in (HOST, HOST.tolist(), None, Tensor(HOST), np.array(["a"])):
        assert not lies_on_device(host)


def test_host_matrices_are_not_adopted(gpu: Gpu) -> None:
    assert gpu.adopt(HOST) is None
    assert gpu.adopt(Tensor(HOST)) is None


def test_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceUnavailableError, match=r"the Tensor lies on a CUDA device, .* needs CuPy.*pass a NumPy array"):
        as_cupy(Tensor(on_device(HOST)))


@pytest.mark.parametrize("rows", [None, np.array([5, 0, 3])])
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("dtype", ["f2", "f4", "i8", "?"])
def test_codes_are_those_of_the_host(gpu: Gpu, dtype: str, cut: Any, rows: Any) -> None:
    host = HOST.astype(dtype)
    mapper = BinMapper.fit(host[:, cut[1]] if isinstance(cut, tuple) else host)
    rows = None if rows is None or host[cut].shape[0] < 6 else rows
    expected = mapper.transform(host[cut], rows=rows).codes
    with CudaBackend(gpu) as backend:
        codes = gpu.get(backend.encode(mapper, on_device(host)[cut], rows).codes)
        assert np.array_equal(codes[0].T[: len(expected)], expected)

"""The emulated device and its arrays."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from gpuboost.backends.cuda import kernels
from gpuboost.errors import DeviceMemoryError
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.gpu import EmulatedGpu

ROWS = np.arange(24, dtype=np.int32).reshape(4, 6)


@pytest.fixture
def gpu() -> EmulatedGpu:
    return EmulatedGpu()


def test_put_and_get_copy(gpu: EmulatedGpu) -> None:
    host = ROWS.T.copy().T
    array = gpu.put(host)
    host[:] = 0
    copy = gpu.get(array)
    assert copy.tolist() == ROWS.tolist()
    assert array.flags.c_contiguous
    copy[:] = 0
    assert gpu.get(array).tolist() == ROWS.tolist()


def test_attributes(gpu: EmulatedGpu) -> None:
    array = gpu.put(ROWS)
    attributes = array.dtype, array.shape, array.ndim, array.size, array.nbytes, array.strides, len(array)
    assert attributes == (np.int32, (4, 6), 2, 24, 96, (24, 4), 4)
    assert repr(array) == "DeviceArray((4, 6), int32)"


def test_views_share_memory(gpu: EmulatedGpu) -> None:
    array = gpu.put(ROWS)
    views = [
        array[1:3],
        array[1],
        array[1, 2],
        array[..., 2:4],
        array.reshape(2, 12),
        array.reshape((24,)),
        array.view(np.uint8),
    ]
    copies = [ROWS[1:3], ROWS[1], ROWS[1, 2], ROWS[..., 2:4], ROWS.reshape(2, 12), ROWS.reshape(24), ROWS.view(np.uint8)]
    for view, copy in zip(views, copies, strict=True):
        assert view.shape == copy.shape
        assert gpu.get(view).tolist() == copy.tolist()
    gpu.zero(array[1:3])
    assert gpu.get(array).tolist() == [*ROWS[:1].tolist(), [0] * 6, [0] * 6, *ROWS[3:].tolist()]
    assert gpu.get(views[2]).tolist() == 0
    del array
    gc.collect()
    assert gpu.get(views[0]).tolist() == [[0] * 6] * 2


def test_arrays_are_not_host_memory(gpu: EmulatedGpu) -> None:
    array = gpu.put(ROWS)
    on_the_host: list[Any] = [
        np.asarray,
        np.sum,
        list,
        bool,
        lambda a: a + 1,
        lambda a: a == a.reshape(4, 6),
        lambda a: 3 in a,
        lambda a: a[[0, 1]],
        lambda a: a[np.zeros(4, bool)],
        lambda a: a.__setitem__(0, 1),
    ]
    for use in on_the_host:
        with pytest.raises((TypeError, AttributeError)):
            use(array)
    with pytest.raises(TypeError, match=r"only kernels can read it, and Gpu\.get copies it"):
        np.asarray(array)


def test_only_contiguous_memory_is_reshaped_and_cleared(gpu: EmulatedGpu) -> None:
    columns = gpu.put(ROWS)[:, 2:4]
    with pytest.raises(ValueError, match="cannot be reshaped without a copy"):
        columns.reshape(8)
    with pytest.raises(ValueError, match="only C-contiguous arrays can be set to zero"):
        gpu.zero(columns)


def test_empty_is_garbage_that_depends_on_the_seed() -> None:
    for size in (7, 3 << 20):
        one, same, other = (EmulatedGpu(seed=seed) for seed in (1, 1, 2))
        arrays = [gpu.get(gpu.empty((size,), np.uint8)) for gpu in (one, same, other)]
        assert (arrays[0] == arrays[1]).all()
        assert (arrays[0] != arrays[2]).any()
        assert (arrays[0] != 0).all()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_small_shapes(gpu: EmulatedGpu, shape: tuple[int, ...]) -> None:
    array = gpu.empty(shape, np.int64)
    gpu.zero(array)
    assert gpu.get(array).tolist() == np.zeros(shape).tolist()
    assert gpu.put(np.ones(shape)).shape == shape


def test_memory_is_counted() -> None:
    gpu = EmulatedGpu(memory=1000)
    array = gpu.empty((100,), np.int32)
    view = array[50:].view(np.int64)
    assert gpu.free_bytes() == 600
    with pytest.raises(DeviceMemoryError, match="an array needs 601 bytes, but only 600 of the device's 1000 are free"):
        gpu.put(np.zeros(601, np.uint8))
    other = gpu.put(np.zeros(600, np.uint8))
    assert gpu.free_bytes() == 0
    del other
    assert gpu.free_bytes() == 600
    del array
    assert gpu.free_bytes() == 600  # the view needs it
    del view
    assert gpu.free_bytes() == 1000


def test_a_missing_compiler_skips_or_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emulator, "unavailable", lambda: "there is no compiler")
    monkeypatch.delenv("REQUIRE_EMULATOR", raising=False)
    with pytest.raises(pytest.skip.Exception, match=r"^there is no compiler$"):
        EmulatedGpu()
    monkeypatch.setenv("REQUIRE_EMULATOR", "1")
    with pytest.raises(pytest.fail.Exception, match=r"^REQUIRE_EMULATOR=1, but there is no compiler$"):
        EmulatedGpu()


def test_order_is_checked() -> None:
    with pytest.raises(ValueError, match=r"order must be one of .*, got 'sideways'"):
        EmulatedGpu("sideways")


@pytest.mark.parametrize("name", kernels.KERNELS)
def test_every_kernel_compiles_as_registered(gpu: EmulatedGpu, name: str) -> None:
    assert gpu.compiled(kernels.KERNELS[name]).kernel.name == name

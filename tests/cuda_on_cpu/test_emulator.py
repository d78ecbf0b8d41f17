"""What ``selftest.cu`` gives, derived by hand; it runs under the sanitizers too (see ``test_sanitizers.py``)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuboost.backends.cuda.kernels import Kernel, signature
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.device_array import DeviceArray
from tests.cuda_on_cpu.emulator import CompileError, KernelError
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.requirement import require

TEXT = (Path(__file__).parent / "selftest.cu").read_text(encoding="utf-8")


def selftest_kernel(name: str, parameters: str) -> Kernel:
    return Kernel(name, "selftest", signature(parameters), emulator.load(TEXT, "selftest.cu")[name].max_block)


def selftest_gpu(order: str = "forward", seed: int = 0) -> EmulatedGpu:
    return EmulatedGpu(order, seed, source=lambda file: TEXT)


@pytest.fixture(params=emulator.ORDERS)
def gpu(request: pytest.FixtureRequest) -> EmulatedGpu:
    return selftest_gpu(request.param, seed=3)


def run(
    gpu: EmulatedGpu, name: str, parameters: str, *arguments: Any, grid: int = 1, block: int = 64, shared_bytes: int = 0
) -> list[list[Any]]:
    """Launch a kernel of the self-test on copies of NumPy arrays, and return what they hold then."""
    on_device = [gpu.put(a) if isinstance(a, np.ndarray) else a for a in arguments]
    gpu.launch(selftest_kernel(name, parameters), (grid, 1, 1), block, tuple(on_device), shared_bytes)
    return [gpu.get(a).tolist() for a in on_device if isinstance(a, DeviceArray)]


def zeros(*shape: int, dtype: Any = np.int32) -> np.ndarray:
    return np.zeros(shape, dtype)


# ---- values ------------------------------------------------------------------------------------------------------------------


def test_coordinates(gpu: EmulatedGpu) -> None:
    out = gpu.put(zeros(2 * 3 * 4 * 64, 10))
    gpu.launch(selftest_kernel("coordinates", "out:i4*"), (2, 3, 4), 64, (out,), 0)
    assert gpu.get(out).tolist() == [
        [t, 0, x, y, z, 64, 1, 2, 3, 4] for z in range(4) for y in range(3) for x in range(2) for t in range(64)
    ]


def test_arguments(gpu: EmulatedGpu) -> None:
    scalars = [np.int8(-128), np.uint8(255), np.int16(-(2**15)), np.uint16(2**16 - 1), np.int32(-(2**31)), np.uint32(2**32 - 1)]
    scalars += [np.int64(-(2**40)), np.uint64(2**64 - 1), np.float32(0.25), np.float64(0.125)]
    parameters = "out:i4* a:i1 b:u1 c:i2 d:u2 e:i4 f:u4 g:i8 h:u8 i:f4 j:f8 none:i4*?"
    (out,) = run(gpu, "arguments", parameters, zeros(11), *scalars, None, block=1)
    assert out == [-128, 255, -(2**15), 2**16 - 1, -(2**31), 2**31 - 1, -(2**8), 2**31 - 1, 1, 1, 1]


def test_vectors(gpu: EmulatedGpu) -> None:
    floats, sizes = run(gpu, "vectors", "floats:f4* sizes:i4*", np.arange(8, dtype=np.float32), zeros(11), block=1)
    assert floats == [0, 1, 2, 3, 3, 2, 0.5, 0]
    assert sizes == [4, 3, 4, 16, 16, 16, 16, 4, 8, 16, 3 + 5]


def test_shuffles(gpu: EmulatedGpu) -> None:
    out, numbers = run(gpu, "shuffles", "out:i4* numbers:f8*", zeros(64, 6), zeros(64, dtype=float))
    for t in range(64):
        lane, warp = t % 32, t // 32 * 32
        in_eight = lane % 8
        assert out[t] == [
            warp + 5,
            t - in_eight + (in_eight + 1) % 8,
            t if lane < 3 else t - 3,
            t + 4 if in_eight < 4 else t,
            t + 1 if t % 2 == 0 else t - 1,
            t - 8 if lane // 8 % 2 == 1 else t,  # a later group of 8 lanes must not be read
        ]
        assert numbers[t] == (t + 16.5 if lane < 16 else t + 0.5)


def test_votes(gpu: EmulatedGpu) -> None:
    (out,) = run(gpu, "votes", "out:u4*", zeros(64, 6, dtype=np.uint32))
    every_third = sum(1 << lane for lane in range(0, 32, 3))
    for t in range(64):
        # 13 of the numbers below 64 are multiples of 5; thread 63 is there; not all are other than 63.
        half = 0x0000FFFF if t % 32 < 16 else 0xAAAA0000
        assert out[t] == [every_third, int(t >= 32), int(t < 32), 0x11111111 << t % 4, half, 13 + 100]


def test_atomics(gpu: EmulatedGpu) -> None:
    i = np.array([0, 0, 0, 0, -1, 0, 0, 0, 20, 0, 0], np.int32)
    u = np.array([0, 100, 0, 2**32 - 1, 0, 0, 2**32 - 1, 0, 0, 0, 20], np.uint32)
    w = np.array([0, 0, 2**63, 0, 2**64 - 1, 0, 0, 20], np.uint64)
    parameters = "i:i4* u:u4* l:i8* w:u8* f:f4* d:f8* old:i4*"
    numbers = [zeros(2, dtype=np.float32), zeros(1, dtype=float), zeros(64)]
    got = run(gpu, "atomics", parameters, i, u, np.array([-100, 0]), w, *numbers)
    total = 63 * 64 // 2
    all_bits, low_byte = 2**64 - 1, 2**8 - 1
    assert got == [
        [-total, -total, 23, -40, ~low_byte, low_byte, 0, 7, 21, -64, 64],  # 64 * (2^31 - 1) = -64 modulo 2^32
        # 64 steps up and down, modulo 10
        [3 * 64, 100 - 64, 2**32 - 1, 0, 4, 6, 2**32 - 1 - low_byte, low_byte, 0, 8, 22],
        [23, -40],
        [2**64 - total, 63 << 40, 0, 9, 0, all_bits, 0, 23],
        [32.0, 1.5],
        [16.0],
        [1] * 64,
    ]


def test_integers(gpu: EmulatedGpu) -> None:
    out, wide = run(gpu, "integers", "out:i4* wide:u8*", zeros(23), zeros(2, dtype=np.uint64), block=1)
    counts = [8, 16, 31, 32, 0, 63, 64, 4, 0, 41, 1 << 27]
    products = [-1, 3]  # -3 * 2^30 and 6 * 2^31, over 2^32, down
    limits = [-1, 2, 2, 3, 5, -4, 4, 6]  # -1 and 2u are compared as unsigned numbers
    permuted = [0x04010602, 0xB2]
    assert out == counts + products + limits + permuted
    assert wide == [3, 2**64 - 2]


def rounded(x: float, how: Any, low: int, high: int, nan: int) -> int:
    """What a conversion gives, in integers without limits."""
    if math.isnan(x):
        return nan
    return max(low, min(high, how(x) if math.isfinite(x) else int(math.copysign(2**70, x))))


def test_conversions(gpu: EmulatedGpu) -> None:
    halves = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2**31 - 1.5, 2**31 - 0.5, -(2**31) - 0.5, -(2**31) - 1.0, 2**32 - 0.5]
    large = [2.0**52 + 0.5, 2.0**63, -(2.0**63), 2.0**64, 1e300, -1e300, math.inf, -math.inf, math.nan, 0.0, -0.75]
    x = np.array(halves + large)
    n = len(x)
    outs = [zeros(n, 4), zeros(n, dtype=np.uint32), zeros(n, dtype=np.int64), zeros(n, dtype=np.uint64), zeros(n)]
    parameters = "x:f8* to_int:i4* to_uint:u4* to_ll:i8* to_ull:u8* float_to_int:i4* float_to_ll:i8*"
    _, to_int, *others = run(gpu, "conversions", parameters, x, *outs, zeros(n, dtype=np.int64), block=n)
    for k in range(n):
        value = float(x[k])
        how = (round, math.trunc, math.floor, math.ceil)
        assert to_int[k] == [rounded(value, f, -(2**31), 2**31 - 1, nan=-(2**31)) for f in how]
        with np.errstate(over="ignore"):
            single = float(np.float32(value))
        assert [other[k] for other in others] == [
            rounded(value, round, 0, 2**32 - 1, nan=2**31),
            rounded(value, round, -(2**63), 2**63 - 1, nan=-(2**63)),
            rounded(value, round, 0, 2**64 - 1, nan=2**63),
            rounded(single, round, -(2**31), 2**31 - 1, nan=0),
            rounded(single, round, -(2**63), 2**63 - 1, nan=-(2**63)),
        ]


def test_floats(gpu: EmulatedGpu) -> None:
    (out,) = run(gpu, "floats", "out:f8*", zeros(27, dtype=float), block=1)
    assert out[:10] == [2.0, -2.0, -1.0, -1.0, 1.5, 2.5, 0.75, -2.0, 1.0, 2.0]
    assert out[10:12] == [-(2.0**-104), 0.0]  # fused, and rounded twice
    assert out[12:16] == [1.0, 0.25, 2.25, 0.75]
    assert out[16:20] == [1.0, 11184811 / 2**25, 1.5, 7.0]
    assert out[20:23] == [2.0**53, 2.0**24, 3.0]
    assert out[23:] == [0x3F800000, 2.0, 0x3FF00000, 14]


@pytest.mark.parametrize("grid", [1, 5])
def test_shared_memory(gpu: EmulatedGpu, grid: int) -> None:
    (out,) = run(gpu, "shared_memory", "out:i4*", zeros(grid, 64, 4), grid=grid, shared_bytes=256)
    ones = 5 + 6 + 7 + 16 + 1
    expected = [[63 - t, 126 - 2 * t, ones + 10 ** (t % 4)] for t in range(64)]
    assert out == [[[*row, 63 * 64 // 2 + 32 + block] for row in expected] for block in range(grid)]


def test_uninitialised_shared_memory_depends_on_the_seed(gpu: EmulatedGpu) -> None:
    def read(seed: int) -> list[Any]:
        return run(selftest_gpu(seed=seed), "uninitialised", "out:i4*", zeros(128), shared_bytes=256)

    assert read(1) == read(1)
    one, other = np.array(read(1), np.int32), np.array(read(2), np.int32)
    assert (one != other).mean() > 0.99
    assert (one.view(np.uint8) != 0).all()
    first, second = (run(gpu, "uninitialised", "out:i4*", zeros(128), shared_bytes=256) for _ in range(2))
    assert first != second  # another launch


def test_fence_and_syncwarp(gpu: EmulatedGpu) -> None:
    _, ticket, total = run(
        gpu, "with_fence", "parts:i4* ticket:u4* sum:i4*", zeros(9), zeros(1, dtype=np.uint32), zeros(1), grid=9
    )
    assert (ticket, total) == ([9], [45])
    (out,) = run(gpu, "with_syncwarp", "out:i4*", zeros(32), block=32)
    assert out == list(range(31, -1, -1))
    (out,) = run(gpu, "syncwarp_of_halves", "out:i4*", zeros(32), block=32)
    # 3 steps around the lower half; 16 + 3 steps, one round more, around the upper one.
    assert out[::-1] == [(t + 3) % 16 for t in range(16)] + [16 + (t + 3) % 16 for t in range(16)]


def test_orders() -> None:
    def order(name: str, seed: int = 0) -> tuple[list[int], list[int]]:
        parameters = "n_arrived:i4* blocks:i4* threads:i4*"
        _, blocks, threads = run(
            selftest_gpu(name, seed), "arrival_order", parameters, zeros(1), zeros(320), zeros(320), grid=5
        )
        return blocks, threads

    each = [block for block in range(5) for _ in range(64)]
    assert order("forward") == (each, list(range(64)) * 5)
    assert order("reverse") == (each[::-1], list(range(63, -1, -1)) * 5)
    blocks, threads = order("random")
    assert sorted(zip(blocks, threads, strict=True)) == [(b, t) for b in range(5) for t in range(64)]
    assert order("random") == (blocks, threads)
    assert order("random", seed=1) != (blocks, threads)
    assert blocks[::64] != list(range(5)) or threads[:64] != list(range(64))


# ---- faults ------------------------------------------------------------------------------------------------------------------

FAULTS = {
    "early_return": "deadlock in block .*40 threads wait in __syncthreads .*, 24 have returned",
    "divergent_barrier": r"divergent __syncthreads: others wait at selftest.cu:\d+",
    "missing_lanes": "deadlock in block .*20 threads wait for their warp .*, 44 have returned",
    "divergent_warp": r"divergent warp: other lanes of mask ffffffff wait at selftest.cu:\d+",
    "lane_not_in_mask": "lane (1[6-9]|2.|3.) is not in its own mask 0000ffff",
    "shuffle_from_absent_lane": "shuffle from lane 16, which is not in mask 0000ffff",
    "failed_assertion": r"assertion failed: out\[0\] == 0 \|\| threadIdx.x != 3",
    "trap": "__trap",
    "too_much_shared": "101377 bytes of shared memory, but a block has 101376",
}


@pytest.mark.parametrize("name", FAULTS)
def test_fault(gpu: EmulatedGpu, name: str) -> None:
    shared_bytes = 101377 - 32 * 1024 if name == "too_much_shared" else 0
    with pytest.raises(KernelError, match=FAULTS[name]) as caught:
        run(gpu, name, "out:i4*", np.ones(64, np.int32), grid=3, shared_bytes=shared_bytes)
    message = str(caught.value)
    line = TEXT[: TEXT.index(f"void {name}(")].count("\n") + 1
    place = message.removeprefix(f"{name}: selftest.cu:").split(":")[0]
    assert line <= int(place) <= line + 8
    assert "block (" in message
    assert "thread " in message
    # The device goes on, with fresh fibers.
    test_votes(gpu)


def test_failed_assertion_names_the_thread(gpu: EmulatedGpu) -> None:
    with pytest.raises(KernelError, match=r"block \([012], 0, 0\), thread 3$"):
        run(gpu, "failed_assertion", "out:i4*", np.ones(64, np.int32), grid=3)


# ---- strictness --------------------------------------------------------------------------------------------------------------


def launch_arrival(gpu: EmulatedGpu, *arguments: Any, grid: Any = (1, 1, 1), block: int = 64, shared_bytes: int = 0) -> None:
    kernel = selftest_kernel("arrival_order", "n_arrived:i4* blocks:i4* threads:i4*")
    gpu.launch(kernel, grid, block, arguments, shared_bytes)


def test_arguments_are_checked() -> None:
    gpu = selftest_gpu()
    good = gpu.put(zeros(1)), gpu.put(zeros(64)), gpu.put(zeros(64))
    launch_arrival(gpu, *good)
    with pytest.raises(TypeError, match="takes 3 arguments, got 2"):
        launch_arrival(gpu, *good[:2])
    for bad in (gpu.put(zeros(64, dtype=np.int64)), gpu.put(zeros(64, dtype=np.uint32)), zeros(64), np.int32(3), 3):
        with pytest.raises(TypeError, match=r"arrival_order\(blocks\) takes a device array of int32"):
            launch_arrival(gpu, good[0], bad, good[2])
    with pytest.raises(TypeError, match=r"arrival_order\(threads\) takes a C-contiguous array"):
        launch_arrival(gpu, *good[:2], gpu.put(zeros(128))[::2])
    for number in (3, 3.0, np.int64(3), np.uint32(3), np.float32(3), gpu.put(zeros(1)), None):
        scalars = [np.int8(0), np.uint8(0), np.int16(0), np.uint16(0), number, np.uint32(0), np.int64(0), np.uint64(0)]
        with pytest.raises(TypeError, match=r"arguments\(e\) takes a NumPy scalar of int32"):
            run(
                gpu,
                "arguments",
                "out:i4* a:i1 b:u1 c:i2 d:u2 e:i4 f:u4 g:i8 h:u8 i:f4 j:f8 none:i4*?",
                zeros(11),
                *scalars,
                np.float32(0),
                np.float64(0),
                None,
            )


@pytest.mark.parametrize("grid", [(0, 1, 1), (1, 0, 1), (1, 65536, 1), (1, 1, 65536), (2**31, 1, 1)])
def test_grid_is_checked(grid: tuple[int, int, int]) -> None:
    gpu = selftest_gpu()
    with pytest.raises(ValueError, match=r"arrival_order: a grid must be from \(1, 1, 1\) to "):
        launch_arrival(gpu, *(gpu.put(zeros(64)) for _ in range(3)), grid=grid)


def test_block_is_checked() -> None:
    gpu = selftest_gpu()
    with pytest.raises(ValueError, match="arrival_order: a block must be from 1 to 1024 threads, got 1025"):
        launch_arrival(gpu, *(gpu.put(zeros(1025)) for _ in range(3)), block=1025)
    with pytest.raises(ValueError, match="votes: a block must be from 1 to 64 threads, got 96"):
        run(gpu, "votes", "out:u4*", zeros(96, 6, dtype=np.uint32), block=96)


def test_dynamic_shared_memory_is_checked() -> None:
    gpu = selftest_gpu()
    arrays = [gpu.put(zeros(64)) for _ in range(3)]
    launch_arrival(gpu, *arrays, shared_bytes=99 * 1024)
    with pytest.raises(ValueError, match="arrival_order: 101377 bytes of dynamic shared memory, but a block has 101376"):
        launch_arrival(gpu, *arrays, shared_bytes=99 * 1024 + 1)
    kernel = selftest_kernel("uninitialised", "out:i4*")
    compiled = emulator.CompiledKernel(kernel, emulator.load(TEXT, "selftest.cu")["uninitialised"])
    with pytest.raises(ValueError, match="49153 bytes of dynamic shared memory, but a block has 49152"):
        compiled.launch((1, 1, 1), 64, (gpu.put(zeros(128)),), shared_bytes=48 * 1024 + 1)


@pytest.mark.parametrize(
    ("parameters", "max_block", "message"),
    [
        ("sizes:i4* floats:f4*", 32, r"vectors: parameter 1 is registered as sizes:i4\*, but selftest.cu has floats:f4\*"),
        ("floats:f4* sizes:u4*", 32, r"parameter 2 is registered as sizes:u4\*, but selftest.cu has sizes:i4\*"),
        ("floats:f4* sizes:i4", 32, r"parameter 2 is registered as sizes:i4, but selftest.cu has sizes:i4\*"),
        ("floats:f4*", 32, r"parameter 2 is registered as nothing, but selftest.cu has sizes:i4\*"),
        ("floats:f4* sizes:i4* n:i4", 32, "parameter 3 is registered as n:i4, but selftest.cu has nothing"),
        ("floats:f4* sizes:i4*", 64, r"blocks of up to 64 threads, but selftest.cu has __launch_bounds__\(32\)"),
    ],
)
def test_registered_signature_must_be_the_compiled_one(parameters: str, max_block: int, message: str) -> None:
    gpu = selftest_gpu()
    kernel = Kernel("vectors", "selftest", signature(parameters), max_block)
    with pytest.raises(TypeError, match=message):
        gpu.launch(kernel, (1, 1, 1), 1, (gpu.put(zeros(8, dtype=np.float32)), gpu.put(zeros(11))), 0)


def test_unknown_kernel() -> None:
    with pytest.raises(ValueError, match=r"selftest\.cu has no kernel 'nobody'"):
        selftest_gpu().launch(Kernel("nobody", "selftest", (), 64), (1, 1, 1), 1, (), 0)


# ---- translation -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "atomicAdd((long long*)p, 1ll);",  # CUDA has no such overload
        "atomicAdd((short*)p, (short)1);",
        "p[0] = (int)exp(1.0);",  # its results differ between devices
        "__shfl_sync(0xffffffffu, (short)1, 0);",
        "printf(p);",
        "p[0] = __activemask();",
        "__shared__ int a[2] = {1, 2};",
        "extern __shared__ int a;",
        "extern __shared__ int a[2];",
    ],
)
def test_what_cuda_rejects_does_not_compile(line: str) -> None:
    require(emulator.unavailable())
    text = 'extern "C" __global__ void f(int* p)\n{\n    LINE\n}\n'
    emulator.load(text.replace("LINE", "p[0] = 1;"), "good.cu")
    with pytest.raises((CompileError, ValueError), match=r"bad.cu:3:|shared memory"):
        emulator.load(text.replace("LINE", line), "bad.cu")


def test_a_kernel_may_have_the_name_of_a_function_of_the_c_library() -> None:
    text = '#define NAME select\n#define KERNEL extern "C" __global__ void\nKERNEL NAME(int* p) { p[0] = 5; }\n'
    gpu = EmulatedGpu(source=lambda file: text)
    p = gpu.put(zeros(1))
    gpu.launch(Kernel("select", "named", signature("p:i4*"), 1024), (1, 1, 1), 1, (p,), 0)
    assert gpu.get(p).tolist() == [5]


def test_file_without_kernels() -> None:
    require(emulator.unavailable())
    with pytest.raises(ValueError, match=r"empty\.cu has no __global__ function"):
        emulator.load("static __device__ int f() { return 1; }", "empty.cu")


def test_places_follow_line_directives() -> None:
    text = '#line 70 "other.cuh"\nextern "C" __global__ void f(int* p) { assert(p[0] == 1); }\n'
    gpu = EmulatedGpu(source=lambda file: text)
    with pytest.raises(KernelError, match=r"^f: other.cuh:70: assertion failed"):
        gpu.launch(Kernel("f", "main", signature("p:i4*"), 1024), (1, 1, 1), 1, (gpu.put(zeros(1)),), 0)

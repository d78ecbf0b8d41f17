"""NVRTC accepts the kernels for every architecture, without a card: nothing is spilled, and registers keep to a budget."""

from __future__ import annotations

import re
import runpy

import numpy as np
import pytest

from benchmarks.gpu import nvrtc
from gpuboost.backends.cuda import kernels
from gpuboost.backends.cuda.plan import HISTOGRAM_REGISTERS, SWEEP_STATIC_BYTES
from tests.cuda_on_cpu import emulator
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.requirement import require

FILES = sorted(path.stem for path in kernels.source_folder().glob("*.cu"))
ARCHITECTURES = runpy.run_path(str(kernels.source_folder() / "build.py"))["ARCHITECTURES"]

USUAL = (75, 90)
"""The oldest architecture, and that of the budgets of machine code; the others are for the nights."""
OTHERS = sorted(set(ARCHITECTURES) - set(USUAL))
MAX_REGISTERS = 64
"""Of a thread: four blocks of 256, or one of 1024, then fit the 65536 registers of a multiprocessor."""
REGISTERS = {
    "histogram": HISTOGRAM_REGISTERS[False],
    "histogram_wide": HISTOGRAM_REGISTERS[True],
    "sweep_entropy": 80,  # logarithms and roots take more
    "sweep_rebel": 80,
    "sweep_entropy_wide": 104,
    "sweep_rebel_wide": 80,
}
"""Kernels with a budget of their own."""
STACK_FRAMES: dict[str, int] = {}
"""Kernels that index an array of their own at run time, and the bytes of it."""
SPILLED: dict[tuple[str, int], int] = {}
"""Bytes that the compiler rather stores and loads than give up full occupancy, with 32 registers, on an architecture."""

ENTRY_POINT = re.compile(r'^extern "C" __global__ void(?: __launch_bounds__\((\d+)(?:, \d+)?\))?\s+(\w+)\(', re.MULTILINE)


def entry_points(file: str) -> dict[str, int]:
    """Names of the kernels of a file, with the threads that their ``__launch_bounds__`` allow."""
    return {name: int(bound or 1024) for bound, name in ENTRY_POINT.findall(kernels.source(file))}


# ---- the registry ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES)
def test_all_entry_points_are_registered(file: str) -> None:
    assert kernels.source(file).count("__global__") == len(ENTRY_POINT.findall(kernels.source(file)))
    assert entry_points(file) == {kernel.name: kernel.max_block for kernel in kernels.KERNELS.values() if kernel.file == file}


def test_all_registered_kernels_have_a_file() -> None:
    assert sorted({kernel.file for kernel in kernels.KERNELS.values()}) == FILES


def test_no_kernel_has_more_than_ten_parameters() -> None:
    assert max(len(kernel.parameters) for kernel in kernels.KERNELS.values()) == 10


def test_structs_are_registered_as_they_are_compiled() -> None:
    """Names, offsets and sizes of all fields, by a kernel that writes down what the compiler makes of the header."""
    require(emulator.unavailable())
    header = kernels.source("bin")
    defined = dict(re.findall(r"^struct (\w+(?:Sizes|Series)) \{\n(.*?)^\};", header, re.MULTILINE | re.DOTALL))
    assert defined.keys() == kernels.STRUCTS.keys()
    expected, written = [], []
    for name, dtype in kernels.STRUCTS.items():
        code = re.sub(r"//.*", "", defined[name])
        assert dtype.names == tuple(re.findall(r"(\w+)(?:\[\w+\])?\s*[,;]", code))
        expected.append(dtype.itemsize)
        written.append(f"sizeof({name})")
        for field in dtype.names:
            field_dtype, offset = dtype.fields[field][:2]
            expected += [offset, field_dtype.itemsize, field_dtype.base.kind == "f"]
            is_float = f"(decltype((({name}*)0)->{field} + 0))0.5 != 0" if not field_dtype.shape else "1"
            written += [f"__builtin_offsetof({name}, {field})", f"sizeof((({name}*)0)->{field})", is_float]
    body = "".join(f"out[{i}] = (int)({what});" for i, what in enumerate(written))
    text = header + 'extern "C" __global__ void __launch_bounds__(32) layout(int* out) {' + body + "}\n"
    gpu = EmulatedGpu(source=lambda file: text)
    out = gpu.empty((len(expected),), np.int32)
    gpu.launch(kernels.Kernel("layout", "layout", kernels.signature("out:i4*"), 32), (1, 1, 1), 32, (out,), 0)
    assert gpu.get(out).tolist() == expected


@pytest.mark.parametrize("file", [pytest.param(file, marks=pytest.mark.slow) if file == "sweep" else file for file in FILES])
def test_nothing_is_fused_or_flushed(file: str) -> None:
    """As CuPy compiles, with -ftz=true: every operation rounds once, and denormal numbers, also float32, stay what they are."""
    ptx = compiled(kernels.source(file), file, ["-arch=compute_75", "-ftz=true", "--device-as-default-execution-space"]).ptx
    assert f".entry {next(iter(entry_points(file)))}" in ptx
    assert not re.findall(r"^.*(?:\.ftz|\bfma\.|\.approx).*$", ptx, re.MULTILINE)


def test_what_would_be_fused_or_flushed_is_seen() -> None:
    text = 'extern "C" __global__ void f(double* p, const float* q) { p[0] = p[1] * p[2] + q[0]; }'
    assert "cvt.ftz.f64.f32" in compiled(text, "f", ["-arch=compute_75", "-ftz=true"]).ptx


@pytest.mark.slow
def test_static_shared_memory_leaves_what_the_host_counts_on() -> None:
    """A block has its static and its dynamic shared memory from the same limit."""
    static = {one.name: one.shared for file in FILES for one in resources_of_file(file, ARCHITECTURES[0])}
    for name in ("histogram", "histogram_wide", "leaf_sums", "leaf_sums_wide"):  # these may take all there is
        assert static[name] == 0
    assert 0 < max(n for name, n in static.items() if name.startswith("sweep_")) <= SWEEP_STATIC_BYTES
    assert static["count_codes"] == 4 * 256 * 32


# ---- the compiler ------------------------------------------------------------------------------------------------------------


def compiled(text: str, file: str, more: list[str]) -> nvrtc.Compiled:
    """Compile with the kernels' and more options; skips where there is no NVRTC."""
    try:
        return nvrtc.compiled(text, file, more)
    except nvrtc.Unavailable as error:
        pytest.skip(str(error))


def compile_log(text: str, file: str, architecture: int) -> str:
    """Compile for an architecture and return what the compiler says; skips where NVRTC does not know it."""
    try:
        return nvrtc.machine_code(text, file, architecture).log
    except nvrtc.Unavailable as error:
        pytest.skip(str(error))


def resources(text: str, file: str, architecture: int) -> list[nvrtc.Resources]:
    return nvrtc.resources(compile_log(text, file, architecture))


def resources_of_file(file: str, architecture: int) -> list[nvrtc.Resources]:
    """Of a file of kernels, which is compiled once in a process; skips as `compile_log` does."""
    try:
        return nvrtc.resources(nvrtc.of_file(file, architecture).log)
    except nvrtc.Unavailable as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.parametrize(
    "architecture", [a if a in USUAL else pytest.param(a, marks=pytest.mark.exhaustive) for a in ARCHITECTURES]
)
@pytest.mark.parametrize("file", FILES)
def test_compiles_within_budget(file: str, architecture: int) -> None:
    found = resources_of_file(file, architecture)
    assert {kernel.name for kernel in found} == set(entry_points(file))
    for kernel in found:
        spilled = SPILLED.get((kernel.name, architecture), 0)
        assert kernel.spilled <= spilled, kernel
        assert kernel.stack <= STACK_FRAMES.get(kernel.name, spilled), kernel
        assert kernel.registers <= REGISTERS.get(kernel.name, MAX_REGISTERS), kernel


def test_exceptions_are_of_kernels_that_exist() -> None:
    named = REGISTERS.keys() | STACK_FRAMES.keys() | {name for name, _ in SPILLED}
    assert named <= kernels.KERNELS.keys()


def test_what_the_compiler_says_is_read() -> None:
    """An array with an index of run time takes a stack frame; values beyond the registers are spilled."""
    body = "".join(f"int v{i} = p[{i} * n];" for i in range(64)) + "__syncthreads();"
    body += "".join(f"p[{i}] = v{i} * v{(i * 7 + 3) % 64};" for i in range(64))
    text = 'extern "C" __global__ void __launch_bounds__(1024, 2) spills(int* p, int n) {' + body + "}\n"
    text += 'extern "C" __global__ void stack(int* p, int n) {'
    text += "int own[9]; for (int i = 0; i < n; ++i) own[p[i]] += p[n]; *p = own[n]; }"
    by_name = {kernel.name: kernel for kernel in resources(text, "greedy", 80)}
    assert by_name["spills"].spilled > 0
    assert by_name["spills"].registers <= 32  # 2 * 1024 threads share 65536
    assert by_name["stack"].stack >= 36
    assert by_name["stack"].spilled == 0


def test_errors_are_shown() -> None:
    with pytest.raises(AssertionError, match=r'bad\.cu\(1\): error: identifier "missing" is undefined'):
        compile_log('extern "C" __global__ void f(int* p) { *p = missing; }', "bad", 75)

"""The planting of errors, tried on ``sample.cu``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gpuboost.backends.cuda.kernels import Kernel, signature
from tests.cuda_on_cpu import forked, mutants, sanitized
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.mutants import Mutant
from tests.cuda_on_cpu.requirement import require

pytestmark = pytest.mark.slow

KERNEL = Kernel(
    "largest_sum", "sample", signature("codes:u1* values:i4* sums:i8* best:i4* ticket:u4* n_rows:i4 n_bins:i4"), max_block=128
)


def source(file: str) -> str:
    return (Path(__file__).parent / f"{file}.cu").read_text(encoding="utf-8")


def largest_sum(gpu: EmulatedGpu) -> None:
    rng = np.random.default_rng(0)
    n_rows, n_bins = 700, 25
    codes = rng.integers(0, 20, n_rows).astype(np.uint8)
    values = rng.integers(-(1 << 20), 1 << 20, n_rows).astype(np.int32)
    codes[-3:], values[-3:] = (21, 24, 23), 1 << 27  # three bins tie
    expected = [sum(int(v) for v in values[codes == b]) for b in range(n_bins)]
    sums, best = gpu.put(np.zeros(n_bins, np.int64)), gpu.put(np.zeros(1, np.int32))
    arguments = (
        gpu.put(codes),
        gpu.put(values),
        sums,
        best,
        gpu.put(np.zeros(1, np.uint32)),
        np.int32(n_rows),
        np.int32(n_bins),
    )
    gpu.launch(KERNEL, (3, 1, 1), 128, arguments, 4 * n_bins)
    assert gpu.get(sums).tolist() == expected
    assert gpu.get(best).tolist() == [21]


def planted(original: str, replacement: str) -> Mutant:
    return Mutant("sample", original, replacement, largest_sum, source)


SAMPLE = {
    "shared memory is not cleared": planted("cells[bin] = 0;", "{}"),
    "one cell too many is cleared": planted(
        "bin < n_bins; bin += blockDim.x) cells", "bin <= n_bins; bin += blockDim.x) cells"
    ),
    "no barrier after clearing": planted("__syncthreads();  // 1", ""),
    "plain addition in shared memory": planted(
        "atomicAdd(&cells[codes[row]], values[row]);", "cells[codes[row]] += values[row];"
    ),
    "one row too many": planted("row < n_rows", "row <= n_rows"),
    "no barrier before the flush": planted("__syncthreads();  // 2", ""),
    "plain addition in global memory": planted(
        "atomicAdd((unsigned long long*)&sums[bin], (unsigned long long)(long long)cells[bin]);", "sums[bin] += cells[bin];"
    ),
    "sums lose their sign": planted("(unsigned long long)(long long)cells[bin]", "(unsigned)cells[bin]"),
    "no fence": planted("__threadfence();", ""),
    "no barrier before the ticket": planted("__syncthreads();  // 3", ""),
    "no barrier after the ticket": planted("__syncthreads();  // 4", ""),
    "threads without rows leave": planted(
        "    __syncthreads();  // 2", "    if (blockIdx.x * blockDim.x + threadIdx.x >= 300) return;\n    __syncthreads();"
    ),
    "a barrier in a branch": planted(
        "__syncthreads();  // 4", "if (threadIdx.x < 32)\n__syncthreads();\nelse\n__syncthreads();"
    ),
    "a shuffle in a branch": planted("const int other = __shfl", "const int other = candidate < 0 ? -1 : __shfl"),
    "too small a mask": planted("__shfl_down_sync(0xffffffffu, candidate, d)", "__shfl_down_sync(0x0000ffffu, candidate, d)"),
    "the highest of equal bins": planted("other < candidate", "other > candidate"),
    "an index overflows": planted("cells[codes[row]]", "cells[codes[row * 4000000 / 4000000]]"),
}

CAUGHT_BY = {
    "one cell too many is cleared": "asan",
    "one row too many": "asan",
    "an index overflows": "asan",
    "plain addition in shared memory": "tsan",
    "plain addition in global memory": "tsan",
    "no fence": "tsan",
    "no barrier before the ticket": "tsan",
}
"""What needs a sanitizer to be caught for certain."""


BY_DEFAULT = {
    "shared memory is not cleared",
    "one cell too many is cleared",
    "no barrier before the flush",
    "plain addition in global memory",
    "no fence",
    "a barrier in a branch",
    "too small a mask",
    "the highest of equal bins",
}
"""One of each kind; the others are for the nights."""


def run_sample(name: str) -> None:
    SAMPLE[name].run()


def run_unchanged(name: str) -> None:
    SAMPLE[name].run(planted=False)


@pytest.fixture(scope="module")
def failures(request: pytest.FixtureRequest) -> dict[str, dict[str, str | None]]:
    """Of all mutants that are asked for."""
    return mutants.failures(f"{__name__}:run_sample", mutants.asked_for(request, "test_sample_mutant_is_caught"))


@pytest.mark.parametrize("mode", mutants.MODES)
def test_no_mode_objects_to_the_sample(mode: str) -> None:
    require(sanitized.unavailable(mode))
    assert forked.outcomes(mode, f"{__name__}:run_unchanged", ["no fence"]) == {"no fence": None}


@pytest.mark.parametrize("name", mutants.named(SAMPLE, BY_DEFAULT))
def test_sample_mutant_is_caught(name: str, failures: dict[str, dict[str, str | None]]) -> None:
    require(sanitized.unavailable(CAUGHT_BY.get(name, "")))
    found = failures[name]
    caught = [(mode, failure) for mode, failure in found.items() if failure is not None]
    assert len(caught) == 1, found
    assert "CompileError" not in caught[0][1]
    if CAUGHT_BY.get(name) == "tsan":
        assert caught[0][0] == "tsan"  # memory is as it should be in any order: only a race tells


def test_a_mutant_changes_one_place() -> None:
    with pytest.raises(ValueError, match=r"'__syncthreads\(\);' stands 4 times in sample\.cu"):
        planted("__syncthreads();", "").text()
    with pytest.raises(ValueError, match=r"'nothing' stands 0 times in sample\.cu"):
        planted("nothing", "").text()

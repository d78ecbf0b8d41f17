"""What the sanitizers find in the self-test, and that they find nothing where nothing is wrong."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpuboost.backends.cuda.kernels import Kernel, signature
from tests.cuda_on_cpu import emulator, forked, sanitized
from tests.cuda_on_cpu.gpu import EmulatedGpu
from tests.cuda_on_cpu.requirement import require

HERE = Path(__file__).parent
TEXT = (HERE / "selftest.cu").read_text(encoding="utf-8")

FAULTS = {
    "asan": {
        "dynamic_shared_overrun": "AddressSanitizer: heap-buffer-overflow",
        "static_shared_overrun": "AddressSanitizer: heap-buffer-overflow",
        "global_overrun": "AddressSanitizer: heap-buffer-overflow",
        "global_underrun": "AddressSanitizer: heap-buffer-overflow",
        "signed_overflow": "signed integer overflow",
        "shift_too_far": "shift exponent (3[2-9]|[456].) is too large for 32-bit type",
        "cast_out_of_range": r"2\.2e\+09 is outside the range of representable values of type 'int'",
    },
    "tsan": {
        "without_syncwarp": "ThreadSanitizer: data race",
        "without_fence": "ThreadSanitizer: data race",
        "plain_add_in_block": "ThreadSanitizer: data race",
        "plain_add_between_blocks": "ThreadSanitizer: data race",
    },
}


def run_kernel(name: str) -> None:
    """Launch a kernel of the self-test, three blocks of 64 threads, in every order."""
    parameters = "parts:i4* ticket:u4* sum:i4*" if name.endswith("_fence") else "out:i4*"
    kernel = Kernel(name, "selftest", signature(parameters), emulator.load(TEXT, "selftest.cu")[name].max_block)
    for order in emulator.ORDERS:
        gpu = EmulatedGpu(order, source=lambda file: TEXT)
        arrays = tuple(gpu.put(np.zeros(64, parameter.dtype)) for parameter in kernel.parameters)
        one_warp = name.endswith("_syncwarp")
        gpu.launch(kernel, (1, 1, 1) if one_warp else (3, 1, 1), 32 if one_warp else 64, arrays, 256)


@cache
def findings(mode: str) -> dict[str, str | None]:
    return forked.outcomes(mode, f"{__name__}:run_kernel", list(FAULTS[mode]))


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "name"), [(mode, name) for mode, faults in FAULTS.items() for name in faults])
def test_sanitizer_finds(mode: str, name: str) -> None:
    require(sanitized.unavailable(mode))
    found = findings(mode)[name] or "nothing"
    assert re.search(FAULTS[mode][name], found), found
    assert "selftest.cu:" in found


def end(name: str) -> None:
    """One way to end for each name."""
    if name == "raises":
        raise ValueError("this is why")
    if name == "exits":
        sys.exit("goodbye")
    if name == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "hangs":
        time.sleep(60)


@pytest.mark.slow
def test_forked_outcomes() -> None:
    require(sanitized.unavailable(""))
    assert forked.outcomes("", f"{__name__}:end", ["returns", "raises", "exits", "crashes", "hangs"], limit=1) == {
        "returns": None,
        "raises": 'ValueError: this is why [raise ValueError("this is why")]',
        "exits": 'SystemExit: goodbye [sys.exit("goodbye")]',
        "crashes": "SIGSEGV",
        "hangs": "no end after 1 seconds",
    }
    with pytest.raises(RuntimeError, match="cannot run nowhere:nobody in mode ''"):
        forked.outcomes("", "nowhere:nobody", ["returns"])


@pytest.mark.slow
@pytest.mark.parametrize("mode", sanitized.SANITIZERS)
def test_nothing_is_found_in_the_self_test(mode: str) -> None:
    require(sanitized.unavailable(mode))
    of_the_compiler = "not does_not_compile"  # the same in every mode
    done = sanitized.run_pytest(mode, str(HERE / "test_emulator.py"), str(HERE / "test_gpu.py"), "-k", of_the_compiler)
    assert done.returncode == 0, done.stdout

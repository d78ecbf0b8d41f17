"""The kernel suite under sanitizers: addresses and undefined behaviour in all of it, races in a part, as that is slow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cuda_on_cpu import sanitized
from tests.cuda_on_cpu.requirement import require

SUITE = "tests/backends/test_conformance.py"
NAMES = ("softmax", "label_weights", "growth_scope", "rectangles", "early_exit", "points")
OTHERS = tuple(f"tests/backends/test_{name}.py" for name in NAMES)
MANY = "tests/backends/test_many_rows.py"
FEW = "and not (test_roots_of_a_batch and (10-3 or 8-4))"
"""Of a batch of many trees the results are compared in every order; a sanitizer sees the same lines with few."""
BRIEF = (
    "(agree or step or losses or derivatives or float32 or test_statistics or row_mass or near or (newton and 150) "
    "or (some_features and batch))"
)
"""A few launches of each kernel that the growth of Hamming trees does without."""
SELECTIONS = {
    "asan": [
        (SUITE, *OTHERS, "-k", f"emulated-random and not fit and not order {FEW}"),
        (SUITE, "-k", f"emulated-tight-least and (growth or limit or batch) {FEW}"),
        ("tests/backends/cuda/test_rows.py", "-k", "reverse"),
        (MANY, "-k", "emulated-random and (growth or statistics or derivatives) and not 33"),
    ],
    "tsan": [
        (SUITE, "-k", f"emulated-random and (growth or batch or hand or flip or error or predict) and (3 or hand) {FEW}"),
        (SUITE, "-k", "emulated-tight-least and test_growth and not smallest and 3"),
        (SUITE, *OTHERS, "-k", f"emulated-random and {BRIEF}"),
        (MANY, "-k", "emulated-random and (growth or statistics) and 17"),
    ],
}


def runs() -> Iterator[Any]:
    """By default the cases that meet such a device, see `tests/conftest.py`; the others are for the nights."""
    for mode, found in SELECTIONS.items():
        for selection in found:
            yield pytest.param(mode, selection, "not exhaustive", marks=pytest.mark.slow)
            if SUITE in selection:
                yield pytest.param(mode, selection, "exhaustive", marks=pytest.mark.exhaustive)


@pytest.mark.parametrize(("mode", "selection", "marked"), runs(), ids=str)
def test_nothing_is_found(mode: str, selection: tuple[str, ...], marked: str) -> None:
    require(sanitized.unavailable(mode))
    done = sanitized.run_pytest(mode, *selection, "-m", marked)
    assert done.returncode == 0, done.stdout

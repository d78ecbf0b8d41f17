"""The kernel suite under sanitizers: addresses and undefined behaviour in all of it, races in a part, as that is slow."""

from __future__ import annotations

import pytest

from tests.cuda_on_cpu import sanitized
from tests.cuda_on_cpu.requirement import require

SUITE = "tests/backends/test_conformance.py"
MANY = "tests/backends/test_many_rows.py"
FEW = "and not (test_roots_of_a_batch and (10-3 or 8-4))"
"""Of a batch of many trees the results are compared in every order; a sanitizer sees the same lines with few."""
SELECTIONS = {
    "asan": [
        (SUITE, "-k", f"emulated-random and not fit and not order {FEW}"),
        (SUITE, "-k", f"emulated-tight-least and (growth or limit or batch) {FEW}"),
        ("tests/backends/cuda/test_rows.py", "-k", "reverse"),
        (MANY, "-k", "emulated-random and (growth or statistics or derivatives) and not 33"),
    ],
    "tsan": [
        (SUITE, "-k", f"emulated-random and (growth or batch or hand or flip or error or predict) and (3 or hand) {FEW}"),
        (SUITE, "-k", "emulated-tight-least and test_growth and not smallest and 3"),
        (MANY, "-k", "emulated-random and (growth or statistics) and 17"),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "selection"), [(mode, selection) for mode, found in SELECTIONS.items() for selection in found], ids=str
)
def test_nothing_is_found(mode: str, selection: tuple[str, ...]) -> None:
    require(sanitized.unavailable(mode))
    done = sanitized.run_pytest(mode, *selection)
    assert done.returncode == 0, done.stdout

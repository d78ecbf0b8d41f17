"""How the loops of the CPU backend are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

Array = Any
Int = Any  # a Python or a NumPy integer: the compiler does not care
Float = Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop: without the GIL, once for all processes."""
    loop: Callable[..., Any] = njit(nogil=True, cache=True, error_model="numpy")(function)
    return loop

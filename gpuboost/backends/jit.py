"""How the loops of the CPU backend are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

Array = Any
Int = Any  # a Python or a NumPy integer: the compiler does not care
Float = Any


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop: without the GIL, and once for all processes where there is a place to keep it."""
    loop: Callable[..., Any]
    try:
        loop = njit(nogil=True, error_model="numpy", cache=True)(function)
    except RuntimeError:  # numba found no directory that it can write to
        loop = njit(nogil=True, error_model="numpy")(function)
    return loop

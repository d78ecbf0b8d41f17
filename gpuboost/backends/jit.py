"""How the loops of the CPU backend are compiled."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching

Array = Any
Int = Any  # a Python or a NumPy integer: the compiler does not care
Float = Any

NumbaCache: Any = caching.FunctionCache


def _sources() -> str:
    """Return a hash of the files with the loops and what they use."""
    here = Path(__file__).parent
    used = [here / "simd.py", here / "base.py", here.parent / "binning.py", here.parent / "fixedpoint.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in [*sorted(here.glob("cpu_*.py")), *used])).hexdigest()


SOURCES = _sources()


class Cache(NumbaCache):  # type: ignore[misc]
    """Compiled loops, of the sources as they are now.

    A loop contains those that it calls, wherever they are, and numba's own cache notices changes of the loop's file only.
    """

    def _index_key(self, *arguments: Any) -> Any:
        return super()._index_key(*arguments), SOURCES


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop: without the GIL, and once for all processes where there is a place to keep it."""
    loop: Any = njit(nogil=True, error_model="numpy")(function)
    with contextlib.suppress(RuntimeError):  # numba found no directory that it can write to
        loop._cache = Cache(function)
    return loop  # type: ignore[no-any-return]

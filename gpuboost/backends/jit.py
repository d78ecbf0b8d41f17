"""How the loops of the CPU backend are compiled."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from numba import njit
from numba.core import caching

from gpuboost.backends import compiling

Array = Any
Int = Any  # a Python or a NumPy integer: the compiler does not care
Float = Any

NumbaCache: Any = caching.FunctionCache
NumbaFiles: Any = caching.CompileResultCacheImpl
NamedFolder: Any = NumbaFiles._locator_classes[0]


def _sources() -> str:
    """Return a hash of the files with the loops and what they use."""
    here = Path(__file__).parent
    used = [here / "simd.py", here / "base.py", here.parent / "binning.py", here.parent / "fixedpoint.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in [*sorted(here.glob("cpu_*.py")), *used])).hexdigest()


SOURCES = _sources()


class ReadOnlyFolder(NamedFolder):  # type: ignore[misc]
    """The folder that $NUMBA_CACHE_DIR names, if it can only be read, as in a container image: numba passes it over."""

    def ensure_cache_path(self) -> None:
        os.scandir(self.get_cache_path()).close()


class Files(NumbaFiles):  # type: ignore[misc]
    """Where the cache may be: numba's places in numba's order, with `ReadOnlyFolder` after the one that it stands in for."""

    _locator_classes: ClassVar = [NamedFolder, ReadOnlyFolder, *NumbaFiles._locator_classes[1:]]


class Cache(NumbaCache):  # type: ignore[misc]
    """Compiled loops, of the sources as they are now.

    A loop contains those that it calls, wherever they are, and numba's own cache notices changes of the loop's file only.
    What cannot be written is compiled again by the next process.
    """

    _impl_class = Files

    def _index_key(self, *arguments: Any) -> Any:
        return super()._index_key(*arguments), SOURCES

    def load_overload(self, *arguments: Any) -> Any:
        loop = super().load_overload(*arguments)
        if loop is None:
            compiling.tell()
        return loop

    def save_overload(self, *arguments: Any) -> None:
        with contextlib.suppress(OSError):
            super().save_overload(*arguments)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a loop: without the GIL, and once for all processes where there is a place to keep it."""
    loop: Any = njit(nogil=True, error_model="numpy")(function)
    with contextlib.suppress(RuntimeError):  # numba found no directory that it can write to
        loop._cache = Cache(function)
    return loop  # type: ignore[no-any-return]

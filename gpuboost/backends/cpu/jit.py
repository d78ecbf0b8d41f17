"""How the loops of the CPU backend are compiled."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import os
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from numba import njit
from numba.core import caching

from gpuboost.backends.cpu import compiling

Array = Any
Int = Any  # a Python or a NumPy integer: the compiler does not care
Float = Any
Lanes = tuple[int, ...]  # its length is the number of vectors of a row, see `gpuboost.backends.cpu.loops.histograms.unrolled`

PACKAGE = __name__.partition(".")[0]

NumbaCache: Any = caching.FunctionCache
NumbaFiles: Any = caching.CompileResultCacheImpl
NamedFolder: Any = NumbaFiles._locator_classes[0]


@cache
def imported(module: str) -> frozenset[str]:
    """Return the modules of this package that a loaded module imports, itself included, directly or through others."""
    seen: set[str] = set()
    waiting = {module}
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for node in ast.walk(ast.parse(_source(name))):
            names = []
            if isinstance(node, ast.ImportFrom) and node.module:
                full = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in sys.modules else node.module for name in full]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            waiting |= {name for name in names if name.partition(".")[0] == PACKAGE and name in sys.modules} - seen
    return frozenset(seen)


def _source(module: str) -> bytes:
    return Path(sys.modules[module].__file__ or "").read_bytes()


@cache
def sources(module: str) -> str:
    """Return a hash of what the loops of a module are made of: its file and those of all that it imports."""
    return hashlib.sha256(b"".join(map(_source, sorted(imported(module))))).hexdigest()


class ReadOnlyFolder(NamedFolder):  # type: ignore[misc]
    """The folder that $NUMBA_CACHE_DIR names, if it can only be read, as in a container image: numba passes it over."""

    def ensure_cache_path(self) -> None:
        os.scandir(self.get_cache_path()).close()


class Files(NumbaFiles):  # type: ignore[misc]
    """Where the cache may be: numba's places in numba's order, with `ReadOnlyFolder` after the one that it stands in for."""

    _locator_classes: ClassVar = [NamedFolder, ReadOnlyFolder, *NumbaFiles._locator_classes[1:]]


class Cache(NumbaCache):  # type: ignore[misc]
    """Compiled loops, of the sources as they are now.

    A loop contains the loops that it calls and the constants that it reads, wherever they are, and numba's own cache notices
    changes of the loop's file only.
    What cannot be written is compiled again by the next process.
    """

    _impl_class = Files

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._module = function.__module__

    def _index_key(self, *arguments: Any) -> Any:
        return super()._index_key(*arguments), sources(self._module)

    def load_overload(self, *arguments: Any) -> Any:
        loop = super().load_overload(*arguments)
        if loop is None:
            compiling.notify_once()
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


@compiled
def copy(out: Array, values: Array) -> None:
    """Write the values to the first entries of ``out``. To assign an array to a slice takes seconds to compile."""
    for i in range(len(values)):
        out[i] = values[i]


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Paste a function into the loops that call it: no call passes the many parts of its arguments."""
    return njit(inline="always", error_model="numpy")(function)

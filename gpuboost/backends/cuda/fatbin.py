"""Kernels compiled ahead of time by ``kernels/build.py``, so that a machine needs no compiler.

A folder of them has a fatbin for every source file and ``manifest.json``, which says what they were built from. A fatbin of
other sources or options than the installed ones is not used: the kernels are then compiled on the spot.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from pathlib import Path
from typing import Any

from gpuboost.backends.cuda import kernels

MANIFEST = "manifest.json"
VARIABLE = "GPUBOOST_FATBIN"
"""Environment variable that names the folder, if it is not that of the sources."""


def fingerprint(file: str) -> str:
    """Return the SHA-256 of a source file as it is compiled: its text, with the headers in it, and the options."""
    return hashlib.sha256(json.dumps([kernels.OPTIONS, kernels.source(file)]).encode()).hexdigest()


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def folder() -> Path:
    """Return where fatbins are looked for."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else kernels.source_folder()


def manifest() -> dict[str, Any]:
    """Return what the fatbins were built from, or an empty dictionary if there are none or it cannot be read."""
    try:
        content = json.loads((folder() / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def find(file: str) -> Path | None:
    """Return the fatbin of ``kernels/<file>.cu`` if there is one that was built from just this source, undamaged."""
    path = folder() / f"{file}.fatbin"
    built = manifest().get("files", {}).get(file)
    if built is None:
        return None
    try:
        if built == {"source": fingerprint(file), "fatbin": checksum(path)}:
            return path
    except OSError:
        pass
    logging.getLogger("gpuboost").info("%s is not of the installed sources; they are compiled instead", path)
    return None


def matching() -> tuple[int, int]:
    """Return how many of the kernel files have a fatbin that can be used, and how many files there are."""
    files = {kernel.file for kernel in kernels.KERNELS.values()}
    return sum(find(file) is not None for file in files), len(files)

"""Optional packages, imported on use."""

from __future__ import annotations

import importlib
from typing import Any


def load(module: str, what: str) -> Any:
    """Import a package, or a module of one, that gpuboost does without until it is asked for this.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if error.name != package:  # it is there, but something that it needs is not
            raise
        raise ImportError(f"{what} needs the package {package}: pip install {package}") from error

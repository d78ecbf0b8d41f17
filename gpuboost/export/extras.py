"""Optional packages, imported on use."""

from __future__ import annotations

import importlib
from typing import Any


def load(package: str, what: str) -> Any:
    """Import a package that gpuboost does without until it is asked for this.

    Raises
    ------
    ImportError
        If it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, but something that it needs is not
            raise
        raise ImportError(f"{what} needs the package {package}: pip install {package}") from error

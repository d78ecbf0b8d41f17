"""Optional packages, imported on use."""

from __future__ import annotations

import importlib
from typing import Any


def load(package: str, what: str) -> Any:
    """Import a package that an extra of gpuboost brings.

    Raises
    ------
    ImportError
        If it is not installed; the message names the extra, which has the package's name.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:  # it is there, but something that it needs is not
            raise
        raise ImportError(f"{what} needs the package {package}: pip install 'gpuboost-ml[{package}]'") from error

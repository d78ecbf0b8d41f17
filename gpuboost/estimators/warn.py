"""Warnings that point at the caller's line."""

from __future__ import annotations

import sys
import warnings


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the first caller outside of this package."""
    frame, level = sys._getframe(1), 3  # the level of the frame's caller
    while frame.f_back is not None and frame.f_back.f_globals.get("__name__", "").partition(".")[0] == "gpuboost":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

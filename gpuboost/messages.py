"""Hints for names that are not known, and warnings that point at the caller's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable

EARLIER_NAMES = {"quick": "pruning", "row_fraction": "subsample", "feature_fraction": "max_features"}
"""Parameters that had another name in version 0.1.0. Only model files of it may still hold that one."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean X?)"`` if one of the known names is close, or has replaced the name, else ``""``."""
    import difflib

    names = list(known)
    renamed = EARLIER_NAMES.get(name)
    close = [renamed] if renamed in names else difflib.get_close_matches(name, names, len(names) or 1)
    if not close:
        return ""
    likeness = [difflib.SequenceMatcher(None, name, one).ratio() for one in close]
    equals = [one for one, ratio in zip(close, likeness, strict=True) if ratio == likeness[0]]
    return f" (did you mean {min(equals, key=names.index)}?)"  # of equals the first that is known


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the first caller outside of this package."""
    frame, level = sys._getframe(1), 3  # the level of the frame's caller
    while frame.f_back is not None and frame.f_back.f_globals.get("__name__", "").partition(".")[0] == "gpuboost":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

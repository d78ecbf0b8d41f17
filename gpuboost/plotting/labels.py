"""The text for classes and columns, and which column somebody means."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np

LONGEST = 24
"""Longer labels of classes and ticks are cut."""

PLAIN: dict[str, Any] = {"parse_math": False}
"""A label is text: a dollar sign in it starts no formula."""


def text(label: Any, longest: int = LONGEST) -> str:
    """Return a label as one line; a longer one is cut."""
    if isinstance(label, np.datetime64):
        label = np.datetime_as_string(label, unit="auto")  # without zeros that say nothing
    line = " ".join(str(label).split()) or repr(str(label))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def class_texts(classes: Iterable[Any]) -> list[str]:
    """Return class labels as text."""
    return [text(label) for label in classes]


def column_names(model: Any) -> list[Any]:
    """Return the names of the columns that a fitted model was trained on, or "column 0", "column 1", ..."""
    return model._column_names or [f"column {i}" for i in range(model.n_features_in_)]


def column_number(model: Any, column: Any) -> int:
    """Return the number of a column that is given by its name or number.

    Raises
    ------
    ValueError
        If there is no such column.
    """
    names = column_names(model)
    if column in names:
        return names.index(column)
    if isinstance(column, Integral) and not isinstance(column, (bool, np.bool_)) and 0 <= int(column) < len(names):
        return int(column)
    close = difflib.get_close_matches(str(column), list(map(str, names)), 3)
    hint = f"; did you mean {' or '.join(map(repr, close))}?" if close else f", or a number from 0 to {len(names) - 1}"
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    raise ValueError(f"the model has no column {column!r}, it has {shown}{hint}")


def count_text(count: float) -> str:
    """Return a count or a weight in at most six characters."""
    for least, unit, letter in ((1e10, 1e9, "G"), (1e7, 1e6, "M"), (1e5, 1e3, "k")):
        if count >= least:
            return f"{count / unit:.4g}{letter}"
    return f"{count:.0f}" if float(count).is_integer() else f"{count:.4g}"


def percent_text(share: float) -> str:
    """Return a share in percent. Only what is exactly nothing or all is 0 or 100 %."""
    percent = 100 * share
    if 0 < percent < 0.05 or 99.95 <= percent < 100:
        return "< 0.1 %" if percent < 1 else "> 99.9 %"
    return f"{percent:.0f} %" if percent in (0, 100) or 9.95 <= percent <= 99 else f"{percent:.1f} %"

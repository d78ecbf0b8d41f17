"""Colourings that a user gives: divisions of the classes in two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_colourings(colourings: Any, n_classes: int) -> tuple[NDArray[np.int8], ...]:
    """Return colourings, shape (n_colourings, n_classes), as one array each; none if there are none.

    Raises
    ------
    ValueError
        If they have another shape, hold more than -1 and +1, or leave all classes of a row in one colour.
    """
    if colourings is None:
        return ()
    given = np.asarray(colourings)
    if given.ndim != 2 or given.shape[1] != n_classes or not len(given):
        raise ValueError(f"colourings must have the shape (n_colourings, {n_classes}), got {given.shape}")
    for i, row in enumerate(given.tolist()):
        if set(row) != {-1, 1}:
            raise ValueError(f"colourings must hold -1 and +1, both of them in every row, got {row!r:.80} in row {i}")
    return tuple(given.astype(np.int8))

"""The rows that a worker has, as engines hand them over."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class LocalRows:
    """The rows of a set that one worker holds, in blocks.

    Attributes
    ----------
    X, y : list
        The features and labels of every block, as `gpuboost.fit` takes them. There may be no block.
    sample_weight : list or None
        The weights of every block; None if there are none on any worker.
    first_rows : list of int
        The number of the first row of every block among the rows of all workers, ascending. Blocks are not empty, so no other
        block of the set has the same number, here or elsewhere.
    evaluation : list of LocalRows
        The evaluation sets: as many on all workers.
    """

    X: list[Any]
    y: list[Any]
    sample_weight: list[Any] | None
    first_rows: list[int]
    evaluation: list[LocalRows] = field(default_factory=list)

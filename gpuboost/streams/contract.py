"""What a stream is: a source gives batches, cut as it likes; a booster sees steps, which do not depend on that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Batch:
    """One block of rows as a source gives it.

    Attributes
    ----------
    X : ndarray or data frame, shape (n, n_features)
        Numbers.
    y : ndarray or series, shape (n,)
        One label a row, of any type that an estimator takes.
    weight : ndarray or series, shape (n,), optional
        Numbers that are not negative. Either all batches of a source have weights, or none.
    """

    X: Any
    y: Any
    weight: Any = None


@dataclass(frozen=True, eq=False)
class Step:
    """One block of rows as a booster sees it.

    Attributes
    ----------
    X : ndarray, shape (n, n_features)
        Boolean, integer or real floating. It belongs to the step: no source writes into it later.
    y : ndarray, shape (n,)
        Labels as they are, none of them missing.
    weight : ndarray of float64, shape (n,), or None
        Finite and not negative.
    pass_number : int
        From 0.
    first_row : int
        The place of the first row in its pass, from 0.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float64] | None
    pass_number: int
    first_row: int


@runtime_checkable
class Source(Protocol):
    """Rows in one order, which is the same in all passes.

    Attributes
    ----------
    n_features : int or None
        None if only the first batch tells.
    feature_names : list of str or None
        None if there are none, or only the first batch tells.
    n_rows : int or None
        The rows of a pass; None if it has no end, or nobody knows.
    repeatable : bool
        Whether `batches` may be called again, and gives the same rows in the same order.
    """

    @property
    def n_features(self) -> int | None: ...
    @property
    def feature_names(self) -> list[str] | None: ...
    @property
    def n_rows(self) -> int | None: ...
    @property
    def repeatable(self) -> bool: ...

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on, cut as the source likes. It is called, and read, on another thread."""
        ...

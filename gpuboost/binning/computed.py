"""Matrices whose columns are computed when they are read, so that only their codes are ever in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

PART_BYTES = 8 << 20
"""Columns are computed in parts of about this size."""


class ComputedMatrix(ABC):
    """A matrix that estimators take in place of an array, and of which they read some columns at a time.

    Training on ``n_rows`` rows keeps ``n_rows * n_features`` bytes of codes, and besides some columns of values. Every column
    is computed twice: to choose its cuts, and for its codes (and ``max_leaf_nodes="auto"`` looks at some rows). A subclass
    defines the members below; its values must not change.

    Attributes
    ----------
    shape : tuple of int
        ``(n_rows, n_features)``.
    dtype : numpy.dtype
        Of the values: a boolean, integer or real floating one.
    """

    dtype: np.dtype[Any]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Return the number of rows and of columns."""

    @abstractmethod
    def take(self, rows: slice | NDArray[np.intp]) -> ComputedMatrix:
        """Return the matrix of some rows, in this order. Nothing is computed."""

    @abstractmethod
    def columns(self, first: int, stop: int) -> NDArray[Any]:
        """Return the values of the columns ``first .. stop - 1``, shape (n_rows, stop - first)."""

    def on(self, backend: Any) -> ComputedMatrix:
        """Return the matrix as one that a backend computes, if there is a primitive for it: the values are the same."""
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """Return ``X[rows]``, where nothing is computed, or the values ``X[:, first:stop]``."""
        if not isinstance(key, tuple):
            return self.take(key)
        rows, columns = key
        first, stop, step = columns.indices(self.shape[1])
        if step != 1:
            raise IndexError(f"columns must be a slice with the step 1, got {columns}")
        return self.take(rows).columns(first, stop)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.columns(0, self.shape[1]).astype(dtype or self.dtype, copy=False)

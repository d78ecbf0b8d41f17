"""Matrices whose columns are computed when they are read, so that only their codes are ever in memory."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
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
        """Return ``X[rows]`` or ``X[rows, ...]``, where nothing is computed, or the values ``X[rows, first:stop]``.

        Rows are a slice or a list or array of numbers or booleans, as those of scikit-learn's folds. The values of one row are
        ``X[i]``.
        """
        rows, *others = key if isinstance(key, tuple) else (key,)
        if isinstance(rows, Integral) and not isinstance(rows, bool) and not others:
            return self.take(np.arange(len(self))[[int(rows)]])._values(0, self.shape[1])[0]
        chosen = rows if isinstance(rows, slice) else _row_numbers(rows)
        if not others or (len(others) == 1 and others[0] is Ellipsis):
            return self.take(chosen)
        columns = others[0]
        if len(others) > 1 or not isinstance(columns, slice):
            raise IndexError(f"columns must be a slice, got {others!r:.60}; np.asarray(X) has all values")
        first, stop, step = columns.indices(self.shape[1])
        if step != 1:
            raise IndexError(f"columns must be a slice with the step 1, got {columns}")
        part = self if isinstance(chosen, slice) and chosen == slice(None) else self.take(chosen)
        return part._values(first, max(first, stop))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self._values(0, self.shape[1]).astype(dtype or self.dtype, copy=False)

    def _values(self, first: int, stop: int) -> NDArray[Any]:
        """Return `columns`; a TypeError if a subclass does not compute what it says."""
        values: Any = self.columns(first, stop)
        wanted, dtype = (self.shape[0], stop - first), np.dtype(self.dtype)
        if not isinstance(values, np.ndarray) or np.ma.isMaskedArray(values) or (values.shape, values.dtype) != (wanted, dtype):
            found = f"{type(values).__name__} of shape {getattr(values, 'shape', None)}, {getattr(values, 'dtype', None)}"
            raise TypeError(
                f"columns({first}, {stop}) of {type(self).__name__} must be an ndarray of shape {wanted}, {dtype}, got {found}"
            )
        return values


def _row_numbers(rows: Any) -> NDArray[Any]:
    """Return a list or an array of row numbers, or of booleans, as an array; an IndexError if it is neither."""
    numbers = np.asarray(rows)
    numbers = numbers if numbers.size else numbers.astype(np.intp)
    if numbers.ndim != 1 or numbers.dtype.kind not in "biu":
        raise IndexError(f"rows must be a slice, or a list or array of numbers or booleans, got {rows!r:.60}")
    return numbers

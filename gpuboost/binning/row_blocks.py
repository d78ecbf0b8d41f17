"""`RowBlocks`: a matrix whose rows lie in several arrays, which are never joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import IntArray


class RowBlocks:
    """A matrix as blocks of rows, one below the other: only parts of it are copied, some columns or some rows.

    Parameters
    ----------
    blocks : sequence of ndarray, shape (n_rows_of_block, n_features)
        At least one. They may have different dtypes, and are not written.

    Attributes
    ----------
    shape : tuple of (int, int)
    dtype : dtype
        That of the blocks joined.
    """

    ndim = 2

    def __init__(self, blocks: Sequence[NDArray[Any]]) -> None:
        widths = sorted({block.shape[1] for block in blocks})
        if len(widths) != 1:
            raise ValueError(f"blocks of rows must have as many columns, got some of {widths}")
        self._blocks = list(blocks)
        self._starts: IntArray = np.cumsum([0, *(len(block) for block in blocks)], dtype=np.int64)
        self.shape = (int(self._starts[-1]), widths[0])
        self.dtype = np.result_type(*(block.dtype for block in blocks))

    def __len__(self) -> int:
        return self.shape[0]

    def release(self) -> None:
        """Let go of the blocks. The matrix can no longer be read."""
        self._blocks.clear()

    def __getitem__(self, key: Any) -> Any:
        """Return some columns, ``[:, low:high]``, as blocks of views; or some rows, ``[low:high]``, as one array."""
        if isinstance(key, tuple):
            rows, columns = key
            if rows != slice(None) or not isinstance(columns, slice):
                raise TypeError(f"blocks of rows can be indexed by rows, or by a slice of columns, got {key!r}")
            return RowBlocks([block[:, columns] for block in self._blocks])
        rows = np.arange(len(self))[key] if isinstance(key, slice) else key
        return self.columns(rows, 0, self.shape[1], self.dtype).T

    def columns(self, rows: IntArray | None, first: int, last: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the columns ``first .. last - 1`` of all rows, or of some in their order, as the rows of an array."""
        result = np.empty((last - first, len(self) if rows is None else len(rows)), dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # as `gpuboost.binning.columns.column_block`
            for block, own, at in self._pieces(rows):
                result[:, at] = block[own, first:last].T
        return result

    def _pieces(self, rows: IntArray | None) -> Iterator[tuple[NDArray[Any], Any, Any]]:
        """Give each block, which of its rows are wanted, and their places among all that are."""
        if not self._blocks:
            raise RuntimeError("the blocks of rows have been released")
        if rows is None:
            for block, start in zip(self._blocks, self._starts.tolist(), strict=False):
                yield block, slice(None), slice(start, start + len(block))
            return
        order = None if (rows[1:] >= rows[:-1]).all() else np.argsort(rows, kind="stable")
        ascending = rows if order is None else rows[order]
        bounds = np.searchsorted(ascending, self._starts).tolist()
        for i, block in enumerate(self._blocks):
            low, high = bounds[i : i + 2]
            if low < high:
                yield block, ascending[low:high] - self._starts[i], slice(low, high) if order is None else order[low:high]

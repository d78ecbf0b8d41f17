"""Rows that come in batches and are needed column by column: on disk, in a file that nobody else sees."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning.columns import sorting_dtype
from gpuboost.binning.stored import bytes_of


class Spool:
    """The values of a matrix, batch by batch, each of which lies by columns.

    Values are kept in the narrowest dtype of `gpuboost.binning.columns.sorting_dtype` that all batches so far fit in.

    Parameters
    ----------
    folder : str or path
        Where the file is. It has no name there, on systems that allow that, and is gone with the process.

    Attributes
    ----------
    dtype : dtype
    n_features : int
    sizes : list of int
        Rows of each batch.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = folder
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by __exit__)
        self.dtype: np.dtype[Any] | None = None
        self.n_features = 0
        self.sizes: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.file.close()

    @property
    def n_rows(self) -> int:
        """Rows of all batches."""
        return sum(self.sizes)

    def append(self, X: NDArray[Any]) -> None:
        """Add a batch, (n, n_features)."""
        own = sorting_dtype(X.dtype)
        common = own if self.dtype is None else sorting_dtype(np.promote_types(self.dtype, own))
        if self.dtype is not None and common != self.dtype:
            self._widen(common)
        self.dtype, self.n_features = common, X.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow to infinity, NaN stay NaN
            self.file.write(bytes_of(np.ascontiguousarray(X.T, common)).data)
        self.sizes.append(len(X))

    def _widen(self, dtype: np.dtype[Any]) -> None:
        """Write all batches again, in another dtype."""
        wider = tempfile.TemporaryFile(dir=self.folder)  # noqa: SIM115
        for columns in self.batches(0, self.n_features):
            wider.write(bytes_of(columns.astype(dtype)).data)
        self.file.close()
        self.file = wider

    def batches(self, first: int, stop: int) -> Iterator[NDArray[Any]]:
        """Give the features ``first .. stop - 1`` of each batch, shape (stop - first, n)."""
        assert self.dtype is not None
        begin, row_bytes = 0, self.n_features * self.dtype.itemsize
        for n in self.sizes:
            self.file.seek(begin + first * n * self.dtype.itemsize)
            columns = np.empty((stop - first, n), self.dtype)
            if self.file.readinto(bytes_of(columns).data) != columns.nbytes:
                raise OSError(f"a file in {self.folder!s} has become shorter while it was in use")
            yield columns
            begin += n * row_bytes
        self.file.seek(begin)

    def chunks(self, first: int, stop: int, n_rows: int) -> Iterator[tuple[slice, NDArray[Any]]]:
        """Give the features ``first .. stop - 1`` of about ``n_rows`` rows at a time, shape (stop - first, n).

        A chunk consists of whole batches. It is valid until the next one is asked for.
        """
        assert self.dtype is not None
        sizes = self._chunk_sizes(n_rows)
        memory = np.empty((stop - first) * max(sizes, default=0), self.dtype)
        batches, begin = self.batches(first, stop), 0
        for n in sizes:
            chunk, end = memory[: (stop - first) * n].reshape(stop - first, n), 0
            while end < n:
                columns = next(batches)
                chunk[:, end : end + columns.shape[1]] = columns
                end += columns.shape[1]
            yield slice(begin, begin + n), chunk
            begin += n

    def _chunk_sizes(self, n_rows: int) -> list[int]:
        """Return the rows of chunks of whole batches, each of as many as fit in ``n_rows``, or of one."""
        sizes: list[int] = []
        for size in self.sizes:
            if sizes and sizes[-1] + size <= n_rows:
                sizes[-1] += size
            else:
                sizes.append(size)
        return sizes

    def columns(self, first: int, stop: int) -> NDArray[Any]:
        """Return the features ``first .. stop - 1`` of all rows, shape (n_rows, stop - first)."""
        out, begin = np.empty((stop - first, self.n_rows), self.dtype), 0
        for columns in self.batches(first, stop):
            out[:, begin : begin + columns.shape[1]] = columns
            begin += columns.shape[1]
        return out.T

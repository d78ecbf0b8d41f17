"""Encoding matrices on the device: the values go there once, as they are, and only the codes stay."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import DeviceMatrix, Gpu
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK
from gpuboost.backends.cuda.launch import MAX_GRID, launch
from gpuboost.backends.cuda.matrix import BLOCK_FEATURES, CudaMatrix
from gpuboost.backends.cuda.rectangles import DeviceRectangles
from gpuboost.binning import BinMapper
from gpuboost.errors import DeviceMemoryError
from gpuboost.rectangle_matrix import RectangleMatrix

KINDS = ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
"""Kinds of numbers that ``bin.cu`` reads, in its order."""

MAX_COLUMNS, MAX_ROWS = BLOCK_FEATURES * MAX_GRID[1], 2**31 - 1
"""Columns that a launch has blocks for, and rows that 32 bits number."""

SLAB_BYTES = 64 << 20
"""Host matrices are sent by slabs of rows of about this size."""

ROWS_AT_ONCE = DEFAULT_BLOCK // BLOCK_FEATURES


def encode(gpu: Gpu, mapper: BinMapper, X: Any, rows: NDArray[np.intp] | None) -> CudaMatrix:
    """Return the codes of X, or of ``X[rows]``, on the device; see `gpuboost.backends.base.Backend.encode`."""
    n_rows, n_columns = X.shape
    if n_columns != mapper.n_features:
        raise ValueError(f"X has {n_columns} columns, but the bins were fitted on {mapper.n_features}")
    if n_rows > MAX_ROWS or n_columns > MAX_COLUMNS:
        raise DeviceMemoryError(
            f"X has {n_rows:,} rows and {n_columns:,} columns, but a CUDA device takes at most {MAX_ROWS:,} rows and "
            f'{MAX_COLUMNS:,} columns; use device="cpu"'
        )
    n_rows = n_rows if rows is None else len(rows)
    codes = gpu.empty((-(-n_columns // BLOCK_FEATURES), n_rows, BLOCK_FEATURES), np.uint8)
    cuts, offsets = gpu.put(mapper.cut_values), gpu.put(mapper.cut_offsets)

    def write(matrix: DeviceMatrix, chosen: Any, first: int, n: int) -> None:
        grid = (max(1, min(-(-n // ROWS_AT_ONCE), 65_535)), len(codes))
        (row_stride, column_stride), kind = matrix.strides, KINDS.index(matrix.dtype.str[1:])
        layout = {"row_stride": row_stride, "column_stride": column_stride, "kind": kind}
        rows = {"n_rows": n, "first_row": first, "n_code_rows": n_rows, "n_features": n_columns}
        launch(gpu, "bin", grid, (matrix.values, chosen, cuts, offsets, codes, {**layout, **rows}))

    on_device = gpu.adopt(X)
    if on_device is not None:
        if not on_device.dtype.isnative:
            raise TypeError(f"X on the device has the byte order of another machine ({on_device.dtype.str}); convert it first")
        write(on_device, None if rows is None else gpu.put(rows.astype(np.int64)), 0, n_rows)
    else:
        step = max(1, SLAB_BYTES // max(1, n_columns * X.dtype.itemsize))
        rectangles = DeviceRectangles(gpu, X.features) if isinstance(X, RectangleMatrix) else None
        for first in range(0, n_rows, step):
            last = min(first + step, n_rows)
            block = X[first:last] if rows is None else X[rows[first:last]]
            sent = send(gpu, block) if rectangles is None else rectangles.matrix(block.images[block.rows])
            write(sent, None, first, last - first)
    return CudaMatrix(gpu, codes, mapper.n_bins, mapper.has_missing)


def send(gpu: Gpu, block: Any) -> DeviceMatrix:
    """Return rows of a matrix of the host, or of one that is computed there, on the device."""
    values = plain(np.asarray(block))
    return DeviceMatrix(gpu.put(values.reshape(-1).view(np.uint8)), values.dtype, values.shape, (values.shape[1], 1))


def plain(block: NDArray[Any]) -> NDArray[Any]:
    """Return rows in C order as one of `KINDS`, with the values that they have as float64."""
    dtype = block.dtype.newbyteorder("=")
    if dtype.kind == "b":
        return np.ascontiguousarray(block).view(np.uint8)
    if dtype.str[1:] not in KINDS:  # long doubles are compared as float64 everywhere
        dtype = np.dtype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # long doubles may overflow to infinity, NaN stay NaN
        return np.ascontiguousarray(block, dtype=dtype)

"""What pandas, polars, pyarrow and NumPy call the same things. None of the three is imported: their objects suffice."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.arrays import origin


class Blocks:
    """The features of some rows in blocks, one below the other, each of which is dropped when its numbers are taken.

    Parameters
    ----------
    blocks : list
        Arrays or data frames of one kind and the same columns, at least one. The list is emptied.

    Attributes
    ----------
    head : array or data frame
        The first block without its rows.
    """

    def __init__(self, blocks: list[Any]) -> None:
        self._blocks = blocks
        self.head = without_rows(blocks[0])

    def take(self) -> Iterator[Any]:
        """Give the blocks, and keep none."""
        while self._blocks:
            yield self._blocks.pop(0)


def package(x: Any) -> str | None:
    """Return the data-frame package that ``x`` comes from: "pandas", "polars", "pyarrow" or None."""
    return origin(x, ("pandas", "polars", "pyarrow"))


def frame_names(x: Any) -> list[Any] | None:
    """Return the names of a data frame's columns, None for anything that is no data frame."""
    source = package(x)
    if source is None or len(getattr(x, "shape", ())) != 2:
        return None
    return list(x.schema.names if source == "pyarrow" else x.columns)


def frame_columns(x: Any) -> list[Any]:
    """Return the columns of a data frame."""
    source = package(x)
    if source == "pandas":
        return [x.iloc[:, i] for i in range(x.shape[1])]
    return list(x.get_columns() if source == "polars" else x.columns)


def only_column(x: Any, name: str) -> Any:
    """Return the column of a data frame that must have one, and anything else as it is."""
    names = frame_names(x)
    if names is not None and len(names) != 1:
        raise ValueError(f"{name} must be one number for each row, got a data frame of {len(names)} columns")
    return x if names is None else frame_columns(x)[0]


def row_range(block: Any, first: int, stop: int | None = None) -> Any:
    """Return the rows ``first .. stop - 1``, or all from ``first`` on, of an array, a list, a series or a data frame."""
    source = package(block)
    if source == "pyarrow":
        return block.slice(first, None if stop is None else stop - first)
    return block.iloc[first:stop] if source == "pandas" else block[first:stop]


def joined(blocks: Sequence[Any]) -> Any:
    """Return blocks of rows, or of labels, of one kind as one, as whoever has all rows at one place would."""
    source, first = package(blocks[0]), blocks[0]
    if len(blocks) == 1:
        return first
    library = sys.modules.get(source or "")
    if library is None:
        arrays = [block if isinstance(block, np.ndarray) else to_numpy(block) for block in blocks]
        return (np.ma if any(map(np.ma.isMaskedArray, arrays)) else np).concatenate(arrays)
    if source == "pandas":
        return library.concat(blocks, ignore_index=True)
    if source == "polars":
        return library.concat(blocks, how="vertical_relaxed")
    if len(first.shape if hasattr(first, "shape") else ()) == 2:
        return library.concat_tables(blocks, promote_options="permissive")
    return library.chunked_array([chunk for block in blocks for chunk in getattr(block, "chunks", [block])])


def without_rows(x: Any) -> Any:
    """Return an array or a data frame with no rows, which does not keep the memory of ``x``."""
    source = package(x)
    if source == "pyarrow":
        return x.schema.empty_table()
    if source == "polars":
        return x.clear()
    return x[:0].copy() if hasattr(x, "copy") else x[:0]


def is_categorical(column: Any) -> bool:
    """Whether a data frame's column holds categories, whatever they are made of."""
    dtype = str(getattr(column, "type", None) or column.dtype)
    return dtype.startswith(("category", "Categorical", "Enum", "dictionary"))


def to_numpy(column: Any) -> NDArray[Any]:
    """Return a data frame's column, or any array, as an ndarray.

    Numbers and booleans keep their dtype; with missing values they become float64 with NaN, or objects with None or NA.
    Categories become what they stand for, text becomes objects.
    """
    source = package(column)
    if source == "pyarrow":
        column = column.cast(column.type.value_type) if str(column.type).startswith("dictionary") else column
        return np.asarray(column.to_numpy(zero_copy_only=False))
    if source == "pandas" and getattr(column.dtype, "kind", "O") in "biuf" and not isinstance(column.dtype, np.dtype):
        missing = bool(column.isna().any())
        dtype = np.float64 if missing else getattr(column.dtype, "numpy_dtype", None)
        return np.asarray(column.to_numpy(dtype=dtype, na_value=np.nan) if missing else column.to_numpy(dtype=dtype))
    return np.asarray(column.to_numpy() if source else column)


def is_missing(value: Any) -> bool:
    """Whether a Python object stands for a missing value: None, NaN, NaT, NA."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:  # the NA of pandas is neither equal nor unequal to itself
        return True
    except ValueError:  # an array
        return False

"""Parquet files whose row groups the workers read by themselves: neither the client nor Dask ever holds a row."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from gpuboost.dask.partitions import Shape, compare_shapes
from gpuboost.extras import load
from gpuboost.inputs.arrays import origin
from gpuboost.inputs.containers import to_numpy
from gpuboost.messages import did_you_mean
from gpuboost.streams.files import columns_of
from gpuboost.streams.tables import TableFile, find_files


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file, and what is taken of it.

    Attributes
    ----------
    file : TableFile
    group : int
        Its number in the file.
    first_row, n_rows : int
        Where it stands in the set.
    features : tuple of str
    target : str
    weight : str or None
    """

    file: TableFile
    group: int
    first_row: int
    n_rows: int
    features: tuple[str, ...]
    target: str
    weight: str | None

    def read(self) -> tuple[Any, Any, Any]:
        """Return the features as a table of pyarrow, and the labels and weights as arrays."""
        names = [*self.features, self.target, *([] if self.weight is None else [self.weight])]
        (table,) = self.file.tables(names, self.group, whole=True)
        weight = None if self.weight is None else to_numpy(table.column(self.weight))
        return table.select(list(self.features)), to_numpy(table.column(self.target)), weight


def are_files(X: Any) -> bool:
    """Whether X is a path, paths, or a dataset of pyarrow."""
    if isinstance(X, (str, os.PathLike)) or (origin(X, ("pyarrow",)) and hasattr(X, "get_fragments")):
        return True
    return isinstance(X, (list, tuple)) and bool(X) and all(isinstance(one, (str, os.PathLike)) for one in X)


def row_groups(client: Any, X: Any, target: Any, weight: Any, name: str) -> tuple[list[Any], Shape]:
    """Return the row groups of files in their order, without those that have no rows, and the shape of the whole.

    The files are looked at by a worker: the client need not see them.

    Raises
    ------
    TypeError
        If ``target`` or ``weight`` is no name of a column.
    ValueError
        If a file is no Parquet, a column is missing, or files have different columns. The message names the files.
    """
    for what, column in {"y": target, "sample_weight": weight}.items():
        if not isinstance(column, str) and not (what == "sample_weight" and column is None):
            of = f" of {name}" if name else ""
            raise TypeError(f"{what}{of} must be the name of a column of the files, got a {type(column).__name__}")
    groups, shape = client.submit(find_row_groups, X, target, weight, pure=False).result()
    return groups, shape


def find_row_groups(X: Any, target: str, weight: str | None) -> tuple[list[RowGroup], Shape]:
    """Do the work of `row_groups`, on a worker."""
    load("pyarrow", "reading Parquet files")
    groups: list[RowGroup] = []
    first_row = 0
    first: Shape | None = None
    first_path = ""
    for file in find_files(X):
        if file.kind != "parquet":
            raise ValueError(f"{file.path} must be a Parquet file, got one of {file.kind}; gpuboost.fit_stream takes others")
        try:
            schema, lengths = file.layout()
        except ValueError as error:  # pyarrow's do not name the file
            raise ValueError(f"{file.path} cannot be read as a Parquet file: {error}") from error
        kinds = {name: _kind(schema.field(name).type) for name in schema.names if name not in file.constants}
        columns = [(name, kinds.get(name, "one value")) for name in columns_of(file, schema)]
        names = [column for column, _ in columns]
        for column in (target, *([] if weight is None else [weight])):
            if names.count(column) != 1:
                found = "twice" if column in names else f"not at all{did_you_mean(column, names)}"
                raise ValueError(f"{file.path} must have the column {column!r} once, it has it {found}")
        features = [(column, kind) for column, kind in columns if column not in (target, weight)]
        shape = Shape(sum(lengths or ()), len(features), features)
        if first is None:
            first, first_path = shape, file.path
        compare_shapes(first, first_path, shape, file.path)
        for i, n_rows in enumerate(lengths or ()):
            if n_rows:
                own = tuple(column for column, _ in features)
                groups.append(RowGroup(file, i, first_row, n_rows, own, target, weight))
            first_row += n_rows
    if first is None or not groups:
        raise ValueError(f"there are no rows in {X!s:.200}")
    return groups, Shape(first_row, first.n_columns, first.columns)


def _kind(dtype: Any) -> str:
    text = str(dtype)
    return "numbers" if text.startswith(("int", "uint", "float", "double", "half", "bool", "decimal")) else text

"""Files and folders of tables as a source."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpuboost.errors import StreamError
from gpuboost.inputs.parameters import check_integer
from gpuboost.messages import did_you_mean
from gpuboost.streams.batches import from_row
from gpuboost.streams.contract import Batch
from gpuboost.streams.order import permutation
from gpuboost.streams.tables import BATCH_ROWS, TableFile, find_files

PANDAS_INDEX = "__index_level_"


@dataclass(frozen=True)
class Part:
    """What is read, and shuffled, as a whole: a row group of a Parquet file, or a file of another kind."""

    file: TableFile
    group: int | None = None
    n_rows: int | None = None


class DatasetSource:
    """The rows of Parquet, Arrow (Feather) or CSV files.

    Parameters
    ----------
    data : path, list of paths, or pyarrow.dataset.Dataset
        Folders are searched, but for names that begin with a dot or an underscore. Files are read in the order given, or of
        their names. Filters of a dataset do not count.
    target : str
        The column of the labels.
    weight : str, optional
        The column of the weights.
    columns : list of str, optional
        The features; by default all other columns. Nothing else is read.
    shuffle : int, optional
        A seed, which decides the order of row groups (in other files than Parquet: of the files), and of the rows within each
        (of the record batches or blocks), which are held in memory one at a time. By default all stays as it is.
    missing : sequence of str, optional
        Texts in CSV files that stand for missing numbers; by default those that pyarrow takes for it.
    text_labels : bool, default False
        Whether labels in CSV files stay the text that is written there.

    Raises
    ------
    ValueError
        If a column is not there, or holds no numbers.
    StreamError
        If another file than the first has other columns. For CSV that shows only when the file is read.
    ImportError
        If pyarrow is not installed.
    """

    repeatable = True

    def __init__(
        self,
        data: Any,
        target: str,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
        shuffle: int | None = None,
        *,
        missing: Sequence[str] | None = None,
        text_labels: bool = False,
    ) -> None:
        self._text_labels = text_labels
        self._target, self._weight = target, weight
        self._seed = None if shuffle is None else check_integer("shuffle", shuffle, 0)
        self._all = columns is None
        files = [replace(file, missing=None if missing is None else tuple(missing)) for file in find_files(data)]
        parts: list[Part] = []
        for file in files:
            if file is not files[0] and file.kind == "csv":  # that would take a block of each
                parts.append(Part(file))
                continue
            try:
                schema, groups = file.layout()
            except ValueError as error:  # pyarrow's do not name the file
                raise ValueError(f"{file.path} cannot be read as a file of the kind {file.kind}: {error}") from error
            if file is files[0]:
                others = (target, weight)
                self.feature_names = list(columns or (name for name in columns_of(file, schema) if name not in others))
                if set(self.feature_names) & set(others):
                    raise ValueError(f"columns must hold neither target nor weight, got {self.feature_names}")
            self._check(file, schema, ValueError if file is files[0] else StreamError)
            parts += [Part(file)] if groups is None else [Part(file, i, n) for i, n in enumerate(groups)]
        self.n_features = len(self.feature_names)
        order = range(len(parts)) if self._seed is None else permutation(len(parts), self._seed)
        self._parts = [parts[i] for i in order]
        lengths = [part.n_rows for part in parts if part.n_rows is not None]
        self.n_rows = sum(lengths) if len(lengths) == len(parts) else None

    def _check(self, file: TableFile, schema: Any, error: type[Exception]) -> None:
        """Raise an error if a file does not have the columns of the first."""
        names = columns_of(file, schema)
        wanted = self._wanted()
        missing = [name for name in wanted if names.count(name) != 1]
        if missing:
            found = "twice" if missing[0] in names else f"not at all{did_you_mean(missing[0], names)}"
            raise error(f"{file.path} must have the column {missing[0]!r} once, it has it {found}")
        extra = [name for name in names if name not in wanted]
        if self._all and extra:
            raise error(f"{file.path} has the column {extra[0]!r}, unlike the first file; leave it out everywhere or nowhere")
        for name in self.feature_names:
            kind = "constant" if name in file.constants else str(schema.field(name).type)
            if kind not in ("constant", "bool", "null") and not kind.startswith(
                ("int", "uint", "float", "double", "half", "dec")
            ):
                raise error(
                    f"{file.path}: column {name!r} has the type {kind}, not numbers; encode it as numbers, or leave it out"
                )

    def _wanted(self) -> list[str]:
        return list(dict.fromkeys(name for name in (*self.feature_names, self._target, self._weight) if name is not None))

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on; row groups of Parquet before it are not read, other files are."""
        row = skipped = 0
        for part in self._parts:
            if part.n_rows is None or row + part.n_rows > first_row:
                break
            row, skipped = row + part.n_rows, skipped + 1
        rest = (self._read(number) for number in range(skipped, len(self._parts)))
        return from_row(itertools.chain.from_iterable(rest), first_row - row)

    def _read(self, number: int) -> Iterator[Batch]:
        part = self._parts[number]
        types = None
        try:
            if part.file.kind == "csv":
                schema, _ = part.file.layout()
                self._check(part.file, schema, StreamError)
                # A column that begins with integers, or without values, may go on with others.
                integers = [f.name for f in schema if str(f.type) in ("int64", "null")]
                types = dict.fromkeys(set(integers) & {*self.feature_names, self._weight}, "float64")
                types |= {self._target: "string"} if self._text_labels else {}
            tables = part.file.tables(self._wanted(), part.group, whole=self._seed is not None, types=types)
            for i, table in enumerate(tables):
                if self._seed is None:
                    yield self._batch(table)
                    continue
                order = permutation(table.num_rows, self._seed, number, i)
                for start in range(0, len(order), BATCH_ROWS):
                    yield self._batch(table.take(order[start : start + BATCH_ROWS]))
        except (ValueError, OSError) as error:  # pyarrow's are of these kinds
            raise StreamError(f"{part.file.path} cannot be read: {error}") from error

    def _batch(self, table: Any) -> Batch:
        weight = None if self._weight is None else table.column(self._weight)
        return Batch(table.select(self.feature_names), table.column(self._target), weight)


def columns_of(file: TableFile, schema: Any) -> list[str]:
    """Return the names of a file's columns, but for those of an index of pandas."""
    own = [name for name in schema.names if not name.startswith(PANDAS_INDEX) and name not in file.constants]
    return [*own, *file.constants]

"""Files that are read as a stream: columns, labels and missing values are what they are in a table that is read as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from numpy.typing import NDArray

from gpuboost.cli.reading import columns
from gpuboost.cli.reading.labels import class_numbers
from gpuboost.cli.reading.layout import Layout, training_columns
from gpuboost.cli.reading.tables import PANDAS_INDEX, Reading, Table
from gpuboost.cli.reading.targets import target_key
from gpuboost.cli.reading.text_files import MISSING
from gpuboost.errors import StreamError
from gpuboost.inputs.label_values import label_list, python_labels
from gpuboost.streams import Batch, DatasetSource
from gpuboost.streams.tables import KINDS, TableFile, find_files

if TYPE_CHECKING:
    import pyarrow as pa


def files_of(data: Sequence[str]) -> list[TableFile]:
    """Return the files of paths and folders, in their order.

    Raises
    ------
    click.UsageError
        If one cannot be read again, or from its middle; or some are CSV, and others know the types of their labels.
    ValueError, OSError
        If one is no table, or there is none.
    """
    for path in data:
        if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
            what = "the standard input" if path == "-" else path
            raise click.UsageError(f"{what} cannot be read again, or from its middle; give files or folders")
        name = path.lower().removesuffix(".gz")
        if os.path.isfile(path) and os.path.splitext(name)[1] not in KINDS:
            raise click.UsageError(f"{path} is of no kind that is read piece by piece: {', '.join(KINDS)}")
    files = find_files(data)
    kinds = {file.kind == "csv": file.path for file in files}
    if len(kinds) > 1:
        raise click.UsageError(f"{kinds[True]} has labels without types, and {kinds[False]} with; give CSV alone or none")
    return files


class FileStream:
    """Files as a `gpuboost.streams.Source`.

    Parameters
    ----------
    data : sequence of str
        Files and folders.
    reading : Reading
        How tables are read.
    target, weight : str or None
        Names or numbers of columns.
    drop : sequence of str
        Those of columns to leave out.
    shuffle : int or None
        The seed of another order.

    Attributes
    ----------
    path : str
        The first file, for messages.
    layout : Layout
        Its columns.
    target : str
        The name of the target.
    classes : ndarray
        The labels, once they are given or found.
    remedy : str
        What messages advise if a row has another label.

    Raises
    ------
    click.UsageError, ValueError, StreamError, OSError
        If files or columns are not usable.
    """

    repeatable = True

    def __init__(
        self,
        data: Sequence[str],
        reading: Reading,
        target: str | None,
        weight: str | None,
        drop: Sequence[str],
        shuffle: int | None,
    ) -> None:
        files = files_of(data)
        self.files, self.path = [file.path for file in files], files[0].path
        self.missing, self.is_text = reading.missing, files[0].kind == "csv"
        head = _first_table(files[0], (*MISSING, *reading.missing))
        names = head.names or []
        if self.is_text and sum(map(columns.is_number, names)) >= max(2, len(names) - 1):
            reading.note(
                f"Note: the first row of {self.path} was taken for column names, but holds numbers: add a row of names"
            )
        self.target = names[head.index(target_key(head, target), "--target")]
        weight = None if weight is None else names[head.index(weight, "--weight")]
        features = training_columns(head, self.target, weight, drop)
        head.features(features)  # or it says what a column holds, and what can be done
        if weight is not None:
            head.weights(weight)
        used = [names[i] for i in features]
        self.layout = Layout(used, features, len(names), [names[i] for i in range(len(names)) if i not in features])
        self.source_of: Callable[[list[str] | None], DatasetSource] = lambda chosen: DatasetSource(
            data,
            self.target,
            weight,
            chosen,
            shuffle,
            missing=(*MISSING, *reading.missing),
            text_labels=self.is_text,
        )
        self.source = self.source_of(used if drop else None)
        self.n_features, self.feature_names, self.n_rows = len(used), used, self.source.n_rows
        self.classes: NDArray[Any] = np.zeros(0)
        self.remedy = "name all of them by --class"

    def find_classes(self, n_rows: int, named: Sequence[str]) -> int:
        """Find the labels: those that are named, or else those of the first rows. Return how many rows were looked at."""
        import pyarrow as pa

        pieces, weights, count = [], [], 0
        for batch in self.source.batches():
            piece = self._present(batch.y, count)[: n_rows - count]
            pieces += piece.chunks
            weights.append(np.ones(len(piece)) if batch.weight is None else batch.weight.to_numpy()[: len(piece)])
            count += len(piece)
            if count == n_rows:
                break
        if not count:
            raise ValueError(f"{self.path} has no rows of data")
        chosen = _as_type(named, pieces[0].type)
        column = pa.chunked_array([chosen, *pieces] if named else pieces, pieces[0].type)
        labels = columns.labels(column, f"{self.path}: column {self.target!r}", from_text=self.is_text)
        labels = labels[: len(named)] if named else labels[np.concatenate(weights) > 0]
        self.classes = np.array(sorted(set(python_labels(labels))), labels.dtype)
        return count

    def find_all_classes(self) -> None:
        """Find the labels of all rows that have a weight, by a pass over the columns of labels and weights."""
        import pyarrow as pa

        distinct, with_weight, row = [], [], 0
        for batch in self.source_of(self.feature_names[:1]).batches():
            piece = self._present(batch.y, row)
            row += len(piece)
            distinct.append(piece.unique())
            exists = np.ones(len(piece), bool) if batch.weight is None else batch.weight.to_numpy() > 0
            with_weight.append(piece.filter(pa.array(exists)).unique())
        if not row:
            raise ValueError(f"{self.path} has no rows of data")
        column = pa.chunked_array([*distinct, *with_weight], distinct[0].type)
        labels = columns.labels(column, f"{self.path}: column {self.target!r}", from_text=self.is_text)
        labels = labels[sum(map(len, distinct)) :]
        if not len(labels):
            raise ValueError(f"{self.path}: the weight is zero in every row: there is nothing to learn from")
        self.classes = np.array(sorted(set(python_labels(labels))), labels.dtype)
        self.remedy = "the files have changed since their labels were read; try again when they are finished"

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on, with the labels as the classes that they are."""
        row, known = first_row, label_list(self.classes)
        for batch in self.source.batches(first_row):
            encoded = self._present(batch.y, row).combine_chunks().dictionary_encode()
            distinct = columns.labels(_chunked(encoded.dictionary), self.target, from_text=False)
            numbers = class_numbers(distinct, known)[encoded.indices.to_numpy()]
            unknown = numbers < 0
            if batch.weight is not None:
                unknown &= batch.weight.to_numpy() != 0  # a row of no weight does not exist
            if unknown.any():
                first = int(unknown.argmax())
                shown = ", ".join(map(repr, known[:10])) + (", ..." if len(known) > 10 else "")
                raise StreamError(
                    f"row {row + first} has the label {encoded[first].as_py()!r} in {self.target!r}, which is none of the "
                    f"classes {shown}; {self.remedy}"
                )
            yield Batch(batch.X, self.classes[numbers], batch.weight)
            row += len(numbers)

    def _present(self, column: pa.ChunkedArray, row: int) -> pa.ChunkedArray:
        """Return labels of which none is missing; a StreamError with its row if one is."""
        import pyarrow as pa
        from pyarrow import compute

        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        column = column.cast(pa.string() if columns.is_text(kind) else kind)
        absent = np.asarray(column.is_null(nan_is_null=True))
        if self.is_text:
            absent = absent | np.asarray(compute.is_in(column, pa.array(["", *self.missing])))
        if absent.any():
            first = row + int(absent.argmax())
            raise StreamError(f"missing labels: {self.target!r} has none in row {first}, counted from 0; remove such rows")
        return column


def _first_table(file: TableFile, missing: tuple[str, ...]) -> Table:
    """Return the first rows of a file, to look at its columns."""
    import dataclasses

    import pyarrow as pa

    file = dataclasses.replace(file, missing=missing)
    try:
        schema, groups = file.layout()
        names = [name for name in schema.names if not name.startswith(PANDAS_INDEX)]
        if len(set(names)) < len(names) and (twice := [name for name in names if names.count(name) > 1]):
            raise ValueError(f"the column {twice[0]!r} stands there {names.count(twice[0])} times; give each a name of its own")
        first = next(file.tables(names, 0 if groups else None, whole=False), None) if groups != [] else None
    except (ValueError, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise
        raise ValueError(f"{file.path} cannot be read as a file of the kind {file.kind}: {error}") from error
    arrays = [pa.chunked_array([], schema.field(n).type) if first is None else first.column(n) for n in names]
    as_text = arrays.__getitem__ if file.kind == "csv" else None
    return Table(file.path, names, arrays, text_column=as_text, missing=missing)


def _as_type(texts: Sequence[str], kind: pa.DataType) -> pa.Array:
    """Return labels that are given as text in the type of a column."""
    import pyarrow as pa

    try:
        return pa.array(list(texts), pa.string()).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise click.UsageError(f"--class: the target is of the type {kind}: {error}") from error


def _chunked(array: pa.Array) -> pa.ChunkedArray:
    import pyarrow as pa

    return pa.chunked_array([array])

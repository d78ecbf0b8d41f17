"""Files of tables, read piece by piece: row groups of Parquet, record batches of Feather, blocks of CSV.

All is read on the thread that asks. pyarrow's own may abort the process at its end, see apache/arrow issues 43604, 43741 and
50482; so no file of Python's is handed to it either, which one of them would read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuboost.extras import load

KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
}
CSV_BLOCK = 8 << 20
"""Bytes of a CSV file that are parsed at a time. The order of shuffled rows depends on it."""
FIRST_LINE = 1 << 20
"""Bytes of a CSV file in which its separator is looked for."""
BATCH_ROWS = 65536
"""Rows of a Parquet file that are read at a time if they need not be shuffled, and that are given at a time if they are."""


def arrow(module: str) -> Any:
    """Import a module of pyarrow."""
    return load(f"pyarrow.{module}", "reading tables from files")


@dataclass(frozen=True)
class TableFile:
    """A file of a known kind.

    Attributes
    ----------
    path : str
    kind : {"parquet", "feather", "csv"}
    filesystem : pyarrow.fs.FileSystem
    constants : dict
        Columns that are the same in all rows, such as those that the names of folders hold.
    parse_options : pyarrow.csv.ParseOptions or None
    missing : tuple of str or None
        Texts of a CSV file that stand for missing numbers; None for those of pyarrow.
    """

    path: str
    kind: str
    filesystem: Any
    constants: dict[str, Any] = field(default_factory=dict)
    parse_options: Any = None
    missing: tuple[str, ...] | None = None

    def layout(self) -> tuple[Any, list[int] | None]:
        """Return the schema of the file itself, and the rows of its row groups if that is known without reading them."""
        if self.kind == "csv":
            with self._open_csv(None) as reader:
                return reader.schema, None
        with self.filesystem.open_input_file(self.path) as file:
            if self.kind == "feather":
                return arrow("ipc").open_file(file).schema, None
            table = arrow("parquet").ParquetFile(file, pre_buffer=False)
            groups = [table.metadata.row_group(i).num_rows for i in range(table.num_row_groups)]
            return table.schema_arrow, groups

    def tables(self, names: Sequence[str], group: int | None, *, whole: bool, types: Any = None) -> Iterator[Any]:
        """Give the rows of a file or a row group as tables of some columns.

        Parameters
        ----------
        names : sequence of str
        group : int or None
            A row group of a Parquet file.
        whole : bool
            Whether a row group must be one table.
        types : dict, optional
            Types of columns of a CSV file that are not those of its first block.
        """
        own = [name for name in names if name not in self.constants]
        for table in self._pieces(own, group, whole, types):
            if table.num_rows:
                yield self._completed(table, names)

    def _pieces(self, names: list[str], group: int | None, whole: bool, types: Any) -> Iterator[Any]:
        if self.kind == "csv":
            with self._open_csv(names, types) as reader:
                yield from reader
            return
        with self.filesystem.open_input_file(self.path) as file:
            if self.kind == "feather":
                reader = arrow("ipc").open_file(file, options=arrow("ipc").IpcReadOptions(use_threads=False))
                for i in range(reader.num_record_batches):
                    yield reader.get_batch(i).select(names)
                return
            table = arrow("parquet").ParquetFile(file, pre_buffer=False)
            if whole:
                yield table.read_row_group(group, columns=names, use_threads=False)
            else:
                yield from table.iter_batches(BATCH_ROWS, row_groups=[group], columns=names, use_threads=False)

    def _open_csv(self, names: list[str] | None, types: Any = None) -> Any:
        csv = arrow("csv")
        return csv.open_csv(
            self.filesystem.open_input_stream(self.path),
            read_options=csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK),
            parse_options=self.parse_options,
            convert_options=csv.ConvertOptions(include_columns=names, column_types=types, null_values=self.missing),
        )

    def _completed(self, piece: Any, names: Sequence[str]) -> Any:
        """Return a table, or a record batch, as a table of all the columns asked for, in that order."""
        pa = load("pyarrow", "reading tables from files")
        columns = {name: piece.column(name) for name in names if name not in self.constants}
        for name in set(names) & self.constants.keys():
            columns[name] = pa.repeat(pa.scalar(self.constants[name]), piece.num_rows)
        return pa.table([columns[name] for name in names], names=list(names))


def find_files(data: Any) -> list[TableFile]:
    """Return the files of a path, several paths, or a `pyarrow.dataset.Dataset`, in their order; in a folder, that of names.

    Raises
    ------
    FileNotFoundError
        If there is nothing of that name.
    ValueError
        If a file is of no known kind, or there is none.
    TypeError
        If it is a dataset that does not consist of files.
    """
    if hasattr(data, "get_fragments"):
        files = [_of_fragment(fragment) for fragment in data.get_fragments()]
    else:
        filesystem = arrow("fs").LocalFileSystem()
        paths = [data] if isinstance(data, (str, os.PathLike)) else list(data)
        files = [_of_path(path, filesystem) for given in paths for path in _walk(Path(given))]
    if not files:
        raise ValueError(f"there are no files of tables in {data!s:.200}")
    return files


def _walk(path: Path) -> list[Path]:
    if not path.is_dir():
        path.stat()
        return [path]
    found = sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in found if not any(part.startswith((".", "_")) for part in file.relative_to(path).parts)]


def _of_path(path: Path, filesystem: Any) -> TableFile:
    name = path.name.lower().removesuffix(".gz")
    kind = KINDS.get(os.path.splitext(name)[1], "")
    if not kind or (name != path.name.lower() and kind != "csv"):
        raise ValueError(f"{path} is no table of a known kind: {', '.join(KINDS)}, or .csv.gz")
    if kind != "csv":
        return TableFile(str(path), kind, filesystem)
    separator = "\t" if name.endswith(".tsv") else _separator(str(path), filesystem)
    options = arrow("csv").ParseOptions(delimiter=separator, newlines_in_values=True)
    return TableFile(str(path), kind, filesystem, parse_options=options)


def _separator(path: str, filesystem: Any) -> str:
    """Return a comma; or a semicolon or a tab if the first line has some of them and no comma."""
    with filesystem.open_input_stream(path) as file:
        first = file.read(FIRST_LINE).partition(b"\n")[0]
    return next((mark for mark in (",", ";", "\t") if mark.encode() in first), ",")


def _of_fragment(fragment: Any) -> TableFile:
    kind = {"ParquetFileFormat": "parquet", "IpcFileFormat": "feather", "CsvFileFormat": "csv"}.get(
        type(getattr(fragment, "format", None)).__name__
    )
    if kind is None:
        raise TypeError(f"a dataset must consist of files of Parquet, Feather or CSV, got a {type(fragment).__name__}")
    constants = arrow("dataset").get_partition_keys(fragment.partition_expression)
    return TableFile(fragment.path, kind, fragment.filesystem, constants, getattr(fragment.format, "parse_options", None))

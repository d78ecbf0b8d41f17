"""CSV and TSV files, read by pyarrow; what it is silent about is found out before: other encodings, open quotes."""

from __future__ import annotations

import codecs
import gzip
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

STEP = 1 << 24
"""Bytes that are checked at a time."""

LARGEST_BLOCK = 1 << 30
"""Text up to this size is looked at as a whole before the type of a column is decided."""

MISSING = ("", "#N/A", "N/A", "NA", "NaN", "nan", "NULL", "null", "<NA>", "n/a", "-nan", "-NaN")
"""What stands for a missing number."""


@dataclass(frozen=True)
class Text:
    """The content of a file of separated values.

    Attributes
    ----------
    path : str
        The file, for messages.
    data : bytes
        UTF-8.
    separator : str
    header : bool
        Whether the first row has the names of the columns.
    missing : tuple of str
        Texts that stand for missing values besides `MISSING`.
    """

    path: str
    data: bytes
    separator: str
    header: bool
    missing: tuple[str, ...]

    @cached_property
    def table(self) -> pa.Table:
        """All columns, in the types that their values have.

        Raises
        ------
        ValueError
            If the text is not a table.
        """
        import pyarrow as pa

        try:
            types = self._widened() if len(self.data) > LARGEST_BLOCK else {}
            return self._read(column_types=types)
        except pa.ArrowInvalid as error:
            raise ValueError(f"{self.path} cannot be read as a table of separated values: {self._reason(error)}") from error

    def column(self, index: int) -> pa.ChunkedArray:
        """Return a column as text, exactly as it stands in the file; the empty text and ``missing`` are null."""
        import pyarrow as pa

        types = dict.fromkeys(self.table.column_names, pa.string())
        table = self._read(column_types=types, null_values=["", *self.missing], only=index)
        return table.column(0)

    def _widened(self) -> dict[str, Any]:
        """Return the types of the columns in the first block, integers and columns without values as float64."""
        import pyarrow as pa

        end = self.data.rfind(b"\n", 0, LARGEST_BLOCK)
        while self.data.count(b'"', 0, end) % 2:  # inside of quotes
            end = self.data.rfind(b"\n", 0, end)
        schema = replace(self, data=self.data[: end + 1])._read().schema
        return {field.name: pa.float64() for field in schema if pa.types.is_integer(field.type) or pa.types.is_null(field.type)}

    def _options(self, *, only: int | None = None, column_types: Any = None, null_values: Any = None) -> dict[str, Any]:
        from pyarrow import csv

        block = min(len(self.data) + 1, LARGEST_BLOCK)
        nulls = [*MISSING, *self.missing] if null_values is None else null_values
        return {
            # One thread: with more, pyarrow may abort or hang as the process ends (apache/arrow issues 43604, 43741 and 50482).
            "read_options": csv.ReadOptions(block_size=block, autogenerate_column_names=not self.header, use_threads=False),
            "parse_options": csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=True,
                ignore_empty_lines=self.separator.encode() in self.data.partition(b"\n")[0],  # else it is a missing value
            ),
            "convert_options": csv.ConvertOptions(
                column_types=column_types,
                null_values=nulls,
                strings_can_be_null=null_values is not None,
                include_columns=None if only is None else [self.table.column_names[only]],
            ),
        }

    def _read(self, **options: Any) -> pa.Table:
        import pyarrow as pa
        from pyarrow import csv

        return csv.read_csv(pa.BufferReader(self.data), **self._options(**options))

    def _reason(self, error: Exception) -> str:
        """Return why the text is not a table: the first ragged row, if there is one."""
        import pyarrow as pa
        from pyarrow import csv

        found: list[Any] = []

        def keep(row: Any) -> str:
            found.append(row)
            return "error"

        options = self._options()
        options["parse_options"].invalid_row_handler = keep
        try:
            csv.read_csv(pa.BufferReader(self.data), **options)
        except pa.ArrowInvalid:
            if found:
                row = found[0]
                where = f"row {row.number} (the first row of the file is 1)" if row.number else "a row"
                received = "1 value" if row.actual_columns == 1 else f"{row.actual_columns} values"
                return f"{where} has {received}, {row.expected_columns} are expected: {row.text[:60]!r}"
        return str(error)


def read_text(path: str, data: bytes, *, separator: str | None, header: bool, missing: tuple[str, ...]) -> Text:
    """Return the checked content of a file of separated values.

    Parameters
    ----------
    path : str
        For messages.
    data : bytes
        The content, perhaps compressed by gzip.
    separator : str or None
        None: a comma; or a semicolon or a tab if the first line has some of them and no comma.
    header, missing
        See `Text`.

    Raises
    ------
    ValueError
        If it is empty, not UTF-8, cut off, or has a quote that is not closed.
    """
    data = unpacked(path, data)
    check_encoding(path, data)
    data = data.removeprefix(codecs.BOM_UTF8).strip(b"\r\n") + b"\n"
    if not data.strip():
        raise ValueError(f"{path} is empty; a table with a row of column names and rows of data is expected")
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        raise ValueError(f"{path} has a zero byte in line {line}: it is not a text file of separated values")
    if data.count(b'"') % 2:
        raise ValueError(f"{path} has an odd number of quotes: one of them is not closed (inside of quotes, write one as two)")
    first = data.partition(b"\n")[0]
    if separator is None:
        separator = next((mark for mark in (",", ";", "\t") if mark.encode() in first), ",")
    return Text(path, data, separator, header, missing)


def unpacked(path: str, data: bytes) -> bytes:
    """Return the content of a file that may be compressed by gzip."""
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked by gzip: {error}") from error


def check_encoding(path: str, data: bytes) -> None:
    """Raise a ValueError with the line where text is not UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), STEP):
        try:
            decoder.decode(data[start : start + STEP], final=start + STEP >= len(data))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, start + error.start) + 1
            other = "UTF-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "another encoding"
            raise ValueError(
                f"{path} is not UTF-8 in line {line}: it seems to be in {other}; convert it, for instance with "
                f"iconv -f {'UTF-16' if other == 'UTF-16' else 'CP1252'} -t UTF-8"
            ) from error

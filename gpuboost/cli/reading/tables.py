"""Tables from files of all kinds."""

from __future__ import annotations

import difflib
import os
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gpuboost.cli.reading import array_files, columns
from gpuboost.cli.reading.text_files import MISSING, read_text
from gpuboost.cli.reading.whole_files import read_file, read_to_end

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".npz": "npz",
    ".npy": "npy",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}
N_SHOWN = 8
PANDAS_INDEX = "__index_level_"

Part = Literal["train", "test"]


@dataclass
class Table:
    """Columns, which may have names, and arrays that stand beside them.

    Attributes
    ----------
    path : str
        Where it comes from, for messages.
    names : list of str or None
        The names of the columns; None if they have numbers only.
    columns : list of pyarrow.ChunkedArray
        Empty if there is a matrix.
    matrix : ndarray, shape (n_rows, n_columns), or None
    arrays : dict of ndarray
        Arrays of one entry a row that are no features, such as the ``y`` of a ``.npz`` file.
    text_column : callable, optional
        Returns a column of a file without types as text, null where it is missing.
    missing : tuple of str
        Texts in such a file that stand for missing values.
    """

    path: str
    names: list[str] | None
    columns: list[pa.ChunkedArray] = field(default_factory=list)
    matrix: NDArray[Any] | None = None
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    text_column: Callable[[int], pa.ChunkedArray] | None = None
    missing: tuple[str, ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.matrix) if self.matrix is not None else len(self.columns[0])

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return self.matrix.shape[1] if self.matrix is not None else len(self.columns)

    def called(self, index: int) -> str:
        """Return what messages call a column."""
        return f"{self.path}: column {self.names[index]!r}" if self.names else f"{self.path}: column {index}"

    def has(self, key: str) -> bool:
        """Whether there is a column or an array of that name or number."""
        return key in self.arrays or self._index(key) is not None

    def index(self, key: str, what: str) -> int:
        """Return the position of a column: its name, or its number from 0, negative from the end.

        Raises
        ------
        ValueError
            If there is none; ``what`` says what it was wanted for.
        """
        index = self._index(key)
        if index is None:
            raise ValueError(f"{self.path} has no column {key!r} ({what}); {self._listed(key)}")
        return index

    def _index(self, key: str) -> int | None:
        if self.names is not None and key in self.names:
            return self.names.index(key)
        number = int(key) if key.removeprefix("-").isdecimal() else self.n_columns
        return number % self.n_columns if -self.n_columns <= number < self.n_columns else None

    def _listed(self, key: str) -> str:
        """Return which columns there are, and which of them may be meant."""
        known = [*(self.names or ()), *self.arrays]
        if not known:
            return f"its columns have the numbers 0 to {self.n_columns - 1}"
        names = ", ".join(map(repr, known[:N_SHOWN])) + (", ..." if len(known) > N_SHOWN else "")
        close = closest(key, known)
        return (f"did you mean {close!r}? " if close else "") + f"it has {names}"

    def labels(self, key: str) -> NDArray[Any]:
        """Return a column or an array of labels, see `gpuboost.cli.reading.columns.labels`."""
        if key in self.arrays:
            return self._array_of_labels(self.arrays[key], f"{self.path}: array {key!r}")
        index = self.index(key, "--target")
        if self.matrix is not None:
            return self._array_of_labels(self.matrix[:, index], self.called(index))
        column = self.text_column(index) if self.text_column else self.columns[index]
        return columns.labels(column, self.called(index), from_text=self.text_column is not None)

    @staticmethod
    def _array_of_labels(array: NDArray[Any], where: str) -> NDArray[Any]:
        if array.dtype.kind == "S":
            try:
                array = np.char.decode(array, "utf-8")
            except UnicodeDecodeError as error:
                raise ValueError(f"{where} holds bytes that are no text in UTF-8: {error.object!r:.60}") from error
        if array.ndim != 1 or array.dtype.kind not in "biufUM":
            raise ValueError(f"{where} must hold one label a row, got the shape {array.shape} and the dtype {array.dtype}")
        if array.dtype.kind in "fM":
            columns.refuse_missing(np.isnan(array) if array.dtype.kind == "f" else np.isnat(array), where)
        return array_files.whole_numbers(array)  # class numbers in a matrix of floats

    def weights(self, key: str) -> NDArray[np.float64]:
        """Return a column or an array of row weights, shape (n_rows,)."""
        if key in self.arrays:
            array, where = self.arrays[key], f"{self.path}: array {key!r}"
        else:
            index = self.index(key, "--weight")
            where = self.called(index)
            matrix = self.matrix
            array = columns.numbers(self.columns[index], where, "", self.missing) if matrix is None else matrix[:, index]
        if array.dtype.kind not in "biuf":
            raise ValueError(f"{where} must hold weights, numbers that are not negative, got the dtype {array.dtype}")
        weights = array.astype(np.float64)
        wrong = ~((weights >= 0) & np.isfinite(weights))
        if wrong.any():
            row = int(wrong.argmax())
            raise ValueError(
                f"{where} must hold weights, numbers that are not negative, got {weights[row]} in row {row + 1} of the data"
            )
        return weights

    def copied(self, key: str) -> tuple[str, NDArray[Any] | pa.ChunkedArray]:
        """Return the name of a column, and the column just as it stands in the file."""
        if key in self.arrays:
            return key, self.arrays[key]
        index = self.index(key, "--keep")
        name = self.names[index] if self.names else key
        if self.matrix is not None:
            return name, self.matrix[:, index]
        return name, self.text_column(index) if self.text_column else self.columns[index]

    def features(self, chosen: Sequence[int]) -> Any:
        """Return columns as what estimators take: a table if they have names, else a matrix.

        Raises
        ------
        ValueError
            If one holds no numbers: it is named, with an example and the ways out.
        """
        if not chosen:
            raise ValueError(f"{self.path} has no columns to learn from: all {self.n_columns} are target, weight or dropped")
        if self.matrix is not None:
            whole = list(chosen) == list(range(self.n_columns))
            return self.matrix if whole else self.matrix[:, list(chosen)]
        arrays = [self._numbers(index) for index in chosen]
        if self.names is None:
            return np.stack(arrays, axis=1)
        import pyarrow as pa

        return pa.table(arrays, names=[self.names[index] for index in chosen])

    def _numbers(self, index: int) -> NDArray[Any]:
        key = self.names[index] if self.names else str(index)
        way_out = f"; leave it out (--drop {key!r}) or encode it as numbers first"
        if self.text_column:
            way_out += ", or if the text means that the value is missing, say --missing TEXT"
        return columns.numbers(self.columns[index], self.called(index), way_out, self.missing)


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Attributes
    ----------
    header : bool
        Whether CSV files have a row of names.
    missing : tuple of str
        Texts in them that stand for missing values.
    note : callable
        Takes remarks.
    """

    header: bool = True
    missing: tuple[str, ...] = ()
    note: Callable[[str], None] = lambda _: None

    def read(self, path: str, part: Part = "train") -> Table:
        """Read a table.

        Parameters
        ----------
        path : str
            "-" is CSV from the standard input.
        part : {"train", "test"}
            Which rows are wanted of a ``.npz`` file with an original split.

        Raises
        ------
        ValueError
            If the file is of no known kind, or broken, has no rows, or two columns of one name.
        OSError
            If it cannot be opened.
        """
        kind = kind_of(path)
        if kind == "npz":
            table = self._npz(path, part)
        elif kind == "npy":
            table = Table(path, None, matrix=array_files.read_npy(path))
        elif kind == "libsvm":
            matrix, labels = array_files.read_libsvm(path)
            table = Table(path, None, matrix=matrix, arrays={"y": labels})
        elif kind == "csv":
            table = self._csv(path)
        else:
            table = self._arrow(path, kind)
        return self._checked(table)

    def _csv(self, path: str) -> Table:
        if path == "-":
            if sys.stdin is None:
                raise OSError("the standard input is closed: there is nothing to read from -")
            content = read_to_end(sys.stdin.buffer)
            path = "the standard input"
        else:
            content = read_file(path)
        separator = "\t" if path.removesuffix(".gz").lower().endswith(".tsv") else None
        text = read_text(path, content, separator=separator, header=self.header, missing=self.missing)
        data = text.table
        names = list(data.column_names) if self.header else None
        if names and sum(map(columns.is_number, names)) >= max(2, len(names) - 1):
            self.note(f"Note: the first row of {path} was taken for column names, but holds numbers: --no-header if it is data")
        if names and "" in names:
            index = names.index("")
            self.note(f"Note: column {index} of {path} has no name; if it holds row numbers, leave it out: --drop {index}")
        return Table(path, names, list(data.columns), text_column=text.column, missing=(*MISSING, *self.missing))

    @staticmethod
    def _arrow(path: str, kind: str) -> Table:
        import pyarrow as pa

        try:
            with open(path, "rb") as file:  # one thread: see `gpuboost.cli.reading.text_files`
                if kind == "parquet":
                    from pyarrow import parquet

                    data = parquet.ParquetFile(file).read(use_threads=False)
                else:
                    from pyarrow import feather

                    data = feather.read_table(file, use_threads=False)
        except (pa.ArrowException, ValueError, OSError, KeyError) as error:
            if isinstance(error, OSError) and error.errno:
                raise
            raise ValueError(f"{path} cannot be read as a {kind.capitalize()} file: {error}") from error
        # Row labels are no features.
        kept = [i for i, name in enumerate(data.column_names) if not name.startswith(PANDAS_INDEX)]
        return Table(path, [data.column_names[i] for i in kept], [data.column(i) for i in kept])

    @staticmethod
    def _npz(path: str, part: Part) -> Table:
        matrix, arrays = array_files.read_npz(path, part)
        if matrix is not None:
            return Table(path, None, matrix=matrix, arrays=arrays)
        import pyarrow as pa

        try:
            return Table(path, list(arrays), [pa.chunked_array([pa.array(array)]) for array in arrays.values()])
        except pa.ArrowException as error:
            raise ValueError(f"{path} holds arrays that cannot be columns of a table: {error}") from error

    @staticmethod
    def _checked(table: Table) -> Table:
        path, matrix = table.path, table.matrix
        if matrix is not None and (matrix.ndim != 2 or matrix.dtype.kind not in "biuf"):
            raise ValueError(f"{path} must hold a matrix of numbers, got the shape {matrix.shape} and the dtype {matrix.dtype}")
        if table.names is not None:
            name, count = Counter(table.names).most_common(1)[0] if table.names else ("", 0)
            if count > 1:
                raise ValueError(f"{path} has {count} columns of the name {name!r}; each needs its own: rename them")
        if table.n_columns == 0 or table.n_rows == 0:
            raise ValueError(
                f"{path} has {table.n_columns} columns and no rows of data" if table.n_columns else f"{path} has no columns"
            )
        return table


def kind_of(path: str) -> str:
    """Return what kind of file a path names, by its suffix; ValueError if it is of none.

    Raises
    ------
    OSError
        If there is no such file.
    """
    if path == "-":
        return "csv"
    if os.path.isdir(path):
        raise ValueError(f"{path} is a folder, but one table is read here, as a whole: name a file")
    name = path.lower().removesuffix(".gz")
    kind = SUFFIXES.get(os.path.splitext(name)[1], "")
    if not kind or (name != path.lower() and kind not in ("csv", "libsvm")):
        known = ", ".join(SUFFIXES)
        raise ValueError(f"{path} is no table of a known kind: {known}, .csv.gz, or - for CSV from the standard input")
    os.stat(path)
    return kind


def closest(name: str, known: Sequence[str]) -> str | None:
    """Return the known name that may be meant, if there is one."""
    by_case = {one.lower(): one for one in known}
    close = difflib.get_close_matches(name.lower(), by_case, 1)
    return by_case[close[0]] if close else None

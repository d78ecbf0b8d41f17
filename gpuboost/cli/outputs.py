"""Files that commands write: what can be refused is refused before anything takes time, and no file is ever half written."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO

import click
import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.label_values import python_labels

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".npy", ".npz")
BLOCK = 50_000


def check_output(path: str, suffixes: tuple[str, ...], inputs: Iterable[str | None] = (), what: str = "--out") -> None:
    """Raise an error if a file could not be written to ``path`` later, or would take the place of one that is read.

    Parameters
    ----------
    path : str
    suffixes : tuple of str
        Those that it may have; empty if any.
    inputs : iterable of str or None
        The files that the command reads.
    what : str
        What messages call it.

    Raises
    ------
    click.UsageError
        If it is one of ``inputs``.
    ValueError
        If it is empty, or its suffix is none of ``suffixes``.
    OSError
        If its folder is missing or no file can be made there, or it is there and is no file.
    """
    if not path:
        raise ValueError(f"{what} is empty; give the name of a file")
    if suffixes and not path.lower().endswith(suffixes):
        raise ValueError(f"{what} {path} must end in one of {', '.join(suffixes)}")
    for source in inputs:
        if source is not None and same_file(path, source):
            raise click.UsageError(f"{what} {path} would overwrite {source}, which is read; give another name")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise IsADirectoryError(f"{what} {path} is a folder; give the name of a file")
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{what} {path}: there is no folder {folder}; make it first (mkdir -p {folder})")
    if not os.access(folder, os.W_OK) or (os.path.exists(path) and not os.access(path, os.W_OK)):
        raise PermissionError(f"{what} {path} may not be written to; choose another place or change the permissions")
    if os.path.exists(path) and not os.path.isfile(path):
        raise OSError(f"{what} {path} is a device or a pipe; give the name of a file")
    try:
        with contextlib.suppress(FileNotFoundError):
            os.stat(path)  # refuses a name that is too long
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"{what} {path} cannot be written: {error.strerror}") from error


def same_file(path: str, other: str) -> bool:
    """Whether two paths are those of one file, also by a link."""
    try:
        return os.path.samefile(path, other)
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def write_predictions(
    path: str, labels: NDArray[Any], proba: NDArray[np.float64] | None, classes: NDArray[Any], kept: Mapping[str, Any]
) -> None:
    """Write predicted labels, and probabilities if there are some.

    A table has the columns ``kept``, then the column "prediction", and "p_LABEL" for every class; ``.npz`` has the arrays
    "prediction", "proba" and "classes"; ``.npy`` is the array of labels, or of probabilities if there are some.

    Parameters
    ----------
    path : str
        "-" is CSV to the standard output.
    labels : ndarray, shape (n_rows,) or (n_rows, n_classes)
        The latter in a multi-label problem.
    proba : ndarray of float64, shape (n_rows, n_classes), or None
    classes : ndarray, shape (n_classes,)
    kept : dict of ndarray or pyarrow.ChunkedArray, shape (n_rows,)
        Columns of a table to write before the predictions.

    Raises
    ------
    ValueError
        If one of ``kept`` has the name of a column of predictions.
    """
    from gpuboost.persistence.atomic_write import write_whole

    columns: dict[str, Any] = {"prediction": labels}
    if labels.ndim == 2:
        columns = dict(zip(map(str, python_labels(classes)), labels.T, strict=True))
    if proba is not None:
        columns |= {f"p_{label}": proba[:, k] for k, label in enumerate(python_labels(classes))}
    for name in kept:
        if name in columns:
            raise ValueError(f"--keep {name!r} is also the name of a column of predictions; rename it in the data")
    columns = {**kept, **columns}
    lower = path.lower()
    if path == "-":
        file = standard_output()
        _write_text(file, columns, "")
        file.flush()
    elif lower.endswith((".parquet", ".feather")):
        write_whole(path, lambda file: _write_arrow(file, columns, lower))
    elif lower.endswith(".npy"):
        write_whole(path, lambda file: np.save(file, labels if proba is None else proba, allow_pickle=False))
    elif lower.endswith(".npz"):
        arrays: dict[str, Any] = {"prediction": labels, **({} if proba is None else {"proba": proba, "classes": classes})}
        write_whole(path, lambda file: np.savez(file, **arrays))
    else:
        write_whole(path, lambda file: _write_text(file, columns, lower))


def standard_output() -> BinaryIO:
    """Return the standard output for bytes: data are UTF-8 there as in files, whatever a terminal can show.

    Raises
    ------
    OSError
        If it is closed.
    """
    if sys.stdout is None:
        raise OSError("the standard output is closed: nothing can be written to -")
    return sys.stdout.buffer


def csv_blocks(columns: dict[str, NDArray[Any]], separator: str) -> Any:
    """Yield a table as text: labels as `str` writes them, numbers with all their digits."""
    n_rows = len(next(iter(columns.values())))
    for start in range(0, max(n_rows, 1), BLOCK):
        text = io.StringIO()
        writer = csv.writer(text, delimiter=separator, lineterminator="\n")
        if start == 0:
            writer.writerow(columns)
        writer.writerows(zip(*(python_labels(array[start : start + BLOCK]) for array in columns.values()), strict=True))
        yield text.getvalue()


def _texts(column: Any) -> NDArray[Any]:
    """Return a column as an array for `csv_blocks`: one of a file in its own words, None where there is nothing."""
    if isinstance(column, np.ndarray):
        return column
    import pyarrow as pa

    with contextlib.suppress(pa.ArrowException):  # of what is nested
        column = column.cast(pa.string())
    texts = np.empty(len(column), object)
    texts[:] = column.to_pylist()
    return texts


def _write_text(file: BinaryIO, columns: dict[str, Any], path: str) -> None:
    arrays = {name: _texts(column) for name, column in columns.items()}
    blocks = (text.encode() for text in csv_blocks(arrays, "\t" if path.endswith(".tsv") else ","))
    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) if path.endswith(".gz") else contextlib.nullcontext(file) as target:
        target.writelines(blocks)


def _write_arrow(file: BinaryIO, columns: dict[str, Any], path: str) -> None:
    import pyarrow as pa

    arrays = [column if isinstance(column, pa.ChunkedArray) else pa.array(column) for column in columns.values()]
    table = pa.table(arrays, names=list(columns))
    if path.endswith(".parquet"):
        from pyarrow import parquet

        parquet.write_table(table, file)
    else:
        from pyarrow import feather

        feather.write_feather(table, file)

"""Files of arrays: .npz, .npy and libsvm."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np
from numpy.lib.format import MAGIC_PREFIX
from numpy.typing import NDArray

from gpuboost.cli.reading.text_files import unpacked
from gpuboost.cli.reading.whole_files import read_file

Arrays = dict[str, NDArray[Any]]

LARGEST_LIBSVM = 8 << 30
"""Bytes of the dense table of a libsvm file: one odd index could ask for any size."""

EXACT = 2**53
"""Below it floats hold all integers."""

ARCHIVES = (b"PK\3\4", b"PK\5\6")
"""The beginnings of archives, the latter of those that are empty."""

BROKEN_ZIP = (ValueError, KeyError, EOFError, RuntimeError, zlib.error, zipfile.BadZipFile)
NO_LIBSVM = (ValueError, OverflowError, IndexError)


def read_npy(path: str) -> NDArray[Any]:
    """Return the array of a ``.npy`` file; it never unpickles."""
    if (start := beginning(path)) in ARCHIVES:
        raise ValueError(f"{path} cannot be read as a .npy file: it is an archive of several arrays, to be named .npz")
    if start != MAGIC_PREFIX[:4]:
        raise ValueError(f"{path} is no .npy file: it does not begin as one; numpy.save writes them")
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as a .npy file of numbers or text: {reason(error)}") from error


def beginning(path: str) -> bytes:
    """Return the bytes by which NumPy knows an array and an archive."""
    with open(path, "rb") as file:
        return file.read(4)


def reason(error: Exception) -> str:
    """Return what NumPy says, without its advice to unpickle."""
    return str(error).partition(" when allow_pickle")[0]


def read_npz(path: str, part: str) -> tuple[NDArray[Any] | None, Arrays]:
    """Return the matrix and the other arrays of a ``.npz`` file.

    Parameters
    ----------
    path : str
    part : {"train", "test"}
        Which rows are wanted of a file with an original split, see `gpuboost.datasets.read_dataset`.

    Returns
    -------
    matrix : ndarray or None
        The array "X"; None if there is none, and all arrays are columns of a table.
    arrays : dict of ndarray
        The arrays with one entry a row.
    """
    from gpuboost.datasets.dataset import SPLIT_KEYS, read_dataset

    if beginning(path) not in ARCHIVES:
        raise ValueError(f"{path} is no .npz file: it does not begin as one; numpy.savez writes them")
    try:
        with np.load(path, allow_pickle=False) as file:
            names = set(file.files)
            of_a_set = set(SPLIT_KEYS) <= names or {"X", "y", "meta"} <= names
            arrays = {} if of_a_set else {name: np.asarray(file[name]) for name in file.files}
    except BROKEN_ZIP as error:
        raise ValueError(f"{path} cannot be read as a .npz file of numbers or text: {reason(error)}") from error
    if of_a_set:
        data = read_dataset(path)
        if data.n_train is None:
            return data.X, {"y": data.y}
        return (data.X_train, {"y": data.y_train}) if part == "train" else (data.X_test, {"y": data.y_test})
    matrix = arrays.pop("X", None)
    n_rows = {array.shape[:1] for array in arrays.values()} | ({matrix.shape[:1]} if matrix is not None else set())
    if (matrix is not None and matrix.ndim != 2) or len(n_rows) != 1 or any(array.ndim != 1 for array in arrays.values()):
        shapes = {"X": matrix.shape} if matrix is not None else {}
        shapes |= {name: array.shape for name, array in arrays.items()}
        expected = "a matrix X and an array y with a label for each row, or one array a column"
        raise ValueError(f"{path} must hold {expected}; got the shapes {shapes}")
    return matrix, arrays


def read_libsvm(path: str) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return the dense matrix and the labels of a libsvm file.

    Column i of the matrix is the index i of the file: where indices start at 1, column 0 is zero everywhere, and two files
    cannot be understood differently.
    """
    from sklearn.datasets import load_svmlight_file

    content = unpacked(path, read_file(path))
    try:
        sparse, labels = load_svmlight_file(io.BytesIO(content), zero_based=True)
    except NO_LIBSVM as error:
        lines = content.split(b"\n")
        row = first_unreadable(lines)
        raise ValueError(
            f"{path} cannot be read as a libsvm file: line {row + 1} is {lines[row].decode(errors='replace')!r:.60}; "
            "a label and pairs INDEX:VALUE of growing indices from 0 are expected"
        ) from error
    if (large := np.isfinite(labels) & (abs(labels) >= EXACT)).any():
        raise ValueError(
            f"{path} has labels such as {labels[large][0]:.17g}: from {EXACT} on they cannot be told apart in a libsvm file, "
            "where numbers are floats; use smaller ones"
        )
    if (n_bytes := 8 * sparse.shape[0] * sparse.shape[1]) > LARGEST_LIBSVM:
        raise ValueError(
            f"{path} has {sparse.shape[0]} rows and indices up to {sparse.shape[1] - 1}: as the dense table that trees need, "
            f"{n_bytes / 2**30:.1f} GiB, more than the limit of {LARGEST_LIBSVM >> 30} GiB; number the columns anew"
        )
    return sparse.toarray(), whole_numbers(labels)


def first_unreadable(lines: list[bytes]) -> int:
    """Return the position of the first line that is not libsvm; there must be one."""
    from sklearn.datasets import load_svmlight_file

    begin, end = 0, len(lines)
    while end - begin > 1:
        middle = (begin + end) // 2
        try:
            load_svmlight_file(io.BytesIO(b"\n".join(lines[begin:middle])), zero_based=True)
        except NO_LIBSVM:
            end = middle
        else:
            begin = middle
    return begin


def whole_numbers(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array of floats that all are integers as such, any other as it is."""
    if array.dtype.kind != "f":
        return array
    wide = array.astype(np.float64)
    return wide.astype(np.int64) if (abs(wide) < 2.0**63).all() and (wide % 1 == 0).all() else array

"""Files of arrays: .npz, .npy and libsvm."""

from __future__ import annotations

import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

LARGEST_LIBSVM = 8 << 30
"""Bytes of the dense table of a libsvm file: one odd index could ask for any size."""


def read_npy(path: str) -> NDArray[Any]:
    """Return the array of a ``.npy`` file; it never unpickles."""
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as a .npy file of numbers or text: {error}") from error
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} cannot be read as a .npy file: it is an archive of several arrays, to be named .npz")
    return array


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

    try:
        with np.load(path, allow_pickle=False) as file:
            names = set(file.files)
            if set(SPLIT_KEYS) <= names:
                data = read_dataset(path)
                return (data.X_train, {"y": data.y_train}) if part == "train" else (data.X_test, {"y": data.y_test})
            if {"X", "y", "meta"} <= names:
                data = read_dataset(path)
                return data.X, {"y": data.y}
            arrays = {name: file[name] for name in file.files}
    except (AttributeError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path} cannot be read as a .npz file of numbers or text: {error}") from error
    matrix = arrays.pop("X", None)
    n_rows = {len(array) if array.ndim else -1 for array in arrays.values()} | ({len(matrix)} if matrix is not None else set())
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

    try:
        sparse, labels = load_svmlight_file(path, zero_based=True)
    except (ValueError, OverflowError, IndexError) as error:
        raise ValueError(f"{path} cannot be read as a libsvm file: {error}") from error
    if (n_bytes := 8 * sparse.shape[0] * sparse.shape[1]) > LARGEST_LIBSVM:
        raise ValueError(
            f"{path} has {sparse.shape[0]} rows and indices up to {sparse.shape[1] - 1}: as the dense table that trees need, "
            f"{n_bytes / 2**30:.1f} GiB, more than the limit of {LARGEST_LIBSVM >> 30} GiB; number the columns anew"
        )
    whole = labels.astype(np.int64)
    return sparse.toarray(), whole if (whole == labels).all() else labels

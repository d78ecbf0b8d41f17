"""From what the caller passes as X to a matrix of numbers.

Arrays stay what they are (dtype, layout, read-only): `gpuboost.binning` reads any of them. So do those on a CUDA device, of
which only the shape and the dtype are looked at. Data frames of pandas, polars and pyarrow are taken column by column, so that
missing values of every kind become NaN and no number passes through text.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning import ComputedMatrix, RowBlocks
from gpuboost.inputs.arrays import device_array, dtype_of, lies_on_device, to_host
from gpuboost.inputs.containers import Blocks, frame_columns, frame_names, is_categorical, is_missing, to_numpy

ADVICE = "encode it as numbers first, for instance with OneHotEncoder or OrdinalEncoder of sklearn.preprocessing"


def to_matrix(X: Any, estimator: Any, name: str = "X", *, may_be_empty: bool = False) -> Any:
    """Return X as a 2-D array of a boolean, integer or real floating dtype, without a copy where X is one.

    Parameters
    ----------
    X : array-like, data frame, device array, ComputedMatrix or Blocks, shape (n_rows, n_features)
    estimator : estimator
        Named in messages.
    name : str
        What messages call X.
    may_be_empty : bool
        Whether X may have no rows.

    Returns
    -------
    ndarray, device array, ComputedMatrix or RowBlocks, shape (n_rows, n_features)
        An array on a CUDA device stays there and stays what it is, as does a matrix to be computed; both can be sliced.
        `Blocks` become `RowBlocks` on the host.

    Raises
    ------
    TypeError
        If X is a path, sparse, of cuDF, of a dtype that NumPy does not have, or holds objects that are no numbers.
    ValueError
        If X is not 2-D, has no rows or no columns, is complex, or has text, dates or categories in a column, which is named.
    """
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(
            f"{name} must hold rows, got the path {os.fspath(X)!r}; gpuboost.CodeFile.write(path, ...) makes a set to train on "
            "of Parquet, Feather and CSV files, and gpuboost.CodeFile(path) opens one"
        )
    if isinstance(X, ComputedMatrix):
        return _checked_shape(X, estimator, name, 0 if may_be_empty else 1)
    if isinstance(X, Blocks):
        return RowBlocks([to_host(to_matrix(one, estimator, name, may_be_empty=True)) for one in X.take()])
    if lies_on_device(X):
        return _checked_shape(device_array(X, name), estimator, name)
    X = to_host(X, name)
    if (names := frame_names(X)) is not None:
        X = _stack(X, names, name)
    elif isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    matrix = _checked(X, estimator, name, 0 if may_be_empty else 1)
    if matrix.dtype.kind in "biuf":
        return matrix
    return np.stack([_numbers(column, f"column {i} of {name}") for i, column in enumerate(matrix.T)], axis=1)


def _checked(X: Any, estimator: Any, name: str, n_least: int = 1) -> NDArray[Any]:
    from sklearn.utils.validation import check_array

    try:
        matrix: NDArray[Any] = check_array(
            X, dtype=None, ensure_all_finite=False, ensure_min_samples=n_least, estimator=estimator, input_name=name
        )
    except ValueError as error:
        if str(error).startswith("Complex data not supported"):  # and then all of X
            raise ValueError(f"Complex data not supported: {name} has dtype {np.asarray(X).dtype}") from None
        raise
    return matrix


def _checked_shape(X: Any, estimator: Any, name: str, n_least: int = 1) -> Any:
    """Return a matrix that is not on the host, or not computed, of a valid shape and dtype. Its values are not read."""
    dtype, shape = dtype_of(X, name), tuple(X.shape)
    if dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {dtype}")
    if len(shape) != 2:
        raise ValueError(f"Expected 2D array, got {len(shape)}D array instead: {name} has the shape {shape}")
    _checked(np.broadcast_to(np.zeros((), dtype), shape), estimator, name, n_least)  # a stand-in that takes no memory
    return X


def _stack(X: Any, names: list[Any], name: str) -> NDArray[Any]:
    """Return the columns of a data frame as one matrix of the narrowest dtype that holds them all."""
    dtypes = set(getattr(X, "dtypes", ()))
    if len(dtypes) == 1 and isinstance(dtype := dtypes.pop(), np.dtype) and dtype.kind in "biuf":
        homogeneous: NDArray[Any] = X.to_numpy()  # pandas may have the matrix already
        return homogeneous
    arrays = []
    for column_name, column in zip(names, frame_columns(X), strict=True):
        where = f"column {column_name!r} of {name}"
        if is_categorical(column):
            raise ValueError(f"{where} is categorical; {ADVICE}")
        arrays.append(_numbers(to_numpy(column), where))
    matrix = np.empty(X.shape, np.result_type(*arrays) if arrays else np.float64, order="F")
    for f, array in enumerate(arrays):
        matrix[:, f] = array
    return matrix


def _numbers(values: NDArray[Any], where: str) -> NDArray[Any]:
    """Return a 1-D array of numbers; objects become float64, the missing ones NaN."""
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {where} has dtype {values.dtype}")
    if values.dtype.kind != "O":
        raise ValueError(f"{where} holds {values.dtype} values such as {values[:1].tolist()}, not numbers; {ADVICE}")
    numbers = np.empty(values.shape)
    for i, value in enumerate(values.tolist()):
        if isinstance(value, (str, bytes)):
            raise ValueError(f"{where} holds the text {value!r}; {ADVICE}")
        try:
            numbers[i] = np.nan if is_missing(value) else float(value)
        except (TypeError, ValueError, OverflowError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"{where} holds {value!r:.60}, which is not a number: {error}") from error
    return numbers

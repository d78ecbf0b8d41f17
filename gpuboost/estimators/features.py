"""From what the caller passes as X to a matrix of numbers, and the check of its columns.

Arrays stay what they are (dtype, layout, read-only): `gpuboost.binning` reads any of them. Data frames of pandas, polars and
pyarrow are taken column by column, so that missing values of every kind become NaN and no number passes through text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.estimators.containers import frame_columns, is_categorical, is_missing, to_numpy

ADVICE = "encode it as numbers first, for instance with OneHotEncoder or OrdinalEncoder of sklearn.preprocessing"


def to_matrix(X: Any, estimator: Any, name: str = "X") -> NDArray[Any]:
    """Return X as a 2-D array of a boolean, integer or real floating dtype, without a copy where X is one.

    Parameters
    ----------
    X : array-like or data frame, shape (n_rows, n_features)
    estimator : estimator
        Named in messages.
    name : str
        What messages call X.

    Raises
    ------
    TypeError
        If X is sparse, or holds objects that are no numbers.
    ValueError
        If X is not 2-D, has no rows or no columns, is complex, or has text, dates or categories in a column, which is named.
    """
    from sklearn.utils.validation import check_array

    columns = frame_columns(X)
    if columns is not None:
        X = _stack(X, columns, name)
    elif isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    matrix: NDArray[Any] = check_array(X, dtype=None, ensure_all_finite=False, estimator=estimator, input_name=name)
    if matrix.dtype.kind in "biuf":
        return matrix
    return np.stack([_numbers(column, f"column {i} of {name}") for i, column in enumerate(matrix.T)], axis=1)


def column_names(X: Any) -> list[Any] | None:
    """Return the names of a data frame's columns, None for other containers."""
    columns = frame_columns(X)
    return None if columns is None else [name for name, _ in columns]


def check_columns(estimator: Any, X: Any, *, reset: bool) -> None:
    """Record the number and the names of the columns on ``estimator`` (``reset=True``), or compare them with the record.

    Raises
    ------
    ValueError
        If names are duplicates, or are not those of the record in the same order: the first wrong column is named. Unlike
        in scikit-learn, that holds for names that are no strings, too.
    """
    from sklearn.utils.validation import validate_data

    names = column_names(X)
    if reset:
        duplicates = sorted({str(name) for i, name in enumerate(names or []) if name in (names or [])[:i]})
        if duplicates:
            raise ValueError(f"column names of X must be unique, but {duplicates[0]!r} stands more than once")
    try:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    except ValueError as error:
        raise ValueError(f"{error}{_first_difference(estimator._column_names, names)}") from None
    if reset:
        estimator._column_names = names
    elif names and not any(isinstance(name, str) for name in names) and estimator._column_names:
        difference = _first_difference(estimator._column_names, names)
        if difference and not hasattr(estimator, "feature_names_in_"):
            raise ValueError(f"The columns of X should be those that were passed during fit, in the same order.{difference}")


def _first_difference(expected: list[Any] | None, got: list[Any] | None) -> str:
    """Say which is the first column of ``got`` that is not the expected one; nothing if all are."""
    if not expected or not got:
        return ""
    for i, (a, b) in enumerate(zip(expected, got, strict=False)):
        if a != b:
            return f"\nThe first wrong column is number {i}: expected {a!r}, got {b!r}."
    if len(got) > len(expected):
        return f"\nThe first wrong column is number {len(expected)}: {got[len(expected)]!r} was not there during fit."
    if len(got) < len(expected):
        return f"\nThe first missing column is number {len(got)}: {expected[len(got)]!r}."
    return ""


def _stack(X: Any, columns: list[tuple[Any, Any]], name: str) -> NDArray[Any]:
    """Return the columns of a data frame as one matrix of the narrowest dtype that holds them all."""
    dtypes = {getattr(column, "dtype", None) for _, column in columns}
    if len(dtypes) == 1 and isinstance(dtype := dtypes.pop(), np.dtype) and dtype.kind in "biuf":
        homogeneous: NDArray[Any] = X.to_numpy()  # pandas may have the matrix already
        return homogeneous
    arrays = []
    for column_name, column in columns:
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
            raise kind(f"{where} holds {value!r}, which is not a number: {error}") from error
    return numbers

"""One column of a table: as numbers for the trees, as labels, or as weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.cli.reading.text_files import MISSING
from gpuboost.inputs.label_values import holds

if TYPE_CHECKING:
    import pyarrow as pa

N_CHARACTERS = 40
"""Examples in messages are cut to this length."""

MARKED = r"[-+]?(\d{1,3}([.,' \u00a0\u202f]\d{3})+([.,]\d+)?|\d*,\d+)"
"""A number with a decimal comma or marks of thousands."""


def numbers(column: pa.ChunkedArray, where: str, way_out: str = "", missing: Sequence[str] = ()) -> NDArray[Any]:
    """Return a column of numbers as an array, shape (n_rows,), where NaN is missing; integers stay integers if none is.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    where : str
        What messages call it.
    way_out : str
        What they advise.
    missing : sequence of str
        Texts that stood for missing values when the column was read, and are no reason why it holds text.

    Raises
    ------
    ValueError
        If it holds text, categories, dates or anything else that is no number.
    """
    import pyarrow as pa

    kind, is_ = column.type, pa.types
    if is_.is_null(kind):
        return np.full(len(column), np.nan)
    if is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(kind):
        if column.null_count:
            column = column.cast(pa.uint8()) if is_.is_boolean(kind) else column
            column = column.cast(pa.float64(), safe=False)
        return np.asarray(column.to_numpy())
    if is_.is_decimal(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())
    if re.fullmatch(MARKED, str(_example(column, missing)[0])):
        way_out = "; numbers need a point for decimals and no marks of thousands, such as 1234.5" + way_out
    raise ValueError(f"{where} {_content(column, missing)}, not numbers{way_out}")


def labels(column: pa.ChunkedArray, where: str, *, from_text: bool) -> NDArray[Any]:
    """Return a column of labels as an array, shape (n_rows,), in the type that they have.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    where : str
        What messages call it.
    from_text : bool
        Whether it is the text of a file that knows no types. It then becomes integers, floats or booleans if each label is
        written just as Python writes the value, so that labels can be written as they were read; it stays text if not ("007").

    Raises
    ------
    ValueError
        If a label is missing, or they are of a type that labels cannot have.
    """
    import pyarrow as pa

    is_ = pa.types
    if is_.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if is_.is_floating(column.type):
        column = pa.chunked_array([pa.array(column.to_numpy(), from_pandas=True)])  # NaN is missing, too
    if from_text:
        nulls = np.asarray(column.is_null())
        texts = np.array([text or "" for text in column.to_pylist()], dtype=object)
        valued = _values_of(texts[~nulls & ~np.isin(texts, MISSING)].tolist())
        if valued is None:
            refuse_missing(nulls, where)
            return _text_array(texts)
        refuse_missing(nulls | np.isin(texts, MISSING), where)
        return valued
    refuse_missing(np.asarray(column.is_null()), where)
    kind = column.type
    if is_.is_decimal(kind):
        return _decimals(column)
    if is_text(kind):
        return _text_array(np.array(column.to_pylist(), dtype=object))
    if is_.is_boolean(kind) or is_.is_integer(kind) or is_.is_floating(kind) or is_.is_date(kind) or is_.is_timestamp(kind):
        return np.asarray(column.to_numpy())
    raise ValueError(f"{where} {_content(column)}; labels can be text, numbers, booleans or dates")


def is_number(text: str | bytes) -> bool:
    """Whether a text is a number in a table: Python takes digits of all scripts and 1_000, too."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and b"_" not in (text if isinstance(text, bytes) else text.encode())


def is_text(kind: pa.DataType) -> bool:
    """Whether a type of pyarrow is one of text."""
    return str(kind) in ("string", "large_string", "string_view")


def refuse_missing(missing: NDArray[np.bool_], where: str) -> None:
    """Raise a ValueError with the number of missing labels and the first row of them."""
    if missing.any():
        count, first = int(missing.sum()), int(missing.argmax()) + 1
        raise ValueError(
            f"missing labels: {where} has none in {count} of its {len(missing)} rows, first in row {first} of the data; "
            "remove these rows, or give them a label of their own"
        )


def _values_of(texts: list[str]) -> NDArray[Any] | None:
    """Return the integers, booleans or floats that all texts are the usual way to write, or None."""
    if not texts:
        return None
    if set(texts) <= {"True", "False"}:
        return np.array([text == "True" for text in texts])
    distinct = set(texts)
    for read in (int, float):
        try:
            value_of: dict[str, Any] = {text: read(text) for text in distinct if len(text) < 25}
        except ValueError:
            continue
        exact = len(value_of) == len(distinct) and all(str(value) == text for text, value in value_of.items())
        if exact or (len(value_of) == len(distinct) and looks_continuous(list(value_of.values()), len(texts))):
            values = [value_of[text] for text in texts]
            array = np.array(values)
            return array if array.dtype.kind in "if" and holds(array, values) else None  # large integers stay text
    return None


def looks_continuous(values: list[Any], n_rows: int) -> bool:
    """Whether values are too many fractions to be classes: as numbers the estimator refuses them."""
    return 2 * len(values) > n_rows and any(value % 1 for value in values if np.isfinite(value))


def _text_array(texts: NDArray[Any]) -> NDArray[Any]:
    """Return texts in NumPy's type of text, which takes no zero characters at the end."""
    return texts if any(text.endswith("\0") for text in set(texts.tolist())) else np.array(texts.tolist(), dtype=str)


def _decimals(column: pa.ChunkedArray) -> NDArray[Any]:
    """Return decimal numbers as integers if they are some, as text if they are too large for that, else as floats."""
    values = column.to_pylist()
    if all(value == value.to_integral_value() for value in values):
        whole = [int(value) for value in values]
        return np.array(whole, dtype=np.int64 if all(-(2**63) <= value < 2**63 for value in whole) else str)
    return np.array([float(value) for value in values])


def _content(column: pa.ChunkedArray, missing: Sequence[str] = ()) -> str:
    """Return what a column holds, with an example."""
    import pyarrow as pa

    is_, kind = pa.types, column.type
    named = "text"
    if is_.is_dictionary(kind):
        named = "categories"
    elif is_.is_temporal(kind):
        named = "dates or times"
    elif not is_text(kind):
        named = f"values of the type {kind}"
    example, row = _example(column, missing)
    return f"holds {named}" + (f" such as {example!r:.{N_CHARACTERS}} in row {row}" if row else "")


def _example(column: pa.ChunkedArray, missing: Sequence[str]) -> tuple[Any, int]:
    """Return a value that is no number, and its row counted from 1; row 0 if there is no value at all."""
    first: tuple[Any, int] = (None, 0)
    row = 0
    for chunk in column.chunks:
        for scalar in chunk:
            row += 1
            value = scalar.as_py()
            if value is None or value == "" or value in missing:
                continue
            value = value if isinstance(value, (str, bytes)) else str(value)
            first = first if first[1] else (value, row)
            if not is_number(value):
                return value, row
    return first

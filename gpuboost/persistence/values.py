"""Labels and parameters as JSON, so that they come back with the types that they had.

What JSON has (None, bool, int, finite float, str, list) stands for itself. Everything else is an object of one entry that names
its type: ``{"tuple": [...]}``, ``{"dict": [[key, value], ...]}``, ``{"float": "inf"}``, ``{"bytes": "..."}`` and so on; a NumPy
scalar is an array of one label, a matrix of numbers the name of an array of the file.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.label_values import label_list
from gpuboost.persistence.safetensors import NAMES, Arrays

LABEL_DTYPE = re.compile(
    r"\|[biu]1|<[iu][248]|<f(2|4|8|12|16)|(<U|\|S)\d{1,9}|<[mM]8\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\]", re.ASCII
)
MAX_LABEL_BYTES = 32 << 20
"""Labels of a fixed width take at most that much: one long text in an array makes all of them long."""

TEXTS: dict[str, tuple[type, Callable[[Any], str], Callable[[str], Any]]] = {
    "decimal": (Decimal, str, Decimal),
    "fraction": (Fraction, str, lambda text: Fraction(*map(int, text.split("/")))),
    "datetime": (datetime.datetime, datetime.datetime.isoformat, datetime.datetime.fromisoformat),
    "date": (datetime.date, datetime.date.isoformat, datetime.date.fromisoformat),
    "bytes": (bytes, lambda value: value.decode("latin-1"), lambda text: text.encode("latin-1")),
    "float": (float, str, float),
}
"""Types that are kept as text: the type, how it becomes text, and how it is made of it."""


def encode(value: Any, what: str, arrays: Arrays) -> Any:
    """Return a value as JSON; matrices of numbers go to ``arrays``.

    A pandas DataFrame becomes the dict of dicts ``{row: {column: value}}``, any other mapping a dict.

    Raises
    ------
    TypeError
        If its type cannot be kept. ``what`` is what the message calls it.
    """
    kind = type(value)
    if value is None or kind in (bool, int, str) or (kind is float and np.isfinite(value)):
        return value
    if kind in (list, tuple):
        items = [encode(item, what, arrays) for item in value]
        return items if kind is list else {"tuple": items}
    if hasattr(value, "columns") and hasattr(value, "index"):
        rows = zip(label_list(value.index), value.to_numpy(dtype=object).tolist(), strict=True)
        value = {row: dict(zip(label_list(value.columns), entries, strict=True)) for row, entries in rows}
    if isinstance(value, Mapping):
        return {"dict": [[encode(key, what, arrays), encode(item, what, arrays)] for key, item in value.items()]}
    if kind is np.ndarray and value.ndim in (1, 2) and value.dtype.newbyteorder("<") in NAMES:
        name = f"values/{len(arrays)}"
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic) and value.dtype.kind not in "OV":
        return {"scalar": encode_labels(np.array([value]), what)}
    if kind is datetime.timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    for name, (known, to_text, from_text) in TEXTS.items():
        if kind is known:
            text = to_text(value)
            if kind is not datetime.datetime or from_text(text).tzinfo == value.tzinfo:  # a time zone of its own kind is lost
                return {name: text}
    raise TypeError(
        f"{what} {value!r:.100} is of the type {kind.__module__}.{kind.__qualname__}, which a model file cannot hold"
    )


def decode(json: Any, arrays: Arrays) -> Any:
    """Return the value of a JSON text, the inverse of `encode`. Takes what it uses from ``arrays``.

    Raises
    ------
    ValueError
        If there is no such value.
    """
    if isinstance(json, list):
        return [decode(item, arrays) for item in json]
    if not isinstance(json, dict):
        return json
    if len(json) != 1:
        raise ValueError(f"the value {json!r:.60} is not understood")
    ((kind, content),) = json.items()
    try:
        if kind == "tuple":
            return tuple(decode(item, arrays) for item in content)
        if kind == "dict":
            entries = {decode(key, arrays): decode(item, arrays) for key, item in content}
            if len(entries) != len(content):
                raise ValueError("a key stands twice")
            return entries
        if kind == "array":
            return arrays.pop(content)
        if kind == "scalar":
            (scalar,) = decode_labels(content)
            return scalar
        if kind == "timedelta":
            value: Any = datetime.timedelta(*content)
        else:
            value = TEXTS[kind][2](content)
    except (TypeError, ValueError, KeyError, ArithmeticError, AttributeError) as error:
        raise ValueError(f"the value {json!r:.60} is not understood: {error}") from error
    if encode(value, "", {}) != json:
        raise ValueError(f"the value {json!r:.60} is not written as it should be")
    return value


def encode_labels(labels: NDArray[Any], what: str) -> dict[str, Any]:
    """Return an array of labels, shape (n,), as JSON: its dtype, and the labels.

    Raises
    ------
    TypeError
        If the dtype, or the type of one of several objects, cannot be kept.
    ValueError
        If the labels take too much room.
    """
    if labels.dtype.kind == "O":
        return {"dtype": "object", "labels": [encode(label, what, {}) for label in labels.tolist()]}
    if labels.dtype == np.dtypes.StringDType():
        return {"dtype": "string", "labels": labels.tolist()}
    dtype = labels.dtype.newbyteorder("<") if labels.dtype.kind != "T" else labels.dtype
    if not LABEL_DTYPE.fullmatch(dtype.str):
        raise TypeError(f"{what} has the dtype {labels.dtype}, which a model file cannot hold")
    if labels.nbytes > MAX_LABEL_BYTES:
        raise ValueError(f"{what} takes {labels.nbytes} bytes, and a model file holds {MAX_LABEL_BYTES}")
    if dtype.kind in "mM":
        return {"dtype": dtype.str, "labels": labels.view(np.int64).tolist()}
    if dtype.kind == "f" and dtype.itemsize > 8:
        return {"dtype": dtype.str, "labels": [str(label) for label in labels]}
    if dtype.kind == "S":
        return {"dtype": dtype.str, "labels": [label.decode("latin-1") for label in labels.tolist()]}
    return {"dtype": dtype.str, "labels": [encode(label, what, {}) for label in labels.tolist()]}


def decode_labels(json: Any) -> NDArray[Any]:
    """Return the labels of a JSON text, the inverse of `encode_labels`.

    Raises
    ------
    ValueError
        If there are no such labels.
    """
    if not isinstance(json, dict) or list(json) != ["dtype", "labels"] or not isinstance(json["labels"], list):
        raise ValueError("its labels are not understood")
    name, items = json["dtype"], json["labels"]
    labels: NDArray[Any]
    if name == "object":
        labels = np.empty(len(items), object)
        for k, item in enumerate(items):
            labels[k] = decode(item, {})
        return labels
    try:
        dtype = np.dtypes.StringDType() if name == "string" else _label_dtype(name)
        if dtype.itemsize * len(items) > MAX_LABEL_BYTES:
            raise ValueError("its labels take too much room")
        if dtype.kind in "mM":
            labels = np.array(items, np.int64).view(dtype)
        elif dtype.kind == "S":
            labels = np.array([item.encode("latin-1") for item in items], dtype)
        else:
            labels = np.array([decode(item, {}) for item in items], dtype)
        if labels.shape != (len(items),) or encode_labels(labels, "") != json:
            raise ValueError("they do not fit their type")
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ValueError(f"its labels of the type {name!r:.40} are not understood: {error}") from error
    return labels


def _label_dtype(name: Any) -> np.dtype[Any]:
    if not isinstance(name, str) or not LABEL_DTYPE.fullmatch(name):
        raise ValueError("there is no such type of labels")
    return np.dtype(name).newbyteorder("=")

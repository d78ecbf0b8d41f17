"""What makes two labels the same label: their value, whatever type it is written in.

NumPy compares dates of different units by converting one of them, which may overflow, and ``tolist`` turns dates into three
different types, depending on the unit. So dates and spans of time are compared here as whole numbers of attoseconds.
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

SECOND = 10**18
ATTOSECONDS = {"W": 7 * 86400 * SECOND, "D": 86400 * SECOND, "h": 3600 * SECOND, "m": 60 * SECOND, "s": SECOND}
ATTOSECONDS |= {unit: SECOND // 1000**k for k, unit in enumerate(("ms", "us", "ns", "ps", "fs", "as"), start=1)}
"""NumPy's units of time that have a length."""

EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, order=True)
class Instant:
    """A date, or date and time without a zone: attoseconds since 1970."""

    ticks: int


@dataclass(frozen=True, order=True)
class Span:
    """A span of time: attoseconds."""

    ticks: int


@dataclass(frozen=True, order=True)
class Months:
    """A span of months, which is no number of days."""

    count: int


def label_key(label: Any) -> Any:
    """Return what a label is compared by: equal for equal labels, and ordered as they are.

    Equal instants are equal, whether they are a ``datetime64`` of any unit, a ``datetime``, a ``date`` (its midnight) or a
    pandas ``Timestamp``; so are equal spans of time. All else is compared as Python does: 1, 1.0 and True are the same.
    """
    aware = isinstance(label, datetime.datetime) and label.tzinfo is not None
    if aware or type(label) in (str, int, float, bool):
        return label
    for convert in ("to_datetime64", "to_timedelta64"):  # pandas' types are Python's, with more digits
        label = getattr(label, convert)() if hasattr(label, convert) else label
    if isinstance(label, (np.datetime64, np.timedelta64)):
        return _numpy_key(label)
    if isinstance(label, datetime.datetime):
        return Instant(_microseconds(label - EPOCH) * ATTOSECONDS["us"])
    if isinstance(label, datetime.date):
        return Instant((label.toordinal() - EPOCH.toordinal()) * ATTOSECONDS["D"])
    return Span(_microseconds(label) * ATTOSECONDS["us"]) if isinstance(label, datetime.timedelta) else label


def _microseconds(span: datetime.timedelta) -> int:
    return span // datetime.timedelta(microseconds=1)


def _numpy_key(label: Any) -> Any:
    unit, step = np.datetime_data(label.dtype)
    count = int(label.view(np.int64)) * step
    is_date = isinstance(label, np.datetime64)
    if unit in ("Y", "M"):
        months = count * (12 if unit == "Y" else 1)
        return Instant(_days(months) * ATTOSECONDS["D"]) if is_date else Months(months)
    if unit not in ATTOSECONDS:  # a span that has no unit is a number
        return count
    return (Instant if is_date else Span)(count * ATTOSECONDS[unit])


def _days(months: int) -> int:
    """Return the days from 1970 to the first of the month that is ``months`` after January 1970 (Gregorian)."""
    years, march_based = divmod(1970 * 12 + months - 2, 12)  # years that begin in March end with the leap day
    return 365 * years + years // 4 - years // 100 + years // 400 + (153 * march_based + 2) // 5 - 719468


def label_list(labels: Any) -> list[Any]:
    """Return labels as a list of objects: dates of an array as NumPy's, everything else as Python's."""
    dtype = getattr(labels, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in "mM":
        return list(np.asarray(labels))
    return list(labels.tolist() if hasattr(labels, "tolist") else labels)


def python_labels(labels: NDArray[Any]) -> list[Any]:
    """Return the labels of an array as Python's objects, but dates as NumPy's where Python has none such: nanoseconds."""
    listed: list[Any] = labels.tolist()
    return listed if labels.dtype.kind not in "mM" or holds(labels, listed) else label_list(labels)


def label_keys(labels: Any) -> list[Any]:
    """Return the `label_key` of each label."""
    return [label_key(label) for label in label_list(labels)]


def holds(array: NDArray[Any], labels: Iterable[Any]) -> bool:
    """Whether an array has the labels just as they are: none turned into text or cut short, no digit lost."""
    given = list(labels)
    if array.dtype.kind not in "mM" and array.tolist() == given:
        return True
    return all(a == b or a != a for a, b in zip(label_keys(array), map(label_key, given), strict=True))


def joined_labels(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the labels of several arrays as one array, of objects where floating numbers would not hold some integers."""
    whole = np.concatenate(parts)
    if whole.dtype.kind == "f" and any(part.dtype.kind in "iu" for part in parts):
        most = 2 ** (np.finfo(whole.dtype).nmant + 1)
        integers = [part for part in parts if part.dtype.kind in "iu"]
        if any(int(part.min(initial=0)) < -most or int(part.max(initial=0)) > most for part in integers):
            return np.concatenate([part.astype(object) for part in parts])
    return whole


def distinct(labels: Iterable[Hashable]) -> list[Any]:
    """Return the labels that differ; of equal ones the first."""
    label_of: dict[Any, Any] = {}
    for label in dict.fromkeys(labels):
        label_of.setdefault(label_key(label), label)
    return list(label_of.values())


def ordered(labels: Iterable[Hashable], name: str) -> list[Any]:
    """Return the distinct labels in their order; of equal ones the first.

    Raises
    ------
    TypeError
        If they cannot be ordered. Sets can be compared, but not ordered.
    """
    rows = list(labels)
    try:
        label_of = {label_key(label): label for label in distinct(rows)}
        keys = sorted(label_of)
        if not all(a < b for a, b in pairwise(keys)):
            raise TypeError("some are neither greater nor less than others")
    except TypeError as error:
        types = sorted({type(label).__name__ for label in rows})
        raise TypeError(f"labels in {name} must be of one type that can be ordered, got {', '.join(types)}: {error}") from error
    return [label_of[key] for key in keys]

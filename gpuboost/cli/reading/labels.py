"""Labels of a file as numbers of known classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.label_values import label_key, label_list

TRUTHS = ("true", "false")


def finder(classes: Sequence[Any]) -> Callable[[Any], int]:
    """Return what finds the position of a label among classes; -1 if it is none of them.

    Labels are compared by value, and if the one is text and the other is not, by what is written: files of text have no types.
    True and False are then written in upper or lower case, unless the classes themselves tell these apart.
    """
    by_value = {label_key(label): k for k, label in enumerate(classes)}
    by_text = {str(label): k for k, label in enumerate(classes)}
    spellings = Counter(text.lower() for text in by_text)
    by_truth = {text.lower(): k for text, k in by_text.items() if text.lower() in TRUTHS and spellings[text.lower()] == 1}
    text_classes = all(isinstance(label, str) for label in classes)

    def find(label: Any) -> int:
        k = by_value.get(label_key(label), -1)
        if k < 0 and isinstance(label, str) != text_classes:
            k = by_text.get(str(label), by_truth.get(str(label).lower(), -1))
        return k

    return find


def class_numbers(labels: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.int64]:
    """Return the positions of labels among classes, shape (n_rows,); -1 for one that is none of them, see `finder`."""
    distinct, number = np.unique(labels, return_inverse=True)
    return np.array([*map(finder(classes), label_list(distinct))], np.int64)[number]


def by_label(values: Mapping[Any, Any], classes: Sequence[Any]) -> dict[Any, Any]:
    """Return a dictionary with the classes for the keys that mean them: those of a file are text.

    Raises
    ------
    ValueError
        If two keys mean the same class.
    """
    find = finder(classes)
    key_of: dict[Any, Any] = {}
    for key in values:
        label = classes[k] if (k := find(key)) >= 0 else key
        if label in key_of:
            raise ValueError(f"the keys {key_of[label]!r} and {key!r} both mean the class {label!r}; give one of them")
        key_of[label] = key
    return {label: values[key] for label, key in key_of.items()}


def known_numbers(labels: NDArray[Any], classes: Sequence[Any], where: str, warn: Callable[[str], None]) -> NDArray[np.int64]:
    """As `class_numbers`, with a warning of labels that are none of the classes, and a ValueError if no label is one."""
    numbers = class_numbers(labels, classes)
    if (numbers < 0).all():
        refuse_unknown(labels, numbers, classes, where)
    if (unknown := numbers < 0).any():
        shown = ", ".join(sorted({str(label) for label in labels[unknown].tolist()})[:10])
        warn(f"{int(unknown.sum())} rows have labels that the model does not know; they count as errors: {shown}")
    return numbers


def refuse_unknown(labels: NDArray[Any], numbers: NDArray[np.int64], classes: Sequence[Any], where: str) -> None:
    """Raise a ValueError if there is a label that is no class of the training data."""
    unknown = numbers < 0
    if unknown.any():
        row = int(unknown.argmax())
        first = label_list(labels[row : row + 1])[0]
        shown = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
        raise ValueError(
            f"{where} has labels that the training data lack in {int(unknown.sum())} rows, first {first!r} in row {row + 1} of "
            f"the data; the classes are {shown}: remove these rows, or train on some of them"
        )

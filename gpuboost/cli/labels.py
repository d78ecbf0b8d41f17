"""Labels of a file as numbers of known classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.label_values import label_key, label_list


def class_numbers(labels: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.int64]:
    """Return the positions of labels among classes, shape (n_rows,); -1 for one that is none of them.

    Labels are compared by value, and if the one is text and the other is not, by what is written: files of text have no types.
    """
    distinct, number = np.unique(labels, return_inverse=True)
    by_value = {label_key(label): k for k, label in enumerate(classes)}
    by_text = {str(label): k for k, label in enumerate(classes)}
    text_classes = all(isinstance(label, str) for label in classes)
    found = []
    for label in label_list(distinct):
        k = by_value.get(label_key(label), -1)
        if k < 0 and isinstance(label, str) != text_classes:
            k = by_text.get(str(label), by_text.get(str(label).capitalize(), -1))  # true, false
        found.append(k)
    return np.array(found, np.int64)[number]


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

"""The one encoder that every y goes through: training labels, evaluation sets, scores.

What comes in may be a list, an array, a series or a data frame; inside, classes are numbered in the order of their labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.inputs.arrays import to_host
from gpuboost.inputs.containers import frame_columns, frame_names, is_missing, package, to_numpy
from gpuboost.inputs.label_values import holds, label_key, label_keys, label_list, ordered
from gpuboost.messages import warn
from gpuboost.peers.base import ALONE, Peers, agree
from gpuboost.peers.labels import united


@dataclass(frozen=True)
class LabelEncoder:
    """Class labels and their numbers.

    Attributes
    ----------
    classes : ndarray, shape (n_classes,)
        The sorted labels in the dtype of y; the column numbers for a multi-label problem.
    multi_label : bool
        Whether targets are rows of 0 and 1 instead of class numbers.
    """

    classes: NDArray[Any]
    multi_label: bool

    @classmethod
    def fit(cls, labels: NDArray[Any], name: str = "y", peers: Peers = ALONE) -> LabelEncoder:
        """Find the classes of ``labels``, from `label_array`, and of those of the other workers."""
        if labels.ndim == 2:
            return cls(np.arange(labels.shape[1]), True)
        distinct = united(distinct_labels(labels, name)[0], name, peers)
        agree(peers, f"classes of {name}", str(distinct.dtype), *map(repr, label_list(distinct)))
        return cls.of_distinct(distinct, int(peers.sum(np.array([len(labels)]), "number of labels")[0]))

    @classmethod
    def of_distinct(cls, distinct: NDArray[Any], n_labels: int) -> LabelEncoder:
        """Return the encoder of the sorted labels that ``n_labels`` rows have."""
        _refuse_regression(distinct, n_labels)
        return cls(distinct, False)

    def encode(self, labels: NDArray[Any], name: str = "y", *, unknown_ok: bool = False) -> NDArray[Any]:
        """Return the class numbers (n_rows,) of ``labels``, int64, or the multi-label targets (n_rows, n_classes), bool.

        Labels are compared by value: 1, 1.0 and True are the same label, and so are equal instants of any unit.

        Raises
        ------
        ValueError
            If there is another number of columns than during fit, or a label that is no class. With ``unknown_ok=True``
            such a label gets the number -1.
        """
        if labels.ndim != 1 + self.multi_label or (self.multi_label and labels.shape[1] != len(self.classes)):
            expected = f"an indicator matrix of {len(self.classes)} columns" if self.multi_label else "one label a row"
            raise ValueError(f"{name} must be {expected}, as in training, got shape {labels.shape}")
        if self.multi_label:
            return labels
        found, number = distinct_labels(labels, name)
        class_of = self._numbers()
        renumbered = np.array([class_of.get(key, -1) for key in label_keys(found)], np.int64)
        if not unknown_ok and (renumbered < 0).any():
            label = label_list(found[renumbered < 0])[0]
            raise ValueError(f"{name} has the label {label!r}, which is no class of the training data: {shown(self.classes)}")
        return renumbered[number]

    def number(self, label: Any) -> int | None:
        """Return the number of the class that ``label`` is; None if it is no class, or nothing that could be one."""
        try:
            return self._numbers().get(label_key(label))
        except TypeError:  # not hashable
            return None

    def _numbers(self) -> dict[Any, int]:
        return {key: k for k, key in enumerate(label_keys(self.classes))}


def label_array(
    y: Any, n_rows: int, name: str = "y", rows: NDArray[np.intp] | None = None, *, beside: str = "rows of X"
) -> NDArray[Any]:
    """Return y as an array of labels (n_rows,), or of bool (n_rows, n_classes) if it is a 0/1 matrix of several columns.

    Parameters
    ----------
    y : array-like, series, data frame or device array
    n_rows : int
        How many labels there must be.
    name : str
        What messages call y.
    rows : ndarray, optional
        The rows to return; the others are not checked.
    beside : str
        What there must be one label for, in messages.

    Raises
    ------
    TypeError
        If y is sparse, of cuDF, or of a dtype that NumPy does not have.
    ValueError
        If a label is missing, infinite or complex, or y is neither 1-D nor an indicator matrix.
    """
    labels = raw_labels(y, n_rows, name, beside)
    labels = labels if rows is None else labels[rows]
    _refuse_missing(labels, name)
    if labels.ndim == 1:
        return labels if labels.dtype.isnative else labels.astype(labels.dtype.newbyteorder("="))
    return _indicators(labels, name)


def class_array(classes: Any) -> NDArray[Any]:
    """Return the labels that a caller names for the classes, shape (n_classes,).

    Raises
    ------
    TypeError
        If they cannot be counted.
    ValueError
        If they are not what `label_array` takes, or not one label a class.
    """
    try:
        n_classes = len(classes)
    except TypeError:
        received = f"the {type(classes).__name__} {classes!r:.80}"
        raise TypeError(f"classes must be an array or a list of the labels of all classes, got {received}") from None
    labels = label_array(classes, n_classes, "classes", beside="classes")
    if labels.ndim != 1:
        raise ValueError(f"classes must be one label for each class, got the shape {labels.shape}")
    return labels


def raw_labels(y: Any, n_rows: int, name: str, beside: str = "rows of X") -> NDArray[Any]:
    """Return y as an array of a valid shape for `label_array`; the labels themselves are not checked."""
    labels = _column_of_one(_to_array(y, name))
    if labels.ndim not in (1, 2) or labels.shape[1:] == (0,):
        received = labels.shape or f"the {type(y).__name__} {y!r:.80}"
        raise ValueError(f"{name} must have the shape (n_rows,) or (n_rows, n_classes), got {received}")
    if len(labels) != n_rows:
        raise ValueError(f"{name} must have one entry for each of the {n_rows} {beside}, got {len(labels)}")
    if labels.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {labels.dtype}")
    return labels


def shown(classes: NDArray[Any]) -> str:
    """Return a short text for a list of labels."""
    texts = [repr(label) for label in label_list(classes[:10])]
    return f"[{', '.join(texts)}{', ...' if len(classes) > 10 else ''}]"


def _to_array(y: Any, name: str) -> NDArray[Any]:
    """Return y in an array of its own kind of dtype: nothing is turned into text, no digit is lost."""
    if y is None:
        raise ValueError(f"this classifier requires {name} to be passed, but the target {name} is None")
    y = to_host(y, name)
    if frame_names(y) is not None:
        columns = [to_numpy(column) for column in frame_columns(y)]
        return np.stack(columns, axis=1) if columns else np.empty((len(y), 0))
    if package(y):
        return to_numpy(y)
    if hasattr(y, "toarray"):
        raise TypeError(f"{name} is sparse, but dense labels are required; use {name}.toarray()")
    if np.ma.is_masked(y):
        labels = np.ma.getdata(y).astype(object)
        labels[np.ma.getmaskarray(y)] = None
        return labels
    try:
        labels = np.asarray(y)
    except ValueError as error:
        raise ValueError(f"{name} must have the shape (n_rows,) or (n_rows, n_classes): {error}") from error
    if hasattr(y, "__array__") or labels.ndim != 1:
        return labels
    # NumPy turns the list [1, "a"] into text, [None, "a"] too, and large integers into floats; it drops NULs behind a text.
    return labels if labels.dtype.kind == "O" or holds(labels, y) else np.fromiter(y, dtype=object, count=len(labels))


def _column_of_one(labels: NDArray[Any]) -> NDArray[Any]:
    """Ravel a matrix of one column, as scikit-learn does, with its warning."""
    if labels.ndim != 2 or labels.shape[1] != 1:
        return labels
    from sklearn.exceptions import DataConversionWarning

    message = "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,)."
    warn(message, DataConversionWarning)
    return labels[:, 0]


def _refuse_missing(labels: NDArray[Any], name: str) -> None:
    kind = labels.dtype.kind
    if kind == "f":
        missing = np.isnan(labels)
        if not missing.any() and np.isinf(labels).any():
            raise ValueError(f"Input {name} contains infinity, which is no class label")
    elif kind in "mM":
        missing = np.isnat(labels)
    elif kind in "OT":
        missing = np.array([is_missing(label) for label in labels.ravel().tolist()], bool).reshape(labels.shape)
    else:
        return
    if missing.any():
        count = f"{int(missing.sum())} of its {missing.size} entries"
        raise ValueError(f"missing value in {name}: {count} are NaN, None, NA or masked")


def _indicators(labels: NDArray[Any], name: str) -> NDArray[np.bool_]:
    """Return an indicator matrix as bool; refuse anything but 0 and 1."""
    is_one = np.asarray(labels == 1, dtype=bool)
    other = np.argwhere(~(is_one | np.asarray(labels == 0, dtype=bool)))
    if other.size:
        row, column = (int(i) for i in other[0])
        raise ValueError(
            f"Unknown label type: a {name} of several columns must be an indicator matrix of 0 and 1 (multi-label), "
            f"got {labels[row].tolist()[column]!r} in column {column}"
        )
    return is_one


def _refuse_regression(distinct: NDArray[Any], n_labels: int) -> None:
    """Raise scikit-learn's error for a continuous target: fractions, most of which stand only once."""
    if distinct.dtype.kind == "f" and (distinct != np.trunc(distinct)).any() and 2 * len(distinct) > n_labels:
        from sklearn.utils.multiclass import check_classification_targets

        check_classification_targets(distinct)


def distinct_labels(labels: NDArray[Any], name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the sorted distinct labels, and the position of every row's label among them."""
    if labels.dtype.kind != "O":
        distinct, number = np.unique(labels, return_inverse=True)
        return distinct, number.astype(np.int64, copy=False)
    rows = labels.tolist()
    distinct = object_array(ordered(rows, name))
    number_of = {key: k for k, key in enumerate(label_keys(distinct))}
    class_of = {label: number_of[label_key(label)] for label in dict.fromkeys(rows)}
    return distinct, np.array([class_of[label] for label in rows], np.int64)


def object_array(labels: list[Any]) -> NDArray[Any]:
    """Return a list as an array of objects, one for each label, whatever it is."""
    objects = np.empty(len(labels), object)
    for k, label in enumerate(labels):
        objects[k] = label
    return objects

"""A labelled data set with its original split, and how it is read from a file."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Dataset", "read_dataset"]

SPLIT_KEYS = ("X_train", "y_train", "X_test", "y_test")


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A labelled data set; the training rows come first where there is an original split.

    Attributes
    ----------
    name : str
    X : ndarray, shape (n_samples, n_features)
        Features; NaN is missing. The type is the smallest that holds the values, such as uint8 for pixels.
    y : ndarray of int, shape (n_samples,)
        Labels from 0 on, which index `class_names` where there are names.
    n_train : int or None
        How many of the first rows are for training; None if the set has no original split.
    class_names : tuple of str
    categorical : tuple of int
        Columns whose numbers are codes of categories, in no particular order.
    """

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    n_train: int | None = None
    class_names: tuple[str, ...] = ()
    categorical: tuple[int, ...] = ()

    def __repr__(self) -> str:
        split = "" if self.n_train is None else f", the first {self.n_train} to train on"
        return f"Dataset({self.name!r}, {len(self.y)} rows{split}, {self.X.shape[1]} features, {self.n_classes} classes)"

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names) or int(self.y.max()) + 1

    @property
    def X_train(self) -> NDArray[Any]:
        """Features of the training rows (a view); ValueError if there is no original split."""
        return self.X[: self._split()]

    @property
    def y_train(self) -> NDArray[Any]:
        """Labels of the training rows (a view); ValueError if there is no original split."""
        return self.y[: self._split()]

    @property
    def X_test(self) -> NDArray[Any]:
        """Features of the test rows (a view); ValueError if there is no original split."""
        return self.X[self._split() :]

    @property
    def y_test(self) -> NDArray[Any]:
        """Labels of the test rows (a view); ValueError if there is no original split."""
        return self.y[self._split() :]

    def _split(self) -> int:
        if self.n_train is None:
            raise ValueError(
                f"{self.name} has no original split: divide X and y, for example by sklearn.model_selection.train_test_split"
            )
        return self.n_train


def read_dataset(path: str | os.PathLike[str]) -> Dataset:
    """Read a data set from a ``.npz`` file, as `numpy.savez_compressed` writes it.

    The file holds ``X_train, y_train, X_test, y_test``, or ``X, y`` for a set without an original split, labels from 0
    on, and perhaps ``meta``, a JSON object in a string, of which these are used if they are there and not null:

    ``scale``
        a number that X is multiplied by
    ``missing_code``
        the value of X that stands for a missing one; it becomes NaN, and X float32 or float64
    ``classes``
        names of the classes
    ``categorical_columns``
        columns whose numbers are codes of categories

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Dataset
        Its name is that of the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not such a file.
    """
    path = Path(path)
    try:
        with np.load(path) as z:
            arrays = {key: z[key] for key in (*SPLIT_KEYS, "X", "y", "meta") if key in z}
            keys = sorted(z.files)
        meta = json.loads(str(arrays["meta"])) if "meta" in arrays else {}
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:  # a TypeError for a .npy file
        raise ValueError(f"{path} cannot be read as a .npz file: {error}") from error
    if set(SPLIT_KEYS) <= arrays.keys():
        n_train: int | None = len(arrays["y_train"])
        X, y = (np.concatenate([arrays[f"{name}_train"], arrays[f"{name}_test"]]) for name in "Xy")
    elif {"X", "y"} <= arrays.keys():
        n_train, X, y = None, arrays["X"], arrays["y"]
    else:
        raise ValueError(f"{path} must hold {', '.join(SPLIT_KEYS)}, or X, y; it holds {', '.join(keys)}")
    check_meta(path, meta)
    if X.ndim != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"{path}: X must be a matrix and y as long, got the shapes {X.shape} and {y.shape}")
    if meta.get("missing_code") is not None:
        X = np.where(np.equal(X, meta["missing_code"]), np.float32(np.nan), X)
    if meta.get("scale") is not None:
        X = X * meta["scale"]
    return Dataset(path.stem, X, y, n_train, tuple(meta.get("classes") or ()), tuple(meta.get("categorical_columns") or ()))


def check_meta(path: Path, meta: Any) -> None:
    """Raise a ValueError if what stands in ``meta`` is not what `read_dataset` knows."""
    if not isinstance(meta, dict):
        raise ValueError(f"{path}: meta must be a JSON object in a string, got {meta!r:.60}")
    kinds: dict[str, Any] = {"scale": (int, float), "missing_code": (int, float), "classes": list, "categorical_columns": list}
    for name, kind in kinds.items():
        value = meta.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise ValueError(f"{path}: {name!r} in meta must be a {'list' if kind is list else 'number'}, got {value!r:.60}")


def fingerprint(X: ArrayLike, y: ArrayLike) -> str:
    """Return 16 hexadecimal digits that depend on the rows and their type, but not on the order of the rows."""
    X, y = np.asarray(X), np.asarray(y, np.uint8)
    rows = np.empty((len(y), X.shape[1] * X.dtype.itemsize + 1), np.uint8)
    rows[:, :-1] = np.ascontiguousarray(X, X.dtype.newbyteorder("<")).view(np.uint8)
    rows[:, -1] = y
    ordered = np.sort(rows.view(f"S{rows.shape[1]}").ravel())
    return hashlib.sha256(ordered.tobytes()).hexdigest()[:16]

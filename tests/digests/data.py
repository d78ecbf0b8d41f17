"""Labelled sets that no release of NumPy and no libm can change: raw integers of PCG64, and quarters of integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """A training set, and the rows that may be watched during training, half as many."""

    X: Any
    y: NDArray[Any]
    X_watched: Any
    y_watched: NDArray[Any]


def integers(seed: int, stream: int, *shape: int) -> Integers:
    """Integers from 0 to 2**32 - 1."""
    raw: Any = np.random.PCG64([seed, stream]).random_raw(math.prod(shape))
    return (raw >> np.uint64(32)).astype(np.int64).reshape(shape)


def clouds(seed: int, n_rows: int, n_features: int, n_classes: int, noise: int = 12, wrong: int = 8) -> Data:
    """Noisy clouds around random centres; every ``wrong``-th label is drawn anew. The first rows show every class."""
    n = n_rows + n_rows // 2
    labels = np.concatenate([np.arange(n_classes), integers(seed, 0, n - n_classes) % n_classes])
    centres = integers(seed, 1, n_classes, n_features) % 12
    distances = integers(seed, 2, n, n_features) % noise + integers(seed, 3, n, n_features) % noise
    X = (centres[labels] + distances) / 4
    drawn = integers(seed, 4, n) % wrong == 0
    drawn[:n_classes] = False
    y = np.where(drawn, integers(seed, 5, n) % n_classes, labels)
    return split(X, y, n_rows)


def split(X: NDArray[Any], y: NDArray[Any], n_rows: int) -> Data:
    return Data(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def mapped(data: Data, change: Callable[[NDArray[Any]], Any]) -> Data:
    """The same rows, each of the two matrices changed."""
    return replace(data, X=change(data.X), X_watched=change(data.X_watched))


def relabelled(data: Data, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Data:
    return replace(data, y=change(data.y), y_watched=change(data.y_watched))


def with_missing(X: NDArray[Any]) -> NDArray[Any]:
    """Every seventh number is missing, in all columns but the first; the last column has nothing else."""
    X = X.copy()
    X[:, 1:][integers(71, len(X), len(X), X.shape[1] - 1) % 7 == 0] = np.nan
    return np.column_stack([X, np.full(len(X), np.nan)])


def with_constants(X: NDArray[Any]) -> NDArray[Any]:
    """Columns of one number before, between and after the others; the last has one number or none."""
    constant = np.full(len(X), 2.5)
    half = np.where(integers(72, len(X), len(X)) % 2 == 0, 1.0, np.nan)
    return np.column_stack([constant, X[:, :2], constant, X[:, 2:], constant, half])


def with_infinities(X: NDArray[Any]) -> NDArray[Any]:
    """Infinities of both signs, and zeros of both."""
    X, kind = X - 4, integers(73, len(X), *X.shape) % 16
    for number, value in enumerate((np.inf, -np.inf, 0.0, -0.0)):
        X[kind == number] = value
    return X


def as_frame(X: NDArray[Any]) -> Any:
    """A data frame with names, whose last column holds integers."""
    import pandas as pd

    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    return frame.astype({frame.columns[-1]: np.int32})


def indicators(y: NDArray[Any]) -> NDArray[Any]:
    """Four labels that go together; some rows have none, some all."""
    drawn = integers(74, len(y), len(y)) % 8
    return np.stack([y == 0, y > 1, (y == 2) | (drawn == 1), drawn == 2], axis=1) * np.where(drawn == 3, 0, 1)[:, None]


def named(y: NDArray[Any]) -> NDArray[Any]:
    """Texts, whose order is not that of the numbers."""
    return np.array(["ham", "eggs", "späm", "bread", "tea"])[y]


def rare(y: NDArray[Any]) -> NDArray[Any]:
    """Nearly all rows are of class 0."""
    return np.where(np.arange(len(y)) % 5 < 4, 0, y)


def halves(n_rows: int) -> Data:
    """Column 0 tells classes 0 and 1 apart and halves class 2, whose edge is then exactly 0. Column 1 cuts both halves."""
    i = np.arange(n_rows + n_rows // 2)
    y = np.where(i // 2 % 2 == 0, i % 2, 2)
    X = np.stack([i % 2, (y == 2) ^ (i % 2 == 1) ^ (i // 4 % 8 == 0), i // 32 % 3], axis=1)
    return split(X.astype(np.float64), y, n_rows)


DATA: dict[str, Callable[[], Data]] = {
    "two": lambda: clouds(1, 100, 4, 2),
    "three": lambda: clouds(2, 120, 5, 3),
    "five": lambda: clouds(3, 150, 6, 5),
    "eight": lambda: clouds(4, 150, 5, 8),
    "nine": lambda: clouds(5, 160, 5, 9),
    "seventeen": lambda: clouds(6, 200, 5, 17),
    "thirty-three": lambda: clouds(7, 240, 4, 33, noise=6),
    "texts": lambda: relabelled(clouds(8, 140, 5, 5), named),
    "four, missing": lambda: mapped(clouds(9, 140, 5, 4), with_missing),
    "texts, missing": lambda: relabelled(mapped(clouds(10, 140, 5, 5), with_missing), named),
    "constants": lambda: mapped(clouds(11, 120, 4, 3), with_constants),
    "infinities": lambda: mapped(clouds(12, 120, 4, 3), with_infinities),
    "ties": lambda: mapped(clouds(13, 160, 6, 4), lambda X: np.floor(X / 2)),
    "halves": lambda: halves(96),
    "equal columns": lambda: mapped(clouds(14, 120, 3, 3), lambda X: np.column_stack([X, X, -X])),
    "fine": lambda: clouds(15, 400, 2, 3, noise=4096),
    "wide": lambda: clouds(16, 60, 70, 4, noise=4),
    "one feature": lambda: clouds(17, 100, 1, 3),
    "separable": lambda: clouds(18, 90, 3, 3, noise=1, wrong=1 << 32),
    "rare": lambda: relabelled(clouds(19, 160, 5, 3), rare),
    "float32": lambda: mapped(clouds(20, 120, 5, 3), lambda X: X.astype(np.float32)),
    "int8": lambda: mapped(clouds(21, 120, 5, 3), lambda X: (4 * X - 16).astype(np.int8)),
    "data frame": lambda: mapped(clouds(27, 120, 4, 3), as_frame),
    "multi-label": lambda: relabelled(clouds(22, 120, 5, 3), indicators),
    "nothing": lambda: mapped(clouds(23, 60, 3, 3), np.zeros_like),
    "nothing, multi-label": lambda: relabelled(mapped(clouds(24, 60, 3, 3), np.zeros_like), indicators),
    "one class": lambda: relabelled(clouds(25, 60, 3, 2), np.zeros_like),
    "long": lambda: clouds(26, 400, 6, 5),
}

WEIGHTS: dict[str, Callable[[int], NDArray[Any]]] = {
    "integer": lambda n: 1 + integers(81, 0, n) % 4,
    "real": lambda n: (1 + integers(82, 0, n) % 1023) / 1024,
    "zero": lambda n: integers(83, 0, n) % 3,
    "far apart": lambda n: np.ldexp(1.0 + integers(84, 0, n) % 3, (integers(84, 1, n) % 25 - 12).astype(np.int32)),
}
"""Weights of n rows by name."""

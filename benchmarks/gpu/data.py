"""The problems that are measured: MNIST and Covertype, from files where there are some, else made with the same shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gpu.step import Step

TINY_ROWS = 160
TINY_COLUMNS = 18


@dataclass(frozen=True)
class Set:
    """A labelled set.

    Attributes
    ----------
    name, origin : str
    X, y : ndarray
        Training rows, and labels from 0 on.
    X_test, y_test : ndarray
    targets : tuple of float
        Test errors to reach.
    """

    name: str
    origin: str
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    targets: tuple[float, ...]

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1


def made_mnist(n_rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Bytes of 784 pixels of ten classes, some four fifths of them 0, and 64 pixels always."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, n_rows).astype(np.uint8)
    is_inked = np.clip(rng.beta(0.5, 1.6, 784) + rng.normal(0, 0.12, (10, 784)), 0, 1).astype(np.float32)
    is_inked[:, rng.permutation(784)[:64]] = 0
    X = rng.integers(1, 256, (n_rows, 784), np.uint8)
    X[rng.random((n_rows, 784), np.float32) >= is_inked[y]] = 0
    return X, y


def made_covtype(n_rows: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Ten columns of measurements and 44 indicators, of 4 areas and 40 soils; seven classes of very unequal size."""
    rng = np.random.default_rng(0)
    y = rng.choice(7, n_rows, p=[0.365, 0.488, 0.061, 0.005, 0.016, 0.03, 0.035]).astype(np.uint8)
    X = np.zeros((n_rows, 54), np.int16, order="F")
    for column in range(10):
        X[:, column] = np.clip(rng.normal(1000, 250, n_rows) + rng.normal(0, 200, 7)[y], 0, 7000)
    rows = np.arange(n_rows)
    X[rows, 10 + (y + rng.geometric(0.6, n_rows)) % 4] = 1
    X[rows, 14 + (5 * y + rng.geometric(0.15, n_rows)) % 40] = 1
    return X, y


def mnist(step: Step) -> Set:
    path = step.data_dir / "mnist.npz" if step.data_dir else None
    targets = (0.05, 0.03, 0.02, 0.015)
    if path is not None and path.exists():
        with np.load(path) as z:
            return Set("mnist", "file", z["X_train"], z["y_train"], z["X_test"], z["y_test"], targets)
    n_rows = step.choose(60_000, TINY_ROWS)
    X, y = made_mnist(n_rows + n_rows // 6)
    return Set("mnist", "made", X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], targets)


def covtype(step: Step) -> Set:
    """Covertype with half of its rows to train on, by the file's ``abc_train_mask`` (packed bits) if it has one."""
    path = step.data_dir / "covtype.npz" if step.data_dir else None
    if path is not None and path.exists():
        with np.load(path) as z:
            X, y, origin = z["X"], z["y"], "file"
            mask = np.unpackbits(z["abc_train_mask"])[: len(y)] == 1 if "abc_train_mask" in z else np.arange(len(y)) % 2 == 0
    else:
        (X, y), origin = made_covtype(step.choose(581_012, 2 * TINY_ROWS)), "made"
        mask = np.arange(len(y)) % 2 == 0
    return Set("covtype", origin, X[mask], y[mask], X[~mask], y[~mask], (0.2, 0.15, 0.1, 0.06))


def tiny(one: Set) -> Set:
    """Return a few rows and columns of a set, those that differ most, with all classes among the training rows' labels."""
    columns = np.sort(np.argsort(-one.X[:TINY_ROWS].std(axis=0), kind="stable")[:TINY_COLUMNS])
    X, y = one.X[:TINY_ROWS, columns], one.y[:TINY_ROWS]
    y = np.unique(y, return_inverse=True)[1]
    X_test, y_test = one.X_test[:TINY_ROWS, columns], one.y_test[:TINY_ROWS] % (int(y.max()) + 1)
    return replace(one, X=np.ascontiguousarray(X), y=y, X_test=np.ascontiguousarray(X_test), y_test=y_test)


SETS: dict[str, Callable[[Step], Set]] = {"mnist": mnist, "covtype": covtype}


def load(step: Step, name: str) -> Set:
    """Return a set by its name, cut down in a dry run."""
    one = SETS[name](step)
    return tiny(one) if step.dry_run else one


def whole(one: Set) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the rows of the shape that the problem is known for: MNIST's training rows, all rows of Covertype."""
    if one.name == "mnist":
        return one.X, one.y
    return np.concatenate([one.X, one.X_test]), np.concatenate([one.y, one.y_test])


def head(one: Set, n_rows: int) -> Set:
    """Return some rows of a set."""
    rows = np.random.default_rng(0).permutation(len(one.y))[:n_rows]
    return replace(one, X=one.X[rows], y=one.y[rows], targets=())


def with_classes(X: NDArray[Any], n_classes: int) -> NDArray[np.int64]:
    """Return labels of so many classes of equal size that trees can learn: ranks of a noisy combination of some columns."""
    rng = np.random.default_rng(n_classes)
    spread = X[:1000].std(axis=0)
    columns = np.argsort(-spread, kind="stable")[:12]
    value = (X[:, columns] / np.maximum(spread[columns], 1e-9)) @ rng.normal(size=len(columns))
    value = np.sin(value) + 0.3 * rng.normal(size=len(X))
    return np.argsort(np.argsort(value, kind="stable")) * n_classes // len(X)

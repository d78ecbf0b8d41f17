"""The data of the FilterBoost paper (its appendix), and rows like Covertype's without end."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpuboost.datasets import fetch_covtype, fetch_uci, make_majority, make_twonorm, read_dataset
from gpuboost.streams import Batch

N_TEST = 50_000
FOLDS = 10


class Split(NamedTuple):
    """Rows to train and to test on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@cache
def adult(data_dir: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the 45,222 rows that lack nothing."""
    data = fetch_uci("adult") if data_dir is None else read_dataset(data_dir / "adult.npz")
    X, y = np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    whole = (X >= 0).all(axis=1)
    return X[whole], y[whole].astype(np.int64)


@cache
def covertype(data_dir: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return all rows of Covertype, seven classes."""
    if data_dir is None:
        data = fetch_covtype()
        return np.concatenate([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
    with np.load(data_dir / "covtype.npz") as z:
        return np.ascontiguousarray(z["X"]), z["y"].astype(np.int64)


def covertype2(data_dir: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Return Covertype in two classes: the largest, and the six others."""
    X, y = covertype(data_dir)
    return X, (y == np.bincount(y).argmax()).astype(np.int64)


def fold(X: np.ndarray, y: np.ndarray, run: int) -> Split:
    """Return one of ten folds as the test rows, and the others; another ten from run 10 on."""
    order = np.random.default_rng(run // FOLDS).permutation(len(X))
    is_test = np.zeros(len(X), bool)
    is_test[order[run % FOLDS :: FOLDS]] = True
    return Split(X[~is_test], y[~is_test], X[is_test], y[is_test])


def drawn(make: Any, n_rows: int, run: int) -> Split:
    """Return new rows of a synthetic set."""
    X, y = make(n_rows + N_TEST, random_state=run)
    return Split(X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


SETS = ("majority", "majority500k", "twonorm", "adult", "covertype2")


def split_of(name: str, run: int, data_dir: Path | None) -> Split:
    """Return the rows of one run: new ones of synthetic sets, a fold of real ones."""
    if name == "adult":
        return fold(*adult(data_dir), run)
    if name == "covertype2":
        return fold(*covertype2(data_dir), run)
    if name == "twonorm":
        return drawn(make_twonorm, 10_000, run)
    return drawn(make_majority, {"majority": 10_000, "majority500k": 500_000}[name], run)


class ForestRows:
    """Made rows like Covertype's: 10 whole numbers, and 44 flags of which two are set. A source, see `gpuboost.streams`.

    Row r depends on the seed and r only. The class is a rule on eight of the columns, and for a tenth of the rows any class.

    Parameters
    ----------
    n_rows : int
    n_classes : int, default 2
        2 to 7.
    seed : int, default 0
    """

    n_features = 54
    feature_names = None
    repeatable = True
    block = 8192

    def __init__(self, n_rows: int, n_classes: int = 2, seed: int = 0) -> None:
        self.n_rows, self.n_classes, self.seed = n_rows, n_classes, seed

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on."""
        for number in range(first_row // self.block, -(-self.n_rows // self.block)):
            start = number * self.block
            X, y = self.rows_of(number)
            lo, hi = max(0, first_row - start), min(self.block, self.n_rows - start)
            yield Batch(X[lo:hi], y[lo:hi])

    def rows_of(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Return a block of rows."""
        n, rng = self.block, np.random.Generator(np.random.SFC64([self.seed, number]))
        X = np.zeros((n, 54), np.int16)
        u = rng.integers(0, 1 << 12, (n, 10), np.int16)
        X[:, :10] = u
        X[:, 0] = 1800 + (u[:, 0] >> 2) + (u[:, 1] >> 2)
        row, soil, area = np.arange(n), rng.integers(0, 40, n), rng.integers(0, 4, n)
        X[row, 10 + area] = X[row, 14 + soil] = 1
        height = (X[:, 0] - 2824) / 210.0 + 0.15 * (area - 1.5)
        near = np.hypot(u[:, 3] - 2048.0, 0.7 * (u[:, 4] - 2048.0)) / 1200 - 1
        ripple = np.sin(u[:, 2] / 400.0) * np.where(soil % 3 == 0, 1.5, 0.5) * np.sign(u[:, 5] - 1500)
        score = height + 0.8 * near + 0.7 * ripple
        bounds = {2: [0.0]}.get(self.n_classes, np.linspace(-1.5, 1.5, self.n_classes - 1))
        y = np.searchsorted(bounds, score)
        anything = rng.random(n) < 0.1
        y[anything] = rng.integers(0, self.n_classes, int(anything.sum()))
        return X, y

    def rows(self, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the first rows."""
        blocks = [self.rows_of(number) for number in range(-(-n_rows // self.block))]
        return np.concatenate([X for X, _ in blocks])[:n_rows], np.concatenate([y for _, y in blocks])[:n_rows]

"""The data sets of bench_probabilities.py and bench_early_exit.py, in a training and a test part."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from gpuboost.datasets import fetch_covtype, fetch_mnist, fetch_uci, make_poker_hands, read_dataset

SETS = ("pendigits", "satimage", "letter", "covtype", "poker25k", "mnist")
COVTYPE_ROWS = (30_000, 50_000)
POKER_ROWS = (25_010, 100_000)


class Split(NamedTuple):
    """Rows and labels."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_split(name: str, data_dir: str | None) -> Split:
    """Read ``data_dir/name.npz``, or download the set; of Covertype take some random rows."""
    if name not in SETS:
        raise SystemExit(f"the set {name} is none of {', '.join(SETS)}")
    if data_dir is not None:
        data = read_dataset(Path(data_dir) / f"{name}.npz")
    elif name == "poker25k":
        X, y = make_poker_hands(sum(POKER_ROWS), random_state=0)
        return Split(X[: POKER_ROWS[0]], y[: POKER_ROWS[0]], X[POKER_ROWS[0] :], y[POKER_ROWS[0] :])
    else:
        data = fetch_mnist() if name == "mnist" else fetch_covtype() if name == "covtype" else fetch_uci(name)
    if data.n_train is None:
        return random_rows(data.X, data.y)
    return Split(data.X_train, data.y_train, data.X_test, data.y_test)


def random_rows(X: np.ndarray, y: np.ndarray) -> Split:
    """Return some random rows for training, and others for the test."""
    n_train, n_test = COVTYPE_ROWS
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:n_train], order[n_train : n_train + n_test]
    return Split(X[train], y[train], X[test], y[test])

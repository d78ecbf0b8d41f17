"""Workers that hold their rows in blocks: never joined, let go once encoded, and the model of one process."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import gpuboost
from gpuboost.estimators.parts import fit_worker
from gpuboost.peers.base import Peers
from gpuboost.peers.local_rows import LocalRows
from gpuboost.peers.threads import run_workers
from gpuboost.persistence.model_file import to_bytes

RNG = np.random.default_rng(0)
X = RNG.integers(-9, 9, (90, 3)).astype(np.float64)
X[RNG.random(X.shape) < 0.1] = np.nan
Y = (np.nan_to_num(X[:, 0]) > 0).astype(int) + (RNG.random(90) < 0.3)
W = RNG.integers(1, 4, 90).astype(np.float64)
BOUNDS = (0, 1, 30, 45, 50, 70, 90)
OWNERS = (0, 1, 1, 0, 0, 1)
"""Which worker has each block."""
NAMES = ["a", "b", "c"]
KINDS: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": np.copy,
    "numpy, columns first": np.asfortranarray,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(dict(zip(NAMES, X.T, strict=True))),
    "pyarrow": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
}
FEW: dict[str, Any] = {"n_estimators": 3, "max_leaf_nodes": 4, "device": "numpy", "random_state": 0}


def blocks_of(rank: int, kind: Callable[[np.ndarray], Any], last: int = 90) -> LocalRows:
    """A worker's blocks of the first ``last`` rows."""
    own = [slice(low, min(high, last)) for low, high, owner in zip(BOUNDS, BOUNDS[1:], OWNERS, strict=False) if owner == rank]
    own = [rows for rows in own if rows.start < rows.stop]
    return LocalRows(
        [kind(X[rows]) for rows in own], [Y[rows] for rows in own], [W[rows] for rows in own], [r.start for r in own]
    )


def train(kind: Callable[[np.ndarray], Any], locals_of: list[LocalRows], **parameters: Any) -> list[bytes]:
    def work(peers: Peers) -> bytes:
        return fit_worker(gpuboost.AdaBoostMHClassifier(**FEW, **parameters), locals_of[peers.rank], peers)

    return list(run_workers(2, work))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_of_every_kind_make_the_model_of_one_process(kind: str) -> None:
    """The first worker alone has rows of the evaluation set."""
    made = KINDS[kind]
    locals_of = [
        LocalRows(one.X, one.y, one.sample_weight, one.first_rows, [blocks_of(rank, made, last=1)])
        for rank, one in ((rank, blocks_of(rank, made)) for rank in range(2))
    ]
    files = train(made, locals_of)
    whole = gpuboost.AdaBoostMHClassifier(**FEW).fit(made(X), Y, W, (made(X[:1]), Y[:1], W[:1]))
    assert files == [bytes(to_bytes(whole))] * 2
    assert all(one.X == one.evaluation[0].X == [] for one in locals_of)


def test_a_hold_out_is_of_the_same_blocks() -> None:
    files = train(np.copy, [blocks_of(rank, np.copy) for rank in range(2)], early_stopping=True, class_weight="balanced")
    whole = gpuboost.AdaBoostMHClassifier(**FEW, early_stopping=True, class_weight="balanced").fit(X, Y, W)
    assert files == [bytes(to_bytes(whole))] * 2


def test_blocks_of_narrower_numbers_are_the_same_columns() -> None:
    """A block without missing values may be one of integers, as row groups of a file."""
    rows = np.nan_to_num(X)
    narrow = [rows[:40].astype(np.int8), rows[40:].astype(np.float32)]
    locals_of = [LocalRows([narrow[i]], [Y[low:high]], None, [low]) for i, (low, high) in enumerate([(0, 40), (40, 90)])]
    whole = gpuboost.AdaBoostMHClassifier(**FEW).fit(rows, Y)
    assert train(np.copy, locals_of) == [bytes(to_bytes(whole))] * 2
    both = [LocalRows(narrow, [Y[:40], Y[40:]], None, [0, 40]), LocalRows([rows[:1]], [Y[:1]], None, [90])]
    whole = gpuboost.AdaBoostMHClassifier(**FEW).fit(np.concatenate([rows, rows[:1]]), np.append(Y, Y[0]))
    assert train(np.copy, both) == [bytes(to_bytes(whole))] * 2


@pytest.mark.parametrize("early_stopping", [False, True])
def test_no_block_is_kept_while_trees_grow(early_stopping: bool) -> None:
    locals_of = [blocks_of(rank, np.copy) for rank in range(2)]
    blocks = [weakref.ref(block) for one in locals_of for block in one.X]
    assert all(block() is not None for block in blocks)
    kept: list[int] = []

    def look(progress: Any) -> None:
        kept.append(sum(block() is not None for block in blocks))

    train(np.copy, locals_of, callbacks=[look], early_stopping=early_stopping)
    assert kept[-1] == 0  # in the first round the other worker may not be as far


def test_a_column_that_is_no_number_is_named() -> None:
    odd = [blocks_of(rank, KINDS["pandas"]) for rank in range(2)]
    odd[1].X[1]["b"] = "text"
    with pytest.raises(ValueError, match="column 'b' of X holds"):
        train(KINDS["pandas"], odd)


def test_one_worker_has_blocks_too() -> None:
    local = LocalRows([X[:20].copy(), X[20:].copy()], [Y[:20], Y[20:]], None, [0, 20])
    files = run_workers(1, lambda peers: fit_worker(gpuboost.AdaBoostMHClassifier(**FEW), local, peers))
    assert files == [bytes(to_bytes(gpuboost.AdaBoostMHClassifier(**FEW).fit(X, Y)))]

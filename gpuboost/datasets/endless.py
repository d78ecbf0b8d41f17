"""Rows that are made, each from its number: any of them at once, and without end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.streams.contract import Batch

BATCH_ROWS = 4096


class EndlessRows(ABC):
    """A stream whose row r depends on the seed and r only: a source, see `gpuboost.streams`.

    Attributes
    ----------
    n_features : int
    seed : int
    """

    feature_names = None
    n_rows = None
    repeatable = True

    def __init__(self, n_features: int, n_words: int, seed: int | None, kind: int) -> None:
        """Take ``n_words`` raw words of 64 bits a row. ``kind`` keeps streams of one seed apart."""
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
            raise ValueError(f"random_state must be None or an integer of at least 0, got {seed!r}")
        self.n_features = n_features
        self.seed = int(np.random.SeedSequence().generate_state(1, np.uint64)[0]) if seed is None else int(seed)
        self._blocks = -(-n_words // 4)  # Philox makes four words from one number
        self._key = np.random.SeedSequence((kind, self.seed)).generate_state(2, np.uint64)

    def rows(self, first_row: int, n_rows: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return X and y of some rows."""
        if isinstance(n_rows, bool) or not isinstance(n_rows, (int, np.integer)) or n_rows < 1:
            raise ValueError(f"n_rows must be an integer of at least 1, got {n_rows!r}")
        width = self._blocks * 4
        bits = np.random.Philox(key=self._key, counter=int(first_row) * self._blocks)
        sizes = [min(BATCH_ROWS, n_rows - done) for done in range(0, n_rows, BATCH_ROWS)]  # they stay in a core's cache
        parts = [self._made(bits.random_raw(size * width).reshape(size, width)) for size in sizes]
        return np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts])

    @abstractmethod
    def _made(self, words: NDArray[np.uint64]) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return X and y, made from a line of random words a row."""

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        """Give the rows from ``first_row`` on; it takes no time to get there."""
        while True:
            yield Batch(*self.rows(first_row, BATCH_ROWS))
            first_row += BATCH_ROWS

"""Rows whose place can be read from them, and sources of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpuboost.streams import Batch, ExampleReader, Source, Step


def rows(n: int, n_features: int = 3) -> tuple[Any, Any]:
    """X and y; column 0 of X is the number of the row."""
    X = np.random.default_rng(n).integers(0, 9, (n, n_features)).astype(np.float64)
    X[:, 0] = np.arange(n)
    return X, np.arange(n) * 7 % 3


def cut(X: Any, y: Any, sizes: list[int], weight: Any = None) -> list[Batch]:
    """Batches of these sizes, the last one again and again."""
    batches, start = [], 0
    while start < len(y):
        end = start + (sizes.pop(0) if len(sizes) > 1 else sizes[0])
        batches.append(Batch(X[start:end], y[start:end], None if weight is None else weight[start:end]))
        start = end
    return batches


def steps(source: Source, step_rows: int, recycle: bool = False, **options: Any) -> list[Step]:
    with ExampleReader(source, step_rows, recycle, **options) as reader:
        return list(reader)


def places(taken: list[Step]) -> list[tuple[int, int, int]]:
    return [(step.pass_number, step.first_row, len(step.y)) for step in taken]


def same(a: list[Step], b: list[Step]) -> bool:
    """Whether steps are equal to the last bit."""

    def content(step: Step) -> tuple[Any, ...]:
        weight = None if step.weight is None else step.weight.tolist()
        return step.pass_number, step.first_row, step.X.astype(np.float64).tolist(), step.y.tolist(), weight

    return list(map(content, a)) == list(map(content, b))


def given(source: Source, first_row: int = 0) -> Any:
    """X of all rows that a source gives from a row on."""
    return np.concatenate([np.asarray(batch.X, np.float64) for batch in source.batches(first_row)])


class Watched:
    """An endless source that counts the rows that were taken from it."""

    n_features = None
    feature_names = None
    n_rows: int | None = None
    repeatable = True

    def __init__(self, batch_rows: int) -> None:
        self.batch_rows = batch_rows
        self.taken = 0
        self.closed = False

    def batches(self, first_row: int = 0) -> Iterator[Batch]:
        try:
            while True:
                self.taken += self.batch_rows
                yield Batch(np.zeros((self.batch_rows, 2)), np.zeros(self.batch_rows, int))
        finally:
            self.closed = True

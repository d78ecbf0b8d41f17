"""A set that is read again and again: no row is summed twice in a round, and none is weighed twice by the same trees."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuboost.backends.label_weights import LabelWeights
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.boosters.filtering.draw import Chunk
from gpuboost.boosters.filtering.kept import Kept
from gpuboost.boosters.filtering.weak_learners import all_labels
from tests.boosters.filtering.given import booster, examples

N = 60
X, Y = np.arange(float(N))[:, None], np.arange(N) % 2


class Counting(NumpyBackend):
    """Counts the rows that are weighed."""

    n_weighed = 0

    def weigh_labels(self, scores: Any, target: Any, weighting: str, first: int, stop: int) -> LabelWeights:
        self.n_weighed += stop - first
        return super().weigh_labels(scores, target, weighting, first, stop)


@pytest.mark.parametrize("n_rows", [7, 20, 60])
@pytest.mark.parametrize("n_before", [0, 13, 40])
def test_each_row_is_complete_once(n_rows: int, n_before: int) -> None:
    source = examples(X, Y, NumpyBackend(), n_rows=n_rows)
    if n_before:
        source.all(n_before)
    for n_complete, expected in ((10**6, N), (25, 25), (N, N)):
        begin = source.place[1] if source.chunk else 0
        draw = source.accepted(400, all_labels, n_complete=n_complete)
        assert draw.n_consumed > 9 * N
        complete = [part for part in draw.parts if part.complete]
        rows = np.concatenate([np.arange(part.begin, part.end) + part.chunk.first_row for part in complete])
        assert rows.tolist() == [(begin + i) % N for i in range(expected)]
        assert len(draw.all.target) == expected
        assert len(draw.chosen.target) == 400


@pytest.mark.parametrize("n_rows", [7, 60])
def test_rows_are_weighed_once_by_the_same_trees(n_rows: int) -> None:
    backend = Counting()
    source = examples(X, Y, backend, n_rows=n_rows, kept_bytes=10**6)
    one = booster(source, 10 * N, 5 * N)
    for t in (1, 2, 3):
        before = backend.n_weighed
        assert one.one_round(t).metrics["draws"] > 20 * N
        # As they are drawn first and as they come again, and those of the chunk in which the round begins.
        assert backend.n_weighed - before <= 3 * N


def test_weights_are_kept_if_there_is_room() -> None:
    def chunk(first_row: int) -> Chunk:
        scores = np.zeros((10, 2))
        weights = NumpyBackend().weigh_labels(scores, np.zeros(10, np.int64), "logistic", 0, 10)
        return Chunk(np.zeros((10, 3)), np.zeros(10, np.int64), np.ones(10), None, scores, 0, first_row, weights=weights)

    own, of_weights = 10 * (3 + 2 * 8), 10 * (2 * 8 + 8 + 8 + 1)
    for limit, expected in (
        (own - 1, []),
        (2 * own - 1, [False]),
        (2 * own, [False, False]),
        (own + of_weights, [False, False]),  # the weights of the first make room for the second
        (2 * own + of_weights - 1, [False, False]),
        (2 * own + of_weights, [True, False]),
        (10**6, [True, True]),
    ):
        kept = Kept(limit)
        for first_row in (0, 10):
            kept.store(chunk(first_row))
            assert kept.n_bytes == sum(known.size for known in kept.chunks.values()) <= limit
        assert [known.weights is not None for known in kept.chunks.values()] == expected
        for first_row in (0, 10):
            kept.take(first_row, 10)
        assert kept.n_bytes == 0
        assert kept.take(0, 10) is None


def test_a_small_set_trains_as_if_nothing_were_kept() -> None:
    histories = []
    for kept_bytes in (0, 10**6):
        source = examples(X, Y, NumpyBackend(), n_rows=25, kept_bytes=kept_bytes)
        one = booster(source, 200, 90, leaves=3, leaf_values="newton", learning_rate=0.5)
        histories.append([one.one_round(t).metrics for t in range(1, 8)])
    assert histories[0] == histories[1]

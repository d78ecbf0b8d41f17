"""Which worker gets what."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("distributed")

from gpuboost.dask.placement import by_holders, in_stretches


@dataclass(frozen=True)
class Part:
    first_row: int
    n_rows: int


def parts_of(*lengths: int) -> list[Part]:
    return [Part(*pair) for pair in zip(np.cumsum([0, *lengths]).tolist(), lengths, strict=False)]


def test_parts_stay_where_they_are() -> None:
    parts = parts_of(5, 1, 1, 3)
    placed = by_holders(parts, [("b",), ("a", "b"), ("b", "a"), ()], ["a", "b", "c"])
    assert placed == {"b": [parts[0]], "a": [parts[1], parts[2]], "c": [parts[3]]}
    assert list(placed) == ["b", "a", "c"]  # in the order of their first rows


def test_workers_that_are_not_of_the_training_get_nothing() -> None:
    parts = parts_of(2, 2)
    assert by_holders(parts, [("gone",), ("gone",)], ["a", "b"]) == {"a": [parts[0]], "b": [parts[1]]}


@given(st.lists(st.integers(1, 9), min_size=1, max_size=20), st.integers(1, 5))
def test_stretches_are_in_order_and_about_even(lengths: list[int], n_workers: int) -> None:
    parts = parts_of(*lengths)
    placed = in_stretches(parts, [str(i) for i in range(n_workers)])
    assert [part for worker in sorted(placed) for part in placed[worker]] == parts
    assert list(placed) == sorted(placed)
    for own in placed.values():
        assert sum(part.n_rows for part in own) <= sum(lengths) / n_workers + max(lengths)

"""Steps depend on the rows, not on how a source cuts them; faults are named; no thread is left."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuboost.errors import StreamError
from gpuboost.streams import ArraySource, Batch, BatchSource, ExampleReader, OracleSource
from tests.streams.rows import Watched, cut, places, rows, same, steps

X, Y = rows(10)
WEIGHT = np.linspace(0, 1, 10)


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "gpuboost-reader"]


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    yield
    if readers():
        gc.collect()
    assert readers() == []


def test_steps_begin_at_multiples_and_end_with_the_pass() -> None:
    source = ArraySource(X, Y, WEIGHT)
    assert places(steps(source, 4)) == [(0, 0, 4), (0, 4, 4), (0, 8, 2)]
    taken = steps(source, 4, True, start=(2, 5), max_examples=16)
    assert places(taken) == [(2, 5, 3), (2, 8, 2), (3, 0, 4), (3, 4, 4), (3, 8, 2), (4, 0, 1)]
    for step in taken:
        chosen = slice(step.first_row, step.first_row + len(step.y))
        assert np.array_equal(step.X, X[chosen])
        assert np.array_equal(step.y, Y[chosen])
        assert step.weight is not None
        assert np.array_equal(step.weight, WEIGHT[chosen])


@given(st.lists(st.integers(0, 7), max_size=5), st.integers(1, 7), st.integers(1, 12), st.integers(0, 10), st.integers(0, 30))
def test_steps_do_not_depend_on_how_the_source_is_cut(sizes: list[int], last: int, step_rows: int, row: int, most: int) -> None:
    options = {"start": (1, row), "max_examples": most}
    expected = steps(ArraySource(X, Y, WEIGHT), step_rows, True, **options)
    assert same(steps(BatchSource(cut(X, Y, [*sizes, last], WEIGHT)), step_rows, True, **options), expected)
    assert sum(len(step.y) for step in expected) == most


def test_a_run_goes_on_where_another_has_stopped() -> None:
    source = ArraySource(X, Y)
    whole = steps(source, 4, True, max_examples=25)
    for i, step in enumerate(whole[1:], start=1):
        left = 25 - sum(len(one.y) for one in whole[:i])
        assert same(steps(source, 4, True, start=(step.pass_number, step.first_row), max_examples=left), whole[i:])


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, lambda columns: pa.table(dict(columns))])
def test_frames_are_taken_with_their_names(frame: Callable[[Any], Any]) -> None:
    def batch(start: int, end: int) -> tuple[Any, Any]:
        table = frame({"a": X[start:end, 0], "b": X[start:end, 1].astype(int), "c": X[start:end, 2]})
        return table, pd.Series(Y[start:end])

    source = BatchSource(lambda: (batch(start, start + 5) for start in (0, 5)))
    with ExampleReader(source, 4, False) as reader:
        assert reader.feature_names is None
        assert same(list(reader), steps(ArraySource(X, Y), 4))
        assert reader.feature_names == ["a", "b", "c"]
        assert reader.n_features == 3
    assert steps(source, 20, start=(0, 7))[0].X[:, 0].tolist() == [7, 8, 9]


def test_a_source_may_use_its_arrays_again() -> None:
    def batches() -> Iterator[Any]:
        buffer, labels = np.empty((2, 3)), np.empty(2, int)
        for start in range(0, 10, 2):
            buffer[:], labels[:] = X[start : start + 2], Y[start : start + 2]
            yield buffer, labels

    assert same(steps(BatchSource(batches), 3), steps(ArraySource(X, Y), 3))


def test_why_it_has_ended() -> None:
    with ExampleReader(ArraySource(X, Y), 4, recycle=False) as reader:
        next(reader)
        assert reader.ended is None
        assert len(list(reader)) == 2
        assert reader.ended == "the source has ended after 10 rows"
        assert list(reader) == []
    with ExampleReader(ArraySource(X, Y), 4, recycle=True, max_examples=11) as reader:
        assert len(list(reader)) == 4
        assert reader.ended == "max_examples rows have been read"
    assert steps(ArraySource(X, Y), 4, max_examples=0) == []
    assert places(steps(ArraySource(X, Y), 4, start=(0, 10))) == []
    assert places(steps(ArraySource(X, Y), 10, True, start=(0, 10), max_examples=10)) == [(1, 0, 10)]


# ---- faults ------------------------------------------------------------------------------------------------------------------


def failing(n: int) -> Iterator[Any]:
    for start in range(0, n, 2):
        yield X[start : start + 2], Y[start : start + 2]
    raise OSError("the disk is gone")


def test_the_steps_before_a_failure_are_given_and_its_row_is_named() -> None:
    with ExampleReader(BatchSource(failing(6)), 4, False) as reader:
        assert places([next(reader)]) == [(0, 0, 4)]
        for _ in range(2):  # it does not go away
            with pytest.raises(
                StreamError, match=r"^the source has failed in pass 0, row 6: OSError: the disk is gone$"
            ) as caught:
                next(reader)
        assert isinstance(caught.value.__cause__, OSError)


NAN = np.array([1.0, np.nan])
FAULTS = [
    ([X[:2], X[2:4, :2]], [Y[:2], Y[2:4]], None, "X has 2 columns, expected 3"),
    ([X[:2], X[2:4]], [Y[:2], Y[2:5]], None, "y must have one entry for each of the 2 rows of X, got 3"),
    ([X[:2], X[2:4] * 1j], [Y[:2], Y[2:4]], None, "Complex data not supported"),
    ([X[:2], X[2:4].astype(str)], [Y[:2], Y[2:4]], None, "X holds <U32 values"),
    ([X[:2], np.array([[1, 2, "x"], [1, 2, 3]], object)], [Y[:2], Y[2:4]], None, "column 2 of X holds"),
    ([X[:2], X[2:4]], [Y[:2], ["a", "b"]], None, r"y holds text \(dtype <U1\), but numbers in the batches before"),
    ([X[:2], X[2:4]], [["a", "b"], [b"a", b"b"]], None, r"y holds bytes \(dtype \|S1\), but text in the batches before"),
    ([X[:2], X[2:4]], [Y[:2], NAN], None, "missing value in y"),
    ([X[:2], X[2:4]], [Y[:2], np.eye(2, 3)], None, "y"),
    ([X[:2], X[2:4]], [Y[:2], Y[2:4]], [WEIGHT[:2], NAN], "weight must be finite and not negative, got nan in row 3"),
    ([X[:2], X[2:4]], [Y[:2], Y[2:4]], [WEIGHT[:2], [-1, 1]], "weight must be finite and not negative, got -1.0 in row 2"),
    ([X[:2], X[2:4]], [Y[:2], Y[2:4]], [WEIGHT[:2], np.ma.masked_equal([1.0, 2.0], 2.0)], "weight must be .* are masked"),
    ([X[:2], X[2:4]], [Y[:2], Y[2:4]], [WEIGHT[:2], [1]], "weight must be one number for each of the 2 rows"),
    ([X[:2], X[2:4]], [Y[:2], Y[2:4]], [WEIGHT[:2], None], "it has no weights, unlike the batches before"),
    (
        [pd.DataFrame(X[:2], columns=list("abc")), pd.DataFrame(X[2:4], columns=["a", "b", "e"])],
        [Y[:2], Y[2:4]],
        None,
        "column 2 of X has the name 'e', expected 'c'",
    ),
]


@pytest.mark.parametrize(("Xs", "ys", "weights", "message"), FAULTS)
def test_a_source_that_changes_is_named_with_the_place(Xs: Any, ys: Any, weights: Any, message: str) -> None:
    batches = [Batch(*batch) for batch in zip(Xs, ys, weights or (None, None), strict=True)]
    where = "the source has failed in pass 0, batch 1 that begins with row 2: .*"
    with pytest.raises(StreamError, match=where + message):
        steps(BatchSource(batches), 2)


def test_numbers_may_be_integers_in_one_batch_and_floating_in_the_next() -> None:
    batches = [Batch(X[:5].astype(np.int32), Y[:5]), Batch(X[5:], Y[5:].astype(float))]
    assert same(steps(BatchSource(batches), 4), steps(ArraySource(X, Y), 4))


@pytest.mark.parametrize("other", [np.array([2**63 + 1, 5], np.uint64), np.array([5.0, 6.0])])
def test_large_integer_labels_keep_all_digits(other: Any) -> None:
    """Floating numbers, which NumPy makes of both, hold integers up to 2**53."""
    large = np.array([2**53 + 1, 2**53], np.int64)
    (whole,) = steps(BatchSource([Batch(X[:2], large), Batch(X[2:4], other)]), 4)
    assert whole.y.tolist() == [2**53 + 1, 2**53, *other.tolist()]
    (small,) = steps(BatchSource([Batch(X[:2], large - 1), Batch(X[2:4], np.array([5.0, 6.0]))]), 4)
    assert small.y.dtype == float


@pytest.mark.parametrize("given", [(X, Y, WEIGHT, 1), X, 3])
def test_what_is_no_batch_is_refused(given: Any) -> None:
    with pytest.raises(StreamError, match=r"row 0: TypeError: a batch must be \(X, y\) or \(X, y, weight\), got a"):
        steps(BatchSource([given]), 2)


def test_a_source_without_rows() -> None:
    for source in (BatchSource([]), BatchSource([(X[:0], Y[:0])])):
        with pytest.raises(StreamError, match="the source has no rows"):
            steps(source, 2)


def test_a_pass_of_another_length_is_an_error() -> None:
    lengths = iter([10, 8])
    source = BatchSource(lambda: [(X[:n], Y[:n]) for n in [next(lengths)]])
    with pytest.raises(StreamError, match="pass 1 has ended after 8 rows, expected 10"):
        steps(source, 5, recycle=True)
    with pytest.raises(StreamError, match="pass 0 has ended after 10 rows, expected 11"):
        steps(BatchSource([(X, Y)], n_rows=11), 5)


def test_a_generator_is_not_recycled_and_nothing_is_read_of_it() -> None:
    def batches() -> Iterator[Any]:
        raise AssertionError
        yield

    with pytest.raises(ValueError, match="a BatchSource gives its rows once: it cannot be recycled"):
        ExampleReader(BatchSource(batches()), 4, recycle=True)


def test_parameters() -> None:
    source = ArraySource(X, Y)
    with pytest.raises(ValueError, match="step_rows must be an integer of at least 1, got 0"):
        ExampleReader(source, 0, False)
    with pytest.raises(ValueError, match="n_ahead must be an integer of at least 1"):
        ExampleReader(source, 1, False, n_ahead=0)
    with pytest.raises(ValueError, match="start must be a row of the source, which has 10, got row 11"):
        ExampleReader(source, 1, False, start=(0, 11))
    with pytest.raises(StreamError, match="it has ended after 10 rows, before row 11"):
        steps(BatchSource([(X, Y)]), 4, start=(0, 11))


# ---- the thread --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("batch_rows", "step_rows", "n_ahead"), [(1, 10, 2), (64, 10, 1), (7, 50, 4), (10, 10, 2)])
def test_it_is_never_more_than_the_steps_asked_for_and_a_batch_ahead(batch_rows: int, step_rows: int, n_ahead: int) -> None:
    source = Watched(batch_rows)
    with ExampleReader(source, step_rows, False, n_ahead=n_ahead) as reader:
        assert source.taken == 0
        for i in range(1, 20):
            next(reader)
            if i % 5 == 0:  # as far as it gets
                wanted = (i + n_ahead) * step_rows
                end = time.monotonic() + 5
                while source.taken < wanted and time.monotonic() < end:
                    time.sleep(0.001)
                assert source.taken >= wanted
                time.sleep(0.01)
            assert source.taken < (i + n_ahead) * step_rows + batch_rows


def test_a_consumer_that_stops_early_leaves_no_thread_and_the_source_is_closed() -> None:
    source = Watched(5)
    reader = ExampleReader(source, 10, False)

    def interrupted() -> None:
        with reader:
            next(reader)
            assert len(readers()) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert readers() == []
    assert source.closed
    assert list(reader) == []
    reader.close()


def test_a_reader_that_is_forgotten_ends_its_thread() -> None:
    source = Watched(5)
    next(ExampleReader(source, 10, False))
    gc.collect()
    assert readers() == []
    assert source.closed


def test_it_is_closed_while_the_source_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpuboost.streams.ahead.PATIENCE", 0.05)
    busy, free = threading.Event(), threading.Event()

    def draw(n: int) -> Any:
        busy.set()
        free.wait(10)
        return np.zeros((n, 1)), np.zeros(n, int)

    reader = ExampleReader(OracleSource(draw), 10, False)
    taker = threading.Thread(target=lambda: list(reader))
    taker.start()
    assert busy.wait(10)
    reader.close()
    taker.join(10)  # who waits for a step is let go
    assert not taker.is_alive()
    assert len(readers()) == 1
    free.set()
    readers()[0].join(10)


@pytest.mark.slow
def test_a_process_ends_though_a_reader_is_open() -> None:
    script = """
import numpy as np
from gpuboost.streams import *
reader = ExampleReader(OracleSource(lambda n: (np.zeros((n, 1)), np.zeros(n, int))), 100, False)
next(reader)
raise KeyboardInterrupt
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert done.stderr.strip().endswith("KeyboardInterrupt")
    assert "Fatal" not in done.stderr

"""A matrix in blocks of rows is read as the joined one."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuboost.binning import BinMapper, RowBlocks

DTYPES = ("?", "i1", "u2", "i8", "u8", "f2", "f4", "f8", ">f4")


def divided(X: np.ndarray, bounds: list[int], dtypes: list[str]) -> list[np.ndarray]:
    return [X[low:high].astype(dtype) for (low, high), dtype in zip(pairwise(bounds), dtypes, strict=False)]


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_blocks_are_read_as_the_joined_matrix(data: st.DataObject) -> None:
    n_rows, n_features = data.draw(st.integers(0, 20)), data.draw(st.integers(1, 4))
    bounds = [0, *sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=4))), n_rows]
    dtypes = data.draw(st.lists(st.sampled_from(DTYPES), min_size=len(bounds), max_size=len(bounds)))
    X = np.random.default_rng(n_rows).integers(0, 100, (n_rows, n_features))
    blocks = divided(X, bounds, dtypes)
    joined, matrix = np.concatenate(blocks), RowBlocks(blocks)
    assert (matrix.shape, matrix.dtype) == (joined.shape, np.result_type(*blocks))
    low, high = sorted(data.draw(st.lists(st.integers(0, n_rows), min_size=2, max_size=2)))
    np.testing.assert_array_equal(matrix[low:high], joined[low:high])
    columns = matrix[:, 1:3].columns(None, 0, max(0, min(n_features, 3) - 1), np.dtype("f8"))
    np.testing.assert_array_equal(columns, joined[:, 1:3].T)
    chosen = data.draw(st.lists(st.integers(0, n_rows - 1), max_size=9)) if n_rows else []
    rows = np.array(chosen, np.intp)
    np.testing.assert_array_equal(matrix[rows], joined[rows])
    if n_rows:
        mapper = BinMapper.fit(matrix, max_bins=5)
        assert mapper.digest() == BinMapper.fit(joined, max_bins=5).digest()
        for some in (None, rows):
            got, expected = (mapper.transform(one, rows=some).codes for one in (matrix, joined))
            np.testing.assert_array_equal(got, expected, strict=True)


def test_short_integers_are_looked_up_in_tables() -> None:
    X = np.random.default_rng(0).integers(0, 256, (700, 2)).astype(np.uint8)
    matrix, mapper = RowBlocks([X[:300], X[300:]]), BinMapper.fit(X, max_bins=9)
    np.testing.assert_array_equal(mapper.transform(matrix).codes, mapper.transform(X).codes)


def test_what_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"as many columns, got some of \[1, 2\]"):
        RowBlocks([np.zeros((1, 2)), np.zeros((1, 1))])
    matrix = RowBlocks([np.zeros((2, 2))])
    with pytest.raises(TypeError, match="indexed by rows, or by a slice of columns"):
        matrix[0, 1]
    matrix.release()
    with pytest.raises(RuntimeError, match="have been released"):
        matrix[:1]

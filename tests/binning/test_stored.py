"""Codes in a file."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from gpuboost.binning import stored as stored_module
from gpuboost.binning.stored import stored_width, to_blocks
from gpuboost.errors import CodeFileError
from tests.problems import coded
from tests.stored import stored


@pytest.mark.parametrize(
    ("n_features", "width"), [(1, 16), (16, 16), (17, 16), (28, 32), (40, 16), (54, 64), (100, 16), (130, 32), (784, 64)]
)
def test_width_of_blocks(n_features: int, width: int) -> None:
    assert stored_width(n_features) == width
    padded = -(-n_features // width) * width
    assert width == 16 or padded <= 1.25 * n_features


@pytest.mark.parametrize("chunk", [1, 500, 8 << 20])
@pytest.mark.parametrize(("n_features", "width"), [(3, 16), (40, 16), (70, 32), (130, 64)])
def test_chunks_and_features(n_features: int, width: int, chunk: int, tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 256, (n_features, 23)).astype(np.uint8)
    matrix = stored(coded(codes), tmp_path / "a", width)
    with mock.patch.object(stored_module, "CHUNK_BYTES", chunk):
        pieces = [(rows, blocks.copy()) for rows, blocks in matrix.chunks()]
        for first, stop in (
            (0, n_features),
            (1, 3),
            (n_features - 1, n_features),
            (2, 2),
            (min(16, n_features), min(48, n_features)),
        ):
            assert matrix.features(first, stop).tolist() == codes[first:stop].tolist()
    whole = to_blocks(codes, width)
    assert whole.shape == matrix.shape
    assert whole.transpose(0, 2, 1).reshape(-1, 23)[:n_features].tolist() == codes.tolist()
    assert not whole.transpose(0, 2, 1).reshape(-1, 23)[n_features:].any()
    assert [rows.start for rows, _ in pieces] == [0, *(rows.stop for rows, _ in pieces[:-1])]
    assert pieces[-1][0].stop == matrix.n_rows == 23
    assert np.concatenate([blocks for _, blocks in pieces], axis=1).tolist() == whole.tolist()
    assert all(blocks.nbytes <= max(chunk, whole.nbytes // 23) for _, blocks in pieces)
    assert matrix.n_features == n_features
    assert matrix.code_counts.sum() == n_features * 23


def test_a_file_that_is_cut_short_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "a"
    matrix = stored(coded(np.ones((3, 100))), path)
    with mock.patch.object(stored_module, "CHUNK_BYTES", 16 * 10):
        chunks = matrix.chunks()
        next(chunks)
        path.open("r+b").truncate(700)
        with pytest.raises(CodeFileError, match="shorter while it was read"):
            list(chunks)


def test_the_file_is_closed_with_the_matrix(tmp_path: Path) -> None:
    matrix = stored(coded(np.ones((3, 100))), tmp_path / "a")
    file = matrix.file
    del matrix
    assert file.closed

"""Sums over rectangles: by brute force, by hand, and the same on every backend."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpuboost.backends.base import Backend
from gpuboost.backends.cuda import binning, rectangles
from gpuboost.backends.reference.backend import NumpyBackend
from gpuboost.binning import BinMapper
from gpuboost.features import pool
from gpuboost.rectangle_matrix import RectangleMatrix
from gpuboost.rectangles import ImageShape, RectangleFeatures, rectangle_sums
from tests.features.images import COLOUR, GREY, LINE, all_features, by_brute_force, pixels


@pytest.mark.parametrize("shape", [GREY, COLOUR, LINE])
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_every_rectangle_by_brute_force(shape: ImageShape, dtype: Any) -> None:
    images = pixels(shape, 2, dtype)
    chosen = pool.draw(shape, 10**6, 0).tolist()
    found = rectangle_sums(images, np.array([1, 0]), all_features(shape))
    assert found.dtype == np.int32
    for image, values in zip(images[::-1], found.T, strict=True):
        assert values.tolist() == [by_brute_force(image.reshape(shape), one) for one in chosen]


def test_by_hand() -> None:
    # 1 2 3      the integral image:  0 0  0  0
    # 4 5 6                           0 1  3  6
    #                                 0 5 12 21
    image = np.array([[1, 2, 3, 4, 5, 6]], np.uint8)
    chosen = {
        (0, 0, 1, 0, 1, 1): 2 - 3,
        (0, 0, 2, 0, 1, 0): (1 + 4) - (2 + 5),
        (1, 0, 1, 0, 3, 0): 6 - 15,
        (2, 0, 2, 0, 1, 0): 2 * 7 - 5 - 9,
        (2, 0, 1, 1, 1, 0): 2 * 5 - 4 - 6,
        (4, 0, 1, 0, 1, 1): (2 + 6) - (3 + 5),
    }
    features = pool.corners(ImageShape(2, 3, 1), np.array(list(chosen)))
    assert rectangle_sums(image, np.array([0]), features)[:, 0].tolist() == list(chosen.values())
    one = features.part(1, 2)  # -I[0,0] + 2 I[0,1] - I[0,2] + I[2,0] - 2 I[2,1] + I[2,2], turned: left minus right
    assert dict(zip(one.corner.tolist(), one.coefficient.tolist(), strict=True)) == {0: 1, 1: -2, 2: 1, 8: -1, 9: 2, 10: -1}


@pytest.mark.parametrize("shape", [GREY, COLOUR, LINE])
def test_even_images_have_none(shape: ImageShape) -> None:
    images = np.full((3, shape.n_pixels), 201, np.uint8)
    assert not rectangle_sums(images, np.arange(3), all_features(shape)).any()


@pytest.mark.parametrize("shape", [GREY, COLOUR, LINE], ids=lambda shape: "x".join(map(str, shape)))
@pytest.mark.parametrize("dtype", [np.uint8, np.int32])
def test_all_backends_agree(shape: ImageShape, dtype: Any, candidate: Backend, once: Any) -> None:
    images, features = pixels(shape, 70, dtype), all_features(shape)
    rows = np.random.default_rng(0).permutation(np.repeat(np.arange(70), 2))  # more than the lanes of a loop, not a multiple
    expected = once(lambda: rectangle_sums(images, rows, features))
    found = candidate.rectangle_sums(images, rows, features)
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, expected)
    some = candidate.rectangle_sums(images, rows[:3], features.part(5, 7))
    np.testing.assert_array_equal(some, expected[5:7, :3])
    assert candidate.rectangle_sums(images, rows[:0], features).shape == (features.n_features, 0)


def test_a_matrix_is_encoded_as_its_values_are(candidate: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binning, "SLAB_BYTES", 4 * 210 * 30)  # thirty rows at a time
    monkeypatch.setattr(rectangles, "SLAB_BYTES", 4 * 42 * 5)  # five blocks, which take several images each
    monkeypatch.setattr("gpuboost.backends.cpu.matrix.PART_BYTES", 4 * 90 * 64)
    shape = GREY
    features: RectangleFeatures = all_features(shape)
    images = pixels(shape, 90, np.uint8)
    matrix = RectangleMatrix(images, np.arange(90)[::-1], features).on(candidate)
    values = rectangle_sums(images, np.arange(90)[::-1], features).T
    mapper, rows = BinMapper.fit(values, max_bins=8), np.arange(0, 90, 4)
    for chosen in (None, rows):
        loaded = candidate.encode(mapper, matrix, chosen)
        expected = NumpyBackend().encode(mapper, values, chosen)
        assert loaded.n_rows == expected.n_rows
        np.testing.assert_array_equal(candidate.usable(loaded), expected.usable)
        n_rows = expected.n_rows
        for f in range(0, features.n_features, 7):
            for cut in range(1, int(mapper.n_bins[f])):
                cell, of_reference = candidate.put(np.zeros(n_rows, np.int32)), np.zeros(n_rows, np.int32)
                candidate.set_bit(cell, 0, loaded, f, cut, False)
                NumpyBackend().set_bit(of_reference, 0, expected, f, cut, False)
                np.testing.assert_array_equal(candidate.get(cell), of_reference)

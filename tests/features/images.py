"""Images for tests, and features of them by brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.features import pool
from gpuboost.rectangles import ImageShape, RectangleFeatures

GREY, COLOUR, LINE = ImageShape(5, 6, 1), ImageShape(4, 3, 3), ImageShape(1, 9, 1)


def pixels(shape: ImageShape, n_images: int, dtype: Any, seed: int = 0) -> NDArray[Any]:
    """Random pixels, flat: all of uint8, or the largest int32 that features allow."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == np.uint8:
        return rng.integers(0, 256, (n_images, shape.n_pixels)).astype(np.uint8)
    largest = (2**31 - 1) * 3 // (4 * shape.height * shape.width)
    return rng.choice(np.array([-largest, largest, 0, 7]), (n_images, shape.n_pixels)).astype(np.int32)


def all_features(shape: ImageShape) -> RectangleFeatures:
    return pool.corners(shape, pool.draw(shape, 10**6, 0))


def by_brute_force(image: NDArray[Any], rectangle: tuple[int, ...]) -> int:
    """A feature of an image (height, width, n_channels): one sum of Python's integers for each of its cells."""
    kind, channel, h, top, w, left = rectangle
    plane = image[:, :, channel].astype(object)

    def cell(row: int, column: int) -> int:
        return int(plane[top + row * h : top + (row + 1) * h, left + column * w : left + (column + 1) * w].sum())

    if kind == 0:
        return cell(0, 0) - cell(0, 1)
    if kind == 1:
        return cell(0, 0) - cell(1, 0)
    if kind == 2:
        return 2 * cell(0, 1) - cell(0, 0) - cell(0, 2)
    if kind == 3:
        return 2 * cell(1, 0) - cell(0, 0) - cell(2, 0)
    return cell(0, 0) + cell(1, 1) - cell(0, 1) - cell(1, 0)

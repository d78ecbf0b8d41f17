"""Sums over rectangles of images, in exact integers: the features of `gpuboost.features.HaarFeatures`.

The integral image is ``I[y, x] = sum of the pixels above and left of (y, x)``, so that the sum over a rectangle is
``I[bottom, right] - I[top, right] - I[bottom, left] + I[top, left]`` (Crow 1984). A feature is a sum of such corners times
small integers. They are added in int32 and may overflow on the way: arithmetic modulo 2**32 is exact as long as the feature
fits, see `gpuboost.features.pixels`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROWS_AT_ONCE = 256
"""Images whose integral images are made together."""


class ImageShape(NamedTuple):
    """Pixels and colours of an image. A pixel's colours lie side by side, as in an array (height, width, n_channels)."""

    height: int
    width: int
    n_channels: int

    @property
    def n_pixels(self) -> int:
        """Numbers of an image."""
        return self.height * self.width * self.n_channels

    @property
    def n_corners(self) -> int:
        """Numbers of an integral image, which has a row and a column of zeros more."""
        return (self.height + 1) * (self.width + 1) * self.n_channels


class RectangleFeatures(NamedTuple):
    """Features of images: each a sum of corners times coefficients.

    Attributes
    ----------
    shape : ImageShape
    offset : ndarray of int32, shape (n_features + 1,)
        Feature f has the corners ``offset[f]:offset[f + 1]``.
    corner : ndarray of int32, shape (n,)
        Positions in an integral image (n_channels, height + 1, width + 1).
    coefficient : ndarray of int32, shape (n,)
    """

    shape: ImageShape
    offset: NDArray[np.int32]
    corner: NDArray[np.int32]
    coefficient: NDArray[np.int32]

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.offset) - 1

    def part(self, first: int, stop: int) -> RectangleFeatures:
        """Return the features ``first .. stop - 1``."""
        offset = self.offset[first : stop + 1]
        own = slice(offset[0], offset[-1])
        return RectangleFeatures(self.shape, offset - offset[0], self.corner[own], self.coefficient[own])


Pixels = NDArray[np.uint8] | NDArray[np.int32]
RectangleSums = Callable[[Pixels, NDArray[np.intp], RectangleFeatures], NDArray[np.int32]]
"""`rectangle_sums` or a faster drop-in."""


def rectangle_sums(images: Pixels, rows: NDArray[np.intp], features: RectangleFeatures) -> NDArray[np.int32]:
    """Compute features of images: the reference of the primitive `gpuboost.backends.base.Backend.rectangle_sums`.

    Parameters
    ----------
    images : ndarray of uint8 or int32, shape (n_images, height * width * n_channels), C-contiguous
    rows : ndarray of int, shape (n_rows,)
        The images wanted.
    features : RectangleFeatures

    Returns
    -------
    ndarray of int32, shape (n_features, n_rows)
    """
    out = np.zeros((features.n_features, len(rows)), np.int32)
    for first in range(0, len(rows), ROWS_AT_ONCE):
        integral = integral_images(images[rows[first : first + ROWS_AT_ONCE]], features.shape)
        for f, values in enumerate(out[:, first : first + ROWS_AT_ONCE]):
            for j in range(features.offset[f], features.offset[f + 1]):
                values += features.coefficient[j] * integral[features.corner[j]]
    return out


def integral_images(images: Pixels, shape: ImageShape) -> NDArray[np.int32]:
    """Return integral images, corners before rows: int32 (n_corners, n_rows), modulo 2**32."""
    height, width, n_channels = shape
    integral = np.zeros((n_channels, height + 1, width + 1, len(images)), np.int32)
    pixels = images.reshape(len(images), height, width, n_channels).transpose(3, 1, 2, 0)
    integral[:, 1:, 1:] = pixels.cumsum(axis=1, dtype=np.int32).cumsum(axis=2, dtype=np.int32)
    return integral.reshape(shape.n_corners, len(images))

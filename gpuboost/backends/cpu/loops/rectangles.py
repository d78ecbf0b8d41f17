"""The compiled twin of `gpuboost.rectangles.rectangle_sums`."""

from __future__ import annotations

import numpy as np

from gpuboost.backends.cpu.jit import Array, compiled
from gpuboost.rectangles import ImageShape, RectangleFeatures

LANES = 64
"""Images that go side by side: their integral images stay in the second-level cache, and vectors run over them."""


@compiled
def integrate(images: Array, rows: Array, shape: ImageShape, integral: Array) -> None:
    """Write the integral images of ``images[rows]`` to ``integral``, int32 (n_corners, LANES), whose borders are 0."""
    stride, n = shape.width + 1, len(rows)
    line = np.empty(LANES, np.int32)
    for channel in range(shape.n_channels):
        for y in range(shape.height):
            line[:] = 0
            at = (channel * (shape.height + 1) + y + 1) * stride + 1
            pixel = y * shape.width * shape.n_channels + channel
            for x in range(shape.width):
                for i in range(n):
                    line[i] += np.int32(images[rows[i], pixel + x * shape.n_channels])
                for i in range(LANES):
                    integral[at + x, i] = integral[at + x - stride, i] + line[i]


@compiled
def rectangle_sums(lo: int, hi: int, images: Array, rows: Array, features: RectangleFeatures, out: Array) -> None:
    """Write the features of the images ``rows[lo:hi]`` to ``out``, int32 (n_features, n_rows)."""
    integral = np.zeros(((features.shape.height + 1) * (features.shape.width + 1) * features.shape.n_channels, LANES), np.int32)
    values = np.empty(LANES, np.int32)
    for first in range(lo, hi, LANES):
        n = min(LANES, hi - first)
        integrate(images, rows[first : first + n], features.shape, integral)
        for f in range(len(features.offset) - 1):
            values[:] = 0
            for j in range(features.offset[f], features.offset[f + 1]):
                coefficient, corner = features.coefficient[j], features.corner[j]
                for i in range(LANES):
                    values[i] += coefficient * integral[corner, i]
            for i in range(n):
                out[f, first + i] = values[i]

"""Features of images on the device: the pixels go there, and the values need not come back."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import DeviceMatrix, Gpu, GpuArray
from gpuboost.backends.cuda.launch import launch
from gpuboost.rectangles import Pixels, RectangleFeatures

MOST_BLOCKS = 2048
SLAB_BYTES = 64 << 20
"""Values are computed for about so many bytes at a time, and integral images take no more."""


class DeviceRectangles:
    """Features whose corners are on the device.

    Parameters
    ----------
    gpu : Gpu
    features : RectangleFeatures
    """

    def __init__(self, gpu: Gpu, features: RectangleFeatures) -> None:
        self.gpu, self.features = gpu, features
        self.tables = [gpu.put(table) for table in (features.offset, features.corner, features.coefficient)]

    def values(self, images: Pixels) -> GpuArray:
        """Return the features of images from the host, int32 (n_rows, n_features) on the device."""
        (n_rows, shape), n_features = (len(images), self.features.shape), self.features.n_features
        n_blocks = max(1, min(n_rows, MOST_BLOCKS, SLAB_BYTES // (4 * shape.n_corners)))
        integral = self.gpu.empty((n_blocks, shape.n_corners), np.int32)
        values = self.gpu.empty((n_rows, n_features), np.int32)
        pixels = self.gpu.put(np.ascontiguousarray(images).reshape(-1).view(np.uint8))
        sizes = {"n_rows": n_rows, **shape._asdict(), "n_features": n_features, "n_bytes": images.dtype.itemsize}
        if n_rows:
            launch(self.gpu, "rectangle_sums", (n_blocks,), (pixels, *self.tables, integral, values, sizes))
        return values

    def matrix(self, images: Pixels) -> DeviceMatrix:
        """Return the features of images as a matrix that can be encoded."""
        values, shape = self.values(images), (len(images), self.features.n_features)
        return DeviceMatrix(values.reshape(-1).view(np.uint8), np.dtype(np.int32), shape, (shape[1], 1))


def rectangle_sums(gpu: Gpu, images: Pixels, rows: NDArray[np.intp], features: RectangleFeatures) -> NDArray[np.int32]:
    """See `gpuboost.backends.base.Backend.rectangle_sums`."""
    out = np.empty((len(rows), features.n_features), np.int32)
    on_device = DeviceRectangles(gpu, features)
    step = max(1, SLAB_BYTES // (4 * max(1, features.n_features)))
    for first in range(0, len(rows), step):
        out[first : first + step] = gpu.get(on_device.values(images[rows[first : first + step]]))
    return out.T

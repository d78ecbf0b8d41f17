"""`RectangleMatrix`: features of images that are computed when they are read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.binning.computed import ComputedMatrix
from gpuboost.rectangles import Pixels, RectangleFeatures, RectangleSums, rectangle_sums


@dataclass(frozen=True, eq=False)
class RectangleMatrix(ComputedMatrix):
    """Features of images that are computed when they are read.

    Attributes
    ----------
    images : ndarray of uint8 or int32, shape (n_images, height * width * n_channels), C-contiguous
    rows : ndarray of int, shape (n_rows,)
        The images that the matrix has.
    features : RectangleFeatures
    compute : callable
        `rectangle_sums` or that of a backend.
    """

    images: Pixels
    rows: NDArray[np.intp]
    features: RectangleFeatures
    compute: RectangleSums = rectangle_sums

    dtype = np.dtype(np.int32)

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.features.n_features

    def take(self, rows: slice | NDArray[np.intp]) -> RectangleMatrix:
        return replace(self, rows=self.rows[rows])

    def columns(self, first: int, stop: int) -> NDArray[np.int32]:
        return self.compute(self.images, self.rows, self.features.part(first, stop)).T

    def on(self, backend: Any) -> RectangleMatrix:
        return replace(self, compute=backend.rectangle_sums)

"""The CUDA backend: the kernels of ``kernels/*.cu`` behind the contract of `gpuboost.backends.base`.

It knows no CuPy: it is given a `gpuboost.backends.cuda.gpu.Gpu`, on a card or on the tests' emulator.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.binning import encode
from gpuboost.backends.cuda.gpu import Gpu, GpuArray
from gpuboost.backends.cuda.growth_work import Recording, Start
from gpuboost.backends.cuda.linked import CudaLinked
from gpuboost.backends.cuda.matrix import CudaMatrix
from gpuboost.backends.cuda.points import CudaPointPrimitives
from gpuboost.backends.cuda.rectangles import rectangle_sums
from gpuboost.backends.cuda.results import Results
from gpuboost.backends.cuda.softmax import CudaSoftmax
from gpuboost.backends.divided import DividedGrowth
from gpuboost.binning import BinMapper, Binned
from gpuboost.rectangles import Pixels, RectangleFeatures


class CudaBackend(CudaPointPrimitives, CudaLinked, CudaSoftmax, DividedGrowth):
    """Every primitive as launches on one device.

    Parameters
    ----------
    gpu : Gpu
        Closed with the backend.
    """

    reads_device_arrays = True

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.device = gpu.label
        self.buffers: dict[str, GpuArray] = {}
        self.results = Results(gpu)
        self.recordings: dict[tuple[int | str, ...], Recording] = {}
        self.starts: dict[tuple[int | str, ...], Start] = {}

    def close(self) -> None:
        self._forget()
        self.unlink()
        self.recorded = None
        self.buffers.clear()
        self.results = Results(self.gpu)
        self.gpu.close()

    def load(self, matrix: Binned) -> CudaMatrix:
        return CudaMatrix.load(self.gpu, matrix)

    def encode(self, mapper: BinMapper, X: Any, rows: NDArray[np.intp] | None = None) -> CudaMatrix:
        return encode(self.gpu, mapper, X, rows)

    def rectangle_sums(self, images: Pixels, rows: NDArray[np.intp], features: RectangleFeatures) -> NDArray[np.int32]:
        return rectangle_sums(self.gpu, images, rows, features)

    def usable(self, data: CudaMatrix) -> NDArray[np.bool_]:
        return data.usable

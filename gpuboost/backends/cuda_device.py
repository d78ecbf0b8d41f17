"""What the parts of the CUDA backend share: a device, memory that is kept, and launches."""

from __future__ import annotations

from typing import Any

from gpuboost.backends.gpu import Gpu, GpuArray
from gpuboost.backends.kernels import DEFAULT_BLOCK, launch


def best_block(n: int) -> int:
    """Return how many threads a block needs to be busy with things that come ``n`` at a time: 128 .. 256, whole warps."""

    def busy(block: int) -> float:
        return block // n * n / block if n <= block else n / (-(-n // block) * block)

    return max(range(128, DEFAULT_BLOCK + 1, 32), key=lambda block: (busy(block), block))


class OnDevice:
    """A device with work in its queue.

    Attributes
    ----------
    gpu : Gpu
    buffers : dict of device arrays
        Kept from round to round, by name.
    """

    gpu: Gpu
    buffers: dict[str, GpuArray]

    def _buffer(self, name: str, shape: tuple[int, ...], dtype: Any) -> GpuArray:
        """Return an array that is kept between rounds. Its contents are left over, or zero if it is new."""
        array = self.buffers.get(name)
        if array is None or array.shape != shape:
            self.buffers.pop(name, None)  # given back before the new one is asked for
            del array
            self.buffers[name] = array = self.gpu.empty(shape, dtype)
            self.gpu.zero(array)
        return array

    def _launch(self, name: str, grid: tuple[int, ...], *arguments: Any, block: int = DEFAULT_BLOCK, shared: int = 0) -> None:
        launch(self.gpu, name, grid, arguments, block=block, shared_bytes=shared)

"""Arrays of the emulated device."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray


class DeviceArray:
    """Memory that only kernels may touch.

    It is host memory, but offers no more than an array on a card does without a copy: code that reads it as if it were on the
    host fails here as it would fail there.

    Parameters
    ----------
    memory : ndarray
        Shared, not copied. It keeps the memory alive that it is a view of.
    """

    __slots__ = ("__weakref__", "address", "memory")

    def __init__(self, memory: NDArray[Any]) -> None:
        self.memory = memory
        self.address: int = memory.__array_interface__["data"][0]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.memory.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.memory.shape

    @property
    def strides(self) -> tuple[int, ...]:
        return self.memory.strides

    @property
    def ndim(self) -> int:
        return self.memory.ndim

    @property
    def size(self) -> int:
        return self.memory.size

    @property
    def nbytes(self) -> int:
        return self.memory.nbytes

    @property
    def flags(self) -> Any:
        return self.memory.flags

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return a view of another shape; a ValueError if that needs a copy."""
        reshaped = self.memory.reshape(*shape)
        if not np.may_share_memory(reshaped, self.memory) and self.size > 0:
            raise ValueError(f"an array with strides {self.strides} cannot be reshaped without a copy")
        return DeviceArray(reshaped)

    def view(self, dtype: DTypeLike) -> DeviceArray:
        """Return the same bytes as another dtype."""
        return DeviceArray(self.memory.view(dtype))

    def __getitem__(self, key: Any) -> DeviceArray:
        keys = key if isinstance(key, tuple) else (key,)
        if not all(isinstance(k, (int, np.integer, slice, type(None), type(...))) for k in keys):
            raise TypeError(f"only slices and integers can index a device array, got {key!r}")
        return DeviceArray(self.memory[keys if ... in keys else (*keys, ...)])

    def __len__(self) -> int:
        return len(self.memory)

    def __repr__(self) -> str:
        return f"DeviceArray({self.shape}, {self.dtype})"

    def _on_the_device(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this array is on the device: only kernels can read it, and Gpu.get copies it")

    __array__ = __bool__ = __iter__ = __contains__ = __eq__ = _on_the_device  # type: ignore[assignment]
    __hash__ = object.__hash__

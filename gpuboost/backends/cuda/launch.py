"""A launch that checks what it is given.

CuPy passes arguments on without looking: an int64 array where a kernel reads int32, or a Python float where it reads an int,
give garbage and no error. So every kernel is registered in `KERNELS` with its argument types, and `launch` lets nothing else
through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.cuda.gpu import Gpu
from gpuboost.backends.cuda.kernels import DEFAULT_BLOCK, KERNELS, Argument, Kernel, Parameter

MAX_GRID = (2**31 - 1, 65535, 65535)


@dataclass(frozen=True)
class Launch:
    """A launch that has been checked, to be queued as often as wanted."""

    kernel: Kernel
    grid: tuple[int, int, int]
    block: int
    arguments: tuple[Argument, ...]
    shared_bytes: int

    def queue(self, gpu: Gpu) -> None:
        """Queue it. A grid without blocks is no work, and queues nothing."""
        if all(self.grid):
            gpu.launch(self.kernel, self.grid, self.block, self.arguments, self.shared_bytes)

    def replace(self, old: Argument, new: Argument) -> Launch:
        """Return the launch with ``new`` in the place of ``old``; it is not checked again."""
        if all(argument is not old for argument in self.arguments):
            return self
        arguments = tuple(new if argument is old else argument for argument in self.arguments)
        return Launch(self.kernel, self.grid, self.block, arguments, self.shared_bytes)


def launch(gpu: Gpu, name: str, grid: tuple[int, ...], arguments: tuple[Any, ...], **how: int) -> None:
    """Check a launch, see `prepare`, and queue it."""
    prepare(gpu, name, grid, arguments, **how).queue(gpu)


def prepare(
    gpu: Gpu, name: str, grid: tuple[int, ...], arguments: tuple[Any, ...], *, block: int = DEFAULT_BLOCK, shared_bytes: int = 0
) -> Launch:
    """Check a launch.

    Parameters
    ----------
    gpu : Gpu
    name : str
        A kernel of `KERNELS`.
    grid : tuple of up to three int
    arguments : tuple
        Device arrays, None, and numbers; Python numbers become scalars of the registered type. A struct is a mapping from
        all of its fields to numbers.
    block : int
        Threads of a block, whole warps.
    shared_bytes : int
        Dynamic shared memory.

    Raises
    ------
    TypeError
        If an argument has the wrong type.
    ValueError
        If the number of arguments, the layout of an array, the grid or the block are wrong.
    """
    kernel = KERNELS[name]
    if len(arguments) != len(kernel.parameters):
        raise ValueError(f"{name} takes {len(kernel.parameters)} arguments, got {len(arguments)}")
    x, y, z = (*grid, 1, 1)[:3]
    blocks = (x, y, z)
    if not (0 <= x <= MAX_GRID[0] and 0 <= y <= MAX_GRID[1] and 0 <= z <= MAX_GRID[2]):
        raise ValueError(f"{name}: a grid of {blocks} is beyond {MAX_GRID}")
    if not 32 <= block <= kernel.max_block or block % 32:
        raise ValueError(f"{name}: a block of {block} threads is no multiple of 32 up to {kernel.max_block}")
    if shared_bytes > gpu.limits.shared_per_block:
        raise ValueError(f"{name}: {shared_bytes} bytes of shared memory, but a block has {gpu.limits.shared_per_block}")
    checked = tuple([check(name, p, a) for p, a in zip(kernel.parameters, arguments, strict=True)])
    return Launch(kernel, blocks, block, checked, shared_bytes)


def check(name: str, parameter: Parameter, argument: Any) -> Argument:
    """Return ``argument`` as what the kernel reads, or raise."""
    dtype = parameter.dtype
    if not parameter.is_array:
        if type(argument) is int and dtype.kind == "i":  # by far the most; a number out of range raises OverflowError
            return dtype.type(argument)
        return (packed if dtype.names else number)(f"{name}({parameter.name})", dtype, argument)
    if argument is None and parameter.may_be_none:
        return None
    if getattr(argument, "dtype", None) != dtype or not hasattr(argument, "flags"):
        got = "None" if argument is None else getattr(argument, "dtype", type(argument).__name__)
        raise TypeError(f"{name}({parameter.name}) takes an array of dtype {dtype}, got {got}")
    if not argument.flags.c_contiguous:
        raise ValueError(f"{name}({parameter.name}) must be C-contiguous, got strides {argument.strides}")
    return argument


def number(where: str, dtype: np.dtype[Any], argument: Any) -> np.generic:
    """Return a number as a scalar of ``dtype``, or raise."""
    if isinstance(argument, (np.generic, int, float)) and not isinstance(argument, (bool, np.bool_)):
        scalar: np.generic = dtype.type(argument)
        if scalar == argument:
            return scalar
    raise TypeError(f"{where} takes a number of dtype {dtype}, got {argument!r}")


def packed(where: str, dtype: np.dtype[Any], fields: Mapping[str, Any]) -> NDArray[Any]:
    """Return the struct ``dtype`` with these fields as an array of shape (), which CuPy passes by value, or raise."""
    names = dtype.names or ()
    if fields.keys() != set(names):
        raise TypeError(f"{where} takes the fields {', '.join(names)}, got {', '.join(fields)}")
    values: list[Any] = []
    for field in names:
        of_field, value = dtype[field], fields[field]
        if of_field.kind == "i" and type(value) is int:  # by far the most; NumPy raises OverflowError itself
            values.append(value)
        elif of_field.subdtype is None:
            values.append(number(f"{where}.{field}", of_field, value))
        else:
            base, (length,) = of_field.subdtype
            if len(value) != length:
                raise TypeError(f"{where}.{field} takes {length} numbers, got {len(value)}")
            values.append(tuple(number(f"{where}.{field}", base, one) for one in value))
    return np.array(tuple(values), dtype)

"""The CUDA kernels of ``kernels/*.cu``: their signatures, their sources, and a launch that checks what it is given.

CuPy passes arguments on without looking: an int64 array where a kernel reads int32, or a Python float where it reads an int,
give garbage and no error. So every kernel is registered here with its argument types, and `launch` lets nothing else through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from gpuboost.backends.cuda.gpu import Gpu

Argument: TypeAlias = Any
"""A device array, None for a null pointer, or a NumPy scalar."""

OPTIONS = ("-std=c++17", "-fmad=false")
"""How the kernels are compiled, everywhere: a fused multiply-add would round once where the other backends round twice."""

MAX_GRID = (2**31 - 1, 65535, 65535)
DEFAULT_BLOCK = 256
LARGE_BLOCKS = {"histogram": 1024}
"""Kernels whose ``__launch_bounds__`` allow more than `DEFAULT_BLOCK` threads."""


@dataclass(frozen=True)
class Parameter:
    """One argument of a kernel.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
        Of the scalar or of the array's elements.
    is_array : bool
    may_be_none : bool
        Whether a null pointer is allowed.
    """

    name: str
    dtype: np.dtype[Any]
    is_array: bool
    may_be_none: bool = False


@dataclass(frozen=True)
class Kernel:
    """An ``extern "C"`` entry point.

    Attributes
    ----------
    name : str
    file : str
        It stands in ``kernels/<file>.cu``.
    parameters : tuple of Parameter
    max_block : int
        Threads that its ``__launch_bounds__`` promises.
    """

    name: str
    file: str
    parameters: tuple[Parameter, ...]
    max_block: int


def signature(text: str) -> tuple[Parameter, ...]:
    """Read a signature such as ``"quantised:i4* leaf_index:i4*? n_rows:i4"``; ``*`` is an array, ``?`` may be None."""
    parameters = []
    for part in text.split():
        name, code, star, question = re.fullmatch(r"(\w+):([iuf][1248])(\*?)(\??)", part).groups()  # type: ignore[union-attr]
        parameters.append(Parameter(name, np.dtype(code), bool(star), bool(question)))
    return tuple(parameters)


def registry(table: dict[str, dict[str, str]]) -> dict[str, Kernel]:
    """Return the kernels of a ``{file: {entry point: signature}}`` table by name."""
    return {
        name: Kernel(name, file, signature(text), LARGE_BLOCKS.get(name, DEFAULT_BLOCK))
        for file, entries in table.items()
        for name, text in entries.items()
    }


# The same order as in the files, so that the two can be laid side by side.
GROWTH = {
    "bin": {
        "bin": "values:u1* kind:i4 row_stride:i8 column_stride:i8 chosen:i8*? cut_values:f8* cut_offset:i8* codes:u1* "
        "n_rows:i4 first_row:i4 n_code_rows:i4 n_features:i4",
    },
    "plant": {
        "plant": "rows:i4* table:i8* current:i8* started:i4*? bounds:i8*? n_started:i8 stride:i4 max_nodes:i4 n_channels:i4",
        "root_totals": "rows:i4* q:i4* table:i8* mass:i8*? stride:i4 q_stride:i4 max_nodes:i4 n_classes:i4 n_channels:i4",
        "choose_features": "n_bins:i4* chosen:u1* chosen_bins:i4* n_features:i4",
    },
    "histogram": {
        "histogram": "codes:u4* skipped:u4* words:i4* n_bins:i4* bin_offset:i4* rows:i4* q:i4* table:i8* current:i8* "
        "histograms:i4* n_rows:i4 stride:i4 q_stride:i4 max_nodes:i4 n_channels:i4 member:i4 n_trees:i4 first_word:i4 "
        "n_words:i4 words_per_tile:i4 channels_per_tile:i4 groups:i4 bins_stride:i4 first_bin:i4 bins_in_tile:i4",
    },
    "siblings": {
        "siblings": "skipped:u1* features:i4* n_bins:i4* bin_offset:i4* table:i8* current:i8* histograms:i4* n_trees:i4 "
        "max_nodes:i4 n_channels:i4 member:i4 first_feature:i4 first_bin:i4 bins_in_tile:i4",
    },
    "sweep": {
        **{
            f"sweep_{criterion}": "features:i4* n_bins:i4* bin_offset:i4* has_missing:u1* table:i8* current:i8* "
            f"histograms:i4* {more}scores:i8* places:i4* n_trees:i4 max_nodes:i4 n_classes:i4 n_channels:i4 min_count:i4 "
            "first_member:i4 kept:i4 first_feature:i4 first_bin:i4 bins_in_tile:i4"
            for criterion, more in (("edge", ""), ("gini", ""), ("newton", ""), ("rebel", "mass:i8* "))
        },
        "choose_cut": "features:i4* bin_offset:i4* table:i8* current:i8* histograms:i4* scores:i8* places:i4* "
        "best_so_far:i8* n_trees:i4 max_nodes:i4 n_voting:i4 n_channels:i4 first_member:i4 kept:i4 n_features:i4 "
        "first_feature:i4 first_bin:i4 bins_in_tile:i4",
    },
    "select": {
        "select_node": "table:i8* current:i8* max_nodes:i4 n_channels:i4 step:i4",
    },
    "partition": {
        "partition_rows": "codes:u1* rows:i4* sorted:i4* table:i8* current:i8* cursors:i4* n_rows:i4 stride:i4 "
        "max_nodes:i4 n_channels:i4",
        "partition_nodes": "rows:i4* sorted:i4* table:i8* current:i8* cursors:i4* stride:i4 max_nodes:i4 n_classes:i4 "
        "n_channels:i4 slot:i4",
        "node_of_rows": "rows:i4* table:i8* out:i4* n_rows:i4 max_nodes:i4 n_channels:i4",
    },
}

ROWS = {
    "pack": {
        "pack": "columns:u1* codes:u1* n_rows:i4 n_features:i4",
        "count_codes": "codes:u1* counts:i4* n_rows:i4 n_blocks:i4",
    },
    "reduce": {
        "maximum": "state:f8* largest:u8* n:i8",
        "channel_sums": "state:f8* repeat:i4* maximum:u8*? sums:i8* n_rows:i4 n_classes:i4 shift:i4",
        "leaf_sums": "q:i4* group:i4* signed_sums:i8* mass:i8* n_rows:i4 n_groups:i4 n_classes:i4 n_channels:i4 "
        "groups_per_tile:i4 classes_per_tile:i4",
        "row_weights": "q:i4* mass:i8* n_rows:i8 first_class:i4 n_classes:i4 n_channels:i4",
        "errors": "scores:f8* labels:i4*? signs:i1*? units:i8* wrong:i8* n_rows:i4 n_classes:i4 lanes:i4",
        "confusion": "scores:f8* labels:i4* units:i8* counts:i8* n_rows:i4 n_classes:i4 lanes:i4 in_shared:i4",
    },
    "quantise": {
        "choose_shift": "maximum:u8* sums:i8* chosen:i8* n_classes:i4 n_repeats:i8",
        "quantise": "state:f8* signs:i1* repeat:i4* counts:i4*? chosen:i8*? q:i4* signed_sums:i8* mass:i8* n_rows:i4 "
        "n_classes:i4 n_channels:i4 shift:i4",
        "flip": "q:i4* group:i4* table:i1* flipped:i4* signed_sums:i8* n_rows:i4 n_classes:i4 n_channels:i4",
    },
    "reweight": {
        "reweight": "state:f8* signs:i1* group:i4* table:f8* maximum:u8* n_rows:i4 n_classes:i4 lowest:f8",
    },
    "softmax": {
        "largest_miss": "p:f8* target:i4* factor:f8* largest:u8* n_rows:i4 n_classes:i4",
        "softmax_sums": "p:f8* target:i4* repeat:i4* factor:f8* sums:i8* n_rows:i4 n_classes:i4 shift:i4",
        "softmax_statistics": "p:f8* target:i4* repeat:i4* factor:f8* pairs:i4* weights:i4*? counts:i4* q:i4* signed_sums:i8* "
        "mass:i8* n_rows:i4 n_classes:i4 gradient_shift:i4 curvature_shift:i4",
        "softmax_update": "p:f8* groups:i4* pairs:i4* factors:f8* trees:i4* n_rows:i4 n_classes:i4 n_trees:i4 n_groups:i4 "
        "lowest:f8",
        "softmax_losses": "p:f8* target:i4* repeat:i4* factor:f8* groups:i4* pairs:i4* factors:f8* trees:i4* bounds:i4* "
        "coefficients:f8* losses:i8* n_rows:i4 n_classes:i4 n_groups:i4 shift:i4 lowest:f8",
    },
    "project": {
        "project": "state:f8* signs:i1* coefficients:f8* magnitude:f8* side:i1* maximum:u8* n_rows:i4 n_classes:i4 lowest:f8",
    },
    "predict": {
        "apply": "nodes:i4* codes:u1* leaf:i4* n_rows:i4 root:i4",
        "set_bit": "codes:u1* cell:i4* n_rows:i4 feature:i4 cut:i4 missing_left:i4 bit:i4",
        "predict": "nodes:i4* roots:i4* values:f8* codes:u1* scores:f8* n_rows:i4 n_trees:i4 n_classes:i4 rows_per_tile:i4 "
        "trees_per_batch:i4",
        "add_scores": "scores:f8* group:i4* values:f8* n_rows:i4 n_classes:i4",
    },
}

KERNELS = registry(GROWTH | ROWS)
"""Every kernel by the name of its entry point."""


# ---- sources -----------------------------------------------------------------------------------------------------------------


def source_folder() -> Path:
    """Return the folder of the CUDA sources: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parents[2]
    installed = package / "kernels"
    return installed if installed.is_dir() else package.parent / "kernels"


def source(file: str) -> str:
    """Return ``kernels/<file>.cu`` with our headers pasted in, and what a compiler needs to name the right lines.

    Caches key on the source text; a header that is only named would change behind their back.
    """
    folder = source_folder()
    pasted: set[str] = set()

    def read(name: str) -> str:
        pasted.add(name)
        lines = []
        for number, line in enumerate((folder / name).read_text(encoding="utf-8").splitlines(), start=1):
            include = re.fullmatch(r'#include "(\w+\.cuh)"', line)
            if include is None:
                lines.append(line)
            elif include[1] not in pasted:
                lines += [f'#line 1 "{include[1]}"', read(include[1]), f'#line {number + 1} "{name}"']
        return "\n".join(lines)

    return read(f"{file}.cu") + "\n"


# ---- launching ---------------------------------------------------------------------------------------------------------------


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
    gpu: Gpu,
    name: str,
    grid: tuple[int, ...],
    arguments: tuple[Any, ...],
    *,
    block: int = DEFAULT_BLOCK,
    shared_bytes: int = 0,
) -> Launch:
    """Check a launch.

    Parameters
    ----------
    gpu : Gpu
    name : str
        A kernel of `KERNELS`.
    grid : tuple of up to three int
    arguments : tuple
        Device arrays, None, and numbers; Python numbers become scalars of the registered type.
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
    if any(not 0 <= n <= limit for n, limit in zip(blocks, MAX_GRID, strict=True)):
        raise ValueError(f"{name}: a grid of {blocks} is beyond {MAX_GRID}")
    if not 32 <= block <= kernel.max_block or block % 32:
        raise ValueError(f"{name}: a block of {block} threads is no multiple of 32 up to {kernel.max_block}")
    if shared_bytes > gpu.limits.shared_per_block:
        raise ValueError(f"{name}: {shared_bytes} bytes of shared memory, but a block has {gpu.limits.shared_per_block}")
    checked = tuple(check(name, p, a) for p, a in zip(kernel.parameters, arguments, strict=True))
    return Launch(kernel, blocks, block, checked, shared_bytes)


def check(name: str, parameter: Parameter, argument: Any) -> Argument:
    """Return ``argument`` as what the kernel reads, or raise."""
    where, dtype = f"{name}({parameter.name})", parameter.dtype
    if not parameter.is_array:
        if isinstance(argument, (np.generic, int, float)) and not isinstance(argument, (bool, np.bool_)):
            number: np.generic = dtype.type(argument)  # a Python int out of range raises OverflowError
            if number == argument:
                return number
        raise TypeError(f"{where} takes a number of dtype {dtype}, got {argument!r}")
    if argument is None:
        if parameter.may_be_none:
            return None
        raise TypeError(f"{where} takes an array of dtype {dtype}, got None")
    if not hasattr(argument, "flags") or argument.dtype != dtype:
        raise TypeError(f"{where} takes an array of dtype {dtype}, got {getattr(argument, 'dtype', type(argument).__name__)}")
    if not argument.flags.c_contiguous:
        raise ValueError(f"{where} must be C-contiguous, got strides {argument.strides}")
    return argument

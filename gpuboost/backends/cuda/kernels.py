"""The CUDA kernels of ``kernels/*.cu``: their signatures, which `gpuboost.backends.cuda.launch` checks, and their sources."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Argument: TypeAlias = Any
"""A device array, None for a null pointer, a NumPy scalar, or an array of shape () of a structured dtype."""

OPTIONS = ("-std=c++17", "-fmad=false")
"""How the kernels are compiled, everywhere: a fused multiply-add would round once where the other backends round twice."""

DEFAULT_BLOCK = 256
LARGE_BLOCKS = {"histogram": 1024, "histogram_wide": 1024}
"""Kernels whose ``__launch_bounds__`` allow more than `DEFAULT_BLOCK` threads."""


@dataclass(frozen=True)
class Parameter:
    """One argument of a kernel.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
        Of the scalar or of the array's elements; of a struct, a structured dtype with the layout of C.
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


def struct(fields: str) -> np.dtype[Any]:
    """Return the dtype of a struct such as ``"n_rows:i4 lowest:f8 table:f8[11]"``, laid out as C does."""
    formats: list[tuple[str, Any]] = []
    for field in fields.split():
        name, code, length = re.fullmatch(r"(\w+):([iuf][1248])(?:\[(\d+)\])?", field).groups()  # type: ignore[union-attr]
        formats.append((name, (code, int(length)) if length else code))
    return np.dtype(formats, align=True)


def signature(text: str) -> tuple[Parameter, ...]:
    """Read a signature such as ``"quantised:i4* leaf_index:i4*? n_rows:i4 sizes:BinSizes"``.

    ``*`` is an array, ``?`` may be None, and a word is one of `STRUCTS`.
    """
    parameters = []
    for part in text.split():
        name, code, star, question = re.fullmatch(r"(\w+):(\w+)(\*?)(\??)", part).groups()  # type: ignore[union-attr]
        parameters.append(Parameter(name, STRUCTS.get(code) or np.dtype(code), bool(star), bool(question)))
    return tuple(parameters)


def registry(table: dict[str, dict[str, str]]) -> dict[str, Kernel]:
    """Return the kernels of a ``{file: {entry point: signature}}`` table by name."""
    return {
        name: Kernel(name, file, signature(text), LARGE_BLOCKS.get(name, DEFAULT_BLOCK))
        for file, entries in table.items()
        for name, text in entries.items()
    }


# The same order as in the files, so that the two can be laid side by side.
STRUCTS = {
    "BinSizes": struct("row_stride:i8 column_stride:i8 kind:i4 n_rows:i4 first_row:i4 n_code_rows:i4 n_features:i4"),
    "HistogramSizes": struct(
        "n_rows:i4 n_trees:i4 max_nodes:i4 n_channels:i4 stride:i4 quantised_stride:i4 member:i4 first_word:i4 n_words:i4 "
        "words_per_tile:i4 channels_per_tile:i4 groups:i4 bins_stride:i4 first_bin:i4 bins_in_tile:i4"
    ),
    "RootSizes": struct("n_started:i8 n_cells:i8 stride:i4 max_nodes:i4 n_channels:i4"),
    "PartitionSizes": struct("n_cells:i8 stride:i4 max_nodes:i4 n_classes:i4 n_channels:i4 slot:i4"),
    "SweepSizes": struct(
        "min_count:i8 n_trees:i4 max_nodes:i4 n_classes:i4 n_channels:i4 n_voting:i4 first_member:i4 kept:i4 "
        "first_feature:i4 n_features:i4 first_bin:i4 bins_in_tile:i4"
    ),
    "QuantiseSizes": struct("n_rows:i4 n_classes:i4 n_channels:i4 shift:i4"),
    "ExitSizes": struct(
        "n_rows:i4 n_classes:i4 rows_per_tile:i4 n_checkpoints:i4 first_checkpoint:i4 ends:i4 checkpoint_stride:i4 "
        "leader_stride:i4 other_stride:i4"
    ),
    "SoftmaxSizes": struct("n_rows:i4 n_classes:i4 gradient_shift:i4 curvature_shift:i4"),
    "LogarithmSeries": struct("coefficients:f8[11]"),
    "LossSizes": struct("n_rows:i4 n_classes:i4 n_leaves:i4 shift:i4 lowest:f8 coefficients:f8[11]"),
    "RectangleSizes": struct("n_rows:i4 height:i4 width:i4 n_channels:i4 n_features:i4 n_bytes:i4"),
    "LabelSizes": struct("n_rows:i4 n_classes:i4 first_row:i4 madaboost:i4 exp_coefficients:f8[12] coefficients:f8[11]"),
}
"""The structs of ``kernels/sizes.cuh``, which kernels take by value."""


def sweeps(of_sums: str, kind: str) -> dict[str, str]:
    """Return the signatures of a sweep for every criterion, with histograms of some type."""
    more = {"edge": "", "gini": "", "newton": "", "rebel": "sum_abs:i8* ", "entropy": "series:LogarithmSeries "}
    return {
        f"sweep_{criterion}{kind}": "features:i4* bins:i4* facts:u1* table:i8* current:i8* "
        f"histograms:{of_sums}* {own}found:i8* tickets:i4* sizes:SweepSizes"
        for criterion, own in more.items()
    }


GROWTH = {
    "bin": {"bin": "values:u1* chosen:i8*? cut_values:f8* cut_offset:i8* codes:u1* sizes:BinSizes"},
    "init_roots": {
        "init_roots": "rows:i4* table:i8* current:i8* started:i4*? bounds:i8*? histogram:i4* sizes:RootSizes",
        "root_totals": "rows:i4* quantised:i4* table:i8* sum_abs:i8*? stride:i4 quantised_stride:i4 max_nodes:i4 "
        "n_classes:i4 n_channels:i4",
        "choose_features": "bins:i4* chosen:u1* chosen_bins:i4* n_features:i4",
    },
    "histogram": {
        name: "codes:u4* skipped:u4* words:i4* bins:i4* rows:i4* quantised:i4* table:i8* current:i8* "
        f"histograms:{of_sums}* sizes:HistogramSizes"
        for name, of_sums in {"histogram": "i4", "histogram_wide": "i8"}.items()
    },
    "sweep": sweeps("i4", ""),
    "sweep_wide": sweeps("i8", "_wide"),
    "siblings": {
        name: f"counted:{of_sums}* places:i4* kept:{of_sums}* children:{of_sums}* n_cells:i8"
        for name, of_sums in {"siblings": "i4", "siblings_wide": "i8"}.items()
    },
    "pop_best_leaf": {"pop_best_leaf": "table:i8* current:i8* max_nodes:i4 n_channels:i4 step:i4"},
    "partition": {
        "partition_rows": "codes:u1* rows:i4* sorted:i4* table:i8* current:i8* cursors:i4* n_rows:i4 stride:i4 "
        "max_nodes:i4 n_channels:i4",
        "partition_nodes": "rows:i4* sorted:i4* table:i8* current:i8* cursors:i4* histogram:i4* sizes:PartitionSizes",
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
        "channel_sums": "state:f8* frequency_weight:i4* maximum:u8*? sums:i8* n_rows:i4 n_classes:i4 shift:i4",
        **dict.fromkeys(
            ("leaf_sums", "leaf_sums_wide"),
            "quantised:i4* leaf_index:i4* sums:i8* sum_abs:i8* n_rows:i4 n_leaves:i4 n_classes:i4 n_channels:i4 "
            "leaves_per_tile:i4 classes_per_tile:i4",
        ),
        "row_weights": "quantised:i4* sum_abs:i8* n_rows:i8 first_class:i4 n_classes:i4 n_channels:i4",
        "errors": "scores:f8* labels:i4*? signs:i1*? units:i8* wrong:i8* n_rows:i4 n_classes:i4 lanes:i4",
        "confusion": "scores:f8* labels:i4* units:i8* counts:i8* n_rows:i4 n_classes:i4 lanes:i4 in_shared:i4",
    },
    "quantise": {
        "choose_shift": "maximum:u8* sums:i8* chosen:i8* n_classes:i4 total_frequency:i8 most_dropped:i4",
        "quantise": "state:f8* signs:i1* frequency_weight:i4* counts:i4*? chosen:i8*? quantised:i4* sums:i8* sum_abs:i8* "
        "sizes:QuantiseSizes",
        "flip": "quantised:i4* leaf_index:i4* table:i1* flipped:i4* sums:i8* n_rows:i4 n_classes:i4 n_channels:i4",
    },
    "reweight": {"reweight": "state:f8* signs:i1* leaf_index:i4* table:f8* maximum:u8* n_rows:i4 n_classes:i4 lowest:f8"},
    "softmax": {
        "largest_miss": "p:f8* target:i4* weight_scale:f8* largest:u8* n_rows:i4 n_classes:i4",
        "softmax_sums": "p:f8* target:i4* frequency_weight:i4* weight_scale:f8* largest:u8*? sums:i8* n_rows:i4 n_classes:i4 "
        "shift:i4",
        "softmax_statistics": "p:f8* target:i4* frequency_weight:i4* weight_scale:f8* pairs:i4* weights:i4*? counts:i4* "
        "quantised:i4* sums:i8* sizes:SoftmaxSizes",
        "softmax_update": "p:f8* leaf_indices:i4* pairs:i4* multipliers:f8* trees:i4* n_rows:i4 n_classes:i4 n_trees:i4 "
        "n_leaves:i4 lowest:f8",
        "softmax_losses": "p:f8* target:i4* frequency_weight:i4* weight_scale:f8* leaf_indices:i4*? pairs:i4*? "
        "multipliers:f8*? candidates:i4*? losses:i8* sizes:LossSizes",
    },
    "haar": {"rectangle_sums": "images:u1* offset:i4* corner:i4* coefficient:i4* integral:i4* values:i4* sizes:RectangleSizes"},
    "label_weights": {"weigh_labels": "scores:f8* target:i4* out:i8* sizes:LabelSizes"},
    "project": {
        "project": "state:f8* signs:i1* coefficients:f8* magnitude:f8* side:i1* maximum:u8* n_rows:i4 n_classes:i4 lowest:f8"
    },
    "points": {
        "squared_distances": "levels:u1* point:u1* distances:i4* n_rows:i4 n_blocks:i4",
        "ring_index": "distances:i4* radii:i4* out:i4* n_rows:i4 n_radii:i4",
        "nearer_index": "distances:i4* limits:i4*? out:i4* n_rows:i4 limit:i4",
        "opposite_rows": "distances:i4* sides:i1* rows:u1* nearest:u8* n_rows:i4 side:i4",
        "drop_similar": "rows:u1* distances:i4* to_candidate:i4* nearest:u8* apart:i8 n_rows:i4",
        "class_products": "quantised:i4* frequency_weight:i4* products:i8* n_rows:i4 n_classes:i4 n_channels:i4",
        "add_similarities": "levels:u1* points:u1* rounds:i4* coefficients:f8* scores:f8* n_rows:i4 n_blocks:i4 n_rounds:i4 "
        "n_classes:i4",
    },
    "predict": {
        "apply": "nodes:i4* codes:u1* leaf:i4* n_rows:i4 root:i4",
        "set_bit": "codes:u1* cell:i4* n_rows:i4 feature:i4 cut:i4 missing_left:i4 bit:i4",
        "predict": "nodes:i4* roots:i4* values:f8* codes:u1* scores:f8* n_rows:i4 n_trees:i4 n_classes:i4 rows_per_tile:i4 "
        "trees_per_batch:i4",
        "predict_until": "nodes:i4* roots:i4* values:f8* codes:u1* scores:f8* stops:i4* margins:f8* left_at:i4* "
        "sizes:ExitSizes",
        "add_trees": "scores:f8* leaf_indices:i8* first:i4* values:f8* n_rows:i4 n_classes:i4 n_trees:i4",
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

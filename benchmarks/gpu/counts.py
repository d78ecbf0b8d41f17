"""The least that a launch must do by its shapes: bytes to move and integers to add, counted as in the kernels' headers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpuboost.backends.criteria import CRITERIA

SECTOR = 32
"""Bytes that a scattered access moves."""
RECORD = 8
"""Bytes of a column of a node's record."""


@dataclass(frozen=True)
class Work:
    """What a launch works on.

    Attributes
    ----------
    a : dict
        Its scalar arguments, and the bytes of its arrays, by name.
    rows : int
        Rows of the node that a growth kernel works on, else those of the problem.
    features : int
        Features that can be cut.
    kept : float
        The share of (row, feature) pairs that are not skipped; for nodes below the root, the root's.
    """

    a: dict[str, int]
    rows: int
    features: int
    kept: float

    @property
    def nodes(self) -> float:
        """Bytes of the histograms of a node."""
        return 4.0 * self.a["bins_in_tile"] * self.a["n_channels"]

    def pairs(self, bytes_of_pair: float) -> float:
        """Bytes of arrays over (row, class)."""
        return bytes_of_pair * self.a["n_rows"] * self.a["n_classes"]

    def statistics(self, times: int) -> float:
        """Bytes of so many passes over the statistics."""
        return 4.0 * times * self.a["n_rows"] * self.a["n_channels"]

    def each_row(self, bytes_of_row: float) -> float:
        """Bytes of arrays over rows."""
        return bytes_of_row * self.a["n_rows"]


def table_bytes(w: Work) -> float:
    return RECORD * w.a["max_nodes"] * (10 + 2 * w.a["n_channels"])


def swept(w: Work) -> float:
    """Return the bytes of a sweep: the histograms that were counted once, and those of siblings read and written."""
    return w.nodes * (1 if w.a["first_member"] == 0 else 3 if w.a["kept"] else 2)


BYTES: dict[str, Callable[[Work], float]] = {
    # codes, row numbers and statistics once; the histograms' bins that are touched, once
    "histogram": lambda w: w.rows * 4.0 * (w.a["n_words"] + 1 + w.a["n_channels"]) + w.nodes,
    "sweep_edge": swept,
    "sweep_gini": swept,
    "sweep_rebel": swept,
    "sweep_newton": swept,
    "sweep_entropy": swept,
    "pop_best_leaf": table_bytes,
    "partition_rows": lambda w: w.rows * (SECTOR + 8.0),
    "partition_nodes": lambda w: w.rows * 8.0 + 4.0 * w.a["n_cells"],
    "init_roots": lambda w: 4.0 * (w.a["n_started"] + w.a["n_cells"]) + table_bytes(w),
    "root_totals": lambda w: 4.0 * w.rows * (1 + w.a["n_channels"]),
    "choose_features": lambda w: 17.0 * w.a["n_features"],
    "node_of_rows": lambda w: w.each_row(8),
    "set_bit": lambda w: w.each_row(8 + SECTOR / 2),  # the codes of two rows stand in a sector
    "row_weights": lambda w: w.statistics(1) + w.each_row(8),
    "maximum": lambda w: 8.0 * w.a["n"],
    "channel_sums": lambda w: w.pairs(8) + w.each_row(4),
    "choose_shift": lambda w: 8.0 * w.a["n_classes"],
    "quantise": lambda w: w.pairs(9) + w.each_row(4) + w.statistics(1),
    "flip": lambda w: w.statistics(2) + w.each_row(4),
    "leaf_sums": lambda w: w.statistics(1) + w.each_row(4),
    "project": lambda w: w.pairs(9) + w.each_row(9),
    "reweight": lambda w: w.pairs(17) + w.each_row(4),
    "largest_miss": lambda w: w.pairs(8) + w.each_row(12),
    "softmax_sums": lambda w: w.pairs(8) + w.each_row(16),
    "softmax_statistics": lambda w: w.pairs(8) + w.each_row(20) + float(w.a["quantised"]),
    "softmax_update": lambda w: w.pairs(16) + float(w.a["leaf_indices"]),
    "softmax_losses": lambda w: w.pairs(8) + w.each_row(20) + float(w.a.get("leaf_indices", 0)),
    "weigh_labels": lambda w: w.pairs(16) + w.each_row(28),
    "rectangle_sums": lambda w: float(w.a["images"] + w.a["values"]),
    # the sums that were counted, and the parent's; both children's, in two places
    "siblings": lambda w: 2.0 * w.a["children"] + 2.0 * w.a["counted"],
    "squared_distances": lambda w: float(w.a["levels"]) + w.each_row(4),
    "ring_index": lambda w: w.each_row(8),
    "nearer_index": lambda w: w.each_row(12),
    "opposite_rows": lambda w: w.each_row(6),
    "drop_similar": lambda w: w.each_row(10),
    "class_products": lambda w: w.statistics(1) + w.each_row(4),
    "add_similarities": lambda w: float(w.a["levels"]) + w.pairs(16),
    "add_trees": lambda w: w.pairs(16) + w.each_row(4) * w.a["n_trees"],
    "errors": lambda w: w.pairs(8) + w.each_row(12),
    "confusion": lambda w: w.pairs(8) + w.each_row(12),
    "apply": lambda w: w.each_row(4 + SECTOR),
    "predict": lambda w: w.pairs(16) + w.a["codes"],
    "predict_until": lambda w: w.pairs(16) + w.each_row(8) + w.a["codes"],
    "bin": lambda w: float(w.a["values"] + w.a["codes"]),
    "pack": lambda w: float(w.a["columns"] + w.a["codes"]),
    "count_codes": lambda w: float(w.a["codes"]),
    "(zero)": lambda w: float(w.a["bytes"]),
    "(put)": lambda w: float(w.a["bytes"]),
}

# Wide sums: bins of twice the bytes, of the same rows.
BYTES |= {f"sweep_{criterion}_wide": lambda w: 2.0 * swept(w) for criterion in CRITERIA}
BYTES |= {
    "histogram_wide": lambda w: w.rows * 4.0 * (w.a["n_words"] + 1 + w.a["n_channels"]) + 2.0 * w.nodes,
    "leaf_sums_wide": BYTES["leaf_sums"],
    "siblings_wide": BYTES["siblings"],
}

# Additions in shared memory.
ADDS: dict[str, Callable[[Work], float]] = {
    "histogram": lambda w: w.kept * w.rows * w.features * w.a["n_channels"],
    "histogram_wide": lambda w: 2.0 * w.kept * w.rows * w.features * w.a["n_channels"],
    "leaf_sums": lambda w: 2.0 * w.a["n_rows"] * w.a["n_classes"],
    "leaf_sums_wide": lambda w: 4.0 * w.a["n_rows"] * w.a["n_classes"],
    "count_codes": lambda w: float(w.a["codes"]),
}


def bytes_of(name: str, work: Work) -> float:
    return BYTES[name](work)


def adds_of(name: str, work: Work) -> float:
    return ADDS[name](work) if name in ADDS else 0.0

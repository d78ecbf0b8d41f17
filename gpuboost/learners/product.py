"""Products of decision stumps (Kegl & Busa-Fekete 2009; the "products" row of table 1 of Kegl 2014)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import CUT, FEATURE, GAIN, LEFT, MISSING_LEFT, WHOLE, GrowthScope
from gpuboost.backends.statistics import Device, Stats
from gpuboost.learners.base import VotingTree, on_all_rows
from gpuboost.learners.growth import grow
from gpuboost.tree import Tree

MAX_FACTORS = 8
"""A product of m stumps has 2**m cells."""


@dataclass(frozen=True)
class Stump:
    """One stump ``v phi(x)`` of the product; a constant factor has feature -1 and ``phi = +1``."""

    feature: int
    cut: int
    missing_left: bool
    votes: NDArray[np.int8]


@dataclass(frozen=True)
class StumpProduct:
    """The product learner: ``h_l(x) = prod_j v_jl phi_j(x)`` over ``n_factors`` stumps.

    The factors are fitted in turn, each with the labels ``y_il prod_{j' != j} h_j'l(x_i)``, starting from factors that are 1
    everywhere, until a full cycle does not raise the edge. A row's cell has bit j set where ``phi_j = -1``.
    """

    n_factors: int

    def __call__(self, backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> VotingTree:
        m, n_classes = self.n_factors, stats.n_classes
        stumps = [Stump(-1, 0, False, np.ones(n_classes, np.int8))] * m
        cell = backend.put(np.zeros(stats.quantised.shape[1], np.int32))
        edge = 0
        while True:
            before = edge
            for j in range(m):
                others = [stump for i, stump in enumerate(stumps) if i != j]
                bits = [i for i in range(m) if i != j]
                relabelled = backend.flip(stats, cell, cell_signs(others, bits, m, n_classes))
                frontier = grow(backend, data, relabelled, 2, scope)
                nodes, all_edges = backend.read_nodes(frontier)
                root, edges = nodes[0, 0], all_edges[0, 0, :n_classes]
                if root[GAIN] <= edge:  # the old factor is as good: keep it
                    continue
                edge = int(root[GAIN])
                votes = np.where(edges > 0, 1, -1).astype(np.int8)  # eq. 13
                feature = int(root[FEATURE]) if root[LEFT] else -1
                stumps[j] = Stump(feature, int(root[CUT]), bool(root[MISSING_LEFT]), votes)
                backend.set_bit(cell, j, data, feature, stumps[j].cut, stumps[j].missing_left)
            if edge == before:
                break
        values = cell_signs(stumps, list(range(m)), m, n_classes).astype(np.float64)
        weak = complete_tree(stumps, values, edge, cell, stats.total)
        return weak if scope.sample_indices is None else on_all_rows(weak.tree, backend, data, stats)


def cell_signs(stumps: list[Stump], bits: list[int], n_bits: int, n_classes: int) -> NDArray[np.int8]:
    """Return the product of ``multipliers`` in each of the ``2**n_bits`` cells, shape (n_cells, n_classes).

    Factor i is decided by bit ``bits[i]`` of the cell.
    """
    cells = np.arange(2**n_bits)
    signs = np.ones((len(cells), n_classes), np.int8)
    for stump, bit in zip(stumps, bits, strict=True):
        phi = 1 - 2 * ((cells >> bit) & 1)
        signs = signs * stump.votes[None, :] * phi[:, None].astype(np.int8)
    return signs


def complete_tree(stumps: list[Stump], cells: NDArray[np.float64], edge: int, cell: Device, total: int) -> VotingTree:
    """Write a product as a complete tree: level j asks stump j, a leaf is a cell. Constant factors ask nothing."""
    asked = [j for j, stump in enumerate(stumps) if stump.feature >= 0]
    depth = len(asked)
    level = np.concatenate([np.full(2**d, d) for d in range(depth)]) if depth else np.zeros(0, np.int64)
    node = np.arange(2**depth - 1, dtype=np.int32)
    below = 2 * node + 1  # heap order; from 2**depth - 1 on the numbers are leaves

    def name(number: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.where(number < len(node), number, ~(number - len(node))).astype(np.int32)

    path = np.arange(2**depth)  # a leaf's turns from the root, the first one in the highest bit; left is 0
    cell_of_leaf = np.zeros(2**depth, np.int64)
    for d, j in enumerate(asked):
        went_left = 1 - ((path >> (depth - 1 - d)) & 1)
        cell_of_leaf |= went_left << j
    leaf_of_cell = np.zeros(len(cells), np.int64)
    leaf_of_cell[cell_of_leaf] = path
    chosen = [stumps[j] for j in asked]
    tree = Tree(
        feature=np.array([stump.feature for stump in chosen], np.int32)[level],
        cut=np.array([stump.cut for stump in chosen], np.uint8)[level],
        missing_left=np.array([stump.missing_left for stump in chosen], np.bool_)[level],
        left=name(below),
        right=name(below + 1),
        values=cells[cell_of_leaf],
        gain=np.float64(edge / total / max(depth, 1)) / 2.0**level,  # every stump is given an equal share of the edge
    )
    return VotingTree(tree, cell, leaf_of_cell, edge=edge)

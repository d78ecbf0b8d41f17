"""Binary trees that are grown layer by layer, each layer for the coefficients of the last (section 4.4 of Appel's thesis)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.frontier import CUT, FEATURE, GAIN, LEFT, MISSING_LEFT, WHOLE, GrowthScope, as_float
from gpuboost.backends.statistics import Device, Stats
from gpuboost.exactmath import log
from gpuboost.learners.grown_tree import GrownTree, to_tree
from gpuboost.learners.growth import grow
from gpuboost.tree import Tree, constant_tree

Projection = Callable[[Floats], Stats]
"""From coefficients (n_classes,) to the statistics of ``sum_k w_ik y_ik coefficients_k``, one channel."""

SMOOTHING = 2**12
"""Both sides of a class are given 1 / 4096 of its weight, so that no coefficient is infinite: none is above 4.2."""


def smoothed(right: IntArray, wrong: IntArray) -> tuple[Floats, Floats]:
    """Return ``right`` and ``wrong`` with the same share of their sum added to both.

    Their ratio lies between 1 and the one without. A class's loss ``right exp(-a) + wrong exp(a)`` is convex in a, so the
    coefficient, which lies between 0 and the best one, does not raise it.
    """
    more = np.maximum((right + wrong) // SMOOTHING, 1)
    return (right + more).astype(np.float64), (wrong + more).astype(np.float64)


def exponentials(right: IntArray, wrong: IntArray) -> tuple[Floats, Floats]:
    """Return ``exp(a)`` and ``exp(-a)`` of the coefficients a, for which no exponential is needed."""
    more, less = (np.sqrt(side) for side in smoothed(right, wrong))
    return more / less, less / more


def remaining_loss(right: IntArray, wrong: IntArray) -> Floats:
    """Return what is left of the weight with the best coefficients, in units: a sum over the classes, the last axis."""
    more, less = exponentials(right, wrong)
    found: Floats = np.add.accumulate(right * less + wrong * more, axis=-1)[..., -1]
    return found


@dataclass(frozen=True)
class SignTree(GrownTree):
    """A classifier ``f(x)`` in {-1, +1}, and the best coefficients ``a`` of the classes: it adds ``f(x) a``.

    The leaf values, shape (n_leaves, 1), are -1 or +1.

    Attributes
    ----------
    right, wrong : ndarray of int64, shape (n_classes,)
        For each class the weights of the rows for which f has the right sign and the wrong one, in units.
    """

    right: NDArray[np.int64] = field(kw_only=True)
    wrong: NDArray[np.int64] = field(kw_only=True)

    @classmethod
    def measure(cls, tree: Tree, backend: Backend, data: Device, stats: Stats) -> SignTree:
        """Weigh what a tree gets right."""
        leaf_index = backend.apply(tree, data)
        sums, sum_abs = backend.leaf_sums(stats, leaf_index, tree.n_leaves)
        edges = (sums * tree.values.astype(np.int64)).sum(axis=0)
        whole = sum_abs.sum(axis=0)
        return cls(tree, leaf_index, right=(whole + edges) // 2, wrong=(whole - edges) // 2)

    @property
    def coefficients(self) -> Floats:
        """``a_k = (ln right_k - ln wrong_k) / 2`` (eq. 4.9)."""
        right, wrong = smoothed(self.right, self.wrong)
        found: Floats = 0.5 * (log(right) - log(wrong))
        return found

    def exponentials(self) -> tuple[Floats, Floats]:
        """Return ``exp(a)`` and ``exp(-a)``, for which no exponential is needed."""
        return exponentials(self.right, self.wrong)

    @property
    def loss(self) -> float:
        """What is left of the weight with these coefficients, in units."""
        return float(remaining_loss(self.right, self.wrong))


@dataclass(frozen=True)
class LayeredTree:
    """Grows trees of up to ``2**max_depth`` leaves.

    The first layer is the stump that lowers the loss the most when every class gets its best coefficient (eq. 4.10). Then, with
    the coefficients held fixed, the loss is ``sum_i (sum_k w_ik cosh a_k) - f(x_i) r_i`` with
    ``r_i = sum_k w_ik y_ik sinh a_k``, and every leaf is cut by the stump with the largest sum of ``f(x_i) r_i`` over its rows.
    A leaf that no stump serves better is left whole with the sign of its own sum. Then the coefficients are solved for again.
    A layer that does not lower the loss is not kept, and no other would follow it.

    Attributes
    ----------
    max_depth : int
        At least 1.
    """

    max_depth: int

    def __call__(
        self, backend: Backend, data: Device, stats: Stats, project: Projection, scope: GrowthScope = WHOLE
    ) -> SignTree:
        """Grow a tree.

        Parameters
        ----------
        backend : Backend
        data : device matrix
        stats : Stats
            Of the weights ``w_ik y_ik``.
        project : callable
            See `Projection`.
        scope : GrowthScope
            The rows and features that the cuts are found on. The coefficients and what a layer lowers are of all rows.
        """
        best = SignTree.measure(stump(backend, data, stats, scope), backend, data, stats)
        for _ in range(self.max_depth - 1):
            more, less = best.exponentials()
            tree = deepened(best, backend, data, project((more - less) / 2), stats, scope)
            deeper = SignTree.measure(tree, backend, data, stats)
            if deeper.loss >= best.loss:
                break
            best = deeper
        return best


def constant(backend: Backend, data: Device, stats: Stats) -> SignTree:
    """Return the classifier that is +1 everywhere."""
    return SignTree.measure(constant_tree(np.ones(1)), backend, data, stats)


def stump(backend: Backend, data: Device, stats: Stats, scope: GrowthScope = WHOLE) -> Tree:
    """Return the first layer: -1 on the left, +1 on the right; +1 everywhere if no cut is better."""
    nodes = backend.read_nodes(grow(backend, data, replace(stats, criterion="rebel"), 2, scope))[0][0]
    values = np.array([[1.0], [-1.0], [1.0]])
    return to_tree(nodes, values, as_float(np.ascontiguousarray(nodes[:, GAIN])), stats.total)[0]


def deepened(grown: SignTree, backend: Backend, data: Device, projected: Stats, stats: Stats, scope: GrowthScope) -> Tree:
    """Return a tree with another layer, grown from the ``projected`` statistics of r."""
    tree, before = grown.tree, grown.tree.values[:, 0]
    rows, bounds = backend.rows_by_leaf(grown.leaf_index, tree.n_leaves, scope.sample_indices)
    frontier = grow(backend, data, projected, 2, replace(scope, sample_indices=rows, bounds=bounds))
    nodes, edges = backend.read_nodes(frontier)
    totals = backend.get(frontier.totals)[:, 0, 0]
    roots, edge = nodes[:, 0], edges[:, 0, 0]
    signs = np.where(edge == 0, before, np.sign(edge))  # of a leaf that is left whole, else of its right child
    gain = np.ldexp((abs(edge) - before * totals) / stats.total, stats.shift - projected.shift)
    return with_layer(tree, roots, signs, gain)


def with_layer(tree: Tree, roots: NDArray[np.int64], signs: Floats, gain: Floats) -> Tree:
    """Return ``tree`` with the cuts that some of its leaves have got.

    Parameters
    ----------
    tree : Tree
    roots : ndarray of int64, shape (n_leaves, 10)
        For each leaf the root of a `Frontier` that was grown in its place.
    signs : ndarray of float64, shape (n_leaves,)
        The value of a leaf that is left whole; of one that is cut that of the right child, while the left one has the opposite.
    gain : ndarray of float64, shape (n_leaves,)
        What its cut wins.
    """
    is_cut = roots[:, LEFT] > 0
    cut = np.flatnonzero(is_cut)
    first = np.cumsum(1 + is_cut) - (1 + is_cut)  # the number of the first leaf that each leaf becomes
    name = ~first
    name[cut] = len(tree.feature) + np.arange(len(cut))

    def children(old: NDArray[np.int32], new: NDArray[np.int64]) -> NDArray[np.int32]:
        return np.concatenate([np.where(old >= 0, old, name[~old]), ~new[cut]]).astype(np.int32)

    values = np.repeat(signs, 1 + is_cut)
    values[first[cut]] = -signs[cut]
    return Tree(
        feature=np.concatenate([tree.feature, roots[cut, FEATURE].astype(np.int32)]),
        cut=np.concatenate([tree.cut, roots[cut, CUT].astype(np.uint8)]),
        missing_left=np.concatenate([tree.missing_left, roots[cut, MISSING_LEFT].astype(np.bool_)]),
        left=children(tree.left, first),
        right=children(tree.right, first + 1),
        values=values[:, None],
        gain=np.concatenate([tree.gain, gain[cut]]),
    )

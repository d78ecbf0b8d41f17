"""Which two classes a node of an AOSO-LogitBoost tree moves (Sun, Reid and Zhou 2012)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.criteria import newton_gain
from gpuboost.backends.statistics import Shifts, SoftmaxRows
from gpuboost.peers.base import agree


class NodePairs(NamedTuple):
    """The pairs of some nodes, and what a Newton step of each is made of.

    Attributes
    ----------
    pairs : ndarray of int64, shape (n_nodes, 2)
        The lower one first; it loses what the other one gets, as in `gpuboost.backends.base.Backend.softmax_statistics`.
    gradient, curvature : ndarray of int64, shape (n_nodes,)
        Their sums over the nodes' rows, in units.
    """

    pairs: IntArray
    gradient: IntArray
    curvature: IntArray


class PairSelection:
    """Chooses the pairs for any rows of a set, by the probabilities as they are now.

    The first class is that of the largest gradient, the second the one with which a Newton step gains the most: both by exact
    sums in the units of ``shifts``, in which the trees are grown, too. It works on the host, the same everywhere.
    """

    def __init__(self, backend: Backend, rows: SoftmaxRows, shifts: Shifts) -> None:
        self.peers, self.shifts = backend.peers, shifts
        self.p, target, frequency_weight, weight_scale = (backend.get(one) for one in rows)
        self.frequency_weight, self.weight_scale = frequency_weight.astype(np.int64)[:, None], weight_scale[:, None]
        missing, is_own = complements(self.p), target[:, None] == np.arange(self.p.shape[1])
        self.h = self.p * missing
        self.g = self.units(np.where(is_own, missing, -self.p), shifts.gradient, slice(None))

    def units(self, values: Floats, shift: int, rows: IntArray | slice) -> IntArray:
        weighted = np.rint(np.ldexp(self.weight_scale[rows] * values, shift)).astype(np.int64)
        return np.asarray(self.frequency_weight[rows] * weighted)

    def __call__(self, members: Sequence[IntArray]) -> NodePairs:
        """Return the pairs of nodes with these rows."""
        own = np.stack([self.g[rows].sum(axis=0) for rows in members])
        gradients = self.peers.sum(own, "gradients of nodes")
        first = gradients.argmax(axis=1)
        own = np.stack([self.curvatures(rows, k) for rows, k in zip(members, first.tolist(), strict=True)])
        curvatures = self.peers.sum(own, "curvatures of nodes")
        nodes = np.arange(len(first))
        differences = gradients[nodes, first][:, None] - gradients
        gains = [[newton_gain(g, h) for g, h in zip(*row, strict=True)] for row in zip(differences, curvatures, strict=True)]
        for gain, k in zip(gains, first.tolist(), strict=True):
            gain[k] = -1.0
        second = np.argmax(gains, axis=1)  # the lowest class of equals
        agree(self.peers, "pairs of classes", first, second)
        pairs = np.sort(np.stack([second, first], axis=1), axis=1)
        return NodePairs(pairs, gradients[nodes, pairs[:, 1]] - gradients[nodes, pairs[:, 0]], curvatures[nodes, second])

    def curvatures(self, rows: IntArray, first: int) -> IntArray:
        """Return the sums of the curvatures of the pairs of the class ``first`` and each other one (eq. 10 of Li 2010)."""
        p, h = self.p[rows], self.h[rows]
        both = (h[:, [first]] + h) + 2.0 * (p[:, [first]] * p)
        both[:, first] = 0.0
        return np.asarray(self.units(both, self.shifts.curvature, rows).sum(axis=0))


def complements(p: Floats) -> Floats:
    """Return ``1 - p`` without cancellation: where p is above 1/2 it is the sum of the others, in class order."""
    others = np.add.accumulate(np.where(p > 0.5, 0.0, p), axis=1)[:, -1:]
    return np.where(p > 0.5, others, 1.0 - p)

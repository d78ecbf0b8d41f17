"""Ensemble: the trees of a model in flat arrays. It predicts, and knows nothing of training."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpuboost.tree import Tree


@dataclass(frozen=True)
class Ensemble:
    """Trees, one after another, in flat host arrays.

    Attributes
    ----------
    node_offset : ndarray of int64, shape (n_trees + 1,)
        Tree t owns the inner nodes ``node_offset[t]:node_offset[t + 1]``.
    leaf_offset : ndarray of int64, shape (n_trees + 1,)
        Tree t owns the leaves ``leaf_offset[t]:leaf_offset[t + 1]``.
    feature, cut, missing_left, left, right, gain : ndarray
        As in `gpuboost.tree.Tree`, with node and leaf numbers that start anew in every tree.
    values : ndarray of float64, shape (n_leaves_total, n_classes)
    round_offset : ndarray of int64, shape (n_rounds + 1,)
        Round r added the trees ``round_offset[r]:round_offset[r + 1]``.
    """

    node_offset: NDArray[np.int64]
    leaf_offset: NDArray[np.int64]
    feature: NDArray[np.int32]
    cut: NDArray[np.uint8]
    missing_left: NDArray[np.bool_]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    gain: NDArray[np.float64]
    values: NDArray[np.float64]
    round_offset: NDArray[np.int64]

    @classmethod
    def from_trees(cls, trees: Sequence[Tree], n_classes: int) -> Ensemble:
        """As `from_rounds`, with one tree a round."""
        return cls.from_rounds([[tree] for tree in trees], n_classes)

    @classmethod
    def from_rounds(cls, rounds: Sequence[Sequence[Tree]], n_classes: int) -> Ensemble:
        """Concatenate the trees of all rounds; an empty sequence gives an ensemble that scores 0 everywhere."""
        trees = [tree for one in rounds for tree in one]

        def join(name: str, empty: Any) -> Any:
            return np.concatenate([empty, *(getattr(tree, name) for tree in trees)])

        nodes = np.array([0, *(len(tree.feature) for tree in trees)], np.int64)
        leaves = np.array([0, *(tree.n_leaves for tree in trees)], np.int64)
        return cls(
            node_offset=np.cumsum(nodes),
            leaf_offset=np.cumsum(leaves),
            feature=join("feature", np.zeros(0, np.int32)),
            cut=join("cut", np.zeros(0, np.uint8)),
            missing_left=join("missing_left", np.zeros(0, np.bool_)),
            left=join("left", np.zeros(0, np.int32)),
            right=join("right", np.zeros(0, np.int32)),
            gain=join("gain", np.zeros(0)),
            values=join("values", np.zeros((0, n_classes))),
            round_offset=np.cumsum([0, *(len(one) for one in rounds)], dtype=np.int64),
        )

    @property
    def n_trees(self) -> int:
        return len(self.node_offset) - 1

    @property
    def n_rounds(self) -> int:
        return len(self.round_offset) - 1

    @property
    def n_classes(self) -> int:
        return int(self.values.shape[1])

    def tree(self, t: int) -> Tree:
        """Return tree ``t`` (views, no copies)."""
        n = slice(self.node_offset[t], self.node_offset[t + 1])
        leaves = slice(self.leaf_offset[t], self.leaf_offset[t + 1])
        return Tree(
            self.feature[n], self.cut[n], self.missing_left[n], self.left[n], self.right[n], self.values[leaves], self.gain[n]
        )

    def trees(self) -> list[Tree]:
        """Return all trees in order."""
        return [self.tree(t) for t in range(self.n_trees)]

    def rounds(self) -> list[list[Tree]]:
        """Return the trees of all rounds in order."""
        return [[self.tree(t) for t in range(first, stop)] for first, stop in pairwise(self.round_offset.tolist())]

    def feature_gains(self, n_features: int) -> NDArray[np.float64]:
        """Return each feature's total gain, shape (n_features,), summed in node order."""
        gains = np.zeros(n_features)
        np.add.at(gains, self.feature, self.gain)
        return gains

    def digest(self) -> str:
        """Return the SHA-256 of all arrays: equal digests are equal models, byte for byte."""
        sha = hashlib.sha256()
        for field in fields(self):
            array = getattr(self, field.name)
            sha.update(f"{field.name} {array.dtype.str} {array.shape};".encode())
            sha.update(np.ascontiguousarray(array).tobytes())
        return sha.hexdigest()

"""What a worker tells the others of its entries in some groups of a column, and what they make of all workers' parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gpuboost.array_types import IntArray
from gpuboost.binning.columns import distinct
from gpuboost.binning.keys import Keys

Scalar = TypeVar("Scalar", bound=np.generic)

THINNED = 4
"""When the parts of chunks have four times as many, they become one of so many times the pivots that are told at last."""


class Part(NamedTuple):
    """What a worker tells of its entries in some groups.

    Attributes
    ----------
    n_entries : int
        How many there are.
    has_missing : bool
        Whether the worker has NaN in the column.
    keys : uint64 (n_entries,), ascending, or fewer
    weights : int64 (n_entries,), or none if only some keys are told
    """

    n_entries: int
    has_missing: bool
    keys: Keys
    weights: IntArray

    @property
    def is_whole(self) -> bool:
        """Whether all entries are told."""
        return self.weights.size == self.n_entries


def merged(parts: Sequence[Part]) -> tuple[Keys, IntArray]:
    """The distinct keys of all workers' entries, and their weights. All parts are whole."""
    return distinct(np.concatenate([part.keys for part in parts]), np.concatenate([part.weights for part in parts]))


def pivots(parts: Sequence[Part], n: int) -> Keys:
    """About n of the keys that the workers tell, at equal steps of the entries that they stand for.

    A worker's keys are at equal steps of its entries. So between two neighbours of the result lie hardly more of all entries
    than a step of the result, and one of each worker.
    """
    keys = np.concatenate([part.keys for part in parts])
    n_entries = np.concatenate([np.full(part.keys.size, part.n_entries // max(1, part.keys.size)) for part in parts])
    order = np.argsort(keys)
    steps = np.cumsum(n_entries[order]) // -(-int(n_entries.sum()) // n)
    return np.unique(keys[order[np.diff(steps, prepend=-1) > 0]])


def thinned(parts: Sequence[Part], n: int) -> Part:
    """About n of the keys that several parts tell, as one part. Repeated entries count several times."""
    keys = pivots(parts, n)
    return Part(sum(part.n_entries for part in parts), any(part.has_missing for part in parts), keys, np.empty(0, np.int64))


class PartSum:
    """What is told of a column whose chunks tell one part after another.

    Its memory does not grow with the number of chunks.

    Parameters
    ----------
    most_entries, n_pivots : int
        So many entries are told of all chunks together, or so many keys if there are more entries.
    """

    def __init__(self, most_entries: int, n_pivots: int) -> None:
        self._most_entries, self._n_pivots = most_entries, n_pivots
        self._whole = Part(0, False, np.empty(0, np.uint64), np.empty(0, np.int64))
        self._others: list[Part] = []

    def add(self, part: Part) -> None:
        """Take the part of the next chunk."""
        if not part.is_whole:
            self._tell(part)
            return
        if self._whole.n_entries:
            keys, weights = merged([self._whole, part])
            part = Part(keys.size, self._whole.has_missing or part.has_missing, keys, weights)
        else:
            part = part._replace(has_missing=self._whole.has_missing or part.has_missing)
        self._whole = part
        if part.n_entries > self._most_entries:
            self._whole = part._replace(n_entries=0, keys=part.keys[:0], weights=part.weights[:0])
            self._tell(thinned([part], self._n_pivots))

    def _tell(self, part: Part) -> None:
        self._others.append(part)
        if sum(other.keys.size for other in self._others) > 4 * THINNED * self._n_pivots:
            self._others = [thinned(self._others, THINNED * self._n_pivots)]

    def part(self) -> Part:
        """Return the part of all chunks."""
        if not self._others:
            return self._whole
        if len(self._others) == 1 and not self._whole.n_entries:
            return self._others[0]._replace(has_missing=self._others[0].has_missing or self._whole.has_missing)
        return thinned([self._whole, *self._others], self._n_pivots)


def encoded(parts: Sequence[Part]) -> bytes:
    """Parts of several columns as bytes: sizes, keys, and weights as narrow as they can be."""
    sizes = np.array([(part.n_entries, part.has_missing, part.keys.size, part.weights.size) for part in parts], np.int64)
    keys = np.concatenate([part.keys for part in parts])
    weights = np.concatenate([part.weights for part in parts])
    return sizes.tobytes() + keys.tobytes() + weights.astype(np.min_scalar_type(weights.max(initial=0))).tobytes()


def decoded(message: bytes, n_parts: int) -> list[Part]:
    """What `encoded` was given."""
    sizes = np.frombuffer(message, np.int64, 4 * n_parts).reshape(n_parts, 4)
    n_entries, has_missing, n_keys, n_weights = sizes.T
    end = sizes.nbytes + 8 * int(n_keys.sum())
    keys = np.frombuffer(message[sizes.nbytes : end], np.uint64)
    n_bytes = (len(message) - end) // max(1, int(n_weights.sum())) or 1
    weights = np.frombuffer(message[end:], f"u{n_bytes}").astype(np.int64)
    columns = n_entries.tolist(), (has_missing > 0).tolist(), divided(keys, n_keys), divided(weights, n_weights)
    return [Part(*column) for column in zip(*columns, strict=True)]


def divided(array: NDArray[Scalar], sizes: ArrayLike) -> list[NDArray[Scalar]]:
    """Parts of an array, of the given sizes."""
    return np.split(array, np.cumsum(sizes)[:-1])

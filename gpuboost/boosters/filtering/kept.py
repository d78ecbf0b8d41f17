"""What is kept of rows that come again in the next pass."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from gpuboost.backends.label_weights import LabelWeights
from gpuboost.backends.statistics import Device
from gpuboost.boosters.filtering.draw import Chunk


class Known(NamedTuple):
    """What is known of rows that have been read before; the fields are those of `Chunk`, and the size of codes and scores."""

    data: Device
    scores: Device
    n_trees: int
    weights: LabelWeights | None
    n_bytes: int

    @property
    def size(self) -> int:
        return self.n_bytes + sum(one.nbytes for one in self.weights or ())


@dataclass
class Kept:
    """What is known of chunks that come again in the next pass, up to a number of bytes.

    Weights, which are soon computed again, make room for codes and scores. These are never dropped for others: with a pass that
    does not fit, every chunk would be dropped before it comes again.
    """

    limit: int
    n_bytes: int = 0
    chunks: dict[tuple[int, int], Known] = field(default_factory=dict)

    def store(self, chunk: Chunk) -> None:
        n_rows, n_features = chunk.X.shape
        n_bytes = n_rows * (n_features + 8 * chunk.scores.shape[1])
        known = Known(chunk.data, chunk.scores, chunk.n_trees, chunk.weights, n_bytes)
        if not self._fits(known):
            known = known._replace(weights=None)
        for place, other in self.chunks.items():
            if self._fits(known):
                break
            self.chunks[place] = other._replace(weights=None)
            self.n_bytes -= other.size - other.n_bytes
        if self._fits(known):
            self.chunks[chunk.first_row, n_rows] = known
            self.n_bytes += known.size

    def take(self, first_row: int, n_rows: int) -> Known | None:
        known = self.chunks.pop((first_row, n_rows), None)
        if known is not None:
            self.n_bytes -= known.size
        return known

    def _fits(self, known: Known) -> bool:
        return self.n_bytes + known.size <= self.limit

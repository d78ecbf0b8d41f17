"""Rows of a stream, drawn in order, with their scores under the trees so far."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gpuboost.array_types import Floats, IntArray
from gpuboost.backends.base import Backend
from gpuboost.backends.label_weights import LabelWeights
from gpuboost.binning import BinMapper
from gpuboost.boosters.filtering.draw import Chunk, Draw, Part
from gpuboost.boosters.filtering.edges import TargetError
from gpuboost.boosters.filtering.kept import Kept, Known
from gpuboost.boosters.filtering.uniforms import uniforms
from gpuboost.ensemble import Ensemble
from gpuboost.tree import Tree

MOST_PASSES = 100
"""A draw takes what so many passes over a fixed set give: rows that are learnt are hardly ever accepted."""

OUT_OF_ROWS = "the source has no more rows"
"""Why a stream ends whose reader knows better."""

Numerators = Callable[[IntArray, IntArray], IntArray]

SLICE = 1 << 14
"""Rows are weighed by stretches of this length at most, and by shorter ones where a draw is expected to end."""

SHORTEST = 256
"""Shorter stretches take as long."""


@dataclass(frozen=True)
class Step:
    """Consecutive rows of a stream, with class numbers and weights, of which 0 is that of a row that does not exist."""

    X: NDArray[Any]
    target: IntArray
    weight: Floats
    pass_number: int
    first_row: int


class Oracle(Protocol):
    """Where a booster's rows come from: a stream (`Examples`), or a set in memory."""

    backend: Backend
    mapper: BinMapper
    n_classes: int
    trees: list[Tree]

    @property
    def place(self) -> tuple[int, int]:
        """The pass, and the row of it, that is drawn next."""

    def accepted(self, n: int, numerators: Numerators, target: TargetError | None = None, n_complete: int = 0) -> Draw:
        """Draw rows by their weights."""

    def all(self, n: int) -> Draw:
        """Draw rows whatever their weights."""

    def add(self, tree: Tree) -> None:
        """Add a finished tree to the model."""


class StreamEnd(Exception):
    """The stream has no more rows, or what it proves is proven; the message says which."""


class Examples:
    """The oracle: rows in the order of a stream, each of which is drawn once a pass.

    Parameters
    ----------
    steps : iterator of Step
        Where to go on reading.
    backend, mapper
    n_classes : int
    weighting : str
        See `weights.MARGIN_WEIGHTS`.
    seed : int
        Of the random numbers by which rows are accepted.
    kept_bytes : int
        Codes and scores of rows that come again are kept up to this size; the trees added since are all that is computed then.
    """

    def __init__(
        self,
        steps: Iterator[Step],
        backend: Backend,
        mapper: BinMapper,
        n_classes: int,
        *,
        weighting: str = "logistic",
        seed: int = 0,
        kept_bytes: int = 0,
    ) -> None:
        self.steps, self.backend, self.mapper, self.n_classes = steps, backend, mapper, n_classes
        self.weighting, self.seed = weighting, seed
        self.kept = Kept(kept_bytes)
        self.trees: list[Tree] = []
        self.chunk: Chunk | None = None
        self.position = 0  # in the chunk

    def accepted(self, n: int, numerators: Numerators, target: TargetError | None = None, n_complete: int = 0) -> Draw:
        """Draw rows until ``n`` of them have passed the filter (algorithm 3), or a fixed set has been read 100 times.

        Parameters
        ----------
        n : int
        numerators : callable
            From label weights (n_rows, n_classes) and classes to ``n_classes - 1`` times the acceptance, in units.
        target : TargetError, optional
            Ends the stream once its error is proven: by the rows that `Filter` rejects, whatever the numerators. Those of
            `FilterWL` fall for a colouring that is learnt, however many rows are still wrong.
        n_complete : int
            Of the first so many rows, those that are rejected keep their label weights, too; but no row twice.
        """

        def choose(part: Part) -> NDArray[np.bool_]:
            return numerators(part.q, part.target) > self._bars(part)

        return self._draw(n, choose, target, n_complete)

    def all(self, n: int) -> Draw:
        """Draw the next ``n`` rows."""
        return self._draw(n, lambda part: np.ones(part.end - part.begin, bool), None, 0)

    @property
    def place(self) -> tuple[int, int]:
        """The pass, and the row of it, that is drawn next."""
        assert self.chunk is not None
        return self.chunk.pass_number, self.chunk.first_row + self.position

    def add(self, tree: Tree) -> None:
        """Add a finished tree to the model."""
        self.trees.append(tree)
        if self.chunk is not None:
            self._catch_up(self.chunk)

    def _draw(self, n: int, choose: Callable[[Part], NDArray[np.bool_]], target: TargetError | None, n_complete: int) -> Draw:
        parts: list[Part] = []
        missing, n_read, length = n, 0, n  # no fewer rows than that
        self._current()
        first = self.place
        while missing:
            chunk = self._current()
            if chunk.pass_number - first[0] >= MOST_PASSES:
                if missing == n:
                    raise StreamEnd(f"no row of {MOST_PASSES} passes is accepted: nothing is left to learn")
                break
            begin = self.position
            end = min(begin + min(max(length, SHORTEST), SLICE), len(chunk.target))
            n_complete = self._before_repeats(n_complete, first)
            if n_complete > 0:
                end = min(end, begin + n_complete)
            part = Part(chunk, begin, self._weights(chunk, begin, end))
            chosen = np.flatnonzero(part.exists & choose(part))[:missing]
            # The round ends at the row that makes it complete, wherever the chunk ends.
            n_rows = int(chosen[-1]) + 1 if len(chosen) == missing else end - begin
            part.choose(chosen, n_rows, complete=n_complete > 0)
            parts.append(part)
            self.position = part.end
            missing, n_read, n_complete = missing - len(chosen), n_read + n_rows, n_complete - n_rows
            length = missing * n_read // max(n - missing, 1)  # by the share that was chosen so far
            if target is not None:
                passed = (part.label_weight > self._bars(part))[part.exists]
                if target.is_proven(np.flatnonzero(passed), len(passed)):
                    raise StreamEnd(f"target_error={target.epsilon} is reached, with the probability asked for")
        return Draw(parts)

    def _bars(self, part: Part) -> IntArray:
        """Return what ``n_classes - 1`` times the acceptance of each row must exceed, in units."""
        chunk = part.chunk
        u = uniforms(self.seed, chunk.pass_number, chunk.first_row + part.begin, part.end - part.begin)
        return u * (self.n_classes - 1)

    def _weights(self, chunk: Chunk, begin: int, end: int) -> LabelWeights:
        """Weigh rows of a chunk; those of a set that is read again and again only once."""
        if not chunk.comes_again:
            return self.backend.weigh_labels(chunk.scores, chunk.target, self.weighting, begin, end)
        if chunk.weights is None:
            chunk.weights = self.backend.weigh_labels(chunk.scores, chunk.target, self.weighting, 0, len(chunk.target))
        q, total, loss, wrong = chunk.weights
        return LabelWeights(q[begin:end], total[begin:end], loss[begin:end], wrong[begin:end])

    def _before_repeats(self, n: int, first: tuple[int, int]) -> int:
        """Return n, or how many rows are left until a draw that began at ``first`` has read a set once."""
        pass_number, row = self.place
        if pass_number == first[0]:
            return n
        return min(n, first[1] - row) if pass_number == first[0] + 1 else 0

    def _current(self) -> Chunk:
        """Return the chunk that has the next row."""
        while self.chunk is None or self.position == len(self.chunk.target):
            if self.chunk is not None:
                self.kept.store(self.chunk)
                self.chunk = None
            step = next(self.steps, None)
            if step is None:
                raise StreamEnd(OUT_OF_ROWS)
            self.chunk, self.position = self._loaded(step), 0
        return self.chunk

    def _loaded(self, step: Step) -> Chunk:
        n_rows, n_trees = len(step.target), len(self.trees)
        known = self.kept.take(step.first_row, n_rows)
        comes_again = known is not None and known.n_trees == n_trees
        if known is None:
            scores = self.backend.put(np.zeros((n_rows, self.n_classes)))
            known = Known(self.backend.encode(self.mapper, step.X), scores, 0, None, 0)
        chunk = Chunk(
            step.X, step.target, step.weight, known.data, known.scores, step.pass_number, step.first_row, known.n_trees
        )
        chunk.comes_again, chunk.weights = comes_again, known.weights
        self._catch_up(chunk)
        return chunk

    def _catch_up(self, chunk: Chunk) -> None:
        """Add to the chunk's scores the trees that they lack, in order."""
        new = self.trees[chunk.n_trees :]
        if new:
            chunk.comes_again, chunk.weights = False, None  # another model weighs them differently
        if len(new) > 8:
            self.backend.predict(Ensemble.from_trees(new, self.n_classes), chunk.data, chunk.scores, 0, len(new))
        else:
            for tree in new:
                self.backend.add_scores(chunk.scores, chunk.leaf_index(self.backend, tree), tree.values)
        chunk.n_trees = len(self.trees)

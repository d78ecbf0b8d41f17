"""Naive twins of the learners: plain loops over rows, in Python integers or fractions, straight from the paper.

``codes[f][i]`` is the code of row i (0 is missing), ``quantised[i][l]`` the signed weight ``w_il y_il``, of any exact number
type.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Stump:
    """A cut, or the constant classifier if ``feature`` is -1, with its class-wise edges (of votes +1)."""

    edges: tuple[Any, ...]
    feature: int = -1
    cut: int = 0
    missing_left: bool = False

    @property
    def score(self) -> Any:
        return sum(map(abs, self.edges))

    @property
    def votes(self) -> tuple[int, ...]:
        return tuple(1 if edge > 0 else -1 for edge in self.edges)

    def phi(self, codes: Sequence[Sequence[int]], i: int) -> int:
        if self.feature < 0:
            return 1
        code = codes[self.feature][i]
        goes_left = self.missing_left if code == 0 else code <= self.cut
        return -1 if goes_left else 1


@dataclass(frozen=True)
class Limit:
    """What the rows count, and what both sides of a cut must have of that."""

    counts: Sequence[Any]
    minimum: Any

    def allows(self, stump: Stump, codes: Any, rows: Iterable[int]) -> bool:
        sides = {-1: 0, 1: 0}
        for i in rows:
            sides[stump.phi(codes, i)] += self.counts[i]
        return stump.feature < 0 or min(sides.values()) >= self.minimum


def best_stump(codes: Any, quantised: Any, rows: Iterable[int], n_bins: Sequence[int], limit: Limit | None = None) -> Stump:
    """Try everything, in the order of the tie rule; only a higher score replaces."""
    rows = list(rows)

    def tried(feature: int = -1, cut: int = 0, missing_left: bool = False) -> Stump:
        phi = Stump((), feature, cut, missing_left).phi
        edges = tuple(sum(quantised[i][c] * phi(codes, i) for i in rows) for c in range(len(quantised[0])))
        return Stump(edges, feature, cut, missing_left)

    best = tried()
    for feature, bins in enumerate(n_bins):
        for cut, missing_left in itertools.product(range(1, bins), (True, False)):
            stump = tried(feature, cut, missing_left)
            if limit is None or limit.allows(stump, codes, rows):
                best = stump if stump.score > best.score else best
    return best


@dataclass
class GrownTree:
    """What figure 2 of the paper returns: the votes of every row, the cuts in the order of their nodes, the local edges."""

    votes: dict[int, tuple[int, ...]] = field(default_factory=dict)
    cuts: list[tuple[int, int, bool]] = field(default_factory=list)
    gains: list[Any] = field(default_factory=list)
    n_constant: int = 0

    def edge(self, quantised: Any) -> Any:
        return sum(v * w for i, votes in self.votes.items() for v, w in zip(votes, quantised[i], strict=True))


def hamming_tree(codes: Any, quantised: Any, n_bins: Sequence[int], n_inner: int, limit: Limit | None = None) -> GrownTree:
    """Figure 2, line by line, with a heap; ties go to the leaf that came first."""
    tree = GrownTree()
    order = itertools.count()
    queue: list[Any] = []

    def insert(rows: list[int], parent_votes: tuple[int, ...] | None) -> None:
        stump = best_stump(codes, quantised, rows, n_bins, limit)
        baseline = 0 if parent_votes is None else sum(v * quantised[i][c] for i in rows for c, v in enumerate(parent_votes))
        heapq.heappush(queue, (baseline - stump.score, next(order), rows, stump))

    everything = range(len(quantised))
    tree.votes = dict.fromkeys(everything, (0,) * len(quantised[0]))
    insert(list(everything), None)
    for _ in range(n_inner):
        if not queue or queue[0][0] >= 0:
            break
        key, _, rows, stump = heapq.heappop(queue)
        tree.gains.append(-key)
        for i in rows:
            tree.votes[i] = tuple(v * stump.phi(codes, i) for v in stump.votes)
        if stump.feature < 0:  # a constant leaf has no children
            tree.n_constant += 1
            continue
        tree.cuts.append((stump.feature, stump.cut, stump.missing_left))
        for side in (-1, 1):
            insert([i for i in rows if stump.phi(codes, i) == side], tuple(side * v for v in stump.votes))
    return tree


def product(
    codes: Any, quantised: Any, n_bins: Sequence[int], n_factors: int, limit: Limit | None = None
) -> tuple[dict[int, tuple[int, ...]], list[Any]]:
    """Cycle over the factors; return the votes of every row and the edge after every fitted factor."""
    n_classes = len(quantised[0])
    multipliers = [Stump((1,) * n_classes)] * n_factors

    def value(chosen: Iterable[Stump], i: int) -> tuple[int, ...]:
        out = (1,) * n_classes
        for stump in chosen:
            out = tuple(o * v * stump.phi(codes, i) for o, v in zip(out, stump.votes, strict=True))
        return out

    edges: list[Any] = []
    while True:
        before = max(edges, default=0)
        for j in range(n_factors):
            others = [stump for i, stump in enumerate(multipliers) if i != j]
            relabelled = [[w * v for w, v in zip(quantised[i], value(others, i), strict=True)] for i in range(len(quantised))]
            stump = best_stump(codes, relabelled, range(len(quantised)), n_bins, limit)
            if stump.score > max(edges, default=0):
                multipliers[j] = stump
                edges.append(stump.score)
        if max(edges, default=0) == before:
            return {i: value(multipliers, i) for i in range(len(quantised))}, edges
